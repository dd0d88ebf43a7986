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
#define BYE 0xffffffffu

// How the two ends of a connection know each other; `sum` is what its owner says must stand in the peer's
// area.
struct card {
    uint32_t qpn;
    struct dock_mr mr;
    uintptr_t mem;
    uint64_t seed, sum;
};

struct board {
    uint64_t seed;
    dock_a32 arrived[4];
    dock_a64 wrs;
    struct card card[PROCESSES * PROCESSES * THREADS];
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

static inline void point_ready(struct point *p)
{
    for (unsigned i = 0; i < RECVS; i++)
        receive_one(p);
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

static inline struct dock_wr build(struct point *p, struct sent *s, struct dock_sge *sge, bool bye)
{
    static const uint8_t ops[] = {DOCK_OP_WRITE, DOCK_OP_WRITE, DOCK_OP_WRITE_NOTIFY, DOCK_OP_READ,
                                  DOCK_OP_READ,  DOCK_OP_SEND,  DOCK_OP_WRITE_IMM,    DOCK_OP_FADD,
                                  DOCK_OP_CAS,   DOCK_OP_SWAP,  DOCK_OP_FSUB,         DOCK_OP_FAND,
                                  DOCK_OP_FOR,   DOCK_OP_FXOR,  DOCK_OP_NOP};
    uint64_t r = dock_decide(p->seed, 0, p->posted);
    struct dock_wr wr = {.op = bye ? DOCK_OP_SEND : ops[r % sizeof ops],
                         .id = p->posted,
                         .rkey = p->theirs->mr.rkey,
                         .token = p->theirs->mr.token,
                         .sge = sge,
                         .nsge = 2};

    // READs may be overtaken: a fence keeps what follows behind them.
    wr.flags =
        DOCK_F_FENCE | (r >> 32 & 3 && !bye && p->posted - p->covered < DEPTH - 1 ? 0 : DOCK_F_COMPLETE);
    wr_aim(&wr, p->theirs->qpn); // a connected queue does not look
    *s = (struct sent){.len = choose_len(r >> 16), .signaled = wr.flags & DOCK_F_COMPLETE};
    s->off = (uint32_t)(r >> 36) % (AREA - 8 - s->len) & ~7u;
    if (wr.op == DOCK_OP_SEND)
        build_message(p, &wr, s, bye);
    else if (wr.op == DOCK_OP_WRITE || wr.op == DOCK_OP_WRITE_NOTIFY || wr.op == DOCK_OP_WRITE_IMM)
        build_write(p, &wr, s, r);
    else if (wr.op == DOCK_OP_READ) {
        s->expect = bytes_sum(p->shadow + s->off, s->len);
        wr.raddr = p->theirs->mem + s->off;
    } else if (wr.op != DOCK_OP_NOP)
        build_atomic(p, &wr, s, r);
    else
        s->len = 0;
    s->op = wr.op;
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
    if (end_post(&p->e, &wr))
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

static inline bool point_poll_sends(struct point *p)
{
    struct dock_wc wc;
    bool any = false;

    while (end_poll(p->e.scq, &wc)) {
        if (wc.status)
            point_die(p, "a WR failed");
        if (wc.id < p->covered || wc.id >= p->posted || !p->sent[wc.id % DEPTH].signaled)
            point_die(p, "a completion of what was not signaled");
        for (; p->covered <= wc.id; p->covered++)
            verify(p, p->covered);
        any = true;
    }
    return any;
}

static inline void check_message(struct point *p, const struct dock_wc *wc)
{
    const char *at = p->e.mem + RECV + p->received % RECVS * MESSAGE;
    uint32_t len = message_len(p->theirs->seed, p->received);
    static __thread char expect[MESSAGE];

    if (wc->status || wc->id != p->received || p->bye_got)
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
        receive_one(p);
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

// Our own area holds what the peer says that it has written.
static inline void point_check(const struct point *p)
{
    if (bytes_sum(p->e.mem, AREA) != p->theirs->sum)
        point_die(p, "the memory is not what the peer has written");
}

#endif
