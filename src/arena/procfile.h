// SPDX-License-Identifier: MIT
// Files of /proc that are asked at every move of memory. They stay open from one to the next: opening costs
// more than asking. No allocation and no libc state, as for maps.h; one caller at a time (the adoption lock).
#ifndef DOCK_ARENA_PROCFILE_H
#define DOCK_ARENA_PROCFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

enum dock_proc_name {
    DOCK_PROC_MAPS,
    DOCK_PROC_TASKS,         // st_nlink: threads and 2
    DOCK_PROC_DESCRIPTORS,   // st_size: how many are open; 0 before Linux 6.2
    DOCK_PROC_AIO,           // AIO requests that the system has room for
    DOCK_PROC_PAGES,         // a word for each page
    DOCK_PROC_SIZES,         // of all mappings, of the private writable ones, and others
    DOCK_PROC_MAPS_OF_CALLS, // as the first, for adopt_change.c: under its lock instead, so never `asked`
    DOCK_PROC_FILES
};

struct dock_proc {
    long fd;
    bool closes; // dock_proc_done does
    struct stat st;
};

// 0 or -errno. To be given back by dock_proc_done.
int dock_proc_open(enum dock_proc_name name, struct dock_proc *out);
void dock_proc_done(const struct dock_proc *p);
// The descriptor that was kept, or -1. The program may have closed it since, and its own file got the number:
// that may be the same file of another process, so no answer tells. Costs no call.
long dock_proc_kept(enum dock_proc_name name);
// From here until `still` is false nothing of the process runs but the caller: what was asked once stands.
void dock_proc_still(bool still);
// Is this descriptor one of these files? Only then.
bool dock_proc_is(long fd);
// What is known of them, in whole pages that are wiped in a forked child. NULL: there is none.
const void *dock_proc_room(size_t *bytes);
// Nobody asks for now: the descriptors that are kept are given back.
void dock_proc_close(void);

#endif
