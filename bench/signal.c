// SPDX-License-Identifier: MIT
// What a completion costs: 8-byte WRITEs between two processes in lists of 16, every 1st, 4th, 16th or 64th
// signaled, all completions polled. The cost of one CQE, written and read, is the slope between the first
// and the last.
#include <stdio.h>

#include "bench.h"

#define COUNT 8192u
#define LIST 16u

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
        for (unsigned k = i + 1; k <= i + LIST; k++) {
            wr.flags = k % j->every ? 0 : DOCK_F_COMPLETE;
            bench_must(dock_post_put(&p, &wr), "dock_post_put");
        }
        dock_post_end(&p);
        if ((i + LIST) % 64 == 0)
            bench_drain(&j->me, 64 / j->every);
    }
    return (double)(dock_now_ns() - begin) / COUNT;
}

int main(void)
{
    struct job j, rare;
    double cost, without;

    bench_pair(&j.me, &j.peer, 4096, true, NULL);
    rare = j;
    rare.every = 64;
    for (j.every = 64; j.every; j.every /= 4) {
        char what[80];
        snprintf(what, sizeof what, "8-byte WRITE, lists of %u, signal interval %u", LIST, j.every);
        bench_medians((struct bench_run){writes, &j}, (struct bench_run){writes, &rare}, &cost, &without);
        bench_row(what, "ns", cost, without, "interval 64", "");
    }
    bench_row("one CQE, written and polled", "ns", (cost - without) / (1 - 1.0 / 64), without,
              "a WRITE without it", "");
    return 0;
}
