/* SPDX-License-Identifier: MIT
 * The word of a send queue (src/device/run.c), lock and execution token in one: two posters, an engine that takes
 * queues from the ready list and finishes one request of a late fabric, a budget of one request. A poster takes both
 * when the word is free (BOTH), or the lock alone when the queue is being run or its face begins so. Whatever the
 * schedule, one thread posts and one executes at a time, every posted request is executed, and what was finished is
 * seen: what is lost leaves the engine waiting for ever, which is a deadlock here. A queue without a lock has one
 * poster, who takes both just to run it.
 *
 * switches: LOOK_ONLY NO_RMW_WHEN_KICKED RELAXED_RING RELAXED_LEAVE STORE_TO_LET_GO KICK_BOTH FORGET_BUSY PUSH_ONCE
 *   LOOK_ONLY           a ringer that finds the token taken goes away without leaving KICK
 *   NO_RMW_WHEN_KICKED  ... or does not write because KICK is there already
 *   RELAXED_RING        taking or kicking does not order the doorbell before it
 *   RELAXED_LEAVE       a poster that lets go of both does not order the doorbell before it
 *   STORE_TO_LET_GO     the holder of the token looks at the word, then lets go by a plain store
 *   KICK_BOTH           a ringer leaves KICK where a poster has both, who lets go by a plain store
 *   FORGET_BUSY         ... or goes away without putting the queue on the list
 *   PUSH_ONCE           a poster that was kicked at the end of its budget does not put the queue on the list again
 *
 * pairs: device/fast.c: dock_sq_end dock_sq_end_placed end_others; device/place.c: end_placed; device/post.c: dock_sq_lock_wait leave_unrung ring_alone; device/run.c:
 *   dock_sq_go_on dock_sq_leave let_go take; device/sq.h: dock_sq_lock dock_sq_unlock.
 */
#define VARS 2
#define PROCS 3
#define DB 0
#define FINISHED 1
#include "weak.pml"

#define RUN 1
#define KICK 2
#define LOCK 4
#define BOTH 8

mtype = { MINE, TOLD, BUSY };

byte total, word, pi, executed, holders, writers;
bool listed, reaped;

#ifdef RELAXED_RING
#define RING_ORDERED true
#else
#define RING_ORDERED ORDERED
#endif
#ifdef RELAXED_LEAVE
#define LEAVE_ORDERED true
#else
#define LEAVE_ORDERED ORDERED
#endif

inline take()
{
    if
    :: atomic { !(word & (RUN | BOTH)) && RING_ORDERED -> word = word | RUN }; got = MINE
#ifdef LOOK_ONLY
    :: word & RUN -> got = TOLD
#else
    :: atomic { word & RUN && RING_ORDERED -> word = word | KICK }; got = TOLD
#endif
#ifdef NO_RMW_WHEN_KICKED
    :: word & KICK -> got = TOLD
#endif
#ifdef KICK_BOTH
    :: atomic { word & BOTH && RING_ORDERED -> word = word | KICK }; got = TOLD
#else
    :: word & BOTH -> got = BUSY
#endif
    fi
}

inline let_go()
{
#ifdef STORE_TO_LET_GO
    if
    :: (word & (RUN | KICK)) == RUN -> word = word & LOCK; gone = true
    :: word & KICK -> word = word & (RUN | LOCK); gone = false
    fi
#else
    if
    :: atomic { (word & (RUN | KICK)) == RUN -> word = word & LOCK }; gone = true
    :: atomic { word & KICK -> word = word & (RUN | LOCK) }; gone = false /* it sees what the kicker had published */
    fi
#endif
}

/* With the token alone: late completions are looked at first. */
inline reap()
{
    load(FINISHED, seen);
    if
    :: seen -> reaped = true
    :: else
    fi
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

/* The token is held. */
inline run_on(poster)
{
    do
    :: reap();
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

inline lock()
{
    if
    :: atomic { word == 0 && ORDERED -> word = BOTH }; got = MINE
    :: atomic { !(word & (LOCK | BOTH)) && ORDERED -> word = word | LOCK }; got = TOLD
    fi;
    writers++;
    assert(writers == 1)
}

/* With both: what is short is done at once, and a plain store lets go. */
inline leave_with_both()
{
    execute();
    if
    :: !left -> atomic { LEAVE_ORDERED -> word = 0 }
    :: else -> atomic { LEAVE_ORDERED -> word = RUN }; run_on(true)
    fi
}

inline leave_with_lock()
{
    if
    :: atomic { !(word & RUN) && RING_ORDERED -> word = RUN }; run_on(true)
#ifdef LOOK_ONLY
    :: atomic { word & RUN && ORDERED -> word = word & (RUN | KICK) }
#else
    :: atomic { word & RUN && RING_ORDERED -> word = RUN | KICK }
#endif
    fi
}

/* The poster of a queue without a lock; nobody but it takes both. */
inline ring_alone()
{
    if
    :: atomic { word == 0 && RING_ORDERED -> word = BOTH }; leave_with_both()
    :: take();
        if
        :: got == MINE -> run_on(true)
        :: else
        fi
    fi
}

proctype poster(byte me; byte count; bool lock_free)
{
    mtype got;
    bool gone, left;
    byte seen;

    do
    :: count == 0 -> break
    :: else ->
        count--;
        if
        :: lock_free && pi == 0 -> pi++ /* two at once: the engine must come, and be met */
        :: lock_free && pi > 0
        :: else -> lock()
        fi;
        pi++;
        release(DB, pi);
        if
        :: lock_free -> ring_alone()
        :: !lock_free && got == MINE -> writers--; leave_with_both()
        :: !lock_free && got == TOLD -> writers--; leave_with_lock()
        fi
    od
}

inline ring()
{
    take();
    if
    :: got == MINE -> run_on(false)
    :: got == TOLD
#ifdef FORGET_BUSY
    :: got == BUSY
#else
    :: got == BUSY -> listed = true
#endif
    fi
}

proctype engine(byte me)
{
    mtype got;
    bool gone, left;
    byte seen;

    release(FINISHED, 1);
    ring();
    do
    :: executed == total && reaped -> break
    :: atomic { listed -> listed = false }; ring()
    od
}

init
{
    atomic {
        if
        :: total = 3; run poster(0, 2, false); run poster(1, 1, false)
        :: total = 4; run poster(0, 3, true)
        fi;
        run engine(2)
    }
}
