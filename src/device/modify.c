// SPDX-License-Identifier: MIT
// Changing a queue pair: attributes and states. All or nothing.
#include <errno.h>

#include "device/identity.h"
#include "device/internal.h"
#include "device/state.h"

#define REACH_MS 2000

bool dock_eid_is_local(struct dock_dev *dev, const uint8_t eid[16])
{
    const struct dock_identity *me = dock_identity();

    (void)dev;
    for (uint32_t i = 0; i < me->gids; i++)
        if (!memcmp(me->gid[i].raw, eid, 16))
            return true;
    return false;
}

int dock_reach(struct dock_dev *dev, const uint8_t eid[16], uint32_t id, unsigned ms)
{
    dock_who who = dock_idtable_owner_of(&dev->ids_table, id);

    if (!who || !dock_eid_is_local(dev, eid))
        return -EHOSTUNREACH;
    return dock_peers_wait(dev, who, ms);
}

static void set_attributes(struct dock_qp *qp, const struct dock_qp_mod *m)
{
    struct dock_qrec *r = qp->rec;

    if (m->mask & DOCK_MOD_ACCESS)
        dock_set32(&r->access, m->access);
    if (m->mask & DOCK_MOD_QKEY)
        dock_set32(&r->qkey, m->qkey);
    if (m->mask & DOCK_MOD_TIMEOUT)
        qp->timeout_ns = m->timeout ? 4096ull << m->timeout : 0;
    if (m->mask & DOCK_MOD_RETRY)
        qp->retry = m->retry;
    if (m->mask & DOCK_MOD_RNR_RETRY)
        qp->rnr_retry = m->rnr_retry;
    if (m->mask & DOCK_MOD_RNR_TIMER)
        dock_set32(&r->rnr_timer, m->rnr_timer);
    if (m->mask & DOCK_MOD_RD_ATOMIC)
        qp->rd_atomic = m->rd_atomic;
    if (m->mask & DOCK_MOD_DEST_RD_ATOMIC)
        dock_set32(&r->rd_atomic, m->dest_rd_atomic);
    if (m->mask & DOCK_MOD_SQD_EVENT)
        qp->sqd_event = m->sqd_event;
    if (m->mask & DOCK_MOD_DEST) {
        memcpy(qp->eid, m->eid, 16);
        qp->dest_qp = m->dest_qp & DOCK_ID_MASK;
    }
}

// Where the peer is, and who may send to us. The token is held.
static void connect_to_peer(struct dock_qp *qp)
{
    struct dock_dev *dev = qp->dev;
    dock_who who = 0;

    if (qp->attr.service != DOCK_RC && qp->attr.service != DOCK_UC)
        return;
    if (dock_eid_is_local(dev, qp->eid))
        who = dock_idtable_owner_of(&dev->ids_table, qp->dest_qp);
    qp->conn.fabric->disconnect(&qp->conn);
    dock_conn_init(&qp->conn, qp, qp->dest_qp, who);
    qp->sq.x.target = qp->dest_qp;
    dock_set32(&qp->rec->peer_id, qp->attr.open ? DOCK_PEER_ANY : qp->dest_qp);
    dock_set32(&qp->rec->peer_who, who);
    if (who && dock_peers_wait(dev, who, REACH_MS) == 0)
        qp->conn.fabric->connect(&qp->conn);
    else
        dock_info("queue %u: nobody on this host has queue %u yet", qp->number, qp->dest_qp);
}

static void forget_requests(struct dock_qp *qp)
{
    dock_sq_abandon(&qp->sq); // while its way still stands
    dock_quiesce(qp->dev, &qp->sq);
    qp->conn.fabric->disconnect(&qp->conn);
    dock_ways_forget(qp);
    dock_sq_clear(&qp->sq);
    dock_cq_forget(qp->send_cq, qp, false);
    dock_cq_forget(qp->recv_cq, qp, false);
    if (qp->rq->shared)
        dock_rq_forget_claims(qp);
    else
        dock_rq_disown(qp->rq);
    // A repair may have flushed a dead peer's claim since: none is left now.
    dock_cq_forget(qp->recv_cq, qp, false);
    if (!qp->rq->shared)
        dock_rq_clear(qp->rq); // and no poller has one of its completions in hand
    dock_attend_limit(qp);
    dock_set32(&qp->rec->attention, 0);
    dock_set32(&qp->last_wqe_told, 0);
    dock_set32(&qp->comm_told, 0);
}

void dock_qp_drained(struct dock_qp *qp)
{
    if (qp->sqd_event)
        dock_qp_raise(qp, DOCK_EVENT_SQ_DRAINED);
}

// The token is held: no request of this queue is being executed.
static void enter(struct dock_qp *qp, enum dock_state from, enum dock_state to)
{
    dock_publish32(&qp->rec->state, to); // pairs with answers() of the peers
    dock_port_moment(qp->dev->port, DOCK_AT_STATE, qp->number, to);
    if (to == DOCK_RESET)
        forget_requests(qp);
    if (to == DOCK_SQD && !qp->sq.mid)
        dock_qp_drained(qp);
    if (to == DOCK_SUSPENDED && from != to)
        dock_mark_owe(qp, DOCK_ST_SUSPEND_DONE);
    if (to == DOCK_RTS || to == DOCK_RESET)
        dock_mark_forget(qp);
    dock_debug("queue %u: %s", qp->number, dock_state_name(to));
}

// The token is held, so no request fails any more: the present state is looked at here and not before.
static int change_held(struct dock_qp *qp, const struct dock_qp_mod *m)
{
    enum dock_state from;

    if (DOCK_RULE_DRAIN && (m->state == DOCK_RESET || m->state == DOCK_SQD))
        dock_sq_land(&qp->sq);
    from = dock_qp_state(qp);
    if (!dock_state_may(from, m->state, dock_qp_urma(&qp->attr)) &&
        !(qp->attr.unordered && from == DOCK_SUSPENDED && m->state == DOCK_RTS))
        return dock_refuse(-EINVAL, "queue %u cannot go from %s to %s", qp->number, dock_state_name(from),
                           dock_state_name(m->state));
    int err = m->state == DOCK_RESET ? 0 : dock_dev_usable(qp->dev);
    if (err)
        return err;
    set_attributes(qp, m);
    if (m->state == DOCK_RTR || (dock_qp_urma(&qp->attr) && m->mask & DOCK_MOD_DEST))
        connect_to_peer(qp);
    enter(qp, from, m->state);
    return 0;
}

static int change_state(struct dock_qp *qp, const struct dock_qp_mod *m)
{
    int err;

    if (m->state == DOCK_ERR && dock_state_may(dock_qp_state(qp), DOCK_ERR, dock_qp_urma(&qp->attr))) {
        set_attributes(qp, m);
        dock_qp_error(qp);
        return 0;
    }
    dock_sq_lock(&qp->sq.post, false);
    dock_sq_hold(&qp->sq);
    err = change_held(qp, m);
    dock_sq_unlock(&qp->sq.post);
    dock_sq_release(&qp->sq);
    return err;
}

// URMA binds a queue that is ready already.
static int rebind(struct dock_qp *qp, const struct dock_qp_mod *m)
{
    int err = dock_dev_usable(qp->dev);

    if (err)
        return err;
    dock_sq_hold(&qp->sq);
    dock_sq_land(&qp->sq);
    dock_sq_raise(&qp->sq.post);
    dock_sq_flush_posted(&qp->sq); // it was meant for the peer until now
    set_attributes(qp, m);
    connect_to_peer(qp);
    dock_sq_release(&qp->sq);
    return 0;
}

int dock_qp_modify(struct dock_qp *qp, const struct dock_qp_mod *m)
{
    int err = 0;

    dock_lock(&qp->modify);
    if (m->mask & DOCK_MOD_STATE)
        err = change_state(qp, m);
    else if (m->mask & DOCK_MOD_DEST && dock_qp_urma(&qp->attr))
        err = rebind(qp, m);
    else
        set_attributes(qp, m);
    dock_unlock(&qp->modify);
    return err;
}
