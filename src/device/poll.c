// SPDX-License-Identifier: MIT
// From a CQE to a completion, and the slots that it covers to their poster. What the ring says is bounded
// before it is used: it stands in memory that peers can write.
#include <errno.h>

#include "device/internal.h"
#include "device/profile.h"

void dock_cq_begin(struct dock_cq *cq)
{
    if (!cq->lock_free)
        dock_spin_lock(&cq->lock);
}

void dock_cq_end(struct dock_cq *cq)
{
    uint32_t polled = cq->ci - dock_peek32(&cq->rec->ci);

    if (polled) {
        dock_count64(&cq->rec->polled, polled);
        dock_set64(&cq->rec->freed, cq->freed);
        dock_publish32(&cq->rec->ci, cq->ci); // pairs with has_room in ring/cqring.c
    }
    if (!cq->lock_free)
        dock_spin_unlock(&cq->lock);
}

static int corrupt(struct dock_qp *qp, const char *what)
{
    dock_error("queue %u: a completion does not fit what is outstanding (%s): the queue is in error",
               qp->number, what);
    atomic_fetch_or_explicit(&qp->rec->attention, DOCK_ATTN_LOCAL,
                             memory_order_release); // pairs with attend()
    dock_publish32(&qp->dev->port->attention, 1);
    dock_up_bell(dock_peer_self(qp->dev));
    return -EBADMSG;
}

// A send completion covers all WRs of its queue up to its own.
static int take_send(struct dock_qp *qp, const struct dock_cqe *e, struct dock_wc *wc)
{
    struct dock_sq_post *sq = &qp->sq.post;
    if (__builtin_expect(sq->free_early, 0)) {
        memcpy(&wc->id, e->data, sizeof wc->id);
        return 0;
    }

    uint64_t freed = dock_peek64(&sq->freed); // only pollers of this CQ write it, and we hold its lock
    uint32_t blocks = (uint32_t)freed, wrs = (uint32_t)(freed >> 32);
    uint32_t last = blocks + (((e->idx_local & 0xffff) - blocks) & sq->mask);

    // By our own index: others may write the doorbell, and what was done is told all the same when it went
    // back.
    if (!qp->attr.raw && dock_peek32(&sq->pi) - blocks <= last - blocks)
        return corrupt(qp, "a block that is not posted");
    if (e->seq - wrs >= sq->depth)
        return corrupt(qp, "a WR that is not posted");
    wc->id = sq->wrid[last & sq->mask];
    qp->send_cq->freed += e->seq + 1 - wrs;
    dock_publish64(&sq->freed, (uint64_t)(e->seq + 1) << 32 | (last + 1)); // pairs with has_room in post.c
    dock_probe(DOCK_AT_FREE, qp->number, last + 1);
    return 0;
}

static void fill(struct dock_wc *wc, const struct dock_cqe *e, uint32_t dw0)
{
    wc->status = dw0 >> 24 << 8 | (dw0 >> 16 & 0xff);
    wc->vendor_err = wc->status;
    wc->recv = dw0 & DOCK_CQE_RECV;
    wc->op = (uint8_t)(wc->recv ? dw0 >> 4 & 7 : dw0 >> 8);
    wc->grh = (e->local_remote & DOCK_CQE_GRH) != 0;
    wc->solicited = (e->local_remote & DOCK_CQE_SOLICITED) != 0;
    wc->bytes = e->bytes;
    wc->imm = (uint64_t)e->data[1] << 32 | e->data[0];
    wc->src_qp = e->local_remote >> 4 & DOCK_ID_MASK;
    wc->stamp_ns = (uint64_t)e->stamp[1] << 32 | e->stamp[0];
    wc->told_eid = (e->local_remote & (DOCK_CQE_GRH | DOCK_CQE_EID)) != 0;
    if (__builtin_expect(wc->told_eid, 0))
        for (unsigned i = 0; i < 16; i++) // the format has the address bytes reversed
            wc->eid[i] = ((const uint8_t *)e->eid)[15 - i];
}

// Of a queue that is no more: nothing is given back to it.
static int __attribute__((noinline, cold))
take_orphan(const struct dock_cqe *e, uint32_t dw0, struct dock_wc *wc)
{
    fill(wc, e, dw0);
    wc->id = dock_orphan_id(e);
    wc->qp_num = e->seq;
    wc->qp = NULL;
    return 1;
}

// One entry. 1: *wc filled; 0: passed over.
static int take(struct dock_cq *cq, const struct dock_cqe *e, uint32_t dw0, struct dock_wc *wc)
{
    uint32_t local = dock_cqe_local(e);
    struct dock_qp *qp;

    // Its queue may be going: who destroys it gives the number back without this lock.
    if (dw0 & DOCK_CQE_SKIP)
        return 0;
    qp = dock_id_pair(cq->dev, local);
    if (__builtin_expect(!local && dock_profile()->completions_stay && dock_cqe_is_orphan(e), 0))
        return take_orphan(e, dw0, wc);
    if (!qp || (dw0 & DOCK_CQE_RECV ? qp->recv_cq : qp->send_cq) != cq) {
        dock_error("CQ %u: a completion of queue %u, which does not complete here: dropped", cq->id, local);
        return 0;
    }
    fill(wc, e, dw0);
    wc->qp_num = qp->attr.xrc == DOCK_XRC_SRQ ? e->tpn : qp->number; // the target that it came to
    wc->qp = qp;
    if (__builtin_expect(wc->status == DOCK_ST_FLUSH_DONE || wc->status == DOCK_ST_SUSPEND_DONE, 0)) {
        wc->id = 0;
        wc->op = 0xff;
        dock_publish32(&qp->mark_polled, 1); // pairs with dock_qp_flush
        return 1;
    }
    if (!wc->recv)
        return take_send(qp, e, wc) == 0;
    if (dock_rq_return(qp->rq, e->idx_local & 0xffff, &wc->id) == 0)
        return 1;
    corrupt(qp, "a receive that is not posted");
    return 0;
}

// After an overrun that was asked for: the oldest is taken out before it can be overwritten, or passed over.
static int __attribute__((noinline)) take_newest(struct dock_cq *cq, struct dock_wc *wc)
{
    for (uint32_t dw0;;) {
        cq->ci = dock_cq_oldest(&cq->view, cq->ci);
        const struct dock_cqe *e = dock_cq_look(&cq->view, cq->ci, &dw0);
        if (!e)
            return 0;
        struct dock_cqe copy = *e;
        dock_fence_load(); // pairs with the unlock in dock_cq_produce: whoever overwrites has moved the tail
        if (dock_cq_oldest(&cq->view, cq->ci) == cq->ci && (++cq->ci, take(cq, &copy, dw0, wc)))
            return 1;
    }
}

int dock_cq_next(struct dock_cq *cq, struct dock_wc *wc)
{
    bool helped = false;

    for (;;) {
        uint32_t dw0 = 0;
        bool newest = cq->view.flags & DOCK_CQ_OVERWRITE;
        if (__builtin_expect(newest, 0) && take_newest(cq, wc))
            return 1;
        const struct dock_cqe *e = newest ? NULL : dock_cq_look(&cq->view, cq->ci, &dw0);
        if (__builtin_expect(!e, 0)) {
            if (dock_peek32(&cq->rec->overrun) && !(cq->view.flags & DOCK_CQ_LOSES))
                return -EOVERFLOW;
            if (helped || !dock_ready_run(cq->dev, DOCK_BY_POLLER))
                return 0;
            helped = true; // nothing to poll: one budget of waiting work, and one more look
            continue;
        }
        int got = take(cq, e, dw0, wc);
        cq->ci++;
        if (__builtin_expect(got, 1)) {
            dock_probe(DOCK_AT_POLL, cq->id, cq->ci - 1);
            return 1;
        }
    }
}
