// SPDX-License-Identifier: MIT
// What the device owes its program when a fabric finishes late, out of order, from other threads and with
// errors. The fabric is stepped by hand or by a seed.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/order.h"
#include "base/probe.h"
#include "base/seed.h"
#include "device/internal.h"
#include "lib/late_world.h"
#include "lib/raw_producer.h"
#include "lib/raw_view.h"

static void finished_backwards_they_complete_in_order(void **state)
{
    struct world w;

    (void)state;
    open_world(&w);
    for (unsigned i = 0; i < 8; i++) {
        *near_word(&w, i) = i + 1;
        posted(&w, i % 2 ? DOCK_OP_READ : DOCK_OP_WRITE, i, DOCK_F_COMPLETE);
    }
    assert_int_equal(late_count().started, 8); // posting does not wait for what was posted before
    for (unsigned i = 8; i-- > 1;) {
        assert_true(late_bring(i, LATE_FINISH));
        expect_none(&w);
    }
    assert_true(late_bring(0, LATE_FINISH));
    for (unsigned i = 0; i < 8; i++)
        expect(&w, i, DOCK_OK);
    close_world(&w);
}

static void what_is_finished_at_once_waits_for_its_turn(void **state)
{
    struct world w;

    (void)state;
    open_world(&w);
    posted(&w, DOCK_OP_WRITE, 0, DOCK_F_COMPLETE);
    posted(&w, DOCK_OP_NOP, 1, DOCK_F_COMPLETE);
    posted(&w, DOCK_OP_WRITE, 2, DOCK_F_COMPLETE);
    expect_none(&w);
    assert_true(late_bring(1, LATE_FINISH)); // the second WRITE: the NOP never reached the fabric
    expect_none(&w);
    late_drain();
    for (unsigned i = 0; i < 3; i++)
        expect(&w, i, DOCK_OK);
    close_world(&w);
}

static void *bring_first(void *arg)
{
    (void)arg;
    return (void *)(uintptr_t)late_bring(0, LATE_FINISH);
}

static void a_foreign_thread_finishes_a_wr(void **state)
{
    struct world w;
    pthread_t other;
    void *brought;

    (void)state;
    open_world(&w);
    *near_word(&w, 0) = 77;
    posted(&w, DOCK_OP_WRITE, 0, DOCK_F_COMPLETE);
    expect_none(&w);
    assert_int_equal(pthread_create(&other, NULL, bring_first, NULL), 0);
    pthread_join(other, &brought);
    assert_true(brought != NULL);
    expect(&w, 0, DOCK_OK);
    assert_int_equal(*far_word(&w, 0), 77);
    close_world(&w);
}

static void a_finish_that_overtakes_the_answer_of_start_is_not_lost(void **state)
{
    struct world w;

    (void)state;
    open_world(&w);
    late_hasty(true); // the ring of the finisher finds the poster in the queue
    for (unsigned i = 0; i < 4; i++) {
        posted(&w, DOCK_OP_WRITE, i, DOCK_F_COMPLETE);
        expect(&w, i, DOCK_OK);
    }
    close_world(&w);
}

static void an_error_comes_first_then_flushes_in_order(void **state)
{
    struct world w;

    (void)state;
    open_with(&w, 2, 64, false);
    late_fail(2, DOCK_ST_REM_ACCESS);
    for (unsigned i = 0; i < 12; i++) { // from the third READ on (8) they are not started before the failure
        *near_word(&w, i) = 5;
        posted(&w, i >= 6 ? DOCK_OP_READ : DOCK_OP_WRITE, i, i == 0 || i == 4 ? DOCK_F_COMPLETE : 0);
    }
    assert_int_equal(late_count().started, 8);
    late_drain();
    expect(&w, 0, DOCK_OK);
    expect(&w, 2, DOCK_ST_REM_ACCESS); // 1 was unsignaled and right; 2 was unsignaled and failed
    for (unsigned i = 3; i < 12; i++)
        expect(&w, i, DOCK_ST_FLUSH);
    expect_none(&w);
    assert_int_equal(dock_qp_state(w.a.qp), DOCK_ERR);
    assert_int_equal(late_count().after_stop, 0);
    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(*far_word(&w, i), i < 2 ? 5 : 0);
    assert_int_equal(post(&w, DOCK_OP_WRITE, 12, 0), 0);
    expect(&w, 12, DOCK_ST_FLUSH);
    close_world(&w);
}

static void what_succeeded_behind_a_failure_is_flushed(void **state)
{
    struct world w;

    (void)state;
    open_world(&w);
    late_fail(0, DOCK_ST_RETRY_EXC);
    *near_word(&w, 1) = 9;
    posted(&w, DOCK_OP_READ, 0, DOCK_F_COMPLETE);
    posted(&w, DOCK_OP_WRITE, 1, DOCK_F_COMPLETE); // overtakes the READ, as it may
    assert_true(late_bring(1, LATE_FINISH));
    assert_int_equal(*far_word(&w, 1), 9);
    expect_none(&w);
    late_drain();
    expect(&w, 0, DOCK_ST_RETRY_EXC);
    expect(&w, 1, DOCK_ST_FLUSH);
    close_world(&w);
}

static void a_local_fault_is_found_when_the_source_is_read(void **state)
{
    struct world w;
    struct dock_sge sge;

    (void)state;
    open_world(&w);
    struct dock_wr wr = wr_onesided(DOCK_OP_WRITE, &w.a, &sge, 0, 8, w.b.mr, (uintptr_t)w.b.mem);
    sge.key ^= 1;
    assert_int_equal(end_post(&w.a, &wr), 0);
    posted(&w, DOCK_OP_WRITE, 1, 0);
    late_drain();
    expect(&w, 0, DOCK_ST_LOC_PROT);
    expect(&w, 1, DOCK_ST_FLUSH);
    close_world(&w);
}

static void reads_in_flight_never_pass_the_limit(void **state)
{
    static const uint8_t limits[] = {1, 2, 4, 16};

    (void)state;
    for (unsigned l = 0; l < sizeof limits; l++) {
        struct world w;
        open_with(&w, limits[l], 64, false);
        for (unsigned i = 0; i < 40; i++) {
            posted(&w, i % 3 == 2 ? DOCK_OP_FADD : DOCK_OP_READ, i, DOCK_F_COMPLETE);
            if (i % 5 == 0)
                late_step();
        }
        late_drain();
        for (unsigned i = 0; i < 40; i++)
            expect(&w, i, DOCK_OK);
        assert_int_equal(late_count().reads_high, limits[l]);
        close_world(&w);
    }
}

static void a_responder_refuses_more_reads_than_it_has_resources_for(void **state)
{
    struct world w;

    (void)state;
    open_with(&w, 16, 64, false);
    dock_set32(&w.b.qp->rec->rd_atomic, 4);
    for (unsigned i = 0; i < 6; i++)
        posted(&w, i % 3 == 2 ? DOCK_OP_FADD : DOCK_OP_READ, i, DOCK_F_COMPLETE);
    late_drain();
    for (unsigned i = 0; i < 4; i++)
        expect(&w, i, DOCK_OK);
    expect(&w, 4, DOCK_ST_REM_INV_REQ);
    expect(&w, 5, DOCK_ST_FLUSH);
    close_world(&w);
}

static void a_fence_waits_for_reads_and_atomics_but_not_for_writes(void **state)
{
    static const uint8_t waited[] = {DOCK_OP_READ, DOCK_OP_FADD, DOCK_OP_CAS};
    struct world w;

    (void)state;
    open_world(&w);
    posted(&w, DOCK_OP_WRITE, 0, DOCK_F_COMPLETE);
    posted(&w, DOCK_OP_WRITE, 1, DOCK_F_COMPLETE | DOCK_F_FENCE);
    assert_int_equal(late_count().started, 2);
    late_drain();
    expect(&w, 0, DOCK_OK);
    expect(&w, 1, DOCK_OK);
    for (unsigned i = 0; i < sizeof waited; i++) {
        uint32_t before = late_count().started;
        posted(&w, waited[i], 2, DOCK_F_COMPLETE);
        posted(&w, DOCK_OP_WRITE, 3, DOCK_F_COMPLETE | DOCK_F_FENCE);
        posted(&w, DOCK_OP_WRITE, 4, DOCK_F_COMPLETE); // behind the fence, though not fenced itself
        assert_int_equal(late_count().started, before + 1);
        assert_true(late_bring(before, LATE_RESULT));
        assert_int_equal(late_count().started, before + 1);
        assert_true(late_bring(before, LATE_FINISH));
        assert_int_equal(late_count().started, before + 3);
        late_drain();
        for (unsigned id = 2; id < 5; id++)
            expect(&w, id, DOCK_OK);
    }
    assert_int_equal(late_count().fences_broken, 0);
    close_world(&w);
}

static void a_fence_waits_until_reads_are_finished_not_until_they_retire(void **state)
{
    struct world w;

    (void)state;
    open_with(&w, 1, 64, false);
    posted(&w, DOCK_OP_WRITE, 0, DOCK_F_COMPLETE);
    posted(&w, DOCK_OP_READ, 1, DOCK_F_COMPLETE);
    posted(&w, DOCK_OP_WRITE, 2, DOCK_F_COMPLETE | DOCK_F_FENCE);
    posted(&w, DOCK_OP_READ, 3, DOCK_F_COMPLETE); // as many as may be in flight already are
    assert_int_equal(late_count().started, 2);
    assert_true(late_bring(1, LATE_FINISH)); // the WRITE before it is placed, and not finished
    assert_int_equal(late_count().finished, 1);
    assert_int_equal(late_count().started, 4);
    late_drain();
    for (unsigned i = 0; i < 4; i++)
        expect(&w, i, DOCK_OK);
    assert_int_equal(late_count().fences_broken, 0);
    assert_int_equal(late_count().reads_high, 1);
    close_world(&w);
}

static void without_read_depth_a_read_fails_instead_of_waiting(void **state)
{
    static const uint8_t ops[] = {DOCK_OP_READ, DOCK_OP_FADD};

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct world w;
        open_with(&w, 0, 64, false);
        posted(&w, ops[i], 0, 0);
        posted(&w, DOCK_OP_WRITE, 1, DOCK_F_COMPLETE);
        assert_int_equal(late_count().started, 0);
        expect(&w, 0, DOCK_ST_LOC_QP_OP);
        expect(&w, 1, DOCK_ST_FLUSH);
        close_world(&w);
    }
}

static void one_signaled_wr_covers_the_unsignaled_before_it(void **state)
{
    struct world w;

    (void)state;
    open_with(&w, 16, 8, false);
    for (unsigned round = 0; round < 20; round++) {
        for (unsigned i = 0; i < 8; i++)
            posted(&w, i == 3 ? DOCK_OP_READ : DOCK_OP_WRITE, i, i == 7 ? DOCK_F_COMPLETE : 0);
        assert_int_equal(post(&w, DOCK_OP_WRITE, 8, 0), -ENOMEM);
        assert_true(late_bring(8 * round + 7, LATE_FINISH));
        expect_none(&w);
        late_drain();
        assert_int_equal(post(&w, DOCK_OP_WRITE, 8, 0), -ENOMEM); // executed is not enough: it must be polled
        expect(&w, 7, DOCK_OK);
        expect_none(&w);
    }
    close_world(&w);
}

static void inline_bytes_are_the_devices_from_the_post_on(void **state)
{
    struct world w;
    struct dock_sge sge;

    (void)state;
    open_world(&w);
    struct dock_wr wr = wr_onesided(DOCK_OP_WRITE, &w.a, &sge, 0, 8, w.b.mr, (uintptr_t)w.b.mem);
    wr.flags |= DOCK_F_INLINE;
    wr.inline_len = 8;
    for (unsigned i = 0; i < 3; i++) {
        wr.id = i;
        wr.raddr = (uintptr_t)far_word(&w, i);
        *near_word(&w, 0) = 100 + i;
        assert_int_equal(end_post(&w.a, &wr), 0);
    }
    *near_word(&w, 0) = 0;
    late_drain();
    for (unsigned i = 0; i < 3; i++) {
        expect(&w, i, DOCK_OK);
        assert_int_equal(*far_word(&w, i), 100 + i);
    }
    close_world(&w);
}

static void messages_wait_for_a_receive_and_keep_their_order(void **state)
{
    struct world w;
    struct dock_wc wc;

    (void)state;
    open_world(&w);
    for (unsigned i = 0; i < 4; i++) {
        *near_word(&w, i) = 40 + i;
        posted(&w, DOCK_OP_SEND, i, DOCK_F_COMPLETE);
    }
    for (unsigned i = 0; i < 200; i++)
        late_step();
    expect_none(&w);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(end_recv(&w.b, 60 + i, far_word(&w, i), 8), 0);
    late_drain();
    for (unsigned i = 0; i < 4; i++) {
        expect(&w, i, DOCK_OK);
        assert_true(end_poll(w.b.rcq, &wc));
        assert_int_equal(wc.id, 60 + i);
        assert_int_equal(*far_word(&w, i), 40 + i);
    }
    close_world(&w);
}

static void long_transfers_are_whole_when_they_complete(void **state)
{
    enum { SIZE = 300000 };
    struct world w;
    struct dock_sge sge;

    (void)state;
    open_world(&w);
    for (unsigned i = 0; i < SIZE; i++)
        w.a.mem[i] = (char)(i * 7 + (i >> 8));
    struct dock_wr wr = wr_onesided(DOCK_OP_WRITE, &w.a, &sge, 0, SIZE, w.b.mr, (uintptr_t)w.b.mem);
    assert_int_equal(end_post(&w.a, &wr), 0);
    late_drain();
    expect(&w, 0, DOCK_OK);
    assert_memory_equal(w.a.mem, w.b.mem, SIZE);
    wr = wr_onesided(DOCK_OP_READ, &w.a, &sge, SIZE, SIZE, w.b.mr, (uintptr_t)w.b.mem);
    assert_int_equal(end_post(&w.a, &wr), 0);
    late_drain();
    expect(&w, 0, DOCK_OK);
    assert_memory_equal(w.a.mem + SIZE, w.b.mem, SIZE);
    close_world(&w);
}

static void put_raw(struct world *w, struct raw_queue *q, unsigned n)
{
    struct raw_sge sge = {8, (uintptr_t)near_word(w, 0)};
    struct raw_wr wr = {.opcode = DOCK_OP_WRITE,
                        .complete = 1,
                        .id = w->b.mr->rkey >> 8,
                        .token = w->b.mr->rkey,
                        .addr = (uintptr_t)far_word(w, 0),
                        .sge = &sge,
                        .nsge = 1};

    while (n--)
        assert_int_equal(raw_put(q, &wr), 1);
    raw_ring(q);
}

// Nothing holds a raw producer back: it may post more than there is room for in flight.
static void a_raw_producer_cannot_overrun_what_is_in_flight(void **state)
{
    struct world w;
    struct raw_cqe c;

    (void)state;
    for (unsigned error = 0; error < 2; error++) {
        unsigned told = 0, rounds = 2, each = 8; // the ring twice
        open_with(&w, 16, each, true);
        struct raw_queue q = raw_view_of(&w.a);
        for (unsigned i = 0; i < rounds; i++) {
            put_raw(&w, &q, each);
            dock_engine_step(w.dev);
        }
        assert_true(late_count().started < rounds * each);
        if (error)
            change(&w, DOCK_ERR);
        late_drain();
        while (raw_poll(&q, &c)) {
            assert_int_equal(c.entry, told & 0xffff);
            assert_int_equal(c.status << 8 | c.substatus, error ? DOCK_ST_FLUSH : DOCK_OK);
            told++;
        }
        assert_int_equal(told, rounds * each);
        close_world(&w);
    }
}

// late_test [NAME]: all tests, or one
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finished_backwards_they_complete_in_order),
        cmocka_unit_test(what_is_finished_at_once_waits_for_its_turn),
        cmocka_unit_test(a_foreign_thread_finishes_a_wr),
        cmocka_unit_test(a_finish_that_overtakes_the_answer_of_start_is_not_lost),
        cmocka_unit_test(an_error_comes_first_then_flushes_in_order),
        cmocka_unit_test(what_succeeded_behind_a_failure_is_flushed),
        cmocka_unit_test(a_local_fault_is_found_when_the_source_is_read),
        cmocka_unit_test(reads_in_flight_never_pass_the_limit),
        cmocka_unit_test(a_responder_refuses_more_reads_than_it_has_resources_for),
        cmocka_unit_test(a_fence_waits_for_reads_and_atomics_but_not_for_writes),
        cmocka_unit_test(a_fence_waits_until_reads_are_finished_not_until_they_retire),
        cmocka_unit_test(without_read_depth_a_read_fails_instead_of_waiting),
        cmocka_unit_test(one_signaled_wr_covers_the_unsignaled_before_it),
        cmocka_unit_test(inline_bytes_are_the_devices_from_the_post_on),
        cmocka_unit_test(messages_wait_for_a_receive_and_keep_their_order),
        cmocka_unit_test(long_transfers_are_whole_when_they_complete),
        cmocka_unit_test(a_raw_producer_cannot_overrun_what_is_in_flight),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("the device over a fabric that finishes late", tests, NULL, NULL);
}
