// SPDX-License-Identifier: MIT
// fork(): program memory is never pinned, so copy-on-write after a fork gives parent and child what they
// expect, and the calls that protect pinned pages have nothing to do.
#include "face/verbs/verbs_face.h"

int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);

int ibv_fork_init(void)
{
    return 0;
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
    return IBV_FORK_UNNEEDED;
}

int ibv_dontfork_range(void *base, size_t size)
{
    (void)base;
    (void)size;
    return 0;
}

int ibv_dofork_range(void *base, size_t size)
{
    (void)base;
    (void)size;
    return 0;
}
