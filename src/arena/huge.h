// SPDX-License-Identifier: MIT
// Huge pages, as the kernel has them. MADV_COLLAPSE (Linux 6.1) makes one of what a mapping shows, whether or
// not shared memory is given any by itself (shmem_enabled, unless it is `deny`), and leaves no mark on the
// mapping.
#ifndef DOCK_ARENA_HUGE_H
#define DOCK_ARENA_HUGE_H

#include <stdbool.h>
#include <stdint.h>

#define DOCK_HUGE_SHIFT 21u
#define DOCK_HUGE_BYTES (1u << DOCK_HUGE_SHIFT)

void dock_huge_learn(void);  // DRYDOCK_HUGE, when an arena is made. Logs a refusal once
bool dock_huge_wanted(void); // and this machine's have that size
// Whole ones, of which each has a page at least. 0 or -errno; no lock and no libc state.
long dock_huge_collapse(uint64_t at, uint64_t len);
// What is said below /sys/kernel/mm/transparent_hugepage. false: nothing.
bool dock_huge_setting(const char *name, char text[96]);

#endif
