// SPDX-License-Identifier: MIT
// Who the device says it is: name, GUIDs, GID table. One snapshot per process, taken on first use, to which
// `drydock ctl gid` adds (device/link.h);
// processes of one host that see the same interfaces see the same table.
//
// GID table: link-local IPv6 first, then the IPv4-mapped form of each address (127.0.0.1 only where there is
// nothing but loopback), then empty entries, at least one. All entries are RoCE v2.
#ifndef DOCK_DEVICE_IDENTITY_H
#define DOCK_DEVICE_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

enum {
    DOCK_GID_TABLE = 16, // entries announced; the last one is always empty
    DOCK_NAME_MAX = 64,
};

struct dock_gid {
    uint8_t raw[16];
    uint32_t ifindex; // of the interface that has the address
};

struct dock_identity {
    char name[DOCK_NAME_MAX]; // DRYDOCK_NAME, else drydock0
    uint8_t guid[8];          // node GUID in network order
    uint32_t vendor_id;       // 24-bit identifier of nobody else: locally administered
    uint32_t vendor_part_id;
    uint32_t gids; // entries filled, from index 0
    struct dock_gid gid[DOCK_GID_TABLE];
};

// Never NULL. What it points to never changes; `drydock ctl` may lead to another one. Any thread.
const struct dock_identity *dock_identity(void);
// Let the table be that of the host and then these, as far as they fit; zeros are an empty entry. 1: it is
// another one than before, 0: the same. One caller at a time.
int dock_identity_add(const uint8_t (*raw)[16], unsigned n);

// True when `index` is a filled entry.
bool dock_gid_filled(uint32_t index);

#endif
