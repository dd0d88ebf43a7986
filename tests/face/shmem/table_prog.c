// SPDX-License-Identifier: MIT
// table_prog: the table of queues, straight and through relays, on as many PEs as there are. Prints FAILED
// for what is wrong, and for a reader outside: `waits` when the relays' counters stand and may be looked at,
// until it reads a line from standard input.
#include <limits.h>
#include <pthread.h>
#include <shmem.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "drydock/shmem.h"

enum { QUEUES = 3, BLOCKS = 16, WORDS = 64, ROUNDS = 100 };

static int me, n, bad;
static uint64_t *box; // [origin][relay][queue][WORDS], in the heap
static uint64_t statics[8];
static struct drydock_table *t;

static void must(int good, const char *what, int pe, int relay, int queue)
{
    if (good)
        return;
    bad++;
    printf("FAILED %s: PE %d to %d through %d, queue %d\n", what, me, pe, relay, queue);
}

static uint64_t *row(int origin, int relay, int queue)
{
    return box + ((origin * n + relay) * QUEUES + queue) * WORDS;
}

// ---- what each way can do

static int done(struct drydock_queue *q)
{
    drydock_ring(q);
    return drydock_quiet(q);
}

static void write_read_count(struct drydock_queue *q, int pe, int relay, int queue, uint64_t *mine)
{
    uint64_t at, *there = row(me, relay, queue);
    const struct drydock_target *to = drydock_table_target(t, there, pe, &at);

    for (uint64_t i = 1; i <= ROUNDS; i++) { // over the end of the ring many times, blocks odd and even
        mine[0] = i * 1000 + (uint64_t)(pe * 100 + relay * 10 + queue);
        must(!drydock_post_write(q, to, at, mine, 8, 0), "write", pe, relay, queue);
        must(!drydock_post_read(q, to, at, mine + 1, 8, 0), "read", pe, relay, queue);
        must(!drydock_post_fetch_add(q, to, at + 8, mine + 2, 3, DRYDOCK_COMPLETE), "add", pe, relay, queue);
        must(done(q) == 0, "quiet", pe, relay, queue);
        must(mine[1] == mine[0], "a READ that does not see the WRITE before it", pe, relay, queue);
        must(mine[2] == 3 * (i - 1), "the old value", pe, relay, queue);
    }
    must(!drydock_post_compare_swap(q, to, at + 8, mine + 3, 3 * ROUNDS, 7, DRYDOCK_COMPLETE), "cas", pe,
         relay, queue);
    must(done(q) == 0 && mine[3] == 3 * ROUNDS, "compare and swap", pe, relay, queue);
}

// Both posted, one doorbell: the second is not done before the first, whoever carries them.
static void last_one_stays(struct drydock_queue *q, int pe, int relay, int queue, uint64_t *mine)
{
    uint64_t at, *there = row(me, relay, queue) + 2;
    const struct drydock_target *to = drydock_table_target(t, there, pe, &at);

    for (uint64_t i = 0; i < 8; i++) {
        mine[8 + i] = i + 1;
        must(!drydock_post_write(q, to, at, mine + 8 + i, 8, i == 7 ? DRYDOCK_COMPLETE : 0), "write", pe,
             relay, queue);
    }
    must(done(q) == 0, "quiet", pe, relay, queue);
}

static void *produce(void *arg)
{
    int queue = (int)(intptr_t)arg;
    uint64_t *mine = box + n * n * QUEUES * WORDS + queue * WORDS;

    for (int pe = 0; pe < n; pe++)
        for (int relay = 0; relay < n; relay++) {
            struct drydock_queue *q = drydock_table_queue(t, pe, relay, queue);
            must((q != NULL) == (relay == pe || relay != me), "which ways there are", pe, relay, queue);
            if (!q)
                continue;
            write_read_count(q, pe, relay, queue, mine);
            last_one_stays(q, pe, relay, queue, mine);
        }
    return NULL;
}

static void every_way_carries_everything(void)
{
    pthread_t thread[QUEUES];

    for (int i = 0; i < QUEUES; i++)
        pthread_create(&thread[i], NULL, produce, (void *)(intptr_t)i);
    for (int i = 0; i < QUEUES; i++)
        pthread_join(thread[i], NULL);
    shmem_barrier_all();
    for (int origin = 0; origin < n; origin++)
        for (int relay = 0; relay < n; relay++)
            for (int i = 0; i < QUEUES && (relay == me || relay != origin); i++) {
                const uint64_t *r = row(origin, relay, i);
                must(r[0] == ROUNDS * 1000 + (uint64_t)(me * 100 + relay * 10 + i), "payload", me, relay, i);
                must(r[1] == 7, "counter", me, relay, i);
                must(r[2] == 8, "order", me, relay, i);
            }
    shmem_barrier_all();
}

// D06: a WQE is whole before its doorbell shows it: its place in the ring is used again at once, each time
// for another address and another value, while the engine fetches.
static void a_doorbell_shows_whole_wqes(void)
{
    enum { TIMES = 4000, PLACES = 32 };
    struct drydock_queue *q = drydock_table_queue(t, (me + 1) % n, (me + 1) % n, 0);
    uint64_t at, *mine = box + n * n * QUEUES * WORDS, *there = row(0, 0, 0);
    const struct drydock_target *to = drydock_table_target(t, there, (me + 1) % n, &at);

    memset(there, 0, PLACES * sizeof *there);
    shmem_barrier_all();
    for (uint64_t i = 0; i < TIMES; i++) {
        uint64_t place = i * 7 % PLACES;
        mine[place] = i + 1;
        // the source of the write before it to this place: done since, the ring has fewer blocks
        while (drydock_post_write(q, to, at + place * 8, &mine[place], 8, DRYDOCK_COMPLETE) == DRYDOCK_FULL)
            drydock_poll(q);
        drydock_ring(q);
    }
    must(drydock_quiet(q) == 0, "D06 quiet", (me + 1) % n, (me + 1) % n, 0);
    shmem_barrier_all();
    for (uint64_t i = TIMES - PLACES; i < TIMES; i++)
        must(there[i * 7 % PLACES] == i + 1, "D06 what arrived", me, me, 0);
    shmem_barrier_all();
}

// D04: the library's fence between a direct WRITE and a flag, by the same queue or by the library once the
// queue is quiet: who sees the flag sees the data.
static void a_flag_follows_direct_data(void)
{
    struct drydock_queue *q = drydock_table_queue(t, (me + 1) % n, (me + 1) % n, 0);
    uint64_t at, *mine = box + n * n * QUEUES * WORDS, *there = row(0, 0, 0);
    const struct drydock_target *to = drydock_table_target(t, there, (me + 1) % n, &at);

    memset(there, 0, 3 * sizeof *there);
    shmem_barrier_all();
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        mine[0] = mine[1] = i;
        drydock_post_write(q, to, at, &mine[0], 8, 0);
        shmem_fence();
        if (i % 2) {
            drydock_post_write(q, to, at + 8, &mine[1], 8, DRYDOCK_COMPLETE);
            must(done(q) == 0, "D04 quiet", (me + 1) % n, (me + 1) % n, 0);
        } else {
            drydock_post_write(q, to, at + 16, &mine[1], 8, DRYDOCK_COMPLETE);
            must(done(q) == 0, "D04 quiet", (me + 1) % n, (me + 1) % n, 0);
            shmem_uint64_p(&there[1], i, (me + 1) % n);
        }
        shmem_uint64_wait_until(&there[1], SHMEM_CMP_GE, i);
        must(there[0] >= i, "D04 a flag without its data", me, me, 0);
        shmem_sync_all();
    }
}

// ---- what is refused, and closed

static void a_closed_way_fails_and_the_relay_carries_on(void)
{
    int pe = (me + 1) % n, relay = (me + 2) % n;
    struct drydock_queue *straight = drydock_table_queue(t, pe, pe, 0),
                         *way = drydock_table_queue(t, pe, relay, 0);
    uint64_t at, *mine = box + n * n * QUEUES * WORDS;
    const struct drydock_target *to = drydock_table_target(t, statics, pe, &at);

    statics[1] = 5;
    shmem_barrier_all();
    must(drydock_table_cut(t, pe) == 0 && drydock_table_cut(t, n) != 0, "cut", pe, relay, 0);
    mine[0] = 6;
    drydock_post_write(straight, to, at + 8, mine, 8, DRYDOCK_COMPLETE);
    must(done(straight) != 0, "a closed way says nothing", pe, pe, 0);
    shmem_barrier_all();
    must(statics[1] == 5, "a closed way carries", pe, pe, 0);
    shmem_barrier_all();
    drydock_post_write(way, to, at + 8, mine, 8, DRYDOCK_COMPLETE);
    must(done(way) == 0, "the relay", pe, relay, 0);
    shmem_barrier_all();
    must(statics[1] == 6, "what came through the relay", pe, relay, 0);
}

static void a_relay_takes_only_the_heap_of_its_producer(void)
{
    int pe = (me + 1) % n, relay = (me + 2) % n;
    struct drydock_queue *q = drydock_table_queue(t, pe, relay, 1);
    uint64_t at, stack = 9;
    const struct drydock_target *to = drydock_table_target(t, statics, pe, &at);

    drydock_post_write(q, to, at + 16, &stack, 8, DRYDOCK_COMPLETE);
    must(done(q) != 0, "a source outside of the heap", pe, relay, 1);
    must(drydock_table_target(t, &stack, pe, &at) == NULL, "an address that is not symmetric", pe, relay, 1);
    shmem_barrier_all();
    must(statics[2] == 0, "a source outside of the heap was read", pe, relay, 1);
}

// PE 1 dies with what it carries. Who posts through it, or waits, gets an error before the launcher ends the
// job.
static void a_dead_relay_is_noticed(void)
{
    struct drydock_queue *q = drydock_table_queue(t, 2, 1, 0);
    uint64_t at, *mine = box + n * n * QUEUES * WORDS;
    const struct drydock_target *to = drydock_table_target(t, row(0, 0, 0), 2, &at);
    int err = 0, posted = 0;

    shmem_barrier_all();
    if (me == 1)
        raise(SIGKILL);
    if (me == 0) {
        signal(SIGTERM, SIG_IGN); // of the launcher, a second after the death: a slow machine needs longer
        while (!err) {
            err = drydock_post_write(q, to, at, mine, 8, DRYDOCK_COMPLETE);
            err = err == DRYDOCK_FULL ? 0 : err;
            if (!err) {
                err = done(q);
                posted++;
            }
        }
        must(err == DRYDOCK_LOST, "the error of a dead relay", 2, 1, 0);
        while ((err = drydock_post_write(q, to, at, mine, 8, 0)) == 0)
            drydock_ring(q);
        must(err == DRYDOCK_LOST, "a post to a ring that a dead relay will not empty", 2, 1, 0);
        printf("the relay's death was noticed after %s\n", posted ? "some" : "none");
        fflush(stdout);
        signal(SIGTERM, SIG_DFL);
    }
    for (;;) // the launcher ends us
        pause();
}

static void what_is_no_table_is_refused_everywhere(void)
{
    struct drydock_table *none = NULL;

    must(drydock_table_open(0, 16, 0, &none) && !none, "no queues", 0, 0, 0);
    must(drydock_table_open(INT_MIN, 16, 0, &none) && !none, "the least number", 0, 0, 0);
    must(drydock_table_open(1, 0x80000000u, 0, &none) && !none, "it as blocks", 0, 0, 0);
    must(n == 1 || (drydock_table_open(me == 1 ? INT_MIN : 1, 16, 0, &none) && !none), "it in one PE", 0, 0,
         0);
    must(drydock_table_open(1, 0, 0, &none) && !none, "no blocks", 0, 0, 0);
    must(drydock_table_open(1, 65537, 0, &none) && !none, "more blocks than a ring has", 0, 0, 0);
    must(drydock_table_open(1, 16, 2, &none) && !none, "an unknown flag", 0, 0, 0);
    must(n == 1 || (drydock_table_open(1 + (me == 1), 16, 0, &none) && !none), "PEs that differ", 0, 0, 0);
    must(drydock_table_open(1, 16, 0, &none) == 0 && none, "a small one", 0, 0, 0);
    must(drydock_table_queue(none, 0, n - 1, 0) == NULL || n == 1, "a relay where none was asked for", 0, 0,
         0);
    drydock_table_close(none);
}

int main(int argc, char **argv)
{
    char line[8];

    shmem_init();
    me = shmem_my_pe();
    n = shmem_n_pes();
    box = shmem_calloc((size_t)((n * n + 1) * QUEUES * WORDS), sizeof *box);
    what_is_no_table_is_refused_everywhere();
    if (!box || drydock_table_open(QUEUES, BLOCKS, DRYDOCK_TABLE_RELAYS, &t))
        shmem_global_exit(9);
    every_way_carries_everything();
    if (argc > 1 && strcmp(argv[1], "relay_dies") == 0)
        a_dead_relay_is_noticed();
    a_doorbell_shows_whole_wqes();
    a_flag_follows_direct_data();
    if (argc > 1 && strcmp(argv[1], "waits") == 0) {
        if (me == 0) {
            printf("waits\n");
            fflush(stdout);
            must(fgets(line, sizeof line, stdin) != NULL, "no line", 0, 0, 0);
        }
        shmem_barrier_all();
    }
    if (n > 2) {
        a_closed_way_fails_and_the_relay_carries_on();
        a_relay_takes_only_the_heap_of_its_producer();
    }
    if (n != 3) // else it is left to shmem_finalize
        drydock_table_close(t);
    shmem_free(box);
    shmem_finalize();
    return bad != 0;
}
