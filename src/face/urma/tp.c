// SPDX-License-Identifier: MIT
// Transport channels. Between two EIDs of a host there is one, it is always there, and there is nothing
// about it to be tuned: its handle is made of what it connects, attributes are read, and setting them is
// refused.
#include "face/urma/urma_face.h"

#define HANDLE_MARK (0x44ull << 56)

int urma_get_tpn(urma_jetty_t *jetty)
{
    if (!jetty)
        return dock_refuse(-EINVAL, "urma_get_tpn: no jetty given");
    return (int)jetty->jetty_id.id; // a target's number is the transport's, see urma_target_jetty_t.tp
}

// The reference gives back +EINVAL here, and programs compare with that.
int urma_modify_tp(urma_context_t *ctx, uint32_t tpn, urma_tp_cfg_t *cfg, urma_tp_attr_t *attr,
                   urma_tp_attr_mask_t mask)
{
    if (!ctx || !cfg || !attr)
        return dock_refuse(EINVAL, "urma_modify_tp: no context, no configuration, or no attributes");
    return dock_refuse(EINVAL, "urma_modify_tp: transport %u, mask %#x: the device sets up its own channels",
                       tpn, mask.value);
}

static uint64_t handle_of(const urma_get_tp_cfg_t *cfg)
{
    return HANDLE_MARK | (uint64_t)cfg->trans_mode << 48 | (cfg->flag.value & 0xffff);
}

urma_status_t urma_get_tp_list(urma_context_t *ctx, urma_get_tp_cfg_t *cfg, uint32_t *tp_cnt,
                               urma_tp_info_t *tp_list)
{
    if (!ctx || !cfg || !tp_cnt || !tp_list || !*tp_cnt)
        return dock_refuse(URMA_EINVAL,
                           "urma_get_tp_list: no context, no question, or no place for an answer");
    if (ur_check_mode(cfg->trans_mode, "urma_get_tp_list"))
        return URMA_EINVAL;
    if (!dock_eid_is_local(ur_dev(ctx), cfg->peer_eid.raw)) {
        *tp_cnt = 0;
        return dock_refuse(URMA_FAIL, "urma_get_tp_list: no device of this host has the peer's EID");
    }
    tp_list[0].tp_handle = handle_of(cfg);
    *tp_cnt = 1;
    return URMA_SUCCESS;
}

urma_status_t urma_set_tp_attr(const urma_context_t *ctx, const uint64_t tp_handle, const uint8_t tp_attr_cnt,
                               const uint32_t tp_attr_bitmap, const urma_tp_attr_value_t *tp_attr)
{
    if (!ctx || !tp_attr)
        return dock_refuse(URMA_EINVAL, "urma_set_tp_attr: no context, or no attributes");
    return dock_refuse(
        URMA_ENOPERM, "urma_set_tp_attr: transport %#llx, %u attributes (%#x): memory has no packets to mark",
        (unsigned long long)tp_handle, tp_attr_cnt, tp_attr_bitmap);
}

// Bits of the bitmap in the order of the structure's fields: retries, addresses, and so on.
enum { ATTR_RETRY = 0, ATTR_SIP = 2 };

urma_status_t urma_get_tp_attr(const urma_context_t *ctx, const uint64_t tp_handle, uint8_t *tp_attr_cnt,
                               uint32_t *tp_attr_bitmap, urma_tp_attr_value_t *tp_attr)
{
    if (!ctx || !tp_attr_cnt || !tp_attr_bitmap || !tp_attr)
        return dock_refuse(URMA_EINVAL, "urma_get_tp_attr: no context, or no place for the answer");
    if (tp_handle >> 56 != HANDLE_MARK >> 56)
        return dock_refuse(URMA_EINVAL, "urma_get_tp_attr: %#llx is no handle of urma_get_tp_list",
                           (unsigned long long)tp_handle);
    memset(tp_attr, 0, sizeof *tp_attr);
    tp_attr->retry_times_init = 7;
    memcpy(tp_attr->sip, ctx->eid.raw, sizeof tp_attr->sip); // a handle does not say which EID is the peer's
    *tp_attr_bitmap = 1u << ATTR_RETRY | 1u << ATTR_SIP;
    *tp_attr_cnt = 2;
    return URMA_SUCCESS;
}
