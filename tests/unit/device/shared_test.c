// SPDX-License-Identifier: MIT
// What later faces build on: a receive queue that queue pairs share, datagrams to several destinations.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "device/identity.h"
#include "device/internal.h"
#include "lib/duo.h"

static struct dock_dev *dev;
static struct dock_sge sge;

static int setup(void **state)
{
    (void)state;
    return dock_dev_open(NULL, &dev);
}

static int teardown(void **state)
{
    (void)state;
    return dock_dev_close(dev);
}

static void expect(struct dock_cq *cq, uint64_t id, uint32_t status)
{
    struct dock_wc wc;

    assert_true(end_wait(cq, &wc, 10000 * slow_down()));
    assert_int_equal(wc.status, status);
    assert_int_equal(wc.id, id);
}

static void expect_none(struct dock_cq *cq)
{
    struct dock_wc wc;

    assert_false(end_wait(cq, &wc, 2));
}

// ---- a shared receive queue with two queue pairs

struct shared {
    uint32_t pd;
    struct dock_rq *srq;
    struct dock_mr *mr;
    char *mem;
    struct dock_events *events;
    struct dock_cq *cq[2];
    struct dock_qp *qp[2]; // of one domain, taking from srq
    struct end from[2];    // who sends to them
};

static void make_receiver(struct shared *s, unsigned i)
{
    struct dock_cq_attr ca = {.depth = 64};
    struct dock_qp_attr qa = {.pd = s->pd, .srq = s->srq, .max_send_wr = 4, .max_send_sge = 1};

    assert_int_equal(dock_cq_create(dev, &ca, &s->cq[i]), 0);
    qa.send_cq = qa.recv_cq = s->cq[i];
    assert_int_equal(dock_qp_create(dev, &qa, &s->qp[i]), 0);
    dock_qp_set_events(s->qp[i], s->events);
}

static void connect_receiver(struct shared *s, unsigned i)
{
    struct end to = {.qp = s->qp[i]};
    struct dock_qp_mod m = {
        .timeout = 10, .retry = 7, .rnr_retry = 7, .rnr_timer = 1, .rd_atomic = 1, .dest_rd_atomic = 1};

    end_connect(&to, dock_qp_number(s->from[i].qp), &m);
    end_connect(&s->from[i], dock_qp_number(s->qp[i]), &m);
}

static void open_shared(struct shared *s, uint32_t depth, uint32_t limit)
{
    struct dock_srq_attr sa = {.max_wr = depth, .max_sge = 1, .limit = limit, .user = s};
    struct end_opts o = {0};

    memset(s, 0, sizeof *s);
    assert_int_equal(dock_pd_create(dev, &s->pd), 0);
    sa.pd = s->pd;
    assert_int_equal(dock_srq_create(dev, &sa, &s->srq), 0);
    assert_int_equal(dock_events_open(dev, &s->events), 0);
    fcntl(dock_events_fd(s->events), F_SETFL, O_NONBLOCK);
    dock_srq_set_events(s->srq, s->events);
    assert_int_equal(dock_mem_alloc(dev, 65536, (void **)&s->mem), 0);
    assert_int_equal(dock_mr_register(dev, s->pd, (uintptr_t)s->mem, 65536, (uintptr_t)s->mem,
                                      DOCK_ACCESS_LOCAL_WRITE, &s->mr),
                     0);
    for (unsigned i = 0; i < 2; i++) {
        end_open(&s->from[i], dev, &o);
        make_receiver(s, i);
        connect_receiver(s, i);
    }
}

static void close_shared(struct shared *s)
{
    for (unsigned i = 0; i < 2; i++) {
        if (s->qp[i])
            assert_int_equal(dock_qp_destroy(s->qp[i]), 0);
        assert_int_equal(dock_cq_destroy(s->cq[i]), 0);
        end_close(&s->from[i]);
    }
    assert_int_equal(dock_srq_destroy(s->srq), 0);
    dock_events_close(s->events);
    dock_mr_deregister(s->mr);
    dock_mem_free(dev, s->mem, 65536);
    dock_pd_destroy(dev, s->pd);
}

static int post_recv(struct shared *s, uint64_t id)
{
    struct dock_sge at = {.addr = (uintptr_t)s->mem + id * 64, .len = 64, .key = s->mr->lkey};

    dock_recv_begin(s->srq);
    int err = dock_recv_put(s->srq, id, &at, 1);
    dock_recv_end(s->srq);
    return err;
}

static void send(struct shared *s, unsigned i, uint64_t mark)
{
    struct dock_wr wr = wr_onesided(DOCK_OP_SEND, &s->from[i], &sge, 0, 8, s->mr, 0);

    *(uint64_t *)(void *)s->from[i].mem = mark;
    assert_int_equal(end_post(&s->from[i], &wr), 0);
    expect(s->from[i].scq, 0, DOCK_OK);
}

static bool event(struct shared *s, int kind)
{
    uint64_t until = dock_now_ns() + 10000000000ull * slow_down();
    struct timespec nap = {.tv_nsec = 200000};
    struct dock_event e;

    while (dock_events_get(s->events, &e)) {
        if (kind < 0 || dock_now_ns() > until)
            return false;
        nanosleep(&nap, NULL);
    }
    assert_int_equal(e.kind, kind);
    dock_event_ack(&e);
    return true;
}

static void two_queue_pairs_take_from_one_queue_in_the_order_of_posting(void **state)
{
    struct shared s;

    (void)state;
    open_shared(&s, 8, 0);
    for (uint64_t id = 0; id < 8; id++)
        assert_int_equal(post_recv(&s, id), 0);
    assert_int_equal(post_recv(&s, 8), -ENOMEM);
    for (uint64_t id = 0; id < 8; id++) {
        unsigned i = id % 3 == 0;
        send(&s, i, 100 + id);
        expect(s.cq[i], id, DOCK_OK);
        assert_int_equal(*(uint64_t *)(void *)(s.mem + id * 64), 100 + id);
    }
    for (uint64_t id = 0; id < 8; id++)
        assert_int_equal(post_recv(&s, id), 0);
    close_shared(&s);
}

static void below_its_limit_it_tells_once(void **state)
{
    struct shared s;

    (void)state;
    open_shared(&s, 8, 3);
    for (uint64_t id = 0; id < 5; id++)
        post_recv(&s, id);
    send(&s, 0, 1); // 4 left
    send(&s, 1, 1); // 3 left
    assert_false(event(&s, -1));
    assert_int_equal(dock_srq_limit(s.srq), 3);
    send(&s, 0, 1); // 2 left: below
    assert_true(event(&s, DOCK_EVENT_SRQ_LIMIT));
    assert_int_equal(dock_srq_limit(s.srq), 0);
    send(&s, 0, 1);
    struct timespec nap = {.tv_nsec = 5000000};
    nanosleep(&nap, NULL);
    assert_false(event(&s, -1));
    assert_int_equal(dock_srq_set_limit(s.srq, 9), -EINVAL);
    assert_int_equal(dock_srq_set_limit(s.srq, 1), 0);
    send(&s, 1, 1); // none left
    assert_true(event(&s, DOCK_EVENT_SRQ_LIMIT));
    close_shared(&s);
}

static void it_is_busy_while_queue_pairs_use_it(void **state)
{
    struct shared s;

    (void)state;
    open_shared(&s, 8, 0);
    assert_int_equal(dock_srq_destroy(s.srq), -EBUSY);
    dock_qp_destroy(s.qp[0]);
    s.qp[0] = NULL;
    assert_int_equal(dock_srq_destroy(s.srq), -EBUSY);
    assert_int_equal(post_recv(&s, 0), 0); // nothing happened to it
    send(&s, 1, 5);
    expect(s.cq[1], 0, DOCK_OK);
    close_shared(&s);
}

// Receives that a queue pair has taken and nobody has polled are the shared queue's again when the pair goes.
static void what_a_destroyed_queue_pair_had_taken_comes_back(void **state)
{
    struct shared s;

    (void)state;
    open_shared(&s, 8, 0);
    for (unsigned round = 0; round < 20; round++) {
        for (uint64_t id = 0; id < 8; id++)
            assert_int_equal(post_recv(&s, id), 0);
        for (unsigned n = 0; n < 5; n++)
            send(&s, 0, n);
        send(&s, 1, 9);
        dock_qp_destroy(s.qp[0]);
        dock_cq_destroy(s.cq[0]);
        expect(s.cq[1], 5, DOCK_OK);
        for (uint64_t id = 0; id < 6; id++) // 5 that came back, 1 polled; 2 are still posted
            assert_int_equal(post_recv(&s, 10 + id), 0);
        assert_int_equal(post_recv(&s, 99), -ENOMEM);
        for (unsigned n = 0; n < 8; n++)
            send(&s, 1, n);
        for (unsigned n = 0; n < 8; n++)
            expect(s.cq[1], n < 2 ? 6 + n : 10 + n - 2, DOCK_OK);
        make_receiver(&s, 0);
        struct dock_qp_mod reset = {.mask = DOCK_MOD_STATE, .state = DOCK_RESET};
        dock_qp_modify(s.from[0].qp, &reset);
        connect_receiver(&s, 0);
    }
    close_shared(&s);
}

// ERR of one pair flushes only what it had taken: the posted receives stay, and the last-WQE event tells.
static void a_failed_queue_pair_leaves_the_receives_to_the_others(void **state)
{
    struct dock_qp_mod err = {.mask = DOCK_MOD_STATE, .state = DOCK_ERR};
    struct shared s;

    (void)state;
    open_shared(&s, 8, 0);
    for (uint64_t id = 0; id < 4; id++)
        post_recv(&s, id);
    send(&s, 0, 7);
    assert_int_equal(dock_qp_modify(s.qp[0], &err), 0);
    assert_true(event(&s, DOCK_EVENT_QP_LAST_WQE));
    expect(s.cq[0], 0, DOCK_OK); // received before
    expect_none(s.cq[0]);
    for (uint64_t id = 1; id < 4; id++) {
        send(&s, 1, 7);
        expect(s.cq[1], id, DOCK_OK);
    }
    close_shared(&s);
}

// ---- datagrams

#define QKEY 0x1234u

static void send_to(struct end *from, const struct end *to, uint32_t qkey, uint32_t len, uint32_t mark)
{
    struct dock_wr wr = {.op = DOCK_OP_SEND_IMM,
                         .sge = &sge,
                         .nsge = 1,
                         .flags = DOCK_F_COMPLETE,
                         .rkey = qkey,
                         .remote = dock_qp_number(to->qp),
                         .eid = test_eid,
                         .imm = mark};

    memset(from->mem, (int)mark, len);
    sge = (struct dock_sge){(uintptr_t)from->mem, len, from->mr->lkey};
    assert_int_equal(end_post(from, &wr), 0);
    expect(from->scq, 0, DOCK_OK); // whatever becomes of it
}

static void ipv4_header_is_valid(const uint8_t *ip, uint32_t payload)
{
    uint32_t sum = 0;

    for (unsigned i = 0; i < 20; i += 2)
        sum += (uint32_t)ip[i] << 8 | ip[i + 1];
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    assert_int_equal(sum, 0xffff);
    assert_int_equal(ip[0], 0x45);
    assert_int_equal(ip[9], 17);
    assert_int_equal(ip[2] << 8 | ip[3], payload + 28); // of IP and UDP
}

static void expect_datagram(struct end *to, uint64_t id, const struct end *from, uint32_t len, uint32_t mark)
{
    struct dock_wc wc;

    assert_true(end_wait(to->rcq, &wc, 10000 * slow_down()));
    assert_int_equal(wc.status, DOCK_OK);
    assert_int_equal(wc.id, id);
    assert_int_equal(wc.bytes, len + 40);
    assert_int_equal(wc.grh, 1);
    assert_int_equal(wc.src_qp, dock_qp_number(from->qp));
    assert_int_equal(wc.imm, mark);
    for (uint32_t i = 0; i < len; i++)
        assert_int_equal((uint8_t)to->mem[40 + i], mark);
    if (test_eid[10] == 0xff && test_eid[11] == 0xff)
        ipv4_header_is_valid((uint8_t *)to->mem + 20, len);
    else
        assert_int_equal((uint8_t)to->mem[0] >> 4, 6);
}

static bool find_ipv4(uint8_t eid[16])
{
    const struct dock_identity *me = dock_identity();
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

    for (uint32_t i = 0; i < me->gids; i++)
        if (!memcmp(me->gid[i].raw, mapped, 12)) {
            memcpy(eid, me->gid[i].raw, 16);
            return true;
        }
    return false;
}

// The way to another device is found by the first datagrams, which may be lost.
static void reach(struct end *from, struct end *to)
{
    struct timespec nap = {.tv_nsec = 1000000};

    assert_int_equal(end_recv(to, 77, to->mem, 48), 0);
    for (unsigned i = 0; i < 3000 && !dock_peek64(&to->qp->rec->messages_in); i++) {
        send_to(from, to, QKEY, 8, 200);
        nanosleep(&nap, NULL);
    }
    expect_datagram(to, 77, from, 8, 200);
}

static void some_datagrams(struct end *from, struct end to[2])
{
    static const uint32_t lens[] = {0, 1, 63, 1024, 4096};

    for (uint32_t n = 0; n < 20; n++) {
        struct end *t = &to[n % 2];
        uint32_t len = lens[n % 5];
        memset(t->mem, 0xee, 5000);
        assert_int_equal(end_recv(t, n, t->mem, len + 40), 0);
        send_to(from, t, QKEY, len, n + 1);
        expect_datagram(t, n, from, len, n + 1);
    }
}

static void one_queue_sends_datagrams_to_two_in_this_and_another_device(void **state)
{
    struct end_opts o = {.service = DOCK_UD};
    struct end from, to[2];
    struct dock_dev *other;

    (void)state;
    assert_int_equal(dock_dev_open(NULL, &other), 0);
    end_open(&from, dev, &o);
    end_open(&to[0], dev, &o);
    end_open(&to[1], other, &o);
    end_connect(&from, 0, NULL);
    end_connect(&to[0], 0, NULL);
    end_connect(&to[1], 0, NULL);
    reach(&from, &to[0]);
    reach(&from, &to[1]);
    some_datagrams(&from, to);
    if (find_ipv4(test_eid))
        some_datagrams(&from, to);
    end_close(&from);
    end_close(&to[0]);
    end_close(&to[1]);
    dock_dev_close(other);
}

static void what_a_datagram_queue_cannot_take_is_dropped_and_the_sender_does_not_learn(void **state)
{
    struct end_opts o = {.service = DOCK_UD};
    struct end from, to;
    uint64_t dropped;

    (void)state;
    end_open(&from, dev, &o);
    end_open(&to, dev, &o);
    end_connect(&from, 0, NULL);
    end_connect(&to, 0, NULL);
    dropped = dock_peek64(&dev->port->dropped);
    send_to(&from, &to, QKEY, 8, 1); // no receive
    assert_int_equal(dock_peek64(&dev->port->dropped), dropped + 1);
    assert_int_equal(end_recv(&to, 1, to.mem, 48), 0);
    send_to(&from, &to, QKEY + 1, 8, 1); // another key
    assert_int_equal(dock_peek64(&dev->port->dropped), dropped + 2);
    expect_none(to.rcq);
    send_to(&from, &to, QKEY, 8, 3); // the receive is still there
    expect_datagram(&to, 1, &from, 8, 3);
    assert_int_equal(dock_qp_state(from.qp), DOCK_RTS);
    assert_int_equal(dock_qp_state(to.qp), DOCK_RTS);
    end_close(&from);
    end_close(&to);
}

static void a_datagram_does_not_reach_a_queue_of_another_service(void **state)
{
    struct end_opts o = {.service = DOCK_UD}, rc = {0};
    struct end from, to;

    (void)state;
    end_open(&from, dev, &o);
    end_open(&to, dev, &rc);
    end_connect(&from, 0, NULL);
    end_connect(&to, dock_qp_number(from.qp), NULL); // with the same qkey
    assert_int_equal(end_recv(&to, 1, to.mem, 48), 0);
    send_to(&from, &to, QKEY, 8, 1);
    expect_none(to.rcq);
    end_close(&from);
    end_close(&to);
}

// A number is given again: datagrams are for the queue that has it now.
static void datagrams_reach_the_next_queue_of_a_number(void **state)
{
    struct end_opts o = {.service = DOCK_UD, .mem = 65536};
    struct end from, to;
    uint32_t number;
    unsigned tries = 0;

    (void)state;
    end_open(&from, dev, &o);
    end_open(&to, dev, &o);
    end_connect(&from, 0, NULL);
    end_connect(&to, 0, NULL);
    reach(&from, &to);
    number = dock_qp_number(to.qp);
    do {
        end_close(&to);
        end_open(&to, dev, &o);
    } while (dock_qp_number(to.qp) != number && ++tries < 5000);
    assert_int_equal(dock_qp_number(to.qp), number);
    end_connect(&to, 0, NULL);
    assert_int_equal(end_recv(&to, 5, to.mem, 48), 0);
    send_to(&from, &to, QKEY, 8, 6);
    expect_datagram(&to, 5, &from, 8, 6);
    end_close(&from);
    end_close(&to);
}

// More than the path carries, or what datagrams cannot be, is the sender's error; its queue goes on after
// that.
static void the_senders_own_mistakes_put_it_into_sqe(void **state)
{
    static const struct {
        uint8_t op;
        uint32_t len, status;
    } t[] = {{DOCK_OP_SEND, 4097, DOCK_ST_LOC_LEN},
             {DOCK_OP_WRITE, 8, DOCK_ST_LOC_QP_OP},
             {DOCK_OP_READ, 8, DOCK_ST_LOC_QP_OP}};
    struct end_opts o = {.service = DOCK_UD};
    struct dock_qp_mod rts = {.mask = DOCK_MOD_STATE, .state = DOCK_RTS};

    (void)state;
    for (unsigned i = 0; i < sizeof t / sizeof *t; i++) {
        struct end from, to;
        end_open(&from, dev, &o);
        end_open(&to, dev, &o);
        end_connect(&from, 0, NULL);
        end_connect(&to, 0, NULL);
        struct dock_wr wr = wr_onesided(t[i].op, &from, &sge, 0, t[i].len, to.mr, 0);
        wr.remote = dock_qp_number(to.qp);
        wr.eid = test_eid;
        assert_int_equal(end_post(&from, &wr), 0);
        expect(from.scq, 0, t[i].status);
        assert_int_equal(dock_qp_state(from.qp), DOCK_SQE);
        assert_int_equal(dock_qp_modify(from.qp, &rts), 0);
        end_recv(&to, 4, to.mem, 48);
        send_to(&from, &to, QKEY, 8, 5);
        expect_datagram(&to, 4, &from, 8, 5);
        end_close(&from);
        end_close(&to);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_queue_pairs_take_from_one_queue_in_the_order_of_posting),
        cmocka_unit_test(below_its_limit_it_tells_once),
        cmocka_unit_test(it_is_busy_while_queue_pairs_use_it),
        cmocka_unit_test(what_a_destroyed_queue_pair_had_taken_comes_back),
        cmocka_unit_test(a_failed_queue_pair_leaves_the_receives_to_the_others),
        cmocka_unit_test(one_queue_sends_datagrams_to_two_in_this_and_another_device),
        cmocka_unit_test(what_a_datagram_queue_cannot_take_is_dropped_and_the_sender_does_not_learn),
        cmocka_unit_test(a_datagram_does_not_reach_a_queue_of_another_service),
        cmocka_unit_test(datagrams_reach_the_next_queue_of_a_number),
        cmocka_unit_test(the_senders_own_mistakes_put_it_into_sqe),
    };

    return cmocka_run_group_tests_name("shared receive queues and datagrams", tests, setup, teardown);
}
