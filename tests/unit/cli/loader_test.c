// SPDX-License-Identifier: MIT
// link: none
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "cli/loader.c"

static char top[64]; // a directory of this test, with bin/drydock named but not made

static void touch(const char *dir, const char *name)
{
    char path[256];
    int fd;

    snprintf(path, sizeof(path), "%s/%s/%s", top, dir, name);
    fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
}

static void make_dir(const char *name)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%s", top, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

static const char *exe(void)
{
    static char path[256];

    snprintf(path, sizeof(path), "%s/bin/drydock", top);
    return path;
}

static int make_top(void **state)
{
    (void)state;
    strcpy(top, "/tmp/drydock-loader-XXXXXX");
    assert_non_null(mkdtemp(top));
    make_dir("bin");
    make_dir("lib");
    unsetenv("LD_PRELOAD");
    unsetenv("LD_LIBRARY_PATH");
    return 0;
}

static int drop_top(void **state)
{
    char command[128];

    (void)state;
    unsetenv("LD_PRELOAD");
    unsetenv("LD_LIBRARY_PATH");
    snprintf(command, sizeof(command), "rm -r '%s'", top);
    return system(command);
}

static void libraries_that_are_missing_are_told(void **state)
{
    struct dock_loader loader;

    (void)state;
    assert_int_equal(dock_loader_find_from(exe(), &loader), -ENOENT);
    touch("lib", "libibverbs.so.1");
    assert_int_equal(dock_loader_find_from(exe(), &loader), -ENOENT);
    assert_non_null(strstr(loader.dir, "/lib"));
}

static void an_installed_layout_wins_over_plain_lib(void **state)
{
    struct dock_loader loader;

    (void)state;
    touch("lib", "libibverbs.so.1");
    touch("lib", "libdrydock_preload.so");
    assert_int_equal(dock_loader_find_from(exe(), &loader), 0);
    assert_string_equal(strrchr(loader.dir, '/'), "/lib");
    make_dir("lib/drydock");
    touch("lib/drydock", "libibverbs.so.1");
    touch("lib/drydock", "libdrydock_preload.so");
    assert_int_equal(dock_loader_find_from(exe(), &loader), 0);
    assert_string_equal(strrchr(loader.dir, '/'), "/drydock");
}

static void a_directory_that_ld_preload_cannot_express_is_refused(void **state)
{
    struct dock_loader loader;
    char path[256];

    (void)state;
    make_dir("a b");
    make_dir("a b/bin");
    make_dir("a b/lib");
    touch("a b/lib", "libibverbs.so.1");
    touch("a b/lib", "libdrydock_preload.so");
    snprintf(path, sizeof(path), "%s/a b/bin/drydock", top);
    assert_int_equal(dock_loader_find_from(path, &loader), -EINVAL);
}

static void export_adds_what_is_there_and_keeps_the_users(void **state)
{
    struct dock_loader loader;
    char expected[512];

    (void)state;
    touch("lib", "libibverbs.so.1");
    touch("lib", "libdrydock_preload.so");
    assert_int_equal(dock_loader_find_from(exe(), &loader), 0);
    setenv("LD_PRELOAD", "/opt/first.so", 1);
    setenv("LD_LIBRARY_PATH", "/opt/lib", 1);
    assert_int_equal(dock_loader_export(&loader), 0);
    snprintf(expected, sizeof(expected), "%s/lib:/opt/lib", top);
    assert_string_equal(getenv("LD_LIBRARY_PATH"), expected);
    snprintf(expected, sizeof(expected), "/opt/first.so:%s/lib/libibverbs.so.1:%s/lib/libdrydock_preload.so",
             top, top);
    assert_string_equal(getenv("LD_PRELOAD"), expected);
}

static void export_twice_is_export_once(void **state)
{
    struct dock_loader loader;
    char *once;

    (void)state;
    touch("lib", "libibverbs.so.1");
    touch("lib", "librdmacm.so.1");
    touch("lib", "libdrydock_preload.so");
    assert_int_equal(dock_loader_find_from(exe(), &loader), 0);
    assert_int_equal(dock_loader_export(&loader), 0);
    assert_non_null(strstr(getenv("LD_PRELOAD"), "/librdmacm.so.1:"));
    once = strdup(getenv("LD_PRELOAD"));
    assert_int_equal(dock_loader_export(&loader), 0);
    assert_string_equal(getenv("LD_PRELOAD"), once);
    free(once);
}

static void an_empty_library_path_does_not_become_the_current_directory(void **state)
{
    struct dock_loader loader;

    (void)state;
    touch("lib", "libibverbs.so.1");
    touch("lib", "libdrydock_preload.so");
    assert_int_equal(dock_loader_find_from(exe(), &loader), 0);
    setenv("LD_LIBRARY_PATH", "", 1);
    assert_int_equal(dock_loader_export(&loader), 0);
    assert_string_equal(getenv("LD_LIBRARY_PATH"), loader.dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(libraries_that_are_missing_are_told, make_top, drop_top),
        cmocka_unit_test_setup_teardown(an_installed_layout_wins_over_plain_lib, make_top, drop_top),
        cmocka_unit_test_setup_teardown(a_directory_that_ld_preload_cannot_express_is_refused, make_top,
                                        drop_top),
        cmocka_unit_test_setup_teardown(export_adds_what_is_there_and_keeps_the_users, make_top, drop_top),
        cmocka_unit_test_setup_teardown(export_twice_is_export_once, make_top, drop_top),
        cmocka_unit_test_setup_teardown(an_empty_library_path_does_not_become_the_current_directory, make_top,
                                        drop_top),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
