// SPDX-License-Identifier: MIT
// The senders of a kill test. A group of the initiator is WRITE, READ of the same bytes, FADD, WRITE with
// immediate and SEND; of the third process a SEND. Every WR is signaled, so the order of completions is known
// to the last one.
#include <errno.h>

#include "lib/kill.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/seed.h"

#define WINDOW 6u // groups in flight
#define GROUP_BYTES (KILL_RECV_BYTES + 3 * KILL_SLOT_BYTES)
#define WRITE_BYTES 1024u
#define TAIL_BYTES 64u

enum op { AT_WRITE, AT_READ, AT_ADD, AT_WRITE_IMM, AT_SEND, OPS };

struct sender {
    struct kill_part part;
    struct dock_dev *dev;
    struct end end;
    uint64_t posted, done; // WRs of this life
    uint32_t group;        // next to be posted
    bool failed;
    struct kill_seat *peer, *mine;
};

static bool third(const struct sender *s)
{
    return s->part.role == KILL_THIRD;
}

static unsigned ops_per_group(const struct sender *s)
{
    return third(s) ? 1 : OPS;
}

static enum op op_of(const struct sender *s, uint64_t wr)
{
    return third(s) ? AT_SEND : (enum op)(wr % OPS);
}

// Number of the message that a WR carries: two per group of the initiator.
static uint32_t message_of(const struct sender *s, uint32_t group, enum op op)
{
    return third(s) ? group : group * 2 + (op == AT_SEND);
}

static size_t place(uint32_t group, enum op op)
{
    size_t base = group % WINDOW * (size_t)GROUP_BYTES;

    return op == AT_SEND ? base
                         : base + KILL_RECV_BYTES +
                               (op == AT_READ  ? 1
                                : op == AT_ADD ? 2
                                               : 0) *
                                   KILL_SLOT_BYTES;
}

static void post(struct sender *s, uint32_t group, enum op op)
{
    static const uint8_t opcode[OPS] = {DOCK_OP_WRITE, DOCK_OP_READ, DOCK_OP_FADD, DOCK_OP_WRITE_IMM,
                                        DOCK_OP_SEND_IMM};
    struct dock_mr remote = {.rkey = s->peer->rkey, .token = s->peer->rkey};
    uint32_t n = message_of(s, group, op), len = op == AT_ADD         ? 8
                                                 : op == AT_WRITE_IMM ? TAIL_BYTES
                                                                      : WRITE_BYTES;
    uint64_t slot = s->peer->addr + KILL_SLOTS_AT + group % KILL_SLOTS * KILL_SLOT_BYTES;
    uint64_t at = op == AT_ADD         ? s->peer->addr + KILL_COUNTERS_AT + s->part.life * 8
                  : op == AT_WRITE_IMM ? slot + WRITE_BYTES
                                       : slot;
    char *here = s->end.mem + place(group, op);
    struct dock_sge sge;

    if (op == AT_SEND)
        len = kill_length(&s->part.board->cell, s->part.role, n);
    if (op == AT_WRITE || op == AT_WRITE_IMM || op == AT_SEND)
        kill_fill(here, op == AT_WRITE_IMM ? WRITE_BYTES : len, s->part.role, s->part.life,
                  op == AT_SEND ? n : group * 2);
    struct dock_wr wr = wr_onesided(opcode[op], &s->end, &sge, place(group, op), len, &remote, at);
    wr.id = s->posted;
    wr.imm = n;
    wr.operand = 1;
    if (s->part.board->cell.rm)
        wr_aim(&wr, s->peer->qp[third(s)]);
    int err = end_post(&s->end, &wr);
    if (err)
        kill_wrong(&s->part, "post of WR %llu gave %d (%s)", (unsigned long long)s->posted, err,
                   dock_log_last());
    s->posted++;
}

static void check_success(struct sender *s, uint64_t wr)
{
    uint32_t group = (uint32_t)(wr / ops_per_group(s));
    enum op op = op_of(s, wr);
    const char *here = s->end.mem + place(group, op);

    if (op == AT_READ && !kill_matches(here, WRITE_BYTES, s->part.role, s->part.life, group * 2))
        kill_wrong(&s->part, "READ %llu succeeded with other bytes than were written",
                   (unsigned long long)wr);
    if (op == AT_ADD && *(const uint64_t *)here != group)
        kill_wrong(&s->part, "FADD of group %u fetched %llu", group,
                   (unsigned long long)*(const uint64_t *)here);
    if (op == AT_SEND || op == AT_WRITE_IMM)
        dock_publish32(&s->mine->sent, dock_peek32(&s->mine->sent) + 1);
    if (wr % ops_per_group(s) == ops_per_group(s) - 1)
        dock_publish32(&s->mine->groups, group + 1);
}

// One completion, if there is one: the next in order, and with a status that a death explains.
static bool poll_one(struct sender *s)
{
    struct dock_wc wc;

    if (!end_poll(s->end.scq, &wc))
        return false;
    if (wc.status == DOCK_ST_FLUSH_DONE) // URMA's record of no request
        return true;
    if (wc.id != s->done || s->done == s->posted)
        kill_wrong(&s->part, "completion of WR %llu, WR %llu of %llu is next", (unsigned long long)wc.id,
                   (unsigned long long)s->done, (unsigned long long)s->posted);
    s->done++;
    if (wc.status == DOCK_OK && !s->failed) {
        check_success(s, wc.id);
        return true;
    }
    if (wc.status != (s->failed ? (uint32_t)DOCK_ST_FLUSH : (uint32_t)DOCK_ST_RETRY_EXC))
        kill_wrong(&s->part, "WR %llu: status %#x, expected %#x", (unsigned long long)wc.id, wc.status,
                   s->failed ? DOCK_ST_FLUSH : DOCK_ST_RETRY_EXC);
    s->failed = true;
    atomic_fetch_add(&s->part.board->failures, 1);
    return true;
}

static void poll_until(struct sender *s, uint64_t done, bool stop_at_failure)
{
    uint64_t until = dock_now_ns() + KILL_WAIT_MS * test_slow() * 1000000ull;

    while (s->done < done && !(stop_at_failure && s->failed))
        if (!poll_one(s) && dock_now_ns() > until)
            kill_wrong(&s->part, "hung: WR %llu of %llu does not complete", (unsigned long long)s->done,
                       (unsigned long long)s->posted);
}

// Things that happen beside the traffic: a region comes and goes, the send queue pauses.
static void housekeep(struct sender *s)
{
    struct dock_qp_mod m = {.mask = DOCK_MOD_STATE, .state = DOCK_SQD};
    struct dock_mr *mr;
    int err;

    if (s->group % 4 != 3)
        return;
    err = dock_mr_register(s->dev, s->end.pd, (uintptr_t)s->end.mem, 4096, (uintptr_t)s->end.mem,
                           DOCK_ACCESS_LOCAL_WRITE, &mr);
    if (!err)
        err = dock_mr_deregister(mr);
    if (err)
        kill_wrong(&s->part, "registering beside the traffic: %d (%s)", err, dock_log_last());
    if (dock_qp_state(s->end.qp) != DOCK_RTS || s->part.board->cell.rm) // it has failed, or knows no pause
        return;
    if (dock_qp_modify(s->end.qp, &m))
        return;
    m.state = DOCK_RTS;
    err = dock_qp_modify(s->end.qp, &m);
    if (err && dock_qp_state(s->end.qp) != DOCK_ERR)
        kill_wrong(&s->part, "SQD to RTS: %d in state %d (%s)", err, dock_qp_state(s->end.qp),
                   dock_log_last());
}

static void send_group(struct sender *s)
{
    uint32_t group = s->group++;
    uint64_t before = (uint64_t)ops_per_group(s) * (group + 1);

    if (before > WINDOW * ops_per_group(s))
        poll_until(s, before - WINDOW * ops_per_group(s), true);
    for (unsigned i = 0; i < OPS && !s->failed; i++)
        if (!third(s) || i == AT_SEND)
            post(s, group, (enum op)i);
    while (!s->failed && poll_one(s))
        ;
    housekeep(s);
    if (s->part.board->cell.asleep && !s->failed) { // else the target would never be
        poll_until(s, s->posted, true);
        test_nap_us(300);
    }
}

// A failure was seen: everything else is flushed, also what is posted from now on.
static void check_flushes(struct sender *s)
{
    poll_until(s, s->posted, false);
    if (dock_qp_state(s->end.qp) != DOCK_ERR)
        kill_wrong(&s->part, "the queue is in state %d after a failure", dock_qp_state(s->end.qp));
    post(s, s->group, AT_SEND);
    poll_until(s, s->posted, false);
    test_nap_us(1000);
    struct dock_wc wc;
    if (end_poll(s->end.scq, &wc) && wc.status != DOCK_ST_FLUSH_DONE)
        kill_wrong(&s->part, "a completion more than there were WRs: id %llu status %#x",
                   (unsigned long long)wc.id, wc.status);
    kill_noticed(&s->part);
}

static void make_queue(struct sender *s)
{
    struct dock_qp_attr a = {.service = s->part.board->cell.rm ? DOCK_RM : DOCK_RC,
                             .pd = s->end.pd,
                             .send_cq = s->end.scq,
                             .recv_cq = s->end.rcq,
                             .max_send_wr = 64,
                             .max_recv_wr = 4,
                             .max_send_sge = 2,
                             .max_recv_sge = 1,
                             .max_inline = 64};
    int err = dock_qp_create(s->dev, &a, &s->end.qp);

    if (err)
        kill_wrong(&s->part, "a new queue pair: %d (%s)", err, dock_log_last());
}

// A queue for the next life: the old one from RESET on, or another.
static void renew(struct sender *s)
{
    struct dock_qp_mod m = {.mask = DOCK_MOD_STATE, .state = DOCK_RESET};
    int err;

    if (dock_decide(s->part.board->cell.seed, 1, 0) & 1)
        err = dock_qp_modify(s->end.qp, &m);
    else {
        err = dock_qp_destroy(s->end.qp);
        make_queue(s);
    }
    if (err)
        kill_wrong(&s->part, "leaving the dead connection: %d (%s)", err, dock_log_last());
}

// false: the target died before the connection stood.
static bool begin_life(struct sender *s)
{
    struct kill_board *b = s->part.board;

    s->mine = &b->seat[s->part.life][s->part.role];
    s->peer = &b->seat[s->part.life][KILL_TARGET];
    s->posted = s->done = s->group = 0;
    s->failed = false;
    s->mine->qp[0] = dock_qp_number(s->end.qp);
    dock_publish32(&s->mine->phase, KILL_DESCRIBED);
    if (!kill_await(&s->part, &s->peer->phase, KILL_DESCRIBED, KILL_TARGET, "the target's description"))
        return false;
    if (s->part.life == 0)
        kill_arm(s->dev);
    end_connect(&s->end, s->peer->qp[third(s)], NULL);
    return kill_await(&s->part, &s->peer->phase, KILL_READY, KILL_TARGET, "the target to be ready");
}

static bool stopping(const struct sender *s)
{
    return third(s) ? dock_acquire32(&s->part.board->stop_third)
                    : dock_acquire32(&s->part.board->stop_senders[s->part.life]);
}

// All is sent; the target may still die while it ends. Then the next request tells.
static bool outlive(struct sender *s)
{
    poll_until(s, s->posted, true);
    if (s->failed)
        return false;
    dock_publish32(&s->mine->phase, KILL_DRAINED);
    if (kill_await(&s->part, &s->peer->phase, KILL_DONE, KILL_TARGET, "the target to end"))
        return true;
    send_group(s);
    poll_until(s, s->posted, true);
    return false;
}

// One life. true: it ended in order; false: the target died.
static bool live(struct sender *s)
{
    if (!begin_life(s))
        return false;
    dock_publish32(&s->mine->phase, KILL_READY);
    while (!s->failed && !stopping(s))
        send_group(s);
    if (!s->failed && outlive(s))
        return true;
    uint64_t until = dock_now_ns() + KILL_WAIT_MS * test_slow() * 1000000ull;
    while (!s->failed) { // what was sent to the dying one may still have succeeded
        send_group(s);
        if (dock_now_ns() > until)
            kill_wrong(&s->part, "requests to the dead target go on succeeding");
    }
    check_flushes(s);
    return false;
}

static void open_sender(struct sender *s)
{
    struct end_opts o = {.mem = WINDOW * GROUP_BYTES, .service = s->part.board->cell.rm ? DOCK_RM : DOCK_RC};
    struct dock_config c = {.stopped_ms = KILL_STOPPED_MS};
    int err = dock_dev_open(&c, &s->dev);

    if (err)
        kill_wrong(&s->part, "dock_dev_open: %d (%s)", err, dock_log_last());
    end_open(&s->end, s->dev, &o);
}

int kill_initiator(void *part)
{
    struct sender s = {.part = *(const struct kill_part *)part};

    kill_prepare(&s.part);
    open_sender(&s);
    while (!live(&s) && !third(&s)) {
        if (++s.part.life == KILL_LIVES)
            kill_wrong(&s.part, "its new peer died as well");
        renew(&s);
    }
    end_close(&s.end);
    int err = dock_dev_close(s.dev);
    if (err)
        kill_wrong(&s.part, "dock_dev_close: %d (%s)", err, dock_log_last());
    dock_publish32(&s.mine->phase, KILL_DONE);
    return 0;
}
