// SPDX-License-Identifier: MIT
// XRC: the target queue keeps the connection, and each request names the shared receive queue that it is for,
// whose domain is also that of the memory it may reach (IBTA vol 1, annex A14).
#include "fabric/host/host.h"

static bool open_views(struct dock_conn *c, struct dock_qrec *q, uint32_t id)
{
    struct dock_qrec seen = {
        .kind_service = q->kind_service, .id = q->id, .rq = q->rq, .cq = q->cq, .pd = q->pd};

    if (q->sum != dock_qrec_sum(&seen) || seen.id != id || q->cookie != c->cookie ||
        seen.kind_service != (DOCK_QUEUE_XRC_SRQ << 8 | (uint32_t)c->service))
        return false;
    if (dock_rqview_open(c->peer->view, seen.rq, &c->rq) || dock_cqview_open(c->peer->view, seen.cq, &c->cq))
        return false;
    c->key_pd = seen.pd;
    return true;
}

uint32_t dock_host_xrc(struct dock_conn *c, const struct dock_xfer *x)
{
    struct dock_qrec *q = c->srq && c->taker == x->srq ? c->srq : dock_host_find(c->peer, x->srq);
    uint32_t serial = q ? dock_acquire32(&q->serial) : 0;

    if (!q || dock_acquire32(&q->state) == DOCK_GONE) // pairs with the publish in dock_qp_destroy
        return dock_xfer_begun(x) ? DOCK_ST_RETRY_EXC : DOCK_ST_REM_INV_REQ;
    if (__builtin_expect(q == c->srq && serial == c->srq_serial, 1))
        return DOCK_OK;
    if (dock_xfer_begun(x))
        return DOCK_ST_RETRY_EXC;
    for (unsigned i = 0; i < DOCK_RKEYS; i++) // of another domain
        c->key[i].rec = NULL;
    c->srq = NULL;
    c->held = 0;
    if (!open_views(c, q, x->srq))
        return DOCK_ST_REM_INV_REQ;
    c->srq = q;
    c->srq_serial = serial;
    c->taker = x->srq;
    return DOCK_OK;
}
