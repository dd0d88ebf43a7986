// SPDX-License-Identifier: MIT
// A program that frees, grows, moves and clears memory while it is registered, as programs do: each finds
// what it would have found without a device. Run under `drydock run` by adopt_calls.sh, with more than one
// allocator.
#include <errno.h>
#include <infiniband/verbs.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/seed.h"
#include "lib/maps.h"

#define PAGE 4096u
#define SLOTS 48u

static struct ibv_pd *pd;

static void fail(const char *what, uint64_t got, uint64_t want)
{
    printf("FAIL %s: got %#llx, expected %#llx (DRYDOCK_SEED=%s)\n", what, (unsigned long long)got,
           (unsigned long long)want, getenv("DRYDOCK_SEED") ? getenv("DRYDOCK_SEED") : "");
    exit(1);
}

static void check(const char *what, uint64_t got, uint64_t want)
{
    if (got != want)
        fail(what, got, want);
}

static struct ibv_mr *reg(void *at, size_t len)
{
    struct ibv_mr *mr =
        ibv_reg_mr(pd, at, len, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);

    if (!mr)
        fail("ibv_reg_mr", 0, len);
    return mr;
}

static void fill(unsigned char *at, size_t len, unsigned seed)
{
    for (size_t i = 0; i < len; i += 61)
        at[i] = (unsigned char)(seed + i / 61);
}

static void verify(const char *what, const unsigned char *at, size_t len, unsigned seed)
{
    for (size_t i = 0; i < len; i += 61)
        check(what, at[i], (unsigned char)(seed + i / 61));
}

static void *pages(size_t n)
{
    void *p = mmap(NULL, n * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    check("mmap", p == MAP_FAILED, 0);
    return p;
}

static void cleared(void)
{
    unsigned char *p = pages(16);
    struct ibv_mr *mr = reg(p, 16 * PAGE);

    check("adopted", maps_look(p, 16 * PAGE).adopted, 16 * PAGE);
    fill(p, 16 * PAGE, 1);
    check("madvise", (uint64_t)madvise(p + 4 * PAGE, 4 * PAGE, MADV_DONTNEED), 0);
    for (unsigned i = 4 * PAGE; i < 8 * PAGE; i++)
        check("cleared memory", p[i], 0);
    p[5 * PAGE] = 9;
    check("madvise(FREE)", (uint64_t)madvise(p + 12 * PAGE, 2 * PAGE, MADV_FREE), 0);
    check("madvise(DOFORK)", (uint64_t)madvise(p, 16 * PAGE, MADV_DOFORK), 0);
    ibv_dereg_mr(mr);
    check("after deregistration", p[5 * PAGE], 9);
    check("after deregistration", p[5 * PAGE + 1], 0);
    verify("the part that was left", p, 4 * PAGE, 1);
    check("given back", maps_look(p, 16 * PAGE).private_anon, 16 * PAGE);
    munmap(p, 16 * PAGE);
}

// Advice that stays, given before, meanwhile and to a part: the memory has it when it is deregistered.
static void advised(size_t n)
{
    static const struct {
        int advice;
        const char *flag;
    } asked[] = {
        {MADV_HUGEPAGE, " hg"}, {MADV_DONTDUMP, " dd"}, {MADV_DONTFORK, " dc"}, {MADV_WIPEONFORK, " wf"}};

    for (unsigned i = 0; i < sizeof asked / sizeof *asked; i++) {
        unsigned char *p = pages(n);
        fill(p, n * PAGE, i);
        check("advice before", (uint64_t)madvise(p, PAGE, asked[i].advice), 0);
        struct ibv_mr *mr = reg(p, n * PAGE);
        check("adopted", maps_look(p, n * PAGE).adopted, n * PAGE);
        check("advice meanwhile", (uint64_t)madvise(p + 2 * PAGE, PAGE, asked[i].advice), 0);
        ibv_dereg_mr(mr);
        verify("advised memory", p, 2 * PAGE, i);
        check("advice given before", maps_has(p, asked[i].flag), 1);
        check("no advice", maps_has(p + PAGE, asked[i].flag), 0);
        check("advice given meanwhile", maps_has(p + 2 * PAGE, asked[i].flag), 1);
        check("no advice", maps_has(p + 3 * PAGE, asked[i].flag), 0);
        munmap(p, n * PAGE);
    }
}

// What is locked cannot be cleared, nor what is not mapped be advised; as without a device.
static void refused(void)
{
    unsigned char *p = pages(16);
    struct ibv_mr *mr = reg(p, 16 * PAGE);

    if (!mlock(p, PAGE)) {
        p[0] = 5;
        check("clearing locked memory", (uint64_t)madvise(p, PAGE, MADV_DONTNEED), (uint64_t)-1);
        check("its reason", (uint64_t)errno, EINVAL);
        check("locked memory", p[0], 5);
    }
    munmap(p + 8 * PAGE, PAGE);
    check("advice to a hole", (uint64_t)madvise(p, 16 * PAGE, MADV_DONTDUMP), (uint64_t)-1);
    check("its reason", (uint64_t)errno, ENOMEM);
    ibv_dereg_mr(mr);
    check("advice beside a hole", maps_has(p, " dd") && maps_has(p + 9 * PAGE, " dd"), 1);
    munmap(p, 16 * PAGE);
}

static void answers(const char *what, void *got, int want)
{
    check(what, got == MAP_FAILED, want != 0);
    check(what, got == MAP_FAILED ? (uint64_t)errno : 0, (uint64_t)want);
}

static void answers_advice(const char *what, void *at, int advice, int want)
{
    answers(what, madvise(at, 2 * PAGE, advice) ? MAP_FAILED : at, want);
}

#define DONTUNMAP 4

// Calls that memory of the program's own refuses, or takes as shared memory does not: the answers are those
// for memory that nobody has registered.
static void as_without_a_device(void)
{
    unsigned char *p = pages(16), *to = pages(32), *q;
    struct ibv_mr *mr = reg(p, 16 * PAGE);

    fill(p, 16 * PAGE, 6);
    answers_advice("MADV_REMOVE", p, MADV_REMOVE, EINVAL);
    answers_advice("MADV_DONTNEED, not aligned", p + 1, MADV_DONTNEED, EINVAL);
    answers_advice("MADV_FREE, not aligned", p + 1, MADV_FREE, EINVAL);
    answers_advice("MADV_DONTFORK, not aligned", p + 1, MADV_DONTFORK, EINVAL);
    answers("mremap of nothing", mremap(p, 0, PAGE, MREMAP_MAYMOVE), EINVAL);
    answers("mremap, fixed and not to move", mremap(p, PAGE, PAGE, MREMAP_FIXED, to), EINVAL);
    answers("mremap over itself", mremap(p, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, p + PAGE),
            EINVAL);
    munmap(to + 16 * PAGE, 16 * PAGE);
    verify("memory that was refused", p, 16 * PAGE, 6);
    q = mremap(p, 16 * PAGE, 16 * PAGE, MREMAP_MAYMOVE | DONTUNMAP);
    check("mremap that leaves the old place mapped", q == MAP_FAILED, 0);
    verify("what moved", q, 16 * PAGE, 6);
    for (unsigned i = 0; i < 16 * PAGE; i++)
        check("where it was", p[i], 0);
    p[0] = 77;
    check("what moved, beside a store to the old place", q[0], 6);
    munmap(p + 8 * PAGE, 8 * PAGE);
    munmap(q + 12 * PAGE, 4 * PAGE);
    answers("mremap beyond the end", mremap(q, 16 * PAGE, 20 * PAGE, MREMAP_MAYMOVE), EFAULT);
    ibv_dereg_mr(mr);
    verify("what moved, deregistered", q, 12 * PAGE, 6);
    check("given back", maps_look(q, 12 * PAGE).private_anon, 12 * PAGE);
    munmap(q, 12 * PAGE);
    munmap(p, 8 * PAGE);
    munmap(to, 16 * PAGE);
}

// More mappings in one call than anybody expects: every other page is registered.
static void cleared_in_pieces(void)
{
    enum { N = 700 };
    static struct ibv_mr *mr[N];
    unsigned char *p = pages(2 * N);

    memset(p, 5, 2 * N * PAGE);
    for (unsigned i = 0; i < N; i++)
        mr[i] = reg(p + 2 * i * PAGE, PAGE);
    check("mappings", maps_look(p, 2 * N * PAGE).mappings >= N, 1);
    check("madvise", (uint64_t)madvise(p, 2 * N * PAGE, MADV_DONTNEED), 0);
    for (unsigned i = 0; i < 2 * N * PAGE; i++)
        check("memory cleared in pieces", p[i], 0);
    for (unsigned i = 0; i < N; i++)
        ibv_dereg_mr(mr[i]);
    munmap(p, 2 * N * PAGE);
}

static void grown(int flags)
{
    unsigned char *p = pages(40), *q;
    struct ibv_mr *mr, *next;

    munmap(p + 16 * PAGE, 8 * PAGE); // a hole, then a neighbour
    fill(p, 16 * PAGE, 2);
    fill(p + 24 * PAGE, 16 * PAGE, 3);
    mr = reg(p, 16 * PAGE);
    next = reg(p + 24 * PAGE, 16 * PAGE);
    q = mremap(p, 16 * PAGE, 32 * PAGE, flags);
    if (!(flags & MREMAP_MAYMOVE)) {
        check("no room to grow", q == MAP_FAILED, 1);
        q = mremap(p, 16 * PAGE, 20 * PAGE, flags);
        check("grown in place", (uintptr_t)q, (uintptr_t)p);
        for (unsigned i = 16 * PAGE; i < 20 * PAGE; i++)
            check("what is new", q[i], 0);
    } else {
        check("mremap", q == MAP_FAILED, 0);
        for (unsigned i = 16 * PAGE; i < 32 * PAGE; i++)
            check("what is new", q[i], 0);
    }
    memset(q + 16 * PAGE, 7, 4 * PAGE);
    verify("what was there", q, 16 * PAGE, 2);
    verify("the neighbour", p + 24 * PAGE, 16 * PAGE, 3);
    ibv_dereg_mr(mr);
    verify("what was there, deregistered", q, 16 * PAGE, 2);
    ibv_dereg_mr(next);
    verify("the neighbour, deregistered", p + 24 * PAGE, 16 * PAGE, 3);
    check("what was new", q[16 * PAGE], 7);
    check("given back", maps_look(q, 16 * PAGE).private_anon, 16 * PAGE);
}

// From here on this thread can move no mapping that begins at `at`.
static void keep_in_place(const void *at)
{
    uint64_t n = (uintptr_t)at;
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mremap, 0, 5),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)n, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 4),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(n >> 32), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog f = {.len = 8, .filter = code};

    check("no new privileges", (uint64_t)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    check("a filter", (uint64_t)prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &f), 0);
}

// A range of several mappings of which the last cannot move: none has. To be called last.
static void half_moved(void)
{
    unsigned char *p = pages(17), *to = pages(32);
    struct ibv_mr *mr = reg(p + 4 * PAGE, 4 * PAGE);
    unsigned mappings;

    fill(p, 16 * PAGE, 8);
    keep_in_place(p + 8 * PAGE);
    mappings = maps_count();
    answers("mremap, half", mremap(p, 16 * PAGE, 32 * PAGE, MREMAP_MAYMOVE), ENOMEM);
    verify("memory that did not move", p, 16 * PAGE, 8);
    answers("mremap, half, the old place stays", mremap(p, 16 * PAGE, 16 * PAGE, MREMAP_MAYMOVE | DONTUNMAP),
            ENOMEM);
    verify("memory that did not move", p, 16 * PAGE, 8);
    check("mappings behind it", maps_count(), mappings);
    answers("mremap, half, fixed", mremap(p, 16 * PAGE, 32 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to),
            ENOMEM);
    verify("memory that did not move", p, 16 * PAGE, 8);
    check("adopted still", maps_look(p, 16 * PAGE).adopted, 4 * PAGE);
    ibv_dereg_mr(mr);
    verify("memory that did not move, deregistered", p, 16 * PAGE, 8);
    check("given back", maps_look(p, 16 * PAGE).private_anon, 16 * PAGE);
    munmap(p, 17 * PAGE);
    munmap(to, 32 * PAGE);
}

struct slot {
    unsigned char *at;
    size_t len;
    unsigned seed;
    struct ibv_mr *mr;
};

static void start(struct slot *s, uint64_t r)
{
    s->len = 1 + r % (r % 7 ? 40000 : 400000);
    s->seed = (unsigned)(r >> 32);
    s->at = r >> 20 & 1 ? calloc(1, s->len) : malloc(s->len);
    check("an allocation", !s->at, 0);
    for (size_t i = 0; r >> 20 & 1 && i < s->len; i++)
        check("calloc", s->at[i], 0);
    fill(s->at, s->len, s->seed);
    s->mr = r >> 21 & 1 ? reg(s->at, s->len) : NULL;
}

static void end(struct slot *s, uint64_t r)
{
    verify("a block", s->at, s->len, s->seed);
    if (r >> 22 & 1) // deregistered after it was freed, a bug of many programs that adapters forgive
        free(s->at);
    if (s->mr)
        ibv_dereg_mr(s->mr);
    if (!(r >> 22 & 1)) {
        verify("a block, deregistered", s->at, s->len, s->seed);
        free(s->at);
    }
    s->at = NULL;
}

static void resize(struct slot *s, uint64_t r)
{
    size_t len = 1 + r % 600000, both = len < s->len ? len : s->len;
    unsigned char *p = realloc(s->at, len);

    check("realloc", !p, 0);
    verify("a block, resized", p, both, s->seed);
    s->at = p;
    s->len = len;
    fill(p, len, s->seed);
}

static void churn(unsigned rounds)
{
    struct slot slot[SLOTS] = {0};
    uint64_t seed = dock_seed();

    for (unsigned i = 0; i < rounds; i++) {
        uint64_t r = dock_mix(seed + i);
        struct slot *s = &slot[r % SLOTS];
        if (!s->at)
            start(s, dock_mix(r));
        else if (r >> 40 & 1)
            end(s, dock_mix(r));
        else
            resize(s, dock_mix(r));
        if (i % 97 == 0)
            malloc_trim(0);
    }
    for (unsigned i = 0; i < SLOTS; i++)
        if (slot[i].at)
            end(&slot[i], i);
}

// Threads that allocate and free while the first one registers: an allocator gives memory back with its locks
// held, and asks about it then. Some of it is registered, so that dev->lock is met on the way as well.
static atomic_bool over;

static void *beside(void *arg)
{
    uint64_t seed = dock_seed() + (uintptr_t)arg;

    for (unsigned i = 0; !atomic_load(&over); i++) {
        uint64_t r = dock_mix(seed + i);
        size_t len = 1 + r % 300000;
        unsigned char *at = malloc(len);
        check("an allocation", !at, 0);
        memset(at, (int)i, len);
        struct ibv_mr *mr = r >> 40 & 7 ? NULL : reg(at, len);
        struct ibv_cq *cq = r >> 43 & 7 ? NULL : ibv_create_cq(pd->context, 64, NULL, NULL, 0);
        if (mr)
            ibv_dereg_mr(mr);
        if (cq)
            ibv_destroy_cq(cq);
        check("memory of another thread", at[len - 1], (unsigned char)i);
        free(at);
    }
    return NULL;
}

static void churn_beside_threads(unsigned rounds)
{
    pthread_t thread[3];

    for (uintptr_t i = 0; i < 3; i++)
        check("pthread_create", (uint64_t)pthread_create(&thread[i], NULL, beside, (void *)(i << 48)), 0);
    churn(rounds);
    atomic_store(&over, true);
    for (unsigned i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
}

int main(int argc, char **argv)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;

    pd = context ? ibv_alloc_pd(context) : NULL;
    if (!pd)
        fail("a device", 0, 1);
    unsigned char *probe = pages(4);
    struct ibv_mr *mr = reg(probe, 4 * PAGE);
    if (!maps_look(probe, 4 * PAGE).adopted) {
        printf("memory is not adopted here\n");
        return 77;
    }
    ibv_dereg_mr(mr);
    cleared();
    advised(4);
    advised(64);
    refused();
    as_without_a_device();
    cleared_in_pieces();
    grown(0);
    grown(MREMAP_MAYMOVE);
    unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 2000;
    churn(rounds);
    churn_beside_threads(rounds / 2);
    half_moved();
    ibv_dealloc_pd(pd);
    ibv_close_device(context);
    printf("fine\n");
    return 0;
}
