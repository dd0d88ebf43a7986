// SPDX-License-Identifier: MIT
// The table of id blocks: a small file in the runtime directory that every device maps. Queue ids are 20
// bits; 4,096 blocks of 256. The record of a block names the device that owns it, so an id leads to its
// owner through one load. Block 0 is never given; freed blocks are reused last.
// Whoever comes first makes the file. Changes are made under a POSIX record lock on it, which a dying
// process gives back, so the table has no half-made state to repair.
#ifndef DOCK_ARENA_IDTABLE_H
#define DOCK_ARENA_IDTABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "arena/rundir.h"
#include "arena/who.h"

// 64 bytes. All words are atomics: readers take no lock.
struct dock_idrec;

struct dock_idtable {
    int fd;
    struct dock_idrec *rec; // DOCK_SLOTS of them, shared by all processes
};

enum dock_life {
    DOCK_LIFE_ALIVE,
    DOCK_LIFE_DEAD,
    DOCK_LIFE_UNKNOWN, // neither a pidfd nor the process table nor the record lock could tell
};

// What `drydock show` and liveness need of an owner.
struct dock_owner {
    dock_who who;
    int pid; // as its owner sees it; of use to others in the same pid namespace only
    uint64_t start_time, pid_namespace;
};

int dock_idtable_open(const struct dock_rundir *dir, struct dock_idtable *out);
void dock_idtable_close(struct dock_idtable *t);

// Take a first block for a new device and give it an incarnation never used on that slot before
// (modulo 2^20, never 0). Blocks of dead owners are freed on the way. -ENOSPC when all are taken.
int dock_idtable_join(struct dock_idtable *t, dock_who *who);
// A further block for `who`; *block is 1..4095. -ENOSPC.
int dock_idtable_more(struct dock_idtable *t, dock_who who, uint32_t *block);
// Give back one further block, or with dock_idtable_leave everything that `who` holds.
void dock_idtable_less(struct dock_idtable *t, dock_who who, uint32_t block);
void dock_idtable_leave(struct dock_idtable *t, dock_who who);

// The device that owns `block` now; 0 if nobody. One acquire load, any thread.
dock_who dock_idtable_owner(const struct dock_idtable *t, uint32_t block);
// The owner record of `who`; -ESRCH if that incarnation is gone.
int dock_idtable_lookup(const struct dock_idtable *t, dock_who who, struct dock_owner *out);

// Is `who` alive? A gone or evicted incarnation is dead. Else, where the pid namespace is ours: pid and
// start time of the process table; else the record lock that the owner holds on its slot. `who` of this
// process is always alive. Costs system calls: for waiters past their patience, not for hot paths.
enum dock_life dock_idtable_life(const struct dock_idtable *t, dock_who who);
// Declare a stopped device dead. From then on dock_idtable_life says DEAD; the device itself, when it
// continues, finds dock_idtable_evicted true and turns fatal.
void dock_idtable_evict(struct dock_idtable *t, dock_who who);
bool dock_idtable_evicted(const struct dock_idtable *t, dock_who who);

#endif
