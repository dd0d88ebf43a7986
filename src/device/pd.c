// SPDX-License-Identifier: MIT
// Protection domains: numbers with a count of what belongs to them.
#include <errno.h>

#include "device/internal.h"

#define TAKEN (1u << 31)

int dock_pd_create(struct dock_dev *dev, uint32_t *pd)
{
    int err = -ENOMEM;

    dock_lock(&dev->lock);
    for (uint32_t i = 0; i < dev->limits.max_pd; i++) {
        uint32_t at = 1 + (dev->pd_cursor + i) % dev->limits.max_pd;
        if (dev->pd_users[at])
            continue;
        dev->pd_users[at] = TAKEN;
        dev->pd_cursor = at;
        *pd = at;
        err = 0;
        break;
    }
    dock_unlock(&dev->lock);
    return err ? dock_refuse(err, "no more than %u protection domains", dev->limits.max_pd) : 0;
}

int dock_pd_destroy(struct dock_dev *dev, uint32_t pd)
{
    int err = 0;

    dock_lock(&dev->lock);
    if (pd == 0 || pd > dev->limits.max_pd || !(dev->pd_users[pd] & TAKEN))
        err = -EINVAL;
    else if (dev->pd_users[pd] != TAKEN)
        err = -EBUSY;
    else
        dev->pd_users[pd] = 0;
    dock_unlock(&dev->lock);
    if (err)
        return dock_refuse(
            err, err == -EBUSY ? "protection domain %u is still in use" : "no protection domain %u", pd);
    return 0;
}

int dock_pd_hold(struct dock_dev *dev, uint32_t pd)
{
    return dock_pd_use(dev, pd);
}

void dock_pd_let_go(struct dock_dev *dev, uint32_t pd)
{
    dock_pd_drop(dev, pd);
}

int dock_pd_use(struct dock_dev *dev, uint32_t pd)
{
    int err = -EINVAL;

    dock_lock(&dev->lock);
    if (pd && pd <= dev->limits.max_pd && dev->pd_users[pd] & TAKEN) {
        dev->pd_users[pd]++;
        err = 0;
    }
    dock_unlock(&dev->lock);
    return err ? dock_refuse(err, "no protection domain %u", pd) : 0;
}

void dock_pd_drop(struct dock_dev *dev, uint32_t pd)
{
    dock_lock(&dev->lock);
    dev->pd_users[pd]--;
    dock_unlock(&dev->lock);
}
