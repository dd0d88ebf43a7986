// SPDX-License-Identifier: MIT
#ifndef DOCK_DEVICE_LIMITS_H
#define DOCK_DEVICE_LIMITS_H

struct dock_limits;

// The limits in force: built in, or as DRYDOCK_MAX_* says. Opens nothing.
void dock_limits_read(struct dock_limits *out);

#endif
