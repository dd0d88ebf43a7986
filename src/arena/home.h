// SPDX-License-Identifier: MIT
// A page that tells one image of a process from the next. Exec leaves a process its number, its start time
// and the pidfds that others hold, and takes all of its memory: who reaches that memory by the number would
// reach another program's. The page lies at an address that was drawn at random, where the next image has
// nothing, and holds a word that follows from the address.
#ifndef DOCK_ARENA_HOME_H
#define DOCK_ARENA_HOME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/seed.h"

// Where ours is, made at the first call; 0: there is none. Called under the lock of the id table.
uint64_t dock_home_own(void);

static inline uint64_t dock_home_word(uint64_t home)
{
    return dock_mix(home);
}

// Has process `pid` left the image whose home this was? false also where that cannot be asked.
bool dock_home_left(pid_t pid, uint64_t home);

#endif
