// SPDX-License-Identifier: MIT
// Waiting for completions and for asynchronous events. Both descriptors are the device's: programs put them
// into epoll, or make them non-blocking.
#include <fcntl.h>
#include <poll.h>

#include "base/clock.h"
#include "face/urma/perf.h"
#include "face/urma/urma_face.h"

enum { AT_ONCE = 16 }; // the reference hands out no more per call

urma_status_t urma_rearm_jfc(urma_jfc_t *jfc, bool solicited_only)
{
    uint64_t began = ur_perf_begin();
    int err;

    if (!jfc || !ur_jfc(jfc)->dev)
        return dock_refuse(URMA_EINVAL, "urma_rearm_jfc: no active JFC given");
    if (!jfc->jfc_cfg.jfce)
        return URMA_SUCCESS;
    err = dock_cq_arm(ur_jfc(jfc)->dev, solicited_only, true);
    ur_perf_end(UB_REARM_JFC, began);
    return ur_status(err);
}

int ur_wait_readable(int fd, int time_out, uint64_t end)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int left = time_out;

    if (time_out > 0) {
        uint64_t now = dock_now_ns();
        left = now >= end ? 0 : (int)((end - now + 999999) / 1000000);
    }
    return poll(&p, 1, left);
}

static uint32_t take(struct ur_jfce *e, uint32_t most, urma_jfc_t *jfc[])
{
    uint32_t n = 0;
    void *user;

    while (n < most && dock_chan_try(e->dev, &user) == 0)
        jfc[n++] = &((struct ur_jfc *)user)->jfc;
    return n;
}

int urma_wait_jfc(urma_jfce_t *jfce, uint32_t jfc_cnt, int time_out, urma_jfc_t *jfc[])
{
    uint64_t end = time_out > 0 ? dock_now_ns() + (uint64_t)time_out * 1000000 : 0;
    struct ur_jfce *e = (struct ur_jfce *)jfce;
    uint64_t began = ur_perf_begin();

    if (!jfce || !jfc_cnt || !jfc) {
        dock_refuse(EINVAL, "urma_wait_jfc: no channel, or no place for JFCs");
        return -1;
    }
    if (jfc_cnt > AT_ONCE)
        jfc_cnt = AT_ONCE;
    for (;;) {
        uint32_t n = take(e, jfc_cnt, jfc);
        if (n) {
            ur_perf_end(UB_WAIT_JFC, began);
            return (int)n;
        }
        if (time_out && fcntl(jfce->fd, F_GETFL) & O_NONBLOCK)
            time_out = 0; // the program waits elsewhere, by poll or epoll
        int ready = ur_wait_readable(jfce->fd, time_out, end); // what comes may be taken by another thread
        if (ready <= 0)
            return ready;
    }
}

void urma_ack_jfc(urma_jfc_t *jfc[], uint32_t nevents[], uint32_t jfc_cnt)
{
    uint64_t began = ur_perf_begin();

    if (!jfc || !nevents)
        return;
    for (uint32_t i = 0; i < jfc_cnt; i++) {
        if (!jfc[i] || !nevents[i] || !ur_jfc(jfc[i])->dev)
            continue;
        // Two may acknowledge at once; and the device's count comes last, because a deletion waits for it.
        __atomic_fetch_add(&jfc[i]->comp_events_acked, nevents[i], __ATOMIC_RELAXED);
        dock_cq_ack(ur_jfc(jfc[i])->dev, nevents[i]);
    }
    ur_perf_end(UB_ACK_JFC, began);
}

// ---- asynchronous events

// The element of the event. A queue's user pointer leads to its struct ur_sends, that of a JFC and of a
// JFR's receives, and of a group, to the object itself.
static bool translate(const struct dock_event *d, urma_async_event_t *event)
{
    const struct ur_sends *s = d->user;
    bool queue = d->kind == DOCK_EVENT_QP_FATAL || d->kind == DOCK_EVENT_QP_REQ_ERR ||
                 d->kind == DOCK_EVENT_QP_ACCESS_ERR;

    if (!ur_event_type(d->kind, queue ? s->kind : UR_JETTY, &event->event_type))
        return false;
    if (d->user)
        event->element.jetty = queue ? s->object : d->user;
    else if (event->event_type == URMA_EVENT_EID_CHANGE)
        event->element.eid_idx = 0;
    else
        event->element.port_id = 0;
    return true;
}

urma_status_t urma_get_async_event(urma_context_t *ctx, urma_async_event_t *event)
{
    struct dock_event d;

    if (!ctx || !event)
        return dock_refuse(URMA_EINVAL, "urma_get_async_event: no context, or no place for the event");
    do {
        if (dock_events_get(ur_context(ctx)->events, &d))
            return URMA_FAIL;
        memset(event, 0, sizeof *event);
        event->urma_ctx = ctx;
        event->priv = d.object;
    } while (!translate(&d, event));
    return URMA_SUCCESS;
}

// The device's kind of event for a type of ours: whose count goes down.
static enum dock_event_kind device_kind(urma_async_event_type_t type)
{
    switch (type) {
    case URMA_EVENT_JFC_ERR:
        return DOCK_EVENT_CQ_ERR;
    case URMA_EVENT_JFR_LIMIT:
        return DOCK_EVENT_SRQ_LIMIT;
    case URMA_EVENT_JETTY_GRP_ERR:
        return DOCK_EVENT_BUNDLE_EMPTY;
    default:
        return DOCK_EVENT_QP_FATAL;
    }
}

void urma_ack_async_event(urma_async_event_t *event)
{
    struct dock_event d;

    if (!event || !event->priv)
        return;
    d = (struct dock_event){.kind = device_kind(event->event_type), .object = event->priv};
    dock_event_ack(&d);
}
