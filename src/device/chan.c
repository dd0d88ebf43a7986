// SPDX-License-Identifier: MIT
// Channels of completion events. As for asynchronous events the descriptor counts what waits.
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "device/internal.h"
#include "device/tokens.h"

struct waiting {
    struct dock_cq *cq;
    struct waiting *next;
};

struct dock_chan {
    struct dock_tokens tokens;
    dock_a32 users;
    pthread_mutex_t lock;
    pthread_cond_t acked;
    struct waiting *head, **tail;
    struct waiting reserve; // for an event that comes when the process is out of memory
    bool reserve_taken;
};

// The lock is held.
static void discard(struct dock_chan *chan, struct waiting *w)
{
    if (w == &chan->reserve)
        chan->reserve_taken = false;
    else
        free(w);
}

int dock_chan_create(struct dock_dev *dev, struct dock_chan **out)
{
    struct dock_chan *chan = calloc(1, sizeof *chan);
    int err;

    (void)dev; // channels live in the process; the parameter keeps creators alike
    if (!chan)
        return dock_no_memory("a completion channel");
    err = dock_tokens_open(&chan->tokens);
    if (err) {
        dock_error("no descriptor for a completion channel: %s", strerror(-err));
        free(chan);
        return err;
    }
    chan->tail = &chan->head;
    pthread_mutex_init(&chan->lock, NULL);
    pthread_cond_init(&chan->acked, NULL);
    *out = chan;
    return 0;
}

int dock_chan_destroy(struct dock_chan *chan)
{
    if (dock_acquire32(&chan->users)) // pairs with dock_chan_leave
        return dock_refuse(-EBUSY, "a completion channel that CQs still use cannot be destroyed");
    dock_tokens_close(&chan->tokens);
    pthread_cond_destroy(&chan->acked);
    pthread_mutex_destroy(&chan->lock);
    free(chan);
    return 0;
}

int dock_chan_fd(const struct dock_chan *chan)
{
    return chan->tokens.fd;
}

void dock_chan_join(struct dock_chan *chan)
{
    atomic_fetch_add_explicit(&chan->users, 1, memory_order_relaxed);
}

static void deliver(struct dock_cq *cq)
{
    struct dock_chan *chan = cq->chan;
    struct waiting *w;

    if (!chan)
        return;
    w = malloc(sizeof *w);
    pthread_mutex_lock(&chan->lock);
    if (!w && !chan->reserve_taken) {
        w = &chan->reserve;
        chan->reserve_taken = true;
    }
    if (w) {
        dock_set32(&cq->asked, 0);
        atomic_fetch_add_explicit(&cq->told, 1, memory_order_relaxed); // a count
        *w = (struct waiting){.cq = cq};
        *chan->tail = w;
        chan->tail = &w->next;
        dock_tokens_add(&chan->tokens);
    }
    pthread_mutex_unlock(&chan->lock);
    if (!w)
        dock_error("no memory for a completion event of CQ %u: it is lost", cq->id);
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
    pthread_mutex_lock(&cq->dev->lock); // with dock_cq_deliver_held
    cq->moderate_count = count;
    cq->moderate_us = period_us;
    pthread_mutex_unlock(&cq->dev->lock);
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
    pthread_mutex_lock(&dev->lock);
    for (struct dock_cq *cq = dev->cqs; cq; cq = cq->next) {
        uint64_t since = dock_peek64(&cq->held_ns);
        if (!since || !due(cq, since) || !dock_claim64(&cq->held_ns, &since, 0))
            continue;
        atomic_fetch_sub_explicit(&dev->held_events, 1, memory_order_relaxed);
        deliver(cq);
    }
    pthread_mutex_unlock(&dev->lock);
}

// The lock is held, and let go.
static int take_head(struct dock_chan *chan, void **cq_user)
{
    struct waiting *w = chan->head;

    chan->head = w->next;
    if (!w->next)
        chan->tail = &chan->head;
    w->cq->chan_events++;
    *cq_user = w->cq->user;
    discard(chan, w);
    pthread_mutex_unlock(&chan->lock);
    return 0;
}

int dock_chan_get(struct dock_chan *chan, void **cq_user)
{
    int err = dock_tokens_take(&chan->tokens, &chan->lock);

    return err ? err : take_head(chan, cq_user);
}

int dock_chan_try(struct dock_chan *chan, void **cq_user)
{
    int err = dock_tokens_try(&chan->tokens, &chan->lock);

    return err ? err : take_head(chan, cq_user);
}

void dock_cq_ack(struct dock_cq *cq, unsigned n)
{
    if (!cq->chan)
        return;
    pthread_mutex_lock(&cq->chan->lock);
    if (n > cq->chan_events - cq->chan_acked) {
        dock_error("CQ %u: %u events acknowledged, %u were got", cq->id, n, cq->chan_events - cq->chan_acked);
        n = cq->chan_events - cq->chan_acked;
    }
    cq->chan_acked += n;
    pthread_cond_broadcast(&cq->chan->acked);
    pthread_mutex_unlock(&cq->chan->lock);
}

bool dock_cq_owes_acks(const struct dock_cq *cq)
{
    bool owes = dock_acquire32(&cq->events_got); // pairs with acknowledge

    if (!cq->chan)
        return owes;
    pthread_mutex_lock(&cq->chan->lock);
    owes |= cq->chan_acked != cq->chan_events;
    pthread_mutex_unlock(&cq->chan->lock);
    return owes;
}

// The CQ goes away: drop its undelivered events, wait until the delivered ones are acknowledged.
void dock_chan_leave(struct dock_chan *chan, struct dock_cq *cq)
{
    pthread_mutex_lock(&chan->lock);
    for (struct waiting **at = &chan->head; *at;) {
        struct waiting *w = *at;
        if (w->cq != cq) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        discard(chan, w);
        dock_tokens_drop(&chan->tokens, 1);
    }
    for (chan->tail = &chan->head; *chan->tail;)
        chan->tail = &(*chan->tail)->next;
    while (cq->chan_acked != cq->chan_events)
        pthread_cond_wait(&chan->acked, &chan->lock);
    pthread_mutex_unlock(&chan->lock);
    atomic_fetch_sub_explicit(&chan->users, 1, memory_order_release); // pairs with dock_chan_destroy
}
