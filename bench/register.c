// SPDX-License-Identifier: MIT
// What it costs to register memory of the program and to take the registration back, with adoption: the pages
// move into the arena and out again. Against touching and copying the same number of bytes once, into pages
// that were never used.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench.h"

#define LARGEST (1ul << 30)

struct job {
    struct bench_end me;
    char *mem;
    size_t bytes;
    unsigned times;
};

static double microseconds(uint64_t begin, unsigned times)
{
    return (double)(dock_now_ns() - begin) / 1e3 / times;
}

static struct dock_mr *registered(struct job *j, size_t bytes)
{
    struct dock_mr *mr;

    bench_must(dock_mr_register(j->me.dev, j->me.pd, (uintptr_t)j->mem, bytes, (uintptr_t)j->mem,
                                DOCK_ACCESS_LOCAL_WRITE | DOCK_ACCESS_REMOTE_WRITE, &mr),
               "dock_mr_register");
    return mr;
}

static double in_and_out(void *arg)
{
    struct job *j = arg;
    uint64_t begin = dock_now_ns();

    for (unsigned i = 0; i < j->times; i++)
        bench_must(dock_mr_deregister(registered(j, j->bytes)), "dock_mr_deregister");
    return microseconds(begin, j->times);
}

static double touch_and_copy(void *arg)
{
    struct job *j = arg;
    double spent = 0;

    for (unsigned i = 0; i < j->times; i++) {
        char *fresh = mmap(NULL, j->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        bench_must(fresh == MAP_FAILED, "mmap");
        uint64_t begin = dock_now_ns();
        memcpy(fresh, j->mem, j->bytes);
        spent += microseconds(begin, j->times);
        munmap(fresh, j->bytes);
    }
    return spent;
}

static void measure(struct job *j, size_t bytes, unsigned times, const char *what, const char *goal)
{
    double figure, limit;

    j->bytes = bytes;
    j->times = times;
    bench_medians((struct bench_run){in_and_out, j}, (struct bench_run){touch_and_copy, j}, &figure, &limit);
    bench_row(what, "us", figure, limit, "touch and copy", goal);
}

int main(void)
{
    struct bench_name peer;
    struct job j;

    setenv("DRYDOCK_ADOPT", "inner", 0);
    bench_pair(&j.me, &peer, 4096, false, NULL);
    j.mem = mmap(NULL, LARGEST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bench_must(j.mem == MAP_FAILED, "mmap");
    memset(j.mem, 1, LARGEST);
    measure(&j, 4096, 16, "register and deregister 4 KiB", "at most 60 us");
    measure(&j, 4ul << 20, 1, "register and deregister 4 MiB", "at most 3.5");
    struct dock_mr *around = registered(&j, 4ul << 20);
    measure(&j, 4096, 64, "register and deregister 4 KiB inside adopted pages", "at most 1 us");
    bench_must(dock_mr_deregister(around), "dock_mr_deregister");
    setenv("BENCH_REPEATS", "3", 1); // each takes seconds
    measure(&j, LARGEST, 1, "register and deregister 1 GiB", "at most 3.5");
    return 0;
}
