// SPDX-License-Identifier: MIT
// Where adapters differ: each row of the table of profiles, under every profile. A profile is chosen once a
// process, so each has one of its own.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "face/lib/ends.h"

static const struct row {
    const char *profile;
    uint32_t vendor_id;
    int arm_without_channel; // what ibv_req_notify_cq returns
    int early_send;          // what a send in RESET, INIT, RTR returns; where 0 it is lost
    int foreign_op;          // what the post of a READ to a UD queue returns; where 0 it completes in error
    int one_too_many;        // a post to a queue whose requests are executed and not polled
    int misfit;              // a post with more SGEs, or inline bytes, than the queue was created for
    unsigned five[3];        // what a queue pair, a CQ and a shared receive queue of depth 5 have
} rows[] = {
    {"strict", 0x02dd0c, EINVAL, EINVAL, 0, ENOMEM, EINVAL, {5, 5, 5}},
    {"rxe", 0x02dd0c, 0, EINVAL, EINVAL, 0, EINVAL, {5, 5, 5}},
    {"mlx5", 0x0002c9, 0, 0, 0, ENOMEM, ENOMEM, {8, 7, 7}},
    {"udma", 0x02dd0c, 0, EINVAL, 0, EINVAL, EINVAL, {5, 5, 5}},
    {"nonsense", 0x02dd0c, EINVAL, EINVAL, 0, ENOMEM, EINVAL, {5, 5, 5}}, // strict it is
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
    expect_empty(l.cq, 10);
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
    sge[0].length = l.opt.inline_data + 1;
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
