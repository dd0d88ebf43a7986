// SPDX-License-Identifier: MIT
// Atomics on 8 bytes of the target, or 4 where the queue has short ones. On mapped memory a CPU atomic on the
// word itself; on plain memory, and where the profile sets them apart, a read-modify-write under a word of
// the host's, which every initiator takes whoever owns the key: several processes may have registered what
// they share.
#include <string.h>

#include "arena/maps.h"
#include "arena/xcopy.h"
#include "base/log.h"
#include "fabric/host/host.h"

static uint64_t apply(const struct dock_xfer *x, uint64_t old)
{
    switch (x->op) {
    case DOCK_OP_CAS:
        return old == x->compare ? x->operand : old;
    case DOCK_OP_SWAP:
        return x->operand;
    case DOCK_OP_FADD:
        return old + x->operand;
    case DOCK_OP_FSUB:
        return old - x->operand;
    case DOCK_OP_FAND:
        return old & x->operand;
    case DOCK_OP_FOR:
        return old | x->operand;
    default:
        return old ^ x->operand;
    }
}

static uint64_t on_mapped(const struct dock_xfer *x, dock_a64 *word)
{
    uint64_t old = dock_acquire64(word);

    while (!dock_claim64(word, &old, apply(x, old)))
        ;
    return old;
}

// The result is cut to the width of the word, so that all arithmetic is of that width.
static uint64_t on_mapped_short(const struct dock_xfer *x, dock_a32 *word)
{
    uint32_t old = dock_acquire32(word);

    while (!dock_claim32(word, &old, (uint32_t)apply(x, old)))
        ;
    return old;
}

#define APART 4u // so long a look, which makes the loss likely; others wait meanwhile, so nobody sleeps there

// As an adapter beyond a bus does it: what a CPU stores between the two is lost.
static uint64_t on_mapped_apart(struct dock_conn *c, const struct dock_xfer *x, char *word)
{
    dock_a64 *turns = dock_idtable_turns(c->waiter->ids, (uintptr_t)word);
    bool inherited; // as below
    uint32_t turn = dock_word_lock(turns, c->waiter, &inherited);
    uint64_t old =
        x->len == 4 ? dock_acquire32((dock_a32 *)(void *)word) : dock_acquire64((dock_a64 *)(void *)word);

    for (unsigned i = 0; i < APART; i++)
        dock_relax();
    if (x->len == 4)
        dock_publish32((dock_a32 *)(void *)word, (uint32_t)apply(x, old));
    else
        dock_publish64((dock_a64 *)(void *)word, apply(x, old));
    dock_probe(DOCK_AT_PLACE, c->source_qp, DOCK_PROBE_ATOMIC | turn);
    dock_word_unlock(turns, c->waiter, turn + 1);
    return old;
}

static uint32_t on_plain(struct dock_conn *c, const struct dock_xfer *x, uint64_t addr, uint64_t *old)
{
    dock_a64 *turns = dock_idtable_turns(c->waiter->ids, addr);
    bool inherited; // a dead holder has written the word whole or not at all
    uint32_t turn = dock_word_lock(turns, c->waiter, &inherited);
    int err;

    *old = 0; // little endian: a short word is the low half
    err = dock_xcopy_from(c->peer->pid, c->peer->home, old, addr, x->len);

    if (!err) {
        uint64_t new = apply(x, *old);
        err = dock_xcopy_to(c->peer->pid, c->peer->home, &new, addr, x->len);
        dock_probe(DOCK_AT_PLACE, c->source_qp, DOCK_PROBE_ATOMIC | turn);
    }
    dock_word_unlock(turns, c->waiter, turn + 1);
    return err ? dock_host_fault(err) : DOCK_OK;
}

// A key on demand holds nothing of the memory that it names. What another region has adopted of it lies in
// the target's arena, and whoever has that one's key changes it there: so do we. No page moves meanwhile, as
// such keys hold every move up.
static uint32_t find_adopted(struct dock_conn *c, const struct dock_rkey *k, uint32_t len,
                             struct dock_place *word)
{
    struct dock_vma v;
    int err;

    if (!(k->access & DOCK_ACCESS_ON_DEMAND) || !dock_peek64(&c->peer->port->adopt.bytes))
        return DOCK_OK;
    err = dock_maps_of(c->peer->pid, word->plain, &v);
    if (err) {
        dock_info("queue %u: an atomic on demand at %#llx: where it lies cannot be told: %s", c->source_qp,
                  (unsigned long long)word->plain, strerror(-err));
        return DOCK_ST_REM_OP;
    }
    if (dock_vma_shows(&v, c->peer->view))
        word->at = dock_view_at(c->peer->view, v.off + (word->plain - v.lo), len);
    return DOCK_OK;
}

static uint32_t execute(struct dock_conn *c, struct dock_xfer *x, uint64_t *old)
{
    const struct dock_rkey *k;
    uint32_t status;

    bool allowed = dock_peek32(&dock_conn_target(c)->queue->access) & DOCK_ACCESS_REMOTE_ATOMIC;
    if (__builtin_expect(!allowed || x->raddr & (x->len - 1), 0)) {
        dock_info("queue %u: an atomic at %#llx: %s", c->source_qp, (unsigned long long)x->raddr,
                  allowed ? "the address is not aligned" : "the target queue allows none");
        return DOCK_ST_REM_INV_REQ;
    }
    status = dock_host_rkey(c, x->remote, x->token, x->raddr, x->len, DOCK_ACCESS_REMOTE_ATOMIC, &k);
    if (status)
        return status;
    // The name is aligned; under another name than its address the word itself need not be.
    struct dock_place word = dock_host_place(c, k, x->raddr);
    if ((word.at ? (uintptr_t)word.at : word.plain) & (x->len - 1))
        return DOCK_ST_REM_INV_REQ;
    if (!word.at)
        status = find_adopted(c, k, x->len, &word);
    if (status)
        return status;
    if (!word.at)
        return on_plain(c, x, word.plain, old);
    if (__builtin_expect(c->atomics_apart, 0)) {
        *old = on_mapped_apart(c, x, word.at);
        return DOCK_OK;
    }
    *old = x->len == 4 ? on_mapped_short(x, (dock_a32 *)(void *)word.at)
                       : on_mapped(x, (dock_a64 *)(void *)word.at);
    dock_probe(DOCK_AT_PLACE, c->source_qp, DOCK_PROBE_ATOMIC);
    return DOCK_OK;
}

uint32_t dock_host_add(struct dock_conn *c, const struct dock_xfer *x)
{
    struct dock_xfer add = {.op = DOCK_OP_FADD,
                            .len = 8,
                            .remote = x->notify_tid,
                            .token = x->notify_token,
                            .raddr = x->notify_addr,
                            .operand = x->notify_value};
    uint64_t old;

    return execute(c, &add, &old);
}

enum dock_go dock_host_atomic(struct dock_conn *c, struct dock_xfer *x)
{
    uint64_t old;

    // As adapters do, where the old value goes is looked at when it comes back: a request that fails there
    // has changed the target all the same.
    bool fits = x->nsge == 1 && (x->len == 8 || (x->len == 4 && x->short_atomics));
    x->status = fits ? execute(c, x, &old) : DOCK_ST_LOC_LEN;
    if (!x->status) {
        struct dock_place here = {.at = (char *)&old};
        x->status = dock_host_move(c, x, here, x->len, false);
        x->bytes = x->len;
        x->done = x->status ? 0 : x->len;
    }
    return DOCK_GO_DONE;
}
