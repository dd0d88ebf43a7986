// SPDX-License-Identifier: MIT
// timeout: 120
// A process that is stopped (SIGSTOP) while its threads are, since memory moves: its parent is told, and it
// goes on when it may.
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
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "device/internal.h"
#include "lib/fork.h"
#include "lib/maps.h"

#define LEN (256 * 4096u)
#define ROUNDS 40

static struct {
    dock_a64 registered;
    dock_a32 over, group;
} * shared;

static void *busy(void *arg)
{
    for (;;)
        dock_count64(arg, 1);
    return NULL;
}

static int register_all_the_time(void *arg)
{
    static dock_a64 turns;
    char *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct dock_dev *dev;
    struct dock_mr *mr;
    pthread_t t;
    uint32_t pd;

    (void)arg;
    if (dock_peek32(&shared->group) && setpgid(0, 0))
        return 1;
    setenv("DRYDOCK_ADOPT", "inner", 1);
    if (dock_dev_open(NULL, &dev) || dock_pd_create(dev, &pd) || pthread_create(&t, NULL, busy, &turns))
        return 2;
    if (dev->adopt.mode == DOCK_ADOPT_OFF)
        return 77;
    while (!dock_peek32(&shared->over)) {
        memset(p, 1, LEN);
        if (dock_mr_register(dev, pd, (uintptr_t)p, LEN, (uintptr_t)p, DOCK_ACCESS_LOCAL_WRITE, &mr))
            return 3;
        if (maps_look(p, LEN).adopted == LEN)
            dock_count64(&shared->registered, 1);
        if (dock_mr_deregister(mr))
            return 4;
    }
    return 0;
}

static void each_stop_is_told(bool group)
{
    unsigned ms = 10000 * test_slow(), told = 0;
    int status = 0;
    enum test_end end = TEST_RUNS;

    dock_set64(&shared->registered, 0);
    dock_set32(&shared->over, 0);
    dock_set32(&shared->group, group);
    pid_t child = test_fork(register_all_the_time, NULL);
    uint64_t until = dock_now_ns() + ms * 1000000ull;
    while (!dock_peek64(&shared->registered) && (end = test_look(child, &status)) == TEST_RUNS &&
           dock_now_ns() < until)
        test_nap_us(1000);
    if (end == TEST_EXITED && status == 77)
        skip();
    for (; told < ROUNDS && end == TEST_RUNS; told++) {
        uint64_t before = dock_peek64(&shared->registered);
        test_nap_us(told * 37 % 1000);
        kill(group ? -child : child, SIGSTOP);
        if (test_await(child, &status, ms) != TEST_STOPPED)
            break;
        kill(group ? -child : child, SIGCONT);
        until = dock_now_ns() + ms * 1000000ull;
        while (dock_peek64(&shared->registered) < before + 2 && dock_now_ns() < until)
            test_nap_us(500);
        if (dock_peek64(&shared->registered) < before + 2)
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
    each_stop_is_told(false);
}

static void its_process_group(void **state)
{
    (void)state;
    each_stop_is_told(true);
}

int main(void)
{
    if (getenv("DRYDOCK_EMULATED")) // an emulator has mappings and threads of its own, which do not stand
        return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_process_alone),
        cmocka_unit_test(its_process_group),
    };

    shared = test_shared(sizeof *shared);
    return cmocka_run_group_tests_name("adoption and SIGSTOP", tests, NULL, NULL);
}
