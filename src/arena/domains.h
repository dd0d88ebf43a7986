// SPDX-License-Identifier: MIT
// XRC domains that a file names, of all processes of the host: a small table in the runtime directory. An
// entry says that a device holds a domain open; the domain lives as long as one of its holders does, so that
// nobody has to be there to end it. Changed under the lock of the id table, which a dying process gives back.
#ifndef DOCK_ARENA_DOMAINS_H
#define DOCK_ARENA_DOMAINS_H

#include <stdbool.h>
#include <stdint.h>

#include "arena/idtable.h"
#include "base/order.h"

#define DOCK_DOMAIN_ENTRIES 1023u // opened and not closed, of all devices together
#define DOCK_DOMAINS_NAME "drydock.domains"

struct dock_domain_entry {
    dock_a64 holder; // 0 = free; written last, cleared last
    dock_a64 device, inode;
    dock_a64 number; // in entry 0, which nobody holds: the last that was given
};

struct dock_domains {
    struct dock_domain_entry *entry; // NULL: not opened
};

// What names a domain, and whether it may be made or must be.
struct dock_domain_name {
    uint64_t device, inode;
    bool create, exclusive;
};

int dock_domains_open(const struct dock_rundir *dir, struct dock_domains *out); // as dock_rundir_map
void dock_domains_close(struct dock_domains *d);

// One entry more for `who`; *number is the domain's, the same for all who hold it, below 2^32. -ENOENT: there
// is none and none may be made; -EEXIST: there is one and a new one was wanted; -ENOSPC; as
// dock_idtable_join.
int dock_domain_hold(struct dock_domains *d, struct dock_idtable *ids, dock_who who,
                     const struct dock_domain_name *name, uint64_t *number);
// One entry less.
void dock_domain_drop(struct dock_domains *d, dock_who who, uint64_t number);

#endif
