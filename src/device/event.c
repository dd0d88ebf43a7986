// SPDX-License-Identifier: MIT
// Queues of asynchronous events.
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "device/inbox.h"
#include "device/internal.h"

struct dock_events {
    struct dock_dev *dev;
    dock_a32 skip; // kinds that are not kept, bits
    struct dock_inbox inbox;
    struct dock_events *next; // of the device
};

int dock_events_open(struct dock_dev *dev, struct dock_events **out)
{
    struct dock_events *ev = calloc(1, sizeof *ev);
    int err;

    if (!ev)
        return dock_no_memory("a queue of events");
    err = dock_inbox_open(&ev->inbox);
    if (err) {
        dock_error("no descriptor for a queue of events: %s", strerror(-err));
        free(ev);
        return err;
    }
    ev->dev = dev;
    dock_lock(&dev->events_lock);
    ev->next = dev->event_queues;
    dev->event_queues = ev;
    dock_unlock(&dev->events_lock);
    *out = ev;
    return 0;
}

void dock_events_close(struct dock_events *ev)
{
    struct dock_events **at = &ev->dev->event_queues;

    dock_lock(&ev->dev->events_lock);
    while (*at != ev)
        at = &(*at)->next;
    *at = ev->next;
    dock_unlock(&ev->dev->events_lock);
    dock_inbox_close(&ev->inbox);
    free(ev);
}

int dock_events_fd(const struct dock_events *ev)
{
    return ev->inbox.tokens.fd;
}

void dock_events_skip(struct dock_events *ev, uint32_t kinds)
{
    dock_set32(&ev->skip, kinds);
}

static void append(struct dock_events *ev, const struct dock_event *event, dock_a32 *got)
{
    struct dock_entry *e;

    if (dock_peek32(&ev->skip) >> event->kind & 1)
        return;
    e = dock_inbox_room(&ev->inbox);
    if (!e) {
        dock_error("no memory for an asynchronous event: it is lost");
        return;
    }
    e->event = *event;
    e->got = got;
    dock_inbox_put(&ev->inbox, e);
}

void dock_event_raise(struct dock_dev *dev, struct dock_events *to, const struct dock_event *event,
                      dock_a32 *got)
{
    if (to) {
        append(to, event, got);
        return;
    }
    if (event->object) // its program listens to no events
        return;
    dock_lock(&dev->events_lock);
    for (struct dock_events *ev = dev->event_queues; ev; ev = ev->next)
        append(ev, event, NULL);
    dock_unlock(&dev->events_lock);
}

int dock_events_get(struct dock_events *ev, struct dock_event *out)
{
    struct dock_entry e;
    int err = dock_inbox_take(&ev->inbox, &e);

    if (err)
        return err;
    if (e.got)
        atomic_fetch_add_explicit(e.got, 1, memory_order_relaxed); // ordered by the inbox's lock
    dock_unlock(&ev->inbox.lock);
    *out = e.event;
    return 0;
}

static dock_a32 *got_of(const struct dock_event *ev)
{
    switch (ev->kind) {
    case DOCK_EVENT_CQ_ERR:
        return &((struct dock_cq *)ev->object)->events_got;
    case DOCK_EVENT_SRQ_LIMIT:
    case DOCK_EVENT_SRQ_ERR:
        return &((struct dock_rq *)ev->object)->events_got;
    case DOCK_EVENT_BUNDLE_EMPTY:
        return dock_bundle_events_got(ev->object);
    default:
        return &((struct dock_qp *)ev->object)->events_got;
    }
}

static void acknowledge(dock_a32 *got)
{
    atomic_fetch_sub_explicit(got, 1, memory_order_release); // pairs with dock_events_forget
}

void dock_event_ack(const struct dock_event *ev)
{
    if (ev->object)
        acknowledge(got_of(ev));
}

void dock_events_forget(struct dock_events *ev, const void *object, dock_a32 *got)
{
    if (!ev)
        return;
    dock_inbox_forget(&ev->inbox, object);
    while (dock_acquire32(got)) // pairs with acknowledge
        dock_nap(100000);
}

// ---- queues that several listen to

struct dock_listener {
    struct dock_qp *qp;
    struct dock_events *to;
    void *user;
    dock_a32 got; // and not acknowledged
    struct dock_listener *next;
};

int dock_qp_listen(struct dock_qp *qp, struct dock_events *to, void *user, struct dock_listener **out)
{
    struct dock_listener *l;
    int err = dock_dev_usable(qp->dev);

    if (err)
        return err;
    l = calloc(1, sizeof *l);
    if (!l)
        return dock_no_memory("a listener to a queue's events");
    l->qp = qp;
    l->to = to;
    l->user = user;
    *out = l; // before anybody can be told: who is looks there
    dock_lock(&qp->dev->events_lock);
    l->next = qp->listeners;
    qp->listeners = l;
    dock_unlock(&qp->dev->events_lock);
    return 0;
}

void dock_qp_raise(struct dock_qp *qp, enum dock_event_kind kind)
{
    struct dock_event e = {.kind = kind, .user = qp->attr.user, .object = qp};

    dock_event_raise(qp->dev, qp->events, &e, &qp->events_got);
    dock_lock(&qp->dev->events_lock);
    for (struct dock_listener *l = qp->listeners; l; l = l->next) {
        e = (struct dock_event){.kind = kind, .user = l->user, .object = l};
        append(l->to, &e, &l->got);
    }
    dock_unlock(&qp->dev->events_lock);
}

void dock_listener_ack(struct dock_listener *l)
{
    acknowledge(&l->got);
}

void dock_listener_end(struct dock_listener *l)
{
    struct dock_listener **at = &l->qp->listeners;

    dock_lock(&l->qp->dev->events_lock);
    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
    dock_unlock(&l->qp->dev->events_lock);
    dock_events_forget(l->to, l, &l->got);
    free(l);
}

void dock_qp_set_events(struct dock_qp *qp, struct dock_events *ev)
{
    qp->events = ev;
}

void dock_cq_set_events(struct dock_cq *cq, struct dock_events *ev)
{
    cq->events = ev;
}

void dock_srq_set_events(struct dock_rq *srq, struct dock_events *ev)
{
    srq->events = ev;
}

bool dock_qp_owes_acks(const struct dock_qp *qp)
{
    return dock_acquire32(&qp->events_got); // pairs with acknowledge
}

bool dock_srq_owes_acks(const struct dock_rq *srq)
{
    return dock_acquire32(&srq->events_got); // pairs with acknowledge
}
