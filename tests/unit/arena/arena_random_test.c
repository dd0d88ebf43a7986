// SPDX-License-Identifier: MIT
// A seeded run of alloc, reserve and free against a model: pieces never overlap, are zero when they come,
// keep their bytes while they live, and the file holds no page that no piece needs.
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arena/arena.h"
#include "base/seed.h"
#include "unit/arena/child.h"

#define SHIFT 20
#define PIECES 200

struct piece {
    uint64_t off, size;
    uint8_t fill;
};

static struct piece pieces[PIECES];
static struct dock_arena arena;
static uint64_t seed, step;

static void fail(const char *what, uint64_t expected, uint64_t got)
{
    printf("step %llu: %s: expected %#llx, got %#llx\nagain: DRYDOCK_SEED=%#llx scripts/run-one "
           "build/dev/tests/unit/arena/arena_random_test\n",
           (unsigned long long)step, what, (unsigned long long)expected, (unsigned long long)got,
           (unsigned long long)seed);
    exit(1);
}

static void check_bytes(const struct piece *p, uint8_t want)
{
    const uint8_t *b = dock_view_at(&arena.view, p->off, p->size);

    if (!b)
        fail("a piece inside one window", p->off, p->off + p->size);
    for (uint64_t i = 0; i < p->size; i++)
        if (b[i] != want)
            fail("byte of a piece", want, b[i]);
}

static void check_overlap(const struct piece *p)
{
    for (int i = 0; i < PIECES; i++)
        if (&pieces[i] != p && pieces[i].size && p->off < pieces[i].off + pieces[i].size &&
            pieces[i].off < p->off + p->size)
            fail("pieces apart", pieces[i].off, p->off);
}

// Every page that some piece touches, counted in the model.
static uint64_t pages_needed(uint64_t page)
{
    static uint8_t needed[DOCK_WINDOWS << (SHIFT - 12)];
    uint64_t n = 0;

    memset(needed, 0, sizeof needed);
    for (int i = 0; i < PIECES; i++)
        for (uint64_t at = pieces[i].off / page;
             pieces[i].size && at <= (pieces[i].off + pieces[i].size - 1) / page; at++)
            n += !needed[at]++;
    return n;
}

static void come(struct piece *p, uint64_t *rng, uint64_t page)
{
    uint64_t kind = dock_rand(rng) % 4, align = 64ull << dock_rand(rng) % 7;
    int ret;

    p->size = 1 + dock_rand(rng) % (kind == 0 ? 64 : kind == 1 ? page : kind == 2 ? 20 * page : 1u << SHIFT);
    p->fill = (uint8_t)(1 + dock_rand(rng) % 255);
    ret = (dock_rand(rng) % 3 ? dock_arena_alloc : dock_arena_reserve)(&arena, p->size, align, &p->off);
    if (ret)
        fail("result of an allocation", 0, (uint64_t)ret);
    if (p->off % align)
        fail("alignment", 0, p->off % align);
    check_overlap(p);
    check_bytes(p, 0);
    memset(dock_view_at(&arena.view, p->off, p->size), p->fill, p->size);
}

static void go(struct piece *p)
{
    check_bytes(p, p->fill);
    dock_arena_free(&arena, p->off, p->size);
    p->size = 0;
}

static uint64_t blocks(void)
{
    struct stat st;

    if (fstat(arena.view.fd, &st))
        fail("fstat", 0, 1);
    return (uint64_t)st.st_blocks * 512;
}

int main(void)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), rng = seed = dock_seed(), steps = 6000 / slow_factor();

    printf("seed %#llx\n", (unsigned long long)seed);
    if (dock_arena_create(&arena, SHIFT, 0))
        return 1;
    for (step = 0; step < steps; step++) {
        struct piece *p = &pieces[dock_rand(&rng) % PIECES];
        if (p->size)
            go(p);
        else
            come(p, &rng, page);
        if (step % 256 == 0 && blocks() != pages_needed(page) * page)
            fail("bytes in the file", pages_needed(page) * page, blocks());
    }
    for (int i = 0; i < PIECES; i++)
        if (pieces[i].size)
            go(&pieces[i]);
    if (blocks() || arena.used)
        fail("bytes left when all is free", 0, blocks() + arena.used);
    dock_arena_destroy(&arena);
    return 0;
}
