// SPDX-License-Identifier: MIT
// Where our libraries are, and the environment that makes the dynamic loader take them.
//
// Both variables are needed: a bare LD_LIBRARY_PATH loses to DT_RPATH, a bare LD_PRELOAD does not answer
// dlopen("libibverbs.so"); and the preloads are absolute because a DT_RPATH also wins over a bare name.
#ifndef DOCK_CLI_LOADER_H
#define DOCK_CLI_LOADER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct dock_loader {
    char dir[PATH_MAX]; // absolute, holds our libraries
};

// Finds the directory from the place of the running executable: ../lib/drydock (installed) or ../lib (build
// tree). 0; -ENOENT when libibverbs.so.1 or libdrydock_preload.so is in neither, with loader->dir naming
// where it looked last; -EINVAL when the directory's name holds a blank or colon, which LD_PRELOAD cannot
// express.
int dock_loader_find(struct dock_loader *loader);

// The same for an executable at exe; tests use it.
int dock_loader_find_from(const char *exe, struct dock_loader *loader);

// True when the directory holds a library of that name.
bool dock_loader_has(const struct dock_loader *loader, const char *library);

// Sets LD_LIBRARY_PATH and LD_PRELOAD for a program that is to run on the device. What the user had stays:
// our directory comes first, but our preloads come after his, since some of those (sanitizers) insist on
// being first. An element that is there already is not added again. 0 or -ENOMEM.
int dock_loader_export(const struct dock_loader *loader);

#endif
