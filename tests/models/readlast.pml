/* SPDX-License-Identifier: MIT
 * Two queues on the host's own path, each run by a thread of its own: a WRITE of a word, then a READ of the other's, in one
 * list (src/fabric/host/onesided.c). At least one READ finds the other's word. The WRITE may also go behind one that
 * is still on its way.
 *
 * switches: NO_READ_FENCE FENCE_FIRST
 *   NO_READ_FENCE  a READ looks while an earlier WRITE of its queue is still on its way
 *   FENCE_FIRST    the fence stands before the WRITE, not between it and the READ
 *
 * pairs: fabric/host/onesided.c: look_last.
 */
#define VARS 4
#define PROCS 2
#define BEFORE 0 /* and 1: what queue 0, 1 wrote earlier */
#define WORD 2   /* and 3 */
#include "weak.pml"

byte found[2], over;

proctype queue(byte me)
{
    store(BEFORE + me, 1);
#ifdef FENCE_FIRST
    fence();
#endif
    release(WORD + me, 1); /* the store fence of dock_host_move: behind the earlier one */
#if !defined(NO_READ_FENCE) && !defined(FENCE_FIRST)
    fence();
#endif
    load(WORD + 1 - me, found[me]);
    atomic {
        over++;
        assert(over < 2 || found[0] || found[1])
    }
}

init
{
    atomic {
        run queue(0);
        run queue(1)
    }
}
