// SPDX-License-Identifier: MIT
// The moments at which the device tells what it does. With nobody listening a moment is one load and one
// predicted branch. A listener may look, delay, or end the process; it changes nothing.
#ifndef DOCK_BASE_PROBE_H
#define DOCK_BASE_PROBE_H

#include <stdbool.h>
#include <stdint.h>

enum dock_moment {
    DOCK_AT_POST,      // a WR was encoded into its slot
    DOCK_AT_PUBLISH,   // the doorbell word was stored
    DOCK_AT_RING,      // somebody asks for the queue to be run
    DOCK_AT_FETCH,     // a WQE was taken out of the ring
    DOCK_AT_ENTER,     // the initiator's hazard shows that it works in the target's memory
    DOCK_AT_CLAIM,     // a receive was claimed, the consumer index not yet moved
    DOCK_AT_TAKEN,     // the consumer index moved
    DOCK_AT_PLACE,     // a piece of payload was placed
    DOCK_AT_EXECUTE,   // the WR is executed
    DOCK_AT_CQE_LOCK,  // the CQ's tail is held
    DOCK_AT_CQE_WRITE, // the CQE is valid, the tail not yet moved
    DOCK_AT_COMPLETE,  // the CQE is published
    DOCK_AT_POLL,      // a completion was taken out of the CQ
    DOCK_AT_FREE,      // the slots that it covers are free
    DOCK_AT_STATE,     // a queue changed its state
    DOCK_AT_REGISTER,
    DOCK_AT_DEREGISTER, // the key is refused from now on, users still being waited for
    DOCK_AT_CONNECT,    // a queue found its peer
    DOCK_MOMENT_COUNT,
};

extern const char *const dock_moment_name[DOCK_MOMENT_COUNT];

// `object` is the id of the queue, CQ or segment, `sequence` the WR or position in it.
typedef void (*dock_probe_fn)(enum dock_moment at, uint32_t object, uint64_t sequence);
extern dock_probe_fn dock_probe_hook; // set before the first device opens
// A listener closes the straight ways of requests (device/fast.c), unless it sets this: it delays nobody, and
// hears of less.
extern bool dock_probe_straight;

// Set in the sequence of a moment.
#define DOCK_PROBE_STRAIGHT (1ull << 63) // of the straight way
#define DOCK_PROBE_ATOMIC (1ull << 62)   // of an atomic; where it takes the target's word, that is held

static inline void dock_probe(enum dock_moment at, uint32_t object, uint64_t sequence)
{
    if (__builtin_expect(dock_probe_hook != 0, 0))
        dock_probe_hook(at, object, sequence);
}

#endif
