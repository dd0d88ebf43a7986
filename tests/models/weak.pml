/* SPDX-License-Identifier: MIT
 * Memory as C11 allows it, as far as the models need it. A store is delayed in a place of its thread, one for each
 * word, and reaches memory whenever the drain likes: stores of one thread to different words pass each other, and a
 * later load passes an earlier store. A release store reaches memory after all that were delayed when it was made; a
 * full fence waits until nothing is delayed. Loads happen in the order written; where a model drops an acquire it
 * writes the other order itself. A read-modify-write is one step on memory and, when it orders as a release, waits
 * like a fence. A killed thread's stores still reach memory: its processor had finished those instructions.
 *
 * A model defines VARS (words, at most 7) and PROCS (threads, numbered by the variable `me`), at most 16 places in
 * all or, with PLACES 24, so many, and may define DRAINED(i): a statement done when place i (thread * VARS + word)
 * reaches memory.
 */
#ifndef DRAINED
#define DRAINED(i) skip
#endif

#ifndef PLACES
#define PLACES 16
#endif

byte mem[8];
byte buf[PLACES];
bool held[PLACES];
byte after[PLACES];  /* words of the same thread that must reach memory first, as bits */
byte delayed[6]; /* how many stores of a thread are */
hidden byte scan;

#define PLACE(v) (me * VARS + (v))

inline place(v, x)
{
    buf[PLACE(v)] = x;
    if
    :: held[PLACE(v)]
    :: else -> held[PLACE(v)] = true; delayed[me]++
    fi
}

inline store(v, x)
{
    atomic { place(v, x) }
}

inline release(v, x)
{
    atomic {
        for (scan : 0 .. VARS - 1) {
            if
            :: scan != v && held[PLACE(scan)] -> after[PLACE(v)] = after[PLACE(v)] | (1 << scan)
            :: else
            fi
        }
        place(v, x)
    }
}

inline load(v, r)
{
    atomic {
        if
        :: held[PLACE(v)] -> r = buf[PLACE(v)]
        :: else -> r = mem[v]
        fi
    }
}

#define ORDERED (delayed[me] == 0)

inline fence()
{
    ORDERED
}

/* membarrier: every thread passes through a full fence at some moment of the call. */
inline fence_everywhere()
{
    ORDERED;
    delayed[0] == 0;
    delayed[1] == 0;
    delayed[2] == 0
}

inline reach_memory(i)
{
    mem[(i) % VARS] = buf[i];
    held[i] = false;
    delayed[(i) / VARS]--;
    for (scan : 0 .. VARS - 1) {
        after[(i) / VARS * VARS + scan] = after[(i) / VARS * VARS + scan] & (255 - (1 << ((i) % VARS)))
    }
    DRAINED(i)
}

#define DRAIN(i) :: atomic { held[i] && after[i] == 0 -> reach_memory(i) }

active proctype drain()
{
end:
    do
    DRAIN(0) DRAIN(1) DRAIN(2) DRAIN(3) DRAIN(4) DRAIN(5) DRAIN(6) DRAIN(7) DRAIN(8) DRAIN(9) DRAIN(10) DRAIN(11)
    DRAIN(12) DRAIN(13) DRAIN(14) DRAIN(15)
#if PLACES > 16
    DRAIN(16) DRAIN(17) DRAIN(18) DRAIN(19) DRAIN(20) DRAIN(21) DRAIN(22) DRAIN(23)
#endif
    od
}
