// SPDX-License-Identifier: MIT
// A raw queue as its producer sees it. Included by few programs, so the functions stand here.
#ifndef TESTS_LIB_RAW_VIEW_H
#define TESTS_LIB_RAW_VIEW_H

#include "base/clock.h"
#include "device/internal.h"
#include "lib/duo.h"
#include "lib/raw_producer.h"

// Ring, doorbell and CQ of a raw queue, as a producer is told them.
static inline struct raw_queue raw_view_of(const struct end *e)
{
    struct dock_qrec *rec = dock_id_record(e->dev, dock_qp_number(e->qp));
    struct dock_cqrec *cq = e->scq->rec;

    return (struct raw_queue){
        .ring = dock_arena_at(&e->dev->arena, rec->sq),
        .blocks = rec->sq_blocks,
        .doorbell = &e->qp->page->doorbell,
        .cq = dock_arena_at(&e->dev->arena, cq->ring),
        .cqes = cq->size,
        .cq_ci = &cq->ci,
        .pi = dock_peek32(&e->qp->page->doorbell),
        .ci = dock_peek32(&cq->ci),
    };
}

static inline struct raw_cqe raw_wait(struct raw_queue *q)
{
    uint64_t until = dock_now_ns() + 3000000000ull * slow_down();
    struct raw_cqe c = {.status = 0xfff};

    while (!raw_poll(q, &c) && dock_now_ns() < until)
        sched_yield();
    return c;
}

#endif
