// SPDX-License-Identifier: MIT
#include "base/seed.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

uint64_t dock_seed(void)
{
    const char *given = getenv("DRYDOCK_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : dock_mix(dock_now_ns() ^ (uint64_t)getpid() << 40);

    dock_info("seed %#llx", (unsigned long long)seed);
    return seed;
}
