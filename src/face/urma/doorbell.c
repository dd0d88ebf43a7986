// SPDX-License-Identifier: MIT
// Posts that somebody else rings for: the option that turns ringing off and on, and UDMA's control call that
// posts and tells where and what to ring.
#include <ub/umdk/urma/udma/udma_u_ctl.h>

#include "face/urma/options.h"

urma_status_t ur_set_doorbell(struct ur_sends *s, const void *buf, uint32_t len, const char *call)
{
    struct dock_ring_look ring = {0};
    uint8_t status;

    if (len != sizeof status)
        return dock_refuse(URMA_EINVAL, "%s: the status of a doorbell has 1 byte, not %u", call, len);
    memcpy(&status, buf, sizeof status);
    if (status > 1)
        return dock_refuse(URMA_EINVAL, "%s: a doorbell is rung (0) or left alone (1), not %u", call, status);
    if (s->dev)
        dock_qp_ring(s->dev, &ring);
    if (status && s->dev && !ring.page) // it is told by this option that there is one
        return dock_refuse(URMA_EINVAL, "%s: queue %u was activated without a doorbell page of its own", call,
                           dock_qp_number(s->dev));
    if (!status && ring.driven) // posts would begin again where they ended, over what others have rung for
        return dock_refuse(URMA_EINVAL, "%s: queue %u was driven past what was posted: it stays driven", call,
                           dock_qp_number(s->dev));
    dock_set32(&s->keeps, status);
    if (!status && s->dev)
        dock_post_ring(s->dev);
    return URMA_SUCCESS;
}

static struct ur_sends *queue_of(const struct udma_u_wr_ex *ex)
{
    if (!ex->jfs || !ex->wr || !ex->bad_wr)
        return NULL;
    return ex->is_jetty ? &ur_jetty(ex->jetty)->s : &ur_jfs(ex->jfs)->s;
}

// The first WR that asks for what is not offered here, NULL: none does.
static struct udma_u_jfs_wr_ex *reduces(struct udma_u_jfs_wr_ex *wr)
{
    while (wr && !wr->reduce_en)
        wr = (struct udma_u_jfs_wr_ex *)(void *)wr->wr.next;
    return wr;
}

urma_status_t ur_ctl_post_wr(urma_context_t *ctx, const void *in, void *out)
{
    struct udma_u_post_info info = {0};
    struct udma_u_jfs_wr_ex *bad;
    struct dock_ring_look ring;
    struct ur_posted posted;
    struct udma_u_wr_ex ex;
    struct ur_sends *s;

    (void)ctx;
    memcpy(&ex, in, sizeof ex);
    s = queue_of(&ex);
    if (!s || !s->dev) {
        if (ex.wr && ex.bad_wr)
            *ex.bad_wr = ex.wr;
        return dock_refuse(URMA_FAIL,
                           "urma_user_ctl: post of WRs: no active queue, no WR, or no place for a bad one");
    }
    bad = reduces(ex.wr);
    if (bad) {
        *ex.bad_wr = bad;
        return dock_refuse(URMA_FAIL, "urma_user_ctl: post of WRs: data reduction is not offered");
    }
    dock_qp_ring(s->dev, &ring);
    if (ring.driven) {
        *ex.bad_wr = ex.wr;
        return dock_refuse(URMA_FAIL, "urma_user_ctl: post of WRs: queue %u is driven past what was posted",
                           dock_qp_number(s->dev));
    }
    // a WR of UDMA's begins with URMA's
    if (ur_post_wrs(s, &ex.wr->wr, (urma_jfs_wr_t **)(void *)ex.bad_wr, !ex.db_en, &posted))
        return URMA_FAIL;
    info.ctrl =
        (uint64_t *)(void *)((char *)ring.base + (size_t)(posted.last & (ring.entries - 1)) * DOCK_BLOCK);
    info.dwqe_addr = ring.page; // NULL: this queue takes no WQE that is stored whole
    info.db_addr = ring.doorbell;
    info.pi = posted.pi;
    memcpy(out, &info, sizeof info);
    return URMA_SUCCESS;
}
