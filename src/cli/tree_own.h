// SPDX-License-Identifier: MIT
// What the parts of the private tree (tree.h) are made with.
#ifndef DOCK_CLI_TREE_OWN_H
#define DOCK_CLI_TREE_OWN_H

#include <stdint.h>

#include "device/identity.h"

// Room for the longest path below the tree and the longest text of a file.
enum { TREE_PATH = 192, TREE_TEXT = 128 };

struct tree {
    int fd;
    int rc; // of the first step that failed; later steps do nothing
    char device[16 + DOCK_NAME_MAX + 16];
};

// A directory and those above it.
void dock_tree_directory(struct tree *tree, const char *path);
// One file with one line in it; its directory is there.
__attribute__((format(printf, 3, 4))) void dock_tree_put(struct tree *tree, const char *path,
                                                         const char *format, ...);
// The same, the line an address of 16 bytes, the path one below the device's directory.
void dock_tree_put_address(struct tree *tree, const char *path, const uint8_t raw[16]);
// A path below the device's directory; good until the thread's next call.
const char *dock_tree_below(const struct tree *tree, const char *path);

// What /sys/class/ubcore shows of the device: its limits, its port, its EIDs.
void dock_tree_put_ub(struct tree *tree, const struct dock_identity *id);

#endif
