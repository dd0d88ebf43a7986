// SPDX-License-Identifier: MIT
// Protection keys of memory (x86-64; elsewhere there are none here). The kernel tells a mapping's key by a
// slow file alone; but where a thread has shut all keys, a call that reads there fails.
#ifndef DOCK_BASE_KEYS_H
#define DOCK_BASE_KEYS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#include <cpuid.h>

#define DOCK_KEYS_SHUT 0x55555554u // but that of memory that was given none; as every thread begins

static inline bool dock_keys_are_there(void)
{
    unsigned a, b, c, d;

    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && c & bit_OSPKE;
}

static inline uint32_t dock_keys_rights(void)
{
    uint32_t value, rest;

    __asm__ volatile("rdpkru" : "=a"(value), "=d"(rest) : "c"(0));
    return value;
}

// What rt_sigprocmask says to a set at `at` and a change that there is not: it reads the set first. No memory
// is touched while the keys are shut, for the stack may have one.
static inline long dock_keys_ask(uint64_t at, uint32_t rights)
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
                     : "=&a"(ret), "+d"(rights)
                     : "D"(99l), "S"(at),
                       "r"(size), [shut] "i"(DOCK_KEYS_SHUT), [call] "i"(SYS_rt_sigprocmask)
                     : "rcx", "r8", "r9", "r11", "memory");
    return ret;
}
#else
#define DOCK_KEYS_SHUT 0u

static inline bool dock_keys_are_there(void)
{
    return false;
}

static inline uint32_t dock_keys_rights(void)
{
    return DOCK_KEYS_SHUT;
}

static inline long dock_keys_ask(uint64_t at, uint32_t rights)
{
    (void)at;
    return rights;
}
#endif

#endif
