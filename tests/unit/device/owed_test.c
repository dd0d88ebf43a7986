// SPDX-License-Identifier: MIT
// What a queue that fails owes: a receive that was taken and whose message never came is flushed, one whose
// completion stands is not told twice. The search between the two passes over what is no completion any more.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/internal.h"
#include "lib/pair.h"

static void to_state(struct dock_qp *qp, enum dock_state state)
{
    struct dock_qp_mod m = {.mask = DOCK_MOD_STATE, .state = state};

    assert_int_equal(dock_qp_modify(qp, &m), 0);
}

static void send_8(struct end *from, struct end *to)
{
    struct dock_sge sge;
    struct dock_wr wr = wr_onesided(DOCK_OP_SEND, from, &sge, 0, 8, to->mr, 0);
    struct dock_wc wc;

    assert_int_equal(end_post(from, &wr), 0);
    assert_true(end_wait(from->scq, &wc, 5000));
    assert_int_equal(wc.status, DOCK_OK);
}

// As a sender that dies with the message half placed.
static void take_and_die(struct end *e)
{
    uint64_t claim = dock_claim_make(e->dev->waiter.me, dock_qp_number(e->qp));
    uint32_t number, left;

    assert_int_equal(dock_rq_take(&e->qp->rq->view, &e->dev->waiter, claim, &number, &left), 0);
    assert_int_equal(number, 0); // that of the message before the reset
}

// A completion that a reset has forgotten stands in its CQ until those before it are polled.
static void a_forgotten_completion_pays_no_receive(void **state)
{
    struct end_opts o = {.cqe = 16};
    struct dock_qp *before;
    struct dock_dev *dev;
    struct end a, b, c;
    struct dock_wc wc;

    (void)state;
    assert_int_equal(dock_dev_open(NULL, &dev), 0);
    end_open(&a, dev, &o);
    end_open(&b, dev, &o);
    assert_int_equal(dock_qp_create(dev, &b.qp->attr, &before), 0);
    c = b;
    c.qp = before;
    end_connect(&c, dock_qp_number(a.qp), NULL);
    assert_int_equal(end_recv(&c, 1, c.mem, 8), 0);
    to_state(c.qp, DOCK_ERR); // its flush is the first in the CQ that the two share

    pair_connect(&a, &b);
    assert_int_equal(end_recv(&b, 2, b.mem, 8), 0);
    send_8(&a, &b);
    to_state(b.qp, DOCK_RESET);
    end_connect(&b, dock_qp_number(a.qp), NULL);
    assert_int_equal(end_recv(&b, 3, b.mem, 8), 0);
    take_and_die(&b);
    to_state(b.qp, DOCK_ERR);

    assert_true(end_wait(b.rcq, &wc, 5000));
    assert_int_equal(wc.id, 1);
    assert_true(end_wait(b.rcq, &wc, 5000));
    assert_int_equal(wc.id, 3);
    assert_int_equal(wc.status, DOCK_ST_FLUSH);
    assert_false(end_wait(b.rcq, &wc, 2));
    assert_int_equal(dock_qp_destroy(before), 0);
    end_close(&b);
    end_close(&a);
    assert_int_equal(dock_dev_close(dev), 0);
}

#define DEPTH 4u
#define OTHERS 12u // completions that nobody polls: more than the ring has entries

static void a_completion_behind_an_overrun_is_found(void **state)
{
    struct dock_cq_attr ca = {.depth = DEPTH, .ignore_overrun = true};
    struct end_opts o = {.cqe = 16};
    struct dock_qp_attr qa;
    struct dock_dev *dev;
    struct dock_cq *cq;
    struct end a, b, few;
    struct dock_wc wc;
    struct dock_sge sge;
    unsigned received = 0;

    (void)state;
    assert_int_equal(dock_dev_open(NULL, &dev), 0);
    end_open(&a, dev, &o);
    end_open(&b, dev, &o);
    assert_int_equal(dock_cq_create(dev, &ca, &cq), 0);
    qa = b.qp->attr;
    qa.send_cq = qa.recv_cq = cq;
    few = b;
    assert_int_equal(dock_qp_create(dev, &qa, &few.qp), 0);
    pair_connect(&a, &few);
    assert_int_equal(end_recv(&few, 7, few.mem, 8), 0);
    for (unsigned i = 0; i < OTHERS; i++) {
        struct dock_wr wr = wr_onesided(DOCK_OP_WRITE, &few, &sge, 0, 8, a.mr, (uintptr_t)a.mem);
        assert_int_equal(end_post(&few, &wr), 0);
    }
    while (dock_peek64(&few.qp->rec->executed) < OTHERS)
        dock_engine_nap(dev);
    send_8(&a, &few);
    uint32_t tail = dock_word_value(dock_peek64(&cq->rec->tail));
    to_state(few.qp, DOCK_ERR);
    assert_int_equal(dock_word_value(dock_peek64(&cq->rec->tail)), tail); // nothing is flushed
    while (end_wait(cq, &wc, 2)) {
        assert_int_equal(wc.status, DOCK_OK);
        received += wc.recv;
    }
    assert_int_equal(received, 1);
    assert_int_equal(dock_qp_destroy(few.qp), 0);
    assert_int_equal(dock_cq_destroy(cq), 0);
    end_close(&b);
    end_close(&a);
    assert_int_equal(dock_dev_close(dev), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_forgotten_completion_pays_no_receive),
        cmocka_unit_test(a_completion_behind_an_overrun_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
