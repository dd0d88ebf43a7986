// SPDX-License-Identifier: MIT
// What fails, how it fails, and what it leaves behind: C15, C17, C18, C25, C27 to C29, C49.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "face/lib/ends.h"

// C27: the cause first, then flushes in posting order, unsignaled ones too. The peer stays in RTS.
static void the_cause_comes_first_then_flushes_in_order(void **state)
{
    struct ibv_send_wr wr[3], *bad;
    struct ibv_sge sge[3];
    struct ibv_wc wc;
    struct end l, r;

    (void)state;
    pair_open(&l, &r, NULL);
    for (unsigned i = 0; i < 3; i++) {
        sge[i] = end_sge(&l, 0, 8);
        wr[i] = send_wr(i + 1, IBV_WR_RDMA_WRITE, &sge[i], (uintptr_t)r.buf, r.mr->rkey);
        wr[i].next = i < 2 ? &wr[i + 1] : NULL;
    }
    sge[0].lkey = 0xdeadbe00;
    wr[2].send_flags = 0;
    CHECK_INT(ibv_post_send(l.qp, wr, &bad), 0);
    expect_wc(l.cq, 1, IBV_WC_LOC_PROT_ERR, &wc);
    CHECK_INT(wc.qp_num, l.qp->qp_num);
    expect_wc(l.cq, 2, IBV_WC_WR_FLUSH_ERR, NULL);
    expect_wc(l.cq, 3, IBV_WC_WR_FLUSH_ERR, NULL);
    CHECK_INT(end_state(&l), IBV_QPS_ERR);
    CHECK_INT(end_state(&r), IBV_QPS_RTS);
    CHECK_INT(post(&l, &wr[1]), 0); // accepted and flushed
    expect_wc(l.cq, 2, IBV_WC_WR_FLUSH_ERR, NULL);
    pair_close(&l, &r);
}

// C25: cause -> status at the requester, at the responder, states of both.
struct golden {
    const char *cause;
    void (*arrange)(struct end *l, struct end *r, struct ibv_send_wr *wr);
    enum ibv_wc_status requester;
    enum ibv_qp_state responder_state;
};

static void bad_lkey(struct end *l, struct end *r, struct ibv_send_wr *wr)
{
    (void)l;
    (void)r;
    wr->sg_list->lkey ^= 0x5500;
}

static void beyond_local(struct end *l, struct end *r, struct ibv_send_wr *wr)
{
    (void)r;
    wr->sg_list->addr = (uintptr_t)l->buf + l->opt.bytes - 4;
}

static void bad_rkey(struct end *l, struct end *r, struct ibv_send_wr *wr)
{
    (void)l;
    (void)r;
    wr->wr.rdma.rkey ^= 0x5500;
}

static void lkey_as_rkey(struct end *l, struct end *r, struct ibv_send_wr *wr)
{
    (void)l;
    wr->wr.rdma.rkey = r->mr->lkey;
}

static void beyond_remote(struct end *l, struct end *r, struct ibv_send_wr *wr)
{
    (void)l;
    wr->wr.rdma.remote_addr = (uintptr_t)r->buf + r->opt.bytes - 4;
}

static void misaligned_atomic(struct end *l, struct end *r, struct ibv_send_wr *wr)
{
    (void)l;
    wr->opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
    wr->wr.atomic.remote_addr = (uintptr_t)r->buf + 4;
    wr->wr.atomic.rkey = r->mr->rkey;
}

static void receive_too_short(struct end *l, struct end *r, struct ibv_send_wr *wr)
{
    (void)l;
    CHECK_INT(post_recv(r, 90, 0, 4), 0);
    wr->opcode = IBV_WR_SEND;
}

static void no_receive(struct end *l, struct end *r, struct ibv_send_wr *wr)
{
    (void)l;
    (void)r;
    wr->opcode = IBV_WR_SEND;
}

static const struct golden table[] = {
    {"unknown local key", bad_lkey, IBV_WC_LOC_PROT_ERR, IBV_QPS_RTS},
    {"local range beyond the region", beyond_local, IBV_WC_LOC_PROT_ERR, IBV_QPS_RTS},
    {"unknown remote key", bad_rkey, IBV_WC_REM_ACCESS_ERR, IBV_QPS_ERR},
    {"C18: the peer's local key as remote key", lkey_as_rkey, IBV_WC_REM_ACCESS_ERR, IBV_QPS_ERR},
    {"remote range beyond the region", beyond_remote, IBV_WC_REM_ACCESS_ERR, IBV_QPS_ERR},
    {"C49: atomic on a misaligned address", misaligned_atomic, IBV_WC_REM_INV_REQ_ERR, IBV_QPS_ERR},
    {"message longer than the receive", receive_too_short, IBV_WC_REM_INV_REQ_ERR, IBV_QPS_ERR},
    {"no receive, no retry", no_receive, IBV_WC_RNR_RETRY_EXC_ERR, IBV_QPS_RTS},
};

static void wait_state(struct end *e, enum ibv_qp_state expected, const char *cause)
{
    struct ibv_wc wc;

    for (unsigned i = 0; i < 2000 && end_state(e) != expected; i++)
        poll_one(e->cq, &wc, 1);
    if (end_state(e) != expected)
        check_failed(__FILE__, __LINE__, "%s: expected state %d, got %d", cause, expected, end_state(e));
}

static void each_cause_has_its_status(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct end l, r;
        struct ibv_wc wc;
        pair_open(&l, &r, NULL);
        memset(r.buf, 0x11, r.opt.bytes);
        struct ibv_sge sge = end_sge(&l, 0, 8);
        struct ibv_send_wr wr = send_wr(1, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)r.buf, r.mr->rkey);
        table[i].arrange(&l, &r, &wr);
        CHECK_INT(post(&l, &wr), 0);
        if (!poll_one(l.cq, &wc, 5000) || wc.status != table[i].requester)
            check_failed(__FILE__, __LINE__, "%s: expected %s, got %s", table[i].cause,
                         ibv_wc_status_str(table[i].requester), ibv_wc_status_str(wc.status));
        for (size_t b = 8; b < r.opt.bytes; b++)
            CHECK_INT(r.buf[b], 0x11);
        wait_state(&l, IBV_QPS_ERR, table[i].cause);
        wait_state(&r, table[i].responder_state, table[i].cause);
        if (table[i].arrange == receive_too_short)
            expect_wc(r.rcq, 90, IBV_WC_LOC_LEN_ERR, NULL);
        pair_close(&l, &r);
    }
}

// C17: rights of the region x rights of the queue x opcode. Both must allow: what the queue does not take
// at all is an invalid request, what the region does not allow is an access error.
static enum ibv_wc_status expected_status(enum ibv_wr_opcode op, int mr, int qp)
{
    int need = op == IBV_WR_RDMA_WRITE  ? IBV_ACCESS_REMOTE_WRITE
               : op == IBV_WR_RDMA_READ ? IBV_ACCESS_REMOTE_READ
                                        : IBV_ACCESS_REMOTE_ATOMIC;

    if (op == IBV_WR_SEND)
        return mr & IBV_ACCESS_LOCAL_WRITE ? IBV_WC_SUCCESS : IBV_WC_REM_OP_ERR;
    if (!(qp & need))
        return IBV_WC_REM_INV_REQ_ERR;
    return mr & need ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR;
}

// Its status through either form of polling; -1: none within 5 s.
static int status_of_next(struct ibv_cq *cq, bool extended)
{
    struct ibv_cq_ex *ex = (struct ibv_cq_ex *)(void *)cq;
    struct ibv_poll_cq_attr attr = {0};
    struct ibv_wc wc;
    int status;

    if (!extended)
        return poll_one(cq, &wc, 5000) ? (int)wc.status : -1;
    for (unsigned i = 0; ibv_start_poll(ex, &attr); i++) {
        if (i == 50000)
            return -1;
        usleep(100);
    }
    status = ex->status;
    ibv_end_poll(ex);
    return status;
}

static void rights_of_region_and_queue_are_both_needed(void **state)
{
    static const int mr_rights[] = {-1,
                                    IBV_ACCESS_LOCAL_WRITE,
                                    IBV_ACCESS_REMOTE_READ,
                                    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
                                    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
                                    FULL_ACCESS};
    static const int qp_rights[] = {-1, IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_READ, FULL_ACCESS};
    static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD,
                                             IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_SEND};

    (void)state;
    for (unsigned cell = 0; cell < 6 * 4 * 5 * 2; cell++) {
        unsigned m = cell / 40, q = cell / 10 % 4, o = cell / 2 % 5;
        bool extended = cell & 1;
        struct end_options right = {.mr_access = mr_rights[m], .qp_access = qp_rights[q]};
        struct end_options left = {.extended_cq = extended};
        struct end l, r;
        end_open(&l, &left);
        end_open(&r, &right);
        struct end_address la = end_address(&l), ra = end_address(&r);
        end_to_rts(&l, &ra);
        end_to_rts(&r, &la);
        CHECK_INT(post_recv(&r, 9, 0, 8), 0);
        struct ibv_sge sge = end_sge(&l, 0, 8);
        struct ibv_send_wr wr = send_wr(1, ops[o], &sge, ra.addr, ra.rkey);
        CHECK_INT(post(&l, &wr), 0);
        enum ibv_wc_status expected = expected_status(ops[o], r.opt.mr_access, r.opt.qp_access);
        int got = status_of_next(l.cq, extended);
        if (got != (int)expected)
            check_failed(__FILE__, __LINE__, "opcode %d, region %#x, queue %#x, %s: expected %s, got %d (%s)",
                         ops[o], r.opt.mr_access, r.opt.qp_access, extended ? "start_poll" : "poll_cq",
                         ibv_wc_status_str(expected), got, ibv_wc_status_str((enum ibv_wc_status)got));
        pair_close(&l, &r);
    }
}

// READ and atomics write into local memory: without LOCAL_WRITE that is a local protection error.
static void a_result_needs_local_write(void **state)
{
    static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD};

    (void)state;
    for (unsigned o = 0; o < 2; o++) {
        struct end_options left = {.mr_access = -1};
        struct end l, r;
        end_open(&l, &left);
        end_open(&r, NULL);
        struct end_address la = end_address(&l), ra = end_address(&r);
        end_to_rts(&l, &ra);
        end_to_rts(&r, &la);
        struct ibv_sge sge = end_sge(&l, 0, 8);
        struct ibv_send_wr wr = send_wr(1, ops[o], &sge, ra.addr, ra.rkey);
        CHECK_INT(post(&l, &wr), 0);
        expect_wc(l.cq, 1, IBV_WC_LOC_PROT_ERR, NULL);
        pair_close(&l, &r);
    }
}

static void rnr_waits_until_a_receive_comes(void **state)
{
    struct end_options opt = {.rnr_retry = 7};
    struct end l, r;

    (void)state;
    pair_open(&l, &r, &opt);
    struct ibv_sge sge = end_sge(&l, 0, 8);
    struct ibv_send_wr wr = send_wr(1, IBV_WR_SEND, &sge, 0, 0);
    CHECK_INT(post(&l, &wr), 0);
    expect_empty(l.cq, 50);
    CHECK_INT(post_recv(&r, 2, 0, 8), 0);
    expect_wc(l.cq, 1, IBV_WC_SUCCESS, NULL);
    expect_wc(r.rcq, 2, IBV_WC_SUCCESS, NULL);
    pair_close(&l, &r);
}

// C28: RESET makes no completions for what was posted, and the depth is there again.
static void reset_with_work_outstanding(void **state)
{
    struct end_options opt = {.rnr_retry = 7, .send_wr = 4};
    struct end l, r;

    (void)state;
    pair_open(&l, &r, &opt);
    struct end_address ra = end_address(&r);
    struct ibv_sge sge = end_sge(&l, 0, 8);
    struct ibv_send_wr wr = send_wr(1, IBV_WR_SEND, &sge, 0, 0);
    for (unsigned i = 0; i < 4; i++)
        CHECK_INT(post(&l, &wr), 0);
    end_to(&l, IBV_QPS_RESET);
    expect_empty(l.cq, 20);
    end_to(&r, IBV_QPS_RESET);
    struct end_address la = end_address(&l);
    end_to_rts(&l, &ra);
    end_to_rts(&r, &la);
    for (unsigned i = 0; i < 4; i++) {
        struct ibv_send_wr write = send_wr(i, IBV_WR_RDMA_WRITE, &sge, ra.addr, ra.rkey);
        CHECK_INT(post(&l, &write), 0);
    }
    for (unsigned i = 0; i < 4; i++)
        expect_wc(l.cq, i, IBV_WC_SUCCESS, NULL);
    pair_close(&l, &r);
}

// C29: destroying a queue from any state is legal; the next one does not see its completions.
static void destroy_with_completions_unpolled(void **state)
{
    struct end l, r;

    (void)state;
    pair_open(&l, &r, NULL);
    struct ibv_sge sge = end_sge(&l, 0, 8);
    struct ibv_send_wr wr = send_wr(1, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)r.buf, r.mr->rkey);
    for (unsigned i = 0; i < 8; i++)
        CHECK_INT(post(&l, &wr), 0);
    CHECK_INT(ibv_destroy_qp(l.qp), 0);
    l.qp = NULL;
    expect_empty(l.cq, 20);
    pair_close(&l, &r);
}

// C15: dereg succeeds while a WR waits; no byte moves through the region afterwards.
static void a_region_deregistered_under_a_request(void **state)
{
    struct end_options opt = {.rnr_retry = 7};
    struct end l, r;

    (void)state;
    pair_open(&l, &r, &opt);
    struct ibv_sge sge = end_sge(&l, 0, 8);
    struct ibv_send_wr wr = send_wr(1, IBV_WR_SEND, &sge, 0, 0);
    CHECK_INT(post(&l, &wr), 0);
    CHECK_INT(ibv_dereg_mr(l.mr), 0);
    l.mr = NULL;
    memset(r.buf, 0x33, 8);
    CHECK_INT(post_recv(&r, 2, 0, 8), 0);
    expect_wc(l.cq, 1, IBV_WC_LOC_PROT_ERR, NULL);
    for (unsigned i = 0; i < 8; i++)
        CHECK_INT(r.buf[i], 0x33);
    pair_close(&l, &r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cause_comes_first_then_flushes_in_order),
        cmocka_unit_test(each_cause_has_its_status),
        cmocka_unit_test(rights_of_region_and_queue_are_both_needed),
        cmocka_unit_test(a_result_needs_local_write),
        cmocka_unit_test(rnr_waits_until_a_receive_comes),
        cmocka_unit_test(reset_with_work_outstanding),
        cmocka_unit_test(destroy_with_completions_unpolled),
        cmocka_unit_test(a_region_deregistered_under_a_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
