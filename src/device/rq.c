// SPDX-License-Identifier: MIT
// Receive queues: creation, posting, and the way back of a receive's number. The number of a receive is free
// from the poll of its completion to the next post; exactly `depth` are out at a time.
//
// What is known of a number stands in our own memory: `out`, 0 while it is free, else where it was posted. So
// a poller leaves alone the claims, lines that the initiators write, and a claim means something only as long
// as its receive is out and the consumer index has passed where it was posted.
#include <errno.h>
#include <stdlib.h>

#include "device/internal.h"

#define OUT 1u
#define TOLD 2u // and flushed: its completion will say so

static uint64_t posted_at(uint32_t pi)
{
    return (uint64_t)pi << 32 | OUT;
}

// The consumer index is held.
static void no_claims(const struct dock_rqview *v)
{
    for (uint32_t i = 0; i < v->size; i++)
        dock_set64(&v->claims[i], 0);
}

void dock_rq_disown(struct dock_rq *rq)
{
    bool inherited;
    uint32_t ci = dock_word_lock(&rq->rec->ci, &rq->dev->waiter, &inherited);

    no_claims(&rq->view);
    dock_word_unlock(&rq->rec->ci, &rq->dev->waiter, ci);
}

// Nobody polls a completion of it: nothing gives a number back beside us. A poster may be there.
void dock_rq_clear(struct dock_rq *rq)
{
    bool inherited;

    dock_recv_begin(rq);
    dock_word_lock(&rq->rec->ci, &rq->dev->waiter, &inherited);
    no_claims(&rq->view);
    for (uint32_t i = 0; i < rq->depth; i++) {
        rq->spare[i] = i;
        dock_set64(&rq->out[i], 0);
    }
    rq->spare_taken = 0;
    dock_publish32(&rq->spare_given, rq->depth); // pairs with take_number
    dock_word_unlock(&rq->rec->ci, &rq->dev->waiter, rq->pi);
    if (!rq->lock_free)
        dock_spin_unlock(&rq->lock);
}

// The arrays lie behind the record, or at `ring`.
static int allocate(struct dock_rq *rq, uint32_t size, uint32_t stride, uint32_t id, uint64_t ring)
{
    struct dock_arena *a = &rq->dev->arena;
    uint64_t rec_bytes = sizeof(struct dock_rqrec), arrays = dock_rqring_bytes(size, stride);
    int err;

    rq->bytes = rec_bytes + (ring ? 0 : arrays);
    err = dock_arena_alloc(a, rq->bytes, 64, &rq->rec_off);
    if (err)
        return err;
    rq->rec = dock_arena_at(a, rq->rec_off);
    if (ring) {
        void *at = dock_view_at(&a->view, ring, arrays);
        if (!at)
            return dock_refuse(-EINVAL, "%u receives at %#llx of the arena", size, (unsigned long long)ring);
        memset(at, 0, arrays); // what is allocated is clear
    }
    dock_rqring_format(rq->rec, ring ? ring : rq->rec_off + rec_bytes, size, stride, id, rq->pd,
                       rq->dev->start_index);
    rq->wrid = calloc(size, sizeof *rq->wrid);
    rq->spare = calloc(size, sizeof *rq->spare);
    rq->out = calloc(size, sizeof *rq->out);
    if (!rq->wrid || !rq->spare || !rq->out)
        return dock_no_memory("a receive queue");
    return dock_rqview_open(&a->view, rq->rec_off, &rq->view);
}

int dock_rq_create(struct dock_dev *dev, uint32_t max_wr, uint32_t max_sge, uint32_t pd, uint32_t id,
                   uint64_t ring, struct dock_rq **out)
{
    struct dock_rq *rq = aligned_alloc(64, (sizeof *rq + 63) & ~63ul);
    int err;

    if (!rq)
        return dock_no_memory("a receive queue");
    memset(rq, 0, sizeof *rq);
    rq->dev = dev;
    rq->pd = pd;
    rq->depth = max_wr;
    rq->sge_max = max_sge;
    rq->pi = dev->start_index;
    err = allocate(rq, dock_power_of_two(max_wr), dock_power_of_two(max_sge), id, ring);
    if (err) {
        dock_rq_destroy(rq);
        return err;
    }
    dock_rq_clear(rq);
    *out = rq;
    return 0;
}

void dock_rq_destroy(struct dock_rq *rq)
{
    if (rq->rec)
        dock_arena_free(&rq->dev->arena, rq->rec_off, rq->bytes);
    free(rq->wrid);
    free(rq->spare);
    free(rq->out);
    free(rq);
}

struct dock_rq *dock_qp_rq(struct dock_qp *qp)
{
    return qp->rq->shared ? NULL : qp->rq;
}

void dock_recv_begin(struct dock_rq *rq)
{
    if (!rq->lock_free)
        dock_spin_lock(&rq->lock);
}

static inline bool take_number(struct dock_rq *rq, uint32_t *number)
{
    if (dock_acquire32(&rq->spare_given) == rq->spare_taken) // pairs with give_number
        return false;
    *number = rq->spare[rq->spare_taken++ & (rq->view.size - 1)];
    return true;
}

static inline void give_number(struct dock_rq *rq, uint32_t number)
{
    uint32_t given = dock_peek32(&rq->spare_given);

    rq->spare[given & (rq->view.size - 1)] = number;
    dock_publish32(&rq->spare_given, given + 1); // pairs with take_number
}

// Initiators read these lines: what stands there already is not stored again, so that they keep what they
// have.
static inline void put_sge(struct dock_wqe_sge *at, uint64_t len_key, uint64_t va)
{
    uint64_t old;

    memcpy(&old, at, sizeof old);
    if (old != len_key)
        memcpy(at, &len_key, sizeof len_key);
    if (at->va != va)
        at->va = va;
}

static_assert(offsetof(struct dock_wqe_sge, key) == 4 && offsetof(struct dock_wqe_sge, va) == 8 &&
                  offsetof(struct dock_sge, key) == offsetof(struct dock_sge, len) + 4,
              "length and key are one word here and there");

static inline void put_receive(struct dock_rq *rq, uint32_t number, const struct dock_sge *sge, unsigned nsge)
{
    struct dock_wqe_sge *at = dock_rq_sges(&rq->view, number);
    dock_a32 *index = &rq->view.index[rq->pi & (rq->view.size - 1)];
    unsigned i = 0;

    for (; i < nsge; i++) {
        uint64_t len_key;
        memcpy(&len_key, &sge[i].len, sizeof len_key);
        put_sge(&at[i], len_key, sge[i].addr);
    }
    for (; i < rq->view.stride; i++)
        put_sge(&at[i], 0, 0);
    if (dock_peek32(index) != number)
        dock_set32(index, number); // published by pi
}

int dock_recv_put(struct dock_rq *rq, uint64_t id, const struct dock_sge *sge, unsigned nsge)
{
    uint32_t number;

    if (nsge > rq->sge_max)
        return dock_refuse(-EINVAL, "receive with %u SGEs on a queue made for %u", nsge, rq->sge_max);
    if (!take_number(rq, &number))
        return dock_refuse(-ENOMEM, "receive queue full: %u receives posted whose completions are not polled",
                           rq->depth);
    put_receive(rq, number, sge, nsge);
    rq->wrid[number] = id;
    dock_set64(&rq->out[number], posted_at(rq->pi)); // published by pi; nobody polls it before
    rq->pi++;
    return 0;
}

void dock_recv_end(struct dock_rq *rq)
{
    dock_count64(&rq->rec->posted, rq->pi - dock_peek32(&rq->rec->pi));
    dock_publish32(&rq->rec->pi, rq->pi); // pairs with dock_rq_take
    if (!rq->lock_free)
        dock_spin_unlock(&rq->lock);
    // pairs with the heavy fence after the change to ERR: publish the receive, look at the state | the
    // reverse
    dock_fence_light();
    if (__builtin_expect(rq->owner && dock_peek32(&rq->owner->rec->state) == DOCK_ERR, 0))
        dock_rq_posted_late(rq->owner);
}

static inline int give_back(struct dock_rq *rq, uint32_t number, uint64_t *id)
{
    if (__builtin_expect(!dock_peek64(&rq->out[number]), 0))
        return -EBADMSG;
    *id = rq->wrid[number];
    dock_set64(&rq->out[number], 0); // before the CQ's index passes the completion: pairs with dock_rq_tell
    give_number(rq, number);
    return 0;
}

static int __attribute__((noinline)) give_back_shared(struct dock_rq *rq, uint32_t number, uint64_t *id)
{
    dock_spin_lock(&rq->spare_lock);
    int err = give_back(rq, number, id);
    dock_spin_unlock(&rq->spare_lock);
    return err;
}

int dock_rq_return(struct dock_rq *rq, uint32_t number, uint64_t *id)
{
    if (__builtin_expect(number >= rq->depth, 0))
        return -EBADMSG;
    return rq->shared ? give_back_shared(rq, number, id) : give_back(rq, number, id);
}

bool dock_rq_taken(const struct dock_rq *rq, uint32_t number, uint32_t ci, uint64_t *mark)
{
    if (number >= rq->depth)
        return false;
    *mark = dock_acquire64(&rq->out[number]);
    return *mark & OUT && !(*mark & TOLD) && (int32_t)((uint32_t)(*mark >> 32) - ci) < 0;
}

bool dock_rq_tell(struct dock_rq *rq, uint32_t number, uint64_t mark)
{
    // Fails once a poller has taken the completion, whose return stands before the CQ's index that was looked
    // at.
    return dock_claim64(&rq->out[number], &mark, mark | TOLD);
}

uint64_t dock_srq_ring_bytes(uint32_t max_wr, uint32_t max_sge)
{
    return dock_rqring_bytes(dock_power_of_two(max_wr), dock_power_of_two(max_sge));
}

int dock_srq_create(struct dock_dev *dev, const struct dock_srq_attr *attr, struct dock_rq **out)
{
    const struct dock_limits *l = &dev->limits;
    struct dock_rq *rq;
    uint32_t id;
    int err;

    if (attr->max_wr == 0 || attr->max_wr > l->max_srq_wr || attr->max_sge > l->max_sge ||
        attr->limit > attr->max_wr)
        return dock_refuse(-EINVAL, "a shared receive queue of %u receives, %u SGEs, limit %u", attr->max_wr,
                           attr->max_sge, attr->limit);
    err = dock_pd_use(dev, attr->pd);
    if (err)
        return err;
    err = dock_count_up(dev, &dev->n_srq, dev->limits.max_srq, "shared receive queues");
    if (err)
        goto no_count;
    err = dock_id_take(dev, dock_id_other(dev), 0, &id); // nobody looks a shared queue up
    if (err)
        goto no_id;
    err = dock_rq_create(dev, attr->max_wr, attr->max_sge, attr->pd, id, attr->ring, &rq);
    if (err)
        goto no_rq;
    rq->shared = true;
    rq->number = id;
    rq->user = attr->user;
    rq->lock_free = attr->lock_free;
    dock_set32(&rq->rec->limit, attr->limit);
    *out = rq;
    return 0;
no_rq:
    dock_id_give(dev, id);
no_id:
    dock_count_down(dev, &dev->n_srq);
no_count:
    dock_pd_drop(dev, attr->pd);
    return err;
}

int dock_srq_destroy(struct dock_rq *srq)
{
    struct dock_dev *dev = srq->dev;

    if (dock_acquire32(&srq->users)) // pairs with the drop in qp.c
        return dock_refuse(-EBUSY, "shared receive queue %u is still used by %u queue pairs", srq->number,
                           dock_peek32(&srq->users));
    dock_events_forget(srq->events, srq, &srq->events_got);
    dock_id_give(dev, srq->number);
    dock_count_down(dev, &dev->n_srq);
    dock_pd_drop(dev, srq->pd);
    dock_rq_destroy(srq);
    return 0;
}

void dock_srq_clear(struct dock_rq *srq)
{
    dock_rq_clear(srq);
}

int dock_srq_set_limit(struct dock_rq *srq, uint32_t limit)
{
    if (limit > srq->depth)
        return dock_refuse(-EINVAL, "limit %u on a shared receive queue of %u", limit, srq->depth);
    dock_publish32(&srq->rec->limit, limit); // pairs with the peek after a claim: late by one message at most
    return 0;
}

uint32_t dock_srq_limit(const struct dock_rq *srq)
{
    return dock_peek32(&srq->rec->limit);
}

uint32_t dock_srq_number(const struct dock_rq *srq)
{
    return srq->number;
}

uint32_t dock_srq_users(const struct dock_rq *srq)
{
    return dock_acquire32(&srq->users); // pairs with the drop in qp.c
}
