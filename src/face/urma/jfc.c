// SPDX-License-Identifier: MIT
// Event channels and completion queues; polling is in urma_data.c, waiting in events.c.
#include <stdlib.h>

#include "face/urma/urma_face.h"

// ---- channels

urma_jfce_t *urma_create_jfce(urma_context_t *ctx)
{
    struct ur_jfce *e;
    int err;

    if (!ctx || !ctx->dev)
        return ur_none(dock_refuse(-EINVAL, "urma_create_jfce: no context given"));
    e = calloc(1, sizeof *e);
    if (!e)
        return ur_none(dock_no_memory("an event channel"));
    err = dock_chan_create(ur_dev(ctx), &e->dev);
    if (err) {
        free(e);
        return ur_none(err);
    }
    e->jfce.urma_ctx = ctx;
    e->jfce.fd = dock_chan_fd(e->dev);
    ur_use(&e->jfce.ref);
    ur_use(&ctx->ref);
    return &e->jfce;
}

urma_status_t urma_delete_jfce(urma_jfce_t *jfce)
{
    struct ur_jfce *e = (struct ur_jfce *)jfce;

    if (!jfce)
        return dock_refuse(URMA_EINVAL, "urma_delete_jfce: no channel given");
    if (dock_chan_destroy(e->dev))
        return URMA_FAIL;
    ur_drop(&jfce->urma_ctx->ref);
    free(e);
    return URMA_SUCCESS;
}

// ---- queues

int ur_jfc_open(struct ur_jfc *j)
{
    urma_jfc_cfg_t *cfg = &j->jfc.jfc_cfg;
    uint32_t most = ur_caps()->max_jfc_depth;
    struct dock_cq_attr attr = {
        .depth = cfg->depth,
        .chan = cfg->jfce ? ((struct ur_jfce *)cfg->jfce)->dev : NULL,
        .user = j,
        .lock_free = cfg->flag.bs.lock_free,
        .number = j->number,
    };
    int err;

    if (!cfg->depth || cfg->depth > most)
        return dock_refuse(-EINVAL, "urma_create_jfc: depth %u: 1 to %u are offered", cfg->depth, most);
    // jfc_inline needs nothing: data that a chip would have put into the record, for its driver to copy out
    // at the poll, is in the receive's memory before the record is there.
    if (cfg->flag.bs.has_drv_ext)
        return dock_refuse(-EINVAL,
                           "urma_create_jfc: this device knows no extension of its own (has_drv_ext)");
    err = ur_ring_place(&j->ring, j->jfc.urma_ctx, dock_cq_ring_bytes(cfg->depth), &attr.ring,
                        "urma_active_jfc");
    if (err)
        return err;
    err = dock_cq_create(ur_dev(j->jfc.urma_ctx), &attr, &j->dev);
    if (err) {
        ur_ring_leave(&j->ring);
        return err;
    }
    dock_cq_set_events(j->dev, ur_context(j->jfc.urma_ctx)->events);
    ur_fill_id(&j->jfc.jfc_id, j->jfc.urma_ctx, dock_cq_number(j->dev));
    if (cfg->jfce)
        ur_use(&cfg->jfce->ref);
    return 0;
}

int ur_jfc_close(struct ur_jfc *j, const char *call)
{
    int err;

    if (j->jfc.jfc_cfg.flag.bs.non_blocking && dock_cq_owes_acks(j->dev))
        return dock_refuse(-EAGAIN, "%s: events of JFC %u are not acknowledged", call, j->jfc.jfc_id.id);
    err = dock_cq_destroy(j->dev);
    if (err)
        return err;
    j->dev = NULL;
    ur_ring_end(&j->ring);
    if (j->jfc.jfc_cfg.jfce)
        ur_drop(&j->jfc.jfc_cfg.jfce->ref);
    return 0;
}

struct ur_jfc *ur_jfc_make(urma_context_t *ctx, const urma_jfc_cfg_t *cfg)
{
    struct ur_jfc *j = calloc(1, sizeof *j);

    if (!j) {
        dock_no_memory("a JFC");
        return NULL;
    }
    j->jfc.urma_ctx = ctx;
    j->jfc.jfc_cfg = *cfg;
    pthread_mutex_init(&j->jfc.event_mutex, NULL);
    pthread_cond_init(&j->jfc.event_cond, NULL);
    ur_use(&ctx->ref);
    return j;
}

void ur_jfc_free(struct ur_jfc *j)
{
    ur_drop(&j->jfc.urma_ctx->ref);
    pthread_cond_destroy(&j->jfc.event_cond);
    pthread_mutex_destroy(&j->jfc.event_mutex);
    free(j);
}

urma_jfc_t *urma_create_jfc(urma_context_t *ctx, urma_jfc_cfg_t *jfc_cfg)
{
    struct ur_jfc *j;
    int err;

    if (!ctx || !jfc_cfg)
        return ur_none(dock_refuse(-EINVAL, "urma_create_jfc: no context or no configuration given"));
    j = ur_jfc_make(ctx, jfc_cfg);
    if (!j)
        return ur_none(-ENOMEM);
    err = ur_jfc_open(j);
    if (err) {
        ur_jfc_free(j);
        return ur_none(err);
    }
    return &j->jfc;
}

urma_status_t urma_modify_jfc(urma_jfc_t *jfc, urma_jfc_attr_t *attr)
{
    struct ur_jfc *j = ur_jfc(jfc);

    if (!jfc || !attr || !j->dev)
        return dock_refuse(URMA_EINVAL, "urma_modify_jfc: no active JFC, or no attributes given");
    if (attr->mask & ~(uint32_t)(JFC_MODERATE_COUNT | JFC_MODERATE_PERIOD))
        return dock_refuse(URMA_EINVAL, "urma_modify_jfc: unknown attributes %#x", attr->mask);
    if (attr->mask & JFC_MODERATE_COUNT)
        j->count = attr->moderate_count;
    if (attr->mask & JFC_MODERATE_PERIOD)
        j->period = attr->moderate_period;
    dock_cq_moderate(j->dev, j->count, j->period);
    return URMA_SUCCESS;
}

urma_status_t urma_delete_jfc(urma_jfc_t *jfc)
{
    int err;

    if (!jfc || !ur_jfc(jfc)->dev)
        return dock_refuse(URMA_EINVAL, "urma_delete_jfc: no JFC given, or one that is not active");
    err = ur_jfc_close(ur_jfc(jfc), "urma_delete_jfc");
    if (err)
        return ur_status(err);
    ur_jfc_free(ur_jfc(jfc));
    return URMA_SUCCESS;
}
