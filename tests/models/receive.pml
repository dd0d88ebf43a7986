/* SPDX-License-Identifier: MIT
 * The claim of a receive (src/ring/rqring.c, src/device/fail.c): two initiators take receives from one queue of a
 * third process; the first may be killed anywhere. The owner's engine, told of the death, flushes what the dead one
 * took and did not complete, while the owner's program polls without asking it. Whatever happens, each receive
 * completes exactly once. A completion that was polled may be overwritten in the ring at any time after.
 *
 * switches: CLAIM_LATE NO_CLAIM NO_POSTED_CHECK NO_COMPLETED_CHECK POLL_KEEPS_NUMBER UNORDERED_POLL STORE_NOT_SWAP
 *   CLAIM_LATE          the claim is written after the consumer index has moved
 *   NO_CLAIM            there are no claims
 *   NO_POSTED_CHECK     the engine flushes a claimed receive that is still in the queue
 *   NO_COMPLETED_CHECK  ... or one whose completion stands in the CQ
 *   POLL_KEEPS_NUMBER   a poll does not give the receive's number back
 *   UNORDERED_POLL      the CQ's consumer index may be visible before the number is back
 *   STORE_NOT_SWAP      the engine marks the number as told by a plain store
 *
 * What a post publishes, and a number that is posted again, are not in it: publish.pml has the first.
 *
 * pairs: device/fail.c: claimed; device/rq.c: give_back; fabric/host/message.c: take_held;
 *   fabric/host/send.c: take; ring/rqring.c: dock_rq_take_for.
 */
#define VARS 6
#define PLACES 24
#define PROCS 4
#define CLAIM 0  /* and 1: two receives, taken in order */
#define POLLED 2 /* and 3: the CQ's consumer index has passed the completion */
#define NUMBER 4 /* and 5: of the receive, the owner's own: 0 out, 1 back, 2 told as flushed */
#include "weak.pml"

#define RECEIVES 2

byte ci, ci_holder;       /* the consumer index word: 0 free, else thread + 1 */
bool cqe[RECEIVES];       /* the completion was written */
byte completed[RECEIVES]; /* how often */
bool dead, finished, repaired;

#define DYING if :: me == 0 -> dead = true; goto out :: true fi

inline complete(n)
{
    atomic { completed[n]++; assert(completed[n] == 1); cqe[n] = true }
}

inline lock_ci()
{
    if
    :: atomic { ci_holder == 0 && ORDERED -> ci_holder = me + 1 }
    :: atomic { ci_holder == 1 && dead && delayed[0] == 0 && ORDERED -> ci_holder = me + 1 }
    fi
}

inline unlock_ci()
{
    atomic { ORDERED -> ci_holder = 0 }
}

proctype initiator(byte me; byte most)
{
    byte n;

    do
    :: most == 0 -> break
    :: else ->
        most--;
        lock_ci();
        DYING;
        n = ci;
        if
        :: n == RECEIVES -> unlock_ci(); break
        :: else
        fi;
#if !defined(CLAIM_LATE) && !defined(NO_CLAIM)
        release(CLAIM + n, me + 1);
        DYING;
#endif
        atomic { ORDERED -> ci = n + 1; ci_holder = 0 }; /* one store: the index is the value of the lock word */
        DYING;
#if defined(CLAIM_LATE)
        release(CLAIM + n, me + 1);
        DYING;
#endif
        complete(n);
        DYING
    od;
out:
    if
    :: me == 0 -> finished = true
    :: else
    fi
}

proctype poller(byte me)
{
    bool seen[RECEIVES];
    byte n;

end:
    do
    :: (cqe[0] && !seen[0]) || (cqe[1] && !seen[1]) ->
        n = (cqe[0] && !seen[0] -> 0 : 1);
        seen[n] = true;
#ifndef POLL_KEEPS_NUMBER
        store(NUMBER + n, 1);
#endif
#ifdef UNORDERED_POLL
        store(POLLED + n, 1)
#else
        release(POLLED + n, 1)
#endif
    od
}

/* Is the completion found? Not if the consumer index had passed it, and perhaps not if it has passed it since. */
inline search(n)
{
    if
    :: cqe[n] && !polled[n] -> found = true
    :: !cqe[n] || polled[n] || mem[POLLED + n] -> found = false
    fi
}

inline repair(n)
{
    load(CLAIM + n, claim);
    load(NUMBER + n, number);
    if
    :: claim == 1 && number == 0 ->
        posted = ci <= n;
#ifdef NO_COMPLETED_CHECK
        found = false;
#else
        search(n);
#endif
#ifdef NO_POSTED_CHECK
        posted = false;
#endif
        if
        :: !posted && found
#ifdef STORE_NOT_SWAP
        :: else -> store(NUMBER + n, 2); swapped = true
#else
        :: else ->
            atomic {
                ORDERED -> swapped = (mem[NUMBER + n] == number);
                mem[NUMBER + n] = (swapped -> 2 : mem[NUMBER + n])
            }
#endif
        fi;
        if
        :: swapped && !posted -> complete(n)
        :: else
        fi;
        swapped = false
    :: else
    fi
}

proctype engine(byte me)
{
    bool polled[RECEIVES], posted, found, swapped;
    byte claim, number;

    finished;
    if
    :: dead ->
        delayed[0] == 0;
        lock_ci();
        load(POLLED, polled[0]);
        load(POLLED + 1, polled[1]);
        repair(0);
        repair(1);
        unlock_ci()
    :: else
    fi;
    repaired = true
}

init
{
    atomic {
        run initiator(0, 1);
        run initiator(1, RECEIVES + 1);
        run poller(2);
        run engine(3)
    }
    repaired && ci == RECEIVES && (completed[0] && completed[1])
}
