// SPDX-License-Identifier: MIT
// From the ring to a request. The WQE is copied out first: what is executed is what was checked, whoever
// writes the ring meanwhile.
#include "device/identity.h"
#include "device/internal.h"

static uint64_t word64(const struct dock_sq *sq, unsigned at)
{
    uint64_t v;

    memcpy(&v, sq->wqe.byte + at, 8);
    return v;
}

static const char *slot(const struct dock_sq *sq, uint32_t at)
{
    return sq->post.ring + (uint64_t)(at & sq->post.mask) * DOCK_BLOCK;
}

// The owner bit of a WQE that begins there, in this pass over the ring.
static bool is_of_pass(const struct dock_sq *sq, const struct dock_wqe *w, uint32_t at)
{
    return (w->flags & DOCK_F_OWNER) == (at & (sq->post.mask + 1) ? 0 : DOCK_F_OWNER);
}

// 0, or the status of a ring that does not hold what the doorbell says.
static uint32_t copy_out(struct dock_sq *sq, uint32_t pi, unsigned *blocks)
{
    uint32_t left = pi - sq->exec;

    *blocks = 1;
    if (left > sq->post.mask + 1) {
        dock_error(
            "queue %u: the doorbell says %u, the device is at %u: it jumped past the ring or went back",
            sq->qp->number, pi, sq->exec);
        *blocks = left; // nothing in between can be trusted
        return DOCK_ST_LOC_QP_OP;
    }
    memcpy(sq->wqe.byte, slot(sq, sq->exec), DOCK_BLOCK);
    if (!is_of_pass(sq, &sq->wqe.w, sq->exec)) {
        dock_error("queue %u: WQE %u has the owner bit of another pass", sq->qp->number, sq->exec);
        return DOCK_ST_LOC_QP_OP;
    }
    unsigned n = dock_wqe_blocks(&sq->wqe.w);
    if (n > DOCK_WQE_BLOCKS || n > left) {
        dock_error("queue %u: WQE %u needs %u blocks, %u are published", sq->qp->number, sq->exec, n, left);
        return DOCK_ST_LOC_QP_OP;
    }
    for (unsigned i = 1; i < n; i++)
        memcpy(sq->wqe.byte + (size_t)i * DOCK_BLOCK, slot(sq, sq->exec + i), DOCK_BLOCK);
    *blocks = n;
    return __builtin_expect(sq->qp->page != NULL, 0) ? dock_raw_check_fetched(sq, n) : DOCK_OK;
}

// In every other pass the owner bit of a block that nobody ever wrote is right.
static bool is_blank(const char *block)
{
    static const char blank[DOCK_BLOCK];

    return !memcmp(block, blank, sizeof blank);
}

static bool stands(const struct dock_sq *sq, uint32_t at, uint32_t left)
{
    struct dock_wqe w;

    if (sq->qp->page && is_blank(slot(sq, at)))
        return false;
    memcpy(&w, slot(sq, at), sizeof w);
    unsigned n = dock_wqe_blocks(&w);
    return is_of_pass(sq, &w, at) && n <= DOCK_WQE_BLOCKS && n <= left;
}

uint32_t dock_sq_unfit(const struct dock_sq *sq, uint32_t pi)
{
    uint32_t at = sq->exec;

    if (pi - at > sq->post.mask + 1) // the doorbell is wrong: dock_sq_fetch says so
        return 0;
    while (at != pi && !stands(sq, at, pi - at))
        at++;
    return at - sq->exec;
}

static void decode_special(struct dock_sq *sq, struct dock_xfer *x)
{
    switch (x->op) {
    case DOCK_OP_SEND_INV: // {tid, token}; the whole key is the token
        x->imm = x->tokens ? (x->raddr & ~0xffffffffull) | (x->raddr & DOCK_ID_MASK) << 8 : x->raddr >> 32;
        x->notify_tid = (uint32_t)x->raddr & DOCK_ID_MASK;
        x->notify_token = (uint32_t)(x->raddr >> 32);
        break;
    case DOCK_OP_SEND_IMM:
    case DOCK_OP_SEND:
        x->imm = x->raddr;
        break;
    case DOCK_OP_WRITE_IMM:
        x->imm = word64(sq, 48);
        x->target_token = (uint32_t)(word64(sq, 56) >> 32);
        break;
    case DOCK_OP_WRITE_NOTIFY:
    case DOCK_OP_WRITE_ADD:
        x->notify_tid = (uint32_t)word64(sq, 48) & DOCK_ID_MASK;
        x->notify_token = (uint32_t)(word64(sq, 48) >> 32);
        x->notify_addr = word64(sq, 56);
        x->notify_value = word64(sq, 64);
        break;
    case DOCK_OP_BIND:
        x->notify_token = (uint32_t)word64(sq, 48);
        x->compare = word64(sq, 48) >> 32;
        x->operand = word64(sq, 64);
        x->imm = word64(sq, 72);
        break;
    default:
        if (dock_op_is_atomic(x->op)) {
            x->operand = word64(sq, 64);
            x->compare = word64(sq, 72);
        }
    }
}

// Whom a request without a connection is for. A message names the queue; what only touches memory names the
// memory, and the queue as its transport; a WRITE with immediate names both.
static void decode_target(struct dock_sq *sq, struct dock_xfer *x)
{
    const struct dock_wqe *w = &sq->wqe.w;

    if (x->op <= DOCK_OP_SEND_INV)
        x->target = x->remote;
    else if (x->op == DOCK_OP_WRITE_IMM)
        x->target = (uint32_t)word64(sq, 56) & DOCK_ID_MASK;
    else
        x->target = w->tp_sge & DOCK_ID_MASK;
    x->bundle = x->service != DOCK_UD && (w->flags >> DOCK_TARGET_SHIFT & 3) == DOCK_TARGET_GROUP;
    x->hint = (uint8_t)w->op;
    dock_eid_reverse(x->eid, w->eid);
    memcpy(x->from, x->eid, sizeof x->from); // UD: both ends are on this host
}

static uint32_t decode_data(struct dock_sq *sq, struct dock_xfer *x, unsigned at)
{
    uint64_t total = 0;

    x->inline_data = NULL;
    if (x->op == DOCK_OP_NOP || x->op == DOCK_OP_BIND || x->op == DOCK_OP_INV) {
        x->nsge =
            0; // carries no data: a count that a raw producer left there means nothing, and has no bound
        x->len = 0;
        return 0;
    }
    if (x->flags & DOCK_F_INLINE) {
        if (x->op == DOCK_OP_READ || dock_op_is_atomic(x->op))
            return DOCK_ST_LOC_QP_OP;
        x->inline_data = sq->wqe.byte + at;
        x->len = dock_wqe_inline_len(&sq->wqe.w);
        x->nsge = 0;
        return 0;
    }
    if (dock_op_is_atomic(x->op) && x->nsge > 1)
        return DOCK_ST_LOC_QP_OP;
    for (unsigned i = 0; i < x->nsge; i++) {
        struct dock_wqe_sge s;
        memcpy(&s, sq->wqe.byte + at + i * sizeof s, sizeof s);
        x->sge[i] = (struct dock_sge_local){.va = s.va, .len = s.len, .key = s.key};
        total += s.len;
    }
    if (__builtin_expect(total > sq->qp->dev->limits.max_msg, 0))
        return DOCK_ST_LOC_LEN;
    x->len = (uint32_t)total;
    return 0;
}

// Both ends are on this host. The source is the address that the WQE names by its index if it is of the
// destination's family, else the first that is, for a group, or the destination.
static void decode_addresses(const struct dock_wqe *w, struct dock_xfer *x)
{
    const struct dock_identity *me = dock_identity();
    uint32_t header = w->flags & DOCK_F_UDF ? w->udf : 0, named = (header >> 16) - 1, i;

    x->tclass = (uint8_t)header;
    x->hops = (uint8_t)(header >> 8);
    i = named;
    if (i >= me->gids || !me->gid[i].raw[0] != !(x->eid[0] | x->eid[1]))
        for (i = 0; i < me->gids && !me->gid[i].raw[0] != !(x->eid[0] | x->eid[1]); i++)
            ;
    if (i < me->gids && (named < me->gids || dock_eid_is_group(x->eid)))
        memcpy(x->from, me->gid[i].raw, sizeof x->from);
}

uint32_t dock_sq_fetch(struct dock_sq *sq, uint32_t pi, unsigned *blocks)
{
    const struct dock_wqe *w = &sq->wqe.w;
    struct dock_xfer *x = &sq->x;
    uint32_t status = copy_out(sq, pi, blocks);

    dock_probe(DOCK_AT_FETCH, sq->qp->number, sq->exec);
    x->flags = w->flags;
    x->op = (uint8_t)dock_wqe_opcode(w);
    x->nsge = (uint8_t)dock_wqe_sges(w);
    x->piece = DOCK_PIECE;
    x->done = 0;
    x->claimed = false;
    x->broken = false;
    x->bytes = 0;
    x->seq = sq->seq;
    x->status = DOCK_OK;
    if (__builtin_expect(status, 0))
        return status;
    x->remote = w->remote & DOCK_ID_MASK;
    x->token = w->token;
    x->raddr = w->address;
    x->srq = w->tp_sge & DOCK_ID_MASK;
    if (__builtin_expect(x->op != DOCK_OP_WRITE && x->op != DOCK_OP_READ, 0))
        decode_special(sq, x);
    if (__builtin_expect(dock_service_names(x->service), 0))
        decode_target(sq, x);
    if (__builtin_expect(x->service == DOCK_UD, 0))
        decode_addresses(w, x);
    return decode_data(sq, x, dock_wqe_data_at(x->op));
}
