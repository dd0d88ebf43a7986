// SPDX-License-Identifier: MIT
// WRITE bandwidth between two processes, memory in the arena, 64 B to 64 MiB, against memcpy of the same size
// between the same two mappings. Up to 16 requests or 1 MiB under way, the last of which is signaled.
//     bench_bandwidth BYTES     this size alone, in memory as ib_write_bw has it: twice the size at a page's
//                               beginning, from the first half to the other side's second (BENCH_MALLOC=1: of
//                               malloc, and adopted); and the same with a completion for each
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "device/internal.h"

#define LARGEST (64u << 20)
#define WINDOW (1u << 20)
#define TOTAL (32u << 20)

struct job {
    struct bench_end me;
    struct bench_name peer;
    uint32_t size;
    bool each; // is signaled
    char *to;
};

static unsigned count_of(uint32_t size)
{
    unsigned n = TOTAL / size;

    return n < 2 ? 2 : n > 8192 ? 8192 : n;
}

static double rate(const struct job *j, uint64_t begin)
{
    return (double)j->size * count_of(j->size) / (double)(dock_now_ns() - begin);
}

// As many completions, taken by few calls.
static void drain(struct job *j, unsigned n)
{
    struct dock_wc wc;
    int got;

    while (n) {
        dock_cq_begin(j->me.cq);
        while (n && (got = dock_cq_next(j->me.cq, &wc))) {
            bench_must(got < 0 || wc.status, "a completion failed");
            n--;
        }
        dock_cq_end(j->me.cq);
    }
}

static double writes(void *arg)
{
    struct job *j = arg;
    struct dock_sge sge;
    struct dock_wr wr = bench_write(&j->me, &j->peer, &sge, j->size);
    unsigned n = count_of(j->size), window = WINDOW / j->size, signaled = 0;
    uint64_t begin = dock_now_ns();

    window = window < 1 ? 1 : window > 16 ? 16 : window;
    for (unsigned i = 0; i < n; i++) {
        bool last = (i + 1) % window == 0 || i + 1 == n;
        wr.flags = last || j->each ? DOCK_F_COMPLETE : 0;
        signaled += wr.flags != 0;
        bench_post(&j->me, &wr);
        if (last) {
            drain(j, signaled);
            signaled = 0;
        }
    }
    return rate(j, begin);
}

static double copies(void *arg)
{
    struct job *j = arg;
    uint64_t begin = dock_now_ns();

    for (unsigned i = count_of(j->size); i; i--) {
        memcpy(j->to, j->me.mem, j->size);
        atomic_signal_fence(
            memory_order_seq_cst); // the compiler may not drop a copy that the next one repeats
    }
    return rate(j, begin);
}

// Where the device put it when it found the key: the other process's memory as this one maps it. Ours must be
// mapped too, both of them in one piece.
static char *mapped_peer(struct job *j, uint64_t bytes)
{
    const struct dock_rkey *k = &j->me.qp->conn.key[(j->peer.rkey >> 8) % DOCK_RKEYS];
    const struct dock_lkey *l = &j->me.dev->lkeys[j->me.mr->lkey >> 8];

    j->size = 64;
    writes(j);
    bench_must(!k->base || k->room < bytes, "the other process's memory is not mapped");
    bench_must(l->room < bytes, "our memory is not mapped");
    bench_must(getenv("BENCH_MALLOC") && dock_peek64(&j->me.dev->port->adopt.bytes) < bytes,
               "our memory was not adopted");
    return k->base + (j->peer.addr - k->mapped);
}

static void row(struct job *j, const char *more, const char *goal)
{
    const char *unit = j->size < 1024 ? "B" : j->size < 1 << 20 ? "KiB" : "MiB";
    char what[80];
    double figure, limit;

    snprintf(what, sizeof what, "WRITE of %u %s%s",
             j->size < 1024      ? j->size
             : j->size < 1 << 20 ? j->size >> 10
                                 : j->size >> 20,
             unit, more);
    bench_medians((struct bench_run){writes, j}, (struct bench_run){copies, j}, &figure, &limit);
    bench_row(what, "GB/s", figure, limit, "memcpy", goal);
}

static int as_perftest(uint32_t size)
{
    struct job j = {0};

    bench_must(size < 64 || size > LARGEST, "a size from 64 bytes to 64 MiB");
    bench_pair(&j.me, &j.peer, 2ul * size, true, NULL);
    j.peer.addr += size;
    j.to = mapped_peer(&j, 2ul * size);
    j.size = size;
    row(&j, "", "");
    j.each = true;
    row(&j, ", a completion each", "");
    return 0;
}

int main(int argc, char **argv)
{
    struct job j = {0};

    if (argc > 1)
        return as_perftest((uint32_t)strtoul(argv[1], NULL, 0));
    bench_pair(&j.me, &j.peer, LARGEST, true, NULL);
    j.to = mapped_peer(&j, LARGEST);
    for (j.size = 64; j.size <= LARGEST; j.size *= 4)
        row(&j, "", j.size == 1 << 16 || j.size == 1 << 20 ? "at least 0.95" : "");
    return 0;
}
