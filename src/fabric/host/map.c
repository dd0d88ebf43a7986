// SPDX-License-Identifier: MIT
// Mapping a segment: the pages of its owner's arena that hold it, side by side. A hazard in the owner's arena
// says which segment is mapped: whoever deregisters makes the entry bad, waits for us as for any request, and
// then sees what is mapped; we look at the entry once more before we leave.
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "fabric/host/host.h"
#include "fabric/map.h"

enum { TRIES = 100 }; // while the owner changes the entry: each time it publishes another one

// What is laid out: [lo, hi) of the owner's address space.
struct layout {
    const struct dock_rkey *key;
    uint64_t off; // of a segment that is one piece
    uint64_t lo, hi, mask;
    int prot;
};

static bool piece_at(const struct layout *l, uint64_t addr, struct dock_piece *p)
{
    const struct dock_rkey *k = l->key;

    if (!k->table) {
        *p = (struct dock_piece){k->addr, k->len, l->off};
        return l->off != DOCK_SEG_PLAIN;
    }
    for (uint32_t i = 0; i < k->pieces; i++) {
        if (dock_host_piece(&k->table->piece[i], p) && addr - p->addr < p->len)
            return true;
    }
    return false;
}

static int lay_pages(struct dock_map *m, const struct layout *l)
{
    struct dock_view *view = m->way.peer->view;
    uint64_t first = l->lo & ~l->mask, end;
    struct dock_piece p;

    for (uint64_t at = l->lo; at < l->hi; at = end) {
        if (!piece_at(l, at, &p) || (p.addr ^ p.off) & l->mask || !dock_view_at(view, p.off, p.len))
            return dock_refuse(-EOPNOTSUPP,
                               "memory at %#llx of device %#x is not in its arena: it cannot be mapped",
                               (unsigned long long)at, m->way.dest_who);
        end = l->hi - p.addr < p.len ? l->hi : p.addr + p.len;
        uint64_t from = at & ~l->mask, bytes = ((end + l->mask) & ~l->mask) - from;
        if (mmap(m->base + (from - first), bytes, l->prot, MAP_SHARED | MAP_FIXED, view->fd,
                 (off_t)((p.off + (at - p.addr)) & ~l->mask)) == MAP_FAILED)
            return dock_refuse(-ENOMEM, "%llu bytes of device %#x cannot be mapped",
                               (unsigned long long)bytes, m->way.dest_who);
    }
    return 0;
}

// A place for all of it, with nothing there yet.
static int find_room(struct dock_map *m, const struct layout *l, char *at)
{
    int fixed = at ? MAP_FIXED_NOREPLACE : 0;
    uint64_t inside = l->lo & l->mask;
    char *want = at ? at - inside : NULL;

    m->bytes = ((l->hi + l->mask) & ~l->mask) - (l->lo - inside);
    m->base = mmap(want, m->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);
    if (m->base == MAP_FAILED || (want && m->base != want)) {
        int err = m->base == MAP_FAILED && errno != EEXIST ? -ENOMEM : -EEXIST;
        if (m->base != MAP_FAILED)
            munmap(m->base, m->bytes);
        m->bytes = 0;
        return dock_refuse(err, "no room for a mapping%s", err == -EEXIST ? " there: something is" : "");
    }
    m->at = m->base + inside;
    return 0;
}

// A forked child has no device, and none of a peer's memory; nor has a dump.
static int keep_to_ourselves(struct dock_map *m)
{
    if (dock_view_seclude(m->base, m->bytes))
        return dock_refuse(-ENOMEM, "a mapping cannot be kept from forked children and dumps");
    return 0;
}

static void take_down(struct dock_map *m)
{
    if (m->bytes)
        munmap(m->base, m->bytes);
    m->bytes = 0;
    m->at = NULL;
}

static int lay(struct dock_map *m, const struct dock_map_want *w, const struct layout *l)
{
    int err;

    if (w->at && ((uintptr_t)w->at ^ l->lo) & l->mask)
        return dock_refuse(-EINVAL, "%p does not lie in its page as the segment does", w->at);
    if (m->way.peer->pid == getpid()) { // of this device, or another one of the process: it is here already
        m->at = (char *)(uintptr_t)l->lo;
        return w->at && w->at != m->at
                   ? dock_refuse(-EEXIST, "the segment is of this process, at %p", (void *)m->at)
                   : 0;
    }
    err = find_room(m, l, w->at);
    if (!err)
        err = lay_pages(m, l);
    if (!err) // not before: the pages laid there had their own flags
        err = keep_to_ourselves(m);
    if (err)
        take_down(m);
    return err;
}

// Between enter and leave.
static int look_and_lay(struct dock_map *m, const struct dock_map_want *w)
{
    struct dock_conn *c = &m->way;
    const struct dock_rkey *k;
    struct dock_segrec s;
    int err;

    if (dock_peek32(&c->peer->dead))
        return dock_refuse(-EHOSTUNREACH, "device %#x is dead", c->dest_who);
    if (dock_host_bare_rkey(c, w->tid, w->token, w->va, w->len, w->need, &k))
        return -EACCES;
    dock_segrec_copy(&s, k->rec);
    if (s.kind_qpn >> 24 != DOCK_SEG_MR)
        return dock_refuse(-EACCES, "entry %u is no segment", w->tid);
    struct layout l = {.key = k,
                       .off = s.off,
                       .lo = k->addr + (w->va - k->va),
                       .hi = k->addr + (w->va - k->va) + w->len,
                       .mask = (uint64_t)sysconf(_SC_PAGESIZE) - 1,
                       .prot = PROT_READ | (w->need & DOCK_ACCESS_REMOTE_WRITE ? PROT_WRITE : 0)};
    err = lay(m, w, &l);
    dock_fence_load(); // pairs with the publish in mr.c: the pieces were read under this generation
    if (dock_peek64(&k->rec->generation) != k->generation) {
        take_down(m);
        return -EAGAIN;
    }
    if (!err)
        dock_set32(&c->hazard->mapped, dock_host_tid(c, k));
    return err;
}

int dock_fabric_map(struct dock_map *m, const struct dock_map_want *w)
{
    struct dock_conn *c = &m->way;
    int err = dock_host_visit(c);

    if (err)
        return err;
    err = -EAGAIN;
    for (unsigned i = 0; i < TRIES && err == -EAGAIN; i++) {
        dock_set64(&c->hazard->busy, ++c->hazard_value);
        dock_fence_light(); // pairs with dock_fence_heavy in dock_quiesce: show the hazard, then look
        err = look_and_lay(m, w);
        dock_direct_leave(c); // whoever waited for it sees what is mapped
    }
    if (err)
        dock_host_disconnect(c);
    return err == -EAGAIN ? dock_refuse(-EACCES, "the entry of segment %u does not come to rest", w->tid)
                          : err;
}

void dock_fabric_unmap(struct dock_map *m)
{
    take_down(m);
    dock_publish32(&m->way.hazard->mapped, 0); // no byte moves after; pairs with dock_seg_mapped
    dock_host_disconnect(&m->way);
}
