// SPDX-License-Identifier: MIT
// What a request does and what its completion says, through verbs, within one process: C06, C17 to C29.
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "face/lib/ends.h"

static void fill(char *at, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        at[i] = (char)(seed + i * 7);
}

// ---- opcodes

static void a_write_lands_and_completes(void **state)
{
    struct ibv_wc wc;
    struct end l, r;

    (void)state;
    pair_open(&l, &r, NULL);
    fill(l.buf, 1000, 1);
    struct ibv_sge sge = end_sge(&l, 0, 1000);
    struct ibv_send_wr wr = send_wr(11, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)r.buf + 24, r.mr->rkey);
    CHECK_INT(post(&l, &wr), 0);
    expect_wc(l.cq, 11, IBV_WC_SUCCESS, &wc);
    CHECK_INT(wc.opcode, IBV_WC_RDMA_WRITE);
    CHECK_INT(wc.qp_num, l.qp->qp_num);
    CHECK(!memcmp(r.buf + 24, l.buf, 1000));
    CHECK(r.buf[23] == 0 && r.buf[1024] == 0);
    expect_empty(r.rcq, 5);
    pair_close(&l, &r);
}

static void a_read_fetches(void **state)
{
    struct ibv_wc wc;
    struct end l, r;

    (void)state;
    pair_open(&l, &r, NULL);
    fill(r.buf, 1000, 3);
    struct ibv_sge sge = end_sge(&l, 8, 1000);
    struct ibv_send_wr wr = send_wr(12, IBV_WR_RDMA_READ, &sge, (uintptr_t)r.buf, r.mr->rkey);
    CHECK_INT(post(&l, &wr), 0);
    expect_wc(l.cq, 12, IBV_WC_SUCCESS, &wc);
    CHECK_INT(wc.opcode, IBV_WC_RDMA_READ);
    CHECK_INT(wc.byte_len, 1000);
    CHECK(!memcmp(l.buf + 8, r.buf, 1000));
    pair_close(&l, &r);
}

static void atomics_return_the_old_value(void **state)
{
    struct ibv_wc wc;
    struct end l, r;
    uint64_t *word, *result;

    (void)state;
    pair_open(&l, &r, NULL);
    word = (uint64_t *)(void *)(r.buf + 64);
    result = (uint64_t *)(void *)l.buf;
    *word = 40;
    struct ibv_sge sge = end_sge(&l, 0, 8);
    struct ibv_send_wr add = send_wr(1, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, (uintptr_t)word, r.mr->rkey);
    add.wr.atomic.compare_add = 2;
    CHECK_INT(post(&l, &add), 0);
    expect_wc(l.cq, 1, IBV_WC_SUCCESS, &wc);
    CHECK_INT(wc.opcode, IBV_WC_FETCH_ADD);
    CHECK_INT(wc.byte_len, 8);
    CHECK_INT(*result, 40);
    CHECK_INT(*word, 42);
    struct ibv_send_wr cas = send_wr(2, IBV_WR_ATOMIC_CMP_AND_SWP, &sge, (uintptr_t)word, r.mr->rkey);
    cas.wr.atomic.compare_add = 41; // does not match: nothing is stored
    cas.wr.atomic.swap = 7;
    CHECK_INT(post(&l, &cas), 0);
    expect_wc(l.cq, 2, IBV_WC_SUCCESS, &wc);
    CHECK_INT(wc.opcode, IBV_WC_COMP_SWAP);
    CHECK_INT(*result, 42);
    CHECK_INT(*word, 42);
    cas.wr.atomic.compare_add = 42;
    CHECK_INT(post(&l, &cas), 0);
    expect_wc(l.cq, 2, IBV_WC_SUCCESS, NULL);
    CHECK_INT(*word, 7);
    pair_close(&l, &r);
}

// C26: the 32 bits travel untouched; flags say what the receive carries.
static void a_send_arrives_with_immediate_as_given(void **state)
{
    struct ibv_wc wc;
    struct end l, r;

    (void)state;
    pair_open(&l, &r, NULL);
    fill(l.buf, 100, 9);
    struct ibv_sge sge = end_sge(&l, 0, 100);
    struct ibv_send_wr wr = send_wr(5, IBV_WR_SEND_WITH_IMM, &sge, 0, 0);
    wr.imm_data = htonl(0x01020304);
    CHECK_INT(post_recv(&r, 50, 512, 200), 0);
    CHECK_INT(post(&l, &wr), 0);
    expect_wc(r.rcq, 50, IBV_WC_SUCCESS, &wc);
    CHECK_INT(wc.opcode, IBV_WC_RECV);
    CHECK_INT(wc.wc_flags, IBV_WC_WITH_IMM);
    CHECK_INT(ntohl(wc.imm_data), 0x01020304);
    CHECK_INT(wc.byte_len, 100);
    CHECK_INT(wc.qp_num, r.qp->qp_num);
    CHECK(!memcmp(r.buf + 512, l.buf, 100));
    expect_wc(l.cq, 5, IBV_WC_SUCCESS, &wc);
    CHECK_INT(wc.opcode, IBV_WC_SEND);
    wr.opcode = IBV_WR_SEND;
    CHECK_INT(post_recv(&r, 51, 512, 200), 0);
    CHECK_INT(post(&l, &wr), 0);
    expect_wc(r.rcq, 51, IBV_WC_SUCCESS, &wc);
    CHECK_INT(wc.wc_flags, 0);
    pair_close(&l, &r);
}

// C41: takes a receive, leaves its buffer alone, byte_len is what was written.
static void a_write_with_immediate_takes_a_receive(void **state)
{
    struct ibv_wc wc;
    struct end l, r;

    (void)state;
    pair_open(&l, &r, NULL);
    fill(l.buf, 100, 9);
    struct ibv_sge sge = end_sge(&l, 0, 100);
    struct ibv_send_wr wr = send_wr(5, IBV_WR_RDMA_WRITE_WITH_IMM, &sge, (uintptr_t)r.buf, r.mr->rkey);
    struct ibv_recv_wr *bad, empty = {.wr_id = 51};
    wr.imm_data = htonl(77);
    memset(r.buf + 512, 0x5a, 100);
    CHECK_INT(post_recv(&r, 50, 512, 100), 0);
    CHECK_INT(ibv_post_recv(r.qp, &empty, &bad), 0);
    CHECK_INT(post(&l, &wr), 0);
    wr.wr_id = 6;
    wr.num_sge = 0;
    CHECK_INT(post(&l, &wr), 0);
    expect_wc(r.rcq, 50, IBV_WC_SUCCESS, &wc);
    CHECK_INT(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    CHECK_INT(wc.wc_flags, IBV_WC_WITH_IMM);
    CHECK_INT(ntohl(wc.imm_data), 77);
    CHECK_INT(wc.byte_len, 100);
    for (int i = 0; i < 100; i++)
        CHECK_INT(r.buf[512 + i], 0x5a);
    CHECK(!memcmp(r.buf, l.buf, 100));
    expect_wc(r.rcq, 51, IBV_WC_SUCCESS, &wc);
    CHECK_INT(wc.byte_len, 0);
    expect_wc(l.cq, 5, IBV_WC_SUCCESS, &wc);
    CHECK_INT(wc.opcode, IBV_WC_RDMA_WRITE);
    expect_wc(l.cq, 6, IBV_WC_SUCCESS, NULL);
    pair_close(&l, &r);
}

static void gather_and_scatter_keep_the_order_of_bytes(void **state)
{
    struct end l, r;

    (void)state;
    pair_open(&l, &r, NULL);
    fill(l.buf, 300, 5);
    struct ibv_sge from[4] = {end_sge(&l, 200, 50), end_sge(&l, 0, 0), end_sge(&l, 0, 70),
                              end_sge(&l, 100, 3)};
    struct ibv_sge to[2] = {end_sge(&r, 0, 60), end_sge(&r, 1000, 100)};
    struct ibv_recv_wr *badr, recv = {.wr_id = 1, .sg_list = to, .num_sge = 2};
    struct ibv_send_wr wr = send_wr(2, IBV_WR_SEND, from, 0, 0);
    char expected[123];
    memcpy(expected, l.buf + 200, 50);
    memcpy(expected + 50, l.buf, 70);
    memcpy(expected + 120, l.buf + 100, 3);
    wr.num_sge = 4;
    CHECK_INT(ibv_post_recv(r.qp, &recv, &badr), 0);
    CHECK_INT(post(&l, &wr), 0);
    expect_wc(r.rcq, 1, IBV_WC_SUCCESS, NULL);
    CHECK(!memcmp(r.buf, expected, 60));
    CHECK(!memcmp(r.buf + 1000, expected + 60, 63));
    expect_wc(l.cq, 2, IBV_WC_SUCCESS, NULL);
    pair_close(&l, &r);
}

// ---- C06: signaling, 2 x 2

static void completions_by_sq_sig_all_and_flag(void **state)
{
    (void)state;
    for (unsigned all = 0; all < 2; all++)
        for (unsigned flag = 0; flag < 2; flag++) {
            struct end_options opt = {.sig_all = all};
            struct end l, r;
            struct ibv_wc wc;
            pair_open(&l, &r, &opt);
            struct ibv_sge sge = end_sge(&l, 0, 8);
            struct ibv_send_wr wr = send_wr(1, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)r.buf, r.mr->rkey);
            wr.send_flags = flag ? IBV_SEND_SIGNALED : 0;
            CHECK_INT(post(&l, &wr), 0);
            bool came = poll_one(l.cq, &wc, all || flag ? 5000 : 30);
            if (came != (all || flag))
                check_failed(__FILE__, __LINE__, "sq_sig_all %u, SIGNALED %u: expected %s completion", all,
                             flag, all || flag ? "a" : "no");
            pair_close(&l, &r);
        }
}

static void ten_posted_and_the_last_signaled_give_one_completion(void **state)
{
    struct end l, r;

    (void)state;
    pair_open(&l, &r, NULL);
    for (unsigned i = 1; i <= 10; i++) {
        struct ibv_sge sge = end_sge(&l, 0, 8);
        struct ibv_send_wr wr = send_wr(i, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)r.buf, r.mr->rkey);
        wr.send_flags = i == 10 ? IBV_SEND_SIGNALED : 0;
        CHECK_INT(post(&l, &wr), 0);
    }
    expect_wc(l.cq, 10, IBV_WC_SUCCESS, NULL);
    expect_empty(l.cq, 20);
    pair_close(&l, &r);
}

// ---- C19, C20: inline

static void inline_takes_the_limit_and_not_one_byte_more(void **state)
{
    struct end l, r;

    (void)state;
    pair_open(&l, &r, NULL);
    char mine[65];
    fill(mine, sizeof mine, 4);
    struct ibv_sge sge = {.addr = (uintptr_t)mine, .length = 64}; // no key: it is not looked at
    struct ibv_send_wr wr = send_wr(1, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)r.buf, r.mr->rkey), *bad = NULL;
    wr.send_flags |= IBV_SEND_INLINE;
    CHECK_INT(post(&l, &wr), 0);
    memset(mine, 0, 64); // the buffer is ours again at once
    expect_wc(l.cq, 1, IBV_WC_SUCCESS, NULL);
    fill(mine, sizeof mine, 4);
    CHECK(!memcmp(r.buf, mine, 64));
    memset(r.buf, 0, 65);
    sge.length = 65;
    CHECK_INT(ibv_post_send(l.qp, &wr, &bad), EINVAL);
    CHECK(bad == &wr);
    expect_empty(l.cq, 10);
    for (int i = 0; i < 65; i++)
        CHECK_INT(r.buf[i], 0);
    sge.length = 0;
    CHECK_INT(post(&l, &wr), 0); // zero bytes inline are fine
    expect_wc(l.cq, 1, IBV_WC_SUCCESS, NULL);
    pair_close(&l, &r);
}

static void inline_is_refused_on_read_and_atomics(void **state)
{
    static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP,
                                             IBV_WR_ATOMIC_FETCH_AND_ADD};
    struct end l, r;

    (void)state;
    pair_open(&l, &r, NULL);
    for (unsigned i = 0; i < 3; i++) {
        struct ibv_sge sge = end_sge(&l, 0, 8);
        struct ibv_send_wr wr = send_wr(1, ops[i], &sge, (uintptr_t)r.buf, r.mr->rkey);
        wr.send_flags |= IBV_SEND_INLINE;
        CHECK_INT(post(&l, &wr), EINVAL);
    }
    expect_empty(l.cq, 10);
    pair_close(&l, &r);
}

// ---- C21, C23: lists and full queues

static void a_list_that_does_not_fit_stops_at_bad_wr(void **state)
{
    struct end_options opt = {.send_wr = 4};
    struct ibv_send_wr wr[6], *bad = NULL;
    struct ibv_sge sge[6];
    struct end l, r;

    (void)state;
    pair_open(&l, &r, &opt);
    for (unsigned i = 0; i < 6; i++) {
        l.buf[i] = (char)(i + 1);
        sge[i] = end_sge(&l, i, 1);
        wr[i] = send_wr(i, IBV_WR_RDMA_WRITE, &sge[i], (uintptr_t)r.buf + i, r.mr->rkey);
        wr[i].next = i < 5 ? &wr[i + 1] : NULL;
    }
    CHECK_INT(ibv_post_send(l.qp, wr, &bad), ENOMEM);
    CHECK(bad == &wr[4]);
    for (unsigned i = 0; i < 4; i++)
        expect_wc(l.cq, i, IBV_WC_SUCCESS, NULL);
    expect_empty(l.cq, 10);
    CHECK(r.buf[3] == 4 && r.buf[4] == 0);
    CHECK_INT(ibv_post_send(l.qp, bad, &bad), 0); // go on where it stopped
    expect_wc(l.cq, 4, IBV_WC_SUCCESS, NULL);
    expect_wc(l.cq, 5, IBV_WC_SUCCESS, NULL);
    pair_close(&l, &r);
}

static void a_slot_is_free_when_a_covering_completion_was_polled(void **state)
{
    struct end_options opt = {.send_wr = 4};
    struct end l, r;

    (void)state;
    pair_open(&l, &r, &opt);
    struct ibv_sge sge = end_sge(&l, 0, 8);
    struct ibv_send_wr wr = send_wr(1, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)r.buf, r.mr->rkey);
    for (unsigned round = 0; round < 10; round++) {
        for (unsigned i = 0; i < 4; i++) {
            wr.send_flags = i == 3 ? IBV_SEND_SIGNALED : 0;
            CHECK_INT(post(&l, &wr), 0);
        }
        for (volatile int spin = 0; spin < 100000; spin++)
            ; // executed by now, but not polled
        CHECK_INT(post(&l, &wr), ENOMEM);
        expect_wc(l.cq, 1, IBV_WC_SUCCESS, NULL);
    }
    pair_close(&l, &r);
}

static void malformed_requests_are_einval_and_change_nothing(void **state)
{
    struct end l, r;

    (void)state;
    pair_open(&l, &r, NULL);
    struct ibv_sge sge[5] = {end_sge(&l, 0, 8), end_sge(&l, 0, 8), end_sge(&l, 0, 8), end_sge(&l, 0, 8),
                             end_sge(&l, 0, 8)};
    struct ibv_send_wr wr = send_wr(1, IBV_WR_RDMA_WRITE, sge, (uintptr_t)r.buf, r.mr->rkey);
#define BAD(change)                                                                                          \
    do {                                                                                                     \
        struct ibv_send_wr w = wr;                                                                           \
        change;                                                                                              \
        CHECK_INT(post(&l, &w), EINVAL);                                                                     \
    } while (0)
    BAD(w.num_sge = 5);
    BAD(w.num_sge = -1);
    BAD(w.sg_list = NULL);
    BAD(w.opcode = IBV_WR_TSO);
    BAD(w.opcode = (enum ibv_wr_opcode)40);
    BAD(w.send_flags |= IBV_SEND_IP_CSUM);
    BAD(w.send_flags |= 1u << 20);
#undef BAD
    struct ibv_recv_wr *bad, recv = {.wr_id = 1, .sg_list = sge, .num_sge = 5};
    CHECK_INT(ibv_post_recv(l.qp, &recv, &bad), EINVAL);
    CHECK(bad == &recv);
    expect_empty(l.cq, 10);
    CHECK_INT(end_state(&l), IBV_QPS_RTS);
    CHECK_INT(post(&l, &wr), 0);
    expect_wc(l.cq, 1, IBV_WC_SUCCESS, NULL);
    pair_close(&l, &r);
}

static void opcodes_that_a_service_has_not_are_einval(void **state)
{
    struct end_options uc = {.type = IBV_QPT_UC};
    struct end l, r;

    (void)state;
    pair_open(&l, &r, &uc);
    struct ibv_sge sge = end_sge(&l, 0, 8);
    struct ibv_send_wr read = send_wr(1, IBV_WR_RDMA_READ, &sge, (uintptr_t)r.buf, r.mr->rkey);
    struct ibv_send_wr add = send_wr(1, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, (uintptr_t)r.buf, r.mr->rkey);
    struct ibv_send_wr write = send_wr(2, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)r.buf, r.mr->rkey);
    CHECK_INT(post(&l, &read), EINVAL);
    CHECK_INT(post(&l, &add), EINVAL);
    CHECK_INT(post(&l, &write), 0);
    expect_wc(l.cq, 2, IBV_WC_SUCCESS, NULL);
    pair_close(&l, &r);
}

// ---- errors

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
    for (unsigned m = 0; m < 6; m++)
        for (unsigned q = 0; q < 4; q++)
            for (unsigned o = 0; o < 5; o++) {
                struct end_options right = {.mr_access = mr_rights[m], .qp_access = qp_rights[q]};
                struct end l, r;
                struct ibv_wc wc = {.status = 99};
                end_open(&l, NULL);
                end_open(&r, &right);
                struct end_address la = end_address(&l), ra = end_address(&r);
                end_to_rts(&l, &ra);
                end_to_rts(&r, &la);
                CHECK_INT(post_recv(&r, 9, 0, 8), 0);
                struct ibv_sge sge = end_sge(&l, 0, 8);
                struct ibv_send_wr wr = send_wr(1, ops[o], &sge, ra.addr, ra.rkey);
                CHECK_INT(post(&l, &wr), 0);
                enum ibv_wc_status expected = expected_status(ops[o], r.opt.mr_access, r.opt.qp_access);
                if (!poll_one(l.cq, &wc, 5000) || wc.status != expected)
                    check_failed(__FILE__, __LINE__, "opcode %d, region %#x, queue %#x: expected %s, got %s",
                                 ops[o], r.opt.mr_access, r.opt.qp_access, ibv_wc_status_str(expected),
                                 ibv_wc_status_str(wc.status));
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

static void iova_names_the_memory(void **state)
{
    static char memory[4096];
    struct end l, r;

    (void)state;
    pair_open(&l, &r, NULL);
    int access = FULL_ACCESS;
    struct ibv_mr *mr = ibv_reg_mr_iova(r.pd, memory, sizeof memory, 0x100000, access);
    CHECK(mr != NULL);
    memset(l.buf, 0x77, 16);
    struct ibv_sge sge = end_sge(&l, 0, 16);
    struct ibv_send_wr wr = send_wr(1, IBV_WR_RDMA_WRITE, &sge, 0x100000 + 100, mr->rkey);
    CHECK_INT(post(&l, &wr), 0);
    expect_wc(l.cq, 1, IBV_WC_SUCCESS, NULL);
    CHECK(memory[99] == 0 && memory[100] == 0x77 && memory[115] == 0x77 && memory[116] == 0);
    struct ibv_sge local = {
        .addr = 0x100000 + 200, .length = 8, .lkey = mr->lkey}; // a local key takes it too
    struct ibv_recv_wr *bad, recv = {.wr_id = 3, .sg_list = &local, .num_sge = 1};
    CHECK_INT(ibv_post_recv(r.qp, &recv, &bad), 0);
    sge.length = 8;
    wr = send_wr(2, IBV_WR_SEND, &sge, 0, 0);
    CHECK_INT(post(&l, &wr), 0);
    expect_wc(r.rcq, 3, IBV_WC_SUCCESS, NULL);
    CHECK(memory[200] == 0x77);
    CHECK_INT(ibv_dereg_mr(mr), 0);
    pair_close(&l, &r);
}

static void an_srq_serves_two_queues_in_order(void **state)
{
    struct end_options with_srq = {.srq = true};
    struct ibv_wc wc;
    struct end l, r;

    (void)state;
    pair_open(&l, &r, &with_srq);
    for (unsigned i = 0; i < 16; i++)
        CHECK_INT(post_recv(&r, i, i * 8, 8), 0);
    CHECK_INT(post_recv(&r, 16, 0, 8), ENOMEM);
    struct ibv_sge sge = end_sge(&l, 0, 8);
    struct ibv_send_wr wr = send_wr(1, IBV_WR_SEND, &sge, 0, 0);
    for (unsigned i = 0; i < 16; i++) {
        memset(l.buf, (int)i + 1, 8);
        CHECK_INT(post(&l, &wr), 0);
        expect_wc(l.cq, 1, IBV_WC_SUCCESS, NULL);
        expect_wc(r.rcq, i, IBV_WC_SUCCESS, &wc);
        CHECK_INT(wc.qp_num, r.qp->qp_num);
        CHECK_INT(r.buf[i * 8], i + 1);
    }
    struct ibv_recv_wr *bad, recv = {.wr_id = 1};
    CHECK_INT(ibv_post_recv(r.qp, &recv, &bad), EINVAL); // it has no receive queue of its own
    pair_close(&l, &r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_lands_and_completes),
        cmocka_unit_test(a_read_fetches),
        cmocka_unit_test(atomics_return_the_old_value),
        cmocka_unit_test(a_send_arrives_with_immediate_as_given),
        cmocka_unit_test(a_write_with_immediate_takes_a_receive),
        cmocka_unit_test(gather_and_scatter_keep_the_order_of_bytes),
        cmocka_unit_test(completions_by_sq_sig_all_and_flag),
        cmocka_unit_test(ten_posted_and_the_last_signaled_give_one_completion),
        cmocka_unit_test(inline_takes_the_limit_and_not_one_byte_more),
        cmocka_unit_test(inline_is_refused_on_read_and_atomics),
        cmocka_unit_test(a_list_that_does_not_fit_stops_at_bad_wr),
        cmocka_unit_test(a_slot_is_free_when_a_covering_completion_was_polled),
        cmocka_unit_test(malformed_requests_are_einval_and_change_nothing),
        cmocka_unit_test(opcodes_that_a_service_has_not_are_einval),
        cmocka_unit_test(the_cause_comes_first_then_flushes_in_order),
        cmocka_unit_test(each_cause_has_its_status),
        cmocka_unit_test(rights_of_region_and_queue_are_both_needed),
        cmocka_unit_test(a_result_needs_local_write),
        cmocka_unit_test(rnr_waits_until_a_receive_comes),
        cmocka_unit_test(reset_with_work_outstanding),
        cmocka_unit_test(destroy_with_completions_unpolled),
        cmocka_unit_test(a_region_deregistered_under_a_request),
        cmocka_unit_test(iova_names_the_memory),
        cmocka_unit_test(an_srq_serves_two_queues_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
