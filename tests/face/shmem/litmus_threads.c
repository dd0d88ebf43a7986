// SPDX-License-Identifier: MIT
// L16, D05, D08: threads with contexts of their own and with one for all. Four PEs.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "face/shmem/litmus.h"

enum { THREADS = 3, TIMES = 200 };

static long counter;
static uint8_t *taken; // on PE 0, a byte for each number

static shmem_team_t all;

// Thread 0 uses the default context, 1 one of its own, 2 one of a team.
static void *count(void *arg)
{
    int t = (int)(intptr_t)arg;
    shmem_ctx_t c = SHMEM_CTX_DEFAULT;

    if (t == 1)
        shmem_ctx_create(SHMEM_CTX_PRIVATE, &c);
    if (t == 2)
        shmem_team_create_ctx(all, SHMEM_CTX_PRIVATE, &c);
    for (unsigned i = 0; i < TIMES; i++) {
        long mine = shmem_ctx_long_atomic_fetch_inc(c, &counter, 0);
        uint8_t one = 1;
        shmem_ctx_uint8_put(c, &taken[mine], &one, 1, 0);
    }
    shmem_ctx_quiet(c);
    if (t)
        shmem_ctx_destroy(c);
    return NULL;
}

// Two threads post through one context: nothing is lost.
static void *flood(void *arg)
{
    for (unsigned i = 0; i < 10 * TIMES; i++)
        shmem_long_atomic_inc(arg, (me + 1) % n);
    shmem_quiet();
    return NULL;
}

static void run(void *(*body)(void *), void *arg[THREADS])
{
    pthread_t t[THREADS];

    for (unsigned i = 0; i < THREADS; i++)
        pthread_create(&t[i], NULL, body, arg[i]);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
}

void litmus_threads(void)
{
    long total = (long)n * THREADS * TIMES, missing = 0;

    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, &all);
    taken = shmem_calloc((size_t)total, 1);
    run(count, (void *[]){(void *)0, (void *)1, (void *)2});
    shmem_barrier_all();
    if (me == 0) {
        for (long i = 0; i < total; i++)
            missing += !taken[i];
        must("L16", counter == total && missing == 0, "a number was given twice");
    }
    shmem_free(taken);
    run(flood, (void *[]){&o->c, &o->c, &o->g});
    shmem_barrier_all();
    must("D05", o->c == 20 * TIMES && o->g == 10 * TIMES, "requests of threads on one context are lost");
    shmem_team_destroy(all);
}
