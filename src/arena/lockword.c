// SPDX-License-Identifier: MIT
#include "arena/lockword.h"

#include <sched.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"

#define SPIN_NS 100000u
#define LOOK_NS 1000000ull // between two looks at the holder's life
#define NAP_NS 50000u      // between two looks at the word

enum verdict { WAIT, TAKE_OVER };

// What a waiter knows of the holder that it waits for.
struct watch {
    uint64_t word;       // as last seen
    uint64_t looked;     // when this word was first seen, then when its holder's life was last asked for
    uint64_t due;        // when it is asked for next
    uint32_t beats;      // of the holder, as last looked at
    uint64_t unmoved_ns; // how long we have watched the word stand still
};

// Time that we watched, not time that passed: a waiter that was stopped beside the holder must not blame it.
static uint64_t watched(uint64_t since, uint64_t now)
{
    return now - since < 4 * LOOK_NS ? now - since : 4 * LOOK_NS;
}

static enum verdict judge(struct watch *watch, const struct dock_waiter *w, uint64_t now)
{
    dock_who holder = dock_word_holder(watch->word);

    uint32_t beats = dock_idtable_beats(w->ids, holder);

    watch->unmoved_ns += watched(watch->looked, now);
    if (watch->beats != beats) // it waits itself, for somebody else: it is not stopped
        watch->unmoved_ns = 0;
    watch->beats = beats;
    watch->looked = now;
    watch->due = now + LOOK_NS;
    if (holder == w->me)
        return WAIT; // another thread of this device: it lives as long as we do
    if (dock_idtable_life(w->ids, holder) == DOCK_LIFE_DEAD)
        return TAKE_OVER;
    if (watch->unmoved_ns < w->stopped_limit_ns)
        return WAIT;
    dock_error("device %u.%u has held a lock for %llu ms without a move: taken for dead",
               dock_who_slot(holder), dock_who_incarnation(holder),
               (unsigned long long)watch->unmoved_ns / 1000000);
    dock_idtable_evict(w->ids, holder);
    return TAKE_OVER;
}

static void pause_for(const struct dock_waiter *w, uint64_t waited)
{
    if (waited < SPIN_NS) {
        dock_relax();
    } else if (waited < LOOK_NS) {
        sched_yield();
    } else {
        dock_idtable_beat(w->ids, w->me);
        dock_nap(NAP_NS);
    }
}

uint32_t dock_word_wait(dock_a64 *word, const struct dock_waiter *w, bool *inherited)
{
    uint64_t start = dock_now_ns(), now = start;
    struct watch watch = {.word = dock_peek64(word), .looked = start, .due = start + SPIN_NS};

    for (;; now = dock_now_ns()) {
        uint64_t seen = dock_peek64(word);
        bool is_free = dock_word_holder(seen) == 0, take = is_free;

        if (seen != watch.word)
            watch = (struct watch){.word = seen, .looked = now, .due = now + SPIN_NS};
        else if (!is_free && now >= watch.due)
            take = judge(&watch, w, now) == TAKE_OVER;
        // Pairs with the release in dock_word_unlock; of a dead holder, whatever it published last is what
        // stands.
        if (take && dock_claim64(word, &seen, dock_word_make(dock_word_value(seen), w->me))) {
            *inherited = !is_free;
            return dock_word_value(seen);
        }
        pause_for(w, now - start);
    }
}
