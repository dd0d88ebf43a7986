// SPDX-License-Identifier: MIT
// Waiting for those who work in our memory: an epoch. The caller has made something invalid; after the heavy
// fence whoever shows an odd word began before or will see the invalidation, so it is enough that every odd
// word moves once.
#include <sched.h>

#include "base/clock.h"
#include "device/internal.h"

#define GAP_NS 100000000ull // between two looks; a longer one was spent stopped

// A peer that was stopped in the middle of its work is endured for a while, then declared dead.
static bool given_up(struct dock_dev *dev, const struct dock_hazard *h, uint64_t watched)
{
    dock_who who = (dock_who)(dock_peek64(&h->owner) >> 32);

    if (who == 0)
        return true;
    if (who == dev->waiter.me || watched < 1000000)
        return false;
    if (dock_idtable_life(&dev->ids_table, who) == DOCK_LIFE_DEAD)
        return true;
    if (watched < dev->waiter.stopped_limit_ns)
        return false;
    dock_warn("device %#x has been stopped in the middle of a request for too long: declared dead", who);
    dock_idtable_evict(&dev->ids_table, who);
    return true;
}

static void await_peer(struct dock_dev *dev, const struct dock_hazard *h)
{
    uint64_t seen = dock_acquire64(&h->busy), watched = 0, last = 0; // pairs with dock_direct_leave

    for (unsigned spins = 0; seen & 1 && dock_acquire64(&h->busy) == seen; spins++) {
        if (spins < 1000) {
            dock_relax();
            continue;
        }
        // Time that we watched, not time that passed: who was stopped beside the peer must not blame it.
        uint64_t now = dock_now_ns(), gap = last ? now - last : 0;
        watched += gap < GAP_NS ? gap : GAP_NS;
        last = now;
        if (given_up(dev, h, watched))
            return;
        sched_yield();
    }
}

// A thread of our own process: it moves when it gets a processor.
static void await_own(const dock_a64 *busy)
{
    uint64_t seen = dock_acquire64(busy); // pairs with the publish in execute.c, fast.c and dock_up_leave

    for (unsigned spins = 0; seen & 1 && dock_acquire64(busy) == seen; spins++) {
        if (spins % 1000 == 999)
            sched_yield();
        dock_relax();
    }
}

void dock_quiesce_locked(struct dock_dev *dev, const struct dock_sq *except)
{
    struct dock_hazard *h = dev->hazards;

    dock_fence_heavy(); // pairs with the light fences in dock_host_enter, dock_up_enter and execute.c
    // Behind the fence: who is counted later looks later, and finds what is invalid.
    uint32_t high = dock_acquire32(&dev->port->hazard_high);
    for (uint32_t i = 0; i < high && i < DOCK_HAZARDS; i++)
        await_peer(dev, &h[i]);
    for (const struct dock_qp *qp = dev->qps; qp; qp = qp->next)
        if (&qp->sq != except)
            await_own(&qp->sq.busy);
    for (const struct dock_worker *w = dev->workers; w; w = w->next)
        await_own(&w->busy);
}

void dock_quiesce(struct dock_dev *dev, const struct dock_sq *except)
{
    pthread_mutex_lock(&dev->lock);
    dock_quiesce_locked(dev, except);
    pthread_mutex_unlock(&dev->lock);
}

void dock_up_join(struct dock_dev *dev, struct dock_worker *w)
{
    pthread_mutex_lock(&dev->lock);
    w->next = dev->workers;
    dev->workers = w;
    pthread_mutex_unlock(&dev->lock);
}

void dock_up_part(struct dock_dev *dev, struct dock_worker *w)
{
    struct dock_worker **at = &dev->workers;

    pthread_mutex_lock(&dev->lock);
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    pthread_mutex_unlock(&dev->lock);
}
