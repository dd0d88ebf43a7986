// SPDX-License-Identifier: MIT
// XRC: an initiator, a target and the shared receive queues that requests name; their domain.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "face/lib/xrc.h"

enum { BYTES = 8192, SRQS = 2 };

// One process is both sides: an initiator on the left; a target, two shared queues with domains and memory of
// their own on the right.
struct xrc {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    char *buf;
    struct ibv_qp *ini, *tgt;
    struct ibv_xrcd *xrcd;
    struct {
        struct ibv_pd *pd;
        struct ibv_cq *cq;
        struct ibv_mr *mr;
        char *buf;
        struct ibv_srq *srq;
        uint32_t number;
    } right[SRQS];
};

static void open_right(struct xrc *x, unsigned i)
{
    x->right[i].pd = ibv_alloc_pd(x->ctx);
    x->right[i].cq = ibv_create_cq(x->ctx, 16, NULL, NULL, 0);
    x->right[i].buf = calloc(1, BYTES);
    x->right[i].mr = ibv_reg_mr(x->right[i].pd, x->right[i].buf, BYTES, FULL_ACCESS);
    CHECK(x->right[i].pd && x->right[i].cq && x->right[i].mr);
    x->right[i].srq = xrc_srq(x->right[i].pd, x->xrcd, x->right[i].cq, &x->right[i].number);
}

// With a target of somebody else's, or, NULL, of its own.
static void open_all_in(struct xrc *x, struct ibv_xrcd *xrcd, struct ibv_qp *tgt)
{
    *x = (struct xrc){.ctx = xrcd->context, .xrcd = xrcd};
    x->pd = ibv_alloc_pd(x->ctx);
    x->cq = ibv_create_cq(x->ctx, 16, NULL, NULL, 0);
    x->buf = calloc(1, BYTES);
    x->mr = ibv_reg_mr(x->pd, x->buf, BYTES, FULL_ACCESS);
    CHECK(x->pd && x->cq && x->mr);
    for (unsigned i = 0; i < SRQS; i++)
        open_right(x, i);
    x->ini = xrc_initiator(x->pd, x->cq);
    x->tgt = tgt ? tgt : xrc_target(x->xrcd);
    xrc_connect(x->tgt, x->ini->qp_num);
    xrc_connect(x->ini, x->tgt->qp_num);
}

static void open_all_of_file(struct xrc *x, int fd)
{
    struct ibv_xrcd *xrcd = xrc_domain(open_device(), fd, O_CREAT);

    CHECK(xrcd != NULL);
    open_all_in(x, xrcd, NULL);
}

static void open_all(struct xrc *x)
{
    open_all_of_file(x, -1);
}

static void close_right(struct xrc *x, unsigned i)
{
    if (x->right[i].srq)
        CHECK_INT(ibv_destroy_srq(x->right[i].srq), 0);
    CHECK_INT(ibv_dereg_mr(x->right[i].mr), 0);
    CHECK_INT(ibv_destroy_cq(x->right[i].cq), 0);
    CHECK_INT(ibv_dealloc_pd(x->right[i].pd), 0);
    free(x->right[i].buf);
}

// The domain as well: whose target it is has opened it once more.
static void close_all_but_target(struct xrc *x)
{
    CHECK_INT(ibv_destroy_qp(x->ini), 0);
    for (unsigned i = 0; i < SRQS; i++)
        close_right(x, i);
    CHECK_INT(ibv_close_xrcd(x->xrcd), 0);
    CHECK_INT(ibv_dereg_mr(x->mr), 0);
    CHECK_INT(ibv_destroy_cq(x->cq), 0);
    CHECK_INT(ibv_dealloc_pd(x->pd), 0);
    free(x->buf);
}

static void close_all(struct xrc *x)
{
    CHECK_INT(ibv_close_xrcd(x->xrcd), EBUSY);
    CHECK_INT(ibv_destroy_qp(x->tgt), 0);
    close_all_but_target(x);
    CHECK_INT(ibv_close_device(x->ctx), 0);
}

static void post_right(struct xrc *x, unsigned i, uint64_t id)
{
    struct ibv_sge sge = {.addr = (uintptr_t)x->right[i].buf, .length = 64, .lkey = x->right[i].mr->lkey};
    struct ibv_recv_wr *bad, wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1};

    CHECK_INT(ibv_post_srq_recv(x->right[i].srq, &wr, &bad), 0);
}

// A request of `op` for shared queue `number`, with the memory of right side `i`.
static void request(struct xrc *x, uint64_t id, enum ibv_wr_opcode op, uint32_t number, unsigned i)
{
    struct ibv_sge sge = {.addr = (uintptr_t)x->buf, .length = 8, .lkey = x->mr->lkey};
    struct ibv_send_wr *bad, wr = send_wr(id, op, &sge, (uintptr_t)x->right[i].buf, x->right[i].mr->rkey);

    if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = (uintptr_t)x->right[i].buf;
        wr.wr.atomic.rkey = x->right[i].mr->rkey;
        wr.wr.atomic.compare_add = 5;
    }
    wr.imm_data = htobe32(77);
    wr.qp_type.xrc.remote_srqn = number;
    CHECK_INT(ibv_post_send(x->ini, &wr, &bad), 0);
}

static void a_message_is_for_the_queue_that_it_names(void **state)
{
    struct ibv_wc wc;
    struct xrc x;

    (void)state;
    open_all(&x);
    for (unsigned round = 0; round < 6; round++) {
        unsigned i = round & 1;
        post_right(&x, i, 100 + round);
        memset(x.buf, (int)(round + 1), 8);
        request(&x, round, IBV_WR_SEND_WITH_IMM, x.right[i].number, i);
        expect_wc(x.cq, round, IBV_WC_SUCCESS, &wc);
        expect_wc(x.right[i].cq, 100 + round, IBV_WC_SUCCESS, &wc);
        CHECK_INT(wc.qp_num, x.tgt->qp_num);
        CHECK_INT(wc.src_qp, x.ini->qp_num);
        CHECK_INT(wc.opcode, IBV_WC_RECV);
        CHECK_INT(wc.byte_len, 8);
        CHECK_INT(be32toh(wc.imm_data), 77);
        CHECK_INT(x.right[i].buf[7], round + 1);
        expect_empty(x.right[!i].cq, 0);
    }
    close_all(&x);
}

static void memory_is_reached_by_the_domain_of_the_named_queue(void **state)
{
    uint64_t word;
    struct xrc x;

    (void)state;
    open_all(&x);
    for (unsigned i = 0; i < SRQS; i++) {
        memset(x.buf, 0x5a, 8);
        request(&x, 1, IBV_WR_RDMA_WRITE, x.right[i].number, i);
        expect_wc(x.cq, 1, IBV_WC_SUCCESS, NULL);
        CHECK_INT(x.right[i].buf[7], 0x5a);
        memset(x.right[i].buf, 0, 8);
        request(&x, 2, IBV_WR_ATOMIC_FETCH_AND_ADD, x.right[i].number, i);
        expect_wc(x.cq, 2, IBV_WC_SUCCESS, NULL);
        memcpy(&word, x.right[i].buf, 8);
        CHECK_INT(word, 5);
        request(&x, 3, IBV_WR_RDMA_READ, x.right[i].number, i);
        expect_wc(x.cq, 3, IBV_WC_SUCCESS, NULL);
        CHECK_INT(x.buf[0], 5);
    }
    request(&x, 4, IBV_WR_RDMA_WRITE, x.right[0].number, 1); // the key of the other domain
    expect_wc(x.cq, 4, IBV_WC_REM_ACCESS_ERR, NULL);
    CHECK_INT(xrc_state(x.ini), IBV_QPS_ERR);
    CHECK(xrc_becomes(x.tgt, IBV_QPS_ERR));
    close_all(&x);
}

static void a_write_with_immediate_takes_a_receive(void **state)
{
    struct ibv_wc wc;
    struct xrc x;

    (void)state;
    open_all(&x);
    post_right(&x, 1, 9);
    request(&x, 1, IBV_WR_RDMA_WRITE_WITH_IMM, x.right[1].number, 1);
    expect_wc(x.cq, 1, IBV_WC_SUCCESS, NULL);
    expect_wc(x.right[1].cq, 9, IBV_WC_SUCCESS, &wc);
    CHECK_INT(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    close_all(&x);
}

// No such queue, one of another XRC domain, one that is gone: an invalid request, and both queues in error.
static void a_queue_that_is_not_of_the_domain_is_an_invalid_request(void **state)
{
    (void)state;
    for (unsigned what = 0; what < 3; what++) {
        struct ibv_xrcd *other;
        struct ibv_srq *srq;
        struct xrc x;
        uint32_t number;
        open_all(&x);
        other = xrc_domain(x.ctx, -1, O_CREAT);
        CHECK(other != NULL);
        srq = xrc_srq(x.right[0].pd, other, x.right[0].cq, &number);
        if (what == 1)
            number = x.tgt->qp_num;
        if (what == 2) {
            number = x.right[1].number;
            request(&x, 1, IBV_WR_RDMA_WRITE, number, 1); // known before it goes
            expect_wc(x.cq, 1, IBV_WC_SUCCESS, NULL);
            CHECK_INT(ibv_destroy_srq(x.right[1].srq), 0);
            x.right[1].srq = NULL;
        }
        request(&x, 2, IBV_WR_SEND, number, 0);
        expect_wc(x.cq, 2, IBV_WC_REM_INV_REQ_ERR, NULL);
        CHECK(xrc_becomes(x.tgt, IBV_QPS_ERR));
        CHECK_INT(ibv_destroy_srq(srq), 0);
        CHECK_INT(ibv_close_xrcd(other), 0);
        close_all(&x);
    }
}

static void many_connections_share_one_queue(void **state)
{
    struct ibv_qp *ini, *tgt;
    struct ibv_wc wc;
    struct xrc x;
    uint32_t seen = 0;

    (void)state;
    open_all(&x);
    ini = xrc_initiator(x.pd, x.cq);
    tgt = xrc_target(x.xrcd);
    xrc_connect(tgt, ini->qp_num);
    xrc_connect(ini, tgt->qp_num);
    for (unsigned i = 0; i < 4; i++) {
        struct ibv_qp *first = x.ini;
        post_right(&x, 0, i);
        x.ini = i & 1 ? ini : first;
        request(&x, i, IBV_WR_SEND, x.right[0].number, 0);
        x.ini = first;
        expect_wc(x.cq, i, IBV_WC_SUCCESS, NULL);
        expect_wc(x.right[0].cq, i, IBV_WC_SUCCESS, &wc);
        seen += wc.qp_num == (i & 1 ? tgt : x.tgt)->qp_num;
    }
    CHECK_INT(seen, 4);
    CHECK_INT(ibv_destroy_qp(tgt), 0); // the queue goes on with the other connection
    post_right(&x, 0, 9);
    request(&x, 9, IBV_WR_SEND, x.right[0].number, 0);
    expect_wc(x.right[0].cq, 9, IBV_WC_SUCCESS, NULL);
    CHECK_INT(ibv_destroy_qp(ini), 0);
    close_all(&x);
}

static void a_queue_tells_once_that_it_is_below_its_limit(void **state)
{
    struct ibv_srq_attr attr = {.srq_limit = 2};
    struct ibv_async_event event;
    struct xrc x;

    (void)state;
    open_all(&x);
    for (unsigned i = 0; i < 3; i++)
        post_right(&x, 0, i);
    CHECK_INT(ibv_modify_srq(x.right[0].srq, &attr, IBV_SRQ_LIMIT), 0);
    for (unsigned i = 0; i < 2; i++)
        request(&x, i, IBV_WR_SEND, x.right[0].number, 0);
    CHECK_INT(ibv_get_async_event(x.ctx, &event), 0); // of the target: it was in RTR never, so no other comes
    CHECK_INT(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
    CHECK(event.element.srq == x.right[0].srq);
    ibv_ack_async_event(&event);
    CHECK_INT(ibv_query_srq(x.right[0].srq, &attr), 0);
    CHECK_INT(attr.srq_limit, 0);
    close_all(&x);
}

static void no_receive_is_receiver_not_ready(void **state)
{
    struct ibv_wc wc;
    struct xrc x;

    (void)state;
    open_all(&x);
    request(&x, 1, IBV_WR_SEND, x.right[0].number, 0); // waits: rnr_retry is for ever
    expect_empty(x.cq, 20);
    post_right(&x, 0, 2);
    expect_wc(x.cq, 1, IBV_WC_SUCCESS, NULL);
    expect_wc(x.right[0].cq, 2, IBV_WC_SUCCESS, &wc);
    close_all(&x);
}

static void halves_take_only_what_is_theirs(void **state)
{
    struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_PD};
    struct ibv_send_wr *bad_send, send = {.opcode = IBV_WR_SEND};
    struct ibv_recv_wr *bad, recv = {0};
    struct xrc x;

    (void)state;
    open_all(&x);
    CHECK_INT(ibv_post_recv(x.tgt, &recv, &bad), EINVAL);
    CHECK_INT(ibv_post_recv(x.ini, &recv, &bad), EINVAL);
    CHECK_INT(ibv_post_send(x.tgt, &send, &bad_send), EINVAL);
    send.opcode = IBV_WR_LOCAL_INV;
    CHECK_INT(ibv_post_send(x.ini, &send, &bad_send), EINVAL);
    attr.pd = x.pd;
    CHECK(ibv_create_qp_ex(x.ctx, &attr) == NULL);
    CHECK_INT(errno, EINVAL);
    close_all(&x);
}

static void no_other_queue_receives_from_a_shared_queue_of_xrc(void **state)
{
    static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UD};
    struct xrc x;

    (void)state;
    open_all(&x);
    for (unsigned i = 0; i < sizeof types / sizeof *types; i++) {
        struct ibv_qp_init_attr attr = {.qp_type = types[i],
                                        .send_cq = x.cq,
                                        .recv_cq = x.cq,
                                        .srq = x.right[0].srq,
                                        .cap = {.max_send_wr = 4, .max_send_sge = 1}};
        CHECK(ibv_create_qp(x.pd, &attr) == NULL);
        CHECK_INT(errno, EINVAL);
    }
    close_all(&x);
}

// ---- a target that is opened beside its maker

// A second context of the process, with a domain by the same file.
struct guest {
    struct ibv_context *ctx;
    struct ibv_xrcd *xrcd;
    struct ibv_qp *qp;
};

static int nameless_file(void)
{
    char name[] = "/tmp/drydock-xrc-XXXXXX";
    int fd = mkstemp(name);

    CHECK(fd >= 0);
    CHECK_INT(unlink(name), 0);
    return fd;
}

static void guest_open(struct guest *g, int fd, uint32_t number)
{
    g->ctx = open_device();
    g->xrcd = xrc_domain(g->ctx, fd, 0);
    CHECK(g->xrcd != NULL);
    g->qp = xrc_open_qp(g->xrcd, number, IBV_QPT_XRC_RECV, g);
    CHECK(g->qp != NULL);
    CHECK(g->qp->qp_context == g && g->qp->context == g->ctx);
    CHECK_INT(g->qp->qp_num, number);
    CHECK_INT(g->qp->qp_type, IBV_QPT_XRC_RECV);
}

static void guest_close(struct guest *g)
{
    CHECK_INT(ibv_close_xrcd(g->xrcd), EBUSY);
    CHECK_INT(ibv_destroy_qp(g->qp), 0);
    CHECK_INT(ibv_close_xrcd(g->xrcd), 0);
    CHECK_INT(ibv_close_device(g->ctx), 0);
}

static void message(struct xrc *x, uint64_t id)
{
    post_right(x, 0, id);
    request(x, id, IBV_WR_SEND, x->right[0].number, 0);
    expect_wc(x->cq, id, IBV_WC_SUCCESS, NULL);
    expect_wc(x->right[0].cq, id, IBV_WC_SUCCESS, NULL);
}

// A maker, which leaves everything to who opened the target while it was in RESET.
static void an_opened_target_lives_until_the_last_handle_is_closed(void **state)
{
    int fd = nameless_file();
    struct ibv_context *maker = open_device();
    struct ibv_xrcd *made = xrc_domain(maker, fd, O_CREAT);
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;
    struct guest g;
    struct xrc x;

    (void)state;
    CHECK(made != NULL);
    struct ibv_qp *first = xrc_target(made);
    uint32_t number = first->qp_num;
    guest_open(&g, fd, number);
    open_all_in(&x, xrc_domain(g.ctx, fd, 0), g.qp);
    CHECK_INT(ibv_query_qp(first, &attr, IBV_QP_DEST_QPN, &init), 0); // what one set the other shows
    CHECK_INT(attr.qp_state, IBV_QPS_RTS);
    CHECK_INT(attr.dest_qp_num, x.ini->qp_num);
    message(&x, 1);
    CHECK_INT(ibv_close_xrcd(made), EBUSY);
    CHECK_INT(ibv_destroy_qp(first), 0);
    CHECK_INT(ibv_close_xrcd(made), 0);
    CHECK_INT(ibv_close_device(maker), 0);
    message(&x, 2);
    CHECK_INT(xrc_state(g.qp), IBV_QPS_RTS);
    close_all_but_target(&x);
    guest_close(&g);
    close(fd);
}

static void each_handle_of_a_target_is_told_of_its_events(void **state)
{
    int fd = nameless_file();
    struct ibv_async_event event;
    struct guest g[2];
    struct xrc x;

    (void)state;
    open_all_of_file(&x, fd);
    for (unsigned i = 0; i < 2; i++)
        guest_open(&g[i], fd, x.tgt->qp_num);
    request(&x, 1, IBV_WR_RDMA_WRITE, x.right[0].number, 1); // the key of the other domain
    expect_wc(x.cq, 1, IBV_WC_REM_ACCESS_ERR, NULL);
    for (unsigned i = 0; i < 3; i++) {
        struct ibv_qp *qp = i < 2 ? g[i].qp : x.tgt;
        CHECK_INT(ibv_get_async_event(qp->context, &event), 0);
        CHECK_INT(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
        CHECK(event.element.qp == qp);
        CHECK_INT(xrc_state(qp), IBV_QPS_ERR);
        ibv_ack_async_event(&event);
    }
    for (unsigned i = 0; i < 2; i++)
        guest_close(&g[i]);
    close_all(&x);
    close(fd);
}

static void *closes(void *qp)
{
    CHECK_INT(ibv_destroy_qp(qp), 0);
    return NULL;
}

// As of any object: an event that was got is acknowledged first; one that nobody got is not told any more.
static void a_handle_waits_for_its_events_only(void **state)
{
    int fd = nameless_file();
    struct ibv_async_event event;
    struct pollfd none;
    struct guest g[2];
    pthread_t closing;
    struct xrc x;

    (void)state;
    open_all_of_file(&x, fd);
    for (unsigned i = 0; i < 2; i++)
        guest_open(&g[i], fd, x.tgt->qp_num);
    request(&x, 1, IBV_WR_RDMA_WRITE, x.right[0].number, 1);
    expect_wc(x.cq, 1, IBV_WC_REM_ACCESS_ERR, NULL);
    CHECK_INT(ibv_get_async_event(g[0].ctx, &event), 0);
    CHECK_INT(pthread_create(&closing, NULL, closes, g[0].qp), 0);
    usleep(20000);
    CHECK_INT(pthread_tryjoin_np(closing, NULL), EBUSY);
    none = (struct pollfd){.fd = g[1].ctx->async_fd, .events = POLLIN};
    CHECK_INT(poll(&none, 1, 20000), 1);
    CHECK_INT(ibv_destroy_qp(g[1].qp), 0); // does not wait for the other's
    CHECK_INT(poll(&none, 1, 0), 0);
    ibv_ack_async_event(&event);
    CHECK_INT(pthread_join(closing, NULL), 0);
    for (unsigned i = 0; i < 2; i++) {
        CHECK_INT(ibv_close_xrcd(g[i].xrcd), 0);
        CHECK_INT(ibv_close_device(g[i].ctx), 0);
    }
    close_all(&x);
    close(fd);
}

static void what_is_no_target_of_the_domain_is_not_opened(void **state)
{
    struct ibv_qp_open_attr attr = {0};
    struct ibv_xrcd *other;
    struct xrc x;

    (void)state;
    open_all(&x);
    other = xrc_domain(x.ctx, -1, O_CREAT);
    CHECK(other != NULL);
    const struct {
        struct ibv_xrcd *xrcd;
        uint32_t number;
        enum ibv_qp_type type;
    } wrong[] = {
        {other, x.tgt->qp_num, IBV_QPT_XRC_RECV},
        {x.xrcd, x.ini->qp_num, IBV_QPT_XRC_RECV},
        {x.xrcd, x.right[0].number, IBV_QPT_XRC_RECV},
        {x.xrcd, x.tgt->qp_num, IBV_QPT_XRC_SEND},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK(xrc_open_qp(wrong[i].xrcd, wrong[i].number, wrong[i].type, NULL) == NULL);
        CHECK_INT(errno, EINVAL);
    }
    attr = (struct ibv_qp_open_attr){
        .comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_TYPE, .qp_num = x.tgt->qp_num, .xrcd = x.xrcd};
    CHECK(ibv_open_qp(x.ctx, &attr) == NULL);
    CHECK_INT(errno, EINVAL);
    CHECK_INT(ibv_close_xrcd(other), 0);
    close_all(&x);
}

// The domain would be another file's as soon as the number of its own is given anew.
static void a_file_that_cannot_be_kept_names_none(void **state)
{
    char name[] = "/tmp/drydock-xrc-XXXXXX";
    struct ibv_context *ctx = open_device();
    int fd = mkstemp(name);
    struct rlimit was, none;

    (void)state;
    CHECK(fd >= 0);
    CHECK_INT(unlink(name), 0);
    CHECK_INT(getrlimit(RLIMIT_NOFILE, &was), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = was.rlim_max};
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &none), 0);
    struct ibv_xrcd *x = xrc_domain(ctx, fd, O_CREAT);
    int err = errno;
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &was), 0);
    CHECK(x == NULL);
    CHECK_INT(err, EMFILE);
    CHECK(xrc_domain(ctx, fd, 0) == NULL); // nothing was left
    close(fd);
    CHECK_INT(ibv_close_device(ctx), 0);
}

static void a_file_names_a_domain(void **state)
{
    char name[] = "/tmp/drydock-xrc-XXXXXX";
    struct ibv_context *ctx = open_device();
    struct ibv_xrcd *one, *two;
    int fd = mkstemp(name);

    (void)state;
    CHECK(fd >= 0);
    CHECK_INT(unlink(name), 0);
    CHECK(xrc_domain(ctx, fd, 0) == NULL);
    CHECK_INT(errno, ENOENT);
    CHECK(xrc_domain(ctx, -1, 0) == NULL);
    CHECK_INT(errno, EINVAL);
    one = xrc_domain(ctx, fd, O_CREAT | O_EXCL);
    CHECK(one != NULL);
    CHECK(xrc_domain(ctx, fd, O_CREAT | O_EXCL) == NULL);
    CHECK_INT(errno, EEXIST);
    two = xrc_domain(ctx, fd, 0);
    CHECK(two == one);
    CHECK_INT(ibv_close_xrcd(two), 0);
    CHECK_INT(ibv_close_xrcd(one), 0);
    CHECK(xrc_domain(ctx, fd, 0) == NULL);
    CHECK_INT(errno, ENOENT);
    close(fd);
    CHECK_INT(ibv_close_device(ctx), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_is_for_the_queue_that_it_names),
        cmocka_unit_test(memory_is_reached_by_the_domain_of_the_named_queue),
        cmocka_unit_test(a_write_with_immediate_takes_a_receive),
        cmocka_unit_test(a_queue_that_is_not_of_the_domain_is_an_invalid_request),
        cmocka_unit_test(many_connections_share_one_queue),
        cmocka_unit_test(a_queue_tells_once_that_it_is_below_its_limit),
        cmocka_unit_test(no_receive_is_receiver_not_ready),
        cmocka_unit_test(halves_take_only_what_is_theirs),
        cmocka_unit_test(no_other_queue_receives_from_a_shared_queue_of_xrc),
        cmocka_unit_test(an_opened_target_lives_until_the_last_handle_is_closed),
        cmocka_unit_test(each_handle_of_a_target_is_told_of_its_events),
        cmocka_unit_test(a_handle_waits_for_its_events_only),
        cmocka_unit_test(what_is_no_target_of_the_domain_is_not_opened),
        cmocka_unit_test(a_file_names_a_domain),
        cmocka_unit_test(a_file_that_cannot_be_kept_names_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
