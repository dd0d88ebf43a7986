/* SPDX-License-Identifier: MIT
 * The members of a jetty group (src/device/bundle.c, src/fabric/host/connect.c): one comes, one more, the first goes, and
 * the last takes its place. Who picks meanwhile takes the count and one of so many: it is a member, old or new.
 *
 * switches: UNORDERED_JOIN COUNT_FIRST UNORDERED_LOOK LEAVE_A_HOLE
 *   UNORDERED_JOIN  the count may be visible before the member
 *   COUNT_FIRST     the count is written before the member
 *   UNORDERED_LOOK  who picks may read the member before the count
 *   LEAVE_A_HOLE    the place that the last one had is cleared
 *
 * pairs: device/bundle.c: dock_bundle_close dock_bundle_join dock_bundle_leave publish; fabric/host/connect.c:
 *   dock_host_pick.
 */
#define VARS 3
#define PROCS 2
#define COUNT 0
#define MEMBER 1 /* and 2 */
#include "weak.pml"

inline join(n, number) /* dock_bundle_join */
{
#ifdef COUNT_FIRST
    release(COUNT, n + 1);
    release(MEMBER + n, number);
#else
    store(MEMBER + n, number);
#ifdef UNORDERED_JOIN
    store(COUNT, n + 1);
#else
    release(COUNT, n + 1);
#endif
#endif
}

proctype owner(byte me)
{
    join(0, 7);
    join(1, 8);
    store(MEMBER, 8); /* dock_bundle_leave */
#ifdef LEAVE_A_HOLE
    store(MEMBER + 1, 0);
#endif
    release(COUNT, 1)
}

proctype picker(byte me) /* dock_host_pick */
{
    byte n, at, id;

    select(at : 0 .. 1);
#ifdef UNORDERED_LOOK
    load(MEMBER + at, id);
#endif
    load(COUNT, n);
#ifndef UNORDERED_LOOK
    load(MEMBER + at, id);
#endif
    assert(at >= n || id == 7 || id == 8)
}

init
{
    atomic {
        run owner(0);
        run picker(1)
    }
}
