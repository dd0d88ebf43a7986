// SPDX-License-Identifier: MIT
// WRITE bandwidth between two processes, memory in the arena, 64 B to 64 MiB, against memcpy of the same size
// between the same two mappings. Signaled; up to 16 requests or 1 MiB under way.
#include <stdio.h>
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

static double writes(void *arg)
{
    struct job *j = arg;
    struct dock_sge sge;
    struct dock_wr wr = bench_write(&j->me, &j->peer, &sge, j->size);
    unsigned n = count_of(j->size), window = WINDOW / j->size;
    uint64_t begin = dock_now_ns();

    window = window < 1 ? 1 : window > 16 ? 16 : window;
    for (unsigned i = 0; i < n; i++) {
        wr.flags = (i + 1) % window && i + 1 < n ? 0 : DOCK_F_COMPLETE;
        bench_post(&j->me, &wr);
        if (wr.flags)
            bench_drain(&j->me, 1);
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

// Where the device put it when it found the key: the other process's memory as this one maps it.
static char *mapped_peer(struct job *j)
{
    const struct dock_rkey *k = &j->me.qp->conn.key[(j->peer.rkey >> 8) % DOCK_RKEYS];

    j->size = 64;
    writes(j);
    bench_must(!k->base, "the other process's memory is not mapped");
    return k->base + (j->peer.addr - k->mapped);
}

int main(void)
{
    struct job j;

    bench_pair(&j.me, &j.peer, LARGEST, true, NULL);
    j.to = mapped_peer(&j);
    for (j.size = 64; j.size <= LARGEST; j.size *= 4) {
        char what[80];
        snprintf(what, sizeof what, "WRITE of %u %s",
                 j.size < 1024      ? j.size
                 : j.size < 1 << 20 ? j.size >> 10
                                    : j.size >> 20,
                 j.size < 1024      ? "B"
                 : j.size < 1 << 20 ? "KiB"
                                    : "MiB");
        double figure, limit;
        bench_medians((struct bench_run){writes, &j}, (struct bench_run){copies, &j}, &figure, &limit);
        bench_row(what, "GB/s", figure, limit, "memcpy",
                  j.size == 1 << 16 || j.size == 1 << 20 ? "at least 0.95" : "");
    }
    return 0;
}
