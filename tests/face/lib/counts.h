// SPDX-License-Identifier: MIT
// What the verbs face counts, which no call of verbs tells.
#ifndef DOCK_TESTS_FACE_LIB_COUNTS_H
#define DOCK_TESTS_FACE_LIB_COUNTS_H

#include <infiniband/verbs.h>

#include <stdint.h>

struct face_counts {
    uint32_t objects; // of the context that live
    uint32_t users;   // of the domain
};

// WRs whose execution has ended, completions included: what happened by then can be looked at without a poll.
uint64_t face_executed(struct ibv_qp *qp);

void face_counts(struct ibv_context *context, struct ibv_pd *pd, struct face_counts *out);

#endif
