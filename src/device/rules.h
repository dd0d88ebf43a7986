// SPDX-License-Identifier: MIT
// The ordering rules that the device itself keeps, each a constant that a test build can switch off with
// -DDOCK_RULE_x=0 to see that a named test then fails.
#ifndef DOCK_DEVICE_RULES_H
#define DOCK_DEVICE_RULES_H

#ifndef DOCK_RULE_FENCE
#define DOCK_RULE_FENCE 1 // a fenced WR starts after all earlier READs and atomics of its queue are finished
#endif

#ifndef DOCK_RULE_READS
#define DOCK_RULE_READS 1 // no more READs and atomics are in flight than the queue was given
#endif

#ifndef DOCK_RULE_FINISH
#define DOCK_RULE_FINISH 1 // a WR completes after its fabric finished it
#endif

#ifndef DOCK_RULE_TURN
#define DOCK_RULE_TURN 1 // a WR that is finished at once still completes after those before it
#endif

#ifndef DOCK_RULE_FLUSH
#define DOCK_RULE_FLUSH 1 // what was in flight behind a failure completes as flushed, however it ended
#endif

#ifndef DOCK_RULE_KICK
#define DOCK_RULE_KICK 1 // who rings while another runs the queue leaves word; the runner looks again
#endif

#ifndef DOCK_RULE_DRAIN
#define DOCK_RULE_DRAIN 1 // a queue is drained, or reset, when what it started is finished
#endif

#define DOCK_MTU 4096u // a datagram's longest payload

#endif
