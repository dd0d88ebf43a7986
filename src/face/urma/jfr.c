// SPDX-License-Identifier: MIT
// Receive queues. A JFR is a shared receive queue of the device, and a queue pair in front of it that has the
// number which senders name.
#include <stdlib.h>

#include "face/urma/urma_face.h"

struct ur_jfr *ur_jfr_make(urma_context_t *ctx, const urma_jfr_cfg_t *cfg)
{
    struct ur_jfr *j = calloc(1, sizeof *j);

    if (!j) {
        dock_no_memory("a JFR");
        return NULL;
    }
    j->front.kind = UR_JFR;
    j->front.object = j;
    j->jfr.urma_ctx = ctx;
    j->jfr.jfr_cfg = *cfg;
    pthread_mutex_init(&j->jfr.event_mutex, NULL);
    pthread_cond_init(&j->jfr.event_cond, NULL);
    ur_use(&ctx->ref);
    return j;
}

void ur_jfr_free(struct ur_jfr *j)
{
    ur_drop(&j->jfr.urma_ctx->ref);
    pthread_cond_destroy(&j->jfr.event_cond);
    pthread_mutex_destroy(&j->jfr.event_mutex);
    free(j);
}

static int open_front(struct ur_jfr *j)
{
    const urma_jfr_cfg_t *c = &j->jfr.jfr_cfg;
    urma_jfs_cfg_t none = {.trans_mode = c->trans_mode, .jfc = c->jfc};
    int err;

    j->front.number = c->id;
    err = ur_sends_open(&j->front, j->jfr.urma_ctx, &none, j, c->jfc, NULL);

    if (!err)
        ur_fill_id(&j->jfr.jfr_id, j->jfr.urma_ctx, dock_qp_number(j->front.dev));
    return err;
}

int ur_jfr_open(struct ur_jfr *j)
{
    urma_jfr_cfg_t *c = &j->jfr.jfr_cfg;
    struct dock_srq_attr attr = {.pd = ur_pd(),
                                 .max_wr = c->depth,
                                 .max_sge = c->max_sge ? c->max_sge : 1,
                                 .user = j,
                                 .lock_free = c->flag.bs.lock_free};
    uint32_t order;
    int err = ur_check_jfr(c, "urma_create_jfr");

    if (err)
        return err;
    ur_settle_order(c->trans_mode, c->flag.bs.order_type, false, "urma_create_jfr", &order);
    c->flag.bs.order_type = order;
    err = ur_ring_place(&j->ring, j->jfr.urma_ctx, dock_srq_ring_bytes(attr.max_wr, attr.max_sge), &attr.ring,
                        "urma_active_jfr");
    if (err)
        return err;
    err = dock_srq_create(ur_dev(j->jfr.urma_ctx), &attr, &j->rq);
    if (err)
        goto no_queue;
    dock_srq_set_events(j->rq, ur_context(j->jfr.urma_ctx)->events);
    err = open_front(j);
    if (err)
        goto no_front;
    return 0;
no_front:
    dock_srq_destroy(j->rq);
    j->rq = NULL;
no_queue:
    ur_ring_leave(&j->ring);
    return err;
}

int ur_jfr_close(struct ur_jfr *j, const char *call)
{
    bool non_blocking = j->jfr.jfr_cfg.flag.bs.non_blocking;
    int err;

    if (non_blocking && dock_srq_owes_acks(j->rq))
        return dock_refuse(-EAGAIN, "%s: events of JFR %u are not acknowledged", call, j->jfr.jfr_id.id);
    if (dock_srq_users(j->rq) > 1)
        return dock_refuse(-EBUSY, "%s: JFR %u is still used by jettys", call, j->jfr.jfr_id.id);
    err = ur_sends_close(&j->front, non_blocking, call);
    if (err)
        return err;
    err = dock_srq_destroy(j->rq);
    if (err)
        return err;
    j->rq = NULL;
    ur_ring_end(&j->ring);
    return 0;
}

urma_jfr_t *urma_create_jfr(urma_context_t *ctx, urma_jfr_cfg_t *jfr_cfg)
{
    struct ur_jfr *j;
    int err;

    if (!ctx || !jfr_cfg)
        return ur_none(dock_refuse(-EINVAL, "urma_create_jfr: no context or no configuration given"));
    j = ur_jfr_make(ctx, jfr_cfg);
    if (!j)
        return ur_none(-ENOMEM);
    err = ur_jfr_open(j);
    if (err) {
        ur_jfr_free(j);
        return ur_none(err);
    }
    jfr_cfg->flag.bs.order_type = j->jfr.jfr_cfg.flag.bs.order_type;
    return &j->jfr;
}

static urma_jfr_state_t state_of(const struct ur_jfr *j)
{
    switch (ur_sends_state(&j->front)) {
    case URMA_JETTY_STATE_READY:
        return URMA_JFR_STATE_READY;
    case URMA_JETTY_STATE_RESET:
        return URMA_JFR_STATE_RESET;
    default:
        return URMA_JFR_STATE_ERROR;
    }
}

static urma_status_t change_state(struct ur_jfr *j, urma_jfr_state_t to)
{
    static const urma_jetty_state_t as_jetty[] = {[URMA_JFR_STATE_RESET] = URMA_JETTY_STATE_RESET,
                                                  [URMA_JFR_STATE_READY] = URMA_JETTY_STATE_READY,
                                                  [URMA_JFR_STATE_ERROR] = URMA_JETTY_STATE_ERROR};

    bool reset = to == URMA_JFR_STATE_RESET && state_of(j) != URMA_JFR_STATE_RESET;
    urma_status_t status;

    if ((unsigned)to > URMA_JFR_STATE_ERROR)
        return dock_refuse(URMA_FAIL, "urma_modify_jfr: there is no state %d", (int)to);
    if (reset && dock_srq_users(j->rq) > 1)
        return dock_refuse(URMA_FAIL, "urma_modify_jfr: jettys receive through JFR %u: no RESET",
                           j->jfr.jfr_id.id);
    status = ur_sends_modify(&j->front, as_jetty[to], "urma_modify_jfr");
    if (!status && reset)
        dock_srq_clear(j->rq);
    return status;
}

urma_status_t urma_modify_jfr(urma_jfr_t *jfr, urma_jfr_attr_t *attr)
{
    struct ur_jfr *j = ur_jfr(jfr);
    urma_status_t status;

    if (!jfr || !attr || !j->rq)
        return dock_refuse(URMA_EINVAL, "urma_modify_jfr: no active JFR, or no attributes given");
    if (attr->mask & ~(uint32_t)(JFR_RX_THRESHOLD | JFR_STATE))
        return dock_refuse(URMA_EINVAL, "urma_modify_jfr: mask %#x: threshold and state can be changed",
                           attr->mask);
    if (attr->mask & JFR_RX_THRESHOLD) {
        if (attr->mask & JFR_STATE && attr->state != URMA_JFR_STATE_READY)
            return dock_refuse(URMA_EINVAL, "urma_modify_jfr: no threshold for a queue that is not ready");
        if (attr->rx_threshold >= jfr->jfr_cfg.depth)
            return dock_refuse(URMA_EINVAL, "urma_modify_jfr: threshold %u is not below the depth %u",
                               attr->rx_threshold, jfr->jfr_cfg.depth);
    }
    status = attr->mask & JFR_STATE ? change_state(j, attr->state) : URMA_SUCCESS;
    if (!status && attr->mask & JFR_RX_THRESHOLD)
        dock_srq_set_limit(j->rq, attr->rx_threshold);
    return status;
}

urma_status_t urma_query_jfr(urma_jfr_t *jfr, urma_jfr_cfg_t *cfg, urma_jfr_attr_t *attr)
{
    if (!jfr || !cfg || !attr)
        return dock_refuse(URMA_EINVAL, "urma_query_jfr: no JFR, or no place for the answer");
    *cfg = jfr->jfr_cfg;
    attr->mask = JFR_RX_THRESHOLD | JFR_STATE;
    attr->rx_threshold = ur_jfr(jfr)->rq ? dock_srq_limit(ur_jfr(jfr)->rq) : 0;
    attr->state = state_of(ur_jfr(jfr));
    return URMA_SUCCESS;
}

urma_status_t urma_delete_jfr(urma_jfr_t *jfr)
{
    int err;

    if (!jfr || !ur_jfr(jfr)->rq)
        return dock_refuse(URMA_EINVAL, "urma_delete_jfr: no JFR given, or one that is not active");
    err = ur_jfr_close(ur_jfr(jfr), "urma_delete_jfr");
    if (err)
        return ur_status(err);
    ur_jfr_free(ur_jfr(jfr));
    return URMA_SUCCESS;
}
