// SPDX-License-Identifier: MIT
// What open queue pairs cost the one that is used, and how much memory one takes. The idle ones are
// connected, each to itself, and share one CQ.
#include <malloc.h>
#include <stdio.h>

#include "bench.h"
#include "device/internal.h"

#define COUNT 8192u
#define MOST 10000u

struct job {
    struct bench_end me;
    struct bench_name peer;
};

static struct bench_end idle[MOST]; // of in_turn as well
static unsigned idles, turn, laps;

static double writes(void *arg)
{
    struct job *j = arg;
    struct dock_sge sge;
    struct dock_wr wr = bench_write(&j->me, &j->peer, &sge, 8);
    uint64_t begin = dock_now_ns();

    for (unsigned i = 1; i <= COUNT; i++) {
        wr.flags = i % 16 ? 0 : DOCK_F_COMPLETE;
        bench_post(&j->me, &wr);
        if (i % 64 == 0)
            bench_drain(&j->me, 4);
    }
    return (double)(dock_now_ns() - begin) / COUNT;
}

// In turn through all of them: each next one's lines are cold as soon as all do not fit into a cache.
static double in_turn(void *arg)
{
    struct job *j = arg;
    struct bench_name own = bench_name_of(&j->me); // they are connected to themselves
    struct dock_sge sge;
    struct dock_wr wr = bench_write(&j->me, &own, &sge, 8);
    uint64_t begin = dock_now_ns();

    wr.raddr += 64;
    for (unsigned i = 0; i < COUNT; i++) {
        struct bench_end *e = &idle[turn];
        wr.flags = laps % 16 ? 0 : DOCK_F_COMPLETE;
        bench_post(e, &wr);
        if (wr.flags)
            bench_drain(&j->me, 1);
        turn = turn + 1 < idles ? turn + 1 : 0;
        laps += !turn;
    }
    return (double)(dock_now_ns() - begin) / COUNT;
}

static void open_idle(struct bench_end *like)
{
    struct bench_end *e = &idle[idles++];
    struct dock_qp_attr a = {.service = DOCK_RC,
                             .pd = like->pd,
                             .send_cq = like->cq,
                             .recv_cq = like->cq,
                             .max_send_wr = 64,
                             .max_recv_wr = 16,
                             .max_send_sge = 1,
                             .max_recv_sge = 1};

    *e = *like;
    bench_must(dock_qp_create(like->dev, &a, &e->qp), "dock_qp_create");
    bench_connect(e, dock_qp_number(e->qp));
}

static void measure_in_turn(struct job *crowded, struct job *lone)
{
    double cost, alone;
    char what[80];

    if (!idles)
        return;
    turn = laps = 0;
    bench_medians((struct bench_run){in_turn, crowded}, (struct bench_run){writes, lone}, &cost, &alone);
    snprintf(what, sizeof what, "the same in turn through %u of them", idles);
    bench_row(what, "ns", cost, alone, "one queue pair", "");
}

// Arena and heap; the hazard of a connection is a line of a table that was reserved at the beginning.
static double bytes_in_use(const struct dock_dev *dev, unsigned queues)
{
    struct mallinfo2 heap = mallinfo2();

    return (double)dev->arena.used + (double)heap.uordblks + (double)heap.hblkhd + queues * 64.0;
}

int main(void)
{
    struct job crowded, lone;
    double before = 0, limit;
    unsigned open = 1;

    bench_pair(&crowded.me, &crowded.peer, 4096, false, NULL);
    bench_pair(&lone.me, &lone.peer, 4096, false, NULL);
    for (unsigned n = 1; n <= MOST; n *= 10) {
        double cost, alone;
        char what[80];
        for (; open < n; open++)
            open_idle(&crowded.me);
        bench_medians((struct bench_run){writes, &crowded}, (struct bench_run){writes, &lone}, &cost, &alone);
        snprintf(what, sizeof what, "8-byte WRITE, one by one, %u queue pair%s open", n, n == 1 ? "" : "s");
        bench_row(what, "ns", cost, alone, "one queue pair", n == MOST ? "at most 1.05" : "");
        measure_in_turn(&crowded, &lone);
        if (n == 1)
            before = bytes_in_use(crowded.me.dev, 0);
    }
    limit = (crowded.me.dev->qps->sq.post.mask + 1) * 72.0 + 8192; // the one that was made last
    bench_row("memory of a queue pair, 64 sends of 1 SGE, 16 receives", "bytes",
              (bytes_in_use(crowded.me.dev, open - 1) - before) / (open - 1), limit, "72 a block + 8 KiB",
              "at most 1.00");
    return 0;
}
