// SPDX-License-Identifier: MIT
// The one home of memory order. Every shared word of the device is a C11 atomic that is touched through
// these names; each call site names its partner in a comment ("pairs with ...").
#ifndef DOCK_BASE_ORDER_H
#define DOCK_BASE_ORDER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef _Atomic uint32_t dock_a32;
typedef _Atomic uint64_t dock_a64;

// Publish: everything this thread wrote before is visible to whoever acquires the stored value.
static inline void dock_publish32(dock_a32 *p, uint32_t v)
{
    atomic_store_explicit(p, v, memory_order_release);
}

static inline void dock_publish64(dock_a64 *p, uint64_t v)
{
    atomic_store_explicit(p, v, memory_order_release);
}

// Acquire: what the publisher wrote before its publish is visible after this load.
static inline uint32_t dock_acquire32(const dock_a32 *p)
{
    return atomic_load_explicit(p, memory_order_acquire);
}

static inline uint64_t dock_acquire64(const dock_a64 *p)
{
    return atomic_load_explicit(p, memory_order_acquire);
}

// Peek: a value whose age does not matter, or a word this thread alone writes.
static inline uint32_t dock_peek32(const dock_a32 *p)
{
    return atomic_load_explicit(p, memory_order_relaxed);
}

static inline uint64_t dock_peek64(const dock_a64 *p)
{
    return atomic_load_explicit(p, memory_order_relaxed);
}

// Set: a word whose readers take their order from elsewhere; the call site says from where.
static inline void dock_set32(dock_a32 *p, uint32_t v)
{
    atomic_store_explicit(p, v, memory_order_relaxed);
}

static inline void dock_set64(dock_a64 *p, uint64_t v)
{
    atomic_store_explicit(p, v, memory_order_relaxed);
}

// A counter with one writer at a time: no locked instruction, readers may be late.
static inline void dock_count64(dock_a64 *p, uint64_t n)
{
    dock_set64(p, dock_peek64(p) + n);
}

// Claim: compare and swap that orders as a lock does. On failure *expected holds what was found.
static inline bool dock_claim32(dock_a32 *p, uint32_t *expected, uint32_t v)
{
    return atomic_compare_exchange_strong_explicit(p, expected, v, memory_order_acq_rel,
                                                   memory_order_acquire);
}

static inline bool dock_claim64(dock_a64 *p, uint64_t *expected, uint64_t v)
{
    return atomic_compare_exchange_strong_explicit(p, expected, v, memory_order_acq_rel,
                                                   memory_order_acquire);
}

static inline uint32_t dock_swap32(dock_a32 *p, uint32_t v)
{
    return atomic_exchange_explicit(p, v, memory_order_seq_cst);
}

// Store then load: the earlier store is visible before the later load is done, on both sides of a
// Dekker pair (sleep/wake, token/doorbell). Nothing weaker will do, on x86 either.
static inline void dock_fence_full(void)
{
#ifdef __SANITIZE_THREAD__
    // ThreadSanitizer knows no fences: it sees a call that orders nothing, so pairs need their own release.
    extern void dock_fence_unseen(void);
    dock_fence_unseen();
#else
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

// What was stored before is visible before what is stored after; free on x86. Placement of one request
// before the next one's (pairs with the target CPU's acquire of a flag, or with the CQE's owner bit).
static inline void dock_fence_store(void)
{
#ifndef __SANITIZE_THREAD__
    atomic_thread_fence(memory_order_release);
#endif
}

// What was loaded before is not younger than what is loaded after: a copy, then the word that tells whether
// it holds.
static inline void dock_fence_load(void)
{
#ifndef __SANITIZE_THREAD__
    atomic_thread_fence(memory_order_acquire);
#endif
}

// The asymmetric pair: the hot side pays a compiler barrier, the rare side makes every thread of every
// registered process execute a full fence (membarrier). Where the kernel has none, both are full fences.
// dock_fence_init() finds out once per process; a process that meets a peer without membarrier goes over to
// full fences for good (dock_fence_symmetric) before it touches that peer's memory.
extern dock_a32 dock_fence_asymmetric;
void dock_fence_init(void);
void dock_fence_symmetric(void);
void dock_fence_heavy(void);

static inline void dock_fence_light(void)
{
    if (__builtin_expect(dock_peek32(&dock_fence_asymmetric), 1))
        atomic_signal_fence(memory_order_seq_cst);
    else
        dock_fence_full();
}

static inline void dock_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
