// SPDX-License-Identifier: MIT
// timeout: 60
// Nothing grows however often memory is registered and deregistered: mappings, memory of the arena, its
// length, heap, descriptors. A long run does it a million times. And what of the arena is kept for short
// regions.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arena/adopt_own.h"
#include "base/seed.h"
#include "device/internal.h"
#include "lib/duo.h"
#include "lib/fork.h"
#include "lib/maps.h"

#define PAGE 4096u
#define BUFFERS 64u
#define STRIDE (4u * PAGE) // from a buffer to the next; the last page of each belongs to none
#define LEN ((size_t)BUFFERS * STRIDE)
#define RIGHTS (DOCK_ACCESS_LOCAL_WRITE | DOCK_ACCESS_REMOTE_WRITE)

struct fix {
    struct dock_dev *dev;
    uint32_t pd;
    char *mem;
    uint64_t random;
};

static struct dock_mr *reg(const struct fix *f, const char *at, size_t len)
{
    struct dock_mr *mr;

    assert_int_equal(dock_mr_register(f->dev, f->pd, (uintptr_t)at, len, (uintptr_t)at, RIGHTS, &mr), 0);
    return mr;
}

static void dereg(struct dock_mr *mr)
{
    assert_int_equal(dock_mr_deregister(mr), 0);
}

// Each makes at least `cycles` of them.
static void the_same(struct fix *f, unsigned cycles)
{
    while (cycles--)
        dereg(reg(f, f->mem, PAGE));
}

static void growing(struct fix *f, unsigned cycles)
{
    for (unsigned i = 0; i < cycles; i++)
        dereg(reg(f, f->mem, (i % BUFFERS + 1) * PAGE));
}

static void shuffle(struct fix *f, unsigned *order)
{
    for (unsigned i = 0; i < BUFFERS; i++)
        order[i] = i;
    for (unsigned i = BUFFERS - 1; i; i--) {
        f->random = dock_mix(f->random + i);
        unsigned j = f->random % (i + 1), was = order[i];
        order[i] = order[j];
        order[j] = was;
    }
}

// All of them at once, and away in another order.
static void shuffled(struct fix *f, unsigned cycles)
{
    struct dock_mr *mr[BUFFERS];
    unsigned order[BUFFERS];

    for (unsigned done = 0; done < cycles; done += BUFFERS) {
        shuffle(f, order);
        for (unsigned i = 0; i < BUFFERS; i++)
            mr[order[i]] = reg(f, f->mem + order[i] * STRIDE, (1 + order[i] % 3) * PAGE);
        shuffle(f, order);
        for (unsigned i = 0; i < BUFFERS; i++)
            dereg(mr[order[i]]);
    }
}

static void inside(struct fix *f, unsigned cycles)
{
    struct dock_mr *around = reg(f, f->mem, LEN);

    for (unsigned i = 0; i < cycles; i++)
        dereg(reg(f, f->mem + i % BUFFERS * STRIDE, PAGE));
    dereg(around);
}

struct seen {
    uint64_t blocks, length, heap, kept; // kept: blocks of pages without a region
    unsigned maps, descriptors, table;   // table: blocks of the segment table, which fills up once
};

static unsigned count_descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    unsigned n = 0;

    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

// Of this process; a sanitizer's own come with what is freed, so there only those of the buffers.
static unsigned count_mappings(const struct fix *f)
{
#ifdef __SANITIZE_ADDRESS__
    return maps_look(f->mem, LEN).mappings;
#else
    (void)f;
    return maps_count();
#endif
}

static struct seen look(const struct fix *f)
{
    uint64_t kept = 0;
    struct stat st;

    for (unsigned i = 0; i < f->dev->adopt.keeps; i++)
        kept += f->dev->adopt.kept[i].len;

    assert_int_equal(fstat(f->dev->arena.view.fd, &st), 0);
    return (struct seen){.blocks = (uint64_t)st.st_blocks,
                         .length = (uint64_t)st.st_size,
                         .heap = mallinfo2().uordblks,
                         .kept = kept / 512,
                         .maps = count_mappings(f),
                         .table = dock_peek32(&f->dev->tid_high) * sizeof(struct dock_segrec) / 512,
                         .descriptors = count_descriptors()};
}

static const struct pattern {
    const char *name;
    void (*run)(struct fix *, unsigned cycles);
    unsigned cycles, many;
} patterns[] = {
    {"the same buffer", the_same, 500, 300000},
    {"growing sizes", growing, 320, 200000},
    {"64 buffers, in any order", shuffled, 640, 300000},
    {"inside adopted memory", inside, 18000, 1000000},
};

static struct fix opened(void)
{
    struct fix f = {.random = dock_seed()};

    assert_int_equal(dock_dev_open(NULL, &f.dev), 0);
    if (f.dev->adopt.mode == DOCK_ADOPT_OFF) {
        assert_int_equal(dock_dev_close(f.dev), 0);
        skip();
    }
    assert_int_equal(dock_pd_create(f.dev, &f.pd), 0);
    f.mem = maps_in_one(LEN);
    assert_ptr_not_equal(f.mem, MAP_FAILED);
    bytes_fill(f.mem, LEN, 5);
    return f;
}

static void closed(const struct fix *f)
{
    munmap(f->mem, LEN);
    assert_int_equal(dock_pd_destroy(f->dev, f->pd), 0);
    assert_int_equal(dock_dev_close(f->dev), 0);
}

static void nothing_grows(void **state)
{
    struct fix f = opened();

    (void)state;
    print_message("DRYDOCK_SEED=%#" PRIx64 " repeats the order\n", f.random);
    uint64_t sum = bytes_sum(f.mem, LEN);
    for (unsigned i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        const struct pattern *p = &patterns[i];
        unsigned cycles = test_long() ? p->many : p->cycles / slow_down();
        p->run(&f, cycles / 10 + BUFFERS);
        struct seen before = look(&f);
        p->run(&f, cycles);
        struct seen after = look(&f);
        print_message("%s, %u cycles: %u mappings before and %u after, %" PRIu64 " and %" PRIu64
                      " blocks, %" PRIu64 " and %" PRIu64 " bytes of heap\n",
                      p->name, cycles, before.maps, after.maps, before.blocks, after.blocks, before.heap,
                      after.heap);
        assert_int_equal(after.length, before.length);
        assert_in_range(after.maps, 0, before.maps + 2);
        assert_int_equal(after.descriptors, before.descriptors);
        assert_in_range(after.heap, 0, before.heap + 4096); // what stdio and the log keep
        assert_in_range(after.blocks, 0, before.blocks + 8 + after.table - before.table + after.kept);
        assert_int_equal(maps_look(f.mem, LEN).adopted, 0);
        assert_int_equal(bytes_sum(f.mem, LEN), sum);
    }
    closed(&f);
}

// Of the arena's file, without those that the segment table has come to since the device was opened.
static uint64_t pages(const struct fix *f)
{
    uint64_t first = (uintptr_t)f->dev->segments / PAGE;
    uint64_t last = (uintptr_t)&f->dev->segments[dock_peek32(&f->dev->tid_high)] / PAGE;

    return look(f).blocks * 512 / PAGE - (last - first);
}

static void a_short_region_that_comes_again_finds_its_page(void **state)
{
    struct fix f = opened();

    (void)state;
    dereg(reg(&f, f.mem, PAGE));
    struct dock_mr *mr = reg(&f, f.mem, PAGE);
    uint64_t with = pages(&f);
    dereg(mr);
    assert_int_equal(pages(&f), with);
    memset(f.mem, 77, PAGE); // the program's own page now: the arena's knows nothing of it
    mr = reg(&f, f.mem, PAGE);
    assert_int_equal(pages(&f), with);
    for (unsigned i = 0; i < PAGE; i++)
        assert_int_equal(f.mem[i], 77);
    dereg(mr);
    closed(&f);
}

// One page and three of each, and one that is long: no more than the last few runs.
static void pages_are_kept_for_a_few_regions_only(void **state)
{
    struct fix f = opened();

    (void)state;
    dereg(reg(&f, f.mem, PAGE));
    uint64_t before = pages(&f) - 1;
    for (unsigned i = 0; i < BUFFERS; i++) {
        dereg(reg(&f, f.mem + i * STRIDE, PAGE));
        dereg(reg(&f, f.mem + i * STRIDE, 3 * PAGE));
        dereg(reg(&f, f.mem + i * STRIDE, PAGE));
    }
    assert_int_equal(pages(&f), before + DOCK_ADOPT_KEPT * 3);
    // A long one over the last four of them gives all its pages back.
    dereg(reg(&f, f.mem + (BUFFERS - 4) * STRIDE, 4 * STRIDE));
    assert_int_equal(pages(&f), before + (DOCK_ADOPT_KEPT - 4) * 3);
    closed(&f);
}

// The page of a run that was kept belongs to a region again when the run's turn comes to be given back.
static void a_page_that_came_back_into_use_is_not_given_back(void **state)
{
    struct fix f = opened();

    (void)state;
    dereg(reg(&f, f.mem, 3 * PAGE));
    struct dock_mr *mr = reg(&f, f.mem + PAGE, PAGE);
    for (unsigned i = 1; i <= 2 * DOCK_ADOPT_KEPT; i++)
        dereg(reg(&f, f.mem + i * STRIDE, PAGE));
    uint64_t sum = bytes_sum(f.mem, LEN);
    dereg(mr);
    bytes_fill(f.mem, LEN, 5); // as it was opened
    assert_int_equal(bytes_sum(f.mem, LEN), sum);
    closed(&f);
}

static void what_comes_back_is_kept_longest(void **state)
{
    struct fix f = opened();

    (void)state;
    for (unsigned i = 1; i <= 2 * DOCK_ADOPT_KEPT; i++) {
        dereg(reg(&f, f.mem, PAGE));
        dereg(reg(&f, f.mem + i * STRIDE, PAGE));
    }
    uint64_t before = pages(&f);
    struct dock_mr *mr = reg(&f, f.mem, PAGE);
    assert_int_equal(pages(&f), before);
    dereg(mr);
    closed(&f);
}

int main(void)
{
    if (getenv("DRYDOCK_EMULATED")) // an emulator has mappings of its own, which do not stand
        return 77;
    setenv("DRYDOCK_ADOPT", "inner", 1);
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_grows),
                                       cmocka_unit_test(a_short_region_that_comes_again_finds_its_page),
                                       cmocka_unit_test(pages_are_kept_for_a_few_regions_only),
                                       cmocka_unit_test(a_page_that_came_back_into_use_is_not_given_back),
                                       cmocka_unit_test(what_comes_back_is_kept_longest)};

    return cmocka_run_group_tests_name("memory that comes and goes", tests, NULL, NULL);
}
