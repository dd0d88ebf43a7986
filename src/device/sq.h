// SPDX-License-Identifier: MIT
// Posting: how a face puts send WRs into a queue.
//
//     struct dock_post p;
//     dock_post_begin(qp, &p);
//     for each WR:  err = dock_post_put(&p, &wr);  if (err) -> bad_wr, stop
//     dock_post_end(&p);
//
// Between begin and end the queue's lock is held (locked queues); put writes a WQE into a free slot that the
// device does not look at; end publishes them all by one doorbell store and runs the queue. Small requests
// may be executed by put already (place.c), nobody sees that before end but by what they place.
//
// Lock and execution token are one word, because a poster nearly always wants both: begin takes them in one
// step, end gives them back by a plain store. A face whose caller decides when it ends (ibv_wr_start) begins
// by dock_post_open, which takes the lock alone: meanwhile others may run the queue.
#ifndef DOCK_DEVICE_SQ_H
#define DOCK_DEVICE_SQ_H

#include <errno.h>
#include <string.h>

#include "base/probe.h"
#include "device/device.h"

// The layout of ibv_sge on purpose: a face passes its caller's array as it is.
struct dock_sge {
    uint64_t addr;
    uint32_t len;
    uint32_t key;
} __attribute__((may_alias));

// A send WR in the device's words. Only the fields of its opcode count.
struct dock_wr {
    uint64_t id;
    uint8_t op; // enum dock_op
    uint8_t nsge;
    uint32_t flags;      // DOCK_F_FENCE | SOLICITED | COMPLETE | INLINE
    uint32_t inline_len; // sum of the lengths, when DOCK_F_INLINE
    const struct dock_sge *sge;
    uint32_t rkey; // one-sided: tid << 8 | variant. SEND_INV, INV: the key to invalidate. UD: the qkey
    // URMA queues, where the token's value stands apart from rkey: of the segment (SEND_INV: to invalidate),
    // of the target queue (SEND*, WRITE_IMM)
    uint32_t token, target_token;
    // UD, RM, UM: target queue. XRC: the shared receive queue. BIND: tid << 8 | variant of the region's lkey
    uint32_t remote;
    uint64_t raddr;
    uint64_t imm;              // as the wire carries it; verbs uses the low 32 bits
    uint64_t operand, compare; // atomics: add/swap/and/or/xor value; CAS: swap and compare
    uint32_t notify_key;       // of those that notify; its token: notify_token in URMA, else the key itself
    uint32_t notify_token;
    uint64_t notify_addr, notify_value;
    const uint8_t *eid; // UD, RM, UM: of the target
    bool bundle;        // RM: `remote` is the number of a group
    uint8_t hint;       // which member, when the group goes by hints
    uint32_t header;    // UD: DOCK_UD_HEADER, or 0
    // BIND: window key `rkey`, new variant in `imm`, range raddr..raddr+operand, rights in `compare`
};

// Of the word of a send queue, see run.c.
#define DOCK_SQ_RUN 1u  // somebody executes
#define DOCK_SQ_KICK 2u // somebody rang meanwhile
#define DOCK_SQ_LOCK 4u // somebody posts
#define DOCK_SQ_BOTH 8u // alone: a poster holds lock and token, and nobody changes the word

// The poster's half of a send queue. line 0: written under the queue's lock.
struct dock_sq_post {
    char *ring;
    uint64_t *wrid; // per block, as the format's reference driver keeps it
    dock_a32 *doorbell;
    dock_a32 pi;     // blocks, free-running: next to be written; others see by it what was kept
    uint32_t posted; // WRs, free-running
    uint32_t mask, depth;
    uint32_t always; // flags of every WQE: DOCK_F_TOKEN_EN, and DOCK_F_COMPLETE when all are signaled
    uint32_t inline_max;
    dock_a32 word; // DOCK_SQ_*
    uint8_t lock_free, sge_max;
    uint8_t urma, names;      // of the service: tokens apart from keys; no connection
    uint8_t simple, token_at; // for the common WQE: it may be one, and where dock_wr has its token
    uint8_t xrc;              // an initiator: each WQE names the shared queue
    uint8_t free_early;       // slots are free when executed (profile): the id goes with the completion
    uint32_t room;            // so many common WQEs surely fit; looked for anew when it is 0 (post.c)
    const dock_a32 *state;    // of the queue, enum dock_state
    const dock_a64 *executed; // WRs since the queue was made, their sources read; acquire pairs with run.c
    // line 1: written by the poller (under the CQ's lock), read by the poster
    _Alignas(64) dock_a64 freed; // {WRs:32, blocks:32}, free-running: what polled completions have covered
};

struct dock_post {
    struct dock_qp *qp;
    struct dock_sq_post *sq;
    uint32_t pi, posted;
    struct dock_conn *way; // of what is executed as it is put
    bool both;             // the token came with the lock
    // What is executed as it is put, see place.c. When that has ended: so many requests, the last of which is
    // to be told if `told`, its bytes, is not 0.
    uint8_t at_once;
    uint32_t placed, bytes, told, status;
};

// PLACES: messages alone.
enum dock_at_once { DOCK_PUT_ONLY, DOCK_MAY_PLACE, DOCK_PLACES, DOCK_PLACES_ALL };

// It is what a queue pair begins with.
static inline struct dock_sq_post *dock_qp_sq(struct dock_qp *qp)
{
    return (struct dock_sq_post *)qp;
}

void dock_spin_wait(dock_a32 *lock);

static inline void dock_spin_lock(dock_a32 *lock)
{
    uint32_t free = 0;

    if (__builtin_expect(!dock_claim32(lock, &free, 1), 0))
        dock_spin_wait(lock);
}

static inline void dock_spin_unlock(dock_a32 *lock)
{
    dock_publish32(lock, 0); // pairs with the claim in dock_spin_lock
}

// The queue's state, for the face's check before it posts: one load of a line that posting touches anyway.
static inline enum dock_state dock_post_state(const struct dock_post *p)
{
    return (enum dock_state)dock_peek32(p->sq->state);
}

// The same for who posts receives. What peers have said of the queue and its engine has not yet seen
// (dock_qp_state) stands where they count what they send: a line that comes from them at each message.
static inline enum dock_state dock_qp_own_state(struct dock_qp *qp)
{
    return (enum dock_state)dock_peek32(dock_qp_sq(qp)->state);
}

// The lock of the queue; with it the token, if that was asked for and nobody had it: then true.
bool dock_sq_lock_wait(struct dock_sq_post *sq, bool both);

static inline bool dock_sq_lock(struct dock_sq_post *sq, bool both)
{
    uint32_t free = 0;

    // pairs with whoever let go of either in run.c
    if (__builtin_expect(dock_claim32(&sq->word, &free, both ? DOCK_SQ_BOTH : DOCK_SQ_LOCK), 1))
        return both;
    return dock_sq_lock_wait(sq, both);
}

// The lock alone is given back, and nothing is run.
static inline void dock_sq_unlock(struct dock_sq_post *sq)
{
    // pairs with dock_sq_lock
    atomic_fetch_and_explicit(&sq->word, ~DOCK_SQ_LOCK, memory_order_release);
}

static inline void dock_post_start(struct dock_qp *qp, struct dock_post *p, bool both)
{
    struct dock_sq_post *sq = dock_qp_sq(qp);

    p->qp = qp;
    p->sq = sq;
    p->both = !sq->lock_free && dock_sq_lock(sq, both && !dock_probe_hook); // who listens may delay
    p->at_once = p->both ? DOCK_MAY_PLACE : DOCK_PUT_ONLY;
    p->placed = p->bytes = p->told = p->status = 0;
    if (__builtin_expect(dock_probe_hook != NULL, 0))
        sq->room = 0;             // and hears of each request: the long way
    p->pi = dock_peek32(&sq->pi); // ours alone to change
    p->posted = sq->posted;
}

static inline void dock_post_begin(struct dock_qp *qp, struct dock_post *p)
{
    dock_post_start(qp, p, true);
}

static inline void dock_post_open(struct dock_qp *qp, struct dock_post *p)
{
    dock_post_start(qp, p, false);
}

// Encode one WR into the slot(s) at p->pi. 0; -ENOMEM: exactly `depth` WRs are posted and not yet covered by
// a polled completion; -EINVAL: too many SGEs or inline bytes; the queue is unchanged. An opcode that the
// service has not is found when the request is executed. The WR may be reused at once; inline bytes are read
// here.
int dock_post_put(struct dock_post *p, const struct dock_wr *wr);

// Publish, ring, run. Returns when the budget is spent at the latest: executed is another moment than posted.
void dock_post_end(struct dock_post *p);

// Instead of dock_post_end, after dock_post_open: what was put stands in the ring, and the doorbell stays
// where it is. All of it is published by the queue's next dock_post_end or dock_post_ring, or by whoever
// stores the index of the next block to its doorbell (dock_qp_ring tells both), which the engine watches
// until all of it is. In ERR it is published at once.
void dock_post_keep(struct dock_post *p);
// Publish what was kept, if anything was, and run the queue.
void dock_post_ring(struct dock_qp *qp);

#endif
