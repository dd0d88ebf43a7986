// SPDX-License-Identifier: MIT
// The table of queues that a program drives itself. A straight way is a raw queue of our own; a way through a
// relay is a raw queue of the relay's, whose ring, doorbell page and CQ we map out of its arena. The PEs tell
// each other where those lie through symmetric memory.
#include "drydock/shmem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "device/direct_view.h"
#include "fabric/fabric.h"
#include "face/shmem/api.h"
#include "face/shmem/collective.h"
#include "face/shmem/queues.h"
#include "face/shmem/shmem_face.h"

#define QUEUES_MAX 64
#define BLOCKS_MAX 65536u

// A queue of ours: on a straight way, or one that we carry for another PE.
struct own {
    struct dock_qp *qp;
    struct dock_cq *cq;
    int straight_to; // -1: a relay
};

// Where a relay's queue lies in its arena: offsets, and how far its rings are.
struct place {
    uint64_t ring, cq, page, cq_doorbell, state;
    uint32_t blocks, cqes, pi, ci, id;
};

struct osh_table {
    struct drydock_table pub; // first: what the program holds
    struct own *own;
    unsigned owned;
    struct place *places; // symmetric: [relay][pe][queue], written by the relays
    struct osh_table *next;
};

static struct osh_table *tables;

// ---- making

static int make_queue(struct osh_table *t, int dest, uint32_t blocks, const struct dock_origin *origin,
                      struct dock_direct *view)
{
    struct own *o = &t->own[t->owned];
    struct dock_cq_attr ca = {.depth = blocks, .lock_free = true};
    int err = dock_cq_create(osh.dev, &ca, &o->cq);

    if (err)
        return err;
    struct dock_qp_attr qa = {.service = DOCK_RC,
                              .pd = osh.pd,
                              .send_cq = o->cq,
                              .recv_cq = o->cq,
                              .max_send_wr = blocks,
                              .max_recv_wr = 1,
                              .max_send_sge = 1,
                              .max_recv_sge = 1,
                              .raw = true};
    if (origin)
        qa.origin = *origin;
    err = dock_qp_create(osh.dev, &qa, &o->qp);
    if (err)
        goto no_qp;
    err = osh_bring_up(o->qp, osh.pe[dest].card.target, 0);
    if (!err)
        err = dock_qp_direct(o->qp, view);
    if (err)
        goto no_state;
    o->straight_to = origin ? -1 : dest;
    t->owned++;
    return 0;
no_state:
    dock_qp_destroy(o->qp);
no_qp:
    dock_cq_destroy(o->cq);
    return err;
}

static struct drydock_queue *entry(struct osh_table *t, int pe, int relay, int queue)
{
    return &t->pub.queue[drydock_table_slot(&t->pub, pe, relay) * t->pub.queues + queue];
}

static int make_straight(struct osh_table *t, uint32_t blocks)
{
    struct dock_direct v;
    int err = 0;

    for (int pe = 0; pe < osh.n && !err; pe++)
        for (int i = 0; i < t->pub.queues && !err; i++) {
            err = make_queue(t, pe, blocks, NULL, &v);
            if (err)
                break;
            *entry(t, pe, pe, i) = dock_direct_view(&v, dock_qp_number(t->own[t->owned - 1].qp));
        }
    return err;
}

static int find_place(const struct dock_direct *v, struct place *p)
{
    int err = dock_mem_offset(osh.dev, v->ring, (size_t)v->blocks * DRYDOCK_BLOCK_BYTES, &p->ring);

    if (!err)
        err = dock_mem_offset(osh.dev, v->cq, (size_t)v->cqes * DRYDOCK_BLOCK_BYTES, &p->cq);
    if (!err)
        err = dock_mem_offset(osh.dev, v->page, 256, &p->page);
    if (!err)
        err = dock_mem_offset(osh.dev, v->cq_doorbell, 4, &p->cq_doorbell);
    if (!err)
        err = dock_mem_offset(osh.dev, v->state, 4, &p->state);
    return err;
}

// What we carry for `from`, to every PE but ourselves; each place is told to `from`.
static int carry_for(struct osh_table *t, int from, uint32_t blocks)
{
    const struct osh_pe *p = &osh.pe[from];
    const struct dock_origin origin = {
        .at = p->heap, .va = p->card.range[OSH_HEAP].base, .len = p->card.range[OSH_HEAP].len};
    struct dock_direct v;
    int err = p->heap ? 0 : -ENOMEM;

    for (int pe = 0; pe < osh.n && !err; pe++)
        for (int i = 0; i < t->pub.queues && pe != osh.me && !err; i++) {
            struct place place = {0};
            err = make_queue(t, pe, blocks, &origin, &v);
            if (!err)
                err = find_place(&v, &place);
            if (err)
                break;
            place.blocks = v.blocks;
            place.cqes = v.cqes;
            place.pi = v.pi;
            place.ci = v.ci;
            place.id = dock_qp_number(t->own[t->owned - 1].qp);
            shmem_putmem(&t->places[(osh.me * osh.n + pe) * t->pub.queues + i], &place, sizeof place, from);
        }
    return err;
}

// The queue that a relay carries for us, in our mapping of its arena.
static int map_queue(struct osh_table *t, int relay, int pe, int i)
{
    const struct place *p = &t->places[(relay * osh.n + pe) * t->pub.queues + i];
    struct dock_view *view = osh.pe[relay].peer->view;
    struct drydock_queue q = {
        .ring = dock_view_at(view, p->ring, (uint64_t)p->blocks * DRYDOCK_BLOCK_BYTES),
        .cq = dock_view_at(view, p->cq, (uint64_t)p->cqes * DRYDOCK_BLOCK_BYTES),
        .page = dock_view_at(view, p->page, 256),
        .cq_doorbell = dock_view_at(view, p->cq_doorbell, 4),
        .state = dock_view_at(view, p->state, 4),
        .blocks = p->blocks,
        .cqes = p->cqes,
        .id = p->id,
        .head = p->pi,
        .rung = p->pi,
        .tail = p->pi,
        .cq_head = p->ci,
    };

    if (!q.ring || !q.cq || !q.page || !q.cq_doorbell || !q.state)
        return dock_refuse(-ENOMEM, "the queues that PE %d carries for us cannot be mapped", relay);
    q.doorbell = (_Atomic uint32_t *)(void *)(q.page + 0x80);
    *entry(t, pe, relay, i) = q;
    return 0;
}

static int map_all(struct osh_table *t)
{
    int err = 0;

    for (int relay = 0; relay < osh.n; relay++)
        for (int pe = 0; pe < osh.n; pe++)
            for (int i = 0; i < t->pub.queues && relay != osh.me && pe != relay && !err; i++)
                err = map_queue(t, relay, pe, i);
    return err;
}

// ---- opening, together

// Everybody's answer becomes the same: the largest.
static int agree(int *symmetric, int mine)
{
    symmetric[0] = mine;
    shmem_int_max_reduce(SHMEM_TEAM_WORLD, &symmetric[1], &symmetric[0], 1);
    return symmetric[1];
}

static bool same_everywhere(int *symmetric, int value)
{
    int most = agree(symmetric, value), least = -agree(symmetric, -value); // both, whatever the first says

    return most == value && least == value;
}

static struct drydock_target target_of(const struct osh_range *r)
{
    return (struct drydock_target){
        .address = r->base, .length = r->len, .segment = r->key >> 8, .token = r->key};
}

static void free_parts(struct osh_table *t)
{
    free((void *)t->pub.heap);
    free(t->pub.queue);
    free(t->own);
    free(t);
}

static struct osh_table *make_table(int queues, bool relays)
{
    size_t pes = (size_t)osh.n, rows = pes * pes, own = relays ? pes + (pes - 1) * (pes - 1) : pes;
    struct osh_table *t = calloc(1, sizeof *t);
    struct drydock_target *target = calloc(2 * pes, sizeof *target);

    if (!t || !target) {
        free(target);
        free(t);
        return NULL;
    }
    t->pub = (struct drydock_table){.pes = osh.n, .me = osh.me, .queues = queues, .heap = target};
    t->pub.statics = target + pes;
    t->pub.heap_base = osh.pe[osh.me].card.range[OSH_HEAP].base;
    t->pub.statics_base = osh.pe[osh.me].card.range[OSH_DATA].base;
    for (int pe = 0; pe < osh.n; pe++) {
        target[pe] = target_of(&osh.pe[pe].card.range[OSH_HEAP]);
        target[osh.n + pe] = target_of(&osh.pe[pe].card.range[OSH_DATA]);
    }
    t->pub.queue = aligned_alloc(64, rows * (size_t)queues * sizeof *t->pub.queue);
    t->own = calloc(own * (size_t)queues, sizeof *t->own);
    if (!t->pub.queue || !t->own) {
        free_parts(t);
        return NULL;
    }
    memset(t->pub.queue, 0, rows * (size_t)queues * sizeof *t->pub.queue);
    return t;
}

// Our own queues end; what others carry for us is theirs.
static void take_apart(struct osh_table *t)
{
    for (unsigned i = 0; i < t->owned; i++) {
        dock_qp_destroy(t->own[i].qp);
        dock_cq_destroy(t->own[i].cq);
    }
    free_parts(t);
}

static int fill(struct osh_table *t, int *symmetric, uint32_t blocks, bool relays)
{
    size_t bytes = (size_t)osh.n * (size_t)osh.n * (size_t)t->pub.queues * sizeof *t->places;
    int err = make_straight(t, blocks);

    if (agree(symmetric, -err))
        return -ENOMEM;
    t->places = relays ? shmem_calloc(1, bytes) : NULL;
    if (!relays)
        return 0;
    if (!t->places)
        return -ENOMEM;
    for (int from = 0; from < osh.n && !err; from++)
        if (from != osh.me)
            err = carry_for(t, from, blocks);
    shmem_barrier_all(); // the places have arrived
    if (!agree(symmetric, -err))
        err = map_all(t);
    else
        err = -ENOMEM;
    shmem_free(t->places);
    return err;
}

static int open_with(int *symmetric, int queues, uint32_t blocks, unsigned flags, struct osh_table **out)
{
    bool sane = queues >= 1 && queues <= QUEUES_MAX && blocks >= 1 && blocks <= BLOCKS_MAX &&
                !(flags & ~(unsigned)DRYDOCK_TABLE_RELAYS);
    bool same;

    // First this, for all: what is compared then is small and can be negated.
    if (agree(symmetric, !sane))
        return dock_refuse(EINVAL, "a table of %d queues of %u blocks: out of range, here or in another PE",
                           queues, blocks);
    same = same_everywhere(symmetric, queues);
    same &= same_everywhere(symmetric, (int)blocks);
    same &= same_everywhere(symmetric, (int)flags);
    if (agree(symmetric, !same))
        return dock_refuse(EINVAL, "a table of %d queues of %u blocks: not the same in all PEs", queues,
                           blocks);
    struct osh_table *t = make_table(queues, flags & DRYDOCK_TABLE_RELAYS);
    if (agree(symmetric, !t) || !t) {
        if (t)
            free_parts(t);
        return -dock_no_memory("a table of queues");
    }
    uint32_t rounded = 1;
    while (rounded < blocks)
        rounded *= 2;
    int err = fill(t, symmetric, rounded, flags & DRYDOCK_TABLE_RELAYS);
    if (agree(symmetric, err != 0)) {
        take_apart(t);
        return ENOMEM;
    }
    *out = t;
    return 0;
}

int drydock_table_open(int queues, uint32_t blocks, unsigned flags, struct drydock_table **out)
{
    struct osh_table *t = NULL;
    int *symmetric = shmem_malloc(2 * sizeof *symmetric); // says so itself before shmem_init

    if (!symmetric)
        return ENOMEM;
    int err = open_with(symmetric, queues, blocks, flags, &t);
    shmem_free(symmetric);
    if (err || !t)
        return err;
    t->next = tables;
    tables = t;
    *out = &t->pub;
    return 0;
}

void drydock_table_close(struct drydock_table *table)
{
    struct osh_table *t = (struct osh_table *)(void *)table, **at = &tables;

    if (!table)
        return;
    shmem_barrier_all(); // nobody posts to what we carry
    while (*at && *at != t)
        at = &(*at)->next;
    if (!*at)
        osh_fatal("drydock_table_close: %p is no open table", (void *)table);
    *at = t->next;
    take_apart(t);
    shmem_barrier_all();
}

void osh_tables_end(void)
{
    struct osh_table *t;

    while ((t = tables)) {
        tables = t->next;
        take_apart(t);
    }
}

int drydock_table_cut(struct drydock_table *table, int pe)
{
    const struct osh_table *t = (const struct osh_table *)(const void *)table;
    struct dock_qp_mod m = {.mask = DOCK_MOD_STATE, .state = DOCK_ERR};

    if (pe < 0 || pe >= table->pes)
        return dock_refuse(EINVAL, "drydock_table_cut: PE %d: there are %d", pe, table->pes);
    for (unsigned i = 0; i < t->owned; i++)
        if (t->own[i].straight_to == pe)
            dock_qp_modify(t->own[i].qp, &m);
    return 0;
}
