// SPDX-License-Identifier: MIT
// Handles of what is far away: imported jettys and JFRs, and the binding of a connected jetty to one of them.
// Importing asks nobody: what is wrong with a name is found out by the first request that uses it.
#include <stdlib.h>

#include "face/urma/urma_face.h"

enum { REACH_MS = 2000 };

struct wanted {
    const urma_jetty_id_t *id;
    urma_transport_mode_t mode;
    urma_target_type_t type;
    urma_jetty_grp_policy_t policy;
    urma_import_jetty_flag_t flag;
    urma_tp_type_t tp;
    const urma_token_t *token;
};

static struct ur_target *make(urma_context_t *ctx, const struct wanted *w, const char *call)
{
    struct ur_target *t;
    uint32_t order;
    int err = ur_check_mode(w->mode, call);

    if (!err)
        err = ur_settle_order(w->mode, w->flag.bs.order_type, true, call, &order);
    if (!err)
        err = ur_check_tp(w->mode, w->tp, call);
    if (err)
        return ur_none(err);
    if (w->flag.bs.has_drv_ext || w->flag.bs.has_user_info)
        return ur_none(dock_refuse(-EINVAL, "%s: this device knows no extensions of its own", call));
    t = calloc(1, sizeof *t);
    if (!t)
        return ur_none(dock_no_memory("an imported target"));
    t->t = (urma_target_jetty_t){
        .urma_ctx = ctx,
        .id = *w->id,
        .handle = w->id->id,
        .trans_mode = w->mode,
        .tp = {.tpn = w->id->id},
        .type = w->type,
        .flag = w->flag,
        .policy = w->policy,
        .tp_type = w->tp,
    };
    t->t.flag.bs.order_type = order;
    t->token = w->token && w->flag.bs.token_policy != URMA_TOKEN_NONE ? w->token->token : 0;
    ur_use(&ctx->ref);
    return t;
}

static urma_status_t drop(urma_target_jetty_t *target, const char *call)
{
    struct ur_target *t = ur_target(target);
    uint32_t binds;

    if (!target)
        return dock_refuse(URMA_EINVAL, "%s: no target given", call);
    ur_hold_jobs(target, NULL);
    binds = dock_acquire32(&t->binds); // pairs with urma_unbind_jetty
    ur_let_jobs_go(target, NULL, !binds);
    if (binds)
        return dock_refuse(URMA_FAIL, "%s: %u jettys are bound to target %u", call, binds, target->id.id);
    ur_drop(&target->urma_ctx->ref);
    free(t);
    return URMA_SUCCESS;
}

// ---- jettys and groups

urma_target_jetty_t *ur_import_named(urma_context_t *ctx, const urma_rjetty_t *r, const urma_token_t *token,
                                     const char *call)
{
    struct wanted w = {&r->jetty_id, r->trans_mode, r->type, r->policy, r->flag, r->tp_type, token};
    struct ur_target *t = make(ctx, &w, call);

    return t ? &t->t : NULL;
}

// The peer is reached now if it answers in time, else by the first request.
static void look_for(const urma_target_jetty_t *t)
{
    dock_reach(ur_dev(t->urma_ctx), t->id.eid.raw, t->id.id, REACH_MS);
}

static urma_target_jetty_t *import_jetty(urma_context_t *ctx, urma_rjetty_t *r, const urma_token_t *token,
                                         const char *call)
{
    urma_target_jetty_t *t;

    if (!ctx || !r)
        return ur_none(dock_refuse(-EINVAL, "%s: no context, or no jetty described", call));
    t = ur_import_named(ctx, r, token, call);
    if (!t)
        return NULL;
    look_for(t);
    r->flag.bs.order_type = t->flag.bs.order_type;
    return t;
}

urma_target_jetty_t *urma_import_jetty(urma_context_t *ctx, urma_rjetty_t *rjetty, urma_token_t *token_value)
{
    return import_jetty(ctx, rjetty, token_value, "urma_import_jetty");
}

// The transport that `cfg` names is the only one there is: all of them lead to the same host's memory.
urma_target_jetty_t *urma_import_jetty_ex(urma_context_t *ctx, urma_rjetty_t *rjetty,
                                          urma_token_t *token_value, urma_import_jetty_ex_cfg_t *cfg)
{
    if (!token_value || !cfg)
        return ur_none(dock_refuse(-EINVAL, "urma_import_jetty_ex: no token or no transport given"));
    return import_jetty(ctx, rjetty, token_value, "urma_import_jetty_ex");
}

urma_status_t urma_unimport_jetty(urma_target_jetty_t *tjetty)
{
    return drop(tjetty, "urma_unimport_jetty");
}

// ---- JFRs

static urma_target_jetty_t *import_jfr(urma_context_t *ctx, urma_rjfr_t *r, const urma_token_t *token,
                                       const char *call)
{
    struct ur_target *t;
    struct wanted w;

    if (!ctx || !r || (!token && r->flag.bs.token_policy != URMA_TOKEN_NONE))
        return ur_none(dock_refuse(-EINVAL, "%s: no context, no JFR described, or no token for one", call));
    w = (struct wanted){&r->jfr_id, r->trans_mode, URMA_JFR, 0, r->flag, r->tp_type, token};
    t = make(ctx, &w, call);
    if (!t)
        return NULL;
    look_for(&t->t);
    r->flag.bs.order_type = t->t.flag.bs.order_type;
    return &t->t;
}

urma_target_jetty_t *urma_import_jfr(urma_context_t *ctx, urma_rjfr_t *rjfr, urma_token_t *token_value)
{
    return import_jfr(ctx, rjfr, token_value, "urma_import_jfr");
}

urma_target_jetty_t *urma_import_jfr_ex(urma_context_t *ctx, urma_rjfr_t *rjfr, urma_token_t *token_value,
                                        urma_import_jfr_ex_cfg_t *cfg)
{
    if (!token_value || !cfg)
        return ur_none(dock_refuse(-EINVAL, "urma_import_jfr_ex: no token or no transport given"));
    return import_jfr(ctx, rjfr, token_value, "urma_import_jfr_ex");
}

urma_status_t urma_unimport_jfr(urma_target_jetty_t *target_jfr)
{
    return drop(target_jfr, "urma_unimport_jfr");
}

// ---- binding

urma_status_t ur_check_bind(const urma_jetty_t *jetty, const urma_target_jetty_t *t, const char *call)
{
    const urma_jfs_cfg_t *c;

    if (!jetty || !t || !ur_jetty((urma_jetty_t *)(uintptr_t)jetty)->s.dev)
        return dock_refuse(URMA_EINVAL, "%s: no active jetty, or no target given", call);
    c = &jetty->jetty_cfg.jfs_cfg;
    if (c->trans_mode != URMA_TM_RC || t->trans_mode != URMA_TM_RC)
        return dock_refuse(URMA_ENOPERM, "%s: modes %d and %d: only RC is bound", call, (int)c->trans_mode,
                           (int)t->trans_mode);
    if (c->flag.bs.order_type != t->flag.bs.order_type)
        return dock_refuse(URMA_ENOPERM, "%s: order types %u and %u differ", call, c->flag.bs.order_type,
                           t->flag.bs.order_type);
    return URMA_SUCCESS;
}

static void set_peer(struct ur_sends *s, struct ur_target *t)
{
    atomic_store_explicit(&s->bound, t, memory_order_release); // pairs with ur_peer
}

// Posting threads read s->bound under the queue's lock, so it changes under it: under the lock alone, for who
// posts on a lock_free queue does not take it, and dock_post_end would set the index that is the poster's.
// The peer it had before; NULL: none, and `t` is its peer now unless *taken, which says that another jetty
// has that handle.
static struct ur_target *take_peer(struct ur_sends *s, struct ur_target *t, bool *taken)
{
    struct dock_sq_post *sq = dock_qp_sq(s->dev);
    struct ur_target *was;
    uint32_t none = 0;

    dock_sq_lock(sq, false);
    was = ur_peer(s);
    *taken = !was && !dock_claim32(&t->binds, &none, 1);
    if (!was && !*taken)
        set_peer(s, t);
    dock_sq_unlock(sq);
    return was;
}

// The peer it had. Its handle stays taken until the caller gives it back.
static struct ur_target *leave_peer(struct ur_sends *s)
{
    struct dock_sq_post *sq = dock_qp_sq(s->dev);
    struct ur_target *was;

    dock_sq_lock(sq, false);
    was = ur_peer(s);
    set_peer(s, NULL);
    dock_sq_unlock(sq);
    return was;
}

static urma_status_t bind_to(urma_jetty_t *jetty, urma_target_jetty_t *target, const char *call)
{
    struct ur_target *t = ur_target(target);
    urma_status_t refused = ur_check_bind(jetty, target, call);
    struct ur_target *was;
    struct ur_sends *s;
    bool taken;
    int err;

    if (refused)
        return refused;
    s = &ur_jetty(jetty)->s;
    was = take_peer(s, t, &taken);
    if (was)
        return was == t ? URMA_SUCCESS
                        : dock_refuse(URMA_EEXIST, "%s: jetty %u is bound already", call, jetty->jetty_id.id);
    if (taken)
        return dock_refuse(URMA_EINVAL, "%s: another jetty is bound to target %u", call, target->id.id);
    err = ur_connect(s);
    if (err) {
        leave_peer(s);
        dock_publish32(&t->binds, 0); // pairs with the acquire in drop
        return ur_status(err);
    }
    jetty->remote_jetty = target;
    return URMA_SUCCESS;
}

urma_status_t urma_bind_jetty(urma_jetty_t *jetty, urma_target_jetty_t *tjetty)
{
    return bind_to(jetty, tjetty, "urma_bind_jetty");
}

urma_status_t urma_bind_jetty_ex(urma_jetty_t *jetty, urma_target_jetty_t *tjetty,
                                 urma_bind_jetty_ex_cfg_t *cfg)
{
    if (!cfg)
        return dock_refuse(URMA_EINVAL, "urma_bind_jetty_ex: no transport given");
    return bind_to(jetty, tjetty, "urma_bind_jetty_ex");
}

urma_status_t urma_unbind_jetty(urma_jetty_t *jetty)
{
    struct ur_sends *s;
    struct ur_target *t;
    int err;

    if (!jetty)
        return dock_refuse(URMA_EINVAL, "urma_unbind_jetty: no jetty given");
    ur_hold_jobs(NULL, jetty);
    ur_let_jobs_go(NULL, jetty, true);
    if (!jetty->remote_jetty)
        return dock_refuse(URMA_EINVAL, "urma_unbind_jetty: jetty %u is not bound", jetty->jetty_id.id);
    s = &ur_jetty(jetty)->s;
    t = leave_peer(s); // from here on nothing is posted that would be sent to nobody
    if (!t)
        return dock_refuse(URMA_EINVAL, "urma_unbind_jetty: the jetty is not bound any more");
    jetty->remote_jetty = NULL;
    err = ur_disconnect(s);
    dock_publish32(&t->binds, 0); // pairs with the acquire in drop
    return ur_status(err);
}

// ---- advice: nothing need be set up before the first request

static urma_status_t advise(urma_transport_mode_t mode, const urma_target_jetty_t *t, const char *call)
{
    if (mode != URMA_TM_RM || t->trans_mode != URMA_TM_RM)
        return dock_refuse(URMA_EINVAL, "%s: advice is for RM", call);
    return URMA_SUCCESS;
}

urma_status_t urma_advise_jetty(urma_jetty_t *jetty, urma_target_jetty_t *tjetty)
{
    if (!jetty || !tjetty)
        return dock_refuse(URMA_EINVAL, "urma_advise_jetty: no jetty or no target given");
    return advise(jetty->jetty_cfg.jfs_cfg.trans_mode, tjetty, "urma_advise_jetty");
}

urma_status_t urma_unadvise_jetty(urma_jetty_t *jetty, urma_target_jetty_t *tjetty)
{
    if (!jetty || !tjetty)
        return dock_refuse(URMA_EINVAL, "urma_unadvise_jetty: no jetty or no target given");
    return URMA_SUCCESS;
}

urma_status_t urma_advise_jfr(urma_jfs_t *jfs, urma_target_jetty_t *tjfr)
{
    if (!jfs || !tjfr)
        return dock_refuse(URMA_EINVAL, "urma_advise_jfr: no JFS or no target given");
    return advise(jfs->jfs_cfg.trans_mode, tjfr, "urma_advise_jfr");
}

urma_status_t urma_unadvise_jfr(urma_jfs_t *jfs, urma_target_jetty_t *tjfr)
{
    if (!jfs || !tjfr)
        return dock_refuse(URMA_EINVAL, "urma_unadvise_jfr: no JFS or no target given");
    return URMA_SUCCESS;
}

// As on the reference's UB devices the answer is the return value, and the callback is not called.
urma_status_t urma_advise_jfr_async(urma_jfs_t *jfs, urma_target_jetty_t *tjfr,
                                    urma_advise_async_cb_func cb_fun, void *cb_arg)
{
    if (!jfs || !tjfr || !cb_fun || !cb_arg)
        return dock_refuse(URMA_EINVAL, "urma_advise_jfr_async: no JFS, target, callback or argument given");
    return advise(jfs->jfs_cfg.trans_mode, tjfr, "urma_advise_jfr_async");
}
