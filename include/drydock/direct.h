// SPDX-License-Identifier: MIT
// Direct drive: a producer fills WQEs, rings the doorbell and reads completions itself, with no library
// between its stores and the device. Header-only, freestanding C11 (no libc, no allocation, no call): it
// compiles for an accelerator's core as well as for a thread.
//
//     struct drydock_queue q;                    // from the host: drydock/verbs.h says how
//     drydock_post_write(&q, &target, to, from, bytes, DRYDOCK_COMPLETE);
//     drydock_ring(&q);                          // the doorbell: what was posted is published
//     int err = drydock_quiet(&q);               // all of it is done; its errors are told, never dropped
//
// THE RULE: one queue, one producer. The head is read, the slot filled and the head moved with no lock. Two
// producers on one queue read the same head, fill the same slot and move the head once: one WQE is gone, and
// the memory does not show it. A program that is built with DRYDOCK_DIRECT_CHECK keeps notes beside the ring
// by which the device names both. Give every producer a queue of its own.
//
// Sizes are bytes, positions are blocks of 64 bytes that run free (32 bits) and are masked on access only. A
// function returns 0 or one of enum drydock_direct_error, or a completion status. No function may be called
// for one queue by two threads at a time. Formats: UDMA's public 64-byte blocks.
#ifndef DRYDOCK_DIRECT_H
#define DRYDOCK_DIRECT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#error "direct.h is C11: include it from C sources"
#endif

// With DRYDOCK_DIRECT_CHECK the program says who posts: an expression, 1 to 65535, different in every
// producer.
#if defined(DRYDOCK_DIRECT_CHECK) && !defined(DRYDOCK_PRODUCER)
#error "DRYDOCK_DIRECT_CHECK needs DRYDOCK_PRODUCER, an expression that numbers the producer"
#endif

enum { DRYDOCK_BLOCK_BYTES = 64 };

enum drydock_direct_error {
    DRYDOCK_FULL = -1,    // no room: poll, then post again. Nothing was written
    DRYDOCK_TIMEOUT = -2, // so many looks, and the completion is not there
    DRYDOCK_LOST = -3,    // the queue is in its error state: the device said why, or is gone (a relay's)
    DRYDOCK_INVALID = -4, // not a lone WQE of one block
};

// Flags of a WQE. Without COMPLETE success makes no completion: a later completion of the queue covers it.
enum drydock_flag {
    DRYDOCK_FENCE = 1 << 19,
    DRYDOCK_SOLICITED = 1 << 20,
    DRYDOCK_COMPLETE = 1 << 21,
};

// A queue as its one producer sees it.
struct drydock_queue {
    // line 0: told once by the host
    unsigned char *ring;           // `blocks` blocks
    const unsigned char *cq;       // `cqes` entries of 64 bytes; at least as many as `blocks`
    _Atomic uint32_t *doorbell;    // at 0x80 of `page`
    _Atomic uint32_t *cq_doorbell; // the consumer index, told back
    unsigned char *page; // the doorbell page: a lone WQE may be stored whole to its start; NULL: not here
    const _Atomic uint32_t *state; // the device's word for this queue: DRYDOCK_STATE_ERROR is the end
    uint32_t blocks, cqes;         // powers of two
    uint32_t id, inline_max;
    // line 1: the producer's
    _Alignas(64) _Atomic uint32_t head; // next block to be written: PI
    uint32_t rung;                      // what the doorbell said last
    uint32_t tail;                      // blocks that polled completions have freed
    uint32_t cq_head;                   // next completion to be read: CI
    uint32_t posted, polled;            // WQEs, completions
    uint32_t error; // status of the first completion that was not success, kept until taken
};

enum { DRYDOCK_STATE_ERROR = 6 };

// What a WQE goes to: a segment (one-sided) or a queue (send) of a peer.
struct drydock_target {
    uint64_t address, length; // of the segment, as the peer registered it
    uint32_t segment, token;  // tid and token: of a verbs rkey, rkey >> 8 and rkey
    uint32_t queue;           // for sends on queues that are not connected
    uint32_t path;            // tp id, 0 when the queue is connected
    uint8_t eid[16];          // of the peer's device, network order; not read by connected queues
};

// ---- inside

typedef uint64_t __attribute__((may_alias)) drydock_word;
typedef uint32_t __attribute__((may_alias)) drydock_half;

static inline unsigned char *drydock_slot(const struct drydock_queue *q, uint32_t position)
{
    return q->ring + (size_t)(position & (q->blocks - 1)) * DRYDOCK_BLOCK_BYTES;
}

static inline void drydock_put(unsigned char *block, unsigned at, uint64_t value)
{
    *(drydock_word *)(void *)(block + at) = value;
}

static inline uint64_t drydock_pair(uint32_t low, uint32_t high)
{
    return low | (uint64_t)high << 32;
}

// Relaxed: only this producer moves it. Atomic all the same, so that a second producer is an error that the
// check can name and not undefined behaviour.
static inline uint32_t drydock_head(const struct drydock_queue *q)
{
    return atomic_load_explicit(&q->head, memory_order_relaxed);
}

// Room for `n` more blocks? Counted in blocks, not WQEs.
static inline int drydock_has_room(const struct drydock_queue *q, uint32_t n)
{
    return drydock_head(q) + n - q->tail <= q->blocks;
}

// Why nothing was posted: polling helps, or never will.
static inline int drydock_no_room(const struct drydock_queue *q)
{
    return atomic_load_explicit(q->state, memory_order_relaxed) == DRYDOCK_STATE_ERROR ? DRYDOCK_LOST
                                                                                       : DRYDOCK_FULL;
}

// The 48 bytes of control that every WQE begins with. The owner bit says on which pass over the ring it
// stands.
static inline unsigned char *drydock_control(struct drydock_queue *q, unsigned opcode, uint32_t flags,
                                             const struct drydock_target *t, uint64_t address, uint32_t sges,
                                             uint32_t inline_bytes)
{
    uint32_t head = drydock_head(q), owner = head & q->blocks ? 0 : 1u << 31;
    unsigned char *b = drydock_slot(q, head);
    uint32_t remote = opcode <= 2 ? t->queue : t->segment;

    flags |= owner | 1u << 28 | (inline_bytes ? 1u << 22 : 0);
    drydock_put(b, 0, drydock_pair(flags, opcode << 8 | inline_bytes << 22));
    drydock_put(b, 8, drydock_pair((t->path & 0xffffff) | sges << 24, remote & 0xfffff));
    // the format has the address bytes reversed; in words: a loop of bytes costs more than all the rest
    drydock_put(b, 16, __builtin_bswap64(*(const drydock_word *)(const void *)(t->eid + 8)));
    drydock_put(b, 24, __builtin_bswap64(*(const drydock_word *)(const void *)t->eid));
    drydock_put(b, 32, t->token);
    drydock_put(b, 40, address);
    return b;
}

static inline void drydock_sge(unsigned char *b, unsigned at, const void *local, uint32_t bytes)
{
    drydock_put(b, at, bytes); // the key is not told: the device finds the address among what is registered
    drydock_put(b, at + 8, (uint64_t)(uintptr_t)local);
}

#ifdef DRYDOCK_DIRECT_CHECK
struct drydock_note {
    _Atomic uint64_t claim;         // position << 32 | producer
    _Atomic uint32_t sequence, sum; // the producer's count; of the blocks
};

static inline uint32_t drydock_sum(const struct drydock_queue *q, uint32_t position, unsigned blocks)
{
    uint64_t h = 0xcbf29ce484222325ull;

    for (unsigned i = 0; i < blocks; i++)
        for (unsigned w = 0; w < 8; w++)
            h = (h ^ ((const drydock_word *)(const void *)drydock_slot(q, position + i))[w]) *
                0x100000001b3ull;
    return (uint32_t)(h ^ h >> 32);
}

// Beside the ring: who wrote this place, and what. Whoever finds the same position claimed by another
// producer says so on the page; the device looks there.
static inline void drydock_note_wqe(struct drydock_queue *q, uint32_t position, unsigned blocks)
{
    struct drydock_note *note =
        (struct drydock_note *)(void *)(q->page + 0x100) + (position & (q->blocks - 1));
    _Atomic uint64_t *met = (_Atomic uint64_t *)(void *)(q->page + 0xc0);
    uint64_t me = (uint64_t)(DRYDOCK_PRODUCER)&0xffff, none = 0;

    atomic_store_explicit(&note->sum, drydock_sum(q, position, blocks), memory_order_relaxed);
    atomic_store_explicit(&note->sequence, q->posted, memory_order_relaxed);
    // acq_rel: the note before the claim (pairs with the device's acquire), and the other's claim before ours
    uint64_t was =
        atomic_exchange_explicit(&note->claim, (uint64_t)position << 32 | me, memory_order_acq_rel);
    if (was && was >> 32 == position && (was & 0xffff) != me)
        atomic_compare_exchange_strong_explicit(met, &none,
                                                (uint64_t)position << 32 | (was & 0xffff) << 16 | me,
                                                memory_order_release, memory_order_relaxed);
}
#else
static inline void drydock_note_wqe(struct drydock_queue *q, uint32_t position, unsigned blocks)
{
    (void)q, (void)position, (void)blocks;
}
#endif

// The WQE at head is whole: the next one begins behind it.
static inline int drydock_advance(struct drydock_queue *q, unsigned blocks)
{
    uint32_t head = drydock_head(q);

    drydock_note_wqe(q, head, blocks);
    atomic_store_explicit(&q->head, head + blocks, memory_order_relaxed);
    q->posted++;
    return 0;
}

static inline int drydock_put_simple(struct drydock_queue *q, unsigned opcode, const struct drydock_target *t,
                                     uint64_t address, const void *local, uint32_t bytes, uint32_t flags)
{
    unsigned char *b;

    if (!drydock_has_room(q, 1))
        return drydock_no_room(q);
    b = drydock_control(q, opcode, flags, t, address, 1, 0);
    drydock_sge(b, 48, local, bytes);
    return drydock_advance(q, 1);
}

static inline int drydock_put_atomic(struct drydock_queue *q, unsigned opcode, const struct drydock_target *t,
                                     uint64_t address, void *result, uint64_t first, uint64_t second,
                                     uint32_t flags)
{
    unsigned char *b;

    if (!drydock_has_room(q, 2))
        return drydock_no_room(q);
    b = drydock_control(q, opcode, flags, t, address, 1, 0);
    drydock_sge(b, 48, result, 8);
    b = drydock_slot(q, drydock_head(q) + 1); // the second block may be the first of the ring
    drydock_put(b, 0, first);
    drydock_put(b, 8, second);
    return drydock_advance(q, 2);
}

// ---- post: fill a WQE at the head. The device looks at nothing before drydock_ring. All: DRYDOCK_FULL when
// the ring has no room, DRYDOCK_LOST when it has none and the queue is in its error state; nothing was
// written then. The local memory must be registered with the device, and is free again when a completion that
// covers the WQE was polled, not before.

// Write `bytes` from local memory to `address` of the target's segment.
static inline int drydock_post_write(struct drydock_queue *q, const struct drydock_target *t,
                                     uint64_t address, const void *local, uint32_t bytes, uint32_t flags)
{
    return drydock_put_simple(q, 3, t, address, local, bytes, flags);
}

// Read `bytes` of the target's segment into local memory, which may be looked at after its completion.
static inline int drydock_post_read(struct drydock_queue *q, const struct drydock_target *t, uint64_t address,
                                    void *local, uint32_t bytes, uint32_t flags)
{
    return drydock_put_simple(q, 6, t, address, local, bytes, flags);
}

// Put with signal: write as above, and then, after the payload, `value` to the 8 bytes at `signal_address` of
// `signal`. Whoever sees the signal sees the payload. Two blocks.
static inline int drydock_post_write_notify(struct drydock_queue *q, const struct drydock_target *t,
                                            uint64_t address, const void *local, uint32_t bytes,
                                            const struct drydock_target *signal, uint64_t signal_address,
                                            uint64_t value, uint32_t flags)
{
    unsigned char *b;

    if (!drydock_has_room(q, 2))
        return drydock_no_room(q);
    b = drydock_control(q, 5, flags, t, address, 1, 0);
    drydock_put(b, 48, drydock_pair(signal->segment & 0xfffff, signal->token));
    drydock_put(b, 56, signal_address);
    b = drydock_slot(q, drydock_head(q) + 1); // may be the first of the ring
    drydock_put(b, 0, value);
    drydock_put(b, 8, 0);
    drydock_sge(b, 16, local, bytes);
    return drydock_advance(q, 2);
}

// Add `value` to the 8 bytes at `address`; what was there lands in *result. Two blocks.
static inline int drydock_post_fetch_add(struct drydock_queue *q, const struct drydock_target *t,
                                         uint64_t address, uint64_t *result, uint64_t value, uint32_t flags)
{
    return drydock_put_atomic(q, 0xb, t, address, result, value, 0, flags);
}

// Put `value` into the 8 bytes at `address` if they are `compare`; what was there lands in *result. Two
// blocks.
static inline int drydock_post_compare_swap(struct drydock_queue *q, const struct drydock_target *t,
                                            uint64_t address, uint64_t *result, uint64_t compare,
                                            uint64_t value, uint32_t flags)
{
    return drydock_put_atomic(q, 7, t, address, result, value, compare, flags);
}

// Send `bytes` into a receive that the peer posted.
static inline int drydock_post_send(struct drydock_queue *q, const struct drydock_target *t,
                                    const void *local, uint32_t bytes, uint32_t flags)
{
    return drydock_put_simple(q, 0, t, 0, local, bytes, flags);
}

// ---- publish

// The doorbell (an accelerator's st_dev): everything that was posted is published. A post with no ring is
// published by the next ring of its queue (URMA's db_bypass). Release: the WQEs before the doorbell.
static inline void drydock_ring(struct drydock_queue *q)
{
    uint32_t head = drydock_head(q);

    atomic_store_explicit(q->doorbell, head, memory_order_release);
    q->rung = head;
}

// Instead of drydock_ring: a lone WQE of one block, posted to a queue with nothing outstanding, is stored
// whole to the doorbell page, and stands for the doorbell. DRYDOCK_INVALID if that is not what stands there.
static inline int drydock_ring_whole(struct drydock_queue *q)
{
    uint32_t head = drydock_head(q);
    const drydock_word *from = (const drydock_word *)(const void *)drydock_slot(q, head - 1);
    _Atomic uint64_t *to = (_Atomic uint64_t *)(void *)q->page;

    if (!to || head - q->rung != 1 || q->rung != q->tail)
        return DRYDOCK_INVALID;
    for (unsigned i = 1; i < 8; i++)
        atomic_store_explicit(&to[i], from[i], memory_order_relaxed);
    atomic_store_explicit(&to[0], from[0] | (head & 0xffff),
                          memory_order_release); // the rest before this word
    q->rung = head;
    return 0;
}

// ---- complete

// Take one completion if there is one: 1, else 0. A failed one is kept in q->error.
static inline int drydock_poll_one(struct drydock_queue *q)
{
    const unsigned char *e = q->cq + (size_t)(q->cq_head & (q->cqes - 1)) * DRYDOCK_BLOCK_BYTES;
    // acquire: the entry after its owner bit, which says on which pass it was written
    uint32_t first = atomic_load_explicit((const _Atomic uint32_t *)(const void *)e, memory_order_acquire);

    if ((first >> 2 & 1) == ((q->cq_head & q->cqes) != 0))
        return 0;
    uint32_t last = *(const drydock_half *)(const void *)(e + 4) & 0xffff;
    if (first >> 16 && !q->error)
        q->error = first >> 24 << 8 | (first >> 16 & 0xff);
    q->tail += ((last - q->tail) & (q->blocks - 1)) + 1; // it covers all blocks up to its own
    q->cq_head++;
    q->polled++;
    return 1;
}

// Take what is there; the consumer index is told once. Returns how many.
static inline unsigned drydock_poll(struct drydock_queue *q)
{
    unsigned n = 0;

    while (drydock_poll_one(q))
        n++;
    if (n)
        atomic_store_explicit(q->cq_doorbell, q->cq_head, memory_order_release);
    return n;
}

// The first error since the last call, and forget it: 0, a status, or DRYDOCK_LOST.
static inline int drydock_take_error(struct drydock_queue *q)
{
    uint32_t error = q->error;

    q->error = 0;
    if (error)
        return (int)error;
    return atomic_load_explicit(q->state, memory_order_relaxed) == DRYDOCK_STATE_ERROR ? DRYDOCK_LOST : 0;
}

// Poll until everything before `position` (a value of drydock_head after a post) is covered by a completion,
// at most `looks` times (0: no limit). 0, a status, DRYDOCK_TIMEOUT or DRYDOCK_LOST. A WQE without
// DRYDOCK_COMPLETE behind the last one with it is covered by nothing: waiting for it is the program's
// mistake.
static inline int drydock_poll_until(struct drydock_queue *q, uint32_t position, uint64_t looks)
{
    uint32_t left = 1u << 22; // looks at a queue in error: its WQEs are being flushed, each by a completion

    for (uint64_t i = 0; (int32_t)(position - q->tail) > 0; i++) {
        if (drydock_poll(q))
            continue;
        if (atomic_load_explicit(q->state, memory_order_relaxed) == DRYDOCK_STATE_ERROR && !left--)
            break;
        if (looks && i + 1 >= looks)
            return DRYDOCK_TIMEOUT;
    }
    return drydock_take_error(q);
}

// Everything that was posted and rung is done. The order of requests among each other is another question.
static inline int drydock_quiet(struct drydock_queue *q)
{
    return drydock_poll_until(q, q->rung, 0);
}

#endif
