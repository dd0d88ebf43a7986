// SPDX-License-Identifier: MIT
// Addresses: which are the host's own, which GID leads to them, binding and resolving.
#include <ifaddrs.h>
#include <net/if.h>

#include "base/address.h"
#include "face/rdmacm/rdmacm_face.h"

socklen_t cm_addr_len(const struct sockaddr *addr)
{
    if (!addr)
        return 0;
    switch (addr->sa_family) {
    case AF_INET:
        return sizeof(struct sockaddr_in);
    case AF_INET6:
        return sizeof(struct sockaddr_in6);
    default:
        return 0;
    }
}

static const struct sockaddr_in *v4(const struct sockaddr *addr)
{
    return (const void *)addr;
}

static const struct sockaddr_in6 *v6(const struct sockaddr *addr)
{
    return (const void *)addr;
}

uint16_t cm_addr_port(const struct sockaddr *addr)
{
    switch (addr->sa_family) {
    case AF_INET:
        return ntohs(v4(addr)->sin_port);
    case AF_INET6:
        return ntohs(v6(addr)->sin6_port);
    default:
        return 0;
    }
}

void cm_addr_set_port(struct sockaddr *addr, uint16_t port)
{
    if (addr->sa_family == AF_INET)
        ((struct sockaddr_in *)addr)->sin_port = htons(port);
    else if (addr->sa_family == AF_INET6)
        ((struct sockaddr_in6 *)addr)->sin6_port = htons(port);
}

bool cm_addr_any(const struct sockaddr *addr)
{
    return addr->sa_family == AF_INET ? v4(addr)->sin_addr.s_addr == 0
                                      : IN6_IS_ADDR_UNSPECIFIED(&v6(addr)->sin6_addr);
}

static bool loopback(const struct sockaddr *addr)
{
    return addr->sa_family == AF_INET ? ntohl(v4(addr)->sin_addr.s_addr) >> 24 == 127
                                      : IN6_IS_ADDR_LOOPBACK(&v6(addr)->sin6_addr);
}

bool cm_addr_multicast(const struct sockaddr *addr)
{
    return addr->sa_family == AF_INET ? IN_MULTICAST(ntohl(v4(addr)->sin_addr.s_addr))
                                      : IN6_IS_ADDR_MULTICAST(&v6(addr)->sin6_addr);
}

static bool equal(const struct sockaddr *a, const struct sockaddr *b)
{
    if (!a || a->sa_family != b->sa_family)
        return false;
    return a->sa_family == AF_INET ? v4(a)->sin_addr.s_addr == v4(b)->sin_addr.s_addr
                                   : IN6_ARE_ADDR_EQUAL(&v6(a)->sin6_addr, &v6(b)->sin6_addr);
}

bool cm_addr_local(const struct sockaddr *addr)
{
    struct ifaddrs *list = NULL;
    bool found = loopback(addr);

    if (found || getifaddrs(&list))
        return found;
    for (const struct ifaddrs *a = list; a && !found; a = a->ifa_next)
        found = (a->ifa_flags & IFF_UP) && equal(a->ifa_addr, addr);
    freeifaddrs(list);
    return found;
}

// ---- GIDs

static void gid_of(const struct sockaddr *addr, union ibv_gid *gid)
{
    if (addr->sa_family == AF_INET6) {
        memcpy(gid->raw, &v6(addr)->sin6_addr, sizeof gid->raw);
        return;
    }
    dock_address_of_ipv4(gid->raw, &v4(addr)->sin_addr);
}

int cm_addr_gid(const struct sockaddr *addr, union ibv_gid *gid, uint32_t *index)
{
    struct ibv_context *c = cm_device();
    struct ibv_port_attr port;
    union ibv_gid wanted, entry, second = {.raw = {0}};
    uint32_t second_index = 0;

    if (!c || ibv_query_port(c, CM_PORT, &port))
        return -ENODEV;
    gid_of(addr, &wanted);
    for (int i = 0; i < port.gid_tbl_len; i++) {
        if (ibv_query_gid(c, CM_PORT, i, &entry) || dock_address_is_zero(entry.raw))
            continue;
        if (!memcmp(&entry, &wanted, sizeof entry)) {
            *gid = entry;
            *index = (uint32_t)i;
            return 0;
        }
        if (dock_address_is_zero(second.raw) &&
            dock_address_is_ipv4(entry.raw) == dock_address_is_ipv4(wanted.raw)) {
            second = entry;
            second_index = (uint32_t)i;
        }
    }
    // Loopback, and addresses that found no room in the table: any of the same family leads to the same
    // device.
    if (dock_address_is_zero(second.raw))
        return -ENODEV;
    *gid = second;
    *index = second_index;
    return 0;
}

int cm_take_device(struct cm_id *id)
{
    struct rdma_addr *a = &id->id.route.addr;
    int ret = cm_addr_gid(&a->src_addr, &a->addr.ibaddr.sgid, &id->sgid_index);

    if (ret)
        return dock_refuse(ret, "rdma_cm: the device has no GID for this address");
    // Programs make queue pairs of their own in it.
    id->id.pd = cm_domain();
    if (!id->id.pd)
        return -errno;
    a->addr.ibaddr.pkey = htons(0xffff);
    id->id.verbs = cm_device();
    id->id.port_num = CM_PORT;
    return 0;
}

// ---- binding

int cm_bind(struct cm_id *id, const struct sockaddr *addr, const char *call)
{
    struct cm_port *port = &id->port;
    int ret = 0;

    if (!cm_addr_any(addr) && !cm_addr_local(addr))
        return dock_refuse(-EADDRNOTAVAIL, "%s: that is no address of this host", call);
    cm_port_of(port, id->id.ps, addr);
    port->shared = id->reuse;
    port->both = port->v6 && !port->addr && !id->afonly;
    ret = cm_port_take(port);
    if (ret)
        return dock_refuse(ret, "%s: port %u cannot be had: %s", call, cm_addr_port(addr), strerror(-ret));
    memcpy(&id->id.route.addr.src_addr, addr, cm_addr_len(addr));
    cm_addr_set_port(&id->id.route.addr.src_addr, port->number);
    if (!cm_addr_any(addr))
        ret = cm_take_device(id);
    if (ret) {
        cm_port_drop(port);
        return ret;
    }
    id->state = CM_BOUND;
    return 0;
}

void cm_unbind(struct cm_id *id)
{
    cm_port_drop(&id->port);
    memset(&id->id.route.addr.src_storage, 0, sizeof id->id.route.addr.src_storage);
    id->id.verbs = NULL;
    id->id.pd = NULL;
    id->state = CM_IDLE;
}

int rdma_bind_addr(struct rdma_cm_id *rid, struct sockaddr *addr)
{
    struct cm_id *id = cm_id(rid);
    int ret;

    if (!cm_id_ok(rid, "rdma_bind_addr"))
        return -1;
    if (!cm_addr_len(addr))
        return cm_fail(dock_refuse(EINVAL, "rdma_bind_addr: no address, or not of IPv4 or IPv6"));
    cm_acquire();
    if (id->state == CM_IDLE)
        ret = cm_bind(id, addr, "rdma_bind_addr");
    else
        ret = dock_refuse(-EINVAL, "rdma_bind_addr: the id is bound already");
    cm_release();
    return ret ? cm_fail(ret) : 0;
}

// ---- resolving

// The source address of what goes to `dst`: a local destination is reached from itself; a group from the
// first address that is not loopback.
static int choose_source(const struct sockaddr *dst, union cm_addr *src)
{
    struct ifaddrs *list = NULL;

    memset(src, 0, sizeof *src);
    memcpy(src, dst, cm_addr_len(dst));
    cm_addr_set_port(&src->any, 0);
    if (!cm_addr_multicast(dst))
        return 0;
    if (getifaddrs(&list))
        return -errno;
    for (int pass = 0; pass < 2; pass++)
        for (const struct ifaddrs *a = list; a; a = a->ifa_next) {
            bool lo = a->ifa_flags & IFF_LOOPBACK;

            if (!a->ifa_addr || a->ifa_addr->sa_family != dst->sa_family || lo != (pass == 1))
                continue;
            memcpy(src, a->ifa_addr, cm_addr_len(dst));
            freeifaddrs(list);
            return 0;
        }
    freeifaddrs(list);
    return -ENODEV;
}

// A bound id that waits for its address keeps its port on it.
static int narrow(struct cm_id *id, const union cm_addr *src)
{
    struct sockaddr *mine = &id->id.route.addr.src_addr;
    uint16_t number = cm_addr_port(mine);

    memcpy(mine, src, cm_addr_len(&src->any));
    cm_addr_set_port(mine, number);
    return cm_take_device(id);
}

static int resolve(struct cm_id *id, const struct sockaddr *src, const struct sockaddr *dst)
{
    union cm_addr chosen;
    struct rdma_addr *a = &id->id.route.addr;
    bool group = cm_addr_multicast(dst), known = group || cm_addr_local(dst);
    uint32_t unused;
    int ret = choose_source(dst, &chosen);

    if (src && !cm_addr_any(src))
        memcpy(&chosen, src, cm_addr_len(src));
    else if (!known) // whatever the source would be, no way leads there
        goto answer;
    if (!ret && id->state == CM_IDLE)
        ret = cm_bind(id, &chosen.any, "rdma_resolve_addr");
    else if (!ret && cm_addr_any(&a->src_addr))
        ret = narrow(id, &chosen);
    if (ret)
        return ret;
answer:
    memcpy(&a->dst_addr, dst, cm_addr_len(dst));
    if (group)
        gid_of(dst, &a->addr.ibaddr.dgid);
    else if (!known)
        ret = dock_refuse(-EHOSTUNREACH,
                          "rdma_resolve_addr: that is no address of this host; no other is reached");
    else
        ret = cm_addr_gid(dst, &a->addr.ibaddr.dgid, &unused);
    if (!ret)
        id->state = CM_ADDR;
    cm_tell(id, ret ? RDMA_CM_EVENT_ADDR_ERROR : RDMA_CM_EVENT_ADDR_RESOLVED, ret);
    return 0;
}

static int check_resolve(const struct cm_id *id, const struct sockaddr *src, const struct sockaddr *dst)
{
    const struct sockaddr *bound = &id->id.route.addr.src_addr;

    if (id->state != CM_IDLE && id->state != CM_BOUND)
        return dock_refuse(-EINVAL, "rdma_resolve_addr: the id has a destination, listens or is over");
    if (src && src->sa_family != dst->sa_family)
        return dock_refuse(-EINVAL, "rdma_resolve_addr: source and destination are of different families");
    if (id->state == CM_BOUND && bound->sa_family != dst->sa_family)
        return dock_refuse(-EINVAL, "rdma_resolve_addr: the id is bound to an address of another family");
    return 0;
}

int rdma_resolve_addr(struct rdma_cm_id *rid, struct sockaddr *src_addr, struct sockaddr *dst_addr,
                      int timeout_ms)
{
    struct cm_id *id = cm_id(rid);
    union cm_addr any;
    int ret;

    (void)timeout_ms; // an address of this host is known or not
    if (!cm_id_ok(rid, "rdma_resolve_addr"))
        return -1;
    if (!cm_addr_len(dst_addr) || (src_addr && !cm_addr_len(src_addr)))
        return cm_fail(dock_refuse(EINVAL, "rdma_resolve_addr: no destination, or not of IPv4 or IPv6"));
    // As the kernel takes it, the unspecified address means the host itself.
    memset(&any, 0, sizeof any);
    memcpy(&any, dst_addr, cm_addr_len(dst_addr));
    if (cm_addr_any(dst_addr)) {
        if (any.any.sa_family == AF_INET)
            any.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        else
            any.v6.sin6_addr = in6addr_loopback;
    }
    cm_acquire();
    ret = check_resolve(id, src_addr, &any.any);
    if (!ret)
        ret = resolve(id, src_addr, &any.any);
    return cm_end_call(id, ret);
}

void cm_fill_path(struct cm_id *id)
{
    const struct rdma_ib_addr *ib = &id->id.route.addr.addr.ibaddr;

    id->path = (struct ibv_sa_path_rec){
        .dgid = ib->dgid,
        .sgid = ib->sgid,
        .hop_limit = 64,
        .traffic_class = id->tos,
        .reversible = 1,
        .numb_path = 1,
        .pkey = ib->pkey,
        .mtu_selector = 2,
        .mtu = IBV_MTU_4096,
        .rate_selector = 2,
        .rate = IBV_RATE_100_GBPS,
        .packet_life_time_selector = 2,
        .packet_life_time = CM_PACKET_LIFETIME,
    };
    id->id.route.path_rec = &id->path;
    id->id.route.num_paths = 1;
}

int rdma_resolve_route(struct rdma_cm_id *rid, int timeout_ms)
{
    struct cm_id *id = cm_id(rid);
    int ret = 0;

    (void)timeout_ms;
    if (!cm_id_ok(rid, "rdma_resolve_route"))
        return -1;
    cm_acquire();
    if (id->state != CM_ADDR) {
        ret = dock_refuse(-EINVAL,
                          "rdma_resolve_route: the destination's address is not resolved, or the route is");
    } else {
        cm_fill_path(id);
        id->state = CM_ROUTE;
        cm_tell(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
    }
    return cm_end_call(id, ret);
}
