// SPDX-License-Identifier: MIT
// What a completion costs: 8-byte WRITEs between two processes in lists of 64, every 1st, 4th, 16th or 64th
// signaled, all completions polled. The cost of one CQE, written and read, is the slope between the first
// and the last.
#include <stdio.h>

#include "bench.h"

#define COUNT 8192u
#define LIST 64u

struct job {
    struct bench_end me;
    struct bench_name peer;
    unsigned every;
};

static double writes(void *arg)
{
    struct job *j = arg;
    struct dock_sge sge;
    struct dock_wr wr = bench_write(&j->me, &j->peer, &sge, 8);
    uint64_t begin = dock_now_ns();

    for (unsigned i = 0; i < COUNT; i += LIST) {
        struct dock_post p;
        dock_post_begin(j->me.qp, &p);
        for (unsigned k = 1; k <= LIST; k++) {
            wr.flags = k % j->every ? 0 : DOCK_F_COMPLETE;
            bench_must(dock_post_put(&p, &wr), "dock_post_put");
        }
        dock_post_end(&p);
        bench_drain(&j->me, LIST / j->every);
    }
    return (double)(dock_now_ns() - begin) / COUNT;
}

int main(void)
{
    struct job j;
    double cost[4];
    unsigned n = 0;

    bench_pair(&j.me, &j.peer, 4096, true, NULL);
    for (j.every = 64; j.every; j.every /= 4)
        cost[n++] = bench_median(writes, &j);
    for (unsigned i = 0; i < n; i++) {
        char what[80];
        snprintf(what, sizeof what, "8-byte WRITE, lists of %u, signal interval %u", LIST, 64u >> (2 * i));
        bench_row(what, "ns", cost[i], cost[0], "interval 64", "");
    }
    bench_row("one CQE, written and polled", "ns", (cost[3] - cost[0]) / (1 - 1.0 / 64), cost[0],
              "a WRITE without it", "");
    return 0;
}
