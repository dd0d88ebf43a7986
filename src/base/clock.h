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

#endif
