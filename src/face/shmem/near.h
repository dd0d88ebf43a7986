// SPDX-License-Identifier: MIT
// The heap of a PE that this process has mapped is near: put, get and atomics to it are the loads and stores
// that the device would do, done by the caller. DRYDOCK_SHMEM=queue gives it up, and every call is a request.
//
// Order with requests on the context's queue (static data, a heap that is not mapped): a store may pass a
// request only where that was executed, that is placed. So a way with requests under way takes the next one
// too, behind its fence; the other way round the device's store fence before each request is enough.
#ifndef DOCK_SHMEM_NEAR_H
#define DOCK_SHMEM_NEAR_H

#include "fabric/direct.h"
#include "face/shmem/shmem_face.h"

// Does DRYDOCK_SHMEM leave the stores on?
bool osh_near_wanted(void);

// By one thread at a time. Where several may put at once nobody counts: a line that they all write would cost
// them more than their puts.
static inline void osh_near_count(enum dock_store_kind kind)
{
    if (__builtin_expect(osh.stores != NULL, 1))
        dock_count64(&osh.stores[kind], 1);
}

// Where the `len` bytes at `addr` of PE `pe` lie here. NULL: they are reached by a request.
static inline char *osh_near(struct dock_shmem_ctx *c, const void *addr, size_t len, int pe)
{
    const struct osh_pe *p = &osh.pe[pe];
    uint64_t off = (uint64_t)(uintptr_t)addr - (uint64_t)(uintptr_t)osh.heap;

    // a PE that died: a request finds words for it
    if (__builtin_expect(
            off >= osh.heap_size || len > osh.heap_size - off || !p->near || dock_peek32(&p->peer->dead), 0))
        return NULL;
    if (__builtin_expect(dock_peek32(&c->way[pe].under_way), 0) && !osh_way_executed(c, &c->way[pe]))
        return NULL;
    return p->near + off;
}

// By stores, by loads. false: by a request.
static inline bool osh_near_put(struct dock_shmem_ctx *c, void *dest, const void *source, size_t len, int pe)
{
    char *near = osh_near(c, dest, len, pe);

    if (__builtin_expect(!near, 0))
        return false;
    dock_direct_copy(near, source, len);
    osh_near_count(DOCK_STORE_PUT);
    return true;
}

static inline bool osh_near_get(struct dock_shmem_ctx *c, void *dest, const void *source, size_t len, int pe)
{
    const char *near = osh_near(c, source, len, pe);

    if (!near)
        return false;
    dock_direct_copy(dest, near, len);
    dock_fence_load(); // who gets again, having seen this, sees no older memory
    osh_near_count(DOCK_STORE_GET);
    return true;
}

// ---- atomics. The device's own on mapped memory are instructions on the same word, so both kinds may meet
// there. acq_rel in all: what this thread sent before, in order, is there for who sees the new value.
static inline uint64_t osh_near_8(dock_a64 *word, struct osh_atomic a)
{
    uint64_t old = a.compare;

    switch (a.op) {
    case DOCK_OP_CAS:
        dock_claim64(word, &old, a.operand); // `old` is what was there, either way
        return old;
    case DOCK_OP_SWAP:
        return atomic_exchange_explicit(word, a.operand, memory_order_acq_rel);
    case DOCK_OP_FAND:
        return atomic_fetch_and_explicit(word, a.operand, memory_order_acq_rel);
    case DOCK_OP_FOR:
        return atomic_fetch_or_explicit(word, a.operand, memory_order_acq_rel);
    case DOCK_OP_FXOR:
        return atomic_fetch_xor_explicit(word, a.operand, memory_order_acq_rel);
    default:
        return a.operand ? atomic_fetch_add_explicit(word, a.operand, memory_order_acq_rel)
                         : dock_acquire64(word);
    }
}

static inline uint32_t osh_near_4(dock_a32 *word, struct osh_atomic a)
{
    uint32_t operand = (uint32_t)a.operand, old = (uint32_t)a.compare;

    switch (a.op) {
    case DOCK_OP_CAS:
        dock_claim32(word, &old, operand);
        return old;
    case DOCK_OP_SWAP:
        return atomic_exchange_explicit(word, operand, memory_order_acq_rel);
    case DOCK_OP_FAND:
        return atomic_fetch_and_explicit(word, operand, memory_order_acq_rel);
    case DOCK_OP_FOR:
        return atomic_fetch_or_explicit(word, operand, memory_order_acq_rel);
    case DOCK_OP_FXOR:
        return atomic_fetch_xor_explicit(word, operand, memory_order_acq_rel);
    default:
        return operand ? atomic_fetch_add_explicit(word, operand, memory_order_acq_rel)
                       : dock_acquire32(word);
    }
}

// What an atomic does to the word at `at`, which is aligned. Returns what was there. In line, so that nothing
// of the caller is on its way to memory: a locked instruction would wait for it.
static inline uint64_t osh_near_atomic(char *at, struct osh_atomic a)
{
    return a.size == 4 ? osh_near_4((dock_a32 *)(void *)at, a) : osh_near_8((dock_a64 *)(void *)at, a);
}

// The word of an atomic, as osh_near. One that is not aligned is refused by the device.
static inline char *osh_near_word(struct dock_shmem_ctx *c, const void *word, size_t size, int pe)
{
    return (uintptr_t)word & (size - 1) ? NULL : osh_near(c, word, size, pe);
}

static inline uint64_t osh_atomic_fetch(struct dock_shmem_ctx *c, void *dest, struct osh_atomic a, int pe)
{
    int to = osh_world_pe(c, pe);
    char *near = osh_near_word(c, dest, a.size, to);

    if (__builtin_expect(!near, 0))
        return osh_post_fetch(c, dest, a, pe);
    uint64_t old = osh_near_atomic(near, a);
    osh_near_count(DOCK_STORE_ATOMIC); // behind it: a locked instruction waits for what was stored before
    return old;
}

static inline void osh_atomic_nbi(struct dock_shmem_ctx *c, void *fetch, void *dest, struct osh_atomic a,
                                  int pe)
{
    int to = osh_world_pe(c, pe);
    char *near = osh_near_word(c, dest, a.size, to);

    if (__builtin_expect(!near, 0)) {
        osh_post_atomic(c, fetch, dest, a, pe);
        return;
    }
    uint64_t old = osh_near_atomic(near, a); // little endian: a short word is the low half
    osh_near_count(DOCK_STORE_ATOMIC);
    if (fetch)
        memcpy(fetch, &old, a.size);
}

static inline void osh_atomic(struct dock_shmem_ctx *c, void *dest, struct osh_atomic a, int pe)
{
    osh_atomic_nbi(c, NULL, dest, a, pe);
}

// The payload, then the word, as one request does it. false: by a request.
static inline bool osh_near_signal(struct dock_shmem_ctx *c, void *dest, const void *source, size_t len,
                                   struct osh_signal s, int pe)
{
    char *word = osh_near_word(c, s.addr, 8, pe);
    char *to = len ? osh_near(c, dest, len, pe) : word;

    if (!word || !to)
        return false;
    if (len)
        dock_direct_copy(to, source, len);
    // Either pairs with the acquire of who waits for the signal: the atomic is acq_rel.
    if (s.op == SHMEM_SIGNAL_ADD)
        osh_near_atomic(word, (struct osh_atomic){.op = DOCK_OP_FADD, .size = 8, .operand = s.value});
    else
        dock_publish64((dock_a64 *)(void *)word, s.value);
    osh_near_count(DOCK_STORE_PUT);
    return true;
}

#endif
