// SPDX-License-Identifier: MIT
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
#include <unistd.h>

#include "base/log.h"

static char *old_level;
static int real_stderr, ends[2];

static int setup(void **state)
{
    (void)state;
    old_level = getenv("DRYDOCK_LOG") ? strdup(getenv("DRYDOCK_LOG")) : NULL;
    unsetenv("DRYDOCK_LOG");
    fflush(stderr);
    real_stderr = dup(STDERR_FILENO);
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    dup2(ends[1], STDERR_FILENO);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    dup2(real_stderr, STDERR_FILENO);
    close(real_stderr);
    close(ends[0]);
    close(ends[1]);
    if (old_level)
        setenv("DRYDOCK_LOG", old_level, 1);
    else
        unsetenv("DRYDOCK_LOG");
    free(old_level);
    return 0;
}

// What has been written to stderr since the last call.
static const char *shown(void)
{
    static char text[4096];
    ssize_t n = read(ends[0], text, sizeof text - 1);

    text[n > 0 ? n : 0] = '\0';
    return text;
}

static void a_line_names_process_and_level(void **state)
{
    char want[64];

    (void)state;
    dock_error("the %s is %d", "answer", 42);
    snprintf(want, sizeof want, "drydock[%d] error: the answer is 42\n", (int)getpid());
    assert_string_equal(shown(), want);
}

static void only_errors_are_shown_unless_asked(void **state)
{
    (void)state;
    dock_warn("w");
    dock_info("i");
    dock_debug("d");
    assert_string_equal(shown(), "");
    setenv("DRYDOCK_LOG", "info", 1);
    dock_warn("w");
    assert_non_null(strstr(shown(), "warn: w"));
    dock_info("i");
    assert_non_null(strstr(shown(), "info: i"));
    dock_debug("d");
    assert_string_equal(shown(), "");
    assert_true(dock_log_on(DOCK_LOG_INFO));
    assert_false(dock_log_on(DOCK_LOG_DEBUG));
    setenv("DRYDOCK_LOG", "nonsense", 1);
    assert_false(dock_log_on(DOCK_LOG_WARN));
    assert_true(dock_log_on(DOCK_LOG_ERROR));
}

static void the_last_line_is_kept_whether_shown_or_not(void **state)
{
    (void)state;
    dock_debug("not shown %d", 1);
    assert_string_equal(dock_log_last(), "not shown 1");
}

static void *other_thread(void *arg)
{
    (void)arg;
    const char *before = dock_log_last()[0] ? "something" : "";
    dock_debug("from the other");
    return (void *)before;
}

static void the_last_line_is_of_this_thread(void **state)
{
    pthread_t t;
    void *before;

    (void)state;
    dock_debug("from this");
    pthread_create(&t, NULL, other_thread, NULL);
    pthread_join(t, &before);
    assert_string_equal(before, "");
    assert_string_equal(dock_log_last(), "from this");
}

static void errno_survives(void **state)
{
    (void)state;
    close(STDERR_FILENO); // so that writing fails
    errno = ENOTTY;
    dock_error("x");
    assert_int_equal(errno, ENOTTY);
}

static void a_refusal_returns_its_code_quietly(void **state)
{
    (void)state;
    assert_int_equal(dock_refuse(-EINVAL, "no %s", "way"), -EINVAL);
    assert_string_equal(dock_log_last(), "no way");
    assert_string_equal(shown(), "");
}

static void a_long_line_is_cut_and_ends_in_one_newline(void **state)
{
    char text[2000];

    (void)state;
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    dock_error("%s", text);
    const char *line = shown();
    assert_in_range(strlen(line), 100, 300);
    assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_line_names_process_and_level, setup, teardown),
        cmocka_unit_test_setup_teardown(only_errors_are_shown_unless_asked, setup, teardown),
        cmocka_unit_test_setup_teardown(the_last_line_is_kept_whether_shown_or_not, setup, teardown),
        cmocka_unit_test_setup_teardown(the_last_line_is_of_this_thread, setup, teardown),
        cmocka_unit_test_setup_teardown(errno_survives, setup, teardown),
        cmocka_unit_test_setup_teardown(a_refusal_returns_its_code_quietly, setup, teardown),
        cmocka_unit_test_setup_teardown(a_long_line_is_cut_and_ends_in_one_newline, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
