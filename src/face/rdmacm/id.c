// SPDX-License-Identifier: MIT
// Ids: life, channel, options.
#include <stdlib.h>

#include "base/clock.h"
#include "base/seed.h"
#include "face/rdmacm/rdmacm_face.h"

bool cm_id_ok(const struct rdma_cm_id *id, const char *call)
{
    if (!id) {
        errno = dock_refuse(EINVAL, "%s: no id given", call);
        return false;
    }
    if (((const struct cm_id *)id)->generation == cm.generation)
        return true;
    errno = dock_refuse(ENODEV, "%s: the id belongs to the parent process", call);
    return false;
}

struct cm_id *cm_id_new(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps,
                        enum ibv_qp_type type)
{
    struct cm_id *id = calloc(1, sizeof *id);

    if (id)
        id->spare = calloc(1, sizeof *id->spare);
    if (!id || !id->spare) {
        dock_refuse(ENOMEM, "rdma_cm: no memory for an id");
        free(id);
        return NULL;
    }
    id->id.channel = channel;
    id->id.context = context;
    id->id.ps = ps;
    id->id.qp_type = type;
    id->sock = id->listener[0] = id->listener[1] = -1;
    id->generation = cm.generation;
    id->timeout = CM_PACKET_LIFETIME;
    id->psn = (uint32_t)dock_mix(dock_now_ns() ^ (uintptr_t)id) & 0xffffff;
    return id;
}

static void enter_list(struct cm_id *id)
{
    id->next = cm.ids;
    if (id->next)
        id->next->prev = id;
    cm.ids = id;
}

int cm_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **out, void *context,
                 enum rdma_port_space ps, enum ibv_qp_type type)
{
    struct rdma_event_channel *own = channel ? NULL : rdma_create_event_channel();
    struct cm_id *id;
    int ret;

    if (!channel && !own)
        return -1;
    id = cm_id_new(channel ? channel : own, context, ps, type);
    if (!id) {
        rdma_destroy_event_channel(own);
        return cm_fail(ENOMEM);
    }
    id->sync = !channel;
    cm_acquire();
    ret = cm_chan_check(id->id.channel, "rdma_create_id");
    if (!ret)
        enter_list(id);
    cm_release();
    if (ret) {
        cm_id_free(id);
        rdma_destroy_event_channel(own);
        return cm_fail(ret);
    }
    *out = &id->id;
    return 0;
}

static bool known_space(enum rdma_port_space ps)
{
    return ps == RDMA_PS_TCP || ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB || ps == RDMA_PS_IB;
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
                   enum rdma_port_space ps)
{
    bool ud = ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB;

    if (!id || !known_space(ps))
        return cm_fail(dock_refuse(EINVAL, "rdma_create_id: no place for the id, or %#x is no port space",
                                   (unsigned)ps));
    return cm_create_id(channel, id, context, ps, ud ? IBV_QPT_UD : IBV_QPT_RC);
}

void cm_id_leave(struct cm_id *id)
{
    cm_stop_listening(id);
    cm_goodbye(id);
    cm_port_drop(&id->port);
    if (id->prev)
        id->prev->next = id->next;
    else if (cm.ids == id)
        cm.ids = id->next;
    if (id->next)
        id->next->prev = id->prev;
    id->next = id->prev = NULL;
    id->deadline_ms = 0;
}

void cm_ids_orphan(const struct cm_chan *chan)
{
    for (struct cm_id *id = cm.ids, *next; id; id = next) {
        next = id->next;
        if (id->id.channel != &chan->channel)
            continue;
        cm_id_leave(id);
        id->id.channel = NULL;
    }
}

void cm_id_free(struct cm_id *id)
{
    free(id->spare);
    free(id->request);
    free(id->ep_attr);
    free(id->connect);
    free(id);
}

int rdma_destroy_id(struct rdma_cm_id *rid)
{
    struct cm_id *id = cm_id(rid);

    if (!cm_id_ok(rid, "rdma_destroy_id"))
        return -1;
    cm_groups_leave(id);
    if (id->sync)
        cm_let_event_go(id);
    cm_acquire();
    cm_events_drop(id);
    cm_id_leave(id);
    cm_events_wait(id);
    cm_release();
    if (id->sync)
        rdma_destroy_event_channel(id->id.channel);
    cm_id_free(id);
    return 0;
}

// Lock held.
static int move_to(struct cm_id *id, struct rdma_event_channel *channel)
{
    int ret = cm_chan_check(channel, "rdma_migrate_id");

    if (ret)
        return ret;
    if (!id->id.channel)
        return dock_refuse(-EINVAL, "rdma_migrate_id: the id's channel was destroyed");
    cm_events_move(id, cm_chan(channel));
    id->id.channel = channel;
    return 0;
}

int rdma_migrate_id(struct rdma_cm_id *rid, struct rdma_event_channel *channel)
{
    struct cm_id *id = cm_id(rid);
    struct rdma_event_channel *own = NULL, *old;
    int ret;

    if (!cm_id_ok(rid, "rdma_migrate_id"))
        return -1;
    if (!channel && id->sync)
        return cm_fail(dock_refuse(EINVAL, "rdma_migrate_id: the id is synchronous already"));
    if (!channel) {
        channel = own = rdma_create_event_channel();
        if (!own)
            return -1;
    }
    cm_acquire();
    old = id->id.channel;
    ret = move_to(id, channel);
    cm_release();
    if (ret) {
        rdma_destroy_event_channel(own);
        return cm_fail(ret);
    }
    if (id->sync)
        cm_let_event_go(id);
    cm_acquire();
    cm_events_wait(id);
    cm_release();
    if (id->sync)
        rdma_destroy_event_channel(old);
    id->sync = own != NULL;
    return 0;
}

// ---- options

static int set_id_option(struct cm_id *id, int name, const void *value, size_t len)
{
    int on;

    switch (name) {
    case RDMA_OPTION_ID_TOS:
        if (len != sizeof(uint8_t))
            return -EINVAL;
        memcpy(&id->tos, value, len);
        return 0;
    case RDMA_OPTION_ID_REUSEADDR:
    case RDMA_OPTION_ID_AFONLY:
        if (len != sizeof on || id->state != CM_IDLE)
            return -EINVAL;
        memcpy(&on, value, sizeof on);
        *(name == RDMA_OPTION_ID_REUSEADDR ? &id->reuse : &id->afonly) = on != 0;
        return 0;
    case RDMA_OPTION_ID_ACK_TIMEOUT:
        if (len != sizeof(uint8_t) || *(const uint8_t *)value > 31)
            return -EINVAL;
        memcpy(&id->timeout, value, len);
        id->has_timeout = true;
        return 0;
    default:
        return -ENOSYS;
    }
}

// A route given by hand: it may only say what is true here anyway, and counts as resolved.
static int set_path(struct cm_id *id, const struct ibv_path_data *path, size_t len)
{
    if (len % sizeof *path || !len || id->state != CM_ADDR)
        return -EINVAL;
    for (size_t i = 0; i < len / sizeof *path; i++)
        if (path[i].flags & IBV_PATH_FLAG_PRIMARY) {
            cm_fill_path(id);
            id->state = CM_ROUTE;
            cm_tell(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
            return 0;
        }
    return -EINVAL;
}

int rdma_set_option(struct rdma_cm_id *rid, int level, int optname, void *optval, size_t optlen)
{
    struct cm_id *id = cm_id(rid);
    int ret = -ENOSYS;

    if (!cm_id_ok(rid, "rdma_set_option"))
        return -1;
    if (!optval)
        return cm_fail(dock_refuse(EINVAL, "rdma_set_option: no value given"));
    cm_acquire();
    if (level == RDMA_OPTION_ID)
        ret = set_id_option(id, optname, optval, optlen);
    else if (level == RDMA_OPTION_IB && optname == RDMA_OPTION_IB_PATH)
        ret = set_path(id, optval, optlen);
    cm_release();
    if (ret)
        return cm_fail(dock_refuse(ret, "rdma_set_option: level %d, option %d, %zu bytes: %s", level, optname,
                                   optlen, ret == -ENOSYS ? "unknown" : "wrong size, value or moment"));
    return 0;
}

// ---- enhanced connection options: carried, not interpreted

int rdma_set_local_ece(struct rdma_cm_id *rid, struct ibv_ece *ece)
{
    if (!cm_id_ok(rid, "rdma_set_local_ece"))
        return -1;
    if (rid->qp || !ece || !ece->vendor_id || ece->comp_mask)
        return cm_fail(
            dock_refuse(EINVAL, "rdma_set_local_ece: no options, no vendor, or the id has a queue pair"));
    cm_id(rid)->local_ece = *ece;
    return 0;
}

int rdma_get_remote_ece(struct rdma_cm_id *rid, struct ibv_ece *ece)
{
    if (!cm_id_ok(rid, "rdma_get_remote_ece"))
        return -1;
    if (rid->qp || !ece)
        return cm_fail(
            dock_refuse(EINVAL, "rdma_get_remote_ece: no place for it, or the id has a queue pair"));
    *ece = cm_id(rid)->remote_ece;
    ece->comp_mask = 0;
    return 0;
}
