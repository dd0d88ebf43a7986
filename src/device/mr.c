// SPDX-License-Identifier: MIT
// Memory regions: two tables, one private for our own local keys, one in the arena for what peers name. A key
// is tid << 8 | variant; the variant of a local key is even, of a remote key odd, so they are never equal,
// and both change with each use of the tid.
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "arena/xcopy.h"
#include "device/internal.h"

// Stands where a tid is reserved and no segment uses it: of no kind, so that nobody takes it for one.
static struct dock_mr kept;

// dev->lock is held.
static uint32_t free_tid(struct dock_dev *dev)
{
    for (uint32_t i = 0; i < dev->nsegments - 1; i++) {
        uint32_t at = 1 + (dev->tid_cursor + i) % (dev->nsegments - 1);
        if (dev->mr[at])
            continue;
        dev->tid_cursor = at;
        if (at > dock_peek32(&dev->tid_high))
            dock_set32(&dev->tid_high, at);
        return at;
    }
    return 0;
}

int dock_tid_reserve(struct dock_dev *dev, uint32_t *out)
{
    dock_lock(&dev->lock);
    uint32_t tid = free_tid(dev);
    if (tid)
        dev->mr[tid] = &kept;
    dock_unlock(&dev->lock);
    if (!tid)
        return dock_refuse(-ENOMEM, "no number for a token is free");
    *out = tid;
    return 0;
}

int dock_tid_release(struct dock_dev *dev, uint32_t tid)
{
    int err = -EINVAL;

    dock_lock(&dev->lock);
    if (tid && tid < dev->nsegments && dev->mr[tid]) {
        err = dev->mr[tid] == &kept ? 0 : -EBUSY;
        if (dev->mr[tid]->kind == DOCK_SEG_MANY)
            err = dock_many_end(dev, dev->mr[tid]);
    }
    if (!err)
        dev->mr[tid] = NULL;
    dock_unlock(&dev->lock);
    return err ? dock_refuse(err, "token %#x is %s", tid << 8, err == -EBUSY ? "in use" : "not reserved") : 0;
}

// A tid for it: the one it asks for (mr->tid, reserved), or any.
int dock_tid_take(struct dock_dev *dev, struct dock_mr *mr)
{
    uint32_t tid = 0;

    dock_lock(&dev->lock);
    if (!mr->tid_kept)
        tid = free_tid(dev);
    else if (mr->tid < dev->nsegments && dev->mr[mr->tid] == &kept)
        tid = mr->tid;
    if (tid) {
        dev->mr[tid] = mr;
        mr->tid = tid;
        uint8_t variant = (uint8_t)(dev->variant[tid] += 2);
        mr->lkey = tid << 8 | variant;
        mr->rkey = mr->token = tid << 8 | variant | 1;
    }
    dock_unlock(&dev->lock);
    return tid ? 0 : mr->tid_kept ? dock_refuse(-EBUSY, "token %#x is not free", mr->tid << 8) : -ENOMEM;
}

void dock_tid_give(struct dock_dev *dev, const struct dock_mr *mr)
{
    dock_lock(&dev->lock);
    dev->mr[mr->tid] = mr->tid_kept ? &kept : NULL;
    dock_unlock(&dev->lock);
}

// The longest part that is mapped is what the short way looks at.
static void find_longest(struct dock_dev *dev, const struct dock_mr *mr, struct dock_lkey *l)
{
    const struct dock_piece *longest = NULL;

    for (unsigned i = 0; i < mr->hold.pieces; i++)
        if (!longest || mr->hold.piece[i].len > longest->len)
            longest = &mr->hold.piece[i];
    l->room = longest ? longest->len : 0;
    l->mapped = longest ? mr->va + (longest->addr - mr->addr) : mr->va;
    l->at = longest ? dock_view_at(&dev->arena.view, longest->off, longest->len) : NULL;
}

// In the name of a local key that nobody has found yet, as DOCK_SEG_NEW in an entry.
#define LKEY_NEW ((uint64_t)1 << 63)

bool dock_lkey_found(struct dock_lkey *l, uint64_t name)
{
    uint64_t seen = dock_acquire64(&l->name); // pairs with publish_lkey

    if (seen != (name | LKEY_NEW))
        return seen == name;
    return dock_claim64(&l->name, &seen, name) || seen == name; // pairs with dock_lkey_clear
}

static void publish_lkey(struct dock_dev *dev, const struct dock_mr *mr, uint64_t new)
{
    struct dock_lkey *l = &dev->lkeys[mr->tid];

    l->access = mr->access;
    l->tid = mr->tid;
    l->va = mr->va;
    l->len = mr->len;
    l->addr = mr->addr;
    if (mr->implicit) {
        l->at = (char *)(uintptr_t)mr->addr;
        l->mapped = mr->va;
        l->room = mr->len;
    } else {
        find_longest(dev, mr, l);
    }
    dock_publish64(&l->name,
                   dock_lkey_name(mr->pd, mr->lkey) | new); // pairs with dock_lkey_found, and fast.c
}

void dock_lkey_publish(struct dock_dev *dev, const struct dock_mr *mr)
{
    publish_lkey(dev, mr, 0);
}

bool dock_lkey_clear(struct dock_dev *dev, const struct dock_mr *mr)
{
    // pairs with dock_lkey_found
    uint64_t was = atomic_exchange_explicit(&dev->lkeys[mr->tid].name, 0, memory_order_acq_rel);

    return was && !(was & LKEY_NEW);
}

static void publish_segrec(struct dock_dev *dev, const struct dock_mr *mr, uint32_t qpn, uint64_t new)
{
    struct dock_segrec *rec = &dev->segments[mr->tid];
    uint32_t follows = mr->next ? mr->next->tid : qpn;
    struct dock_segrec s = {.va = mr->va,
                            .len = mr->len,
                            .off = mr->off,
                            .addr = mr->addr,
                            .token = mr->token,
                            .pd = mr->pd,
                            .access = mr->access,
                            .kind_qpn = mr->kind << 24 | follows,
                            .lkey = mr->lkey};
    uint64_t generation = (dock_peek64(&rec->generation) & ~DOCK_SEG_NEWNESS) | 1;

    s.sum = dock_segrec_sum(&s);
    dock_set64(&rec->generation, generation);
    dock_fence_store();
    dock_segrec_copy(rec, &s);
    dock_publish64(&rec->generation,
                   (generation + 1) | new); // pairs with the acquire in fabric/host/keys.c
}

void dock_segrec_publish(struct dock_dev *dev, const struct dock_mr *mr, uint32_t qpn)
{
    publish_segrec(dev, mr, qpn, 0);
}

bool dock_segrec_clear(struct dock_dev *dev, uint32_t tid)
{
    struct dock_segrec *rec = &dev->segments[tid], none = {.kind_qpn = DOCK_SEG_FREE << 24, .sum = 1};
    // Odd: refused until it is published anew. Pairs with the claim in fabric/host/keys.c.
    uint64_t was = atomic_fetch_or_explicit(&rec->generation, 1, memory_order_acq_rel);

    dock_fence_store();
    dock_segrec_copy(rec, &none);
    return !dock_seg_is_new(was);
}

// ---- where the memory is: in the arena, plain and reachable through the kernel, or part this and part that

// What mr->hold says, as peers read it.
static int write_pieces(struct dock_dev *dev, struct dock_mr *mr)
{
    const struct dock_hold *h = &mr->hold;
    uint32_t count = h->pieces;
    struct dock_segpieces *t;
    int err;

    mr->table_bytes = 0;
    mr->off = count ? h->piece[0].off : DOCK_SEG_PLAIN;
    if (!count || h->piece[0].len == mr->len)
        return 0;
    if (count > DOCK_PIECES_MAX) // a peer would reach the others beside those who reach them mapped
        return dock_refuse(-ENOMEM,
                           "a region that lies in the arena in %u pieces: at most %u are told to peers",
                           count, DOCK_PIECES_MAX);
    mr->table_bytes = sizeof *t + count * sizeof *t->piece;
    err = dock_arena_alloc(&dev->arena, mr->table_bytes, 64, &mr->table);
    if (err) {
        mr->table_bytes = 0;
        return err;
    }
    t = dock_arena_at(&dev->arena, mr->table);
    t->count = count;
    for (uint32_t i = 0; i < count; i++)
        t->piece[i] = (struct dock_segpiece){.at = h->piece[i], .sum = dock_piece_sum(&h->piece[i])};
    t->sum = dock_pieces_sum(t->piece, count);
    mr->off = DOCK_SEG_PIECES | mr->table;
    return 0;
}

static void free_pieces(struct dock_dev *dev, struct dock_mr *mr)
{
    if (mr->table_bytes)
        dock_arena_free(&dev->arena, mr->table, mr->table_bytes);
    mr->table_bytes = 0;
}

// What is not mapped must be reachable through the kernel.
static int check_plain(const struct dock_mr *mr)
{
    uint64_t at = mr->addr, end = mr->addr + mr->len, room = 0;
    bool write = mr->access & DOCK_ACCESS_LOCAL_WRITE;

    for (; at < end || !mr->len; at += room) {
        if (dock_hold_at(&mr->hold, at, &room))
            continue;
        if (!dock_xcopy_works()) {
            dock_error(
                "memory at %#llx is not mapped and process_vm is refused here: peers could not reach it",
                (unsigned long long)at);
            return -EOPNOTSUPP;
        }
        if (!mr->len)
            return 0;
        if (!dock_xcopy_probe(at, room, write))
            return dock_refuse(-EFAULT, "not all of %#llx +%#llx is mapped with the rights asked for",
                               (unsigned long long)mr->addr, (unsigned long long)mr->len);
    }
    return 0;
}

static bool adopts(const struct dock_dev *dev)
{
    return dev->adopt.mode != DOCK_ADOPT_OFF;
}

static void leave_memory(struct dock_dev *dev, struct dock_mr *mr)
{
    free_pieces(dev, mr);
    if (mr->hold.of)
        dock_adopt_drop(&dev->adopt, &mr->hold);
    dock_hold_clear(&mr->hold);
    mr->hold.of = NULL;
}

// The adoption lock is held if the device adopts.
static int locate(struct dock_dev *dev, struct dock_mr *mr)
{
    uint64_t off;
    int err = 0;

    mr->hold =
        (struct dock_hold){.addr = mr->addr, .len = mr->len, .write = mr->access & DOCK_ACCESS_LOCAL_WRITE};
    if (!dev->cfg.force_plain && mr->len &&
        dock_arena_offset(&dev->arena, (void *)(uintptr_t)mr->addr, mr->len, &off) == 0)
        err = dock_hold_add(&mr->hold, mr->addr, mr->len, off);
    else if (adopts(dev) && !(mr->access & DOCK_ACCESS_ON_DEMAND))
        err = dock_adopt_hold(&dev->adopt, &mr->hold);
    if (!err && !(mr->access & DOCK_ACCESS_ON_DEMAND))
        err = check_plain(mr);
    if (!err)
        err = write_pieces(dev, mr);
    if (err)
        leave_memory(dev, mr);
    return err;
}

// ---- pages of a region that were plain are mapped now: its keys are looked at anew

static void adopt_pause(void *user)
{
    struct dock_dev *dev = user;

    dock_set32(&dev->pages_move, 1);
    dock_set32(&dev->port->moving, 1);
    dock_quiesce(dev, NULL); // its heavy fence orders the words; pairs with pages_move in fabric/host/start.c
}

static void adopt_resume(void *user)
{
    struct dock_dev *dev = user;

    dock_publish32(&dev->pages_move, 0);   // pairs with pages_move
    dock_publish32(&dev->port->moving, 0); // pairs with pages_move
}

// Its windows look where it looks; one that a peer or a bind has taken back stays so.
static void move_windows(struct dock_dev *dev, const struct dock_mr *mr)
{
    for (uint32_t tid = 1; dock_peek32(&mr->windows) && tid <= dock_peek32(&dev->tid_high); tid++) {
        struct dock_mr *mw = dev->mr[tid];
        if (!mw || mw->region != mr || dock_peek64(&dev->segments[tid].generation) & 1)
            continue;
        mw->off = dock_window_off(mr, mw->addr - mr->addr);
        dock_segrec_publish(dev, mw, dev->segments[tid].kind_qpn & DOCK_ID_MASK);
    }
}

// Nobody is on the long way. On the short one peers go on with what they know, which stays true; our own
// threads find no key, and go the long one.
static void adopt_changed(void *user, struct dock_hold *h)
{
    struct dock_dev *dev = user;
    struct dock_mr *mr = (struct dock_mr *)(void *)((char *)h - offsetof(struct dock_mr, hold)), was = *mr;

    if (write_pieces(dev, mr)) { // the old table is true as well, only slower
        mr->off = was.off;
        mr->table = was.table;
        mr->table_bytes = was.table_bytes;
        return;
    }
    dock_lock(&dev->lock);
    bool live = dock_peek64(&dev->lkeys[mr->tid].name); // who takes it away waits for our caller
    dock_lkey_clear(dev, mr);
    dock_quiesce_locked(dev, NULL);
    if (live)
        dock_lkey_publish(dev, mr);
    if (!(dock_peek64(&dev->segments[mr->tid].generation) & 1)) // a peer has invalidated it: it stays so
        dock_segrec_publish(dev, mr, 0);
    move_windows(dev, mr);
    dock_unlock(&dev->lock);
    free_pieces(dev, &was);
}

static void adopt_beat(void *user)
{
    struct dock_dev *dev = user;

    dock_idtable_beat(&dev->ids_table, dev->waiter.me);
}

const struct dock_adopt_ops dock_mr_adopt_ops = {
    .pause = adopt_pause, .resume = adopt_resume, .changed = adopt_changed, .beat = adopt_beat};

// It names memory that it does not hold: what it touches is anywhere, and no move goes on beside it.
static bool holds_nothing(const struct dock_mr *mr)
{
    return mr->implicit || mr->access & DOCK_ACCESS_ON_DEMAND;
}

// Find its memory, give it a number, publish its keys.
static int place(struct dock_dev *dev, struct dock_mr *mr)
{
    bool adopt = adopts(dev);
    int err;

    if (adopt) {
        dock_adopt_lock();
        dev->adopt.whole += holds_nothing(mr);
    }
    err = mr->implicit || mr->kind == DOCK_SEG_NOTHING ? 0 : locate(dev, mr);
    if (!err) {
        err = dock_tid_take(dev, mr);
        if (err)
            leave_memory(dev, mr);
    }
    if (!err) {
        publish_lkey(dev, mr, LKEY_NEW);
        if (!mr->implicit)
            publish_segrec(dev, mr, 0, DOCK_SEG_NEW);
        dock_many_join(dev, mr);
    }
    if (adopt) {
        if (err)
            dev->adopt.whole -= holds_nothing(mr);
        dock_adopt_unlock();
    }
    return err;
}

static int make(struct dock_dev *dev, const struct dock_mr *like, struct dock_mr **out)
{
    struct dock_mr *mr;
    int err = dock_dev_usable(dev);

    dock_uncancelled_begin(); // once, instead of at each lock
    if (!err)
        err = dock_pd_use(dev, like->pd);
    if (err)
        goto no_pd;
    err = dock_count_up(dev, &dev->n_mr, dev->limits.max_mr, "memory regions");
    if (err)
        goto no_count;
    mr = calloc(1, sizeof *mr);
    err = mr ? 0 : dock_no_memory("a memory region");
    if (err)
        goto no_mr;
    *mr = *like;
    err = place(dev, mr);
    if (err)
        goto no_place;
    dock_port_moment(dev->port, DOCK_AT_REGISTER, mr->tid, mr->len);
    *out = mr;
    dock_uncancelled_end();
    return 0;
no_place:
    free(mr);
no_mr:
    dock_count_down(dev, &dev->n_mr);
no_count:
    dock_pd_drop(dev, like->pd);
no_pd:
    dock_uncancelled_end();
    return err;
}

static void name_range(struct dock_mr *mr, const struct dock_mr *as)
{
    mr->addr = as->addr;
    mr->len = as->len;
    mr->va = as->va;
    mr->pd = as->pd;
    mr->access = as->access;
}

int dock_mr_move(struct dock_mr *mr, const struct dock_mr *to)
{
    struct dock_mr was = *mr;
    struct dock_dev *dev = mr->dev;
    unsigned before = adopts(dev) && holds_nothing(mr), after;
    int err;

    if (adopts(dev))
        dock_adopt_lock();
    leave_memory(dev, mr);
    name_range(mr, to);
    after = adopts(dev) && holds_nothing(mr);
    dev->adopt.whole += after;
    err = locate(dev, mr);
    dev->adopt.whole -= err ? after : before;
    if (err) {
        name_range(mr, &was);
        if (locate(dev, mr)) {
            dock_error("region %#x: its memory has gone while it could not be changed", mr->lkey);
            mr->off = DOCK_SEG_PLAIN;
        }
    }
    dock_lkey_publish(dev, mr);
    dock_segrec_publish(dev, mr, 0);
    if (adopts(dev))
        dock_adopt_unlock();
    return err;
}

void dock_mr_set_token(struct dock_mr *mr, bool checked, uint32_t token)
{
    struct dock_dev *dev = mr->dev;

    dock_lock(&dev->lock);
    mr->token = token;
    mr->access = (mr->access & ~DOCK_ACCESS_NO_TOKEN) | (checked ? 0 : DOCK_ACCESS_NO_TOKEN);
    dock_segrec_publish(dev, mr, 0);
    dock_unlock(&dev->lock);
}

int dock_mr_register_as(struct dock_dev *dev, uint32_t pd, uint64_t addr, uint64_t len, uint64_t va,
                        uint32_t access, uint32_t tid, struct dock_mr **out)
{
    struct dock_mr *many = tid ? dock_many_of(dev, tid) : NULL;
    struct dock_mr like = {.dev = dev,
                           .pd = pd,
                           .access = access,
                           .kind = DOCK_SEG_MR,
                           .va = va,
                           .len = len,
                           .addr = addr,
                           .many = many,
                           .tid = many ? 0 : tid,
                           .tid_kept = tid && !many};

    bool too_long = len > dev->limits.max_mr_size && !(access & DOCK_ACCESS_ON_DEMAND);
    if (addr + len < addr || va + len < va || too_long)
        return dock_refuse(too_long ? -ENOMEM : -EFAULT, "a region of %#llx bytes at %#llx",
                           (unsigned long long)len, (unsigned long long)addr);
    return make(dev, &like, out);
}

int dock_mr_register(struct dock_dev *dev, uint32_t pd, uint64_t addr, uint64_t len, uint64_t va,
                     uint32_t access, struct dock_mr **out)
{
    return dock_mr_register_as(dev, pd, addr, len, va, access, 0, out);
}

int dock_mr_nothing(struct dock_dev *dev, uint32_t pd, struct dock_mr **out)
{
    struct dock_mr like = {.dev = dev,
                           .pd = pd,
                           .access = DOCK_ACCESS_LOCAL_WRITE | DOCK_ACCESS_NOTHING,
                           .kind = DOCK_SEG_NOTHING,
                           .len = UINT64_MAX,
                           .off = DOCK_SEG_PLAIN};

    return make(dev, &like, out);
}

// What is adopted whole stays where it is as long as it is registered: pieces only come, and grow together.
int dock_mr_arena(const struct dock_mr *mr, uint64_t *off)
{
    int err = 0;

    if (adopts(mr->dev))
        dock_adopt_lock();
    if (mr->hold.pieces == 1 && mr->hold.piece[0].len == mr->len)
        *off = mr->hold.piece[0].off;
    else
        err = -EOPNOTSUPP;
    if (adopts(mr->dev))
        dock_adopt_unlock();
    return err;
}

#define IMPLICIT_FIRST 4096u // page 0 is nobody's

int dock_mr_implicit(struct dock_dev *dev, uint32_t pd, struct dock_mr **out)
{
    struct dock_mr like = {.dev = dev,
                           .pd = pd,
                           .access = DOCK_ACCESS_LOCAL_WRITE,
                           .kind = DOCK_SEG_MR,
                           .va = IMPLICIT_FIRST,
                           .addr = IMPLICIT_FIRST,
                           .len = (1ull << 56) - IMPLICIT_FIRST,
                           .implicit = true};

    return make(dev, &like, out);
}

// It stays after all. Adoption may have moved it meanwhile, and left it as it found it: without keys.
static void give_keys_back(struct dock_dev *dev, struct dock_mr *mr, bool live)
{
    if (adopts(dev))
        dock_adopt_lock();
    dock_lock(&dev->lock);
    dock_lkey_publish(dev, mr);
    if (live)
        dock_segrec_publish(dev, mr, 0);
    dock_unlock(&dev->lock);
    dock_many_join(dev, mr);
    if (adopts(dev))
        dock_adopt_unlock();
}

// Take its keys away, and wait for those who had found them, if anybody had. -EBUSY: it stays.
static int close_keys(struct dock_dev *dev, struct dock_mr *mr)
{
    bool mapped, live, found = true;
    uint32_t windows;

    dock_lock(&dev->lock);
    if (dock_peek32(&mr->windows))
        dock_windows_settle(dev, mr);
    windows = dock_peek32(&mr->windows); // changed under dev->lock only
    mapped = dock_seg_mapped(dev, mr->tid);
    live = !(dock_peek64(&dev->segments[mr->tid].generation) & 1); // else a peer has invalidated it
    if (!windows && !mapped) {
        bool own = dock_lkey_clear(dev, mr); // from here on no window is bound to it
        dock_many_leave(dev, mr);
        bool peers = dock_segrec_clear(dev, mr->tid) && !mr->implicit;
        found = own || peers || mr->many;
    }
    dock_unlock(&dev->lock);
    if (windows)
        return dock_refuse(-EBUSY, "region %#x has %u windows bound to it", mr->lkey, windows);
    if (!mapped) {
        dock_port_moment(dev->port, DOCK_AT_DEREGISTER, mr->tid, mr->len);
        if (found) {
            dock_quiesce(dev, NULL);
            mapped = dock_seg_mapped(dev, mr->tid); // by one who looked just before
        }
        if (mapped)
            give_keys_back(dev, mr, live);
    }
    return mapped ? dock_refuse(-EBUSY, "region %#x is mapped by a peer", mr->lkey) : 0;
}

int dock_mr_deregister(struct dock_mr *mr)
{
    struct dock_dev *dev = mr->dev;
    bool adopt = adopts(dev);
    int err;

    dock_uncancelled_begin(); // once, instead of at each lock
    err = close_keys(dev, mr);
    if (err)
        goto out;
    if (adopt) {
        dock_adopt_lock();
        dev->adopt.whole -= holds_nothing(mr);
    }
    leave_memory(dev, mr);
    if (adopt)
        dock_adopt_unlock();
    dock_tid_give(dev, mr);
    dock_count_down(dev, &dev->n_mr);
    dock_pd_drop(dev, mr->pd);
    free(mr);
out:
    dock_uncancelled_end();
    return err;
}
