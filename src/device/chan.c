// SPDX-License-Identifier: MIT
// Channels of completion events. As for asynchronous events the descriptor counts what waits.
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "device/inbox.h"
#include "device/internal.h"

struct dock_chan {
    dock_a32 users;
    struct dock_inbox inbox; // of each event `object` is the CQ
    pthread_cond_t acked;    // with the inbox's lock
};

int dock_chan_create(struct dock_dev *dev, struct dock_chan **out)
{
    struct dock_chan *chan = calloc(1, sizeof *chan);
    int err;

    (void)dev; // channels live in the process; the parameter keeps creators alike
    if (!chan)
        return dock_no_memory("a completion channel");
    err = dock_inbox_open(&chan->inbox);
    if (err) {
        dock_error("no descriptor for a completion channel: %s", strerror(-err));
        free(chan);
        return err;
    }
    pthread_cond_init(&chan->acked, NULL);
    *out = chan;
    return 0;
}

int dock_chan_destroy(struct dock_chan *chan)
{
    if (dock_acquire32(&chan->users)) // pairs with dock_chan_leave
        return dock_refuse(-EBUSY, "a completion channel that CQs still use cannot be destroyed");
    pthread_cond_destroy(&chan->acked);
    dock_inbox_close(&chan->inbox);
    free(chan);
    return 0;
}

int dock_chan_fd(const struct dock_chan *chan)
{
    return chan->inbox.tokens.fd;
}

void dock_chan_join(struct dock_chan *chan)
{
    atomic_fetch_add_explicit(&chan->users, 1, memory_order_relaxed);
}

static void deliver(struct dock_cq *cq)
{
    struct dock_entry *e;

    if (!cq->chan)
        return;
    e = dock_inbox_room(&cq->chan->inbox);
    if (!e) {
        dock_error("no memory for a completion event of CQ %u: it is lost", cq->id);
        return;
    }
    dock_set32(&cq->asked, 0);
    atomic_fetch_add_explicit(&cq->told, 1, memory_order_relaxed); // a count
    e->event.object = cq;
    dock_inbox_put(&cq->chan->inbox, e);
}

static uint32_t waiting_in(const struct dock_cq *cq)
{
    return dock_word_value(dock_acquire64(&cq->rec->tail)) - dock_acquire32(&cq->rec->ci);
}

static bool enough(const struct dock_cq *cq)
{
    return cq->moderate_count && waiting_in(cq) >= cq->moderate_count;
}

void dock_cq_moderate(struct dock_cq *cq, uint32_t count, uint32_t period_us)
{
    dock_lock(&cq->dev->lock); // with dock_cq_deliver_held
    cq->moderate_count = count;
    cq->moderate_us = period_us;
    dock_unlock(&cq->dev->lock);
}

void dock_cq_deliver(struct dock_cq *cq)
{
    uint64_t none = 0;

    if (__builtin_expect(!(cq->moderate_count | cq->moderate_us), 1) || !cq->chan || enough(cq)) {
        deliver(cq);
        return;
    }
    if (!dock_claim64(&cq->held_ns, &none, dock_now_ns())) // one is held already, and stands for both
        return;
    atomic_fetch_add_explicit(&cq->dev->held_events, 1, memory_order_relaxed);
    dock_engine_wake(cq->dev);
}

// What is held for a CQ whose moderation was switched off meanwhile is due.
static bool due(const struct dock_cq *cq, uint64_t since)
{
    if (cq->moderate_us && dock_now_ns() - since >= cq->moderate_us * 1000ull)
        return true;
    return enough(cq) || !(cq->moderate_count | cq->moderate_us);
}

void dock_cq_deliver_held(struct dock_dev *dev)
{
    dock_lock(&dev->lock);
    for (struct dock_cq *cq = dev->cqs; cq; cq = cq->next) {
        uint64_t since = dock_peek64(&cq->held_ns);
        if (!since || !due(cq, since) || !dock_claim64(&cq->held_ns, &since, 0))
            continue;
        atomic_fetch_sub_explicit(&dev->held_events, 1, memory_order_relaxed);
        deliver(cq);
    }
    dock_unlock(&dev->lock);
}

static int got(struct dock_chan *chan, const struct dock_entry *e, void **cq_user)
{
    struct dock_cq *cq = e->event.object;

    cq->chan_events++;
    *cq_user = cq->user;
    dock_unlock(&chan->inbox.lock);
    return 0;
}

int dock_chan_get(struct dock_chan *chan, void **cq_user)
{
    struct dock_entry e;
    int err = dock_inbox_take(&chan->inbox, &e);

    return err ? err : got(chan, &e, cq_user);
}

int dock_chan_try(struct dock_chan *chan, void **cq_user)
{
    struct dock_entry e;
    int err = dock_inbox_try(&chan->inbox, &e);

    return err ? err : got(chan, &e, cq_user);
}

void dock_cq_ack(struct dock_cq *cq, unsigned n)
{
    if (!cq->chan)
        return;
    dock_lock(&cq->chan->inbox.lock);
    if (n > cq->chan_events - cq->chan_acked) {
        dock_error("CQ %u: %u events acknowledged, %u were got", cq->id, n, cq->chan_events - cq->chan_acked);
        n = cq->chan_events - cq->chan_acked;
    }
    cq->chan_acked += n;
    pthread_cond_broadcast(&cq->chan->acked);
    dock_unlock(&cq->chan->inbox.lock);
}

bool dock_cq_owes_acks(const struct dock_cq *cq)
{
    bool owes = dock_acquire32(&cq->events_got); // pairs with acknowledge

    if (!cq->chan)
        return owes;
    dock_lock(&cq->chan->inbox.lock);
    owes |= cq->chan_acked != cq->chan_events;
    dock_unlock(&cq->chan->inbox.lock);
    return owes;
}

// The CQ goes away: drop its undelivered events, wait until the delivered ones are acknowledged.
void dock_chan_leave(struct dock_chan *chan, struct dock_cq *cq)
{
    dock_inbox_forget(&chan->inbox, cq);
    dock_lock(&chan->inbox.lock);
    while (cq->chan_acked != cq->chan_events)
        pthread_cond_wait(&chan->acked, &chan->inbox.lock);
    dock_unlock(&chan->inbox.lock);
    atomic_fetch_sub_explicit(&chan->users, 1, memory_order_release); // pairs with dock_chan_destroy
}
