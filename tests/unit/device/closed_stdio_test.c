// SPDX-License-Identifier: MIT
// A program whose standard descriptors are closed, as daemons have them, writes text to their numbers all the
// same: none of the device's that can be written to has one.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/internal.h"
#include "lib/fork.h"
#include "lib/own_dir.h"
#include "lib/pair.h"

static bool text_gets_nowhere(void)
{
    bool nowhere = true;

    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        nowhere = write(fd, "a line of text, longer than a word\n", 35) < 0 && errno == EBADF && nowhere;
    return nowhere;
}

// 0, or which step was wrong. What the device says of this is nowhere to be read.
static int two_devices_without(void *arg)
{
    struct dock_dev *near, *far;
    struct dock_chan *chan;
    struct end_opts o = {0};
    struct dock_sge sge;
    struct end a, b;
    struct dock_wc wc;

    (void)arg;
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        close(fd);
    if (dock_dev_open(NULL, &near) || dock_dev_open(NULL, &far) || dock_chan_create(far, &chan))
        return 1;
    o.chan = chan;
    end_open(&a, near, &(struct end_opts){0});
    end_open(&b, far, &o);
    pair_connect(&a, &b);
    if (!text_gets_nowhere())
        return 2;
    a.mem[0] = 77;
    struct dock_wr wr = wr_onesided(DOCK_OP_WRITE, &a, &sge, 0, 8, b.mr, (uintptr_t)b.mem);
    if (end_post(&a, &wr) || !end_wait(a.scq, &wc, 5000 * test_slow()) || wc.status || b.mem[0] != 77)
        return 3;
    if (!text_gets_nowhere())
        return 4;
    end_close(&a);
    end_close(&b);
    return dock_chan_destroy(chan) || dock_dev_close(near) || dock_dev_close(far) ? 5 : 0;
}

// A handler that was registered before the device's: it runs behind that, when the device has all that it
// needs for the fork.
static enum { NOT_ASKED, NOWHERE, SOMEWHERE } in_fork;
static bool asked;

static void write_in_a_fork(void)
{
    if (asked)
        in_fork = text_gets_nowhere() ? NOWHERE : SOMEWHERE;
}

__attribute__((constructor(101))) static void register_early(void)
{
    pthread_atfork(write_in_a_fork, NULL, NULL);
}

#define LEN 65536u

static int a_fork_without(void *arg)
{
    char *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct dock_dev *dev;
    struct dock_mr *mr;
    uint32_t pd;
    int status;

    (void)arg;
    if (dock_dev_open(NULL, &dev) || dock_pd_create(dev, &pd) ||
        dock_mr_register(dev, pd, (uintptr_t)p, LEN, (uintptr_t)p, DOCK_ACCESS_LOCAL_WRITE, &mr))
        return 1;
    if (!dock_peek64(&dev->port->adopt.bytes))
        return 77; // it has not moved: no fork waits for copies of it
    for (int fd = 0; fd <= STDERR_FILENO;
         fd++) // now, as daemon() may: the device has what it needs till then
        close(fd);
    asked = true;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    asked = false;
    if (waitpid(child, &status, 0) != child || status)
        return 2;
    return in_fork == NOWHERE ? 0 : 3;
}

static void run(int (*body)(void *))
{
    int status = 0;
    pid_t pid = test_fork(body, NULL);

    assert_int_equal(test_await(pid, &status, 30000 * test_slow()), TEST_EXITED);
    if (status == 77)
        skip();
    assert_int_equal(status, 0);
}

static void text_without_a_place_reaches_no_device(void **state)
{
    (void)state;
    run(two_devices_without);
}

static void text_without_a_place_reaches_no_forked_child(void **state)
{
    (void)state;
    if (getenv("DRYDOCK_EMULATED")) // memory does not move there
        skip();
    run(a_fork_without);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_without_a_place_reaches_no_device),
        cmocka_unit_test(text_without_a_place_reaches_no_forked_child),
    };

    return cmocka_run_group_tests_name("closed standard descriptors", tests, own_dir_make, own_dir_remove);
}
