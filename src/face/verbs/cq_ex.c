// SPDX-License-Identifier: MIT
// The iterator form of polling: start_poll, readers, next_poll, end_poll. The queue's lock is held from a
// start_poll that succeeds until end_poll. Only readers that were asked for at creation are set.
#include <time.h>

#include "face/verbs/verbs_face.h"

static int take(struct vb_cq *cq)
{
    int n = dock_cq_next(cq->dev, &cq->wc);

    if (n <= 0)
        return n ? -n : ENOENT;
    cq->ex.wr_id = cq->wc.id;
    cq->ex.status = vb_wc_status(cq->wc.status);
    return 0;
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
    struct vb_cq *cq = vb_cq_ex(ex);
    int err;

    if (attr && attr->comp_mask)
        return dock_refuse(EINVAL, "ibv_start_poll: mask %#x: no bit has a meaning", attr->comp_mask);
    if (dock_cq_idle(cq->dev))
        return ENOENT;
    dock_cq_begin(cq->dev);
    err = take(cq);
    if (err) // the caller must not call end_poll then
        dock_cq_end(cq->dev);
    return err;
}

static int next_poll(struct ibv_cq_ex *ex)
{
    return take(vb_cq_ex(ex));
}

static void end_poll(struct ibv_cq_ex *ex)
{
    dock_cq_end(vb_cq_ex(ex)->dev);
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ex)
{
    return vb_wc_opcode(&vb_cq_ex(ex)->wc);
}

static uint32_t read_vendor_err(struct ibv_cq_ex *ex)
{
    return vb_cq_ex(ex)->wc.vendor_err;
}

static uint32_t read_byte_len(struct ibv_cq_ex *ex)
{
    return vb_cq_ex(ex)->wc.bytes;
}

static __be32 read_imm_data(struct ibv_cq_ex *ex)
{
    return (__be32)vb_cq_ex(ex)->wc.imm;
}

static uint32_t read_qp_num(struct ibv_cq_ex *ex)
{
    return vb_cq_ex(ex)->wc.qp_num;
}

static uint32_t read_src_qp(struct ibv_cq_ex *ex)
{
    return vb_cq_ex(ex)->wc.src_qp;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *ex)
{
    return vb_wc_flags(&vb_cq_ex(ex)->wc);
}

static uint32_t read_slid(struct ibv_cq_ex *ex)
{
    (void)ex;
    return 0; // Ethernet has no LIDs
}

static uint8_t read_sl(struct ibv_cq_ex *ex)
{
    return vb_wc_sl(&vb_cq_ex(ex)->wc);
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *ex)
{
    (void)ex;
    return 0;
}

static uint64_t read_completion_ts(struct ibv_cq_ex *ex)
{
    return vb_cq_ex(ex)->wc.stamp_ns;
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t read_completion_wallclock_ns(struct ibv_cq_ex *ex)
{
    return vb_cq_ex(ex)->wc.stamp_ns + clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
}

void vb_fill_cq_readers(struct vb_cq *cq, uint64_t wc_flags)
{
    struct ibv_cq_ex *ex = &cq->ex;

    ex->start_poll = start_poll;
    ex->next_poll = next_poll;
    ex->end_poll = end_poll;
    ex->read_opcode = read_opcode;
    ex->read_vendor_err = read_vendor_err;
    ex->read_wc_flags = read_wc_flags;
    if (wc_flags & IBV_WC_EX_WITH_BYTE_LEN)
        ex->read_byte_len = read_byte_len;
    if (wc_flags & IBV_WC_EX_WITH_IMM)
        ex->read_imm_data = read_imm_data;
    if (wc_flags & IBV_WC_EX_WITH_QP_NUM)
        ex->read_qp_num = read_qp_num;
    if (wc_flags & IBV_WC_EX_WITH_SRC_QP)
        ex->read_src_qp = read_src_qp;
    if (wc_flags & IBV_WC_EX_WITH_SLID)
        ex->read_slid = read_slid;
    if (wc_flags & IBV_WC_EX_WITH_SL)
        ex->read_sl = read_sl;
    if (wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS)
        ex->read_dlid_path_bits = read_dlid_path_bits;
    if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
        ex->read_completion_ts = read_completion_ts;
    if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
        ex->read_completion_wallclock_ns = read_completion_wallclock_ns;
}
