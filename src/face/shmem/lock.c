// SPDX-License-Identifier: MIT
// Locks, first come first served: a queue of PEs (MCS). A lock is a `long` on every PE. Its low half on PE 0
// says who came last (PE + 1); its high half on each PE who comes behind that PE, and whether it was granted.
#include "face/shmem/api.h"
#include "face/shmem/near.h"
#include "face/shmem/shmem_face.h"

#define HOME 0
#define GRANTED (1u << 31)

static uint32_t *last(long *lock)
{
    return (uint32_t *)(void *)lock;
}

static uint32_t *link_of(long *lock)
{
    return last(lock) + 1;
}

static uint32_t fetch(uint8_t op, uint32_t *word, uint32_t operand, uint32_t compare, int pe)
{
    struct osh_atomic a = {.op = op, .size = 4, .operand = operand, .compare = compare};

    return (uint32_t)osh_atomic_fetch(osh.ctx, word, a, pe);
}

// Look at our own link until `bits` of it are set. It is written by atomics of the others.
static uint32_t wait_link(long *lock, uint32_t bits)
{
    struct osh_patience p = {0};
    uint32_t seen;

    while (!((seen = dock_acquire32((dock_a32 *)link_of(lock))) & bits)) // pairs with an atomic, acq_rel
        osh_pause(&p);
    return seen;
}

void shmem_set_lock(long *lock)
{
    uint32_t me = (uint32_t)shmem_my_pe() + 1;

    fetch(DOCK_OP_SWAP, link_of(lock), 0, 0, osh.me);
    uint32_t before = fetch(DOCK_OP_SWAP, last(lock), me, 0, HOME);
    if (before == 0)
        return;
    fetch(DOCK_OP_FOR, link_of(lock), me, 0, (int)before - 1);
    wait_link(lock, GRANTED);
    fetch(DOCK_OP_FAND, link_of(lock), ~GRANTED, 0, osh.me);
}
API(shmem_set_lock);

int shmem_test_lock(long *lock)
{
    uint32_t me = (uint32_t)shmem_my_pe() + 1;

    fetch(DOCK_OP_SWAP, link_of(lock), 0, 0, osh.me);
    if (fetch(DOCK_OP_CAS, last(lock), me, 0, HOME) == 0)
        return 0;
    osh_looked(); // who has it may be gone
    return 1;
}
API(shmem_test_lock);

void shmem_clear_lock(long *lock)
{
    uint32_t me = (uint32_t)shmem_my_pe() + 1;

    osh_quiet(osh.ctx); // what was done under the lock is there when the next one has it
    uint32_t next = fetch(DOCK_OP_FADD, link_of(lock), 0, 0, osh.me);
    if (!next) {
        if (fetch(DOCK_OP_CAS, last(lock), 0, me, HOME) == me)
            return;
        next = wait_link(lock, ~GRANTED); // somebody came, and is about to say who
    }
    fetch(DOCK_OP_SWAP, link_of(lock), 0, 0, osh.me);
    fetch(DOCK_OP_FOR, link_of(lock), GRANTED, 0, (int)next - 1);
}
API(shmem_clear_lock);
