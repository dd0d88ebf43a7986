// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "arena/extent.h"

#define SHIFT 16

static struct dock_extent *list, *spare;

static int nodes(const struct dock_extent *e)
{
    int n = 0;

    for (; e; e = e->next)
        n++;
    return n;
}

static int setup(void **state)
{
    (void)state;
    list = spare = NULL;
    for (int i = 0; i < 8; i++)
        assert_int_equal(dock_extent_stock(&spare), 0);
    dock_extent_give(&list, &spare, 0, 1 << SHIFT, SHIFT);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    assert_int_equal(nodes(list) + nodes(spare), 8); // none is lost, none is made
    dock_extent_free_list(&list);
    dock_extent_free_list(&spare);
    return 0;
}

static uint64_t take(uint64_t size, uint64_t align)
{
    uint64_t off = UINT64_MAX;

    assert_true(dock_extent_take(&list, &spare, size, align, &off));
    return off;
}

static void first_fit_goes_from_the_front(void **state)
{
    (void)state;
    assert_int_equal(take(64, 64), 0);
    assert_int_equal(take(64, 64), 64);
    dock_extent_give(&list, &spare, 0, 64, SHIFT);
    assert_int_equal(take(64, 64), 0);
}

static void the_gap_before_an_aligned_piece_stays_usable(void **state)
{
    (void)state;
    assert_int_equal(take(64, 64), 0);
    assert_int_equal(take(4096, 4096), 4096);
    assert_int_equal(take(4032, 64), 64);
    assert_int_equal(take(64, 64), 8192);
}

static void neighbours_merge_in_any_order(void **state)
{
    static const int order[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

    (void)state;
    for (int i = 0; i < 6; i++) {
        uint64_t off[3] = {take(64, 64), take(64, 64), take(64, 64)};
        for (int j = 0; j < 3; j++)
            dock_extent_give(&list, &spare, off[order[i][j]], 64, SHIFT);
        assert_int_equal(nodes(list), 1);
        assert_int_equal(list->size, 1 << SHIFT);
    }
}

static void windows_do_not_merge(void **state)
{
    uint64_t off;

    (void)state;
    dock_extent_give(&list, &spare, 1 << SHIFT, 1 << SHIFT, SHIFT);
    assert_int_equal(nodes(list), 2);
    assert_false(dock_extent_take(&list, &spare, (1 << SHIFT) + 64, 64, &off));
}

static void a_failed_take_changes_nothing(void **state)
{
    uint64_t off = 7;

    (void)state;
    assert_false(dock_extent_take(&list, &spare, (1 << SHIFT) + 64, 64, &off));
    assert_int_equal(off, 7);
    take(64, 64);
    assert_false(dock_extent_take(&list, &spare, 1 << SHIFT, 64, &off));
    assert_int_equal(off, 7);
    assert_int_equal(nodes(list), 1);
}

static void a_given_place_can_be_taken_again_wherever_it_lies(void **state)
{
    static const uint64_t off[] = {0, 64, 4096, (1 << SHIFT) - 64};

    (void)state;
    for (unsigned i = 0; i < sizeof off / sizeof *off; i++)
        dock_extent_take_at(&list, &spare, off[i], 64);
    assert_int_equal(take(64, 64), 128);
    for (unsigned i = 0; i < sizeof off / sizeof *off; i++)
        dock_extent_give(&list, &spare, off[i], 64, SHIFT);
    dock_extent_give(&list, &spare, 128, 64, SHIFT);
    assert_int_equal(nodes(list), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(first_fit_goes_from_the_front, setup, teardown),
        cmocka_unit_test_setup_teardown(the_gap_before_an_aligned_piece_stays_usable, setup, teardown),
        cmocka_unit_test_setup_teardown(neighbours_merge_in_any_order, setup, teardown),
        cmocka_unit_test_setup_teardown(windows_do_not_merge, setup, teardown),
        cmocka_unit_test_setup_teardown(a_failed_take_changes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(a_given_place_can_be_taken_again_wherever_it_lies, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
