// SPDX-License-Identifier: MIT
// Small WRITEs, READs and SENDs in line: what the device may do itself on a way of a `direct` fabric, where
// both sides' memory is mapped. Inside one stay in the target's memory as many as come in a row; whoever
// takes a key or a queue away waits until the stay is over (dock_quiesce), so the queue is looked at once per
// stay and the key at every WRITE.
#ifndef DOCK_FABRIC_DIRECT_H
#define DOCK_FABRIC_DIRECT_H

#include <string.h>

#include "fabric/fabric.h"

#define DOCK_DIRECT_WORDS 64u // of more bytes memcpy may store some twice, with the same value

static inline void dock_direct_leave(struct dock_conn *c)
{
    dock_publish64(&c->hazard->busy, ++c->hazard_value); // even again; pairs with dock_quiesce
}

// Two words of a queue's record that stand side by side, in one look.
static inline uint64_t dock_direct_both(const dock_a32 *first)
{
    return dock_acquire64((const dock_a64 *)(const void *)first);
}

// Does the target answer this queue?
static inline bool dock_direct_answers(const struct dock_conn *c, const struct dock_qrec *q)
{
    uint64_t peer = dock_direct_both(&q->peer_id);

    return peer == ((uint64_t)c->me << 32 | c->source_qp) || (uint32_t)peer == DOCK_PEER_ANY;
}

// Is it the queue that was checked, and does it go on? One in RTR answers for good, as that of a program that
// is only written to; it is told of its first message by the long way.
static inline bool dock_direct_open(const struct dock_conn *c, const struct dock_qrec *q)
{
    uint64_t now = dock_direct_both(&q->state), serial = (uint64_t)c->serial << 32;

    // the state pairs with the publish in dock_qp_modify
    return __builtin_expect(now == (serial | DOCK_RTS), 1) ||
           (now == (serial | DOCK_RTR) && dock_peek32(&q->attention) & DOCK_ATTN_COMM);
}

// Enter the memory of a target whose queue was checked (c->views). false: the long way must find out why (it
// is another queue by now, heard nothing yet, nobody there); nothing is held then.
static inline bool dock_direct_enter(struct dock_conn *c)
{
    const struct dock_qrec *q = c->queue;
    const struct dock_peer *peer = c->peer;

    dock_set64(&c->hazard->busy, ++c->hazard_value);
    dock_fence_light(); // pairs with dock_fence_heavy in dock_quiesce: show the hazard, then look
    if (__builtin_expect(dock_direct_open(c, q) && dock_direct_answers(c, q) && !dock_peek32(&peer->dead), 1))
        return true;
    dock_direct_leave(c);
    return false;
}

// May it be written to? Between enter and leave.
static inline bool dock_direct_writable(const struct dock_conn *c)
{
    return dock_peek32(&c->queue->access) & DOCK_ACCESS_REMOTE_WRITE;
}

// Everything but one aligned word of 8 bytes.
void dock_direct_copy_other(char *to, const char *from, size_t n);

// Each word of the width (8, 4 or 2) that both address and length are multiples of is stored once and whole,
// as long as all is at most DOCK_DIRECT_WORDS: a CPU that polls it sees no half of it, and what it stores
// there itself after that stays. Of more, what is in the last word comes last.
static inline void dock_direct_copy(char *to, const char *from, size_t n)
{
    if (__builtin_expect(n == 8 && !((uintptr_t)to & 7), 1)) {
        uint64_t word;
        memcpy(&word, from, 8);
        atomic_store_explicit((dock_a64 *)(void *)to, word, memory_order_relaxed);
    } else {
        dock_direct_copy_other(to, from, n);
    }
}

// Is [inside, inside + len) not in the part of the key that was used last, or does it no longer stand?
static inline bool dock_direct_misses(const struct dock_rkey *k, uint64_t inside, uint64_t len)
{
    return inside + len > k->room || inside > k->room ||
           dock_acquire64(&k->rec->generation) != k->generation; // pairs with mr.c
}

// Another remote key than the one used last, as it was found before; one that does not fit if there is none.
const struct dock_rkey *dock_direct_key(struct dock_conn *c, uint64_t name);

// One WRITE, between enter and leave, under a key that still stands and may be written to, where the part
// last used covers the range. false: nothing was moved, the long way finds out why.
static inline bool dock_direct_write(struct dock_conn *c, uint64_t name, uint64_t raddr, const char *from,
                                     uint64_t len)
{
    const struct dock_rkey *k = c->written;
    uint64_t inside;

    if (__builtin_expect(k->writes != name, 0))
        k = dock_direct_key(c, name);
    inside = raddr - k->mapped;
    if (__builtin_expect(dock_direct_misses(k, inside, len), 0))
        return false;
    dock_fence_store(); // earlier requests of this queue are placed before this one
    dock_direct_copy(k->base + inside, from, len);
    return true;
}

// The same of one aligned word under the key that was used last. false: another one, or as above.
static inline bool dock_direct_write_word(struct dock_conn *c, uint64_t name, uint64_t raddr,
                                          const char *from)
{
    const struct dock_rkey *k = c->written;
    uint64_t inside = raddr - k->mapped, word;
    char *to = (char *)((uintptr_t)k->base + inside); // a number until it is known to be a place

    if (__builtin_expect(k->writes != name || inside + 8 > k->room || inside > k->room || (uintptr_t)to & 7 ||
                             dock_acquire64(&k->rec->generation) != k->generation, // pairs with mr.c
                         0))
        return false;
    memcpy(&word, from, 8);
    dock_fence_store(); // earlier requests of this queue are placed before this one
    atomic_store_explicit((dock_a64 *)(void *)to, word, memory_order_relaxed);
    return true;
}

// One READ on a reliable way, between enter and leave, under a key that was found before and still stands,
// where the part last used covers the range. false: nothing was read, the long way finds out why.
bool dock_direct_read(struct dock_conn *c, uint64_t name, uint64_t raddr, char *to, uint64_t len);

// A SEND or SEND_IMM of at most DOCK_PIECE bytes, all in one place.
struct dock_direct_message {
    const char *from;
    uint32_t len, flags;
    uint32_t op;
    uint64_t imm;
};

#define DOCK_DIRECT_NOT 0xffffffffu

// One message on a connected way, between enter and leave. DOCK_DIRECT_NOT: nothing was done, the long way
// finds out why. Else it is executed, with this status.
uint32_t dock_direct_send(struct dock_conn *c, const struct dock_direct_message *m);

#endif
