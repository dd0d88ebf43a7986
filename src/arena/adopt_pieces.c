// SPDX-License-Identifier: MIT
// The pieces of a hold: a sorted array, neighbours merged.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arena/adopt_own.h"
#include "base/log.h"

// A piece lies in one window: what counts its pages, and who maps it, goes by windows.
static bool joins(const struct dock_hold *h, const struct dock_piece *low, const struct dock_piece *high)
{
    unsigned shift = h->of ? h->of->arena->view.shift : 63;

    return low->addr + low->len == high->addr && low->off + low->len == high->off &&
           low->off >> shift == high->off >> shift;
}

int dock_hold_room(struct dock_hold *h)
{
    if (!h->room) {
        h->piece = &h->one;
        h->room = 1;
    } else if (h->pieces == h->room) {
        unsigned room = h->room * 4;
        struct dock_piece *grown = realloc(h->piece == &h->one ? NULL : h->piece, room * sizeof *grown);
        if (!grown)
            return dock_no_memory("the pieces of a memory region");
        if (h->piece == &h->one)
            *grown = h->one;
        h->piece = grown;
        h->room = room;
    }
    h->piece[h->pieces] = (struct dock_piece){0}; // who adds it may block what a fault sends
    return 0;
}

// `at` and its successor become one if they lie together.
static void merge(struct dock_hold *h, unsigned at)
{
    if (at + 1 >= h->pieces || !joins(h, &h->piece[at], &h->piece[at + 1]))
        return;
    h->piece[at].len += h->piece[at + 1].len;
    h->pieces--;
    memmove(&h->piece[at + 1], &h->piece[at + 2], (h->pieces - at - 1) * sizeof *h->piece);
}

// The first piece that ends behind `addr`.
static unsigned first_behind(const struct dock_hold *h, uint64_t addr)
{
    unsigned low = 0, high = h->pieces;

    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        if (h->piece[middle].addr + h->piece[middle].len <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int dock_hold_add(struct dock_hold *h, uint64_t addr, uint64_t len, uint64_t off)
{
    int err = dock_hold_room(h);

    if (err)
        return err;
    unsigned at = first_behind(h, addr);
    memmove(&h->piece[at + 1], &h->piece[at], (h->pieces - at) * sizeof *h->piece);
    h->piece[at] = (struct dock_piece){addr, len, off};
    h->pieces++;
    merge(h, at);
    if (at)
        merge(h, at - 1);
    return 0;
}

void dock_hold_clear(struct dock_hold *h)
{
    if (h->piece != &h->one)
        free(h->piece);
    h->piece = NULL;
    h->pieces = h->room = 0;
}

const struct dock_piece *dock_hold_at(const struct dock_hold *h, uint64_t addr, uint64_t *room)
{
    unsigned at = first_behind(h, addr);
    const struct dock_piece *p = &h->piece[at];

    if (at < h->pieces && addr >= p->addr) {
        *room = p->len - (addr - p->addr);
        return p;
    }
    *room = (at < h->pieces ? p->addr : h->addr + h->len) - addr;
    return NULL;
}
