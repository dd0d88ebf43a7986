// SPDX-License-Identifier: MIT
// Ping-pong of several implementations of OpenSHMEM, in turn: FILE JOB JOBS. All jobs stand at once, of 2 PEs
// each, and play one after another for less than a millisecond, by the turn in FILE, which they share. So
// they meet the same processors at the same distance: on a virtual machine that changes by the second, and a
// program that is run behind another one may find five times as far a way. Each plays over bare lines of FILE
// as well. Prints the medians as "ping_pong" and "ping_pong_bare", nanoseconds for half a round.
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <shmem.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 500, TURNS = 41, LINE = 128 };

struct turns {
    _Alignas(LINE) _Atomic int turn;
    struct {
        _Alignas(LINE) _Atomic long word;
    } line[2];
};

static struct turns *turns;
static long *word;
static int me;

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void by_shmem(void)
{
    static long round;

    for (int i = 0; i < ROUNDS; i++) {
        round++;
        if (me == 0)
            shmem_long_p(word, round, 1);
        shmem_long_wait_until(word, SHMEM_CMP_GE, round);
        if (me == 1)
            shmem_long_p(word, round, 0);
    }
}

// Rounds are counted from the turn on: the lines are those of all jobs.
static void bare(int turn)
{
    for (long round = turn * (long)ROUNDS + 1; round <= (turn + 1) * (long)ROUNDS; round++) {
        if (me == 0)
            atomic_store_explicit(&turns->line[1].word, round, memory_order_release);
        while (atomic_load_explicit(&turns->line[me].word, memory_order_acquire) < round) {
#ifdef __x86_64__
            __builtin_ia32_pause();
#endif
        }
        if (me == 1)
            atomic_store_explicit(&turns->line[0].word, round, memory_order_release);
    }
}

static void wait_turn(int turn)
{
    int seen;

    while ((seen = atomic_load(&turns->turn)) < turn)
        syscall(SYS_futex, &turns->turn, FUTEX_WAIT, seen, NULL, NULL, 0);
}

static void end_turn(int turn)
{
    atomic_store(&turns->turn, turn + 1);
    syscall(SYS_futex, &turns->turn, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double t[TURNS])
{
    qsort(t, TURNS, sizeof *t, by_size);
    return t[TURNS / 2];
}

int main(int argc, char **argv)
{
    double shmem[TURNS], lines[TURNS];
    int fd = argc == 4 ? open(argv[1], O_RDWR) : -1;

    if (fd < 0 || ftruncate(fd, sizeof *turns))
        return 2;
    turns = mmap(NULL, sizeof *turns, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (turns == MAP_FAILED)
        return 2;
    shmem_init();
    me = shmem_my_pe();
    word = shmem_calloc(1, sizeof *word);
    for (int i = 0; i < TURNS; i++) {
        int turn = atoi(argv[2]) + i * atoi(argv[3]);
        wait_turn(turn);
        by_shmem(); // warm
        double from = now_ns();
        by_shmem();
        double between = now_ns();
        bare(turn);
        double end = now_ns();
        shmem[i] = (between - from) / (2 * ROUNDS);
        lines[i] = (end - between) / (2 * ROUNDS);
        if (me == 0)
            end_turn(turn);
    }
    if (me == 0)
        printf("ping_pong %.1f\nping_pong_bare %.1f\n", median(shmem), median(lines));
    fflush(stdout);
    shmem_finalize();
    return 0;
}
