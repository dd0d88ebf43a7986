// SPDX-License-Identifier: MIT
// Direct drive through verbs: queue pairs whose send side the program drives itself (drydock/direct.h). The
// two functions are in Drydock's libibverbs.so.1, version node DRYDOCK_1; an adapter's libibverbs has not got
// them.
#ifndef DRYDOCK_VERBS_H
#define DRYDOCK_VERBS_H

#include <infiniband/verbs.h>

#include "drydock/direct.h"

#ifdef __cplusplus
extern "C" {
#endif

// As ibv_create_qp, but cap.max_send_wr counts blocks of 64 bytes (1 to 65536, rounded up to a power of two
// and told back) and ibv_post_send is refused (EINVAL): others write the send queue. Local addresses of its
// WQEs are looked up among the regions of `pd`. The send CQ must hold a completion for every block and is
// polled by the producer alone, one CQ for one queue. State changes, receives and destruction are verbs' own.
// NULL and errno as ibv_create_qp; EINVAL besides when the CQ is too short. Thread-safe.
struct ibv_qp *drydock_create_direct_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);

// Fill *out with the queue's view as its producer needs it, from where its doorbell stands: call it once,
// after the queue is connected. Valid until the queue is destroyed. 0, or EINVAL when the queue was not made
// to be driven directly. Thread-safe; *out is the producer's from then on.
int drydock_direct_queue(struct ibv_qp *qp, struct drydock_queue *out);

#ifdef __cplusplus
}
#endif

// What a peer's (address, length, rkey) means to a connected queue.
static inline struct drydock_target drydock_target_of(uint64_t address, uint64_t length, uint32_t rkey)
{
    struct drydock_target t = {.address = address, .length = length, .segment = rkey >> 8, .token = rkey};

    return t;
}

#endif
