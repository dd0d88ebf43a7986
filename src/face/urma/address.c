// SPDX-License-Identifier: MIT
// EIDs as IP addresses, and the addresses of the interfaces that they were taken from.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <stdlib.h>

#include "base/address.h"
#include "face/urma/urma_face.h"

// ---- EIDs are the addresses of the host's interfaces

static void to_net(const struct dock_gid *g, urma_net_addr_t *out)
{
    memset(out, 0, sizeof *out);
    if (dock_address_is_ipv4(g->raw)) {
        out->sin_family = AF_INET;
        memcpy(&out->in4, g->raw + DOCK_MAPPED_BYTES, sizeof out->in4);
        out->prefix_len = 32;
    } else {
        out->sin_family = AF_INET6;
        memcpy(&out->in6, g->raw, sizeof out->in6);
        out->prefix_len = 128;
    }
}

static bool from_net(const urma_net_addr_t *a, uint8_t raw[16])
{
    if (a->sin_family == AF_INET) {
        dock_address_of_ipv4(raw, &a->in4);
        return true;
    }
    if (a->sin_family == AF_INET6)
        memcpy(raw, &a->in6, 16);
    return a->sin_family == AF_INET6;
}

static const struct dock_gid *find(const uint8_t raw[16])
{
    const struct dock_identity *id = dock_identity();

    for (uint32_t i = 0; i < id->gids; i++)
        if (!memcmp(id->gid[i].raw, raw, 16))
            return &id->gid[i];
    return NULL;
}

// The hardware address of the interface with that index; an interface without one (loopback) has zeros.
static void mac_of(uint32_t ifindex, uint8_t mac[URMA_MAC_BYTES])
{
    struct ifaddrs *list;

    memset(mac, 0, URMA_MAC_BYTES);
    if (getifaddrs(&list))
        return;
    for (const struct ifaddrs *a = list; a; a = a->ifa_next) {
        const struct sockaddr_ll *ll = (const void *)a->ifa_addr;
        if (ll && ll->sll_family == AF_PACKET && ll->sll_ifindex == (int)ifindex &&
            ll->sll_halen == URMA_MAC_BYTES)
            memcpy(mac, ll->sll_addr, URMA_MAC_BYTES);
    }
    freeifaddrs(list);
}

urma_status_t urma_get_eid_by_ip(const urma_context_t *ctx, const urma_net_addr_t *net_addr, urma_eid_t *eid)
{
    uint8_t raw[16];

    if (!ctx || !net_addr || !eid || !from_net(net_addr, raw))
        return dock_refuse(URMA_EINVAL,
                           "urma_get_eid_by_ip: no context, no IP address, or no place for the EID");
    // An EID of this device is the IP address in 16 bytes, also that of another host.
    memcpy(eid->raw, raw, sizeof raw);
    return URMA_SUCCESS;
}

urma_status_t urma_get_ip_by_eid(const urma_context_t *ctx, const urma_eid_t *eid, urma_net_addr_t *net_addr)
{
    struct dock_gid g = {0};

    if (!ctx || !eid || !net_addr)
        return dock_refuse(URMA_EINVAL,
                           "urma_get_ip_by_eid: no context, no EID, or no place for the address");
    memcpy(g.raw, eid->raw, sizeof g.raw);
    to_net(&g, net_addr);
    return URMA_SUCCESS;
}

urma_status_t urma_get_smac(const urma_context_t *ctx, uint8_t *mac)
{
    const struct dock_gid *g;

    if (!ctx || !mac)
        return dock_refuse(URMA_EINVAL, "urma_get_smac: no context, or no place for the address");
    g = find(ctx->eid.raw);
    mac_of(g ? g->ifindex : 0, mac);
    return URMA_SUCCESS;
}

urma_status_t urma_get_dmac(const urma_context_t *ctx, const urma_net_addr_t *net_addr, uint8_t *mac)
{
    const struct dock_gid *g;
    uint8_t raw[16];

    if (!ctx || !net_addr || !mac || !from_net(net_addr, raw))
        return dock_refuse(URMA_EINVAL,
                           "urma_get_dmac: no context, no IP address, or no place for the answer");
    g = find(raw);
    if (!g)
        return dock_refuse(URMA_EINVAL, "urma_get_dmac: no device that this one can reach has that address");
    mac_of(g->ifindex, mac);
    return URMA_SUCCESS;
}

urma_net_addr_info_t *urma_get_net_addr_list(urma_context_t *ctx, uint32_t *cnt)
{
    const struct dock_identity *id = dock_identity();
    urma_net_addr_info_t *list;

    if (!ctx || !cnt)
        return ur_none(
            dock_refuse(-EINVAL, "urma_get_net_addr_list: no context, or no place for the number"));
    list = calloc(id->gids ? id->gids : 1, sizeof *list);
    if (!list)
        return ur_none(dock_no_memory("a list of addresses"));
    for (uint32_t i = 0; i < id->gids; i++) {
        to_net(&id->gid[i], &list[i].netaddr);
        mac_of(id->gid[i].ifindex, list[i].netaddr.mac);
        list[i].index = i;
    }
    *cnt = id->gids;
    return list;
}

void urma_free_net_addr_list(urma_net_addr_info_t *net_addr_list)
{
    free(net_addr_list);
}
