// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/version.h"

static void version_is_three_numbers(void **state)
{
    (void)state;
    unsigned major, minor, patch;
    char rest;
    int fields = sscanf(dock_version(), "%u.%u.%u%c", &major, &minor, &patch, &rest);
    assert_int_equal(fields, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(version_is_three_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
