// SPDX-License-Identifier: MIT
// The table of id blocks: a small file in the runtime directory that every device maps. Queue ids are 20
// bits; 4,096 blocks of 256. The record of a block names the device that owns it, so an id leads to its
// owner through one load. Freed blocks are reused last, but the first 255 before all others. Block 0 is never
// given: its ids, 1 to 255, are there to be chosen, and each has an owner of its own. Whoever comes first
// makes the file. Changes are made under a POSIX record lock on it, which a dying process gives back, so the
// table has no half-made state to repair.
#ifndef DOCK_ARENA_IDTABLE_H
#define DOCK_ARENA_IDTABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "arena/rundir.h"
#include "arena/who.h"
#include "base/order.h"

// 64 bytes. All words are atomics: readers take no lock.
struct dock_idrec {
    dock_a32 who;         // owner; written last, cleared last. 0 = free
    dock_a32 evicted;     // the incarnation that was declared dead
    dock_a32 incarnation; // the slot's last
    dock_a32 pid;
    dock_a64 start_time, pid_namespace;
    dock_a64 freed;  // the table's count of frees when this block was freed: the largest is reused last
    dock_a32 beats;  // of an owner that waits
    dock_a32 doubts; // of others, whether this owner is at work where it seems to be
    dock_a32 named;  // nothing of the block's: who has the queue id of the record's number, below 256
    dock_a32 reserved;
    dock_a64
        home; // of the owner's image (arena/home.h), with the incarnation's low bits in those of the page
};

struct dock_idfile;

struct dock_idtable {
    struct dock_idrec *rec;   // DOCK_SLOTS of them, shared by all processes
    struct dock_idfile *file; // shared by all tables of this process on the same file
};

enum dock_life {
    DOCK_LIFE_ALIVE,
    DOCK_LIFE_DEAD,
    DOCK_LIFE_UNKNOWN, // neither the process table nor the record lock could tell
};

// What `drydock show` and liveness need of an owner.
struct dock_owner {
    dock_who who;
    int pid;                // as its owner sees it; of use to others in the same pid namespace only
    uint64_t start_time;    // in clock ticks since boot
    uint64_t pid_namespace; // equal for processes of one pid namespace since one boot; 0 = not known
    uint64_t home;          // of its image (arena/home.h); 0 = not known
};

int dock_idtable_open(const struct dock_rundir *dir, struct dock_idtable *out);
void dock_idtable_close(struct dock_idtable *t);

// From here on -EBADF: the program closed the table's descriptor behind our back. -ETIMEDOUT: somebody was
// stopped while changing the table.
//
// Take a first block for a new device and give it an incarnation never used on that slot before
// (modulo 2^20, never 0). Blocks of dead owners are freed on the way. -ENOSPC when all are taken.
int dock_idtable_join(struct dock_idtable *t, dock_who *who);
// A further block for `who`; *block is 1..4095. -ENOSPC, -ESRCH if `who` is not of this process.
int dock_idtable_more(struct dock_idtable *t, dock_who who, uint32_t *block);
// Give back one further block, or with dock_idtable_leave everything that `who` holds. Nothing happens in a
// forked child: the blocks are its parent's.
void dock_idtable_less(struct dock_idtable *t, dock_who who, uint32_t block);
void dock_idtable_leave(struct dock_idtable *t, dock_who who);

// Take the id that was chosen, 1..DOCK_CHOSEN_MAX, until it is given back or `who` leaves. -EINVAL, -EEXIST:
// a living device has it, -ESRCH as above.
int dock_idtable_choose(struct dock_idtable *t, dock_who who, uint32_t id);
void dock_idtable_unchoose(struct dock_idtable *t, dock_who who, uint32_t id);

// The device that owns `block` now; 0 if nobody. One acquire load, any thread.
dock_who dock_idtable_owner(const struct dock_idtable *t, uint32_t block);
// The same of a queue id: of its block, or of itself.
dock_who dock_idtable_owner_of(const struct dock_idtable *t, uint32_t id);
// The owner record of `who`; -ESRCH if that incarnation is gone.
int dock_idtable_lookup(const struct dock_idtable *t, dock_who who, struct dock_owner *out);

// Did this very process join with `who`? Not so in a forked child, whose `who` is its parent's.
bool dock_idtable_mine(const struct dock_idtable *t, dock_who who);

// Exclude all other changes of what the devices of a host keep together, of this process and of others.
int dock_idtable_lock(struct dock_idtable *t);
void dock_idtable_unlock(struct dock_idtable *t);

// The word (arena/lockword.h) under which memory that is not mapped is read, changed and written back, by all
// devices of the host. What several processes share has several owners and as many addresses, but one place
// in its page: `addr` is any of them.
dock_a64 *dock_idtable_turns(const struct dock_idtable *t, uint64_t addr);

// Is `who` alive? A gone or evicted incarnation is dead. A `who` that this process joined is alive; in a
// forked child it is the parent's. Else the record lock that the owner holds on its slot tells, and where
// the owner has lost it (it closed all descriptors) the process table, if the pid namespace is ours, and
// whether the image is still the one that joined: an owner dies with its exec.
// Costs system calls: for waiters past their patience, not for hot paths.
enum dock_life dock_idtable_life(const struct dock_idtable *t, dock_who who);
// Declare a stopped device dead. From then on dock_idtable_life says DEAD; the device itself, when it
// continues, finds dock_idtable_evicted true and turns fatal.
void dock_idtable_evict(struct dock_idtable *t, dock_who who);
static inline bool dock_idrec_evicted(const struct dock_idrec *r, dock_who who)
{
    // pairs with the publishes in dock_idtable_join and dock_idtable_evict
    return dock_acquire32(&r->who) != who || dock_acquire32(&r->evicted) == who;
}
static inline bool dock_idtable_evicted(const struct dock_idtable *t, dock_who who)
{
    return dock_idrec_evicted(&t->rec[dock_who_slot(who)], who);
}
// Is nothing left of `who`, evicted or not: it has left the table, or its process has ended? Until then an
// evicted one may continue in the middle of what it was doing. Costs system calls.
bool dock_idtable_gone(const struct dock_idtable *t, dock_who who);

// A device that waits for another shows that it is not stopped: beat while it waits; who watches it reads the
// beats and leaves it the time. One count for all its threads, as all of them are stopped or none.
void dock_idtable_beat(struct dock_idtable *t, dock_who who);
uint32_t dock_idtable_beats(const struct dock_idtable *t, dock_who who);

// Who waits for a device that does not move asks it where it is at rest: a word that changed by accident is
// not to be taken for a thread that was stopped. A count of the questions.
void dock_idtable_doubt(struct dock_idtable *t, dock_who who);
uint32_t dock_idtable_doubts(const struct dock_idtable *t, dock_who who);

#endif
