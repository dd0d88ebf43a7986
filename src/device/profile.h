// SPDX-License-Identifier: MIT
// Where adapters differ and all are within the rules, a profile chooses. DRYDOCK_PROFILE names it; `strict`
// is the default: it refuses and accounts as the strictest adapter does. One table, in profile.c. Behind the
// name single switches may follow, by the names of the fields below:
// "strict,early_post_lost,-depths_rounded".
#ifndef DOCK_DEVICE_PROFILE_H
#define DOCK_DEVICE_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

struct dock_profile {
    const char *name;
    uint32_t vendor_id, part_id;
    // A CQ without a channel cannot be armed (EINVAL). Else arming it does nothing.
    bool arm_needs_channel;
    // An opcode that the queue's service has not: refused at the post (EINVAL), else a completion with a
    // local QP operation error.
    bool wrong_op_refused;
    // Requests posted in RESET, INIT or RTR, receives in RESET: taken and lost, else refused (EINVAL).
    bool early_post_lost;
    // The same: taken, and executed when the queue is ready. Wins over the one above.
    bool early_post_kept;
    // Posts in ERR: refused (EINVAL), or taken and lost. Else each completes as flushed.
    bool error_post_refused, error_post_lost;
    // A slot of a send queue is free when its request was executed, else when a completion that covers it was
    // polled. Always on with overrun_loses: what is lost is never polled.
    bool slot_free_at_execution;
    // A post of verbs to a send queue that is full: EINVAL, else ENOMEM. URMA names its code: URMA_ENOMEM.
    bool full_is_invalid;
    // More SGEs or inline bytes than the queue was created for: ENOMEM, else EINVAL.
    bool misfit_is_no_memory;
    // Depths are rounded up at creation, and the caller is told: of queue pairs to a power of two, of CQs and
    // shared receive queues to one less. Else what is asked for is what there is.
    bool depths_rounded;
    // The pieces of a request and its inline bytes have one place in the send queue, 16 bytes a piece: who
    // asked for less of the one gets as much of it as the other takes, and is told. Else what is asked for is
    // what there is.
    bool inline_in_pieces;
    // A CQ without room loses the completion of a send, tells IBV_EVENT_CQ_ERR once and goes on, and so do
    // its queues; without room for that of a receive the receiving queue alone fails. Else the CQ is lost
    // with all its queues.
    bool overrun_loses;
    // Completions of a queue that is destroyed stay in the CQ and are polled. Else they are taken out.
    bool completions_stay;
    // Atomics are a read and a write under a lock of the device, on memory that is mapped too: what a CPU
    // stores in between is lost. Else they are the CPU's own there.
    bool atomics_apart;
    // Arming a CQ in which completions stand raises the event at once, so that it may be found empty when the
    // event is read. Else only what comes afterwards does.
    bool arm_tells_old;
    // The remote key of a request without bytes is looked at as any other. Else such a request names no
    // memory.
    bool zero_length_checked;
};

// Never NULL, never changes after the first call. Any thread.
const struct dock_profile *dock_profile(void);

// The depth that a queue is created with: `wanted`, or in a profile that rounds the next power of two, less
// `less`, and no more than `most`.
uint32_t dock_profile_depth(uint32_t wanted, uint32_t less, uint32_t most);

#endif
