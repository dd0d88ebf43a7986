// SPDX-License-Identifier: MIT
// The queues: the open target that every PE's requests go to, and a context's send queues, made when a PE is
// first talked to.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "device/identity.h"
#include "face/shmem/queues.h"

#define RIGHTS (DOCK_ACCESS_REMOTE_READ | DOCK_ACCESS_REMOTE_WRITE | DOCK_ACCESS_REMOTE_ATOMIC)

int osh_bring_up(struct dock_qp *qp, uint32_t dest, uint32_t access)
{
    static const enum dock_state road[] = {DOCK_INIT, DOCK_RTR, DOCK_RTS};
    struct dock_qp_mod m = {.mask = DOCK_MOD_STATE | DOCK_MOD_ACCESS | DOCK_MOD_DEST | DOCK_MOD_TIMEOUT |
                                    DOCK_MOD_RETRY | DOCK_MOD_RD_ATOMIC | DOCK_MOD_DEST_RD_ATOMIC,
                            .access = access,
                            .dest_qp = dest,
                            .timeout = 14,
                            .retry = 7,
                            .rd_atomic = 16,
                            .dest_rd_atomic = 16};
    int err = 0;

    if (dest)
        memcpy(m.eid, dock_identity()->gid[0].raw, 16);
    for (unsigned i = 0; i < 3 && !err; i++) {
        m.state = road[i];
        err = dock_qp_modify(qp, &m);
    }
    return err;
}

int osh_target_open(void)
{
    struct dock_cq_attr ca = {.depth = 16};
    int err = dock_cq_create(osh.dev, &ca, &osh.target_cq);

    if (err)
        return err;
    struct dock_qp_attr qa = {.service = DOCK_RC,
                              .pd = osh.pd,
                              .send_cq = osh.target_cq,
                              .recv_cq = osh.target_cq,
                              .max_send_wr = 1,
                              .max_recv_wr = 1,
                              .max_send_sge = 1,
                              .max_recv_sge = 1,
                              .open = true};
    err = dock_qp_create(osh.dev, &qa, &osh.target);
    if (err)
        goto no_qp;
    err = osh_bring_up(osh.target, 0, RIGHTS);
    if (err)
        goto no_state;
    return 0;
no_state:
    dock_qp_destroy(osh.target);
no_qp:
    dock_cq_destroy(osh.target_cq);
    return err;
}

void osh_target_close(void)
{
    dock_qp_destroy(osh.target);
    dock_cq_destroy(osh.target_cq);
}

int osh_way_open(struct dock_shmem_ctx *c, int pe)
{
    struct osh_way *w = &c->way[pe];
    struct dock_qp_attr qa = {.service = DOCK_RC,
                              .pd = osh.pd,
                              .send_cq = c->cq,
                              .recv_cq = c->cq,
                              .max_send_wr = OSH_DEPTH,
                              .max_recv_wr = 1,
                              .max_send_sge = 1,
                              .max_recv_sge = 1,
                              .lock_free = true, // the context is one thread's, or locked
                              .short_atomics = true,
                              .user = w};
    struct dock_qp *qp;
    int err = dock_qp_create(osh.dev, &qa, &qp);

    if (err)
        return err;
    err = osh_bring_up(qp, osh.pe[pe].card.target, 0);
    if (err) {
        dock_qp_destroy(qp);
        return err;
    }
    w->executed = dock_qp_sq(qp)->executed;
    w->qp = qp;
    return 0;
}

static void enlist(struct dock_shmem_ctx *c)
{
    dock_lock(&osh.lock);
    c->next = osh.contexts;
    if (c->next)
        c->next->prev = c;
    osh.contexts = c;
    dock_unlock(&osh.lock);
}

static void delist(struct dock_shmem_ctx *c)
{
    dock_lock(&osh.lock);
    if (c->prev)
        c->prev->next = c->next;
    else
        osh.contexts = c->next;
    if (c->next)
        c->next->prev = c->prev;
    dock_unlock(&osh.lock);
}

int osh_ctx_open(struct dock_shmem_team *team, long options, struct dock_shmem_ctx **out)
{
    struct dock_shmem_ctx *c = calloc(1, sizeof *c + (size_t)osh.n * sizeof *c->way);
    // A failed queue completes all its WRs as flushed: there is room for those of every PE.
    uint32_t most = dock_dev_limits(osh.dev)->max_cqe, depth = (uint32_t)osh.n * OSH_DEPTH;
    struct dock_cq_attr ca = {.depth = depth < most ? depth : most, .lock_free = true};
    int err;

    if (!c)
        return dock_no_memory("a context");
    c->team = team;
    c->options = options;
    c->locked =
        osh.thread == SHMEM_THREAD_MULTIPLE && !(options & (SHMEM_CTX_PRIVATE | SHMEM_CTX_SERIALIZED));
    for (int pe = 0; pe < osh.n; pe++)
        c->way[pe].pe = pe;
    err = dock_cq_create(osh.dev, &ca, &c->cq);
    if (err) {
        free(c);
        return err;
    }
    enlist(c);
    *out = c;
    return 0;
}

static void take_apart(struct dock_shmem_ctx *c)
{
    osh_quiet(c);
    delist(c);
    for (int pe = 0; pe < osh.n; pe++)
        if (c->way[pe].qp)
            dock_qp_destroy(c->way[pe].qp);
    dock_cq_destroy(c->cq);
}

void osh_ctx_close(struct dock_shmem_ctx *c)
{
    take_apart(c);
    free(c);
}

// A program may use its handles after shmem_finalize: they are of a team that has no PE.
void osh_ctx_end_all(void)
{
    static struct dock_shmem_team nobody;

    while (osh.contexts) {
        struct dock_shmem_ctx *c = osh.contexts;
        take_apart(c);
        c->team = &nobody;
        c->next = osh.ended_contexts;
        osh.ended_contexts = c;
    }
}
