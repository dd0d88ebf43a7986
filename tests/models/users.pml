/* SPDX-License-Identifier: MIT
 * A counter of those who use an object: who is done drops it behind the last thing that it does there; who ends the object
 * looks, and ends it only if nobody uses it. Reads that a fence waits for are counted the same way: their results stand.
 *
 * switches: UNORDERED_DROP DROP_FIRST UNORDERED_LOOK NO_LOOK
 *   UNORDERED_DROP  the drop may be visible before the last store to the object
 *   DROP_FIRST      the drop comes before it
 *   UNORDERED_LOOK  the object may be ended before the counter is looked at
 *   NO_LOOK         nobody looks
 *
 * pairs: device/chan.c: dock_chan_destroy dock_chan_leave dock_cq_owes_acks; device/cq.c: dock_cq_destroy;
 *   device/event.c: acknowledge dock_events_forget dock_qp_owes_acks dock_srq_owes_acks; device/execute.c:
 *   reads_in_flight; device/map.c: dock_seg_mapped; device/qp.c: use; device/rq.c: dock_srq_destroy dock_srq_users; device/window.c: unbind;
 *   face/urma/target.c: bind_to drop urma_unbind_jetty; face/urma/urma_face.h: ur_drop; face/verbs/mr.c:
 *   vb_dealloc_mw; face/verbs/qp_builders.c: let_go; fabric/host/map.c: dock_fabric_unmap.
 */
#define VARS 1
#define PROCS 3
#define BYTES 0 /* of the object */
bool gone;

#define DRAINED(i) assert(!gone)
#include "weak.pml"

byte users = 2;

#ifdef UNORDERED_DROP
#define DROP_ORDERED true
#else
#define DROP_ORDERED ORDERED
#endif

inline drop()
{
    atomic { DROP_ORDERED -> users-- }
}

proctype user(byte me)
{
#ifdef DROP_FIRST
    drop();
    store(BYTES, 1)
#else
    store(BYTES, 1);
    drop()
#endif
}

proctype owner(byte me)
{
    byte seen;

#ifdef UNORDERED_LOOK
    gone = true;
#endif
    seen = users;
#ifdef NO_LOOK
    seen = 0;
#endif
    if
    :: seen == 0 -> gone = true
    :: else /* -EBUSY, or it looks again */
    fi
}

init
{
    atomic {
        run user(0);
        run user(1);
        run owner(2)
    }
}
