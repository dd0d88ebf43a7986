// SPDX-License-Identifier: MIT
// Asynchronous events. The device blocks the destruction of an object while an event that was got for it is
// not acknowledged; the element of the event names the object, so an acknowledge can be told from any copy
// of it.
#include "face/verbs/verbs_face.h"

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    struct dock_event e;
    int err;

    if (!context || !event) {
        errno = dock_refuse(EINVAL, "ibv_get_async_event: no context or no place for the event");
        return -1;
    }
    err = dock_events_get(vb_context(context)->events, &e);
    if (err) {
        errno = -err;
        return -1;
    }
    memset(event, 0, sizeof *event);
    event->event_type = vb_event_type(e.kind);
    if (e.user)
        event->element.qp = e.user; // the union's members are pointers to the object, whatever its kind
    else
        event->element.port_num = VB_PORT;
    return 0;
}

void vb_events_completed(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *count, unsigned n)
{
    dock_lock(mutex);
    *count += n;
    pthread_cond_signal(cond);
    dock_unlock(mutex);
}

static void qp_event_completed(struct ibv_qp *qp)
{
    vb_events_completed(&qp->mutex, &qp->cond, &qp->events_completed, 1);
}

static void srq_event_completed(struct ibv_srq *srq)
{
    vb_events_completed(&srq->mutex, &srq->cond, &srq->events_completed, 1);
}

static void cq_event_completed(struct ibv_cq *cq)
{
    vb_events_completed(&cq->mutex, &cq->cond, &cq->async_events_completed, 1);
}

// The public counts first: with the device's the object may be gone.
void ibv_ack_async_event(struct ibv_async_event *event)
{
    struct dock_event e;

    if (!event)
        return;
    e = (struct dock_event){.kind = vb_device_event(event->event_type)};
    switch (e.kind) {
    case DOCK_EVENT_CQ_ERR:
        cq_event_completed(event->element.cq);
        e.object = vb_cq(event->element.cq)->dev;
        break;
    case DOCK_EVENT_SRQ_ERR:
    case DOCK_EVENT_SRQ_LIMIT:
        srq_event_completed(event->element.srq);
        e.object = vb_srq(event->element.srq)->dev;
        break;
    case DOCK_EVENT_QP_FATAL:
    case DOCK_EVENT_QP_REQ_ERR:
    case DOCK_EVENT_QP_ACCESS_ERR:
    case DOCK_EVENT_COMM_EST:
    case DOCK_EVENT_SQ_DRAINED:
    case DOCK_EVENT_QP_LAST_WQE:
        qp_event_completed(event->element.qp);
        if (vb_qp(event->element.qp)->listener) {
            dock_listener_ack(vb_qp(event->element.qp)->listener);
            return;
        }
        e.object = vb_qp(event->element.qp)->dev;
        break;
    default: // of the port or the device: belongs to no object
        return;
    }
    dock_event_ack(&e);
}
