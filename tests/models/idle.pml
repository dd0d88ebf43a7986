/* SPDX-License-Identifier: MIT
 * Is a completion queue empty? (src/device/poll.c) A thread looks without the queue's lock, beside a producer and a
 * poller that has the lock: at the index, at the entry there, at the index again. A ring of two, that goes round: the
 * entry that it looks at may be a later one by then, whose owner bit says of the earlier one that it is not there. When
 * it finds the queue empty, whatever it knew to be there when it began has been taken.
 *
 * switches: ONE_LOOK LATE_LOOK FREE_FIRST
 *   ONE_LOOK    it does not look at the index again
 *   LATE_LOOK   ... or before it looks at the entry
 *   FREE_FIRST  the poller gives the slot back before it moves the index
 *
 * pairs: device/poll.c: dock_cq_idle.
 */
#define VARS 5
#define PROCS 3
#define OWNER 0 /* and 1: two slots */
#define CI 2
#define FREED 3 /* the index that producers look at */
#define TOLD 4  /* how many entries the program knows of by other means */
#include "weak.pml"

#define SLOTS 2
#define BIT(pos) (((pos) / SLOTS) % 2 == 0)
#define ENTRIES 4

byte taken;

proctype producer(byte me)
{
    byte at, ci;

    for (at : 0 .. ENTRIES - 1) {
        do
        :: load(FREED, ci);
            if
            :: at - ci < SLOTS -> break
            :: else -> mem[FREED] != ci
            fi
        od;
        ORDERED; /* the memory of this model holds back one store to a word */
        release(OWNER + at % SLOTS, BIT(at));
        release(TOLD, at + 1)
    }
}

proctype poller(byte me)
{
    byte ci;

    for (ci : 0 .. ENTRIES - 1) {
        mem[OWNER + ci % SLOTS] == BIT(ci);
        taken++;
#ifdef FREE_FIRST
        release(FREED, ci + 1);
        store(CI, ci + 1)
#else
        store(CI, ci + 1);
        release(FREED, ci + 1)
#endif
    }
}

proctype looker(byte me) /* dock_cq_idle */
{
    byte known, ci, again, shown;

    load(TOLD, known);
    load(CI, ci);
#ifdef LATE_LOOK
    load(CI, again);
#endif
    load(OWNER + ci % SLOTS, shown);
#ifdef ONE_LOOK
    again = ci;
#else
#ifndef LATE_LOOK
    load(CI, again);
#endif
#endif
    assert(shown == BIT(ci) || again != ci || taken >= known)
}

init
{
    atomic {
        mem[OWNER] = !BIT(0);
        mem[OWNER + 1] = !BIT(1);
        run producer(0);
        run poller(1);
        run looker(2)
    }
}
