// SPDX-License-Identifier: MIT
// From a CQE to a completion, and the slots that it covers to their poster. What the ring says is bounded
// before it is used: it stands in memory that peers can write.
#include <errno.h>

#include "device/internal.h"
#include "device/profile.h"

// Two looks at the index: an entry whose owner bit tells of another pass of the ring was written after its
// poller had moved the index, and the second look finds that. Pairs with dock_cq_commit and dock_cq_end. What
// was resized once is looked at under the lock.
bool dock_cq_idle(const struct dock_cq *cq)
{
    const struct dock_cqe *ring = (const struct dock_cqe *)(uintptr_t)dock_acquire64(&cq->look);
    uint32_t ci = dock_acquire32(&cq->ci), dw0;

    if (__builtin_expect(!ring, 0))
        return false;
    dw0 = atomic_load_explicit(&ring[ci & cq->look_mask].dw0, memory_order_acquire);
    return (dw0 & DOCK_CQE_OWNER) != dock_cqe_owner(ci, cq->look_shift) && dock_peek32(&cq->ci) == ci &&
           dock_peek64(&cq->look) && !dock_peek64(&cq->dev->ready_head) &&
           (!dock_peek32(&cq->rec->overrun) || cq->view.flags & DOCK_CQ_LOSES);
}

void dock_cq_begin(struct dock_cq *cq)
{
    if (!cq->lock_free)
        dock_spin_lock(&cq->lock);
}

void dock_cq_end(struct dock_cq *cq)
{
    struct dock_cqrec *rec = cq->rec;
    uint32_t ci = dock_peek32(&cq->ci), polled = ci - dock_peek32(&rec->ci);

    if (polled) {
        dock_count64(&rec->polled, polled);
        dock_set64(&rec->freed, cq->freed);
        dock_publish32(&rec->ci, ci); // pairs with has_room in ring/cqring.c
    }
    if (!cq->lock_free)
        dock_spin_unlock(&cq->lock);
}

static int __attribute__((noinline, cold)) corrupt(struct dock_qp *qp, const char *what)
{
    dock_error("queue %u: a completion does not fit what is outstanding (%s): the queue is in error",
               qp->number, what);
    atomic_fetch_or_explicit(&qp->rec->attention, DOCK_ATTN_LOCAL,
                             memory_order_release); // pairs with attend()
    dock_up_attention(dock_peer_self(qp->dev));
    return -EBADMSG;
}

// A send completion covers all WRs of its queue up to its own.
static inline int take_send(struct dock_cq *cq, struct dock_qp *qp, const struct dock_cqe *e,
                            struct dock_wc *wc)
{
    struct dock_sq_post *sq = &qp->sq.post;
    if (__builtin_expect(sq->free_early, 0)) {
        memcpy(&wc->id, e->data, sizeof wc->id);
        return 0;
    }

    uint64_t freed = dock_peek64(&sq->freed); // only pollers of this CQ write it, and we hold its lock
    uint32_t blocks = (uint32_t)freed, wrs = (uint32_t)(freed >> 32), seq = e->seq, mask = sq->mask;
    uint32_t ahead = ((e->idx_local & 0xffff) - blocks) & mask, last = blocks + ahead;

    // By our own index: others may write the doorbell, and what was done is told all the same when it went
    // back.
    if (__builtin_expect(!qp->attr.raw && dock_peek32(&sq->pi) - blocks <= ahead, 0))
        return corrupt(qp, "a block that is not posted");
    if (__builtin_expect(seq - wrs >= sq->depth, 0))
        return corrupt(qp, "a WR that is not posted");
    wc->id = sq->wrid[last & mask];
    cq->freed += seq + 1 - wrs;
    dock_publish64(&sq->freed, (uint64_t)(seq + 1) << 32 | (last + 1)); // pairs with dock_slot_room
    dock_probe(DOCK_AT_FREE, qp->number, last + 1);
    return 0;
}

// What few completions have: a status, or something to tell of their sender.
static void __attribute__((noinline)) fill_more(struct dock_wc *wc, const struct dock_cqe *e, uint32_t dw0)
{
    wc->status = wc->vendor_err = dw0 >> 24 << 8 | (dw0 >> 16 & 0xff);
    wc->grh = (e->local_remote & DOCK_CQE_GRH) != 0;
    wc->solicited = (e->local_remote & DOCK_CQE_SOLICITED) != 0;
    wc->told_eid = (e->local_remote & (DOCK_CQE_GRH | DOCK_CQE_EID)) != 0;
    if (wc->told_eid)
        dock_eid_reverse(wc->eid, e->eid);
}

static inline void fill(struct dock_wc *wc, const struct dock_cqe *e, uint32_t dw0)
{
    uint32_t recv = dw0 & DOCK_CQE_RECV, remote = e->local_remote;

    wc->status = wc->vendor_err = 0;
    wc->recv = recv != 0;
    wc->op = (uint8_t)(recv ? dw0 >> 4 & 7 : dw0 >> 8);
    wc->grh = wc->solicited = wc->told_eid = 0;
    wc->bytes = e->bytes;
    memcpy(&wc->imm, e->data, sizeof wc->imm);
    wc->src_qp = remote >> 4 & DOCK_ID_MASK;
    memcpy(&wc->stamp_ns, e->stamp, sizeof wc->stamp_ns);
    if (__builtin_expect(dw0 >> 16 || remote & (DOCK_CQE_GRH | DOCK_CQE_SOLICITED | DOCK_CQE_EID), 0))
        fill_more(wc, e, dw0);
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

// No queue completes here by that name.
static int __attribute__((noinline, cold))
take_stray(const struct dock_cq *cq, const struct dock_cqe *e, uint32_t dw0, struct dock_wc *wc)
{
    uint32_t local = dock_cqe_local(e);

    if (!local && dock_profile()->completions_stay && dock_cqe_is_orphan(e))
        return take_orphan(e, dw0, wc);
    dock_error("CQ %u: a completion of queue %u, which does not complete here: dropped", cq->id, local);
    return 0;
}

static int __attribute__((noinline, cold)) take_mark(struct dock_qp *qp, struct dock_wc *wc)
{
    wc->id = 0;
    wc->op = 0xff;
    dock_publish32(&qp->mark_polled, 1); // pairs with dock_qp_flush
    return 1;
}

static inline int take_recv(struct dock_qp *qp, const struct dock_cqe *e, struct dock_wc *wc)
{
    if (__builtin_expect(qp->attr.xrc == DOCK_XRC_SRQ, 0))
        wc->qp_num = e->tpn; // the target that it came to
    if (__builtin_expect(dock_rq_return(qp->rq, e->idx_local & 0xffff, &wc->id), 0))
        return corrupt(qp, "a receive that is not posted");
    return 0;
}

// One entry. true: *wc filled; false: passed over.
static inline bool take(struct dock_cq *cq, const struct dock_cqe *e, uint32_t dw0, struct dock_wc *wc)
{
    bool recv = dw0 & DOCK_CQE_RECV;
    struct dock_qp *qp;

    // Its queue may be going: who destroys it gives the number back without this lock.
    if (__builtin_expect(dw0 & DOCK_CQE_SKIP, 0))
        return false;
    qp = dock_id_pair(cq->dev, dock_cqe_local(e));
    if (__builtin_expect(!qp || (recv ? qp->recv_cq : qp->send_cq) != cq, 0))
        return take_stray(cq, e, dw0, wc);
    fill(wc, e, dw0);
    wc->qp_num = qp->number;
    wc->qp = qp;
    if (__builtin_expect(dw0 >> 24 == DOCK_ST_FLUSH_DONE >> 8, 0) &&
        (wc->status == DOCK_ST_FLUSH_DONE || wc->status == DOCK_ST_SUSPEND_DONE))
        return take_mark(qp, wc);
    return (recv ? take_recv(qp, e, wc) : take_send(cq, qp, e, wc)) == 0;
}

// After an overrun that was asked for: the oldest is taken out before it can be overwritten, or passed over.
static bool take_newest(struct dock_cq *cq, struct dock_wc *wc)
{
    for (uint32_t dw0;;) {
        uint32_t ci = dock_cq_oldest(&cq->view, dock_peek32(&cq->ci));
        dock_set32(&cq->ci, ci);
        const struct dock_cqe *e = dock_cq_look(&cq->view, ci, &dw0);
        if (!e)
            return false;
        struct dock_cqe copy = *e;
        dock_fence_load(); // pairs with the unlock in dock_cq_commit: whoever overwrites has moved the tail
        if (dock_cq_oldest(&cq->view, ci) != ci)
            continue;
        dock_set32(&cq->ci, ci + 1);
        if (take(cq, &copy, dw0, wc))
            return true;
    }
}

static bool take_next(struct dock_cq *cq, struct dock_wc *wc)
{
    uint32_t ci = dock_peek32(&cq->ci), dw0;
    const struct dock_cqe *e;
    bool got = false;

    if (cq->view.flags & DOCK_CQ_OVERWRITE)
        return take_newest(cq, wc);
    while (!got && (e = dock_cq_look(&cq->view, ci, &dw0))) {
        got = take(cq, e, dw0, wc);
        dock_set32(&cq->ci, ++ci);
    }
    return got;
}

// Nothing to be handed out. The CQ may be unusable.
static int nothing(const struct dock_cq *cq)
{
    return dock_peek32(&cq->rec->overrun) && !(cq->view.flags & DOCK_CQ_LOSES) ? -EOVERFLOW : 0;
}

// The next one is none to be handed out, or is not there: then one budget of waiting work is done, and there
// is one more look.
static int __attribute__((noinline)) next_odd(struct dock_cq *cq, struct dock_wc *wc)
{
    int err;

    if (!take_next(cq, wc)) {
        err = nothing(cq);
        if (err || !dock_ready_run(cq->dev, DOCK_BY_POLLER))
            return err;
        if (!take_next(cq, wc))
            return nothing(cq);
    }
    dock_probe(DOCK_AT_POLL, cq->id, dock_peek32(&cq->ci) - 1);
    return 1;
}

int dock_cq_next(struct dock_cq *cq, struct dock_wc *wc)
{
    uint32_t ci = dock_peek32(&cq->ci), dw0;
    const struct dock_cqe *e = dock_cq_look(&cq->view, ci, &dw0);

    if (__builtin_expect(!e || cq->view.flags & DOCK_CQ_OVERWRITE, 0))
        return next_odd(cq, wc);
    bool got = take(cq, e, dw0, wc);
    dock_set32(&cq->ci, ci + 1);
    if (__builtin_expect(!got, 0))
        return next_odd(cq, wc);
    dock_probe(DOCK_AT_POLL, cq->id, ci);
    return 1;
}
