// SPDX-License-Identifier: MIT
// The life in steps of a jetty: its own options, and those of the JFS in it.
#include "face/urma/options.h"

#define CONFIG(id, field)                                                                                    \
    {                                                                                                        \
        id, sizeof(((urma_jetty_t *)0)->field), UR_CONFIG, offsetof(urma_jetty_t, field)                     \
    }
#define LIVE(id, bytes, what)                                                                                \
    {                                                                                                        \
        id, bytes, what, 0                                                                                   \
    }

static const struct ur_option options[] = {
    CONFIG(URMA_JETTY_FLAG, jetty_cfg.flag),
    CONFIG(URMA_JETTY_BIND_JFR, jetty_cfg.shared.jfr),
    CONFIG(URMA_JETTY_BIND_RX_JFC, jetty_cfg.shared.jfc),
    CONFIG(URMA_JETTY_BIND_JTG, jetty_cfg.jetty_grp),
    CONFIG(URMA_JETTY_USER_CTX, jetty_cfg.user_ctx),
    CONFIG(URMA_JETTY_FULL_CTX, urma_jetty_opt),
    CONFIG(URMA_JFS_DEPTH, jetty_cfg.jfs_cfg.depth),
    CONFIG(URMA_JFS_FLAG, jetty_cfg.jfs_cfg.flag),
    CONFIG(URMA_JFS_TRANS_MODE, jetty_cfg.jfs_cfg.trans_mode),
    CONFIG(URMA_JFS_PRIORITY, jetty_cfg.jfs_cfg.priority),
    CONFIG(URMA_JFS_MAX_SGE, jetty_cfg.jfs_cfg.max_sge),
    CONFIG(URMA_JFS_MAX_RSGE, jetty_cfg.jfs_cfg.max_rsge),
    CONFIG(URMA_JFS_MAX_INLINE_DATA, jetty_cfg.jfs_cfg.max_inline_data),
    CONFIG(URMA_JFS_RNR_RETRY, jetty_cfg.jfs_cfg.rnr_retry),
    CONFIG(URMA_JFS_ERR_TIMEOUT, jetty_cfg.jfs_cfg.err_timeout),
    CONFIG(URMA_JFS_BIND_JFC, jetty_cfg.jfs_cfg.jfc),
    CONFIG(URMA_JFS_USER_CTX, jetty_cfg.jfs_cfg.user_ctx),
    LIVE(URMA_JETTY_ID, 4, UR_NUMBER),
    LIVE(URMA_JFS_SQE_BASE_ADDR, 8, UR_BASE),
    LIVE(URMA_JFS_ID, 4, UR_NUMBER),
    LIVE(URMA_JFS_DB_ADDR, 8, UR_DOORBELL),
    LIVE(URMA_JFS_DB_STATUS, 1, UR_STATUS),
    LIVE(URMA_JFS_PI, 2, UR_PI),
    LIVE(URMA_JFS_PI_TYPE, 2, UR_PI_TYPE),
    LIVE(URMA_JFS_CI, 2, UR_CI),
};

static const struct ur_option *find(uint64_t opt)
{
    return ur_option_find(options, sizeof options / sizeof *options, opt);
}

static void look(urma_jetty_t *jetty, struct ur_live_values *v)
{
    const struct ur_sends *s = &ur_jetty(jetty)->s;
    urma_jfs_opt_t *o = &jetty->urma_jetty_opt.jfs_opt;

    ur_look_at_sends(s, jetty->jetty_id.id, o, v);
    if (!v->active)
        v->number = jetty->jetty_cfg.id;
    jetty->urma_jetty_opt.is_actived = v->active;
}

urma_status_t urma_alloc_jetty(urma_context_t *urma_ctx, urma_jetty_cfg_t *cfg, urma_jetty_t **jetty)
{
    struct ur_jetty *j;

    if (!urma_ctx || !cfg || !jetty)
        return dock_refuse(URMA_EINVAL, "urma_alloc_jetty: no context, no configuration, or no place");
    j = ur_jetty_make(urma_ctx, cfg);
    if (!j)
        return URMA_ENOMEM;
    *jetty = &j->jetty;
    return URMA_SUCCESS;
}

urma_status_t urma_set_jetty_opt(urma_jetty_t *jetty, uint64_t opt, void *buf, uint32_t len)
{
    if (jetty && buf && opt == URMA_JFS_DB_STATUS)
        return ur_set_doorbell(&ur_jetty(jetty)->s, buf, len, "urma_set_jetty_opt");
    if (!jetty || !buf || ur_jetty(jetty)->s.dev || opt == URMA_JETTY_FULL_CTX)
        return dock_refuse(URMA_EINVAL, "urma_set_jetty_opt: no jetty, no value, or a jetty that is active");
    return ur_option_set(find(opt), jetty,
                         &(struct ur_choices){&jetty->urma_jetty_opt.jfs_opt.urma_jfs_pi_type,
                                              &jetty->jetty_cfg.id, &ur_jetty(jetty)->s.ring, DOCK_BLOCK},
                         buf, len, "urma_set_jetty_opt");
}

urma_status_t urma_get_jetty_opt(urma_jetty_t *jetty, uint64_t opt, void *buf, uint32_t len)
{
    struct ur_live_values v;

    if (!jetty || !opt || !buf || !len)
        return dock_refuse(URMA_EINVAL, "urma_get_jetty_opt: no jetty, no option, or no place for its value");
    look(jetty, &v);
    return ur_option_get(find(opt), jetty, &v, buf, len, "urma_get_jetty_opt");
}

urma_status_t urma_active_jetty(urma_jetty_t *jetty)
{
    struct ur_live_values v;
    int err;

    if (!jetty || ur_jetty(jetty)->s.dev)
        return dock_refuse(URMA_EINVAL, "urma_active_jetty: no jetty given, or one that is active");
    err = ur_jetty_open(ur_jetty(jetty));
    look(jetty, &v);
    return ur_status(err);
}

urma_status_t urma_deactive_jetty(urma_jetty_t *jetty)
{
    struct ur_live_values v;
    int err;

    if (!jetty || !ur_jetty(jetty)->s.dev)
        return dock_refuse(URMA_EINVAL, "urma_deactive_jetty: no jetty given, or one that is not active");
    err = ur_jetty_close(ur_jetty(jetty), "urma_deactive_jetty");
    look(jetty, &v);
    return ur_status(err);
}

urma_status_t urma_free_jetty(urma_jetty_t *jetty)
{
    if (!jetty || ur_jetty(jetty)->s.dev)
        return dock_refuse(URMA_EINVAL, "urma_free_jetty: no jetty given, or one that is active");
    ur_jetty_free(ur_jetty(jetty));
    return URMA_SUCCESS;
}
