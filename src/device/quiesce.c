// SPDX-License-Identifier: MIT
// Waiting for those who work in our memory: an epoch. The caller has made something invalid; after the heavy
// fence whoever shows an odd word began before or will see the invalidation, so it is enough that every odd
// word moves once.
#include <sched.h>

#include "base/clock.h"
#include "device/internal.h"

#define GAP_NS 100000000ull // between two looks; a longer one was spent stopped
#define LIFE_NS 1000000u    // a peer is waited for so long before its life is asked for
#define ASK_NS 20000000u    // and so long before it is asked itself; again each time it was as long

// What we know of a peer that we wait for.
struct watch {
    dock_who who;
    uint32_t beats;
    uint64_t last_ns, unmoved_ns; // how long we have watched it stand still
    uint64_t asked_ns;            // how long when it was last asked
};

// Time that we watched, not time that passed: who was stopped beside the peer must not blame it. Nor is one
// to blame that waits in our memory for a third one: it shows that, and will give the third one up.
static void look(struct dock_dev *dev, struct watch *w, const struct dock_hazard *h,
                 const struct dock_sq *ours)
{
    uint64_t now = dock_now_ns(), gap = w->last_ns ? now - w->last_ns : 0;
    uint32_t beats;

    w->who = (dock_who)(dock_peek64(&h->owner) >> 32);
    beats = dock_idtable_beats(&dev->ids_table, w->who);
    w->unmoved_ns = beats == w->beats ? w->unmoved_ns + (gap < GAP_NS ? gap : GAP_NS) : 0;
    w->beats = beats;
    w->last_ns = now;
    if (w->unmoved_ns - w->asked_ns < ASK_NS)
        return;
    w->asked_ns = w->unmoved_ns;
    if (w->who == dev->waiter.me)
        dock_ways_show_own(dev, ours);
    else
        dock_idtable_doubt(&dev->ids_table, w->who); // if it is at rest, it says so: dock_ways_show_rest
}

// A peer that was stopped in the middle of its work is endured for a while, then declared dead. If it ever
// continues it first finishes what it was doing: no memory that is given back now is used before it has.
static bool given_up(struct dock_dev *dev, const struct watch *w)
{
    if (w->who == 0)
        return true;
    if (w->who == dev->waiter.me || w->unmoved_ns < LIFE_NS)
        return false;
    if (dock_idtable_life(&dev->ids_table, w->who) != DOCK_LIFE_DEAD) {
        if (w->unmoved_ns < dev->waiter.stopped_limit_ns)
            return false;
        dock_warn("device %#x has been stopped in the middle of a request for too long: declared dead",
                  w->who);
        dock_idtable_evict(&dev->ids_table, w->who);
    }
    if (!dock_idtable_gone(&dev->ids_table, w->who))
        dock_arena_hold(&dev->arena);
    return true;
}

static void await_peer(struct dock_dev *dev, const struct dock_hazard *h, const struct dock_sq *ours)
{
    uint64_t seen = dock_acquire64(&h->busy); // pairs with dock_direct_leave
    struct watch w = {.who = 0};

    for (unsigned spins = 0; seen & 1 && dock_acquire64(&h->busy) == seen; spins++) {
        if (spins < 1000) {
            dock_relax();
            continue;
        }
        look(dev, &w, h, ours);
        if (given_up(dev, &w))
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

// The word is the peers', but it only grows: one that went down is not believed.
uint32_t dock_hazards_used(struct dock_dev *dev)
{
    uint32_t now = dock_acquire32(&dev->port->hazard_high), seen = dock_peek32(&dev->hazards_seen);

    now = now < DOCK_HAZARDS ? now : DOCK_HAZARDS;
    while (now > seen && !dock_claim32(&dev->hazards_seen, &seen, now))
        ;
    return now > seen ? now : seen;
}

// No queue, and no peer that has a hazard: whoever comes now takes dev->lock, or counts a hazard by a
// read-modify-write, before he looks at what was made invalid.
static bool nobody_can_work(struct dock_dev *dev)
{
    dock_fence_full();
    return !dev->qps && !dev->workers && !dock_hazards_used(dev);
}

void dock_quiesce_locked(struct dock_dev *dev, const struct dock_sq *except)
{
    struct dock_hazard *h = dev->hazards;

    if (nobody_can_work(dev))
        return;
    dock_fence_heavy(); // pairs with the light fences in dock_host_enter, dock_up_enter and execute.c
    // Behind the fence: who is counted later looks later, and finds what is invalid.
    uint32_t high = dock_hazards_used(dev);
    for (uint32_t i = 0; i < high; i++)
        await_peer(dev, &h[i], except);
    for (const struct dock_qp *qp = dev->qps; qp; qp = qp->next)
        if (&qp->sq != except)
            await_own(&qp->sq.busy);
    for (const struct dock_worker *w = dev->workers; w; w = w->next)
        await_own(&w->busy);
}

void dock_quarantine_check(struct dock_dev *dev)
{
    uint32_t high = dock_hazards_used(dev);
    bool anybody = false;

    dock_lock(&dev->lock); // no quiesce gives anybody up meanwhile
    for (uint32_t i = 0; dock_peek32(&dev->arena.holding) && i < high && !anybody; i++) {
        dock_who who = (dock_who)(dock_peek64(&dev->hazards[i].owner) >> 32);
        anybody = dock_acquire64(&dev->hazards[i].busy) & 1 && who && who != dev->waiter.me &&
                  dock_idtable_life(&dev->ids_table, who) == DOCK_LIFE_DEAD &&
                  !dock_idtable_gone(&dev->ids_table, who); // the acquire pairs with dock_direct_leave
    }
    if (dock_peek32(&dev->arena.holding) && !anybody)
        dock_arena_release(&dev->arena);
    dock_unlock(&dev->lock);
}

void dock_quiesce(struct dock_dev *dev, const struct dock_sq *except)
{
    dock_lock(&dev->lock);
    dock_quiesce_locked(dev, except);
    dock_unlock(&dev->lock);
}

void dock_up_join(struct dock_dev *dev, struct dock_worker *w)
{
    dock_lock(&dev->lock);
    w->next = dev->workers;
    dev->workers = w;
    dock_unlock(&dev->lock);
}

void dock_up_part(struct dock_dev *dev, struct dock_worker *w)
{
    struct dock_worker **at = &dev->workers;

    dock_lock(&dev->lock);
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    dock_unlock(&dev->lock);
}
