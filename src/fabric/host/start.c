// SPDX-License-Identifier: MIT
// One request, or one piece of it, from the side of the initiator; what the target is told when it was wrong.
#include "base/clock.h"
#include "base/log.h"
#include "fabric/host/host.h"

#define MOVE_LIMITS 10u // so many times the patience with a peer that is stopped

static bool two_sided(const struct dock_xfer *x)
{
    return x->op <= DOCK_OP_SEND_INV;
}

static enum dock_go serve(struct dock_conn *c, struct dock_xfer *x)
{
    if (two_sided(x))
        return dock_host_message(c, x);
    if ((x->op == DOCK_OP_READ || dock_op_is_atomic(x->op)) && dock_host_overtaxed(c, x)) {
        dock_info("queue %u: %u READs and atomics are under way, queue %u takes %u", c->source_qp,
                  x->outstanding, c->dest_qp, dock_peek32(&dock_conn_target(c)->queue->rd_atomic));
        x->status = DOCK_ST_REM_INV_REQ;
        return DOCK_GO_DONE;
    }
    if (dock_op_is_atomic(x->op))
        return dock_host_atomic(c, x);
    enum dock_go go = dock_host_onesided(c, x);
    if (x->op == DOCK_OP_WRITE_IMM && go == DOCK_GO_DONE && x->status == DOCK_OK)
        return dock_host_message(c, x);
    if (x->op == DOCK_OP_WRITE_IMM && go == DOCK_GO_DONE && x->status == DOCK_ST_REM_ACCESS)
        dock_host_refuse_imm(c, x);
    return go;
}

// A responder that finds a request wrong goes to its error state and tells its program.
void dock_host_blame(struct dock_conn *c, struct dock_xfer *x)
{
    if (dock_xfer_lossy(x)) {
        if (x->status == DOCK_ST_REM_ACCESS || x->status == DOCK_ST_REM_INV_REQ)
            x->status = DOCK_OK; // dropped at the target: nobody answers on this service
        return;
    }
    // The target serves others too: one's bad request is not its end.
    if (dock_service_names(c->service) || dock_peek32(&dock_conn_target(c)->queue->peer_id) == DOCK_PEER_ANY)
        return;
    if (x->status == DOCK_ST_REM_ACCESS)
        dock_host_attention(c, DOCK_ATTN_ACCESS);
    else if (x->status == DOCK_ST_REM_INV_REQ && !x->claimed) // else its receive has told: no event beside it
        dock_host_attention(c, DOCK_ATTN_REQUEST);
}

static enum dock_go lost(struct dock_conn *c, struct dock_xfer *x)
{
    if (!dock_xfer_lossy(x))
        return DOCK_GO_NOBODY;
    x->status = dock_host_local(c, x); // it was read, then lost
    x->bytes = x->len;
    return DOCK_GO_DONE;
}

// While pages of a program move, ours or the target's, nobody may touch them at their old place: call again.
// Pairs with the publish in dock_adopt's resume; who raises the word waits for us (dock_quiesce).
static bool pages_move(const struct dock_conn *c)
{
    return dock_acquire32(c->moving) || dock_acquire32(&c->peer->port->moving) & 1;
}

// The word is the peer's: one that stays raised for so long is not waited for, a move takes less.
static enum dock_go await_pages(struct dock_conn *c, struct dock_xfer *x)
{
    uint64_t now = dock_now_ns(), limit = MOVE_LIMITS * c->waiter->stopped_limit_ns;

    if (dock_acquire32(c->moving)) // pairs as in pages_move; our own ends by itself
        c->moving_since_ns = 0;
    else if (!c->moving_since_ns)
        c->moving_since_ns = now;
    if (!c->moving_since_ns || now - c->moving_since_ns < limit)
        return DOCK_GO_MORE;
    dock_info("queue %u: the device of queue %u has said for %llu s that its pages move: not waited for",
              c->source_qp, c->dest_qp, (unsigned long long)(limit / 1000000000u));
    return lost(c, x);
}

enum dock_go dock_host_serve(struct dock_conn *c, struct dock_xfer *x)
{
    if (__builtin_expect(pages_move(c), 0))
        return await_pages(c, x);
    c->moving_since_ns = 0;
    return serve(c, x);
}

enum dock_go dock_host_start(struct dock_conn *c, struct dock_xfer *x, void *sq)
{
    (void)sq; // the host path never finishes later
    if (__builtin_expect(c->xrc, 0))
        return dock_host_start_shared(c, x);
    if (__builtin_expect(dock_peek32(&c->peer->dead), 0) || !dock_host_enter(c, dock_xfer_begun(x)))
        return lost(c, x);
    enum dock_go go = dock_host_serve(c, x);
    if (__builtin_expect(go == DOCK_GO_DONE && x->status, 0))
        dock_host_blame(c, x);
    dock_direct_leave(c);
    return go;
}

const struct dock_fabric dock_fabric_host = {
    .name = "host",
    .connect = dock_host_connect,
    .disconnect = dock_host_disconnect,
    .start = dock_host_start,
    .pick = dock_host_pick,
    .abandon = dock_host_abandon,
    .direct = true,
};
