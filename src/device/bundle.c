// SPDX-License-Identifier: MIT
// Several queues of a device under one number, URMA's jetty group. Who sends to it picks the member, by the
// list that stands in our arena (fabric/host/connect.c).
#include <errno.h>
#include <stdlib.h>

#include "device/internal.h"

struct dock_bundle {
    struct dock_dev *dev;
    uint32_t number;
    struct dock_qrec *rec;
    struct dock_grprec *list; // what peers see of the two below: they may have written there, we believe ours
    uint32_t count, member[DOCK_BUNDLE_MAX];
    uint64_t off;
    struct dock_bundle *next;
    bool told; // that it was sent to without members; by dev->lock
    struct dock_events *events;
    void *user;
    dock_a32 events_got;
};

static void publish(struct dock_bundle *g)
{
    struct dock_qrec *r = g->rec;

    r->kind_service = DOCK_QUEUE_GROUP << 8 | DOCK_RM;
    r->id = g->number;
    r->pd = 0;
    r->rq = g->off;
    r->cq = 0;
    r->sum = dock_qrec_sum(r);
    dock_publish32(&r->serial, dock_peek32(&r->serial) + 1);
    dock_publish32(&r->state, DOCK_RTS); // pairs with the acquire in dock_host_pick
}

static void enlist(struct dock_bundle *g)
{
    dock_lock(&g->dev->lock);
    g->next = g->dev->bundles;
    g->dev->bundles = g;
    dock_unlock(&g->dev->lock);
}

static void delist(struct dock_bundle *g)
{
    struct dock_bundle **at = &g->dev->bundles;

    dock_lock(&g->dev->lock);
    while (*at != g)
        at = &(*at)->next;
    *at = g->next;
    dock_unlock(&g->dev->lock);
}

int dock_bundle_create(struct dock_dev *dev, const struct dock_bundle_attr *attr, struct dock_bundle **out)
{
    struct dock_bundle *g = calloc(1, sizeof *g);
    int err;

    if (!g)
        return dock_no_memory("a group of queues");
    g->dev = dev;
    g->events = attr->events;
    g->user = attr->user;
    err = dock_id_take(dev, dock_id_other(g), attr->number, &g->number);
    if (err)
        goto no_id;
    err = dock_arena_alloc(&dev->arena, sizeof *g->list, 64, &g->off);
    if (err)
        goto no_list;
    g->rec = dock_id_record(dev, g->number);
    g->list = dock_arena_at(&dev->arena, g->off);
    memset(g->list, 0, sizeof *g->list);
    g->list->policy = attr->policy;
    dock_set32(&g->rec->attention, 0); // of who had the number before
    dock_set32(&g->rec->first_cause, 0);
    enlist(g); // before anybody can send to it: what is told of it is looked for in the list
    publish(g);
    *out = g;
    return 0;
no_list:
    dock_id_give(dev, g->number);
no_id:
    free(g);
    return err;
}

int dock_bundle_close(struct dock_bundle *g)
{
    struct dock_dev *dev = g->dev;
    uint32_t count;

    dock_lock(&dev->lock);
    count = g->count;
    dock_unlock(&dev->lock);
    if (count)
        return dock_refuse(-EBUSY, "group %u still has %u members", g->number, count);
    dock_publish32(&g->rec->state, DOCK_GONE); // pairs with the acquire in dock_host_pick
    dock_quiesce(dev, NULL);
    delist(g);
    return 0;
}

void dock_bundle_free(struct dock_bundle *g)
{
    dock_events_forget(g->events, g, &g->events_got);
    dock_arena_free(&g->dev->arena, g->off, sizeof *g->list);
    dock_id_give(g->dev, g->number);
    free(g);
}

int dock_bundle_destroy(struct dock_bundle *g)
{
    int err = dock_bundle_close(g);

    if (!err)
        dock_bundle_free(g);
    return err;
}

uint32_t dock_bundle_number(const struct dock_bundle *g)
{
    return g->number;
}

int dock_bundle_join(struct dock_bundle *g, uint32_t number)
{
    uint32_t n;

    dock_lock(&g->dev->lock);
    n = g->count;
    if (n < DOCK_BUNDLE_MAX) {
        g->count = n + 1;
        g->told = false;
        dock_set32(&g->rec->attention, 0);
        g->member[n] = number;
        dock_set32(&g->list->member[n], number);
        dock_publish32(&g->list->count, n + 1); // the member before the count; pairs with dock_host_pick
    }
    dock_unlock(&g->dev->lock);
    return n < DOCK_BUNDLE_MAX ? 0 : dock_refuse(-EPERM, "group %u has its %u members", g->number, n);
}

// The last takes the place that becomes free: whoever picks meanwhile finds a member, old or new.
void dock_bundle_leave(struct dock_bundle *g, uint32_t number)
{
    dock_lock(&g->dev->lock);
    for (uint32_t i = 0; i < g->count; i++) {
        if (g->member[i] != number)
            continue;
        g->member[i] = g->member[--g->count];
        dock_set32(&g->list->member[i], g->member[i]);
        dock_publish32(&g->list->count, g->count); // pairs with dock_host_pick
        break;
    }
    dock_unlock(&g->dev->lock);
}

// The flag stays while the group is empty: it keeps senders from ringing at every try. That the group has no
// members we know better than they.
static void attend(struct dock_bundle *g)
{
    struct dock_event e = {.kind = DOCK_EVENT_BUNDLE_EMPTY, .user = g->user, .object = g};

    if (!dock_peek32(&g->rec->attention))
        return;
    if (g->count) {
        dock_set32(&g->rec->attention, 0);
    } else if (!g->told) {
        g->told = true;
        dock_event_raise(g->dev, g->events, &e, &g->events_got);
    }
}

void dock_bundles_attend(struct dock_dev *dev)
{
    dock_lock(&dev->lock);
    for (struct dock_bundle *g = dev->bundles; g; g = g->next)
        attend(g);
    dock_unlock(&dev->lock);
}

dock_a32 *dock_bundle_events_got(struct dock_bundle *g)
{
    return &g->events_got;
}
