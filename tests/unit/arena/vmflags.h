// SPDX-License-Identifier: MIT
#ifndef DOCK_TEST_UNIT_ARENA_VMFLAGS_H
#define DOCK_TEST_UNIT_ARENA_VMFLAGS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

// The VmFlags line of the mapping that holds `p`; empty: none is told.
static inline void vm_flags(const void *p, char out[512])
{
    FILE *f = fopen("/proc/self/smaps", "re");
    bool inside = false;

    while (f && fgets(out, 512, f)) {
        unsigned long from, to;
        if (sscanf(out, "%lx-%lx ", &from, &to) == 2)
            inside = (uintptr_t)p >= from && (uintptr_t)p < to;
        else if (inside && !strncmp(out, "VmFlags:", 8))
            goto found;
    }
    out[0] = '\0';
found:
    if (f)
        fclose(f);
}

#endif
