// SPDX-License-Identifier: MIT
// A datagram queue reaches many: one way per destination, made at the first message, newest first.
#include <stdlib.h>

#include "device/internal.h"

struct dock_conn *dock_ud_way_to(struct dock_qp *qp, uint32_t dest_qp, dock_who who,
                                 const struct dock_fabric *fabric)
{
    struct dock_conn *c;

    for (c = qp->ud_conn; c; c = c->next)
        if (c->dest_qp == dest_qp && c->dest_who == who && (!fabric || c->fabric == fabric) &&
            !(c->peer && dock_peek32(&c->peer->dead)))
            return c;
    c = aligned_alloc(64, (sizeof *c + 63) & ~63ul);
    if (!c)
        return NULL;
    dock_conn_init(c, qp, dest_qp, who);
    if (fabric)
        c->fabric = fabric;
    c->next = qp->ud_conn;
    qp->ud_conn = c;
    return c;
}

struct dock_conn *dock_ud_way(struct dock_qp *qp, uint32_t dest_qp)
{
    struct dock_dev *dev = qp->dev;
    dock_who who = dock_idtable_owner(&dev->ids_table, dest_qp >> DOCK_BLOCK_SHIFT & (DOCK_SLOTS - 1));

    // Of each datagram, not of the first: the number may have another owner by now, the address be another
    // host's.
    if (!who || !dock_eid_is_local(dev, qp->sq.x.eid))
        return NULL;
    return dock_ud_way_to(qp, dest_qp, who, NULL);
}

void dock_ud_forget(struct dock_qp *qp)
{
    while (qp->ud_conn) {
        struct dock_conn *c = qp->ud_conn;
        qp->ud_conn = c->next;
        c->fabric->disconnect(c);
        free(c);
    }
}
