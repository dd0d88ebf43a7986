// SPDX-License-Identifier: MIT
// L01 to L10: what is ordered between two operations, and what is not. r is the outcome.
#include <string.h>

#include "face/shmem/litmus.h"

enum { ROUNDS = 100, FEW = 20 };

static const long one = 1;

// ---- the sender's half of message passing; the receiver's is the same for all

static int receive(void)
{
    wait_flag();
    return (int)o->x;
}

static int two(void (*send)(void), int (*look)(void))
{
    if (me == 0)
        send();
    return me == 1 ? look() : NOTHING;
}

static void plain(void)
{
    shmem_long_put(&o->x, &one, 1, 1);
    set_flag(1);
}

static int l01(void)
{
    return two(plain, receive);
}

static void fenced(void)
{
    shmem_long_put(&o->x, &one, 1, 1);
    shmem_fence();
    set_flag(1);
}

static int l02(void)
{
    return two(fenced, receive);
}

static void nbi_fenced(void)
{
    shmem_long_put_nbi(&o->x, &one, 1, 1);
    shmem_fence();
    set_flag(1);
}

static int l03(void)
{
    return two(nbi_fenced, receive);
}

// Without the fence: either, and a late fabric must show both.
static void nbi_plain(void)
{
    shmem_long_put_nbi(&o->x, &one, 1, 1);
    set_flag(1);
    shmem_quiet();
}

static int l03_without(void)
{
    return two(nbi_plain, receive);
}

static void strided_fenced(void)
{
    static const long ones[3] = {1, 1, 1};

    shmem_long_iput(&o->x, ones, 1, 1, 2, 1); // x and y
    shmem_fence();
    set_flag(1);
}

static int look_at_both(void)
{
    wait_flag();
    return o->x == 1 && o->y == 1;
}

static int l03_strided(void)
{
    return two(strided_fenced, look_at_both);
}

static void long_fenced(void)
{
    static char bytes[BIG];

    memset(bytes, 1, sizeof bytes);
    shmem_putmem_nbi(o->big, bytes, sizeof bytes, 1);
    shmem_fence();
    set_flag(1);
    shmem_quiet();
}

static int look_at_all(void)
{
    int all = 1;

    wait_flag();
    for (size_t i = 0; i < BIG; i++)
        all &= o->big[i] == 1;
    memset(o->big, 0, BIG);
    return all;
}

static int l03_long(void)
{
    return two(long_fenced, look_at_all);
}

// ---- a get and what follows

static int get_then_put(void (*order)(void))
{
    static const long second = 2;
    long r = 7;

    if (me != 0)
        return NOTHING;
    shmem_long_get_nbi(&r, &o->x, 1, 1);
    order();
    shmem_long_put(&o->x, &second, 1, 1);
    shmem_quiet();
    return (int)r;
}

static int l04(void)
{
    return get_then_put(shmem_fence);
}

static int l04_quiet(void)
{
    return get_then_put(shmem_quiet);
}

// ---- a third party

static int third(void (*order)(void))
{
    if (me == 0) {
        shmem_long_put(&o->x, &one, 1, 1);
        order();
        set_flag(2);
    }
    if (me != 2)
        return NOTHING;
    wait_flag();
    return (int)shmem_long_g(&o->x, 1);
}

static int l05(void)
{
    return third(shmem_fence);
}

static int l05_quiet(void)
{
    return third(shmem_quiet);
}

// ---- contexts

static shmem_ctx_t c1;

static void other_context(void)
{
    shmem_ctx_long_put(c1, &o->x, &one, 1, 1);
    shmem_fence();
    set_flag(1);
}

static int l06(void)
{
    return two(other_context, receive);
}

static void one_context(void)
{
    shmem_ctx_long_put(c1, &o->x, &one, 1, 1);
    shmem_ctx_fence(c1);
    shmem_ctx_long_atomic_set(c1, &o->f, 1, 1);
}

static int l06_same(void)
{
    return two(one_context, receive);
}

// ---- sources, and both ends

static void reuse(void)
{
    long s = 1;

    shmem_long_put(&o->x, &s, 1, 1);
    s = 2;
    shmem_fence();
    set_flag(1);
    shmem_quiet();
}

static int l07(void)
{
    return two(reuse, receive);
}

static int l08(void)
{
    long r = 0;

    if (me == 1)
        o->y = 5;
    shmem_barrier_all();
    if (me == 0) {
        shmem_long_put_nbi(&o->x, &one, 1, 1);
        shmem_long_get_nbi(&r, &o->y, 1, 1);
        shmem_quiet();
        for (int pe = 1; pe < n; pe++)
            set_flag(pe);
        return r == 5;
    }
    wait_flag();
    return me == 1 ? (int)o->x : (int)shmem_long_g(&o->x, 1);
}

static int put_then_get(void (*order)(void))
{
    if (me != 0)
        return NOTHING;
    shmem_long_put(&o->x, &one, 1, 1);
    if (order)
        order();
    return (int)shmem_long_g(&o->x, 1);
}

static int l09(void)
{
    return put_then_get(NULL);
}

static int l09_quiet(void)
{
    return put_then_get(shmem_quiet);
}

static int l10(void)
{
    long r = 7;

    if (me == 0) {
        shmem_long_atomic_fetch_add_nbi(&r, &o->c, 1, 1);
        shmem_fence();
        set_flag(1);
        shmem_quiet();
        return r == 0;
    }
    if (me != 1)
        return NOTHING;
    wait_flag();
    return shmem_long_atomic_fetch(&o->c, 1) >= 1;
}

void litmus_order(void)
{
    shmem_ctx_create(0, &c1);
    litmus("L01 put, flag", l01, ROUNDS, EITHER(0, 1));
    litmus("L02 put, fence, flag", l02, ROUNDS, ONLY(1));
    litmus("L03 put_nbi, fence, flag", l03, ROUNDS, ONLY(1));
    litmus("W03 put_nbi, flag", l03_without, ROUNDS, EITHER(0, 1));
    litmus("L03 iput, fence, flag", l03_strided, ROUNDS, ONLY(1));
    litmus("L03 200000 bytes, fence, flag", l03_long, FEW, ONLY(1));
    litmus("L04 get_nbi, fence, put", l04, ROUNDS, EITHER(0, 2));
    litmus("L04 get_nbi, quiet, put", l04_quiet, ROUNDS, ONLY(0));
    if (n > 2) {
        litmus("L05 put, fence, flag elsewhere", l05, ROUNDS, EITHER(0, 1));
        litmus("L05 put, quiet, flag elsewhere", l05_quiet, ROUNDS, ONLY(1));
    }
    litmus("L06 put on c1, fence, flag", l06, ROUNDS, EITHER(0, 1));
    litmus("L06 all on c1", l06_same, ROUNDS, ONLY(1));
    litmus("L07 put, source reused", l07, ROUNDS, ONLY(1));
    litmus("L08 put_nbi, get_nbi, quiet, flag", l08, ROUNDS, ONLY(1));
    litmus("L09 put, get", l09, ROUNDS, EITHER(0, 1));
    litmus("L09 put, quiet, get", l09_quiet, ROUNDS, ONLY(1));
    litmus("L10 fetch_add_nbi, fence, flag", l10, ROUNDS, ONLY(1));
    shmem_ctx_destroy(c1);
}
