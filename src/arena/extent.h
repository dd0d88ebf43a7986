// SPDX-License-Identifier: MIT
// Free space of an arena: extents in process-private memory, sorted by offset, neighbours in one window
// merged. There are never more free extents than live allocations plus windows. Whoever adds one of these
// brings one node along (dock_extent_stock), so that giving back never has to ask for memory.
#ifndef DOCK_ARENA_EXTENT_H
#define DOCK_ARENA_EXTENT_H

#include <stdbool.h>
#include <stdint.h>

struct dock_extent {
    uint64_t off, size;
    struct dock_extent *next;
};

// One node more or less in hand. -ENOMEM.
int dock_extent_stock(struct dock_extent **spare);
void dock_extent_unstock(struct dock_extent **spare);
void dock_extent_free_list(struct dock_extent **list);

// First fit. Needs a node in hand when the piece lies in the middle of an extent. False if nothing fits.
bool dock_extent_take(struct dock_extent **free, struct dock_extent **spare, uint64_t size, uint64_t align,
                      uint64_t *off);
// Exactly [off, off + size), which is free. Needs a node in hand as above.
void dock_extent_take_at(struct dock_extent **free, struct dock_extent **spare, uint64_t off, uint64_t size);
// Give [off, off + size) back; returns the free extent that it became part of. Extents merge only inside a
// window of 1 << shift bytes.
struct dock_extent *dock_extent_give(struct dock_extent **free, struct dock_extent **spare, uint64_t off,
                                     uint64_t size, unsigned shift);

#endif
