// SPDX-License-Identifier: MIT
// Multicast groups of datagram ids. The group's GID is made from the address as RoCE v2 has it; attaching the
// queue pair is the device's business.
#include <stdlib.h>

#include "base/address.h"
#include "face/rdmacm/rdmacm_face.h"

struct cm_group {
    struct cm_group *next;
    struct cm_id *id;
    void *context;
    union cm_addr addr;
    union ibv_gid gid;
    bool send_only, attached, leaving; // the last two: lock held
    uint32_t told, acked;              // events
};

// IPv4 groups stand in the mapped form, IPv6 groups are GIDs already.
static void group_gid(const struct sockaddr *addr, union ibv_gid *gid)
{
    if (addr->sa_family == AF_INET6) {
        memcpy(gid->raw, &((const struct sockaddr_in6 *)addr)->sin6_addr, sizeof gid->raw);
        return;
    }
    dock_address_of_ipv4(gid->raw, &((const struct sockaddr_in *)addr)->sin_addr);
}

int cm_group_joined(struct cm_event *e)
{
    struct cm_group *g = e->group;
    bool gone;
    int err = 0;

    if (!g->id->id.qp || g->send_only)
        return 0;
    err = ibv_attach_mcast(g->id->id.qp, &g->gid, 0);
    cm_acquire();
    gone = g->leaving; // another thread left the group meanwhile and found nothing to detach
    g->attached = !err && !gone;
    cm_release();
    if (!err && gone)
        ibv_detach_mcast(g->id->id.qp, &g->gid, 0);
    return err;
}

void cm_group_acked(struct cm_group *group)
{
    group->acked++;
}

static int announce(struct cm_group *g)
{
    struct cm_id *id = g->id;
    struct cm_event *e = cm_event_new(id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
    struct rdma_ud_param *ud;

    if (!e)
        return -ENOMEM;
    e->group = g;
    ud = &e->event.param.ud;
    ud->private_data = g->context;
    ud->qp_num = 0xffffff;
    ud->qkey = RDMA_UDP_QKEY;
    cm_fill_av(id, &ud->ah_attr);
    ud->ah_attr.grh.dgid = g->gid;
    ud->ah_attr.dlid = 0;
    g->told++;
    cm_event_queue(e);
    return 0;
}

static int join(struct cm_id *id, const struct sockaddr *addr, bool send_only, void *context)
{
    struct cm_group *g;
    int ret;

    if (!cm_is_ud(id))
        return dock_refuse(-EINVAL, "rdma_join_multicast: groups are for datagram ids");
    if (id->state == CM_IDLE || !id->id.verbs || !id->id.channel)
        return dock_refuse(-EINVAL, "rdma_join_multicast: the id is not bound to a device");
    g = calloc(1, sizeof *g);
    if (!g)
        return dock_refuse(-ENOMEM, "rdma_join_multicast: no memory");
    g->id = id;
    g->context = context;
    g->send_only = send_only;
    memcpy(&g->addr, addr, cm_addr_len(addr));
    group_gid(addr, &g->gid);
    ret = announce(g);
    if (ret) {
        free(g);
        return ret;
    }
    g->next = id->groups;
    id->groups = g;
    return 0;
}

static int join_call(struct rdma_cm_id *rid, const struct sockaddr *addr, bool send_only, void *context)
{
    struct cm_id *id = cm_id(rid);
    int ret;

    if (!cm_id_ok(rid, "rdma_join_multicast"))
        return -1;
    if (!cm_addr_len(addr) || !cm_addr_multicast(addr))
        return cm_fail(dock_refuse(EINVAL, "rdma_join_multicast: no address, or not one of a group"));
    cm_acquire();
    ret = join(id, addr, send_only, context);
    return cm_end_call(id, ret);
}

int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
    return join_call(id, addr, false, context);
}

int rdma_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *mc_join_attr, void *context)
{
    const uint32_t both = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;

    if (!cm_id_ok(id, "rdma_join_multicast_ex"))
        return -1;
    if (!mc_join_attr)
        return cm_fail(dock_refuse(EINVAL, "rdma_join_multicast_ex: no attributes given"));
    if (mc_join_attr->comp_mask >= RDMA_CM_JOIN_MC_ATTR_RESERVED)
        return cm_fail(
            dock_refuse(ENOTSUP, "rdma_join_multicast_ex: mask %#x is not known", mc_join_attr->comp_mask));
    if (mc_join_attr->comp_mask != both || mc_join_attr->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
        return cm_fail(
            dock_refuse(EINVAL, "rdma_join_multicast_ex: address and a known kind of membership are needed"));
    return join_call(id, mc_join_attr->addr,
                     mc_join_attr->join_flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER, context);
}

// ---- leaving

// Nothing of the group is queued, it is in no list: until its events are acknowledged, then it is gone.
static void leave(struct cm_group *g)
{
    bool attached;

    cm_acquire();
    g->leaving = true;
    attached = g->attached;
    cm_release();
    if (attached && g->id->id.qp && ibv_detach_mcast(g->id->id.qp, &g->gid, 0))
        dock_warn("rdma_leave_multicast: the queue pair could not be detached");
    cm_acquire();
    while (g->acked != g->told)
        pthread_cond_wait(&cm.acked, &cm.lock);
    cm_release();
    free(g);
}

// The group of that address, or any, out of the id's list.
static struct cm_group *unlink_group(struct cm_id *id, const struct sockaddr *addr)
{
    struct cm_group **p = &id->groups, *g;

    cm_acquire();
    while (*p && addr && memcmp(&(*p)->addr, addr, cm_addr_len(addr)) != 0)
        p = &(*p)->next;
    g = *p;
    if (g) {
        *p = g->next;
        g->told -= cm_events_forget(id, g);
    }
    cm_release();
    return g;
}

int rdma_leave_multicast(struct rdma_cm_id *rid, struct sockaddr *addr)
{
    struct cm_id *id = cm_id(rid);
    struct cm_group *g;

    if (!cm_id_ok(rid, "rdma_leave_multicast"))
        return -1;
    if (!cm_addr_len(addr))
        return cm_fail(dock_refuse(EINVAL, "rdma_leave_multicast: no address, or not of IPv4 or IPv6"));
    g = unlink_group(id, addr);
    if (!g)
        return cm_fail(dock_refuse(EADDRNOTAVAIL, "rdma_leave_multicast: the id is not in that group"));
    leave(g);
    return 0;
}

void cm_groups_leave(struct cm_id *id)
{
    for (struct cm_group *g; (g = unlink_group(id, NULL)) != NULL;)
        leave(g);
}
