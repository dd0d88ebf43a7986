// SPDX-License-Identifier: MIT
// Segments that are mapped: ours by peers, those of peers by us.
#include <errno.h>
#include <stdlib.h>

#include "device/internal.h"
#include "fabric/map.h"

enum { REACH_MS = 2000, HOME_INCARNATION = 31 };

uint32_t dock_dev_home(const struct dock_dev *dev)
{
    dock_who me = dev->waiter.me;

    return (dock_who_incarnation(me) & HOME_INCARNATION) << DOCK_SLOT_BITS | dock_who_slot(me);
}

int dock_map_open(struct dock_dev *dev, uint32_t home, const struct dock_map_want *w, struct dock_map **out)
{
    dock_who who = dock_idtable_owner(&dev->ids_table, home & (DOCK_SLOTS - 1));
    struct dock_map *m;
    int err = dock_dev_usable(dev);

    if (err)
        return err;
    if (!who || (dock_who_incarnation(who) & HOME_INCARNATION) != home >> DOCK_SLOT_BITS)
        return dock_refuse(-EHOSTUNREACH, "the process of that segment is not there any more");
    if (!w->len)
        return dock_refuse(-EINVAL, "a segment of no bytes cannot be mapped");
    err = dock_peers_wait(dev, who, REACH_MS);
    if (err)
        return dock_refuse(err == -EAGAIN ? -EHOSTUNREACH : err, "device %#x cannot be reached", who);
    m = calloc(1, sizeof *m);
    if (!m)
        return dock_no_memory("a mapping");
    m->way = (struct dock_conn){.dev = dev, .waiter = &dev->waiter, .dest_who = who};
    err = dock_fabric_map(m, w);
    if (err) {
        free(m);
        return err;
    }
    *out = m;
    return 0;
}

void *dock_map_at(const struct dock_map *m)
{
    return m->at;
}

void dock_map_close(struct dock_map *m)
{
    struct dock_dev *dev = m->way.dev;

    // A forked child has neither the mapping nor the view.
    if (dock_idtable_mine(&dev->ids_table, dev->waiter.me))
        dock_fabric_unmap(m);
    free(m);
}

// The hazard of a mapping is of no queue. One whose owner is gone holds nothing any more.
bool dock_seg_mapped(struct dock_dev *dev, uint32_t tid)
{
    uint32_t high = dock_hazards_used(dev);

    for (uint32_t i = 0; i < high; i++) {
        const struct dock_hazard *h = &dev->hazards[i];
        if (dock_acquire32(&h->mapped) != tid) // pairs with dock_fabric_unmap
            continue;
        uint64_t owner = dock_peek64(&h->owner);
        if (owner && !(owner & DOCK_ID_MASK) && !dock_idtable_gone(&dev->ids_table, (dock_who)(owner >> 32)))
            return true;
    }
    return false;
}
