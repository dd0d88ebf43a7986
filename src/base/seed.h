// SPDX-License-Identifier: MIT
// Random numbers that replay. A decision is a pure function of (seed, object, sequence), so a schedule
// does not depend on which thread asked first.
#ifndef DOCK_BASE_SEED_H
#define DOCK_BASE_SEED_H

#include <stdint.h>

// The finaliser of splitmix64: every input bit reaches every output bit.
static inline uint64_t dock_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static inline uint64_t dock_decide(uint64_t seed, uint64_t object, uint64_t sequence)
{
    return dock_mix(dock_mix(seed ^ dock_mix(object)) + sequence);
}

// A stream: state advances with each call.
static inline uint64_t dock_rand(uint64_t *state)
{
    return dock_mix((*state)++);
}

// DRYDOCK_SEED, or a fresh one; either way logged at info so that a run can be repeated.
uint64_t dock_seed(void);

#endif
