// SPDX-License-Identifier: MIT
// Queues with work that nobody is doing. Ready: a budget ran out, any poller or the engine goes on. Waiting:
// the receiver is not ready or not there, the engine looks again.
#include "base/clock.h"
#include "device/internal.h"

enum { ON_NONE, ON_READY, ON_WAITING };

static void lock(struct dock_dev *dev)
{
    dock_spin_lock(&dev->list_lock);
}

static void unlock(struct dock_dev *dev)
{
    dock_spin_unlock(&dev->list_lock);
}

static struct dock_sq *head(struct dock_dev *dev)
{
    return (struct dock_sq *)(uintptr_t)dock_peek64(&dev->ready_head);
}

void dock_ready_push(struct dock_dev *dev, struct dock_sq *sq)
{
    bool added = false;

    lock(dev);
    if (dock_acquire32(&sq->listed) == ON_NONE) { // pairs with dock_waiting_run
        sq->next = NULL;
        if (head(dev))
            dev->ready_tail->next = sq;
        else
            dock_set64(&dev->ready_head, (uintptr_t)sq);
        dev->ready_tail = sq;
        dock_set32(&sq->listed, ON_READY);
        added = true;
    }
    unlock(dev);
    if (added)
        dock_engine_wake(dev); // writes only if the engine sleeps for long: while it ticks it will see
}

void dock_waiting_push(struct dock_dev *dev, struct dock_sq *sq)
{
    bool added = false;

    lock(dev);
    if (dock_acquire32(&sq->listed) == ON_NONE) { // pairs with dock_waiting_run
        sq->next = dev->waiting;
        dev->waiting = sq;
        dock_set32(&sq->listed, ON_WAITING);
        added = true;
    }
    unlock(dev);
    if (added)
        dock_engine_wake(dev);
}

bool dock_lists_remove(struct dock_dev *dev, struct dock_sq *sq)
{
    lock(dev);
    struct dock_sq *before = NULL, *at = dock_peek32(&sq->listed) == ON_READY ? head(dev) : dev->waiting;
    while (at && at != sq) {
        before = at;
        at = at->next;
    }
    if (at && before)
        before->next = sq->next;
    else if (at && dock_peek32(&sq->listed) == ON_READY)
        dock_set64(&dev->ready_head, (uintptr_t)sq->next);
    else if (at)
        dev->waiting = sq->next;
    if (at && dev->ready_tail == sq)
        dev->ready_tail = before;
    if (at) // else it is on none, or dock_waiting_run has it in hand and says so itself
        dock_set32(&sq->listed, ON_NONE);
    // Under the lock: who has a pin may push it yet, and another would take it from there. Pairs with the
    // drops.
    bool pinned = dock_acquire32(&sq->qp->pins);
    unlock(dev);
    return pinned;
}

// A queue that is taken off a list is pinned until it ran: destroy waits for the pin.
static void run_pinned(struct dock_sq *sq, enum dock_runner by)
{
    dock_sq_ring(sq, by);
    atomic_fetch_sub_explicit(&sq->qp->pins, 1, memory_order_release); // pairs with wait_unpinned in qp.c
}

static struct dock_sq *pop_pinned(struct dock_dev *dev, enum dock_runner by)
{
    struct dock_sq *sq;

    if (!dock_peek64(&dev->ready_head))
        return NULL;
    lock(dev);
    sq = head(dev);
    if (sq) {
        atomic_fetch_add_explicit(&sq->qp->pins, 1, memory_order_relaxed); // ordered by the list lock
        dock_set64(&dev->ready_head, (uintptr_t)sq->next);
        dock_set32(&sq->listed, ON_NONE);
        if (by == DOCK_BY_POLLER)
            dock_set32(&dev->taken_by_pollers, dock_peek32(&dev->taken_by_pollers) + 1); // under the lock
    }
    unlock(dev);
    return sq;
}

bool dock_ready_run(struct dock_dev *dev, enum dock_runner by)
{
    struct dock_sq *sq = pop_pinned(dev, by);

    if (sq)
        run_pinned(sq, by);
    return sq != NULL;
}

bool dock_waiting_any(struct dock_dev *dev)
{
    lock(dev);
    bool any = dev->waiting != NULL;
    unlock(dev);
    return any;
}

bool dock_waiting_run(struct dock_dev *dev)
{
    struct dock_sq *all, *sq;
    bool any = false;

    lock(dev);
    all = dev->waiting;
    dev->waiting = NULL;
    for (sq = all; sq; sq = sq->next)
        atomic_fetch_add_explicit(&sq->qp->pins, 1, memory_order_relaxed);
    unlock(dev);
    while ((sq = all)) {
        all = sq->next;
        dock_publish32(&sq->listed, ON_NONE); // `next` is read: pairs with the acquire in dock_waiting_push
        run_pinned(sq, DOCK_BY_ENGINE);
        any = true;
    }
    return any;
}
