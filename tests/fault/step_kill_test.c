// SPDX-License-Identifier: MIT
// A sender is killed between any two instructions of a post: it is stepped through the call from outside, so
// many steps, and killed there. Its peer must find of each WRITE the old word or the new one, no later one
// before an earlier one; of a READ nothing; each message once and whole, and every other receive back; its
// CQ, its memory and its queue are its own again. One death: step_kill_test ROW,STEP
// timeout: 420 long-timeout: 3600
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/seed.h"
#include "lib/fork.h"
#include "lib/pair.h"

#define WAIT_MS 20000u // no single wait may take longer
#define DEATHS 110u    // of a row; all of its steps with ./test long
#define DEATHS_SLOW 25u
#define MARK SIGUSR1 // what is stepped through lies between two of these
#define WARM 3u      // posts before it, so that every key is known
#define MOST 3u      // requests in a post
#define RECEIVES 8u
#define SLOT 64u // of one word, or one message

struct row {
    const char *name;
    uint8_t op;
    uint32_t flags;
    unsigned list;
    enum dock_service service; // RC, or RM
};

static const struct row rows[] = {
    {"write", DOCK_OP_WRITE, 0, 1, DOCK_RC},
    {"write-told", DOCK_OP_WRITE, DOCK_F_COMPLETE, 1, DOCK_RC},
    {"write-inline", DOCK_OP_WRITE, DOCK_F_INLINE, 1, DOCK_RC},
    {"write-list", DOCK_OP_WRITE, 0, MOST, DOCK_RC},
    {"read-told", DOCK_OP_READ, DOCK_F_COMPLETE, 1, DOCK_RC},
    {"rm-write-told", DOCK_OP_WRITE, DOCK_F_COMPLETE, 1, DOCK_RM},
    {"rm-write-list", DOCK_OP_WRITE, 0, MOST, DOCK_RM},
    {"send", DOCK_OP_SEND_IMM, DOCK_F_INLINE, 1, DOCK_RC},
    {"send-told", DOCK_OP_SEND_IMM, DOCK_F_COMPLETE, 1, DOCK_RC},
    {"send-list", DOCK_OP_SEND_IMM, 0, MOST, DOCK_RC},
};

#define ROWS (sizeof rows / sizeof rows[0])

// Shared by the three processes. One sender after the other has turns of its own number.
static struct board {
    dock_a32 turn;                // the sender's number, once it has said who it is
    dock_a32 ready, over, judged; // the last turn for which the peer is ready, that is over, was judged
    dock_a32 arrived;             // of the judged turn: so many requests of the post
    uint32_t row, sender_qp, peer_qp, rkey, token;
    uint64_t addr;
    char words[240]; // what is wrong
} * board;

static void await(dock_a32 *word, uint32_t value)
{
    uint64_t until = dock_now_ns() + WAIT_MS * test_slow() * 1000000ull;

    while ((int32_t)(dock_acquire32(word) - value) < 0 && dock_now_ns() < until)
        test_nap_us(20);
    if ((int32_t)(dock_acquire32(word) - value) < 0)
        _exit(2);
}

// What request `i` of a turn's post brings; those of the warm-up are 0 to WARM - 1.
static uint64_t value_of(uint32_t turn, unsigned i)
{
    return (uint64_t)turn << 8 | (i + 1);
}

// ---- the sender

static void post(struct end *e, const struct row *r, uint32_t turn, unsigned first, unsigned n)
{
    struct dock_sge sge[MOST];
    struct dock_wr wr[MOST];
    struct dock_post p;

    for (unsigned i = 0; i < n; i++) {
        struct dock_mr remote = {.rkey = board->rkey, .token = board->token};
        uint64_t *from = (uint64_t *)(void *)(e->mem + (first + i) * SLOT);
        *from = value_of(turn, first + i);
        wr[i] = wr_onesided(r->op, e, &sge[i], (first + i) * SLOT, 8, &remote,
                            board->addr + (uint64_t)(first + i) * SLOT);
        wr[i].flags = r->flags | (first < WARM ? DOCK_F_COMPLETE : 0);
        wr[i].inline_len = r->flags & DOCK_F_INLINE ? 8 : 0;
        wr[i].imm = value_of(turn, first + i);
        wr_aim(&wr[i], board->peer_qp); // RM; a connected queue does not look
    }
    if (first == WARM)
        raise(MARK);
    dock_post_begin(e->qp, &p);
    for (unsigned i = 0; i < n; i++)
        if (dock_post_put(&p, &wr[i]))
            _exit(3);
    dock_post_end(&p);
    if (first == WARM)
        raise(MARK);
}

static int sender(void *arg)
{
    uint32_t turn = *(uint32_t *)arg;
    const struct row *r = &rows[board->row];
    struct dock_dev *dev;
    struct dock_wc wc;
    struct end e;

    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    if (dock_dev_open(NULL, &dev))
        return 4;
    end_open(&e, dev, &(struct end_opts){.mem = 4096, .service = r->service});
    board->sender_qp = dock_qp_number(e.qp);
    dock_publish32(&board->turn, turn); // pairs with await in the peer
    await(&board->ready, turn);
    end_connect(&e, board->peer_qp, NULL);
    for (unsigned i = 0; i < WARM; i++) {
        post(&e, r, turn, i, 1);
        if (!end_wait(e.scq, &wc, WAIT_MS) || wc.status)
            return 5;
    }
    post(&e, r, turn, WARM, r->list);
    pause(); // killed here when no step was left
    return 6;
}

// ---- its peer

struct peer {
    struct dock_dev *dev;
    struct end e;
    struct end own;   // completes into the same CQs
    struct end named; // without a connection, in the same domain
    uint32_t turn;
};

static void wrong(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

static void wrong(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(board->words, sizeof board->words, fmt, args);
    va_end(args);
    _exit(1);
}

static dock_a64 *slot(const struct peer *p, unsigned i)
{
    return (dock_a64 *)(void *)(p->e.mem + i * SLOT);
}

static void to(struct peer *p, uint32_t state)
{
    struct dock_qp_mod m = {.mask = DOCK_MOD_STATE, .state = state};
    int err = dock_qp_modify(p->e.qp, &m);

    if (err)
        wrong("to state %u: %d (%s)", state, err, dock_log_last());
}

static unsigned check_words(const struct peer *p, unsigned n)
{
    unsigned arrived = 0;

    for (unsigned i = 0; i < WARM + n; i++) {
        uint64_t seen = dock_acquire64(slot(p, i)), new = value_of(p->turn, i);
        if (seen != new && (seen || i < WARM))
            wrong("word %u is %#llx, expected %#llx%s", i, (unsigned long long)seen, (unsigned long long)new,
                  i < WARM ? "" : " or nothing");
        if (seen && i > WARM && arrived != i - WARM)
            wrong("word %u came before the one before it", i);
        arrived += seen && i >= WARM;
    }
    return arrived;
}

static unsigned check_untouched(const struct peer *p)
{
    for (unsigned i = 0; i < WARM + MOST; i++)
        if (dock_acquire64(slot(p, i)))
            wrong("word %u is %#llx, and was only read", i, (unsigned long long)dock_acquire64(slot(p, i)));
    return 0;
}

// A message to ourselves: it stands in the CQ behind all that the dead one has told.
static void send_own(struct peer *p)
{
    struct dock_sge sge;
    struct dock_wr wr = wr_onesided(DOCK_OP_SEND, &p->own, &sge, 0, 8, p->own.mr, 0);

    if (end_recv(&p->own, 0, p->own.mem + SLOT, 8) || end_post(&p->own, &wr))
        wrong("a message to ourselves: %s", dock_log_last());
}

static void next_completion(struct dock_cq *cq, struct dock_wc *wc, const char *of)
{
    if (!end_wait(cq, wc, WAIT_MS * test_slow()))
        wrong("no completion of %s", of);
}

static void expect_own(const struct peer *p, struct dock_cq *cq)
{
    struct dock_wc wc;

    next_completion(cq, &wc, "a message to ourselves");
    if (wc.qp != p->own.qp || wc.status)
        wrong("a message to ourselves: status %#x of queue %u", wc.status, wc.qp_num);
}

static void check_message(const struct peer *p, const struct dock_wc *wc, unsigned n)
{
    uint64_t want = value_of(p->turn, n), got = dock_acquire64(slot(p, n));

    if (wc->id != n || wc->status || wc->bytes != 8 || wc->imm != want || got != want)
        wrong("message %u: receive %llu, status %#x, %u bytes, immediate %#llx, %#llx; expected %#llx twice",
              n, (unsigned long long)wc->id, wc->status, wc->bytes, (unsigned long long)wc->imm,
              (unsigned long long)got, (unsigned long long)want);
}

// All receives come back once, and in turn: with their messages, then flushed. One that the dead one had
// taken is flushed when its death is known. Ours comes behind all that it has told.
static unsigned check_messages(struct peer *p)
{
    unsigned came = 0, back = 0;
    struct dock_wc wc;

    for (bool own = false; back < RECEIVES; own = own || wc.qp == p->own.qp) {
        if (own)
            to(p, DOCK_ERR);
        next_completion(p->e.rcq, &wc, own ? "a receive" : "a message to ourselves");
        if (wc.qp == p->own.qp ? own || wc.status : wc.id != back)
            wrong("receive %llu of queue %u with status %#x, %u is next", (unsigned long long)wc.id,
                  wc.qp_num, wc.status, back);
        if (wc.qp == p->own.qp)
            continue;
        back++;
        if (wc.status == DOCK_ST_FLUSH)
            continue;
        if (own || came + 1 != back)
            wrong("message %u behind %u flushed receives%s", came, back - 1 - came,
                  own ? " and behind our own" : "");
        check_message(p, &wc, came++);
    }
    if (came < WARM)
        wrong("%u messages, %u had been told", came, WARM);
    return came - WARM;
}

// What came of the post: so many requests. Both CQs, memory and queue are ours again.
static unsigned judge(struct peer *p, const struct row *r)
{
    uint32_t rights = DOCK_ACCESS_LOCAL_WRITE | DOCK_ACCESS_REMOTE_READ | DOCK_ACCESS_REMOTE_WRITE;
    unsigned arrived;
    struct dock_wc wc;
    int err;

    send_own(p);
    expect_own(p, p->e.scq);
    if (r->op != DOCK_OP_SEND_IMM) {
        expect_own(p, p->e.rcq);
        arrived = r->op == DOCK_OP_READ ? check_untouched(p) : check_words(p, r->list);
    } else {
        arrived = check_messages(p);
    }
    to(p, DOCK_RESET);
    err = dock_mr_deregister(p->e.mr);
    if (!err)
        err = dock_mr_register(p->dev, p->e.pd, (uintptr_t)p->e.mem, p->e.mem_size, (uintptr_t)p->e.mem,
                               rights, &p->e.mr);
    if (err)
        wrong("registering anew: %d (%s)", err, dock_log_last());
    if (end_poll(p->e.rcq, &wc) || end_poll(p->e.scq, &wc))
        wrong("a completion too many: %llu of queue %u", (unsigned long long)wc.id, wc.qp_num);
    return arrived;
}

static void get_ready(struct peer *p)
{
    memset(p->e.mem, 0, p->e.mem_size);
    await(&board->turn, p->turn); // pairs with the publish in sender
    if (rows[board->row].service == DOCK_RC)
        end_connect(&p->e, board->sender_qp, NULL);
    for (unsigned i = 0; rows[board->row].op == DOCK_OP_SEND_IMM && i < RECEIVES; i++)
        if (end_recv(&p->e, i, slot(p, i), 8))
            wrong("posting receive %u: %s", i, dock_log_last());
    board->peer_qp = dock_qp_number(rows[board->row].service == DOCK_RC ? p->e.qp : p->named.qp);
    board->rkey = p->e.mr->rkey;
    board->token = p->e.mr->token;
    board->addr = (uintptr_t)p->e.mem;
    dock_publish32(&board->ready, p->turn);
}

static int peer(void *arg)
{
    struct peer p = {.turn = 1};

    (void)arg;
    if (dock_dev_open(NULL, &p.dev))
        wrong("dock_dev_open: %s", dock_log_last());
    end_open(&p.e, p.dev, &(struct end_opts){.mem = 4096});
    // The other end of ourselves shares both CQs: it is made by hand.
    p.own = p.e;
    struct dock_qp_attr a = {.service = DOCK_RC,
                             .pd = p.e.pd,
                             .send_cq = p.e.scq,
                             .recv_cq = p.e.rcq,
                             .max_send_wr = 4,
                             .max_recv_wr = 4,
                             .max_send_sge = 1,
                             .max_recv_sge = 1};
    if (dock_qp_create(p.dev, &a, &p.own.qp) || dock_mem_alloc(p.dev, 4096, (void **)&p.own.mem) ||
        dock_mr_register(p.dev, p.e.pd, (uintptr_t)p.own.mem, 4096, (uintptr_t)p.own.mem,
                         DOCK_ACCESS_LOCAL_WRITE, &p.own.mr))
        wrong("an end of our own: %s", dock_log_last());
    end_connect(&p.own, dock_qp_number(p.own.qp), NULL);
    end_open(&p.named, p.dev, &(struct end_opts){.mem = 4096, .pd = p.e.pd, .service = DOCK_RM});
    end_connect(&p.named, 0, NULL);
    for (;; p.turn++) {
        get_ready(&p);
        await(&board->over, p.turn);
        dock_set32(&board->arrived, judge(&p, &rows[board->row]));
        dock_publish32(&board->judged, p.turn);
    }
}

// ---- from outside

struct deaths {
    pid_t peer;
    uint32_t turn;
    unsigned bad, n;
};

// Let it run to its next mark.
static bool to_mark(pid_t pid)
{
    int status;

    return waitpid(pid, &status, 0) == pid && WIFSTOPPED(status) && WSTOPSIG(status) == MARK;
}

// So many instructions further, or to the mark behind them. How many were stepped.
static unsigned step(pid_t pid, unsigned most)
{
    unsigned n = 0;
    int status;

    for (; n < most; n++)
        if (ptrace(PTRACE_SINGLESTEP, pid, NULL, 0L) || waitpid(pid, &status, 0) != pid ||
            !WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP)
            break;
    return n;
}

// One sender, killed after `at` instructions; *steps: how many there were. false: something is wrong.
static bool kill_at(struct deaths *d, unsigned row, unsigned at, unsigned *steps)
{
    uint64_t until = dock_now_ns() + WAIT_MS * test_slow() * 3 * 1000000ull;
    int status;
    pid_t pid;

    d->turn++;
    board->row = row;
    pid = test_fork(sender, &d->turn);
    bool reached = pid > 0 && to_mark(pid);
    *steps = reached ? step(pid, at) : 0;
    test_kill(pid);
    dock_publish32(&board->over, d->turn);
    while (dock_acquire32(&board->judged) != d->turn && dock_now_ns() < until &&
           test_look(d->peer, &status) == TEST_RUNS)
        test_nap_us(20);
    bool judged = dock_acquire32(&board->judged) == d->turn;
    if (reached && judged)
        return true;
    printf("FAILED %s,%u: %s\n  again: scripts/run-one build/dev/tests/fault/step_kill_test %s,%u\n",
           rows[row].name, at,
           board->words[0] ? board->words
           : reached       ? "hung: the peer does not get its own back"
                           : "the sender did not come to its post",
           rows[row].name, at);
    return false;
}

static bool arrived(const struct row *r, unsigned at, unsigned expected)
{
    if (dock_peek32(&board->arrived) == expected)
        return true;
    printf("FAILED %s: %u of %u requests arrived of a sender that was killed after %u instructions, expected "
           "%u\n",
           r->name, dock_peek32(&board->arrived), r->list, at, expected);
    return false;
}

// All steps of a row, or the first, the last and some between.
static bool run_row(struct deaths *d, unsigned row, uint64_t seed)
{
    const struct row *r = &rows[row];
    unsigned steps, total, stride, deaths = 0, most = test_slow() > 1 ? DEATHS_SLOW : DEATHS;

    if (!kill_at(d, row, 0, &steps) || !arrived(r, 0, 0) || !kill_at(d, row, UINT32_MAX, &total) ||
        !arrived(r, total, r->op == DOCK_OP_READ ? 0 : r->list))
        return false;
    stride = test_long() || total <= most ? 1 : total / most;
    for (unsigned at = (unsigned)(dock_decide(seed, row, 0) % stride); at < total; at += stride, deaths++)
        if (!kill_at(d, row, at, &steps))
            return false;
    printf("%s: %u instructions, %u deaths\n", r->name, total, deaths);
    d->n += deaths;
    return true;
}

int main(int argc, char **argv)
{
    struct deaths d = {0};
    uint64_t seed = dock_seed(), begin = dock_now_ns();

    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("seed %#llx\n", (unsigned long long)seed);
    board = test_shared(sizeof *board);
    d.peer = test_fork(peer, NULL);
    for (unsigned row = 0; row < ROWS; row++) {
        size_t name = strlen(rows[row].name);
        unsigned steps;
        if (argc > 1 && strncmp(argv[1], rows[row].name, name))
            continue;
        if (argc > 1 && argv[1][name] == ',')
            return !kill_at(&d, row, (unsigned)atoi(argv[1] + name + 1), &steps);
        if ((argc < 2 || !argv[1][name]) && !run_row(&d, row, seed))
            return 1;
    }
    printf("%u deaths; %.0f s\n", d.n, (double)(dock_now_ns() - begin) / 1e9);
    return 0;
}
