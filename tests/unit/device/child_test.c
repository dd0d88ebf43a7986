// SPDX-License-Identifier: MIT
// A forked child that closes the device it has inherited takes nothing away from its parent.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/wait.h>
#include <unistd.h>

#include "device/internal.h"
#include "lib/duo.h"

static void write_once(struct end *from, struct end *to)
{
    struct dock_sge sge;
    struct dock_wr wr = wr_onesided(DOCK_OP_WRITE, from, &sge, 0, 8, to->mr, (uintptr_t)to->mem);
    struct dock_wc wc;

    *(uint64_t *)(void *)from->mem = 42;
    assert_int_equal(end_post(from, &wr), 0);
    assert_true(end_wait(from->scq, &wc, 10000 * slow_down()));
    assert_int_equal(wc.status, DOCK_OK);
    assert_int_equal(*(uint64_t *)(void *)to->mem, 42);
}

// Closed by the child as it was opened, its own or the one of all faces.
static void a_child_that_closes_its_parents_device(void **state)
{
    (void)state;
    for (unsigned shared = 0; shared < 2; shared++) {
        struct end_opts o = {0};
        struct dock_dev *dev, *other;
        struct end a, b;
        int status;
        assert_int_equal(shared ? dock_dev_get(&dev) : dock_dev_open(NULL, &dev), 0);
        pid_t child = fork();
        if (child == 0) {
            alarm(20 * slow_down());
            _exit(shared ? dock_dev_put(dev) : dock_dev_close(dev));
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        assert_int_equal(dock_dev_open(NULL, &other), 0); // who has not reached the parent yet still can
        end_open(&a, other, &o);
        end_open(&b, dev, &o);
        pair_connect(&a, &b);
        write_once(&a, &b);
        end_close(&a);
        end_close(&b);
        assert_int_equal(dock_dev_close(other), 0);
        assert_int_equal(shared ? dock_dev_put(dev) : dock_dev_close(dev), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_that_closes_its_parents_device),
    };

    return cmocka_run_group_tests_name("a device and a forked child", tests, NULL, NULL);
}
