// SPDX-License-Identifier: MIT
// What a run of a send queue begins and ends with, by the short way or by the long one.
#ifndef DOCK_DEVICE_RUN_H
#define DOCK_DEVICE_RUN_H

#include "device/internal.h"

static inline struct dock_stay dock_sq_budget(struct dock_sq *sq)
{
    return (struct dock_stay){.pi = dock_sq_rung(sq), .bytes = DOCK_BUDGET_BYTES, .wrs = DOCK_BUDGET_WRS};
}

// We were stopped, and given up.
static inline bool dock_sq_evicted(const struct dock_sq *sq)
{
    return __builtin_expect(dock_idrec_evicted(sq->record, sq->me), 0);
}

// WRs whose sources were read. Over a late fabric that is known when they are finished.
static inline uint32_t dock_sq_executed(const struct dock_sq *sq)
{
    return __builtin_expect(sq->flight != NULL, 0) ? sq->retired : sq->seq;
}

// What was done is told to the record once a run.
static inline void dock_sq_tell(struct dock_sq *sq, enum dock_runner by)
{
    uint32_t done = dock_sq_executed(sq) - sq->told;
    struct dock_qrec *rec = sq->rec;

    if (!done)
        return;
    sq->told += done;
    dock_publish64(&rec->executed,
                   dock_peek64(&rec->executed) + done); // pairs with who waits in dock_sq_post.executed
    dock_count64(&rec->by_poster + by, done);
    dock_set64(&rec->bytes_out, sq->bytes);
}

#endif
