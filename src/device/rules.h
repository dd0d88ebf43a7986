// SPDX-License-Identifier: MIT
// The ordering rules that the device itself keeps, each a constant that a test build can switch off with
// -DDOCK_RULE_x=0 to see that a named test then fails.
#ifndef DOCK_DEVICE_RULES_H
#define DOCK_DEVICE_RULES_H

#ifndef DOCK_RULE_FENCE
#define DOCK_RULE_FENCE 1 // a fenced WR starts after all earlier READs and atomics of its queue are finished
#endif

#define DOCK_MTU 4096u // a datagram's longest payload

#endif
