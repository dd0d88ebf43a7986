// SPDX-License-Identifier: MIT
// Everybody has arrived: dissemination in log2(n) rounds, in round r to the member 2^r further on. A team's
// words hold the number of its last sync, so that nothing has to be reset; the words of an active set (pSync)
// are counted up by the sender and down by the waiter, and are what they were when the call returns.
#include "face/shmem/api.h"
#include "face/shmem/near.h"
#include "face/shmem/shmem_face.h"

static void epoch_round(const struct osh_group *g, unsigned round, int to, uint64_t epoch)
{
    struct osh_patience p = {0};

    dock_fence_store(); // by a store as by a request: what was seen in the rounds before is before the word
    osh_put(osh.ctx, &g->word[round], &epoch, sizeof epoch, to);
    // Pairs with the store fence before the peer's put. A peer may be one sync ahead.
    while (dock_acquire64((dock_a64 *)&g->word[round]) < epoch)
        osh_pause(&p);
}

static void counted_round(const struct osh_group *g, unsigned round, int to)
{
    struct osh_atomic up = {.op = DOCK_OP_FADD, .size = 8, .operand = 1};
    struct osh_atomic down = {.op = DOCK_OP_FADD, .size = 8, .operand = ~0ull};
    struct osh_patience p = {0};

    osh_atomic(osh.ctx, &g->word[round], up, to);
    while (dock_acquire64((dock_a64 *)&g->word[round]) == SHMEM_SYNC_VALUE) // pairs with the atomic, acq_rel
        osh_pause(&p);
    osh_atomic_fetch(osh.ctx, &g->word[round], down, osh.me);
}

void osh_sync(const struct osh_group *g)
{
    uint64_t epoch = g->epoch ? ++*g->epoch : 0;

    dock_fence_full(); // a sync publishes what this thread stored
    for (unsigned round = 0; 1 << round < g->size; round++) {
        int to = osh_member(g, (g->me + (1 << round)) % g->size);
        if (g->epoch)
            epoch_round(g, round, to, epoch);
        else
            counted_round(g, round, to);
    }
}

bool osh_active_set(int start, int log_stride, int size, long *psync, struct osh_group *out)
{
    int stride = log_stride >= 0 && log_stride < 31 ? 1 << log_stride : 0;

    if (osh.n == 0)
        osh_bad_pe(0, 0);
    if (start < 0 || stride == 0 || size < 1 || start + (int64_t)(size - 1) * stride >= osh.n)
        osh_fatal("the active set %d, 2^%d, %d is not one of %d PEs", start, log_stride, size, osh.n);
    // Old programs call on every PE and expect that those outside go on.
    if (osh.me < start || (osh.me - start) % stride || (osh.me - start) / stride >= size)
        return false;
    *out = (struct osh_group){.start = start,
                              .stride = stride,
                              .size = size,
                              .me = (osh.me - start) / stride,
                              .word = (uint64_t *)(void *)psync};
    return true;
}

struct dock_shmem_team *osh_team(shmem_team_t t)
{
    if (__builtin_expect(osh.n == 0, 0))
        osh_bad_pe(0, 0);
    return t == SHMEM_TEAM_WORLD || t == SHMEM_TEAM_SHARED ? &osh.world : t;
}

void shmem_sync_all(void)
{
    osh_sync(&osh_team(SHMEM_TEAM_WORLD)->g);
}
API(shmem_sync_all);

void shmem_barrier_all(void)
{
    struct dock_shmem_team *world = osh_team(SHMEM_TEAM_WORLD);

    osh_quiet(osh.ctx);
    osh_sync(&world->g);
}
API(shmem_barrier_all);

int shmem_team_sync(shmem_team_t team)
{
    struct dock_shmem_team *t = osh_team(team);

    if (!t)
        return -1;
    osh_sync(&t->g);
    return 0;
}
API(shmem_team_sync);

void(shmem_sync)(int PE_start, int logPE_stride, int PE_size, long *pSync)
{
    struct osh_group g;

    if (osh_active_set(PE_start, logPE_stride, PE_size, pSync, &g))
        osh_sync(&g);
}
API(shmem_sync);

void shmem_barrier(int PE_start, int logPE_stride, int PE_size, long *pSync)
{
    struct osh_group g;

    osh_quiet(osh.ctx);
    if (osh_active_set(PE_start, logPE_stride, PE_size, pSync, &g))
        osh_sync(&g);
}
API(shmem_barrier);
