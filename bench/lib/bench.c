// SPDX-License-Identifier: MIT
#include "bench.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "device/identity.h"

void bench_must(int err, const char *what)
{
    if (!err)
        return;
    fprintf(stderr, "bench: %s: %s\n", what, strerror(err < 0 ? -err : err));
    exit(1);
}

void bench_open(struct bench_end *e, struct dock_dev *dev, size_t bytes)
{
    struct dock_cq_attr cq = {.depth = 2 * BENCH_DEPTH};
    uint32_t access = DOCK_ACCESS_LOCAL_WRITE | DOCK_ACCESS_REMOTE_READ | DOCK_ACCESS_REMOTE_WRITE;

    e->dev = dev;
    bench_must(dock_pd_create(dev, &e->pd), "dock_pd_create");
    bench_must(dock_cq_create(dev, &cq, &e->cq), "dock_cq_create");
    struct dock_qp_attr qp = {.service = DOCK_RC,
                              .pd = e->pd,
                              .send_cq = e->cq,
                              .recv_cq = e->cq,
                              .max_send_wr = BENCH_DEPTH,
                              .max_recv_wr = 16,
                              .max_send_sge = 1,
                              .max_recv_sge = 1,
                              .max_inline = 32};
    bench_must(dock_qp_create(dev, &qp, &e->qp), "dock_qp_create");
    if (getenv("BENCH_MALLOC"))
        e->mem = aligned_alloc(4096, (bytes + 4095) & ~4095ul);
    else
        bench_must(dock_mem_alloc(dev, bytes, (void **)&e->mem), "dock_mem_alloc");
    bench_must(!e->mem, "aligned_alloc");
    memset(e->mem, 1, bytes);
    bench_must(dock_mr_register(dev, e->pd, (uintptr_t)e->mem, bytes, (uintptr_t)e->mem, access, &e->mr),
               "dock_mr_register");
}

void bench_connect(struct bench_end *e, uint32_t dest_qp)
{
    struct dock_qp_mod m = {.state = DOCK_INIT,
                            .mask = DOCK_MOD_STATE | DOCK_MOD_ACCESS,
                            .access = DOCK_ACCESS_REMOTE_READ | DOCK_ACCESS_REMOTE_WRITE,
                            .dest_qp = dest_qp,
                            .timeout = 14,
                            .retry = 7,
                            .rnr_retry = 7,
                            .rnr_timer = 1,
                            .rd_atomic = 16,
                            .dest_rd_atomic = 16};

    memcpy(m.eid, dock_identity()->gid[0].raw, 16);
    bench_must(dock_qp_modify(e->qp, &m), "to INIT");
    m.state = DOCK_RTR;
    m.mask = DOCK_MOD_STATE | DOCK_MOD_DEST | DOCK_MOD_RNR_TIMER | DOCK_MOD_DEST_RD_ATOMIC;
    bench_must(dock_qp_modify(e->qp, &m), "to RTR");
    m.state = DOCK_RTS;
    m.mask = DOCK_MOD_STATE | DOCK_MOD_TIMEOUT | DOCK_MOD_RETRY | DOCK_MOD_RNR_RETRY | DOCK_MOD_RD_ATOMIC;
    bench_must(dock_qp_modify(e->qp, &m), "to RTS");
}

struct bench_name bench_name_of(const struct bench_end *e)
{
    return (struct bench_name){
        .qp = dock_qp_number(e->qp), .rkey = e->mr->rkey, .addr = (uint64_t)(uintptr_t)e->mem};
}

static struct dock_dev *open_device(void)
{
    struct dock_dev *dev;

    bench_must(dock_dev_open(NULL, &dev), "dock_dev_open");
    return dev;
}

// Both sides say who they are, connect, and say so: a WRITE to a queue that is not yet ready would be
// retried.
static void meet(struct bench_end *e, int sock, struct bench_name *other)
{
    struct bench_name mine = bench_name_of(e);
    char ready = 1;

    bench_must(write(sock, &mine, sizeof mine) != sizeof mine, "write");
    bench_must(read(sock, other, sizeof *other) != sizeof *other, "read");
    bench_connect(e, other->qp);
    bench_must(write(sock, &ready, 1) != 1, "write");
    bench_must(read(sock, &ready, 1) != 1, "read");
}

static void child(int sock, size_t bytes, void (*serve)(struct bench_end *, const struct bench_name *))
{
    struct bench_end me;
    struct bench_name parent;
    char end;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    bench_open(&me, open_device(), bytes);
    meet(&me, sock, &parent);
    if (serve)
        serve(&me, &parent);
    while (read(sock, &end, 1) > 0)
        ;
    _exit(0);
}

void bench_pair(struct bench_end *me, struct bench_name *peer, size_t bytes, bool two_processes,
                void (*serve)(struct bench_end *, const struct bench_name *))
{
    struct bench_end other;
    int sock[2];

    if (!two_processes) {
        bench_open(me, open_device(), bytes);
        bench_open(&other, me->dev, bytes);
        *peer = bench_name_of(&other);
        bench_connect(&other, dock_qp_number(me->qp));
        bench_connect(me, peer->qp);
        return;
    }
    bench_must(socketpair(AF_UNIX, SOCK_STREAM, 0, sock), "socketpair");
    fflush(stdout);
    pid_t pid = fork(); // before the first device of this process: a device does not survive fork
    bench_must(pid < 0, "fork");
    if (pid == 0) {
        close(sock[0]);
        child(sock[1], bytes, serve);
    }
    close(sock[1]);
    bench_open(me, open_device(), bytes);
    meet(me, sock[0], peer);
}

struct dock_wr bench_write(const struct bench_end *e, const struct bench_name *peer, struct dock_sge *sge,
                           uint32_t len)
{
    *sge = (struct dock_sge){.addr = (uintptr_t)e->mem, .len = len, .key = e->mr->lkey};
    return (struct dock_wr){
        .op = DOCK_OP_WRITE, .nsge = 1, .sge = sge, .rkey = peer->rkey, .raddr = peer->addr};
}

void bench_drain(struct bench_end *e, unsigned n)
{
    struct dock_wc wc;

    while (n) {
        dock_cq_begin(e->cq);
        int got = dock_cq_next(e->cq, &wc);
        dock_cq_end(e->cq);
        bench_must(got < 0 || (got && wc.status), "a completion failed");
        n -= (unsigned)got;
    }
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

#define MOST 1001

static unsigned repeats(void)
{
    const char *text = getenv("BENCH_REPEATS");
    int n = text ? atoi(text) : 101;

    return n < 1 ? 1 : n > MOST ? MOST : (unsigned)n;
}

static double middle(double *got, unsigned n)
{
    qsort(got, n, sizeof *got, ascending);
    return got[n / 2];
}

double bench_median(struct bench_run what)
{
    static double got[MOST];
    unsigned n = repeats();

    what.run(what.arg); // pages, caches and the branch predictor see it once before it counts
    for (unsigned i = 0; i < n; i++)
        got[i] = what.run(what.arg);
    return middle(got, n);
}

void bench_medians(struct bench_run what, struct bench_run limit, double *figure, double *limit_figure)
{
    static double got[2][MOST];
    unsigned n = repeats();

    for (unsigned i = 0; i <= n; i++) { // the first is written over
        got[0][i ? i - 1 : 0] = what.run(what.arg);
        got[1][i ? i - 1 : 0] = limit.run(limit.arg);
    }
    *figure = middle(got[0], n);
    *limit_figure = middle(got[1], n);
}

void bench_row(const char *what, const char *unit, double figure, double limit, const char *limit_is,
               const char *goal)
{
    int digits = figure < 100 ? 1 : 0;

    printf("| %s | %.*f %s | %.*f %s: %s | %.2f | %s |\n", what, digits, figure, unit, limit < 100 ? 1 : 0,
           limit, unit, limit_is, figure / limit, goal);
    fflush(stdout);
}
