// SPDX-License-Identifier: MIT
// Token ids and segments. A token id is a place in the device's segment table; what a peer must know of a
// segment is the id, its range, and the token value if the policy asks for one.
#include <stdlib.h>

#include "fabric/map.h"
#include "face/urma/urma_face.h"

// ---- token ids

static urma_token_id_t *alloc_token(urma_context_t *ctx, urma_token_id_flag_t flag)
{
    struct ur_token *t = calloc(1, sizeof *t);
    int err;

    if (!t)
        return ur_none(dock_no_memory("a token id"));
    err = flag.bs.multi_seg ? dock_tid_reserve_many(ur_dev(ctx), &t->tid)
                            : dock_tid_reserve(ur_dev(ctx), &t->tid);
    if (err) {
        free(t);
        return ur_none(err);
    }
    t->id.urma_ctx = ctx;
    t->id.token_id = t->tid << 8; // the format's name of a segment
    t->id.flag = flag;
    ur_use(&ctx->ref);
    return &t->id;
}

urma_token_id_t *urma_alloc_token_id(urma_context_t *ctx)
{
    if (!ctx)
        return ur_none(dock_refuse(-EINVAL, "urma_alloc_token_id: no context given"));
    return alloc_token(ctx, (urma_token_id_flag_t){0});
}

urma_token_id_t *urma_alloc_token_id_ex(urma_context_t *ctx, urma_token_id_flag_t flag)
{
    if (!ctx)
        return ur_none(dock_refuse(-EINVAL, "urma_alloc_token_id_ex: no context given"));
    return alloc_token(ctx, flag);
}

urma_status_t urma_free_token_id(urma_token_id_t *token_id)
{
    if (!token_id)
        return dock_refuse(URMA_EINVAL, "urma_free_token_id: no token id given");
    if (ur_users(&token_id->ref))
        return dock_refuse(URMA_EINVAL, "urma_free_token_id: %lu segments use it", ur_users(&token_id->ref));
    dock_tid_release(ur_dev(token_id->urma_ctx), ((struct ur_token *)token_id)->tid);
    ur_drop(&token_id->urma_ctx->ref);
    free((struct ur_token *)token_id);
    return URMA_SUCCESS;
}

// ---- registering

// What others may do is what was asked for; writing it ourselves is always allowed.
static int check_access(uint32_t access, uint32_t *out)
{
    bool local = access & URMA_ACCESS_LOCAL_ONLY, read = access & URMA_ACCESS_READ,
         write = access & URMA_ACCESS_WRITE, atomic = access & URMA_ACCESS_ATOMIC;

    if (local && (read || write || atomic))
        return dock_refuse(-EINVAL, "urma_register_seg: access %#x: LOCAL_ONLY stands alone", access);
    if ((write && !read) || (atomic && !(read && write)))
        return dock_refuse(
            -EINVAL, "urma_register_seg: access %#x: WRITE needs READ, ATOMIC needs READ and WRITE", access);
    *out = DOCK_ACCESS_LOCAL_WRITE | (read ? DOCK_ACCESS_REMOTE_READ : 0) |
           (write ? DOCK_ACCESS_REMOTE_WRITE : 0) | (atomic ? DOCK_ACCESS_REMOTE_ATOMIC : 0);
    return 0;
}

static int check_seg(const urma_seg_cfg_t *c)
{
    if (!c->va)
        return dock_refuse(-EINVAL, "urma_register_seg: no address given");
    if (c->flag.bs.token_id_valid == URMA_TOKEN_ID_VALID ? !c->token_id : c->token_id != NULL)
        return dock_refuse(-EINVAL, "urma_register_seg: token_id_valid %u, and %s token id given",
                           c->flag.bs.token_id_valid, c->token_id ? "a" : "no");
    if (c->flag.bs.token_policy > URMA_TOKEN_PLAIN_TEXT)
        return dock_refuse(-EINVAL, "urma_register_seg: token policy %u: NONE and PLAIN_TEXT are offered",
                           c->flag.bs.token_policy);
    if (c->token_id && ur_users(&c->token_id->ref) && !c->token_id->flag.bs.multi_seg)
        return dock_refuse(-EINVAL, "urma_register_seg: token id %#x is of another segment",
                           c->token_id->token_id);
    return 0;
}

// An EID is of the host, and a token id of one process: who is to map the segment must know which. No other
// field of a descriptor has room, and programs expect 0 in uasid.
static void describe(struct ur_seg *s, urma_context_t *ctx, const urma_seg_cfg_t *c)
{
    urma_seg_attr_t attr = {.bs = {.token_policy = c->flag.bs.token_policy,
                                   .cacheable = c->flag.bs.cacheable,
                                   .dsva = c->flag.bs.dsva,
                                   .access = c->flag.bs.access,
                                   .non_pin = c->flag.bs.non_pin,
                                   .user_iova = c->flag.bs.user_iova,
                                   .user_token_id = c->flag.bs.token_id_valid,
                                   .reserved = dock_dev_home(ur_dev(ctx))}};

    s->t.seg = (urma_seg_t){
        .ubva = {.eid = ctx->eid, .uasid = UR_UASID, .va = c->flag.bs.user_iova ? c->iova : c->va},
        .len = c->len,
        .attr = attr,
        .token_id = s->rkey};
    s->t.user_ctx = c->user_ctx;
    s->t.urma_ctx = ctx;
    s->t.handle = s->rkey;
}

urma_target_seg_t *urma_register_seg(urma_context_t *ctx, urma_seg_cfg_t *cfg)
{
    struct ur_seg *s;
    uint32_t access = 0;
    int err;

    if (!ctx || !cfg)
        return ur_none(dock_refuse(-EINVAL, "urma_register_seg: no context or no configuration given"));
    err = check_seg(cfg);
    if (!err)
        err = check_access(cfg->flag.bs.access, &access);
    if (err)
        return ur_none(err);
    s = calloc(1, sizeof *s);
    if (!s)
        return ur_none(dock_no_memory("a segment"));
    s->own_token = !cfg->token_id;
    s->t.token_id = cfg->token_id ? cfg->token_id : urma_alloc_token_id(ctx);
    err = s->t.token_id ? 0 : -ENOMEM;
    if (err)
        goto no_token;
    err = dock_mr_register_as(ur_dev(ctx), ur_pd(), cfg->va, cfg->len,
                              cfg->flag.bs.user_iova ? cfg->iova : cfg->va, access,
                              ((struct ur_token *)s->t.token_id)->tid, &s->mr);
    if (err)
        goto no_region;
    s->lkey = s->mr->lkey;
    s->rkey = s->t.token_id->token_id;
    // our own handle is as good as an imported one: a program may name it as the remote side
    s->token = cfg->flag.bs.token_policy != URMA_TOKEN_NONE ? cfg->token_value.token : 0;
    dock_mr_set_token(s->mr, cfg->flag.bs.token_policy != URMA_TOKEN_NONE, cfg->token_value.token);
    describe(s, ctx, cfg);
    ur_use(&s->t.token_id->ref);
    ur_use(&ctx->ref);
    return &s->t;

no_region:
    if (s->own_token)
        urma_free_token_id(s->t.token_id);
no_token:
    free(s);
    return ur_none(err == -EFAULT || err == -EBUSY ? -EINVAL : err);
}

urma_status_t urma_unregister_seg(urma_target_seg_t *target_seg)
{
    struct ur_seg *s = ur_seg(target_seg);

    if (!target_seg || !s->mr)
        return dock_refuse(URMA_EINVAL, "urma_unregister_seg: no registered segment given");
    if (dock_mr_deregister(s->mr))
        return URMA_FAIL;
    ur_drop(&target_seg->token_id->ref);
    if (s->own_token)
        urma_free_token_id(target_seg->token_id);
    ur_drop(&target_seg->urma_ctx->ref);
    free(s);
    return URMA_SUCCESS;
}

// ---- importing

// Loads and stores instead of requests: the rights and the token are looked at once, here.
static int map(struct ur_seg *s, urma_context_t *ctx, uint64_t addr, uint32_t access)
{
    const urma_seg_t *seg = &s->t.seg;
    uint32_t both = seg->attr.bs.access & (access ? access : seg->attr.bs.access);
    struct dock_map_want want = {.tid = seg->token_id >> 8,
                                 .token = s->token,
                                 .va = seg->ubva.va,
                                 .len = seg->len,
                                 .need = DOCK_ACCESS_REMOTE_READ |
                                         (both & URMA_ACCESS_WRITE ? DOCK_ACCESS_REMOTE_WRITE : 0),
                                 .at = (void *)(uintptr_t)addr};
    int err;

    if (!(both & URMA_ACCESS_READ))
        return dock_refuse(-EACCES, "urma_import_seg: the segment may not be read: nothing to be mapped");
    err = dock_map_open(ur_dev(ctx), seg->attr.bs.reserved, &want, &s->map);
    if (!err)
        s->t.mva = (uintptr_t)dock_map_at(s->map);
    return err;
}

urma_target_seg_t *urma_import_seg(urma_context_t *ctx, urma_seg_t *seg, urma_token_t *token_value,
                                   uint64_t addr, urma_import_seg_flag_t flag)
{
    struct ur_seg *s;
    int err;

    if (!ctx || !seg || (!token_value && seg->attr.bs.token_policy != URMA_TOKEN_NONE))
        return ur_none(dock_refuse(
            -EINVAL, "urma_import_seg: no context, no segment, or no token for a policy that asks"));
    s = calloc(1, sizeof *s);
    if (!s)
        return ur_none(dock_no_memory("an imported segment"));
    s->t.seg = *seg;
    s->t.urma_ctx = ctx;
    s->t.handle = seg->token_id;
    s->rkey = seg->token_id;
    s->token = token_value && seg->attr.bs.token_policy != URMA_TOKEN_NONE ? token_value->token : 0;
    err = flag.bs.mapping ? map(s, ctx, addr, flag.bs.access) : 0;
    if (err) {
        free(s);
        return ur_none(err);
    }
    ur_use(&ctx->ref);
    return &s->t;
}

urma_status_t urma_unimport_seg(urma_target_seg_t *tseg)
{
    if (!tseg || ur_seg(tseg)->mr)
        return dock_refuse(URMA_EINVAL, "urma_unimport_seg: no imported segment given");
    if (ur_seg(tseg)->map)
        dock_map_close(ur_seg(tseg)->map);
    ur_drop(&tseg->urma_ctx->ref);
    free(ur_seg(tseg));
    return URMA_SUCCESS;
}

// ---- descriptors for peers

urma_status_t urma_get_seg_ctx(urma_target_seg_t *tseg, urma_seg_t **seg, uint32_t *size)
{
    if (!tseg || !seg || !size)
        return dock_refuse(URMA_EINVAL, "urma_get_seg_ctx: no segment, or no place for the answer");
    *seg = malloc(sizeof **seg); // programs give it back by free
    if (!*seg)
        return ur_status(dock_no_memory("a description of a segment"));
    **seg = tseg->seg;
    *size = sizeof **seg;
    return URMA_SUCCESS;
}

void urma_put_seg_ctx(urma_seg_t *seg)
{
    free(seg);
}
