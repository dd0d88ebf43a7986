/* SPDX-License-Identifier: MIT
 * Members of multicast groups (src/arena/groups.c): an entry is taken by a swap, filled, and published by its member; it
 * is given back by a store. Queue 1 leaves group 5, queue 2 comes and goes in group 6 and queue 3 comes to group 5, all in
 * the same entry. Who sends to group 6 finds nobody but queue 2: the entry's turn tells whether what was read of it belongs
 * together.
 *
 * switches: NO_TURN TURN_LATE UNORDERED_TURN UNORDERED_JOIN NO_CLAIM UNORDERED_LOOK
 *   NO_TURN         the reader does not look at the turn
 *   TURN_LATE       the turn moves when the group is written
 *   UNORDERED_TURN  the group may be visible before the turn
 *   UNORDERED_JOIN  the member may be visible before its group
 *   NO_CLAIM        the entry is taken by a look and a store
 *   UNORDERED_LOOK  the reader may look at the turn again before it has read the group
 *
 * pairs: arena/groups.c: dock_group_join dock_group_leave dock_group_leave_all dock_group_next.
 */
#define VARS 3
#define PROCS 3
#define MEMBER 0 /* 0: free */
#define GROUP 1
#define TURN 2
#include "weak.pml"

#define TAKEN 9

inline fill(queue, group)
{
#ifndef TURN_LATE
    load(TURN, turn);
    store(TURN, turn + 1);
#ifndef UNORDERED_TURN
    fence(); /* dock_fence_store */
#endif
#endif
    store(GROUP, group);
#ifdef TURN_LATE
    load(TURN, turn);
    store(TURN, turn + 1);
#endif
#ifdef UNORDERED_JOIN
    !held[PLACE(MEMBER)];
    store(MEMBER, queue)
#else
    release(MEMBER, queue)
#endif
}

inline join(queue, group) /* dock_group_join */
{
    if
#ifdef NO_CLAIM
    :: mem[MEMBER] == 0 -> store(MEMBER, TAKEN); fill(queue, group); joined = true
#else
    :: atomic { mem[MEMBER] == 0 && ORDERED -> mem[MEMBER] = TAKEN }; fill(queue, group); joined = true /* take */
#endif
    :: mem[MEMBER] != 0 && ORDERED /* no entry is free */
    fi
}

proctype first(byte me)
{
    byte turn;
    bool joined;

    release(MEMBER, 0); /* dock_group_leave */
    join(2, 6);
    if
    :: joined -> release(MEMBER, 0)
    :: else
    fi
}

proctype second(byte me)
{
    byte turn;
    bool joined;

    join(3, 5)
}

proctype sender(byte me) /* dock_group_next */
{
    byte turn, member, group, now;

    load(TURN, turn);
    load(MEMBER, member);
#ifdef UNORDERED_LOOK
    load(TURN, now);
#endif
    load(GROUP, group);
#ifndef UNORDERED_LOOK
    load(TURN, now); /* behind dock_fence_load */
#endif
#ifdef NO_TURN
    now = turn;
#endif
    assert(member == 0 || member == TAKEN || group != 6 || now != turn || member == 2)
}

init
{
    atomic {
        mem[MEMBER] = 1;
        mem[GROUP] = 5;
        run first(0);
        run second(1);
        run sender(2)
    }
}
