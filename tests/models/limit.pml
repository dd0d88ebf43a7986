/* SPDX-License-Identifier: MIT
 * The limit of a shared receive queue (src/device/rq.c, attend.c, src/fabric/host/message.c): who takes a receive looks at
 * the limit after it and leaves word with the owner if fewer are left; the owner's engine, and a thread that ends a queue
 * (dock_attend_limit), take the word and then the limit away and tell the program. A limit is told once, and it is told
 * if a receive was taken below it by one that saw it.
 *
 * switches: CLEAR_LATE LOOK_NOT_SWAP LOOK_FIRST FORGET
 *   CLEAR_LATE     the engine clears the word after it has looked at the limit
 *   LOOK_NOT_SWAP  whoever tells looks at the limit and stores 0
 *   LOOK_FIRST     an initiator looks at the limit before it takes its receive
 *   FORGET         an initiator that finds the word set by another clears it
 *
 * pairs: device/rq.c: dock_srq_set_limit.
 */
#define VARS 2
#define PROCS 4
#define LIMIT 0
#define WORD 1 /* DOCK_ATTN_LIMIT of the queue's attention */
#include "weak.pml"

#define RECEIVES 2

bool ended, at_it;
byte ci, told, set, finished;
bool owed; /* a receive was taken below a limit that had been set, and nobody was told */

proctype initiator(byte me) /* claim of message.c */
{
    byte left, limit, word;

#ifdef LOOK_FIRST
    load(LIMIT, limit);
#endif
    atomic { ORDERED -> ci++; left = RECEIVES - ci; owed = owed || mem[LIMIT] > left }; /* dock_rq_take_for */
#ifndef LOOK_FIRST
    load(LIMIT, limit);
#endif
    if
    :: limit > left -> /* tell_low */
        load(WORD, word);
        if
        :: !word -> atomic { ORDERED -> mem[WORD] = 1 }
#ifdef FORGET
        :: word -> store(WORD, 0)
#else
        :: word
#endif
        fi
    :: else
    fi;
    finished++
}

inline tell_limit()
{
#ifdef LOOK_NOT_SWAP
    load(LIMIT, limit);
    if
    :: limit -> store(LIMIT, 0); told++; owed = false
    :: else
    fi
#else
    atomic { ORDERED -> limit = mem[LIMIT]; mem[LIMIT] = 0; told = told + (limit > 0); owed = owed && !limit }
#endif
}

inline attend()
{
    load(WORD, word);
    if
    :: word ->
#ifndef CLEAR_LATE
        atomic { ORDERED -> mem[WORD] = 0 };
#endif
        tell_limit();
#ifdef CLEAR_LATE
        atomic { ORDERED -> mem[WORD] = 0 };
#endif
        assert(told <= set)
    :: else
    fi
}

proctype engine(byte me)
{
    byte word, limit;

end:
    do
    :: atomic { mem[WORD] -> at_it = true }; attend(); at_it = false
    od
}

proctype ender(byte me) /* dock_attend_limit */
{
    byte word, limit;

    attend();
    ended = true
}

proctype owner(byte me) /* dock_srq_set_limit, and once more when it was told */
{
    atomic { set = 1; place(LIMIT, 2) };
    told == 1 || finished == 2;
    atomic { set = 2; place(LIMIT, 2) }
}

init
{
    atomic {
        run initiator(0);
        run initiator(0);
        run engine(1);
        run ender(2);
        run owner(3)
    }
    finished == 2 && ended && mem[WORD] == 0 && !at_it && delayed[3] == 0;
    assert(told <= set && !owed)
}
