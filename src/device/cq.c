// SPDX-License-Identifier: MIT
// Completion queues: creation, arming, the removal of a dead queue's completions.
#include <errno.h>
#include <stdlib.h>

#include "device/internal.h"
#include "device/profile.h"

// One that may be overrun has room for the entry that is being written beside `depth` whole ones.
uint32_t dock_cq_ring_size(uint32_t depth, bool ignore_overrun)
{
    return dock_power_of_two(depth + ignore_overrun);
}

static uint64_t ring_bytes(uint32_t size)
{
    return (uint64_t)size * sizeof(struct dock_cqe);
}

uint64_t dock_cq_ring_bytes(uint32_t depth)
{
    return ring_bytes(dock_cq_ring_size(depth, false));
}

static uint32_t flags_of(const struct dock_cq_attr *attr)
{
    return (attr->ignore_overrun            ? DOCK_CQ_OVERWRITE
            : dock_profile()->overrun_loses ? DOCK_CQ_LOSES
                                            : 0) |
           (attr->stamps ? DOCK_CQ_STAMPS : 0);
}

static int allocate(struct dock_cq *cq, const struct dock_cq_attr *attr)
{
    struct dock_arena *a = &cq->dev->arena;
    uint32_t size = dock_cq_ring_size(attr->depth, attr->ignore_overrun), start = cq->dev->start_index;
    uint64_t bytes = sizeof *cq->rec + (attr->ring ? 0 : ring_bytes(size)), off;
    int err = dock_arena_alloc(a, bytes, 64, &cq->rec_off);
    struct dock_cqe *ring;

    if (err)
        return err;
    cq->own_bytes = bytes;
    cq->rec = dock_arena_at(a, cq->rec_off);
    off = attr->ring ? attr->ring : cq->rec_off + sizeof *cq->rec;
    ring = dock_view_at(&a->view, off, ring_bytes(size));
    if (!ring)
        return dock_refuse(-EINVAL, "a ring of %u completions at %#llx of the arena", size,
                           (unsigned long long)off);
    if (attr->ring)
        memset(ring, 0, ring_bytes(size)); // what is allocated is clear
    dock_cqring_format(cq->rec, ring, off, size, attr->depth, cq->id, flags_of(attr), start);
    dock_set32(&cq->ci, start);
    err = dock_cqview_open(&a->view, cq->rec_off, &cq->view);
    if (err)
        return err;
    cq->look_mask = size - 1;
    cq->look_shift = cq->view.shift;
    dock_set64(&cq->look, cq->view.flags & DOCK_CQ_OVERWRITE ? 0 : (uintptr_t)cq->view.ring);
    return 0;
}

static void enlist(struct dock_dev *dev, struct dock_cq *cq)
{
    dock_lock(&dev->lock);
    cq->next = dev->cqs;
    if (cq->next)
        cq->next->prev = cq;
    dev->cqs = cq;
    atomic_fetch_add_explicit(&dev->port->ncqs, 1, memory_order_relaxed);
    dock_unlock(&dev->lock);
}

static void delist(struct dock_dev *dev, struct dock_cq *cq)
{
    dock_lock(&dev->lock);
    if (cq->prev)
        cq->prev->next = cq->next;
    else
        dev->cqs = cq->next;
    if (cq->next)
        cq->next->prev = cq->prev;
    atomic_fetch_sub_explicit(&dev->port->ncqs, 1, memory_order_relaxed);
    dock_unlock(&dev->lock);
}

int dock_cq_create(struct dock_dev *dev, const struct dock_cq_attr *attr, struct dock_cq **out)
{
    struct dock_cq *cq;
    int err;

    if (attr->depth == 0 || attr->depth > dev->limits.max_cqe)
        return dock_refuse(-EINVAL, "a CQ of %u entries, 1 to %u are possible", attr->depth,
                           dev->limits.max_cqe);
    err = dock_count_up(dev, &dev->n_cq, dev->limits.max_cq, "completion queues");
    if (err)
        return err;
    cq = aligned_alloc(64, (sizeof *cq + 63) & ~63ul);
    err = cq ? 0 : dock_no_memory("a completion queue");
    if (err)
        goto no_cq;
    memset(cq, 0, sizeof *cq);
    cq->dev = dev;
    cq->chan = attr->chan;
    cq->user = attr->user;
    cq->lock_free = attr->lock_free;
    err = dock_id_take(dev, dock_id_other(cq), attr->number, &cq->id);
    if (err)
        goto no_id;
    err = allocate(cq, attr);
    if (err)
        goto no_ring;
    if (cq->chan)
        dock_chan_join(cq->chan);
    enlist(dev, cq);
    *out = cq;
    return 0;
no_ring:
    if (cq->rec)
        dock_arena_free(&dev->arena, cq->rec_off, cq->own_bytes);
    dock_id_give(dev, cq->id);
no_id:
    free(cq);
no_cq:
    dock_count_down(dev, &dev->n_cq);
    return err;
}

int dock_cq_destroy(struct dock_cq *cq)
{
    struct dock_dev *dev = cq->dev;

    if (dock_acquire32(&cq->users)) // pairs with the drop in qp.c
        return dock_refuse(-EBUSY, "CQ %u is still used by queues", cq->id);
    delist(dev, cq);
    if (dock_peek64(&cq->held_ns))
        atomic_fetch_sub_explicit(&dev->held_events, 1, memory_order_relaxed);
    if (cq->chan)
        dock_chan_leave(cq->chan, cq);
    dock_events_forget(cq->events, cq, &cq->events_got);
    dock_id_give(dev, cq->id);
    dock_arena_free(&dev->arena, cq->rec_off, cq->own_bytes);
    if (cq->ring_bytes)
        dock_arena_free(&dev->arena, cq->ring_off, cq->ring_bytes);
    dock_count_down(dev, &dev->n_cq);
    free(cq);
    return 0;
}

uint32_t dock_cq_depth(const struct dock_cq *cq)
{
    return cq->view.depth;
}

uint32_t dock_cq_number(const struct dock_cq *cq)
{
    return cq->id;
}

#define NOISE 4u // of so many arms of an empty CQ one fires, on a device that is to be noisy

// Does the arm, the n-th, fire by itself? For an old completion where the face says so; a noisy device does
// it for those always, and now and then for none at all: there is one event for an arm either way.
static bool fires_by_itself(struct dock_cq *cq, uint32_t n, bool solicited_only, bool at_once)
{
    bool noisy = cq->dev->noisy;
    uint32_t dw0;

    if (!noisy && !at_once)
        return false;
    if (dock_cq_look(&cq->view, dock_peek32(&cq->rec->ci), &dw0))
        return dock_cq_fires(&cq->view, !solicited_only);
    return noisy && n % NOISE == 0 && dock_cq_fires(&cq->view, true);
}

int dock_cq_arm(struct dock_cq *cq, bool solicited_only, bool at_once)
{
    uint32_t none = DOCK_ARM_NONE, n;

    dock_set32(&cq->asked, 1);                                         // only repair.c looks, long after
    n = atomic_fetch_add_explicit(&cq->arms, 1, memory_order_relaxed); // before `armed`, which a peer fires
    // Once armed for any completion, asking for less does not take it back (man ibv_req_notify_cq), also when
    // two threads ask at the same instant.
    if (solicited_only)
        dock_claim32(&cq->rec->armed, &none, DOCK_ARM_SOLICITED);
    else
        dock_publish32(&cq->rec->armed, DOCK_ARM_ANY);
    dock_fence_heavy(); // pairs with dock_cq_fires: store armed, load CQE | store CQE, load armed
    if (__builtin_expect(fires_by_itself(cq, n, solicited_only, at_once), 0))
        dock_cq_deliver(cq);
    return 0;
}

// What names the request to the program, of a send. Receives have theirs in the queue that they were posted
// to.
static uint64_t name_of(const struct dock_sq_post *sq, const struct dock_cqe *e)
{
    return sq->free_early ? (uint64_t)e->data[1] << 32 | e->data[0]
                          : sq->wrid[e->idx_local & 0xffff & sq->mask];
}

// Does this completion outlive its queue? URMA's cookie is not ours to use, and XRC and raw queues keep no
// names.
static bool stays(const struct dock_qp *qp)
{
    return dock_profile()->completions_stay && !dock_qp_urma(&qp->attr) && !qp->attr.xrc && !qp->attr.raw;
}

// Nobody need poll for what is no more: room for others now, unless a poller goes by without the lock.
static void pass_over(struct dock_cq *cq)
{
    uint32_t ci = dock_peek32(&cq->ci), dw0;

    while (!cq->lock_free && dock_cq_look(&cq->view, ci, &dw0) && dw0 & DOCK_CQE_SKIP)
        dock_set32(&cq->ci, ++ci);
    dock_publish32(&cq->rec->ci, ci); // pairs with has_room in ring/cqring.c
}

void dock_cq_forget(struct dock_cq *cq, struct dock_qp *qp, bool for_good)
{
    bool stay = for_good && stays(qp), overwrite = cq->view.flags & DOCK_CQ_OVERWRITE;
    uint32_t dw0, ci, first, tail = 0;

    dock_spin_lock(&cq->lock);
    if (overwrite) { // whose producers do not wait for us to leave an entry
        tail = dock_cq_hold(&cq->view, &cq->dev->waiter);
        dock_set32(&cq->ci, dock_cq_oldest_of(&cq->view, dock_peek32(&cq->ci), tail));
    }
    first = ci = dock_peek32(&cq->ci);
    for (struct dock_cqe *e; ci - first < cq->view.size && (e = dock_cq_look(&cq->view, ci, &dw0)); ci++) {
        uint64_t id;
        int err = 0;
        if (dock_cqe_local(e) != qp->number || dw0 & DOCK_CQE_SKIP)
            continue;
        if (dw0 & DOCK_CQE_RECV) // of a shared queue: its number goes back to the others
            err = dock_rq_return(qp->rq, e->idx_local & 0xffff, &id);
        else
            id = name_of(&qp->sq.post, e);
        if (stay && !err)
            dock_cqe_orphan(e, id);
        else
            dock_cqe_skip(e, dw0);
    }
    pass_over(cq);
    if (overwrite)
        dock_cq_let_go(&cq->view, &cq->dev->waiter, tail);
    dock_spin_unlock(&cq->lock);
}
