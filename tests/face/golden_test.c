// SPDX-License-Identifier: MIT
// C25, the golden table: cause -> status at the requester, status of a receive at the responder, the states
// of both queues; for every service, through both ways of polling.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "face/lib/ends.h"

enum { NONE = -1, RECEIVE = 90, QKEY = 0x11111111 };

// What a row arranges: the pair, its request (one piece of 8 bytes to the peer's memory), and the qkey.
struct scene {
    struct end l, r;
    struct ibv_sge sge;
    struct ibv_send_wr wr;
};

static void nothing(struct scene *s)
{
    (void)s;
}

static void receive(struct scene *s)
{
    CHECK_INT(post_recv(&s->r, RECEIVE, 0, 64), 0);
}

static void bad_lkey(struct scene *s)
{
    s->sge.lkey ^= 0x5500;
}

static void beyond_local(struct scene *s)
{
    s->sge.addr = (uintptr_t)s->l.buf + s->l.opt.bytes - 4;
}

static void bad_lkey_of_a_message(struct scene *s)
{
    receive(s);
    bad_lkey(s);
}

static void bad_rkey(struct scene *s)
{
    s->wr.wr.rdma.rkey ^= 0x5500;
}

static void lkey_as_rkey(struct scene *s)
{
    s->wr.wr.rdma.rkey = s->r.mr->lkey;
}

static void beyond_remote(struct scene *s)
{
    s->wr.wr.rdma.remote_addr = (uintptr_t)s->r.buf + s->r.opt.bytes - 4;
}

static void nothing_for_a_bad_rkey(struct scene *s)
{
    bad_rkey(s);
    s->sge.length = 0;
}

static void bad_rkey_of_an_immediate(struct scene *s)
{
    receive(s);
    bad_rkey(s);
}

static void atomic_on_the_peer(struct scene *s, size_t offset, uint32_t rkey)
{
    s->wr.wr.atomic.remote_addr = (uintptr_t)s->r.buf + offset;
    s->wr.wr.atomic.rkey = rkey;
}

static void misaligned(struct scene *s)
{
    atomic_on_the_peer(s, 4, s->r.mr->rkey);
}

static void bad_rkey_of_an_atomic(struct scene *s)
{
    atomic_on_the_peer(s, 0, s->r.mr->rkey ^ 0x5500);
}

static void atomic_of_four_bytes(struct scene *s)
{
    atomic_on_the_peer(s, 0, s->r.mr->rkey);
    s->sge.length = 4;
}

static void receive_too_short(struct scene *s)
{
    CHECK_INT(post_recv(&s->r, RECEIVE, 0, 4), 0);
}

static void receive_with_a_bad_key(struct scene *s)
{
    struct ibv_sge sge = end_sge(&s->r, 0, 64);
    struct ibv_recv_wr *bad, wr = {.wr_id = RECEIVE, .sg_list = &sge, .num_sge = 1};

    sge.lkey ^= 0x5500;
    CHECK_INT(ibv_post_recv(s->r.qp, &wr, &bad), 0);
}

static void peer_in_error(struct scene *s)
{
    receive(s);
    end_to(&s->r, IBV_QPS_ERR);
}

static void peer_in_reset(struct scene *s)
{
    end_to(&s->r, IBV_QPS_RESET);
}

static void bad_lkey_to_nobody(struct scene *s)
{
    peer_in_reset(s);
    bad_lkey(s);
}

static void responder_without_depth(struct scene *s)
{
    struct end_address l = end_address(&s->l);

    end_to(&s->r, IBV_QPS_RESET);
    end_to_init(&s->r);
    s->r.opt.rd_atomic = 0;
    end_to_rts(&s->r, &l);
}

static void atomic_to_a_responder_without_depth(struct scene *s)
{
    responder_without_depth(s);
    atomic_on_the_peer(s, 0, s->r.mr->rkey);
}

static void nothing_to_read_without_depth(struct scene *s)
{
    responder_without_depth(s);
    s->sge.length = 0;
}

static void invalidate_of_no_window(struct scene *s)
{
    receive(s);
    s->wr.invalidate_rkey = 0xdead00;
}

static void own_error(struct scene *s)
{
    end_to(&s->l, IBV_QPS_ERR);
}

static void wrong_qkey(struct scene *s)
{
    receive(s);
    s->wr.wr.ud.remote_qkey ^= 1;
}

static void longer_than_the_mtu(struct scene *s)
{
    receive(s);
    s->sge.length = 4097;
}

static const struct row {
    const char *cause;
    enum ibv_qp_type type;
    enum ibv_wr_opcode op;
    void (*arrange)(struct scene *s);
    int requester, responder; // status; NONE: no receive completes
    enum ibv_qp_state requester_state, responder_state;
} rows[] = {
#define RC IBV_QPT_RC
#define UC IBV_QPT_UC
#define UD IBV_QPT_UD
#define WR(op) IBV_WR_##op
#define WC(status) IBV_WC_##status
#define S(state) IBV_QPS_##state
    {"nothing wrong", RC, WR(RDMA_WRITE), nothing, WC(SUCCESS), NONE, S(RTS), S(RTS)},
    {"a message", RC, WR(SEND), receive, WC(SUCCESS), WC(SUCCESS), S(RTS), S(RTS)},
    {"no bytes, unknown remote key", RC, WR(RDMA_WRITE), nothing_for_a_bad_rkey, WC(SUCCESS), NONE, S(RTS),
     S(RTS)},
    {"no bytes, unknown remote key", RC, WR(RDMA_READ), nothing_for_a_bad_rkey, WC(SUCCESS), NONE, S(RTS),
     S(RTS)},
    {"unknown local key", RC, WR(RDMA_WRITE), bad_lkey, WC(LOC_PROT_ERR), NONE, S(ERR), S(RTS)},
    {"unknown local key", RC, WR(RDMA_READ), bad_lkey, WC(LOC_PROT_ERR), NONE, S(ERR), S(RTS)},
    {"unknown local key", RC, WR(SEND), bad_lkey_of_a_message, WC(LOC_PROT_ERR), NONE, S(ERR), S(RTS)},
    {"local range", RC, WR(RDMA_WRITE), beyond_local, WC(LOC_PROT_ERR), NONE, S(ERR), S(RTS)},
    {"unknown remote key", RC, WR(RDMA_WRITE), bad_rkey, WC(REM_ACCESS_ERR), NONE, S(ERR), S(ERR)},
    {"unknown remote key", RC, WR(RDMA_READ), bad_rkey, WC(REM_ACCESS_ERR), NONE, S(ERR), S(ERR)},
    {"unknown remote key", RC, WR(ATOMIC_FETCH_AND_ADD), bad_rkey_of_an_atomic, WC(REM_ACCESS_ERR), NONE,
     S(ERR), S(ERR)},
    {"unknown remote key", RC, WR(RDMA_WRITE_WITH_IMM), bad_rkey_of_an_immediate, WC(REM_ACCESS_ERR),
     WC(LOC_PROT_ERR), S(ERR), S(ERR)},
    {"the peer's local key", RC, WR(RDMA_WRITE), lkey_as_rkey, WC(REM_ACCESS_ERR), NONE, S(ERR), S(ERR)},
    {"remote range", RC, WR(RDMA_WRITE), beyond_remote, WC(REM_ACCESS_ERR), NONE, S(ERR), S(ERR)},
    {"misaligned atomic", RC, WR(ATOMIC_CMP_AND_SWP), misaligned, WC(REM_INV_REQ_ERR), NONE, S(ERR), S(ERR)},
    {"atomic of 4 bytes", RC, WR(ATOMIC_FETCH_AND_ADD), atomic_of_four_bytes, WC(LOC_LEN_ERR), NONE, S(ERR),
     S(RTS)},
    {"a responder without depth", RC, WR(RDMA_READ), responder_without_depth, WC(REM_INV_REQ_ERR), NONE,
     S(ERR), S(ERR)},
    {"a responder without depth", RC, WR(RDMA_READ), nothing_to_read_without_depth, WC(REM_INV_REQ_ERR), NONE,
     S(ERR), S(ERR)},
    {"a responder without depth", RC, WR(ATOMIC_FETCH_AND_ADD), atomic_to_a_responder_without_depth,
     WC(REM_INV_REQ_ERR), NONE, S(ERR), S(ERR)},
    {"a responder without depth", RC, WR(RDMA_WRITE), responder_without_depth, WC(SUCCESS), NONE, S(RTS),
     S(RTS)},
    {"receive too short", RC, WR(SEND), receive_too_short, WC(REM_INV_REQ_ERR), WC(LOC_LEN_ERR), S(ERR),
     S(ERR)},
    {"receive with unknown key", RC, WR(SEND), receive_with_a_bad_key, WC(REM_OP_ERR), WC(LOC_PROT_ERR),
     S(ERR), S(ERR)},
    {"no receive, no retry", RC, WR(SEND), nothing, WC(RNR_RETRY_EXC_ERR), NONE, S(ERR), S(RTS)},
    {"peer in ERR", RC, WR(SEND), peer_in_error, WC(RETRY_EXC_ERR), WC(WR_FLUSH_ERR), S(ERR), S(ERR)},
    {"peer in RESET", RC, WR(RDMA_READ), peer_in_reset, WC(RETRY_EXC_ERR), NONE, S(ERR), S(RESET)},
    {"no such window", RC, WR(SEND_WITH_INV), invalidate_of_no_window, WC(RETRY_EXC_ERR), WC(LOC_PROT_ERR),
     S(ERR), S(ERR)},
    {"own queue in ERR", RC, WR(RDMA_WRITE), own_error, WC(WR_FLUSH_ERR), NONE, S(ERR), S(RTS)},
    {"a message", UC, WR(SEND), receive, WC(SUCCESS), WC(SUCCESS), S(RTS), S(RTS)},
    {"unknown local key", UC, WR(RDMA_WRITE), bad_lkey, WC(LOC_PROT_ERR), NONE, S(SQE), S(RTS)},
    {"unknown remote key", UC, WR(RDMA_WRITE), bad_rkey, WC(SUCCESS), NONE, S(RTS), S(RTS)},
    {"no receive", UC, WR(SEND), nothing, WC(SUCCESS), NONE, S(RTS), S(RTS)},
    {"an opcode UC has not", UC, WR(RDMA_READ), nothing, WC(LOC_QP_OP_ERR), NONE, S(SQE), S(RTS)},
    {"a datagram", UD, WR(SEND), receive, WC(SUCCESS), WC(SUCCESS), S(RTS), S(RTS)},
    {"unknown local key", UD, WR(SEND), bad_lkey_of_a_message, WC(LOC_PROT_ERR), NONE, S(SQE), S(RTS)},
    {"unknown local key to nobody", UD, WR(SEND), bad_lkey_to_nobody, WC(LOC_PROT_ERR), NONE, S(SQE),
     S(RESET)},
    {"unknown local key to nobody", UC, WR(SEND), bad_lkey_to_nobody, WC(LOC_PROT_ERR), NONE, S(SQE),
     S(RESET)},
    {"wrong queue key", UD, WR(SEND), wrong_qkey, WC(SUCCESS), NONE, S(RTS), S(RTS)},
    {"no receive", UD, WR(SEND), nothing, WC(SUCCESS), NONE, S(RTS), S(RTS)},
    {"receive too short", UD, WR(SEND), receive_too_short, WC(SUCCESS), NONE, S(RTS), S(RTS)},
    {"longer than the MTU", UD, WR(SEND), longer_than_the_mtu, WC(LOC_LEN_ERR), NONE, S(SQE), S(RTS)},
};

// The next completion in either form: its status, or NONE within `ms`.
static int next(struct ibv_cq *cq, bool extended, int ms, uint64_t *id)
{
    struct ibv_cq_ex *ex = (struct ibv_cq_ex *)cq;
    struct ibv_poll_cq_attr attr = {0};
    struct ibv_wc wc;
    int status;

    if (!extended) {
        bool any = poll_one(cq, &wc, ms);
        *id = wc.wr_id;
        return any ? (int)wc.status : NONE;
    }
    for (int i = 0; ibv_start_poll(ex, &attr); i++) {
        if (i == 2 * ms)
            return NONE;
        usleep(500);
    }
    *id = ex->wr_id;
    status = ex->status;
    ibv_end_poll(ex);
    return status;
}

static void expect(const struct row *row, bool extended, const char *what, int expected, int got)
{
    if (expected != got)
        check_failed(__FILE__, __LINE__, "type %d, opcode %d, %s, %s, %s: expected %d, got %d", row->type,
                     row->op, row->cause, extended ? "start_poll" : "poll_cq", what, expected, got);
}

static int state_within(struct end *e, enum ibv_qp_state expected)
{
    for (unsigned i = 0; i < 5000 && end_state(e) != expected; i++)
        usleep(1000);
    return end_state(e);
}

static struct ibv_ah *address(struct scene *s)
{
    struct ibv_ah_attr attr = {
        .is_global = 1, .port_num = 1, .grh = {.dgid = s->r.gid, .sgid_index = (uint8_t)s->l.gid_index}};
    struct ibv_ah *ah = ibv_create_ah(s->l.pd, &attr);

    CHECK(ah != NULL);
    s->wr.wr.ud.ah = ah;
    s->wr.wr.ud.remote_qpn = s->r.qp->qp_num;
    s->wr.wr.ud.remote_qkey = QKEY;
    return ah;
}

static void play(const struct row *row, bool extended)
{
    struct end_options opt = {.type = row->type, .extended_cq = extended, .timeout = 8};
    struct ibv_ah *ah = NULL;
    struct scene s;
    uint64_t id = 0;

    pair_open(&s.l, &s.r, &opt);
    s.sge = end_sge(&s.l, 0, 8);
    s.wr = send_wr(1, row->op, &s.sge, (uintptr_t)s.r.buf, s.r.mr->rkey);
    if (row->type == UD)
        ah = address(&s);
    row->arrange(&s);
    CHECK_INT(post(&s.l, &s.wr), 0);
    expect(row, extended, "at the requester", row->requester, next(s.l.cq, extended, 5000, &id));
    expect(row, extended, "its wr_id", 1, (int)id);
    expect(row, extended, "at the responder", row->responder,
           next(s.r.rcq, extended, row->responder == NONE ? 1 : 5000, &id));
    if (row->responder != NONE)
        expect(row, extended, "the receive's wr_id", RECEIVE, (int)id);
    expect(row, extended, "the requester's state", row->requester_state,
           state_within(&s.l, row->requester_state));
    expect(row, extended, "the responder's state", row->responder_state,
           state_within(&s.r, row->responder_state));
    if (ah)
        CHECK_INT(ibv_destroy_ah(ah), 0);
    pair_close(&s.l, &s.r);
}

static void each_cause_has_its_statuses_and_states(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        play(&rows[i], false);
        play(&rows[i], true);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_cause_has_its_statuses_and_states)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
