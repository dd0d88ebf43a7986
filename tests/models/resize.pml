/* SPDX-License-Identifier: MIT
 * A completion queue gets a new ring (src/ring/cqring.c): its owner holds the tail word, carries what stands there over,
 * changes the record between an odd and an even epoch, publishes where its consumer stands and lets go. A producer finds
 * the epoch changed under the tail word and reads the record anew; who opens a view holds no word and keeps only what
 * held together. Whoever knows the epoch of the new ring writes there, and nothing that was published is lost.
 *
 * switches: NO_REFRESH NO_WORD UNORDERED_EPOCH UNORDERED_RECORD NO_SUM CARRY_FIRST
 *   NO_REFRESH        a producer does not look at the epoch
 *   NO_WORD           the owner changes the record without the tail word
 *   UNORDERED_EPOCH   the even epoch may be visible before the record
 *   UNORDERED_RECORD  who opens a view may read the record before the epoch
 *   NO_SUM            ... and does not look whether the record holds together
 *   CARRY_FIRST       the entries are moved before the word is taken
 *
 * pairs: device/fail.c: completed_held; ring/cqring.c: dock_cqring_move dock_cqview_open read_record refresh;
 *   ring/cqring.h: dock_cq_open.
 */
#define VARS 5
#define PROCS 3
#define EPOCH 0
#define RING 1  /* of the record: 0 the old ring, 1 the new one */
#define SIZE 2  /* the same: that both agree stands for the sum of the record */
#define ENTRY 3 /* of the producer in the old ring; and 4: in the new one */
#include "weak.pml"

byte holder; /* of the tail word; its release is a read-modify-write and waits for what is delayed */
bool produced, moved;

inline lock()
{
    atomic { holder == 0 && ORDERED -> holder = me + 1 }
}

inline unlock()
{
    atomic { ORDERED -> holder = 0 }
}

inline carry()
{
    load(ENTRY, entry);
    if
    :: entry -> store(ENTRY + 1, entry)
    :: else
    fi
}

proctype owner(byte me) /* dock_cqring_move */
{
    byte entry;

#ifdef CARRY_FIRST
    carry();
#endif
#ifndef NO_WORD
    lock();
#endif
#ifndef CARRY_FIRST
    carry();
#endif
    store(EPOCH, 1);
    fence(); /* dock_fence_store */
    store(RING, 1);
    store(SIZE, 1);
#ifdef UNORDERED_EPOCH
    store(EPOCH, 2);
#else
    release(EPOCH, 2);
#endif
#ifndef NO_WORD
    unlock();
#endif
    ORDERED;
    moved = true
}

proctype producer(byte me) /* dock_cq_produce with a view of the old ring */
{
    byte epoch, ring;

    lock();
#ifndef NO_REFRESH
    load(EPOCH, epoch); /* refresh */
    if
    :: epoch != 0 -> load(RING, ring)
    :: else
    fi;
#endif
    release(ENTRY + ring, 7); /* write_entry */
    unlock();
    produced = true
}

proctype opener(byte me) /* read_record of dock_cqview_open */
{
    byte epoch, ring, size;

#ifdef UNORDERED_RECORD
    load(RING, ring);
    load(SIZE, size);
    load(EPOCH, epoch);
#else
    load(EPOCH, epoch);
    load(RING, ring);
    load(SIZE, size);
#endif
    if
#ifdef NO_SUM
    :: true ->
#else
    :: ring == size ->
#endif
        assert(ring == size);
        assert(epoch != 2 || ring == 1) /* what refresh would take for up to date */
#ifndef NO_SUM
    :: else
#endif
    fi
}

init
{
    atomic {
        run owner(0);
        run producer(1);
        run opener(2)
    }
    moved && produced && delayed[0] == 0 && delayed[1] == 0;
    assert(mem[ENTRY + 1] == 7) /* the consumer polls the new ring */
}
