// SPDX-License-Identifier: MIT
// Jettys: a send side and a JFR under one number.
#include <stdlib.h>

#include "face/urma/urma_face.h"

struct ur_jetty *ur_jetty_make(urma_context_t *ctx, const urma_jetty_cfg_t *cfg)
{
    struct ur_jetty *j = calloc(1, sizeof *j);

    if (!j) {
        dock_no_memory("a jetty");
        return NULL;
    }
    j->s.kind = UR_JETTY;
    j->s.object = j;
    j->jetty.urma_ctx = ctx;
    j->jetty.jetty_cfg = *cfg;
    pthread_mutex_init(&j->jetty.event_mutex, NULL);
    pthread_cond_init(&j->jetty.event_cond, NULL);
    ur_use(&ctx->ref);
    return j;
}

void ur_jetty_free(struct ur_jetty *j)
{
    ur_drop(&j->jetty.urma_ctx->ref);
    pthread_cond_destroy(&j->jetty.event_cond);
    pthread_mutex_destroy(&j->jetty.event_mutex);
    free(j);
}

static int settle_order(urma_jetty_cfg_t *c)
{
    uint32_t order;
    int err = ur_settle_order(c->jfs_cfg.trans_mode, c->jfs_cfg.flag.bs.order_type, true, "urma_create_jetty",
                              &order);

    if (err)
        return err;
    if (order != c->shared.jfr->jfr_cfg.flag.bs.order_type)
        return dock_refuse(-EINVAL, "urma_create_jetty: the jetty is of order type %u, its JFR of %u", order,
                           c->shared.jfr->jfr_cfg.flag.bs.order_type);
    c->jfs_cfg.flag.bs.order_type = order;
    return 0;
}

int ur_jetty_open(struct ur_jetty *j)
{
    urma_jetty_cfg_t *c = &j->jetty.jetty_cfg;
    int err = ur_check_jetty(c, "urma_create_jetty");

    if (!err)
        err = settle_order(c);
    if (!err)
        err = ur_check_member(c, "urma_create_jetty");
    if (err)
        return err;
    if (!c->shared.jfc)
        c->shared.jfc = c->shared.jfr->jfr_cfg.jfc;
    j->s.number = c->id;
    err = ur_sends_open(&j->s, j->jetty.urma_ctx, &c->jfs_cfg, ur_jfr(c->shared.jfr), c->shared.jfc,
                        c->jetty_grp ? ((struct ur_group *)c->jetty_grp)->dev : NULL);
    if (err)
        return err;
    ur_fill_id(&j->jetty.jetty_id, j->jetty.urma_ctx, dock_qp_number(j->s.dev));
    if (c->jetty_grp)
        ur_group_join(c->jetty_grp, &j->jetty);
    return 0;
}

int ur_jetty_close(struct ur_jetty *j, const char *call)
{
    urma_jetty_grp_t *group = j->jetty.jetty_cfg.jetty_grp;
    const struct ur_target *peer;
    int err;

    ur_hold_jobs(NULL, &j->jetty);
    peer = ur_peer(&j->s);
    ur_let_jobs_go(NULL, &j->jetty, !peer);
    if (peer)
        return dock_refuse(-EPERM, "%s: jetty %u is still bound to %u", call, j->jetty.jetty_id.id,
                           peer->t.id.id);
    // While the device counts the member, its place in the public list is kept, and the group lives.
    if (group)
        ur_group_leave(group, &j->jetty);
    err = ur_sends_close(&j->s, j->jetty.jetty_cfg.flag.bs.non_blocking, call);
    if (err && group)
        ur_group_join(group, &j->jetty);
    return err;
}

urma_jetty_t *urma_create_jetty(urma_context_t *ctx, urma_jetty_cfg_t *jetty_cfg)
{
    struct ur_jetty *j;
    int err;

    if (!ctx || !jetty_cfg)
        return ur_none(dock_refuse(-EINVAL, "urma_create_jetty: no context or no configuration given"));
    j = ur_jetty_make(ctx, jetty_cfg);
    if (!j)
        return ur_none(-ENOMEM);
    err = ur_jetty_open(j);
    if (err) {
        ur_jetty_free(j);
        return ur_none(err);
    }
    jetty_cfg->jfs_cfg.flag.bs.order_type = j->jetty.jetty_cfg.jfs_cfg.flag.bs.order_type;
    return &j->jetty;
}

urma_status_t urma_modify_jetty(urma_jetty_t *jetty, urma_jetty_attr_t *attr)
{
    if (!jetty || !attr || !ur_jetty(jetty)->s.dev)
        return dock_refuse(URMA_EINVAL, "urma_modify_jetty: no active jetty, or no attributes given");
    if (attr->mask & ~(uint32_t)JETTY_STATE)
        return dock_refuse(
            URMA_EINVAL, "urma_modify_jetty: mask %#x: the state can be changed, the threshold is its JFR's",
            attr->mask);
    if (!attr->mask)
        return URMA_SUCCESS;
    return ur_sends_modify(&ur_jetty(jetty)->s, attr->state, "urma_modify_jetty");
}

urma_status_t urma_query_jetty(urma_jetty_t *jetty, urma_jetty_cfg_t *cfg, urma_jetty_attr_t *attr)
{
    const struct ur_jetty *j = ur_jetty(jetty);

    if (!jetty || !cfg || !attr)
        return dock_refuse(URMA_EINVAL, "urma_query_jetty: no jetty, or no place for the answer");
    *cfg = jetty->jetty_cfg;
    attr->mask = JETTY_RX_THRESHOLD | JETTY_STATE;
    attr->rx_threshold = j->s.dev ? dock_srq_limit(ur_jfr(jetty->jetty_cfg.shared.jfr)->rq) : 0;
    attr->state = ur_sends_state(&j->s);
    return URMA_SUCCESS;
}

urma_status_t urma_delete_jetty(urma_jetty_t *jetty)
{
    int err;

    if (!jetty || !ur_jetty(jetty)->s.dev)
        return dock_refuse(URMA_EINVAL, "urma_delete_jetty: no jetty given, or one that is not active");
    err = ur_jetty_close(ur_jetty(jetty), "urma_delete_jetty");
    if (err)
        return ur_status(err);
    ur_jetty_free(ur_jetty(jetty));
    return URMA_SUCCESS;
}

urma_status_t urma_get_rjetty(urma_jetty_t *jetty, urma_rjetty_t **rjetty, uint32_t *length)
{
    const urma_jetty_cfg_t *c;
    urma_rjetty_t *r;

    if (!jetty || !rjetty || !length || !jetty->jetty_cfg.shared.jfr)
        return dock_refuse(URMA_EINVAL,
                           "urma_get_rjetty: no jetty with a shared JFR, or no place for the answer");
    c = &jetty->jetty_cfg;
    r = calloc(1, sizeof *r); // by malloc: programs give it back by free
    if (!r)
        return ur_status(dock_no_memory("a description of a jetty"));
    r->jetty_id = jetty->jetty_id;
    r->trans_mode = c->jfs_cfg.trans_mode;
    r->type = URMA_JETTY;
    r->flag.bs.order_type = c->jfs_cfg.flag.bs.order_type;
    r->flag.bs.token_policy = c->shared.jfr->jfr_cfg.flag.bs.token_policy;
    r->tp_type = c->jfs_cfg.trans_mode == URMA_TM_UM ? URMA_UTP : URMA_RTP;
    *rjetty = r;
    *length = sizeof *r;
    return URMA_SUCCESS;
}

void urma_put_rjetty(urma_rjetty_t *rjetty)
{
    free(rjetty);
}
