// SPDX-License-Identifier: MIT
// Remote keys: the entry of the target's segment table, checked once, then kept as long as its generation
// stands.
#include "fabric/host/host.h"

// A remote key reaches what the target queue's domain (and, for a type 2 window, the queue itself) may reach.
static bool remote_key_fits(const struct dock_conn *c, const struct dock_segrec *s, uint32_t token)
{
    switch (s->kind_qpn >> 24) {
    case DOCK_SEG_MR:
    case DOCK_SEG_MW1:
        return (s->token == token || s->access & DOCK_ACCESS_NO_TOKEN) && s->pd == c->key_pd;
    case DOCK_SEG_MW2:
        return s->token == token && s->pd == c->key_pd && (s->kind_qpn & DOCK_ID_MASK) == c->dest_qp;
    default:
        return false;
    }
}

// The local key that a receive of the target names.
static bool local_key_fits(const struct dock_conn *c, const struct dock_segrec *s, uint32_t token)
{
    uint32_t kind = s->kind_qpn >> 24;

    return (kind == DOCK_SEG_MR || kind == DOCK_SEG_NOTHING) && s->lkey == token && s->pd == c->rq.pd;
}

static struct dock_segrec *entry(struct dock_conn *c, uint32_t tid)
{
    const struct dock_port *port = c->peer->port;
    uint64_t table = dock_peek64((const dock_a64 *)&port->segments); // once: it is a peer's word

    if (tid == 0 || tid >= port->nsegments || table % 64)
        return NULL;
    return dock_view_at(c->peer->view, table + (uint64_t)tid * sizeof(struct dock_segrec),
                        sizeof(struct dock_segrec));
}

// The table of a segment that is in the arena in part. Its words are the peer's: bounded here, and each
// piece where it is used.
static bool find_table(struct dock_conn *c, uint64_t off, struct dock_rkey *e)
{
    const struct dock_segpieces *t = off % 8 ? NULL : dock_view_at(c->peer->view, off, sizeof *t);
    uint32_t count = t ? t->count : 0;

    if (!count || count > DOCK_PIECES_MAX ||
        !dock_view_at(c->peer->view, off, sizeof *t + count * sizeof *t->piece) ||
        dock_pieces_sum(t->piece, count) != t->sum)
        return false;
    e->table = t;
    e->pieces = count;
    return true;
}

struct dock_place dock_host_seek(struct dock_conn *c, const struct dock_rkey *k, uint64_t va)
{
    struct dock_rkey *own = &c->key[k - c->key];
    uint64_t addr = k->addr + (va - k->va), room = k->len - (va - k->va);
    pid_t pid = k->access & DOCK_ACCESS_NOTHING ? DOCK_NOBODY : c->peer->pid;
    struct dock_place plain = {.plain = addr, .pid = pid, .key = k, .va = va, .room = room};
    struct dock_piece p = {0};
    uint32_t i = 0;

    for (; i < k->pieces; i++) {
        p = k->table->piece[i];
        if (addr - p.addr < p.len)
            break;
        if (p.addr > addr && p.addr - addr < plain.room)
            plain.room = p.addr - addr;
    }
    char *base = i < k->pieces ? dock_view_at(c->peer->view, p.off, p.len) : NULL;
    if (!base)
        return plain;
    // The piece may begin before the key does (a window) and end behind it.
    uint64_t before = p.addr < k->addr ? addr - k->addr : addr - p.addr, behind = p.len - (addr - p.addr);
    own->base = base + (addr - p.addr) - before;
    own->mapped = va - before;
    own->room = before + (behind < room ? behind : room);
    return (struct dock_place){.at = own->base + before, .key = k, .va = va, .room = own->room - before};
}

static bool fill(struct dock_conn *c, uint32_t tid, uint32_t token, bool local, struct dock_rkey *e)
{
    const struct dock_segrec *rec = entry(c, tid);
    struct dock_segrec s;

    e->rec = NULL;
    if (!rec)
        return false;
    uint64_t generation =
        dock_acquire64(&rec->generation); // pairs with the publish in mr.c; odd while it changes
    dock_segrec_copy(&s, rec);
    if (generation & 1 || s.sum != dock_segrec_sum(&s) ||
        !(local ? local_key_fits(c, &s, token) : remote_key_fits(c, &s, token)))
        return false;
    *e = (struct dock_rkey){.tid = tid,
                            .token = token,
                            .local = local,
                            .generation = generation,
                            .addr = s.addr,
                            .va = s.va,
                            .len = s.len,
                            .access = s.access};
    if (s.off != DOCK_SEG_PLAIN && s.off & DOCK_SEG_PIECES) {
        if (!find_table(c, s.off & ~DOCK_SEG_PIECES, e))
            return false;
    } else if (s.off != DOCK_SEG_PLAIN) {
        e->base = dock_view_at(c->peer->view, s.off, s.len);
        if (!e->base)
            return false;
        e->mapped = s.va;
        e->room = s.len;
    }
    e->rec = rec;
    return true;
}

static bool find(struct dock_conn *c, uint32_t tid, uint32_t token, bool local, uint64_t va, uint64_t len,
                 uint32_t need, const struct dock_rkey **out)
{
    struct dock_rkey *e = &c->key[tid % DOCK_RKEYS];

    if (__builtin_expect(!e->rec || e->tid != tid || e->token != token || e->local != local ||
                             dock_acquire64(&e->rec->generation) != e->generation,
                         0) &&
        !fill(c, tid, token, local, e))
        return false;
    *out = e;
    return (e->access & need) == need && va >= e->va && len <= e->len && va - e->va <= e->len - len;
}

uint32_t dock_host_rkey(struct dock_conn *c, uint32_t tid, uint32_t token, uint64_t va, uint64_t len,
                        uint32_t need, const struct dock_rkey **out)
{
    return __builtin_expect(find(c, tid, token, false, va, len, need, out), 1) ? DOCK_OK : DOCK_ST_REM_ACCESS;
}

bool dock_host_lkey(struct dock_conn *c, uint32_t key, uint64_t va, uint64_t len,
                    const struct dock_rkey **out)
{
    // The owner names its memory by its own addresses: a region with an iova is found under the iova, as
    // verbs has it.
    return find(c, key >> 8, key, true, va, len, DOCK_ACCESS_LOCAL_WRITE, out);
}

struct dock_segrec *dock_host_window(struct dock_conn *c, uint32_t key)
{
    struct dock_rkey *e = &c->key[(key >> 8) % DOCK_RKEYS];

    if (!fill(c, key >> 8, key, false, e))
        return NULL;
    return e->rec->kind_qpn >> 24 == DOCK_SEG_MW2 ? entry(c, key >> 8) : NULL;
}

struct dock_segrec *dock_host_segment(struct dock_conn *c, uint32_t tid, uint32_t token)
{
    struct dock_rkey *e = &c->key[tid % DOCK_RKEYS];

    if (!fill(c, tid, token, false, e))
        return NULL;
    return e->rec->kind_qpn >> 24 == DOCK_SEG_MR ? entry(c, tid) : NULL;
}
