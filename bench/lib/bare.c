// SPDX-License-Identifier: MIT
// The limit of the WRITE benchmark: everything that an 8-byte WRITE cannot do without, in one loop and
// without a device. A spin lock, a free slot, a 64-byte WQE, a doorbell, a token, the WQE read back, both
// keys checked, a hazard, the store, and a completion entry every 16.
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define RING 256u

struct key {
    dock_a64 generation;
    uint64_t va, len, seen;
    uint32_t token, access;
};

struct bench_bare {
    _Alignas(64) dock_a32 lock;
    uint32_t pi, freed;
    _Alignas(64) dock_a32 doorbell;
    _Alignas(64) dock_a32 token;
    uint32_t exec;
    _Alignas(64) dock_a64 hazard;
    struct key local, remote;
    _Alignas(64) dock_a64 tail;
    char wqe[RING][64], cqe[RING][64], from[64], to[64];
};

struct bench_bare *bench_bare_open(void)
{
    struct bench_bare *b = aligned_alloc(64, (sizeof *b + 63) & ~63ul);

    if (!b)
        abort();
    memset(b, 0, sizeof *b);
    b->local = (struct key){.va = (uintptr_t)b->from, .len = 64, .token = 7};
    b->remote = (struct key){.va = (uintptr_t)b->to, .len = 64, .token = 9};
    return b;
}

static bool good(const struct key *k, uint32_t token, uint64_t va)
{
    return dock_acquire64(&k->generation) == k->seen && k->token == token && va >= k->va &&
           va - k->va <= k->len - 8;
}

static void put(struct bench_bare *b)
{
    uint64_t *w = (uint64_t *)(void *)b->wqe[b->pi % RING];

    bench_must(b->pi - b->freed >= RING, "the ring is full");
    w[0] = (uint64_t)(b->pi % 16 == 15) << 21 | 3ull << 40;
    w[1] = 1ull << 24;
    w[4] = 9;
    w[5] = (uintptr_t)b->to;
    w[6] = 7ull << 32 | 8;
    w[7] = (uintptr_t)b->from;
    b->pi++;
}

static void complete(struct bench_bare *b, const uint64_t *w)
{
    uint64_t tail = dock_peek64(&b->tail);

    bench_must(!dock_claim64(&b->tail, &tail, tail | 1ull << 32), "the CQ is held");
    memcpy(b->cqe[tail % RING], w, 64);
    dock_publish64(&b->tail, (uint32_t)(tail + 1));
    b->freed = b->exec + 1;
}

static void run(struct bench_bare *b)
{
    uint32_t none = 0, mine = 1, pi = dock_acquire32(&b->doorbell);

    bench_must(!dock_claim32(&b->token, &none, 1), "the token is held");
    for (; b->exec != pi; b->exec++) {
        uint64_t w[8], v;
        memcpy(w, b->wqe[b->exec % RING], sizeof w);
        dock_set64(&b->hazard, dock_peek64(&b->hazard) + 1);
        dock_fence_light();
        bench_must(!good(&b->local, (uint32_t)(w[6] >> 32), w[7]) || !good(&b->remote, (uint32_t)w[4], w[5]),
                   "a key");
        memcpy(&v, (const void *)(uintptr_t)w[7], 8);
        atomic_store_explicit((dock_a64 *)(uintptr_t)w[5], v, memory_order_release);
        dock_publish64(&b->hazard, dock_peek64(&b->hazard) + 1);
        if (w[0] >> 21 & 1)
            complete(b, w);
    }
    bench_must(!dock_claim32(&b->token, &mine, 0), "the token");
}

double bench_bare_write(struct bench_bare *b, unsigned count, unsigned list)
{
    uint64_t begin = dock_now_ns();

    for (unsigned i = 0; i < count; i += list) {
        dock_spin_lock(&b->lock);
        for (unsigned k = 0; k < list; k++)
            put(b);
        dock_publish32(&b->doorbell, b->pi);
        dock_spin_unlock(&b->lock);
        run(b);
    }
    return (double)(dock_now_ns() - begin) / count;
}
