// SPDX-License-Identifier: MIT
// Where process_vm is refused (here by a seccomp filter, as in some containers), plain memory cannot be
// reached: its registration fails in words, and memory in the arena works all the same.
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "base/log.h"
#include "lib/pair.h"

static int refuse_process_vm(void)
{
    struct sock_filter f[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog prog = {.len = sizeof f / sizeof *f, .filter = f};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return errno;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) ? errno : 0;
}

static void plain_memory_is_refused_in_words(void **state)
{
    struct dock_dev *dev;
    struct dock_mr *mr;
    uint32_t pd;
    void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)state;
    assert_int_equal(dock_dev_open(NULL, &dev), 0);
    assert_int_equal(dock_pd_create(dev, &pd), 0);
    assert_int_equal(dock_mr_register(dev, pd, (uintptr_t)p, 4096, (uintptr_t)p,
                                      DOCK_ACCESS_LOCAL_WRITE | DOCK_ACCESS_REMOTE_WRITE, &mr),
                     -EOPNOTSUPP);
    assert_non_null(strstr(dock_log_last(), "process_vm is refused"));
    assert_int_equal(dock_pd_destroy(dev, pd), 0); // nothing is left behind
    assert_int_equal(dock_dev_close(dev), 0);
    munmap(p, 4096);
}

static void memory_in_the_arena_works(void **state)
{
    struct dock_dev *dev[2];
    struct end_opts o = {0};
    struct end a, b;
    struct dock_sge sge;
    struct dock_wc wc;

    (void)state;
    assert_int_equal(dock_dev_open(NULL, &dev[0]), 0);
    assert_int_equal(dock_dev_open(NULL, &dev[1]), 0);
    end_open(&a, dev[0], &o);
    end_open(&b, dev[1], &o);
    pair_connect(&a, &b);
    memset(a.mem, 7, 100000);
    struct dock_wr wr = wr_onesided(DOCK_OP_WRITE, &a, &sge, 0, 100000, b.mr, (uintptr_t)b.mem);
    assert_int_equal(end_post(&a, &wr), 0);
    assert_true(end_wait(a.scq, &wc, 2000));
    assert_int_equal(wc.status, DOCK_OK);
    assert_memory_equal(a.mem, b.mem, 100000);
    end_close(&a);
    end_close(&b);
    assert_int_equal(dock_dev_close(dev[0]), 0);
    assert_int_equal(dock_dev_close(dev[1]), 0);
}

int main(void)
{
    setenv("DRYDOCK_ADOPT", "off", 1); // what is adopted needs no copies
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_memory_is_refused_in_words),
        cmocka_unit_test(memory_in_the_arena_works),
    };

    if (refuse_process_vm())
        return 77; // no filters here
    return cmocka_run_group_tests_name("where process_vm is refused", tests, NULL, NULL);
}
