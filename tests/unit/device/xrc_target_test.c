// SPDX-License-Identifier: MIT
// XRC below the faces: which shared queue a request names, and what becomes of a message that ends in the
// middle.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/internal.h"
#include "device/link.h"
#include "lib/own_dir.h"
#include "lib/port_down.h"

struct xrc {
    struct end ini; // its receive CQ and its memory are the other side's too
    struct dock_rq *srq;
    struct dock_qp *target;
};

static struct dock_qp *half(struct xrc *x, enum dock_xrc which)
{
    bool sends = which == DOCK_XRC_INI;
    struct dock_qp_attr a = {.service = DOCK_RC,
                             .role = sends ? DOCK_SENDS : DOCK_RECEIVES,
                             .xrc = which,
                             .xrcd = 5,
                             .pd = x->ini.pd,
                             .send_cq = x->ini.scq,
                             .recv_cq = x->ini.rcq,
                             .max_send_wr = sends ? 8 : 0,
                             .max_send_sge = sends};
    struct dock_qp *qp;

    memcpy(a.eid, test_eid, 16);
    assert_int_equal(dock_qp_create(x->ini.dev, &a, &qp), 0);
    return qp;
}

static void ready(struct xrc *x)
{
    struct end target = {.service = DOCK_RC, .qp = x->target};

    end_connect(&target, dock_qp_number(x->ini.qp), NULL);
}

// All but that the target is ready.
static void xrc_make(struct xrc *x, struct dock_dev *dev, const struct dock_qp_mod *of_the_initiator)
{
    struct end_opts o = {.service = DOCK_RC};
    struct dock_srq_attr a = {.max_wr = 8, .max_sge = 1};

    end_open(&x->ini, dev, &o);
    assert_int_equal(dock_qp_destroy(x->ini.qp), 0);
    a.pd = x->ini.pd;
    assert_int_equal(dock_xrc_srq_create(dev, &a, x->ini.rcq, 5, &x->srq), 0);
    x->ini.qp = half(x, DOCK_XRC_INI);
    x->target = half(x, DOCK_XRC_TGT);
    end_connect(&x->ini, dock_qp_number(x->target), of_the_initiator);
}

static void xrc_open(struct xrc *x, struct dock_dev *dev)
{
    struct dock_qp_mod impatient = {.timeout = 1, .retry = 1, .rd_atomic = 1, .dest_rd_atomic = 1};

    xrc_make(x, dev, &impatient);
    ready(x);
}

static void xrc_close(struct xrc *x)
{
    if (x->target)
        assert_int_equal(dock_qp_destroy(x->target), 0);
    assert_int_equal(dock_xrc_srq_destroy(x->srq), 0);
    end_close(&x->ini);
}

// A message of which a budget is sent, and no more: 7, to receive 3.
static void begin_long(struct xrc *x)
{
    enum { LONG = 500000 };
    struct dock_sge sge = {(uintptr_t)x->ini.mem, LONG, x->ini.mr->lkey};

    dock_recv_begin(x->srq);
    assert_int_equal(dock_recv_put(x->srq, 3, &sge, 1), 0);
    dock_recv_end(x->srq);
    struct dock_wr wr = wr_onesided(DOCK_OP_SEND, &x->ini, &sge, LONG, LONG, x->ini.mr, 0);
    wr.id = 7;
    wr.remote = dock_srq_number(x->srq);
    assert_int_equal(end_post(&x->ini, &wr), 0);
}

// It ends by itself, or nobody answers any more: the receive comes back, as flushed.
static void what_an_initiator_had_begun_is_told_to_the_shared_queue(void **state)
{
    struct dock_dev *dev = open_device();

    (void)state;
    for (unsigned down = 0; down < 2; down++) {
        struct xrc x;
        xrc_open(&x, dev);
        begin_long(&x);
        if (down)
            set_port(dev, true);
        else
            dock_qp_error(x.ini.qp);
        while (dock_qp_state(x.ini.qp) ==
               DOCK_RTS) // who waits is looked at by the engine, which is not there
            dock_sq_ring(&x.ini.qp->sq, DOCK_BY_ENGINE);
        expect(x.ini.scq, 7, down ? DOCK_ST_RETRY_EXC : DOCK_ST_FLUSH);
        expect(x.ini.rcq, 3, DOCK_ST_FLUSH);
        if (down)
            set_port(dev, false);
        xrc_close(&x);
    }
    assert_int_equal(dock_dev_close(dev), 0);
}

// The initiator goes on trying; who has the shared queue has its receive back meanwhile, and once.
static void what_a_target_that_ends_had_begun_is_told_to_the_shared_queue(void **state)
{
    struct dock_dev *dev = open_device();
    struct dock_wc wc;

    (void)state;
    for (unsigned gone = 0; gone < 2; gone++) {
        struct dock_qp_mod patient = {.mask = DOCK_MOD_TIMEOUT, .timeout = 0};
        struct xrc x;
        xrc_open(&x, dev);
        begin_long(&x);
        assert_int_equal(dock_qp_modify(x.ini.qp, &patient), 0);
        if (gone)
            assert_int_equal(dock_qp_destroy(x.target), 0);
        else
            dock_qp_error(x.target);
        for (unsigned i = 0; i < 3; i++)
            dock_sq_ring(&x.ini.qp->sq, DOCK_BY_ENGINE);
        expect(x.ini.rcq, 3, DOCK_ST_FLUSH);
        assert_false(end_poll(x.ini.scq, &wc));
        dock_qp_error(x.ini.qp);
        expect(x.ini.scq, 7, DOCK_ST_FLUSH);
        assert_false(end_poll(x.ini.rcq, &wc));
        if (gone)
            x.target = NULL;
        xrc_close(&x);
    }
    assert_int_equal(dock_dev_close(dev), 0);
}

// Whoever looks, and however often: its first message finds it, if that comes within the time of the retries.
static void a_target_that_is_not_ready_has_the_time_of_the_retries(void **state)
{
    struct dock_qp_mod patient = {
        .timeout = 21, .retry = 7, .rd_atomic = 1, .dest_rd_atomic = 1}; // 8.6 s each
    struct dock_dev *dev = open_device();
    struct dock_sge sge, into;
    struct xrc x;

    (void)state;
    xrc_make(&x, dev, &patient);
    into = (struct dock_sge){(uintptr_t)x.ini.mem, 8, x.ini.mr->lkey};
    dock_recv_begin(x.srq);
    assert_int_equal(dock_recv_put(x.srq, 3, &into, 1), 0);
    dock_recv_end(x.srq);
    struct dock_wr wr = wr_onesided(DOCK_OP_SEND, &x.ini, &sge, 64, 8, x.ini.mr, 0);
    wr.id = 7;
    wr.remote = dock_srq_number(x.srq);
    assert_int_equal(end_post(&x.ini, &wr), 0);
    for (unsigned i = 0; i < 50; i++)
        dock_sq_ring(&x.ini.qp->sq, DOCK_BY_ENGINE);
    assert_int_equal(dock_qp_state(x.ini.qp), DOCK_RTS);
    ready(&x);
    dock_sq_ring(&x.ini.qp->sq, DOCK_BY_ENGINE);
    expect(x.ini.rcq, 3, DOCK_OK);
    expect(x.ini.scq, 7, DOCK_OK);
    xrc_close(&x);
    assert_int_equal(dock_dev_close(dev), 0);
}

// The straight way of small WRITEs, over which the second goes, does not look at the number.
static void number_zero_is_no_queue_for_a_small_write_either(void **state)
{
    struct dock_dev *dev = open_device();
    struct dock_sge sge;
    struct xrc x;

    (void)state;
    xrc_open(&x, dev);
    struct dock_wr wr = wr_onesided(DOCK_OP_WRITE, &x.ini, &sge, 0, 8, x.ini.mr, (uintptr_t)x.ini.mem + 4096);
    for (unsigned i = 0; i < 3; i++) {
        wr.id = i;
        wr.remote = i < 2 ? dock_srq_number(x.srq) : 0;
        assert_int_equal(end_post(&x.ini, &wr), 0);
        expect(x.ini.scq, i, i < 2 ? DOCK_OK : DOCK_ST_REM_INV_REQ);
    }
    xrc_close(&x);
    assert_int_equal(dock_dev_close(dev), 0);
}

// ---- several who listen to one queue

struct told {
    struct dock_listener *listener;
};

struct teller {
    struct xrc x;
    struct dock_events *events;
    dock_a32 over;
};

static void *raises(void *arg)
{
    struct teller *t = arg;

    while (!dock_peek32(&t->over)) {
        dock_qp_raise(t->x.target, DOCK_EVENT_COMM_EST);
        sched_yield();
    }
    return NULL;
}

static void *reads(void *arg)
{
    struct teller *t = arg;
    struct dock_event e;
    uintptr_t wrong = 0;

    while (!dock_events_get(t->events, &e) && e.object) { // the device's own event is the last
        wrong += ((struct told *)e.user)->listener != e.object;
        dock_listener_ack(e.object);
    }
    return (void *)wrong;
}

// An event that comes while somebody begins to listen finds all that leads back from it.
static void a_listener_is_whole_before_it_is_told_anything(void **state)
{
    static struct told told[300];
    struct dock_event last = {.kind = DOCK_EVENT_PORT_ACTIVE};
    struct dock_dev *dev = open_device();
    struct teller t = {0};
    pthread_t raiser, reader;
    void *wrong;

    (void)state;
    memset(told, 0, sizeof told);
    xrc_open(&t.x, dev);
    assert_int_equal(dock_events_open(dev, &t.events), 0);
    assert_int_equal(pthread_create(&raiser, NULL, raises, &t), 0);
    assert_int_equal(pthread_create(&reader, NULL, reads, &t), 0);
    for (unsigned i = 0; i < 300; i++) {
        assert_int_equal(dock_qp_listen(t.x.target, t.events, &told[i], &told[i].listener), 0);
        dock_listener_end(told[i].listener);
    }
    dock_set32(&t.over, 1);
    assert_int_equal(pthread_join(raiser, NULL), 0);
    dock_event_raise(dev, NULL, &last, NULL);
    assert_int_equal(pthread_join(reader, &wrong), 0);
    assert_null(wrong);
    dock_events_close(t.events);
    xrc_close(&t.x);
    assert_int_equal(dock_dev_close(dev), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_an_initiator_had_begun_is_told_to_the_shared_queue),
        cmocka_unit_test(what_a_target_that_ends_had_begun_is_told_to_the_shared_queue),
        cmocka_unit_test(a_target_that_is_not_ready_has_the_time_of_the_retries),
        cmocka_unit_test(number_zero_is_no_queue_for_a_small_write_either),
        cmocka_unit_test(a_listener_is_whole_before_it_is_told_anything),
    };

    return cmocka_run_group_tests_name("XRC below the faces", tests, own_dir_make, own_dir_remove);
}
