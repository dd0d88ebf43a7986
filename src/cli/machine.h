// SPDX-License-Identifier: MIT
// What this machine, or the container around us, allows a device in user space to do. Each question is asked
// by doing the thing, since a version number says nothing about seccomp filters.
#ifndef DOCK_CLI_MACHINE_H
#define DOCK_CLI_MACHINE_H

#include <stddef.h>

struct dock_ability {
    const char *name;
    const char *without; // what the device does where the answer is no
    int (*ask)(void);    // 0 or -errno
};

// A table of *count rows.
const struct dock_ability *dock_machine_abilities(size_t *count);

#endif
