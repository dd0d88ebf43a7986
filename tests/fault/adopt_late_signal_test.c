// SPDX-License-Identifier: MIT
// timeout: 120
// A thread that lets the signal in when it is looked at, and blocks it before it comes: it may take it much
// later, when nobody handles it, or carry it over an exec. The hook of an arena that is compiled with one
// (cmake/tests.cmake) makes it so.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "device/internal.h"
#include "lib/duo.h"
#include "lib/fork.h"
#include "lib/maps.h"

#define LEN 65536u
#define RIGHTS (DOCK_ACCESS_LOCAL_WRITE | DOCK_ACCESS_REMOTE_READ | DOCK_ACCESS_REMOTE_WRITE)

enum { OPEN, ASKED, BLOCKED, GO_ON };

static struct {
    dock_a32 state;
    dock_a32 tries; // signals that go out beside a thread that blocks them first
    bool execs;
    int pending; // when it goes on
} blocker;

long dock_rawcall_fails(long number);

long dock_rawcall_fails(long number)
{
    if (number == SYS_rt_tgsigqueueinfo && dock_peek32(&blocker.state) == OPEN &&
        dock_peek32(&blocker.tries)) {
        dock_publish32(&blocker.state, ASKED);
        while (dock_acquire32(&blocker.state) == ASKED)
            sched_yield();
    }
    return 0;
}

static void *block_when_asked(void *arg)
{
    char *nothing[] = {NULL, NULL};
    sigset_t all, was, left;

    sigfillset(&all);
    while (dock_acquire32(&blocker.state) != ASKED)
        sched_yield();
    pthread_sigmask(SIG_SETMASK, &all, &was);
    dock_publish32(&blocker.state, BLOCKED);
    while (dock_acquire32(&blocker.state) == BLOCKED)
        sched_yield();
    sigpending(&left);
    for (int i = SIGRTMIN; i <= SIGRTMAX; i++)
        blocker.pending += sigismember(&left, i);
    if (blocker.execs) { // the new program lets all signals in, as any may
        nothing[0] = arg;
        setenv("LATE_EXEC", "1", 1);
        execv(arg, nothing);
        _exit(9);
    }
    pthread_sigmask(SIG_SETMASK, &was, NULL);
    test_nap_us(1000);
    return NULL;
}

static char self[4096];

static int late(void *arg)
{
    char *p = maps_in_one(LEN);
    struct dock_dev *dev;
    struct dock_mr *mr;
    struct sigaction now;
    pthread_t t;
    uint32_t pd;

    setenv("DRYDOCK_STOP", "signal", 1);
    setenv("DRYDOCK_ADOPT", "inner", 1);
    blocker.execs = arg;
    memset(p, 1, LEN);
    if (dock_dev_open(NULL, &dev) || dock_pd_create(dev, &pd))
        return 1;
    if (dev->adopt.mode == DOCK_ADOPT_OFF)
        return 77;
    if (pthread_create(&t, NULL, block_when_asked, self))
        return 1;
    dock_set32(&blocker.tries, 1);
    do // one that is refused before anything goes out tells nothing
        if (dock_mr_register(dev, pd, (uintptr_t)p, LEN, (uintptr_t)p, RIGHTS, &mr) ||
            maps_look(p, LEN).adopted || dock_mr_deregister(mr))
            return 2;
    while (dock_peek32(&blocker.state) == OPEN);
    dock_set32(&blocker.tries, 0);
    dock_publish32(&blocker.state, GO_ON);
    pthread_join(t, NULL);
    if (blocker.pending)
        return 3;
    // A stop that it acknowledges, or none for want of threads: the next one beside another.
    dock_set32(&blocker.state, OPEN);
    if (pthread_create(&t, NULL, block_when_asked, self))
        return 1;
    for (unsigned i = 0; i < 2000 && !maps_look(p, LEN).adopted; i++) {
        if (i && dock_mr_deregister(mr))
            return 4;
        if (dock_mr_register(dev, pd, (uintptr_t)p, LEN, (uintptr_t)p, RIGHTS, &mr))
            return 5;
    }
    if (!maps_look(p, LEN).adopted || dock_mr_deregister(mr))
        return 6;
    for (int i = SIGRTMIN; i <= SIGRTMAX; i++)
        if (sigaction(i, NULL, &now) || now.sa_handler != SIG_DFL)
            return 7;
    _exit(0); // the second thread is not asked again
}

static void unblocked_later(void **state)
{
    int status;
    pid_t child = test_fork(late, NULL);

    (void)state;
    assert_int_equal(test_await(child, &status, 60000 * slow_down()), TEST_EXITED);
    if (status == 77)
        skip();
    assert_int_equal(status, 0);
}

static void carried_over_an_exec(void **state)
{
    int status;
    pid_t child = test_fork(late, self);

    (void)state;
    assert_int_equal(test_await(child, &status, 60000 * slow_down()), TEST_EXITED);
    if (status == 77)
        skip();
    assert_int_equal(status, 42);
}

int main(void)
{
    sigset_t none;

    if (getenv("LATE_EXEC")) {
        sigemptyset(&none);
        pthread_sigmask(SIG_SETMASK, &none, NULL);
        return 42;
    }
#ifndef DOCK_RAWCALL_FAILS
    return 77; // a sanitizer's build has no such arena
#endif
    if (getenv("DRYDOCK_EMULATED") || readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unblocked_later),
        cmocka_unit_test(carried_over_an_exec),
    };

    return cmocka_run_group_tests_name("signals that would come late", tests, NULL, NULL);
}
