/* SPDX-License-Identifier: MIT
 * Sleep and wake of the engine (src/device/engine.c, src/device/attend.c): two producers leave work and ring the bell
 * only if the engine sleeps. The engine's sleep has no end here, so that a lost wake-up is a deadlock; the real one
 * ends after a second.
 *
 * switches: NO_PRODUCER_FENCE NO_ENGINE_FENCE NO_SECOND_LOOK CLEAR_LATE UNORDERED_FLAG
 *   NO_PRODUCER_FENCE  a producer may load `asleep` before its work is visible
 *   NO_ENGINE_FENCE    the engine may look for work before `asleep` is visible
 *   NO_SECOND_LOOK     the engine sleeps without looking again
 *   CLEAR_LATE         the engine clears `attention` after it has looked at the flags behind it
 *   UNORDERED_FLAG     `attention` may be visible before the flag that it stands for
 *
 * pairs: arena/adopt_stop_signal.c: await_all park; arena/port.h: dock_port; device/attend.c: attend_queue fail_users; device/engine.c: dock_engine_wake
 *   dock_up_attention dock_up_bell sleep_once; device/fail.c: dock_qp_error_for dock_qp_fail; device/poll.c: corrupt;
 *   device/post.c: dock_post_keep; device/raw.c: dock_raw_watch_doorbell forsaken settle;
 *   fabric/host/connect.c: dock_host_attend; fabric/host/message.c: wake_owner.
 * dock_post_keep is a producer (`kept` or the index is its work, the state or `watched` what it looks at), and who ends
 * the watch, or the queue, looks again as the engine does. park is a producer whose swap stands for its fence, and
 * await_all looks behind a swap as the engine does.
 */
#define VARS 4
#define PROCS 3
#define ASLEEP 0
#define ATTENTION 1
#define FLAG 2 /* and 3: of two queues */
#include "weak.pml"

byte bell, done;

proctype producer(byte me; byte queue)
{
    byte asleep;

#ifdef UNORDERED_FLAG
    store(FLAG + queue, 1);
    store(ATTENTION, 1);
#else
    store(FLAG + queue, 1);
    release(ATTENTION, 1);
#endif
#ifndef NO_PRODUCER_FENCE
    fence();
#endif
    load(ASLEEP, asleep);
    if
    :: asleep -> bell++
    :: else
    fi
}

inline look_at(queue)
{
    atomic { ORDERED -> seen = mem[FLAG + queue]; mem[FLAG + queue] = 0 };
    done = done + seen
}

inline turn()
{
    load(ATTENTION, seen);
    if
    :: seen ->
#ifndef CLEAR_LATE
        atomic { ORDERED -> mem[ATTENTION] = 0 };
#endif
        look_at(0);
        look_at(1);
#ifdef CLEAR_LATE
        atomic { ORDERED -> mem[ATTENTION] = 0 };
#endif
    :: else
    fi
}

proctype engine(byte me)
{
    byte seen;

    do
    :: done == 2 -> break
    :: else ->
        turn();
        store(ASLEEP, 1);
#ifndef NO_ENGINE_FENCE
        fence();
#endif
#ifdef NO_SECOND_LOOK
        seen = 0;
#else
        load(ATTENTION, seen);
#endif
        if
        :: seen || done == 2
        :: else -> atomic { bell > 0 -> bell = 0 }
        fi;
        store(ASLEEP, 0)
    od
}

init
{
    atomic {
        run producer(0, 0);
        run producer(1, 1);
        run engine(2)
    }
}
