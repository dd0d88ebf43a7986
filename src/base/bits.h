// SPDX-License-Identifier: MIT
#ifndef DOCK_BASE_BITS_H
#define DOCK_BASE_BITS_H

#include <stdint.h>

// The smallest power of two that is not below n, 1 for 0; n is at most 2^31.
static inline uint32_t dock_power_of_two(uint32_t n)
{
    return n <= 1 ? 1 : 1u << (32 - __builtin_clz(n - 1));
}

#endif
