// SPDX-License-Identifier: MIT
// A device that cannot be opened says what it was that failed, and not only that it could not: where a filter
// refuses a call, where there are no descriptors left. Each body is a process of its own.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "base/log.h"
#include "device/internal.h"
#include "lib/filter.h"
#include "lib/fork.h"
#include "lib/own_dir.h"

enum { SAID, WRONG, NOT_SAID, NO_FILTER, OPENED };

static const char *name; // what is to be said; NULL: anything
static unsigned errors;
static bool names_it;

static bool listen_to(enum dock_log_level level, const char *line)
{
    if (level == DOCK_LOG_ERROR && !errors++)
        names_it = name ? strstr(line, name) != NULL : !strstr(line, "the device could not be opened");
    return false;
}

static int open_in_words(void)
{
    struct dock_dev *dev;

    errors = 0;
    names_it = false;
    dock_log_set_sink(listen_to);
    int err = dock_dev_open(NULL, &dev);
    dock_log_set_sink(NULL);
    if (!err)
        return dock_dev_close(dev) ? WRONG : OPENED;
    return names_it && errors == 2 ? SAID : NOT_SAID;
}

struct refused {
    uint32_t call;
    const char *name;
};

static int open_without(void *arg)
{
    const struct refused *r = arg;

    name = r->name;
    return filter_call(r->call, SECCOMP_RET_ERRNO | EPERM, 0) ? NO_FILTER : open_in_words();
}

static int open_below(void *descriptors)
{
    rlim_t n = *(rlim_t *)descriptors;
    struct rlimit limit = {.rlim_cur = n, .rlim_max = n};

    return setrlimit(RLIMIT_NOFILE, &limit) ? NO_FILTER : open_in_words();
}

// `or`: what it may be as well.
static void expect(int (*body)(void *), void *arg, unsigned long long what, int want, int or)
{
    int status = 0;
    pid_t pid = test_fork(body, arg);

    assert_int_equal(test_await(pid, &status, 30000 * test_slow()), TEST_EXITED);
    if (status != want && status != or)
        fail_msg("%llu: %d, expected %d", what, status, want);
}

static void a_call_that_a_filter_refuses_is_named(void **state)
{
    static struct refused rows[] = {
        {SYS_memfd_create, "making the arena"}, {SYS_eventfd2, "bell"},       {SYS_socket, "listening"},
        {SYS_epoll_create1, "sleep in"},        {SYS_epoll_ctl, "epoll_ctl"}, {SYS_clone3, "no thread"}};

    (void)state;
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
        expect(open_without, &rows[i], rows[i].call, SAID, SAID);
}

static void a_descriptor_that_is_missing_is_named(void **state)
{
    (void)state;
    for (rlim_t n = 3; n < 24; n++) // how many are open already is not known
        expect(open_below, &n, n, SAID, n == 3 ? SAID : OPENED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_that_a_filter_refuses_is_named),
        cmocka_unit_test(a_descriptor_that_is_missing_is_named),
    };

    if (getenv("DRYDOCK_EMULATED"))
        return 77; // an emulator leaves filters and limits out
    return cmocka_run_group_tests_name("a device that is refused", tests, own_dir_make, own_dir_remove);
}
