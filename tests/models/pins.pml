/* SPDX-License-Identifier: MIT
 * Waiting for the last pin of a queue (src/device/lists.c, qp.c): who takes a queue off the list pins it under the list's
 * lock, runs it, which may put it on the list again, and drops the pin; who destroys the queue takes it off the list
 * and looks at the pins under the lock, until there is none. After that nobody touches it. Counters of users, of events
 * that were not acknowledged and of bound objects are the same with one look instead of a wait.
 *
 * switches: NO_PIN PIN_LATE NO_WAIT UNORDERED_DROP LOOK_OUTSIDE NO_REMOVE
 *   NO_PIN          a queue that is taken off the list is not pinned
 *   PIN_LATE        ... or not before the list's lock is let go
 *   NO_WAIT         the destroyer does not look at the pins
 *   UNORDERED_DROP  a pin may be visibly dropped before the last store to the queue
 *   LOOK_OUTSIDE    ... looks at them when it has let the lock go, and takes the queue off the list once more
 *   NO_REMOVE       the queue is not taken off the list
 *
 * pairs: device/attend.c: dock_attend; device/fatal.c: dock_dev_bury_queues; device/lists.c: dock_lists_remove
 *   dock_ready_push dock_waiting_push dock_waiting_run run_pinned; device/qp.c: wait_unpinned; device/raw.c:
 *   dock_raw_watch; device/retire.c: dock_up_finish; device/ways.c: dock_ways_check.
 */
#define VARS 2
#define PROCS 3
#define PINS 0
#define BYTES 1 /* of the queue */
bool gone;

#define DRAINED(i) assert(!(gone && (i) % 2 == BYTES && (i) / 2 != 2))
#include "weak.pml"

bool locked, listed;
byte runs;

inline lock()
{
    atomic { !locked && ORDERED -> locked = true }
}

inline unlock()
{
    atomic { ORDERED -> locked = false }
}

inline pin()
{
#ifndef NO_PIN
    atomic { ORDERED -> mem[PINS] = mem[PINS] + 1 }
#endif
    skip
}

proctype taker(byte me) /* dock_ready_run, dock_waiting_run; the same with dev->lock: dock_attend, dock_ways_check */
{
    bool got;

    lock();
    got = listed;
    listed = false;
    if
    :: got ->
        assert(!gone);
#ifndef PIN_LATE
        pin();
#endif
        unlock();
#ifdef PIN_LATE
        pin();
#endif
        assert(!gone);
        store(BYTES, 1); /* dock_sq_ring */
        if
        :: runs < 1 -> /* it is busy: left to others */
            runs++;
            lock();
            listed = true;
            unlock()
        :: true
        fi;
#ifdef NO_PIN
        skip
#else
#ifdef UNORDERED_DROP
        atomic { mem[PINS] = mem[PINS] - 1 }
#else
        atomic { ORDERED -> mem[PINS] = mem[PINS] - 1 }
#endif
#endif
    :: else -> unlock()
    fi
}

inline look()
{
    pins = mem[PINS];
#ifdef NO_WAIT
    pins = 0
#endif
}

proctype destroyer(byte me) /* dock_lists_remove by wait_unpinned */
{
    byte pins = 1;

    do
    :: pins == 0 -> break
    :: else ->
        lock();
#ifndef NO_REMOVE
        listed = false;
#endif
#ifdef LOOK_OUTSIDE
        unlock();
        look();
        lock();
        listed = false;
        unlock()
#else
        look();
        unlock()
#endif
    od;
    gone = true
}

init
{
    atomic {
        listed = true;
        run taker(0);
        run taker(1);
        run destroyer(2)
    }
}
