// SPDX-License-Identifier: MIT
// Direct drive through URMA: a JFS whose ring the program fills and rings itself, by drydock/direct.h. All
// that it needs URMA tells by urma_get_jfs_opt and urma_get_jfc_opt; this header only puts it together, so it
// links with nothing but liburma.
//
//     uint8_t own = 1;
//     urma_alloc_jfs(ctx, &cfg, &jfs);
//     urma_set_jfs_opt(jfs, URMA_JFS_DB_STATUS, &own, 1); // before it is activated: the program rings
//     urma_active_jfs(jfs);
//     drydock_queue_of_jfs(jfs, &q);
//     struct drydock_target t = drydock_target_of_seg(&target->id, remote_segment, token);
//
// Such a queue counts its depth in blocks of 64 bytes (rounded up to a power of two), and local addresses of
// its WQEs are looked up among what the process has registered. The JFC must hold a completion for every
// block and is polled by the producer alone, one JFC for one queue.
#ifndef DRYDOCK_URMA_H
#define DRYDOCK_URMA_H

#include <ub/umdk/urma/urma_api.h>

#include "drydock/direct.h"

enum {
    DRYDOCK_DOORBELL_AT = 0x80,
    DRYDOCK_INLINE = 176, // what a queue has whose configuration says 0
};

static inline uint32_t drydock_rounded(uint32_t depth)
{
    uint32_t n = 1;

    while (n && n < depth) // 0: there is no such power
        n *= 2;
    return n;
}

// Bytes of the send ring of a queue with this configuration, for who gives the memory for it
// (URMA_JFS_SQE_BASE_ADDR). `own`: the program rings (URMA_JFS_DB_STATUS), and the depth counts blocks.
static inline uint64_t drydock_send_ring_bytes(const urma_jfs_cfg_t *cfg, bool own)
{
    uint32_t bytes = cfg->max_inline_data ? cfg->max_inline_data : DRYDOCK_INLINE;
    uint32_t longest = cfg->max_sge * 16u > bytes ? cfg->max_sge * 16u : bytes;
    uint64_t blocks = (80 + longest + 63) / 64; // behind the control part of a WRITE with notify
    uint64_t all = own ? cfg->depth : cfg->depth * blocks, ring = 64;

    while (ring < all * 64)
        ring *= 2;
    return ring;
}

// The same of a JFC (URMA_JFC_CQE_BASE_ADDR) and of a JFR (URMA_JFR_RQE_BASE_ADDR): whole pages, which begin
// at a page. Peers write these: the memory must be private and anonymous, as from mmap or aligned_alloc, and
// is adopted when the object is activated; not over a multiple of 1 GiB (docs/urma.md).
static inline uint64_t drydock_whole_pages(uint64_t bytes)
{
    return (bytes + 4095) / 4096 * 4096;
}

static inline uint64_t drydock_jfc_ring_bytes(const urma_jfc_cfg_t *cfg)
{
    return drydock_whole_pages(drydock_rounded(cfg->depth) * 64ull);
}

static inline uint64_t drydock_jfr_ring_bytes(const urma_jfr_cfg_t *cfg)
{
    uint64_t n = drydock_rounded(cfg->depth), pieces = drydock_rounded(cfg->max_sge ? cfg->max_sge : 1);

    return drydock_whole_pages((n * pieces * 16 + 63) / 64 * 64 + (n * 4 + 63) / 64 * 64 + n * 8);
}

// Of the ring of completions; *fits of them may wait in it.
static inline urma_status_t drydock_view_jfc(urma_jfc_t *jfc, struct drydock_queue *q, uint32_t *fits)
{
    uint64_t base = 0, doorbell = 0;
    uint32_t depth = 0;

    if (urma_get_jfc_opt(jfc, URMA_JFC_CQE_BASE_ADDR, &base, sizeof base) ||
        urma_get_jfc_opt(jfc, URMA_JFC_DB_ADDR, &doorbell, sizeof doorbell) ||
        urma_get_jfc_opt(jfc, URMA_JFC_DEPTH, &depth, sizeof depth))
        return URMA_EINVAL;
    q->cq = (const unsigned char *)(uintptr_t)base;
    q->cq_doorbell = (_Atomic uint32_t *)(uintptr_t)doorbell;
    q->cqes = drydock_rounded(depth);
    *fits = depth;
    return URMA_SUCCESS;
}

// Fill *q with the view of an active JFS as its producer needs it, from where its doorbell stands. Valid
// until the JFS is deactivated or deleted; *q is the producer's from then on. URMA_EINVAL: it is not active,
// was not set to be rung by the program before it was activated, or its JFC is too short. An error of the
// queue is told by its completions, not by a state word (drydock_quiet returns their status).
static inline urma_status_t drydock_queue_of_jfs(urma_jfs_t *jfs, struct drydock_queue *q)
{
    static const _Atomic uint32_t no_state;
    struct drydock_queue v = {.state = &no_state};
    uint64_t base = 0, doorbell = 0, jfc = 0;
    uint32_t depth = 0, fits = 0;
    uint8_t own = 0;

    if (urma_get_jfs_opt(jfs, URMA_JFS_DB_STATUS, &own, sizeof own) ||
        urma_get_jfs_opt(jfs, URMA_JFS_SQE_BASE_ADDR, &base, sizeof base) ||
        urma_get_jfs_opt(jfs, URMA_JFS_DB_ADDR, &doorbell, sizeof doorbell) ||
        urma_get_jfs_opt(jfs, URMA_JFS_DEPTH, &depth, sizeof depth) ||
        urma_get_jfs_opt(jfs, URMA_JFS_BIND_JFC, &jfc, sizeof jfc) ||
        urma_get_jfs_opt(jfs, URMA_JFS_ID, &v.id, sizeof v.id) ||
        drydock_view_jfc((urma_jfc_t *)(uintptr_t)jfc, &v, &fits))
        return URMA_EINVAL;
    v.blocks = drydock_rounded(depth);
    if (!own || fits < v.blocks) // without the option the doorbell has no page of its own
        return URMA_EINVAL;
    v.ring = (unsigned char *)(uintptr_t)base;
    v.page = (unsigned char *)(uintptr_t)(doorbell - DRYDOCK_DOORBELL_AT);
    v.doorbell = (_Atomic uint32_t *)(uintptr_t)doorbell;
    v.rung = v.tail = atomic_load_explicit(v.doorbell, memory_order_acquire);
    atomic_init(&v.head, v.rung);
    v.cq_head = atomic_load_explicit(v.cq_doorbell, memory_order_acquire);
    *q = v;
    return URMA_SUCCESS;
}

// What a peer's segment, with its token, means to a queue that names its target in each WQE (RM; `to` is the
// peer's jetty or JFR, for sends the receiver).
static inline struct drydock_target drydock_target_of_seg(const urma_jetty_id_t *to,
                                                          const urma_target_seg_t *seg, urma_token_t token)
{
    struct drydock_target t = {.queue = to->id, .path = to->id, .token = token.token};

    if (seg) {
        t.address = seg->seg.ubva.va;
        t.length = seg->seg.len;
        t.segment = seg->seg.token_id >> 8;
    }
    for (unsigned i = 0; i < sizeof t.eid; i++)
        t.eid[i] = to->eid.raw[i];
    return t;
}

#endif
