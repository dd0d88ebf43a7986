// SPDX-License-Identifier: MIT
// Nanoseconds per posted and executed 8-byte WRITE, a completion every 16: one by one and in lists of 16,
// inside one process and between two, memory in the arena.
#include <stdio.h>

#include "bench.h"

#define COUNT 8192u

struct job {
    struct bench_end me;
    struct bench_name peer;
    unsigned list;
};

static double writes(void *arg)
{
    struct job *j = arg;
    struct dock_sge sge;
    struct dock_wr plain = bench_write(&j->me, &j->peer, &sge, 8), told = plain;
    uint64_t begin = dock_now_ns();

    told.flags = DOCK_F_COMPLETE;
    for (unsigned i = 0; i < COUNT; i += j->list) {
        struct dock_post p;
        dock_post_begin(j->me.qp, &p);
        for (unsigned k = i; k < i + j->list; k++)
            bench_must(dock_post_put(&p, k % 16 == 15 ? &told : &plain), "dock_post_put");
        dock_post_end(&p);
        if ((i + j->list) % 64 == 0)
            bench_drain(&j->me, 4);
    }
    return (double)(dock_now_ns() - begin) / COUNT;
}

static double bare(void *arg)
{
    struct job *j = arg;
    static struct bench_bare *b;

    b = b ? b : bench_bare_open();
    return bench_bare_write(b, COUNT, j->list);
}

static void measure(struct job *j, unsigned list, const char *where)
{
    static const char *const goal[] = {"at most 14 ns", "at most 28 ns"};
    char what[80];

    j->list = list;
    snprintf(what, sizeof what, "8-byte WRITE, %s, %s", list == 1 ? "one by one" : "lists of 16", where);
    double figure, limit;
    bench_medians((struct bench_run){writes, j}, (struct bench_run){bare, j}, &figure, &limit);
    bench_row(what, "ns", figure, limit, "the ring alone", goal[list == 1]);
}

int main(void)
{
    struct job two, one;

    bench_pair(&two.me, &two.peer, 4096, true, NULL);
    bench_pair(&one.me, &one.peer, 4096, false, NULL);
    measure(&one, 1, "one process");
    measure(&one, 16, "one process");
    measure(&two, 1, "two processes");
    measure(&two, 16, "two processes");
    return 0;
}
