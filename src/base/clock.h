// SPDX-License-Identifier: MIT
#ifndef DOCK_BASE_CLOCK_H
#define DOCK_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "base/rawcall.h"

// Nanoseconds of CLOCK_MONOTONIC, the same clock in every process of the host.
static inline uint64_t dock_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// Sleep so long, below a second, or until a signal comes. Not by libc's call: who waits for a peer in the
// middle of a request may have what others wait for, and is not to be cancelled there.
static inline void dock_nap(uint64_t ns)
{
    struct timespec t = {.tv_nsec = (long)ns};

    dock_rawcall(SYS_nanosleep, (long)&t, 0, 0, 0, 0, 0);
}

// The machine's own counter, as programs read it; its rate is the machine's affair.
static inline uint64_t dock_ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;

    __asm__ __volatile__("isb; mrs %0, cntvct_el0" : "=r"(ticks)::"memory");
    return ticks;
#else
    return dock_now_ns();
#endif
}

#endif
