// SPDX-License-Identifier: MIT
// The device's own structures. Private memory of the process: what a peer must see stands in arena/port.h and
// ring/*.h, and nothing here trusts it more than a bounded index.
#ifndef DOCK_DEVICE_INTERNAL_H
#define DOCK_DEVICE_INTERNAL_H

#include <pthread.h>

#include "arena/groups.h"
#include "arena/peer.h"
#include "base/bits.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/probe.h"
#include "device/cq.h"
#include "device/device.h"
#include "device/rq.h"
#include "device/sq.h"
#include "fabric/fabric.h"
#include "ring/page.h"

#define DOCK_BUDGET_WRS 32
#define DOCK_BUDGET_BYTES DOCK_PIECE

enum dock_runner { DOCK_BY_POSTER, DOCK_BY_POLLER, DOCK_BY_ENGINE };

// Why a send queue does not go on; what makes it go on.
enum dock_stall {
    DOCK_STALL_NONE,
    DOCK_STALL_BUDGET, // on the ready list
    DOCK_STALL_RNR,    // the engine looks again; after rnr_timer it counts as a retry
    DOCK_STALL_NOBODY, // the engine looks again; after the timeout it counts as a retry
    DOCK_STALL_FINISH, // dock_up_finish runs the queue
};

// A started WR that a late fabric has not finished, or that waits for earlier ones to be.
struct dock_flight {
    dock_a32 finished;                  // release by the finisher, acquire by the token's holder
    uint32_t status, bytes;             // the finisher's
    uint32_t last_block, flags, target; // the starter's
    uint8_t op;
    bool read; // the starter's, before it starts: a READ or atomic, which the finisher counts out
};

// The device's half of a send queue: who holds the token writes it.
struct dock_sq {
    struct dock_sq_post post;

    _Alignas(64) uint32_t exec; // blocks, free-running: next to be fetched
    uint32_t seq;               // WRs, free-running: next to be started
    uint32_t told;              // those that the record's `executed` counts
    uint32_t retired;           // WRs whose completion is published or silently done
    dock_a64 busy;              // odd while local keys are in use (pairs with dock_quiesce)
    uint64_t bytes;             // moved; told to the record at the end of a run
    uint64_t pieces;            // placed, less the WRs of which one is placed as a rule, modulo 2^64
    uint32_t mark;              // the one that is owed, see mark.c; 0 none
    bool mid;                   // `x` is started, in pieces or waiting for its receiver
    bool straight;              // of its making: small WRITEs may go the short way (fast.c)
    bool places;                // of its making: and requests may be executed while they are posted (place.c)
    uint8_t blocks;             // of the WQE in `x`
    uint8_t stall, rnr_tries, timeout_tries;
    uint64_t deadline_ns;
    uint32_t reads;             // READs and atomics that were PENDING, free-running
    dock_a32 reads_over;        // of them finished, counted by the finishers
    struct dock_flight *flight; // `flights` of them, a power of two, when the fabric is late
    uint32_t flights;
    struct dock_conn *conn;       // of a connected queue
    const struct dock_lkey *lkey; // the local key that the short way used last, or entry 0
    uint64_t domain;              // dock_lkey_name of no key
    struct dock_conn *way;        // of the request in `x`
    struct dock_qp *qp;
    struct dock_qrec *rec;
    const struct dock_idrec *record; // our device's in the table of ids, and whose that is
    dock_who me;
    struct dock_xfer x;
    union dock_wqe_copy wqe;

    _Alignas(64) struct dock_sq *next; // ready or waiting list, under dev->list_lock
    dock_a32 listed;                   // 0 on none, 1 ready, 2 waiting
};

struct dock_rq {
    struct dock_dev *dev;
    struct dock_rqview view;
    struct dock_rqrec *rec;
    uint64_t rec_off, bytes; // the record and, unless they are the caller's, the arrays
    dock_a32 lock;
    bool lock_free, shared;
    uint32_t pi, depth, sge_max, pd;
    uint32_t number; // of a shared queue
    uint64_t *wrid;  // by receive number
    uint32_t *spare; // a ring of the numbers that are free: pollers give them back, the poster takes them
    uint32_t spare_taken;
    dock_a32 spare_given; // see take_number
    dock_a32 spare_lock;  // of a shared queue, whose pollers nobody else serialises
    dock_a64 *out;        // by number: posted and not yet polled, see rq.c
    dock_a32 users;
    void *user;
    struct dock_qp *owner; // of an own queue
    struct dock_events *events;
    dock_a32 events_got;
};

struct dock_cq {
    struct dock_dev *dev;
    struct dock_cqview view;
    struct dock_cqrec *rec;
    uint64_t rec_off, own_bytes;   // the record and, unless it is the caller's, its first ring
    uint64_t ring_off, ring_bytes; // of the ring that it was resized to; 0 bytes: never
    uint32_t id;
    dock_a32 ci; // of the next entry; changed under the lock
    // For who looks without the lock: the ring that it was made with, struct dock_cqe *; 0 when that is no
    // more what producers write into, or they overwrite what stands there.
    dock_a64 look;
    uint32_t look_mask, look_shift;
    uint64_t freed; // slots of send queues
    dock_a32 lock;
    bool lock_free;
    dock_a32 overrun_told;
    bool users_failed;                    // of an overrun: the engine's
    uint32_t moderate_count, moderate_us; // both 0: events come at once
    dock_a64 held_ns;                     // an event is held back since then; 0: none
    dock_a32 asked;                       // armed, and no event was delivered since
    dock_a32 arms, told;                  // how often; no event is owed without an arm
    struct dock_chan *chan;
    void *user;
    dock_a32 users;
    uint32_t chan_events, chan_acked; // under chan->lock
    struct dock_events *events;
    dock_a32 events_got;
    struct dock_cq *next, *prev; // of the device
};

// Where a queue without a connection sends to, or an XRC initiator, see ways.c.
struct dock_ways {
    struct dock_conn **bucket;
    uint32_t size, count; // size: a power of two, or 0
};

struct dock_qp {
    struct dock_sq sq;
    struct dock_dev *dev;
    struct dock_rq *rq; // own or shared
    struct dock_cq *send_cq, *recv_cq;
    struct dock_qrec *rec;
    uint32_t number;
    struct dock_qp_attr attr;
    uint64_t ring_off, ring_size;
    uint8_t eid[16];
    uint32_t dest_qp;
    uint64_t timeout_ns; // 0 for ever
    uint8_t retry, rnr_retry;
    uint32_t rd_atomic;
    struct dock_page *page; // raw: where producers ring; NULL of other queues
    uint64_t page_off;
    struct dock_qp *raw_next; // of the device's raw queues, under dev->lock
    uint32_t raw_seen;        // the doorbell as the engine last saw it
    dock_a32 watched;         // it is among the device's raw queues
    dock_a32 kept;            // without a page: something was kept, and may not be rung for yet
    bool met_told;            // two producers on one place: told since the last RESET
    bool sqd_event;
    dock_a32 pins;                     // the engine works on it: destroy waits
    struct dock_conn conn;             // RC, UC: the way to the peer
    struct dock_ways ways;             // UD, RM, UM; XRC initiators
    uint32_t ways_turn;                // when it was last looked at, see dock_ways_check
    dock_a32 groups;                   // UD: it joined one at some time
    pthread_mutex_t modify;            // of state changes by the program
    dock_a32 last_wqe_told, comm_told; // events that come once
    dock_a32 mark_polled;              // what was never begun may be taken out
    bool flush_marked;                 // the arrival in ERR is told, or owed
    struct dock_events *events;
    dock_a32 events_got;
    struct dock_listener *listeners; // under dev->events_lock
    struct dock_qp *next, *prev;     // of the device
};

static_assert(offsetof(struct dock_qp, sq.post) == 0, "dock_qp_sq");

// What the hot path looks up for a local key; the arena's entry is for peers.
struct dock_lkey {
    dock_a64 name; // of dock_lkey_name, 0 = refused. Published last, cleared first
    uint32_t access;
    uint32_t tid;
    uint64_t va, len;
    char *at;              // `mapped` lies here in our own mapping
    uint64_t addr;         // va in the program's address space
    uint64_t mapped, room; // the longest part that is mapped, below 2^63; room 0: none
};

// A key as a queue of the domain `pd`, which is never 0 and below 2^31, names it.
static inline uint64_t dock_lkey_name(uint32_t pd, uint32_t key)
{
    return (uint64_t)pd << 32 | key;
}

struct dock_ids {
    uint32_t blocks[DOCK_SLOTS]; // those we hold
    uint32_t count, used;
    uint32_t cursor;
    pthread_mutex_t lock;
};

struct dock_dev {
    // line 0: the hot path's
    dock_a64 ready_head; // struct dock_sq *: an empty poll costs this load
    struct dock_lkey *lkeys;
    uint32_t nsegments;
    struct dock_port *port;
    struct dock_segrec *segments;
    struct dock_hazard *hazards; // not by port->hazards: who writes there must not lead us astray
    const struct dock_fabric *fabric;
    struct dock_waiter waiter;

    _Alignas(64) dock_a32 list_lock; // of the ready and the waiting list
    struct dock_sq *ready_tail, *waiting;
    dock_a32 taken_by_pollers; // ready queues that pollers took, a count

    struct dock_config cfg;
    struct dock_limits limits;
    struct dock_rundir dir;
    struct dock_idtable ids_table;
    // Both are opened at first need, under `lock`, and kept until the device closes.
    struct dock_groups groups;
    struct dock_domains domains;
    struct dock_arena arena;
    struct dock_adopt adopt;
    struct dock_ids ids;
    void **object[DOCK_SLOTS]; // by id block: 256 pointers each
    struct dock_qrec *record[DOCK_SLOTS];

    pthread_mutex_t lock; // of what follows
    struct dock_qp *qps, *raws;
    struct dock_cq *cqs;
    struct dock_bundle *bundles;
    uint32_t n_qp, n_cq, n_srq, n_mr, n_mw, n_pd;
    struct dock_mr **mr; // by tid
    uint8_t *variant;    // by tid: of its last keys
    uint32_t tid_cursor;
    dock_a32 tid_high;  // no tid above it was ever given
    dock_a32 *pd_users; // by pd; bit 31 = allocated
    uint32_t pd_cursor;
    uint32_t start_index;
    bool noisy;                  // events also for what is old, or for nothing (DRYDOCK_EVENTS)
    struct dock_worker *workers; // of a late fabric
    dock_a32 hazards_seen;       // the highest port->hazard_high that we saw
    dock_a32 pages_move;         // what port->moving tells the peers; that word is not ours alone

    pthread_mutex_t events_lock;
    struct dock_events *event_queues;

    pthread_mutex_t peer_lock;
    struct dock_peer_slot *peers, *self; // see peers.c
    uint32_t peer_tag;
    unsigned peer_turn; // of peers, at a look: the first one that is asked; the engine's

    // the engine
    pthread_t engine;
    bool engine_runs;
    bool no_fine_wait; // epoll_pwait2 is not there: ticks are of a millisecond
    dock_a32 stop;
    int epoll_fd, bell_fd, listen_fd, self_pidfd;
    dock_a64 raw_moved_ns; // when a watched doorbell last moved, or the last one came to be watched
    uint32_t taken_seen;   // taken_by_pollers as the engine last saw it
    uint64_t worked_ns;    // when it last found work, or that pollers had taken some
    uint32_t ways_turn;    // of dock_ways_check and dock_ways_show_rest
    uint32_t doubts_seen;  // of others about us, see dock_ways_show_rest
    dock_a32 raw_queues;
    dock_a32 held_events; // CQs that hold an event back
};

// ---- run.c: lock and token, and the run loop

void dock_sq_ring(struct dock_sq *sq, enum dock_runner by);
// Take the token for good (state changes): waits for the holder to leave, nobody runs until _release.
void dock_sq_hold(struct dock_sq *sq);
bool dock_sq_try(struct dock_sq *sq);    // false: somebody runs the queue
void dock_sq_let_be(struct dock_sq *sq); // after a try: what was rung for meanwhile is left to the ready list
void dock_sq_release(struct dock_sq *sq);
// A poster goes that has posted. With the lock alone: who runs the queue sees what was posted, or we do.
void dock_sq_leave(struct dock_sq *sq);
// With lock and token: it gives back both, and has run the queue to its doorbell (fast.c).
void dock_sq_end(struct dock_sq *sq, uint32_t pi);
struct dock_stay;
void dock_sq_go_on(struct dock_sq *sq, const struct dock_stay *stay); // the rest, by the long way
// Forget everything posted (RESET). The token is held.
void dock_sq_clear(struct dock_sq *sq);

// ---- post.c: what was kept is published, whoever is posting. true: something was.
bool dock_sq_raise(struct dock_sq_post *sq);

// ---- execute.c: one WQE
#define DOCK_PATIENCE_NS 1000000000ull // for the first way to a device that is there
// One stay at a queue: what may still be spent.
struct dock_stay {
    uint32_t pi, bytes, wrs;
    bool alone; // no other queue is ready: the next piece may be a long one
};
enum dock_step { DOCK_STEP_ON, DOCK_STEP_IDLE, DOCK_STEP_BUDGET, DOCK_STEP_WAIT };
enum dock_step dock_sq_step(struct dock_sq *sq, struct dock_stay *stay);
// What is under way in pieces is not continued: its target is told, as far as the service does.
void dock_sq_abandon(struct dock_sq *sq);
// What is posted or half sent completes as flushed, whatever the state. The token is held, nothing is in
// flight.
void dock_sq_flush_posted(struct dock_sq *sq);

// ---- fast.c: small WRITEs in a straight line, as many as come in a row
void dock_sq_fast(struct dock_sq *sq, struct dock_stay *stay);

// ---- retire.c: completions of a send queue, in order
struct dock_outcome {
    uint32_t status, bytes, last_block, flags, target;
    uint8_t op;
};
void dock_sq_retire(struct dock_sq *sq, const struct dock_outcome *o); // the WR sq->retired
// Its completion alone: opcode and status as dw0 has them.
void dock_sq_publish(struct dock_sq *sq, uint32_t dw0, uint32_t bytes, uint32_t last_block, uint32_t target);
void dock_sq_reap(struct dock_sq *sq);
// Wait until all that was started is finished: a late fabric owes it. The token is held.
void dock_sq_land(struct dock_sq *sq);
// A WR finished out of turn: it waits in its flight until the earlier ones are retired.
void dock_sq_park(struct dock_sq *sq, const struct dock_outcome *o, bool finished);
bool dock_sq_flights_open(struct dock_sq *sq); // room for one more in flight

// ---- decode.c
// Bytes of the ring into sq->wqe and sq->x. 0, or the status of a malformed WQE. *blocks is always 1..4.
uint32_t dock_sq_fetch(struct dock_sq *sq, uint32_t pi, unsigned *blocks);
// Published blocks, from the next on, that hold no WQE of this pass over the ring.
uint32_t dock_sq_unfit(const struct dock_sq *sq, uint32_t pi);

// ---- raw.c: queues that others drive
int dock_raw_open(struct dock_qp *qp, uint32_t blocks);
void dock_raw_close(struct dock_qp *qp);
void dock_raw_clear(struct dock_qp *qp); // RESET: what was stored whole or told is forgotten
// From now on; of a queue that is not raw until all that was kept is published.
void dock_raw_watch_doorbell(struct dock_qp *qp);
void dock_raw_unwatch(struct dock_qp *qp);
// Queues that wait for nobody's ring any more are left alone. The engine's, now and then.
void dock_raw_forsake(struct dock_dev *dev);
// The doorbell of a queue says what cannot be: put right, unless its producers alone know. The token is held.
uint32_t dock_raw_stray(struct dock_sq *sq, uint32_t rung);

// So far the doorbell says that the queue was posted to. The token is held.
static inline uint32_t dock_sq_rung(struct dock_sq *sq)
{
    uint32_t rung = dock_acquire32(sq->post.doorbell); // pairs with the doorbell's publish
    uint32_t most = dock_peek32(&sq->post.pi) - sq->exec;

    return __builtin_expect(rung - sq->exec <= most, 1) ? rung : dock_raw_stray(sq, rung);
}

// Run the queues whose producers moved. true: there was one. The engine's.
bool dock_raw_watch(struct dock_dev *dev);
// The WQE at sq->exec, fetched: does it hold what its producer noted? 0 or a status.
uint32_t dock_raw_check_fetched(struct dock_sq *sq, unsigned blocks);
// Does the ring hold something else by now than was fetched and executed?
bool dock_raw_changed(const struct dock_sq *sq);

// ---- ways.c: the way to the target of qp->sq.x, of XRC to the shared queue that it names. NULL: nobody of
// this host has that number, or no memory.
struct dock_conn *dock_way(struct dock_qp *qp);
// The same to a member of the group that the request names; `fabric` NULL: whatever carries the rest.
struct dock_conn *dock_way_to(struct dock_qp *qp, uint32_t id, dock_who who,
                              const struct dock_fabric *fabric);
void dock_ways_forget(struct dock_qp *qp);
// Who waits for us in vain asks (dock_idtable_doubt): each way that nobody of ours is at work on is shown to
// be at rest, whatever became of the word that says so. The engine's, now and then.
void dock_ways_show_rest(struct dock_dev *dev);
// The same for who waits for his own device, under its lock; the token of `ours`, if not NULL, is the
// caller's.
void dock_ways_show_own(struct dock_dev *dev, const struct dock_sq *ours);
// Ways of all queues to devices that are dead are given back, and with the last one their mappings. Engine.
void dock_ways_check(struct dock_dev *dev);

// ---- mcast.c
// Send the datagram in sq->x to all members of its group. -EAGAIN: some are just being reached, and nothing
// was sent; without patience they are left out.
int dock_mcast_send(struct dock_sq *sq, bool patient);
void dock_qp_leave_all(struct dock_qp *qp);

// ---- local.c: WRs that concern only our own tables (BIND, INV)
uint32_t dock_local_op(struct dock_sq *sq, struct dock_xfer *x);

// ---- lists.c
void dock_ready_push(struct dock_dev *dev, struct dock_sq *sq);
// Run the oldest ready queue for one budget. false: there is none (one load).
bool dock_ready_run(struct dock_dev *dev, enum dock_runner by);
void dock_waiting_push(struct dock_dev *dev, struct dock_sq *sq);
// true: somebody has a pin of it.
bool dock_lists_remove(struct dock_dev *dev, struct dock_sq *sq);
// Run every waiting queue once. false: there was none.
bool dock_waiting_run(struct dock_dev *dev);
bool dock_waiting_any(struct dock_dev *dev);

// ---- engine.c
int dock_engine_start(struct dock_dev *dev);
void dock_engine_stop(struct dock_dev *dev);
enum { DOCK_AWAKE, DOCK_TICKING, DOCK_DEEP }; // port->asleep; who sleeps longer than a tick is deep asleep
// Work was left to the engine: it is woken, if it would not find it at its next tick.
void dock_engine_wake(struct dock_dev *dev);
// How long it may sleep, in ns, by when there last was work.
uint64_t dock_engine_patience(struct dock_dev *dev, uint64_t now);
// One turn without sleeping, for tests with no engine thread and for the thread itself.
void dock_engine_step(struct dock_dev *dev);
// Who waits for what the engine does: a nap, or one turn where no engine thread runs.
void dock_engine_nap(struct dock_dev *dev);

// ---- attend.c: what peers left for us
void dock_attend(struct dock_dev *dev);
// The queue pair goes away or is reset: a limit event of its shared queue that it still owes is told.
void dock_attend_limit(struct dock_qp *qp);
// Is its shared queue low, and nobody has said so (who should have is dead)?
void dock_attend_low(struct dock_qp *qp);

// ---- peers.c
int dock_peers_open(struct dock_dev *dev);
void dock_peers_close(struct dock_dev *dev);
// Reach `who` and wait for it up to `ms` (control path only).
int dock_peers_wait(struct dock_dev *dev, dock_who who, unsigned ms);
// A descriptor of the engine's epoll set became ready: a gift arrived, or a peer died.
void dock_peers_ready(struct dock_dev *dev, uint32_t slot);
struct dock_peer *dock_peer_self(struct dock_dev *dev);
void dock_peers_check(struct dock_dev *dev);
bool dock_peers_know(struct dock_dev *dev, dock_who who); // its death will be told
bool dock_peers_lost(struct dock_dev *dev);               // a dead one is still mapped, for who leads to it

// ---- map.c
bool dock_seg_mapped(struct dock_dev *dev, uint32_t tid); // somebody has it in its address space

// ---- fatal.c
void dock_dev_fatal(struct dock_dev *dev); // any thread, also one that holds a token
void dock_dev_bury_queues(struct dock_dev *dev);
int dock_dev_usable(struct dock_dev *dev); // -EIO once it is dead

// ---- dev.c
struct dock_gift dock_dev_gift(const struct dock_dev *dev);
// Count an object against its limit: -ENOMEM at the limit.
int dock_count_up(struct dock_dev *dev, uint32_t *count, uint32_t limit, const char *what);
void dock_count_down(struct dock_dev *dev, uint32_t *count);

// ---- repair.c: after a death
void dock_repair(struct dock_dev *dev, dock_who dead);
// Who works in our memory and was never reached from here dies unannounced: ask for the life of such
// strangers.
void dock_repair_strangers(struct dock_dev *dev);

// ---- quiesce.c
// Wait until nobody works any more in our memory who began before this call. `except`: a queue whose token
// the caller holds.
void dock_quiesce(struct dock_dev *dev, const struct dock_sq *except); // dev->lock is not held
void dock_quiesce_locked(struct dock_dev *dev, const struct dock_sq *except);
// So many hazards may be in use.
uint32_t dock_hazards_used(struct dock_dev *dev);
// Has everybody who was given up in the middle of his work left it? Then what was given back is free.
void dock_quarantine_check(struct dock_dev *dev);

// ---- mark.c: URMA's records of an arrival in ERR or SUSPENDED. The token is held.
void dock_mark_owe(struct dock_qp *qp, uint32_t status);
void dock_mark_forget(struct dock_qp *qp);
void dock_mark_tell(struct dock_sq *sq); // what is owed, if nothing begun is unfinished

// ---- modify.c: nothing that was started is unfinished (SQD, the token is held)
void dock_qp_drained(struct dock_qp *qp);

// ---- fail.c: error states
// The queue is in error from now on (its token is held). Receives are flushed by the engine.
void dock_qp_fail(struct dock_qp *qp, uint32_t cause);
// To ERR from outside the run loop: the receives are flushed when it returns, and of the sends a budget.
void dock_qp_error(struct dock_qp *qp);
// The same when one of the causes (DOCK_ATTN_*) is still set: taken, and returned; LOCAL only if the queue
// failed by it now.
uint32_t dock_qp_error_for(struct dock_qp *qp, uint32_t causes);
// Receives were posted to a queue in ERR: flushed behind those that a message was just being placed in.
void dock_rq_posted_late(struct dock_qp *qp);
void dock_rq_flush(struct dock_qp *qp);
// Flush the receives that `who` (0: anybody) claimed for this queue and will not complete.
void dock_rq_flush_claims(struct dock_qp *qp, dock_who who);
// The queue goes away: a shared queue's receives that it had claimed are free again.
void dock_rq_forget_claims(struct dock_qp *qp);
void dock_cq_overrun(struct dock_cq *cq);

// ---- cq.c: so many entries for a CQ of this depth
uint32_t dock_cq_ring_size(uint32_t depth, bool ignore_overrun);

// ---- complete.c
// It could not be put there; `first`: nobody was told yet. 0: that is as it should be, or `err`.
int dock_cq_denied(struct dock_cq *cq, int err, bool first);
int dock_cq_put(struct dock_cq *cq, const struct dock_cqe *e, bool solicited);

// ---- chan.c
void dock_cq_deliver(struct dock_cq *cq);        // one event on the channel, or held back for others
void dock_cq_deliver_held(struct dock_dev *dev); // those that have waited for long enough, or for enough
void dock_chan_join(struct dock_chan *chan);
void dock_chan_leave(struct dock_chan *chan, struct dock_cq *cq);

// ---- event.c
void dock_event_raise(struct dock_dev *dev, struct dock_events *to, const struct dock_event *ev,
                      dock_a32 *got);
void dock_qp_raise(struct dock_qp *qp, enum dock_event_kind kind); // to all who listen to this queue
void dock_events_forget(struct dock_events *ev, const void *object, dock_a32 *got);

// ---- ids.c
// The id `chosen` (-EINVAL, -EEXIST), or for 0 any.
int dock_id_take(struct dock_dev *dev, void *object, uint32_t chosen, uint32_t *id);
void dock_id_give(struct dock_dev *dev, uint32_t id);
void dock_ids_close(struct dock_dev *dev);
struct dock_qrec *dock_id_record(struct dock_dev *dev, uint32_t id);

// The queue pair of an id; NULL if it is free or something else's (those are kept with their lowest bit set).
static inline struct dock_qp *dock_id_pair(struct dock_dev *dev, uint32_t id)
{
    void **block = dev->object[id >> DOCK_BLOCK_SHIFT & (DOCK_SLOTS - 1)];
    uintptr_t p = block ? (uintptr_t)block[id & 255] : 0;

    return p & 1 ? NULL : (struct dock_qp *)p;
}

static inline void *dock_id_other(const void *object)
{
    return (char *)(uintptr_t)object + 1;
}

// ---- pd.c
int dock_pd_use(struct dock_dev *dev, uint32_t pd);
void dock_pd_drop(struct dock_dev *dev, uint32_t pd);

// ---- bundle.c
int dock_bundle_join(struct dock_bundle *g, uint32_t number);
void dock_bundle_leave(struct dock_bundle *g, uint32_t number);
void dock_bundles_attend(struct dock_dev *dev);
dock_a32 *dock_bundle_events_got(struct dock_bundle *g);

// ---- rq.c
// `ring`: as dock_srq_attr.ring.
int dock_rq_create(struct dock_dev *dev, uint32_t max_wr, uint32_t max_sge, uint32_t pd, uint32_t id,
                   uint64_t ring, struct dock_rq **out);
void dock_rq_destroy(struct dock_rq *rq);
void dock_rq_clear(struct dock_rq *rq);
// What was taken of an own queue is owed to nobody any more.
void dock_rq_disown(struct dock_rq *rq);
// A polled receive completion: its WR id, and the number is free again. -EBADMSG for a number that is not
// out.
int dock_rq_return(struct dock_rq *rq, uint32_t number, uint64_t *id);
// Was the receive of that number, posted and not yet polled, taken off the queue, whose consumer index is
// held at `ci`, and not told as flushed? *mark, then, is for dock_rq_tell, which says whether that is still
// so, and that it is told.
bool dock_rq_taken(const struct dock_rq *rq, uint32_t number, uint32_t ci, uint64_t *mark);
bool dock_rq_tell(struct dock_rq *rq, uint32_t number, uint64_t mark);

// ---- mr.c
// Nobody can find the region: let it name what `to` does, or what it did before, and publish it.
int dock_mr_move(struct dock_mr *mr, const struct dock_mr *to);
void dock_lkey_publish(struct dock_dev *dev, const struct dock_mr *mr);
void dock_segrec_publish(struct dock_dev *dev, const struct dock_mr *mr, uint32_t qpn);
// true: somebody may have found it, and has to be waited for.
bool dock_lkey_clear(struct dock_dev *dev, const struct dock_mr *mr);
bool dock_segrec_clear(struct dock_dev *dev, uint32_t tid);
// Does a local key of that name stand here? From now on it counts as found.
bool dock_lkey_found(struct dock_lkey *l, uint64_t name);
extern const struct dock_adopt_ops dock_mr_adopt_ops;

// ---- many.c: NULL where the tid is not one of several segments
struct dock_mr *dock_many_of(struct dock_dev *dev, uint32_t tid);
int dock_many_end(struct dock_dev *dev, struct dock_mr *head); // -EBUSY: it has segments. dev->lock is held
void dock_many_join(struct dock_dev *dev, struct dock_mr *mr);
void dock_many_leave(struct dock_dev *dev, struct dock_mr *mr); // dev->lock is held

// ---- mr.c
int dock_tid_take(struct dock_dev *dev, struct dock_mr *mr);
void dock_tid_give(struct dock_dev *dev, const struct dock_mr *mr);

// Where a window that begins `inside` its region finds its memory (dock_segrec.off).
static inline uint64_t dock_window_off(const struct dock_mr *region, uint64_t inside)
{
    bool direct = region->off != DOCK_SEG_PLAIN && !(region->off & DOCK_SEG_PIECES);

    return direct ? region->off + inside : region->off; // the pieces are by address
}

// ---- window.c: windows of the region that a peer has invalidated are unbound. dev->lock is held.
void dock_windows_settle(struct dock_dev *dev, const struct dock_mr *region);

// ---- cq.c: take the completions of a queue that goes away out of its CQ
void dock_cq_forget(struct dock_cq *cq, struct dock_qp *qp, bool for_good);

// ---- state.c's second table, and tokens apart from keys
static inline bool dock_qp_urma(const struct dock_qp_attr *a)
{
    return a->urma || a->service == DOCK_RM || a->service == DOCK_UM;
}

// dw0 of every completion of the queue.
static inline uint32_t dock_qp_cqe_flags(const struct dock_qp *qp)
{
    return qp->attr.role == DOCK_BOTH && qp->attr.service >= DOCK_RM ? DOCK_CQE_JETTY : 0;
}

// ---- rules.h tells what may be switched off
#include "device/rules.h"

// ---- qp.c
void dock_conn_init(struct dock_conn *c, struct dock_qp *qp, uint32_t dest_qp, dock_who who);

#endif
