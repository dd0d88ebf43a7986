// SPDX-License-Identifier: MIT
// The mappings of this process as the kernel has them. No allocation and no libc state: it may run while the
// other threads of the process are stopped. One caller at a time (the adoption lock), but for a room of one's
// own.
#ifndef DOCK_ARENA_MAPS_H
#define DOCK_ARENA_MAPS_H

#include <stdbool.h>
#include <stdint.h>

#include "arena/procfile.h"

enum dock_vma_kind {
    DOCK_VMA_ANON,  // no file: heap, mmap, .bss
    DOCK_VMA_STACK, // of the first thread
    DOCK_VMA_FILE,  // hugetlb and shared anonymous memory too
    DOCK_VMA_RING,  // of an AIO context or an io_uring
    DOCK_VMA_OTHER, // vdso and the like
};

struct dock_vma {
    uint64_t lo, hi, off, inode;
    uint32_t major, minor; // of the file's device
    uint32_t prot;         // PROT_*
    bool shared;
    enum dock_vma_kind kind;
};

typedef bool dock_vma_each(void *arg, const struct dock_vma *v);

// Calls `each` for every mapping that overlaps [lo, hi), ascending, until it says false. 0 or -errno.
int dock_maps_walk(uint64_t lo, uint64_t hi, dock_vma_each *each, void *arg);

// The same for the shared and writable ones alone, which costs by the number of those. -ENOTTY: not here.
int dock_maps_walk_shared(dock_vma_each *each, void *arg);

// For who walks beside the adoption lock: what a walk changes. One walk at a time in each.
struct dock_maps_room {
    enum dock_proc_name file;
    char text[16384]; // lines of the file, or the name of one mapping
};
int dock_maps_walk_in(struct dock_maps_room *room, uint64_t lo, uint64_t hi, dock_vma_each *each, void *arg);
struct dock_view;
// Does the mapping, of whatever process, show the arena of this view?
bool dock_vma_shows(const struct dock_vma *v, const struct dock_view *view);
// The one of process `pid` that `at` lies in, .hi of 0 if there is none. Any thread; 0 or -errno.
int dock_maps_of(int pid, uint64_t at, struct dock_vma *v);
// The one that `at` lies in; unless `named`, which costs more, a mapping without a file shows as
// DOCK_VMA_ANON whatever it is, one with a file as DOCK_VMA_FILE. One call, for whoever knows the answer that
// counts when he sees it, or asks again: a program that has put another file in place of ours may get any
// other. 0, or -errno: there is none, it cannot be told, or nothing was walked yet.
int dock_maps_at(uint64_t at, bool named, struct dock_vma *v);

#endif
