// SPDX-License-Identifier: MIT
// C53, past the way to RTS: for every step of a queue that lives, each attribute alone beside the state is
// taken or refused as the specification's table says; a refusal changes nothing.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "face/lib/ends.h"

#define RC IBV_QPT_RC
#define UC IBV_QPT_UC
#define UD IBV_QPT_UD
#define CONNECTED_LIVE (IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE)
#define UD_LIVE (IBV_QP_CUR_STATE | IBV_QP_QKEY)
#define UC_DRAINED (IBV_QP_AV | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PATH_MIG_STATE)
#define RC_DRAINED                                                                                           \
    (UC_DRAINED | IBV_QP_PORT | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |                       \
     IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)

static const struct row {
    enum ibv_qp_type type;
    enum ibv_qp_state from, to;
    int taken;
} rows[] = {
    {RC, IBV_QPS_INIT, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    {UD, IBV_QPS_INIT, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},
    {RC, IBV_QPS_RTS, IBV_QPS_RTS, CONNECTED_LIVE | IBV_QP_MIN_RNR_TIMER},
    {UC, IBV_QPS_RTS, IBV_QPS_RTS, CONNECTED_LIVE},
    {UD, IBV_QPS_RTS, IBV_QPS_RTS, UD_LIVE},
    {RC, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {UC, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {UD, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {RC, IBV_QPS_SQD, IBV_QPS_SQD, RC_DRAINED},
    {UC, IBV_QPS_SQD, IBV_QPS_SQD, UC_DRAINED},
    {UD, IBV_QPS_SQD, IBV_QPS_SQD, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
    {RC, IBV_QPS_SQD, IBV_QPS_RTS, CONNECTED_LIVE | IBV_QP_MIN_RNR_TIMER},
    {UC, IBV_QPS_SQD, IBV_QPS_RTS, CONNECTED_LIVE},
    {UD, IBV_QPS_SQD, IBV_QPS_RTS, UD_LIVE},
    {UC, IBV_QPS_SQE, IBV_QPS_RTS, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
    {UD, IBV_QPS_SQE, IBV_QPS_RTS, UD_LIVE},
    {RC, IBV_QPS_RTS, IBV_QPS_ERR, 0},
    {UD, IBV_QPS_SQD, IBV_QPS_ERR, 0},
    {RC, IBV_QPS_ERR, IBV_QPS_RESET, 0},
};

// A request with a key that nobody has stops the sends of UC and UD.
static void fail_a_send(struct end *e)
{
    struct ibv_sge sge = {.addr = (uintptr_t)e->buf, .length = 8, .lkey = 1};
    struct ibv_send_wr wr = send_wr(1, IBV_WR_SEND, &sge, 0, 0);
    struct ibv_ah_attr av = {
        .is_global = 1, .port_num = 1, .grh = {.dgid = e->gid, .sgid_index = (uint8_t)e->gid_index}};
    struct ibv_ah *ah = ibv_create_ah(e->pd, &av);

    CHECK(ah != NULL);
    if (e->opt.type == UD) {
        wr.wr.ud.ah = ah;
        wr.wr.ud.remote_qpn = e->qp->qp_num;
    }
    CHECK_INT(post(e, &wr), 0);
    expect_wc(e->cq, 1, IBV_WC_LOC_PROT_ERR, NULL);
    CHECK_INT(ibv_destroy_ah(ah), 0);
}

static void stand(struct end *e, const struct row *row, const struct end_address *self)
{
    enum ibv_qp_state last = row->from < IBV_QPS_RTS ? row->from : IBV_QPS_RTS;
    int mask;

    end_to(e, IBV_QPS_RESET);
    for (enum ibv_qp_state s = IBV_QPS_INIT; s <= last; s++) {
        struct ibv_qp_attr a = end_attr(e, s, self, &mask);
        CHECK_INT(ibv_modify_qp(e->qp, &a, mask), 0);
    }
    if (row->from == IBV_QPS_SQE)
        fail_a_send(e);
    else if (row->from > IBV_QPS_RTS)
        end_to(e, row->from);
    CHECK_INT(end_state(e), row->from);
}

// `bit` alone beside the state.
static void try(struct end *e, const struct row *row, const struct end_address *self, int bit)
{
    int mask, got, expected = row->taken & bit || !bit ? 0 : EINVAL;
    struct ibv_qp_attr attr = end_attr(e, IBV_QPS_RTR, self, &mask);

    attr.qp_state = row->to;
    attr.cur_qp_state = row->from;
    attr.port_num = 1;
    if (end_state(e) != row->from)
        stand(e, row, self);
    got = ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | bit);
    if (got != expected || end_state(e) != (got ? row->from : row->to))
        check_failed(__FILE__, __LINE__, "type %d from %d to %d with %#x: expected %d, got %d in state %d",
                     row->type, row->from, row->to, bit, expected, got, end_state(e));
}

static void each_attribute_alone_is_taken_or_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct end_options opt = {.type = rows[i].type};
        struct end_address self;
        struct end e;
        end_open(&e, &opt);
        self = end_address(&e);
        stand(&e, &rows[i], &self);
        try(&e, &rows[i], &self, 0);
        for (int bit = 2; bit <= IBV_QP_RATE_LIMIT; bit <<= 1)
            try(&e, &rows[i], &self, bit);
        end_close(&e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_attribute_alone_is_taken_or_refused)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
