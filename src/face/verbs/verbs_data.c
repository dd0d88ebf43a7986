// SPDX-License-Identifier: MIT
// The hot path: a WR of verbs becomes one of the device, a completion of the device becomes a wc.
// Nothing here may allocate, take a lock of its own or make a system call.
#include "base/address.h"
#include "face/verbs/verbs_face.h"

static_assert(sizeof(struct ibv_sge) == sizeof(struct dock_sge),
              "a caller's list of SGEs is passed as it is");
static_assert(offsetof(struct ibv_sge, length) == offsetof(struct dock_sge, len), "ibv_sge");
static_assert(offsetof(struct ibv_sge, lkey) == offsetof(struct dock_sge, key), "ibv_sge");

// ---- sends

static const uint8_t op_of[] = {
    [IBV_WR_RDMA_WRITE] = DOCK_OP_WRITE,
    [IBV_WR_RDMA_WRITE_WITH_IMM] = DOCK_OP_WRITE_IMM,
    [IBV_WR_SEND] = DOCK_OP_SEND,
    [IBV_WR_SEND_WITH_IMM] = DOCK_OP_SEND_IMM,
    [IBV_WR_RDMA_READ] = DOCK_OP_READ,
    [IBV_WR_ATOMIC_CMP_AND_SWP] = DOCK_OP_CAS,
    [IBV_WR_ATOMIC_FETCH_AND_ADD] = DOCK_OP_FADD,
    [IBV_WR_LOCAL_INV] = DOCK_OP_INV,
    [IBV_WR_BIND_MW] = DOCK_OP_BIND,
    [IBV_WR_SEND_WITH_INV] = DOCK_OP_SEND_INV,
};

#define INLINE_OPS                                                                                           \
    (1u << IBV_WR_RDMA_WRITE | 1u << IBV_WR_RDMA_WRITE_WITH_IMM | 1u << IBV_WR_SEND |                        \
     1u << IBV_WR_SEND_WITH_IMM | 1u << IBV_WR_SEND_WITH_INV)

static_assert(IBV_SEND_FENCE == 1 && IBV_SEND_SIGNALED == 2 && IBV_SEND_SOLICITED == 4 &&
                  IBV_SEND_INLINE == 8,
              "index of flag_of");
#define F(fence, signaled, solicited, inlined)                                                               \
    ((fence)*DOCK_F_FENCE | (signaled)*DOCK_F_COMPLETE | (solicited)*DOCK_F_SOLICITED |                      \
     (inlined)*DOCK_F_INLINE)
static const uint32_t flag_of[16] = {
    F(0, 0, 0, 0), F(1, 0, 0, 0), F(0, 1, 0, 0), F(1, 1, 0, 0), F(0, 0, 1, 0), F(1, 0, 1, 0),
    F(0, 1, 1, 0), F(1, 1, 1, 0), F(0, 0, 0, 1), F(1, 0, 0, 1), F(0, 1, 0, 1), F(1, 1, 0, 1),
    F(0, 0, 1, 1), F(1, 0, 1, 1), F(0, 1, 1, 1), F(1, 1, 1, 1),
};
#undef F

// A full queue is ENOMEM for the device, and for some adapters an invalid argument.
int vb_put_status(int err)
{
    return __builtin_expect(err == -ENOMEM, 0) && dock_profile()->full_is_invalid ? EINVAL : -err;
}

int vb_misfit(void)
{
    return dock_profile()->misfit_is_no_memory ? ENOMEM : EINVAL;
}

static __attribute__((noinline, cold)) int refuse_wr(const struct vb_qp *qp, const struct ibv_send_wr *wr)
{
    uint32_t n = qp->ex.qp_base.qp_num;

    if ((unsigned)wr->opcode >= 32 || !(qp->ops & 1u << wr->opcode))
        return dock_refuse(EINVAL, "ibv_post_send: queue %u: opcode %d is not offered", n, wr->opcode);
    if (wr->send_flags > 15)
        return dock_refuse(EINVAL, "ibv_post_send: queue %u: send flags %#x are not offered", n,
                           wr->send_flags);
    if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->send_sge)
        return dock_refuse(vb_misfit(), "ibv_post_send: queue %u: %d SGEs, it was created for %u", n,
                           wr->num_sge, qp->send_sge);
    return dock_refuse(EINVAL, "ibv_post_send: queue %u: a list of %d SGEs without a list", n, wr->num_sge);
}

static int take_inline(struct vb_qp *qp, const struct ibv_send_wr *wr, struct dock_wr *w)
{
    uint64_t bytes = 0;

    if (!(INLINE_OPS & 1u << wr->opcode))
        return dock_refuse(EINVAL, "ibv_post_send: queue %u: opcode %d takes no inline data",
                           qp->ex.qp_base.qp_num, wr->opcode);
    for (int i = 0; i < wr->num_sge; i++)
        bytes += wr->sg_list[i].length;
    if (bytes > qp->inline_max)
        return dock_refuse(vb_misfit(), "ibv_post_send: queue %u: %llu inline bytes, it was created for %u",
                           qp->ex.qp_base.qp_num, (unsigned long long)bytes, qp->inline_max);
    w->inline_len = (uint32_t)bytes;
    return 0;
}

int vb_take_bind(struct vb_qp *qp, struct ibv_mw *mw, uint32_t new_rkey, const struct ibv_mw_bind_info *info,
                 struct dock_wr *w)
{
    uint32_t access;
    int err;

    if (!mw)
        return dock_refuse(EINVAL, "bind: queue %u: no window", qp->ex.qp_base.qp_num);
    if (!info->mr && info->length)
        return dock_refuse(EINVAL, "bind: queue %u: a range without a region", qp->ex.qp_base.qp_num);
    err = vb_access(info->mw_access_flags, "bind", &access);
    if (err)
        return -err;
    w->rkey = mw->rkey;
    w->remote = info->mr ? info->mr->lkey : 0;
    w->imm = new_rkey & 0xff; // the rest of a window's key is its own
    w->raddr = info->addr;
    w->operand = info->length;
    w->compare = access;
    if (mw->type == IBV_MW_TYPE_2) // the window's key from here on, as drivers keep it
        mw->rkey = (mw->rkey & ~0xffu) | (new_rkey & 0xff);
    return 0;
}

int vb_take_ud(struct vb_qp *qp, struct ibv_ah *ah, uint32_t remote_qpn, uint32_t remote_qkey,
               struct dock_wr *w)
{
    if (!ah)
        return dock_refuse(EINVAL, "post of a datagram: queue %u: no address handle", qp->ex.qp_base.qp_num);
    w->eid = vb_ah(ah)->eid;
    w->header = vb_ah(ah)->header;
    w->remote = remote_qpn;
    w->rkey = remote_qkey;
    w->bundle = false; // verbs knows no groups of queues
    w->hint = 0;
    // IBTA vol 1, C10-10: a handle of another domain is found when the request is executed. No datagram queue
    // has the opcode, so that is what it fails as.
    if (vb_pd(ah->pd)->number != vb_pd(qp->ex.qp_base.pd)->number)
        w->op = DOCK_OP_READ;
    return 0;
}

// What belongs to one opcode; fields that are not its own are zero.
static inline int take_operands(struct vb_qp *qp, const struct ibv_send_wr *wr, struct dock_wr *w)
{
    switch (wr->opcode) {
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        w->imm = wr->imm_data;
        // fall through
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_READ:
        w->raddr = wr->wr.rdma.remote_addr;
        w->rkey = wr->wr.rdma.rkey;
        return 0;
    case IBV_WR_SEND_WITH_IMM:
        w->imm = wr->imm_data;
        // fall through
    case IBV_WR_SEND:
        return qp->ex.qp_base.qp_type == IBV_QPT_UD
                   ? vb_take_ud(qp, wr->wr.ud.ah, wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey, w)
                   : 0;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
        w->operand = wr->wr.atomic.swap;
        w->compare = wr->wr.atomic.compare_add;
        w->raddr = wr->wr.atomic.remote_addr;
        w->rkey = wr->wr.atomic.rkey;
        return 0;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        w->operand = wr->wr.atomic.compare_add;
        w->raddr = wr->wr.atomic.remote_addr;
        w->rkey = wr->wr.atomic.rkey;
        return 0;
    case IBV_WR_SEND_WITH_INV:
    case IBV_WR_LOCAL_INV:
        w->rkey = wr->invalidate_rkey;
        return 0;
    case IBV_WR_BIND_MW:
        return vb_take_bind(qp, wr->bind_mw.mw, wr->bind_mw.rkey, &wr->bind_mw.bind_info, w);
    default:
        return refuse_wr(qp, wr);
    }
}

static inline int take_wr(struct vb_qp *qp, const struct ibv_send_wr *wr, struct dock_wr *w)
{
    if (__builtin_expect((unsigned)wr->opcode >= 32 || !(qp->ops & 1u << wr->opcode) || wr->send_flags > 15 ||
                             (uint32_t)wr->num_sge > qp->send_sge || (wr->num_sge && !wr->sg_list),
                         0))
        return refuse_wr(qp, wr);
    w->id = wr->wr_id;
    w->op = op_of[wr->opcode];
    w->flags = flag_of[wr->send_flags];
    w->nsge = (uint8_t)wr->num_sge;
    w->sge = (const struct dock_sge *)wr->sg_list;
    w->inline_len = 0;
    w->eid = NULL;
    w->imm = w->raddr = 0;
    w->rkey = 0;
    w->remote = qp->xrcini ? wr->qp_type.xrc.remote_srqn : 0;
    if (wr->send_flags & IBV_SEND_INLINE) {
        int err = take_inline(qp, wr, w);
        if (err)
            return err;
    }
    return take_operands(qp, wr, w);
}

bool vb_takes_nevertheless(enum dock_state state)
{
    const struct dock_profile *p = dock_profile();

    return state == DOCK_ERR ? !p->error_post_refused && !p->error_post_lost : p->early_post_kept;
}

int vb_refuse_state(const struct vb_qp *qp, enum dock_state state, const char *call)
{
    const struct dock_profile *p = dock_profile();

    if (state == DOCK_ERR ? p->error_post_lost : p->early_post_lost)
        return 0;
    return dock_refuse(EINVAL, "%s: queue %u is not in a state that takes this request", call,
                       qp->ex.qp_base.qp_num);
}

// WRs before bad_wr are posted, those from it on are not.
int vb_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
    struct vb_qp *qp = vb_qp(ibqp);
    struct dock_post post;
    struct dock_wr w;
    int err = 0;

    dock_post_begin(qp->dev, &post);
    if (__builtin_expect(!vb_takes_sends(&post), 0)) {
        err = vb_refuse_state(qp, dock_post_state(&post), "ibv_post_send");
        if (!err)
            wr = NULL;
    }
    for (; wr && !err; wr = wr->next) {
        err = take_wr(qp, wr, &w);
        if (err)
            break;
        err = dock_post_put(&post, &w);
        if (__builtin_expect(err, 0)) {
            err = vb_put_status(err);
            // NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): no refusal is 0
            if (w.op == DOCK_OP_BIND)
                wr->bind_mw.mw->rkey = w.rkey;
            break;
        }
    }
    dock_post_end(&post);
    if (err && bad_wr)
        *bad_wr = wr;
    return err;
}

int vb_bind_mw(struct ibv_qp *ibqp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
    struct ibv_send_wr *bad,
        wr = {
            .wr_id = bind->wr_id,
            .opcode = IBV_WR_BIND_MW,
            .send_flags = bind->send_flags,
            .bind_mw = {.mw = mw, .rkey = ibv_inc_rkey(mw->rkey), .bind_info = bind->bind_info},
        };
    int err = vb_post_send(ibqp, &wr, &bad);

    if (!err)
        mw->rkey = wr.bind_mw.rkey;
    return err;
}

// ---- receives

static inline __attribute__((always_inline)) int post_receives(struct dock_rq *rq, struct ibv_recv_wr *wr,
                                                               struct ibv_recv_wr **bad_wr)
{
    int err = 0;

    dock_recv_begin(rq);
    for (; wr; wr = wr->next) {
        if (__builtin_expect(wr->num_sge < 0 || (wr->num_sge && !wr->sg_list), 0))
            err = dock_refuse(EINVAL, "post of a receive with %d SGEs and no list", wr->num_sge);
        else
            err = -dock_recv_put(rq, wr->wr_id, (const struct dock_sge *)wr->sg_list, (unsigned)wr->num_sge);
        if (err)
            break;
    }
    dock_recv_end(rq);
    if (err && bad_wr)
        *bad_wr = wr;
    return err;
}

// In ERR a receive is taken as before it, unless the profile says otherwise: only then it matters how fresh
// the state is.
static inline enum dock_state state_for_receive(const struct vb_qp *qp)
{
    return __builtin_expect(vb_takes_nevertheless(DOCK_ERR), 1) ? dock_qp_own_state(qp->dev)
                                                                : dock_qp_state(qp->dev);
}

int vb_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
    struct vb_qp *qp = vb_qp(ibqp);
    enum dock_state state = state_for_receive(qp);
    bool odd = state == DOCK_RESET || state == DOCK_ERR;

    if (__builtin_expect(!qp->rq || (odd && !vb_takes_nevertheless(state)), 0)) {
        int err = qp->rq ? vb_refuse_state(qp, state, "ibv_post_recv")
                         : dock_refuse(EINVAL, "ibv_post_recv: queue %u receives through a shared queue",
                                       ibqp->qp_num);
        if (err && bad_wr)
            *bad_wr = wr;
        return err;
    }
    return post_receives(qp->rq, wr, bad_wr);
}

int vb_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
    return post_receives(vb_srq(srq)->dev, wr, bad_wr);
}

// ---- completions

enum ibv_wc_opcode vb_wc_opcode(const struct dock_wc *wc)
{
    static const uint8_t of_send[DOCK_OPS] = {
        [DOCK_OP_SEND] = IBV_WC_SEND,
        [DOCK_OP_SEND_IMM] = IBV_WC_SEND,
        [DOCK_OP_SEND_INV] = IBV_WC_SEND,
        [DOCK_OP_WRITE] = IBV_WC_RDMA_WRITE,
        [DOCK_OP_WRITE_IMM] = IBV_WC_RDMA_WRITE,
        [DOCK_OP_READ] = IBV_WC_RDMA_READ,
        [DOCK_OP_CAS] = IBV_WC_COMP_SWAP,
        [DOCK_OP_FADD] = IBV_WC_FETCH_ADD,
        [DOCK_OP_BIND] = IBV_WC_BIND_MW,
        [DOCK_OP_INV] = IBV_WC_LOCAL_INV,
    };

    if (wc->recv)
        return wc->op == DOCK_ROP_WRITE_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
    return wc->op < DOCK_OPS ? of_send[wc->op] : IBV_WC_SEND;
}

unsigned int vb_wc_flags(const struct dock_wc *wc)
{
    static const uint8_t of_recv[] = {
        [DOCK_ROP_SEND] = 0,
        [DOCK_ROP_SEND_IMM] = IBV_WC_WITH_IMM,
        [DOCK_ROP_SEND_INV] = IBV_WC_WITH_INV,
        [DOCK_ROP_WRITE_IMM] = IBV_WC_WITH_IMM,
    };

    return wc->recv ? of_recv[wc->op & 3] | (wc->grh ? IBV_WC_GRH : 0u) : 0;
}

// The network type of a datagram, where mlx5 puts it and UCX looks for it: bit 3 UDP, low bits 2 = IPv4.
uint8_t vb_wc_sl(const struct dock_wc *wc)
{
    return wc->grh && dock_address_is_ipv4(wc->eid) ? 0x0a : 0;
}

static int __attribute__((noinline)) poll_some(struct dock_cq *cq, int num_entries, struct ibv_wc *wc)
{
    struct dock_wc d;
    int n = 0, got = 0;

    dock_cq_begin(cq);
    for (; n < num_entries; n++, wc++) {
        got = dock_cq_next(cq, &d);
        if (got <= 0)
            break;
        wc->wr_id = d.id;
        wc->status = d.status ? vb_wc_status(d.status) : IBV_WC_SUCCESS;
        wc->opcode = vb_wc_opcode(&d);
        wc->vendor_err = d.vendor_err;
        wc->byte_len = d.bytes;
        wc->imm_data = (__be32)d.imm;
        wc->qp_num = d.qp_num;
        wc->src_qp = d.src_qp;
        wc->wc_flags = vb_wc_flags(&d);
        wc->pkey_index = 0;
        wc->slid = 0;
        wc->sl = vb_wc_sl(&d);
        wc->dlid_path_bits = 0;
    }
    dock_cq_end(cq);
    return n || got >= 0 ? n : got;
}

// A poll that finds nothing is what a program that waits does all the time: it has no frame of its own.
int vb_poll_cq(struct ibv_cq *ibcq, int num_entries, struct ibv_wc *wc)
{
    struct dock_cq *cq = vb_cq(ibcq)->dev;

    return dock_cq_idle(cq) ? 0 : poll_some(cq, num_entries, wc);
}

int vb_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
    if (__builtin_expect(!vb_cq_known(cq), 0))
        return vb_status(dock_refuse(ENOENT, "ibv_req_notify_cq: no queue has handle %#x", cq->handle));
    if (__builtin_expect(!cq->channel && dock_profile()->arm_needs_channel, 0))
        return vb_status(dock_refuse(EINVAL, "ibv_req_notify_cq: the queue has no channel to tell it on"));
    return -dock_cq_arm(vb_cq(cq)->dev, solicited_only != 0, dock_profile()->arm_tells_old);
}
