// SPDX-License-Identifier: MIT
// Bits of a living peer's arena are flipped, one at a time, in every field of its port, its segment entry,
// its queue record, its completion and receive queues and its rings, while both sides send. Nobody crashes or
// hangs, no byte outside of what is registered changes, and what succeeds one-sidedly has moved the right
// bytes. Whoever has a request or a queue in error has logged a line that says why.
// One flip: DRYDOCK_SEED=... bitflip_test INDEX
// timeout: 240
// long-timeout: 1800
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/seed.h"
#include "device/internal.h"
#include "lib/fork.h"
#include "lib/pair.h"

#define FLIPS 3000u
#define WAIT_MS 8000u // for one step of one side
#define GUARD 8192u
#define REGION 16384u
#define SENDS 2u

enum command { NOTHING, OPEN, CONNECT, TRAFFIC, CLOSE };

struct desc {
    uint32_t qp, rkey;
    uint64_t addr;
};

struct board {
    dock_a32 asked, done; // {number of the command:24, command:8}; done by the peer
    dock_a32 index;       // of the flip
    struct desc desc[2];
    dock_a32 failed;     // flips that somebody noticed by a status
    dock_a32 reasons[2]; // lines since the flip that say why, of us and of the peer
    char field[64], words[256];
    uint64_t seed;
    uint32_t first, flips;
};

struct side {
    struct dock_dev *dev;
    struct end end;
    char *memory; // GUARD bytes of pattern, the region, GUARD bytes of pattern
    struct dock_mr *mr;
    uint32_t rkey;
};

static struct board *board;
static unsigned role; // 0: we, 1: the peer
static bool shown;    // the log goes on to stderr as well

static void __attribute__((noreturn, format(printf, 2, 3))) wrong(const char *who, const char *what, ...)
{
    int n = snprintf(board->words, sizeof board->words, "%s: ", who);
    va_list args;

    va_start(args, what);
    vsnprintf(board->words + n, sizeof board->words - (size_t)n, what, args);
    va_end(args);
    _exit(1);
}

// ---- what both sides do

// A line that tells a status in figures, or that a lock was taken over, is no reason.
static bool hear(enum dock_log_level level, const char *line)
{
    if (level <= DOCK_LOG_INFO && !strstr(line, "fails with status"))
        atomic_fetch_add(&board->reasons[role], 1);
    return !shown;
}

static void need_reason(const char *who, uint32_t status)
{
    if (dock_peek32(&board->reasons[role]) == 0)
        wrong(who, "in error, and no line says why (the first status was %#x)", status);
}

static void open_device(struct side *s)
{
    struct dock_config c = {.stopped_ms = 300};

    dock_log_set_sink(hear);
    if (dock_dev_open(&c, &s->dev))
        wrong("a side", "dock_dev_open");
}

static void open_end(struct side *s, struct desc *d)
{
    struct end_opts o = {.wr = 8, .cqe = 16, .mem = 4096};
    uint32_t size = 2 * GUARD + REGION;

    end_open(&s->end, s->dev, &o);
    if (dock_mem_alloc(s->dev, size, (void **)&s->memory))
        wrong("a side", "dock_mem_alloc");
    memset(s->memory, 0x5a, size);
    if (dock_mr_register(s->dev, s->end.pd, (uintptr_t)s->memory + GUARD, REGION,
                         (uintptr_t)s->memory + GUARD,
                         DOCK_ACCESS_LOCAL_WRITE | DOCK_ACCESS_REMOTE_READ | DOCK_ACCESS_REMOTE_WRITE |
                             DOCK_ACCESS_REMOTE_ATOMIC,
                         &s->mr))
        wrong("a side", "dock_mr_register");
    *d = (struct desc){dock_qp_number(s->end.qp), s->mr->rkey, (uintptr_t)s->memory + GUARD};
}

static void check_guards(const struct side *s, const char *who)
{
    for (uint32_t i = 0; i < GUARD; i++)
        if (s->memory[i] != 0x5a || s->memory[GUARD + REGION + i] != 0x5a)
            wrong(who, "a byte outside of its region was changed");
}

static void close_end(struct side *s, const char *who)
{
    int err = dock_qp_destroy(s->end.qp);

    s->end.qp = NULL;
    check_guards(s, who);
    if (err || dock_mr_deregister(s->mr))
        wrong(who, "destroying the queue or the region failed");
    dock_mem_free(s->dev, s->memory, 2 * GUARD + REGION);
    end_close(&s->end);
}

static void connect_to(struct side *s, const struct desc *peer)
{
    struct dock_qp_mod m = {.timeout = 8,
                            .retry = 1,
                            .rnr_retry = 2,
                            .rnr_timer = 1,
                            .rd_atomic = 4,
                            .dest_rd_atomic = 4,
                            .access = DOCK_ACCESS_REMOTE_READ | DOCK_ACCESS_REMOTE_WRITE |
                                      DOCK_ACCESS_REMOTE_ATOMIC};

    end_connect(&s->end, peer->qp, &m);
}

static void post_receives(struct side *s)
{
    for (unsigned i = 0; i < SENDS; i++) {
        struct dock_sge sge = {(uintptr_t)s->memory + GUARD + 8192 + i * 1024, 1024, s->mr->lkey};
        dock_recv_begin(dock_qp_rq(s->end.qp));
        dock_recv_put(dock_qp_rq(s->end.qp), i, &sge, 1);
        dock_recv_end(dock_qp_rq(s->end.qp));
    }
}

// Post, as far as the queue takes it; completions are counted by wait_sends.
static unsigned post(struct side *s, const struct desc *peer, uint8_t op, uint32_t here, uint32_t there,
                     uint32_t len)
{
    struct dock_sge sge = {(uintptr_t)s->memory + GUARD + here, len, s->mr->lkey};
    struct dock_wr wr = {.op = op,
                         .nsge = 1,
                         .sge = &sge,
                         .flags = DOCK_F_COMPLETE,
                         .rkey = peer->rkey,
                         .raddr = peer->addr + there,
                         .operand = 1,
                         .id = op};

    return end_post(&s->end, &wr) == 0;
}

// All that was posted completes, or at the latest when the queue is put into error. true: all succeeded. What
// the device itself put into error has a reason.
static bool wait_sends(struct side *s, unsigned posted, bool ours, const char *who)
{
    // Ours waits for longer than the 3 s after which a move that never ends is given up.
    uint64_t begin = dock_now_ns(), half = WAIT_MS * test_slow() * 500000ull;
    struct dock_qp_mod m = {.mask = DOCK_MOD_STATE, .state = DOCK_ERR};
    bool good = true, forced = false;
    uint32_t first = 0; // status that is none of success
    struct dock_wc wc;

    while (posted) {
        if (end_poll(s->end.scq, &wc)) {
            posted--;
            good = good && wc.status == DOCK_OK;
            first = first ? first : wc.status;
        } else if (!forced && dock_now_ns() - begin > (ours ? half * 2 : half / 40)) {
            dock_qp_modify(s->end.qp, &m);
            forced = true;
        } else if (dock_now_ns() - begin > (ours ? half * 3 : half / 20)) {
            if (!ours)
                return false; // its own CQ is what was hit
            wrong(who, "hung: a request does not complete, nor is it flushed");
        }
    }
    if (forced && ours)
        wrong(who, "hung: requests did not complete before their queue was put into error");
    if (ours ? !good : !forced && dock_peek32(&s->end.qp->rec->state) == DOCK_ERR)
        need_reason(who, first);
    return good;
}

static void drain_receives(struct side *s)
{
    struct dock_wc wc;

    for (unsigned i = 0; i < SENDS * 2 && end_wait(s->end.rcq, &wc, 2); i++)
        ;
}

static bool traffic(struct side *s, const struct desc *peer, bool ours, uint64_t pattern)
{
    char *region = s->memory + GUARD;
    unsigned posted = 0;
    bool good;

    for (unsigned i = 0; i < 1024; i++)
        region[i] = (char)dock_decide(pattern, i, 0);
    memset(region + 2048, 0, 1024);
    posted += post(s, peer, DOCK_OP_WRITE, 0, 4096, 1000);
    posted += post(s, peer, DOCK_OP_READ, 2048, 4096, 1000);
    posted += post(s, peer, DOCK_OP_FADD, 4000, 7 * 1024, 8);
    for (unsigned i = 0; i < SENDS; i++)
        posted += post(s, peer, DOCK_OP_SEND, 0, 0, 512);
    good = wait_sends(s, posted, ours, ours ? "we" : "the peer") && posted == 3 + SENDS;
    if (good && ours && memcmp(region, region + 2048, 1000))
        wrong("we", "WRITE and READ succeeded and other bytes came back");
    drain_receives(s);
    return good;
}

// ---- the peer

static int __attribute__((noreturn)) peer(void *arg)
{
    struct side s = {0};
    uint32_t seen = 0;

    (void)arg;
    role = 1;
    open_device(&s);
    for (;;) {
        uint32_t asked = dock_acquire32(&board->asked);
        if (asked == seen) {
            test_nap_us(20);
            continue;
        }
        switch (asked & 0xff) {
        case OPEN:
            open_end(&s, &board->desc[1]);
            break;
        case CONNECT:
            connect_to(&s, &board->desc[0]);
            post_receives(&s);
            break;
        case TRAFFIC:
            traffic(&s, &board->desc[0], false, asked);
            post_receives(&s);
            break;
        default:
            close_end(&s, "the peer");
        }
        seen = asked;
        dock_publish32(&board->done, asked);
    }
}

// ---- we

static void tell(enum command c)
{
    dock_publish32(&board->asked, (dock_peek32(&board->asked) & ~0xffu) + 0x100 + c);
}

static void await_peer(void)
{
    uint64_t until = dock_now_ns() + WAIT_MS * test_slow() * 2000000ull;

    while (dock_acquire32(&board->done) != dock_peek32(&board->asked)) {
        if (dock_now_ns() > until)
            wrong("the peer", "hung: it does not end its step");
        test_nap_us(20);
    }
}

struct field {
    const char *name;
    uint64_t at; // in the peer's arena
    uint32_t bytes;
};

#define FIELD(base, type, member)                                                                            \
    {                                                                                                        \
#type "." #member, (base) + offsetof(struct type, member), sizeof(((struct type *)0)->member)        \
    }

// One of all the fields that the peer shows us.
static struct field choose(const struct dock_conn *c, uint32_t tid, uint64_t r)
{
    struct dock_port *p = c->peer->port;
    char *base = (char *)p;
    uint64_t q = (uint64_t)((char *)c->queue - base), cq = c->queue->cq, rq = c->queue->rq, sq = c->queue->sq;
    uint64_t h = (uint64_t)((char *)c->hazard - base), seg = p->segments + tid * sizeof(struct dock_segrec);
    const struct field all[] = {
        FIELD(0, dock_port, magic),
        FIELD(0, dock_port, version),
        FIELD(0, dock_port, who),
        FIELD(0, dock_port, pid),
        FIELD(0, dock_port, nsegments),
        FIELD(0, dock_port, segments),
        FIELD(0, dock_port, hazards),
        FIELD(0, dock_port, asleep),
        FIELD(0, dock_port, attention),
        FIELD(0, dock_port, nqueues),
        FIELD(0, dock_port, ncqs),
        FIELD(0, dock_port, hazard_high),
        FIELD(0, dock_port, atomic_lock),
        FIELD(0, dock_port, full_fences),
        FIELD(0, dock_port, started_ns),
        FIELD(0, dock_port, program),
        FIELD(0, dock_port, moving),
        FIELD(0, dock_port, fatal),
        FIELD(0, dock_port, moment),
        FIELD(0, dock_port, fallback_bytes),
        FIELD(0, dock_port, fallback_calls),
        FIELD(0, dock_port, arena_bytes),
        FIELD(0, dock_port, dropped),
        FIELD(0, dock_port, adopt),
        {"dock_port.block", offsetof(struct dock_port, block) + (c->dest_qp >> 8) * 8ull, 8},
        FIELD(h, dock_hazard, owner),
        FIELD(h, dock_hazard, busy),
        FIELD(seg, dock_segrec, generation),
        FIELD(seg, dock_segrec, va),
        FIELD(seg, dock_segrec, len),
        FIELD(seg, dock_segrec, off),
        FIELD(seg, dock_segrec, addr),
        FIELD(seg, dock_segrec, token),
        FIELD(seg, dock_segrec, pd),
        FIELD(seg, dock_segrec, access),
        FIELD(seg, dock_segrec, kind_qpn),
        FIELD(seg, dock_segrec, lkey),
        FIELD(seg, dock_segrec, sum),
        FIELD(q, dock_qrec, state),
        FIELD(q, dock_qrec, serial),
        FIELD(q, dock_qrec, kind_service),
        FIELD(q, dock_qrec, id),
        FIELD(q, dock_qrec, peer_id),
        FIELD(q, dock_qrec, peer_who),
        FIELD(q, dock_qrec, pd),
        FIELD(q, dock_qrec, access),
        FIELD(q, dock_qrec, rq),
        FIELD(q, dock_qrec, cq),
        FIELD(q, dock_qrec, qkey),
        FIELD(q, dock_qrec, rnr_timer),
        FIELD(q, dock_qrec, rd_atomic),
        FIELD(q, dock_qrec, sum),
        FIELD(q, dock_qrec, attention),
        FIELD(q, dock_qrec, first_cause),
        FIELD(q, dock_qrec, messages_in),
        FIELD(q, dock_qrec, bytes_in),
        FIELD(q, dock_qrec, cookie),
        FIELD(q, dock_qrec, page),
        FIELD(q, dock_qrec, posted),
        FIELD(q, dock_qrec, rings),
        FIELD(q, dock_qrec, bytes_out),
        FIELD(q, dock_qrec, cqes),
        FIELD(q, dock_qrec, rnr),
        FIELD(q, dock_qrec, by_poster),
        FIELD(q, dock_qrec, by_poller),
        FIELD(q, dock_qrec, by_engine),
        FIELD(q, dock_qrec, doorbell),
        FIELD(q, dock_qrec, sq_blocks),
        FIELD(q, dock_qrec, sq_depth),
        FIELD(q, dock_qrec, sq),
        FIELD(q, dock_qrec, executed),
        FIELD(cq, dock_cqrec, ring),
        FIELD(cq, dock_cqrec, size),
        FIELD(cq, dock_cqrec, depth),
        FIELD(cq, dock_cqrec, id),
        FIELD(cq, dock_cqrec, flags),
        FIELD(cq, dock_cqrec, epoch),
        FIELD(cq, dock_cqrec, polled),
        FIELD(cq, dock_cqrec, sum),
        FIELD(cq, dock_cqrec, tail),
        FIELD(cq, dock_cqrec, ci_seen),
        FIELD(cq, dock_cqrec, overrun),
        FIELD(cq, dock_cqrec, ci),
        FIELD(cq, dock_cqrec, armed),
        FIELD(cq, dock_cqrec, attention),
        {"completion ring", cq + sizeof(struct dock_cqrec), 16 * 64},
        {"completion ring", cq + sizeof(struct dock_cqrec), 16 * 64},
        FIELD(rq, dock_rqrec, sges),
        FIELD(rq, dock_rqrec, index),
        FIELD(rq, dock_rqrec, claims),
        FIELD(rq, dock_rqrec, size),
        FIELD(rq, dock_rqrec, stride),
        FIELD(rq, dock_rqrec, id),
        FIELD(rq, dock_rqrec, pd),
        FIELD(rq, dock_rqrec, sum),
        FIELD(rq, dock_rqrec, pi),
        FIELD(rq, dock_rqrec, posted),
        FIELD(rq, dock_rqrec, ci),
        FIELD(rq, dock_rqrec, limit),
        {"receive ring", rq + sizeof(struct dock_rqrec), (uint32_t)dock_rqring_bytes(8, 4)},
        {"receive ring", rq + sizeof(struct dock_rqrec), (uint32_t)dock_rqring_bytes(8, 4)},
        {"send ring", sq, 16 * 64},
        {"send ring", sq, 16 * 64},
    };

    return all[r % (sizeof all / sizeof *all)];
}

static void flip(struct side *s, uint32_t i, _Atomic uint8_t **byte, uint8_t *mask)
{
    uint64_t r = dock_decide(board->seed, 1, i), b = dock_decide(board->seed, 2, i);
    const struct dock_conn *c = &s->end.qp->conn;

    if (!c->peer)
        wrong("we", "no connection before the flip");
    struct field f = choose(c, board->desc[1].rkey >> 8, r);
    *byte = dock_view_at(c->peer->view, f.at + b / 8 % f.bytes, 1);
    *mask = (uint8_t)(1u << (b & 7));
    snprintf(board->field, sizeof board->field, "%s, byte %u, bit %u", f.name, (unsigned)(b / 8 % f.bytes),
             (unsigned)(b & 7));
    dock_set32(&board->reasons[0], 0);
    dock_set32(&board->reasons[1], 0);
    atomic_fetch_xor(*byte, *mask);
}

static void one(struct side *s, uint32_t i)
{
    _Atomic uint8_t *byte;
    uint8_t mask;

    tell(OPEN);
    open_end(s, &board->desc[0]);
    await_peer();
    tell(CONNECT);
    connect_to(s, &board->desc[1]);
    post_receives(s);
    await_peer();
    if (dock_decide(board->seed, 3, i) & 1) { // on a connection that has its caches filled, or on a fresh one
        tell(TRAFFIC);
        if (!traffic(s, &board->desc[1], true, i))
            wrong("we", "traffic before the flip failed");
        await_peer();
        post_receives(s);
    }
    flip(s, i, &byte, &mask);
    tell(TRAFFIC);
    atomic_fetch_add(&board->failed, !traffic(s, &board->desc[1], true, i + 1));
    await_peer();
    // What is made anew for the next flip stays flipped while all is destroyed; the port is whole again
    // after.
    bool stays = (char *)byte < (char *)(s->end.qp->conn.peer->port + 1);
    bool early = stays && dock_decide(board->seed, 4, i) & 1;
    if (early)
        atomic_fetch_xor(byte, mask);
    tell(CLOSE);
    await_peer();
    if (stays && !early)
        atomic_fetch_xor(byte, mask);
    close_end(s, "we");
}

static int we(void *arg)
{
    struct side s = {0};

    (void)arg;
    open_device(&s);
    while (dock_peek32(&board->index) < board->flips) {
        one(&s, dock_peek32(&board->index));
        dock_publish32(&board->index, dock_peek32(&board->index) + 1);
        if (dock_peek32(&s.dev->port->fatal))
            return 0; // the peer took us for stopped: it waited for a hazard of ours that a flip had raised
    }
    return 0;
}

static void failed(const char *who, int status)
{
    uint32_t i = dock_peek32(&board->index);

    printf("FAILED flip %u (%s): %s ended with %d; %s\n"
           "  again: DRYDOCK_SEED=%#llx scripts/run-one build/dev/tests/fault/bitflip_test %u\n",
           i, board->field, who, status, board->words, (unsigned long long)board->seed, i);
}

// Two processes from board->index on, until all is done or one of them fails. true: a failure.
static bool stretch(void)
{
    pid_t p, u;
    int status = 0;
    enum test_end end;
    bool bad = false;

    dock_set32(&board->asked, 0);
    dock_set32(&board->done, 0);
    board->words[0] = 0;
    p = test_fork(peer, NULL);
    u = test_fork(we, NULL);
    while ((end = test_look(u, &status)) == TEST_RUNS) {
        int at_peer;
        if (test_look(p, &at_peer) != TEST_RUNS) {
            failed("the peer", at_peer);
            test_kill(u);
            return true;
        }
        test_nap_us(1000);
    }
    if (end != TEST_EXITED || status) {
        failed("we", status);
        bad = true;
    }
    test_kill(p);
    return bad;
}

int main(int argc, char **argv)
{
    uint64_t begin = dock_now_ns();
    unsigned bad = 0, stretches = 0;

    setvbuf(stdout, NULL, _IOLBF, 0);
    shown = argc > 1; // of reasons there are thousands
    board = test_shared(sizeof *board);
    board->seed = dock_seed();
    board->first = argc > 1 ? (uint32_t)atoi(argv[1]) : 0;
    board->flips = argc > 1 ? board->first + 1 : test_long() ? FLIPS * 10 : FLIPS / test_slow();
    printf("seed %#llx\n", (unsigned long long)board->seed);
    dock_set32(&board->index, board->first);
    while (dock_peek32(&board->index) < board->flips && bad < 40) {
        bool failed_here = stretch();
        bad += failed_here;
        stretches++;
        if (failed_here)
            dock_set32(&board->index, dock_peek32(&board->index) + 1);
    }
    printf("%u flips, %u noticed by a status, %u failed; %u devices opened anew; %.0f s\n",
           dock_peek32(&board->index) - board->first, dock_peek32(&board->failed), bad, stretches - 1,
           (double)(dock_now_ns() - begin) / 1e9);
    return bad != 0;
}
