// SPDX-License-Identifier: MIT
// timeout: 120
// Error states: the first error, then everything behind it in the order of posting; what RESET drops;
// retries.
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
#include "lib/duo.h"

static struct duo d;
static struct dock_sge sge;

static const struct dock_qp_mod knobs = {.timeout = 8,
                                         .retry = 1,
                                         .rnr_retry = 0,
                                         .rnr_timer = 1,
                                         .rd_atomic = 16,
                                         .dest_rd_atomic = 16,
                                         .access = DOCK_ACCESS_REMOTE_READ | DOCK_ACCESS_REMOTE_WRITE};

static void open_with(enum place place, const struct dock_qp_mod *near, struct end_opts n)
{
    struct duo_opts o = {.near = n, .near_knobs = near, .far_knobs = near};

    duo_open(&d, place, &o);
}

static struct dock_wr write_wr(uint64_t id, bool good, uint32_t flags)
{
    struct dock_wr wr = wr_onesided(DOCK_OP_WRITE, &d.near.e, &sge, 0, 8, &d.mr, d.mem + id * 8);

    if (!good)
        sge.key = 0;
    wr.id = id;
    wr.flags = flags;
    return wr;
}

static void post(uint64_t id, bool good, uint32_t flags)
{
    struct dock_wr wr = write_wr(id, good, flags);

    assert_int_equal(end_post(&d.near.e, &wr), 0);
}

static void expect(struct dock_cq *cq, uint64_t id, uint32_t status)
{
    struct dock_wc wc;

    assert_true(end_wait(cq, &wc, 10000 * slow_down()));
    assert_int_equal(wc.id, id);
    assert_int_equal(wc.status, status);
    assert_int_equal(wc.qp_num, dock_qp_number(wc.qp));
}

static void expect_none(struct dock_cq *cq)
{
    struct dock_wc wc;

    assert_false(end_wait(cq, &wc, 2));
}

static void to_state(struct dock_qp *qp, enum dock_state to, int want)
{
    struct dock_qp_mod m = {.mask = DOCK_MOD_STATE, .state = to};

    assert_int_equal(dock_qp_modify(qp, &m), want);
}

// Bad, good, good unsignaled: each completes, the first with its cause, and the peer stays as it was.
static void the_cause_comes_first_and_the_rest_is_flushed_in_order_unsignaled_too(void **state)
{
    (void)state;
    for (unsigned place = 0; place < PLACES; place++) {
        if (!place_possible(place))
            continue;
        struct io_look l;
        open_with((enum place)place, &knobs, (struct end_opts){0});
        post(1, true, 0);
        post(2, false, 0); // unsignaled, and it completes, because it failed
        post(3, true, DOCK_F_COMPLETE);
        post(4, true, 0);
        post(5, true, 0);
        expect(d.near.e.scq, 2, DOCK_ST_LOC_PROT);
        for (uint64_t id = 3; id <= 5; id++)
            expect(d.near.e.scq, id, DOCK_ST_FLUSH);
        expect_none(d.near.e.scq);
        duo_far(&d, side_state, &l, sizeof l);
        assert_int_equal(l.state, DOCK_RTS);
        duo_close(&d);
    }
}

static void one_list_with_an_error_in_its_middle(void **state)
{
    struct dock_post p;

    (void)state;
    open_with(SELF_ARENA, &knobs, (struct end_opts){0});
    dock_post_begin(d.near.e.qp, &p);
    for (uint64_t id = 0; id < 40; id++) {
        struct dock_wr wr = write_wr(id, id != 17, 0);
        assert_int_equal(dock_post_put(&p, &wr), 0);
    }
    dock_post_end(&p);
    expect(d.near.e.scq, 17, DOCK_ST_LOC_PROT);
    for (uint64_t id = 18; id < 40; id++)
        expect(d.near.e.scq, id, DOCK_ST_FLUSH);
    duo_close(&d);
}

static void a_post_in_err_is_flushed(void **state)
{
    (void)state;
    open_with(SELF_ARENA, &knobs, (struct end_opts){.wr = 8});
    to_state(d.near.e.qp, DOCK_ERR, 0);
    for (uint64_t id = 0; id < 20; id++) {
        post(id, true, 0);
        expect(d.near.e.scq, id, DOCK_ST_FLUSH);
    }
    assert_int_equal(end_recv(&d.near.e, 9, d.near.e.mem, 8), 0);
    expect(d.near.e.rcq, 9, DOCK_ST_FLUSH);
    assert_int_equal(d.far->e.mem[0], 0);
    duo_close(&d);
}

static void err_flushes_the_receives_in_the_order_of_posting(void **state)
{
    (void)state;
    for (unsigned peer_failed = 0; peer_failed < 2; peer_failed++) {
        open_with(SELF_ARENA, &knobs, (struct end_opts){0});
        for (uint64_t id = 0; id < 10; id++)
            assert_int_equal(end_recv(&d.near.e, id, d.near.e.mem, 8), 0);
        if (peer_failed)
            post(1, false, 0); // the queue fails by itself
        else
            to_state(d.near.e.qp, DOCK_ERR, 0);
        for (uint64_t id = 0; id < 10; id++)
            expect(d.near.e.rcq, id, DOCK_ST_FLUSH);
        expect_none(d.near.e.rcq);
        duo_close(&d);
    }
}

// What was polled before stays polled, what was received stays received: each receive completes once.
static void each_receive_completes_once_whatever_it_met(void **state)
{
    struct dock_wr wr;

    (void)state;
    open_with(SELF_ARENA, &knobs, (struct end_opts){0});
    for (uint64_t id = 0; id < 8; id++)
        assert_int_equal(end_recv(&d.far->e, id, d.far->e.mem, 64), 0);
    for (uint64_t id = 0; id < 5; id++) {
        wr = wr_onesided(DOCK_OP_SEND, &d.near.e, &sge, 0, 8, &d.mr, 0);
        assert_int_equal(end_post(&d.near.e, &wr), 0);
        expect(d.near.e.scq, 0, DOCK_OK);
    }
    expect(d.far->e.rcq, 0, DOCK_OK);
    expect(d.far->e.rcq, 1, DOCK_OK);
    to_state(d.far->e.qp, DOCK_ERR, 0);
    for (uint64_t id = 2; id < 8; id++)
        expect(d.far->e.rcq, id, id < 5 ? DOCK_OK : DOCK_ST_FLUSH);
    expect_none(d.far->e.rcq);
    duo_close(&d);
}

static void reset_drops_everything_and_the_queue_is_whole_again(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 2; round++) { // from RTS with work behind it, and from ERR
        open_with(SELF_ARENA, &knobs, (struct end_opts){.wr = 4});
        for (uint64_t id = 0; id < 4; id++) {
            post(id, round == 0 || id, DOCK_F_COMPLETE);
            assert_int_equal(end_recv(&d.near.e, id, d.near.e.mem, 8), 0);
        }
        to_state(d.near.e.qp, DOCK_RESET, 0);
        expect_none(d.near.e.scq);
        expect_none(d.near.e.rcq);
        end_connect(&d.near.e, d.qpn, &knobs);
        for (uint64_t id = 10; id < 14; id++) {
            post(id, true, DOCK_F_COMPLETE);
            assert_int_equal(end_recv(&d.near.e, id, d.near.e.mem, 8), 0);
        }
        struct dock_wr more = write_wr(1, true, 0);
        assert_int_equal(end_post(&d.near.e, &more), -ENOMEM);
        assert_int_equal(end_recv(&d.near.e, 1, d.near.e.mem, 8), -ENOMEM);
        for (uint64_t id = 10; id < 14; id++)
            expect(d.near.e.scq, id, DOCK_OK);
        duo_close(&d);
    }
}

// A mebibyte half way when the queue is set to RESET or ERR: it stops, and is completed once or not at all.
static void a_transfer_under_way_stops_at_err_and_at_reset(void **state)
{
    (void)state;
    for (unsigned reset = 0; reset < 2; reset++)
        for (unsigned i = 0; i < 20; i++) {
            struct dock_wc wc;
            open_with(SELF_ARENA, &knobs, (struct end_opts){.mem = 8 << 20});
            struct dock_wr wr = wr_onesided(DOCK_OP_WRITE, &d.near.e, &sge, 0, 1 << 20, &d.mr, d.mem);
            wr.id = 4;
            assert_int_equal(end_post(&d.near.e, &wr), 0);
            to_state(d.near.e.qp, reset ? DOCK_RESET : DOCK_ERR, 0);
            bool got = end_wait(d.near.e.scq, &wc, reset ? 1 : 3000);
            assert_int_equal(got, !reset);
            if (got)
                assert_true(wc.id == 4 && (wc.status == DOCK_OK || wc.status == DOCK_ST_FLUSH));
            expect_none(d.near.e.scq);
            duo_close(&d);
        }
}

static void a_cq_overrun_is_fatal_and_told_once(void **state)
{
    struct io_look l = {.ms = 5000 * slow_down()};
    struct dock_wc wc;

    (void)state;
    open_with(SELF_ARENA, &knobs, (struct end_opts){.cqe = 2});
    for (uint64_t id = 0; id < 3; id++)
        post(id, true, DOCK_F_COMPLETE);
    side_event(&d.near, &l);
    assert_int_equal(l.event, DOCK_EVENT_CQ_ERR);
    l.ms = 5;
    side_event(&d.near, &l);
    assert_int_equal(l.event, -1);
    assert_int_equal(dock_qp_state(d.near.e.qp), DOCK_ERR);
    expect(d.near.e.scq, 0, DOCK_OK); // those that fitted can still be read
    expect(d.near.e.scq, 1, DOCK_OK);
    dock_cq_begin(d.near.e.scq);
    assert_int_equal(dock_cq_next(d.near.e.scq, &wc), -EOVERFLOW);
    dock_cq_end(d.near.e.scq);
    duo_close(&d);
}

struct io_drain {
    uint32_t good;
    int last;
};

static void drain_receives(struct side *s, void *io)
{
    struct io_drain *r = io;
    struct dock_wc wc;

    dock_cq_begin(s->e.rcq);
    while ((r->last = dock_cq_next(s->e.rcq, &wc)) > 0)
        r->good += wc.status == DOCK_OK && wc.id == r->good;
    dock_cq_end(s->e.rcq);
}

// The third message is placed, and its receiver cannot be told: it learns of it by the event and ends; its
// sender learns that the target could not, and ends as well.
static void a_receive_cq_that_is_overrun_ends_its_queue_and_its_senders(void **state)
{
    static const enum place places[] = {SELF_ARENA, HOST_ARENA};
    static const uint32_t want[] = {DOCK_OK, DOCK_OK, DOCK_ST_REM_OP, DOCK_ST_FLUSH};

    (void)state;
    for (unsigned p = 0; p < 2; p++) {
        struct io_look l = {.ms = 5000 * slow_down()};
        struct io_drain drained = {0};
        struct duo_opts o = {.far.cqe = 2};
        if (!place_possible(places[p]))
            continue;
        duo_open(&d, places[p], &o);
        for (unsigned i = 0; i < 4; i++) {
            struct io_recv r = {.id = i, .len = 64};
            duo_far(&d, side_recv, &r, sizeof r);
        }
        for (uint64_t id = 0; id < 4; id++) {
            struct dock_wr wr = wr_onesided(DOCK_OP_SEND, &d.near.e, &sge, 0, 8, &d.mr, 0);
            wr.id = id;
            assert_int_equal(end_post(&d.near.e, &wr), 0);
        }
        for (uint64_t id = 0; id < 4; id++)
            expect(d.near.e.scq, id, want[id]);
        assert_int_equal(dock_qp_state(d.near.e.qp), DOCK_ERR);
        duo_far(&d, side_event, &l, sizeof l);
        assert_int_equal(l.event, DOCK_EVENT_CQ_ERR);
        assert_true(duo_far_reaches(&d, DOCK_ERR, 5000 * slow_down()));
        l.ms = 20;
        duo_far(&d, side_event, &l, sizeof l);
        assert_int_equal(l.event, -1);
        side_event(&d.near, &l);
        assert_int_equal(l.event, -1);
        duo_far(&d, drain_receives, &drained, sizeof drained);
        assert_int_equal(drained.good, 2); // those that fitted can still be read
        assert_int_equal(drained.last, -EOVERFLOW);
        duo_close(&d);
    }
}

// Asked for, the CQ loses the oldest instead: the newest `depth` remain, and nothing fails.
static void a_cq_that_may_overrun_keeps_the_newest(void **state)
{
    static const uint32_t depths[] = {1, 2, 3, 4, 5, 8};

    (void)state;
    for (unsigned i = 0; i < sizeof depths / sizeof *depths; i++)
        for (uint32_t more = 0; more < 20; more++) {
            struct dock_cq_attr ca = {.depth = depths[i], .ignore_overrun = true};
            struct dock_cq *cq;
            struct end_opts none = {0};
            struct dock_wc wc;
            struct dock_dev *dev;
            struct end a, b;
            assert_int_equal(dock_dev_open(NULL, &dev), 0);
            end_open(&a, dev, &none);
            end_open(&b, dev, &none);
            assert_int_equal(dock_cq_create(dev, &ca, &cq), 0);
            dock_qp_destroy(a.qp);
            struct dock_qp_attr qa = {.pd = a.pd,
                                      .send_cq = cq,
                                      .recv_cq = a.rcq,
                                      .max_send_wr = 64,
                                      .max_recv_wr = 1,
                                      .max_send_sge = 1,
                                      .max_recv_sge = 1};
            assert_int_equal(dock_qp_create(dev, &qa, &a.qp), 0);
            pair_connect(&a, &b);
            for (uint32_t n = 0; n < depths[i] + more; n++) {
                struct dock_wr wr = wr_onesided(DOCK_OP_WRITE, &a, &sge, 0, 8, b.mr, (uintptr_t)b.mem);
                wr.id = n;
                assert_int_equal(end_post(&a, &wr), 0);
            }
            assert_int_equal(dock_peek64(&a.qp->rec->executed), depths[i] + more);
            for (uint32_t n = more; n < depths[i] + more; n++) {
                assert_true(end_poll(cq, &wc));
                assert_int_equal(wc.id, n);
                assert_int_equal(wc.status, DOCK_OK);
            }
            assert_false(end_poll(cq, &wc));
            assert_int_equal(dock_qp_state(a.qp), DOCK_RTS);
            end_close(&a);
            end_close(&b);
            assert_int_equal(dock_cq_destroy(cq), 0);
            assert_int_equal(dock_dev_close(dev), 0);
        }
}

// ---- receiver not ready, nobody there

static void receive_late(unsigned ms)
{
    struct timespec nap = {.tv_nsec = ms * 1000000l};
    struct io_recv r = {.id = 1, .len = 64};

    nanosleep(&nap, NULL);
    duo_far(&d, side_recv, &r, sizeof r);
}

// rnr_timer 10 is 0.32 ms, 14 is 1.28 ms, 20 is 10.24 ms, 27 is 122.88 ms.
static void rnr_retries_are_counted_and_timed(void **state)
{
    static const struct {
        uint8_t retry, timer;
        unsigned receive_ms; // 0: never
        uint32_t status;
        uint64_t least_us;
    } t[] = {
        {0, 20, 0, DOCK_ST_RNR_EXC, 0},        {1, 14, 0, DOCK_ST_RNR_EXC, 1280},
        {3, 14, 0, DOCK_ST_RNR_EXC, 3 * 1280}, {6, 10, 0, DOCK_ST_RNR_EXC, 6 * 320},
        {6, 27, 20, DOCK_OK, 20000}, // three quarters of a second for whoever is slow
        {7, 10, 100, DOCK_OK, 100000},         {7, 1, 50, DOCK_OK, 50000},
    };

    (void)state;
    for (unsigned place = 0; place <= HOST_ARENA; place += HOST_ARENA)
        for (unsigned i = 0; place_possible((enum place)place) && i < sizeof t / sizeof *t; i++)
            for (unsigned op = 0; op < 2; op++) {
                struct dock_qp_mod m = knobs;
                m.rnr_retry = t[i].retry;
                m.rnr_timer = t[i].timer;
                open_with((enum place)place, &m, (struct end_opts){0});
                uint64_t began = dock_now_ns();
                struct dock_wr wr =
                    wr_onesided(op ? DOCK_OP_WRITE_IMM : DOCK_OP_SEND, &d.near.e, &sge, 0, 8, &d.mr, d.mem);
                assert_int_equal(end_post(&d.near.e, &wr), 0);
                if (t[i].receive_ms)
                    receive_late(t[i].receive_ms);
                expect(d.near.e.scq, 0, t[i].status);
                assert_true(dock_now_ns() - began >= t[i].least_us * 1000);
                uint64_t rnr = dock_peek64(&d.near.e.qp->rec->rnr);
                if (t[i].status)
                    assert_int_equal(rnr, t[i].retry + 1);
                else
                    assert_true(rnr > 0);
                duo_close(&d);
            }
}

// While one queue waits for a receive, another of the same two devices goes on.
static void only_the_queue_that_is_not_ready_stalls(void **state)
{
    struct dock_qp_mod m = knobs;
    struct end_opts o = {0};
    struct dock_dev *dev;
    struct end a, b, c, e;

    (void)state;
    m.rnr_retry = 7;
    m.rnr_timer = 24; // 40.96 ms
    assert_int_equal(dock_dev_open(NULL, &dev), 0);
    end_open(&a, dev, &o);
    end_open(&b, dev, &o);
    end_open(&c, dev, &o);
    end_open(&e, dev, &o);
    end_connect(&a, dock_qp_number(b.qp), &m);
    end_connect(&b, dock_qp_number(a.qp), &m);
    pair_connect(&c, &e);
    struct dock_wr wr = wr_onesided(DOCK_OP_SEND, &a, &sge, 0, 8, b.mr, 0);
    assert_int_equal(end_post(&a, &wr), 0);
    for (unsigned i = 0; i < 100; i++) {
        wr = wr_onesided(DOCK_OP_WRITE, &c, &sge, 0, 8, e.mr, (uintptr_t)e.mem);
        assert_int_equal(end_post(&c, &wr), 0);
        expect(c.scq, 0, DOCK_OK);
    }
    expect_none(a.scq);
    assert_int_equal(end_recv(&b, 1, b.mem, 8), 0);
    expect(a.scq, 0, DOCK_OK);
    end_close(&a);
    end_close(&b);
    end_close(&c);
    end_close(&e);
    dock_dev_close(dev);
}

// 4.096 us * 2^timeout, retry + 1 times.
static void nobody_there_takes_the_timeout_times_the_retries(void **state)
{
    static const struct {
        uint8_t timeout, retry;
    } t[] = {{10, 0}, {10, 3}, {12, 1}, {1, 7}};

    (void)state;
    for (unsigned i = 0; i < sizeof t / sizeof *t; i++) {
        struct dock_qp_mod m = knobs;
        m.timeout = t[i].timeout;
        m.retry = t[i].retry;
        open_with(SELF_ARENA, &m, (struct end_opts){0});
        to_state(d.far->e.qp, DOCK_RESET, 0);
        uint64_t began = dock_now_ns(), least = (4096ull << t[i].timeout) * (t[i].retry + 1u);
        post(1, true, 0);
        expect(d.near.e.scq, 1, DOCK_ST_RETRY_EXC);
        assert_true(dock_now_ns() - began >= least);
        assert_true(dock_now_ns() - began < least + 10000000000ull * slow_down()); // not for ever
        duo_close(&d);
    }
}

// A peer that is connected to somebody else does not answer us.
static void a_peer_of_another_does_not_answer(void **state)
{
    struct end_opts o = {0};
    struct dock_dev *dev;
    struct end a, b, c;

    (void)state;
    assert_int_equal(dock_dev_open(NULL, &dev), 0);
    end_open(&a, dev, &o);
    end_open(&b, dev, &o);
    end_open(&c, dev, &o);
    pair_connect(&a, &b);
    end_connect(&c, dock_qp_number(b.qp), &knobs);
    struct dock_wr wr = wr_onesided(DOCK_OP_WRITE, &c, &sge, 0, 8, b.mr, (uintptr_t)b.mem);
    assert_int_equal(end_post(&c, &wr), 0);
    expect(c.scq, 0, DOCK_ST_RETRY_EXC);
    assert_int_equal(dock_qp_state(b.qp), DOCK_RTS);
    end_close(&a);
    end_close(&b);
    end_close(&c);
    dock_dev_close(dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cause_comes_first_and_the_rest_is_flushed_in_order_unsignaled_too),
        cmocka_unit_test(one_list_with_an_error_in_its_middle),
        cmocka_unit_test(a_post_in_err_is_flushed),
        cmocka_unit_test(err_flushes_the_receives_in_the_order_of_posting),
        cmocka_unit_test(each_receive_completes_once_whatever_it_met),
        cmocka_unit_test(reset_drops_everything_and_the_queue_is_whole_again),
        cmocka_unit_test(a_transfer_under_way_stops_at_err_and_at_reset),
        cmocka_unit_test(a_cq_overrun_is_fatal_and_told_once),
        cmocka_unit_test(a_receive_cq_that_is_overrun_ends_its_queue_and_its_senders),
        cmocka_unit_test(a_cq_that_may_overrun_keeps_the_newest),
        cmocka_unit_test(rnr_retries_are_counted_and_timed),
        cmocka_unit_test(only_the_queue_that_is_not_ready_stalls),
        cmocka_unit_test(nobody_there_takes_the_timeout_times_the_retries),
        cmocka_unit_test(a_peer_of_another_does_not_answer),
    };

    return cmocka_run_group_tests_name("error states", tests, NULL, NULL);
}
