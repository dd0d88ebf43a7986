// SPDX-License-Identifier: MIT
// Memory under a protection key (pkey_mprotect) stays where it is: the arena's pages have no key, so that
// what the program has shut would stand open.
#include <errno.h>

#include "arena/adopt_own.h"
#include "base/keys.h"

bool dock_keyed(uint64_t at)
{
    uint32_t rights;

    if (!dock_keys_are_there() || (rights = dock_keys_rights()) == DOCK_KEYS_SHUT)
        return false; // or the copy has failed by itself
    return dock_keys_ask(at, rights) == -EFAULT;
}
