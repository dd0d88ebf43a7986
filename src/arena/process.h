// SPDX-License-Identifier: MIT
// What the process table tells about a process: who it is, whether it lives.
#ifndef DOCK_ARENA_PROCESS_H
#define DOCK_ARENA_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

struct dock_process {
    int pid;
    uint64_t start_time;    // in clock ticks since boot: tells two users of one pid apart. 0 = not known
    uint64_t pid_namespace; // with the boot mixed in. 0 = not known
};

void dock_process_self(struct dock_process *out);
bool dock_process_equal(const struct dock_process *a, const struct dock_process *b);
// Is `p`, which is of our pid namespace, alive? 1, 0, or -errno if /proc cannot tell. A zombie is dead, but
// not one whose other threads live on (main has called pthread_exit).
int dock_process_alive(const struct dock_process *p);
// Has the process a file of this name mapped? 1, 0, or -errno.
int dock_process_maps(int pid, const char *name);

#endif
