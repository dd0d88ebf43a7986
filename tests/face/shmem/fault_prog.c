// SPDX-License-Identifier: MIT
// fault_prog CASE: a program that does what it must not, or meets what it did not do.
#include <shmem.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long x;
static int me;

static void to_the_dead(void)
{
    shmem_barrier_all(); // a peer that dies while it is first reached is another case: never_starts
    if (me == 1)
        raise(SIGKILL);
    for (;;) { // until the next request that needs it tells
        shmem_long_p(&x, 1, 1);
        shmem_quiet();
    }
}

// The same where puts are stores: memory that is still mapped takes them, so the library must look.
static void to_the_dead_heap(void)
{
    long *p = shmem_calloc(1, sizeof *p);

    if (me == 1)
        raise(SIGKILL);
    for (;;)
        shmem_long_p(p, 1, 1);
}

static void atomic_to_the_dead(void)
{
    long *p = shmem_calloc(1, sizeof *p);

    if (me == 1)
        raise(SIGKILL);
    for (;;)
        shmem_long_atomic_fetch_add(p, 1, 1);
}

static void wait_for_the_dead(void)
{
    shmem_barrier_all(); // a peer that dies while it is first reached is another case: never_starts
    if (me == 1)
        raise(SIGKILL);
    shmem_long_wait_until(&x, SHMEM_CMP_EQ, 1);
}

static void barrier_with_the_dead(void)
{
    shmem_barrier_all(); // a peer that dies while it is first reached is another case: never_starts
    if (me == 1)
        _exit(3);
    shmem_barrier_all();
}

// PE 1 dies with a lock. Who waits for it, or asks for it over and over, is told.
static void dies_with(long *lock)
{
    if (me == 1) {
        shmem_set_lock(lock);
        shmem_long_p(&x, 1, 0);
        shmem_quiet();
        raise(SIGKILL);
    }
    shmem_long_wait_until(&x, SHMEM_CMP_EQ, 1);
}

static void lock_of_the_dead(void)
{
    static long lock;

    dies_with(&lock);
    shmem_set_lock(&lock);
}

static void ask_for_the_deads_lock(void)
{
    long *lock = shmem_calloc(1, sizeof *lock);

    dies_with(lock);
    while (shmem_test_lock(lock))
        ;
}

static void outside(void)
{
    long *private = malloc(sizeof *private);

    if (me == 0)
        shmem_long_p(private, 1, 1);
    shmem_barrier_all();
    free(private);
}

static void past_the_end(void)
{
    char *p = shmem_malloc(64);
    static char source[1 << 20];

    if (me == 0)
        for (size_t n = 1 << 20;; n += 1 << 20) // past the heap's end at last
            shmem_putmem(p + n, source, sizeof source, 1);
    shmem_barrier_all();
}

// ---- bad_...: one call of PE 0 each, which ends the job. `private` is not symmetric.
static long *heap, *private, own[4];
static uint64_t *sig;
static shmem_ctx_t team_ctx;

static void bad_get(void)
{
    shmem_long_get(own, private, 1, 1);
}

static void bad_iput_over(void)
{
    shmem_long_iput(heap, own, 1l << 40, 1, 2, 1);
}

static void bad_iput_under(void)
{
    shmem_long_iput(heap, own, -(1l << 40), 1, 2, 1);
}

static void bad_iget_over(void)
{
    shmem_long_iget(own, heap, 1, 1l << 40, 2, 1);
}

// 2^32 blocks, 2^32 bytes apart: a span that wraps to nothing.
static void bad_iput_wrap(void)
{
    shmem_long_iput(heap, own, 1l << 29, 0, (1ull << 32) + 1, 1);
}

// An element's stride that wraps in bytes.
static void bad_iget_wrap(void)
{
    shmem_long_iget(own, heap, 1, 1l << 61, 2, 1);
}

static void bad_add(void)
{
    shmem_long_atomic_add(private, 1, 1);
}

static void bad_fetch_odd(void)
{
    shmem_long_atomic_fetch_add((long *)(void *)((char *)heap + 4), 1, 1);
}

static void bad_add_odd(void)
{
    shmem_int_atomic_add((int *)(void *)((char *)heap + 2), 1, 1);
    shmem_quiet();
}

static void bad_signal_word(void)
{
    shmem_long_put_signal(heap, own, 1, (uint64_t *)private, 1, SHMEM_SIGNAL_SET, 1);
}

static void bad_signal_data(void)
{
    shmem_long_put_signal(private, own, 1, sig, 1, SHMEM_SIGNAL_ADD, 1);
}

static void bad_team_pe(void)
{
    shmem_ctx_long_p(team_ctx, heap, 1, 1); // its team is PE 0 alone
}

static const struct {
    const char *name;
    void (*run)(void);
} bad[] = {
    {"bad_get", bad_get},
    {"bad_iput_over", bad_iput_over},
    {"bad_iput_under", bad_iput_under},
    {"bad_iget_over", bad_iget_over},
    {"bad_iput_wrap", bad_iput_wrap},
    {"bad_iget_wrap", bad_iget_wrap},
    {"bad_add", bad_add},
    {"bad_fetch_odd", bad_fetch_odd},
    {"bad_add_odd", bad_add_odd},
    {"bad_signal_word", bad_signal_word},
    {"bad_signal_data", bad_signal_data},
    {"bad_team_pe", bad_team_pe},
};

static void bad_call(const char *name)
{
    shmem_team_t alone;

    heap = shmem_calloc(8, sizeof *heap);
    sig = shmem_calloc(1, sizeof *sig);
    private = calloc(1, sizeof *private);
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 1, NULL, 0, &alone);
    if (me == 0) {
        if (shmem_team_create_ctx(alone, 0, &team_ctx))
            shmem_global_exit(9);
        for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++)
            if (!strcmp(name, bad[i].name))
                bad[i].run();
    }
    shmem_barrier_all();
    shmem_global_exit(8);
}

static void no_such_pe(void)
{
    if (me == 0)
        shmem_long_p(&x, 1, 2);
    shmem_barrier_all();
}

static void negative_pe(void)
{
    if (me == 0)
        shmem_long_g(&x, -1);
    shmem_barrier_all();
}

static void exhausted(void)
{
    char *first = shmem_malloc(1 << 20);
    void *p = shmem_malloc((size_t)1 << 40);
    char *after = shmem_malloc(1 << 20);

    if (p || !first || !after)
        shmem_global_exit(9);
    shmem_free(after);
    shmem_free(first);
}

// All that SHMEM_SYMMETRIC_SIZE says, a mebibyte, beside a small object; and an object may grow into what it
// has and what is free beside it.
static void the_whole_heap(void)
{
    const size_t all = 1 << 20;
    char *small = shmem_malloc(100), *whole = shmem_malloc(all);

    if (!small || !whole)
        shmem_global_exit(9);
    shmem_free(whole);
    char *p = shmem_malloc(1000);
    memset(p, 7, 1000);
    p = shmem_realloc(p, all);
    if (!p || p[0] != 7 || p[999] != 7)
        shmem_global_exit(10);
    if (shmem_realloc(p, all + all / 4) || p[0] != 7 || p[999] != 7)
        shmem_global_exit(11);
    shmem_free(p);
    shmem_free(small);
}

// Pages of this process that are shared memory, which the heap is.
static long shared_pages(void)
{
    long size = 0, resident = 0, shared = 0;
    FILE *f = fopen("/proc/self/statm", "r");

    if (!f || fscanf(f, "%ld %ld %ld", &size, &resident, &shared) != 3)
        shmem_global_exit(9);
    fclose(f);
    return shared;
}

// What is freed is given back, and zeros when it is there again.
static void freed_pages(void)
{
    const long bytes = 8 << 20, pages = bytes / sysconf(_SC_PAGESIZE);
    char *keep = shmem_malloc(1 << 20), *p;

    memset(keep, 5, 1 << 20);
    long before = shared_pages();
    p = shmem_malloc((size_t)bytes);
    memset(p, 7, (size_t)bytes);
    if (shared_pages() < before + pages * 9 / 10)
        shmem_global_exit(10);
    shmem_free(p);
    if (shared_pages() > before + pages / 10)
        shmem_global_exit(11);
    p = shmem_malloc((size_t)bytes);
    if (p[bytes / 2] != 0 || keep[0] != 5 || keep[(1 << 20) - 1] != 5)
        shmem_global_exit(12);
}

// An object that has moved leaves nothing behind.
static void moved_pages(void)
{
    const long bytes = 8 << 20, pages = bytes / sysconf(_SC_PAGESIZE);
    char *p = shmem_malloc((size_t)bytes), *behind = shmem_malloc(64);
    long before = shared_pages();

    memset(p, 7, (size_t)bytes);
    char *q = shmem_realloc(p, 2 * (size_t)bytes);
    if (!q || q == p || q[0] != 7 || q[bytes - 1] != 7)
        shmem_global_exit(10);
    if (shared_pages() > before + pages * 11 / 10)
        shmem_global_exit(11);
    // Into what is free before it: where both lie stays.
    shmem_free(behind);
    char *r = shmem_realloc(q, 3 * (size_t)bytes);
    if (!r || r[0] != 7 || r[bytes - 1] != 7)
        shmem_global_exit(12);
}

static void not_an_object(void)
{
    char *p = shmem_malloc(128);

    shmem_free(p + 8);
}

static void global_exit(void)
{
    if (me == 1)
        shmem_global_exit(7);
    shmem_barrier_all();
}

static void no_finalize(void)
{
    shmem_barrier_all();
    exit(0);
}

static void failed_after_finalize(void)
{
    shmem_finalize();
    exit(me == 1 ? 5 : 0);
}

static void after_finalize(void)
{
    shmem_finalize();
    shmem_barrier_all();
}

static void put_after_finalize(void)
{
    shmem_finalize();
    shmem_long_p(&x, 1, 0);
}

static shmem_ctx_t left_over(void)
{
    shmem_ctx_t c;

    if (shmem_ctx_create(0, &c))
        shmem_global_exit(9);
    shmem_ctx_long_p(c, &x, 1, 0);
    shmem_finalize();
    return c;
}

static void context_after_finalize(void)
{
    shmem_ctx_long_p(left_over(), &x, 1, 0);
}

static void context_quiet_after_finalize(void)
{
    shmem_ctx_quiet(left_over());
}

// In its own group and session no more: it is found all the same.
static void leaves_a_session(void)
{
    if (fork() == 0) {
        setsid();
        for (;;)
            pause();
    }
}

static void leaves_a_child(void)
{
    if (fork() == 0) {
        for (;;)
            pause();
    }
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"to_the_dead", to_the_dead},
    {"to_the_dead_heap", to_the_dead_heap},
    {"atomic_to_the_dead", atomic_to_the_dead},
    {"wait_for_the_dead", wait_for_the_dead},
    {"barrier_with_the_dead", barrier_with_the_dead},
    {"lock_of_the_dead", lock_of_the_dead},
    {"ask_for_the_deads_lock", ask_for_the_deads_lock},
    {"outside", outside},
    {"past_the_end", past_the_end},
    {"no_such_pe", no_such_pe},
    {"negative_pe", negative_pe},
    {"exhausted", exhausted},
    {"the_whole_heap", the_whole_heap},
    {"freed_pages", freed_pages},
    {"moved_pages", moved_pages},
    {"not_an_object", not_an_object},
    {"global_exit", global_exit},
    {"no_finalize", no_finalize},
    {"failed_after_finalize", failed_after_finalize},
    {"after_finalize", after_finalize},
    {"put_after_finalize", put_after_finalize},
    {"context_after_finalize", context_after_finalize},
    {"context_quiet_after_finalize", context_quiet_after_finalize},
    {"leaves_a_child", leaves_a_child},
    {"leaves_a_session", leaves_a_session},
};

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";

    if (!strcmp(name, "before_init"))
        shmem_long_p(&x, 1, 0);
    if (!strcmp(name, "my_pe_before_init"))
        return shmem_my_pe();
    if (!strcmp(name, "never_starts") && !strcmp(getenv("DRYDOCK_JOB_RANK"), "1"))
        return 0;
    shmem_init();
    me = shmem_my_pe();
    if (!strncmp(name, "bad_", 4))
        bad_call(name);
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
        if (!strcmp(name, cases[i].name)) {
            cases[i].run();
            if (strcmp(name, "failed_after_finalize") != 0)
                shmem_finalize();
            return 0;
        }
    fprintf(stderr, "fault_prog: no case '%s'\n", name);
    shmem_global_exit(99);
}
