// SPDX-License-Identifier: MIT
#include "face/lib/xrc.h"

#include <time.h>

struct ibv_xrcd *xrc_domain(struct ibv_context *ctx, int fd, int oflags)
{
    struct ibv_xrcd_init_attr attr = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = fd, .oflags = oflags};

    return ibv_open_xrcd(ctx, &attr);
}

struct ibv_srq *xrc_srq(struct ibv_pd *pd, struct ibv_xrcd *xrcd, struct ibv_cq *cq, uint32_t *number)
{
    struct ibv_srq_init_attr_ex attr = {
        .attr = {.max_wr = 8, .max_sge = 1},
        .comp_mask =
            IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
        .srq_type = IBV_SRQT_XRC,
        .pd = pd,
        .xrcd = xrcd,
        .cq = cq,
    };
    struct ibv_srq *srq = ibv_create_srq_ex(pd->context, &attr);

    CHECK(srq != NULL);
    CHECK_INT(ibv_get_srq_num(srq, number), 0);
    return srq;
}

static struct ibv_qp *make(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr)
{
    struct ibv_qp *qp = ibv_create_qp_ex(ctx, attr);

    CHECK(qp != NULL);
    CHECK_INT(qp->qp_type, attr->qp_type);
    return qp;
}

struct ibv_qp *xrc_initiator(struct ibv_pd *pd, struct ibv_cq *cq)
{
    struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_XRC_SEND,
                                       .send_cq = cq,
                                       .cap = {.max_send_wr = 8, .max_send_sge = 1},
                                       .comp_mask = IBV_QP_INIT_ATTR_PD,
                                       .pd = pd};

    return make(pd->context, &attr);
}

struct ibv_qp *xrc_target(struct ibv_xrcd *xrcd)
{
    struct ibv_qp_init_attr_ex attr = {
        .qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd};

    return make(xrcd->context, &attr);
}

struct ibv_qp *xrc_open_qp(struct ibv_xrcd *xrcd, uint32_t number, enum ibv_qp_type type, void *user)
{
    struct ibv_qp_open_attr attr = {
        .comp_mask =
            IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_CONTEXT | IBV_QP_OPEN_ATTR_TYPE,
        .qp_num = number,
        .xrcd = xrcd,
        .qp_context = user,
        .qp_type = type,
    };

    return ibv_open_qp(xrcd->context, &attr);
}

// The attributes that the manual asks of each half, and no others.
void xrc_connect(struct ibv_qp *qp, uint32_t peer)
{
    bool ini = qp->qp_type == IBV_QPT_XRC_SEND;
    struct ibv_qp_attr a = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ini ? 0 : FULL_ACCESS};
    int rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    int rts = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN;

    CHECK_INT(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                             .path_mtu = IBV_MTU_1024,
                             .dest_qp_num = peer,
                             .max_dest_rd_atomic = 4,
                             .min_rnr_timer = 1,
                             .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1}}};
    CHECK_INT(ibv_query_gid(qp->context, 1, 1, &a.ah_attr.grh.dgid), 0);
    CHECK_INT(ibv_modify_qp(qp, &a, ini ? rtr : rtr | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), 0);
    a = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 1, .rnr_retry = 7, .max_rd_atomic = 4};
    if (ini)
        rts |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    CHECK_INT(ibv_modify_qp(qp, &a, rts), 0);
}

enum ibv_qp_state xrc_state(struct ibv_qp *qp)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;

    CHECK_INT(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
    return attr.qp_state;
}

bool xrc_becomes(struct ibv_qp *tgt, enum ibv_qp_state state)
{
    for (unsigned ms = 0; ms < 10000 && xrc_state(tgt) != state; ms++)
        clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){.tv_nsec = 1000000}, NULL);
    return xrc_state(tgt) == state;
}
