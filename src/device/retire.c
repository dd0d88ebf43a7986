// SPDX-License-Identifier: MIT
// Completions of a send queue in queue order. Success of an unsignaled WR makes no CQE, failure always makes
// one, and after the first failure the rest is flushed.
#include <stdlib.h>

#include "base/clock.h"
#include "device/internal.h"

// Written where it lies: what no consumer of a send's completion looks at keeps what it held.
static void fill(const struct dock_sq *sq, struct dock_cqe *e, uint32_t bytes, uint32_t last_block,
                 uint32_t target)
{
    const struct dock_qp *qp = sq->qp;
    uint64_t id = 0;

    if (__builtin_expect(sq->post.free_early, 0))
        id = sq->post.wrid[last_block & sq->post.mask];
    e->idx_local = (last_block & 0xffff) | qp->number << 16;
    e->local_remote = (qp->number >> 16 & 0xf) | (target & DOCK_ID_MASK) << 4;
    e->tpn = target;
    e->bytes = bytes;
    memcpy(e->cookie, &qp->attr.cookie, sizeof e->cookie);
    memcpy(e->data, &id, sizeof e->data);
    e->seq = sq->retired;
}

void dock_sq_publish(struct dock_sq *sq, uint32_t dw0, uint32_t bytes, uint32_t last_block, uint32_t target)
{
    struct dock_qp *qp = sq->qp;
    struct dock_cq *cq = qp->send_cq;
    const struct dock_waiter *w = &cq->dev->waiter;
    struct dock_cqe *e;
    uint32_t tail;
    bool first;
    int err = dock_cq_open(&cq->view, w, &e, &tail, &first);

    if (__builtin_expect(err, 0)) {
        err = dock_cq_denied(cq, err, first);
    } else {
        fill(sq, e, bytes, last_block, target);
        dock_cq_commit(&cq->view, w, tail, dock_qp_cqe_flags(qp) | dw0);
        if (dock_cq_fires(&cq->view, dw0 >> 16))
            dock_cq_deliver(cq);
    }
    if (__builtin_expect(err, 0))
        dock_qp_fail(qp, DOCK_ST_LOC_QP_OP); // its CQ was overrun: nothing more can be told
    else
        dock_count64(&sq->rec->cqes, 1);
    dock_probe(DOCK_AT_COMPLETE, qp->number, sq->retired);
}

// Does the queue go on after a request of it failed? A ring that cannot be trusted stops it in any case.
static bool outlives(const struct dock_qp *qp, uint32_t status)
{
    return qp->attr.on_error == DOCK_ON_ERROR_CONTINUE && status != DOCK_ST_LOC_QP_OP;
}

void dock_sq_retire(struct dock_sq *sq, const struct dock_outcome *o)
{
    if (__builtin_expect(o->status, 0) && o->status != DOCK_ST_FLUSH && !outlives(sq->qp, o->status))
        dock_qp_fail(sq->qp, o->status);
    if (o->flags & DOCK_F_COMPLETE || o->status)
        // an unknown opcode must not show as DOCK_CQE_SKIP
        dock_sq_publish(sq, (o->op & 0x7fu) << 8 | (o->status & 0xff) << 16 | o->status >> 8 << 24, o->bytes,
                        o->last_block, o->target);
    sq->retired++;
    if (__builtin_expect(sq->post.free_early, 0)) // pairs with dock_slot_room
        dock_publish64(&sq->post.freed, (uint64_t)sq->retired << 32 | (o->last_block + 1));
}

bool dock_sq_flights_open(struct dock_sq *sq)
{
    return sq->seq - sq->retired < sq->flights;
}

void dock_sq_park(struct dock_sq *sq, const struct dock_outcome *o, bool finished)
{
    struct dock_flight *f = &sq->flight[(sq->seq - 1) & (sq->flights - 1)];

    f->flags = o->flags;
    f->op = o->op;
    f->last_block = o->last_block;
    f->target = o->target;
    if (finished) {
        f->status = o->status;
        f->bytes = o->bytes;
        dock_set32(&f->finished, 1); // only the token's holder looks, and that is us
    }
}

static bool in_error(const struct dock_sq *sq)
{
    uint32_t state = dock_peek32(&sq->rec->state); // our own queue: changed under the token we hold

    return state == DOCK_ERR || state == DOCK_SQE;
}

void dock_sq_reap(struct dock_sq *sq)
{
    while (sq->retired != sq->seq) {
        struct dock_flight *f = &sq->flight[sq->retired & (sq->flights - 1)];
        if (!dock_acquire32(&f->finished) && DOCK_RULE_FINISH) // pairs with dock_up_finish
            return;
        struct dock_outcome o = {.status = f->status,
                                 .bytes = f->bytes,
                                 .last_block = f->last_block,
                                 .target = f->target,
                                 .flags = f->flags,
                                 .op = f->op};
        // What was in flight when the queue failed may have been executed or have failed, too, but its place
        // is behind the failure.
        if (DOCK_RULE_FLUSH && in_error(sq))
            o.status = DOCK_ST_FLUSH;
        dock_set32(&f->finished, 0);
        dock_sq_retire(sq, &o);
    }
}

void dock_up_finish(void *queue, uint32_t seq, uint32_t status, uint32_t bytes)
{
    struct dock_sq *sq = queue;
    struct dock_flight *f = &sq->flight[seq & (sq->flights - 1)];

    f->status = status;
    f->bytes = bytes;
    dock_probe(DOCK_AT_EXECUTE, sq->qp->number, seq);
    if (f->read) // pairs with reads_in_flight in execute.c: its result stands
        atomic_fetch_add_explicit(&sq->reads_over, 1, memory_order_release);
    // Destroy waits for the last WR in flight only: the pin, seen with the publish, keeps the queue for the
    // ring.
    atomic_fetch_add_explicit(&sq->qp->pins, 1, memory_order_relaxed);
    dock_publish32(&f->finished, 1); // pairs with dock_sq_reap
    dock_sq_ring(sq, DOCK_BY_ENGINE);
    atomic_fetch_sub_explicit(&sq->qp->pins, 1, memory_order_release); // pairs with wait_unpinned in qp.c
}

void dock_sq_land(struct dock_sq *sq)
{
    while (sq->flight && sq->retired != sq->seq) {
        dock_sq_reap(sq);
        dock_nap(50000);
    }
}
