// SPDX-License-Identifier: MIT
// Collectives among the members of a group, in bytes: what the typed names and both kinds of groups share.
#ifndef DOCK_SHMEM_COLLECTIVE_H
#define DOCK_SHMEM_COLLECTIVE_H

#include "face/shmem/shmem_face.h"

// `into` becomes into OP with, element by element.
struct osh_op {
    void (*combine)(void *into, const void *with, size_t count);
    size_t size;
};

extern const struct osh_op osh_and_uint64;

void osh_broadcast(const struct osh_group *g, void *dest, const void *source, size_t len, int root,
                   bool root_too);
void osh_fcollect(const struct osh_group *g, void *dest, const void *source, size_t len);
void osh_collect(const struct osh_group *g, void *dest, const void *source, size_t len);
void osh_alltoall(const struct osh_group *g, void *dest, const void *source, size_t len);
// The strides are in elements of `size` bytes.
void osh_alltoalls(const struct osh_group *g, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst,
                   size_t nelems, size_t size);
void osh_reduce(const struct osh_group *g, void *dest, const void *source, size_t count,
                const struct osh_op *op);
// Member i gets what members 0 to i have together, or (exclusive) those before it; the first then gets zeros.
void osh_scan(const struct osh_group *g, void *dest, const void *source, size_t count,
              const struct osh_op *op, bool exclusive);

#endif
