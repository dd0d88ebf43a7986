/* SPDX-License-Identifier: MIT
 * The claim of a receive where a queue has one sender (src/fabric/host/send.c): it writes the claim and then moves the
 * consumer index by one swap, without holding it; it may be killed anywhere. The engine of the queue's owner, told of
 * the death, flushes what was taken and not completed. The owner may take the queue to its error state: when nobody is
 * in its memory any more it flushes what was claimed, and then what is still posted. Each receive completes once.
 *
 * switches: CLAIM_LATE NO_QUIESCE ANOTHER_SENDER
 *   CLAIM_LATE      the claim is written after the consumer index has moved
 *   NO_QUIESCE      the error state does not wait for who is in the owner's memory
 *   ANOTHER_SENDER  there is another that does the same
 *
 * The poller is in receive.pml, the word in lockword.pml.
 *
 * pairs: device/fail.c: claimed; fabric/host/send.c: take.
 */
#define VARS 5
#define PLACES 24
#define PROCS 4
#define CLAIM 0  /* and 1: two receives, taken in order */
#define NUMBER 2 /* and 3: of the receive: 0 out, 2 told as flushed */
#define INSIDE 4 /* the sender's hazard */
#include "weak.pml"

#define RECEIVES 2

byte ci, ci_holder; /* the consumer index word: 0 free, else thread + 1 */
bool cqe[RECEIVES];
byte completed[RECEIVES]; /* how often */
bool error, dead, finished, repaired, flushed;

#define DYING if :: me == 0 -> dead = true; goto out :: true fi

inline complete(n)
{
    atomic { completed[n]++; assert(completed[n] == 1); cqe[n] = true }
}

inline lock_ci()
{
    atomic { ci_holder == 0 && ORDERED -> ci_holder = me + 1 }
}

inline unlock_ci(v)
{
    atomic { ORDERED -> ci = v; ci_holder = 0 }
}

/* One message: nobody else has moved the index since it was looked at, nor has it now. */
inline take()
{
    n = ci;
    holder = ci_holder;
    taken = false;
    if
    :: holder != 0 || n == RECEIVES
    :: else ->
#ifndef CLAIM_LATE
        store(CLAIM + n, me + 1);
        DYING;
#endif
        atomic { ORDERED -> if :: ci == n && ci_holder == 0 -> ci = n + 1; taken = true :: else fi };
        DYING;
#ifdef CLAIM_LATE
        if
        :: taken -> store(CLAIM + n, me + 1)
        :: else
        fi;
        DYING
#endif
    fi
}

proctype sender(byte me; byte most)
{
    byte n, holder;
    bool taken;

    do
    :: most == 0 -> break
    :: else ->
        most--;
        store(INSIDE, 1);
        fence();
        if
        :: error -> store(INSIDE, 0); break
        :: else
        fi;
        take();
        if
        :: taken -> complete(n)
        :: else
        fi;
        DYING;
        release(INSIDE, 0)
    od;
out:
    if
    :: me == 0 -> finished = true
    :: else
    fi
}

/* The consumer index is held: what was claimed and is neither posted nor completed is flushed. */
inline repair(n)
{
    load(CLAIM + n, claim);
    load(NUMBER + n, number);
    if
    :: claim != 0 && (who == 0 || claim == who) && number == 0 && at > n && !cqe[n] ->
        atomic {
            ORDERED -> swapped = (mem[NUMBER + n] == number);
            mem[NUMBER + n] = (swapped -> 2 : mem[NUMBER + n])
        };
        if
        :: swapped -> complete(n)
        :: else
        fi
    :: else
    fi
}

inline repair_all(whose)
{
    who = whose;
    lock_ci();
    at = ci;
    repair(0);
    repair(1);
    unlock_ci(at)
}

proctype engine(byte me)
{
    bool swapped;
    byte claim, number, who, at;

    finished;
    if
    :: dead -> delayed[0] == 0; repair_all(1)
    :: else
    fi;
    repaired = true
}

proctype owner(byte me)
{
    bool swapped;
    byte claim, number, who, at, inside;

    error = true;
    fence_everywhere();
#ifndef NO_QUIESCE
    do
    :: load(INSIDE, inside);
        if
        :: inside == 0 -> break
        :: dead && delayed[0] == 0 -> break
        :: else
        fi
    od;
#endif
    repair_all(0);
    do
    :: lock_ci();
        at = ci;
        if
        :: at == RECEIVES -> unlock_ci(at); break
        :: else -> store(CLAIM + at, 0); unlock_ci(at + 1); complete(at)
        fi
    od;
    flushed = true
}

init
{
    atomic {
        run sender(0, RECEIVES);
        run engine(2);
#ifdef ANOTHER_SENDER
        run sender(1, RECEIVES);
#endif
        run owner(3)
    }
    repaired && flushed && completed[0] && completed[1]
}
