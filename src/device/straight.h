// SPDX-License-Identifier: MIT
// What the straight ways of a small request share: of one that stands in the ring (fast.c), and of one that
// is being posted (place.c).
#ifndef DOCK_DEVICE_STRAIGHT_H
#define DOCK_DEVICE_STRAIGHT_H

#include "device/internal.h"
#include "device/link.h"
#include "fabric/direct.h"

#define DOCK_STRAIGHT_BYTES DOCK_PIECE

// ---- fast.c
const struct dock_lkey *dock_sq_other_lkey(struct dock_sq *sq, uint64_t name); // not the one used last
// What was placed while it was posted, and something behind it; the last of what was placed, at sq->exec.
void dock_sq_end_placed(struct dock_sq *sq, const struct dock_post *p);
void dock_sq_tell_placed(struct dock_sq *sq, const struct dock_post *p);

// ---- post.c: the WQE alone, and the end of a call of whatever kind
int dock_post_put_only(struct dock_post *p, const struct dock_wr *wr);
void dock_post_end_any(struct dock_post *p);

// ---- place.c: what is put from here on is not placed
void dock_post_stop(struct dock_post *p);

// Where [va, va + len) lies under this key. false: not all of it is mapped there.
static inline bool dock_straight_at(const struct dock_lkey *l, uint64_t va, uint64_t len, const char **from)
{
    uint64_t inside = va - l->mapped;

    *from = (const char *)((uintptr_t)l->at + inside); // a number until it is known to be a place
    return __builtin_expect(inside + len <= l->room && inside <= l->room, 1);
}

// The one SGE of a request, of this length and key: domain, bounds, mapping. false: the long way finds out
// why.
static inline bool dock_straight_source(struct dock_sq *sq, uint64_t len_key, uint64_t va, const char **from)
{
    const struct dock_lkey *l = sq->lkey;
    uint64_t name = sq->domain | len_key >> 32;

    if (__builtin_expect(dock_acquire64(&l->name) != name, 0)) // pairs with mr.c
        l = dock_sq_other_lkey(sq, name);
    return dock_straight_at(l, va, (uint32_t)len_key, from);
}

// The same under the key that was used last. false: another one, or as above.
static inline bool dock_straight_known(const struct dock_sq *sq, uint64_t len_key, uint64_t va,
                                       const char **from)
{
    const struct dock_lkey *l = sq->lkey;

    // pairs with mr.c: the place is read when the key was seen
    if (__builtin_expect(dock_acquire64(&l->name) != (sq->domain | len_key >> 32), 0))
        return false;
    return dock_straight_at(l, va, (uint32_t)len_key, from);
}

// Our queue goes on: not so when a completion has ended it, of a CQ that was overrun.
static inline bool dock_straight_goes_on(const struct dock_sq *sq)
{
    return dock_peek32(&sq->rec->state) == DOCK_RTS;
}

// Closed to all: by the port, by who listens and delays, by our queue or the way.
static inline bool dock_straight_closed(const struct dock_sq *sq, const struct dock_conn *c)
{
    return __builtin_expect(dock_link_down() || (dock_probe_hook && !dock_probe_straight) || !c->views ||
                                !dock_straight_goes_on(sq),
                            0);
}

// Show that local keys are in use and that we are in the target's memory, then look: the light fence of the
// second covers the first. Left in any case.
static inline bool dock_straight_enter(struct dock_sq *sq, struct dock_conn *c)
{
    dock_set64(&sq->busy, dock_peek64(&sq->busy) + 1);
    return dock_direct_enter(c);
}

static inline void dock_straight_leave(struct dock_sq *sq, struct dock_conn *c, bool entered)
{
    if (entered)
        dock_direct_leave(c);
    dock_publish64(&sq->busy, dock_peek64(&sq->busy) + 1); // pairs with the acquire in dock_quiesce
}

#endif
