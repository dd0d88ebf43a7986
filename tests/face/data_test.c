// SPDX-License-Identifier: MIT
// What a request does and what its completion says, through verbs, within one process: C06, C19 to C26, C41.
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

static void opcodes_that_a_service_has_not_fail_as_local_operation_errors(void **state)
{
    static const enum ibv_wr_opcode op[] = {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD};
    struct end_options uc = {.type = IBV_QPT_UC};
    struct end l, r;

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        pair_open(&l, &r, &uc);
        struct ibv_sge sge = end_sge(&l, 0, 8);
        struct ibv_send_wr wr = send_wr(1, op[i], &sge, (uintptr_t)r.buf, r.mr->rkey);
        CHECK_INT(post(&l, &wr), 0);
        expect_wc(l.cq, 1, IBV_WC_LOC_QP_OP_ERR, NULL);
        CHECK_INT(end_state(&l), IBV_QPS_SQE);
        CHECK_INT(end_state(&r), IBV_QPS_RTS);
        pair_close(&l, &r);
    }
}

// A piece of no bytes names no memory: neither its address nor its key is looked at.
static void a_piece_of_no_bytes_names_nothing(void **state)
{
    struct end l, r;

    (void)state;
    pair_open(&l, &r, NULL);
    struct ibv_sge none = {.addr = 1, .length = 0, .lkey = 0xdead};
    struct ibv_send_wr wr = send_wr(1, IBV_WR_SEND, &none, 0, 0);
    struct ibv_recv_wr *bad, recv = {.wr_id = 2, .sg_list = &none, .num_sge = 1};
    CHECK_INT(ibv_post_recv(r.qp, &recv, &bad), 0);
    CHECK_INT(post(&l, &wr), 0);
    expect_wc(l.cq, 1, IBV_WC_SUCCESS, NULL);
    expect_wc(r.rcq, 2, IBV_WC_SUCCESS, NULL);
    pair_close(&l, &r);
}

static void a_region_of_no_bytes_takes_accesses_of_no_bytes(void **state)
{
    struct end l, r;

    (void)state;
    pair_open(&l, &r, NULL);
    struct ibv_mr *none = ibv_reg_mr(r.pd, r.buf, 0, FULL_ACCESS);
    CHECK(none != NULL);
    struct ibv_sge sge = end_sge(&l, 0, 0);
    struct ibv_send_wr wr = send_wr(1, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)r.buf, none->rkey);
    CHECK_INT(post(&l, &wr), 0);
    expect_wc(l.cq, 1, IBV_WC_SUCCESS, NULL);
    sge.length = 1;
    wr.wr_id = 2;
    CHECK_INT(post(&l, &wr), 0);
    expect_wc(l.cq, 2, IBV_WC_REM_ACCESS_ERR, NULL);
    CHECK_INT(ibv_dereg_mr(none), 0);
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
        cmocka_unit_test(opcodes_that_a_service_has_not_fail_as_local_operation_errors),
        cmocka_unit_test(a_piece_of_no_bytes_names_nothing),
        cmocka_unit_test(a_region_of_no_bytes_takes_accesses_of_no_bytes),
        cmocka_unit_test(iova_names_the_memory),
        cmocka_unit_test(an_srq_serves_two_queues_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
