// SPDX-License-Identifier: MIT
// SEND in its forms and the receive half of WRITE with immediate: claim a receive of the target, place the
// message in its buffers, complete it in the target's CQ.
#include <errno.h>
#include <string.h>

#include "base/address.h"
#include "base/log.h"
#include "fabric/host/host.h"

#define GRH_BYTES 40u

void dock_host_dropped(struct dock_conn *c)
{
    atomic_fetch_add_explicit(&c->peer->port->dropped, 1, memory_order_relaxed);
}

// A lossy service drops what cannot be delivered, and the sender never learns.
static enum dock_go drop(struct dock_conn *c, struct dock_xfer *x)
{
    dock_host_dropped(c);
    x->status = DOCK_OK;
    x->bytes = x->len;
    return DOCK_GO_DONE;
}

// An event is owed, or (none) its owner is to see that the CQ was overrun. That there is something to see is
// told by dock_conn_wake.
static void wake_owner(struct dock_conn *c, struct dock_cqview *cq, uint32_t events)
{
    // pairs with attend_cqs: two that fire before the engine looks are two
    atomic_fetch_add_explicit(&cq->rec->attention, events, memory_order_release);
    c->owes_bell = true;
}

static uint32_t receive_opcode(const struct dock_xfer *x)
{
    switch (x->op) {
    case DOCK_OP_SEND_IMM:
        return DOCK_ROP_SEND_IMM;
    case DOCK_OP_SEND_INV:
        return DOCK_ROP_SEND_INV;
    case DOCK_OP_WRITE_IMM:
        return DOCK_ROP_WRITE_IMM;
    default:
        return DOCK_ROP_SEND;
    }
}

// A connected queue has one sender, others have many.
static void count_in(struct dock_conn *c, uint32_t bytes)
{
    struct dock_qrec *q = dock_conn_target(c)->queue;

    if (dock_service_names(c->service)) {
        atomic_fetch_add_explicit(&q->messages_in, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&q->bytes_in, bytes, memory_order_relaxed);
    } else {
        dock_count64(&q->messages_in, 1);
        dock_count64(&q->bytes_in, bytes);
    }
}

uint32_t dock_host_overrun(struct dock_conn *c, bool first)
{
    if (first)
        wake_owner(c, &c->cq, 0);
    if (c->cq.flags & DOCK_CQ_LOSES) // which goes on, and this queue alone has lost a receive
        dock_host_attention(c, DOCK_ATTN_LOCAL);
    dock_info("queue %u: the CQ of queue %u takes no completion: it is full or unusable", c->source_qp,
              c->dest_qp);
    return DOCK_ST_REM_OP;
}

void dock_host_arrived(struct dock_conn *c, uint32_t bytes, bool solicited)
{
    if (dock_cq_fires(&c->cq, solicited))
        wake_owner(c, &c->cq, 1);
    count_in(c, bytes);
}

// Complete the claimed receive. What the requester is told: nothing wrong, or that the target could not.
static uint32_t complete(struct dock_conn *c, struct dock_xfer *x, uint32_t status, uint32_t bytes)
{
    bool ud = c->service == DOCK_UD, first = false, solicited = x->flags & DOCK_F_SOLICITED || status;
    const uint8_t *from = ud ? x->from : c->source_eid;
    struct dock_cqe e = {
        .idx_local = x->receive | c->dest_qp << 16,
        .local_remote = (c->dest_qp >> 16 & 0xf) | c->source_qp << 4 | (ud ? DOCK_CQE_GRH : 0) |
                        (from ? DOCK_CQE_EID : 0) | (solicited ? DOCK_CQE_SOLICITED : 0),
        .tpn = c->via ? c->via->dest_qp : c->source_qp,
        .bytes = bytes,
        .cookie = {(uint32_t)c->cookie, (uint32_t)(c->cookie >> 32)},
        .data = {(uint32_t)x->imm, (uint32_t)(x->imm >> 32)},
    };

    if (from)
        dock_eid_reverse(e.eid, from);
    dock_set32(&e.dw0, DOCK_CQE_RECV | c->cqe_flags | receive_opcode(x) << 4 | (status & 0xff) << 16 |
                           status >> 8 << 24);
    if (dock_cq_produce(&c->cq, c->waiter, &e, &first))
        return dock_host_overrun(c, first);
    dock_probe(DOCK_AT_COMPLETE, c->dest_qp, x->receive);
    dock_host_arrived(c, bytes, solicited);
    return DOCK_OK;
}

static enum dock_go done(struct dock_xfer *x, uint32_t status)
{
    x->status = status;
    x->bytes = x->len;
    return DOCK_GO_DONE;
}

// All is placed. That the target's CQ has no room for it is no news for who sent without an answer.
static enum dock_go finish(struct dock_conn *c, struct dock_xfer *x, uint32_t bytes)
{
    uint32_t status = complete(c, x, DOCK_OK, bytes);

    return status && dock_service_lossy(c->service) ? drop(c, x) : done(x, status);
}

// As on a wire: a message that was broken off leaves its receive to the next one of its connection, unless
// the target has taken it back meanwhile.
static bool take_held(struct dock_conn *c, struct dock_xfer *x)
{
    uint32_t number = c->held - 1;

    if (!c->held)
        return false;
    c->held = 0;
    if (number >= c->rq.size ||
        dock_acquire64(&c->rq.claims[number]) != // pairs with the publish in dock_rq_take
            dock_claim_make(c->waiter->me, c->dest_qp))
        return false;
    x->receive = number;
    x->claimed = true;
    return true;
}

static void tell_low(struct dock_conn *c)
{
    if (!(dock_peek32(&c->queue->attention) & DOCK_ATTN_LIMIT))
        dock_host_attend(c, DOCK_ATTN_LIMIT);
}

// Claim the oldest receive. Sets x->receive. A shared queue that is low is its owner's to tell: it takes the
// limit away, so that nothing is lost if we end between the two steps.
static int claim(struct dock_conn *c, struct dock_xfer *x)
{
    uint64_t need = c->service == DOCK_UD ? (uint64_t)x->len + GRH_BYTES : 0;
    uint32_t left;

    if (__builtin_expect(c->held != 0, 0) && take_held(c, x))
        return 0;
    int err = dock_rq_take_for(&c->rq, c->waiter, dock_claim_make(c->waiter->me, c->dest_qp), need,
                               &x->receive, &left);

    if (err)
        return err;
    x->claimed = true;
    if (__builtin_expect(dock_peek32(&c->rq.rec->limit) > left, 0))
        tell_low(c);
    return 0;
}

// The buffers of the claimed receive, each field read once.
struct buffers {
    struct dock_wqe_sge sge[16];
    uint32_t count;
    uint64_t bytes;
};

static void read_buffers(struct dock_conn *c, uint32_t receive, struct buffers *b)
{
    memcpy(b->sge, dock_rq_sges(&c->rq, receive), c->rq.stride * sizeof *b->sge);
    b->count = c->rq.stride;
    b->bytes = 0;
    for (uint32_t i = 0; i < b->count; i++)
        b->bytes += b->sge[i].len;
}

// Place n bytes at offset `at` of the receive: from `header` when given, else from x's data (x->done moves
// on).
static uint32_t place(struct dock_conn *c, struct dock_xfer *x, const struct buffers *b, uint64_t at,
                      uint32_t n, const uint8_t *header)
{
    for (uint32_t i = 0; i < b->count && n; i++) {
        const struct dock_wqe_sge *s = &b->sge[i];
        const struct dock_rkey *k;
        if (at >= s->len) {
            at -= s->len;
            continue;
        }
        uint32_t take = s->len - (uint32_t)at < n ? s->len - (uint32_t)at : n, status;
        if (!dock_host_lkey(c, s->key, s->va, s->len, &k))
            return DOCK_ST_REM_OP;
        struct dock_place to = dock_host_place(c, k, s->va + at);
        status = header ? dock_host_put(c, &to, header, take) : dock_host_move(c, x, to, take, true);
        if (status)
            return status;
        if (header)
            header += take;
        else
            x->done += take;
        n -= take;
        at = 0;
    }
    return DOCK_OK;
}

// RoCE v2 over IPv4: a valid IPv4 header in bytes 20 to 39, undefined before, and a first nibble that is
// not 6.
static void build_ipv4(const struct dock_xfer *x, uint8_t *ip)
{
    uint32_t sum = 0;

    ip[0] = 0x45;
    ip[1] = x->tclass;
    ip[2] = (uint8_t)((x->len + 28) >> 8);
    ip[3] = (uint8_t)(x->len + 28);
    ip[8] = x->hops ? x->hops : 64;
    ip[9] = 17; // UDP
    memcpy(ip + 12, x->from + 12, 4);
    memcpy(ip + 16, x->eid + 12, 4);
    for (unsigned i = 0; i < 20; i += 2)
        sum += (uint32_t)ip[i] << 8 | ip[i + 1];
    sum = (sum & 0xffff) + (sum >> 16);
    sum = ~(sum + (sum >> 16));
    ip[10] = (uint8_t)(sum >> 8);
    ip[11] = (uint8_t)sum;
}

static void build_ipv6(const struct dock_xfer *x, uint8_t *ip)
{
    ip[0] = (uint8_t)(0x60 | x->tclass >> 4);
    ip[1] = (uint8_t)(x->tclass << 4);
    ip[4] = (uint8_t)((x->len + 8) >> 8);
    ip[5] = (uint8_t)(x->len + 8);
    ip[6] = 17; // UDP
    ip[7] = x->hops ? x->hops : 64;
    memcpy(ip + 8, x->from, 16);
    memcpy(ip + 24, x->eid, 16);
}

static void build_grh(const struct dock_xfer *x, uint8_t grh[GRH_BYTES])
{
    memset(grh, 0, GRH_BYTES);
    if (dock_address_is_ipv4(x->eid))
        build_ipv4(x, grh + 20);
    else
        build_ipv6(x, grh);
}

// A receive that cannot take the message fails at its owner; the requester learns that the target could not.
static enum dock_go receive_failed(struct dock_conn *c, struct dock_xfer *x, uint32_t theirs, uint32_t ours)
{
    complete(c, x, theirs, 0);
    if (dock_service_lossy(c->service))
        return drop(c, x);
    if (!dock_service_names(c->service)) // one message that did not fit does not end what serves others too
        dock_host_attention(c, DOCK_ATTN_LOCAL);
    return done(x, ours);
}

// The rest of a message will not come. A queue that serves others goes on, XRC's shared one too: its receive
// is told as flushed. So does one of a connection that loses messages, with the same receive.
static void give_back(struct dock_conn *c, struct dock_xfer *x)
{
    if (c->service == DOCK_UC && x->claimed)
        c->held = x->receive + 1;
    if ((dock_service_names(c->service) || c->via) && x->claimed)
        complete(c, x, DOCK_ST_FLUSH, 0);
}

void dock_host_abandon(struct dock_conn *c, struct dock_xfer *x)
{
    if (dock_peek32(&c->peer->dead) ||
        !(c->via ? dock_host_enter_shared(c, true) == DOCK_OK : dock_host_enter(c, true)))
        return;
    give_back(c, x);
    dock_direct_leave(c);
}

// What a SEND with invalidate names, if it can be taken away.
static struct dock_segrec *named(struct dock_conn *c, const struct dock_xfer *x)
{
    return x->tokens ? dock_host_segment(c, x->notify_tid, x->notify_token)
                     : dock_host_window(c, (uint32_t)x->imm);
}

// The message is placed whole: a failed one takes nothing away. Before its completion, whose reader may rely
// on it.
static void invalidate(struct dock_conn *c, const struct dock_xfer *x)
{
    struct dock_segrec *window = named(c, x);

    if (window) // odd: refused until it is bound anew
        atomic_fetch_or_explicit(&window->generation, 1, memory_order_acq_rel);
}

static enum dock_go deliver(struct dock_conn *c, struct dock_xfer *x)
{
    uint32_t header = c->service == DOCK_UD ? GRH_BYTES : 0, left = x->len - x->done, status = DOCK_OK;
    uint32_t n = left < x->piece ? left : x->piece;
    struct buffers b;

    read_buffers(c, x->receive, &b);
    if (__builtin_expect((uint64_t)x->len + header > b.bytes, 0)) {
        dock_info("queue %u: %u bytes for a receive of queue %u that has %llu", c->source_qp, x->len,
                  c->dest_qp, (unsigned long long)b.bytes);
        return receive_failed(c, x, DOCK_ST_LOC_LEN,
                              c->service == DOCK_RM ? DOCK_ST_REM_RESP_LEN : DOCK_ST_REM_INV_REQ);
    }
    if (header && x->done == 0) {
        uint8_t grh[GRH_BYTES];
        build_grh(x, grh);
        status = place(c, x, &b, 0, header, grh);
    }
    if (!status)
        status = place(c, x, &b, (uint64_t)x->done + header, n, NULL);
    // The sender's own memory went away: as on a wire, the half message of a reliable connection holds its
    // receive until the queue fails.
    if (__builtin_expect(status == DOCK_ST_LOC_PROT, 0)) {
        give_back(c, x);
        return done(x, status);
    }
    if (__builtin_expect(status == DOCK_ST_RETRY_EXC,
                         0)) // the target's process is gone, and with it its receive
        return dock_service_lossy(c->service) ? drop(c, x) : done(x, status);
    if (__builtin_expect(status, 0))
        return receive_failed(c, x, DOCK_ST_LOC_PROT, DOCK_ST_REM_OP);
    dock_probe(DOCK_AT_PLACE, c->source_qp, x->done);
    if (x->done < x->len)
        return DOCK_GO_MORE;
    if (x->op == DOCK_OP_SEND_INV)
        invalidate(c, x);
    return finish(c, x, x->len + header);
}

uint32_t dock_host_local(struct dock_conn *c, const struct dock_xfer *x)
{
    struct dock_span span;
    uint32_t status = DOCK_OK;

    for (unsigned i = 0; !x->inline_data && i < x->nsge && !status; i++)
        status = dock_up_local(c->dev, x, &x->sge[i], 0, 0, &span);
    return status;
}

// A datagram queue has a key that its senders know; URMA's queues may have one.
static bool may_send(const struct dock_conn *c, const struct dock_xfer *x)
{
    if (c->service != DOCK_UD && !(dock_peek32(&c->queue->access) & DOCK_ACCESS_TOKEN))
        return true;
    return (x->op == DOCK_OP_WRITE_IMM ? x->target_token : x->token) == dock_peek32(&c->queue->qkey);
}

// IBTA vol 1, 9.9.6.3, class J: a key that cannot be invalidated fails the receive and the target's queue,
// and nobody answers the requester. It tries again, maybe before the target's engine has looked.
static enum dock_go cannot_invalidate(struct dock_conn *c, struct dock_xfer *x)
{
    if (dock_peek32(&dock_conn_target(c)->queue->attention) & DOCK_ATTN_ERRORS)
        return DOCK_GO_NOBODY;
    if (claim(c, x))
        return DOCK_GO_RNR;
    complete(c, x, DOCK_ST_LOC_PROT, 0);
    x->claimed = false;
    dock_host_attention(c, DOCK_ATTN_LOCAL);
    return DOCK_GO_NOBODY;
}

void dock_host_refuse_imm(struct dock_conn *c, struct dock_xfer *x)
{
    uint32_t status = x->status;

    if (c->service != DOCK_RC || claim(c, x))
        return;
    complete(c, x, DOCK_ST_LOC_PROT, 0);
    x->status = status;
    x->claimed = false;
}

enum dock_go dock_host_message(struct dock_conn *c, struct dock_xfer *x)
{
    if (x->op == DOCK_OP_SEND_INV && x->done == 0 && !named(c, x))
        return x->tokens ? done(x, DOCK_ST_REM_ACCESS) : cannot_invalidate(c, x);
    if (dock_service_names(c->service) && !may_send(c, x)) {
        if (!dock_service_lossy(c->service)) {
            dock_info("queue %u: a message to queue %u has another token than it asks for", c->source_qp,
                      c->dest_qp);
            return done(x, DOCK_ST_REM_ACCESS);
        }
        uint32_t status = dock_host_local(c, x); // its own keys come before what the target thinks of it
        return status ? done(x, status) : drop(c, x);
    }
    if (!x->claimed) {
        // The sender's keys come before a receive is taken for a message that will not come.
        uint32_t status = x->op == DOCK_OP_WRITE_IMM ? DOCK_OK : dock_host_local(c, x);
        if (status)
            return done(x, status);
        int err = claim(c, x);
        if (err ==
            -EMSGSIZE) // IBTA vol 1, 9.9.3: a datagram that does not fit leaves the receive where it is
            return drop(c, x);
        if (err == -EAGAIN)
            return dock_service_lossy(c->service) ? drop(c, x) : DOCK_GO_RNR;
        if (err)
            return done(x, DOCK_ST_REM_OP);
    }
    if (x->op == DOCK_OP_WRITE_IMM)
        return finish(c, x, x->len);
    return deliver(c, x);
}
