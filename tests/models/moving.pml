/* SPDX-License-Identifier: MIT
 * Pages of a program move while peers work in them (src/device/mr.c, src/fabric/host/start.c): the owner raises `moving`,
 * runs the heavy fence, waits until every odd hazard has moved, moves the pages and lowers the word; an initiator shows
 * its hazard, then looks at the word and asks again later while it is up. Nobody touches a page at its old place after it
 * began to move, and who finds the word down again finds the new place.
 *
 * switches: NO_LIGHT_FENCE NO_HEAVY_FENCE NO_WAIT NO_LOOK UNORDERED_RESUME UNORDERED_LOOK
 *   NO_LIGHT_FENCE    the compiler may move the look before the hazard
 *   NO_HEAVY_FENCE    the owner runs a full fence of its own instead
 *   NO_WAIT           the owner does not wait for those at work
 *   NO_LOOK           the initiator does not look at the word
 *   UNORDERED_RESUME  the word may be down before the new place is written
 *   UNORDERED_LOOK    the initiator may read the place before the word
 *
 * pairs: device/mr.c: adopt_pause adopt_resume; fabric/host/start.c: pages_move.
 */
#define VARS 3
#define PROCS 2
#define MOVING 0
#define HAZARD 1
#define PLACE_OF 2 /* 0: the old one */
#include "weak.pml"

bool old_gone;

proctype initiator(byte me) /* dock_host_start */
{
    byte hazard, moving, at, done;

    do
    :: done -> break
    :: else ->
        hazard++;
#ifdef UNORDERED_LOOK
        load(PLACE_OF, at);
#endif
#ifdef NO_LIGHT_FENCE
        load(MOVING, moving);
        store(HAZARD, hazard);
#else
        store(HAZARD, hazard); /* dock_host_enter */
        load(MOVING, moving);  /* pages_move */
#endif
#ifdef NO_LOOK
        moving = 0;
#endif
        if
        :: !moving ->
#ifndef UNORDERED_LOOK
            load(PLACE_OF, at);
#endif
            assert(at || !old_gone);
            done = 1
        :: else
        fi;
        hazard++;
        release(HAZARD, hazard); /* dock_direct_leave */
        if
        :: moving -> mem[MOVING] == 0
        :: else
        fi
    od
}

proctype owner(byte me)
{
    byte hazard;

    store(MOVING, 1); /* adopt_pause */
#ifdef NO_HEAVY_FENCE
    fence();
#else
    fence_everywhere();
#endif
#ifndef NO_WAIT
    load(HAZARD, hazard); /* dock_quiesce */
    if
    :: hazard % 2 -> mem[HAZARD] != hazard
    :: else
    fi;
#endif
    old_gone = true;
    store(PLACE_OF, 1); /* adopt_changed */
#ifdef UNORDERED_RESUME
    store(MOVING, 0)
#else
    release(MOVING, 0) /* adopt_resume */
#endif
}

init
{
    atomic {
        run initiator(0);
        run owner(1)
    }
}
