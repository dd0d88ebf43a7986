/* SPDX-License-Identifier: MIT
 * The slots of a send queue (src/device/post.c, poll.c, mark.c, retire.c, run.c): the poster fills a slot and its id and
 * publishes the doorbell; who runs the queue reads the slot and completes it; the poller reads the id and publishes how
 * far it has freed; the poster uses a slot again when that covers it. Three requests in a ring of two.
 *
 * switches: UNORDERED_DOORBELL NO_ROOM_LOOK FREE_FIRST RUN_FREES UNORDERED_RUN
 *   UNORDERED_DOORBELL  the doorbell may be visible before the slot
 *   NO_ROOM_LOOK        the poster does not look at `freed`
 *   FREE_FIRST          the poller frees the slot, then reads its id
 *   RUN_FREES           the slot is free when the request is begun, not when it is polled
 *   UNORDERED_RUN       the runner may read the slot before the doorbell
 *
 * pairs: device/fast.c: settle; device/internal.h: dock_sq_rung; device/mark.c: take_out; device/place.c: end_placed; device/poll.c: take_send;
 *   device/post.c: dock_sq_raise move_head publish; device/retire.c: dock_sq_retire; device/rings.c: dock_qp_ring
 *   dock_srq_ring; device/rq.c: dock_rq_clear give_number take_number; device/run.c: dock_sq_clear.
 */
#define VARS 5
#define PROCS 3
#define SLOT 0 /* and 1: the request, and what it was given as id */
#define DB 2
#define CQE 3 /* how many are completed (a whole ring: cqe.pml) */
#define FREED 4
#include "weak.pml"

#define SLOTS 2
#define REQUESTS 3

proctype poster(byte me)
{
    byte pi, freed;

    do
    :: pi == REQUESTS -> break
    :: else ->
        load(FREED, freed); /* dock_slot_room */
#ifdef NO_ROOM_LOOK
        freed = pi;
#endif
        if
        :: pi - freed < SLOTS ->
            store(SLOT + pi % SLOTS, pi + 10); /* dock_post_put */
            pi++;
#ifdef UNORDERED_DOORBELL
            store(DB, pi)
#else
            release(DB, pi) /* dock_post_end */
#endif
        :: else -> mem[FREED] != freed
        fi
    od
}

proctype runner(byte me)
{
    byte exec, pi, slot;

    do
    :: exec == REQUESTS -> break
    :: else ->
#ifdef UNORDERED_RUN
        load(SLOT + exec % SLOTS, slot);
#endif
        load(DB, pi); /* budget */
        if
        :: pi > exec ->
#ifdef RUN_FREES
            release(FREED, exec + 1);
#endif
#ifndef UNORDERED_RUN
            load(SLOT + exec % SLOTS, slot); /* dock_sq_fetch */
#endif
            assert(slot == exec + 10);
            exec++;
            release(CQE, exec) /* dock_sq_retire */
        :: else -> mem[DB] > exec
        fi
    od
}

proctype poller(byte me)
{
    byte freed, done, id;

    do
    :: freed == REQUESTS -> break
    :: else ->
        load(CQE, done); /* dock_cq_look */
        if
        :: done > freed ->
#ifdef FREE_FIRST
            release(FREED, done);
#endif
            load(SLOT + (done - 1) % SLOTS, id); /* take_send */
            assert(id == done + 9);
            freed = done;
            release(FREED, freed)
        :: else -> mem[CQE] > freed
        fi
    od
}

init
{
    atomic {
        run poster(0);
        run runner(1);
        run poller(2)
    }
}
