// SPDX-License-Identifier: MIT
// Whether puts are stores where they can be.
#include <stdlib.h>
#include <string.h>

#include "face/shmem/near.h"

bool osh_near_wanted(void)
{
    const char *text = getenv("DRYDOCK_SHMEM");

    if (!text || !*text || strcmp(text, "stores") == 0)
        return true;
    if (strcmp(text, "queue") != 0)
        osh_fatal("DRYDOCK_SHMEM=%s: stores or queue is needed", text);
    return false;
}
