// SPDX-License-Identifier: MIT
#include "ring/rqring.h"

#include <errno.h>

#include "base/log.h"

static uint64_t sge_bytes(uint32_t size, uint32_t stride)
{
    return ((uint64_t)size * stride * sizeof(struct dock_wqe_sge) + 63) & ~63ull;
}

static uint64_t index_bytes(uint32_t size)
{
    return ((uint64_t)size * sizeof(uint32_t) + 63) & ~63ull;
}

uint64_t dock_rqring_bytes(uint32_t size, uint32_t stride)
{
    return sge_bytes(size, stride) + index_bytes(size) + (uint64_t)size * sizeof(uint64_t);
}

void dock_rqring_format(struct dock_rqrec *rec, uint64_t arrays, uint32_t size, uint32_t stride, uint32_t id,
                        uint32_t pd, uint32_t start)
{
    rec->sges = arrays;
    rec->index = arrays + sge_bytes(size, stride);
    rec->claims = rec->index + index_bytes(size);
    rec->size = size;
    rec->stride = stride;
    rec->id = id;
    rec->pd = pd;
    rec->sum = dock_rqrec_sum(rec);
    dock_set32(&rec->pi, start);
    dock_set64(&rec->ci, dock_word_make(start, 0));
}

int dock_rqview_open(struct dock_view *view, uint64_t off, struct dock_rqview *out)
{
    struct dock_rqrec *rec = off % 64 ? NULL : dock_view_at(view, off, sizeof *rec);

    if (!rec)
        return -EBADMSG;
    struct dock_rqrec seen = {.sges = rec->sges,
                              .index = rec->index,
                              .claims = rec->claims,
                              .size = rec->size,
                              .stride = rec->stride,
                              .id = rec->id,
                              .pd = rec->pd};
    if (rec->sum != dock_rqrec_sum(&seen) || seen.size == 0 || seen.size & (seen.size - 1) ||
        seen.stride == 0 || seen.stride & (seen.stride - 1) || seen.stride > 16 ||
        (seen.sges | seen.index | seen.claims) % 64)
        return -EBADMSG;
    *out = (struct dock_rqview){
        .rec = rec,
        .sges = dock_view_at(view, seen.sges, sge_bytes(seen.size, seen.stride)),
        .index = dock_view_at(view, seen.index, (uint64_t)seen.size * sizeof(uint32_t)),
        .claims = dock_view_at(view, seen.claims, (uint64_t)seen.size * sizeof(uint64_t)),
        .size = seen.size,
        .stride = seen.stride,
        .pd = seen.pd,
        .id = seen.id,
    };
    return out->sges && out->index && out->claims ? 0 : -EBADMSG;
}

static bool fits(const struct dock_rqview *v, uint32_t number, uint64_t bytes)
{
    const struct dock_wqe_sge *s = dock_rq_sges(v, number);
    uint64_t room = 0;

    for (uint32_t i = 0; i < v->stride && room < bytes; i++)
        room += s[i].len;
    return room >= bytes;
}

int dock_rq_take_for(struct dock_rqview *v, const struct dock_waiter *w, uint64_t claim, uint64_t bytes,
                     uint32_t *number, uint32_t *left)
{
    bool inherited; // a dead holder's claim is found by the owner's repair; its index is simply still there
    uint32_t ci = dock_word_lock(&v->rec->ci, w, &inherited);
    uint32_t posted = dock_acquire32(&v->rec->pi) - ci; // pairs with dock_recv_end

    if (posted == 0 || posted > v->size) {
        dock_word_unlock(&v->rec->ci, w, ci);
        if (posted)
            dock_info("receive queue %u: %u receives stand in it, %u fit: its indices do not hold together",
                      v->id, posted, v->size);
        return posted ? -EBADMSG : -EAGAIN;
    }
    uint32_t n = dock_peek32(&v->index[ci & (v->size - 1)]) & (v->size - 1);
    if (__builtin_expect(bytes && !fits(v, n, bytes), 0)) {
        dock_word_unlock(&v->rec->ci, w, ci);
        return -EMSGSIZE;
    }
    dock_publish64(&v->claims[n], claim);
    dock_probe(DOCK_AT_CLAIM, v->id, ci);
    dock_word_unlock(&v->rec->ci, w, ci + 1);
    dock_probe(DOCK_AT_TAKEN, v->id, ci);
    *number = n;
    *left = posted - 1;
    return 0;
}
