// SPDX-License-Identifier: MIT
// One queue pair of the mixed stress: what it does follows from its seed and its own count of WRs, and
// every byte that it moves is known beforehand. Included by one program, so the functions stand here.
#ifndef TESTS_STRESS_MIXED_H
#define TESTS_STRESS_MIXED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/seed.h"
#include "device/internal.h"
#include "lib/duo.h"

#define PROCESSES 3u
#define THREADS 2u
#define DEPTH 16u
#define RECVS 16u
#define MESSAGE 4096u
#define SLOT (96u << 10)  // of one WR's local bytes: the longest is longer than a piece
#define AREA (256u << 10) // what the peer writes, it alone
#define LOCAL AREA        // offsets in an end's memory
#define RECV (LOCAL + DEPTH * SLOT)
#define POINT_BYTES (RECV + RECVS * MESSAGE)
#define POOL (PROCESSES * RECVS) // receives of a shared queue
#define BYE 0xffffffffu
#define RIGHTS (DOCK_ACCESS_REMOTE_READ | DOCK_ACCESS_REMOTE_WRITE | DOCK_ACCESS_REMOTE_ATOMIC)

// How the two ends of a connection know each other; `sum` is what its owner says must stand in the peer's
// area.
struct card {
    uint32_t qpn;
    struct dock_mr mr;
    uintptr_t mem;
    uint64_t seed, sum;
    uint32_t window; // key of a window over the area, 0: none
};

struct board {
    uint64_t seed;
    dock_a32 arrived[4];
    dock_a64 wrs;
    struct card card[PROCESSES * PROCESSES * THREADS];
    dock_a32 datagram_qpn[PROCESSES];
    dock_a64 datagrams;
};

// A receive queue that the connected queue pairs of a thread share.
struct pool {
    struct dock_rq *srq;
    char *mem;
    struct dock_mr *mr;
};

// What was posted and is not covered yet.
struct sent {
    uint8_t op;
    uint32_t off, len; // in the peer's area
    uint64_t expect;   // READ: sum of the bytes to come; atomics: the old value
    bool signaled;
};

struct point {
    struct end e;
    struct point *via;      // whose queue sends for this one: its own, or one that reaches several targets
    unsigned index;         // among those that send by that queue, which stand in a row behind its owner
    struct pool *pool;      // NULL: receives of its own
    struct dock_mr *window; // over the area, for the peer
    struct dock_mr *spare;  // bound and taken back in the midst of the traffic
    uint32_t spare_key;     // 0: not bound, when all that was posted is executed
    unsigned number;
    uint64_t seed;
    char *shadow; // of the peer's area, as it is when all that was posted is executed
    struct card *mine, *theirs;
    struct sent sent[DEPTH];
    uint64_t posted, covered, messages, received, reposted;
    bool bye_sent, bye_got, finished;
};

static inline void point_die(const struct point *p, const char *what)
{
    fprintf(stderr, "queue %u (point %u): %s, at WR %llu, message %llu: %s\n", dock_qp_number(p->e.qp),
            p->number, what, (unsigned long long)p->posted, (unsigned long long)p->received, dock_log_last());
    abort();
}

static inline char *local_of(struct point *p, uint64_t n)
{
    return p->e.mem + LOCAL + n % DEPTH * SLOT;
}

// Message n of a sender: its length and bytes follow from the sender's seed.
static inline uint32_t message_len(uint64_t seed, uint64_t n)
{
    return (uint32_t)(dock_decide(seed, 1, n) % (MESSAGE + 1));
}

static inline uint64_t message_bytes(uint64_t seed, uint64_t n)
{
    return dock_decide(seed, 2, n);
}

static inline void receive_one(struct point *p)
{
    if (end_recv(&p->e, p->reposted, p->e.mem + RECV + p->reposted % RECVS * MESSAGE, MESSAGE))
        point_die(p, "a receive that fits was refused");
    p->reposted++;
}

static inline int pool_receive(struct pool *s, uint64_t n)
{
    struct dock_sge sge = {.addr = (uintptr_t)s->mem + n * MESSAGE, .len = MESSAGE, .key = s->mr->lkey};
    int err;

    dock_recv_begin(s->srq);
    err = dock_recv_put(s->srq, n, &sge, 1);
    dock_recv_end(s->srq);
    return err;
}

static inline struct dock_wr bind_wr(const struct point *p, const struct dock_mr *window, uint8_t variant,
                                     size_t off, uint64_t len)
{
    return (struct dock_wr){.op = DOCK_OP_BIND,
                            .flags = DOCK_F_COMPLETE,
                            .rkey = window->tid << 8,
                            .remote = p->e.mr->lkey,
                            .raddr = (uintptr_t)p->e.mem + off,
                            .operand = len,
                            .compare = RIGHTS,
                            .imm = variant};
}

static inline void open_windows(struct point *p)
{
    struct dock_wc wc = {.status = 0xfff};

    if (dock_mw_create(p->e.dev, p->e.pd, DOCK_SEG_MW2, &p->window) ||
        dock_mw_create(p->e.dev, p->e.pd, DOCK_SEG_MW2, &p->spare))
        point_die(p, "no windows");
    struct dock_wr wr = bind_wr(p, p->window, (uint8_t)p->seed, 0, AREA);
    if (end_post(&p->e, &wr) || !end_wait(p->e.scq, &wc, 20000 * slow_down()) || wc.status)
        point_die(p, "the area's window was not bound");
    p->mine->window = p->window->rkey;
}

static inline void point_ready(struct point *p)
{
    for (unsigned i = 0; i < RECVS; i++)
        if (!p->pool)
            receive_one(p);
    if (p->e.service == DOCK_RC)
        open_windows(p);
}

static inline uint32_t choose_len(uint64_t r)
{
    switch (r % 8) {
    case 0:
        return (uint32_t)(r >> 8) % SLOT;
    case 1:
    case 2:
        return (uint32_t)(r >> 8) % 5000;
    default:
        return (uint32_t)(r >> 8) % 129;
    }
}

static inline void build_message(struct point *p, struct dock_wr *wr, struct sent *s, bool bye)
{
    wr->op = bye ? DOCK_OP_SEND_IMM : p->messages % 3 ? DOCK_OP_SEND : DOCK_OP_SEND_IMM;
    s->len = bye ? 0 : message_len(p->seed, p->messages);
    wr->imm = bye ? BYE : (uint32_t)p->messages & 0x7fffffff;
    bytes_fill(local_of(p, p->posted), s->len, message_bytes(p->seed, p->messages));
    p->messages++;
}

static inline void build_write(struct point *p, struct dock_wr *wr, struct sent *s, uint64_t r)
{
    bytes_fill(local_of(p, p->posted), s->len, r);
    memcpy(p->shadow + s->off, local_of(p, p->posted), s->len);
    wr->raddr = p->theirs->mem + s->off;
    if (wr->op == DOCK_OP_WRITE_IMM) // takes a receive, in its turn among the messages
        wr->imm = (uint32_t)p->messages++ & 0x7fffffff;
    if (wr->op == DOCK_OP_WRITE_NOTIFY) { // the last word of the area is for notifications
        uint64_t at = AREA - 8;
        wr->notify_key = p->theirs->mr.rkey;
        wr->notify_token = p->theirs->mr.token;
        wr->notify_addr = p->theirs->mem + at;
        wr->notify_value = r;
        memcpy(p->shadow + at, &r, 8);
    }
}

static inline uint64_t after_atomic(const struct dock_wr *wr, uint64_t old)
{
    switch (wr->op) {
    case DOCK_OP_CAS:
        return wr->compare == old ? wr->operand : old;
    case DOCK_OP_SWAP:
        return wr->operand;
    case DOCK_OP_FADD:
        return old + wr->operand;
    case DOCK_OP_FSUB:
        return old - wr->operand;
    case DOCK_OP_FAND:
        return old & wr->operand;
    case DOCK_OP_FOR:
        return old | wr->operand;
    default:
        return old ^ wr->operand;
    }
}

static inline void build_atomic(struct point *p, struct dock_wr *wr, struct sent *s, uint64_t r)
{
    uint64_t word;

    s->off &= ~7u;
    s->len = 8;
    memcpy(&word, p->shadow + s->off, 8);
    s->expect = word;
    wr->raddr = p->theirs->mem + s->off;
    wr->operand = r;
    wr->compare = r & 1 ? word : ~word;
    word = after_atomic(wr, word);
    memcpy(p->shadow + s->off, &word, 8);
}

// Bound by one request and taken back by the next one of its kind.
static inline void build_window(struct point *p, struct dock_wr *wr, uint64_t r)
{
    uint32_t flags = wr->flags;
    uint64_t id = wr->id;

    if (p->spare_key) {
        *wr = (struct dock_wr){.op = DOCK_OP_INV, .rkey = p->spare_key};
        p->spare_key = 0;
    } else {
        *wr = bind_wr(p, p->spare, (uint8_t)(r >> 8), (r >> 16) % AREA, 1 + (r >> 40) % 4096);
        p->spare_key = p->spare->tid << 8 | (uint8_t)(r >> 8);
    }
    wr->flags = flags;
    wr->id = id;
}

static inline struct dock_wr build(struct point *p, struct sent *s, struct dock_sge *sge, bool bye)
{
    static const uint8_t ops[] = {DOCK_OP_WRITE, DOCK_OP_WRITE, DOCK_OP_WRITE_NOTIFY, DOCK_OP_READ,
                                  DOCK_OP_READ,  DOCK_OP_SEND,  DOCK_OP_WRITE_IMM,    DOCK_OP_FADD,
                                  DOCK_OP_CAS,   DOCK_OP_SWAP,  DOCK_OP_FSUB,         DOCK_OP_FAND,
                                  DOCK_OP_FOR,   DOCK_OP_FXOR,  DOCK_OP_NOP,          DOCK_OP_BIND};
    uint64_t r = dock_decide(p->seed, 0, p->posted);
    struct dock_wr wr = {.op = bye ? DOCK_OP_SEND : ops[r % sizeof ops],
                         .id = (uint64_t)p->index << 32 | p->posted,
                         .rkey = p->theirs->mr.rkey,
                         .token = p->theirs->mr.token,
                         .sge = sge,
                         .nsge = 2};

    // READs may be overtaken: a fence keeps what follows behind them.
    wr.flags =
        DOCK_F_FENCE | (r >> 32 & 3 && !bye && p->posted - p->covered < DEPTH - 1 ? 0 : DOCK_F_COMPLETE);
    wr_aim(&wr, p->theirs->qpn); // a connected queue does not look
    if (wr.op == DOCK_OP_BIND && !p->spare)
        wr.op = DOCK_OP_NOP;
    if (p->theirs->window && r >> 62 & 1)
        wr.rkey = p->theirs->window;
    *s = (struct sent){.len = choose_len(r >> 16), .signaled = wr.flags & DOCK_F_COMPLETE};
    s->off = (uint32_t)(r >> 36) % (AREA - 8 - s->len) & ~7u;
    if (wr.op == DOCK_OP_SEND)
        build_message(p, &wr, s, bye);
    else if (wr.op == DOCK_OP_WRITE || wr.op == DOCK_OP_WRITE_NOTIFY || wr.op == DOCK_OP_WRITE_IMM)
        build_write(p, &wr, s, r);
    else if (wr.op == DOCK_OP_READ) {
        s->expect = bytes_sum(p->shadow + s->off, s->len);
        wr.raddr = p->theirs->mem + s->off;
    } else if (dock_op_is_atomic(wr.op))
        build_atomic(p, &wr, s, r);
    else
        s->len = 0;
    if (wr.op == DOCK_OP_BIND)
        build_window(p, &wr, r);
    s->op = wr.op;
    if (wr.op == DOCK_OP_BIND || wr.op == DOCK_OP_INV)
        return wr;
    if (wr.op != DOCK_OP_READ && !dock_op_is_atomic(wr.op) && s->len <= 128 && r >> 63) {
        wr.flags |= DOCK_F_INLINE;
        wr.inline_len = s->len;
    }
    uint32_t first = dock_op_is_atomic(wr.op) ? s->len : s->len / 3;
    sge[0] = (struct dock_sge){(uintptr_t)local_of(p, p->posted), first, p->e.mr->lkey};
    sge[1] = (struct dock_sge){(uintptr_t)local_of(p, p->posted) + first, s->len - first, p->e.mr->lkey};
    if (dock_op_is_atomic(wr.op))
        wr.nsge = 1;
    if (wr.op == DOCK_OP_NOP)
        wr.nsge = 0;
    return wr;
}

// Post one more WR, if there is a slot for it.
static inline bool point_post(struct point *p, bool bye)
{
    struct dock_sge sge[2];

    if (p->bye_sent || p->posted - p->covered == DEPTH)
        return false;
    struct dock_wr wr = build(p, &p->sent[p->posted % DEPTH], sge, bye);
    if (end_post(&p->via->e, &wr))
        point_die(p, "a WR that fits was refused");
    p->posted++;
    p->bye_sent = bye;
    return true;
}

// The WR is covered by a polled completion: what it brought must be there.
static inline void verify(struct point *p, uint64_t n)
{
    const struct sent *s = &p->sent[n % DEPTH];
    uint64_t word;

    if (s->op == DOCK_OP_READ && bytes_sum(local_of(p, n), s->len) != s->expect)
        point_die(p, "a READ brought other bytes than were written");
    memcpy(&word, local_of(p, n), 8);
    if (dock_op_is_atomic(s->op) && word != s->expect)
        point_die(p, "an atomic returned another value than was there");
}

static inline void cover(struct point *p, uint64_t n, uint32_t status)
{
    if (status)
        point_die(p, "a WR failed");
    if (n < p->covered || n >= p->posted || !p->sent[n % DEPTH].signaled)
        point_die(p, "a completion of what was not signaled");
    for (; p->covered <= n; p->covered++)
        verify(p, p->covered);
}

// Of all that send by its queue.
static inline bool point_poll_sends(struct point *p)
{
    struct dock_wc wc;
    bool any = false;

    while (p->via == p && end_poll(p->e.scq, &wc)) {
        if (wc.id >> 32 >= PROCESSES)
            point_die(p, "a completion of nobody's");
        cover(p + (wc.id >> 32), (uint32_t)wc.id, wc.status);
        any = true;
    }
    return any;
}

static inline void check_message(struct point *p, const struct dock_wc *wc)
{
    const char *at =
        p->pool ? p->pool->mem + wc->id % POOL * MESSAGE : p->e.mem + RECV + p->received % RECVS * MESSAGE;
    uint32_t len = message_len(p->theirs->seed, p->received);
    static __thread char expect[MESSAGE];

    if (wc->status || (p->pool ? wc->id >= POOL : wc->id != p->received) || p->bye_got)
        point_die(p, "an unexpected receive");
    p->bye_got = wc->op == DOCK_ROP_SEND_IMM && wc->imm == BYE;
    if (p->bye_got)
        return;
    if (wc->op == DOCK_ROP_WRITE_IMM && wc->imm == (p->received & 0x7fffffff))
        return;
    if (wc->op == DOCK_ROP_SEND_IMM && wc->imm != (p->received & 0x7fffffff))
        point_die(p, "a message with another immediate");
    bytes_fill(expect, len, message_bytes(p->theirs->seed, p->received));
    if (wc->bytes != len || memcmp(expect, at, len))
        point_die(p, "a message with other bytes than were sent");
}

static inline bool point_poll_receives(struct point *p)
{
    struct dock_wc wc;
    bool any = false;

    while (end_poll(p->e.rcq, &wc)) {
        check_message(p, &wc);
        p->received++;
        if (!p->pool)
            receive_one(p);
        else if (pool_receive(p->pool, wc.id))
            point_die(p, "a receive that fits was refused");
        any = true;
    }
    return any;
}

// true: something moved.
static inline bool point_step(struct point *p, bool over)
{
    bool any = point_poll_receives(p);

    any |= point_poll_sends(p);
    any |= point_post(p, over);
    return any;
}

static inline bool point_finished(struct point *p)
{
    if (p->finished || !p->bye_sent || !p->bye_got || p->covered != p->posted)
        return p->finished;
    p->mine->sum = bytes_sum(p->shadow, AREA);
    p->finished = true;
    return true;
}

static inline void point_close(struct point *p)
{
    if (p->window && (dock_mw_destroy(p->window) || dock_mw_destroy(p->spare)))
        point_die(p, "a window does not go");
    end_close(&p->e);
    free(p->shadow);
}

// Our own area holds what the peer says that it has written.
static inline void point_check(const struct point *p)
{
    if (bytes_sum(p->e.mem, AREA) != p->theirs->sum)
        point_die(p, "the memory is not what the peer has written");
}

#endif
