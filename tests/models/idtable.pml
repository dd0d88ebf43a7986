/* SPDX-License-Identifier: MIT
 * Who has an id block (src/arena/idtable.c): a slot is given back and taken by another process while somebody looks the
 * first one up without a lock. What is found under a `who` is that one's, or nothing.
 *
 * switches: LOOK_ONCE UNORDERED_SECOND FREE_LATE UNORDERED_FREE WHO_FIRST UNORDERED_WHO
 *   LOOK_ONCE         the reader does not look at `who` again
 *   UNORDERED_SECOND  ... or may do so before it has read what stands under it
 *   FREE_LATE         `who` is cleared when the next owner's words are written
 *   UNORDERED_FREE    the next owner's words may be visible before `who` is cleared
 *   WHO_FIRST         the next owner writes `who` first
 *   UNORDERED_WHO     ... or it may be visible first
 *
 * pairs: arena/idtable.c: dock_idtable_more dock_idtable_choose settle.
 */
#define VARS 2
#define PROCS 3
#define WHO 0
#define PID 1
#include "weak.pml"

proctype owners(byte me) /* the first leaves, the second joins, one after the other under the table's lock */
{
#ifndef FREE_LATE
    release(WHO, 0); /* free_block */
#endif
#ifdef WHO_FIRST
    store(WHO, 2);
#endif
#ifdef UNORDERED_FREE
    store(PID, 20); /* settle */
#else
    release(PID, 20);
#endif
#ifdef FREE_LATE
    release(WHO, 0);
#endif
#ifdef UNORDERED_WHO
    !held[PLACE(WHO)];
    store(WHO, 2)
#else
    release(WHO, 2)
#endif
}

proctype reader(byte me; byte who) /* dock_idtable_lookup */
{
    byte first, second, process;

    load(WHO, first); /* is_current */
#ifdef UNORDERED_SECOND
    load(WHO, second);
#endif
    load(PID, process);
#ifndef UNORDERED_SECOND
    load(WHO, second);
#endif
#ifdef LOOK_ONCE
    second = who;
#endif
    assert(first != who || second != who || process == 10 * who)
}

init
{
    atomic {
        mem[WHO] = 1;
        mem[PID] = 10;
        run owners(0);
        run reader(1, 1);
        run reader(2, 2)
    }
}
