// SPDX-License-Identifier: MIT
// Memory regions: two tables, one private for our own local keys, one in the arena for what peers name. A key
// is tid << 8 | variant; the variant of a local key is even, of a remote key odd, so they are never equal,
// and both change with each use of the tid.
#include <errno.h>
#include <stdlib.h>

#include "arena/xcopy.h"
#include "device/internal.h"

int dock_tid_take(struct dock_dev *dev, struct dock_mr *mr)
{
    uint32_t tid = 0;

    pthread_mutex_lock(&dev->lock);
    for (uint32_t i = 0; i < dev->nsegments - 1 && !tid; i++) {
        uint32_t at = 1 + (dev->tid_cursor + i) % (dev->nsegments - 1);
        if (!dev->mr[at])
            tid = at;
    }
    if (tid) {
        dev->mr[tid] = mr;
        dev->tid_cursor = tid;
        if (tid > dock_peek32(&dev->tid_high))
            dock_set32(&dev->tid_high, tid);
        mr->tid = tid;
        uint8_t variant = (uint8_t)(dev->variant[tid] += 2);
        mr->lkey = tid << 8 | variant;
        mr->rkey = tid << 8 | variant | 1;
    }
    pthread_mutex_unlock(&dev->lock);
    return tid ? 0 : -ENOMEM;
}

void dock_tid_give(struct dock_dev *dev, uint32_t tid)
{
    pthread_mutex_lock(&dev->lock);
    dev->mr[tid] = NULL;
    pthread_mutex_unlock(&dev->lock);
}

void dock_lkey_publish(struct dock_dev *dev, const struct dock_mr *mr)
{
    struct dock_lkey *l = &dev->lkeys[mr->tid];

    l->pd = mr->pd;
    l->access = mr->access;
    l->tid = mr->tid;
    l->va = mr->va;
    l->len = mr->len;
    l->addr = mr->addr;
    l->at = mr->off == DOCK_SEG_PLAIN ? NULL : (char *)(uintptr_t)mr->addr;
    dock_publish32(&l->key, mr->lkey); // pairs with the acquire in local.c
}

void dock_lkey_clear(struct dock_dev *dev, const struct dock_mr *mr)
{
    dock_publish32(&dev->lkeys[mr->tid].key, 0);
}

void dock_segrec_publish(struct dock_dev *dev, const struct dock_mr *mr, uint32_t qpn)
{
    struct dock_segrec *rec = &dev->segments[mr->tid];
    struct dock_segrec s = {.va = mr->va,
                            .len = mr->len,
                            .off = mr->off,
                            .addr = mr->addr,
                            .token = mr->rkey,
                            .pd = mr->pd,
                            .access = mr->access,
                            .kind_qpn = mr->kind << 24 | qpn,
                            .lkey = mr->lkey};
    uint64_t generation = dock_peek64(&rec->generation) | 1;

    s.sum = dock_segrec_sum(&s);
    dock_set64(&rec->generation, generation);
    dock_fence_store();
    dock_segrec_copy(rec, &s);
    dock_publish64(&rec->generation, generation + 1); // pairs with the acquire in fabric/host/keys.c
}

void dock_segrec_clear(struct dock_dev *dev, uint32_t tid)
{
    struct dock_segrec *rec = &dev->segments[tid], none = {.kind_qpn = DOCK_SEG_FREE << 24, .sum = 1};

    dock_set64(&rec->generation,
               dock_peek64(&rec->generation) | 1); // odd: refused until it is published anew
    dock_fence_store();
    dock_segrec_copy(rec, &none);
}

// Where the memory is: in the arena, or plain and reachable through the kernel.
static int locate(struct dock_dev *dev, struct dock_mr *mr)
{
    void *p = (void *)(uintptr_t)mr->addr;

    mr->off = DOCK_SEG_PLAIN;
    if (!dev->cfg.force_plain && mr->len && dock_arena_offset(&dev->arena, p, mr->len, &mr->off) == 0)
        return 0;
    mr->off = DOCK_SEG_PLAIN;
    if (!dock_xcopy_works()) {
        dock_error("memory at %#llx is not mapped and process_vm is refused here: peers could not reach it",
                   (unsigned long long)mr->addr);
        return -EOPNOTSUPP;
    }
    if (mr->len && !dock_xcopy_probe(mr->addr, mr->len, mr->access & DOCK_ACCESS_LOCAL_WRITE))
        return dock_refuse(-EFAULT, "not all of %#llx +%#llx is mapped with the rights asked for",
                           (unsigned long long)mr->addr, (unsigned long long)mr->len);
    return 0;
}

int dock_mr_register(struct dock_dev *dev, uint32_t pd, uint64_t addr, uint64_t len, uint64_t va,
                     uint32_t access, struct dock_mr **out)
{
    struct dock_mr *mr;
    int err;

    if (addr + len < addr || va + len < va || len > dev->limits.max_mr_size)
        return dock_refuse(len > dev->limits.max_mr_size ? -ENOMEM : -EFAULT,
                           "a region of %#llx bytes at %#llx", (unsigned long long)len,
                           (unsigned long long)addr);
    err = dock_pd_use(dev, pd);
    if (err)
        return err;
    err = dock_count_up(dev, &dev->n_mr, dev->limits.max_mr, "memory regions");
    if (err)
        goto no_count;
    mr = calloc(1, sizeof *mr);
    err = mr ? 0 : dock_no_memory("a memory region");
    if (err)
        goto no_mr;
    *mr = (struct dock_mr){
        .dev = dev, .pd = pd, .access = access, .kind = DOCK_SEG_MR, .va = va, .len = len, .addr = addr};
    err = locate(dev, mr);
    if (!err)
        err = dock_tid_take(dev, mr);
    if (err)
        goto no_tid;
    dock_lkey_publish(dev, mr);
    dock_segrec_publish(dev, mr, 0);
    dock_port_moment(dev->port, DOCK_AT_REGISTER, mr->tid, len);
    *out = mr;
    return 0;
no_tid:
    free(mr);
no_mr:
    dock_count_down(dev, &dev->n_mr);
no_count:
    dock_pd_drop(dev, pd);
    return err;
}

int dock_mr_deregister(struct dock_mr *mr)
{
    struct dock_dev *dev = mr->dev;
    uint32_t windows;

    pthread_mutex_lock(&dev->lock);
    if (dock_peek32(&mr->windows))
        dock_windows_settle(dev, mr);
    windows = dock_peek32(&mr->windows); // changed under dev->lock only
    if (!windows)
        dock_lkey_clear(dev, mr); // from here on no window is bound to it
    pthread_mutex_unlock(&dev->lock);
    if (windows)
        return dock_refuse(-EBUSY, "region %#x has %u windows bound to it", mr->lkey, windows);
    dock_segrec_clear(dev, mr->tid);
    dock_port_moment(dev->port, DOCK_AT_DEREGISTER, mr->tid, mr->len);
    dock_quiesce(dev, NULL);
    dock_tid_give(dev, mr->tid);
    dock_count_down(dev, &dev->n_mr);
    dock_pd_drop(dev, mr->pd);
    free(mr);
    return 0;
}
