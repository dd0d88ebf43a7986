// SPDX-License-Identifier: MIT
// ibv_resize_cq: what stands stays, in order; exactly the new depth fits; a refusal changes nothing; peers
// that complete into the queue meanwhile lose nothing.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>

#include "face/lib/ends.h"

enum { DEEP = 64 };

static const struct end_options deep = {.send_wr = DEEP, .recv_wr = DEEP, .cqe = DEEP};

static void write_one(struct end *l, struct end *r, uint64_t id)
{
    struct ibv_sge sge = end_sge(l, 0, 8);
    struct ibv_send_wr wr = send_wr(id, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)r->buf, r->mr->rkey);

    CHECK_INT(post(l, &wr), 0);
}

static void what_stands_stays_in_order(void **state)
{
    // Sizes up and down, across powers of two, at positions that wrap.
    static const int size[] = {5, 64, 7, 8, 9, 33, 5, 64};
    uint64_t next = 0, polled = 0;
    struct end l, r;

    (void)state;
    pair_open(&l, &r, &deep);
    for (unsigned round = 0; round < 40; round++) {
        for (unsigned i = 0; i < 5; i++)
            write_one(&l, &r, next++);
        CHECK_INT(ibv_resize_cq(l.cq, size[round % 8]), 0);
        CHECK_INT(l.cq->cqe, size[round % 8]);
        while (polled < next)
            expect_wc(l.cq, polled++, IBV_WC_SUCCESS, NULL);
        expect_empty(l.cq, 0);
    }
    pair_close(&l, &r);
}

static void exactly_the_new_depth_fits(void **state)
{
    struct ibv_async_event event;
    struct ibv_wc wc;
    struct end l, r;

    (void)state;
    pair_open(&l, &r, &deep);
    CHECK_INT(ibv_resize_cq(l.cq, 3), 0);
    for (unsigned i = 0; i < 3; i++)
        write_one(&l, &r, i);
    for (unsigned i = 0; i < 3; i++)
        expect_wc(l.cq, i, IBV_WC_SUCCESS, NULL);
    CHECK_INT(ibv_resize_cq(l.cq, 5), 0);
    for (unsigned i = 0; i < 6; i++)
        write_one(&l, &r, i);
    CHECK_INT(ibv_get_async_event(l.ctx, &event), 0);
    CHECK_INT(event.event_type, IBV_EVENT_CQ_ERR);
    ibv_ack_async_event(&event);
    for (unsigned i = 0; i < 5; i++)
        expect_wc(l.cq, i, IBV_WC_SUCCESS, NULL);
    CHECK(ibv_poll_cq(l.cq, 1, &wc) < 0);
    pair_close(&l, &r);
}

static void a_refusal_changes_nothing(void **state)
{
    struct ibv_device_attr device;
    struct end l, r;

    (void)state;
    pair_open(&l, &r, &deep);
    CHECK_INT(ibv_query_device(l.ctx, &device), 0);
    for (unsigned i = 0; i < 4; i++)
        write_one(&l, &r, i);
    CHECK_INT(ibv_resize_cq(l.cq, 3), EINVAL); // four stand there
    CHECK_INT(ibv_resize_cq(l.cq, 0), EINVAL);
    CHECK_INT(ibv_resize_cq(l.cq, device.max_cqe + 1), EINVAL);
    CHECK_INT(l.cq->cqe, DEEP);
    CHECK_INT(ibv_resize_cq(l.cq, 4), 0);
    for (unsigned i = 0; i < 4; i++)
        expect_wc(l.cq, i, IBV_WC_SUCCESS, NULL);
    pair_close(&l, &r);
}

static void an_arm_survives(void **state)
{
    static const struct end_options with_channel = {.channel = true};
    struct ibv_cq *cq;
    struct end l, r;
    void *context;

    (void)state;
    pair_open(&l, &r, &with_channel);
    CHECK_INT(ibv_req_notify_cq(l.cq, 0), 0);
    CHECK_INT(ibv_resize_cq(l.cq, 40), 0);
    write_one(&l, &r, 1);
    CHECK_INT(ibv_get_cq_event(l.channel, &cq, &context), 0);
    ibv_ack_cq_events(cq, 1);
    expect_wc(l.cq, 1, IBV_WC_SUCCESS, NULL);
    pair_close(&l, &r);
}

struct resizer {
    struct ibv_cq *cq;
    atomic_bool stop;
};

static void *resize_on(void *arg)
{
    struct resizer *z = arg;

    for (unsigned i = 0; !atomic_load(&z->stop); i++)
        CHECK_INT(ibv_resize_cq(z->cq, i & 1 ? DEEP : 2 * DEEP + 1), 0);
    return NULL;
}

// The sender completes into the receiver's CQ while that is resized by another thread.
static void a_peer_that_completes_meanwhile_loses_nothing(void **state)
{
    struct resizer z = {0};
    struct ibv_sge sge;
    pthread_t thread;
    struct ibv_wc wc;
    struct end l, r;

    (void)state;
    pair_open(&l, &r, &deep);
    z.cq = r.rcq;
    CHECK_INT(pthread_create(&thread, NULL, resize_on, &z), 0);
    for (uint64_t i = 0; i < 2000; i++) {
        struct ibv_send_wr wr = send_wr(i, IBV_WR_SEND_WITH_IMM, &sge, 0, 0);
        sge = end_sge(&l, 0, 8);
        wr.imm_data = htobe32((uint32_t)i);
        CHECK_INT(post_recv(&r, i, 0, 8), 0);
        CHECK_INT(post(&l, &wr), 0);
        expect_wc(l.cq, i, IBV_WC_SUCCESS, NULL);
        expect_wc(r.rcq, i, IBV_WC_SUCCESS, &wc);
        CHECK_INT(be32toh(wc.imm_data), i);
    }
    atomic_store(&z.stop, true);
    CHECK_INT(pthread_join(thread, NULL), 0);
    pair_close(&l, &r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_stands_stays_in_order),
        cmocka_unit_test(exactly_the_new_depth_fits),
        cmocka_unit_test(a_refusal_changes_nothing),
        cmocka_unit_test(an_arm_survives),
        cmocka_unit_test(a_peer_that_completes_meanwhile_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
