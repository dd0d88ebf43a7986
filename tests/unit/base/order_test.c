// SPDX-License-Identifier: MIT
// The orders that the device is built on, each as the shortest program that fails without it. A machine that
// does not reorder a pair by itself cannot show the fault: these find a wrong fence where it matters, they
// prove nothing.
// timeout: 120
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/order.h"

#define ROUNDS 60000

static unsigned rounds;

static int group_setup(void **state)
{
    const char *slow = getenv("DRYDOCK_SLOW");

    (void)state;
    rounds = ROUNDS / (slow && atoi(slow) > 0 ? (unsigned)atoi(slow) : 1);
    dock_fence_init();
    return 0;
}

struct pair {
    _Alignas(64) dock_a32 x;
    _Alignas(64) dock_a32 y;
    _Alignas(64) dock_a32 turn[2]; // rounds that each side has finished
    void (*fence[2])(void);
    uint32_t seen[2];
};

static void full(void)
{
    dock_fence_full();
}

static void light(void)
{
    dock_fence_light();
}

static void heavy(void)
{
    dock_fence_heavy();
}

struct side {
    struct pair *pair;
    int me;
    unsigned both_missed;
};

// Wait until the other side has finished as many rounds.
static void meet(struct side *s, uint32_t round)
{
    dock_publish32(&s->pair->turn[s->me], round);
    for (unsigned i = 0; dock_acquire32(&s->pair->turn[!s->me]) < round; i++)
        if (i % 1024 == 1023)
            sched_yield(); // fewer cores than threads
        else
            dock_relax();
}

// Store buffering: each stores, fences, loads what the other stores. Both missing the other is what a fence
// forbids.
static void *store_then_load(void *arg)
{
    struct side *s = arg;
    struct pair *p = s->pair;
    dock_a32 *mine = s->me ? &p->y : &p->x, *other = s->me ? &p->x : &p->y;

    for (uint32_t r = 1; r <= rounds; r++) {
        meet(s, 2 * r - 1);
        dock_set32(mine, r);
        p->fence[s->me]();
        p->seen[s->me] = dock_peek32(other);
        meet(s, 2 * r);
        // The next meeting keeps the other side from its next round until this is read.
        if (s->me == 0 && p->seen[0] != r && p->seen[1] != r)
            s->both_missed++;
    }
    return NULL;
}

static unsigned both_missed(void (*a)(void), void (*b)(void))
{
    struct pair *p = aligned_alloc(64, sizeof *p);
    pthread_t t;

    *p = (struct pair){.fence = {a, b}};
    struct side s[2] = {{p, 0, 0}, {p, 1, 0}};
    pthread_create(&t, NULL, store_then_load, &s[1]);
    store_then_load(&s[0]);
    pthread_join(t, NULL);
    free(p);
    return s[0].both_missed;
}

static void with_full_fences_a_store_is_seen_by_one_of_two(void **state)
{
    (void)state;
    assert_int_equal(both_missed(full, full), 0);
}

static void a_light_fence_pairs_with_a_heavy_one(void **state)
{
    unsigned all = rounds;

    (void)state;
    rounds = rounds / 10 ? rounds / 10 : 1; // a heavy fence interrupts every core
    assert_int_equal(both_missed(light, heavy), 0);
    assert_int_equal(both_missed(heavy, light), 0);
    rounds = all;
}

static void the_kernel_fences_for_us_unless_told_otherwise(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    assert_false(dock_peek32(&dock_fence_asymmetric));
#else
    if (!dock_peek32(&dock_fence_asymmetric))
        printf("no membarrier here: light fences are full ones\n");
#endif
}

struct message {
    _Alignas(64) dock_a64 published;
    _Alignas(64) uint64_t plain[4];
};

static void *publish(void *arg)
{
    struct message *m = arg;

    for (uint64_t n = 1; n <= rounds; n++) {
        while (dock_acquire64(&m->published) != 2 * (n - 1))
            sched_yield();
        for (int i = 0; i < 4; i++)
            m->plain[i] = n + (uint64_t)i;
        dock_publish64(&m->published, 2 * n - 1);
    }
    return NULL;
}

static void what_was_written_before_a_publish_is_there_after_the_acquire(void **state)
{
    struct message *m = aligned_alloc(64, sizeof *m);
    pthread_t t;
    unsigned all = rounds;

    (void)state;
    rounds /= 10;
    *m = (struct message){0};
    pthread_create(&t, NULL, publish, m);
    for (uint64_t n = 1; n <= rounds; n++) {
        while (dock_acquire64(&m->published) != 2 * n - 1)
            sched_yield();
        for (int i = 0; i < 4; i++)
            assert_int_equal(m->plain[i], n + (uint64_t)i);
        dock_publish64(&m->published, 2 * n);
    }
    pthread_join(t, NULL);
    free(m);
    rounds = all;
}

static void a_claim_that_fails_tells_what_it_found(void **state)
{
    dock_a32 w32 = 5;
    dock_a64 w64 = 1ull << 40;
    uint32_t e32 = 4;
    uint64_t e64 = 4;

    (void)state;
    assert_false(dock_claim32(&w32, &e32, 9));
    assert_int_equal(e32, 5);
    assert_true(dock_claim32(&w32, &e32, 9));
    assert_int_equal(dock_swap32(&w32, 1), 9);
    assert_false(dock_claim64(&w64, &e64, 9));
    assert_true(e64 == 1ull << 40);
    assert_true(dock_claim64(&w64, &e64, 9));
    dock_count64(&w64, 3);
    assert_int_equal(dock_peek64(&w64), 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_full_fences_a_store_is_seen_by_one_of_two),
        cmocka_unit_test(a_light_fence_pairs_with_a_heavy_one),
        cmocka_unit_test(the_kernel_fences_for_us_unless_told_otherwise),
        cmocka_unit_test(what_was_written_before_a_publish_is_there_after_the_acquire),
        cmocka_unit_test(a_claim_that_fails_tells_what_it_found),
    };
    return cmocka_run_group_tests(tests, group_setup, NULL);
}
