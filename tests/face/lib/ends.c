// SPDX-License-Identifier: MIT
#include "face/lib/ends.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

struct ibv_context *open_device(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *ctx;

    CHECK(list && list[0]);
    ctx = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    CHECK(ctx != NULL);
    return ctx;
}

// The last filled entry is an IPv4-mapped one on every machine.
static void find_gid(struct end *e)
{
    struct ibv_gid_entry entry;

    for (int i = 0; !ibv_query_gid_ex(e->ctx, 1, (uint32_t)i, &entry, 0); i++) {
        e->gid_index = i;
        e->gid = entry.gid;
    }
}

static struct end_options defaults(const struct end_options *opt)
{
    struct end_options o = opt ? *opt : (struct end_options){0};

    o.type = o.type ? o.type : IBV_QPT_RC;
    o.send_wr = o.send_wr ? o.send_wr : 16;
    o.recv_wr = o.recv_wr ? o.recv_wr : 16;
    o.sge = o.sge ? o.sge : 4;
    o.inline_data = o.inline_data ? o.inline_data : 64;
    o.cqe = o.cqe ? o.cqe : 64;
    o.bytes = o.bytes ? o.bytes : 65536;
    o.mr_access = o.mr_access == -1 ? 0 : o.mr_access ? o.mr_access : FULL_ACCESS;
    o.qp_access = o.qp_access == -1 ? 0 : o.qp_access ? o.qp_access : FULL_ACCESS;
    o.timeout = o.timeout ? o.timeout : 14;
    o.rd_atomic = o.rd_atomic ? o.rd_atomic : 4;
    return o;
}

static void make_cqs(struct end *e)
{
    struct ibv_cq_init_attr_ex attr = {
        .cqe = (uint32_t)e->opt.cqe,
        .cq_context = e,
        .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP,
    };

    if (e->opt.channel) {
        e->channel = ibv_create_comp_channel(e->ctx);
        CHECK(e->channel != NULL);
    }
    if (e->opt.extended_cq) {
        attr.channel = e->channel;
        struct ibv_cq_ex *ex = ibv_create_cq_ex(e->ctx, &attr);
        CHECK(ex != NULL);
        e->cq = ibv_cq_ex_to_cq(ex);
        ex = ibv_create_cq_ex(e->ctx, &attr);
        CHECK(ex != NULL);
        e->rcq = ibv_cq_ex_to_cq(ex);
    } else {
        e->cq = ibv_create_cq(e->ctx, e->opt.cqe, e, e->channel, 0);
        e->rcq = ibv_create_cq(e->ctx, e->opt.cqe, e, e->channel, 0);
    }
    CHECK(e->cq && e->rcq);
}

static void make_qp(struct end *e)
{
    struct ibv_qp_init_attr_ex attr = {
        .qp_context = e,
        .send_cq = e->cq,
        .recv_cq = e->rcq,
        .srq = e->srq,
        .cap = {.max_send_wr = e->opt.send_wr,
                .max_recv_wr = e->opt.recv_wr,
                .max_send_sge = e->opt.sge,
                .max_recv_sge = e->opt.sge,
                .max_inline_data = e->opt.inline_data},
        .qp_type = e->opt.type,
        .sq_sig_all = e->opt.sig_all,
        .comp_mask = IBV_QP_INIT_ATTR_PD,
        .pd = e->pd,
    };

    if (e->opt.builders) {
        attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        attr.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
        if (e->opt.type != IBV_QPT_UD)
            attr.send_ops_flags |= IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                                   IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_LOCAL_INV |
                                   IBV_QP_EX_WITH_BIND_MW;
        if (e->opt.type == IBV_QPT_RC)
            attr.send_ops_flags |= IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                                   IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
    }
    e->qp = ibv_create_qp_ex(e->ctx, &attr);
    CHECK(e->qp != NULL);
}

void end_open(struct end *e, const struct end_options *opt)
{
    memset(e, 0, sizeof *e);
    e->opt = defaults(opt);
    e->ctx = open_device();
    find_gid(e);
    e->pd = ibv_alloc_pd(e->ctx);
    CHECK(e->pd != NULL);
    make_cqs(e);
    if (e->opt.srq) {
        struct ibv_srq_init_attr attr = {.attr = {.max_wr = e->opt.recv_wr, .max_sge = e->opt.sge}};
        e->srq = ibv_create_srq(e->pd, &attr);
        CHECK(e->srq != NULL);
    }
    make_qp(e);
    e->buf = mmap(NULL, e->opt.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(e->buf != MAP_FAILED);
    int access = e->opt.mr_access; // a variable: a constant takes another exported function
    e->mr = ibv_reg_mr(e->pd, e->buf, e->opt.bytes, access);
    CHECK(e->mr != NULL);
}

void end_close(struct end *e)
{
    if (e->qp)
        CHECK_INT(ibv_destroy_qp(e->qp), 0);
    if (e->srq)
        CHECK_INT(ibv_destroy_srq(e->srq), 0);
    CHECK_INT(ibv_destroy_cq(e->cq), 0);
    CHECK_INT(ibv_destroy_cq(e->rcq), 0);
    if (e->channel)
        CHECK_INT(ibv_destroy_comp_channel(e->channel), 0);
    if (e->mr)
        CHECK_INT(ibv_dereg_mr(e->mr), 0);
    munmap(e->buf, e->opt.bytes);
    CHECK_INT(ibv_dealloc_pd(e->pd), 0);
    CHECK_INT(ibv_close_device(e->ctx), 0);
    memset(e, 0, sizeof *e);
}

struct end_address end_address(const struct end *e)
{
    return (struct end_address){
        .qpn = e->qp->qp_num, .rkey = e->mr->rkey, .addr = (uintptr_t)e->buf, .gid = e->gid};
}

// ---- states

static int init_mask(enum ibv_qp_type type)
{
    return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
           (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
}

static int rtr_mask(enum ibv_qp_type type)
{
    int mask = IBV_QP_STATE;

    if (type != IBV_QPT_UD)
        mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    if (type == IBV_QPT_RC)
        mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    return mask;
}

static int rts_mask(enum ibv_qp_type type)
{
    int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

    if (type == IBV_QPT_RC)
        mask |= IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_TIMEOUT;
    return mask;
}

struct ibv_qp_attr end_attr(const struct end *e, enum ibv_qp_state to, const struct end_address *peer,
                            int *mask)
{
    struct ibv_qp_attr a = {
        .qp_state = to,
        .port_num = 1,
        .qp_access_flags = (unsigned)e->opt.qp_access,
        .qkey = 0x11111111,
        .path_mtu = IBV_MTU_4096,
        .dest_qp_num = peer ? peer->qpn : 0,
        .max_dest_rd_atomic = e->opt.rd_atomic,
        .min_rnr_timer = 1,
        .max_rd_atomic = e->opt.rd_atomic,
        .timeout = e->opt.timeout,
        .retry_cnt = 1,
        .rnr_retry = e->opt.rnr_retry,
        .ah_attr = {.is_global = 1,
                    .port_num = 1,
                    .grh = {.sgid_index = (uint8_t)e->gid_index, .hop_limit = 1}},
    };

    if (peer)
        a.ah_attr.grh.dgid = peer->gid;
    *mask = to == IBV_QPS_INIT  ? init_mask(e->opt.type)
            : to == IBV_QPS_RTR ? rtr_mask(e->opt.type)
            : to == IBV_QPS_RTS ? rts_mask(e->opt.type)
                                : IBV_QP_STATE;
    return a;
}

static void move(struct end *e, enum ibv_qp_state to, const struct end_address *peer)
{
    int mask;
    struct ibv_qp_attr a = end_attr(e, to, peer, &mask);

    CHECK_INT(ibv_modify_qp(e->qp, &a, mask), 0);
}

void end_to_init(struct end *e)
{
    move(e, IBV_QPS_INIT, NULL);
}

void end_to_rtr(struct end *e, const struct end_address *peer)
{
    end_to_init(e);
    move(e, IBV_QPS_RTR, peer);
}

void end_to_rts(struct end *e, const struct end_address *peer)
{
    end_to_rtr(e, peer);
    move(e, IBV_QPS_RTS, peer);
}

void end_to(struct end *e, enum ibv_qp_state state)
{
    move(e, state, NULL);
}

enum ibv_qp_state end_state(struct end *e)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr a;

    CHECK_INT(ibv_query_qp(e->qp, &a, IBV_QP_STATE, &init), 0);
    return a.qp_state;
}

void pair_open(struct end *l, struct end *r, const struct end_options *opt)
{
    end_open(l, opt);
    end_open(r, opt);
    struct end_address left = end_address(l), right = end_address(r);
    end_to_rts(l, &right);
    end_to_rts(r, &left);
}

void pair_close(struct end *l, struct end *r)
{
    end_close(l);
    end_close(r);
}

// ---- completions

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

bool poll_one(struct ibv_cq *cq, struct ibv_wc *wc, int ms)
{
    double until = now() + ms * 1e-3;
    int n;

    do {
        n = ibv_poll_cq(cq, 1, wc);
        if (n < 0)
            check_failed(__FILE__, __LINE__, "ibv_poll_cq: expected 0 or 1, got %d", n);
    } while (!n && now() < until);
    return n == 1;
}

void expect_wc(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status, struct ibv_wc *wc)
{
    struct ibv_wc mine;

    if (!wc)
        wc = &mine;
    if (!poll_one(cq, wc, 5000))
        check_failed(__FILE__, __LINE__, "expected completion %llu (%s), none came in 5 s",
                     (unsigned long long)wr_id, ibv_wc_status_str(status));
    if (wc->wr_id != wr_id || wc->status != status)
        check_failed(__FILE__, __LINE__, "expected completion %llu (%s), got %llu (%s)",
                     (unsigned long long)wr_id, ibv_wc_status_str(status), (unsigned long long)wc->wr_id,
                     ibv_wc_status_str(wc->status));
}

void expect_empty(struct ibv_cq *cq, int ms)
{
    struct ibv_wc wc;

    if (poll_one(cq, &wc, ms))
        check_failed(__FILE__, __LINE__, "expected no completion, got %llu (%s)",
                     (unsigned long long)wc.wr_id, ibv_wc_status_str(wc.status));
}

// ---- requests

struct ibv_sge end_sge(const struct end *e, size_t offset, uint32_t length)
{
    return (struct ibv_sge){.addr = (uintptr_t)e->buf + offset, .length = length, .lkey = e->mr->lkey};
}

int post_recv(struct end *e, uint64_t wr_id, size_t offset, uint32_t length)
{
    struct ibv_sge sge = end_sge(e, offset, length);
    struct ibv_recv_wr *bad, wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};

    return e->srq ? ibv_post_srq_recv(e->srq, &wr, &bad) : ibv_post_recv(e->qp, &wr, &bad);
}

struct ibv_send_wr send_wr(uint64_t wr_id, enum ibv_wr_opcode op, struct ibv_sge *sge, uint64_t raddr,
                           uint32_t rkey)
{
    struct ibv_send_wr wr = {.wr_id = wr_id,
                             .opcode = op,
                             .sg_list = sge,
                             .num_sge = sge ? 1 : 0,
                             .send_flags = IBV_SEND_SIGNALED};

    if (op == IBV_WR_ATOMIC_CMP_AND_SWP || op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = raddr;
        wr.wr.atomic.rkey = rkey;
    } else {
        wr.wr.rdma.remote_addr = raddr;
        wr.wr.rdma.rkey = rkey;
    }
    return wr;
}

int post(struct end *e, struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad;

    return ibv_post_send(e->qp, wr, &bad);
}

// ---- two processes

void end_meet(struct end *e, const struct end_options *opt, int sock, struct end_address *peer)
{
    struct end_address mine;

    end_open(e, opt);
    mine = end_address(e);
    tell(sock, &mine, sizeof mine);
    hear(sock, peer, sizeof *peer);
    end_to_rts(e, peer);
    meet(sock);
}
