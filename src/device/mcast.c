// SPDX-License-Identifier: MIT
// Multicast: a datagram for a group goes to every queue of this host that is a member, the sender's own ones
// included. It is delivered by the host fabric whatever carries the rest.
#include <errno.h>

#include "device/internal.h"

bool dock_eid_is_group(const uint8_t eid[16])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

    return eid[0] == 0xff || (!memcmp(eid, mapped, sizeof mapped) && eid[12] >> 4 == 0xe);
}

static int groups(struct dock_dev *dev)
{
    int err = 0;

    dock_lock(&dev->lock);
    if (!dev->groups.member)
        err = dock_groups_open(&dev->dir, &dev->groups);
    dock_unlock(&dev->lock);
    return err;
}

int dock_qp_join(struct dock_qp *qp, const uint8_t gid[16])
{
    struct dock_dev *dev = qp->dev;
    int err;

    if (qp->attr.service != DOCK_UD || !dock_eid_is_group(gid))
        return dock_refuse(-EINVAL, "queue %u: only a datagram queue joins a group, and only a multicast one",
                           qp->number);
    err = groups(dev);
    if (!err)
        err = dock_group_join(&dev->groups, &dev->ids_table, gid, dev->waiter.me, qp->number);
    if (!err)
        dock_set32(&qp->groups, 1);
    return err;
}

int dock_qp_leave(struct dock_qp *qp, const uint8_t gid[16])
{
    struct dock_dev *dev = qp->dev;

    if (!dock_peek32(&qp->groups))
        return dock_refuse(-EINVAL, "queue %u is in no multicast group", qp->number);
    return dock_group_leave(&dev->groups, gid, dev->waiter.me, qp->number);
}

void dock_qp_leave_all(struct dock_qp *qp)
{
    if (dock_peek32(&qp->groups) &&
        dock_idtable_mine(&qp->dev->ids_table, qp->dev->waiter.me)) // no forked child
        dock_group_leave_all(&qp->dev->groups, qp->dev->waiter.me, qp->number);
}

// The way to the next member that is to get it; NULL: there is none left.
static struct dock_conn *next_way(struct dock_qp *qp, uint32_t *at)
{
    struct dock_dev *dev = qp->dev;
    uint32_t queue;
    dock_who who;

    if (!dev->groups.member) // the table could not be opened, and the log says why: nobody is reached
        return NULL;
    while ((queue = dock_group_next(&dev->groups, &dev->ids_table, qp->sq.x.eid, at, &who)))
        if (queue != qp->number || !qp->attr.block_self)
            return dock_way_to(qp, queue, who, &dock_fabric_host);
    return NULL;
}

// Every member is reached before the first gets it: a datagram that waits for one is not sent twice.
static int reach_all(struct dock_qp *qp)
{
    struct dock_conn *c;
    int err = 0;

    for (uint32_t at = 0; (c = next_way(qp, &at));)
        if (!c->peer && c->fabric->connect(c) == -EAGAIN)
            err = -EAGAIN;
    return err;
}

int dock_mcast_send(struct dock_sq *sq, bool patient)
{
    struct dock_xfer *x = &sq->x;
    struct dock_conn *c;
    int err = groups(sq->qp->dev);

    if (!err)
        err = reach_all(sq->qp);
    if (err == -EAGAIN && patient)
        return err;
    x->status = DOCK_OK;
    dock_set64(&sq->busy, dock_peek64(&sq->busy) + 1);
    dock_fence_light(); // pairs with the heavy fence of dock_quiesce, as in perform()
    for (uint32_t at = 0; x->status != DOCK_ST_LOC_PROT && (c = next_way(sq->qp, &at));) {
        if (!c->peer)
            continue;
        x->done = 0;
        x->claimed = false;
        c->fabric->start(c, x, sq);
        dock_conn_wake(c);
        sq->pieces += x->done != 0;
    }
    dock_publish64(&sq->busy, dock_peek64(&sq->busy) + 1); // pairs with the acquire in dock_quiesce
    x->bytes = x->len;
    return 0;
}
