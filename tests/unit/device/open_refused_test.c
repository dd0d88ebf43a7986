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

static unsigned errors;
static bool names_it;

static bool listen_to(enum dock_log_level level, const char *line)
{
    if (level == DOCK_LOG_ERROR && !errors++)
        names_it = !strstr(line, "the device could not be opened");
    return false;
}

// 0: it opened, or it said what failed. Else which step was wrong.
static int open_in_words(void)
{
    struct dock_dev *dev;

    errors = 0;
    names_it = false;
    dock_log_set_sink(listen_to);
    int err = dock_dev_open(NULL, &dev);
    dock_log_set_sink(NULL);
    if (!err)
        return dock_dev_close(dev) ? 1 : 0;
    return names_it && errors == 2 ? 0 : 2;
}

static int open_without(void *call)
{
    uint32_t nr = *(uint32_t *)call;

    return filter_call(nr, SECCOMP_RET_ERRNO | EPERM, 0) ? 3 : open_in_words();
}

static int open_below(void *descriptors)
{
    rlim_t n = *(rlim_t *)descriptors;
    struct rlimit limit = {.rlim_cur = n, .rlim_max = n};

    return setrlimit(RLIMIT_NOFILE, &limit) ? 3 : open_in_words();
}

static void each_says_it(int (*body)(void *), void *arg, unsigned long long what)
{
    int status = 0;
    pid_t pid = test_fork(body, arg);

    assert_int_equal(test_await(pid, &status, 30000 * test_slow()), TEST_EXITED);
    if (status)
        fail_msg("%llu: step %d", what, status);
}

static void a_call_that_a_filter_refuses_is_named(void **state)
{
    // Of the last one a sanitizer's own thread may have need: not refused there.
    static const uint32_t calls[] = {SYS_memfd_create,  SYS_eventfd2,  SYS_socket,
                                     SYS_epoll_create1, SYS_epoll_ctl, SYS_clone3};

    (void)state;
    for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++)
        each_says_it(open_without, (void *)&calls[i], calls[i]);
}

static void a_descriptor_that_is_missing_is_named(void **state)
{
    (void)state;
    for (rlim_t n = 3; n < 24; n++)
        each_says_it(open_below, &n, n);
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
