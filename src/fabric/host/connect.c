// SPDX-License-Identifier: MIT
// From a queue number to the record of the queue, a hazard in its owner's arena, and the bell.
#include <errno.h>

#include "base/log.h"
#include "fabric/host/host.h"

struct dock_qrec *dock_host_find(struct dock_peer *peer, uint32_t id)
{
    uint64_t block = dock_acquire64(&peer->port->block[id >> DOCK_BLOCK_SHIFT & (DOCK_SLOTS - 1)]);
    uint64_t off = block + (uint64_t)(id & 255) * sizeof(struct dock_qrec);

    return block && block % 64 == 0 ? dock_view_at(peer->view, off, sizeof(struct dock_qrec)) : NULL;
}

static uint64_t hazard_owner(dock_who me, uint32_t queue)
{
    return (uint64_t)me << 32 | queue | DOCK_HAZARD_USED;
}

static struct dock_hazard *claim_hazard(struct dock_peer *peer, dock_who me, uint32_t queue)
{
    uint64_t table = peer->port->hazards;
    struct dock_hazard *h =
        table % 64 ? NULL : dock_view_at(peer->view, table, (uint64_t)DOCK_HAZARDS * sizeof *h);

    for (uint32_t i = 0; h && i < DOCK_HAZARDS; i++) {
        uint32_t at = (dock_peek32(&peer->hazard_hint) + i) % DOCK_HAZARDS;
        uint64_t nobody = 0;
        if (dock_peek64(&h[at].owner) || !dock_claim64(&h[at].owner, &nobody, hazard_owner(me, queue)))
            continue;
        uint32_t high = dock_peek32(&peer->port->hazard_high);
        while (high <= at && !dock_claim32(&peer->port->hazard_high, &high, at + 1))
            ;
        dock_fence_full(); // pairs with nobody_can_work in device/quiesce.c: counted, then looking
        dock_set32(&peer->hazard_hint, at + 1);
        return &h[at];
    }
    return NULL;
}

// The queue that has the number now. What was checked of another is forgotten.
void dock_host_meet(struct dock_conn *c)
{
    c->serial = dock_acquire32(&c->queue->serial);
    c->views = false;
    c->next_receive.known = false;
    c->held = 0;
    for (unsigned i = 0; i < DOCK_RKEYS + DOCK_LKEYS; i++)
        dock_host_forget(&c->key[i]);
    c->written = c->key;
}

int dock_host_connect(struct dock_conn *c)
{
    struct dock_peer *peer;
    int err = dock_up_peer(c->dev, c->dest_who, &peer);

    if (err)
        return err;
    c->queue = dock_host_find(peer, c->dest_qp);
    c->hazard = c->queue ? claim_hazard(peer, c->waiter->me, c->source_qp) : NULL;
    if (!c->hazard) {
        dock_up_peer_put(c->dev, peer);
        return -EHOSTUNREACH;
    }
    c->hazard_value = dock_peek64(&c->hazard->busy) & ~1ull;
    dock_host_meet(c);
    c->peer = peer;
    dock_port_moment(peer->port, DOCK_AT_CONNECT, c->source_qp, c->dest_qp);
    return 0;
}

int dock_host_visit(struct dock_conn *c)
{
    struct dock_peer *peer;
    int err = dock_up_peer(c->dev, c->dest_who, &peer);

    if (err)
        return err;
    c->hazard = claim_hazard(peer, c->waiter->me, 0);
    if (!c->hazard) {
        dock_up_peer_put(c->dev, peer);
        return dock_refuse(-ENOMEM, "device %#x has no hazard left for us", c->dest_who);
    }
    c->hazard_value = dock_peek64(&c->hazard->busy) & ~1ull;
    c->peer = peer;
    return 0;
}

void dock_host_disconnect(struct dock_conn *c)
{
    if (!c->peer)
        return;
    // Only if it is still ours: the target may have declared us dead and let others have it. Pairs with the
    // claim of the next user.
    uint64_t mine = hazard_owner(c->waiter->me, c->source_qp);
    dock_claim64(&c->hazard->owner, &mine, 0);
    dock_up_peer_put(c->dev, c->peer);
    c->peer = NULL;
    c->views = false;
}

// What a way to `c`'s queue must find there.
static bool kind_fits(const struct dock_conn *c, uint32_t kind)
{
    if (c->xrc)
        return kind == (c->via ? DOCK_QUEUE_XRC_SRQ : DOCK_QUEUE_XRC_TGT);
    return kind == DOCK_QUEUE_PAIR || kind == DOCK_QUEUE_SHARED_RQ;
}

// The first message that finds the queue ready: check the records it leads to.
bool dock_host_open_views(struct dock_conn *c)
{
    struct dock_qrec *q = c->queue;
    struct dock_qrec seen = {
        .kind_service = q->kind_service, .id = q->id, .rq = q->rq, .cq = q->cq, .pd = q->pd};

    uint32_t kind = seen.kind_service >> 8;

    if (q->sum != dock_qrec_sum(&seen) || seen.id != c->dest_qp || !kind_fits(c, kind) ||
        (seen.kind_service & 0xff) != c->service) { // another service does not answer
        dock_info("queue %u: the record of queue %u is of another kind, or does not hold together",
                  c->source_qp, c->dest_qp);
        return false;
    }
    if (c->xrc && !c->via) { // what a message is placed by, and the domain, is another queue's: see xrc.c
        c->cookie = q->cookie;
        c->views = true;
        return true;
    }
    if (dock_rqview_open(c->peer->view, seen.rq, &c->rq) ||
        dock_cqview_open(c->peer->view, seen.cq, &c->cq)) {
        dock_info("queue %u: the receive queue or the CQ of queue %u does not hold together", c->source_qp,
                  c->dest_qp);
        return false;
    }
    c->key_pd = seen.pd;
    c->cqe_flags = kind == DOCK_QUEUE_PAIR && c->service >= DOCK_RM ? DOCK_CQE_JETTY : 0;
    c->cookie = q->cookie;
    // Whether it is an open one was settled when it was made.
    c->alone = c->rq.id == c->dest_qp && !c->source_eid && dock_peek32(&q->peer_id) != DOCK_PEER_ANY;
    c->views = true;
    return true;
}

static bool answers(struct dock_conn *c, bool begun)
{
    struct dock_qrec *q = c->queue;
    uint32_t state = dock_acquire32(&q->state); // pairs with the publish in dock_qp_modify

    if (__builtin_expect(state < DOCK_RTR || (state > DOCK_SQE && state != DOCK_SUSPENDED), 0))
        return false;
    if (__builtin_expect(dock_peek32(&q->serial) != c->serial, 0)) {
        if (!dock_service_names(c->service) || begun)
            return false;
        dock_host_meet(c); // all that such a request knows is the number: it is for whoever has it now
    }
    if (c->service == DOCK_RC || c->service == DOCK_UC) {
        if (!dock_direct_answers(c, q))
            return false;
        if (__builtin_expect(state == DOCK_RTR, 0) && !(dock_peek32(&q->attention) & DOCK_ATTN_COMM))
            dock_host_attention(c, DOCK_ATTN_COMM);
    }
    return __builtin_expect(c->views, 1) || dock_host_open_views(c);
}

bool dock_host_enter(struct dock_conn *c, bool begun)
{
    dock_set64(&c->hazard->busy, ++c->hazard_value);
    dock_fence_light(); // pairs with dock_fence_heavy in dock_quiesce: show the hazard, then look
    dock_probe(DOCK_AT_ENTER, c->source_qp, c->hazard_value);
    if (__builtin_expect(answers(c, begun), 1))
        return true;
    dock_direct_leave(c);
    return false;
}

void dock_host_attend(struct dock_conn *c, uint32_t why)
{
    uint32_t none = 0;

    dock_claim32(&c->queue->first_cause, &none, why);
    atomic_fetch_or_explicit(&c->queue->attention, why,
                             memory_order_release); // pairs with attend() of the engine
    dock_up_attention(c->peer);
}

void dock_host_attention(struct dock_conn *c, uint32_t why)
{
    dock_host_attend(dock_conn_target(c), why);
}

// The list of a group, where its record leads now.
static struct dock_grprec *members(struct dock_conn *c)
{
    struct dock_qrec *q = c->queue;
    struct dock_qrec seen = {
        .kind_service = q->kind_service, .id = q->id, .rq = q->rq, .cq = q->cq, .pd = q->pd};

    if (dock_acquire32(&q->state) != DOCK_RTS || q->sum != dock_qrec_sum(&seen) || seen.id != c->dest_qp ||
        seen.kind_service != (DOCK_QUEUE_GROUP << 8 | (uint32_t)c->service) || seen.rq % 64)
        return NULL;
    return dock_view_at(c->peer->view, seen.rq, sizeof(struct dock_grprec));
}

uint32_t dock_host_pick(struct dock_conn *c, uint32_t hint)
{
    struct dock_grprec *g;
    uint32_t n, id = 0;

    dock_set64(&c->hazard->busy, ++c->hazard_value);
    dock_fence_light(); // pairs with dock_fence_heavy in dock_quiesce: show the hazard, then look
    g = dock_peek32(&c->peer->dead) ? NULL : members(c);
    n = g ? dock_acquire32(&g->count) : 0; // pairs with the publishes in bundle.c
    if (n > 0 && n <= DOCK_BUNDLE_MAX) {
        if (g->policy == DOCK_BUNDLE_TURN)
            hint = atomic_fetch_add_explicit(&g->turn, 1, memory_order_relaxed);
        id = dock_peek32(&g->member[hint % n]) & DOCK_ID_MASK;
        if (!dock_host_find(c->peer, id)) { // only a queue of the group's owner
            dock_info("queue %u: group %u names queue %u, which its device does not have", c->source_qp,
                      c->dest_qp, id);
            id = 0;
        }
    } else if (g && n == 0 && !dock_peek32(&c->queue->attention)) {
        dock_host_attend(c, DOCK_ATTN_EMPTY);
    }
    dock_direct_leave(c);
    return id;
}
