// SPDX-License-Identifier: MIT
// The life in steps: alloc, set options, active, deactive, free. Alloc makes the structure, active the
// queue of the device behind it, with the checks of creation; an object of urma_create_* is one that is
// active.
#include <stdlib.h>

#include "face/urma/options.h"

#define CONFIG(id, type, field)                                                                              \
    {                                                                                                        \
        id, sizeof(((type *)0)->field), UR_CONFIG, offsetof(type, field)                                     \
    }
#define LIVE(id, bytes, what)                                                                                \
    {                                                                                                        \
        id, bytes, what, 0                                                                                   \
    }
#define FIND(table, opt) ur_option_find(table, sizeof(table) / sizeof *(table), opt)

// ---- JFC

static const struct ur_option jfc_options[] = {
    CONFIG(URMA_JFC_DEPTH, urma_jfc_t, jfc_cfg.depth),
    CONFIG(URMA_JFC_CEQN, urma_jfc_t, jfc_cfg.ceqn),
    CONFIG(URMA_JFC_FLAG, urma_jfc_t, jfc_cfg.flag),
    CONFIG(URMA_JFC_BIND_JFCE, urma_jfc_t, jfc_cfg.jfce),
    CONFIG(URMA_JFC_USER_CTX, urma_jfc_t, jfc_cfg.user_ctx),
    CONFIG(URMA_JFC_FULL_CTX, urma_jfc_t, urma_jfc_opt),
    LIVE(URMA_JFC_CQE_BASE_ADDR, 8, UR_BASE),
    LIVE(URMA_JFC_ID, 4, UR_NUMBER),
    LIVE(URMA_JFC_DB_ADDR, 8, UR_DOORBELL),
    LIVE(URMA_JFC_DB_STATUS, 1, UR_STATUS),
    LIVE(URMA_JFC_PI, 2, UR_PI),
    LIVE(URMA_JFC_PI_TYPE, 2, UR_PI_TYPE),
    LIVE(URMA_JFC_CI, 2, UR_CI),
};

urma_status_t urma_alloc_jfc(urma_context_t *urma_ctx, urma_jfc_cfg_t *cfg, urma_jfc_t **jfc)
{
    struct ur_jfc *j;

    if (!urma_ctx || !cfg || !jfc)
        return dock_refuse(URMA_EINVAL,
                           "urma_alloc_jfc: no context, no configuration, or no place for a JFC");
    j = ur_jfc_make(urma_ctx, cfg);
    if (!j)
        return URMA_ENOMEM;
    *jfc = &j->jfc;
    return URMA_SUCCESS;
}

urma_status_t urma_set_jfc_opt(urma_jfc_t *jfc, uint64_t opt, void *buf, uint32_t len)
{
    if (!jfc || !buf || ur_jfc(jfc)->dev || opt == URMA_JFC_FULL_CTX)
        return dock_refuse(URMA_EINVAL, "urma_set_jfc_opt: no JFC, no value, or a JFC that is active");
    return ur_option_set(FIND(jfc_options, opt), jfc,
                         &(struct ur_choices){&jfc->urma_jfc_opt.urma_jfc_pi_type, &ur_jfc(jfc)->number,
                                              &ur_jfc(jfc)->ring.at, UR_PAGE},
                         buf, len, "urma_set_jfc_opt");
}

static void look_at_jfc(urma_jfc_t *jfc, struct ur_live_values *v)
{
    struct ur_jfc *j = ur_jfc(jfc);
    urma_jfc_opt_t *o = &jfc->urma_jfc_opt;

    *v = (struct ur_live_values){.number = j->dev ? jfc->jfc_id.id : j->number,
                                 .ring.base = j->ring.at,
                                 .pi_type = o->urma_jfc_pi_type,
                                 .active = j->dev != NULL};
    o->is_actived = v->active;
    if (!j->dev) {
        *o = (urma_jfc_opt_t){.urma_jfc_pi_type = v->pi_type}; // no address of a ring that is gone
        return;
    }
    dock_cq_ring(j->dev, &v->ring);
    if (j->ring.at) // the same memory, by the program's name
        v->ring.base = j->ring.at;
    o->urma_jfc_cqe_base_addr = (uintptr_t)v->ring.base;
    o->urma_jfc_db_addr = (uintptr_t)v->ring.doorbell;
    o->urma_jfc_id = v->number;
    o->urma_jfc_pi = (uint16_t)v->ring.pi;
    o->urma_jfc_ci = (uint16_t)v->ring.ci;
}

urma_status_t urma_get_jfc_opt(urma_jfc_t *jfc, uint64_t opt, void *buf, uint32_t len)
{
    struct ur_live_values v;

    if (!jfc || !opt || !buf || !len)
        return dock_refuse(URMA_EINVAL, "urma_get_jfc_opt: no JFC, no option, or no place for its value");
    look_at_jfc(jfc, &v);
    return ur_option_get(FIND(jfc_options, opt), jfc, &v, buf, len, "urma_get_jfc_opt");
}

urma_status_t urma_active_jfc(urma_jfc_t *jfc)
{
    struct ur_live_values v;
    int err;

    if (!jfc || ur_jfc(jfc)->dev)
        return dock_refuse(URMA_EINVAL, "urma_active_jfc: no JFC given, or one that is active");
    err = ur_jfc_open(ur_jfc(jfc));
    look_at_jfc(jfc, &v);
    return ur_status(err);
}

urma_status_t urma_deactive_jfc(urma_jfc_t *jfc)
{
    struct ur_live_values v;
    int err;

    if (!jfc || !ur_jfc(jfc)->dev)
        return dock_refuse(URMA_EINVAL, "urma_deactive_jfc: no JFC given, or one that is not active");
    err = ur_jfc_close(ur_jfc(jfc), "urma_deactive_jfc");
    look_at_jfc(jfc, &v);
    return ur_status(err);
}

urma_status_t urma_free_jfc(urma_jfc_t *jfc)
{
    if (!jfc || ur_jfc(jfc)->dev)
        return dock_refuse(URMA_EINVAL, "urma_free_jfc: no JFC given, or one that is active");
    ur_jfc_free(ur_jfc(jfc));
    return URMA_SUCCESS;
}

// ---- JFS

static const struct ur_option jfs_options[] = {
    CONFIG(URMA_JFS_DEPTH, urma_jfs_t, jfs_cfg.depth),
    CONFIG(URMA_JFS_FLAG, urma_jfs_t, jfs_cfg.flag),
    CONFIG(URMA_JFS_TRANS_MODE, urma_jfs_t, jfs_cfg.trans_mode),
    CONFIG(URMA_JFS_PRIORITY, urma_jfs_t, jfs_cfg.priority),
    CONFIG(URMA_JFS_MAX_SGE, urma_jfs_t, jfs_cfg.max_sge),
    CONFIG(URMA_JFS_MAX_RSGE, urma_jfs_t, jfs_cfg.max_rsge),
    CONFIG(URMA_JFS_MAX_INLINE_DATA, urma_jfs_t, jfs_cfg.max_inline_data),
    CONFIG(URMA_JFS_RNR_RETRY, urma_jfs_t, jfs_cfg.rnr_retry),
    CONFIG(URMA_JFS_ERR_TIMEOUT, urma_jfs_t, jfs_cfg.err_timeout),
    CONFIG(URMA_JFS_BIND_JFC, urma_jfs_t, jfs_cfg.jfc),
    CONFIG(URMA_JFS_USER_CTX, urma_jfs_t, jfs_cfg.user_ctx),
    CONFIG(URMA_JFS_FULL_CTX, urma_jfs_t, urma_jfs_opt),
    LIVE(URMA_JFS_SQE_BASE_ADDR, 8, UR_BASE),
    LIVE(URMA_JFS_ID, 4, UR_NUMBER),
    LIVE(URMA_JFS_DB_ADDR, 8, UR_DOORBELL),
    LIVE(URMA_JFS_DB_STATUS, 1, UR_STATUS),
    LIVE(URMA_JFS_PI, 2, UR_PI),
    LIVE(URMA_JFS_PI_TYPE, 2, UR_PI_TYPE),
    LIVE(URMA_JFS_CI, 2, UR_CI),
};

// JFS and jetty: the send ring, into the public structure as well.
void ur_look_at_sends(const struct ur_sends *s, uint32_t number, urma_jfs_opt_t *o, struct ur_live_values *v)
{
    *v = (struct ur_live_values){.number = s->dev ? number : s->number,
                                 .ring.base = s->ring,
                                 .pi_type = o->urma_jfs_pi_type,
                                 .db_status = (uint8_t)dock_peek32(&s->keeps),
                                 .active = s->dev != NULL};
    o->is_actived = v->active;
    if (!s->dev) {
        *o = (urma_jfs_opt_t){.urma_jfs_pi_type = v->pi_type, .urma_jfs_db_status = v->db_status};
        return;
    }
    dock_qp_ring(s->dev, &v->ring);
    o->urma_jfs_sqe_base_addr = (uintptr_t)v->ring.base;
    o->urma_jfs_db_addr = (uintptr_t)v->ring.doorbell;
    o->urma_jfs_id = number;
    o->urma_jfs_db_status = v->db_status;
    o->urma_jfs_pi = (uint16_t)v->ring.pi;
    o->urma_jfs_ci = (uint16_t)v->ring.ci;
}

urma_status_t urma_alloc_jfs(urma_context_t *urma_ctx, urma_jfs_cfg_t *cfg, urma_jfs_t **jfs)
{
    struct ur_jfs *j;

    if (!urma_ctx || !cfg || !jfs || !cfg->jfc)
        return dock_refuse(URMA_EINVAL,
                           "urma_alloc_jfs: no context, no configuration with a JFC, or no place");
    if (ur_check_mode(cfg->trans_mode, "urma_alloc_jfs"))
        return URMA_EINVAL;
    j = ur_jfs_make(urma_ctx, cfg);
    if (!j)
        return URMA_ENOMEM;
    *jfs = &j->jfs;
    return URMA_SUCCESS;
}

urma_status_t urma_set_jfs_opt(urma_jfs_t *jfs, uint64_t opt, void *buf, uint32_t len)
{
    if (jfs && buf && opt == URMA_JFS_DB_STATUS)
        return ur_set_doorbell(&ur_jfs(jfs)->s, buf, len, "urma_set_jfs_opt");
    if (!jfs || !buf || ur_jfs(jfs)->s.dev || opt == URMA_JFS_FULL_CTX)
        return dock_refuse(URMA_EINVAL, "urma_set_jfs_opt: no JFS, no value, or a JFS that is active");
    return ur_option_set(FIND(jfs_options, opt), jfs,
                         &(struct ur_choices){&jfs->urma_jfs_opt.urma_jfs_pi_type, &ur_jfs(jfs)->s.number,
                                              &ur_jfs(jfs)->s.ring, DOCK_BLOCK},
                         buf, len, "urma_set_jfs_opt");
}

urma_status_t urma_get_jfs_opt(urma_jfs_t *jfs, uint64_t opt, void *buf, uint32_t len)
{
    struct ur_live_values v;

    if (!jfs || !opt || !buf || !len)
        return dock_refuse(URMA_EINVAL, "urma_get_jfs_opt: no JFS, no option, or no place for its value");
    ur_look_at_sends(&ur_jfs(jfs)->s, jfs->jfs_id.id, &jfs->urma_jfs_opt, &v);
    return ur_option_get(FIND(jfs_options, opt), jfs, &v, buf, len, "urma_get_jfs_opt");
}

urma_status_t urma_active_jfs(urma_jfs_t *jfs)
{
    struct ur_live_values v;
    int err;

    if (!jfs || ur_jfs(jfs)->s.dev)
        return dock_refuse(URMA_EINVAL, "urma_active_jfs: no JFS given, or one that is active");
    err = ur_jfs_open(ur_jfs(jfs));
    ur_look_at_sends(&ur_jfs(jfs)->s, jfs->jfs_id.id, &jfs->urma_jfs_opt, &v);
    return ur_status(err);
}

urma_status_t urma_deactive_jfs(urma_jfs_t *jfs)
{
    struct ur_live_values v;
    int err;

    if (!jfs || !ur_jfs(jfs)->s.dev)
        return dock_refuse(URMA_EINVAL, "urma_deactive_jfs: no JFS given, or one that is not active");
    err = ur_jfs_close(ur_jfs(jfs), "urma_deactive_jfs");
    ur_look_at_sends(&ur_jfs(jfs)->s, jfs->jfs_id.id, &jfs->urma_jfs_opt, &v);
    return ur_status(err);
}

urma_status_t urma_free_jfs(urma_jfs_t *jfs)
{
    if (!jfs || ur_jfs(jfs)->s.dev)
        return dock_refuse(URMA_EINVAL, "urma_free_jfs: no JFS given, or one that is active");
    ur_jfs_free(ur_jfs(jfs));
    return URMA_SUCCESS;
}

// ---- JFR

static const struct ur_option jfr_options[] = {
    CONFIG(URMA_JFR_DEPTH, urma_jfr_t, jfr_cfg.depth),
    CONFIG(URMA_JFR_FLAG, urma_jfr_t, jfr_cfg.flag),
    CONFIG(URMA_JFR_TRANS_MODE, urma_jfr_t, jfr_cfg.trans_mode),
    CONFIG(URMA_JFR_MAX_SGE, urma_jfr_t, jfr_cfg.max_sge),
    CONFIG(URMA_JFR_MIN_RNR_TIMER, urma_jfr_t, jfr_cfg.min_rnr_timer),
    CONFIG(URMA_JFR_BIND_JFC, urma_jfr_t, jfr_cfg.jfc),
    CONFIG(URMA_JFR_TOKEN_VALUE, urma_jfr_t, jfr_cfg.token_value),
    CONFIG(URMA_JFR_USER_CTX, urma_jfr_t, jfr_cfg.user_ctx),
    CONFIG(URMA_JFR_FULL_CTX, urma_jfr_t, urma_jfr_opt),
    LIVE(URMA_JFR_RQE_BASE_ADDR, 8, UR_BASE),
    LIVE(URMA_JFR_ID, 4, UR_NUMBER),
    LIVE(URMA_JFR_DB_ADDR, 8, UR_DOORBELL),
    LIVE(URMA_JFR_DB_STATUS, 1, UR_STATUS),
    LIVE(URMA_JFR_PI, 2, UR_PI),
    LIVE(URMA_JFR_PI_TYPE, 2, UR_PI_TYPE),
    LIVE(URMA_JFR_CI, 2, UR_CI),
};

static void look_at_jfr(urma_jfr_t *jfr, struct ur_live_values *v)
{
    struct ur_jfr *j = ur_jfr(jfr);
    urma_jfr_opt_t *o = &jfr->urma_jfr_opt;

    *v = (struct ur_live_values){.number = j->rq ? jfr->jfr_id.id : jfr->jfr_cfg.id,
                                 .ring.base = j->ring.at,
                                 .pi_type = o->urma_jfr_pi_type,
                                 .active = j->rq != NULL};
    o->is_actived = v->active;
    if (!j->rq) {
        *o = (urma_jfr_opt_t){.urma_jfr_pi_type = v->pi_type}; // no address of a ring that is gone
        return;
    }
    dock_srq_ring(j->rq, &v->ring);
    if (j->ring.at) // the same memory, by the program's name
        v->ring.base = j->ring.at;
    o->urma_jfr_rqe_base_addr = (uintptr_t)v->ring.base;
    o->urma_jfr_db_addr = (uintptr_t)v->ring.doorbell;
    o->urma_jfr_id = v->number;
    o->urma_jfr_pi = (uint16_t)v->ring.pi;
    o->urma_jfr_ci = (uint16_t)v->ring.ci;
}

urma_status_t urma_alloc_jfr(urma_context_t *urma_ctx, urma_jfr_cfg_t *cfg, urma_jfr_t **jfr)
{
    struct ur_jfr *j;

    if (!urma_ctx || !cfg || !jfr || !cfg->jfc)
        return dock_refuse(URMA_EINVAL,
                           "urma_alloc_jfr: no context, no configuration with a JFC, or no place");
    j = ur_jfr_make(urma_ctx, cfg);
    if (!j)
        return URMA_ENOMEM;
    *jfr = &j->jfr;
    return URMA_SUCCESS;
}

urma_status_t urma_set_jfr_opt(urma_jfr_t *jfr, uint64_t opt, void *buf, uint32_t len)
{
    if (!jfr || !buf || ur_jfr(jfr)->rq || opt == URMA_JFR_FULL_CTX)
        return dock_refuse(URMA_EINVAL, "urma_set_jfr_opt: no JFR, no value, or a JFR that is active");
    return ur_option_set(FIND(jfr_options, opt), jfr,
                         &(struct ur_choices){&jfr->urma_jfr_opt.urma_jfr_pi_type, &jfr->jfr_cfg.id,
                                              &ur_jfr(jfr)->ring.at, UR_PAGE},
                         buf, len, "urma_set_jfr_opt");
}

urma_status_t urma_get_jfr_opt(urma_jfr_t *jfr, uint64_t opt, void *buf, uint32_t len)
{
    struct ur_live_values v;

    if (!jfr || !opt || !buf || !len)
        return dock_refuse(URMA_EINVAL, "urma_get_jfr_opt: no JFR, no option, or no place for its value");
    look_at_jfr(jfr, &v);
    return ur_option_get(FIND(jfr_options, opt), jfr, &v, buf, len, "urma_get_jfr_opt");
}

urma_status_t urma_active_jfr(urma_jfr_t *jfr)
{
    struct ur_live_values v;
    int err;

    if (!jfr || ur_jfr(jfr)->rq)
        return dock_refuse(URMA_EINVAL, "urma_active_jfr: no JFR given, or one that is active");
    err = ur_jfr_open(ur_jfr(jfr));
    look_at_jfr(jfr, &v);
    return ur_status(err);
}

urma_status_t urma_deactive_jfr(urma_jfr_t *jfr)
{
    struct ur_live_values v;
    int err;

    if (!jfr || !ur_jfr(jfr)->rq)
        return dock_refuse(URMA_EINVAL, "urma_deactive_jfr: no JFR given, or one that is not active");
    err = ur_jfr_close(ur_jfr(jfr), "urma_deactive_jfr");
    look_at_jfr(jfr, &v);
    return ur_status(err);
}

urma_status_t urma_free_jfr(urma_jfr_t *jfr)
{
    if (!jfr || ur_jfr(jfr)->rq)
        return dock_refuse(URMA_EINVAL, "urma_free_jfr: no JFR given, or one that is active");
    ur_jfr_free(ur_jfr(jfr));
    return URMA_SUCCESS;
}
