// SPDX-License-Identifier: MIT
// Who runs a send queue: whoever is there. One execution token per queue, a word of two bits. RUN: somebody
// executes. KICK: somebody rang meanwhile. Every ring is a read-modify-write of the word, so it either takes
// the token or leaves KICK where the holder, who must swap the word to let go, finds it and everything the
// ringer had published before: no doorbell is lost, and no fence is needed.
#include "device/internal.h"

#define RUN 1u
#define KICK 2u

// true: the token is ours. false: its holder will see what we published.
static inline bool take(struct dock_sq *sq)
{
    uint32_t seen = 0;

    if (__builtin_expect(dock_claim32(&sq->token, &seen, RUN), 1)) // pairs with let_go
        return true;
    for (;;) {
        if (seen & RUN && !DOCK_RULE_KICK)
            return false;
        if (seen & RUN) {
            if (dock_claim32(&sq->token, &seen, RUN | KICK))
                return false;
        } else if (dock_claim32(&sq->token, &seen, RUN)) {
            return true;
        }
    }
}

// true: gone. false: somebody kicked; the token is still ours.
static inline bool let_go(struct dock_sq *sq)
{
    uint32_t seen = RUN;

    if (__builtin_expect(dock_claim32(&sq->token, &seen, 0), 1)) // pairs with take
        return true;
    dock_swap32(&sq->token, RUN);
    return false;
}

static enum dock_stall steps(struct dock_sq *sq, struct dock_stay *stay)
{
    if (__builtin_expect(sq->flight != NULL, 0))
        dock_sq_reap(sq);
    for (;;) {
        dock_sq_fast(sq, stay);
        if (sq->exec == stay->pi && !sq->mid) {
            if (__builtin_expect(sq->mark != 0, 0))
                dock_mark_tell(sq);
            return DOCK_STALL_NONE;
        }
        if (__builtin_expect(stay->wrs == 0 || stay->bytes == 0, 0))
            return DOCK_STALL_BUDGET;
        stay->wrs--;
        switch (dock_sq_step(sq, stay)) {
        case DOCK_STEP_ON:
            break;
        case DOCK_STEP_IDLE:
            return DOCK_STALL_NONE;
        case DOCK_STEP_BUDGET:
            return DOCK_STALL_BUDGET;
        case DOCK_STEP_WAIT:
            return (enum dock_stall)sq->stall;
        }
    }
}

// WRs whose sources were read. Over a late fabric that is known when they are finished.
static inline uint32_t executed(const struct dock_sq *sq)
{
    return __builtin_expect(sq->flight != NULL, 0) ? sq->retired : sq->seq;
}

// Execute up to a budget. What is left to do, and who will; what was done is told to the record once.
static enum dock_stall execute(struct dock_sq *sq, enum dock_runner by)
{
    struct dock_stay stay = {.pi = dock_acquire32(sq->post.doorbell), // pairs with the doorbell's publish
                             .bytes = DOCK_BUDGET_BYTES,
                             .wrs = DOCK_BUDGET_WRS};

    if (__builtin_expect(dock_idtable_evicted(&sq->qp->dev->ids_table, sq->qp->dev->waiter.me), 0)) {
        dock_dev_fatal(sq->qp->dev); // we were stopped, and given up: nothing more may be stored anywhere
        dock_qp_fail(sq->qp, DOCK_ST_FLUSH);
    }
    enum dock_stall why = steps(sq, &stay);
    uint32_t done = executed(sq) - sq->told;

    if (done) {
        sq->told += done;
        dock_publish64(&sq->rec->executed,
                       dock_peek64(&sq->rec->executed) +
                           done); // pairs with who waits in dock_sq_post.executed
        dock_count64(&sq->rec->by_poster + by, done);
        dock_set64(&sq->rec->bytes_out, sq->bytes);
    }
    return why;
}

static void __attribute__((noinline)) leave_to_others(struct dock_sq *sq, enum dock_stall why)
{
    struct dock_dev *dev = sq->qp->dev;

    if (why == DOCK_STALL_BUDGET)
        dock_ready_push(dev, sq);
    if (why == DOCK_STALL_RNR || why == DOCK_STALL_NOBODY)
        dock_waiting_push(dev, sq);
}

void dock_sq_ring(struct dock_sq *sq, enum dock_runner by)
{
    dock_probe(DOCK_AT_RING, sq->qp->number, sq->exec);
    if (__builtin_expect(!take(sq), 0))
        return;
    for (;;) {
        enum dock_stall why = execute(sq, by);
        if (__builtin_expect(why != DOCK_STALL_NONE, 0))
            leave_to_others(sq, why); // before the token goes: the list's user must be able to take it
        if (__builtin_expect(let_go(sq), 1))
            return;
        if (why == DOCK_STALL_BUDGET && by == DOCK_BY_POSTER) { // a posting call ends, whoever kicks:
            do // the kicker took the queue off the ready list
                leave_to_others(sq, why);
            while (!let_go(sq));
            return;
        }
    }
}

void dock_sq_hold(struct dock_sq *sq)
{
    while (!take(sq))
        sched_yield();
}

void dock_sq_release(struct dock_sq *sq)
{
    while (!let_go(sq))
        ;
    dock_sq_ring(sq, DOCK_BY_POLLER); // whoever rang while it was held relied on the holder
}

void dock_sq_clear(struct dock_sq *sq)
{
    sq->exec = sq->post.pi =
        dock_acquire32(sq->post.doorbell); // a raw producer goes on where its doorbell stands
    sq->seq = sq->retired = sq->told = sq->post.posted;
    dock_publish64(&sq->post.freed,
                   (uint64_t)sq->post.posted << 32 | sq->post.pi); // pairs with has_room in post.c
    dock_sq_abandon(sq);
    sq->mid = false;
    sq->stall = DOCK_STALL_NONE;
    sq->rnr_tries = sq->timeout_tries = 0;
    sq->deadline_ns = 0;
    sq->reads = 0;
    dock_set32(&sq->reads_over, 0);
    if (sq->qp->page)
        dock_raw_clear(sq->qp);
}
