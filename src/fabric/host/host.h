// SPDX-License-Identifier: MIT
// The host fabric: the initiator does all the work in the target's arena. Internal to src/fabric.
#ifndef DOCK_FABRIC_HOST_H
#define DOCK_FABRIC_HOST_H

#include "fabric/direct.h"

// ---- connect.c

int dock_host_connect(struct dock_conn *c);
void dock_host_disconnect(struct dock_conn *c);
// Reach a device and none of its queues; ended by dock_host_disconnect. 0; -errno.
int dock_host_visit(struct dock_conn *c);
// The record of a queue in its owner's arena. NULL: that block of numbers is not the owner's.
struct dock_qrec *dock_host_find(struct dock_peer *peer, uint32_t id);

// Show that we work in the target's memory, then look whether the queue answers us. false: nobody there
// (the hazard is lowered again). Left by dock_direct_leave. `begun`: only the queue where it began will do.
bool dock_host_enter(struct dock_conn *c, bool begun);

uint32_t dock_host_pick(struct dock_conn *c, uint32_t hint);

// The two halves of it that XRC's shared queues need apart.
void dock_host_meet(struct dock_conn *c);
bool dock_host_open_views(struct dock_conn *c);

// Tell the target's engine what we found wrong, or that something happened.
void dock_host_attention(struct dock_conn *c, uint32_t why);
void dock_host_attend(struct dock_conn *c, uint32_t why); // the same of the queue at the end of this very way

// A responder refuses a READ or an atomic for which it has no resources left (ibv_modify_qp(3),
// max_dest_rd_atomic): Invalid Request.
static inline bool dock_host_overtaxed(struct dock_conn *c, const struct dock_xfer *x)
{
    return c->service == DOCK_RC && !x->done &&
           x->outstanding >= dock_peek32(&dock_conn_target(c)->queue->rd_atomic);
}

// ---- xrc.c

// Enter the memory of the shared queue at the end of `c`. DOCK_OK: left by dock_direct_leave. Nothing is
// held: DOCK_ST_REM_INV_REQ: there is none of that number in the target's domain; DOCK_ST_RETRY_EXC: the one
// where the message was begun is gone.
uint32_t dock_host_enter_shared(struct dock_conn *c, bool begun);
// A request on the way to a shared queue, or (via NULL) to none that anybody has.
enum dock_go dock_host_start_shared(struct dock_conn *c, struct dock_xfer *x);

// ---- keys.c

// What the place held is looked up anew.
static inline void dock_host_forget(struct dock_rkey *k)
{
    k->rec = NULL;
    k->writes = DOCK_RKEY_NONE;
}

// Find the remote key and check rights and bounds. Statuses as the requester sees them.
uint32_t dock_host_rkey(struct dock_conn *c, uint32_t tid, uint32_t token, uint64_t va, uint64_t len,
                        uint32_t need, const struct dock_rkey **out);

// The same of a segment that no queue asks for: its domain is not looked at.
uint32_t dock_host_bare_rkey(struct dock_conn *c, uint32_t tid, uint32_t token, uint64_t va, uint64_t len,
                             uint32_t need, const struct dock_rkey **out);
// A piece of the table of a segment; false: it does not hold together.
bool dock_host_piece(const struct dock_segpiece *from, struct dock_piece *out);
// The number of the entry that was found.
uint32_t dock_host_tid(struct dock_conn *c, const struct dock_rkey *k);

// The local key of a receive of the target.
bool dock_host_lkey(struct dock_conn *c, uint32_t key, uint64_t va, uint64_t len,
                    const struct dock_rkey **out);

// The entry of a type 2 window that is bound to the target queue under `key`; NULL if there is none. Only
// such a key may be invalidated from outside.
struct dock_segrec *dock_host_window(struct dock_conn *c, uint32_t key);

// The same of a segment as URMA names it.
struct dock_segrec *dock_host_segment(struct dock_conn *c, uint32_t tid, uint32_t token);

// ---- copy.c

#define DOCK_NOBODY ((pid_t)-1) // what goes there is gone

struct dock_place {
    char *at;       // direct, or NULL
    uint64_t plain; // address in the process `pid`
    pid_t pid;
    const struct dock_rkey *key; // NULL: memory of our own, as long as needed
    uint64_t va, room;           // as the key names it; bytes from here on that are reached the same way
};

// The cold half: another part of the segment than the last one, or one that is plain.
struct dock_place dock_host_seek(struct dock_conn *c, const struct dock_rkey *k, uint64_t va);

static inline struct dock_place dock_host_place(struct dock_conn *c, const struct dock_rkey *k, uint64_t va)
{
    uint64_t inside = va - k->mapped;

    if (__builtin_expect(inside < k->room, 1))
        return (struct dock_place){.at = k->base + inside, .key = k, .va = va, .room = k->room - inside};
    return dock_host_seek(c, k, va);
}

// Move n bytes of x's local data, from x->done on, to (or from) a remote place. 0 or a status.
uint32_t dock_host_move(struct dock_conn *c, struct dock_xfer *x, struct dock_place remote, uint32_t n,
                        bool to_remote);
// What a failed copy to or from the target's plain memory means: it refused, or its process is gone.
uint32_t dock_host_fault(int err);
// One aligned word, or any bytes, of our own into a remote place.
uint32_t dock_host_put(struct dock_conn *c, struct dock_place *remote, const void *from, uint32_t n);

// ---- one per kind of request; all are called inside enter/leave

enum dock_go dock_host_onesided(struct dock_conn *c, struct dock_xfer *x);
enum dock_go dock_host_atomic(struct dock_conn *c, struct dock_xfer *x);
// What a WRITE_ADD adds when its data is there.
uint32_t dock_host_add(struct dock_conn *c, const struct dock_xfer *x);
enum dock_go dock_host_message(struct dock_conn *c, struct dock_xfer *x);
void dock_host_abandon(struct dock_conn *c, struct dock_xfer *x);

// The completion of a receive is published: the event that it fires, and the counters.
void dock_host_arrived(struct dock_conn *c, uint32_t bytes, bool solicited);
void dock_host_dropped(struct dock_conn *c); // counted
// The target's CQ had no room for it; `first`: nobody has told its owner yet. What the requester is told.
uint32_t dock_host_overrun(struct dock_conn *c, bool first);

// The local pieces of a request that sends them: 0 or a status.
uint32_t dock_host_local(struct dock_conn *c, const struct dock_xfer *x);
// A WRITE with immediate was refused: the receive that it would have taken fails with it.
void dock_host_refuse_imm(struct dock_conn *c, struct dock_xfer *x);

// The request itself, inside enter and leave; what the target is told when it was wrong.
enum dock_go dock_host_serve(struct dock_conn *c, struct dock_xfer *x);
void dock_host_blame(struct dock_conn *c, struct dock_xfer *x);
enum dock_go dock_host_start(struct dock_conn *c, struct dock_xfer *x, void *sq);

#endif
