// SPDX-License-Identifier: MIT
// The self fabric: the target is a queue of our own device. The same road as to another process of the host,
// over our own mapping; nothing has to be reached first.
#include "fabric/host/host.h"

const struct dock_fabric dock_fabric_self = {
    .name = "self",
    .connect = dock_host_connect,
    .disconnect = dock_host_disconnect,
    .start = dock_host_start,
    .pick = dock_host_pick,
    .abandon = dock_host_abandon,
    .direct = true,
};
