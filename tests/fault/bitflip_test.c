// SPDX-License-Identifier: MIT
// Bits of a living peer's arena are flipped, one at a time, in every field of its port, its segment entry and
// the pieces of that, its queue record, its groups, its completion and receive queues and its rings, while
// both sides send. Nobody crashes or hangs, no byte outside of what is registered changes, and what succeeds
// one-sidedly has moved the right bytes. Whoever has a request or a queue in error has logged a line that
// says why. A third process, with a queue to us alone, sends and is sent to beside each flip as if nothing
// were. One flip: DRYDOCK_SEED=... bitflip_test INDEX timeout: 240 long-timeout: 1800
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/seed.h"
#include "device/internal.h"
#include "fault/bitflip_fields.h"
#include "lib/fork.h"
#include "lib/pair.h"

#define FLIPS 3000u
#define WAIT_MS 8000u // for one step of one side
#define GUARD 8192u
#define REGION 16384u
#define SENDS 2u

// What connection the flipped one is. Pieces: the peer's region is in its arena in part. Group: queues
// without a connection, the peer's behind the number of a group. Multicast: datagrams, both sides have joined
// a group.
enum shape { CONNECTED, PIECES, GROUP, MULTICAST };

enum command { NOTHING, OPEN, CONNECT, TRAFFIC, CLOSE };

struct desc {
    uint32_t qp, rkey, token;
    uint32_t group; // 0: none
    uint64_t addr;
    struct extras extras;
};

struct board {
    dock_a32 asked, done; // {number of the command:24, command:8}; done by the peer
    dock_a32 index;       // of the flip
    struct desc desc[2];
    dock_a64 pattern;     // of what we wrote into the peer's region; 0: nobody knows
    dock_a32 failed;      // flips that somebody noticed by a status
    dock_a32 fatal;       // flips of a hazard that ended our device
    dock_a32 reasons[3];  // lines since the flip that say why, of us, of the peer, of the third
    struct desc third[2]; // of the queues between us and the third
    dock_a32 met[2];
    char field[64], words[256];
    uint64_t seed;
    uint32_t first, flips;
};

struct side {
    struct dock_dev *dev;
    enum shape shape;
    struct dock_bundle *bundle;
    struct end end;
    char *memory; // GUARD bytes of pattern, the region, GUARD bytes of pattern
    struct dock_mr *mr;
    uint32_t rkey;
};

static struct board *board;
static unsigned role; // 0: we, 1: the peer, 2: the third
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

static enum shape shape_of(uint32_t i)
{
    static const enum shape of[] = {CONNECTED, CONNECTED, CONNECTED, CONNECTED,
                                    CONNECTED, PIECES,    GROUP,     MULTICAST};

    return of[dock_decide(board->seed, 5, i) % (sizeof of / sizeof *of)];
}

static const uint8_t multicast[16] = {0xff, 0x0e, [15] = 7};

// As adoption leaves a region of which it could not take all: a gap of it is plain.
static void split(struct side *s)
{
    struct dock_hold *h = &s->mr->hold;
    uint64_t addr = h->addr, off = h->piece->off, gap = 4096 + 300, behind = gap + 100;

    dock_adopt_lock();
    dock_hold_clear(h);
    if (dock_hold_add(h, addr, gap, off) || dock_hold_add(h, addr + behind, h->len - behind, off + behind))
        wrong("a side", "dock_hold_add");
    dock_mr_adopt_ops.changed(s->dev, h);
    dock_adopt_unlock();
}

static void describe(struct side *s, struct desc *d)
{
    *d = (struct desc){.qp = dock_qp_number(s->end.qp),
                       .rkey = s->mr->rkey,
                       .token = s->mr->token,
                       .addr = (uintptr_t)s->memory + GUARD};
    if (s->shape == PIECES)
        d->extras.table = s->mr->table;
    if (s->bundle) {
        d->group = dock_bundle_number(s->bundle);
        d->extras.list = dock_id_record(s->dev, d->group)->rq;
    }
}

static void open_end(struct side *s, enum shape shape, struct desc *d)
{
    static const enum dock_service service[] = {DOCK_RC, DOCK_RC, DOCK_RM, DOCK_UD};
    struct end_opts o = {.wr = 8, .cqe = 16, .mem = 4096, .service = service[shape]};
    uint32_t size = 2 * GUARD + REGION;

    s->shape = shape;
    s->bundle = NULL;
    if (shape == GROUP && role == 1 &&
        dock_bundle_create(s->dev, &(struct dock_bundle_attr){.policy = DOCK_BUNDLE_TURN}, &s->bundle))
        wrong("a side", "dock_bundle_create");
    o.bundle = s->bundle;
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
    if (shape == PIECES)
        split(s);
    describe(s, d);
}

static void check_written(const struct side *s)
{
    uint64_t pattern = dock_acquire64(&board->pattern);

    for (uint32_t i = 0; pattern && role == 1 && i < 1000; i++)
        if (s->memory[GUARD + 4096 + i] != (char)dock_decide(pattern, i, 0))
            wrong("the peer", "a WRITE succeeded and byte %u of it is not there", i);
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
    check_written(s);
    if (s->bundle)
        err = err ? err : dock_bundle_destroy(s->bundle);
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

    m.qkey = 0x1234;
    end_connect(&s->end, peer->qp, &m);
    if (s->shape == MULTICAST && dock_qp_join(s->end.qp, multicast))
        wrong("a side", "dock_qp_join");
}

static void post_receive(struct side *s, unsigned i)
{
    struct dock_sge sge = {(uintptr_t)s->memory + GUARD + 8192 + i * 1024, 1024, s->mr->lkey};

    dock_recv_begin(dock_qp_rq(s->end.qp));
    dock_recv_put(dock_qp_rq(s->end.qp), i, &sge, 1);
    dock_recv_end(dock_qp_rq(s->end.qp));
}

static void post_receives(struct side *s)
{
    for (unsigned i = 0; i < SENDS; i++)
        post_receive(s, i);
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
                         .token = peer->token,
                         .raddr = peer->addr + there,
                         .operand = 1,
                         .id = op};

    wr_aim(&wr, peer->qp);
    if (s->shape == MULTICAST) {
        wr.eid = multicast;
        wr.rkey = 0x1234; // the key that the queues of the group have
    } else if (op == DOCK_OP_SEND && peer->group) {
        wr.remote = peer->group;
        wr.bundle = true;
    }
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

    for (unsigned i = 0; i < SENDS && end_wait(s->end.rcq, &wc, 2); i++)
        ;
    while (end_poll(s->end.rcq, &wc))
        ;
}

static bool traffic(struct side *s, const struct desc *peer, bool ours, uint64_t pattern)
{
    char *region = s->memory + GUARD;
    unsigned posted = 0, all = SENDS + (s->shape == MULTICAST ? 0 : 3);
    bool good;

    for (unsigned i = 0; i < 1024; i++)
        region[i] = (char)dock_decide(pattern, i, 0);
    memset(region + 2048, 0, 1024);
    if (ours)
        dock_set64(&board->pattern, 0);
    if (s->shape != MULTICAST) {
        posted += post(s, peer, DOCK_OP_WRITE, 0, 4096, 1000);
        posted += post(s, peer, DOCK_OP_READ, 2048, 4096, 1000);
        posted += post(s, peer, DOCK_OP_FADD, 4000, 7 * 1024, 8);
    }
    for (unsigned i = 0; i < SENDS; i++)
        posted += post(s, peer, DOCK_OP_SEND, 0, 0, 512);
    good = wait_sends(s, posted, ours, ours ? "we" : "the peer") && posted == all;
    if (good && ours && all > SENDS && memcmp(region, region + 2048, 1000))
        wrong("we", "WRITE and READ succeeded and other bytes came back");
    if (good && ours && all > SENDS)
        dock_publish64(&board->pattern, pattern);
    drain_receives(s);
    return good;
}

// ---- the third

#include "fault/bitflip_third.h"

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
            open_end(&s, shape_of(dock_peek32(&board->index)), &board->desc[1]);
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

// The way to the peer's queue. Of queues without a connection it is known once they have sent.
static const struct dock_conn *way_to_peer(const struct side *s)
{
    const struct dock_qp *qp = s->end.qp;
    const struct dock_conn *c = s->shape < GROUP ? &qp->conn : NULL;

    for (uint32_t i = 0; !c && i < qp->ways.size; i++)
        for (c = qp->ways.bucket[i]; c && (c->dest_qp != board->desc[1].qp || !c->peer);)
            c = c->next;
    if (!c || !c->peer)
        wrong("we", "no connection before the flip");
    return c;
}

// Its place in the host's list of multicast groups.
static uint64_t entry_of_peer(const struct side *s, const struct dock_conn *c)
{
    uint64_t member = (uint64_t)c->dest_who << 32 | c->dest_qp;

    for (uint32_t i = 0; i < DOCK_GROUP_MEMBERS; i++)
        if (dock_peek64(&s->dev->groups.member[i].member) == member)
            return i * sizeof(struct dock_group_member);
    wrong("we", "the peer is in no multicast group");
}

struct flipped {
    _Atomic uint8_t *byte;
    uint8_t mask;
    bool stays; // it is none of what is made anew for the next flip
};

static struct flipped flip(struct side *s, uint32_t i)
{
    uint64_t r = dock_decide(board->seed, 1, i), b = dock_decide(board->seed, 2, i);
    const struct dock_conn *c = way_to_peer(s);
    struct extras x = board->desc[1].extras;
    struct flipped out = {.mask = (uint8_t)(1u << (b & 7))};
    bool extra = s->shape != CONNECTED && dock_decide(board->seed, 6, i) & 1;
    bool listed = extra && s->shape == MULTICAST;

    if (s->shape == MULTICAST)
        x.entry = entry_of_peer(s, c);
    struct field f = extra ? choose_extra(&x, r) : choose(c, board->desc[1].rkey >> 8, r);
    uint64_t at = f.at + b / 8 % f.bytes;
    out.byte = listed ? (_Atomic uint8_t *)s->dev->groups.member + at : dock_view_at(c->peer->view, at, 1);
    out.stays = listed || (char *)out.byte < (char *)(c->peer->port + 1);
    snprintf(board->field, sizeof board->field, "%s, byte %u, bit %u", f.name, (unsigned)(b / 8 % f.bytes),
             (unsigned)(b & 7));
    dock_set32(&board->reasons[0], 0);
    dock_set32(&board->reasons[1], 0);
    atomic_fetch_xor(out.byte, out.mask);
    return out;
}

static void one(struct side *s, struct side *other, uint32_t i)
{
    enum shape shape = shape_of(i);

    tell(OPEN);
    open_end(s, shape, &board->desc[0]);
    await_peer();
    tell(CONNECT);
    connect_to(s, &board->desc[1]);
    post_receives(s);
    await_peer();
    // On a connection that has its caches filled, or on a fresh one.
    if (shape >= GROUP || dock_decide(board->seed, 3, i) & 1) {
        tell(TRAFFIC);
        if (!traffic(s, &board->desc[1], true, i + 1))
            wrong("we", "traffic before the flip failed (%s)", dock_log_last());
        await_peer();
        post_receives(s);
    }
    struct flipped f = flip(s, i);
    tell(TRAFFIC);
    ask(other, &board->third[1], i);
    atomic_fetch_add(&board->failed, !traffic(s, &board->desc[1], true, i + 2));
    await_answer(other);
    await_peer();
    // What is made anew for the next flip stays flipped while all is destroyed; the rest is whole again
    // after.
    bool early = f.stays && dock_decide(board->seed, 4, i) & 1;
    if (early)
        atomic_fetch_xor(f.byte, f.mask);
    tell(CLOSE);
    await_peer();
    if (f.stays && !early)
        atomic_fetch_xor(f.byte, f.mask);
    close_end(s, "we");
}

static int we(void *arg)
{
    struct side s = {0}, other = {0};

    (void)arg;
    open_device(&s);
    other.dev = s.dev;
    meet(&other, 0);
    while (dock_peek32(&board->index) < board->flips) {
        one(&s, &other, dock_peek32(&board->index));
        dock_publish32(&board->index, dock_peek32(&board->index) + 1);
        if (dock_peek32(&s.dev->port->fatal)) {
            // The exception of P6: the peer waited for a hazard of ours that a flip had raised. Of others it
            // is that we really stood for so long.
            atomic_fetch_add(&board->fatal, strstr(board->field, "hazard") != NULL);
            return 0;
        }
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

// The processes from board->index on, until all is done or one of them fails. true: a failure.
static bool stretch(void)
{
    static const char *const name[] = {"the peer", "the third"};
    pid_t others[2], u;
    int status = 0, theirs;
    enum test_end end;
    bool bad = false;

    dock_set32(&board->asked, 0);
    dock_set32(&board->done, 0);
    dock_set32(&board->met[0], 0);
    dock_set32(&board->met[1], 0);
    board->words[0] = 0;
    others[0] = test_fork(peer, NULL);
    others[1] = test_fork(third, NULL);
    u = test_fork(we, NULL);
    while (!bad && (end = test_look(u, &status)) == TEST_RUNS) {
        for (unsigned i = 0; i < 2 && !bad; i++) {
            bad = test_look(others[i], &theirs) != TEST_RUNS;
            if (bad)
                failed(name[i], theirs);
        }
        test_nap_us(1000);
    }
    if (bad)
        test_kill(u);
    else if (end != TEST_EXITED || status) {
        failed("we", status);
        bad = true;
    }
    test_kill(others[0]);
    test_kill(others[1]);
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
    printf("%u flips, %u noticed by a status, %u failed; %u devices opened anew, %u of them ended by a "
           "hazard; %.0f s\n",
           dock_peek32(&board->index) - board->first, dock_peek32(&board->failed), bad, stretches - 1,
           dock_peek32(&board->fatal), (double)(dock_now_ns() - begin) / 1e9);
    return bad != 0;
}
