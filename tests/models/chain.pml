/* SPDX-License-Identifier: MIT
 * Several segments under one token id (src/device/many.c, src/fabric/host/keys.c): the entry of the id begins a chain of
 * entries. One leaves the chain, and its entry is used for another chain; who walks meanwhile counts the walk only if the
 * first entry stood all the while. A segment that stays is found.
 *
 * switches: HEAD_LATE UNORDERED_HEAD LOOK_ONCE UNORDERED_LOOK
 *   HEAD_LATE       the entry is used elsewhere before the first one tells that it has left
 *   UNORDERED_HEAD  ... or may be visibly so
 *   LOOK_ONCE       who walks does not look at the first entry again
 *   UNORDERED_LOOK  ... or may do so before the walk is over
 *
 * pairs: fabric/host/keys.c: among.
 */
#define VARS 3
#define PROCS 2
#define GENERATION 0 /* of the first entry */
#define FIRST 1      /* what follows it: 0 the one that leaves, 1 the one that stays */
#define NEXT 2       /* what follows the one that leaves: 0 the one that stays, 1 another chain */
#include "weak.pml"

inline elsewhere()
{
    store(NEXT, 1)
}

proctype owner(byte me) /* dock_many_leave */
{
#ifdef HEAD_LATE
    elsewhere();
#endif
    store(GENERATION, 1);
    fence();
    store(FIRST, 1);
#ifdef UNORDERED_HEAD
    store(GENERATION, 2);
    elsewhere()
#else
    release(GENERATION, 2);
#ifndef HEAD_LATE
    fence(); /* of dock_quiesce, or of the next dock_segrec_publish */
    elsewhere()
#endif
#endif
}

proctype walker(byte me) /* among */
{
    byte stood, first, next, now;

    load(GENERATION, stood);
    load(FIRST, first);
#ifdef UNORDERED_LOOK
    load(GENERATION, now);
#endif
    if
    :: first == 0 -> load(NEXT, next)
    :: else
    fi;
#ifndef UNORDERED_LOOK
    load(GENERATION, now); /* behind dock_fence_load */
#endif
#ifdef LOOK_ONCE
    now = stood;
#endif
    assert(stood % 2 || now != stood || next == 0)
}

init
{
    atomic {
        run owner(0);
        run walker(1)
    }
}
