// SPDX-License-Identifier: MIT
// The small SEND in a straight line: the target's next receive is one that was read ahead, in memory that is
// mapped, under a key that was found before. Whatever is different goes the long way through message.c, which
// does the same with every check in words.
#include "fabric/host/host.h"

// What is posted at `ci`. Its words are the target's: bounded here, its key where it is used. false: nothing
// is.
static bool read_ahead(struct dock_conn *c, uint32_t ci)
{
    struct dock_next_receive *r = &c->next_receive;
    const struct dock_rqview *v = &c->rq;
    bool follows = r->known && ci == r->ci + 1;

    r->known = false;
    // Whether it is one of those that we knew of says only the one before it: has more been posted?
    if (!follows || r->pi - ci - 1 >= v->size)
        r->pi = dock_acquire32(&v->rec->pi); // pairs with dock_recv_end
    if (r->pi - ci - 1 >= v->size)
        return false;
    r->ci = ci;
    r->number = dock_peek32(&v->index[ci & (v->size - 1)]) & (v->size - 1);
    r->sge = *dock_rq_sges(v, r->number);
    r->to = NULL;
    r->known = true;
    return true;
}

// Where the receive's first buffer lies, if all of it is mapped.
static bool find_buffer(struct dock_conn *c)
{
    struct dock_next_receive *r = &c->next_receive;
    const struct dock_wqe_sge *s = &r->sge;
    const struct dock_rkey *e = dock_conn_key(c, s->key >> 8, true);

    if (!e->rec || e->token != s->key || e->tid != s->key >> 8 || !(e->access & DOCK_ACCESS_LOCAL_WRITE) ||
        s->len > e->room || s->va - e->mapped > e->room - s->len)
        return false;
    r->to = e->base + (s->va - e->mapped);
    r->rec = e->rec;
    r->generation = e->generation;
    return true;
}

// The same, if its key still stands.
static inline char *buffer(struct dock_conn *c)
{
    struct dock_next_receive *r = &c->next_receive;

    if (!r->to && !find_buffer(c))
        return NULL;
    if (__builtin_expect(dock_acquire64(&r->rec->generation) != r->generation, 0)) { // pairs with mr.c
        r->to = NULL;
        return NULL;
    }
    return r->to;
}

// `heard`: somebody listens. It is a constant in each of two bodies, so that one who sends unheard, and is
// waited for, asks once.
static inline void tell(bool heard, enum dock_moment at, const struct dock_conn *c, uint32_t position)
{
    if (heard)
        dock_probe(at, c->dest_qp, DOCK_PROBE_STRAIGHT | position);
}

// As dock_rq_take, of this very receive, in one step: nobody else sends here, so the claim is ours to write
// before the index is, and one that did not get that far means nothing. Who has the word (a repair, a queue
// that is flushed) sends us the long way.
static inline bool take(struct dock_conn *c, uint64_t word, uint32_t number, bool heard)
{
    uint32_t ci = dock_word_value(word);

    if (__builtin_expect(dock_word_holder(word) != 0, 0))
        return false;
    tell(heard, DOCK_AT_ENTER, c, ci);
    dock_set64(&c->rq.claims[number], dock_claim_make(c->waiter->me, c->dest_qp)); // published by the index
    tell(heard, DOCK_AT_CLAIM, c, ci);
    if (__builtin_expect(!dock_claim64(&c->rq.rec->ci, &word, dock_word_make(ci + 1, 0)), 0))
        return false; // pairs with device/fail.c
    tell(heard, DOCK_AT_TAKEN, c, ci);
    return true;
}

static inline uint32_t complete(struct dock_conn *c, const struct dock_direct_message *m, uint32_t number,
                                bool heard)
{
    bool first, solicited = m->flags & DOCK_F_SOLICITED;
    struct dock_cqe *e;
    uint32_t tail;

    if (__builtin_expect(dock_cq_open(&c->cq, c->waiter, &e, &tail, &first), 0))
        return dock_host_overrun(c, first);
    e->idx_local = number | c->dest_qp << 16;
    e->local_remote = (c->dest_qp >> 16 & 0xf) | c->source_qp << 4 | (solicited ? DOCK_CQE_SOLICITED : 0);
    e->tpn = c->source_qp;
    e->bytes = m->len;
    e->cookie[0] = (uint32_t)c->cookie;
    e->cookie[1] = (uint32_t)(c->cookie >> 32);
    e->data[0] = (uint32_t)m->imm;
    e->data[1] = (uint32_t)(m->imm >> 32);
    dock_cq_commit(&c->cq, c->waiter, tail,
                   DOCK_CQE_RECV | c->cqe_flags |
                       (m->op == DOCK_OP_SEND_IMM ? DOCK_ROP_SEND_IMM : DOCK_ROP_SEND) << 4);
    tell(heard, DOCK_AT_COMPLETE, c, tail);
    dock_host_arrived(c, m->len, solicited);
    return DOCK_OK;
}

// What the next message is going to touch comes here while nobody waits for it.
static void prepare(struct dock_conn *c, uint32_t ci)
{
    if (read_ahead(c, ci) && find_buffer(c))
        __builtin_prefetch(c->next_receive.to, 1);
}

static inline __attribute__((always_inline)) uint32_t send(struct dock_conn *c,
                                                           const struct dock_direct_message *m, bool heard)
{
    const struct dock_next_receive *r = &c->next_receive;
    uint64_t word = dock_peek64(&c->rq.rec->ci);
    char *to;

    // A broken message has its receive.
    if (__builtin_expect(!c->alone || c->held, 0))
        return DOCK_DIRECT_NOT;
    if (__builtin_expect(!r->known || r->ci != dock_word_value(word), 0) &&
        !read_ahead(c, dock_word_value(word)))
        return DOCK_DIRECT_NOT;
    to = buffer(c);
    if (__builtin_expect(!to || m->len > r->sge.len, 0))
        return DOCK_DIRECT_NOT;
    uint32_t number = r->number;
    if (__builtin_expect(!take(c, word, number, heard), 0))
        return DOCK_DIRECT_NOT;
    dock_fence_store(); // earlier requests of this queue are placed before this one
    dock_direct_copy(to, m->from, m->len);
    tell(heard, DOCK_AT_PLACE, c, dock_word_value(word));
    uint32_t status = complete(c, m, number, heard);
    prepare(c, dock_word_value(word) + 1);
    if (__builtin_expect(status && dock_service_lossy(c->service), 0)) {
        dock_host_dropped(c);
        return DOCK_OK;
    }
    return status;
}

static uint32_t __attribute__((noinline, cold))
send_heard(struct dock_conn *c, const struct dock_direct_message *m)
{
    return send(c, m, true);
}

uint32_t dock_direct_send(struct dock_conn *c, const struct dock_direct_message *m)
{
    return __builtin_expect(dock_probe_hook != NULL, 0) ? send_heard(c, m) : send(c, m, false);
}
