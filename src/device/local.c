// SPDX-License-Identifier: MIT
// Local keys, looked up on every access.
#include "device/internal.h"

static bool covers(const struct dock_lkey *l, uint64_t va, uint64_t len, uint32_t need)
{
    return (l->access & need) == need && va >= l->va && len <= l->len && va - l->va <= l->len - len;
}

// Raw producers leave the key unwritten: any region of the domain that covers the range will do.
static struct dock_lkey *by_range(struct dock_dev *dev, const struct dock_xfer *x,
                                  const struct dock_sge_local *sge, uint32_t need)
{
    for (uint32_t tid = 1; tid <= dock_peek32(&dev->tid_high); tid++) {
        struct dock_lkey *l = &dev->lkeys[tid];
        uint64_t name = dock_lkey_name(x->pd, (uint32_t)dock_peek64(&l->name));
        if (dock_lkey_found(l, name) && !(l->access & DOCK_ACCESS_NOTHING) &&
            covers(l, sge->va, sge->len, need))
            return l;
    }
    return NULL;
}

// Both ends of a region of no memory, as long as the longest piece.
static char zeros[DOCK_PIECE], sink[DOCK_PIECE];

// Not in the longest mapped part: in another one, plain, or nowhere. The region stays as long as its key is
// in use.
static void other_part(struct dock_dev *dev, const struct dock_lkey *l, uint32_t need, struct dock_span *out)
{
    const struct dock_piece *p;

    if (l->access & DOCK_ACCESS_NOTHING) {
        out->at = need & DOCK_ACCESS_LOCAL_WRITE ? sink : zeros;
        out->room = DOCK_PIECE;
        return;
    }
    p = dock_hold_at(&dev->mr[l->tid]->hold, out->plain, &out->room);
    out->at = p ? dock_view_at(&dev->arena.view, p->off + (out->plain - p->addr), out->room) : NULL;
}

// A relay carries what lies in its producer's arena.
static uint32_t of_origin(const struct dock_origin *o, const struct dock_sge_local *sge, uint32_t skip,
                          struct dock_span *out)
{
    uint64_t inside = sge->va - o->va;

    if (inside >= o->len || sge->len > o->len - inside) {
        dock_error("a relay was given %u bytes at %#llx, which are not in the memory of its producer's arena",
                   sge->len, (unsigned long long)sge->va);
        return DOCK_ST_LOC_PROT;
    }
    *out = (struct dock_span){
        .at = o->at + inside + skip, .plain = sge->va + skip, .room = o->len - inside - skip};
    return DOCK_OK;
}

static uint32_t __attribute__((cold)) no_region(const struct dock_sge_local *sge, uint32_t need)
{
    dock_info("local key %#x, %u bytes at %#llx, rights %#x: no region of the domain grants that", sge->key,
              sge->len, (unsigned long long)sge->va, need);
    return DOCK_ST_LOC_PROT;
}

uint32_t dock_up_local(struct dock_dev *dev, const struct dock_xfer *x, const struct dock_sge_local *sge,
                       uint32_t skip, uint32_t need, struct dock_span *out)
{
    struct dock_lkey *l;

    if (__builtin_expect(!sge->len, 0)) { // names no byte, so no region either
        *out = (struct dock_span){.plain = sge->va};
        return DOCK_OK;
    }
    if (__builtin_expect(x->keyed, 1)) {
        uint32_t tid = sge->key >> 8;
        l = tid < dev->nsegments ? &dev->lkeys[tid] : &dev->lkeys[0];
        uint64_t name = dock_lkey_name(x->pd, sge->key);
        // pairs with publish_lkey; entry 0 is never given a key
        if (__builtin_expect((dock_acquire64(&l->name) != name && !dock_lkey_found(l, name)) ||
                                 !covers(l, sge->va, sge->len, need),
                             0))
            return no_region(sge, need);
    } else if (x->origin) {
        return of_origin(x->origin, sge, skip, out);
    } else {
        l = by_range(dev, x, sge, need);
        if (!l)
            return no_region(sge, need);
    }
    uint64_t va = sge->va + skip, inside = va - l->mapped;
    out->plain = l->addr + (va - l->va);
    if (__builtin_expect(inside >= l->room, 0)) {
        other_part(dev, l, need, out);
        return DOCK_OK;
    }
    out->at = l->at + inside;
    out->room = l->room - inside;
    return DOCK_OK;
}
