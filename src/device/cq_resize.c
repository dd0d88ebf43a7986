// SPDX-License-Identifier: MIT
// A CQ gets another ring while others complete into it: they find it by the epoch of its record.
#include <errno.h>

#include "device/internal.h"

// Who drives a queue by its addresses has the old ring's.
static bool known_by_address(const struct dock_cq *cq)
{
    for (const struct dock_qp *qp = cq->dev->qps; qp; qp = qp->next)
        if (qp->attr.raw && (qp->send_cq == cq || qp->recv_cq == cq))
            return true;
    return false;
}

// The CQ's lock and the device's are held: nobody polls, and who looks for lost wake-ups waits.
static int move(struct dock_cq *cq, uint32_t depth)
{
    struct dock_arena *a = &cq->dev->arena;
    uint32_t size = dock_cq_ring_size(depth, cq->view.flags & DOCK_CQ_OVERWRITE);
    uint64_t off, bytes = (uint64_t)size * sizeof(struct dock_cqe);
    uint32_t ci = dock_peek32(&cq->ci);
    uint64_t look = dock_peek64(&cq->look);
    int err = dock_arena_alloc(a, bytes, 64, &off);

    if (err)
        return err;
    dock_set64(&cq->look, 0); // before the ring moves: who looks without the lock looks here again
    err = dock_cqring_move(&cq->view, &cq->dev->waiter, dock_arena_at(a, off), off, size, depth, &ci);
    if (err) { // nothing has moved
        dock_set64(&cq->look, look);
        dock_arena_free(a, off, bytes);
        return err;
    }
    dock_set32(&cq->ci, ci);
    if (cq->ring_bytes)
        dock_arena_free(a, cq->ring_off, cq->ring_bytes);
    cq->ring_off = off;
    cq->ring_bytes = bytes;
    return 0;
}

int dock_cq_resize(struct dock_cq *cq, uint32_t depth)
{
    struct dock_dev *dev = cq->dev;
    int err;

    if (depth == 0 || depth > dev->limits.max_cqe)
        return dock_refuse(-EINVAL, "a CQ of %u entries, 1 to %u are possible", depth, dev->limits.max_cqe);
    dock_spin_lock(&cq->lock); // also of one that is polled without it: dock_cq_forget takes it always
    dock_lock(&dev->lock);
    err = known_by_address(cq) ? -EINVAL : move(cq, depth);
    dock_unlock(&dev->lock);
    dock_spin_unlock(&cq->lock);
    if (err == -EINVAL)
        return dock_refuse(err, "CQ %u is driven by its address: it stays where it is", cq->id);
    if (err == -EBUSY)
        return dock_refuse(err, "CQ %u holds more than %u completions", cq->id, depth);
    return err;
}
