// SPDX-License-Identifier: MIT
// The environment variables that Drydock knows, for `drydock info` and its manual page.
#ifndef DOCK_CLI_ENVIRONMENT_H
#define DOCK_CLI_ENVIRONMENT_H

#include <stddef.h>

struct dock_variable {
    const char *name;
    const char *meaning;
};

// A table of *count rows.
const struct dock_variable *dock_environment(size_t *count);

#endif
