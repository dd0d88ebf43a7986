// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cli/tree.c"
#include "cli/tree_ub.c"

static char top[64];
static int top_fd;
static const struct dock_identity one = {
    .name = "drydock0",
    .guid = {0x02, 0xdd, 0x0c, 0xff, 0xfe, 0x00, 0x00, 0x2a},
    .gids = 2,
    .gid = {{.raw = {0xfe, 0x80, [15] = 1}, .ifindex = 1},
            {.raw = {[10] = 0xff, [11] = 0xff, 127, 0, 0, 1}, .ifindex = 1}},
};

static const char *text_of(const char *root, const char *path)
{
    static char text[256];
    char whole[PATH_MAX + 256];
    int fd;
    ssize_t n;

    snprintf(whole, sizeof(whole), "%s/%s", root, path);
    fd = open(whole, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    n = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[n < 0 ? 0 : n] = '\0';
    return text;
}

static int make_top(void **state)
{
    (void)state;
    strcpy(top, "/tmp/drydock-tree-XXXXXX");
    top_fd = mkdtemp(top) ? open(top, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    return top_fd < 0;
}

static int drop_top(void **state)
{
    char command[128];

    (void)state;
    close(top_fd);
    snprintf(command, sizeof(command), "rm -r '%s'", top);
    return system(command);
}

static void the_tree_tells_what_the_identity_says(void **state)
{
    char root[PATH_MAX];

    (void)state;
    assert_int_equal(dock_tree_make(top_fd, &one, root, sizeof(root)), 0);
    assert_int_equal(root[0], '/');
    assert_string_equal(text_of(root, "sys/class/infiniband/drydock0/node_guid"), "02dd:0cff:fe00:002a\n");
    assert_string_equal(text_of(root, "sys/class/infiniband/drydock0/ports/1/gids/1"),
                        "0000:0000:0000:0000:0000:ffff:7f00:0001\n");
    assert_string_equal(text_of(root, "sys/class/infiniband/drydock0/ports/1/gids/15"),
                        "0000:0000:0000:0000:0000:0000:0000:0000\n");
    assert_string_equal(text_of(root, "sys/class/infiniband/drydock0/ports/1/gid_attrs/types/1"),
                        "RoCE v2\n");
    assert_null(text_of(root, "sys/class/infiniband/drydock0/ports/1/gid_attrs/types/2"));
    assert_string_equal(text_of(root, "sys/class/infiniband_verbs/uverbs0/ibdev"), "drydock0\n");
}

static void an_address_that_is_gone_leaves_the_tree(void **state)
{
    struct dock_identity fewer = one;
    char root[PATH_MAX];

    (void)state;
    assert_int_equal(dock_tree_make(top_fd, &one, root, sizeof(root)), 0);
    fewer.gids = 1;
    fewer.gid[1] = (struct dock_gid){0};
    assert_int_equal(dock_tree_make(top_fd, &fewer, root, sizeof(root)), 0);
    assert_null(text_of(root, "sys/class/infiniband/drydock0/ports/1/gid_attrs/types/1"));
    assert_null(text_of(root, "sys/class/infiniband/drydock0/ports/1/gid_attrs/ndevs/1"));
    assert_string_equal(text_of(root, "sys/class/infiniband/drydock0/ports/1/gids/1"),
                        "0000:0000:0000:0000:0000:0000:0000:0000\n");
}

static void two_names_have_two_trees(void **state)
{
    struct dock_identity other = one;
    char first[PATH_MAX], second[PATH_MAX];

    (void)state;
    strcpy(other.name, "mlx5_0");
    assert_int_equal(dock_tree_make(top_fd, &one, first, sizeof(first)), 0);
    assert_int_equal(dock_tree_make(top_fd, &other, second, sizeof(second)), 0);
    assert_string_not_equal(first, second);
    assert_null(text_of(second, "sys/class/infiniband/drydock0/node_type"));
    assert_non_null(text_of(second, "sys/class/infiniband/mlx5_0/node_type"));
}

static void a_file_that_is_right_is_not_touched(void **state)
{
    char root[PATH_MAX];
    char path[PATH_MAX + 64];
    struct stat before, after;

    (void)state;
    assert_int_equal(dock_tree_make(top_fd, &one, root, sizeof(root)), 0);
    snprintf(path, sizeof(path), "%s/sys/class/infiniband/drydock0/node_type", root);
    assert_int_equal(stat(path, &before), 0);
    assert_int_equal(dock_tree_make(top_fd, &one, root, sizeof(root)), 0);
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
}

static void the_longest_device_name_fits(void **state)
{
    struct dock_identity longest = one;
    char root[PATH_MAX];
    char path[256];

    (void)state;
    memset(longest.name, 'n', DOCK_NAME_MAX - 1);
    assert_int_equal(dock_tree_make(top_fd, &longest, root, sizeof(root)), 0);
    snprintf(path, sizeof(path), "sys/class/infiniband/%s/ports/1/gid_attrs/types/1", longest.name);
    assert_string_equal(text_of(root, path), "RoCE v2\n");
}

static void a_link_in_place_of_the_tree_is_not_followed(void **state)
{
    char root[PATH_MAX];

    (void)state;
    assert_int_equal(symlinkat("/tmp", top_fd, "tree-drydock0"), 0);
    assert_true(dock_tree_make(top_fd, &one, root, sizeof(root)) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_tree_tells_what_the_identity_says, make_top, drop_top),
        cmocka_unit_test_setup_teardown(an_address_that_is_gone_leaves_the_tree, make_top, drop_top),
        cmocka_unit_test_setup_teardown(two_names_have_two_trees, make_top, drop_top),
        cmocka_unit_test_setup_teardown(a_file_that_is_right_is_not_touched, make_top, drop_top),
        cmocka_unit_test_setup_teardown(the_longest_device_name_fits, make_top, drop_top),
        cmocka_unit_test_setup_teardown(a_link_in_place_of_the_tree_is_not_followed, make_top, drop_top),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
