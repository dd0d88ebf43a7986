// SPDX-License-Identifier: MIT
// From a WR to a WQE in the ring, and the doorbell.
#include "device/internal.h"

struct dock_sq_post *dock_qp_sq(struct dock_qp *qp)
{
    return &qp->sq.post;
}

void dock_spin_wait(dock_a32 *lock)
{
    for (unsigned spins = 0;; spins++) {
        uint32_t free = 0;
        if (dock_peek32(lock) == 0 && dock_claim32(lock, &free, 1))
            return;
        if (spins % 128 == 127)
            sched_yield();
        dock_relax();
    }
}

bool dock_sq_lock_wait(struct dock_sq_post *sq, bool both)
{
    for (unsigned spins = 1;; spins++) {
        uint32_t seen = dock_peek32(&sq->word);
        uint32_t with = !seen && both ? DOCK_SQ_BOTH : seen | DOCK_SQ_LOCK;
        // pairs with whoever let go of either in run.c
        if (!(seen & (DOCK_SQ_LOCK | DOCK_SQ_BOTH)) && dock_claim32(&sq->word, &seen, with))
            return with == DOCK_SQ_BOTH;
        if (spins % 128 == 0)
            sched_yield();
        dock_relax();
    }
}

// Room for one more WR and `blocks` more blocks? What was freed is published by the poller (free_slots in
// poll.c).
static inline bool has_room(const struct dock_sq_post *sq, const struct dock_post *p, unsigned blocks)
{
    uint64_t freed = dock_acquire64(&sq->freed);

    return p->posted - (uint32_t)(freed >> 32) < sq->depth &&
           p->pi + blocks - (uint32_t)freed <= sq->mask + 1;
}

static inline void put_sges(char *at, const struct dock_wr *wr)
{
    for (unsigned i = 0; i < wr->nsge; i++) {
        struct dock_wqe_sge s = {.len = wr->sge[i].len, .key = wr->sge[i].key, .va = wr->sge[i].addr};
        memcpy(at + i * sizeof s, &s, sizeof s);
    }
}

static inline void put_inline(char *at, const struct dock_wr *wr)
{
    for (unsigned i = 0; i < wr->nsge; i++) {
        if (wr->sge[i].len)
            memcpy(at, (const void *)(uintptr_t)wr->sge[i].addr, wr->sge[i].len);
        at += wr->sge[i].len;
    }
}

// Verbs has one word for the key and its token.
static inline uint32_t token_of(const struct dock_sq_post *sq, const struct dock_wr *wr)
{
    uint32_t token;

    memcpy(&token, (const char *)wr + sq->token_at, sizeof token);
    return token;
}

static inline void put_control(const struct dock_sq_post *sq, struct dock_wqe *w, const struct dock_wr *wr,
                               uint32_t flags)
{
    w->flags = flags;
    w->op = (uint32_t)wr->op << 8 | (flags & DOCK_F_INLINE ? wr->inline_len << 22 : 0);
    w->tp_sge = flags & DOCK_F_INLINE ? 0 : (uint32_t)wr->nsge << 24;
    w->remote = wr->rkey >> 8 & DOCK_ID_MASK;
    w->token = token_of(sq, wr);
    w->udf = 0;
    w->address = wr->raddr;
}

// What an opcode has beside control and data, at its public place.
static inline void put_special(const struct dock_sq_post *sq, char *b, const struct dock_wr *wr)
{
    struct dock_wqe *w = (struct dock_wqe *)b;
    uint64_t two[2];

    switch (wr->op) {
    case DOCK_OP_SEND:
    case DOCK_OP_SEND_IMM:
    case DOCK_OP_SEND_INV:
        w->remote = wr->remote;
        w->token = sq->urma ? wr->target_token : wr->rkey;
        w->address = wr->op == DOCK_OP_SEND_INV ? (uint64_t)token_of(sq, wr) << 32 | wr->rkey >> 8 : wr->imm;
        break;
    case DOCK_OP_WRITE_IMM:
        two[0] = wr->imm;
        two[1] = sq->names ? (uint64_t)wr->target_token << 32 | (wr->remote & DOCK_ID_MASK) : 0;
        memcpy(b + 48, two, 16);
        break;
    case DOCK_OP_WRITE_NOTIFY:
    case DOCK_OP_WRITE_ADD:
        two[0] = (uint64_t)(sq->urma ? wr->notify_token : wr->notify_key) << 32 | wr->notify_key >> 8;
        two[1] = wr->notify_addr;
        memcpy(b + 48, two, 16);
        two[0] = wr->notify_value;
        two[1] = 0;
        memcpy(b + 64, two, 16);
        break;
    case DOCK_OP_CAS:
        two[0] = wr->operand;
        two[1] = wr->compare;
        memcpy(b + 64, two, 16);
        break;
    case DOCK_OP_BIND:
        two[0] = wr->compare << 32 | wr->remote; // rights, region's key
        two[1] = wr->raddr;
        memcpy(b + 48, two, 16);
        two[0] = wr->operand; // length
        two[1] = wr->imm;     // the new key
        memcpy(b + 64, two, 16);
        break;
    default:
        if (dock_op_is_atomic(wr->op))
            memcpy(b + 64, &wr->operand, 8);
    }
}

// A WQE that wraps at the end of the ring is built aside and laid down block by block.
static void lay_down(struct dock_sq_post *sq, uint32_t pi, const char *wqe, unsigned blocks)
{
    for (unsigned i = 0; i < blocks; i++)
        memcpy(sq->ring + (uint64_t)((pi + i) & sq->mask) * DOCK_BLOCK, wqe + (size_t)i * DOCK_BLOCK,
               DOCK_BLOCK);
}

// Without a connection each WQE says where it goes: the address, and the target's number as the transport.
static void put_target(struct dock_wqe *w, const struct dock_wr *wr)
{
    w->tp_sge |= wr->remote & DOCK_ID_MASK;
    w->flags |= wr->bundle ? DOCK_TARGET_GROUP << DOCK_TARGET_SHIFT : 0;
    w->op |= wr->hint;
    for (unsigned i = 0; i < 16; i++) // the format has the address bytes reversed
        w->eid[i] = wr->eid[15 - i];
}

// A datagram names its target in the control part as URMA's do, and says more in the udf word.
static void put_header(struct dock_wqe *w, const struct dock_wr *wr)
{
    w->udf = wr->header;
    w->flags |= wr->header ? DOCK_F_UDF : 0;
}

static void encode(const struct dock_sq_post *sq, char *b, const struct dock_wr *wr, uint32_t flags)
{
    put_control(sq, (struct dock_wqe *)b, wr, flags);
    if (__builtin_expect(wr->op != DOCK_OP_WRITE && wr->op != DOCK_OP_READ, 0))
        put_special(sq, b, wr);
    if (sq->names && wr->eid) // a NOP goes nowhere
        put_target((struct dock_wqe *)b, wr);
    if (__builtin_expect(sq->names && !sq->urma && wr->eid, 0))
        put_header((struct dock_wqe *)b, wr);
    if (__builtin_expect(sq->xrc, 0))
        ((struct dock_wqe *)b)->tp_sge |= wr->remote & DOCK_ID_MASK;
    if (flags & DOCK_F_INLINE)
        put_inline(b + dock_wqe_data_at(wr->op), wr);
    else if (wr->op != DOCK_OP_BIND)
        put_sges(b + dock_wqe_data_at(wr->op), wr);
}

// The rest of dock_post_put: anything but a one-block WQE of one SGE.
static int __attribute__((noinline)) put_any(struct dock_post *p, const struct dock_wr *wr)
{
    struct dock_sq_post *sq = p->sq;
    uint32_t flags = wr->flags | sq->always | DOCK_F_TOKEN_EN;
    unsigned blocks = dock_wqe_blocks_of(wr->op, flags & DOCK_F_INLINE, wr->inline_len, wr->nsge);

    if (__builtin_expect(wr->nsge > sq->sge_max, 0))
        return dock_refuse(-EINVAL, "send WR with %u SGEs on a queue made for %u", wr->nsge, sq->sge_max);
    if (__builtin_expect((flags & DOCK_F_INLINE) && wr->inline_len > sq->inline_max, 0))
        return dock_refuse(-EINVAL, "%u bytes inline on a queue made for %u", wr->inline_len, sq->inline_max);
    if (__builtin_expect(blocks > DOCK_WQE_BLOCKS, 0))
        return dock_refuse(-EINVAL, "a WR that needs %u blocks, a WQE has %u", blocks, DOCK_WQE_BLOCKS);
    if (__builtin_expect(!has_room(sq, p, blocks), 0))
        return dock_refuse(-ENOMEM, "send queue %u full: %u WRs posted that no polled completion covers",
                           dock_qp_number(p->qp), p->posted - (uint32_t)(dock_peek64(&sq->freed) >> 32));

    uint32_t at = p->pi & sq->mask;
    flags |= p->pi & (sq->mask + 1) ? 0 : DOCK_F_OWNER;
    if (__builtin_expect(at + blocks <= sq->mask + 1, 1)) {
        encode(sq, sq->ring + (uint64_t)at * DOCK_BLOCK, wr, flags);
    } else {
        char aside[DOCK_WQE_BYTES];
        encode(sq, aside, wr, flags);
        lay_down(sq, p->pi, aside, blocks);
    }
    for (unsigned i = 0; i < blocks; i++)
        sq->wrid[(p->pi + i) & sq->mask] = wr->id;
    p->pi += blocks;
    p->posted++;
    dock_probe(DOCK_AT_POST, dock_qp_number(p->qp), p->posted - 1);
    return 0;
}

// What a WQE of one block has before its body.
static inline void put_head(const struct dock_sq_post *sq, struct dock_wqe *w, const struct dock_wr *wr,
                            uint32_t flags)
{
    w->flags = flags;
    w->remote = wr->rkey >> 8 & DOCK_ID_MASK;
    w->token = token_of(sq, wr);
    w->udf = 0;
    w->address = wr->raddr;
}

// The same of a SEND, as put_special has it.
static inline void put_message(const struct dock_sq_post *sq, struct dock_wqe *w, const struct dock_wr *wr,
                               uint32_t flags)
{
    w->flags = flags;
    w->remote = wr->remote;
    w->token = sq->urma ? wr->target_token : wr->rkey;
    w->udf = 0;
    w->address = wr->imm;
}

static inline void put_sge(struct dock_wqe *w, const struct dock_wr *wr)
{
    struct dock_sge from = *wr->sge;
    struct dock_wqe_sge s = {.len = from.len, .key = from.key, .va = from.addr};

    w->op = (uint32_t)wr->op << 8;
    w->tp_sge = 1u << 24;
    memcpy(w->body, &s, sizeof s);
}

static inline void advance(struct dock_post *p, uint32_t at, uint64_t id)
{
    p->sq->wrid[at] = id;
    p->pi++;
    p->posted++;
}

// An inline WRITE that one block holds, or a SEND; else the long way.
static int __attribute__((noinline)) put_short(struct dock_post *p, const struct dock_wr *wr, uint32_t flags)
{
    struct dock_sq_post *sq = p->sq;
    uint32_t at = p->pi & sq->mask, in_line = flags & DOCK_F_INLINE;
    struct dock_wqe *w = (struct dock_wqe *)(sq->ring + (uint64_t)at * DOCK_BLOCK);
    bool message = wr->op <= DOCK_OP_SEND_IMM;

    if (!(message || (in_line && wr->op == DOCK_OP_WRITE)) || wr->nsge != 1 || !sq->simple ||
        dock_probe_hook ||
        (in_line && (wr->inline_len > sizeof w->body || wr->inline_len > sq->inline_max)) ||
        !has_room(sq, p, 1))
        return put_any(p, wr);
    flags |= p->pi & (sq->mask + 1) ? 0 : DOCK_F_OWNER;
    if (message)
        put_message(sq, w, wr, flags);
    else
        put_head(sq, w, wr, flags);
    if (in_line) {
        w->op = (uint32_t)wr->op << 8 | wr->inline_len << 22;
        w->tp_sge = 0;
        put_inline((char *)w->body, wr);
    } else {
        put_sge(w, wr);
    }
    advance(p, at, wr->id);
    return 0;
}

int dock_post_put(struct dock_post *p, const struct dock_wr *wr)
{
    struct dock_sq_post *sq = p->sq;
    uint32_t at = p->pi & sq->mask, flags = wr->flags | sq->always | DOCK_F_TOKEN_EN;

    if (__builtin_expect((wr->op != DOCK_OP_WRITE && wr->op != DOCK_OP_READ) || wr->nsge != 1 ||
                             flags & DOCK_F_INLINE || !sq->simple || dock_probe_hook || !has_room(sq, p, 1),
                         0))
        return put_short(p, wr, flags);
    flags |= p->pi & (sq->mask + 1) ? 0 : DOCK_F_OWNER;
    struct dock_wqe *w = (struct dock_wqe *)(sq->ring + (uint64_t)at * DOCK_BLOCK);
    put_head(sq, w, wr, flags);
    put_sge(w, wr);
    advance(p, at, wr->id);
    return 0;
}

// Of a queue without a lock: its one poster takes both just to run it.
static void ring_alone(struct dock_sq *sq)
{
    uint32_t free = 0;

    if (!dock_probe_hook && dock_claim32(&sq->post.word, &free, DOCK_SQ_BOTH)) // pairs with let_go in run.c
        dock_sq_leave(sq, true, true);
    else
        dock_sq_ring(sq, DOCK_BY_POSTER);
}

static inline void move_head(struct dock_post *p)
{
    dock_count64(&p->qp->rec->posted, p->posted - p->sq->posted);
    dock_publish32(&p->sq->pi, p->pi); // the WQEs before it; pairs with the acquire in dock_sq_raise
    p->sq->posted = p->posted;
}

static inline void publish(const struct dock_post *p)
{
    dock_count64(&p->qp->rec->rings, 1);
    dock_publish32(p->sq->doorbell, p->pi); // the WQEs before the doorbell; pairs with the acquire in run.c
    dock_probe(DOCK_AT_PUBLISH, p->qp->number, p->pi);
}

static inline void leave(const struct dock_post *p, bool rung)
{
    if (!p->sq->lock_free)
        dock_sq_leave(&p->qp->sq, p->both, rung);
    else if (rung)
        ring_alone(&p->qp->sq);
}

void dock_post_end(struct dock_post *p)
{
    bool any = p->pi != dock_peek32(&p->sq->pi);

    if (any) {
        move_head(p);
        publish(p);
    }
    leave(p, any);
}

void dock_post_keep(struct dock_post *p)
{
    if (p->pi != dock_peek32(&p->sq->pi))
        move_head(p);
    leave(p, false);
    // The WQEs before whatever store of the caller rings. Pairs with error_held in fail.c, settle and forsake
    // in raw.c: they see what was kept, or we see what they did.
    dock_fence_full();
    if (dock_peek32(p->sq->state) == DOCK_ERR)
        dock_post_ring(p->qp);
    else
        dock_raw_watch_doorbell(p->qp);
}

bool dock_sq_raise(struct dock_sq_post *sq)
{
    uint32_t pi = dock_acquire32(&sq->pi), rung = dock_peek32(sq->doorbell); // pairs with move_head

    while (pi - rung - 1 <= sq->mask)              // behind the head, by no more than the ring has
        if (dock_claim32(sq->doorbell, &rung, pi)) // pairs with the acquire in dock_sq_rung
            return true;
    return false; // somebody rang for it, or for more
}

void dock_post_ring(struct dock_qp *qp)
{
    struct dock_post p;
    bool kept;

    dock_post_begin(qp, &p);
    kept = dock_sq_raise(p.sq); // of a queue without a lock another may be posting
    if (kept)
        dock_count64(&qp->rec->rings, 1);
    leave(&p, kept);
}
