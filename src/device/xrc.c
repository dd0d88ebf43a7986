// SPDX-License-Identifier: MIT
// The shared receive queue of XRC: a queue that only receives, with the number that requests name and a CQ of
// its own. It outlives the connections through which it is reached.
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
