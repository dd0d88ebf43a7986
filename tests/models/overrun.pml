/* SPDX-License-Identifier: MIT
 * A completion queue that may be overrun (src/device/poll.c, src/ring/cqring.h): the producer writes the next entry and
 * moves the tail, whoever has not polled yet. The consumer copies an entry and keeps the copy if the tail, looked at again,
 * has not passed it by more than the depth. The ring has one entry more than that, which may be being written.
 *
 * switches: LOOK_ONCE UNORDERED_LOOK NO_SPARE UNORDERED_TAIL
 *   LOOK_ONCE       the consumer does not look at the tail again
 *   UNORDERED_LOOK  ... or may do so before it has copied
 *   NO_SPARE        as many count as the ring has entries
 *   UNORDERED_TAIL  an entry may be visible before the tail that gave up the one under it
 *
 * pairs: device/poll.c: take_newest; ring/cqring.c: has_room; ring/cqring.h: dock_cq_oldest.
 */
#define VARS 3
#define PROCS 2
#define ENTRY 0 /* and 1 */
#define TAIL 2
#include "weak.pml"

#define SIZE 2
#ifdef NO_SPARE
#define DEPTH 2
#else
#define DEPTH 1
#endif

proctype producer(byte me) /* dock_cq_produce */
{
    byte at;

    do
    :: at == 4 -> break
    :: else ->
        store(ENTRY + at % SIZE, at + 10); /* write_entry */
        at++;
        release(TAIL, at); /* dock_word_unlock */
#ifndef UNORDERED_TAIL
        fence() /* dock_fence_store in has_room of the next */
#endif
    od
}

proctype consumer(byte me) /* take_newest */
{
    byte at, tail, copy, now;

    mem[TAIL] > 0;
    load(TAIL, tail);
    at = (tail > DEPTH -> tail - DEPTH : 0);
#ifdef UNORDERED_LOOK
    load(TAIL, now);
#endif
    load(ENTRY + at % SIZE, copy);
#ifndef UNORDERED_LOOK
    load(TAIL, now); /* behind dock_fence_load */
#endif
#ifdef LOOK_ONCE
    now = tail;
#endif
    assert(now - at > DEPTH || copy == at + 10)
}

init
{
    atomic {
        run producer(0);
        run consumer(1)
    }
}
