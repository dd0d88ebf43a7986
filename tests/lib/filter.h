// SPDX-License-Identifier: MIT
// One system call is answered by a seccomp filter from here on.
#ifndef TESTS_LIB_FILTER_H
#define TESTS_LIB_FILTER_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

// `answer` is a SECCOMP_RET_*, `flags` are SECCOMP_FILTER_FLAG_* (0: of this thread and those that it makes).
// What seccomp(2) returns; -1: no filter stands.
static inline long filter_call(uint32_t call, uint32_t answer, unsigned flags)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, answer),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog p = {.len = sizeof code / sizeof *code, .filter = code};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return -1;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &p);
}

#endif
