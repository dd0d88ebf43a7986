// SPDX-License-Identifier: MIT
// Send queues. Posting is in urma_data.c, states are in sends.c.
#include <stdlib.h>

#include "face/urma/urma_face.h"

struct ur_jfs *ur_jfs_make(urma_context_t *ctx, const urma_jfs_cfg_t *cfg)
{
    struct ur_jfs *j = calloc(1, sizeof *j);

    if (!j) {
        dock_no_memory("a JFS");
        return NULL;
    }
    j->s.kind = UR_JFS;
    j->s.object = j;
    j->jfs.urma_ctx = ctx;
    j->jfs.jfs_cfg = *cfg;
    pthread_mutex_init(&j->jfs.event_mutex, NULL);
    pthread_cond_init(&j->jfs.event_cond, NULL);
    ur_use(&ctx->ref);
    return j;
}

void ur_jfs_free(struct ur_jfs *j)
{
    ur_drop(&j->jfs.urma_ctx->ref);
    pthread_cond_destroy(&j->jfs.event_cond);
    pthread_mutex_destroy(&j->jfs.event_mutex);
    free(j);
}

int ur_jfs_open(struct ur_jfs *j)
{
    urma_jfs_cfg_t *cfg = &j->jfs.jfs_cfg;
    uint32_t order;
    int err = ur_check_jfs(cfg, "urma_create_jfs");

    if (!err)
        err = ur_settle_order(cfg->trans_mode, cfg->flag.bs.order_type, true, "urma_create_jfs", &order);
    if (err)
        return err;
    cfg->flag.bs.order_type = order;
    err = ur_sends_open(&j->s, j->jfs.urma_ctx, cfg, NULL, NULL, NULL);
    if (!err)
        ur_fill_id(&j->jfs.jfs_id, j->jfs.urma_ctx, dock_qp_number(j->s.dev));
    return err;
}

int ur_jfs_close(struct ur_jfs *j, const char *call)
{
    return ur_sends_close(&j->s, j->jfs.jfs_cfg.flag.bs.non_blocking, call);
}

urma_jfs_t *urma_create_jfs(urma_context_t *ctx, urma_jfs_cfg_t *jfs_cfg)
{
    struct ur_jfs *j;
    int err;

    if (!ctx || !jfs_cfg)
        return ur_none(dock_refuse(-EINVAL, "urma_create_jfs: no context or no configuration given"));
    j = ur_jfs_make(ctx, jfs_cfg);
    if (!j)
        return ur_none(-ENOMEM);
    err = ur_jfs_open(j);
    if (err) {
        ur_jfs_free(j);
        return ur_none(err);
    }
    jfs_cfg->flag.bs.order_type = j->jfs.jfs_cfg.flag.bs.order_type;
    return &j->jfs;
}

urma_status_t urma_modify_jfs(urma_jfs_t *jfs, urma_jfs_attr_t *attr)
{
    if (!jfs || !attr || !ur_jfs(jfs)->s.dev)
        return dock_refuse(URMA_EINVAL, "urma_modify_jfs: no active JFS, or no attributes given");
    if (attr->mask & ~(uint32_t)JFS_STATE)
        return dock_refuse(URMA_EINVAL, "urma_modify_jfs: mask %#x: only the state can be changed",
                           attr->mask);
    if (!attr->mask)
        return URMA_SUCCESS;
    return ur_sends_modify(&ur_jfs(jfs)->s, attr->state, "urma_modify_jfs");
}

urma_status_t urma_query_jfs(urma_jfs_t *jfs, urma_jfs_cfg_t *cfg, urma_jfs_attr_t *attr)
{
    if (!jfs || !cfg || !attr)
        return dock_refuse(URMA_EINVAL, "urma_query_jfs: no JFS, or no place for the answer");
    *cfg = jfs->jfs_cfg;
    attr->mask = JFS_STATE;
    attr->state = ur_sends_state(&ur_jfs(jfs)->s);
    return URMA_SUCCESS;
}

urma_status_t urma_delete_jfs(urma_jfs_t *jfs)
{
    int err;

    if (!jfs || !ur_jfs(jfs)->s.dev)
        return dock_refuse(URMA_EINVAL, "urma_delete_jfs: no JFS given, or one that is not active");
    err = ur_jfs_close(ur_jfs(jfs), "urma_delete_jfs");
    if (err)
        return ur_status(err);
    ur_jfs_free(ur_jfs(jfs));
    return URMA_SUCCESS;
}
