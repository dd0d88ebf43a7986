// SPDX-License-Identifier: MIT
// A completion of our own into our own CQ, and the event that it may fire.
#include <errno.h>

#include "device/internal.h"

int dock_cq_denied(struct dock_cq *cq, int err, bool first)
{
    if (first)
        dock_cq_overrun(cq);
    return err == -EOVERFLOW && cq->view.flags & DOCK_CQ_LOSES ? 0 : err;
}

int dock_cq_put(struct dock_cq *cq, const struct dock_cqe *e, bool solicited)
{
    bool first = false;
    int err = dock_cq_produce(&cq->view, &cq->dev->waiter, e, &first);

    if (err)
        return dock_cq_denied(cq, err, first);
    if (dock_cq_fires(&cq->view, solicited))
        dock_cq_deliver(cq);
    return 0;
}
