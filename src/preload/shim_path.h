// SPDX-License-Identifier: MIT
// Which paths the device answers for, and where in a private tree they really are.
//
// Programs look a device up in places that only a kernel driver can fill. `drydock run` lays a copy of
// those places under a root of its own and names it in DRYDOCK_SHIM; the interposers of shim.c send every
// path through dock_shim_path():
//
//     /dev/infiniband/uverbs0     -> /dev/null           (UCX wants a character device that it may use)
//     /dev/infiniband[/...]       -> ROOT/dev/infiniband[/...]
//     /sys/class/infiniband[...]  -> ROOT/sys/class/infiniband[...]         (infiniband_verbs, ubcore
//     likewise)
//
// Without DRYDOCK_SHIM nothing is rewritten.
#ifndef DOCK_PRELOAD_SHIM_PATH_H
#define DOCK_PRELOAD_SHIM_PATH_H

#include <stdbool.h>
#include <stddef.h>

// The shim sits in front of every library of the program: only the interposers may be visible there.
#pragma GCC visibility push(hidden)

// Longest rewritten path, terminator included; a longer one is left as it is and so names nothing.
enum { DOCK_SHIM_PATH_MAX = 1024 };

// A rewritten path needs a home; the caller keeps one on its stack.
struct dock_shim_buf {
    char text[DOCK_SHIM_PATH_MAX];
};

// Sets the root of the private tree; root must be absolute, NULL or anything else turns rewriting off. The
// text is copied. Not thread-safe: called before the program's threads exist, and by tests.
void dock_shim_set_root(const char *root);

// True when path (or a glob pattern) begins like one of ours. NULL is allowed.
bool dock_shim_owns(const char *path);

// The path to use instead of path: path itself when it is not ours, else a text in buf. Makes no system call,
// allocates nothing and leaves errno alone, so it may run in a signal handler or after fork.
const char *dock_shim_path(const char *path, struct dock_shim_buf *buf);

#pragma GCC visibility pop

#endif
