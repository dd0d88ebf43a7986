// SPDX-License-Identifier: MIT
// Direct drive through OpenSHMEM: the table of queues that this PE drives itself (drydock/direct.h), one row
// for each way to a PE and as many queues in a row as the program has producers.
//
//     struct drydock_table *t;
//     drydock_table_open(4, 64, DRYDOCK_TABLE_RELAYS, &t); // all PEs: four queues of 64 blocks on each way
//     struct drydock_queue *q = drydock_table_queue(t, pe, relay, my_number);
//     const struct drydock_target *to = drydock_table_target(t, symmetric, pe, &address);
//     drydock_post_write(q, to, address, from, bytes, DRYDOCK_COMPLETE);
//
// A way is a slot, `pe` times the number of PEs plus `relay`. With relay == pe it is the straight one,
// executed by this PE's own device (pe may be this PE). With any other relay the queue's ring, doorbell and
// completions lie in that PE's device, which fetches, executes and counts what this PE's stores put there: a
// WQE that is addressed through it. Order, completions and errors are those of one queue. `drydock show`
// lists such a queue at the relay as of kind "relay". What a relayed WQE reads or writes at this PE must lie
// in this PE's symmetric heap.
//
// The three functions are in Drydock's libshmem.so.1. No other OpenSHMEM has them.
#ifndef DRYDOCK_SHMEM_H
#define DRYDOCK_SHMEM_H

#include "drydock/direct.h"

// What the producers of a PE need, and all of it: it may be copied to where they run.
struct drydock_table {
    int pes, me, queues;
    struct drydock_queue *queue;                 // [slot][queue]; `blocks` is 0 where there is none
    const struct drydock_target *heap, *statics; // [pe]: its symmetric heap, its static objects
    uint64_t heap_base, statics_base;            // where the two begin in this PE
};

enum drydock_table_flag {
    DRYDOCK_TABLE_RELAYS = 1, // the ways through other PEs too: PEs^2 slots instead of the straight ones
};

// Collective over all PEs, which ask for the same: `queues` (1 to 64) of `blocks` blocks (1 to 65536,
// rounded up to a power of two) on each way. 0 and *out, valid until drydock_table_close; or the same error
// in every PE: EINVAL (out of range, or PEs ask for different tables), ENOMEM (a device has no more queues
// or memory, or the symmetric heap has no room for what the PEs tell each other). Ends with a barrier. Not
// thread-safe, as other collectives.
int drydock_table_open(int queues, uint32_t blocks, unsigned flags, struct drydock_table **out);

// Collective. No producer may be at work, and what it has rung must be done (drydock_quiet). shmem_finalize
// closes what is open.
void drydock_table_close(struct drydock_table *table);

// Close the straight way from this PE to `pe`, for this table: its queues go to their error state, and what
// is or will be posted to them fails. Ways through relays stay. 0, or EINVAL: there is no such PE. Local,
// thread-safe.
int drydock_table_cut(struct drydock_table *table, int pe);

static inline int drydock_table_slot(const struct drydock_table *t, int pe, int relay)
{
    return pe * t->pes + relay;
}

// The queue of a producer on the way to `pe` through `relay`. NULL: there is none (a relay that is this PE,
// a table without relays, a number out of range).
static inline struct drydock_queue *drydock_table_queue(const struct drydock_table *t, int pe, int relay,
                                                        int queue)
{
    struct drydock_queue *q = NULL;

    if (pe >= 0 && pe < t->pes && relay >= 0 && relay < t->pes && queue >= 0 && queue < t->queues)
        q = &t->queue[drydock_table_slot(t, pe, relay) * t->queues + queue];
    return q && q->blocks ? q : NULL;
}

// What a symmetric address of this PE is at `pe`. NULL, and *address 0: it is not symmetric.
static inline const struct drydock_target *
drydock_table_target(const struct drydock_table *t, const void *symmetric, int pe, uint64_t *address)
{
    uint64_t in_heap = (uint64_t)(uintptr_t)symmetric - t->heap_base;
    uint64_t in_statics = (uint64_t)(uintptr_t)symmetric - t->statics_base;

    *address = 0;
    if (in_heap < t->heap[pe].length) {
        *address = t->heap[pe].address + in_heap;
        return &t->heap[pe];
    }
    if (in_statics < t->statics[pe].length) {
        *address = t->statics[pe].address + in_statics;
        return &t->statics[pe];
    }
    return NULL;
}

#endif
