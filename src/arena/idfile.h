// SPDX-License-Identifier: MIT
// The file behind the id table, private to src/arena/id*.c: its layout, its lock, and what the tables of one
// process share. POSIX record locks belong to the process and fall when it closes any descriptor of the file,
// so a process opens the file once, however many devices it has.
#ifndef DOCK_ARENA_IDFILE_H
#define DOCK_ARENA_IDFILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "arena/idtable.h"
#include "arena/process.h"
#include "arena/rundir.h"
#include "arena/who.h"
#include "base/order.h"

#define DOCK_IDFILE_NAME "drydock.ids"
#define DOCK_IDTURNS 4u // a power of two, no more than 8-byte words in the smallest page

struct dock_idhead {
    dock_a64 magic; // written last
    dock_a32 version;
    uint32_t reserved;
    dock_a64 frees;
    dock_a64 turns[DOCK_IDTURNS]; // see dock_idtable_turns
    uint64_t rest;
};

struct dock_idfile {
    int fd, users;
    dev_t dev;
    ino_t ino;
    struct dock_idhead *head;
    struct dock_idrec *rec;
    _Atomic int pid; // the process that joined what follows: a forked child has joined nothing
    dock_a64 joined[DOCK_SLOTS / 64];
    struct dock_process self;
    struct dock_idfile *next;
};

// At load, after adoption's handlers and before all others: a fork takes the locks of those above first, as
// their calls do, and then the one here, before threads are stopped who may hold it.
void dock_idfile_watch_forks(void);
// The file of `dir`, made if nobody has made it. Counted: as many closes as opens.
int dock_idfile_open(const struct dock_rundir *dir, struct dock_idfile **out);
void dock_idfile_close(struct dock_idfile *f);

// Exclude all other changes, of this process and of others.
int dock_idfile_lock(struct dock_idfile *f);
void dock_idfile_unlock(struct dock_idfile *f);

// The lock on a slot is held by its owner as long as it lives. -EAGAIN: another process holds it.
int dock_idfile_hold(struct dock_idfile *f, uint32_t slot);
void dock_idfile_release(struct dock_idfile *f, uint32_t slot);
// Does another process hold it? 1, 0, or -errno if the file cannot be asked.
int dock_idfile_held(struct dock_idfile *f, uint32_t slot);
// Has this process joined with this slot?
bool dock_idfile_joined(const struct dock_idfile *f, uint32_t slot);

#endif
