// SPDX-License-Identifier: MIT
// link: shmem
// OpenSHMEM between two PEs: oshrun -np 2 bench_shmem. The limit of each row is the same work done by the
// program itself on memory that shmem_ptr gives it.
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { COUNT = 4096, BIG = 1 << 20, MOST = 1001 };

static struct {
    uint64_t *words; // COUNT of them here
    char *big;
    uint64_t *far_words; // the same of PE 1, as memory
    char *far_big;
    char *source;
} s;

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

// A loop that does its work COUNT times (or once, for the big ones) and says how often it did.
typedef unsigned (*work_fn)(void);

static unsigned put_one(void)
{
    for (unsigned i = 0; i < COUNT; i++)
        shmem_uint64_p(&s.words[i], i, 1);
    return COUNT;
}

static unsigned store_one(void)
{
    for (unsigned i = 0; i < COUNT; i++)
        __atomic_store_n(&s.far_words[i], i, __ATOMIC_RELEASE);
    return COUNT;
}

static unsigned put_quiet(void)
{
    for (unsigned i = 0; i < COUNT / 8; i++) {
        shmem_uint64_p(&s.words[i], i, 1);
        shmem_quiet();
    }
    return COUNT / 8;
}

static unsigned put_nbi(void)
{
    for (unsigned i = 0; i < COUNT; i++)
        shmem_putmem_nbi(&s.words[i], s.source, 8, 1);
    shmem_quiet();
    return COUNT;
}

static unsigned put_signal(void)
{
    for (unsigned i = 0; i < COUNT; i++)
        shmem_putmem_signal_nbi(&s.words[i], s.source, 8, &s.words[0], i, SHMEM_SIGNAL_SET, 1);
    shmem_quiet();
    return COUNT;
}

static unsigned get_one(void)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < COUNT; i++)
        sum += shmem_uint64_g(&s.words[i], 1);
    return COUNT + (sum == 1);
}

static unsigned load_one(void)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < COUNT; i++)
        sum += __atomic_load_n(&s.far_words[i], __ATOMIC_ACQUIRE);
    return COUNT + (sum == 1);
}

static unsigned put_big(void)
{
    shmem_putmem(s.big, s.source, BIG, 1);
    return 1;
}

static unsigned copy_big(void)
{
    memcpy(s.far_big, s.source, BIG);
    return 1;
}

static unsigned fetch_add(void)
{
    for (unsigned i = 0; i < COUNT; i++)
        shmem_uint64_atomic_fetch_add(&s.words[0], 1, 1);
    return COUNT;
}

static unsigned add(void)
{
    for (unsigned i = 0; i < COUNT; i++)
        shmem_uint64_atomic_add(&s.words[0], 1, 1);
    shmem_quiet();
    return COUNT;
}

static unsigned bare_add(void)
{
    for (unsigned i = 0; i < COUNT; i++)
        __atomic_fetch_add(&s.far_words[0], 1, __ATOMIC_SEQ_CST);
    return COUNT;
}

static double once(work_fn work)
{
    double begin = now_ns();
    unsigned times = work();

    return (now_ns() - begin) / times;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static unsigned repeats(void)
{
    const char *text = getenv("BENCH_REPEATS");
    int n = text ? atoi(text) : 101;

    return n < 1 ? 1 : n > MOST ? MOST : (unsigned)n;
}

// Medians, the two measured in turn.
static void row(const char *what, work_fn work, const char *limit_is, work_fn limit)
{
    static double a[MOST], b[MOST];
    unsigned n = repeats();

    for (unsigned i = 0; i < n; i++) {
        a[i] = once(work);
        b[i] = once(limit);
    }
    qsort(a, n, sizeof *a, by_size);
    qsort(b, n, sizeof *b, by_size);
    printf("| OpenSHMEM: %s | %.1f ns | %.1f ns: %s | %.2f |  |\n", what, a[n / 2], b[n / 2], limit_is,
           a[n / 2] / b[n / 2]);
}

// Both PEs take part in these.
static double barrier(void)
{
    double begin = now_ns();

    for (unsigned i = 0; i < COUNT; i++)
        shmem_barrier_all();
    return (now_ns() - begin) / COUNT;
}

// Each writes the other's line and waits for its own.
static double bare_lines(void)
{
    double begin = now_ns();
    uint64_t *far = shmem_ptr(s.words, 1 - shmem_my_pe());

    s.words[0] = 0;
    shmem_barrier_all();
    for (uint64_t i = 1; i <= COUNT; i++) {
        __atomic_store_n(far, i, __ATOMIC_RELEASE);
        while (__atomic_load_n(s.words, __ATOMIC_ACQUIRE) < i)
            ;
    }
    return (now_ns() - begin) / COUNT;
}

int main(void)
{
    shmem_init();
    if (shmem_n_pes() != 2) {
        fprintf(stderr, "bench_shmem: two PEs are needed: oshrun -np 2 bench_shmem\n");
        shmem_global_exit(2);
    }
    s.words = shmem_calloc(COUNT, sizeof *s.words);
    s.big = shmem_calloc(1, BIG);
    s.far_words = shmem_ptr(s.words, 1);
    s.far_big = shmem_ptr(s.big, 1);
    s.source = calloc(1, BIG);
    if (shmem_my_pe() == 0) {
        row("8-byte put, blocking", put_one, "a store", store_one);
        row("8-byte put_nbi, quiet at the end", put_nbi, "a store", store_one);
        row("8-byte put and quiet", put_quiet, "a store", store_one);
        row("8-byte put_signal_nbi, quiet at the end", put_signal, "a store", store_one);
        row("8-byte get", get_one, "a load", load_one);
        row("fetch_add", fetch_add, "an atomic instruction", bare_add);
        row("add, quiet at the end", add, "an atomic instruction", bare_add);
        row("1 MiB put", put_big, "memcpy", copy_big);
    }
    shmem_barrier_all();
    double b = barrier(), l = bare_lines();
    if (shmem_my_pe() == 0)
        printf("| OpenSHMEM: barrier of 2 PEs | %.1f ns | %.1f ns: bare cache lines | %.2f |  |\n", b, l,
               b / l);
    shmem_finalize();
    return 0;
}
