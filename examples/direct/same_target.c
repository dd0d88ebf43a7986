// SPDX-License-Identifier: MIT
// Direct drive: two queues, one remote address.
//
// Each producer has its own queue, so no WQE is lost. But both write the same 8 bytes, and nothing says in
// which order two queues are executed: the result is one of the two values, and which one is nobody's
// promise. Not the order of posting, not the order of the doorbells. What makes an order is an explicit
// dependence. Here it is a signal: the first writes with a notification behind its payload (put with signal),
// and the second waits for it.
//
//     drydock run same_target
#include <pthread.h>
#include <sched.h>

#include "drive.h"

enum { ROUNDS = 200 };

static struct drive d;
static pthread_barrier_t start;
static int in_order; // the second waits for the first one's signal

static _Atomic uint64_t *word(unsigned i)
{
    return (_Atomic uint64_t *)(void *)d.target + i;
}

static void *aiv(void *arg)
{
    unsigned me = (unsigned)(uintptr_t)arg; // 1 or 2
    struct drydock_queue *q = &d.way[me - 1].q;
    uint64_t *value = (uint64_t *)(void *)d.source + me;

    for (uint64_t round = 1; round <= ROUNDS; round++) {
        pthread_barrier_wait(&start);
        *value = round * 10 + me;
        if (in_order &&
            me == 1) // the payload, and behind it the signal: who sees the signal sees the payload
            drydock_post_write_notify(q, &d.to, d.to.address, value, 8, &d.to, d.to.address + 8, round,
                                      DRYDOCK_COMPLETE);
        while (in_order && me == 2 && atomic_load_explicit(word(1), memory_order_acquire) != round)
            sched_yield();
        if (!in_order || me == 2)
            drydock_post_write(q, &d.to, d.to.address, value, 8, DRYDOCK_COMPLETE);
        drydock_ring(q);
        if (drydock_quiet(q))
            return (void *)1;
        pthread_barrier_wait(&start);
    }
    return NULL;
}

static unsigned run(int ordered, unsigned *second)
{
    pthread_t t[2];
    unsigned other = 0;

    in_order = ordered;
    *second = 0;
    for (unsigned i = 0; i < 2; i++)
        must(!pthread_create(&t[i], NULL, aiv, (void *)(uintptr_t)(i + 1)), "pthread_create");
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        pthread_barrier_wait(&start);
        pthread_barrier_wait(&start);
        uint64_t v = atomic_load_explicit(word(0), memory_order_acquire);
        *second += v == round * 10 + 2;
        other += v != round * 10 + 1 && v != round * 10 + 2;
    }
    for (unsigned i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    return other;
}

int main(void)
{
    unsigned second, neither;

    setvbuf(stdout, NULL, _IOLBF, 0);
    drive_open(&d, 2, 4096);
    pthread_barrier_init(&start, NULL, 3);
    neither = run(0, &second);
    printf("two queues, no dependence: always one of the two values, never a mixture: %s\n",
           neither ? "NO" : "yes");
    printf("  which one? the second producer's in %u of %d rounds, and next time in others\n", second,
           ROUNDS);
    neither += run(1, &second);
    printf("the second waits for the first one's signal: the second's value in %u of %d rounds\n", second,
           ROUNDS);
    drive_close(&d);
    return neither || second != ROUNDS;
}
