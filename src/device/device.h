// SPDX-License-Identifier: MIT
// The device as the faces see it: control path. A face parses, checks and translates; the device keeps the
// rules. Hot path: device/sq.h (post), device/rq.h (receives), device/cq.h (poll).
//
// All functions: 0 or -errno, outputs set only on success, the reason logged once in words. Thread-safe
// unless said otherwise; an object must not be used while another thread destroys it.
#ifndef DOCK_DEVICE_DEVICE_H
#define DOCK_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena/domains.h"
#include "arena/port.h"
#include "ring/format.h"

struct dock_dev;
struct dock_cq;
struct dock_chan;
struct dock_bundle;
struct dock_rq;
struct dock_qp;
struct dock_mr;
struct dock_fabric;

// ---- the device

// What is announced is enforced exactly. DRYDOCK_MAX_QP, _MAX_CQ, _MAX_SRQ, _MAX_MR, _MAX_MW, _MAX_PD,
// _MAX_AH, _MAX_CQE, _MAX_QP_WR, _MAX_SRQ_WR override (1 .. the built-in ceiling).
struct dock_limits {
    uint32_t max_qp, max_cq, max_srq, max_mr, max_mw, max_pd, max_ah; // objects per device
    uint32_t max_qp_wr;                                               // WRs of a send or receive queue
    uint32_t max_srq_wr;                                              // WRs of a shared receive queue
    uint32_t max_cqe;
    uint32_t max_sge;    // per WR of any queue: 12
    uint32_t max_inline; // bytes: 192
    uint32_t max_rd_atomic;
    uint64_t max_msg; // bytes: 2^31
    uint64_t max_mr_size;
};

struct dock_config {
    const char *dir;                  // NULL: as the environment says
    uint64_t stopped_ms;              // patience with a stopped holder; 0: DRYDOCK_STOPPED_MS, else 5000
    uint32_t start_index;             // first PI/CI of every ring: a test hook (DRYDOCK_START_INDEX)
    unsigned window_shift;            // 0: chosen
    bool force_plain;                 // do not recognise arena memory: the process_vm path, for tests
    bool no_engine_thread;            // tests drive dock_engine_step() themselves
    const struct dock_fabric *fabric; // NULL: self and host; tests put a fake one in
};

// Open one more device with an arena of its own. cfg may be NULL.
int dock_dev_open(const struct dock_config *cfg, struct dock_dev **out);
// All objects must be destroyed before (-EBUSY).
int dock_dev_close(struct dock_dev *dev);
// The process's device, shared by all faces: opened at the first call, closed at the last put.
int dock_dev_get(struct dock_dev **out);
int dock_dev_put(struct dock_dev *dev);
const struct dock_limits *dock_dev_limits(const struct dock_dev *dev);
dock_who dock_dev_who(const struct dock_dev *dev);

// Memory inside the arena: peers reach it by loads and stores. Page-aligned, zeroed. -EFBIG: more than a
// window of the arena. Reserved memory gets its pages as they are touched, allocated memory has them.
int dock_mem_alloc(struct dock_dev *dev, size_t size, void **out);
int dock_mem_reserve(struct dock_dev *dev, size_t size, void **out);
void dock_mem_free(struct dock_dev *dev, void *p, size_t size);
// Give whole pages of reserved memory back, whoever has mapped them: zeros, until they are touched again.
void dock_mem_drop(struct dock_dev *dev, void *p, size_t size);
// Where memory of the arena lies in it: what a peer's view of the arena is asked for. -EFAULT: not there.
int dock_mem_offset(struct dock_dev *dev, const void *p, size_t size, uint64_t *off);

// ---- protection domains: a number, never 0

int dock_pd_create(struct dock_dev *dev, uint32_t *pd);
int dock_pd_destroy(struct dock_dev *dev, uint32_t pd); // -EBUSY while anything belongs to it
// One more that needs it, from elsewhere; -EINVAL: there is no such domain.
int dock_pd_hold(struct dock_dev *dev, uint32_t pd);
void dock_pd_let_go(struct dock_dev *dev, uint32_t pd);

// ---- segments (memory regions, windows)

struct dock_mr {
    struct dock_dev *dev;
    uint32_t lkey, rkey; // never equal; tid << 8 | variant
    uint32_t tid, pd, access;
    uint32_t kind;               // enum dock_seg_kind
    bool implicit;               // the whole address space, touched directly
    uint64_t va, len, addr, off; // off: as in its dock_segrec
    struct dock_hold hold;       // of its memory
    uint64_t table, table_bytes; // of its pieces, in the arena; 0: none
    dock_a32 windows;            // memory windows bound to it
    struct dock_mr *region;      // of a bound window
    struct dock_mr *many;        // one of several segments of a token id: what its chain begins with
    struct dock_mr *prev, *next; // in it; changed under dev->lock
    uint32_t token;              // the remote one: rkey, or as set
    bool tid_kept;               // the tid was reserved, and stays so
};

// Register [addr, addr+len) under the remote name va (== addr unless an iova was asked for). access:
// DOCK_ACCESS_*, already checked for consistency by the face. -ENOMEM (limit), -EFAULT (range wraps),
// -EOPNOTSUPP (memory is neither mapped nor reachable by process_vm: remote access would be impossible).
int dock_mr_register(struct dock_dev *dev, uint32_t pd, uint64_t addr, uint64_t len, uint64_t va,
                     uint32_t access, struct dock_mr **out);
// The same under a tid that was reserved before: URMA has token ids before segments. One segment at a time
// (-EBUSY), or several where it was reserved for them; they need a local key each, and so a tid.
int dock_mr_register_as(struct dock_dev *dev, uint32_t pd, uint64_t addr, uint64_t len, uint64_t va,
                        uint32_t access, uint32_t tid, struct dock_mr **out);
int dock_tid_reserve(struct dock_dev *dev, uint32_t *tid); // -ENOMEM
int dock_tid_reserve_many(struct dock_dev *dev, uint32_t *tid);
int dock_tid_release(struct dock_dev *dev, uint32_t tid); // -EBUSY while a segment uses it
// A local key for the process's whole address space: the device touches it by loads and stores, so a wrong
// address ends the program as it would in memcpy. Nothing remote: its rkey is refused.
int dock_mr_implicit(struct dock_dev *dev, uint32_t pd, struct dock_mr **out);
// Where all of it lies in the arena, from one offset on. -EOPNOTSUPP: not all does.
int dock_mr_arena(const struct dock_mr *mr, uint64_t *off);
// No byte moves through it after the return. -EBUSY while windows are bound to it, or a peer has it mapped.
int dock_mr_deregister(struct dock_mr *mr);
// URMA's token: from now on remote requests open the segment with this value instead of rkey's; `checked`
// false: with any. Requests under way may still see the old one.
void dock_mr_set_token(struct dock_mr *mr, bool checked, uint32_t token);

// A peer's segment in our address space: see fabric/map.h for what is wanted and what is refused. `home` is
// what dock_dev_home gave there: 17 bits. -EHOSTUNREACH: that device is gone.
struct dock_map;
struct dock_map_want;
uint32_t dock_dev_home(const struct dock_dev *dev);
int dock_map_open(struct dock_dev *dev, uint32_t home, const struct dock_map_want *w, struct dock_map **out);
void *dock_map_at(const struct dock_map *m);
void dock_map_close(struct dock_map *m);

// Change a region under the same keys: all or nothing. -EBUSY while windows are bound to it; else as
// register.
#define DOCK_CHANGE_RANGE 1u
#define DOCK_CHANGE_PD 2u
#define DOCK_CHANGE_ACCESS 4u
struct dock_mr_change {
    uint32_t what, pd, access;
    uint64_t addr, len, va;
};
int dock_mr_change(struct dock_mr *mr, const struct dock_mr_change *c);
// A region of no memory over all addresses: sending from it sends zeros, receiving into it loses the bytes.
int dock_mr_nothing(struct dock_dev *dev, uint32_t pd, struct dock_mr **out);
// A copy of the region of a local key; -ENOENT: there is none in that domain.
int dock_mr_find(struct dock_dev *dev, uint32_t pd, uint32_t lkey, struct dock_mr *out);
int dock_mr_find_handle(struct dock_dev *dev, uint32_t pd, uint32_t tid, struct dock_mr *out);

// A memory window; kind DOCK_SEG_MW1 or _MW2. Unbound, its rkey is refused. Binding is a WR (DOCK_OP_BIND).
int dock_mw_create(struct dock_dev *dev, uint32_t pd, enum dock_seg_kind kind, struct dock_mr **out);
int dock_mw_destroy(struct dock_mr *mw);

// ---- completion queues and their event channels

// A channel: fd becomes readable when an event waits (an eventfd: poll, epoll, O_NONBLOCK work).
int dock_chan_create(struct dock_dev *dev, struct dock_chan **out);
int dock_chan_destroy(struct dock_chan *chan); // -EBUSY while CQs use it
int dock_chan_fd(const struct dock_chan *chan);
// Take one event: blocks unless the fd is O_NONBLOCK (-EAGAIN), -EINTR. *cq is the CQ's `user` pointer.
// The event counts as unacknowledged until dock_cq_ack.
int dock_chan_get(struct dock_chan *chan, void **cq_user);
// The same without blocking, whatever the descriptor's flags are: -EAGAIN when no event waits. Not beside
// dock_chan_get in another thread.
int dock_chan_try(struct dock_chan *chan, void **cq_user);

struct dock_cq_attr {
    uint32_t depth;         // exactly so many completions fit
    struct dock_chan *chan; // or NULL
    void *user;             // given back by dock_chan_get, dock_event
    bool lock_free;         // the caller serialises poll
    bool ignore_overrun;    // the oldest are overwritten instead of an error
    bool stamps;            // completions carry the time (dock_wc.stamp_ns, CLOCK_MONOTONIC)
    uint32_t number;        // as dock_qp_attr.number
    uint64_t ring;          // 0, or where in the arena the caller has dock_cq_ring_bytes of memory for the
                            // ring, until the CQ is gone; not with ignore_overrun, which takes more
};

uint64_t dock_cq_ring_bytes(uint32_t depth);
int dock_cq_create(struct dock_dev *dev, const struct dock_cq_attr *attr, struct dock_cq **out);
int dock_cq_destroy(
    struct dock_cq *cq); // -EBUSY while queues use it; blocks until its events are acknowledged
// From now on exactly `depth` completions fit; what stands there stays, in order. -EINVAL: not 1 .. max_cqe,
// or the queue of a raw producer, which knows its ring by address. -EBUSY: more than `depth` stand there
// unpolled.
int dock_cq_resize(struct dock_cq *cq, uint32_t depth);
// One shot: the next completion (or the next solicited or failed one) puts one event on the channel.
// `at_once`: if completions newer than the last poll are already there the event comes now (URMA's rule;
// verbs: false).
int dock_cq_arm(struct dock_cq *cq, bool solicited_only, bool at_once);
void dock_cq_ack(struct dock_cq *cq, unsigned n);
// Events come later, for fewer of them: when `count` completions wait, or `period_us` after the first. 0 and
// 0: at once. With a count of 0 only the period counts, and the other way round (then what stays below it
// wakes nobody). The engine looks every 200 microseconds.
void dock_cq_moderate(struct dock_cq *cq, uint32_t count, uint32_t period_us);
uint32_t dock_cq_depth(const struct dock_cq *cq);
uint32_t dock_cq_number(const struct dock_cq *cq);
// Events of it were got and not acknowledged: dock_cq_destroy would block.
bool dock_cq_owes_acks(const struct dock_cq *cq);

// ---- receive queues that several queue pairs share

struct dock_srq_attr {
    uint32_t pd, max_wr, max_sge;
    uint32_t limit; // below so many posted receives: one DOCK_EVENT_SRQ_LIMIT; 0 = off
    void *user;
    bool lock_free;
    uint64_t ring; // as dock_cq_attr.ring: dock_srq_ring_bytes for its arrays
};

uint64_t dock_srq_ring_bytes(uint32_t max_wr, uint32_t max_sge);
int dock_srq_create(struct dock_dev *dev, const struct dock_srq_attr *attr, struct dock_rq **out);
int dock_srq_destroy(struct dock_rq *srq); // -EBUSY while queue pairs use it
void dock_srq_clear(struct dock_rq *srq);  // forget what is posted: all its queue pairs are in RESET
int dock_srq_set_limit(struct dock_rq *srq, uint32_t limit); // -EINVAL above its depth
uint32_t dock_srq_limit(const struct dock_rq *srq);          // 0 once it fired
// An XRC shared queue: a queue pair to the device, of which this is the receive half. Only
// dock_xrc_srq_destroy takes it away, from under any target.
int dock_xrc_srq_create(struct dock_dev *dev, const struct dock_srq_attr *attr, struct dock_cq *cq,
                        uint64_t xrcd, struct dock_rq **out);
int dock_xrc_srq_destroy(struct dock_rq *srq);
// Open the XRC domain that a file names (arena/domains.h): its number, for all processes of the host.
// -ENOENT, -EEXIST, -ENOSPC, or -errno as the table gave it. One close for each open; what a device leaves
// open ends with it.
int dock_xrc_domain_open(struct dock_dev *dev, const struct dock_domain_name *name, uint64_t *number);
void dock_xrc_domain_close(struct dock_dev *dev, uint64_t number);
uint32_t dock_srq_number(const struct dock_rq *srq);
uint32_t dock_srq_users(const struct dock_rq *srq); // queue pairs

// ---- groups of queues: one number for several RM queues of a device. Who sends to it names the group in its
// WR (dock_wr.bundle); the member is picked when the request is begun, by turns or by the WR's hint.

struct dock_events;
struct dock_bundle_attr {
    enum dock_bundle_policy policy;
    uint32_t number;            // as dock_qp_attr.number
    struct dock_events *events; // where DOCK_EVENT_BUNDLE_EMPTY goes, or NULL
    void *user;                 // given back by it
};
int dock_bundle_create(struct dock_dev *dev, const struct dock_bundle_attr *attr, struct dock_bundle **out);
int dock_bundle_destroy(struct dock_bundle *bundle); // -EBUSY while it has members
// The two halves of it: the first does not wait for acknowledgements, and after it nobody reaches the group.
int dock_bundle_close(struct dock_bundle *bundle);
void dock_bundle_free(struct dock_bundle *bundle);
uint32_t dock_bundle_number(const struct dock_bundle *bundle);

// ---- queue pairs

// A queue pair, or half of one: URMA's JFS and JFR. What only sends is nobody's target; what only receives
// (from queues that name their target) refuses every post. The CQ that is left out may be NULL.
enum dock_role { DOCK_BOTH, DOCK_SENDS, DOCK_RECEIVES };

// XRC, of service RC: an initiator (role SENDS) is connected to a target (role RECEIVES, no receives of its
// own), and each request names the shared receive queue (role RECEIVES) that takes it and whose domain's
// memory it reaches. Target and shared queue are of one XRC domain; each may be of any device of the host.
enum dock_xrc { DOCK_XRC_NONE, DOCK_XRC_INI, DOCK_XRC_TGT, DOCK_XRC_SRQ };

// What becomes of a send queue after a request of it failed.
enum dock_on_error {
    DOCK_ON_ERROR_STOP,     // to ERR (UC, UD: SQE): the rest is flushed
    DOCK_ON_ERROR_CONTINUE, // it completes with its cause, and the next one is executed
    DOCK_ON_ERROR_SUSPEND,  // URMA: to SUSPENDED, the rest stays in the queue
};

// A raw queue that carries for another process: its producer is there (it maps the ring, the doorbell page
// and the CQ out of our arena), and the local addresses of its WQEs are addresses of that process. They must
// lie in one range of its arena, `at` in our mapping, which has to stay as long as the queue.
struct dock_origin {
    char *at; // NULL: the producer is in this process
    uint64_t va, len;
};

struct dock_qp_attr {
    enum dock_service service;
    uint32_t pd;
    struct dock_cq *send_cq, *recv_cq;
    struct dock_rq *srq;        // or NULL: a receive queue of its own
    struct dock_bundle *bundle; // RM, or NULL: joined at creation (-EPERM beyond 32), left at destruction
    uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline;
    bool signal_all;
    bool lock_free;  // the caller serialises post
    bool block_self; // UD: what it sends to a group of its own does not come back to it
    bool raw;        // others write WQEs and the doorbell: no SGE keys, doorbell watched, depth in blocks
    struct dock_origin origin; // of a raw queue that is a relay
    bool urma;     // URMA's states, and token values apart from keys (dock_wr.token). RM, UM: always
    bool tell_eid; // receivers of its messages are told `eid` (dock_wc.eid)
    uint8_t eid[16];
    enum dock_on_error on_error;
    enum dock_role role;
    bool unordered;  // URMA: SUSPENDED may be left to RTS, as no order is lost by that
    uint64_t cookie; // in every CQE of the queue, dwords 5 and 6: for who reads them raw
    bool open;       // RC: answers the one-sided requests of any queue, and a wrong one fails only its sender
    enum dock_xrc xrc;
    uint64_t xrcd;      // of an XRC target or shared queue: its domain
    bool short_atomics; // an atomic whose SGE has 4 bytes works on 4 bytes (else a length error)
    uint32_t number;    // the number that it is to have, 1 to DOCK_CHOSEN_MAX (-EEXIST: it is taken); 0: any
    void *ring; // memory of the caller's for the send ring, dock_qp_ring_bytes of it; NULL: the device's
    void *user;
};

// What the send ring of such a queue takes.
uint64_t dock_qp_ring_bytes(const struct dock_qp_attr *attr);

int dock_qp_create(struct dock_dev *dev, const struct dock_qp_attr *attr, struct dock_qp **out);
// From any state. Its completions still in a CQ are removed.
int dock_qp_destroy(struct dock_qp *qp);
uint32_t dock_qp_number(const struct dock_qp *qp);
enum dock_state dock_qp_state(const struct dock_qp *qp); // as it is now, errors included
void *dock_qp_user(const struct dock_qp *qp);
struct dock_dev *dock_qp_dev(const struct dock_qp *qp);

// A raw queue as its producer drives it: the ring, the page with its doorbell, the ring of completions and
// the word that tells the consumer index back. Indices as they stand now. -EINVAL: the queue is not raw, or
// its send CQ holds fewer completions than the ring has blocks, so that a producer which never looks at a
// depth could overrun it. All stays valid until the queue is destroyed; the library must not poll that CQ
// meanwhile.
struct dock_direct {
    char *ring, *cq;
    void *page;
    dock_a32 *doorbell, *cq_doorbell;
    const dock_a32 *state;
    uint32_t blocks, cqes, pi, ci;
};
int dock_qp_direct(const struct dock_qp *qp, struct dock_direct *out);

// What a modify carries; `mask` of DOCK_MOD_* says which fields count.
#define DOCK_MOD_STATE 1u
#define DOCK_MOD_ACCESS 2u
#define DOCK_MOD_QKEY 4u
#define DOCK_MOD_DEST 8u // eid and queue (RC, UC)
#define DOCK_MOD_TIMEOUT 16u
#define DOCK_MOD_RETRY 32u
#define DOCK_MOD_RNR_RETRY 64u
#define DOCK_MOD_RNR_TIMER 128u
#define DOCK_MOD_RD_ATOMIC 256u      // as initiator
#define DOCK_MOD_DEST_RD_ATOMIC 512u // as responder
#define DOCK_MOD_SQD_EVENT 1024u

struct dock_qp_mod {
    uint32_t mask;
    enum dock_state state;
    uint32_t access; // DOCK_ACCESS_REMOTE_*
    uint32_t qkey;
    uint8_t eid[16]; // as bytes of the GID, network order
    uint32_t dest_qp;
    uint8_t timeout, retry, rnr_retry,
        rnr_timer; // codes as in verbs: 4.096 us * 2^timeout (0 = for ever), 7 = for ever
    uint8_t rd_atomic, dest_rd_atomic;
    bool sqd_event;
};

// Where the ring of a queue lies in this process, its doorbell word, and both indices, free-running; of a
// send queue they count blocks, and `ci` is what polled completions have covered; `page` is its doorbell
// page, NULL of one that is not raw; `driven`: the doorbell stands past what was posted here. Of a lock_free
// queue not beside a post.
struct dock_ring_look {
    void *base, *doorbell, *page;
    uint32_t entries, pi, ci;
    bool driven;
};
void dock_qp_ring(struct dock_qp *qp, struct dock_ring_look *out);
void dock_srq_ring(const struct dock_rq *rq, struct dock_ring_look *out);
void dock_cq_ring(const struct dock_cq *cq, struct dock_ring_look *out);

// Apply all or nothing. The face has checked its mask table and ranges; the device checks the transition
// (-EINVAL). To RESET drops all WRs without completions; to ERR flushes; RTR connects (a peer that cannot be
// reached is no error here: requests will find out).
int dock_qp_modify(struct dock_qp *qp, const struct dock_qp_mod *mod);
// URMA queues: DOCK_MOD_DEST without a state binds a connected queue anew (dest_qp 0: to nobody).

// URMA queues tell of each arrival in ERR or SUSPENDED by one completion of status DOCK_ST_FLUSH_DONE or
// _SUSPEND_DONE in the send CQ, behind those of all requests that were begun; its id means nothing. In ERR
// what was posted is flushed before. After a mark was polled, dock_qp_flush takes out up to n requests that
// were never begun, oldest first: id, bytes and src_qp (the target) of out[i] are set. The number of them; 0:
// none, or no mark was polled yet. They complete by this, and by nothing else. Of a lock_free CQ no other
// thread may poll meanwhile.
struct dock_wc;
int dock_qp_flush(struct dock_qp *qp, unsigned n, struct dock_wc *out);

// Reach the device that has queue `id` now, so that a first request to it need not wait: control path, up to
// `ms`. -EHOSTUNREACH: nobody on this host has it. -EAGAIN: it has not answered in time.
int dock_reach(struct dock_dev *dev, const uint8_t eid[16], uint32_t id, unsigned ms);

// UD: is `eid` an address of this host's devices? The face's address handles need it.
bool dock_eid_is_local(struct dock_dev *dev, const uint8_t eid[16]);

// UD: multicast. A member gets every datagram that a device of this host sends to the group, its own included
// unless block_self. -EINVAL: no datagram queue, or no multicast address (ff00::/8, or IPv4-mapped 224/4).
int dock_qp_join(struct dock_qp *qp, const uint8_t gid[16]);
int dock_qp_leave(struct dock_qp *qp, const uint8_t gid[16]); // -EINVAL: it is no member
bool dock_eid_is_group(const uint8_t eid[16]);

// ---- asynchronous events

enum dock_event_kind {
    DOCK_EVENT_CQ_ERR,
    DOCK_EVENT_QP_FATAL,
    DOCK_EVENT_QP_REQ_ERR,
    DOCK_EVENT_QP_ACCESS_ERR,
    DOCK_EVENT_COMM_EST,
    DOCK_EVENT_SQ_DRAINED,
    DOCK_EVENT_QP_LAST_WQE,
    DOCK_EVENT_SRQ_LIMIT,
    DOCK_EVENT_SRQ_ERR,
    DOCK_EVENT_DEVICE_FATAL,
    DOCK_EVENT_PORT_ACTIVE,
    DOCK_EVENT_PORT_ERR,
    DOCK_EVENT_GID_CHANGE,
    DOCK_EVENT_BUNDLE_EMPTY, // somebody sent to a group without members: once, until it has had one again
};

struct dock_event {
    enum dock_event_kind kind;
    void *user;   // of the object: qp, cq, srq, group; NULL for the device
    void *object; // struct dock_qp, dock_cq, dock_rq or dock_bundle, for dock_event_ack
};

// A queue of events with a pollable fd; a face opens one per context. An event of an object goes to the
// queue that was given to it (dock_*_set_events), a device event to all.
struct dock_events;
int dock_events_open(struct dock_dev *dev, struct dock_events **out);
void dock_events_close(struct dock_events *ev);
int dock_events_fd(const struct dock_events *ev);
// Kinds of event that the face has no words for (bits, 1 << kind) are not kept from now on.
void dock_events_skip(struct dock_events *ev, uint32_t kinds);
int dock_events_get(struct dock_events *ev, struct dock_event *out); // blocks unless O_NONBLOCK (-EAGAIN)
// Destroying an object blocks until the events that were got for it are acknowledged.
void dock_event_ack(const struct dock_event *ev);
bool dock_qp_owes_acks(const struct dock_qp *qp);
bool dock_srq_owes_acks(const struct dock_rq *srq);
void dock_qp_set_events(struct dock_qp *qp, struct dock_events *ev);
// One more who is told of the events of this queue from now on, with a `user` of its own; `object` of what it
// gets is the listener, for dock_listener_ack. It ends before the queue does. What `user` leads to must be
// whole: an event may be read, and *out be looked at, before this returns. -ENOMEM; -EIO where the device is
// dead, or the parent's.
struct dock_listener;
int dock_qp_listen(struct dock_qp *qp, struct dock_events *to, void *user, struct dock_listener **out);
void dock_listener_ack(struct dock_listener *l);
void dock_listener_end(struct dock_listener *l); // blocks until what it got is acknowledged
void dock_cq_set_events(struct dock_cq *cq, struct dock_events *ev);
void dock_srq_set_events(struct dock_rq *srq, struct dock_events *ev);

#endif
