// SPDX-License-Identifier: MIT
// The private tree that the path shim leads programs into: what a kernel driver would show of the device
// below /sys/class/infiniband, /sys/class/infiniband_verbs, /sys/class/ubcore and /dev/infiniband. It lies in
// the runtime directory, one tree per device name, and is brought up to date by every `drydock run`.
#ifndef DOCK_CLI_TREE_H
#define DOCK_CLI_TREE_H

#include <stddef.h>

#include "device/identity.h"

// Makes or updates the tree of the device `id` below the open directory rundir_fd (O_PATH will do) and gives
// its absolute path. Any number of processes may do so at once: a file is replaced, never rewritten, and only
// when its text differs. 0 or -errno, with the reason logged.
int dock_tree_make(int rundir_fd, const struct dock_identity *id, char *root, size_t size);

#endif
