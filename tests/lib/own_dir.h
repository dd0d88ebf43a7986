// SPDX-License-Identifier: MIT
// A runtime directory of the test's own, also when it is started by hand: what it says of the port is not for
// others. Group set-up and tear-down for cmocka.
#ifndef TESTS_LIB_OWN_DIR_H
#define TESTS_LIB_OWN_DIR_H

#include <stdio.h>
#include <stdlib.h>

static char own_dir[] = "/tmp/drydock-own-XXXXXX";

static inline int own_dir_make(void **state)
{
    (void)state;
    return mkdtemp(own_dir) ? setenv("DRYDOCK_DIR", own_dir, 1) : -1;
}

static inline int own_dir_remove(void **state)
{
    char command[64];

    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", own_dir);
    return system(command);
}

#endif
