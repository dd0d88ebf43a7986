// SPDX-License-Identifier: MIT
// System calls without libc: no errno, no thread-local state, no interposer, no sanitizer. For code that runs
// while other threads are stopped, or beside them on a borrowed address space. Returns -errno.
#ifndef DOCK_BASE_RAWCALL_H
#define DOCK_BASE_RAWCALL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>

#ifdef DOCK_RAWCALL_FAILS
long dock_rawcall_fails(long number); // of a test (tests/fault/nth_calls.h): -errno, or 0 for the real call
#endif

static inline long dock_rawcall(long number, long a, long b, long c, long d, long e, long f)
{
#ifdef DOCK_RAWCALL_FAILS
    long fault = dock_rawcall_fails(number);
    if (fault)
        return fault;
#endif
#if defined(__x86_64__)
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long ret;

    __asm__ volatile("syscall"
                     : "=a"(ret)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return ret;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;

    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
#else
#error "system calls of this processor are not written down"
#endif
}

// Of SYS_mmap or SYS_mremap: is it an address?
static inline bool dock_rawcall_mapped(long ret)
{
    return (unsigned long)ret < -4095ul;
}

// What SYS_getdents64 writes, one behind the other (linux_dirent64).
struct dock_dirent {
    uint64_t inode;
    int64_t next;
    uint16_t length; // to the next one
    uint8_t type;
    char name[];
};

#endif
