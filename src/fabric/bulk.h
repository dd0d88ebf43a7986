// SPDX-License-Identifier: MIT
#ifndef DOCK_FABRIC_BULK_H
#define DOCK_FABRIC_BULK_H

#include <stdbool.h>
#include <stddef.h>

// As memmove. From 24 KiB on what is stored first may be any part of it.
void dock_bulk_copy(char *to, const char *from, size_t n);

// What it chooses from beside memcpy, by the processor: for tests, which are to see all that can run on
// theirs.
struct dock_bulk_way {
    const char *name; // NULL behind the last one
    bool (*runs_here)(void);
    void (*copy)(char *to, const char *from, size_t n); // as memcpy, of 64 bytes and more
};

extern const struct dock_bulk_way dock_bulk_ways[];

#endif
