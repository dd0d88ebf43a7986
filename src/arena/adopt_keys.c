// SPDX-License-Identifier: MIT
// Memory under a protection key (pkey_mprotect) stays where it is: the arena's pages have no key, so that
// what the program has shut would stand open. The kernel tells a mapping's key by a slow file alone; but
// where the thread has shut all keys, a call that reads there fails.
#include "arena/adopt_own.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <errno.h>

#include "base/rawcall.h"

#define ALL_SHUT 0x55555554u // but the one of memory that has none; as every thread begins

static bool has_keys(void)
{
    unsigned a, b, c, d;

    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && c & bit_OSPKE;
}

static uint32_t rights(void)
{
    uint32_t value, rest;

    __asm__ volatile("rdpkru" : "=a"(value), "=d"(rest) : "c"(0));
    return value;
}

// rt_sigprocmask reads the set before it says that there is no such change. No memory is touched while the
// keys are shut: the stack may have one.
static long ask(uint64_t at, uint32_t open)
{
    register long size __asm__("r10") = 8;
    long ret;

    __asm__ volatile("mov %%edx, %%r8d\n\t"
                     "xor %%ecx, %%ecx\n\t"
                     "xor %%edx, %%edx\n\t"
                     "mov %[shut], %%eax\n\t"
                     "wrpkru\n\t"
                     "mov %[call], %%eax\n\t"
                     "syscall\n\t"
                     "mov %%rax, %%r9\n\t"
                     "mov %%r8d, %%eax\n\t"
                     "xor %%ecx, %%ecx\n\t"
                     "xor %%edx, %%edx\n\t"
                     "wrpkru\n\t"
                     "mov %%r9, %%rax"
                     : "=&a"(ret), "+d"(open)
                     : "D"(99l), "S"(at), "r"(size), [shut] "i"(ALL_SHUT), [call] "i"(SYS_rt_sigprocmask)
                     : "rcx", "r8", "r9", "r11", "memory");
    return ret;
}

bool dock_keyed(uint64_t at)
{
    uint32_t open;

    if (!has_keys() || (open = rights()) == ALL_SHUT) // then the copy has failed by itself
        return false;
    return ask(at, open) == -EFAULT;
}
#else
bool dock_keyed(uint64_t at)
{
    (void)at;
    return false;
}
#endif
