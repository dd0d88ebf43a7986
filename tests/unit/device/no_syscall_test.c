// SPDX-License-Identifier: MIT
// Between two processes on memory in the arena, a million WRITEs make no system call from the first post to
// the last poll: a seccomp filter on the posting thread ends the process at the first one that is not its
// exit.
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/duo.h"

#define WRITES 1000000u
#define EVERY 16u

// Only exit_group, and a sign that the filter bites: getppid returns ENXIO.
static int forbid_system_calls(void)
{
    struct sock_filter f[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENXIO),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog prog = {.len = sizeof f / sizeof *f, .filter = f};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
        return errno;
    return syscall(SYS_getppid) == -1 && errno == ENXIO ? 0 : EPROTO;
}

static unsigned poll_all(struct end *e, bool *ok)
{
    struct dock_wc wc;
    unsigned n = 0;

    for (; end_poll(e->scq, &wc); n++)
        *ok &= wc.status == DOCK_OK;
    return n;
}

// Exit status: 0 as it should be, 1 a wrong completion, 2 not all WRITEs covered.
static void write_a_million(struct duo *d)
{
    struct end *e = &d->near.e;
    struct dock_sge sge;
    struct dock_wr wr = wr_onesided(DOCK_OP_WRITE, e, &sge, 0, 8, &d->mr, d->mem);
    unsigned done = 0;
    bool ok = true;

    if (end_post(e, &wr)) // the first request finds the peer and its key
        _exit(3);
    while (!poll_all(e, &ok))
        ;
    if (forbid_system_calls())
        _exit(77);
    for (uint32_t i = 1; i <= WRITES; i++) {
        wr.flags = i % EVERY ? 0 : DOCK_F_COMPLETE;
        while (end_post(e, &wr))
            done += poll_all(e, &ok);
    }
    while (ok && done < WRITES / EVERY)
        done += poll_all(e, &ok);
    syscall(SYS_exit_group, !ok ? 1 : done == WRITES / EVERY ? 0 : 2);
}

static void *poster(void *d)
{
    write_a_million(d);
    return NULL;
}

static void no_system_call(void **state)
{
    pid_t child = fork();
    int status;

    (void)state;
    if (child == 0) { // the far end is forked in here too, and goes when its socket closes
        struct duo d;
        pthread_t t;
        duo_open(&d, HOST_ARENA, NULL);
        pthread_create(&t, NULL, poster, &d);
        pthread_join(t, NULL);
        _exit(4);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status))
        fail_msg("a posting thread made a system call: ended by signal %d", WTERMSIG(status));
    if (WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_system_call)};

#ifdef DOCK_SANITIZED
    puts("skipped: a sanitizer's runtime makes system calls of its own");
    return 77;
#endif
    return cmocka_run_group_tests_name("a million WRITEs, no system call", tests, NULL, NULL);
}
