// SPDX-License-Identifier: MIT
// One WQE, or one piece of it: may it start, who serves it, what became of it. The token is held.
#include <errno.h>

#include "base/clock.h"
#include "device/internal.h"
#include "device/link.h"

static bool known(unsigned op)
{
    return op <= DOCK_OP_CAS || op == DOCK_OP_FADD || op == DOCK_OP_NOP ||
           (op >= DOCK_OP_SWAP && op <= DOCK_OP_FXOR) || op == DOCK_OP_BIND || op == DOCK_OP_INV ||
           op == DOCK_OP_WRITE_ADD;
}

static bool is_read(const struct dock_xfer *x)
{
    return x->op == DOCK_OP_READ || dock_op_is_atomic(x->op);
}

static bool is_local(const struct dock_xfer *x)
{
    return x->op == DOCK_OP_NOP || x->op == DOCK_OP_BIND || x->op == DOCK_OP_INV;
}

// What a service can carry: RC and RM all; UC no answers; UD only messages; UM them, and what UMDK's own
// sample posts there, though its guide knows messages alone: its driver takes any request in UM.
static bool allowed(const struct dock_xfer *x, enum dock_service service)
{
    bool message = x->op == DOCK_OP_SEND || x->op == DOCK_OP_SEND_IMM || x->op == DOCK_OP_NOP;

    if (service == DOCK_UD)
        return message;
    if (service == DOCK_UM)
        return message || x->op == DOCK_OP_WRITE || x->op == DOCK_OP_READ;
    if (service == DOCK_UC)
        return !is_read(x) && !dock_op_notifies(x->op) && x->op != DOCK_OP_SEND_INV;
    return true;
}

// The WR is executed (or failed): in queue order its completion comes now, or when the earlier ones are
// finished.
static enum dock_step conclude(struct dock_sq *sq, bool finished)
{
    struct dock_xfer *x = &sq->x;
    bool changed = __builtin_expect(sq->qp->page != NULL, 0) && !x->status && dock_raw_changed(sq);
    struct dock_outcome o = {.status = changed ? DOCK_ST_LOC_QP_OP : x->status,
                             .bytes = x->bytes,
                             .flags = x->flags,
                             .op = x->op,
                             .target = x->target,
                             .last_block = sq->exec + sq->blocks - 1};

    sq->exec += sq->blocks;
    sq->mid = false;
    sq->rnr_tries = sq->timeout_tries = 0;
    sq->deadline_ns = 0;
    if (finished) {
        dock_probe(DOCK_AT_EXECUTE, sq->qp->number, sq->seq);
        sq->pieces--;
    }
    sq->seq++;
    if (__builtin_expect(finished && (sq->retired + 1 == sq->seq || !DOCK_RULE_TURN), 1))
        dock_sq_retire(sq, &o);
    else
        dock_sq_park(sq, &o, finished);
    return DOCK_STEP_ON;
}

static enum dock_step fail(struct dock_sq *sq, uint32_t status)
{
    sq->x.status = status;
    sq->x.bytes = 0;
    return conclude(sq, true);
}

static enum dock_step wait(struct dock_sq *sq, enum dock_stall why)
{
    sq->stall = (uint8_t)why;
    return DOCK_STEP_WAIT;
}

// Receiver not ready timer, IBTA vol 1 table 46, in units of 10 us by its 5-bit code.
static const uint32_t rnr_10us[32] = {65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
                                      48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
                                      2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

static enum dock_step receiver_not_ready(struct dock_sq *sq, struct dock_conn *c)
{
    const struct dock_qp *qp = sq->qp;
    uint64_t now = dock_now_ns();

    if (sq->deadline_ns && now < sq->deadline_ns)
        return wait(sq, DOCK_STALL_RNR);
    dock_count64(&sq->rec->rnr, 1);
    if (qp->rnr_retry != 7 && sq->rnr_tries == qp->rnr_retry) {
        dock_info("queue %u: receiver not ready, %u retries used up", qp->number, qp->rnr_retry);
        return fail(sq, DOCK_ST_RNR_EXC);
    }
    sq->rnr_tries++;
    sq->deadline_ns = now + rnr_10us[dock_peek32(&dock_conn_target(c)->queue->rnr_timer) & 31] * 10000ull;
    return wait(sq, DOCK_STALL_RNR);
}

// Nobody answers: as if packets were lost. A peer known to be dead is not waited for.
static enum dock_step nobody_there(struct dock_sq *sq, bool dead)
{
    const struct dock_qp *qp = sq->qp;
    uint64_t now = dock_now_ns();

    if (!dead && sq->deadline_ns && now < sq->deadline_ns)
        return wait(sq, DOCK_STALL_NOBODY);
    if (dead || (qp->timeout_ns && sq->timeout_tries > qp->retry)) {
        dock_info("queue %u: %s, %u retries used up", qp->number,
                  dead ? "the peer is dead" : "the peer does not answer", qp->retry);
        dock_sq_abandon(sq);
        return fail(sq, DOCK_ST_RETRY_EXC);
    }
    sq->timeout_tries++;
    sq->deadline_ns = now + (qp->timeout_ns ? qp->timeout_ns : 1000000000ull);
    return wait(sq, DOCK_STALL_NOBODY);
}

// The way to the target of this request. What was begun goes on where it began: another owner of the number
// knows nothing of it.
static struct dock_conn *way(struct dock_sq *sq)
{
    if (__builtin_expect(sq->conn != NULL, 1))
        return sq->conn;
    if (!sq->mid || !dock_xfer_begun(&sq->x))
        sq->way = dock_way(sq->qp);
    return sq->way;
}

// A queue without a connection meets a device at its first request to it: the way there is given a moment
// before it counts as silence. A program sends its first datagram once.
// An unreliable message to nobody is sent all the same: its memory is looked at, and what is wrong there
// fails it.
static enum dock_step sent_to_nobody(struct dock_sq *sq)
{
    struct dock_xfer *x = &sq->x;
    struct dock_span span;
    uint32_t status = DOCK_OK;

    dock_set64(&sq->busy, dock_peek64(&sq->busy) + 1);
    dock_fence_light(); // as in perform()
    for (unsigned i = 0; !x->inline_data && i < x->nsge && !status; i++)
        status = dock_up_local(sq->qp->dev, x, &x->sge[i], 0, 0, &span);
    dock_publish64(&sq->busy, dock_peek64(&sq->busy) + 1); // pairs with the acquire in dock_quiesce
    if (status)
        return fail(sq, status);
    x->bytes = x->len;
    return conclude(sq, true);
}

static enum dock_step unreached(struct dock_sq *sq, bool coming)
{
    uint64_t now = dock_now_ns();

    sq->mid = true;
    if (coming && !sq->deadline_ns)
        sq->deadline_ns = now + DOCK_PATIENCE_NS;
    if (coming && now < sq->deadline_ns)
        return wait(sq, DOCK_STALL_NOBODY);
    if (!dock_xfer_lossy(&sq->x))
        return nobody_there(sq, false);
    return sent_to_nobody(sq);
}

static enum dock_step to_group(struct dock_sq *sq)
{
    bool patient = !sq->deadline_ns || dock_now_ns() < sq->deadline_ns;

    return dock_mcast_send(sq, patient) ? unreached(sq, true) : conclude(sq, true);
}

// The way to the target, connected; NULL: *instead happens.
static inline struct dock_conn *reach(struct dock_sq *sq, enum dock_step *instead)
{
    struct dock_conn *c = way(sq);
    int err;

    if (__builtin_expect(!c, 0)) {
        *instead = unreached(sq, false);
    } else if (__builtin_expect(!c->peer, 0) && (err = c->fabric->connect(c))) {
        *instead = sq->conn ? nobody_there(sq, false) : unreached(sq, err == -EAGAIN);
        c = NULL;
    }
    return c;
}

// XRC: the way to the shared queue that the request names, connected. To one that nobody has, the target says
// what is wrong with it.
static struct dock_conn *reach_shared(struct dock_sq *sq, struct dock_conn *target, enum dock_step *instead)
{
    if (!sq->mid || !dock_xfer_begun(&sq->x))
        sq->way = dock_way(sq->qp);
    if (!sq->way)
        return target;
    if (!sq->way->peer && sq->way->fabric->connect(sq->way) == -EAGAIN) {
        *instead = unreached(sq, true);
        return NULL;
    }
    if (!sq->way->peer)
        return target;
    if (!sq->way->views && !sq->timeout_tries) // the time that it took to come here is over, no retry's
        sq->deadline_ns = 0;
    return sq->way;
}

// For a group: the member that gets this request, whatever becomes of it.
static struct dock_conn *reach_member(struct dock_sq *sq, struct dock_conn *group, enum dock_step *instead)
{
    uint32_t id = group->fabric->pick ? group->fabric->pick(group, sq->x.hint) : 0;

    if (!id) {
        *instead = nobody_there(sq, dock_peek32(&group->peer->dead));
        return NULL;
    }
    sq->x.target = id;
    sq->x.bundle = false;
    return reach(sq, instead);
}

// The port is down: what is sent is lost, and nobody answers.
static enum dock_step unplugged(struct dock_sq *sq)
{
    sq->mid = true;
    if (!dock_xfer_lossy(&sq->x))
        return nobody_there(sq, false);
    dock_sq_abandon(sq); // the rest of a message that was begun
    return sent_to_nobody(sq);
}

// Finished is enough, retired they need not be: earlier WRITEs do not hold a fence up.
static uint32_t reads_in_flight(const struct dock_sq *sq)
{
    return sq->reads - dock_acquire32(&sq->reads_over); // pairs with dock_up_finish
}

// A message that a shared queue has begun to take ends with that queue, whoever the target is.
static bool is_dead(struct dock_conn *c, const struct dock_xfer *x)
{
    return dock_peek32(&dock_conn_target(c)->peer->dead) ||
           (c->via && dock_xfer_begun(x) && dock_peek32(&c->peer->dead));
}

// What became of it, our own completion with it.
static enum dock_step became(struct dock_sq *sq, const struct dock_stay *stay, struct dock_conn *c,
                             enum dock_go go)
{
    struct dock_xfer *x = &sq->x;

    switch (go) {
    case DOCK_GO_DONE:
        return conclude(sq, true);
    case DOCK_GO_PENDING:
        sq->reads += is_read(x);
        return conclude(sq, false);
    case DOCK_GO_MORE:
        return stay->bytes ? DOCK_STEP_ON : DOCK_STEP_BUDGET;
    case DOCK_GO_RNR:
        return receiver_not_ready(sq, c);
    default:
        return nobody_there(sq, is_dead(c, x));
    }
}

static enum dock_step perform(struct dock_sq *sq, struct dock_stay *stay)
{
    struct dock_xfer *x = &sq->x;
    enum dock_step instead = DOCK_STEP_IDLE;

    if (dock_link_down())
        return unplugged(sq);
    if (__builtin_expect(x->service == DOCK_UD && dock_eid_is_group(x->eid), 0))
        return to_group(sq);

    struct dock_conn *c = reach(sq, &instead);
    uint32_t before = x->done;

    if (__builtin_expect(c && x->bundle, 0))
        c = reach_member(sq, c, &instead);
    if (__builtin_expect(c && c->xrc, 0))
        c = reach_shared(sq, c, &instead);
    if (__builtin_expect(!c, 0))
        return instead;
    x->piece = stay->alone ? DOCK_PIECE_ALONE : DOCK_PIECE;
    sq->mid = true;
    if (__builtin_expect(sq->flight != NULL, 0)) { // the finisher may come before start has answered
        sq->flight[sq->seq & (sq->flights - 1)].read = is_read(x);
        x->outstanding = reads_in_flight(sq);
    }
    dock_set64(&sq->busy, dock_peek64(&sq->busy) + 1);
    dock_fence_light(); // pairs with the heavy fence of dock_quiesce: show that local keys are in use, then
                        // look
    enum dock_go go = c->fabric->start(c, x, sq);
    dock_publish64(&sq->busy, dock_peek64(&sq->busy) + 1); // pairs with the acquire in dock_quiesce

    uint32_t moved = x->done - before;
    sq->bytes += moved;
    sq->pieces += moved != 0;
    stay->bytes -= moved < stay->bytes ? moved : stay->bytes;
    enum dock_step on = became(sq, stay, c, go);
    if (go != DOCK_GO_PENDING) // a late fabric's own thread tells
        dock_conn_wake(c);
    return on;
}

// A fence, and the limit of reads in flight, hold a request back until earlier ones are finished.
static bool must_wait(struct dock_sq *sq)
{
    if (__builtin_expect(sq->flight == NULL, 1))
        return false;
    if (DOCK_RULE_FENCE && sq->x.flags & DOCK_F_FENCE && reads_in_flight(sq))
        return true;
    return DOCK_RULE_READS && is_read(&sq->x) && reads_in_flight(sq) >= sq->qp->rd_atomic;
}

static enum dock_step begin(struct dock_sq *sq, struct dock_stay *stay)
{
    struct dock_xfer *x = &sq->x;
    unsigned blocks;
    uint32_t status = dock_sq_fetch(sq, stay->pi, &blocks);

    sq->blocks = (uint8_t)(blocks > DOCK_WQE_BLOCKS ? 1 : blocks);
    if (__builtin_expect(status, 0)) {
        enum dock_step on = fail(sq, status);
        if (blocks > DOCK_WQE_BLOCKS)
            sq->exec = stay->pi;
        return on;
    }
    if (__builtin_expect(!known(x->op) || !allowed(x, (enum dock_service)x->service), 0))
        return fail(sq, known(x->op) && x->service != DOCK_UM ? DOCK_ST_LOC_QP_OP : DOCK_ST_UNSUPPORTED);
    if (__builtin_expect((x->service == DOCK_UD || x->service == DOCK_UM) && x->len > DOCK_MTU, 0))
        return fail(sq, DOCK_ST_LOC_LEN);
    if (__builtin_expect(is_read(x) && sq->qp->rd_atomic == 0, 0)) // it would wait for its turn for ever
        return fail(sq, DOCK_ST_LOC_QP_OP);
    if (__builtin_expect(must_wait(sq), 0))
        return wait(sq, DOCK_STALL_FINISH);
    if (__builtin_expect(is_local(x), 0)) {
        x->status = dock_local_op(sq, x);
        return conclude(sq, true);
    }
    return perform(sq, stay);
}

void dock_sq_abandon(struct dock_sq *sq)
{
    struct dock_conn *c = sq->conn && !sq->conn->xrc ? sq->conn : sq->way;

    if (sq->mid && dock_xfer_begun(&sq->x) && c && c->peer && c->fabric->abandon) {
        c->fabric->abandon(c, &sq->x);
        dock_conn_wake(c);
    }
    sq->x.claimed = false;
    sq->x.broken = false;
    sq->x.done = 0; // once
}

// In an error state what is left is flushed, in order; a request that was under way is one of them. Blocks
// that hold none, which only a raw producer rings for, complete once, at the last of them.
static enum dock_step flush(struct dock_sq *sq, uint32_t pi)
{
    unsigned blocks;

    if (sq->mid) {
        dock_sq_abandon(sq);
    } else {
        uint32_t unfit = dock_sq_unfit(sq, pi);
        if (unfit)
            sq->exec += unfit - 1;
        if (dock_sq_fetch(sq, pi, &blocks) && blocks > DOCK_WQE_BLOCKS) {
            sq->exec = pi;
            return DOCK_STEP_IDLE;
        }
        sq->blocks = (uint8_t)blocks;
    }
    return fail(sq, DOCK_ST_FLUSH);
}

void dock_sq_flush_posted(struct dock_sq *sq)
{
    uint32_t pi = dock_sq_rung(sq);

    while (sq->mid || sq->exec != pi)
        flush(sq, pi);
}

// A draining queue starts nothing, and is drained when what it had started is done.
static enum dock_step drain(struct dock_sq *sq, struct dock_stay *stay)
{
    enum dock_step on = sq->mid ? perform(sq, stay) : DOCK_STEP_IDLE;

    if (on == DOCK_STEP_ON && !sq->mid && dock_peek32(&sq->rec->state) == DOCK_SQD)
        dock_qp_drained(sq->qp);
    return on;
}

// A suspended queue finishes what it had begun, tells that it rests, and keeps what is left. What only waited
// for its receiver was not begun.
static enum dock_step suspend(struct dock_sq *sq, struct dock_stay *stay)
{
    if (sq->mid && dock_xfer_begun(&sq->x))
        return perform(sq, stay);
    sq->mid = false;
    sq->rnr_tries = sq->timeout_tries = 0;
    sq->deadline_ns = 0;
    dock_mark_tell(sq);
    return DOCK_STEP_IDLE;
}

enum dock_step dock_sq_step(struct dock_sq *sq, struct dock_stay *stay)
{
    uint32_t state = dock_peek32(&sq->rec->state); // our own queue: changed under the token we hold

    // A raw producer may post more than fits in flight; whatever becomes of a WR needs its place.
    if (__builtin_expect(sq->flight != NULL, 0) && !sq->mid && !dock_sq_flights_open(sq))
        return wait(sq, DOCK_STALL_FINISH);
    if (__builtin_expect(state == DOCK_RTS, 1))
        return sq->mid ? perform(sq, stay) : begin(sq, stay);
    if (state == DOCK_ERR || state == DOCK_SQE)
        return flush(sq, stay->pi);
    if (state == DOCK_SUSPENDED)
        return suspend(sq, stay);
    return state == DOCK_SQD ? drain(sq, stay) : DOCK_STEP_IDLE;
}
