// SPDX-License-Identifier: MIT
// The memory format of the rings: UDMA's public 64-byte blocks, little endian, and the table of what verbs
// and the rest of URMA need beside it. Producers that never saw this header write the same bytes.
//
// A send WQE (SQE) is 1 to 4 blocks of 64 bytes. Its control part, by byte:
//    0  pi16 (0-15, direct WQEs only) | place_order 16-17 | comp_order 18 | fence 19 | solicited 20 |
//       complete 21 | inline 22 | udf 23 | token_en 28 | rmt_jetty_type 29-30 | owner 31
//    4  target hint 0-7 | opcode 8-15 | inline length 22-31
//    8  tp id 0-23 | number of SGEs 24-31
//   12  remote queue id (SEND) or remote tid (one-sided) 0-19
//   16  remote EID, bytes reversed
//   32  token value         36  udf
//   40  remote address; SEND_IMM: immediate; SEND_INV: token to invalidate (tid, token)
// then by opcode: data (SGEs or inline bytes) from 48; WRITE_IMM: 48 immediate, 56 {queue id, token}, data
// from 64; WRITE_NOTIFY: 48 {tid, token}, 56 address, 64 value, data from 80; atomics: SGE of the result at
// 48, operands from 64 (CAS: swap, then compare).
#ifndef DOCK_RING_FORMAT_H
#define DOCK_RING_FORMAT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/seed.h"

#define DOCK_BLOCK 64u
#define DOCK_WQE_BLOCKS 4u
#define DOCK_WQE_BYTES (DOCK_BLOCK * DOCK_WQE_BLOCKS)
#define DOCK_RING_BLOCKS_MAX 65536u // entry_idx has 16 bits
#define DOCK_SGE_MAX 13u

enum dock_op {
    DOCK_OP_SEND = 0x00,
    DOCK_OP_SEND_IMM = 0x01,
    DOCK_OP_SEND_INV = 0x02,
    DOCK_OP_WRITE = 0x03,
    DOCK_OP_WRITE_IMM = 0x04,
    DOCK_OP_WRITE_NOTIFY = 0x05,
    DOCK_OP_READ = 0x06,
    DOCK_OP_CAS = 0x07,
    DOCK_OP_FADD = 0x0b,
    DOCK_OP_NOP = 0x11,
    // Reserved in the public table; ours:
    DOCK_OP_SWAP = 0x20,
    DOCK_OP_FSUB = 0x21,
    DOCK_OP_FAND = 0x22,
    DOCK_OP_FOR = 0x23,
    DOCK_OP_FXOR = 0x24,
    DOCK_OP_BIND =
        0x28, // control as WRITE: tid = window, token = new key; 48 {region tid, access}, 56 va, 64 len
    DOCK_OP_INV = 0x29,       // local invalidate: tid, token
    DOCK_OP_WRITE_ADD = 0x2a, // as WRITE_NOTIFY, the value is added (the public one is packed without SGE)
    DOCK_OPS = 0x2b,
};

#define DOCK_F_FENCE (1u << 19)
#define DOCK_F_SOLICITED (1u << 20)
#define DOCK_F_COMPLETE (1u << 21)
#define DOCK_F_INLINE (1u << 22)
#define DOCK_F_UDF (1u << 23)

// What a datagram says in its udf word, when it says anything: traffic class, hop limit, and one more than
// the index of its source address.
#define DOCK_UD_HEADER(tclass, hops, gid) ((uint32_t)(tclass) | (uint32_t)(hops) << 8 | ((gid) + 1u) << 16)
#define DOCK_F_TOKEN_EN (1u << 28)
#define DOCK_F_OWNER (1u << 31)
#define DOCK_TARGET_SHIFT 29u // of the target's kind in the flags: 0 JFR, 1 jetty, 2 group
#define DOCK_TARGET_GROUP 2u

// The first block as words. A WQE is written with plain stores: nobody reads it before the doorbell.
struct dock_wqe {
    uint32_t flags;   // byte 0
    uint32_t op;      // 4
    uint32_t tp_sge;  // 8
    uint32_t remote;  // 12
    uint8_t eid[16];  // 16
    uint32_t token;   // 32
    uint32_t udf;     // 36
    uint64_t address; // 40
    uint8_t body[16]; // 48: the rest of the first block
};

static_assert(sizeof(struct dock_wqe) == DOCK_BLOCK, "a block");
static_assert(offsetof(struct dock_wqe, address) == 40, "public format");

// A WQE taken out of the ring: contiguous, ours, no longer changed by anybody.
union dock_wqe_copy {
    struct dock_wqe w;
    uint8_t byte[DOCK_WQE_BYTES];
    uint64_t align;
};

struct dock_wqe_sge {
    uint32_t len, key; // raw producers leave the key unwritten
    uint64_t va;
};

static_assert(sizeof(struct dock_wqe_sge) == 16, "public format");

// The format has the 16 bytes of an address reversed, there and back.
static inline void dock_eid_reverse(void *to, const void *from)
{
    uint64_t half[2];

    memcpy(half, from, sizeof half);
    half[0] = __builtin_bswap64(half[0]);
    half[1] = __builtin_bswap64(half[1]);
    memcpy(to, &half[1], 8);
    memcpy((char *)to + 8, &half[0], 8);
}

static inline unsigned dock_wqe_opcode(const struct dock_wqe *w)
{
    return w->op >> 8 & 0xff;
}

static inline unsigned dock_wqe_sges(const struct dock_wqe *w)
{
    return w->tp_sge >> 24;
}

static inline unsigned dock_wqe_inline_len(const struct dock_wqe *w)
{
    return w->op >> 22;
}

// A WRITE, and then 8 bytes elsewhere: stored, or added.
static inline int dock_op_notifies(unsigned op)
{
    return op == DOCK_OP_WRITE_NOTIFY || op == DOCK_OP_WRITE_ADD;
}

// Where data starts, by opcode: 48, 64 or 80; atomics keep 48 for the one SGE.
static inline unsigned dock_wqe_data_at(unsigned op)
{
    return op == DOCK_OP_WRITE_IMM ? 64 : dock_op_notifies(op) ? 80 : 48;
}

static inline int dock_op_is_atomic(unsigned op)
{
    return op == DOCK_OP_CAS || op == DOCK_OP_FADD || (op >= DOCK_OP_SWAP && op <= DOCK_OP_FXOR);
}

// Blocks of a WQE by what its first block says; more than DOCK_WQE_BLOCKS when it is malformed.
static inline unsigned dock_wqe_blocks_of(unsigned op, unsigned inline_on, unsigned inline_len, unsigned sges)
{
    unsigned at = dock_wqe_data_at(op);

    if (dock_op_is_atomic(op) || op == DOCK_OP_BIND)
        return 2;
    if (op == DOCK_OP_NOP || op == DOCK_OP_INV)
        return 1;
    if (inline_on)
        return (at + inline_len + DOCK_BLOCK - 1) / DOCK_BLOCK;
    if (sges == 0)
        return (at + DOCK_BLOCK - 1) / DOCK_BLOCK;
    return (at + sges * 16 + DOCK_BLOCK - 1) / DOCK_BLOCK;
}

static inline unsigned dock_wqe_blocks(const struct dock_wqe *w)
{
    return dock_wqe_blocks_of(dock_wqe_opcode(w), w->flags & DOCK_F_INLINE, dock_wqe_inline_len(w),
                              dock_wqe_sges(w));
}

// Status of a completion: status << 8 | substatus as the CQE carries them. The second group is ours, for
// what the public table does not number.
enum dock_status {
    DOCK_OK = 0x000,
    DOCK_ST_UNSUPPORTED = 0x100,  // no such opcode here
    DOCK_ST_LOC_LEN = 0x201,      // local: message longer than the receive, or than allowed
    DOCK_ST_LOC_PROT = 0x202,     // local: key, bounds, rights or memory
    DOCK_ST_REM_RESP_LEN = 0x203, // the peer's receive was too short
    DOCK_ST_REM_INV_REQ = 0x301,  // the peer refused the request as malformed
    DOCK_ST_REM_ACCESS = 0x302,   // the peer's key, bounds or rights
    DOCK_ST_RNR_EXC = 0x400,      // receiver not ready, retries used up
    DOCK_ST_RETRY_EXC = 0x500,    // no answer, retries used up
    DOCK_ST_FLUSH = 0x600,        // not executed: the queue is in error
    DOCK_ST_LOC_QP_OP = 0x2f0,    // local: malformed WQE
    DOCK_ST_MW_BIND = 0x2f1,      // local: bind not allowed
    DOCK_ST_REM_OP = 0x3f0,       // the peer failed while it served the request
    DOCK_ST_FLUSH_DONE = 0x6f0,   // URMA's marks: made by the device, not by a request
    DOCK_ST_SUSPEND_DONE = 0x6f1,
};

// A completion entry, by 32-bit word:
//   0  s_r 0 | is_jetty 1 | owner 2 | inline 3 | receive opcode 4-6 | flush done 7 |
//      send opcode 8-14 (ours) | pass over 15 (ours) | substatus 16-23 | status 24-31
//   1  entry_idx 0-15 | local id low 16        2  local id high 4 | remote id 4-23 | flags 24-31 (ours)
//   3  tpn     4  byte count     5-6 queue cookie     7-10 remote EID, reversed
//   11-12 immediate | {tid, token} | inline data       13  WR sequence number (ours; else inline data)
//   14-15 timestamp (ours; else inline data)
// entry_idx of a send CQE is the ring index of the WQE's last block: the consumer jumps past it.
struct dock_cqe {
    _Atomic uint32_t dw0; // written last: the owner bit publishes (release; pairs with dock_cqe_take)
    uint32_t idx_local;
    uint32_t local_remote;
    uint32_t tpn;
    uint32_t bytes;
    uint32_t cookie[2];
    uint32_t eid[4];
    uint32_t data[2];
    uint32_t seq;
    uint32_t stamp[2];
};

static_assert(sizeof(struct dock_cqe) == DOCK_BLOCK, "public format");

// The local queue that it is of. 0, which no queue has: an orphan, whose queue was destroyed. Then `seq` is
// the queue's number, the cookie what the request was named by, and `tpn` their sum: no producer writes that,
// so an entry whose queue number is damaged is none.
static inline uint32_t dock_cqe_local(const struct dock_cqe *e)
{
    return e->idx_local >> 16 | (e->local_remote & 0xf) << 16;
}

static inline uint64_t dock_orphan_id(const struct dock_cqe *e)
{
    return (uint64_t)e->cookie[1] << 32 | e->cookie[0];
}

static inline uint32_t dock_orphan_sum(const struct dock_cqe *e)
{
    return (uint32_t)dock_mix(dock_mix(dock_orphan_id(e)) + e->seq);
}

static inline int dock_cqe_is_orphan(const struct dock_cqe *e)
{
    return !dock_cqe_local(e) && e->tpn == dock_orphan_sum(e);
}

static inline void dock_cqe_orphan(struct dock_cqe *e, uint64_t id)
{
    e->seq = dock_cqe_local(e);
    e->idx_local &= 0xffff;
    e->local_remote &= ~0xfu;
    e->cookie[0] = (uint32_t)id;
    e->cookie[1] = (uint32_t)(id >> 32);
    e->tpn = dock_orphan_sum(e);
}

#define DOCK_CQE_RECV (1u << 0)
#define DOCK_CQE_JETTY (1u << 1)
#define DOCK_CQE_OWNER (1u << 2)
#define DOCK_CQE_FD (1u << 7)
#define DOCK_CQE_SKIP (1u << 15) // (ours) the queue it belonged to is gone, the consumer passes over it

#define DOCK_CQE_GRH (1u << 24)       // in local_remote: 40 bytes of header precede the data
#define DOCK_CQE_SOLICITED (1u << 25) // the sender asked for an event
#define DOCK_CQE_EID (1u << 26)       // the sender's address is told

// Receive opcodes of dw0 bits 4-6.
enum dock_rop { DOCK_ROP_SEND, DOCK_ROP_SEND_IMM, DOCK_ROP_SEND_INV, DOCK_ROP_WRITE_IMM };

#endif
