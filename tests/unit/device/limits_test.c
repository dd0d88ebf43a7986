// SPDX-License-Identifier: MIT
// What is announced can be made, whatever the size of the arena's windows.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "device/internal.h"

static void the_longest_cq_can_be_made(void **state)
{
    static const unsigned shifts[] = {23, DOCK_WINDOW_SHIFT_SMALL};

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct dock_config cfg = {.no_engine_thread = true, .window_shift = shifts[i]};
        struct dock_dev *dev;
        struct dock_cq *cq;

        assert_int_equal(dock_dev_open(&cfg, &dev), 0);
        struct dock_cq_attr a = {.depth = dock_dev_limits(dev)->max_cqe};
        for (unsigned overrun = 0; overrun < 2; overrun++) {
            a.ignore_overrun = overrun;
            assert_int_equal(dock_cq_create(dev, &a, &cq), 0);
            assert_int_equal(dock_cq_destroy(cq), 0);
        }
        a.depth++;
        assert_int_equal(dock_cq_create(dev, &a, &cq), -EINVAL);
        assert_int_equal(dock_dev_close(dev), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_longest_cq_can_be_made)};

    return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}
