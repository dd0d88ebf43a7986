// SPDX-License-Identifier: MIT
// Queue ids: 20 bits, from the blocks that this device holds. An id that was given back is given again as
// late as possible, so that a stale number finds nobody. Those of block 0 are taken by who chooses them, one
// by one; each device has records for all of them.
#include <errno.h>
#include <stdlib.h>

#include "device/internal.h"

static int make_block(struct dock_dev *dev, uint32_t block)
{
    void **objects = calloc(256, sizeof *objects);
    uint64_t off;
    int err;

    if (!objects)
        return dock_no_memory("a block of queue ids");
    err = dock_arena_reserve(&dev->arena, 256 * sizeof(struct dock_qrec), 4096, &off);
    if (err) {
        free(objects);
        return err;
    }
    dev->object[block] = objects;
    dev->record[block] = dock_arena_at(&dev->arena, off);
    dock_publish64(&dev->port->block[block], off); // pairs with find_queue of the peers
    return 0;
}

static int add_block(struct dock_dev *dev, uint32_t block)
{
    int err = make_block(dev, block);

    if (!err)
        dev->ids.blocks[dev->ids.count++] = block;
    return err;
}

static int more(struct dock_dev *dev)
{
    uint32_t block = dock_who_slot(dev->waiter.me);
    int err;

    if (dev->ids.count == 0)
        return add_block(dev, block);
    err = dock_idtable_more(&dev->ids_table, dev->waiter.me, &block);
    if (!err) {
        err = add_block(dev, block);
        if (err)
            dock_idtable_less(&dev->ids_table, dev->waiter.me, block);
    }
    return err;
}

// The next free id behind the cursor; 0 if there is none (0 is in block 0, which is not in the list).
static uint32_t next_free(struct dock_dev *dev)
{
    struct dock_ids *ids = &dev->ids;
    uint32_t all = ids->count * 256;

    for (uint32_t i = 0; i < all; i++) {
        uint32_t at = (ids->cursor + i) % all, block = ids->blocks[at / 256];
        if (!dev->object[block][at % 256]) {
            ids->cursor = at + 1;
            return block << DOCK_BLOCK_SHIFT | at % 256;
        }
    }
    return 0;
}

static int take_chosen(struct dock_dev *dev, void *object, uint32_t id)
{
    int err = 0;

    dock_lock(&dev->ids.lock);
    if (!dev->object[0])
        err = make_block(dev, 0);
    if (!err)
        err = dock_idtable_choose(&dev->ids_table, dev->waiter.me, id);
    if (!err)
        dev->object[0][id] = object;
    dock_unlock(&dev->ids.lock);
    return err;
}

int dock_id_take(struct dock_dev *dev, void *object, uint32_t chosen, uint32_t *id)
{
    struct dock_ids *ids = &dev->ids;
    int err = 0;

    if (chosen) {
        err = take_chosen(dev, object, chosen);
        if (!err)
            *id = chosen;
        return err;
    }
    dock_lock(&ids->lock);
    // A new block is taken while a quarter of the old ids is free: reuse stays far away.
    if (ids->used * 4 >= ids->count * 256 * 3)
        err = more(dev);
    uint32_t found = err && ids->used == ids->count * 256 ? 0 : next_free(dev);
    if (found) {
        dev->object[found >> DOCK_BLOCK_SHIFT][found & 255] = object;
        ids->used++;
        *id = found;
    }
    dock_unlock(&ids->lock);
    return found ? 0 : err ? err : -ENOSPC;
}

void dock_id_give(struct dock_dev *dev, uint32_t id)
{
    dock_lock(&dev->ids.lock);
    dev->object[id >> DOCK_BLOCK_SHIFT][id & 255] = NULL;
    if (id <= DOCK_CHOSEN_MAX)
        dock_idtable_unchoose(&dev->ids_table, dev->waiter.me, id);
    else
        dev->ids.used--;
    dock_unlock(&dev->ids.lock);
}

struct dock_qrec *dock_id_record(struct dock_dev *dev, uint32_t id)
{
    return &dev->record[id >> DOCK_BLOCK_SHIFT][id & 255];
}

void dock_ids_close(struct dock_dev *dev)
{
    for (uint32_t i = 0; i < dev->ids.count; i++)
        free(dev->object[dev->ids.blocks[i]]);
    free(dev->object[0]);
    dev->ids.count = 0;
}
