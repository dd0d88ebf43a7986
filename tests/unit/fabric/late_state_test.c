// SPDX-License-Identifier: MIT
// Changes of a queue's state, and its end, while WRs are with a fabric that finishes late.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/order.h"
#include "base/probe.h"
#include "device/internal.h"
#include "lib/late_world.h"

static void sqd_waits_for_what_was_started_and_starts_nothing(void **state)
{
    struct world w;

    (void)state;
    open_world(&w);
    for (unsigned i = 0; i < 16; i++)
        posted(&w, i % 2 ? DOCK_OP_READ : DOCK_OP_WRITE, i, DOCK_F_COMPLETE);
    late_threads_start(1);
    change(&w, DOCK_SQD);
    assert_int_equal(late_count().finished, 16);
    for (unsigned i = 0; i < 16; i++)
        expect(&w, i, DOCK_OK);
    posted(&w, DOCK_OP_WRITE, 16, DOCK_F_COMPLETE);
    assert_int_equal(late_count().started, 16);
    late_threads_stop();
    change(&w, DOCK_RTS);
    assert_int_equal(late_count().started, 17);
    late_drain();
    expect(&w, 16, DOCK_OK);
    close_world(&w);
}

static void error_flushes_behind_what_is_in_flight(void **state)
{
    struct world w;

    (void)state;
    open_with(&w, 1, 64, false);
    for (unsigned i = 0; i < 6; i++)
        posted(&w, DOCK_OP_READ, i, i % 2 ? DOCK_F_COMPLETE : 0);
    change(&w, DOCK_ERR);
    expect_none(&w); // the first is in flight still
    late_drain();
    for (unsigned i = 0; i < 6; i++)
        expect(&w, i, DOCK_ST_FLUSH);
    expect_none(&w);
    close_world(&w);
}

static void reset_takes_back_what_is_in_flight(void **state)
{
    struct world w;

    (void)state;
    open_world(&w);
    for (unsigned round = 0; round < 10; round++) {
        for (unsigned i = 0; i < 20; i++)
            posted(&w, i % 3 ? DOCK_OP_WRITE : DOCK_OP_READ, i, DOCK_F_COMPLETE);
        late_threads_start(2);
        change(&w, DOCK_RESET);
        late_threads_stop();
        assert_int_equal(late_count().started, late_count().finished);
        expect_none(&w);
        end_connect(&w.a, dock_qp_number(w.b.qp), NULL);
    }
    posted(&w, DOCK_OP_WRITE, 0, DOCK_F_COMPLETE);
    late_drain();
    expect(&w, 0, DOCK_OK);
    close_world(&w);
}

static void destroy_waits_for_what_is_in_flight(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 30; round++) {
        struct world w;
        open_world(&w);
        for (unsigned i = 0; i < 20; i++)
            posted(&w, i % 3 ? DOCK_OP_WRITE : DOCK_OP_READ, i, round % 2 ? DOCK_F_COMPLETE : 0);
        if (round % 3 == 0)
            late_fail(round % 20, DOCK_ST_REM_OP);
        late_threads_start(2);
        assert_int_equal(dock_qp_destroy(w.a.qp), 0);
        w.a.qp = NULL;
        assert_int_equal(late_count().started, late_count().finished);
        late_threads_stop();
        close_world(&w);
    }
}

static pthread_t program;
static dock_a32 ringing; // a finisher is in the queue

static void dawdle(enum dock_moment at, uint32_t object, uint64_t sequence)
{
    struct timespec t = {.tv_nsec = 5000000};

    (void)object;
    (void)sequence;
    if (at != DOCK_AT_RING || pthread_equal(pthread_self(), program))
        return;
    dock_publish32(&ringing, 1); // pairs with the test's acquire
    nanosleep(&t, NULL);
    dock_publish32(&ringing, 0);
}

static void destroy_waits_until_the_finisher_has_left(void **state)
{
    struct world w;

    (void)state;
    program = pthread_self();
    dock_probe_hook = dawdle;
    open_world(&w);
    posted(&w, DOCK_OP_WRITE, 0, 0);
    late_threads_start(1);
    assert_int_equal(dock_qp_destroy(w.a.qp), 0);
    assert_int_equal(dock_acquire32(&ringing), 0);
    w.a.qp = NULL;
    late_threads_stop();
    close_world(&w);
    dock_probe_hook = NULL;
}

// late_state_test [NAME]: all tests, or one
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sqd_waits_for_what_was_started_and_starts_nothing),
        cmocka_unit_test(error_flushes_behind_what_is_in_flight),
        cmocka_unit_test(reset_takes_back_what_is_in_flight),
        cmocka_unit_test(destroy_waits_for_what_is_in_flight),
        cmocka_unit_test(destroy_waits_until_the_finisher_has_left),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("states over a fabric that finishes late", tests, NULL, NULL);
}
