// SPDX-License-Identifier: MIT
// Data goes by puts of the default context straight to where it belongs, quiet, and a sync tells that all is
// there. Reductions read everybody's source, in the order of members on every PE, so that floats come out the
// same everywhere.
#include <stdlib.h>
#include <string.h>

#include "face/shmem/collective.h"
#include "face/shmem/near.h"

#define PIECE (64u << 10) // bytes of a reduction that are fetched at once

// What was sent has arrived everywhere, and everybody has sent.
static void complete(const struct osh_group *g)
{
    osh_quiet(osh.ctx);
    osh_sync(g);
}

void osh_broadcast(const struct osh_group *g, void *dest, const void *source, size_t len, int root,
                   bool root_too)
{
    if (root < 0 || root >= g->size)
        osh_fatal("PE %d is no root of a broadcast among %d", root, g->size);
    if (g->me == root) {
        for (int i = 1; i < g->size; i++)
            osh_put_nbi(osh.ctx, dest, source, len, osh_member(g, (root + i) % g->size));
        if (root_too && len && dest != source)
            memmove(dest, source, len);
    }
    complete(g);
}

void osh_fcollect(const struct osh_group *g, void *dest, const void *source, size_t len)
{
    char *place = (char *)dest + (size_t)g->me * len;

    for (int i = 0; i < g->size; i++)
        osh_put_nbi(osh.ctx, place, source, len, osh_member(g, (g->me + i) % g->size));
    complete(g);
}

// Lengths differ: each member learns from the one before where its part begins, and tells the next.
void osh_collect(const struct osh_group *g, void *dest, const void *source, size_t len)
{
    uint64_t *word = &g->word[OSH_CHAIN], before = 0;
    struct osh_patience p = {0};

    if (g->me > 0) {
        // Alone: it tells of nothing but itself, so its put needs no fence.
        while ((before = dock_acquire64((dock_a64 *)word)) == 0)
            osh_pause(&p);
        osh_atomic_fetch(osh.ctx, word, (struct osh_atomic){.op = DOCK_OP_SWAP, .size = 8}, osh.me);
        before--; // it travels as one more, so that 0 is "not yet"
    }
    if (g->me + 1 < g->size) {
        uint64_t next = before + len + 1;
        osh_put(osh.ctx, word, &next, sizeof next, osh_member(g, g->me + 1));
    }
    for (int i = 0; i < g->size; i++)
        osh_put_nbi(osh.ctx, (char *)dest + before, source, len, osh_member(g, (g->me + i) % g->size));
    complete(g);
}

void osh_alltoall(const struct osh_group *g, void *dest, const void *source, size_t len)
{
    for (int n = 0; n < g->size; n++) {
        int to = (g->me + n) % g->size;
        osh_put_nbi(osh.ctx, (char *)dest + (size_t)g->me * len, (const char *)source + (size_t)to * len, len,
                    osh_member(g, to));
    }
    complete(g);
}

void osh_alltoalls(const struct osh_group *g, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst,
                   size_t nelems, size_t size)
{
    ptrdiff_t to_step = dst * (ptrdiff_t)size, from_step = sst * (ptrdiff_t)size;
    struct osh_strides s = {to_step, from_step, size, nelems};

    for (int n = 0; n < g->size; n++) {
        int to = (g->me + n) % g->size;
        osh_iput(osh.ctx, (char *)dest + (ptrdiff_t)nelems * g->me * to_step,
                 (const char *)source + (ptrdiff_t)nelems * to * from_step, s, osh_member(g, to));
    }
    complete(g);
}

static char *room_for(size_t count, size_t size)
{
    char *p = calloc(count ? count : 1, size);

    if (!p)
        osh_fatal("no memory to combine %zu elements", count);
    return p;
}

// What members [0, last] have, together, to `to`, which no source shares a byte with. In pieces: what is
// fetched stays in the inner caches, and no call takes new pages for all of it.
static void combine(const struct osh_group *g, char *to, const char *source, size_t count,
                    const struct osh_op *op, int last)
{
    size_t most = PIECE / op->size;
    char *part = room_for(count < most ? count : most, op->size);

    for (size_t at = 0; at < count; at += most) {
        size_t n = count - at < most ? count - at : most;
        char *sum = to + at * op->size;
        const char *from = source + at * op->size;
        if (last < 0)
            memset(sum, 0, n * op->size);
        else
            osh_get(osh.ctx, sum, from, n * op->size, osh_member(g, 0));
        for (int i = 1; i <= last; i++) {
            osh_get(osh.ctx, part, from, n * op->size, osh_member(g, i));
            op->combine(sum, part, n);
        }
    }
    free(part);
}

// Do the two places share a byte?
static bool overlap(const void *a, const void *b, size_t len)
{
    return (uintptr_t)a - (uintptr_t)b < len || (uintptr_t)b - (uintptr_t)a < len;
}

// Members 0 to `last` together, to `dest`. The result is in place before the last sync: who is through first
// may at once send something else there.
static void combine_to(const struct osh_group *g, void *dest, const void *source, size_t count,
                       const struct osh_op *op, int last)
{
    osh_sync(g); // every source is ready
    if (overlap(dest, source, count * op->size)) {
        char *sum = room_for(count, op->size);
        combine(g, sum, source, count, op, last);
        osh_sync(g); // nobody reads a source any more
        memcpy(dest, sum, count * op->size);
        free(sum);
    } else {
        combine(g, dest, source, count, op, last);
    }
    osh_sync(g);
}

void osh_scan(const struct osh_group *g, void *dest, const void *source, size_t count,
              const struct osh_op *op, bool exclusive)
{
    combine_to(g, dest, source, count, op, exclusive ? g->me - 1 : g->me);
}

void osh_reduce(const struct osh_group *g, void *dest, const void *source, size_t count,
                const struct osh_op *op)
{
    combine_to(g, dest, source, count, op, g->size - 1);
}
