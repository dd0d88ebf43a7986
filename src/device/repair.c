// SPDX-License-Identifier: MIT
// After a death: what the dead one had half done in our memory is finished or undone here. Its lock words are
// taken over by whoever needs them; its claims become flushed receives; its hazards are nobody's.
#include "device/internal.h"

// One that was given up while stopped keeps its hazards until it is gone: when it continues it writes there,
// and another's would seem to be at rest.
static void free_hazards(struct dock_dev *dev, dock_who dead)
{
    struct dock_hazard *h = dev->hazards;
    uint32_t high = dock_hazards_used(dev);
    bool gone = dock_idtable_gone(&dev->ids_table, dead);

    for (uint32_t i = 0; i < high; i++) {
        uint64_t owner = dock_peek64(&h[i].owner);
        if ((dock_who)(owner >> 32) != dead)
            continue;
        if (!gone) {
            dock_claim64(&h[i].owner, &owner, owner | DOCK_HAZARD_EVICTED); // not if it has just left
            continue;
        }
        dock_set64(&h[i].busy, (dock_peek64(&h[i].busy) + 1) & ~1ull);
        dock_set32(&h[i].mapped, 0);
        dock_publish64(&h[i].owner, 0); // pairs with the claim of the next user
    }
}

// Who died between its completion and our bell has left a sleeper: the event that is owed is attended to as
// if it had rung.
static void wake_sleepers(struct dock_dev *dev)
{
    uint32_t dw0;

    for (struct dock_cq *cq = dev->cqs; cq; cq = cq->next) {
        if (!dock_peek32(&cq->asked) || !dock_cq_look(&cq->view, dock_peek32(&cq->rec->ci), &dw0))
            continue;
        uint32_t none = 0;
        dock_publish32(&cq->rec->armed, DOCK_ARM_NONE); // pairs with dock_cq_fires
        dock_claim32(&cq->rec->attention, &none, 1);    // pairs with attend_cqs; else it is owed already
    }
    dock_publish32(&dev->port->attention,
                   1); // a queue's attention may have been set and nobody called either
}

void dock_repair(struct dock_dev *dev, dock_who dead)
{
    dock_lock(&dev->lock);
    free_hazards(dev, dead);
    for (struct dock_qp *qp = dev->qps; qp; qp = qp->next)
        dock_rq_flush_claims(qp, dead);
    wake_sleepers(dev);
    for (struct dock_qp *qp = dev->qps; qp; qp = qp->next)
        dock_attend_low(qp);
    dock_unlock(&dev->lock);
}

void dock_repair_strangers(struct dock_dev *dev)
{
    uint32_t high = dock_hazards_used(dev);
    dock_who last = 0;

    for (uint32_t i = 0; i < high; i++) {
        uint64_t owner = dock_peek64(&dev->hazards[i].owner);
        dock_who who = (dock_who)(owner >> 32);
        if (who == 0 || who == last || who == dev->waiter.me || dock_peers_know(dev, who))
            continue;
        last = who;
        // Once when it is given up, and once more when it is gone.
        if (owner & DOCK_HAZARD_EVICTED ? dock_idtable_gone(&dev->ids_table, who)
                                        : dock_idtable_life(&dev->ids_table, who) == DOCK_LIFE_DEAD)
            dock_repair(dev, who);
    }
}
