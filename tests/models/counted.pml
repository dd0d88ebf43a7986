/* SPDX-License-Identifier: MIT
 * Nobody can be at work (src/fabric/host/connect.c, src/device/quiesce.c): who takes a hazard counts it, fences, and then
 * looks at keys and queues; who takes memory away makes the key bad, fences, and spares itself the wait if no hazard was
 * ever counted. The count may be seen late by others though its writer goes on.
 *
 * switches: NO_COUNT_FENCE NO_LOOK_FENCE LOOK_FIRST NO_COUNT
 *   NO_COUNT_FENCE  who has counted may look at the key before the count is visible
 *   NO_LOOK_FENCE   the owner may look at the count before the key is visibly bad
 *   LOOK_FIRST      the owner looks at the count, then makes the key bad
 *   NO_COUNT        a hazard is taken uncounted
 *
 * pairs: fabric/host/connect.c: claim_hazard.
 */
#define VARS 2
#define PROCS 2
#define COUNT 0
#define KEY 1 /* 0: good */
#include "weak.pml"

bool spared;

proctype initiator(byte me) /* claim_hazard, then dock_host_enter */
{
    byte key;

#ifndef NO_COUNT
    release(COUNT, 1);
#endif
#ifndef NO_COUNT_FENCE
    fence();
#endif
    load(KEY, key);
    assert(key || !spared)
}

inline look() /* nobody_can_work */
{
    load(COUNT, count)
}

proctype owner(byte me)
{
    byte count;

#ifdef LOOK_FIRST
    look();
#endif
    store(KEY, 1);
#ifndef NO_LOOK_FENCE
    fence();
#endif
#ifndef LOOK_FIRST
    look();
#endif
    spared = !count
}

init
{
    atomic {
        run initiator(0);
        run owner(1)
    }
}
