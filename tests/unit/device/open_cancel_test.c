// SPDX-License-Identifier: MIT
// A thread that is cancelled opens a device, and another one closes it: both come to the end of their call
// first. So a face that keeps the device to itself has nothing to disable.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdbool.h>

#include "device/internal.h"

static struct {
    struct dock_dev *dev;
    int err;
    bool done;
} call;

static void *opens(void *arg)
{
    pthread_cancel(pthread_self());
    call.err = dock_dev_open(NULL, &call.dev);
    call.done = true;
    pthread_testcancel();
    return arg;
}

static void *closes(void *arg)
{
    pthread_cancel(pthread_self());
    call.err = dock_dev_close(call.dev);
    call.done = true;
    pthread_testcancel();
    return arg;
}

static void is_cancelled_behind(void *(*body)(void *))
{
    pthread_t t;
    void *end = NULL;

    call.done = false;
    assert_int_equal(pthread_create(&t, NULL, body, NULL), 0);
    assert_int_equal(pthread_join(t, &end), 0);
    assert_ptr_equal(end, PTHREAD_CANCELED);
    assert_true(call.done);
    assert_int_equal(call.err, 0);
}

static void opening_and_closing_are_no_points_of_cancellation(void **state)
{
    uint32_t pd;

    (void)state;
    is_cancelled_behind(opens);
    assert_int_equal(dock_pd_create(call.dev, &pd), 0);
    assert_int_equal(dock_pd_destroy(call.dev, pd), 0);
    is_cancelled_behind(closes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opening_and_closing_are_no_points_of_cancellation),
    };

    return cmocka_run_group_tests_name("opening a device, cancelled", tests, NULL, NULL);
}
