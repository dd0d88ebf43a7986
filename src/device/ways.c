// SPDX-License-Identifier: MIT
// A queue without a connection (UD, RM, UM) reaches many: one way per target, made at the first request and
// found by the target's number and address. So does an XRC initiator beside its connection: a way to each
// shared queue that it names. The token is held.
#include <sched.h>
#include <stdlib.h>

#include "base/clock.h"
#include "device/internal.h"

#define FIRST_BUCKETS 16u
#define TURN_NS 20000000ull // so long the engine tries to have a queue to itself

static struct dock_conn **bucket(struct dock_ways *w, uint32_t id)
{
    return &w->bucket[(id * 0x9e3779b1u >> 7) & (w->size - 1)];
}

static struct dock_conn *find(struct dock_ways *w, uint32_t id, const uint8_t eid[16])
{
    struct dock_conn *c = w->size ? *bucket(w, id) : NULL;

    while (c && (c->dest_qp != id || memcmp(c->eid, eid, sizeof c->eid) != 0))
        c = c->next;
    return c;
}

// The newest way to a target stands before older ones of the same number, and stays there.
static void put(struct dock_ways *w, struct dock_conn *c)
{
    struct dock_conn **at = bucket(w, c->dest_qp);

    c->next = *at;
    *at = c;
}

static void put_all(struct dock_ways *w, struct dock_conn *chain)
{
    struct dock_conn *next = chain ? chain->next : NULL;

    if (!chain)
        return;
    put_all(w, next); // the oldest first
    put(w, chain);
}

static bool grow(struct dock_ways *w)
{
    struct dock_ways old = *w;
    uint32_t size = old.size ? old.size * 2 : FIRST_BUCKETS;
    struct dock_conn **fresh = calloc(size, sizeof *fresh);

    if (!fresh)
        return old.size != 0; // chains get longer instead
    w->bucket = fresh;
    w->size = size;
    for (uint32_t i = 0; i < old.size; i++)
        put_all(w, old.bucket[i]);
    free(old.bucket);
    return true;
}

static struct dock_conn *make(struct dock_qp *qp)
{
    struct dock_ways *w = &qp->ways;
    struct dock_conn *c;

    if (w->count >= w->size * 2 && !grow(w))
        return NULL;
    c = aligned_alloc(64, (sizeof *c + 63) & ~63ul);
    if (c)
        w->count++;
    return c;
}

static void aim(struct dock_conn *c, struct dock_qp *qp, uint32_t id, dock_who who)
{
    dock_conn_init(c, qp, id, who);
    memcpy(c->eid, qp->sq.x.eid, sizeof c->eid);
    c->via = qp->sq.conn;
}

struct dock_conn *dock_way_to(struct dock_qp *qp, uint32_t id, dock_who who, const struct dock_fabric *fabric)
{
    struct dock_conn *c = find(&qp->ways, id, qp->sq.x.eid), *next;

    if (c && c->dest_who == who)
        return c;
    if (c && !qp->sq.flight) { // nothing is in flight on it
        c->fabric->disconnect(c);
        next = c->next;
        aim(c, qp, id, who);
        c->next = next;
    } else {
        c = make(qp);
        if (!c)
            return NULL;
        aim(c, qp, id, who);
        put(&qp->ways, c);
    }
    if (fabric)
        c->fabric = fabric;
    return c;
}

struct dock_conn *dock_way(struct dock_qp *qp)
{
    struct dock_dev *dev = qp->dev;
    const struct dock_xfer *x = &qp->sq.x;
    uint32_t id = qp->sq.post.xrc ? x->srq : x->target;
    dock_who who = dock_idtable_owner_of(&dev->ids_table, id);

    // Of each request, not of the first: the number may have another owner by now. If it has none, the old
    // way finds out that nobody is there.
    struct dock_conn *c = find(&qp->ways, id, x->eid);
    if (__builtin_expect(!who || (c && c->dest_who == who), 1))
        return c;
    if (!c && !qp->sq.conn && !dock_eid_is_local(dev, x->eid))
        return NULL;
    return dock_way_to(qp, id, who, NULL);
}

static void drop(struct dock_ways *w, struct dock_conn **at)
{
    struct dock_conn *c = *at;

    *at = c->next;
    w->count--;
    c->fabric->disconnect(c);
    free(c);
}

// What is in flight knows its way, and so does what was begun.
static bool is_spent(const struct dock_qp *qp, const struct dock_conn *c)
{
    return c->peer && dock_peek32(&c->peer->dead) && !qp->sq.flight && !(qp->sq.mid && qp->sq.way == c);
}

static void drop_dead(struct dock_qp *qp)
{
    struct dock_ways *w = &qp->ways;

    dock_sq_hold(&qp->sq);
    for (uint32_t i = 0; i < w->size; i++)
        for (struct dock_conn **at = &w->bucket[i]; *at;) {
            if (!is_spent(qp, *at)) {
                at = &(*at)->next;
                continue;
            }
            if (qp->sq.way == *at)
                qp->sq.way = NULL;
            drop(w, at);
        }
    dock_sq_release(&qp->sq);
}

static bool has_ways(const struct dock_qp *qp)
{
    return dock_service_names(qp->attr.service) || qp->attr.xrc == DOCK_XRC_INI;
}

// One that was not looked at in this turn, pinned: its token is not to be waited for under the device's lock.
static struct dock_qp *next_to_look_at(struct dock_dev *dev, uint32_t turn)
{
    struct dock_qp *qp;

    dock_lock(&dev->lock);
    for (qp = dev->qps; qp && (qp->ways_turn == turn || !has_ways(qp)); qp = qp->next)
        ;
    if (qp) {
        qp->ways_turn = turn;
        atomic_fetch_add_explicit(&qp->pins, 1, memory_order_relaxed); // ordered by dev->lock
    }
    dock_unlock(&dev->lock);
    return qp;
}

void dock_ways_check(struct dock_dev *dev)
{
    struct dock_qp *qp;

    if (!dock_peers_lost(dev))
        return;
    for (uint32_t turn = ++dev->ways_turn; (qp = next_to_look_at(dev, turn));) {
        drop_dead(qp);
        atomic_fetch_sub_explicit(&qp->pins, 1, memory_order_release); // pairs with wait_unpinned in qp.c
    }
}

// ---- where we are at rest

// Our own count decides. The token is held, so nobody is at work on this way.
static void show_rest(struct dock_conn *c)
{
    if (c->peer && c->hazard && dock_peek64(&c->hazard->busy) != c->hazard_value)
        dock_publish64(&c->hazard->busy, c->hazard_value); // pairs with await_peer in quiesce.c
}

// What is in flight is at work by other hands.
static void show_ways(struct dock_qp *qp)
{
    if (qp->sq.flight)
        return;
    show_rest(&qp->conn);
    for (uint32_t i = 0; i < qp->ways.size; i++)
        for (struct dock_conn *c = qp->ways.bucket[i]; c; c = c->next)
            show_rest(c);
}

// false: somebody runs the queue.
static bool show_queue(struct dock_qp *qp)
{
    if (!dock_sq_try(&qp->sq))
        return false;
    show_ways(qp);
    dock_sq_let_be(&qp->sq);
    return true;
}

// One pass: under the lock nothing is waited for, and nothing is run.
static bool show_queues(struct dock_dev *dev, uint32_t turn)
{
    bool all = true;

    dock_lock(&dev->lock);
    for (struct dock_qp *qp = dev->qps; qp; qp = qp->next) {
        if (qp->ways_turn == turn)
            continue;
        if (show_queue(qp))
            qp->ways_turn = turn;
        else
            all = false;
    }
    dock_unlock(&dev->lock);
    return all;
}

// Whoever runs a queue lets go after a budget, busy as it may be, unless he was stopped: that is not waited
// for.
void dock_ways_show_rest(struct dock_dev *dev)
{
    uint32_t asked = dock_idtable_doubts(&dev->ids_table, dev->waiter.me), turn;
    uint64_t until;

    if (asked == dev->doubts_seen)
        return;
    turn = ++dev->ways_turn;
    for (until = dock_now_ns() + TURN_NS; !show_queues(dev, turn); sched_yield())
        if (dock_now_ns() > until)
            return; // again at the next look
    dev->doubts_seen = asked;
}

void dock_ways_show_own(struct dock_dev *dev, const struct dock_sq *ours)
{
    for (struct dock_qp *qp = dev->qps; qp; qp = qp->next)
        if (&qp->sq == ours)
            show_ways(qp);
        else
            show_queue(qp);
}

void dock_ways_forget(struct dock_qp *qp)
{
    struct dock_ways *w = &qp->ways;

    for (uint32_t i = 0; i < w->size; i++) {
        while (w->bucket[i]) {
            struct dock_conn *c = w->bucket[i];
            w->bucket[i] = c->next;
            c->fabric->disconnect(c);
            free(c);
        }
    }
    free(w->bucket);
    *w = (struct dock_ways){.count = 0};
    qp->sq.way = NULL;
}
