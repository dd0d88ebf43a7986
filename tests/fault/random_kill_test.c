// SPDX-License-Identifier: MIT
// One side of a connection under traffic of mixed opcodes is killed, or stopped and continued or killed, at a
// random instant. One kill: DRYDOCK_SEED=... random_kill_test INDEX
// timeout: 900
// long-timeout: 1800
#include <stdio.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/seed.h"
#include "lib/kill.h"

#define KILLS 1000u
#define KILLS_LONG 3000u
#define KILLS_SLOW 100u // under sanitizers
#define LANES 2u        // cells at once: half of a cell is waiting
#define NOTICE_MS 5000.0

// Shared by the lanes.
struct tally {
    uint64_t seed;
    unsigned kills;
    dock_a32 next, bad, slowest_us;
};

static struct kill_cell cell_of(uint64_t seed, unsigned i)
{
    uint64_t r = dock_decide(seed, 0, i), s = dock_decide(seed, 1, i);

    return (struct kill_cell){.moment = -1,
                              .after_us = (unsigned)(s % 4000),
                              .side = r & 1 ? KILL_INITIATOR : KILL_TARGET,
                              .how = r >> 1 & 3 ? KILL_NOW
                                     : r & 8    ? KILL_STOP_CONT
                                                : KILL_STOP_KILL,
                              .asleep = r >> 4 & 1,
                              .third = r >> 5 & 1,
                              .plain = (r >> 6 & 3) == 0,
                              .rm = (r >> 8 & 3) == 0,
                              .seed = r};
}

static bool run(struct kill_board *board, struct tally *t, unsigned i)
{
    struct kill_cell c = cell_of(t->seed, i);
    struct kill_verdict v;
    uint32_t slowest = dock_peek32(&t->slowest_us);

    kill_run(board, &c, &v);
    if (v.good && v.noticed_ms > NOTICE_MS * test_slow()) {
        v.good = false;
        snprintf(v.words, sizeof v.words, "noticed after %.0f ms, expected at most %.0f", v.noticed_ms,
                 NOTICE_MS * test_slow());
    }
    while (v.noticed_ms * 1e3 > slowest &&
           !dock_claim32(&t->slowest_us, &slowest, (uint32_t)(v.noticed_ms * 1e3)))
        ;
    if (!v.good)
        printf("FAILED kill %u (%s %s after %u us, target %s%s%s%s): %s\n"
               "  again: DRYDOCK_SEED=%#llx scripts/run-one build/dev/tests/fault/random_kill_test %u\n",
               i, kill_role_name[c.side], kill_how_name[c.how], c.after_us, c.asleep ? "asleep" : "busy",
               c.third ? ", a third" : "", c.plain ? ", plain memory" : "", c.rm ? ", RM" : "", v.words,
               (unsigned long long)t->seed, i);
    return v.good;
}

static int lane(void *arg)
{
    struct kill_board *board = test_shared(sizeof *board);
    struct tally *t = arg;
    unsigned i;

    while ((i = atomic_fetch_add(&t->next, 1)) < t->kills)
        if (!run(board, t, i))
            atomic_fetch_add(&t->bad, 1);
    return 0;
}

int main(int argc, char **argv)
{
    struct tally *t = test_shared(sizeof *t);
    uint64_t begin = dock_now_ns();
    pid_t pid[LANES];
    int status;

    t->seed = dock_seed();
    t->kills = test_long() ? KILLS_LONG : test_slow() > 1 ? KILLS_SLOW : KILLS;
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("seed %#llx\n", (unsigned long long)t->seed);
    if (argc > 1)
        return !run(test_shared(sizeof(struct kill_board)), t, (unsigned)atoi(argv[1]));
    for (unsigned i = 0; i < LANES; i++)
        pid[i] = test_fork(lane, t);
    for (unsigned i = 0; i < LANES; i++)
        if (waitpid(pid[i], &status, 0) != pid[i] || status) {
            printf("FAILED: lane %u ended with status %#x\n", i, status);
            atomic_fetch_add(&t->bad, 1);
        }
    printf("%u kills, %u failed; slowest to notice a death: %.1f ms of %.0f; %.0f s\n", t->kills,
           dock_peek32(&t->bad), dock_peek32(&t->slowest_us) / 1e3, NOTICE_MS * test_slow(),
           (double)(dock_now_ns() - begin) / 1e9);
    return dock_peek32(&t->bad) != 0;
}
