// SPDX-License-Identifier: MIT
// The flat calls: one WR with one piece on each side, built and posted.
#include "face/urma/urma_face.h"

static urma_status_t post_one(urma_jfs_t *jfs, urma_jfs_wr_t *wr)
{
    urma_jfs_wr_t *bad;

    return urma_post_jfs_wr(jfs, wr, &bad);
}

static urma_status_t one_sided(urma_jfs_t *jfs, urma_jfs_wr_t *wr, urma_sge_t *from, urma_sge_t *to)
{
    wr->rw.src = (urma_sg_t){.sge = from, .num_sge = 1};
    wr->rw.dst = (urma_sg_t){.sge = to, .num_sge = 1};
    return post_one(jfs, wr);
}

urma_status_t urma_write(urma_jfs_t *jfs, urma_target_jetty_t *target_jfr, urma_target_seg_t *dst_tseg,
                         urma_target_seg_t *src_tseg, uint64_t dst, uint64_t src, uint32_t len,
                         urma_jfs_wr_flag_t flag, uint64_t user_ctx)
{
    urma_jfs_wr_t wr = {.opcode = URMA_OPC_WRITE, .flag = flag, .tjetty = target_jfr, .user_ctx = user_ctx};

    if (!jfs || !target_jfr || !dst_tseg)
        return dock_refuse(URMA_EINVAL, "urma_write: no JFS, no target, or no segment to write to");
    return one_sided(jfs, &wr, &(urma_sge_t){.addr = src, .len = len, .tseg = src_tseg},
                     &(urma_sge_t){.addr = dst, .len = len, .tseg = dst_tseg});
}

urma_status_t urma_read(urma_jfs_t *jfs, urma_target_jetty_t *target_jfr, urma_target_seg_t *dst_tseg,
                        urma_target_seg_t *src_tseg, uint64_t dst, uint64_t src, uint32_t len,
                        urma_jfs_wr_flag_t flag, uint64_t user_ctx)
{
    urma_jfs_wr_t wr = {.opcode = URMA_OPC_READ, .flag = flag, .tjetty = target_jfr, .user_ctx = user_ctx};

    if (!jfs || !target_jfr || !dst_tseg || !src_tseg)
        return dock_refuse(URMA_EINVAL, "urma_read: no JFS, no target, or a segment is missing");
    return one_sided(jfs, &wr, &(urma_sge_t){.addr = src, .len = len, .tseg = src_tseg},
                     &(urma_sge_t){.addr = dst, .len = len, .tseg = dst_tseg});
}

urma_status_t urma_send(urma_jfs_t *jfs, urma_target_jetty_t *target_jfr, urma_target_seg_t *src_tseg,
                        uint64_t src, uint32_t len, urma_jfs_wr_flag_t flag, uint64_t user_ctx)
{
    urma_sge_t from = {.addr = src, .len = len, .tseg = src_tseg};
    urma_jfs_wr_t wr = {
        .opcode = URMA_OPC_SEND,
        .flag = flag,
        .tjetty = target_jfr,
        .user_ctx = user_ctx,
        .send = {.src = {.sge = &from, .num_sge = 1}},
    };

    if (!jfs || !target_jfr || (!src_tseg && !flag.bs.inline_flag))
        return dock_refuse(URMA_EINVAL, "urma_send: no JFS, no target, or no segment and not inline");
    return post_one(jfs, &wr);
}

urma_status_t urma_recv(urma_jfr_t *jfr, urma_target_seg_t *recv_tseg, uint64_t buf, uint32_t len,
                        uint64_t user_ctx)
{
    urma_sge_t to = {.addr = buf, .len = len, .tseg = recv_tseg};
    urma_jfr_wr_t wr = {.src = {.sge = &to, .num_sge = 1}, .user_ctx = user_ctx}, *bad;

    if (!jfr || !recv_tseg)
        return dock_refuse(URMA_EINVAL, "urma_recv: no JFR or no segment given");
    if (!buf)
        return dock_refuse(URMA_FAIL, "urma_recv: no address given");
    return urma_post_jfr_wr(jfr, &wr, &bad);
}
