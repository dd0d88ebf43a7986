// SPDX-License-Identifier: MIT
#ifndef DOCK_BASE_CLOCK_H
#define DOCK_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

// Nanoseconds of CLOCK_MONOTONIC, the same clock in every process of the host.
static inline uint64_t dock_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
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
