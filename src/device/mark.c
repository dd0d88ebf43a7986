// SPDX-License-Identifier: MIT
// URMA tells that a queue has come to rest, in ERR or SUSPENDED, by a completion of no request, and lets the
// program take out what was never begun.
#include "device/internal.h"

void dock_mark_owe(struct dock_qp *qp, uint32_t status)
{
    if (!dock_qp_urma(&qp->attr) || qp->attr.role == DOCK_RECEIVES)
        return;
    if (status == DOCK_ST_FLUSH_DONE) {
        if (qp->flush_marked) // once an arrival
            return;
        qp->flush_marked = true;
    }
    qp->sq.mark = status;
    dock_set32(&qp->mark_polled, 0); // of an earlier rest; the poller of this one's mark comes after the CQE
}

void dock_mark_forget(struct dock_qp *qp)
{
    qp->sq.mark = 0;
    qp->flush_marked = false;
    dock_set32(&qp->mark_polled, 0);
}

void dock_mark_tell(struct dock_sq *sq)
{
    struct dock_qp *qp = sq->qp;
    struct dock_cqe e = {
        .idx_local = qp->number << 16,
        .local_remote = qp->number >> 16 & 0xf,
        .cookie = {(uint32_t)qp->attr.cookie, (uint32_t)(qp->attr.cookie >> 32)},
    };
    uint32_t status = sq->mark;

    if (!status || sq->retired != sq->seq)
        return;
    sq->mark = 0;
    dock_set32(&e.dw0, dock_qp_cqe_flags(qp) | (status == DOCK_ST_FLUSH_DONE ? DOCK_CQE_FD : 0) |
                           (status & 0xff) << 16 | status >> 8 << 24);
    dock_cq_put(qp->send_cq, &e, true);
}

// The oldest request that was never begun, out of the ring. Its slots are free at once: no completion will
// cover them.
static void take_out(struct dock_sq *sq, uint32_t pi, struct dock_wc *wc)
{
    struct dock_qp *qp = sq->qp;
    unsigned blocks;

    dock_sq_fetch(sq, pi, &blocks);
    sq->exec += blocks;
    sq->seq++;
    sq->retired++;
    sq->pieces--;
    memset(wc, 0, sizeof *wc);
    wc->id = sq->post.wrid[(sq->exec - 1) & sq->post.mask];
    wc->status = DOCK_ST_FLUSH;
    wc->op = 0xff;
    wc->bytes = sq->x.len;
    wc->qp_num = qp->number;
    wc->src_qp = sq->x.target;
    wc->qp = qp;
    dock_publish64(&sq->post.freed, (uint64_t)sq->seq << 32 | sq->exec); // pairs with dock_slot_room
}

int dock_qp_flush(struct dock_qp *qp, unsigned n, struct dock_wc *out)
{
    struct dock_sq *sq = &qp->sq;
    unsigned got = 0;

    if (!dock_acquire32(&qp->mark_polled)) // pairs with the publish in poll.c
        return 0;
    dock_sq_hold(sq);
    dock_spin_lock(&qp->send_cq->lock); // with the pollers, who free slots too; behind the token, as in RESET
    uint32_t pi = dock_sq_rung(sq), state = dock_peek32(&sq->rec->state);
    // What the mark says is done: from here on nothing of this queue is in its CQ.
    if (state == DOCK_SUSPENDED && !sq->mid && sq->retired == sq->seq)
        while (got < n && sq->exec != pi)
            take_out(sq, pi, &out[got++]);
    dock_spin_unlock(&qp->send_cq->lock);
    dock_sq_release(sq);
    return (int)got;
}
