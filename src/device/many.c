// SPDX-License-Identifier: MIT
// Several segments under one token id. The id's own entry in the segment table holds no memory: it begins a
// chain of the entries of its segments, each of which has a number of its own for its local key. Who walks it
// is in fabric/host/keys.c: whatever changes in the chain, the entry it begins with is published last.
#include <errno.h>
#include <stdlib.h>

#include "device/internal.h"

int dock_tid_reserve_many(struct dock_dev *dev, uint32_t *out)
{
    struct dock_mr *head = calloc(1, sizeof *head);
    int err = head ? dock_tid_reserve(dev, out) : dock_no_memory("a token id of several segments");

    if (err) {
        free(head);
        return err;
    }
    *head = (struct dock_mr){
        .dev = dev, .kind = DOCK_SEG_MANY, .tid = *out, .pd = UINT32_MAX, .off = DOCK_SEG_PLAIN};
    dock_lock(&dev->lock);
    dev->mr[*out] = head;
    dock_segrec_publish(dev, head, 0);
    dock_unlock(&dev->lock);
    return 0;
}

struct dock_mr *dock_many_of(struct dock_dev *dev, uint32_t tid)
{
    struct dock_mr *mr = NULL;

    dock_lock(&dev->lock);
    if (tid < dev->nsegments && dev->mr[tid] && dev->mr[tid]->kind == DOCK_SEG_MANY)
        mr = dev->mr[tid];
    dock_unlock(&dev->lock);
    return mr;
}

int dock_many_end(struct dock_dev *dev, struct dock_mr *head)
{
    if (head->next)
        return -EBUSY;
    dock_segrec_clear(dev, head->tid);
    free(head);
    return 0;
}

void dock_many_join(struct dock_dev *dev, struct dock_mr *mr)
{
    struct dock_mr *head = mr->many;

    if (!head)
        return;
    dock_lock(&dev->lock);
    mr->prev = head;
    mr->next = head->next;
    if (mr->next)
        mr->next->prev = mr;
    head->next = mr;
    dock_segrec_publish(dev, mr, 0);
    dock_segrec_publish(dev, head, 0);
    dock_unlock(&dev->lock);
}

void dock_many_leave(struct dock_dev *dev, struct dock_mr *mr)
{
    if (!mr->many)
        return;
    mr->prev->next = mr->next;
    if (mr->next)
        mr->next->prev = mr->prev;
    if (mr->prev != mr->many)
        dock_segrec_publish(dev, mr->prev, 0);
    dock_segrec_publish(dev, mr->many, 0);
}
