/* SPDX-License-Identifier: MIT
 * A lock word that outlives its holder (src/arena/lockword.c, lockword.h): its value is what it guards. The holder may be
 * stopped and given up, and another takes the word over; when the first continues it finds that, and leaves the word
 * alone. There is one holder that was not given up, the value never goes back, and who was not the heir of such a one sees
 * what the holder before had written.
 *
 * switches: STORE_TO_UNLOCK LOOK_THEN_STORE UNORDERED_UNLOCK NO_CLAIM UNORDERED_LOOK
 *   STORE_TO_UNLOCK   the word is given back by a store
 *   LOOK_THEN_STORE   ... after a look who holds it
 *   UNORDERED_UNLOCK  the word may be free before the last store under it is visible
 *   NO_CLAIM          the word is taken by a look and a store
 *   UNORDERED_LOOK    what the word guards may be read before it is taken
 *
 * pairs: arena/lockword.c: dock_word_wait; arena/lockword.h: dock_word_lock dock_word_unlock;
 *   fabric/host/connect.c: dock_host_disconnect.
 */
#define VARS 1
#define PROCS 3
#define DATA 0
#include "weak.pml"

byte value, holder; /* of the word */
byte highest;
bool given_up;

#ifdef UNORDERED_UNLOCK
#define UNLOCK_ORDERED true
#else
#define UNLOCK_ORDERED ORDERED
#endif

#define FREE (holder == 0)
#define DEAD (holder == 1 && given_up && me != 0)

inline take() /* dock_word_lock, dock_word_wait */
{
    if
#ifdef NO_CLAIM
    :: FREE -> at = value; holder = me + 1; heir = false
#else
    :: atomic { FREE && ORDERED -> at = value; holder = me + 1 }; heir = false
#endif
    :: atomic { DEAD && ORDERED -> at = value; holder = me + 1 }; heir = true
    fi
}

#define LEAVE value = at + 1; holder = 0; assert(value > highest); highest = value

inline unlock() /* dock_word_unlock */
{
#ifdef STORE_TO_UNLOCK
    atomic { UNLOCK_ORDERED -> LEAVE }
#else
#ifdef LOOK_THEN_STORE
    if
    :: holder == me + 1 -> atomic { ORDERED -> LEAVE }
    :: else
    fi
#else
    if
    :: atomic { UNLOCK_ORDERED && holder == me + 1 && value == at -> LEAVE }
    :: holder != me + 1
    fi
#endif
#endif
}

proctype user(byte me)
{
    byte at, data;
    bool heir;

#ifdef UNORDERED_LOOK
    load(DATA, data);
#endif
    take();
#ifndef UNORDERED_LOOK
    load(DATA, data);
#endif
    assert(heir || given_up || data == at);
    if
    :: me == 0 -> given_up = true /* stopped for too long */
    :: true
    fi;
    if
    :: given_up && me == 0
    :: else -> store(DATA, at + 1)
    fi;
    assert((given_up && me == 0) || holder == me + 1);
    unlock()
}

init
{
    atomic {
        run user(0);
        run user(1);
        run user(2)
    }
}
