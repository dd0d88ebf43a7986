// SPDX-License-Identifier: MIT
// Queues that others drive, or ring: their doorbells are watched, WQEs stored whole to the doorbell page are
// taken, and what hardware would punish silently is told in words, from memory alone. A queue that only
// others ring (dock_post_keep) has no page, and is watched while something that was kept waits for its ring.
#include <errno.h>

#include "base/clock.h"
#include "device/internal.h"

int dock_raw_open(struct dock_qp *qp, uint32_t blocks)
{
    struct dock_dev *dev = qp->dev;
    int err = dock_arena_alloc(&dev->arena, dock_page_bytes(blocks), 4096, &qp->page_off);

    if (err)
        return err;
    qp->page = dock_arena_at(&dev->arena, qp->page_off);
    qp->sq.post.doorbell = &qp->page->doorbell;
    return 0;
}

void dock_raw_close(struct dock_qp *qp)
{
    if (qp->page)
        dock_arena_free(&qp->dev->arena, qp->page_off, dock_page_bytes(qp->sq.post.mask + 1));
}

void dock_raw_clear(struct dock_qp *qp)
{
    dock_set64(&qp->page->direct[0], DOCK_DIRECT_TAKEN);
    dock_set64(&qp->page->met, 0);
    qp->met_told = false;
}

static bool producers_met(const struct dock_qp *qp)
{
    return qp->page && !qp->met_told && dock_peek64(&qp->page->met);
}

static void name_them(struct dock_qp *qp)
{
    uint64_t met = dock_acquire64(&qp->page->met);

    qp->met_told = true;
    dock_error(
        "queue %u: producers %u and %u both wrote WQE %u and the head moved once: one of the two is lost",
        qp->number, (unsigned)(met >> 16 & 0xffff), (unsigned)(met & 0xffff), (unsigned)(met >> 32));
}

void dock_raw_watch_doorbell(struct dock_qp *qp)
{
    struct dock_dev *dev = qp->dev;
    uint32_t no = 0;

    dock_set32(&qp->kept, 1);
    dock_fence_full(); // pairs with forsaken
    if (dock_peek32(&qp->watched) || !dock_claim32(&qp->watched, &no, 1))
        return;
    dock_lock(&dev->lock);
    qp->raw_next = dev->raws;
    dev->raws = qp;
    dock_set64(&dev->raw_moved_ns, dock_now_ns());
    atomic_fetch_add_explicit(&dev->raw_queues, 1, memory_order_relaxed);
    dock_unlock(&dev->lock);
    dock_up_bell(dock_peer_self(dev)); // the engine begins to watch doorbells
}

static void strike(struct dock_dev *dev, struct dock_qp **at)
{
    *at = (*at)->raw_next;
    atomic_fetch_sub_explicit(&dev->raw_queues, 1, memory_order_relaxed);
}

void dock_raw_unwatch(struct dock_qp *qp)
{
    struct dock_dev *dev = qp->dev;

    dock_lock(&dev->lock); // who posts has ended, but the engine may be leaving it alone
    struct dock_qp **at = &dev->raws;
    while (*at && *at != qp)
        at = &(*at)->raw_next;
    if (*at)
        strike(dev, at);
    dock_unlock(&dev->lock);
    if (producers_met(qp)) // the queue had failed of what they did before the engine saw why
        name_them(qp);
}

// false: somebody kept something meanwhile, and found it watched.
static bool forsaken(struct dock_qp *qp)
{
    uint32_t no = 0;

    if (qp->page || dock_peek32(&qp->kept))
        return false;
    dock_set32(&qp->watched, 0);
    dock_fence_full(); // pairs with dock_raw_watch_doorbell
    return !(dock_peek32(&qp->kept) && dock_claim32(&qp->watched, &no, 1));
}

void dock_raw_forsake(struct dock_dev *dev)
{
    dock_lock(&dev->lock); // who finds it forsaken waits, and adds it again
    for (struct dock_qp **at = &dev->raws; *at;) {
        if (forsaken(*at))
            strike(dev, at);
        else
            at = &(*at)->raw_next;
    }
    dock_unlock(&dev->lock);
}

int dock_qp_direct(const struct dock_qp *qp, struct dock_direct *out)
{
    const struct dock_cqview *cq = &qp->send_cq->view;
    uint32_t blocks = qp->sq.post.mask + 1;

    if (!qp->page)
        return dock_refuse(-EINVAL, "queue %u was not made to be driven directly", qp->number);
    if (cq->depth < blocks)
        return dock_refuse(-EINVAL,
                           "queue %u: %u blocks complete into a CQ of %u: a producer could overrun it",
                           qp->number, blocks, cq->depth);
    *out = (struct dock_direct){
        .ring = qp->sq.post.ring,
        .cq = (char *)cq->ring,
        .page = qp->page,
        .doorbell = &qp->page->doorbell,
        .cq_doorbell = &qp->send_cq->rec->ci,
        .state = &qp->rec->state,
        .blocks = blocks,
        .cqes = cq->size,
        .pi = dock_acquire32(&qp->page->doorbell),
        .ci = dock_acquire32(&qp->send_cq->rec->ci),
    };
    return 0;
}

// ---- what the engine sees of a page

// A WQE that was stored whole stands for the doorbell that its low bits name, and only for that one.
static bool direct_waits(const struct dock_qp *qp)
{
    if (!qp->page)
        return false;
    uint64_t first = dock_peek64(&qp->page->direct[0]);

    return first != DOCK_DIRECT_TAKEN && (uint16_t)first == (uint16_t)(qp->raw_seen + 1);
}

static void take_direct(struct dock_qp *qp)
{
    struct dock_page *page = qp->page;
    struct dock_sq_post *post = &qp->sq.post;
    uint64_t wqe[8] = {dock_acquire64(&page->direct[0])}; // pairs with the producer's release of word 0

    wqe[0] &= ~0xffffull; // in the ring the place says it
    for (unsigned i = 1; i < 8; i++)
        wqe[i] = dock_peek64(&page->direct[i]);
    memcpy(post->ring + (uint64_t)(qp->raw_seen & post->mask) * DOCK_BLOCK, wqe, DOCK_BLOCK);
    dock_set64(&page->direct[0], DOCK_DIRECT_TAKEN);
    uint32_t was = qp->raw_seen;                  // the producer may have rung on since: then its word stands
    dock_claim32(&page->doorbell, &was, was + 1); // pairs with the acquire in run.c
}

static void fail_met(struct dock_qp *qp)
{
    dock_sq_hold(&qp->sq);
    name_them(qp);
    dock_qp_fail(qp, DOCK_ST_LOC_QP_OP);
    dock_sq_release(&qp->sq);
}

static bool moved(const struct dock_qp *qp)
{
    uint32_t rung = dock_peek32(qp->sq.post.doorbell);

    if (!qp->page)
        return dock_peek32(&qp->kept) && (rung != qp->raw_seen || rung == dock_peek32(&qp->sq.post.pi));
    return rung != qp->raw_seen || direct_waits(qp) || producers_met(qp);
}

// All that was kept is rung for, as far as was run for: what moves the doorbell from now on runs the queue.
static void settle(struct dock_qp *qp)
{
    if (qp->page || dock_peek32(&qp->sq.post.pi) != qp->raw_seen)
        return;
    dock_set32(&qp->kept, 0);
    dock_fence_full(); // pairs with dock_raw_watch_doorbell
    if (dock_peek32(&qp->sq.post.pi) != qp->raw_seen)
        dock_set32(&qp->kept, 1);
}

// The queue found goes to the end of the list, so that the others have their turn, and is pinned, not kept by
// the lock: running it may need the lock.
static struct dock_qp *next_moved(struct dock_dev *dev)
{
    struct dock_qp **at, *qp;

    dock_lock(&dev->lock);
    for (at = &dev->raws; *at && !moved(*at); at = &(*at)->raw_next)
        ;
    qp = *at;
    if (qp) {
        *at = qp->raw_next;
        for (; *at; at = &(*at)->raw_next)
            ;
        *at = qp;
        qp->raw_next = NULL;
        atomic_fetch_add_explicit(&qp->pins, 1, memory_order_relaxed); // ordered by dev->lock
    }
    dock_unlock(&dev->lock);
    return qp;
}

bool dock_raw_watch(struct dock_dev *dev)
{
    struct dock_qp *qp;
    bool any = false;

    // A turn for each at most: a producer that rings faster than we run must not keep the engine.
    for (uint32_t left = dock_peek32(&dev->raw_queues); left && (qp = next_moved(dev)); left--) {
        if (producers_met(qp))
            fail_met(qp);
        if (direct_waits(qp))
            take_direct(qp);
        qp->raw_seen = dock_peek32(qp->sq.post.doorbell); // ordered by the acquire in run.c
        dock_sq_ring(&qp->sq, DOCK_BY_ENGINE);
        settle(qp);
        atomic_fetch_sub_explicit(&qp->pins, 1, memory_order_release); // pairs with wait_unpinned in qp.c
        any = true;
    }
    return any;
}

// ---- what the device sees of a doorbell, and of a WQE

uint32_t dock_raw_stray(struct dock_sq *sq, uint32_t rung)
{
    uint32_t pi = dock_peek32(&sq->post.pi), seen = rung;
    int32_t ahead = (int32_t)(rung - pi);

    if (sq->qp->page)
        return rung;
    rung = ahead > 0 ? pi : sq->exec;             // behind: a store that came late, what it rang for is done
    dock_claim32(sq->post.doorbell, &seen, rung); // else somebody has rung since
    if (ahead > 0) {
        dock_error("queue %u: the doorbell was moved %d blocks past what was posted", sq->qp->number, ahead);
        dock_qp_fail(sq->qp, DOCK_ST_LOC_QP_OP);
    }
    return rung;
}

uint32_t dock_raw_check_fetched(struct dock_sq *sq, unsigned blocks)
{
    const struct dock_note *note = &sq->qp->page->note[sq->exec & sq->post.mask];
    uint64_t claim = dock_acquire64(&note->claim); // pairs with the producer's exchange of the claim

    if (!claim || (uint32_t)(claim >> 32) != sq->exec)
        return DOCK_OK; // this producer keeps no notes
    if (dock_peek32(&note->sum) == dock_note_sum((const uint64_t *)&sq->wqe.align, blocks))
        return DOCK_OK;
    dock_error(
        "queue %u: WQE %u is torn: producer %u, its WQE number %u, wrote other bytes than the ring holds",
        sq->qp->number, sq->exec, (unsigned)(claim & 0xffff), dock_peek32(&note->sequence));
    return DOCK_ST_LOC_QP_OP;
}

bool dock_raw_changed(const struct dock_sq *sq)
{
    for (unsigned i = 0; i < sq->blocks; i++) {
        const char *slot = sq->post.ring + (uint64_t)((sq->exec + i) & sq->post.mask) * DOCK_BLOCK;
        if (!memcmp(slot, sq->wqe.byte + (size_t)i * DOCK_BLOCK, DOCK_BLOCK))
            continue;
        dock_error(
            "queue %u: WQE %u changed after the device had fetched it, before its completion was polled",
            sq->qp->number, sq->exec);
        return true;
    }
    return false;
}
