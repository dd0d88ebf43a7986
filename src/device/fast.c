// SPDX-License-Identifier: MIT
// The small WRITE in a straight line: one SGE, memory that both sides have mapped, a key that was found
// before. Whatever is different goes the long way through execute.c, which does the same with every check in
// words: what is skipped here is only what cannot matter for such a request.
#include "device/internal.h"
#include "device/link.h"
#include "fabric/direct.h"

#define FAST_BYTES 4096u

// Flags that change nothing in how a WRITE is executed when nothing is in flight.
#define HARMLESS (DOCK_F_COMPLETE | DOCK_F_SOLICITED | DOCK_F_TOKEN_EN | DOCK_F_FENCE)

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

// What matters of the WQE, each field read once: what is executed is what was checked. Read in the widths in
// which it was written a moment ago: a wider load would wait until those stores have left the store buffer.
struct small_write {
    uint32_t flags, op, tp_sge, remote, token;
    uint64_t address;
    struct dock_wqe_sge sge;
};

static inline uint32_t word32(const void *at)
{
    return dock_peek32((const dock_a32 *)at);
}

static inline uint64_t word64(const void *at)
{
    return dock_peek64((const dock_a64 *)at);
}

static inline void read_wqe(const struct dock_sq *sq, struct small_write *w)
{
    const char *b = sq->post.ring + (uint64_t)(sq->exec & sq->post.mask) * DOCK_BLOCK;

    w->flags = word32(b);
    w->op = word32(b + 4);
    w->tp_sge = word32(b + 8);
    w->remote = word32(b + 12) & DOCK_ID_MASK;
    w->token = word32(b + 32);
    w->address = word64(b + 40);
    w->sge.len = word32(b + 48);
    w->sge.key = word32(b + 52);
    w->sge.va = word64(b + 56);
}

static inline bool suits(const struct dock_sq *sq, const struct small_write *w)
{
    uint32_t owner = sq->exec & (sq->post.mask + 1) ? 0 : DOCK_F_OWNER;

    return (w->flags & ~HARMLESS) == owner && (w->op & 0xffc0ff00) == DOCK_OP_WRITE << 8 &&
           w->tp_sge == 1u << 24 && w->sge.len - 1 < FAST_BYTES;
}

// The WQE at the head of the queue, if it suits. The local and the remote stay are held.
static inline bool fast_one(struct dock_sq *sq, struct dock_stay *stay)
{
    struct small_write w;
    const char *from;

    read_wqe(sq, &w);
    if (!suits(sq, &w))
        return false;
    from = source(sq->qp->dev, &w.sge, sq->x.pd);
    if (!from || !dock_direct_write(sq->conn, w.remote, w.token, w.address, from, w.sge.len))
        return false;
    sq->bytes += w.sge.len;
    stay->bytes -= w.sge.len < stay->bytes ? w.sge.len : stay->bytes;
    if (w.flags & DOCK_F_COMPLETE) {
        struct dock_outcome o = {.bytes = w.sge.len,
                                 .flags = w.flags,
                                 .op = DOCK_OP_WRITE,
                                 .target = sq->x.target,
                                 .last_block = sq->exec};
        dock_sq_retire(sq, &o);
    } else {
        sq->retired++;
    }
    sq->exec++;
    sq->seq++;
    return true; // an overrun CQ has failed the queue by now: the loop looks
}

void dock_sq_fast(struct dock_sq *sq, struct dock_stay *stay)
{
    struct dock_conn *c = sq->conn;

    // XRC: each request names the shared queue in whose domain its key is looked for, number 0 too.
    if (__builtin_expect(dock_link_down() || sq->mid || !c || !c->peer || !c->fabric->direct || sq->flight ||
                             c->xrc || !sq->x.keyed || dock_probe_hook ||
                             stay->pi - sq->exec > sq->post.mask + 1 ||
                             dock_peek32(&sq->rec->state) != DOCK_RTS,
                         0))
        return;
    dock_set64(&sq->busy, dock_peek64(&sq->busy) + 1);
    if (dock_direct_enter(
            c)) { // its light fence covers our own word too: show that keys are in use, then look
        while (sq->exec != stay->pi && stay->wrs && stay->bytes && dock_peek32(&sq->rec->state) == DOCK_RTS &&
               fast_one(sq, stay))
            stay->wrs--;
        dock_direct_leave(c);
    }
    dock_publish64(&sq->busy, dock_peek64(&sq->busy) + 1); // pairs with the acquire in dock_quiesce
}
