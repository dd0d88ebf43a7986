// SPDX-License-Identifier: MIT
// Regions that are not memory registered once and for all: changed under the same keys, looked up by key.
#include <errno.h>

#include "device/internal.h"

static struct dock_mr changed(const struct dock_mr *mr, const struct dock_mr_change *c)
{
    struct dock_mr to = *mr;

    if (c->what & DOCK_CHANGE_RANGE) {
        to.addr = c->addr;
        to.len = c->len;
        to.va = c->va;
    }
    if (c->what & DOCK_CHANGE_PD)
        to.pd = c->pd;
    if (c->what & DOCK_CHANGE_ACCESS)
        to.access = c->access;
    return to;
}

// Nobody finds the region any more, and nobody who found it is still at it. -EBUSY: a window is bound to it.
static int take_away(struct dock_mr *mr)
{
    struct dock_dev *dev = mr->dev;
    uint32_t windows;

    dock_lock(&dev->lock);
    if (dock_peek32(&mr->windows))
        dock_windows_settle(dev, mr);
    windows = dock_peek32(&mr->windows); // changed under dev->lock only
    if (!windows) {
        dock_lkey_clear(dev, mr);
        dock_segrec_clear(dev, mr->tid);
    }
    dock_unlock(&dev->lock);
    if (windows)
        return dock_refuse(-EBUSY, "region %#x has %u windows bound to it", mr->lkey, windows);
    dock_quiesce(dev, NULL);
    return 0;
}

int dock_mr_change(struct dock_mr *mr, const struct dock_mr_change *c)
{
    struct dock_mr to = changed(mr, c);
    struct dock_dev *dev = mr->dev;
    uint32_t left = mr->pd;
    int err;

    if (mr->kind != DOCK_SEG_MR || to.addr + to.len < to.addr || to.len > dev->limits.max_mr_size)
        return dock_refuse(-EINVAL, "region %#x cannot become %#llx bytes at %#llx", mr->lkey,
                           (unsigned long long)to.len, (unsigned long long)to.addr);
    err = dock_pd_use(dev, to.pd);
    if (err)
        return err;
    err = take_away(mr);
    if (!err) {
        err = dock_mr_move(mr, &to);
        dock_pd_drop(dev, err ? to.pd : left);
    } else {
        dock_pd_drop(dev, to.pd);
    }
    return err;
}

int dock_mr_find_handle(struct dock_dev *dev, uint32_t pd, uint32_t tid, struct dock_mr *out)
{
    struct dock_mr *mr = NULL;

    dock_lock(&dev->lock);
    if (tid && tid < dev->nsegments)
        mr = dev->mr[tid];
    if (mr && (mr->pd != pd || mr->kind == DOCK_SEG_MW1 || mr->kind == DOCK_SEG_MW2))
        mr = NULL;
    if (mr)
        *out = *mr;
    dock_unlock(&dev->lock);
    return mr ? 0 : -ENOENT;
}

int dock_mr_find(struct dock_dev *dev, uint32_t pd, uint32_t lkey, struct dock_mr *out)
{
    struct dock_mr found;
    int err = dock_mr_find_handle(dev, pd, lkey >> 8, &found);

    if (!err && found.lkey != lkey)
        err = -ENOENT;
    if (!err)
        *out = found;
    return err;
}
