// SPDX-License-Identifier: MIT
// What DRYDOCK_ADOPT says is what moves; and a heap that shrinks and grows (brk) over registered memory.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/internal.h"
#include "lib/adopting.h"
#include "lib/duo.h"
#include "lib/maps.h"

#define PAGE 4096u
#define RIGHTS (DOCK_ACCESS_LOCAL_WRITE | DOCK_ACCESS_REMOTE_READ | DOCK_ACCESS_REMOTE_WRITE)

// Both ends in one device, whose own memory is in the arena.
struct fix {
    struct dock_dev *dev;
    struct end a, b;
};

static struct fix opened(const char *mode)
{
    struct fix f;
    struct end_opts o = {0};

    setenv("DRYDOCK_ADOPT", "inner", 1);
    open_adopting(&f.dev); // or it is not for this machine
    assert_int_equal(dock_dev_close(f.dev), 0);
    setenv("DRYDOCK_ADOPT", mode, 1);
    assert_int_equal(dock_dev_open(NULL, &f.dev), 0);
    end_open(&f.a, f.dev, &o);
    end_open(&f.b, f.dev, &o);
    pair_connect(&f.a, &f.b);
    return f;
}

static void closed(struct fix *f)
{
    end_close(&f->a);
    end_close(&f->b);
    assert_int_equal(dock_dev_close(f->dev), 0);
}

static struct dock_mr *reg(const struct fix *f, const void *at, size_t len)
{
    struct dock_mr *mr;

    assert_int_equal(dock_mr_register(f->dev, f->b.pd, (uintptr_t)at, len, (uintptr_t)at, RIGHTS, &mr), 0);
    return mr;
}

// A WRITE of `len` bytes, all `fill`; the program sees them.
static void written(struct fix *f, const struct dock_mr *mr, char *at, uint32_t len, int fill)
{
    struct dock_sge sge;
    struct dock_wr wr = wr_onesided(DOCK_OP_WRITE, &f->a, &sge, 0, len, mr, (uintptr_t)at);

    memset(f->a.mem, fill, len);
    carry_out(&f->a, &wr);
    assert_memory_equal(at, f->a.mem, len);
}

// Seven pages that a region touches, of which it covers five.
static void region_with_edges(const char *mode, uint64_t adopted, bool through_the_kernel)
{
    struct fix f = opened(mode);
    char *p = maps_in_one(8 * PAGE);

    assert_ptr_not_equal(p, MAP_FAILED);
    memset(p, 7, 8 * PAGE);
    struct dock_mr *mr = reg(&f, p + 100, 6 * PAGE);
    uint64_t before = dock_peek64(&f.dev->port->fallback_calls);
    assert_int_equal(maps_look(p, 8 * PAGE).adopted, adopted);
    written(&f, mr, p + 100, 6 * PAGE, 9);
    assert_int_equal(dock_peek64(&f.dev->port->fallback_calls) > before, through_the_kernel);
    assert_int_equal(dock_mr_deregister(mr), 0);
    assert_int_equal(maps_look(p, 8 * PAGE).private_anon, 8 * PAGE);
    for (unsigned i = 0; i < 8 * PAGE; i++)
        assert_int_equal(p[i], i >= 100 && i < 100 + 6 * PAGE ? 9 : 7);
    munmap(p, 8 * PAGE);
    closed(&f);
}

static void inner_takes_what_is_covered_wholly(void **state)
{
    (void)state;
    region_with_edges("inner", 5 * PAGE, true);
}

static void on_takes_the_edges_too(void **state)
{
    (void)state;
    region_with_edges("on", 7 * PAGE, false);
}

static void off_takes_nothing(void **state)
{
    (void)state;
    region_with_edges("off", 0, true);
}

static void an_unknown_word_takes_nothing_and_says_so(void **state)
{
    (void)state;
    setenv("DRYDOCK_ADOPT", "yes", 1);
    assert_int_equal(dock_adopt_wanted(), DOCK_ADOPT_OFF);
    assert_non_null(strstr(dock_log_last(), "DRYDOCK_ADOPT=yes is not known"));
    region_with_edges("yes", 0, true);
}

// malloc keeps enough at hand that the end of the heap is ours.
static char *end_of_heap(void)
{
    mallopt(M_TRIM_THRESHOLD, 64 << 20);
    free(malloc(100000));
    char *end = sbrk(0);
    return sbrk((intptr_t)(-(uintptr_t)end & (PAGE - 1))) == end ? sbrk(0) : NULL;
}

static void a_heap_that_shrinks_and_grows(void **state)
{
    struct fix f = opened("inner");
    char *p = end_of_heap();

    (void)state;
    assert_ptr_equal(sbrk(8 * PAGE), p);
    memset(p, 3, 8 * PAGE);
    struct dock_mr *mr = reg(&f, p, 8 * PAGE);
    assert_int_equal(maps_look(p, 8 * PAGE).adopted, 8 * PAGE);
    written(&f, mr, p, 8 * PAGE, 4);
    assert_ptr_equal(sbrk(-4 * (intptr_t)PAGE), p + 8 * PAGE);
    assert_int_equal(maps_look(p, 8 * PAGE).adopted, 4 * PAGE);
    assert_ptr_equal(sbrk(4 * PAGE), p + 4 * PAGE);
    for (unsigned i = 0; i < 8 * PAGE; i++)
        assert_int_equal(p[i], i < 4 * PAGE ? 4 : 0); // as of a heap that was never registered
    memset(p + 4 * PAGE, 5, 4 * PAGE);
    assert_int_equal(dock_mr_deregister(mr), 0);
    for (unsigned i = 0; i < 8 * PAGE; i++)
        assert_int_equal(p[i], i < 4 * PAGE ? 4 : 5);
    assert_int_equal(maps_look(p, 8 * PAGE).private_anon, 8 * PAGE);
    assert_ptr_equal(sbrk(-8 * (intptr_t)PAGE), p + 8 * PAGE);
    closed(&f);
}

int main(void)
{
    if (getenv("DRYDOCK_EMULATED")) // an emulator has mappings of its own, which do not stand
        return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inner_takes_what_is_covered_wholly),
        cmocka_unit_test(on_takes_the_edges_too),
        cmocka_unit_test(off_takes_nothing),
        cmocka_unit_test(an_unknown_word_takes_nothing_and_says_so),
        cmocka_unit_test(a_heap_that_shrinks_and_grows),
    };

    return cmocka_run_group_tests_name("what moves", tests, NULL, NULL);
}
