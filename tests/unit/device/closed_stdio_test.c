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

static void text_without_a_place_reaches_no_device(void **state)
{
    int status = 0;
    pid_t pid = test_fork(two_devices_without, NULL);

    (void)state;
    assert_int_equal(test_await(pid, &status, 30000 * test_slow()), TEST_EXITED);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_without_a_place_reaches_no_device),
    };

    return cmocka_run_group_tests_name("closed standard descriptors", tests, own_dir_make, own_dir_remove);
}
