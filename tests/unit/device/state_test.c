// SPDX-License-Identifier: MIT
// States of a queue pair: which may follow which, what is carried out in which, and when a queue is drained.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "device/internal.h"
#include "device/state.h"
#include "fabric/direct.h"
#include "lib/duo.h"

#define STATES 9
#define COUNT(a) (sizeof(a) / sizeof *(a))

// A row per present state, a column per wanted one: RESET INIT RTR RTS SQD SQE ERR SUSPENDED GONE.
static const char *const verbs[STATES] = {
    [DOCK_RESET] = "xx....x..", [DOCK_INIT] = "xxx...x..",      [DOCK_RTR] = "x..x..x..",
    [DOCK_RTS] = "x..xx.x..",   [DOCK_SQD] = "x..xx.x..",       [DOCK_SQE] = "x..x..x..",
    [DOCK_ERR] = "x.....x..",   [DOCK_SUSPENDED] = ".........", [DOCK_GONE] = ".........",
};

static const char *const urma[STATES] = {
    [DOCK_RESET] = "x..x.....", [DOCK_INIT] = ".........",      [DOCK_RTR] = ".........",
    [DOCK_RTS] = "...x..xx.",   [DOCK_SQD] = ".........",       [DOCK_SQE] = ".........",
    [DOCK_ERR] = "x.....x..",   [DOCK_SUSPENDED] = "......xx.", [DOCK_GONE] = ".........",
};

static void the_table_of_transitions(void **state)
{
    (void)state;
    for (unsigned service = 0; service < DOCK_SERVICES; service++) {
        const char *const *t = service == DOCK_RM || service == DOCK_UM ? urma : verbs;
        for (unsigned from = 0; from < STATES; from++)
            for (unsigned to = 0; to < STATES; to++) {
                bool may = dock_state_may((enum dock_state)from, (enum dock_state)to, service >= DOCK_RM);
                if (may != (t[from][to] == 'x'))
                    fprintf(stderr, "service %u, %s to %s: expected %c, got %d\n", service,
                            dock_state_name((enum dock_state)from), dock_state_name((enum dock_state)to),
                            t[from][to], may);
                assert_int_equal(may, t[from][to] == 'x');
            }
    }
}

static struct duo d;
static struct dock_sge sge;

static const struct dock_qp_mod knobs = {.timeout = 10,
                                         .retry = 7,
                                         .rnr_retry = 7,
                                         .rnr_timer = 1,
                                         .rd_atomic = 1,
                                         .dest_rd_atomic = 1,
                                         .access = DOCK_ACCESS_REMOTE_WRITE};

static int to_state(struct dock_qp *qp, enum dock_state to)
{
    struct dock_qp_mod m = {.mask = DOCK_MOD_STATE | DOCK_MOD_SQD_EVENT, .state = to, .sqd_event = true};

    return dock_qp_modify(qp, &m);
}

static void post_write(uint64_t id, uint32_t len)
{
    struct dock_wr wr = wr_onesided(DOCK_OP_WRITE, &d.near.e, &sge, 0, len, &d.mr, d.mem);

    wr.id = id;
    assert_int_equal(end_post(&d.near.e, &wr), 0);
}

static void expect(uint64_t id)
{
    struct dock_wc wc;

    assert_true(end_wait(d.near.e.scq, &wc, 10000 * slow_down()));
    assert_int_equal(wc.id, id);
    assert_int_equal(wc.status, DOCK_OK);
}

static int event(unsigned ms)
{
    struct io_look l = {.ms = ms};

    side_event(&d.near, &l);
    return l.event;
}

static void a_refused_transition_changes_nothing(void **state)
{
    struct dock_qp_mod m = {.mask = DOCK_MOD_STATE | DOCK_MOD_ACCESS | DOCK_MOD_QKEY,
                            .state = DOCK_INIT,
                            .access = 0,
                            .qkey = 77};

    (void)state;
    duo_open(&d, SELF_ARENA, NULL);
    uint32_t access = dock_peek32(&d.near.e.qp->rec->access), qkey = dock_peek32(&d.near.e.qp->rec->qkey);
    assert_int_equal(dock_qp_modify(d.near.e.qp, &m), -EINVAL);
    assert_int_equal(dock_qp_state(d.near.e.qp), DOCK_RTS);
    assert_int_equal(dock_peek32(&d.near.e.qp->rec->access), access);
    assert_int_equal(dock_peek32(&d.near.e.qp->rec->qkey), qkey);
    post_write(1, 8);
    expect(1);
    duo_close(&d);
}

static void in_sqd_what_is_posted_waits_for_rts(void **state)
{
    struct dock_wc wc;

    (void)state;
    duo_open(&d, SELF_ARENA, NULL);
    assert_int_equal(to_state(d.near.e.qp, DOCK_SQD), 0);
    assert_int_equal(event(1000), DOCK_EVENT_SQ_DRAINED);
    for (uint64_t id = 0; id < 5; id++)
        post_write(id, 8);
    assert_false(end_wait(d.near.e.scq, &wc, 5));
    assert_int_equal(to_state(d.near.e.qp, DOCK_RTS), 0);
    for (uint64_t id = 0; id < 5; id++)
        expect(id);
    assert_int_equal(event(2), -1);
    duo_close(&d);
}

// One that is under way when the queue is drained, and one behind it that must not be started any more.
// false: the long transfer was over before we came to say so, and the other one was started rightly.
static bool drain(bool message)
{
    struct duo_opts o = {
        .near = {.mem = 8 << 20}, .far = {.mem = 8 << 20}, .near_knobs = &knobs, .far_knobs = &knobs};
    struct dock_wc wc;

    duo_open(&d, SELF_ARENA, &o);
    if (message) {
        struct dock_wr wr = wr_onesided(DOCK_OP_SEND, &d.near.e, &sge, 0, 8, &d.mr, 0);
        assert_int_equal(end_post(&d.near.e, &wr), 0);
    } else {
        post_write(0, 8 << 20);
    }
    post_write(1, 8);
    assert_int_equal(to_state(d.near.e.qp, DOCK_SQD), 0);
    if (message) {
        assert_int_equal(event(5), -1);
        assert_int_equal(end_recv(&d.far->e, 1, d.far->e.mem, 8), 0);
    }
    assert_int_equal(event(20000 * slow_down()), DOCK_EVENT_SQ_DRAINED); // nobody polls: the engine alone
    assert_true(end_poll(d.near.e.scq, &wc));                            // so it lies there now
    assert_int_equal(wc.id, 0);
    bool both = end_wait(d.near.e.scq, &wc, 5);
    assert_int_equal(event(2), -1); // once
    assert_int_equal(to_state(d.near.e.qp, DOCK_RTS), 0);
    if (!both)
        expect(1);
    duo_close(&d);
    return !both;
}

// A long transfer, or a message whose receiver is not ready, is finished first; only then the queue is
// drained.
static void drained_is_told_when_what_was_started_is_finished(void **state)
{
    unsigned tries = 0;

    (void)state;
    while (!drain(false) && tries < 50)
        tries++;
    assert_true(tries < 50);
    assert_true(drain(true));
}

static void receives_may_be_posted_before_rtr_and_are_used_after(void **state)
{
    struct duo_opts o = {.unconnected = true};
    struct dock_wc wc;

    (void)state;
    duo_open(&d, SELF_ARENA, &o);
    assert_int_equal(to_state(d.far->e.qp, DOCK_INIT), 0);
    assert_int_equal(end_recv(&d.far->e, 3, d.far->e.mem, 8), 0);
    end_connect(&d.near.e, d.qpn, &knobs);
    end_connect(&d.far->e, dock_qp_number(d.near.e.qp), &knobs);
    struct dock_wr wr = wr_onesided(DOCK_OP_SEND, &d.near.e, &sge, 0, 8, &d.mr, 0);
    assert_int_equal(end_post(&d.near.e, &wr), 0);
    assert_true(end_wait(d.far->e.rcq, &wc, 10000 * slow_down()));
    assert_int_equal(wc.id, 3);
    duo_close(&d);
}

// A queue in RTR receives, and tells when the first message has come.
static void in_rtr_the_first_message_tells_that_the_connection_stands(void **state)
{
    struct duo_opts o = {.unconnected = true};
    struct dock_qp_mod m = knobs;
    struct dock_wc wc;

    (void)state;
    duo_open(&d, SELF_ARENA, &o);
    m.mask = DOCK_MOD_STATE | DOCK_MOD_ACCESS;
    m.state = DOCK_INIT;
    assert_int_equal(dock_qp_modify(d.near.e.qp, &m), 0);
    m.mask |= DOCK_MOD_DEST;
    m.state = DOCK_RTR;
    m.dest_qp = d.qpn;
    memcpy(m.eid, test_eid, 16);
    assert_int_equal(dock_qp_modify(d.near.e.qp, &m), 0);
    end_connect(&d.far->e, dock_qp_number(d.near.e.qp), &knobs);
    assert_int_equal(end_recv(&d.near.e, 4, d.near.e.mem, 8), 0);
    struct dock_mr at = *d.near.e.mr;
    struct dock_wr wr = wr_onesided(DOCK_OP_SEND, &d.far->e, &sge, 0, 8, &at, 0);
    assert_int_equal(end_post(&d.far->e, &wr), 0);
    assert_true(end_wait(d.near.e.rcq, &wc, 10000 * slow_down()));
    assert_int_equal(wc.status, DOCK_OK);
    assert_int_equal(event(10000 * slow_down()), DOCK_EVENT_COMM_EST);
    assert_int_equal(event(2), -1);
    assert_true(end_wait(d.far->e.scq, &wc, 10000 * slow_down()));
    // From the second request on the short way is open, as to a queue in RTS.
    struct dock_conn *c = &d.far->e.qp->conn;
    assert_true(dock_direct_enter(c));
    dock_direct_leave(c);
    wr = wr_onesided(DOCK_OP_WRITE, &d.far->e, &sge, 0, 8, &at, (uintptr_t)d.near.e.mem);
    assert_int_equal(end_post(&d.far->e, &wr), 0);
    assert_true(end_wait(d.far->e.scq, &wc, 10000 * slow_down()));
    assert_int_equal(wc.status, DOCK_OK);
    assert_int_equal(event(2), -1);
    m.mask = DOCK_MOD_STATE;
    m.state = DOCK_ERR;
    assert_int_equal(dock_qp_modify(d.near.e.qp, &m), 0);
    assert_false(dock_direct_enter(c));
    duo_close(&d);
}

static void states_change_while_others_post_and_poll(void **state)
{
    struct dock_wc wc;

    (void)state;
    for (unsigned i = 0; i < 100; i++) { // whatever is under way: ERR ends it, RESET makes the queue whole
        unsigned n = 0, got = 0;
        struct duo_opts o = {.near = {.mem = 1 << 20}, .far = {.mem = 1 << 20}};
        if (i % 20 == 0)
            duo_open(&d, i % 40 && place_possible(SELF_PLAIN) ? SELF_PLAIN : SELF_ARENA, &o);
        for (n = 0; n < 10; n++)
            post_write(n, n % 3 ? 8 : 200000);
        assert_int_equal(to_state(d.near.e.qp, DOCK_ERR), 0);
        while (got < n && end_wait(d.near.e.scq, &wc, 10000 * slow_down()))
            assert_int_equal(wc.id, got++);
        assert_int_equal(got, n);
        assert_int_equal(to_state(d.near.e.qp, DOCK_RESET), 0);
        end_connect(&d.near.e, d.qpn, NULL);
        if (i % 20 == 19)
            duo_close(&d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_of_transitions),
        cmocka_unit_test(a_refused_transition_changes_nothing),
        cmocka_unit_test(in_sqd_what_is_posted_waits_for_rts),
        cmocka_unit_test(drained_is_told_when_what_was_started_is_finished),
        cmocka_unit_test(receives_may_be_posted_before_rtr_and_are_used_after),
        cmocka_unit_test(in_rtr_the_first_message_tells_that_the_connection_stands),
        cmocka_unit_test(states_change_while_others_post_and_poll),
    };

    return cmocka_run_group_tests_name("states of a queue pair", tests, NULL, NULL);
}
