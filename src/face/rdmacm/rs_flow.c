// SPDX-License-Identifier: MIT
// Bytes of a stream: into the peer's ring, out of ours.
#include "face/rdmacm/rs.h"

// The immediate of a message: what it is in the upper three bits, a number in the others.
enum word { KIND_DATA, KIND_GRANT, KIND_END, KIND_MAP };
enum { VALUE_BITS = 29 };

#define VALUE_MASK ((1u << VALUE_BITS) - 1)
#define CHUNK 65536u

static uint32_t immediate(enum word kind, uint32_t value)
{
    return htonl((uint32_t)kind << VALUE_BITS | (value & VALUE_MASK));
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

// The connection is of no more use; `error` 0: it ended in order.
static void down(struct rs *rs, int error)
{
    if (rs->state == RS_DOWN)
        return;
    rs->state = RS_DOWN;
    if (!rs->error)
        rs->error = error;
}

static uint32_t outstanding(const struct rs *rs)
{
    return rs->posted - rs->finished;
}

// ---- posting

struct piece {
    const void *from; // in rs->out, or NULL
    uint32_t len, staged;
    uint64_t addr;
    uint32_t rkey;
    bool silent; // no immediate: the peer is not told
    uint32_t imm;
};

static bool post(struct rs *rs, const struct piece *p)
{
    struct ibv_sge sge = {(uintptr_t)p->from, p->len, rs->out.mr->lkey};
    struct ibv_send_wr *bad, wr = {
                                 .sg_list = &sge,
                                 .num_sge = p->from ? 1 : 0,
                                 .opcode = p->silent ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_WRITE_WITH_IMM,
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .imm_data = p->imm,
                                 .wr.rdma = {p->addr, p->rkey},
                             };

    if (outstanding(rs) >= RS_DEPTH)
        return false;
    if (ibv_post_send(rs->id->qp, &wr, &bad)) { // there was room: the queue takes nothing any more
        down(rs, ECONNRESET);
        return false;
    }
    rs->in_flight[rs->posted++ % RS_DEPTH] = p->staged;
    return true;
}

static bool post_word(struct rs *rs, enum word kind, uint32_t value)
{
    return post(rs,
                &(struct piece){.addr = rs->peer.ring, .rkey = rs->peer.rkey, .imm = immediate(kind, value)});
}

// Room for data that goes through our own buffer, in one piece.
static size_t staging_room(const struct rs *rs)
{
    size_t used = (size_t)(rs->staged - rs->drained), at = (size_t)(rs->staged % rs->out_size);

    if (outstanding(rs) >= RS_DEPTH - RS_SPARE)
        return 0;
    return least(least(rs->out_size - used, rs->out_size - at), CHUNK);
}

static size_t peer_room(const struct rs *rs)
{
    return rs->peer.size - (size_t)(rs->sent - rs->granted);
}

bool rs_flow_can_send(const struct rs *rs)
{
    return rs->state == RS_DOWN || rs->write_off || (rs->state == RS_UP && staging_room(rs) && peer_room(rs));
}

static uint8_t *stage(struct rs *rs, const uint8_t *buf, size_t len)
{
    uint8_t *at = rs->out.ring + rs->staged % rs->out_size;

    memcpy(at, buf, len);
    return at;
}

size_t rs_put(struct rs *rs, const uint8_t *buf, size_t len)
{
    size_t done = 0;

    while (done < len) {
        uint32_t at = (uint32_t)(rs->sent % rs->peer.size);
        size_t n = least(least(len - done, staging_room(rs)), least(peer_room(rs), rs->peer.size - at));
        struct piece p = {.len = (uint32_t)n,
                          .staged = (uint32_t)n,
                          .addr = rs->peer.ring + at,
                          .rkey = rs->peer.rkey,
                          .imm = immediate(KIND_DATA, (uint32_t)n)};

        if (!n)
            break;
        p.from = stage(rs, buf + done, n);
        if (!post(rs, &p))
            break;
        rs->staged += n;
        rs->sent += n;
        done += n;
    }
    return done;
}

size_t rs_put_mapped(struct rs *rs, const uint8_t *buf, size_t len, uint64_t addr, uint32_t rkey)
{
    size_t n = least(len, staging_room(rs));
    struct piece p = {.len = (uint32_t)n, .staged = (uint32_t)n, .addr = addr, .rkey = rkey, .silent = true};

    if (!n)
        return 0;
    p.from = stage(rs, buf, n);
    if (!post(rs, &p))
        return 0;
    rs->staged += n;
    return n;
}

bool rs_put_map(struct rs *rs, unsigned index)
{
    return post(rs, &(struct piece){.from = &rs->out.table[index],
                                    .len = sizeof(struct rs_map),
                                    .addr = rs->peer.table + index * sizeof(struct rs_map),
                                    .rkey = rs->peer.rkey,
                                    .imm = immediate(KIND_MAP, index)});
}

bool rs_put_end(struct rs *rs)
{
    return post_word(rs, KIND_END, 0);
}

// ---- taking

// Give bytes back when it is worth a message. A message that finds no room is made up for by a later one.
static void grant(struct rs *rs)
{
    uint32_t n = (uint32_t)(rs->taken - rs->told);

    if (rs->state == RS_UP && n >= rs->in_size / 4 && post_word(rs, KIND_GRANT, n))
        rs->told += n;
}

bool rs_flow_drained(const struct rs *rs)
{
    return rs->arrived == rs->taken;
}

bool rs_flow_can_receive(const struct rs *rs)
{
    return rs->arrived != rs->taken || rs->peer_done || rs->read_off || rs->state == RS_DOWN;
}

size_t rs_take(struct rs *rs, uint8_t *buf, size_t len, bool peek)
{
    uint64_t from = rs->taken;
    size_t done = 0;

    while (done < len && from != rs->arrived) {
        size_t at = (size_t)(from % rs->in_size);
        size_t n = least(least(len - done, (size_t)(rs->arrived - from)), rs->in_size - at);

        memcpy(buf + done, rs->in.ring + at, n);
        from += n;
        done += n;
    }
    if (!peek) {
        rs->taken = from;
        grant(rs);
    }
    return done;
}

int rs_post_receives(struct rs *rs, unsigned n)
{
    struct ibv_recv_wr wr = {0}, *bad;
    int err = 0;

    while (n-- && !err)
        err = ibv_post_recv(rs->id->qp, &wr, &bad);
    return -err;
}

static void took(struct rs *rs, uint32_t imm)
{
    uint32_t word = ntohl(imm), value = word & VALUE_MASK;

    switch ((enum word)(word >> VALUE_BITS)) {
    case KIND_DATA:
        rs->arrived += value;
        if (rs->arrived - rs->taken > rs->in_size)
            down(rs, EPROTO);
        return;
    case KIND_GRANT:
        rs->granted += value;
        if (rs->granted > rs->sent)
            down(rs, EPROTO);
        return;
    case KIND_END:
        rs->peer_done = true;
        return;
    case KIND_MAP:
        if (value < RS_MAPS)
            rs->table_valid[value] = rs->in.table[value].len != 0;
        return;
    }
    down(rs, EPROTO);
}

static void finished(struct rs *rs)
{
    rs->drained += rs->in_flight[rs->finished++ % RS_DEPTH];
}

void rs_flow_progress(struct rs *rs)
{
    struct ibv_wc wc[16];
    unsigned receives = 0;
    int n;

    if (!rs->cq)
        return;
    while ((n = ibv_poll_cq(rs->cq, 16, wc)) > 0) {
        receives = 0;
        for (int i = 0; i < n; i++) {
            if (wc[i].status != IBV_WC_SUCCESS) {
                // Of a flushed queue: the reason came, or comes, as an event.
                down(rs, wc[i].status == IBV_WC_WR_FLUSH_ERR ? 0 : ECONNRESET);
            } else if (wc[i].opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
                took(rs, wc[i].imm_data);
                receives++;
            } else {
                finished(rs);
            }
        }
        if (receives && rs->state != RS_DOWN && rs_post_receives(rs, receives))
            down(rs, ECONNRESET);
    }
    if (n < 0)
        down(rs, ENETDOWN);
    grant(rs);
}
