// SPDX-License-Identifier: MIT
// What the benchmarks share: two connected ends, in one process or in two, time, medians, and the rows that
// bench/run makes into a table. A figure never stands alone: beside it is the limit that was measured in
// the same run (or computed), and the ratio of the two.
#ifndef BENCH_LIB_BENCH_H
#define BENCH_LIB_BENCH_H

#include "base/clock.h"
#include "device/cq.h"
#include "device/device.h"
#include "device/sq.h"

// One end of a connection: a queue pair, its CQ, and memory in the arena that the other end may use.
struct bench_end {
    struct dock_dev *dev;
    uint32_t pd;
    struct dock_cq *cq;
    struct dock_qp *qp;
    struct dock_mr *mr;
    char *mem;
};

// What one end must know of the other.
struct bench_name {
    uint32_t qp, rkey;
    uint64_t addr;
};

#define BENCH_DEPTH 256

// Ends the program with words when anything fails.
void bench_must(int err, const char *what);

// A queue pair with BENCH_DEPTH WRs and `bytes` of memory, in the arena or (BENCH_MALLOC in the environment)
// of malloc; then its connection to another.
void bench_open(struct bench_end *e, struct dock_dev *dev, size_t bytes);
void bench_connect(struct bench_end *e, uint32_t dest_qp);
struct bench_name bench_name_of(const struct bench_end *e);

// Open two ends and connect them: on one device of this process, or the other one in a child process that
// runs `serve` (NULL: sleeps, as a target of one-sided requests may) and ends when this process does.
void bench_pair(struct bench_end *me, struct bench_name *peer, size_t bytes, bool two_processes,
                void (*serve)(struct bench_end *child, const struct bench_name *parent));

// A WRITE of `len` bytes from the start of e's memory to the start of the peer's.
struct dock_wr bench_write(const struct bench_end *e, const struct bench_name *peer, struct dock_sge *sge,
                           uint32_t len);

static inline void bench_post(struct bench_end *e, const struct dock_wr *wr)
{
    struct dock_post p;

    dock_post_begin(e->qp, &p);
    bench_must(dock_post_put(&p, wr), "dock_post_put");
    dock_post_end(&p);
}

// Poll until `n` completions came.
void bench_drain(struct bench_end *e, unsigned n);

// Medians over BENCH_REPEATS (environment, default 101) calls, which are kept short so that most of them run
// undisturbed. The figure and its limit are measured in turn, so that what disturbs one disturbs both.
struct bench_run {
    double (*run)(void *arg);
    void *arg;
};
double bench_median(struct bench_run what);
void bench_medians(struct bench_run what, struct bench_run limit, double *figure, double *limit_figure);

// The same work with nothing but the ring: see bare.c.
struct bench_bare;
struct bench_bare *bench_bare_open(void);
double bench_bare_write(struct bench_bare *b, unsigned count, unsigned list); // ns per 8-byte WRITE

// One row: what, the figure, the limit and what it is, the goal for their ratio ("" if there is none).
void bench_row(const char *what, const char *unit, double figure, double limit, const char *limit_is,
               const char *goal);

#endif
