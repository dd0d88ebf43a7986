/* SPDX-License-Identifier: MIT
 * Arming a completion queue (src/ring/cqring.h, src/device/cq.c): the program arms, polls what came before, and sleeps
 * for an event; two producers store their entry and look whether the queue is armed. The program never sleeps over an
 * entry that it has not seen, and one arm gives at most one event. The producers' fence is one that only the compiler
 * sees: the membarrier of the arming side stands for both.
 *
 * switches: NO_LIGHT_FENCE NO_HEAVY_FENCE NO_CLAIM POLL_FIRST
 *   NO_LIGHT_FENCE  the compiler may move the look at `armed` before the entry
 *   NO_HEAVY_FENCE  the arming side runs a full fence of its own instead
 *   NO_CLAIM        a producer that sees the queue armed clears it by a plain store
 *   POLL_FIRST      the program polls, arms, and sleeps without polling again (a mistake of the program)
 *
 * For one who died the owner's engine clears `armed` by a store (wake_sleepers): the event that it then owes is one more
 * at worst, and none is lost.
 *
 * pairs: device/cq.c: dock_cq_arm; device/repair.c: wake_sleepers; ring/cqring.h: dock_cq_fires.
 */
#define VARS 3
#define PROCS 3
#define ARMED 0
#define ENTRY 1 /* and 2: one of each producer */
#include "weak.pml"

byte events, arms, fired;

proctype producer(byte me)
{
    byte armed;

#ifdef NO_LIGHT_FENCE
    load(ARMED, armed);
    release(ENTRY + me, 1);
#else
    release(ENTRY + me, 1);
    load(ARMED, armed);
#endif
    if
    :: armed ->
#ifdef NO_CLAIM
        store(ARMED, 0);
        atomic { events++; fired++ }
#else
        if
        :: atomic { mem[ARMED] == 1 && ORDERED -> mem[ARMED] = 0 }; atomic { events++; fired++ }
        :: atomic { mem[ARMED] == 0 && ORDERED }
        fi
#endif
    :: else
    fi;
    assert(fired <= arms)
}

inline poll()
{
    load(ENTRY, first);
    load(ENTRY + 1, second)
}

inline arm()
{
    load(ARMED, armed);
    if
    :: armed
    :: else -> arms++; release(ARMED, 1)
    fi;
#ifdef NO_HEAVY_FENCE
    fence()
#else
    fence_everywhere()
#endif
}

proctype program(byte me)
{
    byte first, second, armed;

    do
    :: first && second -> break
    :: else ->
#ifdef POLL_FIRST
        poll();
        arm();
#else
        arm();
        poll();
#endif
        if
        :: first && second
        :: else -> atomic { events > 0 -> events-- }
        fi
    od
}

init
{
    atomic {
        run producer(0);
        run producer(1);
        run program(2)
    }
}
