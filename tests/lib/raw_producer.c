// SPDX-License-Identifier: MIT
#include "raw_producer.h"

#include <stdatomic.h>
#include <string.h>

static void put32(unsigned char *at, uint32_t v)
{
    for (unsigned i = 0; i < 4; i++)
        at[i] = (unsigned char)(v >> 8 * i);
}

static void put64(unsigned char *at, uint64_t v)
{
    put32(at, (uint32_t)v);
    put32(at + 4, (uint32_t)(v >> 32));
}

static uint32_t get32(const unsigned char *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

// Bytes of control before the data: 48, or 64 with an immediate, or 80 with a notification.
static unsigned control(unsigned opcode)
{
    return opcode == 4 ? 64 : opcode == 5 ? 80 : 48;
}

static int is_atomic(unsigned opcode)
{
    return opcode == 7 || opcode == 0xb;
}

static unsigned blocks_of(const struct raw_wr *wr)
{
    unsigned head = control(wr->opcode);

    if (wr->opcode == 0x11)
        return 1;
    if (is_atomic(wr->opcode))
        return 2;
    if (wr->data)
        return (head + wr->bytes - 1) / 64 + 1;
    return wr->nsge ? (head + (wr->nsge - 1) * 16) / 64 + 1 : (head - 1) / 64 + 1;
}

static void put_data(unsigned char *sqe, const struct raw_wr *wr)
{
    unsigned char *at = sqe + control(wr->opcode);

    if (wr->data) {
        memcpy(at, wr->data, wr->bytes);
        return;
    }
    for (unsigned i = 0; i < wr->nsge; i++, at += 16) {
        put32(at, wr->sge[i].len);
        put32(at + 4, 0xdeadbeef); // the key is not used
        put64(at + 8, wr->sge[i].va);
    }
}

static void put_control(unsigned char *sqe, const struct raw_wr *wr, unsigned owner)
{
    put32(sqe, (uint32_t)(wr->fence != 0) << 19 | (uint32_t)(wr->solicited != 0) << 20 |
                   (uint32_t)(wr->complete != 0) << 21 | (uint32_t)(wr->data != NULL) << 22 | 1u << 28 |
                   (uint32_t)owner << 31);
    put32(sqe + 4, wr->opcode << 8 | (wr->data ? wr->bytes << 22 : 0));
    put32(sqe + 8, wr->data ? 0 : wr->nsge << 24);
    put32(sqe + 12, wr->id & 0xfffff);
    put32(sqe + 32, wr->token);
    put64(sqe + 40, wr->addr);
}

static void put_rest(unsigned char *sqe, const struct raw_wr *wr)
{
    switch (wr->opcode) {
    case 1:
        put64(sqe + 40, wr->imm);
        break;
    case 2: // {tid, token}
        put32(sqe + 40, (uint32_t)wr->imm >> 8);
        put32(sqe + 44, (uint32_t)wr->imm);
        break;
    case 4:
        put64(sqe + 48, wr->imm);
        break;
    case 5:
        put32(sqe + 48, wr->notify_id);
        put32(sqe + 52, wr->notify_token);
        put64(sqe + 56, wr->notify_addr);
        put64(sqe + 64, wr->notify_value);
        break;
    case 7: // swap, then compare
    case 0xb:
        put64(sqe + 64, wr->operand[0]);
        put64(sqe + 72, wr->operand[1]);
        break;
    default:
        break;
    }
}

unsigned raw_put(struct raw_queue *q, const struct raw_wr *wr)
{
    unsigned char sqe[256] = {0};
    unsigned n = blocks_of(wr), owner = (q->pi & q->blocks) == 0;

    put_control(sqe, wr, wr->bad_owner ? !owner : owner);
    put_rest(sqe, wr);
    put_data(sqe, wr);
    for (unsigned i = 0; i < n; i++) // wraps at the end of the ring, block by block
        memcpy(q->ring + 64ul * ((q->pi + i) & (q->blocks - 1)), sqe + 64 * i, 64);
    q->pi += n;
    return n;
}

void raw_ring(struct raw_queue *q)
{
    atomic_store_explicit((_Atomic uint32_t *)q->doorbell, q->pi, memory_order_release);
}

int raw_poll(struct raw_queue *q, struct raw_cqe *out)
{
    unsigned char *e = q->cq + 64ul * (q->ci & (q->cqes - 1));
    uint32_t first = atomic_load_explicit((_Atomic uint32_t *)(void *)e, memory_order_acquire);

    if ((first >> 2 & 1) == ((q->ci & q->cqes) != 0)) // valid when the owner bit is not the pass's parity
        return 0;
    out->receive = first & 1;
    out->opcode = first >> 4 & 7;
    out->substatus = first >> 16 & 0xff;
    out->status = first >> 24;
    out->entry = get32(e + 4) & 0xffff;
    out->local = get32(e + 4) >> 16 | (get32(e + 8) & 0xf) << 16;
    out->bytes = get32(e + 16);
    out->data = get32(e + 44) | (uint64_t)get32(e + 48) << 32;
    q->ci++;
    atomic_store_explicit((_Atomic uint32_t *)q->cq_ci, q->ci, memory_order_release);
    return 1;
}
