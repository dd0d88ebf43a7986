// SPDX-License-Identifier: MIT
// How a request reaches its peer. The device starts requests of one queue in order; a fabric finishes them
// at once (self, host) or later, from any thread and in any order (a network, the fake one of the tests).
// The device publishes completions in queue order whatever the fabric does.
//
// What a fabric owes the device, for requests started on one queue (reference: RC ordering, IBTA vol 1 9.5):
//  - remote effects of WRITE, SEND and atomics take place in the order they were started, each not before
//    those that came earlier, and a READ or atomic does not pass an earlier WRITE, SEND or atomic;
//  - a READ may be overtaken by what follows; its local effect may come any time before it is finished;
//  - the source of a WRITE or SEND is read in the order of starting;
//  - a request is finished exactly once, after its effects are placed.
//  - after a request failed, those started behind it on the same way and not placed yet never are: they are
//    flushed;
//  - a request that was PENDING is retried by the fabric: what it finishes with is final;
//  - outside of start() it touches the device's memory only between dock_up_enter and dock_up_leave.
// Fence, limits of reads in flight, retries, states and completions are the device's.
#ifndef DOCK_FABRIC_FABRIC_H
#define DOCK_FABRIC_FABRIC_H

#include <stdbool.h>
#include <sys/types.h>

#include "arena/arena.h"
#include "arena/lockword.h"
#include "arena/port.h"
#include "ring/cqring.h"
#include "ring/format.h"
#include "ring/rqring.h"

// A transfer is done in pieces of at most so many bytes. Longer ones where nobody waits for the next turn: so
// much lies between two of them that copying from the outer caches would be a tenth slower.
#define DOCK_PIECE 65536u
#define DOCK_PIECE_ALONE (1u << 20)

struct dock_dev;
struct dock_fabric;
struct dock_origin;

// Another device of this host (or ourselves), reached once and kept.
struct dock_peer {
    dock_who who;
    bool self;
    pid_t pid;
    uint64_t home; // of its image (arena/home.h); 0: not known, or our own
    struct dock_view *view;
    struct dock_port *port;
    int bell_fd, pidfd;
    dock_a32 dead;
    dock_a32 hazard_hint;
    uint32_t refs; // guarded by the device's peer lock
};

// A remote key that was checked and found good: valid as long as the entry's generation has not moved.
struct dock_rkey {
    uint64_t writes; // dock_rkey_name, if all of this may be written to; else DOCK_RKEY_NONE
    uint64_t generation;
    const struct dock_segrec *rec;
    char *base;            // `mapped` lies here in our mapping
    uint64_t mapped, room; // the part last used that the arena has; room 0: the memory is plain
    uint64_t addr;         // va in the owner's address space
    uint64_t va, len;
    const struct dock_segpieces *table; // of such parts, NULL if there are no others
    uint32_t pieces;
    uint32_t tid, token;
    uint32_t access;
    bool local; // found as a local key of the target
    bool many;  // one of several segments of `tid`
};

#define DOCK_RKEY_NONE UINT64_MAX

// A remote key as a small WRITE names it; a tid has 20 bits.
static inline uint64_t dock_rkey_name(uint32_t tid, uint32_t token)
{
    return (uint64_t)token << 32 | tid;
}

#define DOCK_RKEYS 4
#define DOCK_LKEYS 2 // of the target's receives

// The receive that is next at the target, read ahead: what is posted stays as it is until its position is
// taken.
struct dock_next_receive {
    bool known;
    uint32_t ci;             // its position
    uint32_t number;         // bounded
    uint32_t pi;             // receives before this position were posted when we looked
    struct dock_wqe_sge sge; // its first
    char *to;                // where that lies, as long as the generation stands; NULL: look for it
    uint64_t generation;
    const struct dock_segrec *rec;
};

// The way from one send queue to one target queue. Belongs to the send queue; only the holder of its
// execution token touches it.
struct dock_conn {
    // line 0, 1: what every request touches
    struct dock_peer *peer; // NULL: not reached yet
    struct dock_hazard *hazard;
    struct dock_qrec *queue;
    struct dock_conn *via; // to an XRC shared queue: the way to the target, which keeps the connection
    uint32_t serial;
    uint32_t dest_qp, source_qp;
    dock_who me;        // whose queue `source_qp` is
    uint32_t held;      // UC: 1 + the number of a receive whose message was broken off; the next one gets it
    uint32_t key_pd;    // protection domain of the target queue, as checked
    uint64_t cookie;    // the target queue's
    uint32_t cqe_flags; // dw0 of completions of its receives
    dock_who dest_who;
    uint8_t service;
    bool views; // the four below are open for `serial`
    bool alone; // a message finds a receive queue that is the target's own and takes from us alone, and tells
                // no address of its sender
    bool xrc;   // of an XRC initiator: leads to its target or, `via` it, to a shared queue
    bool force_plain;
    bool zero_length_checked; // the remote key of a request without bytes
    bool atomics_apart;       // a read and a write, on memory that is mapped too
    bool owes_bell;           // to the peer, whose event a completion has fired: see dock_conn_wake
    const struct dock_fabric *fabric;
    struct dock_dev *dev;
    const struct dock_waiter *waiter;
    const dock_a32 *moving; // our own device's, as dock_port.moving is the target's
    uint64_t hazard_value;
    const struct dock_rkey *written; // the key that the last small WRITE went under
    struct dock_rkey key[DOCK_RKEYS + DOCK_LKEYS];
    struct dock_rqview rq;
    struct dock_next_receive next_receive;
    struct dock_cqview cq;
    uint8_t eid[16];           // of the target, of a way of a queue without a connection
    const uint8_t *source_eid; // of the queue, told to receivers; NULL: its face does not tell
    struct dock_conn *next;    // see device/ways.c
    uint64_t moving_since_ns;  // since when the target's port.moving was seen raised; 0: it is not
};

struct dock_sge_local {
    uint64_t va;
    uint32_t len, key;
};

// One WR while it is executed: decoded from the ring, owned by the device.
struct dock_xfer {
    uint8_t op, nsge, service;
    bool tokens;                      // keys are named by tid and token value apart
    bool keyed;                       // SGEs carry local keys; else local addresses are looked up by range
    const struct dock_origin *origin; // whose addresses they are; NULL: ours
    bool short_atomics;
    uint32_t flags;
    uint32_t len;    // bytes in all
    uint32_t pd;     // of the local keys
    uint32_t remote; // tid or queue
    uint32_t srq;    // XRC: the shared receive queue
    uint32_t target; // queue: as connected, or as the request names it
    bool bundle;     // `target` is a group of which a member is to be picked
    uint8_t hint;
    uint32_t token;        // of the segment; of the target when it is a message
    uint32_t target_token; // WRITE_IMM: of the target
    uint64_t raddr, imm;
    uint64_t operand, compare;
    uint32_t notify_tid, notify_token; // SEND_INV with tokens: what is to be invalidated
    uint64_t notify_addr, notify_value;
    const uint8_t *inline_data; // NULL: the SGEs
    uint8_t eid[16];            // of the target, network order, when the request names it
    uint8_t from[16];           // UD: the source, as the header tells it
    uint8_t tclass, hops;       // UD: of the header; hops 0: the usual
    uint32_t outstanding;       // READ, atomic: those of its queue that the target has not answered yet
    struct dock_sge_local sge[DOCK_SGE_MAX];
    // progress of a transfer that is done in pieces
    uint32_t piece; // bytes of the next one, at most
    uint32_t done;
    bool claimed;
    bool broken;      // XRC: its target ended in the middle, and the receive was given back
    uint32_t receive; // number of the claimed receive
    // identity and result
    uint32_t seq, last_block;
    uint32_t status; // enum dock_status
    uint32_t bytes;
};

// Something of it is at the target: it can only go on there.
static inline bool dock_xfer_begun(const struct dock_xfer *x)
{
    return x->claimed || x->done || x->broken;
}

// Where a key of the target is kept: a remote one, or a local one of its receives.
static inline struct dock_rkey *dock_conn_key(struct dock_conn *c, uint32_t tid, bool local)
{
    return &c->key[local ? DOCK_RKEYS + tid % DOCK_LKEYS : tid % DOCK_RKEYS];
}

// The way to the queue that answers for a request: of XRC the target's, else the one that is given.
static inline struct dock_conn *dock_conn_target(struct dock_conn *c)
{
    return __builtin_expect(c->via != NULL, 0) ? c->via : c;
}

// What start() says.
enum dock_go {
    DOCK_GO_DONE,    // finished, x->status and x->bytes tell how
    DOCK_GO_PENDING, // dock_up_finish will be called; the fabric keeps its own copy of *x
    DOCK_GO_MORE,    // a piece was done, call again
    DOCK_GO_RNR,     // no receive is posted
    DOCK_GO_NOBODY,  // the target is not there, not ready, or not ours: as if the packet was lost
};

struct dock_fabric {
    const char *name;
    bool late; // may answer PENDING
    // Reach conn->dest_qp, as far as it can be done without blocking. 0; -EAGAIN (being reached);
    // -EHOSTUNREACH.
    int (*connect)(struct dock_conn *conn);
    void (*disconnect)(struct dock_conn *conn);
    enum dock_go (*start)(struct dock_conn *conn, struct dock_xfer *x, void *sq);
    // A member of the group that conn leads to, 0: there is none. NULL: no groups here.
    uint32_t (*pick)(struct dock_conn *conn, uint32_t hint);
    // A request that said MORE will not be continued. NULL: nothing is held for it.
    void (*abandon)(struct dock_conn *conn, struct dock_xfer *x);
    bool direct; // both sides' memory may be mapped: the device may do small requests in line
                 // (fabric/direct.h)
};

// A queue without a connection names its target by number in each request.
static inline bool dock_service_names(unsigned service)
{
    return service >= DOCK_UD;
}

// Nobody answers on these: what cannot be delivered is dropped, and the sender never learns.
static inline bool dock_service_lossy(unsigned service)
{
    return service == DOCK_UC || service == DOCK_UD || service == DOCK_UM;
}

// The same of a request: a READ is answered, or its reader is told that it was not.
static inline bool dock_xfer_lossy(const struct dock_xfer *x)
{
    return dock_service_lossy(x->service) && x->op != DOCK_OP_READ;
}

extern const struct dock_fabric dock_fabric_host;
extern const struct dock_fabric dock_fabric_self;

// ---- what the device does for a fabric

// A piece of local memory that an SGE names: `at` when it can be touched directly, else NULL and `plain`.
struct dock_span {
    char *at;
    uint64_t plain; // its address, also when `at` is given
    uint64_t room;  // bytes from here on that are reached the same way
};

// Check [va, va+len) against a local key of `pd` (or, unkeyed, look it up by range). 0 or a status.
uint32_t dock_up_local(struct dock_dev *dev, const struct dock_xfer *x, const struct dock_sge_local *sge,
                       uint32_t skip, uint32_t need_access, struct dock_span *out);

// A request that was PENDING is finished. Any thread, any order, exactly once.
void dock_up_finish(void *sq, uint32_t seq, uint32_t status, uint32_t bytes);

// Reach the device `who`: *out with a reference, 0; -EAGAIN while its descriptors are on their way;
// -EHOSTUNREACH nobody there. Never blocks.
int dock_up_peer(struct dock_dev *dev, dock_who who, struct dock_peer **out);
void dock_up_peer_put(struct dock_dev *dev, struct dock_peer *peer);

// Wake the engine of a peer if it sleeps. The full fence orders the caller's work before the look.
void dock_up_bell(struct dock_peer *peer);
// The same, for flags that were set in its arena: they are looked at.
void dock_up_attention(struct dock_peer *peer);

// What start() and abandon() have brought may be waited for asleep. The sleeper is woken when our own
// completion of the request stands: a program that is woken may answer before the one that woke it has its
// processor again, and who answers a request that is not complete yet surprises programs that know adapters,
// where the acknowledgement goes ahead. A group's members are woken as each gets its copy.
static inline void dock_conn_wake(struct dock_conn *c)
{
    if (__builtin_expect(c->owes_bell, 0)) {
        c->owes_bell = false;
        dock_up_attention(c->peer);
    }
}

// Inside start() the device knows that its memory is in use. A fabric that touches it outside (the source or
// the result of a request that is PENDING) shows that by a worker, one thread at a time: enter, look the key
// up (dock_up_local), copy, leave; what was looked up is void afterwards. Deregistration takes the key
// away, then waits for those who had entered. Between enter and leave nothing that waits: no dock_up_finish.
struct dock_worker {
    dock_a64 busy; // odd between enter and leave
    struct dock_worker *next;
};

// The device knows the worker from join to part; it is zeroed before. Not between enter and leave.
void dock_up_join(struct dock_dev *dev, struct dock_worker *w);
void dock_up_part(struct dock_dev *dev, struct dock_worker *w);

static inline void dock_up_enter(struct dock_worker *w)
{
    dock_set64(&w->busy, dock_peek64(&w->busy) + 1); // one writer at a time
    dock_fence_light(); // pairs with dock_fence_heavy in dock_quiesce: show that we work, then look
}

static inline void dock_up_leave(struct dock_worker *w)
{
    dock_publish64(&w->busy, dock_peek64(&w->busy) + 1); // even; pairs with the acquire in dock_quiesce
}

#endif
