// SPDX-License-Identifier: MIT
// A segment of another device, mapped into this process: loads and stores instead of requests. Its owner
// keeps it registered as long as anybody has it mapped.
#ifndef DOCK_FABRIC_MAP_H
#define DOCK_FABRIC_MAP_H

#include "fabric/fabric.h"

struct dock_map_want {
    uint32_t tid, token;
    uint64_t va, len; // as the owner names it
    uint32_t need;    // DOCK_ACCESS_REMOTE_READ, _WRITE
    void *at;         // where va is to lie; NULL: anywhere
};

struct dock_map {
    struct dock_conn way; // to the device, without a queue: dev, waiter, dest_who are filled by the caller
    char *at;             // va lies here
    char *base;           // what was mapped for it, `bytes` of it; 0: it is memory of this very process
    size_t bytes;
};

// 0; -EAGAIN, -EHOSTUNREACH: as dock_up_peer; -EACCES: no such segment, or its range, rights and token do not
// allow it; -EOPNOTSUPP: not all of it is in its owner's arena; -EEXIST: something is at `at`; -EINVAL: `at`
// lies otherwise in its page; -ENOMEM.
int dock_fabric_map(struct dock_map *m, const struct dock_map_want *w);
void dock_fabric_unmap(struct dock_map *m);

#endif
