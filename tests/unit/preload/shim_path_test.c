// SPDX-License-Identifier: MIT
// link: none
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "preload/shim_path.c"

static const char root[] = "/run/user/1000/drydock/tree";

static const char *rewritten(const char *path)
{
    static struct dock_shim_buf buf;

    return dock_shim_path(path, &buf);
}

static int with_root(void **state)
{
    (void)state;
    dock_shim_set_root(root);
    return 0;
}

static void our_places_lead_into_the_tree(void **state)
{
    static const char *const paths[] = {
        "/sys/class/infiniband",
        "/sys/class/infiniband/",
        "/sys/class/infiniband/drydock0/ports/1/gid_attrs/types/0",
        "/sys/class/infiniband_verbs",
        "/sys/class/infiniband_verbs/uverbs0/ibdev",
        "/dev/infiniband",
        "/dev/infiniband/",
        "/dev/infiniband/rdma_cm",
        "/dev/infiniband/uverbs1",
    };
    char expected[256];

    (void)state;
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        snprintf(expected, sizeof(expected), "%s%s", root, paths[i]);
        assert_string_equal(rewritten(paths[i]), expected);
        assert_true(dock_shim_owns(paths[i]));
    }
}

static void the_device_node_is_a_character_device(void **state)
{
    (void)state;
    assert_string_equal(rewritten("/dev/infiniband/uverbs0"), "/dev/null");
}

static void other_paths_come_back_as_the_same_pointer(void **state)
{
    static const char *const paths[] = {
        "",
        "/",
        ".",
        "/s",
        "/sys",
        "/sys/class",
        "/sys/class/infiniban",
        "/sys/class/infinibandit/x",
        "/sys/class/infiniband_mad",
        "/sys/class/infiniband_verbs0",
        "/dev",
        "/dev/null",
        "/dev/infinibanda",
        "dev/infiniband",
        "sys/class/infiniband",
        "/home/sys/class/infiniband",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        assert_ptr_equal(rewritten(paths[i]), paths[i]);
    assert_null(rewritten(NULL));
}

static void a_path_that_does_not_fit_is_left_alone(void **state)
{
    char longest[DOCK_SHIM_PATH_MAX] = "/dev/infiniband/";
    size_t room = DOCK_SHIM_PATH_MAX - 1 - strlen(root);
    size_t begun = strlen(longest);

    (void)state;
    memset(longest + begun, 'x', room - begun);
    assert_int_equal(strlen(rewritten(longest)), DOCK_SHIM_PATH_MAX - 1);
    longest[room] = 'x';
    assert_ptr_equal(rewritten(longest), longest);
}

static void errno_is_left_alone(void **state)
{
    (void)state;
    errno = EILSEQ;
    rewritten("/sys/class/infiniband/drydock0");
    rewritten("/etc/passwd");
    assert_int_equal(errno, EILSEQ);
}

static void without_an_absolute_root_nothing_is_rewritten(void **state)
{
    static const char path[] = "/sys/class/infiniband";
    char too_long[DOCK_SHIM_PATH_MAX + 1];
    const char *const roots[] = {NULL, "", "tree", too_long};

    (void)state;
    memset(too_long, '/', sizeof(too_long) - 1);
    too_long[sizeof(too_long) - 1] = '\0';
    for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
        dock_shim_set_root(roots[i]);
        assert_ptr_equal(rewritten(path), path);
        assert_false(dock_shim_owns(path));
    }
}

static void the_root_comes_from_the_environment(void **state)
{
    (void)state;
    setenv("DRYDOCK_SHIM", "/elsewhere", 1);
    shim.known = false;
    assert_string_equal(rewritten("/dev/infiniband"), "/elsewhere/dev/infiniband");
    unsetenv("DRYDOCK_SHIM");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(our_places_lead_into_the_tree, with_root),
        cmocka_unit_test_setup(the_device_node_is_a_character_device, with_root),
        cmocka_unit_test_setup(other_paths_come_back_as_the_same_pointer, with_root),
        cmocka_unit_test_setup(a_path_that_does_not_fit_is_left_alone, with_root),
        cmocka_unit_test_setup(errno_is_left_alone, with_root),
        cmocka_unit_test(without_an_absolute_root_nothing_is_rewritten),
        cmocka_unit_test(the_root_comes_from_the_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
