// SPDX-License-Identifier: MIT
#include "ring/cqring.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"

int dock_cqview_open(struct dock_view *view, uint64_t off, struct dock_cqview *out)
{
    struct dock_cqrec *rec = off % 64 ? NULL : dock_view_at(view, off, sizeof *rec);

    if (!rec)
        return -EBADMSG;
    struct dock_cqrec seen = {
        .ring = rec->ring, .size = rec->size, .depth = rec->depth, .id = rec->id, .flags = rec->flags};
    if (rec->sum != dock_cqrec_sum(&seen) || seen.size == 0 || seen.size & (seen.size - 1) ||
        seen.depth > seen.size || seen.ring % 64)
        return -EBADMSG;
    struct dock_cqe *ring = dock_view_at(view, seen.ring, (uint64_t)seen.size * sizeof *ring);
    if (!ring)
        return -EBADMSG;
    *out = (struct dock_cqview){.rec = rec,
                                .ring = ring,
                                .size = seen.size,
                                .depth = seen.depth,
                                .shift = (uint32_t)__builtin_ctz(seen.size),
                                .flags = seen.flags};
    return 0;
}

void dock_cqring_format(struct dock_cqrec *rec, struct dock_cqe *ring, uint64_t ring_off, uint32_t size,
                        uint32_t depth, uint32_t id, uint32_t flags, uint32_t start)
{
    uint32_t shift = (uint32_t)__builtin_ctz(size);

    // Every slot shows the opposite of what will make it valid at its first use.
    for (uint32_t i = 0; i < size; i++)
        atomic_store_explicit(&ring[(start + i) & (size - 1)].dw0,
                              dock_cqe_owner(start + i, shift) ^ DOCK_CQE_OWNER, memory_order_relaxed);
    rec->ring = ring_off;
    rec->size = size;
    rec->depth = depth;
    rec->id = id;
    rec->flags = flags;
    rec->sum = dock_cqrec_sum(rec);
    dock_set64(&rec->tail, dock_word_make(start, 0));
    dock_set32(&rec->ci, start);
    dock_set32(&rec->ci_seen, start);
}

// Room for one more at `tail`? Guarded by the tail word.
static bool has_room(struct dock_cqview *v, uint32_t tail)
{
    if (tail - dock_peek32(&v->rec->ci_seen) < v->depth)
        return true;
    uint32_t ci = dock_acquire32(&v->rec->ci); // pairs with dock_cq_end
    dock_set32(&v->rec->ci_seen, tail - ((tail - ci) & DOCK_CI_MASK));
    return tail - dock_peek32(&v->rec->ci_seen) < v->depth || v->flags & DOCK_CQ_OVERWRITE;
}

static void write_entry(struct dock_cqview *v, uint32_t tail, const struct dock_cqe *e)
{
    struct dock_cqe *slot = &v->ring[tail & (v->size - 1)];
    uint32_t dw0 = (dock_peek32(&e->dw0) & ~DOCK_CQE_OWNER) | dock_cqe_owner(tail, v->shift);

    memcpy(&slot->idx_local, &e->idx_local, sizeof *e - sizeof e->dw0);
    if (__builtin_expect(v->flags & DOCK_CQ_STAMPS, 0)) {
        uint64_t now = dock_now_ns();
        slot->stamp[0] = (uint32_t)now;
        slot->stamp[1] = (uint32_t)(now >> 32);
    }
    atomic_store_explicit(&slot->dw0, dw0, memory_order_release); // pairs with dock_cq_look
}

int dock_cq_produce(struct dock_cqview *v, const struct dock_waiter *w, const struct dock_cqe *e, bool *first)
{
    bool inherited;
    uint32_t tail = dock_word_lock(&v->rec->tail, w, &inherited);

    if (__builtin_expect(inherited, 0) && dock_cq_stands(v, tail))
        tail++; // the dead holder had published its entry, only the tail is behind
    dock_probe(DOCK_AT_CQE_LOCK, v->rec->id, tail);
    if (__builtin_expect(!has_room(v, tail), 0)) {
        uint32_t none = 0;
        *first = dock_claim32(&v->rec->overrun, &none, 1);
        dock_word_unlock(&v->rec->tail, w, tail);
        return -EOVERFLOW;
    }
    write_entry(v, tail, e);
    dock_probe(DOCK_AT_CQE_WRITE, v->rec->id, tail);
    dock_word_unlock(&v->rec->tail, w, tail + 1);
    return 0;
}
