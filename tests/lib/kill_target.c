// SPDX-License-Identifier: MIT
// The target of a kill test: it receives, checks every byte, and keeps account of every receive that it
// posted.
#include <errno.h>
#include <poll.h>

#include "lib/kill.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/seed.h"
#include "device/internal.h"

#define WRITE_BYTES 1024u
#define TAIL_BYTES 64u

struct target {
    struct kill_part part;
    struct dock_dev *dev;
    struct dock_chan *chan;
    struct end end;      // its qp is the initiator's
    struct dock_qp *qp2; // the third's
    struct dock_rq *srq;
    bool busy[KILL_BUFFERS];                // posted and not yet completed
    uint32_t messages[2], flushed, handled; // messages: from the initiator in this life, from the third
    bool armed;
};

static const struct kill_cell *cell(const struct target *t)
{
    return &t->part.board->cell;
}

static struct dock_rq *rq_of(const struct target *t)
{
    return t->srq ? t->srq : dock_qp_rq(t->end.qp);
}

static void post_receive(struct target *t, unsigned i)
{
    struct dock_sge sge = {
        .addr = (uintptr_t)t->end.mem + i * KILL_RECV_BYTES, .len = KILL_RECV_BYTES, .key = t->end.mr->lkey};
    int err;

    dock_recv_begin(rq_of(t));
    err = dock_recv_put(rq_of(t), i, &sge, 1);
    dock_recv_end(rq_of(t));
    if (err)
        kill_wrong(&t->part, "posting receive %u: %d (%s)", i, err, dock_log_last());
    t->busy[i] = true;
}

static void post_missing(struct target *t)
{
    for (unsigned i = 0; i < KILL_BUFFERS; i++)
        if (!t->busy[i])
            post_receive(t, i);
}

static unsigned outstanding(const struct target *t)
{
    unsigned n = 0;

    for (unsigned i = 0; i < KILL_BUFFERS; i++)
        n += t->busy[i];
    return n;
}

static void check_message(struct target *t, const struct dock_wc *wc)
{
    bool from_third = t->qp2 && wc->qp == t->qp2;
    enum kill_role role = from_third ? KILL_THIRD : KILL_INITIATOR;
    uint32_t n = t->messages[from_third]++, len = kill_length(cell(t), role, n);
    unsigned life = from_third ? 0 : t->part.life;
    const char *slot = t->end.mem + KILL_SLOTS_AT + n / 2 % KILL_SLOTS * KILL_SLOT_BYTES;

    if (wc->imm != n)
        kill_wrong(&t->part, "message %u of the %s comes, %u is next", (unsigned)wc->imm,
                   kill_role_name[role], n);
    if (!from_third && n % 2 == 0) {
        if (wc->op != DOCK_ROP_WRITE_IMM || wc->bytes != TAIL_BYTES)
            kill_wrong(&t->part, "message %u: operation %u of %u bytes, expected a WRITE with immediate", n,
                       wc->op, wc->bytes);
        if (!kill_matches(slot, WRITE_BYTES, role, life, n) ||
            !kill_matches(slot + WRITE_BYTES, TAIL_BYTES, role, life, n))
            kill_wrong(&t->part, "message %u: what was written before it is not there", n);
        return;
    }
    if (wc->op != DOCK_ROP_SEND_IMM || wc->bytes != len)
        kill_wrong(&t->part, "message %u: operation %u of %u bytes, expected a SEND of %u", n, wc->op,
                   wc->bytes, len);
    if (!kill_matches(t->end.mem + wc->id * KILL_RECV_BYTES, len, role, life, n))
        kill_wrong(&t->part, "message %u of the %s, %u bytes: received other bytes than were sent", n,
                   kill_role_name[role], len);
}

// A completion that was there: account for it, check it, post its receive anew.
static void handle(struct target *t, const struct dock_wc *wc, bool repost)
{
    if (!wc->recv || wc->id >= KILL_BUFFERS || !t->busy[wc->id])
        kill_wrong(&t->part, "completion of receive %llu, which is not posted", (unsigned long long)wc->id);
    t->busy[wc->id] = false;
    if (wc->status == DOCK_OK)
        check_message(t, wc);
    else if (wc->status == DOCK_ST_FLUSH && wc->qp != t->qp2)
        t->flushed++;
    else
        kill_wrong(&t->part, "a receive of the %s failed with status %#x",
                   kill_role_name[wc->qp == t->qp2 ? KILL_THIRD : KILL_INITIATOR], wc->status);
    t->handled++;
    if (repost)
        post_receive(t, (unsigned)wc->id);
}

static bool poll_all(struct target *t, bool repost)
{
    struct dock_wc wc;
    bool any = false;

    while (end_poll(t->end.rcq, &wc)) {
        handle(t, &wc, repost);
        any = true;
    }
    return any;
}

static bool readable(struct target *t, unsigned ms)
{
    struct pollfd p = {.fd = dock_chan_fd(t->chan), .events = POLLIN};

    return poll(&p, 1, (int)ms) == 1;
}

// Is there a completion? Polling would take it, and with it the event that is still owed.
static bool waits(struct target *t)
{
    uint32_t dw0;

    return dock_cq_look(&t->end.rcq->view, t->end.rcq->ci, &dw0) != NULL;
}

// Sleep until the channel tells. A completion that is there without an event is a lost wake-up.
static void sleep_once(struct target *t)
{
    void *user;

    if (!t->armed) {
        dock_cq_arm(t->end.rcq, false, false);
        t->armed = true;
        if (poll_all(t, true)) // came before the arm
            return;
    }
    if (!readable(t, 20)) {
        if (waits(t) && !readable(t, 1000 * test_slow()))
            kill_wrong(&t->part, "a completion came and the channel slept on");
        return;
    }
    if (dock_chan_get(t->chan, &user))
        kill_wrong(&t->part, "the channel is readable and has no event");
    dock_cq_ack(t->end.rcq, 1);
    t->armed = false;
    poll_all(t, true);
}

// What the dead one has left in the CQ was told to a sleeper.
static void poll_last(struct target *t)
{
    if (cell(t)->asleep && t->armed && waits(t) && !readable(t, 1000 * test_slow()))
        kill_wrong(&t->part, "a completion came from the dead one and the channel slept on");
    poll_all(t, false);
}

static void housekeep(struct target *t)
{
    struct dock_qp_mod m = {.mask = DOCK_MOD_STATE, .state = DOCK_SQD};
    struct dock_mr *mr;
    int err;

    if (t->handled < 8)
        return;
    t->handled = 0;
    err = dock_mr_register(t->dev, t->end.pd, (uintptr_t)t->end.mem, 4096, (uintptr_t)t->end.mem,
                           DOCK_ACCESS_LOCAL_WRITE | DOCK_ACCESS_REMOTE_READ, &mr);
    if (!err)
        err = dock_mr_deregister(mr); // waits for those who work in our memory, dead ones too
    if (!err && !cell(t)->rm)
        err = dock_qp_modify(t->end.qp, &m);
    m.state = DOCK_RTS;
    if (!err && !cell(t)->rm)
        err = dock_qp_modify(t->end.qp, &m);
    if (err)
        kill_wrong(&t->part, "registering and pausing beside the traffic: %d (%s)", err, dock_log_last());
}

static void make_queue(struct target *t, struct dock_qp **qp)
{
    struct dock_qp_attr a = {.service = cell(t)->rm ? DOCK_RM : DOCK_RC,
                             .pd = t->end.pd,
                             .send_cq = t->end.scq,
                             .recv_cq = t->end.rcq,
                             .srq = t->srq,
                             .max_send_wr = 4,
                             .max_recv_wr = KILL_BUFFERS,
                             .max_send_sge = 1,
                             .max_recv_sge = 1};
    int err = dock_qp_create(t->dev, &a, qp);

    if (err)
        kill_wrong(&t->part, "a new queue pair: %d (%s)", err, dock_log_last());
}

static void set_error(struct target *t, struct dock_qp *qp)
{
    struct dock_qp_mod m = {.mask = DOCK_MOD_STATE, .state = DOCK_ERR};
    int err = dock_qp_modify(qp, &m);

    if (err)
        kill_wrong(&t->part, "to ERR: %d (%s)", err, dock_log_last());
}

// The receives of an own queue in error are all flushed, each once.
static void await_flushes(struct target *t)
{
    uint64_t until = dock_now_ns() + KILL_WAIT_MS * test_slow() * 1000000ull;

    while (outstanding(t)) {
        poll_all(t, false);
        if (dock_now_ns() > until)
            kill_wrong(&t->part, "hung: %u receives of the queue in error are not flushed", outstanding(t));
    }
}

// What a shared queue gave back without a completion when a queue pair that had claimed it was destroyed.
static void recover_returned(struct target *t)
{
    bool still[KILL_BUFFERS] = {false};

    for (uint32_t n = 0; n < t->srq->depth; n++)
        if (t->srq->out[n])
            still[t->srq->wrid[n]] = true;
    for (unsigned i = 0; i < KILL_BUFFERS; i++)
        t->busy[i] = still[i];
}

// The initiator is dead: leave its connection in one of the ways that programs use, ready for another peer.
static void leave_dead(struct target *t)
{
    struct dock_qp_mod m = {.mask = DOCK_MOD_STATE, .state = DOCK_RESET};
    unsigned way =
        (unsigned)(dock_decide(cell(t)->seed, 2, 0) % 3); // ERR and destroy, ERR and RESET, destroy
    int err;

    if (way < 2) {
        set_error(t, t->end.qp);
        if (!t->srq)
            await_flushes(t);
        poll_all(t, false);
    }
    if (way == 1) {
        err = dock_qp_modify(t->end.qp, &m);
    } else {
        err = dock_qp_destroy(t->end.qp);
        make_queue(t, &t->end.qp);
    }
    if (err)
        kill_wrong(&t->part, "leaving the dead connection: %d (%s)", err, dock_log_last());
    if (t->srq)
        recover_returned(t);
    else
        memset(t->busy, 0, sizeof t->busy);
    post_missing(t);
    kill_noticed(&t->part);
}

static void check_account(struct target *t, bool alive)
{
    uint32_t sent = dock_acquire32(&t->part.board->seat[t->part.life][KILL_INITIATOR].sent);

    if (alive ? t->messages[0] != sent : t->messages[0] < sent)
        kill_wrong(&t->part, "%u messages of the %s initiator received, %u succeeded there", t->messages[0],
                   alive ? "living" : "dead", sent);
}

static void begin_life(struct target *t)
{
    struct kill_seat *mine = kill_seat(&t->part, t->part.life, KILL_TARGET);
    struct kill_seat *peer = kill_seat(&t->part, t->part.life, KILL_INITIATOR);
    struct kill_seat *x = kill_seat(&t->part, 0, KILL_THIRD);

    t->messages[0] = 0;
    memset(t->end.mem + KILL_COUNTERS_AT, 0, 64);
    mine->qp[0] = dock_qp_number(t->end.qp);
    mine->qp[1] = t->qp2 ? dock_qp_number(t->qp2) : 0;
    mine->rkey = t->end.mr->rkey;
    mine->addr = (uintptr_t)t->end.mem;
    dock_publish32(&mine->phase, KILL_DESCRIBED);
    if (!kill_await(&t->part, &peer->phase, KILL_DESCRIBED, KILL_INITIATOR, "the initiator's description"))
        return;
    if (t->part.life == 0)
        kill_arm(t->dev);
    end_connect(&t->end, peer->qp[0], NULL);
    if (t->qp2 && t->part.life == t->part.first) {
        struct end second = t->end;
        kill_await(&t->part, &x->phase, KILL_DESCRIBED, KILL_ROLES, "the third's description");
        second.qp = t->qp2;
        end_connect(&second, x->qp[0], NULL);
    }
    post_missing(t);
    dock_publish32(&mine->phase, KILL_READY);
}

// One life. true: it was stopped in order; false: the initiator died.
static bool live(struct target *t)
{
    begin_life(t);
    while (!dock_acquire32(&t->part.board->stop_target)) {
        if (t->part.life == 0 && kill_is_dead(&t->part, KILL_INITIATOR))
            return false;
        if (cell(t)->asleep)
            sleep_once(t);
        else
            poll_all(t, true);
        housekeep(t);
        dock_publish32(&kill_seat(&t->part, t->part.life, KILL_TARGET)->groups, t->messages[0]);
    }
    return true;
}

static void open_target(struct target *t)
{
    struct dock_config c = {.stopped_ms = KILL_STOPPED_MS, .force_plain = cell(t)->plain}; // never adopted
    struct end_opts o = {
        .mem = KILL_TARGET_BYTES, .plain = cell(t)->plain, .service = cell(t)->rm ? DOCK_RM : DOCK_RC};
    int err = dock_dev_open(&c, &t->dev);

    if (!err)
        err = dock_chan_create(t->dev, &t->chan);
    if (err)
        kill_wrong(&t->part, "dock_dev_open: %d (%s)", err, dock_log_last());
    o.chan = t->chan;
    end_open(&t->end, t->dev, &o);
    err = dock_qp_destroy(t->end.qp);
    if (!err && cell(t)->third && t->part.first == 0) {
        struct dock_srq_attr a = {.pd = t->end.pd, .max_wr = KILL_BUFFERS, .max_sge = 1};
        err = dock_srq_create(t->dev, &a, &t->srq);
    }
    if (err)
        kill_wrong(&t->part, "a shared receive queue: %d (%s)", err, dock_log_last());
    make_queue(t, &t->end.qp);
    if (t->srq)
        make_queue(t, &t->qp2);
}

// No receive was lost: with all queue pairs gone each is either posted or free.
static void close_srq(struct target *t)
{
    struct dock_rqrec *r = t->srq->rec;
    uint32_t posted = dock_peek32(&r->pi) - dock_word_value(dock_peek64(&r->ci));

    uint32_t spare = dock_peek32(&t->srq->spare_given) - t->srq->spare_taken;

    if (posted + spare != KILL_BUFFERS)
        kill_wrong(&t->part, "of %u receives of the shared queue %u are posted and %u free", KILL_BUFFERS,
                   posted, spare);
    if (dock_srq_destroy(t->srq))
        kill_wrong(&t->part, "dock_srq_destroy (%s)", dock_log_last());
}

static void close_target(struct target *t)
{
    int err;

    set_error(t, t->end.qp);
    if (t->srq)
        poll_all(t, false);
    else
        await_flushes(t);
    err = dock_qp_destroy(t->end.qp);
    t->end.qp = NULL;
    if (t->qp2)
        err = err ? err : dock_qp_destroy(t->qp2);
    if (err)
        kill_wrong(&t->part, "dock_qp_destroy: %d (%s)", err, dock_log_last());
    if (t->srq)
        close_srq(t);
    end_close(&t->end);
    err = dock_chan_destroy(t->chan);
    if (!err)
        err = dock_dev_close(t->dev);
    if (err)
        kill_wrong(&t->part, "dock_dev_close: %d (%s)", err, dock_log_last());
}

int kill_target(void *part)
{
    struct target t = {.part = *(const struct kill_part *)part};

    kill_prepare(&t.part);
    open_target(&t);
    while (!live(&t)) {
        poll_last(&t);
        check_account(&t, false);
        leave_dead(&t);
        t.part.life++;
    }
    poll_all(&t, true);
    check_account(&t, true);
    if (t.qp2 && t.messages[1] != dock_acquire32(&kill_seat(&t.part, 0, KILL_THIRD)->sent))
        kill_wrong(&t.part, "%u messages of the third received, %u succeeded there", t.messages[1],
                   dock_peek32(&kill_seat(&t.part, 0, KILL_THIRD)->sent));
    close_target(&t);
    for (unsigned life = 0; life <= t.part.life; life++) // the third knows only the first
        dock_publish32(&kill_seat(&t.part, life, KILL_TARGET)->phase, KILL_DONE);
    return 0;
}
