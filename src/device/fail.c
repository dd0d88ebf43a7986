// SPDX-License-Identifier: MIT
// Error states: who goes there, and what becomes of the requests that are still in the queues.
#include "device/internal.h"

// Verbs' unreliable services have a state of their own in which only sends are stopped.
static bool fails_alone(const struct dock_qp *qp)
{
    return qp->attr.service == DOCK_UC || qp->attr.service == DOCK_UD;
}

// Its requests wait for what the program decides; its receives go on. Once: a request that was finished late
// may fail as well.
static void suspend(struct dock_qp *qp, uint32_t cause)
{
    if (dock_peek32(&qp->rec->state) == DOCK_SUSPENDED)
        return;
    dock_info("queue %u is suspended with status %#x", qp->number, cause);
    dock_publish32(&qp->rec->state, DOCK_SUSPENDED); // pairs with answers() of the peers
    dock_port_moment(qp->dev->port, DOCK_AT_STATE, qp->number, DOCK_SUSPENDED);
    dock_mark_owe(qp, DOCK_ST_SUSPEND_DONE);
}

void dock_qp_fail(struct dock_qp *qp, uint32_t cause)
{
    uint32_t state = dock_peek32(&qp->rec->state); // changed under the token only, which the caller holds

    if (state == DOCK_RESET || state == DOCK_ERR || state == DOCK_GONE || state == DOCK_SQE)
        return;
    if (qp->attr.on_error == DOCK_ON_ERROR_SUSPEND && cause != DOCK_ST_LOC_QP_OP && cause != DOCK_ST_FLUSH) {
        suspend(qp, cause);
        return;
    }
    dock_info("queue %u fails with status %#x", qp->number, cause);
    // A datagram queue's sends fail alone; everything else loses the connection.
    dock_publish32(&qp->rec->state,
                   fails_alone(qp) ? DOCK_SQE : DOCK_ERR); // pairs with answers() of the peers
    dock_port_moment(qp->dev->port, DOCK_AT_STATE, qp->number, fails_alone(qp) ? DOCK_SQE : DOCK_ERR);
    if (fails_alone(qp))
        return;
    atomic_fetch_or_explicit(&qp->rec->attention, DOCK_ATTN_FLUSH,
                             memory_order_release); // pairs with attend()
    dock_up_attention(dock_peer_self(qp->dev));
}

static void flush_one(struct dock_qp *qp, uint32_t receive)
{
    struct dock_cqe e = {
        .idx_local = receive | qp->number << 16,
        .local_remote = qp->number >> 16 & 0xf,
    };

    dock_set32(&e.dw0, DOCK_CQE_RECV | (DOCK_ST_FLUSH >> 8) << 24);
    dock_cq_put(qp->recv_cq, &e, true);
}

// Is there a completion of this receive in the CQ, from position `ci` on?
static bool completed(const struct dock_cqview *v, uint32_t ci, uint32_t queue, uint32_t receive)
{
    uint32_t dw0, first = ci;

    for (struct dock_cqe *e; ci - first < v->size && (e = dock_cq_look(v, ci, &dw0)); ci++)
        if ((dw0 & (DOCK_CQE_RECV | DOCK_CQE_SKIP)) == DOCK_CQE_RECV && dock_cqe_local(e) == queue &&
            (e->idx_local & 0xffff) == receive)
            return true;
    return false;
}

// The tail is held meanwhile: the ring stays where it is, and where its entries begin is read of this ring.
static bool completed_held(struct dock_cqview *v, const struct dock_waiter *w, uint32_t queue,
                           uint32_t receive)
{
    uint32_t tail = dock_cq_hold(v, w);
    uint32_t ci = dock_acquire32(&v->rec->ci); // pairs with dock_cq_end and dock_cqring_move
    bool is = completed(v, v->flags & DOCK_CQ_OVERWRITE ? dock_cq_oldest(v, ci) : ci, queue, receive);

    dock_cq_let_go(v, w, tail);
    return is;
}

// The claim of a receive that was taken and not completed. Whoever made it before the consumer index moved
// has not taken it: it is still posted.
static bool claimed(const struct dock_qp *qp, dock_who who, uint32_t receive, uint32_t ci, uint64_t *mark)
{
    // pairs with the publish in dock_rq_take
    uint64_t claim = dock_acquire64(&qp->rq->view.claims[receive]);

    return claim && dock_claim_queue(claim) == qp->number && (!who || (dock_who)(claim >> 32) == who) &&
           dock_rq_taken(qp->rq, receive, ci, mark);
}

// A poller that takes the completion gives the number back, without asking us, before its index moves past
// it: a search that begins behind the completion fails to mark the receive by a swap, so that a receive is
// completed once whoever wins. Those whose claims are looked at here make no more.
void dock_rq_flush_claims(struct dock_qp *qp, dock_who who)
{
    struct dock_rqview *v = &qp->rq->view;
    struct dock_cqview *cq = &qp->recv_cq->view;
    bool inherited;
    uint32_t ci = dock_word_lock(&v->rec->ci, &qp->dev->waiter, &inherited);
    uint64_t mark;

    for (uint32_t n = 0; n < v->size; n++) {
        if (!claimed(qp, who, n, ci, &mark) || completed_held(cq, &qp->dev->waiter, qp->number, n) ||
            !dock_rq_tell(qp->rq, n, mark))
            continue;
        dock_set64(&v->claims[n], 0); // who kept it for his next message finds it gone
        flush_one(qp, n);
    }
    dock_word_unlock(&v->rec->ci, &qp->dev->waiter, ci);
}

void dock_rq_forget_claims(struct dock_qp *qp)
{
    struct dock_rqview *v = &qp->rq->view;
    bool inherited;
    uint32_t ci = dock_word_lock(&v->rec->ci, &qp->dev->waiter, &inherited);
    uint64_t id, mark;

    for (uint32_t n = 0; n < v->size; n++) {
        if (!claimed(qp, 0, n, ci, &mark))
            continue;
        dock_set64(&v->claims[n], 0);
        dock_rq_return(qp->rq, n, &id);
    }
    dock_word_unlock(&v->rec->ci, &qp->dev->waiter, ci);
}

void dock_rq_flush(struct dock_qp *qp)
{
    struct dock_rqview *v = &qp->rq->view;
    uint32_t receive, left;

    dock_rq_flush_claims(qp, 0);
    if (qp->rq->shared) {
        if (dock_swap32(&qp->last_wqe_told, 1) == 0)
            dock_qp_raise(qp, DOCK_EVENT_QP_LAST_WQE);
        return;
    }
    while (dock_rq_take(v, &qp->dev->waiter, 0, &receive, &left) == 0)
        flush_one(qp, receive);
}

// The token is held until the receives are flushed: a program that has seen the failure and resets the queue
// waits for it, so that nothing of the queue's next life is flushed.
static void flush_held(struct dock_qp *qp)
{
    dock_quiesce(qp->dev, &qp->sq); // who is placing a message has completed its receive when this returns
    dock_rq_flush(qp);
}

static void error_held(struct dock_qp *qp)
{
    dock_publish32(&qp->rec->state, DOCK_ERR); // pairs with answers() of the peers
    dock_port_moment(qp->dev->port, DOCK_AT_STATE, qp->number, DOCK_ERR);
    flush_held(qp);
    dock_fence_full(); // pairs with dock_post_keep: what was kept is seen here, or is rung for there
    dock_sq_raise(&qp->sq.post);
    dock_mark_owe(qp, DOCK_ST_FLUSH_DONE); // receives that were taken have completed: told behind the sends
}

void dock_qp_error(struct dock_qp *qp)
{
    dock_sq_hold(&qp->sq);
    if (dock_peek32(&qp->rec->state) != DOCK_GONE)
        error_held(qp);
    dock_sq_release(&qp->sq); // rings: the send side is flushed
}

// What a peer, or our engine, found.
static const char *cause_name(uint32_t why)
{
    return why & DOCK_ATTN_ACCESS    ? "a peer asked for memory that it may not reach"
           : why & DOCK_ATTN_REQUEST ? "a peer sent a request that is not allowed here"
           : why & DOCK_ATTN_LOCAL   ? "a receive of it, or its CQ, failed"
                                     : "a request of it failed";
}

uint32_t dock_qp_error_for(struct dock_qp *qp, uint32_t causes)
{
    dock_sq_hold(&qp->sq);
    // RESET forgets them under the token: what is found here was meant for this life of the queue. Pairs with
    // the release of whoever set them.
    uint32_t why = atomic_fetch_and_explicit(&qp->rec->attention, ~causes, memory_order_acq_rel) & causes;
    uint32_t state = dock_peek32(&qp->rec->state);
    if (why && state != DOCK_GONE && state != DOCK_RESET) {
        if (state != DOCK_ERR)
            dock_info("queue %u is in error: %s", qp->number, cause_name(why));
        error_held(qp);
    }
    if (state == DOCK_ERR || state == DOCK_RESET || state == DOCK_GONE) // it had failed before, or does not
        why &= ~DOCK_ATTN_LOCAL;
    dock_sq_release(&qp->sq);
    return why;
}

void dock_rq_posted_late(struct dock_qp *qp)
{
    dock_sq_hold(&qp->sq);
    if (dock_peek32(&qp->rec->state) == DOCK_ERR)
        flush_held(qp);
    dock_sq_release(&qp->sq);
}

void dock_cq_overrun(struct dock_cq *cq)
{
    struct dock_event e = {.kind = DOCK_EVENT_CQ_ERR, .user = cq->user, .object = cq};

    if (dock_peek32(&cq->overrun_told) || dock_swap32(&cq->overrun_told, 1))
        return;
    dock_error("CQ %u overrun: %u completions fit and none was polled in time; %s", cq->id, cq->view.depth,
               cq->view.flags & DOCK_CQ_LOSES ? "what came is lost" : "the CQ is unusable");
    dock_event_raise(cq->dev, cq->events, &e, &cq->events_got);
    dock_up_attention(dock_peer_self(cq->dev)); // the engine takes its queues to their error state
}
