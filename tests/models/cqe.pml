/* SPDX-License-Identifier: MIT
 * The completion ring (src/ring/cqring.c): two producers of different processes, of which the first may be killed
 * anywhere, and the consumer. The tail word is a lock whose value is the tail; a dead holder's word is taken over, and
 * the owner bit tells the heir whether the entry stands. Whatever happens, the consumer sees whole entries, each once,
 * without a hole. That a holder is dead is learned from the kernel, which has finished its stores by then.
 *
 * switches: NO_HEIR_LOOK UNORDERED_OWNER UNORDERED_LOOK TAIL_FIRST FREE_FIRST
 *   NO_HEIR_LOOK     the heir does not look whether the dead one's entry stands
 *   UNORDERED_OWNER  the owner bit may be visible before the entry
 *   UNORDERED_LOOK   the consumer may read the entry before the owner bit
 *   TAIL_FIRST       the tail moves before the entry is valid
 *   FREE_FIRST       the consumer gives the slot back before it has read the entry
 *
 * pairs: device/cq.c: pass_over; device/poll.c: dock_cq_end; device/rings.c: dock_cq_ring; ring/cqring.c:
 *   has_room; ring/cqring.h: dock_cq_commit dock_cq_look; ring/format.h: dock_cqe.
 */
#define VARS 5
#define PROCS 3
#define DATA 0  /* and 1: two slots */
#define OWNER 2 /* and 3 */
#define CI 4
#include "weak.pml"

#define SLOTS 2
#define BIT(pos) (((pos) / SLOTS) % 2 == 0)

/* The tail word is never delayed here, so it may be seen before the entry that it counts: nobody relies on that. */
byte tail, holder; /* 0: free, else thread + 1 */
bool dead;
byte first, second; /* how many entries of each producer were seen */

#define DYING if :: me == 0 -> dead = true; goto out :: true fi

inline lock_tail()
{
    if
    :: atomic { holder == 0 && ORDERED -> holder = me + 1 }
    :: atomic { holder == 1 && dead && delayed[0] == 0 && ORDERED -> holder = me + 1 };
#ifndef NO_HEIR_LOOK
        load(OWNER + tail % SLOTS, shown);
        if
        :: shown == BIT(tail) -> tail++ /* the entry stands, only the tail is behind */
        :: else
        fi
#endif
    fi
}

inline write_entry(x)
{
    store(DATA + at % SLOTS, x);
    DYING;
#ifdef UNORDERED_OWNER
    store(OWNER + at % SLOTS, BIT(at));
#else
    release(OWNER + at % SLOTS, BIT(at));
#endif
    DYING
}

proctype producer(byte me; byte value; byte count)
{
    byte shown, at, ci;

    do
    :: count == 0 -> break
    :: else ->
        count--;
        lock_tail();
        DYING;
        at = tail;
        do
        :: load(CI, ci);
            if
            :: at - ci < SLOTS -> break
            :: else -> mem[CI] != ci /* the real one gives up with an overrun: not the subject here */
            fi
        od;
#ifdef TAIL_FIRST
        tail = at + 1;
        DYING;
        write_entry(value);
#else
        write_entry(value);
        tail = at + 1;
        DYING;
#endif
        holder = 0;
        value++
    od;
out:
    skip
}

inline got(x)
{
    if
    :: x == 10 -> first++
    :: x == 20 && second == 0 -> second = 1
    :: x == 21 && second == 1 -> second = 2
    :: else -> assert(false) /* torn, old, twice, or out of order */
    fi;
    assert(first <= 1)
}

#define VALID (mem[OWNER + ci % SLOTS] == BIT(ci))

proctype consumer(byte me)
{
    byte ci, data;

    do
    :: second == 2 && (first == 1 || dead) -> break
    :: else ->
#ifdef UNORDERED_LOOK
        load(DATA + ci % SLOTS, data);
#endif
        if
        :: VALID ->
#ifdef FREE_FIRST
            release(CI, ci + 1);
#endif
#ifndef UNORDERED_LOOK
            load(DATA + ci % SLOTS, data);
#endif
            got(data);
            ci++;
            release(CI, ci)
        :: !VALID -> VALID || (second == 2 && dead)
        fi
    od
}

init
{
    atomic {
        mem[OWNER] = !BIT(0);
        mem[OWNER + 1] = !BIT(1);
        run producer(0, 10, 1);
        run producer(1, 20, 2);
        run consumer(2)
    }
}
