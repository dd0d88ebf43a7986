// SPDX-License-Identifier: MIT
// C31 to C35, C07: completion channels, arming, acknowledging; asynchronous events.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "face/lib/counts.h"
#include "face/lib/ends.h"

static const struct end_options with_channel = {.channel = true};

static bool readable(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, ms) == 1;
}

static void write_one(struct end *l, struct end *r, uint64_t id)
{
    struct ibv_sge sge = end_sge(l, 0, 8);
    struct ibv_send_wr wr = send_wr(id, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)r->buf, r->mr->rkey);

    CHECK_INT(post(l, &wr), 0);
}

static void send_one(struct end *l, struct end *r, unsigned flags)
{
    struct ibv_sge sge = end_sge(l, 0, 8);
    struct ibv_send_wr wr = send_wr(1, IBV_WR_SEND, &sge, 0, 0);

    wr.send_flags |= flags;
    CHECK_INT(post_recv(r, 2, 0, 8), 0);
    CHECK_INT(post(l, &wr), 0);
    expect_wc(l->cq, 1, IBV_WC_SUCCESS, NULL);
}

// Take the event that must be there and acknowledge it.
static void take_event(struct end *e, struct ibv_cq *expected)
{
    struct ibv_cq *cq;
    void *context;

    CHECK(readable(e->channel->fd, 5000));
    CHECK_INT(ibv_get_cq_event(e->channel, &cq, &context), 0);
    CHECK(cq == expected);
    CHECK(context == e);
    uint32_t before = cq->comp_events_completed;
    ibv_ack_cq_events(cq, 1);
    CHECK_INT(cq->comp_events_completed, before + 1);
}

static void arm_then_complete_gives_one_event(void **state)
{
    struct end l, r;

    (void)state;
    pair_open(&l, &r, &with_channel);
    CHECK_INT(ibv_req_notify_cq(l.cq, 0), 0);
    CHECK(!readable(l.channel->fd, 10));
    write_one(&l, &r, 1);
    take_event(&l, l.cq);
    write_one(&l, &r, 2); // one shot: not armed again
    CHECK(!readable(l.channel->fd, 30));
    expect_wc(l.cq, 1, IBV_WC_SUCCESS, NULL);
    expect_wc(l.cq, 2, IBV_WC_SUCCESS, NULL);
    pair_close(&l, &r);
}

static void a_queue_that_is_not_armed_raises_nothing(void **state)
{
    struct end l, r;

    (void)state;
    pair_open(&l, &r, &with_channel);
    write_one(&l, &r, 1);
    expect_wc(l.cq, 1, IBV_WC_SUCCESS, NULL);
    CHECK(!readable(l.channel->fd, 30));
    pair_close(&l, &r);
}

// C31: a completion that is there when the queue is armed raises nothing; the next one does.
static void an_old_completion_raises_nothing(void **state)
{
    struct end l, r;

    (void)state;
    pair_open(&l, &r, &with_channel);
    write_one(&l, &r, 1);
    usleep(20000);
    CHECK_INT(ibv_req_notify_cq(l.cq, 0), 0);
    CHECK(!readable(l.channel->fd, 30));
    write_one(&l, &r, 2);
    take_event(&l, l.cq);
    expect_wc(l.cq, 1, IBV_WC_SUCCESS, NULL);
    expect_wc(l.cq, 2, IBV_WC_SUCCESS, NULL);
    pair_close(&l, &r);
}

// C32: each way of being noisy, and that who arms before he sleeps misses nothing.
static void c32_a_noisy_device_raises_events_that_nothing_stands_behind(void **state)
{
    struct ibv_wc wc;
    struct end l, r;
    unsigned empty = 0;

    (void)state;
    setenv("DRYDOCK_EVENTS", "noisy", 1);
    pair_open(&l, &r, &with_channel);
    unsetenv("DRYDOCK_EVENTS");
    for (unsigned i = 0; i < 16; i++) { // of an empty queue
        CHECK_INT(ibv_req_notify_cq(l.cq, 0), 0);
        if (!readable(l.channel->fd, 0)) {
            write_one(&l, &r, i);
            take_event(&l, l.cq);
            expect_wc(l.cq, i, IBV_WC_SUCCESS, NULL);
            continue;
        }
        take_event(&l, l.cq);
        CHECK(!poll_one(l.cq, &wc, 0));
        write_one(&l, &r, i);
        CHECK(!readable(l.channel->fd, 5)); // the arm is used up
        expect_wc(l.cq, i, IBV_WC_SUCCESS, NULL);
        empty++;
    }
    CHECK_INT(empty, 4);
    write_one(&l, &r, 100);
    CHECK(!readable(l.channel->fd, 20));
    CHECK_INT(ibv_req_notify_cq(l.cq, 0), 0); // of what is old
    take_event(&l, l.cq);
    expect_wc(l.cq, 100, IBV_WC_SUCCESS, NULL);
    CHECK(!readable(l.channel->fd, 5));
    pair_close(&l, &r);
}

static void solicited_only_waits_for_solicited_or_failed(void **state)
{
    struct ibv_wc wc;
    struct end l, r;

    (void)state;
    pair_open(&l, &r, &with_channel);
    CHECK_INT(ibv_req_notify_cq(r.rcq, 1), 0);
    send_one(&l, &r, 0);
    CHECK(!readable(r.channel->fd, 30));
    send_one(&l, &r, IBV_SEND_SOLICITED);
    take_event(&r, r.rcq);
    while (poll_one(r.rcq, &wc, 5))
        ;
    CHECK_INT(ibv_req_notify_cq(r.rcq, 1), 0);
    CHECK_INT(post_recv(&r, 3, 0, 8), 0);
    end_to(&r, IBV_QPS_ERR); // the flush is a failed completion
    take_event(&r, r.rcq);
    pair_close(&l, &r);
}

static void a_channel_can_be_non_blocking(void **state)
{
    struct ibv_cq *cq;
    void *context;
    struct end e;

    (void)state;
    end_open(&e, &with_channel);
    CHECK_INT(fcntl(e.channel->fd, F_SETFL, fcntl(e.channel->fd, F_GETFL) | O_NONBLOCK), 0);
    errno = 0;
    CHECK_INT(ibv_get_cq_event(e.channel, &cq, &context), -1);
    CHECK_INT(errno, EAGAIN);
    end_close(&e);
}

static void a_blocked_reader_is_woken(void **state)
{
    struct end l, r;

    (void)state;
    pair_open(&l, &r, &with_channel);
    for (unsigned round = 0; round < 100; round++) {
        CHECK_INT(ibv_req_notify_cq(r.rcq, 0), 0);
        send_one(&l, &r, 0);
        struct ibv_cq *cq;
        void *context;
        CHECK_INT(ibv_get_cq_event(r.channel, &cq, &context), 0);
        ibv_ack_cq_events(cq, 1);
        expect_wc(r.rcq, 2, IBV_WC_SUCCESS, NULL);
    }
    pair_close(&l, &r);
}

// C33: two taken, one acknowledged: destroy waits for the other.
struct destroyer {
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    _Atomic int done;
};

static void *destroy_cq(void *arg)
{
    struct destroyer *d = arg;

    if (!ibv_destroy_cq(d->cq))
        atomic_store(&d->done, 1);
    return NULL;
}

static void destroy_waits_for_the_last_acknowledge(void **state)
{
    struct destroyer d = {0};
    struct end l, r;
    pthread_t thread;
    struct ibv_cq *cq;
    void *context;

    (void)state;
    pair_open(&l, &r, &with_channel);
    for (unsigned i = 1; i <= 2; i++) {
        CHECK_INT(ibv_req_notify_cq(l.cq, 0), 0);
        write_one(&l, &r, i);
        CHECK_INT(ibv_get_cq_event(l.channel, &cq, &context), 0);
    }
    ibv_ack_cq_events(l.cq, 1);
    CHECK_INT(ibv_destroy_qp(l.qp), 0);
    l.qp = NULL;
    d.cq = l.cq;
    CHECK_INT(pthread_create(&thread, NULL, destroy_cq, &d), 0);
    usleep(100000);
    CHECK_INT(atomic_load(&d.done), 0);
    ibv_ack_cq_events(l.cq, 1);
    CHECK_INT(pthread_join(thread, NULL), 0);
    CHECK_INT(atomic_load(&d.done), 1);
    l.cq = ibv_create_cq(l.ctx, 4, NULL, NULL, 0);
    pair_close(&l, &r);
}

static void too_many_acknowledges_are_ignored(void **state)
{
    struct end e;

    (void)state;
    end_open(&e, &with_channel);
    ibv_ack_cq_events(e.cq, 5); // nothing was taken: destroy below must neither crash nor hang
    end_close(&e);
}

// ---- asynchronous events

static void no_event_is_eagain_when_non_blocking(void **state)
{
    struct ibv_async_event event;
    struct end e;

    (void)state;
    end_open(&e, NULL);
    CHECK_INT(fcntl(e.ctx->async_fd, F_SETFL, fcntl(e.ctx->async_fd, F_GETFL) | O_NONBLOCK), 0);
    errno = 0;
    CHECK_INT(ibv_get_async_event(e.ctx, &event), -1);
    CHECK_INT(errno, EAGAIN);
    end_close(&e);
}

static void a_bad_key_is_an_access_event_at_the_responder(void **state)
{
    struct ibv_async_event event;
    struct end l, r;

    (void)state;
    pair_open(&l, &r, NULL);
    struct ibv_sge sge = end_sge(&l, 0, 8);
    struct ibv_send_wr wr = send_wr(1, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)r.buf, r.mr->lkey);
    CHECK_INT(post(&l, &wr), 0);
    expect_wc(l.cq, 1, IBV_WC_REM_ACCESS_ERR, NULL);
    CHECK(readable(r.ctx->async_fd, 5000));
    CHECK_INT(ibv_get_async_event(r.ctx, &event), 0);
    CHECK_INT(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
    CHECK(event.element.qp == r.qp);
    ibv_ack_async_event(&event);
    CHECK_INT(r.qp->events_completed, 1);
    CHECK(!readable(l.ctx->async_fd, 20));
    pair_close(&l, &r);
}

static void moderate(struct end *e, uint16_t count, uint16_t period_us)
{
    struct ibv_modify_cq_attr attr = {.attr_mask = IBV_CQ_ATTR_MODERATE,
                                      .moderate = {.cq_count = count, .cq_period = period_us}};

    CHECK_INT(ibv_modify_cq(e->cq, &attr), 0);
}

static void an_invalid_request_is_an_event_at_the_responder(void **state)
{
    struct ibv_async_event event;
    struct end l, r;

    (void)state;
    pair_open(&l, &r, NULL);
    struct ibv_sge sge = end_sge(&l, 0, 8);
    struct ibv_send_wr wr = send_wr(1, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, 0, 0);
    wr.wr.atomic.remote_addr = (uintptr_t)r.buf + 1; // across words
    wr.wr.atomic.rkey = r.mr->rkey;
    CHECK_INT(post(&l, &wr), 0);
    expect_wc(l.cq, 1, IBV_WC_REM_INV_REQ_ERR, NULL);
    CHECK(readable(r.ctx->async_fd, 5000));
    CHECK_INT(ibv_get_async_event(r.ctx, &event), 0);
    CHECK_INT(event.event_type, IBV_EVENT_QP_REQ_ERR);
    CHECK(event.element.qp == r.qp);
    ibv_ack_async_event(&event);
    pair_close(&l, &r);
}

// A queue in RTR that is reached learns that its peer is there; once.
static void the_first_message_to_a_queue_in_rtr_is_told(void **state)
{
    struct end_address left, right;
    struct ibv_async_event event;
    struct end l, r;

    (void)state;
    end_open(&l, NULL);
    end_open(&r, NULL);
    left = end_address(&l);
    right = end_address(&r);
    end_to_rtr(&r, &left);
    end_to_rts(&l, &right);
    struct ibv_sge sge = end_sge(&l, 0, 8);
    struct ibv_send_wr wr = send_wr(1, IBV_WR_RDMA_WRITE_WITH_IMM, &sge, right.addr, right.rkey);
    for (int i = 0; i < 2; i++) {
        CHECK_INT(post_recv(&r, 2, 0, 0), 0);
        CHECK_INT(post(&l, &wr), 0);
        expect_wc(l.cq, 1, IBV_WC_SUCCESS, NULL);
        expect_wc(r.rcq, 2, IBV_WC_SUCCESS, NULL);
        CHECK(readable(r.ctx->async_fd, i ? 50 : 5000) == !i);
        if (i)
            break;
        CHECK_INT(ibv_get_async_event(r.ctx, &event), 0);
        CHECK_INT(event.event_type, IBV_EVENT_COMM_EST);
        CHECK(event.element.qp == r.qp);
        ibv_ack_async_event(&event);
    }
    pair_close(&l, &r);
}

// An event after so many completions or so long after the first, whichever is earlier; at once when switched
// off.
static void events_are_moderated(void **state)
{
    struct end l, r;

    (void)state;
    pair_open(&l, &r, &with_channel);
    moderate(&l, 3, 0);
    CHECK_INT(ibv_req_notify_cq(l.cq, 0), 0);
    write_one(&l, &r, 1);
    write_one(&l, &r, 2);
    CHECK(!readable(l.channel->fd, 5));
    write_one(&l, &r, 3);
    take_event(&l, l.cq);
    for (unsigned i = 1; i <= 3; i++)
        expect_wc(l.cq, i, IBV_WC_SUCCESS, NULL);
    moderate(&l, 100, 20000);
    CHECK_INT(ibv_req_notify_cq(l.cq, 0), 0);
    write_one(&l, &r, 4);
    take_event(&l, l.cq); // by the period: no hundred will come
    moderate(&l, 100, 0);
    expect_wc(l.cq, 4, IBV_WC_SUCCESS, NULL);
    CHECK_INT(ibv_req_notify_cq(l.cq, 0), 0);
    write_one(&l, &r, 5);
    CHECK(!readable(l.channel->fd, 5));
    moderate(&l, 0, 0); // what is held is due
    take_event(&l, l.cq);
    pair_close(&l, &r);
}

// C07, strict: an overrun is fatal to the queue and told once.
static void an_overrun_is_one_cq_err(void **state)
{
    struct end_options opt = {.cqe = 2};
    struct ibv_async_event event;
    struct ibv_wc wc;
    struct end l, r;
    int n;

    (void)state;
    pair_open(&l, &r, &opt);
    for (unsigned i = 1; i <= 3; i++)
        write_one(&l, &r, i);
    CHECK(readable(l.ctx->async_fd, 5000));
    CHECK_INT(ibv_get_async_event(l.ctx, &event), 0);
    CHECK_INT(event.event_type, IBV_EVENT_CQ_ERR);
    CHECK(event.element.cq == l.cq);
    ibv_ack_async_event(&event);
    CHECK_INT(l.cq->async_events_completed, 1);
    for (unsigned i = 0; i < 4; i++) // old completions may come, then the queue says that it is broken
        if ((n = ibv_poll_cq(l.cq, 1, &wc)) < 0)
            break;
    CHECK(n < 0);
    while (readable(l.ctx->async_fd, 20)) { // of the queue pair, not a second one of the CQ
        CHECK_INT(ibv_get_async_event(l.ctx, &event), 0);
        CHECK(event.event_type != IBV_EVENT_CQ_ERR);
        ibv_ack_async_event(&event);
    }
    pair_close(&l, &r);
}

// C08: a CQ that may overrun loses the oldest completions, says nothing, and everything goes on.
static void c08_a_cq_that_may_overrun_keeps_the_newest(void **state)
{
    struct ibv_cq_init_attr_ex may = {
        .cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS, .flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN};
    struct end_address al, ar;
    struct end l, r;

    (void)state;
    end_open(&l, NULL);
    end_open(&r, NULL);
    struct ibv_qp_init_attr attr = {
        .recv_cq = l.rcq, .cap = {16, 16, 1, 1, 0}, .qp_type = IBV_QPT_RC, .qp_context = &l};
    CHECK_INT(ibv_destroy_qp(l.qp), 0);
    CHECK_INT(ibv_destroy_cq(l.cq), 0);
    l.cq = ibv_cq_ex_to_cq(ibv_create_cq_ex(l.ctx, &may));
    CHECK(l.cq != NULL);
    CHECK_INT(l.cq->cqe, 4);
    attr.send_cq = l.cq;
    l.qp = ibv_create_qp(l.pd, &attr);
    CHECK(l.qp != NULL);
    al = end_address(&l);
    ar = end_address(&r);
    end_to_rts(&l, &ar);
    end_to_rts(&r, &al);
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 1; i <= 6; i++)
            write_one(&l, &r, i);
        for (unsigned ms = 0; face_executed(l.qp) < 6 * (round + 1) && ms < 5000; ms++)
            usleep(1000);
        CHECK_INT(face_executed(l.qp), 6 * (round + 1));
        for (unsigned i = 3; i <= 6; i++)
            expect_wc(l.cq, i, IBV_WC_SUCCESS, NULL);
        expect_empty(l.cq, 5);
    }
    CHECK(!readable(l.ctx->async_fd, 20));
    CHECK_INT(end_state(&l), IBV_QPS_RTS);
    pair_close(&l, &r);
}

static void an_srq_tells_once_that_it_fell_below_its_limit(void **state)
{
    struct end_options opt = {.srq = true};
    struct ibv_srq_attr attr = {.srq_limit = 3};
    struct ibv_async_event event;
    struct end l, r;

    (void)state;
    pair_open(&l, &r, &opt);
    for (unsigned i = 0; i < 4; i++)
        CHECK_INT(post_recv(&r, i, 0, 8), 0);
    CHECK_INT(ibv_modify_srq(r.srq, &attr, IBV_SRQ_LIMIT), 0);
    struct ibv_sge sge = end_sge(&l, 0, 8);
    struct ibv_send_wr wr = send_wr(1, IBV_WR_SEND, &sge, 0, 0);
    CHECK_INT(post(&l, &wr), 0); // 3 left: not below
    expect_wc(l.cq, 1, IBV_WC_SUCCESS, NULL);
    CHECK(!readable(r.ctx->async_fd, 30));
    CHECK_INT(post(&l, &wr), 0); // 2 left
    expect_wc(l.cq, 1, IBV_WC_SUCCESS, NULL);
    CHECK(readable(r.ctx->async_fd, 5000));
    CHECK_INT(ibv_get_async_event(r.ctx, &event), 0);
    CHECK_INT(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
    CHECK(event.element.srq == r.srq);
    ibv_ack_async_event(&event);
    CHECK_INT(r.srq->events_completed, 1);
    CHECK_INT(ibv_query_srq(r.srq, &attr), 0);
    CHECK_INT(attr.srq_limit, 0); // no longer armed
    CHECK_INT(post(&l, &wr), 0);
    expect_wc(l.cq, 1, IBV_WC_SUCCESS, NULL);
    CHECK(!readable(r.ctx->async_fd, 30));
    pair_close(&l, &r);
}

static void the_last_wqe_of_a_queue_with_srq_is_told(void **state)
{
    struct end_options opt = {.srq = true};
    struct ibv_async_event event;
    struct end l, r;

    (void)state;
    pair_open(&l, &r, &opt);
    end_to(&r, IBV_QPS_ERR);
    CHECK(readable(r.ctx->async_fd, 5000));
    CHECK_INT(ibv_get_async_event(r.ctx, &event), 0);
    CHECK_INT(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
    CHECK(event.element.qp == r.qp);
    ibv_ack_async_event(&event);
    pair_close(&l, &r);
}

static void *destroy_qp(void *arg)
{
    struct destroyer *d = arg;

    if (!ibv_destroy_qp(d->qp))
        atomic_store(&d->done, 1);
    return NULL;
}

static void a_send_queue_that_was_drained_is_told(void **state)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
    struct ibv_async_event event;
    struct end l, r;

    (void)state;
    pair_open(&l, &r, NULL);
    CHECK_INT(ibv_modify_qp(l.qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
    CHECK(readable(l.ctx->async_fd, 5000));
    CHECK_INT(ibv_get_async_event(l.ctx, &event), 0);
    CHECK_INT(event.event_type, IBV_EVENT_SQ_DRAINED);
    CHECK(event.element.qp == l.qp);
    ibv_ack_async_event(&event);
    attr.en_sqd_async_notify = 0; // and who does not ask is not told
    CHECK_INT(ibv_modify_qp(r.qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
    CHECK(!readable(r.ctx->async_fd, 50));
    pair_close(&l, &r);
}

// C35: several events in one wake-up; each blocks the destruction of its own object until acknowledged.
static void a_burst_of_events_is_read_one_by_one(void **state)
{
    enum { N = 10 };
    struct ibv_async_event event[N];
    struct destroyer d = {0};
    struct end l[N], r[N];
    pthread_t thread;

    (void)state;
    for (unsigned i = 0; i < N; i++) {
        pair_open(&l[i], &r[i], NULL);
        struct ibv_sge sge = end_sge(&l[i], 0, 8);
        struct ibv_send_wr wr = send_wr(i, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)r[i].buf, r[i].mr->lkey);
        CHECK_INT(post(&l[i], &wr), 0);
        expect_wc(l[i].cq, i, IBV_WC_REM_ACCESS_ERR, NULL);
    }
    for (unsigned i = 0; i < N; i++) {
        CHECK(readable(r[i].ctx->async_fd, 5000));
        CHECK_INT(ibv_get_async_event(r[i].ctx, &event[i]), 0);
    }
    d.qp = r[3].qp;
    CHECK_INT(pthread_create(&thread, NULL, destroy_qp, &d), 0);
    usleep(50000);
    CHECK_INT(atomic_load(&d.done), 0);
    for (unsigned i = 0; i < N; i++)
        ibv_ack_async_event(&event[i]);
    CHECK_INT(pthread_join(thread, NULL), 0);
    CHECK_INT(atomic_load(&d.done), 1);
    r[3].qp = NULL;
    for (unsigned i = 0; i < N; i++)
        pair_close(&l[i], &r[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arm_then_complete_gives_one_event),
        cmocka_unit_test(a_queue_that_is_not_armed_raises_nothing),
        cmocka_unit_test(an_old_completion_raises_nothing),
        cmocka_unit_test(c32_a_noisy_device_raises_events_that_nothing_stands_behind),
        cmocka_unit_test(solicited_only_waits_for_solicited_or_failed),
        cmocka_unit_test(a_channel_can_be_non_blocking),
        cmocka_unit_test(a_blocked_reader_is_woken),
        cmocka_unit_test(destroy_waits_for_the_last_acknowledge),
        cmocka_unit_test(too_many_acknowledges_are_ignored),
        cmocka_unit_test(no_event_is_eagain_when_non_blocking),
        cmocka_unit_test(a_bad_key_is_an_access_event_at_the_responder),
        cmocka_unit_test(an_invalid_request_is_an_event_at_the_responder),
        cmocka_unit_test(the_first_message_to_a_queue_in_rtr_is_told),
        cmocka_unit_test(events_are_moderated),
        cmocka_unit_test(an_overrun_is_one_cq_err),
        cmocka_unit_test(c08_a_cq_that_may_overrun_keeps_the_newest),
        cmocka_unit_test(an_srq_tells_once_that_it_fell_below_its_limit),
        cmocka_unit_test(the_last_wqe_of_a_queue_with_srq_is_told),
        cmocka_unit_test(a_send_queue_that_was_drained_is_told),
        cmocka_unit_test(a_burst_of_events_is_read_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
