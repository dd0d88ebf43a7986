/* SPDX-License-Identifier: MIT
 * The execution token of a send queue (src/device/run.c): two posters behind the queue's lock, an engine that takes
 * queues from the ready list, a budget of one request. Whatever the schedule, one thread executes at a time and every
 * posted request is executed: a lost doorbell leaves the engine waiting for ever, which is a deadlock here.
 *
 * switches: LOOK_ONLY NO_RMW_WHEN_KICKED RELAXED_RING STORE_TO_LET_GO PUSH_ONCE
 *   LOOK_ONLY           a ringer that finds the token taken goes away without leaving KICK
 *   NO_RMW_WHEN_KICKED  ... or does not write because KICK is there already
 *   RELAXED_RING        taking or kicking does not order the doorbell before it
 *   STORE_TO_LET_GO     the holder looks at the word, then lets go by a plain store
 *   PUSH_ONCE           a poster that was kicked at the end of its budget does not put the queue on the list again
 */
#define VARS 2
#define PROCS 3
#define DB 0
#define LOCK 1
#include "weak.pml"

#define RUN 1
#define KICK 2
#define TOTAL 3

byte token, pi, executed, holders;
bool listed;

#ifdef RELAXED_RING
#define RING_ORDERED true
#else
#define RING_ORDERED ORDERED
#endif

inline take()
{
    if
    :: atomic { token == 0 && RING_ORDERED -> token = RUN }; mine = true
#ifdef LOOK_ONLY
    :: token & RUN -> mine = false
#else
    :: atomic { token & RUN && RING_ORDERED -> token = RUN | KICK }; mine = false
#endif
#ifdef NO_RMW_WHEN_KICKED
    :: token & KICK -> mine = false
#endif
    fi
}

inline let_go()
{
#ifdef STORE_TO_LET_GO
    if
    :: token == RUN -> token = 0; gone = true
    :: token & KICK -> token = RUN; gone = false
    fi
#else
    if
    :: atomic { token == RUN -> token = 0 }; gone = true
    :: token & KICK -> token = RUN; gone = false /* a swap: it sees what the kicker had published */
    fi
#endif
}

/* More is posted than the budget allows: left is true, and whoever comes goes on. */
inline execute()
{
    holders++;
    assert(holders == 1);
    load(DB, seen);
    if
    :: executed < seen -> executed++
    :: else
    fi;
    left = executed < seen;
    holders--
}

inline ring(poster)
{
    take();
    do
    :: !mine -> break
    :: else ->
        execute();
        if
        :: left -> listed = true
        :: else
        fi;
        let_go();
        if
        :: gone -> break
        :: !gone && left && poster ->
            do
            :: gone -> break
            :: else ->
#ifndef PUSH_ONCE
                listed = true;
#endif
                let_go()
            od;
            break
        :: else
        fi
    od
}

proctype poster(byte me; byte count)
{
    bool mine, gone, left;
    byte seen;

    do
    :: count == 0 -> break
    :: else ->
        count--;
        atomic { mem[LOCK] == 0 && ORDERED -> mem[LOCK] = 1 };
        pi++;
        release(DB, pi);
        release(LOCK, 0);
        ring(true)
    od
}

proctype engine(byte me)
{
    bool mine, gone, left;
    byte seen;

    do
    :: executed == TOTAL -> break
    :: atomic { listed -> listed = false }; ring(false)
    od
}

init
{
    atomic {
        run poster(0, 2);
        run poster(1, 1);
        run engine(2)
    }
}
