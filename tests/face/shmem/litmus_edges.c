// SPDX-License-Identifier: MIT
// E01 to E05, E09: empty sets, fairness, the root of a broadcast, reuse, the heap, a short as a flag. Two
// PEs.
#include <stdlib.h>
#include <string.h>

#include "face/shmem/litmus.h"

static void empty_sets(void)
{
    long words[2] = {1, 1};
    int out[2] = {1, 1};
    size_t found[2];

    for (size_t count = 0; count <= 2; count += 2) {
        shmem_long_wait_until_all(words, count, out, SHMEM_CMP_EQ, 5); // returns
        must("E01", shmem_long_wait_until_any(words, count, out, SHMEM_CMP_EQ, 5) == SIZE_MAX, "wait any");
        must("E01", shmem_long_wait_until_some(words, count, found, out, SHMEM_CMP_EQ, 5) == 0, "wait some");
        must("E01", shmem_long_test_any(words, count, out, SHMEM_CMP_EQ, 5) == SIZE_MAX, "test any");
        must("E01", shmem_long_test_some(words, count, found, out, SHMEM_CMP_EQ, 5) == 0, "test some");
        must("E01", shmem_long_test_all(words, count, out, SHMEM_CMP_EQ, 5) == 1, "test all");
    }
}

static void fairness(void)
{
    long words[3] = {1, 0, 1};
    unsigned seen[3] = {0};

    for (unsigned i = 0; i < 10; i++) {
        size_t at = shmem_long_wait_until_any(words, 3, NULL, SHMEM_CMP_EQ, 1);
        seen[at < 3 ? at : 1]++;
    }
    must("E02", seen[0] && seen[2] && !seen[1],
         "an entry is passed over for ever, or one that does not hold");
}

static void compare_all_ways(void)
{
    int word = -1;
    unsigned big = 0xffffffff;

    must("E01", shmem_int_test(&word, SHMEM_CMP_LT, 0) && !shmem_int_test(&word, SHMEM_CMP_GE, 0), "signed");
    must("E01", shmem_uint_test(&big, SHMEM_CMP_GT, 0) && !shmem_uint_test(&big, SHMEM_CMP_LE, 0),
         "unsigned");
    must("E01", shmem_int_test(&word, SHMEM_CMP_NE, 0) && shmem_int_test(&word, SHMEM_CMP_EQ, -1), "equal");
}

static long psync[SHMEM_SYNC_SIZE];

static void broadcast_root(void)
{
    static int from[2] = {1, 2};

    o->x = o->y = 0;
    shmem_barrier_all();
    shmem_int_broadcast(SHMEM_TEAM_WORLD, (int *)(void *)&o->x, from, 2, 0);
    must("E03", memcmp(&o->x, from, sizeof from) == 0, "team: the destination is written on the root too");
    shmem_broadcast32(&o->y, from, 2, 0, 0, 0, n, psync);
    must("E03", me == 0 ? o->y == 0 : memcmp(&o->y, from, sizeof from) == 0,
         "active set: the destination is written on all but the root");
    shmem_barrier_all();
}

static void reuse(void)
{
    long *v = shmem_malloc(4 * sizeof *v);

    for (int i = 0; i < 50; i++) {
        v[0] = me + i;
        v[2] = me * 2 + i;
        shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &v[1], &v[0], 1);
        shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &v[3], &v[2], 1);
        shmem_long_max_reduce(SHMEM_TEAM_WORLD, &v[2], &v[2], 1);
        must("E04", v[1] == 1 + 2 * i && v[3] == 2 + 2 * i && v[2] == 2 + i, "two reductions mix");
    }
    shmem_free(v);
}

// Longer than what is fetched at once, and no multiple of it: apart and in place.
static void long_reductions(void)
{
    enum { MANY = 20011 };
    long *v = shmem_malloc(MANY * sizeof *v), *sum = shmem_malloc(MANY * sizeof *sum);
    int sums = 1, scans = 1, in_place = 1;

    for (long i = 0; i < MANY; i++)
        v[i] = me * 3 + i;
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, sum, v, MANY);
    for (long i = 0; i < MANY; i++)
        sums &= sum[i] == 3L * n * (n - 1) / 2 + n * i;
    shmem_long_sum_exscan(SHMEM_TEAM_WORLD, sum, v, MANY);
    for (long i = 0; i < MANY; i++)
        scans &= sum[i] == 3L * me * (me - 1) / 2 + me * i;
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, v, v, MANY);
    for (long i = 0; i < MANY; i++)
        in_place &= v[i] == 3L * n * (n - 1) / 2 + n * i;
    must("E04", sums, "a long sum");
    must("E04", scans, "a long exclusive scan, zeros on the first");
    must("E04", in_place, "a long reduction in place");
    shmem_free(sum);
    shmem_free(v);
}

static void the_heap(void)
{
    must("E05", shmem_malloc(0) == NULL, "malloc(0)");
    shmem_free(NULL);
    char *p = shmem_malloc(100), *q = shmem_align(4096, 100), *z = shmem_calloc(10, 10);
    must("E05", p && q && z && (uintptr_t)q % 4096 == 0, "align");
    int zeros = 1;
    for (unsigned i = 0; i < 100; i++)
        zeros &= z[i] == 0;
    must("E05", zeros, "calloc");
    // Usable on the peer when malloc returns here.
    long *fresh = shmem_malloc(sizeof *fresh);
    shmem_long_p(fresh, me, 1 - me);
    shmem_barrier_all();
    must("E05", *fresh == 1 - me, "a put into memory that was just given");
    memset(p, me + 1, 100);
    p = shmem_realloc(p, 100000);
    must("E05", p && p[0] == me + 1 && p[99] == me + 1, "realloc loses the content");
    must("E05", shmem_realloc(p, 0) == NULL, "realloc to nothing frees");
    shmem_free(q);
    shmem_free(z);
    shmem_free(fresh);
    // Freed memory comes back: far more in turn than the heap has.
    for (unsigned i = 0; i < 40; i++) {
        char *big = shmem_malloc(16 << 20);
        must("E05", big != NULL, "freed memory does not come back");
        shmem_free(big);
    }
}

// A short that the receiver takes back is whole when it is seen, and stays taken.
static void short_flag(void)
{
    short *flag = shmem_calloc(2, sizeof *flag), *mine = &flag[me]; // one for each way
    unsigned halves = 0;

    for (unsigned i = 0; i < 500; i++) {
        if (me == 0)
            shmem_short_p(&flag[1], 0x5a5b, 1);
        shmem_short_wait_until(mine, SHMEM_CMP_NE, 0);
        halves += *mine != 0x5a5b;
        *mine = 0;
        if (me == 1)
            shmem_short_p(&flag[0], 0x5a5b, 0);
    }
    shmem_barrier_all();
    must("E09", halves == 0, "a short is seen half");
    must("E09", *mine == 0, "a short that was taken comes back");
    shmem_free(flag);
}

void litmus_edges(void)
{
    empty_sets();
    fairness();
    compare_all_ways();
    broadcast_root();
    reuse();
    long_reductions();
    the_heap();
    short_flag();
}
