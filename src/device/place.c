// SPDX-License-Identifier: MIT
// A small WRITE or SEND that is executed while it is posted: nothing stands before it in the queue, and all
// that the short way wants is at hand. Of a queue without a connection: a WRITE on the way that it went last.
// Its bytes go first, for somebody may be waiting for them, and what is kept of it is written then. Lock and
// token are held from dock_post_begin to dock_post_end, so nobody sees the one without the other; who dies in
// between has nobody who looks.
#include "device/run.h"
#include "device/slot.h"
#include "device/straight.h"

#define MOST 4096u // bytes of a common WRITE: who waits for more does not mind a WQE before it

#define FLAGS (DOCK_F_SOLICITED | DOCK_F_TOKEN_EN | DOCK_F_FENCE | DOCK_F_COMPLETE | DOCK_F_INLINE)

// No more: what was put by now is executed, and what is put from here on stands behind it.
static inline void stop(struct dock_post *p, uint32_t executed)
{
    struct dock_sq *sq = &p->qp->sq;

    if (p->at_once >= DOCK_PLACES) {
        dock_straight_leave(sq, p->way, true);
        p->placed = executed - sq->exec;
    }
    p->at_once = DOCK_PUT_ONLY;
}

void dock_post_stop(struct dock_post *p)
{
    stop(p, p->pi);
}

// The first request of a call: it enters the target's memory for those behind it too.
static inline bool start(struct dock_post *p, struct dock_conn *c)
{
    struct dock_sq *sq = &p->qp->sq;

    p->at_once = DOCK_PUT_ONLY;
    if (sq->mid || sq->mark || sq->exec != p->pi || dock_link_down() || !c->views ||
        !dock_straight_goes_on(sq) || dock_sq_evicted(sq))
        return false;
    if (__builtin_expect(!dock_straight_enter(sq, c), 0)) {
        dock_straight_leave(sq, c, false);
        return false;
    }
    p->way = c;
    p->at_once = dock_direct_writable(c) ? DOCK_PLACES_ALL : DOCK_PLACES;
    return true;
}

static inline bool within_budget(const struct dock_post *p)
{
    return p->pi - p->qp->sq.exec < DOCK_BUDGET_WRS;
}

// May this one be placed? As many as the budget of a run has.
static inline bool may(struct dock_post *p, uint8_t what)
{
    struct dock_sq *sq = &p->qp->sq;
    bool goes_on = p->at_once == DOCK_MAY_PLACE ? sq->places && start(p, sq->conn) : within_budget(p);

    return goes_on && p->at_once >= what;
}

// One that wants a completion is the last: it is told when the queue's head has moved.
static inline void placed(struct dock_post *p, uint32_t flags, uint32_t len)
{
    p->qp->sq.bytes += len;
    if (flags & DOCK_F_COMPLETE) {
        p->told = len;
        stop(p, p->pi + 1);
    }
}

static inline uint64_t remote(const struct dock_post *p, const struct dock_wr *wr)
{
    return dock_rkey_name(wr->rkey >> 8 & DOCK_ID_MASK, dock_slot_token(p->sq, wr));
}

// A WRITE of one word under the keys that were used last. false: nothing was placed.
static inline bool place_word(struct dock_post *p, const struct dock_wr *wr, uint32_t flags)
{
    struct dock_sq *sq = &p->qp->sq;
    uint64_t va = wr->sge->addr, len_key;
    const char *from;

    memcpy(&len_key, &wr->sge->len, sizeof len_key);
    if (__builtin_expect((uint32_t)len_key != 8 || flags & ~FLAGS, 0) || !may(p, DOCK_PLACES_ALL) ||
        !dock_straight_known(sq, len_key, va, &from) ||
        !dock_direct_write_word(p->way, remote(p, wr), wr->raddr, from))
        return false;
    placed(p, flags, 8);
    return true;
}

// The bytes of a request that has them inline are taken before anything is touched: they may be bad, or lie
// where they go to.
struct taken {
    uint64_t word[2];
};

static_assert(sizeof(struct taken) == sizeof((struct dock_wqe *)NULL)->body, "inline in one block");

static inline bool take(struct dock_post *p, const struct dock_wr *wr, uint32_t flags, struct taken *t)
{
    uint32_t len = wr->sge->len;

    if (__builtin_expect(len - 1 >= DOCK_STRAIGHT_BYTES || p->bytes + len > DOCK_BUDGET_BYTES, 0))
        return false;
    p->bytes += len;
    if (flags & DOCK_F_INLINE)
        dock_slot_copy(t, wr->sge->addr, len);
    return true;
}

static inline bool source(struct dock_sq *sq, const struct dock_wr *wr, uint32_t flags, const struct taken *t,
                          const char **from)
{
    uint64_t len_key;

    *from = (const char *)t;
    memcpy(&len_key, &wr->sge->len, sizeof len_key);
    return flags & DOCK_F_INLINE || dock_straight_source(sq, len_key, wr->sge->addr, from);
}

static inline bool place_message(struct dock_post *p, const struct dock_wr *wr, uint32_t flags)
{
    struct dock_direct_message m = {.op = wr->op, .flags = flags, .imm = wr->imm, .len = wr->sge->len};
    struct dock_sq *sq = &p->qp->sq;
    struct taken t;

    if (!take(p, wr, flags, &t) || !may(p, DOCK_PLACES) || !source(sq, wr, flags, &t, &m.from))
        return false;
    p->status = dock_direct_send(p->way, &m);
    if (p->status == DOCK_DIRECT_NOT)
        return false;
    placed(p, p->status ? flags | DOCK_F_COMPLETE : flags, m.len);
    return true;
}

static inline bool place_write(struct dock_post *p, const struct dock_wr *wr, uint32_t flags,
                               const struct taken *t)
{
    const char *from;

    if (!source(&p->qp->sq, wr, flags, t, &from) ||
        !dock_direct_write(p->way, remote(p, wr), wr->raddr, from, wr->sge->len))
        return false;
    placed(p, flags, wr->sge->len);
    return true;
}

// Will it surely be put, in one block, if there is room?
static inline bool fits(const struct dock_sq_post *sq, const struct dock_wr *wr, uint32_t flags)
{
    return wr->nsge == 1 && !(flags & ~FLAGS) &&
           (!(flags & DOCK_F_INLINE) ||
            (wr->inline_len == wr->sge->len && wr->inline_len <= sizeof((struct dock_wqe *)NULL)->body &&
             wr->inline_len <= sq->inline_max));
}

static int __attribute__((noinline)) put_message(struct dock_post *p, const struct dock_wr *wr)
{
    uint32_t flags = wr->flags | p->sq->always;
    bool simple = p->sq->room && fits(p->sq, wr, flags);

    if (p->at_once && !(simple && place_message(p, wr, flags)))
        stop(p, p->pi);
    if (__builtin_expect(!simple, 0))
        return dock_post_put_only(p, wr);
    dock_slot_message(p, wr, flags);
    return 0;
}

// A queue without a connection: is it the way that was gone last, and to whom it led?
static inline bool same_way(const struct dock_sq *sq, const struct dock_conn *c, const struct dock_wr *wr)
{
    return c && c->dest_qp == wr->remote && !memcmp(c->eid, wr->eid, sizeof c->eid) &&
           dock_idtable_owner_of(&sq->qp->dev->ids_table, wr->remote) == c->dest_who;
}

// May this one be placed? One call places on one way.
static inline bool may_named(struct dock_post *p, const struct dock_wr *wr)
{
    struct dock_sq *sq = &p->qp->sq;
    struct dock_conn *c = p->at_once == DOCK_MAY_PLACE ? sq->way : p->way;

    // A datagram queue places none, and has no groups: nobody has filled that field.
    if (!sq->places || wr->bundle || !same_way(sq, c, wr) ||
        !(p->at_once == DOCK_MAY_PLACE ? start(p, c) : within_budget(p)))
        return false;
    sq->x.target = wr->remote; // for its completion; nothing is begun
    return p->at_once == DOCK_PLACES_ALL;
}

static int __attribute__((noinline)) put_named(struct dock_post *p, const struct dock_wr *wr)
{
    uint32_t flags = wr->flags | p->sq->always;
    struct taken t;

    if (p->at_once && !(wr->op == DOCK_OP_WRITE && fits(p->sq, wr, flags) && dock_slot_room(p->sq, p, 1) &&
                        take(p, wr, flags, &t) && may_named(p, wr) && place_write(p, wr, flags, &t)))
        stop(p, p->pi);
    return dock_post_put_only(p, wr);
}

// On a connection, but for messages.
static int __attribute__((noinline)) put_one_sided(struct dock_post *p, const struct dock_wr *wr)
{
    uint32_t flags = wr->flags | p->sq->always;
    struct taken t;

    if (p->at_once && !(wr->op == DOCK_OP_WRITE && p->sq->room && fits(p->sq, wr, flags) &&
                        take(p, wr, flags, &t) && may(p, DOCK_PLACES_ALL) && place_write(p, wr, flags, &t)))
        stop(p, p->pi);
    return dock_post_put_only(p, wr);
}

// The common WRITE, where it is long: behind the doorbell it has a line of its own.
static int __attribute__((noinline)) put_long(struct dock_post *p, const struct dock_wr *wr, uint32_t flags)
{
    stop(p, p->pi);
    dock_slot_write(p, wr, flags);
    return 0;
}

static int __attribute__((noinline)) put_other(struct dock_post *p, const struct dock_wr *wr)
{
    if (p->sq->names)
        return put_named(p, wr);
    return wr->op <= DOCK_OP_SEND_IMM ? put_message(p, wr) : put_one_sided(p, wr);
}

int dock_post_put(struct dock_post *p, const struct dock_wr *wr)
{
    uint32_t flags = wr->flags | p->sq->always;

    // Where there is room the queue takes the common WQE, and nobody listens.
    if (__builtin_expect(wr->op != DOCK_OP_WRITE || wr->nsge != 1 || flags & DOCK_F_INLINE || !p->sq->room,
                         0))
        return put_other(p, wr);
    if (p->at_once && !place_word(p, wr, flags))
        return wr->sge->len > MOST ? put_long(p, wr, flags) : put_other(p, wr);
    dock_slot_write(p, wr, flags);
    return 0;
}

// All that was put is executed: the queue's indices follow, and the last one is told if it asks for that.
static inline void end_placed(struct dock_post *p, uint32_t told)
{
    struct dock_sq *sq = &p->qp->sq;
    struct dock_qrec *rec = sq->rec;
    uint32_t pi = p->pi, n = pi - sq->exec;

    sq->post.posted = p->posted;
    dock_count64(&rec->posted, n);
    dock_publish32(&sq->post.pi, pi); // the WQEs before it; pairs with the acquire in dock_sq_raise
    dock_count64(&rec->rings, 1);
    dock_publish32(sq->post.doorbell, pi); // the WQEs before the doorbell; pairs with the acquire in run.c
    sq->exec = pi - told;
    sq->seq = sq->retired = sq->seq + n - told;
    if (told)
        dock_sq_tell_placed(sq, p);
    dock_sq_tell(sq, DOCK_BY_POSTER);
    dock_conn_wake(p->way);
    if (__builtin_expect(!sq->mark, 1))
        dock_publish32(&sq->post.word, 0); // pairs with dock_sq_lock, and take in run.c
    else
        dock_sq_go_on(sq, &(struct dock_stay){.bytes = DOCK_BUDGET_BYTES, .wrs = DOCK_BUDGET_WRS});
}

void dock_post_end(struct dock_post *p)
{
    struct dock_sq *sq = &p->qp->sq;

    if (__builtin_expect(p->at_once >= DOCK_PLACES, 1)) {
        dock_straight_leave(sq, p->way, true);
        end_placed(p, 0);
    } else if (p->told && p->pi - sq->exec == p->placed) {
        end_placed(p, 1);
    } else {
        dock_post_end_any(p);
    }
}
