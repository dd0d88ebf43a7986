// SPDX-License-Identifier: MIT
// The ibv_wr_* functions: WRs built by calls between wr_start and wr_complete. The queue's lock is held all
// that time. A builder begins a WR, setters fill it, the next builder or wr_complete puts it into the ring;
// nothing is published before wr_complete, and after any error nothing at all.
#include <stdlib.h>

#include "face/verbs/verbs_face.h"

struct vb_build {
    struct dock_post post;
    struct dock_wr wr;
    int error; // the first, positive
    bool pending;
    bool lost;                // in a state in which the profile takes none, or loses them
    struct vb_mw *bound;      // windows that it holds; their keys are back if it is aborted
    uint8_t inline_data[256]; // the device's most, rounded up
    struct dock_sge sge[DOCK_SGE_MAX];
};

static void fail(struct vb_build *b, int error)
{
    if (!b->error)
        b->error = error;
    b->pending = false;
}

static void put(struct vb_build *b)
{
    int err = b->pending && !b->error ? vb_put_status(dock_post_put(&b->post, &b->wr)) : 0;

    b->pending = false;
    if (err)
        fail(b, err);
}

static struct dock_wr *begin(struct ibv_qp_ex *ex, uint8_t op)
{
    struct vb_build *b = vb_qp_ex(ex)->build;

    put(b);
    b->wr = (struct dock_wr){.id = ex->wr_id, .op = op, .sge = b->sge};
    if (ex->wr_flags & IBV_SEND_FENCE)
        b->wr.flags |= DOCK_F_FENCE;
    if (ex->wr_flags & IBV_SEND_SIGNALED)
        b->wr.flags |= DOCK_F_COMPLETE;
    if (ex->wr_flags & IBV_SEND_SOLICITED)
        b->wr.flags |= DOCK_F_SOLICITED;
    b->pending = true;
    if (ex->wr_flags & ~(unsigned)(IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE))
        fail(b, dock_refuse(EINVAL, "ibv_wr: queue %u: flags %#x are not offered", ex->qp_base.qp_num,
                            ex->wr_flags));
    return &b->wr;
}

static void begin_remote(struct ibv_qp_ex *ex, uint8_t op, uint32_t rkey, uint64_t remote_addr)
{
    struct dock_wr *w = begin(ex, op);

    w->rkey = rkey;
    w->raddr = remote_addr;
}

// ---- builders

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, uint64_t compare,
                              uint64_t swap)
{
    begin_remote(ex, DOCK_OP_CAS, rkey, remote_addr);
    vb_qp_ex(ex)->build->wr.compare = compare;
    vb_qp_ex(ex)->build->wr.operand = swap;
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, uint64_t add)
{
    begin_remote(ex, DOCK_OP_FADD, rkey, remote_addr);
    vb_qp_ex(ex)->build->wr.operand = add;
}

// The window is this section's until it ends: it cannot go, and no other section changes its key meanwhile.
static int hold(struct vb_build *b, struct ibv_mw *ibmw)
{
    struct vb_mw *mw = vb_mw(ibmw);
    struct vb_build *holder = NULL;

    if (atomic_compare_exchange_strong_explicit(&mw->section, &holder, b, memory_order_acq_rel,
                                                memory_order_acquire)) {
        mw->rkey_before = ibmw->rkey;
        mw->bound_before = b->bound;
        b->bound = mw;
    } else if (holder != b) {
        return dock_refuse(EBUSY, "ibv_wr_bind_mw: window %#x: an open section of another queue binds it",
                           ibmw->rkey);
    }
    return 0;
}

static void let_go(struct vb_build *b, bool keys_back)
{
    while (b->bound) {
        struct vb_mw *mw = b->bound;

        b->bound = mw->bound_before;
        if (keys_back)
            mw->mw.rkey = mw->rkey_before;
        atomic_store_explicit(&mw->section, NULL, memory_order_release); // pairs with hold, ibv_dealloc_mw
    }
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
                       const struct ibv_mw_bind_info *info)
{
    struct vb_build *b = vb_qp_ex(ex)->build;
    struct dock_wr *w = begin(ex, DOCK_OP_BIND);
    int err = mw ? hold(b, mw) : 0;

    if (!err)
        err = vb_take_bind(vb_qp_ex(ex), mw, rkey, info, w);
    if (err)
        fail(b, err);
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
    begin(ex, DOCK_OP_INV)->rkey = invalidate_rkey;
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
    begin_remote(ex, DOCK_OP_READ, rkey, remote_addr);
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
    begin_remote(ex, DOCK_OP_WRITE, rkey, remote_addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, __be32 imm_data)
{
    begin_remote(ex, DOCK_OP_WRITE_IMM, rkey, remote_addr);
    vb_qp_ex(ex)->build->wr.imm = imm_data;
}

static void wr_send(struct ibv_qp_ex *ex)
{
    begin(ex, DOCK_OP_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm_data)
{
    begin(ex, DOCK_OP_SEND_IMM)->imm = imm_data;
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
    begin(ex, DOCK_OP_SEND_INV)->rkey = invalidate_rkey;
}

// Operations that no service has: the section fails when it is completed.
static void refuse_op(struct ibv_qp_ex *ex, const char *call)
{
    fail(vb_qp_ex(ex)->build,
         dock_refuse(EOPNOTSUPP, "%s: queue %u: the operation is not offered", call, ex->qp_base.qp_num));
}

static void wr_send_tso(struct ibv_qp_ex *ex, void *hdr, uint16_t hdr_sz, uint16_t mss)
{
    (void)hdr, (void)hdr_sz, (void)mss;
    refuse_op(ex, "ibv_wr_send_tso");
}

static void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, const void *atomic_wr)
{
    (void)rkey, (void)remote_addr, (void)atomic_wr;
    refuse_op(ex, "ibv_wr_atomic_write");
}

// ---- setters

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t remote_qpn, uint32_t remote_qkey)
{
    struct vb_build *b = vb_qp_ex(ex)->build;
    int err = vb_take_ud(vb_qp_ex(ex), ah, remote_qpn, remote_qkey, &b->wr);

    if (err)
        fail(b, err);
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t remote_srqn)
{
    vb_qp_ex(ex)->build->wr.remote = remote_srqn;
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t num_sge, const struct ibv_sge *sg_list)
{
    struct vb_qp *qp = vb_qp_ex(ex);

    if (num_sge > qp->send_sge) {
        fail(qp->build, dock_refuse(vb_misfit(), "ibv_wr: queue %u: %zu SGEs, it was created for %u",
                                    ex->qp_base.qp_num, num_sge, qp->send_sge));
        return;
    }
    if (num_sge && !sg_list) {
        fail(qp->build,
             dock_refuse(EINVAL, "ibv_wr: queue %u: %zu SGEs without a list", ex->qp_base.qp_num, num_sge));
        return;
    }
    memcpy(qp->build->sge, sg_list, num_sge * sizeof *sg_list);
    qp->build->wr.nsge = (uint8_t)num_sge;
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
    struct ibv_sge sge = {.addr = addr, .length = length, .lkey = lkey};

    wr_set_sge_list(ex, 1, &sge);
}

static bool takes_inline(uint8_t op)
{
    return op == DOCK_OP_SEND || op == DOCK_OP_SEND_IMM || op == DOCK_OP_SEND_INV || op == DOCK_OP_WRITE ||
           op == DOCK_OP_WRITE_IMM;
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t num_buf, const struct ibv_data_buf *buf_list)
{
    struct vb_qp *qp = vb_qp_ex(ex);
    struct vb_build *b = qp->build;
    size_t bytes = 0;

    if (num_buf && !buf_list) {
        fail(b, dock_refuse(EINVAL, "ibv_wr: queue %u: inline data without a list", ex->qp_base.qp_num));
        return;
    }
    for (size_t i = 0; i < num_buf; i++) {
        if (!takes_inline(b->wr.op) || buf_list[i].length > qp->inline_max - bytes) {
            fail(b, dock_refuse(takes_inline(b->wr.op) ? vb_misfit() : EINVAL,
                                "ibv_wr: queue %u: more than %u inline bytes, or an opcode without inline",
                                ex->qp_base.qp_num, qp->inline_max));
            return;
        }
        memcpy(b->inline_data + bytes, buf_list[i].addr, buf_list[i].length);
        bytes += buf_list[i].length;
    }
    b->sge[0] = (struct dock_sge){.addr = (uintptr_t)b->inline_data, .len = (uint32_t)bytes};
    b->wr.nsge = 1;
    b->wr.inline_len = (uint32_t)bytes;
    b->wr.flags |= DOCK_F_INLINE;
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
    struct ibv_data_buf buf = {.addr = addr, .length = length};

    wr_set_inline_data_list(ex, 1, &buf);
}

// ---- the section

static void wr_start(struct ibv_qp_ex *ex)
{
    struct vb_qp *qp = vb_qp_ex(ex);

    dock_post_open(qp->dev, &qp->build->post); // the program decides when it ends
    qp->build->error = 0;
    qp->build->pending = false;
    qp->build->bound = NULL;
    qp->build->lost = !vb_takes_sends(&qp->build->post);
    if (qp->build->lost)
        fail(qp->build, vb_refuse_state(qp, dock_post_state(&qp->build->post), "ibv_wr_start"));
}

static void wr_abort(struct ibv_qp_ex *ex)
{
    struct vb_build *b = vb_qp_ex(ex)->build;
    struct dock_post *p = &b->post;

    let_go(b, true);
    p->pi = p->sq->pi; // as at the start: end has nothing to publish
    p->posted = p->sq->posted;
    dock_post_end(p);
}

static int wr_complete(struct ibv_qp_ex *ex)
{
    struct vb_build *b = vb_qp_ex(ex)->build;
    int err;

    put(b);
    err = b->error; // before the lock is gone
    if (err || b->lost) {
        wr_abort(ex);
    } else {
        let_go(b, false);
        dock_post_end(&b->post);
    }
    return err;
}

// ---- which of them a queue gets

#define WITH(op) IBV_QP_EX_WITH_##op
#define UD_OFFERED (WITH(SEND) | WITH(SEND_WITH_IMM))
#define UC_OFFERED                                                                                           \
    (UD_OFFERED | WITH(SEND_WITH_INV) | WITH(RDMA_WRITE) | WITH(RDMA_WRITE_WITH_IMM) | WITH(LOCAL_INV) |     \
     WITH(BIND_MW))
#define RC_OFFERED (UC_OFFERED | WITH(RDMA_READ) | WITH(ATOMIC_CMP_AND_SWP) | WITH(ATOMIC_FETCH_AND_ADD))

#define XRC_OFFERED (RC_OFFERED & ~(WITH(SEND_WITH_INV) | WITH(LOCAL_INV) | WITH(BIND_MW)))

static uint64_t offered_to(enum ibv_qp_type type)
{
    switch (type) {
    case IBV_QPT_RC:
        return RC_OFFERED;
    case IBV_QPT_UC:
        return UC_OFFERED;
    case IBV_QPT_XRC_SEND:
        return XRC_OFFERED;
    default:
        return UD_OFFERED;
    }
}

static void fill(struct ibv_qp_ex *ex)
{
    ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
    ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
    ex->wr_bind_mw = wr_bind_mw;
    ex->wr_local_inv = wr_local_inv;
    ex->wr_rdma_read = wr_rdma_read;
    ex->wr_rdma_write = wr_rdma_write;
    ex->wr_rdma_write_imm = wr_rdma_write_imm;
    ex->wr_send = wr_send;
    ex->wr_send_imm = wr_send_imm;
    ex->wr_send_inv = wr_send_inv;
    ex->wr_send_tso = wr_send_tso;
    ex->wr_atomic_write = wr_atomic_write;
    ex->wr_set_ud_addr = wr_set_ud_addr;
    ex->wr_set_xrc_srqn = wr_set_xrc_srqn;
    ex->wr_set_inline_data = wr_set_inline_data;
    ex->wr_set_inline_data_list = wr_set_inline_data_list;
    ex->wr_set_sge = wr_set_sge;
    ex->wr_set_sge_list = wr_set_sge_list;
    ex->wr_start = wr_start;
    ex->wr_complete = wr_complete;
    ex->wr_abort = wr_abort;
}

int vb_fill_builders(struct vb_qp *qp, uint64_t send_ops)
{
    uint64_t offered = offered_to(qp->ex.qp_base.qp_type);

    if (send_ops & ~offered)
        return dock_refuse(-EOPNOTSUPP,
                           "ibv_create_qp_ex: send operations %#llx do not exist for the service",
                           (unsigned long long)(send_ops & ~offered));
    qp->build = calloc(1, sizeof *qp->build);
    if (!qp->build)
        return dock_refuse(-ENOMEM, "ibv_create_qp_ex: no memory");
    fill(&qp->ex);
    return 0;
}

void vb_free_builders(struct vb_qp *qp)
{
    if (qp->build)
        let_go(qp->build, true); // a section that was never ended
    free(qp->build);
}
