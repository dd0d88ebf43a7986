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
    return !setgid(NOBODY) && !setuid(NOBODY) && mkdtemp(another_dir) &&
           !setenv("DRYDOCK_DIR", another_dir, 1);
}

// At its end. What it has come to.
static inline int another_user_ends(int status)
{
    char command[64];

    snprintf(command, sizeof command, "rm -rf %s", another_dir);
    return system(command) && !status ? 78 : status;
}

#endif
