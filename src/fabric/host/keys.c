// SPDX-License-Identifier: MIT
// Remote keys: the entry of the target's segment table, checked once, then kept as long as its generation
// stands.
#include <sched.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/rawcall.h"
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

// Its words are the peer's: read once.
static struct dock_piece read_piece(const struct dock_segpiece *from)
{
    const dock_a64 *word = (const dock_a64 *)from;

    return (struct dock_piece){dock_peek64(&word[0]), dock_peek64(&word[1]), dock_peek64(&word[2])};
}

static bool holds(const struct dock_segpiece *from, const struct dock_piece *p)
{
    return dock_peek64((const dock_a64 *)&from->sum) == dock_piece_sum(p);
}

bool dock_host_piece(const struct dock_segpiece *from, struct dock_piece *out)
{
    *out = read_piece(from);
    return holds(from, out);
}

static bool all_hold(const struct dock_segpiece *piece, uint32_t count)
{
    struct dock_piece p;
    uint32_t i = 0;

    while (i < count && dock_host_piece(&piece[i], &p))
        i++;
    return i == count;
}

// The table of a segment that is in the arena in part. Its words are the peer's: bounded here, and each
// piece where it is used.
static bool find_table(struct dock_conn *c, uint64_t off, struct dock_rkey *e)
{
    const struct dock_segpieces *t = off % 8 ? NULL : dock_view_at(c->peer->view, off, sizeof *t);
    uint32_t count = t ? t->count : 0;

    if (!count || count > DOCK_PIECES_MAX ||
        !dock_view_at(c->peer->view, off, sizeof *t + count * sizeof *t->piece) ||
        dock_pieces_sum(t->piece, count) != t->sum || !all_hold(t->piece, count))
        return false;
    e->table = t;
    e->pieces = count;
    return true;
}

// A piece that does not hold together any more is reached as if it were plain: all that is in the arena is
// its owner's memory too.
struct dock_place dock_host_seek(struct dock_conn *c, const struct dock_rkey *k, uint64_t va)
{
    struct dock_rkey *own = &c->key[k - c->key];
    uint64_t addr = k->addr + (va - k->va), room = k->len - (va - k->va);
    pid_t pid = k->access & DOCK_ACCESS_NOTHING ? DOCK_NOBODY : c->peer->pid;
    struct dock_place plain = {.plain = addr, .pid = pid, .key = k, .va = va, .room = room};
    struct dock_piece p = {0};
    bool found = false;

    for (uint32_t i = 0; i < k->pieces && !found; i++) {
        p = read_piece(&k->table->piece[i]);
        found = addr - p.addr < p.len && holds(&k->table->piece[i], &p);
        if (p.addr > addr && p.addr - addr < plain.room)
            plain.room = p.addr - addr;
    }
    char *base = found ? dock_view_at(c->peer->view, p.off, p.len) : NULL;
    if (!base)
        return plain;
    // The piece may begin before the key does (a window) and end behind it.
    uint64_t before = p.addr < k->addr ? addr - k->addr : addr - p.addr, behind = p.len - (addr - p.addr);
    own->base = base + (addr - p.addr) - before;
    own->mapped = va - before;
    own->room = before + (behind < room ? behind : room);
    return (struct dock_place){.at = own->base + before, .key = k, .va = va, .room = own->room - before};
}

// The entry stands, and its owner knows that somebody has found it; else the generation is odd.
static uint64_t found(struct dock_segrec *rec)
{
    uint64_t seen = dock_acquire64(&rec->generation); // pairs with the publish in mr.c; odd while it changes

    while (__builtin_expect(dock_seg_is_new(seen) && !(seen & 1), 0)) {
        uint64_t old = seen & ~DOCK_SEG_NEWNESS;
        if (dock_claim64(&rec->generation, &seen, old)) // pairs with dock_segrec_clear
            return old;
    }
    return seen;
}

// An entry as it stands, whole or not at all.
static const struct dock_segrec *read_entry(struct dock_conn *c, uint32_t tid, struct dock_segrec *s,
                                            uint64_t *generation)
{
    struct dock_segrec *rec = entry(c, tid);

    if (!rec)
        return NULL;
    *generation = found(rec);
    dock_segrec_copy(s, rec);
    return *generation & 1 || s->sum != dock_segrec_sum(s) ? NULL : rec;
}

// What a request asks of a segment: all of the range, with these rights.
struct wish {
    uint64_t va, len;
    uint32_t need;
};

// Do these rights over this range grant it?
static inline bool granted(const struct wish *w, uint32_t access, uint64_t va, uint64_t len)
{
    return (access & w->need) == w->need && w->va >= va && w->len <= len && w->va - va <= len - w->len;
}

// One walk along the chain that `head` begins: the segment that this request may reach, NULL: there is none.
// *whole says whether all that was read held together.
static const struct dock_segrec *walk(struct dock_conn *c, const struct dock_segrec *head, uint32_t token,
                                      const struct wish *w, struct dock_segrec *s, uint64_t *generation,
                                      bool *whole)
{
    const struct dock_segrec *rec;
    uint32_t at = head->kind_qpn & DOCK_ID_MASK;

    *whole = true;
    for (uint32_t steps = c->peer->port->nsegments; at && steps; steps--) {
        rec = read_entry(c, at, s, generation);
        *whole = rec != NULL;
        if (!rec)
            break;
        if (remote_key_fits(c, s, token) && granted(w, s->access, s->va, s->len))
            return rec;
        at = s->kind_qpn & DOCK_ID_MASK;
    }
    return NULL;
}

enum { WALKS = 2000, WALKS_OF_A_TURN = 16 };

#define OWNER_PATIENCE_NS 100000000ull // for one that has lost the processor in the middle of a change
#define OWNER_PAUSE_NS 50000

// Between two walks. false: there is nothing to wait for any more.
static bool await_owner(const struct dock_conn *c, unsigned tries, uint64_t *since_ns)
{
    struct timespec pause = {.tv_nsec = OWNER_PAUSE_NS};

    if (tries >= WALKS) {
        uint64_t now = dock_now_ns();
        *since_ns = *since_ns ? *since_ns : now;
        if (now - *since_ns > OWNER_PATIENCE_NS || dock_peek32(&c->peer->dead))
            return false;
        dock_rawcall(SYS_nanosleep, (long)&pause, 0, 0, 0, 0, 0); // a post is no place to cancel a thread at
    } else if (tries % WALKS_OF_A_TURN) {
        dock_relax();
    } else {
        sched_yield();
    }
    return true;
}

// Segments come and go while we walk: a walk counts if the entry that the chain begins with stood all the
// while.
static const struct dock_segrec *among(struct dock_conn *c, uint32_t tid, uint32_t token,
                                       const struct wish *w, struct dock_segrec *s, uint64_t *generation)
{
    const struct dock_segrec *first, *found;
    struct dock_segrec head = {0};
    uint64_t stood, since_ns = 0;
    bool whole = true;

    for (unsigned tries = 1;; tries++) {
        first = read_entry(c, tid, &head, &stood);
        found = first && head.kind_qpn >> 24 == DOCK_SEG_MANY
                    ? walk(c, &head, token, w, s, generation, &whole)
                    : NULL;
        dock_fence_load(); // pairs with the publish of the first entry, the last of a change
        if (first && whole && dock_peek64(&first->generation) == stood)
            return found;
        if ((!first && head.kind_qpn >> 24 != DOCK_SEG_MANY) || !await_owner(c, tries, &since_ns))
            return NULL; // the id has been given back, or nobody finishes the change
    }
}

// NULL: *e is the segment. Else why it is not, in words.
static const char *fill(struct dock_conn *c, uint32_t tid, uint32_t token, bool local, const struct wish *w,
                        struct dock_rkey *e)
{
    struct dock_segrec s = {.kind_qpn = DOCK_SEG_FREE << 24};
    uint64_t generation;
    const struct dock_segrec *rec = read_entry(c, tid, &s, &generation);
    bool many = !local && s.kind_qpn >> 24 == DOCK_SEG_MANY; // also while it changes

    dock_host_forget(e);
    if (many)
        rec = among(c, tid, token, w, &s, &generation);
    if (!rec)
        return "its entry is taken away, or does not hold together";
    if (!(local ? local_key_fits(c, &s, token) : remote_key_fits(c, &s, token)))
        return "nothing is there under this key in the domain of the queue";
    *e = (struct dock_rkey){.writes = DOCK_RKEY_NONE,
                            .tid = tid,
                            .token = token,
                            .local = local,
                            .many = many,
                            .generation = generation,
                            .addr = s.addr,
                            .va = s.va,
                            .len = s.len,
                            .access = s.access};
    if (s.off != DOCK_SEG_PLAIN && s.off & DOCK_SEG_PIECES) {
        if (!find_table(c, s.off & ~DOCK_SEG_PIECES, e))
            return "the table of its pieces does not hold together";
    } else if (s.off != DOCK_SEG_PLAIN) {
        e->base = dock_view_at(c->peer->view, s.off, s.len);
        if (!e->base)
            return "it lies outside of its owner's arena";
        e->mapped = s.va;
        e->room = s.len;
    }
    e->rec = rec;
    if (!local && s.access & DOCK_ACCESS_REMOTE_WRITE)
        e->writes = dock_rkey_name(tid, token);
    return NULL;
}

static const char *find(struct dock_conn *c, uint32_t tid, uint32_t token, bool local, uint64_t va,
                        uint64_t len, uint32_t need, const struct dock_rkey **out)
{
    struct wish w = {va, len, need};
    struct dock_rkey *e = dock_conn_key(c, tid, local);
    const char *why = NULL;

    bool stands = e->rec && e->tid == tid && e->token == token && e->local == local &&
                  dock_acquire64(&e->rec->generation) == e->generation;

    if (__builtin_expect(!stands || (e->many && !granted(&w, e->access, e->va, e->len)), 0))
        why = fill(c, tid, token, local, &w, e);
    *out = e;
    return why || granted(&w, e->access, e->va, e->len) ? why : "it is shorter, or has fewer rights";
}

static void __attribute__((cold))
tell_refused(const struct dock_conn *c, const char *what, uint32_t tid, const struct wish *w, const char *why)
{
    dock_info("queue %u: %s of queue %u, entry %u, %llu bytes at %#llx, rights %#x: %s", c->source_qp, what,
              c->dest_qp, tid, (unsigned long long)w->len, (unsigned long long)w->va, w->need, why);
}

const struct dock_rkey *dock_direct_key(struct dock_conn *c, uint64_t name)
{
    static const struct dock_rkey none;
    const struct dock_rkey *k = dock_conn_key(c, (uint32_t)name, false);

    return k->writes == name ? (c->written = k) : &none;
}

uint32_t dock_host_rkey(struct dock_conn *c, uint32_t tid, uint32_t token, uint64_t va, uint64_t len,
                        uint32_t need, const struct dock_rkey **out)
{
    const char *why = find(c, tid, token, false, va, len, need, out);

    if (__builtin_expect(why == NULL, 1))
        return DOCK_OK;
    tell_refused(c, "memory", tid, &(struct wish){va, len, need}, why);
    return DOCK_ST_REM_ACCESS;
}

uint32_t dock_host_bare_rkey(struct dock_conn *c, uint32_t tid, uint32_t token, uint64_t va, uint64_t len,
                             uint32_t need, const struct dock_rkey **out)
{
    struct dock_segrec s = {0};
    uint64_t generation;

    read_entry(c, tid, &s, &generation);
    if (s.kind_qpn >> 24 == DOCK_SEG_MANY) // the segments of one token id are of one domain
        read_entry(c, s.kind_qpn & DOCK_ID_MASK, &s, &generation);
    c->key_pd = s.pd;
    return dock_host_rkey(c, tid, token, va, len, need, out);
}

uint32_t dock_host_tid(struct dock_conn *c, const struct dock_rkey *k)
{
    return (uint32_t)(k->rec - entry(c, 1)) + 1;
}

bool dock_host_lkey(struct dock_conn *c, uint32_t key, uint64_t va, uint64_t len,
                    const struct dock_rkey **out)
{
    // The owner names its memory by its own addresses: a region with an iova is found under the iova, as
    // verbs has it.
    const char *why = find(c, key >> 8, key, true, va, len, DOCK_ACCESS_LOCAL_WRITE, out);

    if (__builtin_expect(why != NULL, 0))
        tell_refused(c, "a receive", key >> 8, &(struct wish){va, len, DOCK_ACCESS_LOCAL_WRITE}, why);
    return why == NULL;
}

// A segment, whatever is to be done with it. One of several of a token id is not found so.
static const struct wish nothing;

struct dock_segrec *dock_host_window(struct dock_conn *c, uint32_t key)
{
    struct dock_rkey *e = dock_conn_key(c, key >> 8, false);

    if (fill(c, key >> 8, key, false, &nothing, e))
        return NULL;
    return e->rec->kind_qpn >> 24 == DOCK_SEG_MW2 ? entry(c, key >> 8) : NULL;
}

struct dock_segrec *dock_host_segment(struct dock_conn *c, uint32_t tid, uint32_t token)
{
    struct dock_rkey *e = dock_conn_key(c, tid, false);

    if (fill(c, tid, token, false, &nothing, e))
        return NULL;
    return e->rec->kind_qpn >> 24 == DOCK_SEG_MR ? entry(c, tid) : NULL;
}
