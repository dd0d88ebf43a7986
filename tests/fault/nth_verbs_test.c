// SPDX-License-Identifier: MIT
// link: verbs
// timeout: 240
// The n-th allocation or system call of a verbs program's whole life fails, for
// every n until nothing fails any more: open, one object of each kind, a transfer, a datagram and one to a
// group, an event of each kind, everything destroyed, close. A failing creator returns NULL and errno, the
// others a positive errno value; each with a reason; descriptors, mappings and heap blocks are as before. One
// failure: nth_verbs_test N
#ifdef DOCK_SANITIZED
int main(void)
{
    return 77; // a sanitizer's runtime needs these functions for itself
}
#else
#include <infiniband/verbs.h>

#include <string.h>

#include "base/clock.h"
#include "fault/nth_life.h"

#define RIGHTS                                                                                               \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND)

static struct {
    struct ibv_device **list;
    struct ibv_context *ctx;
    struct ibv_pd *pd, *parent;
    struct ibv_td *td;
    struct ibv_mr *mr;
    struct ibv_mw *mw;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_cq_ex *cq_ex;
    struct ibv_srq *srq;
    struct ibv_qp *qp;
    struct ibv_ah *ah, *group_ah;
    struct ibv_xrcd *xrcd;
    struct ibv_srq *shared;
    struct ibv_qp *target, *ud;
    union ibv_gid gid;
    int file; // names the XRC domain
} v;

static char memory[8192];

static int up_list(void)
{
    return made(v.list = ibv_get_device_list(NULL));
}

static int down_list(void)
{
    ibv_free_device_list(v.list);
    return 0;
}

static int up_ctx(void)
{
    return made(v.ctx = ibv_open_device(v.list[0])) ?: ibv_query_gid(v.ctx, 1, 0, &v.gid);
}

static int down_ctx(void)
{
    return ibv_close_device(v.ctx);
}

static int up_pd(void)
{
    return made(v.pd = ibv_alloc_pd(v.ctx));
}

static int down_pd(void)
{
    return ibv_dealloc_pd(v.pd);
}

static int up_td(void)
{
    struct ibv_td_init_attr attr = {0};

    return made(v.td = ibv_alloc_td(v.ctx, &attr));
}

static int down_td(void)
{
    return ibv_dealloc_td(v.td);
}

static int up_parent(void)
{
    struct ibv_parent_domain_init_attr attr = {.pd = v.pd, .td = v.td};

    return made(v.parent = ibv_alloc_parent_domain(v.ctx, &attr));
}

static int down_parent(void)
{
    return ibv_dealloc_pd(v.parent);
}

static int up_mr(void)
{
    int rights = RIGHTS;

    return made(v.mr = ibv_reg_mr(v.pd, memory, sizeof memory, rights));
}

static int down_mr(void)
{
    return ibv_dereg_mr(v.mr);
}

static int up_mw(void)
{
    return made(v.mw = ibv_alloc_mw(v.pd, IBV_MW_TYPE_2));
}

static int down_mw(void)
{
    return ibv_dealloc_mw(v.mw);
}

static int up_channel(void)
{
    return made(v.channel = ibv_create_comp_channel(v.ctx));
}

static int down_channel(void)
{
    return ibv_destroy_comp_channel(v.channel);
}

static int up_cq(void)
{
    return made(v.cq = ibv_create_cq(v.ctx, 16, NULL, v.channel, 0));
}

static int down_cq(void)
{
    return ibv_destroy_cq(v.cq);
}

static int up_cq_ex(void)
{
    struct ibv_cq_init_attr_ex attr = {.cqe = 16, .wc_flags = IBV_WC_STANDARD_FLAGS};

    return made(v.cq_ex = ibv_create_cq_ex(v.ctx, &attr));
}

static int down_cq_ex(void)
{
    return ibv_destroy_cq(ibv_cq_ex_to_cq(v.cq_ex));
}

static int up_srq(void)
{
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = 8, .max_sge = 1}};

    return made(v.srq = ibv_create_srq(v.pd, &attr));
}

static int down_srq(void)
{
    return ibv_destroy_srq(v.srq);
}

static int up_qp(void)
{
    struct ibv_qp_init_attr_ex attr = {.send_cq = v.cq,
                                       .recv_cq = v.cq,
                                       .srq = v.srq,
                                       .cap = {8, 0, 1, 0, 0},
                                       .qp_type = IBV_QPT_RC,
                                       .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                       .pd = v.pd,
                                       .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE};

    return made(v.qp = ibv_create_qp_ex(v.ctx, &attr));
}

static int down_qp(void)
{
    return ibv_destroy_qp(v.qp);
}

static int up_ah(void)
{
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = v.gid}};

    return made(v.ah = ibv_create_ah(v.pd, &attr));
}

static int down_ah(void)
{
    return ibv_destroy_ah(v.ah);
}

static int up_resize(void)
{
    return ibv_resize_cq(v.cq, 40);
}

static int up_xrcd(void)
{
    struct ibv_xrcd_init_attr attr = {.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
                                      .fd = v.file,
                                      .oflags = O_CREAT | O_EXCL};

    return made(v.xrcd = ibv_open_xrcd(v.ctx, &attr));
}

static int down_xrcd(void)
{
    return ibv_close_xrcd(v.xrcd);
}

static int up_shared(void)
{
    struct ibv_srq_init_attr_ex attr = {.attr = {.max_wr = 8, .max_sge = 1},
                                        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                                                     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
                                        .srq_type = IBV_SRQT_XRC,
                                        .pd = v.pd,
                                        .xrcd = v.xrcd,
                                        .cq = v.cq};

    return made(v.shared = ibv_create_srq_ex(v.ctx, &attr));
}

static int down_shared(void)
{
    return ibv_destroy_srq(v.shared);
}

static int up_target(void)
{
    struct ibv_qp_init_attr_ex attr = {
        .qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = v.xrcd};

    return made(v.target = ibv_create_qp_ex(v.ctx, &attr));
}

static int down_target(void)
{
    return ibv_destroy_qp(v.target);
}

static int up_connect(void)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
                            .port_num = 1,
                            .qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
                            .path_mtu = IBV_MTU_1024,
                            .dest_qp_num = v.qp->qp_num,
                            .max_dest_rd_atomic = 1,
                            .max_rd_atomic = 1,
                            .timeout = 8,
                            .retry_cnt = 7,
                            .rnr_retry = 7,
                            .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = v.gid}}};
    int err = ibv_modify_qp(v.qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

    a.qp_state = IBV_QPS_RTR;
    if (!err)
        err = ibv_modify_qp(v.qp, &a,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    a.qp_state = IBV_QPS_RTS;
    if (!err)
        err = ibv_modify_qp(v.qp, &a,
                            IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT |
                                IBV_QP_RNR_RETRY | IBV_QP_TIMEOUT);
    return err;
}

// A failed request is no failed call: its status says so, and errno does not. It may say so only of a copy
// that failed.
static int up_move(void)
{
    struct ibv_sge sge = {.addr = (uintptr_t)memory, .length = 64, .lkey = v.mr->lkey};
    struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_RDMA_WRITE,
                                   .sg_list = &sge,
                                   .num_sge = 1,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .wr.rdma = {.remote_addr = (uintptr_t)memory + 4096, .rkey = v.mr->rkey}};
    struct ibv_wc wc;
    uint64_t end = dock_now_ns() + 10000000000ull;
    int err = ibv_req_notify_cq(v.cq, 0), n = 0;

    memset(memory, 0x2d, 64);
    memset(memory + 4096, 0, 64);
    if (!err)
        err = ibv_post_send(v.qp, &wr, &bad);
    while (!err && !n && dock_now_ns() < end)
        n = ibv_poll_cq(v.cq, 1, &wc);
    if (err || n != 1)
        return err ? err : ETIMEDOUT;
    if (wc.status)
        return (wc.status == IBV_WC_REM_OP_ERR || wc.status == IBV_WC_LOC_PROT_ERR) && copy_failed()
                   ? 0
                   : EBADMSG;
    return memory[4096 + 63] == 0x2d ? 0 : EBADMSG;
}

static int up_ud(void)
{
    struct ibv_qp_init_attr init = {
        .send_cq = v.cq, .recv_cq = v.cq, .cap = {8, 8, 1, 1, 0}, .qp_type = IBV_QPT_UD};
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 0x11111111};
    int err = made(v.ud = ibv_create_qp(v.pd, &init));

    if (err)
        return err;
    err = ibv_modify_qp(v.ud, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
    a.qp_state = IBV_QPS_RTR;
    if (!err)
        err = ibv_modify_qp(v.ud, &a, IBV_QP_STATE);
    a.qp_state = IBV_QPS_RTS;
    if (!err)
        err = ibv_modify_qp(v.ud, &a, IBV_QP_STATE | IBV_QP_SQ_PSN);
    if (err)
        ibv_destroy_qp(v.ud);
    return err;
}

static int down_ud(void)
{
    return ibv_destroy_qp(v.ud);
}

static const union ibv_gid group = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 239, 1, 2, 3}};

static int up_join(void)
{
    return ibv_attach_mcast(v.ud, &group, 0);
}

static int down_join(void)
{
    return ibv_detach_mcast(v.ud, &group, 0);
}

static int up_group_ah(void)
{
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = group, .hop_limit = 1}};

    return made(v.group_ah = ibv_create_ah(v.pd, &attr));
}

static int down_group_ah(void)
{
    return ibv_destroy_ah(v.group_ah);
}

// One to ourselves or to the group we are in. It may be lost where something has failed, and only there.
static int datagram(struct ibv_ah *to, uint32_t qpn, char byte)
{
    struct ibv_sge from = {.addr = (uintptr_t)memory, .length = 64, .lkey = v.mr->lkey},
                   at = {.addr = (uintptr_t)memory + 2048, .length = 40 + 64, .lkey = v.mr->lkey};
    struct ibv_recv_wr *bad_recv, recv = {.wr_id = 1, .sg_list = &at, .num_sge = 1};
    struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_SEND,
                                   .sg_list = &from,
                                   .num_sge = 1,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .wr.ud = {.ah = to, .remote_qpn = qpn, .remote_qkey = 0x11111111}};
    uint64_t begin = dock_now_ns();
    int err = ibv_post_recv(v.ud, &recv, &bad_recv), n = 0, got = 0;
    struct ibv_wc wc[2];

    memset(memory, byte, 64);
    if (!err)
        err = ibv_post_send(v.ud, &wr, &bad);
    // Of a life with a failed call it may be lost.
    while (!err && got < 2 && dock_now_ns() - begin < (atomic_load(&failed_call) ? 1 : 20) * 1000000000ull &&
           (n = ibv_poll_cq(v.cq, 2 - got, wc + got)) >= 0)
        got += n;
    if (err || n < 0)
        return err ? err : EIO;
    if (got == 1 && wc[0].opcode == IBV_WC_SEND && !wc[0].status)
        return atomic_load(&failed_call) ? 0 : ETIMEDOUT;
    if (got < 2 || wc[0].status || wc[1].status)
        return copy_failed() ? 0 : EBADMSG;
    return memory[2048 + 40 + 63] == byte ? 0 : EBADMSG;
}

static int up_datagrams(void)
{
    return datagram(v.ah, v.ud->qp_num, 0x31) ?: datagram(v.group_ah, 0xffffff, 0x32);
}

// Is there an event? Asked in a way that cannot fail: only what the program's call meets counts.
static bool told(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    struct timespec t = {.tv_sec = 2};

    return SYS(SYS_ppoll, &p, 1, &t, NULL, 0) == 1;
}

// The one that the move has made.
static int up_event(void)
{
    struct ibv_cq *cq;
    void *context;

    if (!told(v.channel->fd))
        return ETIMEDOUT;
    if (ibv_get_cq_event(v.channel, &cq, &context))
        return errno;
    ibv_ack_cq_events(cq, 1);
    return cq == v.cq ? 0 : EBADMSG;
}

// A queue with a shared receive queue that ends tells so.
static int up_async(void)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_ERR};
    struct ibv_async_event e;
    int err = ibv_modify_qp(v.qp, &a, IBV_QP_STATE);

    if (err)
        return err;
    if (!told(v.ctx->async_fd))
        return ETIMEDOUT;
    if (ibv_get_async_event(v.ctx, &e))
        return errno;
    ibv_ack_async_event(&e);
    return e.event_type == IBV_EVENT_QP_LAST_WQE_REACHED && e.element.qp == v.qp ? 0 : EBADMSG;
}

static const struct step verbs_steps[] = {
    {"list", up_list, down_list},
    {"context", up_ctx, down_ctx},
    {"domain", up_pd, down_pd},
    {"thread domain", up_td, down_td},
    {"parent domain", up_parent, down_parent},
    {"region", up_mr, down_mr},
    {"window", up_mw, down_mw},
    {"channel", up_channel, down_channel},
    {"CQ", up_cq, down_cq},
    {"extended CQ", up_cq_ex, down_cq_ex},
    {"SRQ", up_srq, down_srq},
    {"queue pair", up_qp, down_qp},
    {"address handle", up_ah, down_ah},
    {"resize", up_resize, nothing},
    {"XRC domain", up_xrcd, down_xrcd},
    {"XRC shared queue", up_shared, down_shared},
    {"XRC target", up_target, down_target},
    {"connect", up_connect, nothing},
    {"move", up_move, nothing},
    {"completion event", up_event, nothing},
    {"UD queue pair", up_ud, down_ud},
    {"group", up_join, down_join},
    {"group's address handle", up_group_ah, down_group_ah},
    {"datagrams", up_datagrams, nothing},
    {"asynchronous event", up_async, nothing},
};

int main(int argc, char **argv)
{
    program = "fault/nth_verbs_test";
    steps = verbs_steps;
    v.file = memfd_create("domain", 0);
    nsteps = sizeof verbs_steps / sizeof *verbs_steps;
    return nth_main(argc, argv, 15);
}
#endif
