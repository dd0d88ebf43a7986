/* SPDX-License-Identifier: MIT
 * A receive that is posted while its queue fails (src/device/rq.c, fail.c): the program publishes the receive and looks
 * whether the queue is in error; who fails the queue changes the state, runs the heavy fence and flushes the receives that
 * it finds. None stays that nobody flushes.
 *
 * switches: NO_LIGHT_FENCE NO_HEAVY_FENCE NO_LOOK FLUSH_FIRST
 *   NO_LIGHT_FENCE  the compiler may move the look before the receive
 *   NO_HEAVY_FENCE  who fails the queue runs a full fence of its own instead
 *   NO_LOOK         the program does not look at the state
 *   FLUSH_FIRST     the receives are looked for before the state changes
 *
 * pairs: device/rq.c: dock_recv_end.
 */
#define VARS 2
#define PROCS 2
#define PI 0
#define STATE 1 /* 1: in error */
#include "weak.pml"

bool flushed, late, posted, failed;

proctype program(byte me) /* dock_recv_end */
{
    byte state;

#ifdef NO_LIGHT_FENCE
    load(STATE, state);
    release(PI, 1);
#else
    release(PI, 1);
    load(STATE, state);
#endif
#ifdef NO_LOOK
    state = 0;
#endif
    late = state; /* dock_rq_posted_late */
    posted = true
}

inline flush()
{
    load(PI, pi);
    flushed = pi
}

proctype engine(byte me) /* dock_qp_error, and the flush behind it */
{
    byte pi;

#ifdef FLUSH_FIRST
    flush();
#endif
    release(STATE, 1);
#ifdef NO_HEAVY_FENCE
    fence();
#else
    fence_everywhere();
#endif
#ifndef FLUSH_FIRST
    flush();
#endif
    failed = true
}

init
{
    atomic {
        run program(0);
        run engine(1)
    }
    posted && failed;
    assert(flushed || late)
}
