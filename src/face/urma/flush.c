// SPDX-License-Identifier: MIT
// What a suspended queue never executed, taken out by the program: after the mark SUSPEND_DONE was polled. A
// queue in ERROR has nothing left: the device completes what it flushes before it makes the mark.
#include "face/urma/urma_face.h"

enum { AT_ONCE = 16, NO_OPCODE = 0xff };

static void fill(const struct ur_sends *s, const urma_context_t *ctx, const struct dock_wc *d, urma_cr_t *cr)
{
    *cr = (urma_cr_t){.status = URMA_CR_WR_UNHANDLED,
                      .user_ctx = d->id,
                      .opcode = (urma_cr_opcode_t)NO_OPCODE,
                      .completion_len = d->bytes,
                      .local_id = d->qp_num,
                      .remote_id = {.eid = ctx->eid, .uasid = UR_UASID, .id = d->src_qp},
                      .tpn = d->src_qp,
                      .user_data = (uintptr_t)s->object};
    cr->flag.bs.jetty = s->kind == UR_JETTY;
}

static int flush(const struct ur_sends *s, const urma_context_t *ctx, uint32_t depth, int cr_cnt,
                 urma_cr_t *cr, const char *call)
{
    struct dock_wc wc[AT_ONCE];
    int done = 0, got, want;

    if (!s->dev || !cr || cr_cnt <= 0 || (uint32_t)cr_cnt > depth)
        return dock_refuse(-EINVAL, "%s: no active queue, no place for CRs, or %d of them for a depth of %u",
                           call, cr_cnt, depth);
    // what nobody has rung for was never begun either
    if (dock_qp_state(s->dev) == DOCK_SUSPENDED)
        dock_post_ring(s->dev);
    do {
        want = cr_cnt - done < AT_ONCE ? cr_cnt - done : AT_ONCE;
        got = dock_qp_flush(s->dev, (unsigned)want, wc);
        for (int i = 0; i < got; i++)
            fill(s, ctx, &wc[i], &cr[done + i]);
        done += got;
    } while (got == want && done < cr_cnt);
    return done;
}

int urma_flush_jfs(urma_jfs_t *jfs, int cr_cnt, urma_cr_t *cr)
{
    if (!jfs)
        return dock_refuse(-EINVAL, "urma_flush_jfs: no JFS given");
    return flush(&ur_jfs(jfs)->s, jfs->urma_ctx, jfs->jfs_cfg.depth, cr_cnt, cr, "urma_flush_jfs");
}

int urma_flush_jetty(urma_jetty_t *jetty, int cr_cnt, urma_cr_t *cr)
{
    if (!jetty)
        return dock_refuse(-EINVAL, "urma_flush_jetty: no jetty given");
    return flush(&ur_jetty(jetty)->s, jetty->urma_ctx, jetty->jetty_cfg.jfs_cfg.depth, cr_cnt, cr,
                 "urma_flush_jetty");
}
