/* SPDX-License-Identifier: MIT
 * Taking memory away from those who work in it (src/device/quiesce.c, src/fabric/host/connect.c): the initiator shows
 * its hazard, looks whether the key is good, works, and lowers the hazard; the owner makes the key bad, runs the heavy
 * fence and waits until every odd hazard has moved. After that no byte moves. The initiator's fence is one that only
 * the compiler sees: the owner's membarrier stands for both.
 *
 * switches: NO_LIGHT_FENCE NO_HEAVY_FENCE UNORDERED_LEAVE NO_WAIT LOOK_FIRST
 *   NO_LIGHT_FENCE   the compiler may move the look before the hazard
 *   NO_HEAVY_FENCE   the owner runs a full fence of its own instead
 *   UNORDERED_LEAVE  the hazard may be visibly down before the last byte is written
 *   NO_WAIT          the owner does not wait
 *   LOOK_FIRST       the owner looks at the hazard before the key is bad
 *
 * pairs: arena/port.h: dock_hazard; device/execute.c: perform sent_to_nobody; device/fail.c: dock_qp_fail
 *   error_held suspend; device/straight.h: dock_straight_known dock_straight_leave dock_straight_source;
 *   device/internal.h: dock_sq; device/mcast.c: dock_mcast_send;
 *   device/modify.c: enter; device/qp.c: dock_qp_destroy publish_record; device/quiesce.c: await_own await_peer
 *   dock_quarantine_check dock_quiesce_locked; fabric/direct.h: dock_direct_open dock_direct_enter dock_direct_leave;
 *   fabric/fabric.h: dock_up_enter dock_up_leave; fabric/host/connect.c: answers dock_host_enter dock_host_pick;
 *   fabric/host/map.c: dock_fabric_map; fabric/host/xrc.c: dock_host_enter_shared look; device/local.c: dock_up_local;
 *   device/mr.c: publish_lkey; device/ways.c: show_rest.
 * show_rest publishes what the last leave did, under the token, where that is the leave's own.
 */
#define VARS 3
#define PROCS 2
#define KEY 0    /* 0: good */
#define HAZARD 1 /* odd while the initiator works */
#define BYTES 2  /* of the memory that is taken away */
bool gone;

#define DRAINED(i) assert(!(gone && (i) == BYTES))
#include "weak.pml"

proctype initiator(byte me; byte requests)
{
    byte key, hazard;

    do
    :: requests == 0 -> break
    :: else ->
        requests--;
        hazard++;
#ifdef NO_LIGHT_FENCE
        load(KEY, key);
        store(HAZARD, hazard);
#else
        store(HAZARD, hazard);
        load(KEY, key);
#endif
        if
        :: key == 0 ->
            assert(!gone); /* a READ would be as wrong as a WRITE */
            store(BYTES, 1);
        :: else
        fi;
        hazard++;
#ifdef UNORDERED_LEAVE
        store(HAZARD, hazard);
#else
        release(HAZARD, hazard);
#endif
    od
}

#ifdef NO_WAIT
#define WAITS false
#else
#define WAITS true
#endif

inline wait_for_hazard()
{
    load(HAZARD, hazard);
    if
    :: WAITS && hazard % 2 -> mem[HAZARD] != hazard
    :: else
    fi
}

proctype owner(byte me)
{
    byte hazard;

#ifdef LOOK_FIRST
    wait_for_hazard();
#endif
    store(KEY, 1);
#ifdef NO_HEAVY_FENCE
    fence();
#else
    fence_everywhere();
#endif
#ifndef LOOK_FIRST
    wait_for_hazard();
#endif
    gone = true
}

init
{
    atomic {
        run initiator(0, 2);
        run owner(1)
    }
}
