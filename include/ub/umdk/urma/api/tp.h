// SPDX-License-Identifier: MIT
// Transport channels and network addresses.
#ifndef DRYDOCK_URMA_API_TP_H
#define DRYDOCK_URMA_API_TP_H

#include "../urma_types.h"

#ifdef __cplusplus
extern "C" {
#endif

int urma_get_tpn(urma_jetty_t *jetty);

urma_net_addr_info_t *urma_get_net_addr_list(urma_context_t *ctx, uint32_t *cnt);

void urma_free_net_addr_list(urma_net_addr_info_t *net_addr_list);

int urma_modify_tp(urma_context_t *ctx, uint32_t tpn, urma_tp_cfg_t *cfg, urma_tp_attr_t *attr,
                   urma_tp_attr_mask_t mask);

urma_status_t urma_get_tp_list(urma_context_t *ctx, urma_get_tp_cfg_t *cfg, uint32_t *tp_cnt,
                               urma_tp_info_t *tp_list);

urma_status_t urma_set_tp_attr(const urma_context_t *ctx, const uint64_t tp_handle, const uint8_t tp_attr_cnt,
                               const uint32_t tp_attr_bitmap, const urma_tp_attr_value_t *tp_attr);

urma_status_t urma_get_tp_attr(const urma_context_t *ctx, const uint64_t tp_handle, uint8_t *tp_attr_cnt,
                               uint32_t *tp_attr_bitmap, urma_tp_attr_value_t *tp_attr);

urma_status_t urma_get_eid_by_ip(const urma_context_t *ctx, const urma_net_addr_t *net_addr, urma_eid_t *eid);

urma_status_t urma_get_ip_by_eid(const urma_context_t *ctx, const urma_eid_t *eid, urma_net_addr_t *net_addr);

urma_status_t urma_get_smac(const urma_context_t *ctx, uint8_t *mac);

urma_status_t urma_get_dmac(const urma_context_t *ctx, const urma_net_addr_t *net_addr, uint8_t *mac);

#ifdef __cplusplus
}
#endif

#endif
