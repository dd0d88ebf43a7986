// SPDX-License-Identifier: MIT
// Half a round trip of 8-byte WRITEs between two processes that watch their memory, and of 8-byte SENDs
// between two that poll, against the same game played with plain stores to one cache line each: what the two
// processors need, and what the device adds. It needs two CPUs that are free; on a busy machine the figures
// are the scheduler's.
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench.h"
#include "device/rq.h"

#define ROUNDS 1000u
#define STOP (~0ull)

struct player {
    struct bench_end me;
    struct bench_name peer;
    struct dock_sge sge;
    struct dock_wr wr;
    uint64_t round, posted;
};

// Each end sends from its first cache line and is written at its second.
static dock_a64 *word(struct bench_end *e, unsigned line)
{
    return (dock_a64 *)(void *)(e->mem + 64ul * line);
}

static void seat(struct player *p)
{
    p->wr = bench_write(&p->me, &p->peer, &p->sge, 8);
    p->wr.raddr += 64;
    p->wr.flags = DOCK_F_INLINE;
    p->wr.inline_len = 8;
    p->round = p->posted = 0;
}

static void hit(struct player *p, uint64_t value)
{
    dock_set64(word(&p->me, 0), value);
    p->wr.flags = DOCK_F_INLINE | (++p->posted % 64 ? 0 : DOCK_F_COMPLETE);
    bench_post(&p->me, &p->wr);
    if (p->posted % 64 == 0)
        bench_drain(&p->me, 1);
}

static uint64_t receive(dock_a64 *at, uint64_t expected)
{
    uint64_t seen;

    while ((seen = dock_acquire64(at)) != expected && seen != STOP) // pairs with the peer's WRITE
        dock_relax();
    return seen;
}

static void serve(struct bench_end *child, const struct bench_name *parent)
{
    struct player p = {.me = *child, .peer = *parent};

    seat(&p);
    dock_set64(word(&p.me, 1), 0);
    hit(&p, 0); // our memory is ready: the parent may begin
    for (uint64_t round = 1; receive(word(&p.me, 1), round) != STOP; round++)
        hit(&p, round);
}

static double writes(void *arg)
{
    struct player *p = arg;
    uint64_t begin = dock_now_ns();

    for (unsigned i = 0; i < ROUNDS; i++) {
        hit(p, ++p->round);
        receive(word(&p->me, 1), p->round);
    }
    return (double)(dock_now_ns() - begin) / ROUNDS / 2;
}

// ---- messages

#define RECEIVES 16u // posted; each is posted again when its message has come

static void post_receive(struct player *p, uint64_t at)
{
    struct dock_sge to = {.addr = (uintptr_t)word(&p->me, 1 + (unsigned)at), .len = 8, .key = p->me.mr->lkey};

    dock_recv_begin(dock_qp_rq(p->me.qp));
    bench_must(dock_recv_put(dock_qp_rq(p->me.qp), at, &to, 1), "dock_recv_put");
    dock_recv_end(dock_qp_rq(p->me.qp));
}

// The end is told every 64 messages. Who gets one looks at its completion alone, as ib_send_lat does, and
// posts the receive again before it answers.
static void send_one(struct player *p)
{
    p->wr.flags = DOCK_F_INLINE | (++p->posted % 64 ? 0 : DOCK_F_COMPLETE);
    bench_post(&p->me, &p->wr);
}

// false: it was the last.
static bool receive_one(struct player *p)
{
    struct dock_wc wc = {.recv = 0};
    int got;

    do {
        while (dock_cq_idle(p->me.cq))
            ; // as a program that polls and polls: without a pause
        dock_cq_begin(p->me.cq);
        got = dock_cq_next(p->me.cq, &wc);
        dock_cq_end(p->me.cq);
        bench_must(got < 0 || (got && wc.status), "a completion");
    } while (!got || !wc.recv);
    post_receive(p, wc.id);
    return wc.op == DOCK_ROP_SEND;
}

static void seat_for_messages(struct player *p)
{
    seat(p);
    p->wr.op = DOCK_OP_SEND;
    for (unsigned i = 0; i < RECEIVES; i++)
        post_receive(p, i);
}

static void answer(struct bench_end *child, const struct bench_name *parent)
{
    struct player p = {.me = *child, .peer = *parent};

    seat_for_messages(&p);
    send_one(&p); // our receives are there: the parent may begin
    while (receive_one(&p))
        send_one(&p);
}

static double messages(void *arg)
{
    struct player *p = arg;
    uint64_t begin = dock_now_ns();

    for (unsigned i = 0; i < ROUNDS; i++) {
        send_one(p);
        receive_one(p);
    }
    return (double)(dock_now_ns() - begin) / ROUNDS / 2;
}

// ---- without a device

struct lines {
    _Alignas(64) dock_a64 there;
    _Alignas(64) dock_a64 back;
    uint64_t round;
};

static double bare(void *arg)
{
    struct lines *l = arg;
    uint64_t begin = dock_now_ns();

    for (unsigned i = 0; i < ROUNDS; i++) {
        dock_publish64(&l->there, ++l->round); // pairs with the child's receive
        receive(&l->back, l->round);
    }
    return (double)(dock_now_ns() - begin) / ROUNDS / 2;
}

static double bare_median(void)
{
    struct lines *l = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    bench_must(l == MAP_FAILED, "mmap");
    if (fork() == 0) {
        for (uint64_t round = 1; receive(&l->there, round) != STOP; round++)
            dock_publish64(&l->back, round); // pairs with the parent's receive
        _exit(0);
    }
    double median = bench_median((struct bench_run){bare, l});
    dock_publish64(&l->there, STOP);
    return median;
}

static void play_writes(void)
{
    double limit = bare_median(), figure;
    struct player p;

    bench_pair(&p.me, &p.peer, 4096, true, serve);
    seat(&p);
    receive(word(&p.me, 1), 0);
    figure = bench_median((struct bench_run){writes, &p});
    hit(&p, STOP);
    bench_row("8-byte WRITE ping-pong, half a round", "ns", figure, limit, "bare cache lines", "");
}

static void play_messages(void)
{
    double limit = bare_median(), figure;
    struct player p;

    bench_pair(&p.me, &p.peer, 4096, true, answer);
    seat_for_messages(&p);
    receive_one(&p);
    figure = bench_median((struct bench_run){messages, &p});
    p.wr.op = DOCK_OP_SEND_IMM; // the last
    send_one(&p);
    bench_row("8-byte SEND ping-pong, half a round", "ns", figure, limit, "bare cache lines", "");
}

int main(void)
{
    play_writes();
    play_messages();
    return 0;
}
