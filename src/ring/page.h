// SPDX-License-Identifier: MIT
// The doorbell page of a raw queue, as its producers see it (include/drydock/direct.h has the same offsets in
// words of its own), and beside the ring what producers that were built with the check write about each WQE.
//
//   0x000  a whole WQE of one block, stored instead of ring slot and doorbell (bits 0-15: the doorbell it
//   stands for) 0x080  the doorbell: PI in blocks, free-running, 32 bits 0x0c0  producers that met on one
//   place of the ring 0x100  one note per block of the ring
#ifndef DOCK_RING_PAGE_H
#define DOCK_RING_PAGE_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/order.h"
#include "ring/format.h"

// Of the WQE that begins at this block. `claim` is written last (release; pairs with the acquire in raw.c).
struct dock_note {
    dock_a64 claim;    // position << 32 | producer; 0: no producer with the check wrote here yet
    dock_a32 sequence; // the producer's own count
    dock_a32 sum;      // dock_note_sum of the blocks
};

struct dock_page {
    dock_a64 direct[8]; // word 0 is written last by the producer, and taken first by the device
    uint8_t reserved[64];
    dock_a32 doorbell;
    uint8_t line2[60];
    dock_a64 met; // position << 32 | one producer << 16 | the other; the first meeting stays
    uint8_t line3[56];
    struct dock_note note[];
};

static_assert(offsetof(struct dock_page, doorbell) == 0x80, "public format");
static_assert(offsetof(struct dock_page, met) == 0xc0 && offsetof(struct dock_page, note) == 0x100,
              "direct.h");

#define DOCK_DIRECT_TAKEN                                                                                    \
    (~0ull) // word 0 of a page whose WQE was taken: reserved bits are set, no WQE has them

static inline uint64_t dock_page_bytes(uint32_t blocks)
{
    return (sizeof(struct dock_page) + (uint64_t)blocks * sizeof(struct dock_note) + 4095) & ~4095ull;
}

// FNV-1a by 64-bit words, folded: what a producer can do in a few instructions a block.
static inline uint32_t dock_note_sum(const uint64_t *word, unsigned blocks)
{
    uint64_t h = 0xcbf29ce484222325ull;

    for (unsigned i = 0; i < blocks * (DOCK_BLOCK / 8); i++)
        h = (h ^ word[i]) * 0x100000001b3ull;
    return (uint32_t)(h ^ h >> 32);
}

#endif
