// SPDX-License-Identifier: MIT
// timeout: 120
// A thread that is cancelled leaves nothing locked behind. The request is made before the call, so that it is
// taken at the first point inside at which it can be: calls that do not wait are no points, and return; the
// others end a thread only where it waits.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "face/lib/cm.h"

static struct end near;
static struct rdma_event_channel *channel;
static const size_t sizes[] = {100, 4096, 65536, 1u << 20};

static void register_and_deregister(void)
{
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *p = mmap(NULL, sizes[i], PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        p[0] = 1;
        struct ibv_mr *mr = ibv_reg_mr(near.pd, p, sizes[i], FULL_ACCESS);
        CHECK(mr != NULL);
        CHECK_INT(ibv_dereg_mr(mr), 0);
        munmap(p, sizes[i]);
    }
}

static void make_and_destroy_queues(void)
{
    struct ibv_comp_channel *c = ibv_create_comp_channel(near.ctx);
    struct ibv_cq *cq = ibv_create_cq(near.ctx, 16, NULL, c, 0);
    struct ibv_qp_init_attr attr = {
        .send_cq = cq, .recv_cq = cq, .cap = {8, 8, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    struct ibv_srq_init_attr shared = {.attr = {.max_wr = 8, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(near.pd, &shared);
    struct ibv_qp *qp = ibv_create_qp(near.pd, &attr);

    CHECK(c && cq && srq && qp);
    CHECK_INT(ibv_destroy_qp(qp), 0);
    CHECK_INT(ibv_destroy_srq(srq), 0);
    CHECK_INT(ibv_destroy_cq(cq), 0);
    CHECK_INT(ibv_destroy_comp_channel(c), 0);
}

static void connect_two(void)
{
    struct end l, r;

    pair_open(&l, &r, NULL);
    pair_close(&l, &r);
}

static void open_and_close(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *c = list ? ibv_open_device(list[0]) : NULL;
    struct ibv_pd *pd = c ? ibv_alloc_pd(c) : NULL;

    CHECK(pd != NULL);
    ibv_free_device_list(list);
    CHECK_INT(ibv_dealloc_pd(pd), 0);
    CHECK_INT(ibv_close_device(c), 0);
}

static void make_and_destroy_ids(void)
{
    struct rdma_event_channel *c = cm_channel();
    struct rdma_cm_id *id = cm_new_id(c, RDMA_PS_TCP), *other = cm_new_id(c, RDMA_PS_UDP);

    CHECK_INT(rdma_bind_addr(id, cm_addr4("127.0.0.1", 0)), 0);
    CHECK_INT(rdma_listen(id, 1), 0);
    CHECK_INT(rdma_bind_addr(other, cm_addr4("127.0.0.1", 0)), 0);
    CHECK_INT(rdma_destroy_id(other), 0);
    CHECK_INT(rdma_destroy_id(id), 0);
    rdma_destroy_event_channel(c);
}

// The events stay for who takes them.
static void resolve(void)
{
    struct rdma_cm_id *id = cm_new_id(channel, RDMA_PS_TCP);

    CHECK_INT(rdma_resolve_addr(id, NULL, cm_addr4("127.0.0.1", 1), 2000), 0);
    CHECK_INT(rdma_destroy_id(id), 0);
}

static void (*const calls[])(void) = {register_and_deregister, make_and_destroy_queues, connect_two,
                                      open_and_close,          make_and_destroy_ids,    resolve};

static bool returned;

static void *call_once_cancelled(void *arg)
{
    void (*const *call)(void) = arg;

    pthread_cancel(pthread_self());
    (*call)();
    returned = true;
    pthread_testcancel();
    return NULL;
}

static void cancelled(void *(*body)(void *), void *arg)
{
    pthread_t t;
    void *end;

    CHECK_INT(pthread_create(&t, NULL, body, arg), 0);
    CHECK_INT(pthread_join(t, &end), 0);
    CHECK(end == PTHREAD_CANCELED);
}

static void calls_that_do_not_wait_return_first(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++) {
        returned = false;
        cancelled(call_once_cancelled, (void *)(uintptr_t)&calls[i]);
        CHECK(returned);
        for (unsigned k = 0; k < sizeof calls / sizeof *calls; k++)
            calls[k](); // nobody has a lock
    }
}

static void *wait_for_a_completion(void *arg)
{
    struct ibv_cq *cq;
    void *context;

    ibv_get_cq_event(arg, &cq, &context);
    return NULL;
}

static void *wait_for_an_event(void *arg)
{
    struct rdma_cm_event *e;

    rdma_get_cm_event(arg, &e);
    return NULL;
}

static void *wait_for_trouble(void *arg)
{
    struct ibv_async_event e;

    ibv_get_async_event(arg, &e);
    return NULL;
}

// One that waits already, and one that is to.
static void cancelled_at_its_wait(void *(*body)(void *), void *arg)
{
    pthread_t t;
    void *end;

    CHECK_INT(pthread_create(&t, NULL, body, arg), 0);
    usleep(20000);
    CHECK_INT(pthread_cancel(t), 0);
    CHECK_INT(pthread_join(t, &end), 0);
    CHECK(end == PTHREAD_CANCELED);
}

static void who_waits_for_an_event_ends_and_the_next_one_gets_it(void **state)
{
    struct ibv_comp_channel *c = ibv_create_comp_channel(near.ctx);
    struct ibv_cq *cq = ibv_create_cq(near.ctx, 16, NULL, c, 0), *got;
    void *context;
    struct end_options o = {0};
    struct end l, r;

    (void)state;
    cancelled_at_its_wait(wait_for_a_completion, c);
    cancelled_at_its_wait(wait_for_trouble, near.ctx);
    cancelled_at_its_wait(wait_for_an_event, channel);
    CHECK_INT(ibv_destroy_cq(cq), 0); // what it dropped for a reader that is gone is in nobody's way
    CHECK_INT(ibv_destroy_comp_channel(c), 0);

    o.channel = true;
    pair_open(&l, &r, &o);
    cancelled_at_its_wait(wait_for_a_completion, l.channel);
    CHECK_INT(ibv_req_notify_cq(l.cq, 0), 0);
    struct ibv_sge sge = end_sge(&l, 0, 8);
    struct ibv_send_wr wr = send_wr(1, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)r.buf, r.mr->rkey);
    CHECK_INT(post(&l, &wr), 0);
    CHECK_INT(ibv_get_cq_event(l.channel, &got, &context), 0);
    CHECK(got == l.cq);
    ibv_ack_cq_events(got, 1);
    pair_close(&l, &r);

    struct rdma_cm_id *id = cm_new_id(channel, RDMA_PS_TCP);
    CHECK_INT(rdma_resolve_addr(id, NULL, cm_addr4("127.0.0.1", 1), 2000), 0);
    cm_expect_ok(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
    CHECK_INT(rdma_destroy_id(id), 0);
}

static int open_all(void **state)
{
    (void)state;
    end_open(&near, NULL);
    channel = cm_channel();
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    rdma_destroy_event_channel(channel);
    end_close(&near);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_that_do_not_wait_return_first),
        cmocka_unit_test(who_waits_for_an_event_ends_and_the_next_one_gets_it),
    };

    return cmocka_run_group_tests(tests, open_all, close_all);
}
