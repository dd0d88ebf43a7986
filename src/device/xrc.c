// SPDX-License-Identifier: MIT
// The shared receive queue of XRC: a queue that only receives, with the number that requests name and a CQ of
// its own. It outlives the connections through which it is reached. And the domains to which it belongs.
#include <errno.h>

#include "device/internal.h"

int dock_xrc_srq_create(struct dock_dev *dev, const struct dock_srq_attr *attr, struct dock_cq *cq,
                        uint64_t xrcd, struct dock_rq **out)
{
    struct dock_qp_attr a = {
        .service = DOCK_RC,
        .role = DOCK_RECEIVES,
        .xrc = DOCK_XRC_SRQ,
        .xrcd = xrcd,
        .pd = attr->pd,
        .recv_cq = cq,
        .max_recv_wr = attr->max_wr,
        .max_recv_sge = attr->max_sge,
        .lock_free = attr->lock_free,
        .user = attr->user,
    };
    struct dock_qp *qp;
    int err = dock_count_up(dev, &dev->n_srq, dev->limits.max_srq, "shared receive queues");

    if (err)
        return err;
    err = dock_qp_create(dev, &a, &qp);
    if (err) {
        dock_count_down(dev, &dev->n_srq);
        return err;
    }
    qp->rq->user = attr->user;
    qp->rq->number = qp->number;
    dock_set32(&qp->rq->rec->limit, attr->limit);
    *out = qp->rq;
    return 0;
}

int dock_xrc_srq_destroy(struct dock_rq *srq)
{
    dock_count_down(srq->dev, &srq->dev->n_srq);
    return dock_qp_destroy(srq->owner);
}

static int domains(struct dock_dev *dev)
{
    int err = 0;

    dock_lock(&dev->lock);
    if (!dev->domains.entry)
        err = dock_domains_open(&dev->dir, &dev->domains);
    dock_unlock(&dev->lock);
    return err;
}

int dock_xrc_domain_open(struct dock_dev *dev, const struct dock_domain_name *name, uint64_t *number)
{
    int err = dock_dev_usable(dev); // a forked child would leave entries that nobody takes back

    if (!err)
        err = domains(dev);
    return err ? err : dock_domain_hold(&dev->domains, &dev->ids_table, dev->waiter.me, name, number);
}

void dock_xrc_domain_close(struct dock_dev *dev, uint64_t number)
{
    if (dock_idtable_mine(&dev->ids_table, dev->waiter.me)) // a forked child holds nothing
        dock_domain_drop(&dev->domains, dev->waiter.me, number);
}
