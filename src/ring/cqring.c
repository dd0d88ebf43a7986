// SPDX-License-Identifier: MIT
#include "ring/cqring.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"

#define OPEN_SPINS 100000u

// One reading of the record. False: it does not hold together.
static bool read_record(struct dock_view *view, uint64_t off, struct dock_cqview *out)
{
    struct dock_cqrec *rec = off % 64 ? NULL : dock_view_at(view, off, sizeof *rec);

    if (!rec)
        return false;
    uint32_t epoch = dock_acquire32(&rec->epoch); // pairs with the publish in dock_cqring_move
    struct dock_cqshape seen = dock_cqrec_shape(rec);
    if (dock_peek32(&rec->sum) != dock_cqshape_sum(&seen) || seen.size == 0 || seen.size & (seen.size - 1) ||
        seen.depth > seen.size || seen.ring % 64)
        return false;
    struct dock_cqe *ring = dock_view_at(view, seen.ring, (uint64_t)seen.size * sizeof *ring);
    if (!ring) // what is known of the old one stays: the next that produces looks again
        return false;
    *out = (struct dock_cqview){.rec = rec,
                                .ring = ring,
                                .size = seen.size,
                                .depth = seen.depth,
                                .shift = (uint32_t)__builtin_ctz(seen.size),
                                .flags = seen.flags,
                                .epoch = epoch,
                                .view = view,
                                .off = off};
    return true;
}

int dock_cqview_open(struct dock_view *view, uint64_t off, struct dock_cqview *out)
{
    struct dock_cqrec *rec = off % 64 ? NULL : dock_view_at(view, off, sizeof *rec);

    // While it is resized it does not hold together for a moment: its owner holds the tail word then.
    for (unsigned spins = 0; rec && spins < OPEN_SPINS; spins++) {
        uint32_t epoch = dock_acquire32(&rec->epoch); // pairs with the publishes in dock_cqring_move
        if (read_record(view, off, out))
            return 0;
        if (epoch == dock_acquire32(&rec->epoch) && !(epoch & 1))
            break;
        dock_relax();
    }
    return -EBADMSG;
}

// Published by what the caller publishes after it: the record's offset, or the epoch.
static void reshape(struct dock_cqrec *rec, const struct dock_cqshape *s)
{
    dock_set64(&rec->ring, s->ring);
    dock_set32(&rec->size, s->size);
    dock_set32(&rec->depth, s->depth);
    dock_set32(&rec->id, s->id);
    dock_set32(&rec->flags, s->flags);
    dock_set32(&rec->sum, dock_cqshape_sum(s));
}

// Every slot shows the opposite of what will make it valid at its first use.
static void blank(struct dock_cqe *ring, uint32_t size, uint32_t start)
{
    uint32_t shift = (uint32_t)__builtin_ctz(size);

    for (uint32_t i = 0; i < size; i++)
        atomic_store_explicit(&ring[(start + i) & (size - 1)].dw0,
                              dock_cqe_owner(start + i, shift) ^ DOCK_CQE_OWNER, memory_order_relaxed);
}

void dock_cqring_format(struct dock_cqrec *rec, struct dock_cqe *ring, uint64_t ring_off, uint32_t size,
                        uint32_t depth, uint32_t id, uint32_t flags, uint32_t start)
{
    blank(ring, size, start);
    reshape(rec, &(struct dock_cqshape){ring_off, size, depth, id, flags});
    dock_set64(&rec->tail, dock_word_make(start, 0));
    dock_set32(&rec->ci, start);
    dock_set32(&rec->ci_seen, start);
    dock_set64(&rec->polled, 0);
    dock_set64(&rec->freed, 0);
}

// What stands in [ci, tail) of the old ring, with the owner bits of the new one.
static void carry(const struct dock_cqview *v, struct dock_cqe *ring, uint32_t size, uint32_t ci,
                  uint32_t tail)
{
    uint32_t shift = (uint32_t)__builtin_ctz(size);

    for (uint32_t pos = ci; pos != tail; pos++) {
        const struct dock_cqe *from = &v->ring[pos & (v->size - 1)];
        struct dock_cqe *to = &ring[pos & (size - 1)];
        uint32_t dw0 = (dock_peek32(&from->dw0) & ~DOCK_CQE_OWNER) | dock_cqe_owner(pos, shift);
        memcpy(&to->idx_local, &from->idx_local, sizeof *to - sizeof to->dw0);
        dock_set32(&to->dw0, dw0); // published by the epoch
    }
}

uint32_t dock_cq_hold(struct dock_cqview *v, const struct dock_waiter *w)
{
    bool inherited;
    uint32_t tail = dock_word_lock(&v->rec->tail, w, &inherited);

    return tail + (inherited && dock_cq_stands(v, tail)); // the dead holder had published its entry
}

void dock_cq_let_go(struct dock_cqview *v, const struct dock_waiter *w, uint32_t tail)
{
    dock_word_unlock(&v->rec->tail, w, tail);
}

int dock_cqring_move(struct dock_cqview *v, const struct dock_waiter *w, struct dock_cqe *ring,
                     uint64_t ring_off, uint32_t size, uint32_t depth, uint32_t *at)
{
    struct dock_cqrec *rec = v->rec;
    uint32_t tail = dock_cq_hold(v, w), ci = *at;
    int err = -EBUSY;

    if (v->flags & DOCK_CQ_OVERWRITE)
        ci = dock_cq_oldest_of(v, ci, tail);
    if (tail - ci > depth)
        goto out;
    blank(ring, size, tail);
    carry(v, ring, size, ci, tail);
    dock_set32(&rec->epoch, v->epoch + 1);
    dock_fence_store(); // odd before the first change
    reshape(rec, &(struct dock_cqshape){ring_off, size, depth, dock_peek32(&rec->id), v->flags});
    dock_publish32(&rec->epoch, v->epoch + 2); // pairs with dock_cqview_open and refresh
    // Before the word is let go: who searches the new ring from here meets nothing that was not moved. Pairs
    // with completed_held in device/fail.c.
    dock_publish32(&rec->ci, ci);
    *at = ci;
    err = read_record(v->view, v->off, v) ? 0 : -EBADMSG;
out:
    dock_cq_let_go(v, w, tail);
    return err;
}

// The tail word is held, so the record stands still: a ring that was resized is found anew. False: the record
// does not hold together.
static bool refresh(struct dock_cqview *v)
{
    // pairs with the publish in dock_cqring_move
    return dock_acquire32(&v->rec->epoch) == v->epoch || read_record(v->view, v->off, v);
}

// Room for one more at `tail`? Guarded by the tail word.
static bool has_room(struct dock_cqview *v, uint32_t tail)
{
    if (tail - dock_peek32(&v->rec->ci_seen) < v->depth)
        return true;
    uint32_t ci = dock_acquire32(&v->rec->ci); // pairs with dock_cq_end
    dock_set32(&v->rec->ci_seen, tail - ((tail - ci) & DOCK_CI_MASK));
    if (tail - dock_peek32(&v->rec->ci_seen) < v->depth)
        return true;
    dock_fence_store(); // the tail before what is overwritten: pairs with the second look in take_newest
    return v->flags & DOCK_CQ_OVERWRITE;
}

int dock_cq_open_odd(struct dock_cqview *v, const struct dock_waiter *w, uint32_t at, bool inherited,
                     struct dock_cqe **slot, uint32_t *tail, bool *first)
{
    *first = false;
    if (!refresh(v)) {
        dock_word_unlock(&v->rec->tail, w, at);
        return -EBADMSG;
    }
    if (inherited && dock_cq_stands(v, at))
        at++; // the dead holder had published its entry, only the tail is behind
    dock_probe(DOCK_AT_CQE_LOCK, v->rec->id, at);
    if (!has_room(v, at)) {
        uint32_t none = 0;
        *first = dock_claim32(&v->rec->overrun, &none, 1);
        dock_word_unlock(&v->rec->tail, w, at);
        return -EOVERFLOW;
    }
    *tail = at;
    *slot = &v->ring[at & (v->size - 1)];
    return 0;
}

void dock_cqe_stamp(struct dock_cqe *e)
{
    uint64_t now = dock_now_ns();

    e->stamp[0] = (uint32_t)now;
    e->stamp[1] = (uint32_t)(now >> 32);
}

void dock_cq_tell_written(const struct dock_cqview *v, uint32_t tail)
{
    dock_probe(DOCK_AT_CQE_WRITE, v->rec->id, tail);
}

int dock_cq_produce(struct dock_cqview *v, const struct dock_waiter *w, const struct dock_cqe *e, bool *first)
{
    struct dock_cqe *slot;
    uint32_t tail;
    int err = dock_cq_open(v, w, &slot, &tail, first);

    if (err)
        return err;
    memcpy(&slot->idx_local, &e->idx_local, sizeof *e - sizeof e->dw0);
    dock_cq_commit(v, w, tail, dock_peek32(&e->dw0));
    return 0;
}
