// SPDX-License-Identifier: MIT
// What a configuration may say. The reference library settles some of it in the caller's own structure;
// programs use that structure again, so we do the same.
#include "face/urma/urma_face.h"

static const char *mode_name(urma_transport_mode_t mode)
{
    return mode == URMA_TM_RM ? "RM" : mode == URMA_TM_RC ? "RC" : "UM";
}

int ur_check_mode(urma_transport_mode_t mode, const char *call)
{
    if (mode != URMA_TM_RM && mode != URMA_TM_RC && mode != URMA_TM_UM)
        return dock_refuse(-EINVAL, "%s: transport mode %#x: RM is 1, RC 2, UM 4", call, (unsigned)mode);
    if (!ur_mode_offered(mode))
        return dock_refuse(-EINVAL, "%s: transport mode %s is not offered", call, mode_name(mode));
    return 0;
}

static uint32_t own_order(urma_transport_mode_t mode)
{
    return mode == URMA_TM_RM ? URMA_OI : mode == URMA_TM_RC ? URMA_OL : URMA_NO;
}

static bool has_order(urma_transport_mode_t mode, uint32_t order)
{
    switch (mode) {
    case URMA_TM_RM:
        return order == URMA_OI;
    case URMA_TM_RC:
        return order == URMA_OT || order == URMA_OL || order == URMA_NO;
    default:
        return order == URMA_NO;
    }
}

int ur_settle_order(urma_transport_mode_t mode, uint32_t order, bool strict, const char *call, uint32_t *out)
{
    if (order == URMA_DEF_ORDER)
        order = own_order(mode);
    else if (strict && !has_order(mode, order))
        return dock_refuse(-EINVAL, "%s: order type %u does not go with mode %s", call, order,
                           mode_name(mode));
    *out = order;
    return 0;
}

int ur_check_tp(urma_transport_mode_t mode, urma_tp_type_t tp, const char *call)
{
    if ((mode == URMA_TM_UM && tp == URMA_RTP) || (mode != URMA_TM_UM && tp == URMA_UTP))
        return dock_refuse(-EINVAL, "%s: transport type %d does not go with mode %s", call, (int)tp,
                           mode_name(mode));
    return 0;
}

int ur_check_jfs(const urma_jfs_cfg_t *c, const char *call)
{
    const urma_device_cap_t *caps = ur_caps();
    const struct {
        const char *what;
        uint32_t value, least, most;
    } range[] = {
        {"depth", c->depth, 1, caps->max_jfs_depth},
        {"max_sge", c->max_sge, 0, caps->max_jfs_sge},
        {"max_rsge", c->max_rsge, 0, caps->max_jfs_rsge},
        {"max_inline_data", c->max_inline_data, 0, caps->max_jfs_inline_len},
    };
    int err = ur_check_mode(c->trans_mode, call);

    if (err)
        return err;
    if (!c->jfc || !ur_jfc(c->jfc)->dev)
        return dock_refuse(-EINVAL, "%s: no active JFC given for the send side", call);
    if (c->flag.bs.has_drv_ext)
        return dock_refuse(-EINVAL, "%s: this device knows no extension of its own (has_drv_ext)", call);
    for (size_t i = 0; i < sizeof range / sizeof *range; i++)
        if (range[i].value < range[i].least || range[i].value > range[i].most)
            return dock_refuse(-EINVAL, "%s: %s %u: %u to %u are offered", call, range[i].what,
                               range[i].value, range[i].least, range[i].most);
    return 0;
}

int ur_check_jfr(const urma_jfr_cfg_t *c, const char *call)
{
    const urma_device_cap_t *caps = ur_caps();
    int err = ur_check_mode(c->trans_mode, call);

    if (err)
        return err;
    if (!c->jfc || !ur_jfc(c->jfc)->dev)
        return dock_refuse(-EINVAL, "%s: no active JFC given", call);
    if (!c->depth || c->depth > caps->max_jfr_depth)
        return dock_refuse(-EINVAL, "%s: depth %u: 1 to %u are offered", call, c->depth, caps->max_jfr_depth);
    if (c->max_sge > caps->max_jfr_sge)
        return dock_refuse(-EINVAL, "%s: max_sge %u: at most %u", call, c->max_sge, caps->max_jfr_sge);
    if (c->flag.bs.token_policy > URMA_TOKEN_PLAIN_TEXT)
        return dock_refuse(-EINVAL, "%s: token policy %u: NONE and PLAIN_TEXT are offered", call,
                           c->flag.bs.token_policy);
    if (c->flag.bs.tag_matching || c->flag.bs.has_drv_ext)
        return dock_refuse(-EINVAL, "%s: tag matching and extensions of the device are not offered", call);
    return 0;
}

int ur_check_jetty(const urma_jetty_cfg_t *c, const char *call)
{
    const urma_jfr_cfg_t *r;
    int err = ur_check_jfs(&c->jfs_cfg, call);

    if (err)
        return err;
    if (!c->flag.bs.share_jfr || !c->shared.jfr)
        return dock_refuse(
            -EINVAL, "%s: a jetty of a UB device receives through a JFR: share_jfr and shared.jfr", call);
    if (!ur_jfr(c->shared.jfr)->rq)
        return dock_refuse(-EINVAL, "%s: the JFR is not active", call);
    if (c->shared.jfc && !ur_jfc(c->shared.jfc)->dev)
        return dock_refuse(-EINVAL, "%s: the JFC for receives is not active", call);
    r = &c->shared.jfr->jfr_cfg;
    if (r->trans_mode != c->jfs_cfg.trans_mode)
        return dock_refuse(-EINVAL, "%s: the jetty is of mode %s, its JFR of mode %s", call,
                           mode_name(c->jfs_cfg.trans_mode), mode_name(r->trans_mode));
    if (c->flag.bs.has_drv_ext || c->flag.bs.has_user_info)
        return dock_refuse(-EINVAL, "%s: this device knows no extensions of its own", call);
    return 0;
}
