// SPDX-License-Identifier: MIT
// A lock that outlives its holder: one 64-bit word {value:32, holder:32} in shared memory. CAS in, release
// store out. The value is what the lock guards (a tail, a consumer index), so that taking the lock reads
// it and leaving the lock publishes it: a holder that dies in between has changed nothing.
#ifndef DOCK_ARENA_LOCKWORD_H
#define DOCK_ARENA_LOCKWORD_H

#include <stdbool.h>
#include <stdint.h>

#include "arena/idtable.h"
#include "base/order.h"

// What a waiter needs: who it is, where holders are looked up, how long a stopped holder is endured.
struct dock_waiter {
    dock_who me;
    struct dock_idtable *ids;
    uint64_t stopped_limit_ns; // default 5 s (DRYDOCK_STOPPED_MS); then the holder is evicted
};

static inline uint32_t dock_word_value(uint64_t word)
{
    return (uint32_t)word;
}

static inline dock_who dock_word_holder(uint64_t word)
{
    return (dock_who)(word >> 32);
}

static inline uint64_t dock_word_make(uint32_t value, dock_who holder)
{
    return (uint64_t)holder << 32 | value;
}

// The cold half of dock_word_lock: spins, and past 100 us asks for the holder's life. A dead holder's word
// is taken over: *inherited is set and the caller finishes or undoes what the dead one was doing.
uint32_t dock_word_wait(dock_a64 *word, const struct dock_waiter *w, bool *inherited);

// Take the word, return its value. Not recursive. Threads of one device exclude each other as well.
// The claim pairs with the release in dock_word_unlock.
static inline uint32_t dock_word_lock(dock_a64 *word, const struct dock_waiter *w, bool *inherited)
{
    uint64_t seen = dock_peek64(word);

    if (__builtin_expect(dock_word_holder(seen) == 0, 1) &&
        dock_claim64(word, &seen, dock_word_make(dock_word_value(seen), w->me))) {
        *inherited = false;
        return dock_word_value(seen);
    }
    return dock_word_wait(word, w, inherited);
}

// Leave it with a new value. A holder that was stopped, given up and continued finds another's name in the
// word: what it would have published is void, and it leaves the word alone (a plain store would take the
// value back and open somebody else's lock).
static inline void dock_word_unlock(dock_a64 *word, const struct dock_waiter *w, uint32_t value)
{
    uint64_t seen = dock_peek64(word);

    if (__builtin_expect(dock_word_holder(seen) == w->me, 1))
        dock_claim64(word, &seen, dock_word_make(value, 0)); // pairs with the claim in dock_word_lock / _wait
}

#endif
