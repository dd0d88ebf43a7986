// SPDX-License-Identifier: MIT
// L17, L18, L20, E06 and the cases of the queues themselves (D01 to D03): barriers, locks, progress, wrap.
#include <string.h>

#include "face/shmem/litmus.h"

enum { ROUNDS = 50, FEW = 5 };

static const long one = 1;

static int l17(void)
{
    shmem_ctx_t c;
    int r = NOTHING;

    shmem_ctx_create(0, &c);
    if (me == 0) {
        shmem_long_put_nbi(&o->x, &one, 1, 1);
        shmem_ctx_long_put_nbi(c, &o->y, &one, 1, 1);
        shmem_ctx_quiet(c);
    }
    shmem_barrier_all();
    if (me == 1)
        r = o->x == 1 && o->y == 1;
    shmem_ctx_destroy(c);
    return r;
}

// The lock is o->g; who has it adds to o->x of PE 0 by get and put, which loses nothing only under a lock.
static int l18(void)
{
    for (unsigned i = 0; i < 4; i++) {
        shmem_set_lock(&o->g);
        long x = shmem_long_g(&o->x, 0);
        shmem_long_p(&o->x, x + 1, 0);
        shmem_clear_lock(&o->g);
    }
    shmem_barrier_all();
    return me == 0 ? o->x == 4 * n : NOTHING;
}

static int l18_test(void)
{
    int r = NOTHING;

    if (me == 0)
        must("L18", shmem_test_lock(&o->g) == 0, "a free lock is not given");
    shmem_barrier_all();
    if (me == 1)
        r = shmem_test_lock(&o->g) != 0;
    shmem_barrier_all();
    if (me == 0)
        shmem_clear_lock(&o->g);
    return r;
}

static int l20(void)
{
    double begin = seconds();

    if (me == 1)
        while (seconds() < begin + 1) // computes, without a call
            ;
    if (me != 0)
        return NOTHING;
    shmem_long_put(&o->x, &one, 1, 1);
    shmem_quiet();
    long before = shmem_long_atomic_fetch_add(&o->c, 1, 1);
    long back = shmem_long_g(&o->x, 1);
    shmem_long_put_signal(&o->y, &one, 1, &o->sig, 1, SHMEM_SIGNAL_SET, 1);
    shmem_quiet();
    return seconds() < begin + 0.8 && before == 0 && back == 1;
}

static int e06(void)
{
    shmem_ctx_t c;

    shmem_ctx_create(SHMEM_CTX_PRIVATE, &c);
    if (me == 0)
        shmem_ctx_long_put_nbi(c, &o->x, &one, 1, 1);
    shmem_ctx_destroy(c);
    shmem_sync_all();
    shmem_ctx_destroy(SHMEM_CTX_INVALID);
    shmem_ctx_quiet(SHMEM_CTX_INVALID);
    shmem_ctx_fence(SHMEM_CTX_INVALID);
    return me == 1 ? (int)o->x : NOTHING;
}

// Requests of one block and of two, an odd number first, past the end of the ring several times.
static int d01(void)
{
    if (me == 0) {
        for (unsigned i = 0; i < 2000; i++) {
            if (i % 7 < 3)
                shmem_long_put_nbi(&o->x, &one, 1, 1);
            else
                shmem_long_atomic_add(&o->c, 1, 1);
            if (i % 7 == 5)
                shmem_long_put_signal_nbi(&o->y, &one, 1, &o->sig, 1, SHMEM_SIGNAL_ADD, 1);
        }
        shmem_quiet();
    }
    shmem_barrier_all();
    return me == 1 ? o->x == 1 && o->c == 1142 && o->sig == 285 : NOTHING;
}

static int d02(void)
{
    if (me == 0) {
        shmem_long_atomic_add(&o->c, 1, 1);
        shmem_long_atomic_add(&o->c, 2, 1);
    }
    shmem_barrier_all();
    return me == 1 ? (int)o->c : NOTHING;
}

static int d03(void)
{
    if (me != 0)
        return NOTHING;
    shmem_long_atomic_inc(&o->c, 1);
    return (int)shmem_long_atomic_fetch_add(&o->c, 0, 1);
}

void litmus_rest(void)
{
    litmus("L17 put_nbi, barrier_all", l17, FEW, ONLY(1));
    litmus("L18 lock", l18, ROUNDS, ONLY(1));
    litmus("L18 test_lock", l18_test, FEW, ONLY(1));
    litmus("E06 context destroyed", e06, FEW, ONLY(1));
    litmus("D01 ring wrap with mixed sizes", d01, FEW, ONLY(1));
    litmus("D02 two adds", d02, ROUNDS, ONLY(3));
    litmus("D03 inc, fetch_add", d03, ROUNDS, ONLY(1));
    if (n == 2)
        litmus("L20 the target does not call", l20, 1, ONLY(1));
}
