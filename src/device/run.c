// SPDX-License-Identifier: MIT
// Who posts to a send queue, and who runs it: whoever is there. One word. RUN, the token: somebody executes.
// KICK: somebody rang meanwhile. LOCK: somebody posts. Every ring is a read-modify-write of the word, so it
// either takes the token or leaves KICK where the holder, who must change the word to let go, finds it and
// everything the ringer had published before: no doorbell is lost, and no fence is needed.
//
// BOTH, alone in the word: a poster has lock and token for a short time and promises to look at nothing but
// its own doorbell. Nobody changes the word meanwhile; who rings waits for a moment or leaves the queue on
// the ready list. So the poster lets go of both by a plain store: one locked instruction for a post.
#include "device/run.h"

#define RUN DOCK_SQ_RUN
#define KICK DOCK_SQ_KICK
#define LOCK DOCK_SQ_LOCK
#define BOTH DOCK_SQ_BOTH

#define SHORT_WAIT 64 // looks at a word that says BOTH

// MINE: the token is ours. TOLD: its holder will see what we published. BUSY: a poster has both, and was told
// nothing.
enum taken { MINE, TOLD, BUSY };

static inline enum taken take(struct dock_sq *sq)
{
    dock_a32 *word = &sq->post.word;
    uint32_t seen = 0;

    if (__builtin_expect(dock_claim32(word, &seen, RUN), 1)) // pairs with let_go
        return MINE;
    for (;;) {
        if (seen == BOTH)
            return BUSY;
        if (seen & RUN && !DOCK_RULE_KICK)
            return TOLD;
        if (dock_claim32(word, &seen, seen & RUN ? seen | KICK : seen | RUN))
            return seen & RUN ? TOLD : MINE;
    }
}

// true: gone. false: somebody kicked; the token is still ours.
static inline bool let_go(struct dock_sq *sq)
{
    dock_a32 *word = &sq->post.word;
    uint32_t seen = RUN;

    if (__builtin_expect(dock_claim32(word, &seen, 0), 1)) // pairs with take
        return true;
    while (!(seen & KICK))
        if (dock_claim32(word, &seen, seen & ~RUN))
            return true;
    // with all that the kicker had published
    atomic_fetch_and_explicit(word, ~KICK, memory_order_acq_rel);
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

// The long way only, whose runs may leave a WR in pieces, or place none: the short one places one for each.
static void tell_long(struct dock_sq *sq, enum dock_runner by)
{
    uint32_t under_way = sq->seq + sq->mid - sq->told;

    if (by != DOCK_BY_POSTER)
        dock_count64(&sq->rec->visits, 1);
    if (__builtin_expect(dock_peek32(&sq->rec->under_way) != under_way, 0))
        dock_set32(&sq->rec->under_way, under_way);
    if (__builtin_expect(dock_peek64(&sq->rec->pieces) != sq->pieces, 0))
        dock_set64(&sq->rec->pieces, sq->pieces);
}

// Execute up to a budget: what is left to do, and who will.
static enum dock_stall execute(struct dock_sq *sq, enum dock_runner by, struct dock_stay *stay)
{
    if (dock_sq_evicted(sq)) {
        dock_dev_fatal(sq->qp->dev); // nothing more may be stored anywhere
        dock_qp_fail(sq->qp, DOCK_ST_FLUSH);
    }
    enum dock_stall why = steps(sq, stay);
    dock_sq_tell(sq, by);
    tell_long(sq, by);
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

// The token is held, and of this stay so much is left.
static void run(struct dock_sq *sq, enum dock_runner by, struct dock_stay stay)
{
    for (;; stay = dock_sq_budget(sq)) {
        enum dock_stall why = execute(sq, by, &stay);
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

// A poller that finds no other queue ready goes on with a long transfer in long pieces: nobody waits for the
// end of one but itself.
static struct dock_stay stay_of(struct dock_sq *sq, enum dock_runner by)
{
    struct dock_stay stay = dock_sq_budget(sq);

    stay.alone = by == DOCK_BY_POLLER && !dock_peek64(&sq->qp->dev->ready_head);
    return stay;
}

void dock_sq_ring(struct dock_sq *sq, enum dock_runner by)
{
    enum taken got;

    dock_probe(DOCK_AT_RING, sq->qp->number, dock_peek32(&sq->post.pi)); // `exec` is the token holder's
    for (unsigned looks = 0; (got = take(sq)) == BUSY && looks < SHORT_WAIT; looks++)
        dock_relax();
    if (__builtin_expect(got == MINE, 1))
        run(sq, by, stay_of(sq, by));
    else if (got == BUSY) // the poster may have lost its processor: somebody comes back for it
        dock_ready_push(sq->qp->dev, sq);
}

void dock_sq_leave(struct dock_sq *sq)
{
    uint32_t seen = LOCK, next;

    dock_probe(DOCK_AT_RING, sq->qp->number, dock_peek32(&sq->post.pi)); // `exec` is the token holder's
    do
        next = !(seen & RUN) ? RUN : DOCK_RULE_KICK ? RUN | KICK : RUN;
    while (!dock_claim32(&sq->post.word, &seen, next)); // pairs with take and let_go of others
    if (!(seen & RUN))
        run(sq, DOCK_BY_POSTER, dock_sq_budget(sq));
}

void dock_sq_go_on(struct dock_sq *sq, const struct dock_stay *stay)
{
    dock_publish32(&sq->post.word, RUN); // pairs with dock_sq_lock and take
    run(sq, DOCK_BY_POSTER,
        (struct dock_stay){.pi = dock_sq_rung(sq), .bytes = stay->bytes, .wrs = stay->wrs});
}

void dock_sq_hold(struct dock_sq *sq)
{
    while (take(sq) != MINE)
        sched_yield();
}

bool dock_sq_try(struct dock_sq *sq)
{
    return take(sq) == MINE;
}

void dock_sq_let_be(struct dock_sq *sq)
{
    if (let_go(sq))
        return;
    do // who kicked relied on us
        dock_ready_push(sq->qp->dev, sq);
    while (!let_go(sq));
}

void dock_sq_release(struct dock_sq *sq)
{
    while (!let_go(sq))
        ;
    dock_sq_ring(sq, DOCK_BY_POLLER); // whoever rang while it was held relied on the holder
}

void dock_sq_clear(struct dock_sq *sq)
{
    sq->exec = dock_acquire32(sq->post.doorbell); // a raw producer goes on where its doorbell stands
    dock_set32(&sq->post.pi, sq->exec);
    sq->seq = sq->retired = sq->told = sq->post.posted;
    dock_set32(&sq->rec->under_way, 0);
    dock_publish64(&sq->post.freed,
                   (uint64_t)sq->post.posted << 32 | sq->exec); // pairs with dock_slot_room
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
