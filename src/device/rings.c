// SPDX-License-Identifier: MIT
// Where the rings of a queue lie and how far they are, for faces that hand that out.
#include "device/internal.h"

void dock_qp_ring(struct dock_qp *qp, struct dock_ring_look *out)
{
    const struct dock_sq_post *sq = &qp->sq.post;
    uint32_t rung = dock_acquire32(sq->doorbell); // pairs with publish in post.c: a post moved `pi` before
    uint32_t pi = dock_peek32(&sq->pi);
    bool ahead = (int32_t)(rung - pi) > 0;

    *out = (struct dock_ring_look){
        .base = sq->ring,
        .doorbell = (void *)sq->doorbell,
        .entries = sq->mask + 1,
        .page = qp->page,
        .driven = ahead,
        .pi = ahead ? rung : pi,                    // what was kept is behind the doorbell
        .ci = (uint32_t)dock_acquire64(&sq->freed), // pairs with take_send in poll.c
    };
}

void dock_srq_ring(const struct dock_rq *rq, struct dock_ring_look *out)
{
    const struct dock_rqview *v = &rq->view;

    *out = (struct dock_ring_look){
        .base = v->sges,
        .doorbell = (void *)&v->rec->pi,
        .entries = v->size,
        .pi = dock_acquire32(&v->rec->pi),                  // pairs with dock_recv_end
        .ci = dock_word_value(dock_acquire64(&v->rec->ci)), // pairs with dock_rq_take
    };
}

void dock_cq_ring(const struct dock_cq *cq, struct dock_ring_look *out)
{
    const struct dock_cqview *v = &cq->view;

    *out = (struct dock_ring_look){
        .base = v->ring,
        .doorbell = (void *)&v->rec->ci, // the doorbell of a CQ is a word of memory
        .entries = v->size,
        .pi = dock_word_value(dock_acquire64(&v->rec->tail)), // pairs with dock_cq_commit
        .ci = dock_acquire32(&v->rec->ci),                    // pairs with dock_cq_end
    };
}
