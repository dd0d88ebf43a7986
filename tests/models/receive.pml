/* SPDX-License-Identifier: MIT
 * The claim of a receive (src/ring/rqring.c, src/device/fail.c): two initiators take receives from one queue of a
 * third process; the first may be killed anywhere. The owner, told of the death, flushes what the dead one took and
 * did not complete, while its program polls. Whatever happens, each receive completes exactly once.
 *
 * switches: CLAIM_LATE NO_CLAIM NO_POSTED_CHECK NO_COMPLETED_CHECK POLL_KEEPS_CLAIM NO_CONSUMER_LOCK
 *   CLAIM_LATE          the claim is written after the consumer index has moved
 *   NO_CLAIM            there are no claims
 *   NO_POSTED_CHECK     the owner flushes a claimed receive that is still in the queue
 *   NO_COMPLETED_CHECK  ... or one whose completion stands in the CQ
 *   POLL_KEEPS_CLAIM    a polled completion leaves its claim
 *   NO_CONSUMER_LOCK    the owner looks for the completion while the program polls
 */
#define VARS 2
#define PROCS 4
#define CLAIM 0 /* and 1: two receives, taken in order */
#include "weak.pml"

#define RECEIVES 2

byte ci, ci_holder;       /* the consumer index word: 0 free, else thread + 1 */
byte cq_lock;             /* of the CQ's consumers: poller and repair */
bool cqe[RECEIVES];       /* a completion that was not polled */
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

#ifdef NO_CONSUMER_LOCK
#define FREE true
#else
#define FREE (cq_lock == 0)
#endif

inline lock_cq()
{
    atomic { FREE && ORDERED -> cq_lock = 1 }
}

inline unlock_cq()
{
    atomic { ORDERED -> cq_lock = 0 }
}

proctype poller(byte me)
{
    byte n;

end:
    do
    :: cqe[0] || cqe[1] ->
        lock_cq();
        n = (cqe[0] -> 0 : 1);
        if
        :: cqe[n] ->
            cqe[n] = false;
#ifndef POLL_KEEPS_CLAIM
            store(CLAIM + n, 0);
#endif
        :: else
        fi;
        unlock_cq()
    od
}

inline repair(n)
{
    load(CLAIM + n, claim);
    if
    :: claim == 1 ->
        store(CLAIM + n, 0);
        if
#ifndef NO_POSTED_CHECK
        :: ci <= n /* it is still in the queue: somebody else will take it */
#endif
#ifndef NO_COMPLETED_CHECK
        :: ci > n && cqe[n]
        :: ci > n && !cqe[n] -> complete(n)
#else
        :: ci > n -> complete(n)
#endif
#ifdef NO_POSTED_CHECK
        :: ci <= n -> complete(n)
#endif
        fi
    :: else
    fi
}

proctype owner(byte me)
{
    byte claim;

    finished;
    if
    :: dead ->
        delayed[0] == 0;
        lock_ci();
        lock_cq();
        repair(0);
        repair(1);
        unlock_cq();
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
        run owner(3)
    }
    repaired && ci == RECEIVES && (completed[0] && completed[1])
}
