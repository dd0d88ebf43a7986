// SPDX-License-Identifier: MIT
// The small WRITE or SEND in a straight line: one SGE, memory that both sides have mapped, a key that was
// found before. Whatever is different goes the long way through execute.c, which does the same with every
// check in words: what is skipped here is only what cannot matter for such a request.
#include "device/internal.h"
#include "device/link.h"
#include "fabric/direct.h"

#define FAST_BYTES DOCK_PIECE
#define DATA_AT 48u // of a WRITE or a SEND in its WQE

// Flags that change nothing in how these are executed when nothing is in flight.
#define HARMLESS (DOCK_F_COMPLETE | DOCK_F_SOLICITED | DOCK_F_TOKEN_EN | DOCK_F_FENCE | DOCK_F_INLINE)

// Local key, bounds, mapping. NULL: the long way.
static inline const char *source(const struct dock_dev *dev, const struct dock_wqe_sge *s, uint32_t pd)
{
    uint32_t tid = s->key >> 8;
    const struct dock_lkey *l = &dev->lkeys[tid < dev->nsegments ? tid : 0];

    if (dock_acquire32(&l->key) != s->key || !s->key || l->pd != pd || s->len > l->room || // pairs with mr.c
        s->va - l->mapped > l->room - s->len)
        return NULL;
    return l->at + (s->va - l->mapped);
}

// A WQE is read word by word, each once and when it is wanted: what is executed is what was checked. In the
// widths in which it was written a moment ago: a wider load would wait until those stores have left the store
// buffer.
static inline uint32_t word32(const char *at)
{
    return dock_peek32((const dock_a32 *)(const void *)at);
}

static inline uint64_t word64(const char *at)
{
    return dock_peek64((const dock_a64 *)(const void *)at);
}

// The queue's indices follow the run: those before block `at` are executed, and told to nobody.
static inline void settle(struct dock_sq *sq, struct dock_stay *stay, uint32_t at)
{
    uint32_t n = at - sq->exec; // of one block each

    sq->exec = at;
    sq->seq += n;
    sq->retired += n;
    stay->wrs -= n;
    if (__builtin_expect(sq->post.free_early, 0)) // pairs with has_room in post.c, as in dock_sq_retire
        dock_publish64(&sq->post.freed, (uint64_t)sq->retired << 32 | at);
}

// The WR at sq->exec is executed, and its completion told. false: the queue failed, of a CQ that was overrun.
static inline bool complete(struct dock_sq *sq, struct dock_stay *stay, struct dock_outcome o)
{
    o.target = sq->x.target;
    o.last_block = sq->exec;
    dock_sq_retire(sq, &o);
    sq->exec++;
    sq->seq++;
    stay->wrs--;
    return dock_peek32(&sq->rec->state) == DOCK_RTS;
}

// Out of the line: with nobody listening a WRITE costs one look at a register more.
static void __attribute__((noinline, cold))
tell(const struct dock_sq *sq, enum dock_moment at, uint64_t sequence)
{
    dock_probe(at, sq->qp->number, DOCK_PROBE_STRAIGHT | sequence);
}

// The one SGE of the WQE at `b` placed. false: nothing was, and the long way finds out why.
static inline bool place(const struct dock_sq *sq, struct dock_conn *c, const char *b, uint32_t len)
{
    struct dock_wqe_sge s = {.len = len, .key = word32(b + 52), .va = word64(b + 56)};
    const char *from = source(sq->qp->dev, &s, sq->x.pd);

    return from &&
           dock_direct_write(c, word32(b + 12) & DOCK_ID_MASK, word32(b + 32), word64(b + 40), from, len);
}

// Bytes that stand in the first block of the WQE. How many; 0 as above.
static uint32_t __attribute__((noinline)) place_inline(struct dock_conn *c, const char *b)
{
    uint32_t op = word32(b + 4), len = op >> 22;

    if ((op & 0xff00) != DOCK_OP_WRITE << 8 || word32(b + 8) || len - 1 >= DOCK_BLOCK - DATA_AT ||
        !dock_direct_write(c, word32(b + 12) & DOCK_ID_MASK, word32(b + 32), word64(b + 40), b + DATA_AT,
                           len))
        return 0;
    return len;
}

// One WQE of one block. How many bytes; 0: it does not suit.
static inline uint32_t haul_one(const struct dock_sq *sq, struct dock_conn *c, const char *b, uint32_t flags)
{
    uint32_t len = word32(b + 48);

    if (__builtin_expect(flags & DOCK_F_INLINE, 0))
        return place_inline(c, b);
    return (word32(b + 4) & 0xffc0ff00) == DOCK_OP_WRITE << 8 && word32(b + 8) == 1u << 24 &&
                   len - 1 < FAST_BYTES && place(sq, c, b, len)
               ? len
               : 0;
}

// A SEND of one block, inline or of one SGE. How many bytes, and what became of it; 0 as above.
static uint32_t __attribute__((noinline))
send(const struct dock_sq *sq, struct dock_conn *c, const char *b, uint32_t flags, uint32_t *status)
{
    uint32_t op = word32(b + 4), sges = word32(b + 8) >> 24;
    struct dock_direct_message m = {.op = op >> 8 & 0xff, .flags = flags, .imm = word64(b + 40)};

    if (m.op > DOCK_OP_SEND_IMM)
        return 0;
    if (flags & DOCK_F_INLINE) {
        m.len = op >> 22;
        m.from = m.len - 1 < DOCK_BLOCK - DATA_AT && !sges ? b + DATA_AT : NULL;
    } else {
        struct dock_wqe_sge s = {.len = word32(b + 48), .key = word32(b + 52), .va = word64(b + 56)};
        m.len = s.len;
        m.from =
            s.len - 1 < FAST_BYTES && sges == 1 && !(op >> 22) ? source(sq->qp->dev, &s, sq->x.pd) : NULL;
    }
    if (!m.from)
        return 0;
    *status = dock_direct_send(c, &m);
    return *status == DOCK_DIRECT_NOT ? 0 : m.len;
}

// The flags of a WQE at `at` that is one of ours, whole, and of this pass of the ring?
static inline bool plain(const struct dock_sq *sq, uint32_t at, uint32_t flags)
{
    return (flags & ~HARMLESS) == (at & (sq->post.mask + 1) ? 0 : DOCK_F_OWNER);
}

// As many WRITEs as come in a row and suit. The local and the remote stay are held; the state of our own
// queue changes only by whoever holds its token.
static inline void haul(struct dock_sq *sq, struct dock_conn *c, struct dock_stay *stay)
{
    uint32_t mask = sq->post.mask, at = sq->exec, ready = stay->pi - at, len;
    uint32_t end = at + (ready < stay->wrs ? ready : stay->wrs), bytes = 0;
    bool heard = dock_probe_hook;

    while (at != end && bytes < stay->bytes) {
        const char *b = sq->post.ring + (uint64_t)(at & mask) * DOCK_BLOCK;
        uint32_t flags = word32(b);
        if (!plain(sq, at, flags) || !(len = haul_one(sq, c, b, flags)))
            break;
        bytes += len;
        at++;
        if (__builtin_expect(heard, 0))
            tell(sq, DOCK_AT_PLACE, at);
        if (flags & DOCK_F_COMPLETE) {
            settle(sq, stay, at - 1);
            if (!complete(sq, stay, (struct dock_outcome){.bytes = len, .flags = flags, .op = DOCK_OP_WRITE}))
                break;
        }
    }
    settle(sq, stay, at);
    sq->bytes += bytes;
    stay->bytes -= bytes < stay->bytes ? bytes : stay->bytes;
}

// The same of SENDs. false: none did.
static bool __attribute__((noinline))
haul_messages(struct dock_sq *sq, struct dock_conn *c, struct dock_stay *stay)
{
    bool any = false, on = dock_peek32(&sq->rec->state) == DOCK_RTS; // a WRITE's completion may have ended it

    while (on && sq->exec != stay->pi && stay->wrs && stay->bytes) {
        const char *b = sq->post.ring + (uint64_t)(sq->exec & sq->post.mask) * DOCK_BLOCK;
        uint32_t flags = word32(b), status = DOCK_OK, len;
        if (!plain(sq, sq->exec, flags) || !(len = send(sq, c, b, flags, &status)))
            break;
        any = true;
        sq->bytes += len;
        stay->bytes -= len < stay->bytes ? len : stay->bytes;
        if (flags & DOCK_F_COMPLETE || status)
            on = complete(
                sq, stay,
                (struct dock_outcome){
                    .status = status, .bytes = len, .flags = flags, .op = (uint8_t)(word32(b + 4) >> 8)});
        else
            settle(sq, stay, sq->exec + 1);
    }
    return any && on;
}

// Is it worth to enter the target's memory? What is at the head, if anything is, is looked at only where the
// doorbell can be right.
static inline bool may_suit(const struct dock_sq *sq, uint32_t pi)
{
    if (!sq->straight || sq->exec == pi || sq->mid || pi - sq->exec > sq->post.mask + 1)
        return false;
    uint32_t op = word32(sq->post.ring + (uint64_t)(sq->exec & sq->post.mask) * DOCK_BLOCK + 4) >> 8 & 0xff;
    return op == DOCK_OP_WRITE || op <= DOCK_OP_SEND_IMM;
}

void dock_sq_fast(struct dock_sq *sq, struct dock_stay *stay)
{
    struct dock_conn *c = &sq->qp->conn;

    if (!may_suit(sq, stay->pi) ||
        __builtin_expect(dock_link_down() || (dock_probe_hook && !dock_probe_straight) || !c->peer ||
                             !c->fabric->direct || dock_peek32(&sq->rec->state) != DOCK_RTS,
                         0))
        return;
    dock_set64(&sq->busy, dock_peek64(&sq->busy) + 1);
    if (dock_direct_enter(
            c)) { // its light fence covers our own word too: show that keys are in use, then look
        if (__builtin_expect(dock_probe_hook != NULL, 0))
            tell(sq, DOCK_AT_ENTER, c->hazard_value);
        bool writable = dock_direct_writable(c);
        do {
            if (writable)
                haul(sq, c, stay);
        } while (sq->exec != stay->pi && haul_messages(sq, c, stay));
        dock_direct_leave(c);
        dock_conn_wake(c);
    }
    dock_publish64(&sq->busy, dock_peek64(&sq->busy) + 1); // pairs with the acquire in dock_quiesce
}
