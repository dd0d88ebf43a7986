// SPDX-License-Identifier: MIT
// The receive ring, own or shared: receive WQEs are arrays of 16-byte SGEs picked by number through an index
// ring, as they come back out of order. The owner produces; initiators consume. An initiator writes a claim
// {who, queue} for the receive before the consumer index moves, so that a receive which a dead initiator took
// is found and flushed. What was polled leaves its claim: it means nothing to the owner, who knows what is
// out.
#ifndef DOCK_RING_RQRING_H
#define DOCK_RING_RQRING_H

#include <stdbool.h>

#include "arena/arena.h"
#include "arena/lockword.h"
#include "base/probe.h"
#include "base/seed.h"
#include "ring/format.h"

struct dock_rqrec {
    // line 0: the owner's, written at creation
    uint64_t sges;   // size x stride SGEs
    uint64_t index;  // size 32-bit entries
    uint64_t claims; // size claims, by receive number
    uint32_t size;   // a power of two
    uint32_t stride; // SGEs per receive, a power of two
    uint32_t id;     // of the shared receive queue, or of the pair it belongs to
    uint32_t pd;     // of its local keys
    uint32_t sum;
    // line 1: the owner's, at every post
    _Alignas(64) dock_a32 pi;
    dock_a64 posted;
    // line 2: the initiators'
    _Alignas(64) dock_a64 ci; // {ci, holder}
    dock_a32 limit;           // of a shared queue; 0 = off
};

static_assert(sizeof(struct dock_rqrec) == 192, "three lines, three writers");

static inline uint32_t dock_rqrec_sum(const struct dock_rqrec *r)
{
    uint64_t h = dock_mix(r->sges + 1) ^ dock_mix(r->index + 2) ^ dock_mix(r->claims + 3);

    h ^= dock_mix(((uint64_t)r->size << 32 | r->stride) + 4) ^ dock_mix(((uint64_t)r->id << 32 | r->pd) + 5);
    return (uint32_t)(h ^ h >> 32);
}

struct dock_rqview {
    struct dock_rqrec *rec;
    struct dock_wqe_sge *sges;
    dock_a32 *index;
    dock_a64 *claims;
    uint32_t size, stride, pd, id;
};

// -EBADMSG: the record does not hold together.
int dock_rqview_open(struct dock_view *view, uint64_t off, struct dock_rqview *out);

// Bytes of arena that the three arrays of a queue take, and where each begins.
uint64_t dock_rqring_bytes(uint32_t size, uint32_t stride);
void dock_rqring_format(struct dock_rqrec *rec, uint64_t arrays, uint32_t size, uint32_t stride, uint32_t id,
                        uint32_t pd, uint32_t start);

static inline uint64_t dock_claim_make(dock_who who, uint32_t queue)
{
    return (uint64_t)who << 32 | 1u << DOCK_ID_BITS | queue;
}

static inline uint32_t dock_claim_queue(uint64_t claim)
{
    return claim & DOCK_ID_MASK;
}

// Take the oldest posted receive: its number in *number (checked against the size), how many remain posted
// in *left. -EAGAIN: none posted. Any initiator.
// The same unless it has fewer than `bytes`: it stays then, -EMSGSIZE.
int dock_rq_take_for(struct dock_rqview *v, const struct dock_waiter *w, uint64_t claim, uint64_t bytes,
                     uint32_t *number, uint32_t *left);

static inline int dock_rq_take(struct dock_rqview *v, const struct dock_waiter *w, uint64_t claim,
                               uint32_t *number, uint32_t *left)
{
    return dock_rq_take_for(v, w, claim, 0, number, left);
}

static inline struct dock_wqe_sge *dock_rq_sges(const struct dock_rqview *v, uint32_t number)
{
    return v->sges + (uint64_t)number * v->stride;
}

#endif
