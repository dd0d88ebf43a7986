// SPDX-License-Identifier: MIT
// The completion ring. Producers are the device threads of every process that completes into it; the
// consumer is the owner. A producer takes the tail word, writes the CQE, publishes it by its owner bit and
// leaves the tail word one further: one that dies in between has moved nothing, and whoever inherits the word
// sees from the owner bit whether the entry stands.
#ifndef DOCK_RING_CQRING_H
#define DOCK_RING_CQRING_H

#include <stdbool.h>

#include "arena/arena.h"
#include "arena/lockword.h"
#include "base/probe.h"
#include "base/seed.h"
#include "ring/format.h"

enum dock_arm { DOCK_ARM_NONE, DOCK_ARM_SOLICITED, DOCK_ARM_ANY };

// The consumer index of the format has so many bits: who drives a CQ directly may write no more of it.
#define DOCK_CI_MASK 0x3fffffu

#define DOCK_CQ_OVERWRITE 1u // an overrun loses the oldest instead of failing
#define DOCK_CQ_STAMPS 2u    // producers write the time
#define DOCK_CQ_LOSES 4u     // an overrun loses the newest, and the CQ stays usable

struct dock_cqrec {
    // line 0: the owner's, written at creation and when it is resized. Who opens a view reads it meanwhile,
    // and takes the words for what they are only if they fit the sum.
    dock_a64 ring;  // offset of `size` entries
    dock_a32 size;  // a power of two: the owner bit needs it
    dock_a32 depth; // so many fit
    dock_a32 id;
    dock_a32 flags; // DOCK_CQ_*
    dock_a32 sum;
    dock_a32 epoch; // moves when ring, size and depth do, under the tail word; odd while they change
    // line 1: the producers'
    _Alignas(64) dock_a64 tail; // {tail, holder}
    dock_a32 ci_seen;           // the consumer index as last read, guarded by the tail word
    // line 2: the consumer's
    _Alignas(64) dock_a32 ci;
    dock_a64 polled, freed; // completions; send slots that they freed
    // line 3: sleep and wake
    _Alignas(64) dock_a32 armed; // enum dock_arm; cleared by the producer that fires it
    dock_a32 attention;          // so many events are to be delivered by the owner's engine
    dock_a32 overrun; // set once: one did not fit. Not on the producers' line: an empty poll looks at it
};

static_assert(sizeof(struct dock_cqrec) == 256, "four lines, four writers");

// What the sum is over, as somebody read it.
struct dock_cqshape {
    uint64_t ring;
    uint32_t size, depth, id, flags;
};

static inline struct dock_cqshape dock_cqrec_shape(const struct dock_cqrec *r)
{
    return (struct dock_cqshape){.ring = dock_peek64(&r->ring),
                                 .size = dock_peek32(&r->size),
                                 .depth = dock_peek32(&r->depth),
                                 .id = dock_peek32(&r->id),
                                 .flags = dock_peek32(&r->flags)};
}

static inline uint32_t dock_cqshape_sum(const struct dock_cqshape *s)
{
    uint64_t h = dock_mix(s->ring + 1) ^ dock_mix((uint64_t)s->size << 32 | s->depth);

    h ^= dock_mix(((uint64_t)s->id << 32 | s->flags) + 2);
    return (uint32_t)(h ^ h >> 32);
}

// A CQ as one process sees it: pointers into its own mapping, sizes checked once per epoch.
struct dock_cqview {
    struct dock_cqrec *rec;
    struct dock_cqe *ring;
    uint32_t size, shift, depth, flags;
    uint32_t epoch;
    struct dock_view *view;
    uint64_t off;
};

// -EBADMSG: the record does not hold together.
int dock_cqview_open(struct dock_view *view, uint64_t off, struct dock_cqview *out);

// Format a new record and ring whose indices start at `start`.
void dock_cqring_format(struct dock_cqrec *rec, struct dock_cqe *ring, uint64_t ring_off, uint32_t size,
                        uint32_t depth, uint32_t id, uint32_t flags, uint32_t start);

// A new ring for a record in use, by its owner: `depth` completions fit from now on, in `size` entries.
// What stands from position `*at` on is moved there, or from the oldest that is left after an overrun that
// was asked for: *at tells where. `v`, the owner's own view, is opened anew. -EBUSY: more stands than would
// fit.
int dock_cqring_move(struct dock_cqview *v, const struct dock_waiter *w, struct dock_cqe *ring,
                     uint64_t ring_off, uint32_t size, uint32_t depth, uint32_t *at);

// Hold the tail word without producing: between the two nothing is appended and the ring stays where it is.
uint32_t dock_cq_hold(struct dock_cqview *v, const struct dock_waiter *w);
void dock_cq_let_go(struct dock_cqview *v, const struct dock_waiter *w, uint32_t tail);

// The owner bit of a valid entry at position `pos`: 1 on the first pass.
static inline uint32_t dock_cqe_owner(uint32_t pos, uint32_t shift)
{
    return (pos >> shift & 1) ? 0 : DOCK_CQE_OWNER;
}

// Append a copy of `e` (its owner bit is filled in). -EOVERFLOW: no room; the overrun word is set, *first
// tells whether this call set it. -EBADMSG: the record does not hold together. Any thread of any process.
int dock_cq_produce(struct dock_cqview *v, const struct dock_waiter *w, const struct dock_cqe *e,
                    bool *first);

// What is not as it mostly is: a dead holder, a resized ring, no room as far as is known, a listener. The
// tail word is held, and was `at`.
int dock_cq_open_odd(struct dock_cqview *v, const struct dock_waiter *w, uint32_t at, bool inherited,
                     struct dock_cqe **slot, uint32_t *tail, bool *first);
void dock_cqe_stamp(struct dock_cqe *e);
void dock_cq_tell_written(const struct dock_cqview *v, uint32_t tail);

// The same in two steps, for who writes the entry where it lies: take the tail word and hand out the place,
// or fail as above (only then *first counts); then dock_cq_commit, with what the first word is to be.
static inline int dock_cq_open(struct dock_cqview *v, const struct dock_waiter *w, struct dock_cqe **slot,
                               uint32_t *tail, bool *first)
{
    bool inherited;
    uint32_t at = dock_word_lock(&v->rec->tail, w, &inherited);

    // the epoch pairs with the publish in dock_cqring_move
    if (__builtin_expect(inherited || dock_acquire32(&v->rec->epoch) != v->epoch ||
                             at - dock_peek32(&v->rec->ci_seen) >= v->depth || dock_probe_hook,
                         0))
        return dock_cq_open_odd(v, w, at, inherited, slot, tail, first);
    *tail = at;
    *slot = &v->ring[at & (v->size - 1)];
    return 0;
}

static inline void dock_cq_commit(struct dock_cqview *v, const struct dock_waiter *w, uint32_t tail,
                                  uint32_t dw0)
{
    struct dock_cqe *slot = &v->ring[tail & (v->size - 1)];

    if (__builtin_expect(v->flags & DOCK_CQ_STAMPS, 0))
        dock_cqe_stamp(slot);
    atomic_store_explicit(&slot->dw0, (dw0 & ~DOCK_CQE_OWNER) | dock_cqe_owner(tail, v->shift),
                          memory_order_release); // pairs with dock_cq_look
    if (__builtin_expect(dock_probe_hook != NULL, 0))
        dock_cq_tell_written(v, tail);
    dock_word_unlock(&v->rec->tail, w, tail + 1);
}

// Does this completion fire the arm? Clears it when so: the caller delivers exactly one event.
// The light fence pairs with the heavy one in dock_cq_arm: store CQE, load armed | store armed, load CQE.
static inline bool dock_cq_fires(struct dock_cqview *v, bool solicited)
{
    dock_fence_light();
    uint32_t armed = dock_peek32(&v->rec->armed);
    while (__builtin_expect(armed == DOCK_ARM_ANY || (armed == DOCK_ARM_SOLICITED && solicited), 0))
        if (dock_claim32(&v->rec->armed, &armed, DOCK_ARM_NONE))
            return true; // else it was fired by another, or armed for more meanwhile: looked at again
    return false;
}

// Does a valid entry stand at `pos`?
static inline bool dock_cq_stands(const struct dock_cqview *v, uint32_t pos)
{
    uint32_t dw0 = atomic_load_explicit(&v->ring[pos & (v->size - 1)].dw0, memory_order_acquire);

    return (dw0 & DOCK_CQE_OWNER) == dock_cqe_owner(pos, v->shift);
}

// The entry at `ci` if it is valid, with its first word; NULL when the ring is empty. Consumer only.
static inline struct dock_cqe *dock_cq_look(const struct dock_cqview *v, uint32_t ci, uint32_t *dw0)
{
    struct dock_cqe *e = &v->ring[ci & (v->size - 1)];

    // pairs with the release of dw0 in dock_cq_commit
    *dw0 = atomic_load_explicit(&e->dw0, memory_order_acquire);
    return (*dw0 & DOCK_CQE_OWNER) == dock_cqe_owner(ci, v->shift) ? e : NULL;
}

// Where the oldest of the newest `depth` entries stands, seen from a consumer at `ci`: further on only after
// an overrun that was asked for. Such a ring has more entries than its depth, so that what is being written
// is none of them.
static inline uint32_t dock_cq_oldest_of(const struct dock_cqview *v, uint32_t ci, uint32_t tail)
{
    return tail - ci > v->depth ? tail - v->depth : ci;
}

static inline uint32_t dock_cq_oldest(const struct dock_cqview *v, uint32_t ci)
{
    uint32_t tail = dock_word_value(dock_acquire64(&v->rec->tail)); // pairs with the unlock in dock_cq_commit

    return dock_cq_oldest_of(v, ci, tail);
}

// Make the consumer pass over an entry. Consumer only: the producer has left the entry for good.
static inline void dock_cqe_skip(struct dock_cqe *e, uint32_t dw0)
{
    atomic_store_explicit(&e->dw0, dw0 | DOCK_CQE_SKIP, memory_order_relaxed);
}

#endif
