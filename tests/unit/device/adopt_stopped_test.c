// SPDX-License-Identifier: MIT
// timeout: 120
// A process that is stopped (SIGSTOP) while its threads are, since memory moves or a fork is under way: its
// parent is told, and it goes on when it may.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "device/internal.h"
#include "lib/filter.h"
#include "lib/fork.h"
#include "lib/maps.h"
#include "lib/tracing.h"

#define LEN (256 * 4096u)
#define ROUNDS 40

static struct {
    dock_a64 turns; // of the child's loop
    dock_a32 over, group;
    dock_a32 listener; // of the filter, one more: the number of its descriptor in the child
} * shared;

static void *busy(void *arg)
{
    for (;;)
        dock_count64(arg, 1);
    return NULL;
}

static struct {
    char *p;
    struct dock_dev *dev;
    uint32_t pd;
} us;

// 0, or what the child is to end with.
static int begin_beside_a_thread(bool group)
{
    static dock_a64 turns;
    pthread_t t;

    us.p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    setenv("DRYDOCK_ADOPT", "inner", 1);
    if ((group && setpgid(0, 0)) || dock_dev_open(NULL, &us.dev) || dock_pd_create(us.dev, &us.pd) ||
        pthread_create(&t, NULL, busy, &turns))
        return 2;
    return us.dev->adopt.mode == DOCK_ADOPT_OFF ? 77 : 0;
}

static struct dock_mr *register_it(void)
{
    struct dock_mr *mr;

    memset(us.p, 1, LEN);
    return dock_mr_register(us.dev, us.pd, (uintptr_t)us.p, LEN, (uintptr_t)us.p, DOCK_ACCESS_LOCAL_WRITE,
                            &mr)
               ? NULL
               : mr;
}

static int register_all_the_time(void *arg)
{
    int err = begin_beside_a_thread(dock_peek32(&shared->group));
    struct dock_mr *mr;

    (void)arg;
    while (!err && !dock_peek32(&shared->over)) {
        mr = register_it();
        if (mr && maps_look(us.p, LEN).adopted == LEN)
            dock_count64(&shared->turns, 1);
        if (!mr || dock_mr_deregister(mr))
            err = 3;
    }
    return err;
}

static int fork_all_the_time(void *arg)
{
    int err = begin_beside_a_thread(dock_peek32(&shared->group)), status;

    (void)arg;
    while (!err && (!register_it() || maps_look(us.p, LEN).adopted != LEN))
        err = dock_peek32(&shared->over) ? 3 : 0;
    while (!err && !dock_peek32(&shared->over)) {
        pid_t child = fork();
        if (!child)
            _exit(us.p[LEN / 2] != 1);
        if (child < 0 || waitpid(child, &status, 0) != child || status)
            err = 4;
        dock_count64(&shared->turns, 1);
    }
    return err;
}

static void each_stop_is_told(int (*body)(void *), bool group, int sig)
{
    unsigned ms = 10000 * test_slow(), told = 0;
    int status = 0;
    enum test_end end = TEST_RUNS;

    dock_set64(&shared->turns, 0);
    dock_set32(&shared->over, 0);
    dock_set32(&shared->group, group);
    pid_t child = test_fork(body, NULL);
    uint64_t until = dock_now_ns() + ms * 1000000ull;
    while (!dock_peek64(&shared->turns) && (end = test_look(child, &status)) == TEST_RUNS &&
           dock_now_ns() < until)
        test_nap_us(1000);
    if (end == TEST_EXITED && status == 77)
        skip();
    for (; told < ROUNDS && end == TEST_RUNS; told++) {
        uint64_t before = dock_peek64(&shared->turns);
        test_nap_us(told * 37 % 1000);
        kill(group ? -child : child, sig);
        if (test_await(child, &status, ms) != TEST_STOPPED)
            break;
        kill(group ? -child : child, SIGCONT);
        until = dock_now_ns() + ms * 1000000ull;
        while (dock_peek64(&shared->turns) < before + 2 && dock_now_ns() < until)
            test_nap_us(500);
        if (dock_peek64(&shared->turns) < before + 2)
            break;
    }
    dock_set32(&shared->over, 1);
    kill(group ? -child : child, SIGCONT);
    end = test_await(child, &status, ms);
    if (end != TEST_EXITED)
        test_kill(child);
    assert_int_equal(told, ROUNDS);
    assert_int_equal(end, TEST_EXITED);
    assert_int_equal(status, 0);
}

static void the_process_alone(void **state)
{
    (void)state;
    each_stop_is_told(register_all_the_time, false, SIGSTOP);
}

static void its_process_group(void **state)
{
    (void)state;
    each_stop_is_told(register_all_the_time, true, SIGSTOP);
}

static void from_the_terminal_in_a_fork(void **state)
{
    (void)state;
    each_stop_is_told(fork_all_the_time, true, SIGTSTP);
}

static void the_process_alone_in_a_fork(void **state)
{
    (void)state;
    each_stop_is_told(fork_all_the_time, false, SIGSTOP);
}

// The children stop too, in the middle of their copies: the others stand still for these.
static void its_process_group_in_a_fork(void **state)
{
    (void)state;
    each_stop_is_told(fork_all_the_time, true, SIGSTOP);
}

// Who calls setpgid waits until we say that it may: the one call of the helper before it traces anybody.
static bool ask_before_a_group_is_left(void)
{
    long fd = filter_call(SYS_setpgid, SECCOMP_RET_USER_NOTIF,
                          SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);

    if (fd >= 0)
        dock_set32(&shared->listener, (uint32_t)fd + 1);
    return fd >= 0;
}

static int register_once(void *arg)
{
    int err = begin_beside_a_thread(true);

    (void)arg;
    if (err || !ask_before_a_group_is_left())
        return err ? err : 77;
    return register_it() && maps_look(us.p, LEN).adopted == LEN ? 0 : 3;
}

// The child's listener, as ours. -1: it has none.
static int take_listener(pid_t child, int *status)
{
    uint64_t until = dock_now_ns() + 10000000000ull * test_slow();
    int fd = -1, pidfd = (int)syscall(SYS_pidfd_open, child, 0);

    while (!dock_peek32(&shared->listener) && test_look(child, status) == TEST_RUNS && dock_now_ns() < until)
        test_nap_us(1000);
    if (pidfd >= 0 && dock_peek32(&shared->listener))
        fd = (int)syscall(SYS_pidfd_getfd, pidfd, dock_peek32(&shared->listener) - 1, 0);
    close(pidfd);
    return fd;
}

// The number of who asks; 0: nobody does in that time.
static pid_t await_asker(int fd, unsigned ms, uint64_t *id)
{
    struct seccomp_notif asked = {.id = 0};
    struct pollfd p = {.fd = fd, .events = POLLIN};

    if (poll(&p, 1, (int)ms) != 1 || ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &asked))
        return 0;
    *id = asked.id;
    return (pid_t)asked.pid;
}

static void let_leave(int fd, uint64_t id)
{
    struct seccomp_notif_resp go_on = {.id = id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};

    ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &go_on);
}

static void a_group_that_the_helper_is_about_to_leave(void **state)
{
    unsigned ms = 10000 * test_slow();
    enum test_end stopped, end = TEST_RUNS;
    uint64_t until = dock_now_ns() + 2 * ms * 1000000ull, id = 0;
    int status = 0;

    (void)state;
    dock_set32(&shared->listener, 0);
    pid_t child = test_fork(register_once, NULL);
    int fd = take_listener(child, &status);
    if (fd < 0) { // no such filters here, or no adoption
        test_kill(child);
        skip();
    }
    pid_t helper = await_asker(fd, ms, &id);
    kill(-child, SIGSTOP);
    stopped = test_await(child, &status, ms);
    let_leave(fd, id);
    while (helper && getpgid(helper) == child && dock_now_ns() < until)
        test_nap_us(500);
    kill(-child, SIGCONT);
    while ((end = test_look(child, &status)) == TEST_RUNS && dock_now_ns() < until)
        if (await_asker(fd, 10, &id)) // those of later stops
            let_leave(fd, id);
    if (end != TEST_EXITED) {
        test_kill(child);
        if (helper)
            kill(helper, SIGKILL);
    }
    close(fd);
    assert_true(helper);
    assert_int_equal(stopped, TEST_STOPPED);
    assert_int_equal(end, TEST_EXITED);
    assert_int_equal(status, 0);
}

int main(void)
{
    if (getenv("DRYDOCK_EMULATED")) // an emulator has mappings and threads of its own, which do not stand
        return 77;
    if (!tracing_works()) {
        puts("skipped: nobody may be traced here");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_process_alone),
        cmocka_unit_test(its_process_group),
        cmocka_unit_test(the_process_alone_in_a_fork),
        cmocka_unit_test(from_the_terminal_in_a_fork),
        cmocka_unit_test(its_process_group_in_a_fork),
        cmocka_unit_test(a_group_that_the_helper_is_about_to_leave),
    };

    shared = test_shared(sizeof *shared);
    return cmocka_run_group_tests_name("adoption and SIGSTOP", tests, NULL, NULL);
}
