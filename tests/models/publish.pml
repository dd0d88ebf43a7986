/* SPDX-License-Identifier: MIT
 * One word tells of others: what it stands for is written, then the word is published; who acquires the word and finds
 * the new value reads all of it. Most labelled pairs of the device are this one and nothing more.
 *
 * switches: UNORDERED_PUBLISH UNORDERED_LOOK WORD_FIRST NO_LOOK
 *   UNORDERED_PUBLISH  the word is stored, not published
 *   UNORDERED_LOOK     the reader may read what the word stands for before the word
 *   WORD_FIRST         the word is written before what it stands for
 *   NO_LOOK            the reader does not look at the word
 *
 * pairs: arena/adopt_change.c: dock_adopt_fork_begins dock_adopt_hook enter; arena/adopt_stop_ptrace.c: tell;
 *   arena/adopt_stop_signal.c: answers let_go note_facts park;
 *   arena/domains.c: held; arena/idtable.c: dock_idtable_evict; arena/idtable.h: dock_idrec_evicted; base/log.c:
 *   dock_log_set_sink put; base/order.h: dock_fence_store; device/dev.c: make_port; device/engine.c: dock_engine_stop;
 *   device/identity.c: dock_identity;
 *   device/straight.h: dock_straight_known dock_straight_source; device/run.h: dock_sq_tell; device/ids.c:
 *   make_block; device/local.c: dock_up_local; device/mark.c: dock_qp_flush; device/mr.c: publish_lkey;
 *   device/poll.c: take_mark; device/raw.c: dock_raw_check_fetched take_direct; device/repair.c: free_hazards;
 *   device/retire.c: dock_sq_reap dock_up_finish; device/rq.c: dock_recv_end; device/sq.h: dock_sq_post
 *   dock_spin_unlock; fabric/host/send.c: read_ahead; ring/rqring.c: dock_rq_take_for; device/peers.c: end_relays;
 *   face/shmem/job.c: osh_job_check osh_job_meet osh_job_publish; face/shmem/lock.c: wait_link; face/shmem/near.h:
 *   osh_near_signal; face/shmem/post.c: wait_executed; face/shmem/sync.c: counted_round epoch_round;
 *   face/shmem/until.c: load shmem_signal_fetch; face/urma/log.c: urma_register_loc_log_func urma_register_log_func
 *   urma_unregister_log_func; face/urma/target.c: set_peer; face/urma/urma_face.h: ur_peer; launch/oshrun.c: end_job
 *   ended; preload/memory.c: hooks; ring/page.h: dock_note.
 */
#define VARS 3
#define PROCS 2
#define WORD 0
#define FIRST 1
#define SECOND 2
#include "weak.pml"

proctype writer(byte me) /* dock_publish32, dock_publish64 */
{
#ifdef WORD_FIRST
    release(WORD, 1);
#endif
    store(FIRST, 1);
    store(SECOND, 1);
#ifdef UNORDERED_PUBLISH
    store(WORD, 1)
#else
    release(WORD, 1)
#endif
}

proctype reader(byte me) /* dock_acquire32, dock_acquire64 */
{
    byte word, first, second;

#ifdef UNORDERED_LOOK
    load(SECOND, second);
#endif
    load(WORD, word);
    load(FIRST, first);
#ifndef UNORDERED_LOOK
    load(SECOND, second);
#endif
#ifdef NO_LOOK
    word = 1;
#endif
    assert(!word || (first && second))
}

init
{
    atomic {
        run writer(0);
        run reader(1)
    }
}
