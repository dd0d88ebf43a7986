// SPDX-License-Identifier: MIT
// The datagrams of the mixed stress: one queue of each process sends to all of them. They may be lost, where
// no receive waits; what comes is whole, of its sender, and in the order of sending.
#ifndef TESTS_STRESS_DATAGRAM_H
#define TESTS_STRESS_DATAGRAM_H

#include "stress/mixed.h"

#define QKEY 0x1234u // of end_connect
#define GRH 40u
#define DATAGRAM 4096u
#define DATAGRAM_SLOT (GRH + DATAGRAM)
#define DATAGRAM_RECVS 64u

struct head {
    uint64_t from, to, number;
};

struct datagrams {
    struct end e;
    struct board *board;
    unsigned me;
    uint64_t until_ns, posted, done, sent[PROCESSES], next[PROCESSES], got;
    pthread_t thread;
};

static inline void datagram_die(const struct datagrams *d, const char *what)
{
    fprintf(stderr, "datagrams of process %u: %s, %llu sent, %llu received: %s\n", d->me, what,
            (unsigned long long)d->posted, (unsigned long long)d->got, dock_log_last());
    abort();
}

// Length and bytes follow from the head.
static inline uint32_t datagram_fill(const struct datagrams *d, char *at, const struct head *h)
{
    uint64_t seed = dock_mix(d->board->seed ^ (h->from << 8 | h->to)), r = dock_decide(seed, 3, h->number);
    uint32_t len = (uint32_t)(sizeof *h + r % (DATAGRAM - sizeof *h + 1));

    memcpy(at, h, sizeof *h);
    bytes_fill(at + sizeof *h, len - sizeof *h, r);
    return len;
}

static inline void datagram_receive(struct datagrams *d, uint64_t slot)
{
    if (end_recv(&d->e, slot, d->e.mem + DEPTH * DATAGRAM + slot * DATAGRAM_SLOT, DATAGRAM_SLOT))
        datagram_die(d, "a receive that fits was refused");
}

static inline void datagrams_open(struct datagrams *d, struct dock_dev *dev, struct board *board, unsigned me)
{
    struct end_opts o = {.service = DOCK_UD,
                         .wr = DATAGRAM_RECVS,
                         .cqe = 2 * DATAGRAM_RECVS,
                         .mem = DEPTH * DATAGRAM + DATAGRAM_RECVS * DATAGRAM_SLOT,
                         .plain = me % 2};

    memset(d, 0, sizeof *d);
    d->board = board;
    d->me = me;
    end_open(&d->e, dev, &o);
    end_connect(&d->e, 0, NULL);
    for (uint64_t i = 0; i < DATAGRAM_RECVS; i++)
        datagram_receive(d, i);
    dock_publish32(&board->datagram_qpn[me], dock_qp_number(d->e.qp));
}

static inline bool datagram_post(struct datagrams *d)
{
    unsigned to = (unsigned)(dock_decide(d->board->seed ^ d->me, 4, d->posted) % PROCESSES);
    struct head h = {d->me, to, d->sent[to]};
    struct dock_mr key = {.rkey = QKEY};
    struct dock_sge sge;
    size_t off = d->posted % DEPTH * DATAGRAM;

    if (d->posted - d->done == DEPTH)
        return false;
    uint32_t len = datagram_fill(d, d->e.mem + off, &h);
    struct dock_wr wr = wr_onesided(DOCK_OP_SEND, &d->e, &sge, off, len, &key, 0);
    wr_aim(&wr, dock_acquire32(&d->board->datagram_qpn[to]));
    if (end_post(&d->e, &wr))
        datagram_die(d, "a datagram that fits was refused");
    d->posted++;
    d->sent[to]++;
    return true;
}

static inline void datagram_check(struct datagrams *d, const struct dock_wc *wc)
{
    static __thread char expect[DATAGRAM];
    const char *at = d->e.mem + DEPTH * DATAGRAM + wc->id % DATAGRAM_RECVS * DATAGRAM_SLOT + GRH;
    struct head h;

    memcpy(&h, at, sizeof h);
    if (wc->status || h.from >= PROCESSES || h.to != d->me || h.number < d->next[h.from])
        datagram_die(d, "a datagram that is not for us, or out of its turn");
    if (wc->src_qp != dock_acquire32(&d->board->datagram_qpn[h.from]))
        datagram_die(d, "a datagram of another sender than it says");
    uint32_t len = datagram_fill(d, expect, &h);
    if (wc->bytes != len + GRH || memcmp(expect, at, len))
        datagram_die(d, "a datagram with other bytes than were sent");
    d->next[h.from] = h.number + 1;
    d->got++;
}

static inline bool datagrams_step(struct datagrams *d, bool over)
{
    struct dock_wc wc;
    bool any = false;

    for (; end_poll(d->e.rcq, &wc); any = true) {
        datagram_check(d, &wc);
        datagram_receive(d, wc.id);
    }
    for (; end_poll(d->e.scq, &wc); any = true, d->done++)
        if (wc.status)
            datagram_die(d, "a datagram failed at its sender");
    return (!over && datagram_post(d)) || any;
}

static inline void *datagrams_run(void *arg)
{
    struct datagrams *d = arg;

    for (bool over = false; !over || d->done != d->posted;) {
        over = dock_now_ns() > d->until_ns;
        if (!datagrams_step(d, over))
            sched_yield();
    }
    if (!d->next[d->me])
        datagram_die(d, "none came, not even from ourselves");
    return NULL;
}

#endif
