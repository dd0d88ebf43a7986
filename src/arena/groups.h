// SPDX-License-Identifier: MIT
// Multicast groups of a host: a small file in the runtime directory that every device which needs it maps.
// An entry says that a queue is a member of a group. Readers take no lock; an entry is taken by one swap and
// published by one store, so whoever dies in between leaves an entry that only looks taken.
#ifndef DOCK_ARENA_GROUPS_H
#define DOCK_ARENA_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "arena/idtable.h"
#include "base/order.h"

#define DOCK_GROUP_MEMBERS 2048u // of all groups of the host together
#define DOCK_GROUPS_NAME "drydock.groups"

struct dock_group_member {
    dock_a64 member; // who << 32 | queue; 0 = free; written last
    dock_a64 gid[2];
    dock_a64 turn; // moves when the entry is taken: what was read of it belongs together if this stood still
};

struct dock_groups {
    struct dock_group_member *member; // NULL: not opened
};

// -errno as the system gave it; -EPROTO: the file is not ours alone or has another size.
int dock_groups_open(const struct dock_rundir *dir, struct dock_groups *out);
void dock_groups_close(struct dock_groups *g);

// Joining twice is joining once. -ENOSPC: no entry is free; those of devices that are gone were freed first.
int dock_group_join(struct dock_groups *g, const struct dock_idtable *ids, const uint8_t gid[16],
                    dock_who who, uint32_t queue);
int dock_group_leave(struct dock_groups *g, const uint8_t gid[16], dock_who who,
                     uint32_t queue); // -EINVAL: it was no member
void dock_group_leave_all(struct dock_groups *g, dock_who who, uint32_t queue);

// The next member of the group from entry *at on: its queue, and *at behind it. 0: there is none left.
// Members whose device is gone are passed over.
uint32_t dock_group_next(const struct dock_groups *g, const struct dock_idtable *ids, const uint8_t gid[16],
                         uint32_t *at, dock_who *who);

#endif
