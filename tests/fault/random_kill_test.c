// SPDX-License-Identifier: MIT
// One side of a connection under traffic of mixed opcodes is killed, or stopped and continued or killed, at a
// random instant. One kill: DRYDOCK_SEED=... random_kill_test INDEX
// timeout: 300
// long-timeout: 1800
#include <stdio.h>

#include "base/clock.h"
#include "base/seed.h"
#include "lib/kill.h"

#define KILLS 400u
#define KILLS_LONG 1000u
#define NOTICE_MS 5000.0

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

static bool run(struct kill_board *board, uint64_t seed, unsigned i, double *slowest)
{
    struct kill_cell c = cell_of(seed, i);
    struct kill_verdict v;

    kill_run(board, &c, &v);
    if (v.good && v.noticed_ms > NOTICE_MS * test_slow()) {
        v.good = false;
        snprintf(v.words, sizeof v.words, "noticed after %.0f ms, expected at most %.0f", v.noticed_ms,
                 NOTICE_MS * test_slow());
    }
    if (v.noticed_ms > *slowest)
        *slowest = v.noticed_ms;
    if (!v.good)
        printf("FAILED kill %u (%s %s after %u us, target %s%s%s%s): %s\n"
               "  again: DRYDOCK_SEED=%#llx scripts/run-one build/dev/tests/fault/random_kill_test %u\n",
               i, kill_role_name[c.side], kill_how_name[c.how], c.after_us, c.asleep ? "asleep" : "busy",
               c.third ? ", a third" : "", c.plain ? ", plain memory" : "", c.rm ? ", RM" : "", v.words,
               (unsigned long long)seed, i);
    return v.good;
}

int main(int argc, char **argv)
{
    struct kill_board *board = test_shared(sizeof *board);
    uint64_t seed = dock_seed(), begin = dock_now_ns();
    unsigned kills = test_long() ? KILLS_LONG : KILLS / test_slow(), bad = 0;
    double slowest = 0;

    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("seed %#llx\n", (unsigned long long)seed);
    if (argc > 1)
        return !run(board, seed, (unsigned)atoi(argv[1]), &slowest);
    for (unsigned i = 0; i < kills; i++)
        bad += !run(board, seed, i, &slowest);
    printf("%u kills, %u failed; slowest to notice a death: %.1f ms of %.0f; %.0f s\n", kills, bad, slowest,
           NOTICE_MS * test_slow(), (double)(dock_now_ns() - begin) / 1e9);
    return bad != 0;
}
