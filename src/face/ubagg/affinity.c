// SPDX-License-Identifier: MIT
// liburma_ubagg: in UMDK, the library that makes one device of several. The software device has one chip and
// aggregates nothing. What a program calls by name is here, so that it links and runs, and asks the device
// in UMDK's way: by a request with an extension, which this device does not know.
#include <ub/umdk/urma/urma_api.h>
#include <ub/umdk/urma/urma_provider.h>
#include <ub/umdk/urma/urma_ubagg.h>

#include "base/log.h"

urma_status_t urma_write_affinity(urma_jfs_t *jfs, urma_target_jetty_t *target_jfr,
                                  urma_target_seg_t *dst_tseg, urma_target_seg_t *src_tseg, uint64_t dst,
                                  uint64_t src, uint32_t len, urma_jfs_wr_flag_t flag, uint64_t user_ctx,
                                  uint32_t src_chip_id, uint32_t dst_chip_id)
{
    urma_sge_t from = {.addr = src, .len = len, .tseg = src_tseg};
    urma_sge_t to = {.addr = dst, .len = len, .tseg = dst_tseg};
    bondp_jfs_wr_t wr = {.src_chip_id = src_chip_id, .dst_chip_id = dst_chip_id};
    urma_jfs_wr_t *bad;

    if (!jfs || !jfs->urma_ctx || !target_jfr || !dst_tseg)
        return dock_refuse(URMA_EINVAL, "urma_write_affinity: no JFS, no target, or no remote segment");
    wr.base =
        (urma_jfs_wr_t){.opcode = URMA_OPC_WRITE, .flag = flag, .tjetty = target_jfr, .user_ctx = user_ctx};
    wr.base.flag.bs.has_drv_ext = 1;
    wr.base.rw.src = (urma_sg_t){.sge = &from, .num_sge = 1};
    wr.base.rw.dst = (urma_sg_t){.sge = &to, .num_sge = 1};
    return jfs->urma_ctx->ops->post_jfs_wr(jfs, &wr.base, &bad);
}
