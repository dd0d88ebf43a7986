// SPDX-License-Identifier: MIT
#ifndef DOCK_DEVICE_LIMITS_H
#define DOCK_DEVICE_LIMITS_H

struct dock_limits;

// The limits in force: built in, or as DRYDOCK_MAX_* says. Opens nothing.
void dock_limits_read(struct dock_limits *out);
// No more than can be made where an arena has windows of 1 << shift bytes: a ring lies inside one.
void dock_limits_fit(struct dock_limits *out, unsigned shift);

#endif
