// SPDX-License-Identifier: MIT
// Queue pairs: creation and destruction. Changes of state are in modify.c.
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "device/internal.h"
#include "device/profile.h"

// Blocks that the largest WR of this queue takes: WRITE with immediate, or URMA's with notify, has the
// longest control part of those that carry all the SGEs; an atomic takes two.
static uint32_t blocks_per_wr(const struct dock_qp_attr *a)
{
    unsigned op = dock_qp_urma(a) ? DOCK_OP_WRITE_NOTIFY : DOCK_OP_WRITE_IMM;
    unsigned sges = dock_wqe_blocks_of(op, 0, 0, a->max_send_sge);
    unsigned bytes = dock_wqe_blocks_of(op, 1, a->max_inline, 0);
    unsigned most = sges > bytes ? sges : bytes;

    return most < 2 ? 2 : most;
}

static uint32_t ring_blocks(const struct dock_qp_attr *a)
{
    return dock_power_of_two(a->raw ? a->max_send_wr : a->max_send_wr * blocks_per_wr(a));
}

uint64_t dock_qp_ring_bytes(const struct dock_qp_attr *attr)
{
    return (uint64_t)ring_blocks(attr) * DOCK_BLOCK;
}

static int check(struct dock_dev *dev, const struct dock_qp_attr *a)
{
    const struct dock_limits *l = &dev->limits;

    if (a->max_send_wr > (a->raw ? DOCK_RING_BLOCKS_MAX : l->max_qp_wr) ||
        a->max_recv_wr > (a->xrc == DOCK_XRC_SRQ ? l->max_srq_wr : l->max_qp_wr) ||
        a->max_send_sge > l->max_sge || a->max_recv_sge > l->max_sge || a->max_inline > l->max_inline)
        return dock_refuse(-EINVAL,
                           "queue pair of %u/%u WRs, %u/%u SGEs, %u bytes inline: more than the device has",
                           a->max_send_wr, a->max_recv_wr, a->max_send_sge, a->max_recv_sge, a->max_inline);
    if (a->service >= DOCK_SERVICES)
        return dock_refuse(-EINVAL, "service %d: there is none of that number", (int)a->service);
    if ((!a->send_cq && a->role != DOCK_RECEIVES) || (!a->recv_cq && a->role != DOCK_SENDS) ||
        (!a->send_cq && !a->recv_cq))
        return dock_refuse(-EINVAL, "a queue pair needs two completion queues, half of one the one it uses");
    if ((a->role == DOCK_SENDS && (a->srq || a->max_recv_wr)) || (a->role == DOCK_RECEIVES && a->max_send_wr))
        return dock_refuse(-EINVAL, "a queue that only %s, with WRs of the other kind",
                           a->role == DOCK_SENDS ? "sends" : "receives");
    if (a->bundle && a->service != DOCK_RM)
        return dock_refuse(-EINVAL, "only queues for reliable messages join a group");
    if ((a->on_error == DOCK_ON_ERROR_SUSPEND || a->unordered) && !dock_qp_urma(a))
        return dock_refuse(-EINVAL, "a queue that is to be suspended on errors is one of URMA's");
    if (a->origin.at && (!a->raw || a->service != DOCK_RC))
        return dock_refuse(-EINVAL, "a relay is a connected queue that its producer drives");
    if (a->srq && a->srq->dev != dev)
        return dock_refuse(-EINVAL, "the shared receive queue is of another device");
    if (a->srq && !a->srq->shared)
        return dock_refuse(-EINVAL,
                           "a queue pair cannot receive from XRC's shared queue: requests name that");
    return 0;
}

void dock_conn_init(struct dock_conn *c, struct dock_qp *qp, uint32_t dest_qp, dock_who who)
{
    struct dock_dev *dev = qp->dev;

    memset(c, 0, sizeof *c);
    c->dest_qp = dest_qp;
    c->xrc = qp->attr.xrc == DOCK_XRC_INI;
    c->source_qp = qp->number;
    c->dest_who = who;
    c->service = (uint8_t)qp->attr.service;
    c->dev = dev;
    c->waiter = &dev->waiter;
    c->me = dev->waiter.me;
    c->moving = &dev->pages_move;
    c->zero_length_checked = dock_profile()->zero_length_checked;
    c->atomics_apart = dock_profile()->atomics_apart;
    c->source_eid = qp->attr.tell_eid ? qp->attr.eid : NULL;
    c->fabric = dev->fabric ? dev->fabric : who == dev->waiter.me ? &dock_fabric_self : &dock_fabric_host;
}

// Of the caller's memory only: peers look into the rings of completions and receives, this one is ours alone.
static int place_send_ring(struct dock_qp *qp)
{
    uint64_t bytes = dock_qp_ring_bytes(&qp->attr);
    int err;

    if (qp->attr.ring) {
        qp->sq.post.ring = qp->attr.ring;
        memset(qp->attr.ring, 0, bytes);
        return 0;
    }
    err = dock_arena_alloc(&qp->dev->arena, bytes, 64, &qp->ring_off);
    if (err)
        return err;
    qp->ring_size = bytes;
    qp->sq.post.ring = dock_arena_at(&qp->dev->arena, qp->ring_off);
    return 0;
}

static int make_send_ring(struct dock_qp *qp)
{
    struct dock_dev *dev = qp->dev;
    struct dock_sq *sq = &qp->sq;
    uint32_t depth = qp->attr.max_send_wr, start = dev->start_index, blocks = ring_blocks(&qp->attr);
    int err = place_send_ring(qp);

    if (err)
        return err;
    sq->post.wrid = calloc(blocks, sizeof *sq->post.wrid);
    if (!sq->post.wrid)
        return dock_no_memory("a send queue");
    sq->post.doorbell = &qp->rec->doorbell; // a raw queue has a page of its own
    sq->post.state = &qp->rec->state;
    sq->post.executed = &qp->rec->executed;
    sq->post.posted = start;
    dock_set32(&sq->post.pi, start);
    sq->post.mask = blocks - 1;
    sq->post.depth = depth;
    sq->post.always = DOCK_F_TOKEN_EN | (qp->attr.signal_all ? DOCK_F_COMPLETE : 0);
    sq->post.inline_max = qp->attr.max_inline;
    sq->post.sge_max = (uint8_t)qp->attr.max_send_sge;
    sq->post.lock_free = qp->attr.lock_free;
    sq->post.urma = dock_qp_urma(&qp->attr);
    sq->post.names = dock_service_names(qp->attr.service);
    sq->post.xrc = qp->attr.xrc == DOCK_XRC_INI;
    sq->post.simple = qp->attr.max_send_sge && !sq->post.names && !sq->post.xrc && !qp->attr.raw;
    sq->post.token_at = sq->post.urma ? offsetof(struct dock_wr, token) : offsetof(struct dock_wr, rkey);
    sq->post.free_early = dock_profile()->slot_free_at_execution && !qp->attr.raw;
    return qp->attr.raw ? dock_raw_open(qp, blocks) : 0;
}

// A late fabric has many WRs in flight; each needs a place to wait for its turn.
static int make_flights(struct dock_sq *sq)
{
    const struct dock_fabric *fabric = sq->qp->dev->fabric;

    if (!fabric || !fabric->late)
        return 0;
    sq->flights = dock_power_of_two(sq->post.depth ? sq->post.depth : 1);
    sq->flight = calloc(sq->flights, sizeof *sq->flight);
    return sq->flight ? 0 : dock_no_memory("requests in flight");
}

static void init_sq(struct dock_qp *qp)
{
    struct dock_sq *sq = &qp->sq;

    sq->qp = qp;
    sq->rec = qp->rec;
    sq->conn = qp->attr.service == DOCK_RC || qp->attr.service == DOCK_UC ? &qp->conn : NULL;
    sq->x.service = (uint8_t)qp->attr.service;
    sq->x.keyed = !qp->attr.raw;
    sq->x.origin = qp->attr.origin.at ? &qp->attr.origin : NULL;
    sq->x.tokens = dock_qp_urma(&qp->attr);
    sq->x.short_atomics = qp->attr.short_atomics;
    sq->x.pd = qp->attr.pd;
    bool direct = sq->x.keyed && !sq->flight && (!qp->dev->fabric || qp->dev->fabric->direct);
    // XRC: each request names the shared queue in whose domain its key is looked for
    sq->straight = sq->conn && direct && !sq->post.xrc;
    sq->me = qp->dev->waiter.me;
    sq->record = &qp->dev->ids_table.rec[dock_who_slot(sq->me)];
    sq->places = (sq->straight || (direct && qp->attr.service == DOCK_RM)) && !sq->post.free_early;
    sq->lkey = qp->dev->lkeys;
    sq->domain = dock_lkey_name(qp->attr.pd, 0);
    qp->raw_seen = dock_peek32(&sq->post.pi);
    dock_set32(sq->post.doorbell, qp->raw_seen);
    dock_sq_clear(sq);
}

// URMA's queues restrict nothing: segments do.
#define ALL_REMOTE (DOCK_ACCESS_REMOTE_READ | DOCK_ACCESS_REMOTE_WRITE | DOCK_ACCESS_REMOTE_ATOMIC)

static const uint32_t kind_of_role[] = {
    [DOCK_BOTH] = DOCK_QUEUE_PAIR, [DOCK_SENDS] = DOCK_QUEUE_SENDS, [DOCK_RECEIVES] = DOCK_QUEUE_SHARED_RQ};

static uint32_t kind_of(const struct dock_qp_attr *a)
{
    if (a->xrc == DOCK_XRC_TGT)
        return DOCK_QUEUE_XRC_TGT;
    if (a->xrc == DOCK_XRC_SRQ)
        return DOCK_QUEUE_XRC_SRQ;
    return a->origin.at ? DOCK_QUEUE_RELAY : kind_of_role[a->role];
}

static void publish_record(struct dock_qp *qp)
{
    struct dock_qrec *r = qp->rec;

    r->kind_service = kind_of(&qp->attr) << 8 | qp->attr.service;
    r->id = qp->number;
    r->pd = qp->attr.pd;
    r->rq = qp->attr.role == DOCK_SENDS ? 0 : qp->rq->rec_off;
    r->cq = qp->recv_cq->rec_off;
    r->sum = dock_qrec_sum(r);
    r->sq = qp->ring_off;
    r->sq_blocks = qp->sq.post.mask + 1;
    r->sq_depth = qp->sq.post.depth;
    r->page = qp->page ? qp->page_off : 0;
    r->send_cq = qp->send_cq->rec_off;
    r->cookie = qp->attr.xrc ? qp->attr.xrcd : qp->attr.cookie;
    dock_set32(&r->access, dock_qp_urma(&qp->attr) ? ALL_REMOTE : 0);
    dock_set32(&r->qkey, 0);
    dock_set32(&r->rnr_timer, 0);
    dock_set32(&r->rd_atomic, 0);
    dock_set32(&r->peer_id, dock_service_names(qp->attr.service) ? DOCK_PEER_ANY : 0);
    dock_set32(&r->peer_who, 0);
    dock_set32(&r->attention, 0);
    dock_set32(&r->first_cause, 0);
    for (dock_a64 *w = &r->posted; w <= &r->rings; w++)
        dock_set64(w, 0);
    dock_set64(&r->pieces, 0);
    for (dock_a64 *w = &r->executed; w <= &r->visits; w++)
        dock_set64(w, 0);
    dock_set64(&r->messages_in, 0);
    dock_set64(&r->bytes_in, 0);
    dock_publish32(&r->serial, dock_peek32(&r->serial) + 1);
    dock_publish32(&r->state, DOCK_RESET); // pairs with answers() of the peers
}

static void enlist(struct dock_dev *dev, struct dock_qp *qp)
{
    dock_lock(&dev->lock);
    qp->next = dev->qps;
    if (qp->next)
        qp->next->prev = qp;
    dev->qps = qp;
    dock_unlock(&dev->lock);
    atomic_fetch_add_explicit(&dev->port->nqueues, 1, memory_order_relaxed);
    if (qp->attr.raw)
        dock_raw_watch_doorbell(qp);
}

static void delist(struct dock_dev *dev, struct dock_qp *qp)
{
    dock_raw_unwatch(qp);
    dock_lock(&dev->lock);
    if (qp->prev)
        qp->prev->next = qp->next;
    else
        dev->qps = qp->next;
    if (qp->next)
        qp->next->prev = qp->prev;
    dock_unlock(&dev->lock);
    atomic_fetch_sub_explicit(&dev->port->nqueues, 1, memory_order_relaxed);
}

static void free_parts(struct dock_qp *qp)
{
    if (qp->rq && !qp->rq->shared)
        dock_rq_destroy(qp->rq);
    dock_raw_close(qp);
    if (qp->ring_size)
        dock_arena_free(&qp->dev->arena, qp->ring_off, qp->ring_size);
    free(qp->sq.post.wrid);
    free(qp->sq.flight);
    pthread_mutex_destroy(&qp->modify);
    free(qp);
}

static int make_receive_queue(struct dock_qp *qp)
{
    const struct dock_qp_attr *a = &qp->attr;
    int err;

    if (a->srq) {
        qp->rq = a->srq;
        return 0;
    }
    err = dock_rq_create(qp->dev, a->max_recv_wr, a->max_recv_sge ? a->max_recv_sge : 1, a->pd, qp->number, 0,
                         &qp->rq);
    if (!err) {
        qp->rq->owner = qp;
        qp->rq->lock_free = a->lock_free;
        qp->rq->sge_max = a->max_recv_sge;
    }
    return err;
}

static int make(struct dock_dev *dev, const struct dock_qp_attr *attr, struct dock_qp **out)
{
    struct dock_qp *qp = aligned_alloc(64, (sizeof *qp + 63) & ~63ul);
    int err;

    if (!qp)
        return dock_no_memory("a queue pair");
    memset(qp, 0, sizeof *qp);
    qp->dev = dev;
    qp->attr = *attr;
    qp->send_cq = attr->send_cq ? attr->send_cq : attr->recv_cq;
    qp->recv_cq = attr->recv_cq ? attr->recv_cq : attr->send_cq;
    qp->rd_atomic = 1;
    pthread_mutex_init(&qp->modify, NULL);
    err = dock_id_take(dev, qp, attr->number, &qp->number);
    if (err)
        goto no_id;
    qp->rec = dock_id_record(dev, qp->number);
    err = make_receive_queue(qp);
    if (!err)
        err = make_send_ring(qp);
    qp->sq.qp = qp;
    if (!err)
        err = make_flights(&qp->sq);
    if (err)
        goto no_parts;
    dock_conn_init(&qp->conn, qp, 0, 0);
    init_sq(qp);
    *out = qp;
    return 0;
no_parts:
    dock_id_give(dev, qp->number);
no_id:
    free_parts(qp);
    return err;
}

static void use(struct dock_qp *qp, int by)
{
    // release on the way down pairs with the acquire in the destroyers
    atomic_fetch_add_explicit(&qp->send_cq->users, (uint32_t)by, memory_order_release);
    atomic_fetch_add_explicit(&qp->recv_cq->users, (uint32_t)by, memory_order_release);
    if (qp->attr.srq)
        atomic_fetch_add_explicit(&qp->attr.srq->users, (uint32_t)by, memory_order_release);
}

int dock_qp_create(struct dock_dev *dev, const struct dock_qp_attr *attr, struct dock_qp **out)
{
    struct dock_qp *qp;
    int err = check(dev, attr);

    if (err)
        return err;
    err = dock_pd_use(dev, attr->pd);
    if (err)
        return err;
    err = dock_count_up(dev, &dev->n_qp, dev->limits.max_qp, "queue pairs");
    if (err)
        goto no_count;
    err = make(dev, attr, &qp);
    if (err)
        goto no_qp;
    use(qp, 1);
    publish_record(qp);
    enlist(dev, qp);
    err = attr->bundle ? dock_bundle_join(attr->bundle, qp->number) : 0;
    if (err) {
        dock_qp_destroy(qp);
        return err;
    }
    *out = qp;
    return 0;
no_qp:
    dock_count_down(dev, &dev->n_qp);
no_count:
    dock_pd_drop(dev, attr->pd);
    return err;
}

// The engine or a helping poller may still have the queue in hand.
static void wait_unpinned(struct dock_qp *qp)
{
    while (dock_lists_remove(qp->dev, &qp->sq)) // pairs with the drops in lists.c and attend.c
        sched_yield();
}

static void sum_up(const struct dock_qp *qp)
{
    dock_info("queue %u (send index %u) ends: %llu WRs posted, %llu executed, %llu bytes out, %llu "
              "completions, %llu bytes in",
              qp->number, dock_peek32(&qp->sq.post.pi), (unsigned long long)dock_peek64(&qp->rec->posted),
              (unsigned long long)dock_peek64(&qp->rec->executed),
              (unsigned long long)dock_peek64(&qp->rec->bytes_out),
              (unsigned long long)dock_peek64(&qp->rec->cqes),
              (unsigned long long)dock_peek64(&qp->rec->bytes_in));
}

// Who posts a datagram need not wait for it: on a wire it leaves at once. One that waits for the first way to
// its target, and what stands behind it, leaves before the queue goes.
static void see_off(struct dock_qp *qp)
{
    struct dock_sq *sq = &qp->sq;
    uint64_t until = dock_now_ns() + DOCK_PATIENCE_NS;
    bool waits = !sq->conn && dock_service_lossy(qp->attr.service);

    while (waits && dock_now_ns() < until) {
        dock_sq_hold(sq);
        waits = dock_peek32(&qp->rec->state) == DOCK_RTS && (sq->mid || sq->exec != dock_sq_rung(sq));
        dock_sq_release(sq); // which runs it
        if (waits)
            dock_engine_nap(qp->dev);
    }
}

int dock_qp_destroy(struct dock_qp *qp)
{
    struct dock_dev *dev = qp->dev;

    see_off(qp);
    if (qp->attr.bundle)
        dock_bundle_leave(qp->attr.bundle, qp->number);
    // It stays in the device's list until the token is ours: while another thread still runs it, who takes
    // memory away must find it there and wait.
    dock_sq_hold(&qp->sq);
    dock_publish32(&qp->rec->state, DOCK_GONE); // pairs with answers() of the peers
    dock_port_moment(dev->port, DOCK_AT_STATE, qp->number, DOCK_GONE);
    dock_sq_land(&qp->sq);
    dock_sq_abandon(&qp->sq);
    dock_quiesce(dev, &qp->sq);
    delist(dev, qp);
    dock_attend_limit(qp);
    dock_qp_leave_all(qp);
    dock_sq_release(&qp->sq);
    wait_unpinned(qp);
    qp->conn.fabric->disconnect(&qp->conn);
    dock_ways_forget(qp);
    dock_cq_forget(qp->send_cq, qp, true);
    dock_cq_forget(qp->recv_cq, qp, true);
    if (qp->rq->shared)
        dock_rq_forget_claims(qp);
    dock_events_forget(qp->events, qp, &qp->events_got);
    if (qp->attr.xrc == DOCK_XRC_SRQ)
        dock_events_forget(qp->rq->events, qp->rq, &qp->rq->events_got);
    sum_up(qp);
    dock_id_give(dev, qp->number);
    use(qp, -1);
    dock_count_down(dev, &dev->n_qp);
    dock_pd_drop(dev, qp->attr.pd);
    free_parts(qp);
    return 0;
}

uint32_t dock_qp_number(const struct dock_qp *qp)
{
    return qp->number;
}

enum dock_state dock_qp_state(const struct dock_qp *qp)
{
    uint32_t state = dock_acquire32(&qp->rec->state), why = dock_acquire32(&qp->rec->attention);

    // A peer that found a request wrong has said so before it completed it at its own side; that our engine
    // has not come to it yet is nobody's business.
    if (__builtin_expect(why & DOCK_ATTN_ERRORS, 0) && state >= DOCK_RTR && state <= DOCK_SQE)
        return DOCK_ERR;
    return (enum dock_state)state;
}

void *dock_qp_user(const struct dock_qp *qp)
{
    return qp->attr.user;
}

struct dock_dev *dock_qp_dev(const struct dock_qp *qp)
{
    return qp->dev;
}
