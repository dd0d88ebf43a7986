// SPDX-License-Identifier: MIT
// Who did it: one number for a device on this host, small enough to stand beside a value in one 64-bit
// lock word. The slot is the device's first id block (1..4095), the incarnation tells two owners of the
// same slot apart. 0 is nobody.
#ifndef DOCK_ARENA_WHO_H
#define DOCK_ARENA_WHO_H

#include <stdint.h>

typedef uint32_t dock_who;

#define DOCK_SLOT_BITS 12
#define DOCK_SLOTS (1u << DOCK_SLOT_BITS)
#define DOCK_BLOCK_SHIFT 8 // a block is 256 queue ids
#define DOCK_ID_BITS 20
#define DOCK_ID_MASK ((1u << DOCK_ID_BITS) - 1)
#define DOCK_LOW_BLOCKS 256u // blocks below it are given before others
#define DOCK_CHOSEN_MAX 255u // ids up to it are taken one by one, by who asks for them

static inline dock_who dock_who_make(uint32_t slot, uint32_t incarnation)
{
    return (incarnation << DOCK_SLOT_BITS) | (slot & (DOCK_SLOTS - 1));
}

static inline uint32_t dock_who_slot(dock_who who)
{
    return who & (DOCK_SLOTS - 1);
}

static inline uint32_t dock_who_incarnation(dock_who who)
{
    return who >> DOCK_SLOT_BITS;
}

#endif
