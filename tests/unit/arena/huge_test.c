// SPDX-License-Identifier: MIT
// What fills an arena piece by piece lies in huge pages, with what it holds; what is reserved, given back or
// little does not.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arena/arena.h"
#include "arena/huge.h"

#define HUGE ((uint64_t)DOCK_HUGE_BYTES)
#define SMALL 12352u // a queue's rings: not a multiple of a page
#define MOST (4 * DOCK_HUGE_BYTES / SMALL)

static uint64_t at[MOST];

static int set_up(void **state)
{
    struct dock_arena *a = malloc(sizeof *a);

    assert_int_equal(dock_arena_create(a, DOCK_WINDOW_SHIFT_SMALL, 4096), 0);
    *state = a;
    return 0;
}

static int tear_down(void **state)
{
    dock_arena_destroy(*state);
    free(*state);
    return 0;
}

// Without the arena, so that it is asked right.
static void demand_huge_pages(void)
{
    char text[96] = "";
    int fd = memfd_create("bare", MFD_CLOEXEC);
    char *all = mmap(NULL, 2 * HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char *p = all + (-(uintptr_t)all & (HUGE - 1));
    bool gives = fd >= 0 && all != MAP_FAILED && dock_huge_wanted() && !ftruncate(fd, DOCK_HUGE_BYTES) &&
                 mmap(p, HUGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == p;

    // By itself it would give them to any page.
    gives = gives && dock_huge_setting("shmem_enabled", text) && !strstr(text, "[always]") &&
            !strstr(text, "[within_size]") && !strstr(text, "[force]");

    if (gives) {
        *p = 1;
        gives = !dock_huge_collapse((uintptr_t)p, HUGE);
    }
    if (all != MAP_FAILED)
        munmap(all, 2 * HUGE);
    if (fd >= 0)
        close(fd);
    if (!gives) {
        print_message("the kernel gives a file in memory no huge page of 2 MiB, or by itself\n");
        skip();
    }
}

// Bytes of the process that are mapped as huge pages of files in memory.
static uint64_t huge_mapped(void)
{
    FILE *f = fopen("/proc/self/smaps", "re");
    unsigned long kib;
    uint64_t sum = 0;
    char line[512];

    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "ShmemPmdMapped: %lu kB", &kib) == 1)
            sum += (uint64_t)kib << 10;
    if (f)
        fclose(f);
    return sum;
}

static uint64_t memory_of(const struct dock_arena *a)
{
    struct stat st;

    assert_int_equal(fstat(a->view.fd, &st), 0);
    return (uint64_t)st.st_blocks * 512;
}

// As many as fit below `end`, each with bytes of its own.
static unsigned take_up_to(struct dock_arena *a, uint64_t end)
{
    unsigned n = 0;

    for (; n < MOST && (!n || at[n - 1] + 2ul * SMALL <= end); n++) {
        assert_int_equal(dock_arena_alloc(a, SMALL, 64, &at[n]), 0);
        memset(dock_arena_at(a, at[n]), (int)(n % 251 + 1), SMALL);
    }
    return n;
}

static unsigned wrong(struct dock_arena *a, unsigned n)
{
    unsigned bad = 0;

    for (unsigned i = 0; i < n; i++) {
        const unsigned char *p = dock_arena_at(a, at[i]);
        for (unsigned k = 0; k < SMALL; k++)
            bad += p[k] != i % 251 + 1;
    }
    return bad;
}

static void what_is_full_does(void **state)
{
    struct dock_arena *a = *state;

    demand_huge_pages();
    unsigned n = take_up_to(a, 3 * HUGE + HUGE / 2);
    assert_int_equal(wrong(a, n), 0);
    assert_int_equal(huge_mapped(), 3 * HUGE);
    assert_in_range(memory_of(a), 3 * HUGE + HUGE / 4, 4 * HUGE);
    dock_arena_free(a, at[70], SMALL); // in the first piece
    assert_int_equal(dock_arena_alloc(a, SMALL, 64, &at[70]), 0);
    for (unsigned k = 0; k < SMALL; k++)
        assert_int_equal(((char *)dock_arena_at(a, at[70]))[k], 0);
    memset(dock_arena_at(a, at[70]), 71, SMALL);
    assert_int_equal(wrong(a, n), 0);
}

static void what_is_little_does_not(void **state)
{
    struct dock_arena *a = *state;

    demand_huge_pages();
    unsigned n = take_up_to(a, HUGE - HUGE / 4);
    assert_int_equal(wrong(a, n), 0);
    assert_int_equal(huge_mapped(), 0);
    assert_in_range(memory_of(a), 0, HUGE - HUGE / 4 + 2ul * SMALL);
}

static void what_is_reserved_has_no_memory(void **state)
{
    struct dock_arena *a = *state;
    uint64_t off;

    demand_huge_pages();
    assert_int_equal(dock_arena_reserve(a, HUGE / 2, 4096, &off), 0);
    unsigned n = take_up_to(a, HUGE + HUGE / 2);
    assert_int_equal(wrong(a, n), 0);
    assert_int_equal(huge_mapped(), 0);
    assert_in_range(memory_of(a), 0, HUGE + 2ul * SMALL);
}

// What is in a piece is counted as it comes and goes.
static void nor_has_what_was_given_back(void **state)
{
    struct dock_arena *a = *state;

    demand_huge_pages();
    unsigned n = take_up_to(a, HUGE - SMALL);
    for (unsigned i = 0; i < n; i += 2)
        dock_arena_free(a, at[i], SMALL);
    uint64_t has = memory_of(a), off;
    assert_int_equal(dock_arena_alloc(a, 2ul * SMALL, 64, &off), 0); // into no hole: the next piece begins
    assert_int_equal(dock_arena_alloc(a, 2ul * SMALL, 64, &off), 0);
    assert_int_equal(huge_mapped(), 0);
    assert_in_range(memory_of(a), has, has + 4ul * SMALL + 8192);
}

static void none_where_they_are_switched_off(void **state)
{
    struct dock_arena *a = *state;

    setenv("DRYDOCK_HUGE", "off", 1);
    dock_huge_learn();
    uint64_t before = huge_mapped();
    unsigned n = take_up_to(a, 2 * HUGE + HUGE / 2);
    unsetenv("DRYDOCK_HUGE");
    dock_huge_learn();
    assert_int_equal(wrong(a, n), 0);
    assert_int_equal(huge_mapped(), before);
}

int main(void)
{
    if (getenv("DRYDOCK_EMULATED")) // an emulator has mappings of its own
        return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_full_does, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_little_does_not, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_reserved_has_no_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nor_has_what_was_given_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(none_where_they_are_switched_off, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("huge pages of an arena", tests, NULL, NULL);
}
