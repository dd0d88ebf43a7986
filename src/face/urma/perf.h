// SPDX-License-Identifier: MIT
// How long the calls of the data path take, counted when the program asks for it.
#ifndef DOCK_FACE_URMA_PERF_H
#define DOCK_FACE_URMA_PERF_H

#include <stdatomic.h>
#include <stdint.h>

#include <ub/umdk/urma/urma_perf.h>

#include "base/clock.h"

extern atomic_bool ur_perf_on;

void ur_perf_count(urma_perf_record_type_t type, uint64_t began_ns);

// The time, or 0 while nobody counts: give it to ur_perf_end when the call ends.
static inline uint64_t ur_perf_begin(void)
{
    return __builtin_expect(atomic_load_explicit(&ur_perf_on, memory_order_relaxed), 0) ? dock_now_ns() : 0;
}

static inline void ur_perf_end(urma_perf_record_type_t type, uint64_t began_ns)
{
    if (__builtin_expect(began_ns != 0, 0))
        ur_perf_count(type, began_ns);
}

#endif
