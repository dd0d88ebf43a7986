// SPDX-License-Identifier: MIT
// A device that was stopped while somebody waited for it has been declared dead, and finds that out when it
// continues: nothing of it runs any more, its program gets DOCK_EVENT_DEVICE_FATAL and flushed queues.
#include <errno.h>

#include "device/internal.h"

void dock_dev_fatal(struct dock_dev *dev)
{
    struct dock_event e = {.kind = DOCK_EVENT_DEVICE_FATAL};

    if (dock_swap32(&dev->port->fatal, 1))
        return;
    dock_error("this device was stopped for too long: its peers have declared it dead, open it anew");
    dock_event_raise(dev, NULL, &e, NULL);
    dock_up_attention(dock_peer_self(dev)); // the engine takes the queues to their error state
}

static struct dock_qp *next_alive(struct dock_dev *dev)
{
    struct dock_qp *qp;

    dock_lock(&dev->lock);
    for (qp = dev->qps; qp; qp = qp->next) {
        uint32_t state = dock_peek32(&qp->rec->state);
        if (state != DOCK_ERR && state != DOCK_RESET && state != DOCK_GONE)
            break;
    }
    if (qp)
        atomic_fetch_add_explicit(&qp->pins, 1, memory_order_relaxed); // ordered by dev->lock
    dock_unlock(&dev->lock);
    return qp;
}

void dock_dev_bury_queues(struct dock_dev *dev)
{
    struct dock_qp *qp;

    while ((qp = next_alive(dev))) {
        dock_qp_error(qp);
        atomic_fetch_sub_explicit(&qp->pins, 1, memory_order_release); // pairs with wait_unpinned in qp.c
    }
}

int dock_dev_usable(struct dock_dev *dev)
{
    uint32_t fatal = dock_peek32(&dev->port->fatal);

    if (fatal == DOCK_FATAL_FORKED)
        return dock_refuse(-EIO, "the device is the parent's of this forked child: open it anew");
    return fatal ? dock_refuse(-EIO, "the device is dead: its peers gave it up") : 0;
}
