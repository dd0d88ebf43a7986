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

void face_counts(struct ibv_context *context, struct ibv_pd *pd, struct face_counts *out);

#endif
