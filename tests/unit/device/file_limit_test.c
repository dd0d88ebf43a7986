// SPDX-License-Identifier: MIT
// timeout: 60
// A limit on the size of files ends no program inside the device: the files are the device's, and so is what
// comes of it. Each body is a process of its own, which a signal would end.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "arena/xcopy.h"
#include "base/job.h"
#include "base/log.h"
#include "device/internal.h"
#include "lib/fork.h"
#include "lib/own_dir.h"

#define SMALL (1u << 16)
#define SOME (1u << 18) // not a huge page, which is copied by stores
#define BIG (4u << 20)
#define RIGHTS (DOCK_ACCESS_LOCAL_WRITE | DOCK_ACCESS_REMOTE_READ | DOCK_ACCESS_REMOTE_WRITE)

static struct rlimit usual;

static void limit(rlim_t bytes)
{
    struct rlimit r = {.rlim_cur = bytes, .rlim_max = usual.rlim_max};

    setrlimit(RLIMIT_FSIZE, &r);
}

// As it was: neither blocked nor to come.
static int untouched(void)
{
    sigset_t blocked, pending;

    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    sigpending(&pending);
    return !sigismember(&blocked, SIGXFSZ) && !sigismember(&pending, SIGXFSZ);
}

// 0, or which step was wrong.
static int open_below(void *bytes)
{
    struct dock_dev *dev;

    limit(*(rlim_t *)bytes);
    int err = dock_dev_open(NULL, &dev);
    if (err != -ENOMEM && err != -EFBIG)
        return 1;
    if (!strstr(dock_log_last(), strerror(EFBIG)) && !strstr(dock_log_last(), strerror(ENOMEM)))
        return 2;
    if (!untouched())
        return 3;
    limit(usual.rlim_max);
    err = dock_dev_open(NULL, &dev);
    return err ? 4 : dock_dev_close(dev) ? 5 : 0;
}

static char *memory(size_t size)
{
    return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

// The arena has a window there, or has none yet: a write, or the growth, is beyond the limit.
static int register_below(void *with_window)
{
    uint32_t pd;
    struct dock_dev *dev;
    struct dock_mr *first = NULL, *mr;
    char *p = memory(BIG);
    uint64_t half = (uintptr_t)p + BIG / 2;

    memset(p, 1, BIG);
    if (dock_dev_open(NULL, &dev) || dock_pd_create(dev, &pd))
        return 1;
    if (*(bool *)with_window && dock_mr_register(dev, pd, (uintptr_t)p, SMALL, (uintptr_t)p, RIGHTS, &first))
        return 2;
    limit(SMALL);
    if (dock_mr_register(dev, pd, half, SOME, half, RIGHTS, &mr))
        return 3;
    if (mr->hold.pieces)
        return 4; // nothing of it could move
    if (!untouched())
        return 5;
    for (size_t i = 0; i < BIG; i++)
        if (p[i] != 1)
            return 6;
    if (dock_mr_deregister(mr) || (first && dock_mr_deregister(first)))
        return 7;
    return 0;
}

// A signal of the program's own that waits is its own still.
static int open_with_one_to_come(void *arg)
{
    struct dock_dev *dev;
    sigset_t one;

    (void)arg;
    sigemptyset(&one);
    sigaddset(&one, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &one, NULL);
    raise(SIGXFSZ);
    limit(SMALL);
    if (!dock_dev_open(NULL, &dev))
        return 1;
    sigpending(&one);
    return !sigismember(&one, SIGXFSZ);
}

static int make_a_job(void *arg)
{
    char path[128];
    struct dock_job *job;

    (void)arg;
    snprintf(path, sizeof path, "%s/job", getenv("DRYDOCK_DIR"));
    limit(0);
    int err = dock_job_open(path, 1, &job);
    unlink(path);
    return err != -EFBIG || !untouched();
}

// What is logged goes to a file that has no room.
static int log_below(void *arg)
{
    char path[128];

    (void)arg;
    snprintf(path, sizeof path, "%s/log", getenv("DRYDOCK_DIR"));
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600), err = dup2(fd, STDERR_FILENO);
    unlink(path);
    limit(0);
    dock_error("nobody reads this");
    return err < 0 || !untouched();
}

// The same where memory moves, which asks for nothing as long as there is room.
static int register_with_one_to_come(void *arg)
{
    bool window = true;
    sigset_t one;

    (void)arg;
    sigemptyset(&one);
    sigaddset(&one, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &one, NULL);
    raise(SIGXFSZ);
    int at = register_below(&window);
    if (at != 5) // it is blocked, and to come
        return 1;
    sigpending(&one);
    return !sigismember(&one, SIGXFSZ);
}

static void lives(int (*body)(void *), void *arg)
{
    int status = 0;
    pid_t pid = test_fork(body, arg);

    assert_int_equal(test_await(pid, &status, 30000 * test_slow()), TEST_EXITED);
    assert_int_equal(status, 0);
}

static void an_open_beyond_the_limit_fails_in_words(void **state)
{
    rlim_t limits[] = {0, SMALL, 1u << 20}; // the table of ids, the arena

    (void)state;
    for (unsigned i = 0; i < sizeof limits / sizeof *limits; i++)
        lives(open_below, &limits[i]);
}

static void memory_beyond_the_limit_stays_where_it_is(void **state)
{
    bool with_window[] = {false, true};

    (void)state;
    if (!dock_xcopy_works())
        skip(); // it must move then
    lives(register_below, &with_window[0]);
    lives(register_below, &with_window[1]);
}

static void a_signal_of_the_programs_own_stays(void **state)
{
    (void)state;
    lives(open_with_one_to_come, NULL);
    if (dock_xcopy_works())
        lives(register_with_one_to_come, NULL);
}

static void nothing_else_that_grows_sends_one(void **state)
{
    (void)state;
    lives(make_a_job, NULL);
    lives(log_below, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_open_beyond_the_limit_fails_in_words),
        cmocka_unit_test(memory_beyond_the_limit_stays_where_it_is),
        cmocka_unit_test(a_signal_of_the_programs_own_stays),
        cmocka_unit_test(nothing_else_that_grows_sends_one),
    };

    getrlimit(RLIMIT_FSIZE, &usual);
    if (getenv("DRYDOCK_EMULATED") || usual.rlim_max != RLIM_INFINITY)
        return 77; // an emulator leaves limits out; with one that is not ours no device opens, or in part
    return cmocka_run_group_tests_name("a limit on the size of files", tests, own_dir_make, own_dir_remove);
}
