// SPDX-License-Identifier: MIT
#include "arena/extent.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"

static void push(struct dock_extent **list, struct dock_extent *e)
{
    e->next = *list;
    *list = e;
}

static struct dock_extent *pop(struct dock_extent **list)
{
    struct dock_extent *e = *list;

    *list = e->next;
    return e;
}

int dock_extent_stock(struct dock_extent **spare)
{
    struct dock_extent *e = malloc(sizeof *e);

    if (!e) {
        dock_error("no memory for the arena's list of free space");
        return -ENOMEM;
    }
    push(spare, e);
    return 0;
}

void dock_extent_unstock(struct dock_extent **spare)
{
    free(pop(spare));
}

void dock_extent_free_list(struct dock_extent **list)
{
    while (*list)
        free(pop(list));
}

// Cut [off, off + size) out of **at.
static void cut(struct dock_extent **at, struct dock_extent **spare, uint64_t off, uint64_t size)
{
    struct dock_extent *e = *at;
    uint64_t front = off - e->off, back = e->size - front - size;

    if (back && front) {
        struct dock_extent *rest = pop(spare);
        *rest = (struct dock_extent){off + size, back, e->next};
        e->next = rest;
        e->size = front;
    } else if (back) {
        e->off = off + size;
        e->size = back;
    } else if (front) {
        e->size = front;
    } else {
        *at = e->next;
        push(spare, e);
    }
}

bool dock_extent_take(struct dock_extent **free, struct dock_extent **spare, uint64_t size, uint64_t align,
                      uint64_t *off)
{
    for (struct dock_extent **at = free; *at; at = &(*at)->next) {
        struct dock_extent *e = *at;
        uint64_t start = (e->off + align - 1) & ~(align - 1);

        if (start - e->off < e->size && size <= e->size - (start - e->off)) {
            cut(at, spare, start, size);
            *off = start;
            return true;
        }
    }
    return false;
}

void dock_extent_take_at(struct dock_extent **free, struct dock_extent **spare, uint64_t off, uint64_t size)
{
    struct dock_extent **at = free;

    while ((*at)->off + (*at)->size <= off)
        at = &(*at)->next;
    cut(at, spare, off, size);
}

static bool adjoin(const struct dock_extent *low, const struct dock_extent *high, unsigned shift)
{
    return low->off + low->size == high->off && low->off >> shift == high->off >> shift;
}

struct dock_extent *dock_extent_give(struct dock_extent **free, struct dock_extent **spare, uint64_t off,
                                     uint64_t size, unsigned shift)
{
    struct dock_extent piece = {off, size, NULL}, **at = free, *before = NULL, *e;

    while (*at && (*at)->off < off) {
        before = *at;
        at = &before->next;
    }
    bool low = before && adjoin(before, &piece, shift), high = *at && adjoin(&piece, *at, shift);
    if (low) {
        before->size += size + (high ? before->next->size : 0);
        if (high)
            push(spare, pop(&before->next));
        return before;
    }
    if (high) {
        e = *at;
        e->off = off;
        e->size += size;
        return e;
    }
    // Only a piece without a free neighbour needs a node, and only for such a piece is one sure to be in
    // hand.
    e = pop(spare);
    *e = (struct dock_extent){off, size, *at};
    *at = e;
    return e;
}
