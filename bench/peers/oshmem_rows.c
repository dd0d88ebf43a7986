// SPDX-License-Identifier: MIT
// What an OpenSHMEM of version 1.4 or later costs, as "row nanoseconds" lines: bench/peers_shmem.sh builds it
// with each implementation and runs it in turn. With 2 PEs all rows, with any other number the barrier alone.
//
// A row is a number of chunks. One-sided rows give the median chunk. The barrier, for which several PEs must
// run at once, gives the smallest: on a machine with other work the median says how often they did not.
#include <shmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CHUNK = 1000, MOST = 101, BIG = 1 << 20 };

static long *words;
static char *big, *source;
static int me, n;

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

// A chunk: does its work so many times, and returns how many.
typedef int (*chunk_fn)(void);

static int put_quiet(void)
{
    for (int i = 0; i < CHUNK / 10; i++) {
        shmem_putmem(&words[i], source, 8, 1);
        shmem_quiet();
    }
    return CHUNK / 10;
}

static int put(void)
{
    for (int i = 0; i < CHUNK; i++)
        shmem_putmem(&words[i], source, 8, 1);
    return CHUNK;
}

static int put_nbi(void)
{
    for (int i = 0; i < CHUNK; i++)
        shmem_putmem_nbi(&words[i], source, 8, 1);
    shmem_quiet();
    return CHUNK;
}

static int get(void)
{
    for (int i = 0; i < CHUNK; i++)
        shmem_getmem(source, &words[i], 8, 1);
    return CHUNK;
}

static int put_big(void)
{
    shmem_putmem(big, source, BIG, 1);
    shmem_quiet();
    return 1;
}

static int fetch_add(void)
{
    for (int i = 0; i < CHUNK / 10; i++)
        shmem_long_atomic_fetch_add(&words[0], 1, 1);
    return CHUNK / 10;
}

static int barrier(void)
{
    for (int i = 0; i < CHUNK / 10; i++)
        shmem_barrier_all();
    return CHUNK / 10;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void row(const char *name, chunk_fn chunk, int both)
{
    double t[MOST], begin = now_ns(), from;
    int chunks = both ? 41 : MOST, i = 0;

    shmem_barrier_all();
    if (me != 0 && !both)
        goto out;
    chunk(); // warm
    for (; i < chunks && (both || i == 0 || now_ns() - begin < 1e9); i++) {
        from = now_ns();
        int times = chunk();
        t[i] = (now_ns() - from) / times;
    }
    qsort(t, (size_t)i, sizeof *t, by_size);
    if (me == 0)
        printf("%s %.1f\n", name, t[both ? 0 : i / 2]);
out:
    shmem_barrier_all();
}

int main(void)
{
    shmem_init();
    me = shmem_my_pe();
    n = shmem_n_pes();
    words = shmem_malloc(CHUNK * sizeof *words);
    big = shmem_malloc(BIG);
    source = calloc(1, BIG);
    memset(words, 0, CHUNK * sizeof *words);
    memset(big, 0, BIG);
    shmem_barrier_all();
    if (n == 2) {
        row("put_quiet", put_quiet, 0);
        row("put", put, 0);
        row("put_nbi", put_nbi, 0);
        row("get", get, 0);
        row("put_big", put_big, 0);
        row("fetch_add", fetch_add, 0);
    }
    row("barrier", barrier, 1);
    fflush(stdout);
    shmem_finalize();
    return 0;
}
