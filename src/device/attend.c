// SPDX-License-Identifier: MIT
// What peers left for us to do: a queue of ours that they found in error, events to deliver.
#include "device/internal.h"

static struct dock_qp *next_in_need(struct dock_dev *dev)
{
    struct dock_qp *qp;

    dock_lock(&dev->lock);
    for (qp = dev->qps; qp; qp = qp->next)
        if (dock_peek32(&qp->rec->attention) & ~DOCK_ATTN_COMM ||
            (!dock_peek32(&qp->comm_told) && dock_peek32(&qp->rec->attention)))
            break;
    if (qp)
        atomic_fetch_add_explicit(&qp->pins, 1, memory_order_relaxed); // ordered by dev->lock
    dock_unlock(&dev->lock);
    return qp;
}

// Once: the limit is off from here on.
static void tell_limit(struct dock_rq *srq)
{
    struct dock_event e = {.kind = DOCK_EVENT_SRQ_LIMIT, .user = srq->user, .object = srq};

    if (!dock_peek32(&srq->rec->limit) || !dock_swap32(&srq->rec->limit, 0))
        return;
    dock_event_raise(srq->dev, srq->events, &e, &srq->events_got);
}

static bool has_limit(const struct dock_qp *qp)
{
    return qp->rq->shared || qp->attr.xrc == DOCK_XRC_SRQ;
}

void dock_attend_limit(struct dock_qp *qp)
{
    uint32_t why = atomic_fetch_and_explicit(&qp->rec->attention, ~DOCK_ATTN_LIMIT, memory_order_acq_rel);

    if (why & DOCK_ATTN_LIMIT && has_limit(qp))
        tell_limit(qp->rq);
}

void dock_attend_low(struct dock_qp *qp)
{
    const struct dock_rqrec *rec = qp->rq->rec;

    if (has_limit(qp) &&
        dock_peek32(&rec->limit) > dock_acquire32(&rec->pi) - dock_word_value(dock_acquire64(&rec->ci)))
        tell_limit(qp->rq);
}

#define IN_ERROR (DOCK_ATTN_ERRORS | DOCK_ATTN_FLUSH)

static void attend_queue(struct dock_qp *qp)
{
    // COMM stays set: it keeps the peer from ringing at every message. What fails the queue is taken under
    // its token. Pairs with the peer's release.
    uint32_t why =
        atomic_fetch_and_explicit(&qp->rec->attention, DOCK_ATTN_COMM | IN_ERROR, memory_order_acq_rel);

    if (why & DOCK_ATTN_COMM && !dock_swap32(&qp->comm_told, 1)) {
        if (dock_peek32(&qp->rec->state) == DOCK_RTR)
            dock_qp_raise(qp, DOCK_EVENT_COMM_EST);
    }
    if (why & DOCK_ATTN_LIMIT && has_limit(qp))
        tell_limit(qp->rq);
    if (why & IN_ERROR)
        why = dock_qp_error_for(qp, IN_ERROR);
    if (why & DOCK_ATTN_ACCESS)
        dock_qp_raise(qp, DOCK_EVENT_QP_ACCESS_ERR);
    else if (why & DOCK_ATTN_REQUEST)
        dock_qp_raise(qp, DOCK_EVENT_QP_REQ_ERR);
    else if (why & (DOCK_ATTN_FLUSH | DOCK_ATTN_LOCAL) && dock_qp_urma(&qp->attr))
        dock_qp_raise(qp, DOCK_EVENT_QP_FATAL); // URMA: the queue went to its error state by itself
}

// Events that peers' completions have fired. The count is a peer's word: no more than were armed for.
static void deliver_owed(struct dock_cq *cq)
{
    uint32_t owed = dock_swap32(&cq->rec->attention, 0);
    uint32_t most = dock_peek32(&cq->arms) - dock_peek32(&cq->told);

    for (uint32_t i = 0; i < owed && i < most; i++)
        dock_cq_deliver(cq);
}

// No queue can tell any more what became of its requests there. Once, and not of queues that come later: they
// fail by their first completion.
static void fail_users(struct dock_dev *dev, struct dock_cq *cq)
{
    if (cq->users_failed || cq->view.flags & DOCK_CQ_LOSES)
        return;
    cq->users_failed = true;
    for (struct dock_qp *qp = dev->qps; qp; qp = qp->next)
        if (qp->send_cq == cq || qp->recv_cq == cq)
            atomic_fetch_or_explicit(&qp->rec->attention, DOCK_ATTN_LOCAL,
                                     memory_order_release); // pairs with dock_qp_error_for
}

static void attend_cqs(struct dock_dev *dev)
{
    dock_lock(&dev->lock);
    for (struct dock_cq *cq = dev->cqs; cq; cq = cq->next) {
        if (dock_peek32(&cq->rec->attention))
            deliver_owed(cq);
        if (dock_acquire32(&cq->rec->overrun)) {
            dock_cq_overrun(cq); // told once
            fail_users(dev, cq);
        }
    }
    dock_unlock(&dev->lock);
}

void dock_attend(struct dock_dev *dev)
{
    struct dock_qp *qp;

    dock_swap32(&dev->port->attention, 0); // before the flags it stands for: a flag set later rings again
    if (dock_peek32(&dev->port->fatal))
        dock_dev_bury_queues(dev);
    attend_cqs(dev);
    dock_bundles_attend(dev);
    while ((qp = next_in_need(dev))) {
        attend_queue(qp);
        atomic_fetch_sub_explicit(&qp->pins, 1, memory_order_release); // pairs with wait_unpinned in qp.c
    }
}
