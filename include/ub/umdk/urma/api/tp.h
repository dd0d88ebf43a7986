// SPDX-License-Identifier: MIT
// Transport channels and network addresses.
#ifndef DRYDOCK_URMA_API_TP_H
#define DRYDOCK_URMA_API_TP_H

#include "../urma_types.h"

#ifdef __cplusplus
extern "C" {
#endif

// The number of the channel behind a jetty: on this device that is the jetty's own. -EINVAL for NULL. Guide
// 2.3.3.1.
int urma_get_tpn(urma_jetty_t *jetty);

// The network addresses of the device, *cnt of them; the caller's, to be given back with
// urma_free_net_addr_list. NULL with EINVAL, ENOMEM. Guide 2.2.2.5.1.
urma_net_addr_info_t *urma_get_net_addr_list(urma_context_t *ctx, uint32_t *cnt);

// Frees the array. NULL does nothing. Guide 2.2.2.5.2.
void urma_free_net_addr_list(urma_net_addr_info_t *net_addr_list);

// Channels are the device's own affair here. Returns EINVAL (positive, as UMDK does) for NULL and for
// everything else. Guide 2.3.3.2.
int urma_modify_tp(urma_context_t *ctx, uint32_t tpn, urma_tp_cfg_t *cfg, urma_tp_attr_t *attr,
                   urma_tp_attr_mask_t mask);

// The channels between cfg's two EIDs: *tp_cnt is the room of tp_list and becomes the number given. There is
// one per pair. URMA_EINVAL for NULL, *tp_cnt 0 or a transport mode that does not exist. Guide 2.3.3.3.
urma_status_t urma_get_tp_list(urma_context_t *ctx, urma_get_tp_cfg_t *cfg, uint32_t *tp_cnt,
                               urma_tp_info_t *tp_list);

// URMA_EINVAL for NULL, else URMA_ENOPERM: memory has no packets to mark. Guide 2.3.3.5.
urma_status_t urma_set_tp_attr(const urma_context_t *ctx, const uint64_t tp_handle, const uint8_t tp_attr_cnt,
                               const uint32_t tp_attr_bitmap, const urma_tp_attr_value_t *tp_attr);

// Reads the attributes of a channel; *tp_attr_bitmap says which are valid. URMA_EINVAL for NULL or a handle
// that urma_get_tp_list did not give. Guide 2.3.3.4.
urma_status_t urma_get_tp_attr(const urma_context_t *ctx, const uint64_t tp_handle, uint8_t *tp_attr_cnt,
                               uint32_t *tp_attr_bitmap, urma_tp_attr_value_t *tp_attr);

// The EID that belongs to an IP address: IPv6 as it is, IPv4 as a mapped address. URMA_EINVAL for NULL or
// another family. Guide 2.2.2.2.
urma_status_t urma_get_eid_by_ip(const urma_context_t *ctx, const urma_net_addr_t *net_addr, urma_eid_t *eid);

// The IP address that belongs to an EID, the reverse of urma_get_eid_by_ip. URMA_EINVAL for NULL. Guide
// 2.2.2.2.
urma_status_t urma_get_ip_by_eid(const urma_context_t *ctx, const urma_eid_t *eid, urma_net_addr_t *net_addr);

// The 6 bytes of the MAC address of the interface that has the context's EID. URMA_EINVAL for NULL. Guide
// 2.2.2.2.
urma_status_t urma_get_smac(const urma_context_t *ctx, uint8_t *mac);

// The same for the device that has an IP address. URMA_EINVAL for NULL or an address of no device. Guide
// 2.2.2.2.
urma_status_t urma_get_dmac(const urma_context_t *ctx, const urma_net_addr_t *net_addr, uint8_t *mac);

#ifdef __cplusplus
}
#endif

#endif
