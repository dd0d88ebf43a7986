// SPDX-License-Identifier: MIT
// Memory windows: a remote key of its own over a part of a region, bound and invalidated by WRs.
#include <errno.h>
#include <stdlib.h>

#include "device/internal.h"

int dock_mw_create(struct dock_dev *dev, uint32_t pd, enum dock_seg_kind kind, struct dock_mr **out)
{
    struct dock_mr *mw;
    int err = dock_pd_use(dev, pd);

    if (err)
        return err;
    err = dock_count_up(dev, &dev->n_mw, dev->limits.max_mw, "memory windows");
    if (err)
        goto no_count;
    mw = calloc(1, sizeof *mw);
    err = mw ? 0 : dock_no_memory("a memory window");
    if (err)
        goto no_mw;
    *mw = (struct dock_mr){.dev = dev, .pd = pd, .kind = kind};
    err = dock_tid_take(dev, mw);
    if (err)
        goto no_tid;
    *out = mw;
    return 0;
no_tid:
    free(mw);
no_mw:
    dock_count_down(dev, &dev->n_mw);
no_count:
    dock_pd_drop(dev, pd);
    return err;
}

// dev->lock is held.
static void unbind(struct dock_mr *mw)
{
    if (!mw->region)
        return;
    atomic_fetch_sub_explicit(&mw->region->windows, 1, memory_order_release); // pairs with dock_mr_deregister
    mw->region = NULL;
}

int dock_mw_destroy(struct dock_mr *mw)
{
    struct dock_dev *dev = mw->dev;

    dock_lock(&dev->lock); // not beside move_windows in mr.c
    dock_segrec_clear(dev, mw->tid);
    dock_unlock(&dev->lock);
    dock_quiesce(dev, NULL);
    dock_lock(&dev->lock);
    unbind(mw);
    dock_unlock(&dev->lock);
    dock_tid_give(dev, mw);
    dock_count_down(dev, &dev->n_mw);
    dock_pd_drop(dev, mw->pd);
    free(mw);
    return 0;
}

// A window that a peer's message took back shows it only in its entry: whoever asks whether a region is
// free looks.
void dock_windows_settle(struct dock_dev *dev, const struct dock_mr *region)
{
    for (uint32_t tid = 1; tid <= dock_peek32(&dev->tid_high); tid++) {
        struct dock_mr *mw = dev->mr[tid];
        if (mw && mw->region == region && dock_acquire64(&dev->segments[tid].generation) & 1)
            unbind(mw);
    }
}

static struct dock_mr *by_key(struct dock_dev *dev, uint32_t key)
{
    return key >> 8 && key >> 8 < dev->nsegments ? dev->mr[key >> 8] : NULL;
}

// May this part of this region be opened through this window? IBTA vol 1, 10.6.7.2.
static bool may_bind(const struct dock_sq *sq, const struct dock_mr *mw, const struct dock_mr *mr,
                     const struct dock_xfer *x)
{
    uint32_t rights = (uint32_t)x->compare;

    if (!mw || mw->kind == DOCK_SEG_MR || mw->pd != sq->qp->attr.pd)
        return false;
    if (x->operand == 0)
        return mw->kind == DOCK_SEG_MW1; // length 0 unbinds type 1, and is no bind of type 2
    if (mw->kind == DOCK_SEG_MW2 && mw->region &&
        !(dock_acquire64(&mw->dev->segments[mw->tid].generation) & 1))
        return false; // type 2: once, until it is invalidated
    if (!mr || mr->kind != DOCK_SEG_MR || mr->pd != mw->pd)
        return false;
    if (!dock_lkey_found(
            &mr->dev->lkeys[mr->tid],
            dock_lkey_name(mr->pd, x->notify_token))) // cleared under the lock when the region goes
        return false;
    if (!(mr->access & DOCK_ACCESS_MW_BIND))
        return false;
    if (rights & (DOCK_ACCESS_REMOTE_WRITE | DOCK_ACCESS_REMOTE_ATOMIC) &&
        !(mr->access & DOCK_ACCESS_LOCAL_WRITE))
        return false;
    return x->raddr >= mr->va && x->operand <= mr->len && x->raddr - mr->va <= mr->len - x->operand;
}

static void attach(const struct dock_sq *sq, struct dock_mr *mw, struct dock_mr *mr,
                   const struct dock_xfer *x)
{
    mw->region = mr;
    atomic_fetch_add_explicit(&mr->windows, 1, memory_order_relaxed);
    mw->va =
        mr->access & DOCK_ACCESS_ZERO_BASED || (uint32_t)x->compare & DOCK_ACCESS_ZERO_BASED ? 0 : x->raddr;
    mw->len = x->operand;
    mw->off = dock_window_off(mr, x->raddr - mr->va);
    mw->addr = mr->addr + (x->raddr - mr->va);
    mw->access = (uint32_t)x->compare;
    dock_segrec_publish(mr->dev, mw, mw->kind == DOCK_SEG_MW2 ? sq->qp->number : 0);
}

// The window and its region to be, when what is asked for may be. dev->lock is held.
static struct dock_mr *window_to_bind(const struct dock_sq *sq, const struct dock_xfer *x,
                                      struct dock_mr **region)
{
    struct dock_dev *dev = sq->qp->dev;
    struct dock_mr *mw = by_key(dev, x->remote << 8);

    *region = by_key(dev, x->notify_token);
    return may_bind(sq, mw, *region, x) ? mw : NULL;
}

static uint32_t bind(struct dock_sq *sq, const struct dock_xfer *x)
{
    struct dock_dev *dev = sq->qp->dev;
    struct dock_mr *mw, *mr;

    dock_lock(&dev->lock);
    mw = window_to_bind(sq, x, &mr);
    if (mw)
        dock_segrec_clear(dev, mw->tid);
    dock_unlock(&dev->lock);
    if (!mw)
        return DOCK_ST_MW_BIND;
    dock_quiesce(dev, sq);
    dock_lock(&dev->lock);
    mw = window_to_bind(sq, x, &mr); // once more: the region may have gone meanwhile
    if (mw) {
        unbind(mw);
        mw->rkey = mw->token = mw->tid << 8 | ((uint32_t)x->imm & 0xff);
        if (x->operand && mr)
            attach(sq, mw, mr, x);
    }
    dock_unlock(&dev->lock);
    return mw ? DOCK_OK : DOCK_ST_MW_BIND;
}

// Bound to another queue: only that one takes it back.
static bool others(const struct dock_sq *sq, const struct dock_mr *mw)
{
    const struct dock_segrec *s = &mw->dev->segments[mw->tid];

    return mw->region && !(dock_peek64(&s->generation) & 1) && (s->kind_qpn & DOCK_ID_MASK) != sq->qp->number;
}

// dev->lock is held: the key is any number, its window may be going away.
static struct dock_mr *window_of_key(const struct dock_sq *sq, uint32_t key)
{
    struct dock_mr *mw = by_key(sq->qp->dev, key);

    if (mw && others(sq, mw))
        return NULL;
    return mw && mw->kind == DOCK_SEG_MW2 && mw->rkey == key && mw->pd == sq->qp->attr.pd ? mw : NULL;
}

static uint32_t invalidate(struct dock_sq *sq, const struct dock_xfer *x)
{
    struct dock_dev *dev = sq->qp->dev;
    struct dock_mr *mw;

    dock_lock(&dev->lock);
    mw = window_of_key(sq, x->token);
    if (mw)
        dock_segrec_clear(dev, mw->tid);
    dock_unlock(&dev->lock);
    if (!mw)
        return DOCK_ST_MW_BIND;
    dock_quiesce(dev, sq);
    dock_lock(&dev->lock);
    mw = window_of_key(sq, x->token);
    if (mw && dock_peek64(&dev->segments[mw->tid].generation) & 1) // not bound anew meanwhile
        unbind(mw);
    dock_unlock(&dev->lock);
    return DOCK_OK;
}

uint32_t dock_local_op(struct dock_sq *sq, struct dock_xfer *x)
{
    if (x->op == DOCK_OP_BIND)
        return bind(sq, x);
    if (x->op == DOCK_OP_INV)
        return invalidate(sq, x);
    return DOCK_OK;
}
