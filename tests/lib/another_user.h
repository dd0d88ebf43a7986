// SPDX-License-Identifier: MIT
// A process that began as root and goes on as nobody, with a runtime directory of its own.
#ifndef TESTS_LIB_ANOTHER_USER_H
#define TESTS_LIB_ANOTHER_USER_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NOBODY 65534

static char another_dir[] = "/tmp/drydock-test-XXXXXX";

// false: it did not begin as root.
static inline bool another_user(void)
{
    if (setgid(NOBODY) || setuid(NOBODY))
        return false;
    if (!mkdtemp(another_dir) || setenv("DRYDOCK_DIR", another_dir, 1))
        abort();
    return true;
}

// At the end of one that has. What it has come to.
static inline int another_user_ends(int status)
{
    char command[64];

    snprintf(command, sizeof command, "rm -rf %s", another_dir);
    return system(command) && !status ? 78 : status;
}

#endif
