// SPDX-License-Identifier: MIT
// What a peer sees of a device: the records at fixed places of its arena. Every field that a peer reads is
// read once, then masked or bounded; the static part of a record carries a checksum, so that a stray store
// is found when the record is first trusted and not by the bytes it misleads.
//
//   offset 0            struct dock_port
//   port.hazards        struct dock_hazard[DOCK_HAZARDS]    who is working in our memory right now
//   port.segments       struct dock_segrec[port.nsegments]  the segment table, by tid
//   port.block[b]       struct dock_qrec[256]               queue records of id block b (type-stable)
#ifndef DOCK_ARENA_PORT_H
#define DOCK_ARENA_PORT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "arena/adopt.h"
#include "arena/who.h"
#include "base/order.h"
#include "base/probe.h"
#include "base/seed.h"

#define DOCK_PORT_MAGIC 0x4b434f4459524444u // "DDRYDOCK" read as bytes, little endian
#define DOCK_PORT_VERSION 5
#define DOCK_HAZARDS 32768
#define DOCK_FATAL_FORKED 2u

// Counters of the cold moments (base/probe.h); the hot ones are counted per queue.
#define DOCK_MOMENTS 24

enum dock_store_kind { DOCK_STORE_PUT, DOCK_STORE_GET, DOCK_STORE_ATOMIC, DOCK_STORE_KINDS };

struct dock_port {
    // line 0: written once, magic last
    dock_a64 magic;
    uint32_t version;
    dock_who who;
    int32_t pid;
    uint32_t nsegments;
    uint32_t full_fences; // 1: no membarrier here, whoever works with us must use full fences
    uint64_t segments, hazards, started_ns;
    char program[16];
    dock_a32 moving; // 1: pages of the program move, nobody touches memory that is not in the arena

    // line 1: the bell. A producer for this device writes its work, full fence, loads `asleep`;
    // the engine sets asleep, full fence, looks for work (pairs with dock_bell_ring).
    _Alignas(64) dock_a32 asleep;
    dock_a32 attention; // some qrec.attention or cqrec.attention is set: peers set it, the engine clears it
    dock_a32 fatal;     // the device was declared dead while stopped, or its memory was found corrupted;
                        // or, in a forked child's own blank page: it is the parent's
    dock_a32 nqueues, ncqs;
    dock_a32 hazard_high; // no hazard at or above this index was ever used

    // line 2..: counters of the whole device, by moment
    _Alignas(64) dock_a64 moment[DOCK_MOMENTS];
    _Alignas(64) dock_a64 fallback_bytes, fallback_calls, arena_bytes, dropped;
    struct dock_adopt_counts adopt;

    // a line of its own: calls of OpenSHMEM that are stores and loads, which no queue counts
    _Alignas(64) dock_a64 stores[DOCK_STORE_KINDS];

    _Alignas(
        64) dock_a64 block[DOCK_SLOTS]; // offset of the queue records of an id block that is ours, else 0
};

// A cold moment: told to the probe, and counted.
static inline void dock_port_moment(struct dock_port *port, enum dock_moment at, uint32_t object,
                                    uint64_t sequence)
{
    dock_probe(at, object, sequence);
    atomic_fetch_add_explicit(&port->moment[at], 1, memory_order_relaxed);
}

// One per (send queue, target device) pair, in the target's arena, written by the initiator. `busy` is odd
// while the initiator works in the target's memory. Who takes something away (a segment, a queue) makes it
// invalid, runs the heavy fence and waits until every odd hazard has moved: an epoch, not a lock.
struct dock_hazard {
    dock_a64 owner;  // {who, flags, queue id}; 0 = free. Claimed by CAS at connect
    dock_a64 busy;   // light fence after it becomes odd (pairs with dock_fence_heavy in dock_quiesce)
    dock_a32 mapped; // of a hazard without a queue: the tid of the segment that its owner has mapped
    uint8_t rest[44];
};

#define DOCK_HAZARD_USED (1ull << 31)
#define DOCK_HAZARD_EVICTED (1ull << 30) // its owner was given up and may still write here: nobody else's yet

static_assert(sizeof(struct dock_hazard) == 64, "a hazard is one cache line, no two writers share it");

enum dock_seg_kind {
    DOCK_SEG_FREE,
    DOCK_SEG_MR,      // memory region / segment
    DOCK_SEG_MW1,     // windows: bound to a region, type 1 to any queue of the domain,
    DOCK_SEG_MW2,     // type 2 to one queue
    DOCK_SEG_NOTHING, // no memory: what is read is zeros, what is written is gone
    DOCK_SEG_MANY,    // a token id of several segments: the first of a chain of them, see device/many.c
};

#define DOCK_ACCESS_LOCAL_WRITE 1u
#define DOCK_ACCESS_REMOTE_READ 2u
#define DOCK_ACCESS_REMOTE_WRITE 4u
#define DOCK_ACCESS_REMOTE_ATOMIC 8u
#define DOCK_ACCESS_MW_BIND 16u
#define DOCK_ACCESS_ZERO_BASED 32u
#define DOCK_ACCESS_RELAXED 64u
#define DOCK_ACCESS_NO_TOKEN 128u        // of a segment: any token value opens it
#define DOCK_ACCESS_TOKEN 256u           // of a queue: a message must carry its token (dock_qrec.qkey)
#define DOCK_ACCESS_ON_DEMAND (1u << 16) // not looked at before it is used
#define DOCK_ACCESS_NOTHING (1u << 17)   // of a region of kind NOTHING

#define DOCK_SEG_PLAIN (~0ull)              // dock_segrec.off of memory that is not in the arena
#define DOCK_SEG_PIECES ((uint64_t)1 << 62) // set in it: the rest is where a table of pieces lies
#define DOCK_PIECES_MAX                                                                                      \
    65536u // each is a mapping of the owner: it has not so many, unless its system allows more

// The parts of a segment that lie in the arena, ascending by address; between them it is plain. A part has a
// sum of its own: it is looked at again whenever a request goes on to it.
struct dock_segpiece {
    struct dock_piece at;
    uint64_t sum;
};

struct dock_segpieces {
    uint32_t count, sum; // of all behind it
    struct dock_segpiece piece[];
};

static inline uint64_t dock_piece_sum(const struct dock_piece *p)
{
    return dock_mix(p->addr) ^ dock_mix(p->len + 1) ^ dock_mix(p->off + 2);
}

static inline uint32_t dock_pieces_sum(const struct dock_segpiece *piece, uint32_t count)
{
    uint64_t h = count;

    for (uint32_t i = 0; i < count; i++)
        h = dock_mix(h ^ piece[i].sum);
    return (uint32_t)(h ^ h >> 32);
}

struct dock_segrec {
    dock_a64 generation; // bumped when the segment is taken away or given; 0 = never used
    uint64_t va, len;    // the range as remote requests name it
    uint64_t off;        // where va lies in the arena, DOCK_SEG_PLAIN, or DOCK_SEG_PIECES and a table
    uint64_t addr;       // where va lies in the owner's address space
    uint32_t token;      // the remote key, all 32 bits
    uint32_t pd;
    uint32_t access;
    uint32_t kind_qpn; // kind << 24 | queue a type 2 window is bound to, or the next segment of the token id
    uint32_t lkey;     // the local key: what the owner's receives name
    uint32_t sum;      // of all above but generation
};

// In the upper part of a generation: nobody has found the entry yet. Who reads the entry takes that out
// first, by a read-modify-write of the word that says whether it stands; so who takes it away knows whether
// anybody is to be waited for. A word of which bits have flipped does not say so.
#define DOCK_SEG_NEW (0xa9c5ull << 48)
#define DOCK_SEG_NEWNESS (0xffffull << 48)

static inline bool dock_seg_is_new(uint64_t generation)
{
    return (generation & DOCK_SEG_NEWNESS) == DOCK_SEG_NEW;
}

static_assert(sizeof(struct dock_segrec) == 64, "a segment entry is one cache line");

// An entry is read and written word by word while others may be at it; generation and sum tell whether what
// was read holds together.
static inline void dock_segrec_copy(struct dock_segrec *to, const struct dock_segrec *from)
{
    const dock_a64 *f = (const dock_a64 *)from;
    dock_a64 *t = (dock_a64 *)to;

    for (unsigned i = 1; i < sizeof *to / 8; i++) // word 0 is the generation: its writer publishes it
        dock_set64(&t[i], dock_peek64(&f[i]));
}

static inline uint32_t dock_segrec_sum(const struct dock_segrec *s)
{
    uint64_t h = dock_mix(s->va) ^ dock_mix(s->len + 1) ^ dock_mix(s->off + 2) ^ dock_mix(s->addr + 3);

    h ^= dock_mix(((uint64_t)s->token << 32 | s->pd) + 4);
    h ^= dock_mix(((uint64_t)s->access << 32 | s->kind_qpn) + 5) ^ dock_mix(s->lkey + 6);
    return (uint32_t)(h ^ h >> 32);
}

enum dock_queue_kind {
    DOCK_QUEUE_FREE,
    DOCK_QUEUE_PAIR,
    DOCK_QUEUE_SHARED_RQ, // only receives
    DOCK_QUEUE_GROUP,
    DOCK_QUEUE_SENDS,   // only sends
    DOCK_QUEUE_RELAY,   // only sends, for a producer in another process
    DOCK_QUEUE_XRC_TGT, // receives for the shared queues that requests name
    DOCK_QUEUE_XRC_SRQ, // one of these
};

// States of a queue, verbs' and URMA's in one set (src/device/state.h has the transitions).
enum dock_state {
    DOCK_RESET,
    DOCK_INIT,
    DOCK_RTR,
    DOCK_RTS, // URMA: READY
    DOCK_SQD,
    DOCK_SQE,
    DOCK_ERR,       // URMA: ERROR
    DOCK_SUSPENDED, // URMA only
    DOCK_GONE,      // destroyed: nobody is answered
};

// Those from UD on have no connection: each request names its target.
enum dock_service { DOCK_RC, DOCK_UC, DOCK_UD, DOCK_RM, DOCK_UM, DOCK_SERVICES };

// Why an initiator asks for the owner's attention (dock_qrec.attention, bits).
#define DOCK_ATTN_ACCESS 1u  // a remote access violation: queue to ERR, access event
#define DOCK_ATTN_REQUEST 2u // an invalid request: queue to ERR, request event
#define DOCK_ATTN_LOCAL 4u   // a receive of this queue failed: queue to ERR
#define DOCK_ATTN_COMM 8u    // first message on a queue in RTR: "communication established"
#define DOCK_ATTN_LIMIT 16u  // a shared receive queue fell below its limit
#define DOCK_ATTN_ERRORS (DOCK_ATTN_ACCESS | DOCK_ATTN_REQUEST | DOCK_ATTN_LOCAL)
#define DOCK_ATTN_FLUSH 32u // set by the owner: the queue failed, its receives are to be flushed
#define DOCK_ATTN_EMPTY 64u // a group was sent to that has no members

#define DOCK_PEER_ANY (1u << 31) // an open target: one-sided requests of any queue are answered

// A queue as its peers see it. Type-stable: a record's memory is a queue record for ever, so an initiator may
// read `state` through a cached pointer at any time and must then, under its hazard, compare `serial`.
struct dock_qrec {
    // line 0: what an initiator checks, written by the owner when the queue changes; two words that stand
    // side by side may be read as one
    dock_a32 state;
    dock_a32 serial;       // bumped at every create and destroy
    uint32_t kind_service; // kind << 8 | service
    uint32_t id;
    dock_a32 peer_id; // the queue that may send to this one (RC, UC), or DOCK_PEER_ANY
    dock_a32 peer_who;
    uint32_t pd;
    dock_a32 access; // DOCK_ACCESS_REMOTE_* that the queue allows
    uint64_t rq, cq; // offsets of the receive queue's and the receive completion queue's records
    dock_a32 qkey;
    dock_a32 rnr_timer; // 5-bit code, Table 46 of IBTA vol 1
    dock_a32 rd_atomic; // responder resources
    uint32_t sum;       // of the fields that are not atomic

    // line 1: written by initiators
    _Alignas(64) dock_a32 attention;
    dock_a32 first_cause;
    dock_a64 messages_in,
        bytes_in;    // two-sided: what one-sided requests bring is counted where they come from
    uint64_t cookie; // the owner's, for CQEs of its receives; of XRC: the domain. Written at creation

    // line 2: the send queue, for raw producers and for `drydock show`
    _Alignas(64) dock_a32 doorbell; // PI, in blocks, free-running: this word is the doorbell unless `page`
    uint32_t sq_blocks, sq_depth;
    dock_a32 under_way; // the runner's: WRs fetched and not executed when it last stopped early
    uint64_t sq;
    uint64_t page;          // raw: the page with its doorbell (ring/page.h), else 0
    dock_a64 posted, rings; // the poster's counters
    uint64_t send_cq;       // offset of the send completion queue's record, written at creation
    dock_a64 pieces;        // the runner's: pieces placed in runs that had more, or fewer, of them than WRs

    // line 3: written by whoever holds the execution token
    _Alignas(64) dock_a64 executed; // WRs
    dock_a64 bytes_out, cqes, rnr, by_poster, by_poller, by_engine;
    dock_a64 visits; // runs of pollers and of the engine
};

static_assert(sizeof(struct dock_qrec) == 256, "four lines, four writers");
static_assert(offsetof(struct dock_qrec, state) % 8 == 0 && offsetof(struct dock_qrec, serial) % 8 == 4 &&
                  offsetof(struct dock_qrec, peer_id) % 8 == 0 &&
                  offsetof(struct dock_qrec, peer_who) % 8 == 4,
              "read as one by fabric/direct.h");

// A group of queues: its queue record leads here by `rq`. Written by the owner, but for the turn.
#define DOCK_BUNDLE_MAX 32u
enum dock_bundle_policy { DOCK_BUNDLE_TURN, DOCK_BUNDLE_HINT }; // who is next; who the request's hint says

struct dock_grprec {
    _Alignas(64) uint32_t policy;
    dock_a32 count;
    dock_a32 member[DOCK_BUNDLE_MAX];
    _Alignas(64) dock_a32 turn; // the initiators'
};

static inline uint32_t dock_qrec_sum(const struct dock_qrec *q)
{
    uint64_t h = dock_mix((uint64_t)q->kind_service << 32 | q->id) ^ dock_mix(q->rq + 1);

    h ^= dock_mix(q->cq + 2) ^ dock_mix(q->pd + 3);
    return (uint32_t)(h ^ h >> 32);
}

#endif
