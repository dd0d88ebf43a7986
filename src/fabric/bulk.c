// SPDX-License-Identifier: MIT
// Copies of some length. From some KiB on glibc takes `rep movsb`; on AMD's processors a loop over wide
// registers is faster: by a quarter at 4 KiB, an eighth at 16 and a twentieth where neither side fits the
// inner cache. Since Zen 5, whose registers are wider still, it is so only while both sides fit there, and of
// a mebibyte, where glibc takes its own loop, `rep movsb` is faster by a quarter (bench.md). Shorter ones and
// other machines keep memcpy, and so does ThreadSanitizer, which tells of a whole range at once.
#include "fabric/bulk.h"

#include <stdint.h>
#include <string.h>

#include "base/movs.h"

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)

#define BULK 2048u // bytes from which on the loop is faster
#define LINE 64u
#define BLOCK 256u
#define TURNING (31u << 10) // bytes from which on source and target exceed an inner cache
#define PART 4096u
#define STRING (24u << 10) // the same since Zen 5: above it the string instruction is faster

typedef char wide __attribute__((vector_size(32), aligned(1), may_alias));
typedef char wider __attribute__((vector_size(64), aligned(1), may_alias));

typedef size_t copy_of_blocks(char *to, const char *from, size_t n);

// As many as there are. How many bytes; what is left is copied by a call of memcpy, since nobody knows here
// that it is short: the compiler would take `rep movsq` for it, which is slower.
static __attribute__((target("avx"))) size_t copy_blocks(char *to, const char *from, size_t n)
{
    const char *end = from + n / BLOCK * BLOCK;

    for (; from != end; from += BLOCK, to += BLOCK) {
        const wide *f = (const wide *)from;
        wide *t = (wide *)to;
        wide a = f[0], b = f[1], c = f[2], d = f[3], e = f[4], g = f[5], h = f[6], i = f[7];
        t[0] = a, t[1] = b, t[2] = c, t[3] = d;
        t[4] = e, t[5] = g, t[6] = h, t[7] = i;
    }
    return n / BLOCK * BLOCK;
}

static __attribute__((target("avx512f"))) size_t copy_wider_blocks(char *to, const char *from, size_t n)
{
    const char *end = from + n / BLOCK * BLOCK;

    for (; from != end; from += BLOCK, to += BLOCK) {
        const wider *f = (const wider *)from;
        wider *t = (wider *)to;
        wider a = f[0], b = f[1], c = f[2], d = f[3];
        t[0] = a, t[1] = b, t[2] = c, t[3] = d;
    }
    return n / BLOCK * BLOCK;
}

// Its first line is copied by itself, so that no store of a block is in two. Of less than a line in front of
// what is there already, all of that line.
static inline void by_blocks(char *to, const char *from, size_t n, copy_of_blocks *blocks)
{
    size_t done = -(uintptr_t)to % LINE;

    if (done)
        memcpy(to, from, LINE);
    done += blocks(to + done, from + done, n - done);
    if (n > done)
        memcpy(to + done, from + done, n - done);
}

static void forward(char *to, const char *from, size_t n)
{
    by_blocks(to, from, n, copy_blocks);
}

// By pages of the target, the last one first. Each goes from front to back.
static void from_its_end(char *to, const char *from, size_t n)
{
    size_t part = ((uintptr_t)to + n) % PART;

    for (part = part < LINE ? part + PART : part; part < n; part = PART) {
        n -= part;
        forward(to + n, from + n, part);
    }
    forward(to, from, n);
}

// A copy leaves its end in the inner cache, and the next one of the same memory (a buffer that is sent again,
// or to the next peer, or that was just filled from front to back) would push that out before it gets there.
// So every second one begins with its end. Lengths take turns by themselves, powers of two apart: a transfer
// may come in pieces of two kinds.
static void by_turns(char *to, const char *from, size_t n)
{
    static _Thread_local __attribute__((tls_model("initial-exec"))) uint64_t turns;
    uint64_t kind = 1ull << (63 - __builtin_clzll(n));

    turns ^= kind;
    if (turns & kind)
        forward(to, from, n);
    else
        from_its_end(to, from, n);
}

static void on_zen(char *to, const char *from, size_t n)
{
    if (n < TURNING)
        forward(to, from, n);
    else
        by_turns(to, from, n);
}

static void on_zen5(char *to, const char *from, size_t n)
{
    if (n <= STRING)
        by_blocks(to, from, n, copy_wider_blocks);
    else
        dock_movs(to, from, n);
}

// Of what AMD's processors have since Zen 5 only, the one that compilers know to ask for.
static inline bool is_zen5(void)
{
    return __builtin_cpu_supports("avx512vp2intersect");
}

static void copy(char *to, const char *from, size_t n)
{
    if (n < BULK || !__builtin_cpu_is("amd") || !__builtin_cpu_supports("avx"))
        memcpy(to, from, n);
    else if (is_zen5())
        on_zen5(to, from, n);
    else
        on_zen(to, from, n);
}

static bool has_avx(void)
{
    return __builtin_cpu_supports("avx");
}

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f");
}

const struct dock_bulk_way dock_bulk_ways[] = {
    {"zen", has_avx, on_zen}, {"zen5", has_avx512, on_zen5}, {.name = NULL}};

#else

static void copy(char *to, const char *from, size_t n)
{
    memcpy(to, from, n);
}

const struct dock_bulk_way dock_bulk_ways[] = {{.name = NULL}};

#endif

// A program may move memory down by a request to itself. Nobody promises that it comes right, and it does.
void dock_bulk_copy(char *to, const char *from, size_t n)
{
    if (__builtin_expect((uintptr_t)to - (uintptr_t)from < n || (uintptr_t)from - (uintptr_t)to < n, 0))
        memmove(to, from, n);
    else
        copy(to, from, n);
}
