// SPDX-License-Identifier: MIT
// A WQE of one block in its slot, written as the short way of execution reads it.
#ifndef DOCK_DEVICE_SLOT_H
#define DOCK_DEVICE_SLOT_H

#include "device/internal.h"

// Verbs has one word for the key and its token.
static inline uint32_t dock_slot_token(const struct dock_sq_post *sq, const struct dock_wr *wr)
{
    uint32_t token;

    memcpy(&token, (const char *)wr + sq->token_at, sizeof token);
    return token;
}

// In double words: as the short way of execution reads them a moment later (fast.c).
static inline void dock_slot_word(char *b, unsigned at, uint32_t low, uint32_t high)
{
    uint64_t word = low | (uint64_t)high << 32;

    memcpy(b + at, &word, sizeof word);
}

// What stands inline in one block, without a call of memcpy: it stands on the way that somebody waits for.
static inline void dock_slot_copy(void *to, uint64_t from, uint32_t n)
{
    const char *f = (const char *)(uintptr_t)from;
    char *t = to;

    if (n >= 8) { // twice 8 bytes, which overlap if they are less than 16 in all
        memcpy(t, f, 8);
        memcpy(t + n - 8, f + n - 8, 8);
    } else if (n >= 4) {
        memcpy(t, f, 4);
        memcpy(t + n - 4, f + n - 4, 4);
    } else {
        for (uint32_t i = 0; i < n; i++)
            t[i] = f[i];
    }
}

// One SGE. The two words of its length and key lie side by side here and there.
static inline void dock_slot_sge(char *b, const struct dock_sge *sge)
{
    memcpy(b + 48, &sge->len, 8);
    memcpy(b + 56, &sge->addr, 8);
}

static_assert(offsetof(struct dock_sge, key) == offsetof(struct dock_sge, len) + 4, "dock_slot_sge");

// Room for one more WR and `blocks` more blocks? What was freed is published by the poller (take_send in
// poll.c).
static inline bool dock_slot_room(const struct dock_sq_post *sq, const struct dock_post *p, unsigned blocks)
{
    uint64_t freed = dock_acquire64(&sq->freed);

    return p->posted - (uint32_t)(freed >> 32) < sq->depth &&
           p->pi + blocks - (uint32_t)freed <= sq->mask + 1;
}

// The slot that is next, and the flags of what goes there: one more is posted.
static inline char *dock_slot_take(struct dock_post *p, uint64_t id, uint32_t *flags)
{
    struct dock_sq_post *sq = p->sq;
    uint32_t pi = p->pi, at = pi & sq->mask;

    *flags |= pi & (sq->mask + 1) ? 0 : DOCK_F_OWNER;
    sq->wrid[at] = id;
    sq->room--;
    p->pi = pi + 1;
    p->posted++;
    return sq->ring + (uint64_t)at * DOCK_BLOCK;
}

// The common WRITE: of one SGE, where there is room.
static inline void dock_slot_write(struct dock_post *p, const struct dock_wr *wr, uint32_t flags)
{
    char *b = dock_slot_take(p, wr->id, &flags);

    dock_slot_word(b, 0, flags, DOCK_OP_WRITE << 8);
    dock_slot_word(b, 8, 1u << 24, wr->rkey >> 8 & DOCK_ID_MASK);
    dock_slot_word(b, 32, dock_slot_token(p->sq, wr), 0);
    memcpy(b + 40, &wr->raddr, 8);
    dock_slot_sge(b, wr->sge);
}

// A SEND of one SGE, or inline in one block, where there is room.
static inline void dock_slot_message(struct dock_post *p, const struct dock_wr *wr, uint32_t flags)
{
    bool in_line = flags & DOCK_F_INLINE;
    char *b = dock_slot_take(p, wr->id, &flags);

    dock_slot_word(b, 0, flags, (uint32_t)wr->op << 8 | (in_line ? wr->inline_len << 22 : 0));
    dock_slot_word(b, 8, in_line ? 0 : 1u << 24, wr->remote);
    dock_slot_word(b, 32, p->sq->urma ? wr->target_token : wr->rkey, 0);
    memcpy(b + 40, &wr->imm, 8);
    if (in_line)
        dock_slot_copy(b + 48, wr->sge->addr, wr->inline_len);
    else
        dock_slot_sge(b, wr->sge);
}

#endif
