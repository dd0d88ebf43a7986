// SPDX-License-Identifier: MIT
// Dispositions of signals without libc, whose calls a program may have replaced, and what a handler can learn
// of the thread it runs in.
#ifndef DOCK_BASE_RAWSIGNAL_H
#define DOCK_BASE_RAWSIGNAL_H

#include <signal.h>
#include <stdint.h>
#include <ucontext.h>

#include "base/rawcall.h"

#define DOCK_RAW_SIGNALS 64 // the last one

// As the kernel has it.
struct dock_rawaction {
    void (*handler)(int number, siginfo_t *info, void *context);
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask; // bit number - 1
};

static inline long dock_rawaction(int number, const struct dock_rawaction *now, struct dock_rawaction *was)
{
    return dock_rawcall(SYS_rt_sigaction, number, (long)now, (long)was, sizeof now->mask, 0, 0);
}

#if defined(__x86_64__)

#define DOCK_RAW_RESTORER 0x04000000ul // SA_RESTORER: a handler returns to what we say

__attribute__((naked, unused)) static void dock_rawrestorer(void)
{
    __asm__ volatile("movq $15, %rax\n\tsyscall"); // rt_sigreturn
}

static inline uint64_t dock_thread_pointer(void)
{
    uint64_t at;

    __asm__("movq %%fs:0, %0" : "=r"(at));
    return at;
}

static inline uint64_t dock_context_sp(const ucontext_t *c)
{
    return (uint64_t)c->uc_mcontext.gregs[15]; // REG_RSP, of a feature of libc that not every file asks for
}

#else

#define DOCK_RAW_RESTORER 0ul // the kernel has its own

__attribute__((unused)) static void dock_rawrestorer(void)
{
}

static inline uint64_t dock_thread_pointer(void)
{
    return (uintptr_t)__builtin_thread_pointer();
}

static inline uint64_t dock_context_sp(const ucontext_t *c)
{
    return c->uc_mcontext.sp;
}

#endif
#endif
