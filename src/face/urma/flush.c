// SPDX-License-Identifier: MIT
// What a queue in ERROR or SUSPENDED never executed. This device completes such requests itself, in order,
// with WR_FLUSH_ERR: nothing is left to be fetched.
#include "face/urma/urma_face.h"

static int flush(const struct ur_sends *s, uint32_t depth, int cr_cnt, const urma_cr_t *cr, const char *call)
{
    if (!s->dev || !cr || cr_cnt <= 0 || (uint32_t)cr_cnt > depth)
        return dock_refuse(-EINVAL, "%s: no active queue, no place for CRs, or %d of them for a depth of %u",
                           call, cr_cnt, depth);
    return 0;
}

int urma_flush_jfs(urma_jfs_t *jfs, int cr_cnt, urma_cr_t *cr)
{
    if (!jfs)
        return dock_refuse(-EINVAL, "urma_flush_jfs: no JFS given");
    return flush(&ur_jfs(jfs)->s, jfs->jfs_cfg.depth, cr_cnt, cr, "urma_flush_jfs");
}

int urma_flush_jetty(urma_jetty_t *jetty, int cr_cnt, urma_cr_t *cr)
{
    if (!jetty)
        return dock_refuse(-EINVAL, "urma_flush_jetty: no jetty given");
    return flush(&ur_jetty(jetty)->s, jetty->jetty_cfg.jfs_cfg.depth, cr_cnt, cr, "urma_flush_jetty");
}
