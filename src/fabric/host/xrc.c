// SPDX-License-Identifier: MIT
// XRC: the target queue keeps the connection, and each request names the shared receive queue that it is for,
// whose domain is also that of the memory it may reach (IBTA vol 1, annex A14). The two may belong to two
// processes: a request shows itself in the memory of both.
#include "base/log.h"
#include "fabric/host/host.h"

static uint32_t look(struct dock_conn *c, bool begun)
{
    uint32_t serial = dock_acquire32(&c->queue->serial);

    if (dock_acquire32(&c->queue->state) == DOCK_GONE) // pairs with the publish in dock_qp_destroy
        return begun ? DOCK_ST_RETRY_EXC : DOCK_ST_REM_INV_REQ;
    if (__builtin_expect(c->views && serial == c->serial, 1))
        return DOCK_OK;
    if (begun)
        return DOCK_ST_RETRY_EXC;
    dock_host_meet(c);
    if (!dock_host_open_views(c))
        return DOCK_ST_REM_INV_REQ;
    c->views = c->cookie == c->via->cookie; // the domain
    if (!c->views)
        dock_info("queue %u: shared receive queue %u is of another domain than the target queue",
                  c->source_qp, c->dest_qp);
    return c->views ? DOCK_OK : DOCK_ST_REM_INV_REQ;
}

uint32_t dock_host_enter_shared(struct dock_conn *c, bool begun)
{
    uint32_t status;

    if (__builtin_expect(dock_peek32(&c->peer->dead), 0))
        return begun ? DOCK_ST_RETRY_EXC : DOCK_ST_REM_INV_REQ;
    dock_set64(&c->hazard->busy, ++c->hazard_value);
    dock_fence_light(); // pairs with dock_fence_heavy in dock_quiesce: show the hazard, then look
    status = look(c, begun);
    if (__builtin_expect(status, 0))
        dock_direct_leave(c);
    return status;
}

// The target is not there any more, and who has the shared queue waits for the receive.
static enum dock_go broken(struct dock_conn *c, struct dock_xfer *x)
{
    if (!x->claimed)
        return DOCK_GO_NOBODY;
    dock_host_abandon(c, x);
    x->claimed = false;
    x->broken = true;
    return DOCK_GO_NOBODY;
}

static enum dock_go serve(struct dock_conn *c, struct dock_xfer *x)
{
    enum dock_go go;

    x->status = c->via ? dock_host_enter_shared(c, dock_xfer_begun(x)) : DOCK_ST_REM_INV_REQ;
    if (x->status == DOCK_ST_RETRY_EXC)
        return DOCK_GO_NOBODY;
    if (x->status)
        return DOCK_GO_DONE;
    go = dock_host_serve(c, x);
    dock_direct_leave(c);
    return go;
}

enum dock_go dock_host_start_shared(struct dock_conn *c, struct dock_xfer *x)
{
    struct dock_conn *target = dock_conn_target(c);
    enum dock_go go;

    if (x->broken)
        return DOCK_GO_NOBODY;
    if (__builtin_expect(dock_peek32(&target->peer->dead), 0) || !dock_host_enter(target, dock_xfer_begun(x)))
        return broken(c, x);
    go = serve(c, x);
    if (__builtin_expect(go == DOCK_GO_DONE && x->status, 0))
        dock_host_blame(c, x);
    dock_direct_leave(target);
    return go;
}
