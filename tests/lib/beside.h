// SPDX-License-Identifier: MIT
// A call that is made by another thread while this one holds what the call may have to wait for.
#ifndef TESTS_LIB_BESIDE_H
#define TESTS_LIB_BESIDE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#define BESIDE_GOES_MS 10000 // what need not wait is done by then, on the slowest machine
#define BESIDE_WAITS_MS 20   // what must wait is not done by then; too short can only hide a fault

struct beside {
    void (*call)(void *arg);
    void *arg;
    _Atomic bool done;
    pthread_t thread;
};

static inline void *beside_run(void *arg)
{
    struct beside *b = arg;

    b->call(b->arg);
    atomic_store(&b->done, true);
    return NULL;
}

static inline void beside_start(struct beside *b, void (*call)(void *), void *arg)
{
    b->call = call;
    b->arg = arg;
    atomic_store(&b->done, false);
    if (pthread_create(&b->thread, NULL, beside_run, b))
        abort();
}

static inline bool beside_done(struct beside *b, unsigned ms)
{
    for (unsigned i = 0; i < ms && !atomic_load(&b->done); i++)
        usleep(1000);
    return atomic_load(&b->done);
}

static inline void beside_end(struct beside *b)
{
    pthread_join(b->thread, NULL);
}

#endif
