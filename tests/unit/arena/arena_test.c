// SPDX-License-Identifier: MIT
// timeout: 120
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arena/arena.h"
#include "base/log.h"
#include "base/seed.h"
#include "unit/arena/child.h"

#define SHIFT 20 // small windows, so that tests reach their ends
#define WINDOW (1ull << SHIFT)

static struct dock_arena arena;
static uint64_t page;

static int setup(void **state)
{
    (void)state;
    page = (uint64_t)sysconf(_SC_PAGESIZE);
    return dock_arena_create(&arena, SHIFT, 4096);
}

static int teardown(void **state)
{
    (void)state;
    dock_arena_destroy(&arena);
    return 0;
}

static uint64_t file_bytes(void)
{
    struct stat st;

    assert_int_equal(fstat(arena.view.fd, &st), 0);
    return (uint64_t)st.st_blocks * 512;
}

static uint64_t alloc(uint64_t size, uint64_t align)
{
    uint64_t off = UINT64_MAX;

    assert_int_equal(dock_arena_alloc(&arena, size, align, &off), 0);
    return off;
}

static bool all_are(const void *p, int value, size_t size)
{
    const uint8_t *b = p;

    for (size_t i = 0; i < size; i++)
        if (b[i] != value)
            return false;
    return true;
}

static void the_first_bytes_are_reserved_and_zero(void **state)
{
    (void)state;
    assert_true(all_are(dock_arena_at(&arena, 0), 0, 4096));
    assert_true(alloc(64, 64) >= 4096);
}

static void the_file_cannot_shrink_and_takes_no_more_seals(void **state)
{
    (void)state;
    assert_int_equal(fcntl(arena.view.fd, F_GET_SEALS) & (F_SEAL_SHRINK | F_SEAL_SEAL),
                     F_SEAL_SHRINK | F_SEAL_SEAL);
    assert_int_equal(ftruncate(arena.view.fd, 4096), -1);
    assert_int_equal(fcntl(arena.view.fd, F_ADD_SEALS, F_SEAL_GROW), -1);
    assert_true(fcntl(arena.view.fd, F_GETFD) & FD_CLOEXEC);
}

static void wrong_sizes_and_alignments_are_refused_and_change_nothing(void **state)
{
    uint64_t off = 7, used = arena.used;

    (void)state;
    assert_int_equal(dock_arena_alloc(&arena, 0, 64, &off), -EINVAL);
    assert_int_equal(dock_arena_alloc(&arena, 64, 0, &off), -EINVAL);
    assert_int_equal(dock_arena_alloc(&arena, 64, 32, &off), -EINVAL);
    assert_int_equal(dock_arena_alloc(&arena, 64, 96, &off), -EINVAL);
    assert_int_equal(dock_arena_alloc(&arena, 64, 2 * page, &off), -EINVAL);
    assert_int_equal(dock_arena_alloc(&arena, WINDOW + 1, 64, &off), -EFBIG);
    assert_non_null(strstr(dock_log_last(), "do not fit"));
    assert_int_equal(dock_arena_reserve(&arena, UINT64_MAX, 64, &off), -EFBIG);
    assert_int_equal(off, 7);
    assert_int_equal(arena.used, used);
}

static void alignment_is_kept(void **state)
{
    (void)state;
    for (uint64_t align = 64; align <= page; align *= 2) {
        alloc(64, 64);
        assert_int_equal(alloc(100, align) % align, 0);
    }
}

static void small_allocations_share_pages(void **state)
{
    uint64_t before = file_bytes();

    (void)state;
    for (int i = 0; i < 64; i++)
        alloc(64, 64);
    assert_in_range(file_bytes() - before, 0, 2 * page);
}

static void reserved_memory_has_no_pages_until_touched(void **state)
{
    uint64_t off, before = file_bytes();

    (void)state;
    assert_int_equal(dock_arena_reserve(&arena, WINDOW / 2, page, &off), 0);
    assert_int_equal(file_bytes(), before);
    *(char *)dock_arena_at(&arena, off + 5 * page) = 1;
    assert_int_equal(file_bytes(), before + page);
    dock_arena_free(&arena, off, WINDOW / 2);
    assert_int_equal(file_bytes(), before);
}

static void freed_pages_return_to_the_system(void **state)
{
    uint64_t before = file_bytes(), off = alloc(100 * page, page);

    (void)state;
    assert_int_equal(file_bytes(), before + 100 * page);
    memset(dock_arena_at(&arena, off), 0xff, 100 * page);
    dock_arena_free(&arena, off, 100 * page);
    assert_int_equal(file_bytes(), before);
}

// A page that two allocations share goes when the second of them goes, whichever that is.
static void a_shared_page_returns_with_its_last_user(void **state)
{
    uint64_t before, x, y;

    (void)state;
    dock_arena_free(&arena, alloc(64, 64), 64);
    before = file_bytes();
    for (int turn = 0; turn < 2; turn++) {
        x = alloc(page + page / 2, page);
        y = alloc(page / 2, 64);
        assert_int_equal(y, x + page + page / 2);
        dock_arena_free(&arena, turn ? x : y, turn ? page + page / 2 : page / 2);
        assert_int_equal(file_bytes(), before + (turn ? page : 2 * page));
        dock_arena_free(&arena, turn ? y : x, turn ? page / 2 : page + page / 2);
        assert_int_equal(file_bytes(), before);
    }
}

static void memory_is_zero_again_and_neighbours_are_left_alone(void **state)
{
    uint64_t size = page + 192, low = alloc(64, 64), off = alloc(size, 64), high = alloc(64, 64);

    (void)state;
    assert_int_equal(high, off + size);
    for (int turn = 0; turn < 2; turn++) {
        memset(dock_arena_at(&arena, low), 0x11, 64);
        memset(dock_arena_at(&arena, off), 0xee, size);
        memset(dock_arena_at(&arena, high), 0x22, 64);
        dock_arena_free(&arena, off, size);
        assert_int_equal(alloc(size, 64), off);
        assert_true(all_are(dock_arena_at(&arena, off), 0, size));
        assert_true(all_are(dock_arena_at(&arena, low), 0x11, 64));
        assert_true(all_are(dock_arena_at(&arena, high), 0x22, 64));
    }
}

static void the_file_grows_by_windows_and_a_piece_lies_in_one(void **state)
{
    uint64_t size = WINDOW / 2 + 64;

    (void)state;
    for (unsigned i = 0; i < 10; i++) {
        uint64_t off = alloc(size, 64);
        assert_int_equal(off >> SHIFT, (off + size - 1) >> SHIFT);
        assert_int_equal(arena.size, (i + 1) * WINDOW);
        assert_non_null(dock_view_at(&arena.view, off, size));
    }
    assert_int_equal(alloc(WINDOW, page) % WINDOW, 0);
}

static void a_full_arena_says_so_and_keeps_what_it_has(void **state)
{
    uint64_t off, kept[DOCK_WINDOWS] = {0}, used;
    unsigned n = 0;

    (void)state;
    while (!dock_arena_reserve(&arena, WINDOW, page, &off))
        kept[n++] = off;
    assert_int_equal(n, DOCK_WINDOWS - 1); // the first has the reserved bytes
    assert_non_null(strstr(dock_log_last(), "the arena is full"));
    used = arena.used;
    assert_int_equal(dock_arena_reserve(&arena, WINDOW, page, &off), -ENOMEM);
    assert_int_equal(arena.used, used);
    dock_arena_free(&arena, kept[n / 2], WINDOW);
    assert_int_equal(dock_arena_reserve(&arena, WINDOW, page, &off), 0);
    assert_int_equal(off, kept[n / 2]);
}

static void offsets_and_pointers_translate_both_ways(void **state)
{
    uint64_t a = alloc(WINDOW / 2 + 64, 64), b = alloc(WINDOW / 2 + 64, 64), off = 7;
    int local;

    (void)state;
    assert_int_equal(dock_arena_offset(&arena, dock_arena_at(&arena, a), 64, &off), 0);
    assert_int_equal(off, a);
    assert_int_equal(dock_arena_offset(&arena, (char *)dock_arena_at(&arena, b) + 5, WINDOW / 2, &off), 0);
    assert_int_equal(off, b + 5);
    off = 7;
    assert_int_equal(dock_arena_offset(&arena, &local, sizeof local, &off), -EFAULT);
    assert_int_equal(dock_arena_offset(&arena, NULL, 1, &off), -EFAULT);
    assert_int_equal(dock_arena_offset(&arena, dock_arena_at(&arena, a), WINDOW, &off), -EFAULT);
    assert_int_equal(dock_arena_offset(&arena, dock_arena_at(&arena, a), UINT64_MAX, &off), -EFAULT);
    assert_int_equal(off, 7);
}

static void a_million_pages_come_and_go_without_growth(void **state)
{
    uint64_t before = file_bytes(), size = arena.size, used = arena.used;
    int rounds = slow_factor() > 1 ? 50000 : 1000000, fds = open_fds(), maps = mappings_of("drydock-arena");

    (void)state;
    for (int i = 0; i < rounds; i++) {
        uint64_t off = alloc(page, page);
        if (i % 64 == 0)
            *(char *)dock_arena_at(&arena, off) = 1;
        dock_arena_free(&arena, off, page);
    }
    assert_int_equal(file_bytes(), before);
    assert_int_equal(arena.size, size);
    assert_int_equal(arena.used, used);
    assert_int_equal(open_fds(), fds);
    assert_int_equal(mappings_of("drydock-arena"), maps);
}

static void create_and_destroy_leave_no_descriptor_and_no_mapping(void **state)
{
    int fds = open_fds(), maps = mappings_of("drydock-arena");

    (void)state;
    for (int i = 0; i < 100; i++) {
        struct dock_arena a;
        uint64_t off;
        assert_int_equal(dock_arena_create(&a, SHIFT, 0), 0);
        for (int j = 0; j < 3; j++) {
            assert_int_equal(dock_arena_alloc(&a, WINDOW, page, &off), 0);
            assert_non_null(dock_view_at(&a.view, off, WINDOW));
        }
        dock_arena_destroy(&a);
    }
    assert_int_equal(open_fds(), fds);
    assert_int_equal(mappings_of("drydock-arena"), maps);
}

static void an_address_space_limit_chooses_small_windows(void **state)
{
    if (emulated())
        skip();

    struct rlimit old, limit;
    struct dock_arena a;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_AS, &old), 0);
    // Above what a sanitizer's shadow takes, so that the limit is there but does not bite.
    limit = (struct rlimit){1ull << 62, old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
    assert_int_equal(dock_arena_create(&a, 0, 0), 0);
    assert_int_equal(a.view.shift, DOCK_WINDOW_SHIFT_SMALL);
    dock_arena_destroy(&a);
    assert_int_equal(setrlimit(RLIMIT_AS, &old), 0);
}

static void valgrind_chooses_small_windows(void **state)
{
    const char *preload = getenv("LD_PRELOAD");
    char *old = preload ? strdup(preload) : NULL;
    struct dock_arena a;

    (void)state;
    setenv("LD_PRELOAD", "/usr/libexec/valgrind/vgpreload_core-amd64-linux.so", 1);
    assert_int_equal(dock_arena_create(&a, 0, 0), 0);
    assert_int_equal(a.view.shift, DOCK_WINDOW_SHIFT_SMALL);
    dock_arena_destroy(&a);
    if (old)
        setenv("LD_PRELOAD", old, 1);
    else
        unsetenv("LD_PRELOAD");
    free(old);
}

static void *churn(void *seed)
{
    uint64_t state = (uintptr_t)seed;
    bool *ok = malloc(sizeof *ok);

    *ok = true;
    for (int i = 0; i < 2000 && *ok; i++) {
        uint64_t size = 1 + dock_rand(&state) % 10000, off;
        *ok = !dock_arena_alloc(&arena, size, 64, &off);
        void *p = *ok ? dock_view_at(&arena.view, off, size) : NULL;
        *ok = *ok && p && all_are(p, 0, size);
        if (*ok) {
            memset(p, 1 + (int)((uintptr_t)seed & 0x7f), size);
            *ok = all_are(p, 1 + (int)((uintptr_t)seed & 0x7f), size);
            dock_arena_free(&arena, off, size);
        }
    }
    return ok;
}

static void threads_get_disjoint_memory(void **state)
{
    pthread_t thread[4];
    uint64_t used = arena.used;

    (void)state;
    for (uintptr_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, churn, (void *)(i + 1)), 0);
    for (int i = 0; i < 4; i++) {
        void *ok;
        pthread_join(thread[i], &ok);
        assert_true(*(bool *)ok);
        free(ok);
    }
    assert_int_equal(arena.used, used);
}

static void held_memory_is_not_used_again_until_it_is_released(void **state)
{
    uint64_t used = arena.used, before = alloc(page, page), held = alloc(page, page), all = arena.used;
    char *p = dock_arena_at(&arena, held);

    (void)state;
    memset(p, 7, page);
    dock_arena_hold(&arena);
    dock_arena_free(&arena, held, page);
    dock_arena_free(&arena, before, page);
    assert_int_equal(arena.used, all);
    assert_true(all_are(p, 7, page)); // whoever still writes there changes nobody's memory
    for (int i = 0; i < 64; i++) {
        uint64_t off = alloc(page, page);
        assert_true(off != held && off != before);
        dock_arena_free(&arena, off, page);
    }
    dock_arena_release(&arena);
    assert_int_equal(arena.used, used);
    assert_int_equal(alloc(page, page), before);
    assert_int_equal(alloc(page, page), held);
    assert_true(all_are(p, 0, page));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_first_bytes_are_reserved_and_zero, setup, teardown),
        cmocka_unit_test_setup_teardown(the_file_cannot_shrink_and_takes_no_more_seals, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_sizes_and_alignments_are_refused_and_change_nothing, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(alignment_is_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(small_allocations_share_pages, setup, teardown),
        cmocka_unit_test_setup_teardown(reserved_memory_has_no_pages_until_touched, setup, teardown),
        cmocka_unit_test_setup_teardown(freed_pages_return_to_the_system, setup, teardown),
        cmocka_unit_test_setup_teardown(a_shared_page_returns_with_its_last_user, setup, teardown),
        cmocka_unit_test_setup_teardown(memory_is_zero_again_and_neighbours_are_left_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(the_file_grows_by_windows_and_a_piece_lies_in_one, setup, teardown),
        cmocka_unit_test_setup_teardown(a_full_arena_says_so_and_keeps_what_it_has, setup, teardown),
        cmocka_unit_test_setup_teardown(offsets_and_pointers_translate_both_ways, setup, teardown),
        cmocka_unit_test_setup_teardown(a_million_pages_come_and_go_without_growth, setup, teardown),
        cmocka_unit_test_setup_teardown(create_and_destroy_leave_no_descriptor_and_no_mapping, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(an_address_space_limit_chooses_small_windows, setup, teardown),
        cmocka_unit_test_setup_teardown(valgrind_chooses_small_windows, setup, teardown),
        cmocka_unit_test_setup_teardown(threads_get_disjoint_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(held_memory_is_not_used_again_until_it_is_released, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
