// SPDX-License-Identifier: MIT
// From a WR to a WQE in the ring, and the doorbell.
#include "device/run.h"
#include "device/slot.h"
#include "device/straight.h"

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

static inline void put_control(const struct dock_sq_post *sq, struct dock_wqe *w, const struct dock_wr *wr,
                               uint32_t flags)
{
    w->flags = flags;
    w->op = (uint32_t)wr->op << 8 | (flags & DOCK_F_INLINE ? wr->inline_len << 22 : 0);
    w->tp_sge = flags & DOCK_F_INLINE ? 0 : (uint32_t)wr->nsge << 24;
    w->remote = wr->rkey >> 8 & DOCK_ID_MASK;
    w->token = dock_slot_token(sq, wr);
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
        w->address =
            wr->op == DOCK_OP_SEND_INV ? (uint64_t)dock_slot_token(sq, wr) << 32 | wr->rkey >> 8 : wr->imm;
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
    dock_eid_reverse(w->eid, wr->eid);
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
    uint32_t flags = wr->flags | sq->always;
    unsigned blocks = dock_wqe_blocks_of(wr->op, flags & DOCK_F_INLINE, wr->inline_len, wr->nsge);

    if (__builtin_expect(wr->nsge > sq->sge_max, 0))
        return dock_refuse(-EINVAL, "send WR with %u SGEs on a queue made for %u", wr->nsge, sq->sge_max);
    if (__builtin_expect((flags & DOCK_F_INLINE) && wr->inline_len > sq->inline_max, 0))
        return dock_refuse(-EINVAL, "%u bytes inline on a queue made for %u", wr->inline_len, sq->inline_max);
    if (__builtin_expect(blocks > DOCK_WQE_BLOCKS, 0))
        return dock_refuse(-EINVAL, "a WR that needs %u blocks, a WQE has %u", blocks, DOCK_WQE_BLOCKS);
    if (__builtin_expect(!dock_slot_room(sq, p, blocks), 0))
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
    sq->room -= sq->room < blocks ? sq->room : blocks;
    dock_probe(DOCK_AT_POST, dock_qp_number(p->qp), p->posted - 1);
    return 0;
}

// How many WQEs of one block fit. What is counted here stays free: until they are posted only pollers change
// that, who free more. So a poster looks at their line once in a while, and it stays with them meanwhile.
static uint32_t find_room(const struct dock_sq_post *sq, const struct dock_post *p)
{
    uint64_t freed = dock_acquire64(&sq->freed); // published by the poller (take_send in poll.c)
    uint32_t wrs = sq->depth - (p->posted - (uint32_t)(freed >> 32));
    uint32_t blocks = sq->mask + 1 - (p->pi - (uint32_t)freed);

    return wrs < blocks ? wrs : blocks;
}

// A WRITE or a READ of one SGE; a SEND of one, or inline, and an inline WRITE that one block holds. Else the
// long way.
int dock_post_put_only(struct dock_post *p, const struct dock_wr *wr)
{
    struct dock_sq_post *sq = p->sq;
    uint32_t flags = wr->flags | sq->always, in_line = flags & DOCK_F_INLINE;
    bool message = wr->op <= DOCK_OP_SEND_IMM;

    if (!(message || wr->op == DOCK_OP_WRITE || (wr->op == DOCK_OP_READ && !in_line)) || wr->nsge != 1 ||
        !sq->simple || dock_probe_hook ||
        (in_line &&
         (wr->inline_len > sizeof((struct dock_wqe *)NULL)->body || wr->inline_len > sq->inline_max)) ||
        (!sq->room && !(sq->room = find_room(sq, p))))
        return put_any(p, wr);
    char *b = dock_slot_take(p, wr->id, &flags);
    dock_slot_word(b, 0, flags, (uint32_t)wr->op << 8 | (in_line ? wr->inline_len << 22 : 0));
    dock_slot_word(b, 8, in_line ? 0 : 1u << 24, message ? wr->remote : wr->rkey >> 8 & DOCK_ID_MASK);
    dock_slot_word(b, 32, !message ? dock_slot_token(sq, wr) : sq->urma ? wr->target_token : wr->rkey, 0);
    dock_slot_word(b, 40, (uint32_t)(message ? wr->imm : wr->raddr),
                   (uint32_t)((message ? wr->imm : wr->raddr) >> 32));
    if (in_line)
        put_inline(b + 48, wr);
    else
        dock_slot_sge(b, wr->sge);
    return 0;
}

// Of a queue without a lock: its one poster takes both just to run it.
static void __attribute__((noinline)) ring_alone(struct dock_sq *sq)
{
    uint32_t free = 0;

    if (!dock_probe_hook && dock_claim32(&sq->post.word, &free, DOCK_SQ_BOTH)) // pairs with let_go in run.c
        dock_sq_end(sq, dock_sq_rung(sq));
    else
        dock_sq_ring(sq, DOCK_BY_POSTER);
}

static inline void move_head(struct dock_post *p)
{
    struct dock_sq_post *sq = p->sq;
    uint32_t posted = p->posted;

    dock_count64(&p->qp->rec->posted, posted - sq->posted);
    sq->posted = posted;
    dock_publish32(&sq->pi, p->pi); // the WQEs before it; pairs with the acquire in dock_sq_raise
}

static inline void publish(const struct dock_post *p)
{
    dock_count64(&p->qp->rec->rings, 1);
    dock_publish32(p->sq->doorbell, p->pi); // the WQEs before the doorbell; pairs with the acquire in run.c
    dock_probe(DOCK_AT_PUBLISH, p->qp->number, p->pi);
}

static void __attribute__((noinline)) leave_unrung(const struct dock_post *p)
{
    if (p->both)
        dock_publish32(&p->sq->word, 0); // pairs with dock_sq_lock, and take in run.c
    else if (!p->sq->lock_free)
        dock_sq_unlock(p->sq);
}

static inline void leave_rung(const struct dock_post *p)
{
    if (p->placed)
        dock_sq_end_placed(&p->qp->sq, p);
    else if (__builtin_expect(p->both, 1))
        dock_sq_end(&p->qp->sq, p->pi);
    else if (p->sq->lock_free)
        ring_alone(&p->qp->sq);
    else
        dock_sq_leave(&p->qp->sq);
}

void dock_post_end_any(struct dock_post *p)
{
    dock_post_stop(p);
    if (__builtin_expect(p->pi == dock_peek32(&p->sq->pi), 0)) {
        leave_unrung(p);
        return;
    }
    move_head(p);
    publish(p);
    leave_rung(p);
}

void dock_post_keep(struct dock_post *p)
{
    if (p->pi != dock_peek32(&p->sq->pi))
        move_head(p);
    leave_unrung(p);
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
    struct dock_sq_post *sq = dock_qp_sq(qp);
    struct dock_post p = {.qp = qp, .sq = sq};
    bool kept;

    // Of a queue without a lock another may be posting: what is its own is not looked at.
    p.both = !sq->lock_free && dock_sq_lock(sq, !dock_probe_hook);
    p.pi = dock_peek32(&sq->pi);
    kept = dock_sq_raise(sq);
    if (kept)
        dock_count64(&qp->rec->rings, 1);
    if (kept)
        leave_rung(&p);
    else
        leave_unrung(&p);
}
