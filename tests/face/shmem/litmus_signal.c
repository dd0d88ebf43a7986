// SPDX-License-Identifier: MIT
// L11 to L15: signals, and what waiting makes visible.
#include <string.h>

#include "face/shmem/litmus.h"

enum { ROUNDS = 100, FEW = 10 };

static const long one = 1;
static size_t length;

static int l11(void)
{
    static char bytes[BIG];
    int all = 1;

    if (me == 0) {
        memset(bytes, 1, sizeof bytes);
        shmem_putmem_signal_nbi(o->big, bytes, length, &o->sig, 1, SHMEM_SIGNAL_SET, 1);
        shmem_quiet();
    }
    if (me != 1)
        return NOTHING;
    shmem_signal_wait_until(&o->sig, SHMEM_CMP_EQ, 1);
    for (size_t i = 0; i < length; i++)
        all &= o->big[i] == 1;
    memset(o->big, 0, BIG);
    return all;
}

// The same with a counter for a signal.
static int l11_add(void)
{
    if (me == 0) {
        shmem_long_put_signal_nbi(&o->x, &one, 1, &o->sig, 3, SHMEM_SIGNAL_ADD, 1);
        shmem_quiet();
    }
    if (me != 1)
        return NOTHING;
    shmem_signal_wait_until(&o->sig, SHMEM_CMP_EQ, 3);
    return (int)o->x;
}

static int l12_nbi(void)
{
    if (me == 0) {
        shmem_long_put_nbi(&o->x, &one, 1, 1);
        shmem_fence();
        shmem_long_put_signal_nbi(&o->y, &one, 1, &o->sig, 1, SHMEM_SIGNAL_SET, 1);
        shmem_quiet();
    }
    if (me != 1)
        return NOTHING;
    shmem_signal_wait_until(&o->sig, SHMEM_CMP_EQ, 1);
    return o->y == 1 ? (int)o->x : 7;
}

static int behind_signal(int fence)
{
    if (me == 0) {
        shmem_long_put(&o->x, &one, 1, 1);
        if (fence)
            shmem_fence();
        shmem_long_put_signal(&o->y, &one, 1, &o->sig, 1, SHMEM_SIGNAL_SET, 1);
    }
    if (me != 1)
        return NOTHING;
    shmem_signal_wait_until(&o->sig, SHMEM_CMP_EQ, 1);
    return o->y == 1 ? (int)o->x : 7;
}

static int l12(void)
{
    return behind_signal(0);
}

static int l12_fence(void)
{
    return behind_signal(1);
}

static int l13(void)
{
    if (me == 0) {
        shmem_long_put_signal_nbi(&o->x, &one, 1, &o->sig, 1, SHMEM_SIGNAL_ADD, 1);
        shmem_long_put_signal_nbi(&o->y, &one, 1, &o->sig, 1, SHMEM_SIGNAL_ADD, 1);
        shmem_quiet();
    }
    if (me != 1)
        return NOTHING;
    uint64_t seen = shmem_signal_wait_until(&o->sig, SHMEM_CMP_GE, 2);
    return seen == 2 && o->x == 1 && o->y == 1;
}

static int l14(void)
{
    if (me == 0)
        shmem_putmem_signal(NULL, NULL, 0, &o->sig, 7, SHMEM_SIGNAL_SET, 1);
    return me == 1 ? (int)shmem_signal_wait_until(&o->sig, SHMEM_CMP_NE, 0) : NOTHING;
}

static int l15(void)
{
    if (me == 0) {
        shmem_long_put(&o->x, &one, 1, 1);
        shmem_fence();
        set_flag(1);
    }
    if (me != 1)
        return NOTHING;
    while (!shmem_long_test(&o->f, SHMEM_CMP_EQ, 1))
        ;
    return (int)o->x;
}

// E08: not even that both take effect is promised (in memory that is not mapped one may be lost). The word is
// one of those that the two can leave.
static int e08(void)
{
    if (me == 0)
        shmem_long_put_signal(&o->x, &one, 1, &o->sig, 5, SHMEM_SIGNAL_SET, 1);
    else if (me == 1)
        shmem_long_put_signal(&o->y, &one, 1, &o->sig, 1, SHMEM_SIGNAL_ADD, 1);
    shmem_barrier_all();
    return me == 1 ? (int)o->sig : NOTHING;
}

void litmus_signal(void)
{
    static const size_t lengths[] = {1, 7, 8, 4095, 4096, 4097, BIG};

    for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        length = lengths[i];
        litmus("L11 put_signal_nbi, all bytes behind it", l11, FEW, ONLY(1));
    }
    litmus("L11 put_signal ADD", l11_add, ROUNDS, ONLY(1));
    litmus("L12 put_nbi, fence, put_signal", l12_nbi, ROUNDS, ONLY(1));
    litmus("L12 put, put_signal", l12, ROUNDS, EITHER(0, 1));
    litmus("L12 put, fence, put_signal", l12_fence, ROUNDS, ONLY(1));
    litmus("L13 two put_signal ADD", l13, ROUNDS, ONLY(1));
    litmus("L14 put_signal of 0 bytes", l14, FEW, ONLY(7));
    litmus("L15 test, plain load", l15, ROUNDS, ONLY(1));
    litmus("E08 SET and ADD on one word", e08, FEW, ONLY(1) | ONLY(5) | ONLY(6));
}
