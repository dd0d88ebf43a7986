// SPDX-License-Identifier: MIT
// Where adapters differ: each row of the table of profiles, under every profile. A profile is chosen once a
// process, so each has one of its own.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "face/lib/counts.h"
#include "face/lib/ends.h"
#include "lib/maps.h"

// More than a line of words that are no switches.
#define NONSENSE                                                                                             \
    "nonsense,nonsense,nonsense,nonsense,nonsense,nonsense,nonsense,nonsense,nonsense,nonsense,nonsense,"

static const struct row {
    const char *profile;
    uint32_t vendor_id;
    int arm_without_channel; // what ibv_req_notify_cq returns
    int early_send;          // what a send in RESET, INIT, RTR returns; where 0 it is lost, or `kept`
    int foreign_op;          // what the post of a READ to a UD queue returns; where 0 it completes in error
    int one_too_many;        // a post to a queue whose requests are executed and not polled
    int misfit;              // a post with more SGEs, or inline bytes, than the queue was created for
    unsigned five[3];        // what a queue pair, a CQ and a shared receive queue of depth 5 have
    bool survives;           // a CQ that was overrun, and its queues
    bool stay;               // completions of a queue that is destroyed
    bool apart;              // atomics lose what a CPU stores meanwhile
    bool old_told;           // arming a CQ in which a completion stands is an event
    bool kept;               // what was posted too early and taken
    int post_in_error;       // 0: taken and flushed, or lost, EINVAL
    bool lost_in_error;
    bool zero_checked; // the remote key of a request without bytes
    bool in_pieces;    // inline bytes are granted where pieces were asked for, and the other way
} rows[] = {
    {"strict", 0x02dd0c, EINVAL, EINVAL, 0, ENOMEM, EINVAL, {5, 5, 5}, .kept = false},
    {"rxe",
     0x02dd0c,
     0,
     EINVAL,
     EINVAL,
     0,
     EINVAL,
     {5, 5, 5},
     .survives = true,
     .stay = true,
     .apart = true,
     .in_pieces = true},
    {"mlx5", 0x0002c9, 0, 0, 0, ENOMEM, ENOMEM, {8, 7, 7}, .apart = true},
    {"udma", 0x02dd0c, 0, EINVAL, 0, EINVAL, EINVAL, {5, 5, 5}, .kept = false},
    {"nonsense", 0x02dd0c, EINVAL, EINVAL, 0, ENOMEM, EINVAL, {5, 5, 5}, .kept = false}, // strict
    // Single switches behind a name; one that is unknown changes nothing.
    {"strict,early_post_lost,nonsense", 0x02dd0c, EINVAL, 0, 0, ENOMEM, EINVAL, {5, 5, 5}, .kept = false},
    {"strict,error_post_refused",
     0x02dd0c,
     EINVAL,
     EINVAL,
     0,
     ENOMEM,
     EINVAL,
     {5, 5, 5},
     .post_in_error = EINVAL},
    {"strict,error_post_lost,zero_length_checked",
     0x02dd0c,
     EINVAL,
     EINVAL,
     0,
     ENOMEM,
     EINVAL,
     {5, 5, 5},
     .lost_in_error = true,
     .zero_checked = true},
    {"strict,early_post_kept, early_post_lost ",
     0x02dd0c,
     EINVAL,
     0,
     0,
     ENOMEM,
     EINVAL,
     {5, 5, 5},
     .kept = true},
    {"strict," NONSENSE NONSENSE NONSENSE NONSENSE NONSENSE "error_post_lost,error_post_refused",
     0x02dd0c,
     EINVAL,
     EINVAL,
     0,
     ENOMEM,
     EINVAL,
     {5, 5, 5},
     .lost_in_error = true},
    {"strict,completions_stay,overrun_loses,arm_tells_old,-arm_needs_channel",
     0x02dd0c,
     0,
     EINVAL,
     0,
     0,
     EINVAL,
     {5, 5, 5},
     .survives = true,
     .stay = true,
     .old_told = true},
    {"rxe,-inline_in_pieces",
     0x02dd0c,
     0,
     EINVAL,
     EINVAL,
     0,
     EINVAL,
     {5, 5, 5},
     .survives = true,
     .stay = true,
     .apart = true},
    {"mlx5,-depths_rounded,-early_post_lost,-atomics_apart",
     0x0002c9,
     0,
     EINVAL,
     0,
     ENOMEM,
     ENOMEM,
     {5, 5, 5},
     .kept = false},
};

static void identity(const struct row *row)
{
    struct ibv_context *ctx = open_device();
    struct ibv_device_attr dev;

    CHECK_INT(ibv_query_device(ctx, &dev), 0);
    CHECK_INT(dev.vendor_id, row->vendor_id);
    struct ibv_cq *cq = ibv_create_cq(ctx, 4, NULL, NULL, 0);
    CHECK_INT(ibv_req_notify_cq(cq, 0), row->arm_without_channel);
    CHECK_INT(ibv_destroy_cq(cq), 0);
    CHECK_INT(ibv_close_device(ctx), 0);
}

static void step(struct end *e, enum ibv_qp_state to, const struct end_address *peer)
{
    int mask;
    struct ibv_qp_attr a = end_attr(e, to, peer, &mask);

    CHECK_INT(ibv_modify_qp(e->qp, &a, mask), 0);
}

static void early(const struct row *row)
{
    struct end l, r;

    end_open(&l, NULL);
    end_open(&r, NULL);
    struct end_address to_r = end_address(&r), to_l = end_address(&l);
    struct ibv_sge sge = end_sge(&l, 0, 8);
    struct ibv_send_wr wr = send_wr(1, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)r.buf, r.mr->rkey);
    CHECK_INT(post(&l, &wr), row->early_send);
    CHECK_INT(post_recv(&r, 9, 0, 8), row->early_send);
    step(&l, IBV_QPS_INIT, NULL);
    CHECK_INT(post(&l, &wr), row->early_send);
    step(&l, IBV_QPS_RTR, &to_r);
    CHECK_INT(post(&l, &wr), row->early_send);
    step(&l, IBV_QPS_RTS, &to_r);
    end_to_rts(&r, &to_l);
    for (unsigned i = 0; row->kept && i < 3; i++)
        expect_wc(l.cq, 1, IBV_WC_SUCCESS, NULL);
    expect_empty(l.cq, 10);
    if (row->kept) {
        struct ibv_send_wr message = send_wr(3, IBV_WR_SEND, &sge, 0, 0);
        CHECK_INT(post(&l, &message), 0);
        expect_wc(r.rcq, 9, IBV_WC_SUCCESS, NULL);
        expect_wc(l.cq, 3, IBV_WC_SUCCESS, NULL);
    }
    wr.wr_id = 2;
    CHECK_INT(post(&l, &wr), 0);
    expect_wc(l.cq, 2, IBV_WC_SUCCESS, NULL);
    end_close(&l);
    end_close(&r);
}

static void slots(const struct row *row)
{
    const struct end_options four = {.send_wr = 4};
    struct end l, r;

    pair_open(&l, &r, &four);
    struct ibv_sge sge = end_sge(&l, 0, 8);
    struct ibv_send_wr wr = send_wr(0, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)r.buf, r.mr->rkey);
    for (uint64_t id = 1; id <= 4; id++) {
        wr.wr_id = id;
        CHECK_INT(post(&l, &wr), 0);
    }
    wr.wr_id = 5; // small WRITEs were executed by the posts
    CHECK_INT(post(&l, &wr), row->one_too_many);
    for (uint64_t id = 1; id <= (row->one_too_many ? 4 : 5); id++)
        expect_wc(l.cq, id, IBV_WC_SUCCESS, NULL);
    wr.wr_id = 6;
    CHECK_INT(post(&l, &wr), 0);
    expect_wc(l.cq, 6, IBV_WC_SUCCESS, NULL);
    pair_close(&l, &r);
}

static void unsignaled(const struct row *row)
{
    const struct end_options sixteen = {.send_wr = 16};
    struct end l, r;

    pair_open(&l, &r, &sixteen);
    struct ibv_sge sge = end_sge(&l, 0, 8);
    struct ibv_send_wr wr = send_wr(0, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)r.buf, r.mr->rkey);
    wr.send_flags = 0;
    for (unsigned i = 0; i < 64; i++) // none is polled for: only what is freed early makes room
        CHECK_INT(post(&l, &wr), i < 16 ? 0 : row->one_too_many);
    pair_close(&l, &r);
}

static void foreign_op(const struct row *row)
{
    const struct end_options ud = {.type = IBV_QPT_UD};
    struct end e;

    end_open(&e, &ud);
    end_to_rts(&e, NULL);
    struct ibv_sge sge = end_sge(&e, 0, 8);
    struct ibv_send_wr wr = send_wr(1, IBV_WR_RDMA_READ, &sge, (uintptr_t)e.buf, e.mr->rkey);
    CHECK_INT(post(&e, &wr), row->foreign_op);
    if (!row->foreign_op)
        expect_wc(e.cq, 1, IBV_WC_LOC_QP_OP_ERR, NULL);
    end_close(&e);
}

// Through both ways to post.
static void misfit(const struct row *row)
{
    const struct end_options two = {.sge = 2, .inline_data = 8, .builders = true};
    struct end l, r;

    pair_open(&l, &r, &two);
    struct ibv_sge sge[3] = {end_sge(&l, 0, 8), end_sge(&l, 8, 8), end_sge(&l, 16, 8)};
    struct ibv_send_wr wr = send_wr(1, IBV_WR_RDMA_WRITE, sge, (uintptr_t)r.buf, r.mr->rkey);
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(l.qp);
    wr.num_sge = 3;
    CHECK_INT(post(&l, &wr), row->misfit);
    ibv_wr_start(ex);
    ibv_wr_rdma_write(ex, r.mr->rkey, (uintptr_t)r.buf);
    ibv_wr_set_sge_list(ex, 3, sge);
    CHECK_INT(ibv_wr_complete(ex), row->misfit);
    wr.num_sge = 1;
    wr.send_flags |= IBV_SEND_INLINE;
    sge[0].length = (row->in_pieces ? 2 * sizeof *sge : l.opt.inline_data) + 1;
    CHECK_INT(post(&l, &wr), row->misfit);
    ibv_wr_start(ex);
    ibv_wr_rdma_write(ex, r.mr->rkey, (uintptr_t)r.buf);
    ibv_wr_set_inline_data(ex, l.buf, sge[0].length);
    CHECK_INT(ibv_wr_complete(ex), row->misfit);
    pair_close(&l, &r);
}

// What the caller is told, and what is there: as many posts are taken.
static void depths(const struct row *row)
{
    struct ibv_context *ctx = open_device();
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    struct ibv_cq *cq = ibv_create_cq(ctx, 5, NULL, NULL, 0);
    struct ibv_srq_init_attr shared = {.attr = {.max_wr = 5, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(pd, &shared);
    struct ibv_qp_init_attr attr = {
        .qp_type = IBV_QPT_RC,
        .send_cq = cq,
        .recv_cq = cq,
        .cap = {.max_send_wr = 5, .max_recv_wr = 5, .max_send_sge = 1, .max_recv_sge = 1}};
    struct ibv_qp *qp = ibv_create_qp(pd, &attr);
    struct ibv_recv_wr *bad, wr = {.num_sge = 0};

    CHECK(cq && srq && qp);
    CHECK_INT(attr.cap.max_send_wr, row->five[0]);
    CHECK_INT(attr.cap.max_recv_wr, row->five[0]);
    CHECK_INT(cq->cqe, row->five[1]);
    CHECK_INT(shared.attr.max_wr, row->five[2]);
    for (unsigned i = 0; i < row->five[2]; i++)
        CHECK_INT(ibv_post_srq_recv(srq, &wr, &bad), 0);
    CHECK_INT(ibv_post_srq_recv(srq, &wr, &bad), ENOMEM);
    CHECK_INT(ibv_destroy_qp(qp), 0);
    CHECK_INT(ibv_destroy_srq(srq), 0);
    CHECK_INT(ibv_destroy_cq(cq), 0);
    CHECK_INT(ibv_dealloc_pd(pd), 0);
    CHECK_INT(ibv_close_device(ctx), 0);
}

// What is granted, and what is there: so many inline bytes are taken.
static void one_place(const struct row *row)
{
    static const struct {
        uint32_t sge, bytes, sge_in_pieces, bytes_in_pieces;
    } asked[] = {{1, 1, 1, 16}, {3, 20, 3, 48}, {1, 40, 2, 40}, {12, 192, 12, 192}};

    for (unsigned i = 0; i < sizeof asked / sizeof *asked; i++) {
        const struct end_options opt = {.sge = asked[i].sge, .inline_data = asked[i].bytes};
        uint32_t most = row->in_pieces ? asked[i].bytes_in_pieces : asked[i].bytes;
        struct ibv_qp_init_attr init;
        struct ibv_qp_attr attr;
        struct end l, r;

        pair_open(&l, &r, &opt);
        CHECK_INT(ibv_query_qp(l.qp, &attr, IBV_QP_CAP, &init), 0);
        CHECK_INT(init.cap.max_send_sge, row->in_pieces ? asked[i].sge_in_pieces : asked[i].sge);
        CHECK_INT(init.cap.max_inline_data, most);
        struct ibv_sge sge = {(uintptr_t)l.buf, most, 0};
        struct ibv_send_wr wr = send_wr(1, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)r.buf, r.mr->rkey);
        wr.send_flags |= IBV_SEND_INLINE;
        memset(l.buf, 0x5a, most);
        CHECK_INT(post(&l, &wr), 0);
        expect_wc(l.cq, 1, IBV_WC_SUCCESS, NULL);
        CHECK(!memcmp(l.buf, r.buf, most));
        sge.length = most + 1;
        CHECK_INT(post(&l, &wr), row->misfit);
        pair_close(&l, &r);
    }
}

// Posts of either kind in ERR, sends in both forms.
static void in_error(const struct row *row)
{
    const struct end_options builders = {.builders = true};
    bool flushed = !row->post_in_error && !row->lost_in_error;
    struct end l, r;

    pair_open(&l, &r, &builders);
    struct ibv_sge sge = end_sge(&l, 0, 8);
    struct ibv_send_wr wr = send_wr(1, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)r.buf, r.mr->rkey);
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(l.qp);
    end_to(&l, IBV_QPS_ERR);
    CHECK_INT(post(&l, &wr), row->post_in_error);
    ibv_wr_start(ex);
    ex->wr_id = 2;
    ibv_wr_rdma_write(ex, r.mr->rkey, (uintptr_t)r.buf);
    ibv_wr_set_sge(ex, l.mr->lkey, (uintptr_t)l.buf, 8);
    CHECK_INT(ibv_wr_complete(ex), row->post_in_error);
    CHECK_INT(post_recv(&l, 3, 0, 8), row->post_in_error);
    for (unsigned id = 1; flushed && id <= 2; id++)
        expect_wc(l.cq, id, IBV_WC_WR_FLUSH_ERR, NULL);
    if (flushed)
        expect_wc(l.rcq, 3, IBV_WC_WR_FLUSH_ERR, NULL);
    expect_empty(l.cq, 1);
    expect_empty(l.rcq, 1);
    pair_close(&l, &r);
}

static void no_bytes(const struct row *row)
{
    static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};

    for (unsigned i = 0; i < 2; i++) {
        struct end l, r;
        pair_open(&l, &r, NULL);
        struct ibv_sge sge = end_sge(&l, 0, 0);
        struct ibv_send_wr wr = send_wr(1, ops[i], &sge, (uintptr_t)r.buf, r.mr->rkey);
        CHECK_INT(post(&l, &wr), 0);
        expect_wc(l.cq, 1, IBV_WC_SUCCESS, NULL);
        wr.wr.rdma.rkey ^= 0x5500;
        CHECK_INT(post(&l, &wr), 0);
        expect_wc(l.cq, 1, row->zero_checked ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS, NULL);
        pair_close(&l, &r);
    }
}

static bool readable(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, ms) == 1;
}

static void write_word(struct end *l, struct end *r, uint64_t id)
{
    struct ibv_sge sge = end_sge(l, 0, 8);
    struct ibv_send_wr wr = send_wr(id, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)r->buf, r->mr->rkey);

    CHECK_INT(post(l, &wr), 0);
}

// C07: one more than the CQ holds.
static void overrun(const struct row *row)
{
    const struct end_options two = {.cqe = 2};
    struct ibv_async_event event;
    struct end l, r;
    struct ibv_wc wc;
    unsigned fit;

    pair_open(&l, &r, &two);
    fit = (unsigned)l.cq->cqe;
    for (unsigned i = 1; i <= fit + 1; i++)
        write_word(&l, &r, i);
    CHECK(readable(l.ctx->async_fd, 5000));
    CHECK_INT(ibv_get_async_event(l.ctx, &event), 0);
    CHECK_INT(event.event_type, IBV_EVENT_CQ_ERR);
    ibv_ack_async_event(&event);
    for (unsigned i = 1; i <= fit; i++)
        expect_wc(l.cq, i, IBV_WC_SUCCESS, NULL);
    CHECK_INT(ibv_poll_cq(l.cq, 1, &wc) < 0, !row->survives);
    if (row->survives) {
        write_word(&l, &r, 77);
        expect_wc(l.cq, 77, IBV_WC_SUCCESS, NULL);
        CHECK_INT(end_state(&l), IBV_QPS_RTS);
        CHECK(!readable(l.ctx->async_fd, 1)); // told once
    }
    pair_close(&l, &r);
}

// A queue of one slot goes on though its only completion was lost: another queue had filled the CQ.
static void overrun_by_another(const struct row *row)
{
    const struct end_options two = {.cqe = 2};
    struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 1, .max_send_sge = 1}};
    struct end l, r, small, to;

    if (!row->survives)
        return;
    pair_open(&l, &r, &two);
    end_open(&to, NULL);
    small = l;
    attr.send_cq = l.cq;
    attr.recv_cq = l.rcq;
    small.qp = ibv_create_qp(l.pd, &attr);
    CHECK(small.qp != NULL);
    struct end_address target = end_address(&to), source = end_address(&small);
    end_to_rts(&to, &source);
    end_to_rts(&small, &target);
    write_word(&l, &r, 1);
    write_word(&l, &r, 2);
    write_word(&small, &to, 3);
    expect_wc(l.cq, 1, IBV_WC_SUCCESS, NULL);
    expect_wc(l.cq, 2, IBV_WC_SUCCESS, NULL);
    expect_empty(l.cq, 1);
    write_word(&small, &to, 4);
    expect_wc(l.cq, 4, IBV_WC_SUCCESS, NULL);
    CHECK_INT(ibv_destroy_qp(small.qp), 0);
    end_close(&to);
    pair_close(&l, &r);
}

// The same of receives: the queue fails, and what else uses the CQ goes on where it survives.
static void overrun_of_receives(const struct row *row)
{
    const struct end_options two = {.cqe = 2};
    struct end l, r;
    struct ibv_wc wc;
    unsigned fit;

    if (!row->survives) // face/events_test.c, unit/device/flush_test.c
        return;
    pair_open(&l, &r, &two);
    fit = (unsigned)r.rcq->cqe;
    for (unsigned i = 1; i <= fit + 1; i++) {
        struct ibv_sge sge = end_sge(&l, 0, 8);
        struct ibv_send_wr wr = send_wr(i, IBV_WR_SEND, &sge, 0, 0);
        CHECK_INT(post_recv(&r, 10 + i, 0, 8), 0);
        CHECK_INT(post(&l, &wr), 0);
        expect_wc(l.cq, i, i <= fit ? IBV_WC_SUCCESS : IBV_WC_REM_OP_ERR, NULL);
    }
    for (unsigned ms = 0; end_state(&r) != IBV_QPS_ERR && ms < 5000; ms++)
        usleep(1000);
    CHECK_INT(end_state(&r), IBV_QPS_ERR);
    for (unsigned i = 1; i <= fit; i++)
        expect_wc(r.rcq, 10 + i, IBV_WC_SUCCESS, NULL);
    CHECK_INT(post_recv(&r, 99, 0, 8), 0); // flushed, and there is room to say so
    CHECK(poll_one(r.rcq, &wc, 5000));
    if (wc.wr_id == 10 + fit + 1) // the one that found no room, where the flush came after the polls
        CHECK(poll_one(r.rcq, &wc, 5000));
    CHECK_INT(wc.wr_id, 99);
    CHECK_INT(wc.status, IBV_WC_WR_FLUSH_ERR);
    pair_close(&l, &r);
}

// C29: a send and a receive have completed, nobody has polled, and their queues go.
static void of_destroyed(const struct row *row)
{
    struct end l, r;
    struct ibv_wc wc;

    pair_open(&l, &r, NULL);
    struct ibv_sge sge = end_sge(&l, 0, 8);
    struct ibv_send_wr wr = send_wr(41, IBV_WR_SEND, &sge, 0, 0);
    uint32_t number[2] = {l.qp->qp_num, r.qp->qp_num};
    CHECK_INT(post_recv(&r, 42, 0, 8), 0);
    CHECK_INT(post(&l, &wr), 0);
    for (unsigned ms = 0; face_executed(l.qp) < 1 && ms < 5000; ms++)
        usleep(1000);
    CHECK_INT(ibv_destroy_qp(l.qp), 0);
    CHECK_INT(ibv_destroy_qp(r.qp), 0);
    l.qp = r.qp = NULL;
    if (row->stay) {
        expect_wc(l.cq, 41, IBV_WC_SUCCESS, &wc);
        CHECK_INT(wc.qp_num, number[0]);
        expect_wc(r.rcq, 42, IBV_WC_SUCCESS, &wc);
        CHECK_INT(wc.qp_num, number[1]);
        CHECK_INT(wc.byte_len, 8);
    }
    expect_empty(l.cq, 1);
    expect_empty(r.rcq, 1);
    pair_close(&l, &r);
}

struct counter {
    _Atomic uint64_t *word;
    atomic_bool end;
    _Atomic uint64_t added; // never more than what is in the word
};

static void *count(void *arg)
{
    struct counter *c = arg;

    for (; !c->end; c->added++)
        atomic_fetch_add(c->word, 1);
    return NULL;
}

// C49: a CPU counts at the word while an atomic of the device does. Memory that could not be mapped loses
// what the CPU stores under every profile.
static void atomics(const struct row *row)
{
    struct counter c = {0};
    bool lost = false;
    uint64_t turns = 0, added;
    pthread_t thread;
    struct end l, r;

    pair_open(&l, &r, NULL);
    bool mapped = maps_look(r.buf, 4096).adopted == 4096;
    struct ibv_sge sge = end_sge(&l, 0, 8);
    struct ibv_send_wr wr = send_wr(0, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, 0, 0);
    wr.wr.atomic.remote_addr = (uintptr_t)r.buf;
    wr.wr.atomic.rkey = r.mr->rkey;
    wr.wr.atomic.compare_add = 1;
    c.word = (_Atomic uint64_t *)(void *)r.buf;
    CHECK_INT(pthread_create(&thread, NULL, count, &c), 0);
    while (!c.added)
        sched_yield();
    while (turns < (row->apart ? 1000000 : 300) && !lost) { // until the two have met
        wr.wr_id = turns++;
        CHECK_INT(post(&l, &wr), 0);
        expect_wc(l.cq, wr.wr_id, IBV_WC_SUCCESS, NULL);
        added = c.added;
        lost = *c.word < added + turns;
    }
    c.end = true;
    pthread_join(thread, NULL);
    if (row->apart)
        CHECK(lost);
    else if (mapped)
        CHECK_INT(*c.word, c.added + turns);
    pair_close(&l, &r);
}

// C32: the event comes though the completion is old, and who reads it later finds an empty CQ.
static void arm_late(const struct row *row)
{
    const struct end_options with_channel = {.channel = true};
    struct ibv_cq *cq;
    void *context;
    struct end l, r;

    pair_open(&l, &r, &with_channel);
    write_word(&l, &r, 1);
    for (unsigned ms = 0; face_executed(l.qp) < 1 && ms < 5000; ms++)
        usleep(1000);
    CHECK_INT(ibv_req_notify_cq(l.cq, 0), 0);
    expect_wc(l.cq, 1, IBV_WC_SUCCESS, NULL);
    CHECK_INT(readable(l.channel->fd, row->old_told ? 5000 : 1), row->old_told);
    if (row->old_told) {
        CHECK_INT(ibv_get_cq_event(l.channel, &cq, &context), 0);
        ibv_ack_cq_events(cq, 1);
        expect_empty(l.cq, 1);
    }
    pair_close(&l, &r);
}

static void each_profile_does_what_its_row_says(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        int status;
        pid_t pid = fork();
        if (pid == 0) {
            setenv("DRYDOCK_PROFILE", rows[i].profile, 1);
            identity(&rows[i]);
            early(&rows[i]);
            slots(&rows[i]);
            unsignaled(&rows[i]);
            foreign_op(&rows[i]);
            misfit(&rows[i]);
            depths(&rows[i]);
            one_place(&rows[i]);
            in_error(&rows[i]);
            no_bytes(&rows[i]);
            overrun(&rows[i]);
            overrun_by_another(&rows[i]);
            overrun_of_receives(&rows[i]);
            of_destroyed(&rows[i]);
            atomics(&rows[i]);
            arm_late(&rows[i]);
            _exit(0);
        }
        CHECK(waitpid(pid, &status, 0) == pid);
        if (!WIFEXITED(status) || WEXITSTATUS(status))
            check_failed(__FILE__, __LINE__, "profile %s: expected status 0, got %#x", rows[i].profile,
                         (unsigned)status);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_profile_does_what_its_row_says)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
