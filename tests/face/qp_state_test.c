// SPDX-License-Identifier: MIT
// C53, C28: which attributes a change of queue state must and may carry. For every step of every service each
// required bit is left out and each forbidden one added: EINVAL, and nothing has changed.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "face/lib/ends.h"

static const enum ibv_qp_type services[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};

#define N_SERVICES (sizeof services / sizeof *services)

// Compared field by field that the program can set; state included.
static bool same(const struct ibv_qp_attr *a, const struct ibv_qp_attr *b)
{
    return a->qp_state == b->qp_state && a->path_mtu == b->path_mtu && a->qkey == b->qkey &&
           a->rq_psn == b->rq_psn && a->sq_psn == b->sq_psn && a->dest_qp_num == b->dest_qp_num &&
           a->qp_access_flags == b->qp_access_flags && a->pkey_index == b->pkey_index &&
           a->max_rd_atomic == b->max_rd_atomic && a->max_dest_rd_atomic == b->max_dest_rd_atomic &&
           a->min_rnr_timer == b->min_rnr_timer && a->port_num == b->port_num && a->timeout == b->timeout &&
           a->retry_cnt == b->retry_cnt && a->rnr_retry == b->rnr_retry &&
           !memcmp(&a->ah_attr, &b->ah_attr, sizeof a->ah_attr);
}

static struct ibv_qp_attr query(struct end *e)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr a;

    CHECK_INT(ibv_query_qp(e->qp, &a, 0xffffff, &init), 0);
    return a;
}

static void refused(struct end *e, struct ibv_qp_attr *attr, int mask, const char *what, int bit)
{
    struct ibv_qp_attr before = query(e), after;
    int got = ibv_modify_qp(e->qp, attr, mask);

    after = query(e);
    if (got != EINVAL || !same(&before, &after))
        check_failed(__FILE__, __LINE__,
                     "type %d in state %d: %s (%#x): expected EINVAL and no change, got %d, %s", e->opt.type,
                     before.qp_state, what, bit, got, same(&before, &after) ? "no change" : "a change");
}

// A queue of `type` that stands one step before `to`.
static void stand_before(struct end *e, enum ibv_qp_type type, enum ibv_qp_state to, struct end_address *self)
{
    struct end_options opt = {.type = type};
    int mask;

    end_open(e, &opt);
    *self = end_address(e);
    for (enum ibv_qp_state s = IBV_QPS_INIT; s < to; s++) {
        struct ibv_qp_attr a = end_attr(e, s, self, &mask);
        CHECK_INT(ibv_modify_qp(e->qp, &a, mask), 0);
    }
}

static void a_missing_required_attribute_is_refused(void **state)
{
    (void)state;
    for (size_t t = 0; t < N_SERVICES; t++)
        for (enum ibv_qp_state to = IBV_QPS_INIT; to <= IBV_QPS_RTS; to++) {
            struct end_address self;
            struct end e;
            int mask;
            stand_before(&e, services[t], to, &self);
            struct ibv_qp_attr a = end_attr(&e, to, &self, &mask);
            for (int bit = 2; bit <= IBV_QP_DEST_QPN; bit <<= 1) // without STATE it would be another request
                if (mask & bit)
                    refused(&e, &a, mask & ~bit, "left out", bit);
            CHECK_INT(ibv_modify_qp(e.qp, &a, mask), 0);
            CHECK_INT(end_state(&e), to);
            end_close(&e);
        }
}

// The optional attributes of each step, by service; all others are forbidden.
static int optional(enum ibv_qp_type type, enum ibv_qp_state to)
{
    bool ud = type == IBV_QPT_UD, rc = type == IBV_QPT_RC;

    if (to == IBV_QPS_INIT)
        return 0;
    if (to == IBV_QPS_RTR)
        return IBV_QP_PKEY_INDEX | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
    return IBV_QP_CUR_STATE | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE) |
           (rc ? IBV_QP_MIN_RNR_TIMER : 0);
}

static void a_forbidden_attribute_is_refused(void **state)
{
    (void)state;
    for (size_t t = 0; t < N_SERVICES; t++)
        for (enum ibv_qp_state to = IBV_QPS_INIT; to <= IBV_QPS_RTS; to++) {
            struct end_address self;
            struct end e;
            int mask;
            stand_before(&e, services[t], to, &self);
            struct ibv_qp_attr a = end_attr(&e, to, &self, &mask);
            a.cur_qp_state = to - 1;
            for (int bit = 2; bit <= IBV_QP_RATE_LIMIT; bit <<= 1)
                if (!((mask | optional(services[t], to)) & bit))
                    refused(&e, &a, mask | bit, "added", bit);
            CHECK_INT(ibv_modify_qp(e.qp, &a, mask | optional(services[t], to)), 0);
            end_close(&e);
        }
}

static void an_illegal_jump_is_refused(void **state)
{
    static const bool legal[IBV_QPS_ERR + 1][IBV_QPS_ERR + 1] = {
        [IBV_QPS_RESET] = {[IBV_QPS_RESET] = 1, [IBV_QPS_INIT] = 1, [IBV_QPS_ERR] = 1},
        [IBV_QPS_INIT] = {[IBV_QPS_RESET] = 1, [IBV_QPS_INIT] = 1, [IBV_QPS_RTR] = 1, [IBV_QPS_ERR] = 1},
        [IBV_QPS_RTR] = {[IBV_QPS_RESET] = 1, [IBV_QPS_RTS] = 1, [IBV_QPS_ERR] = 1},
        [IBV_QPS_RTS] = {[IBV_QPS_RESET] = 1, [IBV_QPS_RTS] = 1, [IBV_QPS_SQD] = 1, [IBV_QPS_ERR] = 1},
    };

    (void)state;
    for (enum ibv_qp_state from = IBV_QPS_RESET; from <= IBV_QPS_RTS; from++)
        for (enum ibv_qp_state to = IBV_QPS_RESET; to <= IBV_QPS_ERR; to++) {
            struct end_address self;
            struct end e;
            int mask;
            if (legal[from][to])
                continue;
            stand_before(&e, IBV_QPT_RC, from + 1, &self);
            struct ibv_qp_attr a = end_attr(&e, to, &self, &mask);
            refused(&e, &a, mask, "jump", (int)to);
            refused(&e, &a, IBV_QP_STATE, "bare jump", (int)to);
            end_close(&e);
        }
}

static void values_out_of_range_are_refused(void **state)
{
    struct end_address self;
    struct end e;
    int mask;

    (void)state;
    stand_before(&e, IBV_QPT_RC, IBV_QPS_RTR, &self);
    const struct ibv_qp_attr good = end_attr(&e, IBV_QPS_RTR, &self, &mask);
#define BAD(change, name)                                                                                    \
    do {                                                                                                     \
        struct ibv_qp_attr a = good;                                                                         \
        change;                                                                                              \
        refused(&e, &a, mask, name, 0);                                                                      \
    } while (0)
    BAD(a.ah_attr.is_global = 0, "no GRH");
    BAD(a.ah_attr.port_num = 2, "port 2 in the address");
    BAD(a.ah_attr.grh.sgid_index = 15, "empty source GID");
    BAD(a.ah_attr.grh.sgid_index = 200, "source GID beyond the table");
    BAD(memset(&a.ah_attr.grh.dgid, 0, 16), "destination GID of zeros");
    BAD(a.path_mtu = 0, "MTU code 0");
    BAD(a.path_mtu = 6, "MTU code 6");
    BAD(a.dest_qp_num = 1u << 24, "25-bit queue number");
    BAD(a.rq_psn = 1u << 24, "25-bit PSN");
    BAD(a.min_rnr_timer = 32, "RNR timer 32");
    BAD(a.max_dest_rd_atomic = 255, "more responder resources than the device has");
    end_close(&e);

    stand_before(&e, IBV_QPT_RC, IBV_QPS_RTS, &self);
    const struct ibv_qp_attr rts = end_attr(&e, IBV_QPS_RTS, &self, &mask);
#undef BAD
#define BAD(change, name)                                                                                    \
    do {                                                                                                     \
        struct ibv_qp_attr a = rts;                                                                          \
        change;                                                                                              \
        refused(&e, &a, mask, name, 0);                                                                      \
    } while (0)
    BAD(a.timeout = 32, "timeout 32");
    BAD(a.retry_cnt = 8, "retry count 8");
    BAD(a.rnr_retry = 8, "RNR retry count 8");
    BAD(a.sq_psn = 1u << 24, "25-bit PSN");
    BAD(a.max_rd_atomic = 255, "more reads than the device can");
#undef BAD
    struct ibv_qp_attr a = rts;
    a.cur_qp_state = IBV_QPS_INIT;
    refused(&e, &a, mask | IBV_QP_CUR_STATE, "wrong current state", 0);
    end_close(&e);
}

static void query_gives_back_what_modify_took(void **state)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr a;
    struct end l, r;

    (void)state;
    struct end_options opt = {.rnr_retry = 3, .timeout = 17, .rd_atomic = 2, .inline_data = 33, .send_wr = 9};
    pair_open(&l, &r, &opt);
    CHECK_INT(ibv_query_qp(l.qp, &a, IBV_QP_STATE, &init), 0);
    CHECK_INT(a.qp_state, IBV_QPS_RTS);
    CHECK_INT(a.cur_qp_state, IBV_QPS_RTS);
    CHECK_INT(a.dest_qp_num, r.qp->qp_num);
    CHECK_INT(a.rnr_retry, 3);
    CHECK_INT(a.timeout, 17);
    CHECK_INT(a.max_rd_atomic, 2);
    CHECK_INT(a.max_dest_rd_atomic, 2);
    CHECK_INT(a.path_mtu, IBV_MTU_4096);
    CHECK_INT(a.qp_access_flags, FULL_ACCESS);
    CHECK(!memcmp(a.ah_attr.grh.dgid.raw, r.gid.raw, 16));
    CHECK_INT(a.cap.max_inline_data, 33);
    CHECK_INT(init.cap.max_send_wr, 9);
    CHECK(init.send_cq == l.cq && init.recv_cq == l.rcq && init.qp_context == &l);
    CHECK_INT(l.qp->state, IBV_QPS_RTS);
    pair_close(&l, &r);
}

// The program's own record of the state moves when the program asks for the state, and not by itself.
static void the_public_state_moves_when_it_is_asked_for(void **state)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr a;
    struct end l, r;

    (void)state;
    pair_open(&l, &r, NULL);
    struct ibv_sge sge = end_sge(&l, 0, 8);
    struct ibv_send_wr wr = send_wr(1, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)r.buf, r.mr->rkey + 1);
    CHECK_INT(post(&l, &wr), 0);
    expect_wc(l.cq, 1, IBV_WC_REM_ACCESS_ERR, NULL);
    CHECK_INT(ibv_query_qp(l.qp, &a, IBV_QP_AV | IBV_QP_DEST_QPN, &init), 0);
    CHECK_INT(l.qp->state, IBV_QPS_RTS);
    CHECK_INT(ibv_query_qp(l.qp, &a, IBV_QP_STATE, &init), 0);
    CHECK_INT(l.qp->state, IBV_QPS_ERR);
    pair_close(&l, &r);
}

static void ud_query_gives_back_the_qkey(void **state)
{
    struct end_options opt = {.type = IBV_QPT_UD};
    struct end e;

    (void)state;
    end_open(&e, &opt);
    end_to_rts(&e, NULL);
    CHECK_INT(query(&e).qkey, 0x11111111);
    end_close(&e);
}

// Strict: a send before RTS and a receive in RESET are refused at once.
static void posts_in_early_states_are_refused(void **state)
{
    (void)state;
    for (enum ibv_qp_state s = IBV_QPS_RESET; s <= IBV_QPS_RTR; s++) {
        struct end_address self;
        struct end e;
        stand_before(&e, IBV_QPT_RC, s + 1, &self);
        struct ibv_sge sge = end_sge(&e, 0, 8);
        struct ibv_send_wr *bad = NULL, wr = send_wr(1, IBV_WR_RDMA_WRITE, &sge, self.addr, self.rkey);
        CHECK_INT(ibv_post_send(e.qp, &wr, &bad), EINVAL);
        CHECK(bad == &wr);
        CHECK_INT(post_recv(&e, 1, 0, 8), s == IBV_QPS_RESET ? EINVAL : 0);
        expect_empty(e.cq, 5);
        end_close(&e);
    }
}

// C28: RESET forgets everything posted, makes no completions, and the whole depth is there again.
static void reset_drops_everything_without_completions(void **state)
{
    struct end_address self;
    struct end e;

    (void)state;
    stand_before(&e, IBV_QPT_RC, IBV_QPS_RTR, &self);
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 16; i++)
            CHECK_INT(post_recv(&e, i, 0, 64), 0);
        CHECK_INT(post_recv(&e, 16, 0, 64), ENOMEM);
        end_to(&e, IBV_QPS_RESET);
        expect_empty(e.rcq, 5);
        CHECK_INT(end_state(&e), IBV_QPS_RESET);
        end_to_init(&e);
    }
    end_close(&e);
}

static void err_flushes_receives_in_order(void **state)
{
    struct end_address self;
    struct ibv_wc wc;
    struct end e;

    (void)state;
    stand_before(&e, IBV_QPT_RC, IBV_QPS_RTR, &self);
    for (unsigned i = 0; i < 5; i++)
        CHECK_INT(post_recv(&e, i, 0, 64), 0);
    end_to(&e, IBV_QPS_ERR);
    for (unsigned i = 0; i < 5; i++) {
        expect_wc(e.rcq, i, IBV_WC_WR_FLUSH_ERR, &wc);
        CHECK_INT(wc.qp_num, e.qp->qp_num);
    }
    CHECK_INT(post_recv(&e, 5, 0, 64), 0); // accepted and flushed
    expect_wc(e.rcq, 5, IBV_WC_WR_FLUSH_ERR, NULL);
    end_close(&e);
}

static void sqd_holds_back_what_is_posted_until_rts(void **state)
{
    struct end_address right;
    struct end l, r;

    (void)state;
    pair_open(&l, &r, NULL);
    right = end_address(&r);
    end_to(&l, IBV_QPS_SQD);
    struct ibv_sge sge = end_sge(&l, 0, 8);
    struct ibv_send_wr wr = send_wr(7, IBV_WR_RDMA_WRITE, &sge, right.addr, right.rkey);
    CHECK_INT(post(&l, &wr), 0);
    expect_empty(l.cq, 20);
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS};
    CHECK_INT(ibv_modify_qp(l.qp, &a, IBV_QP_STATE), 0);
    expect_wc(l.cq, 7, IBV_WC_SUCCESS, NULL);
    pair_close(&l, &r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_required_attribute_is_refused),
        cmocka_unit_test(a_forbidden_attribute_is_refused),
        cmocka_unit_test(an_illegal_jump_is_refused),
        cmocka_unit_test(values_out_of_range_are_refused),
        cmocka_unit_test(query_gives_back_what_modify_took),
        cmocka_unit_test(the_public_state_moves_when_it_is_asked_for),
        cmocka_unit_test(ud_query_gives_back_the_qkey),
        cmocka_unit_test(posts_in_early_states_are_refused),
        cmocka_unit_test(reset_drops_everything_without_completions),
        cmocka_unit_test(err_flushes_receives_in_order),
        cmocka_unit_test(sqd_holds_back_what_is_posted_until_rts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
