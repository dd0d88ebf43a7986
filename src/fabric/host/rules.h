// SPDX-License-Identifier: MIT
// The ordering rule that the host's fabric keeps by a fence of its own: as those of device/rules.h, a
// constant that a test build can switch off with -DDOCK_RULE_x=0.
#ifndef DOCK_FABRIC_HOST_RULES_H
#define DOCK_FABRIC_HOST_RULES_H

#ifndef DOCK_RULE_READ_LAST
#define DOCK_RULE_READ_LAST 1 // a READ looks after the earlier WRITEs of its queue are seen by all
#endif

#endif
