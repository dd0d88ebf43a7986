// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arena/rundir.h"
#include "base/log.h"
#include "unit/arena/child.h"

static char *base; // a directory of our own, in which the tests make theirs
static char path[160];
static struct dock_rundir dir;

static int setup(void **state)
{
    (void)state;
    base = fresh_dir();
    snprintf(path, sizeof path, "%s/run", base);
    dir = (struct dock_rundir){.fd = -7};
    return 0;
}

static int teardown(void **state)
{
    char link[170];

    (void)state;
    if (dir.fd >= 0)
        dock_rundir_close(&dir);
    snprintf(link, sizeof link, "%s/link", base);
    unlink(link);
    rmdir(path);
    fresh_dir_end(base);
    return 0;
}

static void refused(const char *wanted, int code, const char *words)
{
    int fds = open_fds();

    assert_int_equal(dock_rundir_open(wanted, &dir), code);
    if (!strstr(dock_log_last(), words))
        fail_msg("expected words like \"%s\", got \"%s\"", words, dock_log_last());
    assert_int_equal(dir.fd, -7); // set only on success
    assert_int_equal(open_fds(), fds);
}

static void a_missing_directory_is_made_for_its_owner_alone(void **state)
{
    mode_t old = umask(0);
    struct stat st;

    (void)state;
    assert_int_equal(dock_rundir_open(path, &dir), 0);
    umask(old);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_string_equal(dir.path, path);
    assert_true(fcntl(dir.fd, F_GETFD) & FD_CLOEXEC);
}

static void a_good_directory_is_opened_again(void **state)
{
    struct dock_rundir again;

    (void)state;
    assert_int_equal(dock_rundir_open(path, &dir), 0);
    assert_int_equal(dock_rundir_open(path, &again), 0);
    dock_rundir_close(&again);
    assert_int_equal(again.fd, -1);
}

static void a_loose_directory_is_refused_in_words(void **state)
{
    static const mode_t loose[] = {0701, 0710, 0720, 0740, 0704, 0702, 0777};

    (void)state;
    assert_int_equal(mkdir(path, 0700), 0);
    for (unsigned i = 0; i < sizeof loose / sizeof *loose; i++) {
        assert_int_equal(chmod(path, loose[i]), 0);
        refused(path, -EACCES, "group or others may enter");
    }
}

static void a_foreign_directory_is_refused_in_words(void **state)
{
    (void)state;
    if (geteuid() != 0) // "/" is root's
        return refused("/", -EPERM, "it belongs to user 0");
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(chown(path, 65534, 65534), 0);
    refused(path, -EPERM, "it belongs to user 65534, not to 0");
}

static void a_link_is_never_followed(void **state)
{
    char link[170], slash[180];

    (void)state;
    snprintf(link, sizeof link, "%s/link", base);
    snprintf(slash, sizeof slash, "%s/", link);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(symlink(path, link), 0);
    refused(link, -ENOTDIR, "links are not followed");
    refused(slash, -ENOTDIR, "links are not followed");
    assert_int_equal(unlink(link), 0);
    assert_int_equal(symlink("/nowhere/at/all", link), 0);
    refused(link, -ENOTDIR, "links are not followed");
}

static void a_file_is_no_directory(void **state)
{
    int fd = open(path, O_CREAT | O_WRONLY, 0600);

    (void)state;
    close(fd);
    refused(path, -ENOTDIR, "no directory");
}

static void a_path_too_long_for_a_socket_is_refused(void **state)
{
    char longest[200];

    (void)state;
    memset(longest, 'a', sizeof longest);
    longest[0] = '/';
    longest[94] = '\0';
    refused(longest, -ENAMETOOLONG, "more than 93 bytes");
    snprintf(longest, sizeof longest, "/nowhere/%084d", 0);
    assert_int_equal(strlen(longest), 93);
    refused(longest, -ENOENT, "No such file");
}

static void a_missing_parent_is_named(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "%s/no/run", base);
    refused(path, -ENOENT, path);
}

static void with_environment(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

static void the_environment_chooses_in_order(void **state)
{
    char *old = getenv("DRYDOCK_DIR") ? strdup(getenv("DRYDOCK_DIR")) : NULL, want[200];

    (void)state;
    with_environment("DRYDOCK_DIR", path);
    with_environment("XDG_RUNTIME_DIR", base);
    assert_int_equal(dock_rundir_open(NULL, &dir), 0);
    assert_string_equal(dir.path, path);
    dock_rundir_close(&dir);

    with_environment("DRYDOCK_DIR", "");
    assert_int_equal(dock_rundir_open(NULL, &dir), 0);
    snprintf(want, sizeof want, "%s/drydock", base);
    assert_string_equal(dir.path, want);
    dock_rundir_close(&dir);
    rmdir(want);

    with_environment("DRYDOCK_DIR", NULL);
    with_environment("XDG_RUNTIME_DIR", "/nowhere"); // no directory of ours: as if it were not set
    snprintf(want, sizeof want, "/tmp/drydock-%u", (unsigned)geteuid());
    if (dock_rundir_open(NULL, &dir) == 0)
        assert_string_equal(dir.path, want);
    with_environment("XDG_RUNTIME_DIR", NULL);
    with_environment("DRYDOCK_DIR", old);
    free(old);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_missing_directory_is_made_for_its_owner_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(a_good_directory_is_opened_again, setup, teardown),
        cmocka_unit_test_setup_teardown(a_loose_directory_is_refused_in_words, setup, teardown),
        cmocka_unit_test_setup_teardown(a_foreign_directory_is_refused_in_words, setup, teardown),
        cmocka_unit_test_setup_teardown(a_link_is_never_followed, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_is_no_directory, setup, teardown),
        cmocka_unit_test_setup_teardown(a_path_too_long_for_a_socket_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_missing_parent_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(the_environment_chooses_in_order, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
