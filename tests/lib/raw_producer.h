// SPDX-License-Identifier: MIT
// A producer that knows the public format of the queues and nothing of this tree: it writes SQEs and the
// doorbell and reads CQEs by byte offsets of its own. It shares no header with the device, on purpose.
#ifndef TESTS_LIB_RAW_PRODUCER_H
#define TESTS_LIB_RAW_PRODUCER_H

#include <stdint.h>

struct raw_queue {
    unsigned char *ring; // of `blocks` 64-byte blocks
    uint32_t blocks;
    void *doorbell;    // 32 bits
    unsigned char *cq; // `cqes` 64-byte entries
    uint32_t cqes;
    void *cq_ci; // 32 bits
    uint32_t pi, ci;
};

struct raw_sge {
    uint32_t len;
    uint64_t va;
};

struct raw_wr {
    unsigned opcode;
    int complete, solicited, fence;
    uint32_t id; // remote tid, or queue of a SEND
    uint32_t token;
    uint64_t addr;
    uint64_t imm; // SEND_IMM, WRITE_IMM; SEND_INV: the whole key
    const struct raw_sge *sge;
    unsigned nsge;
    const void *data; // inline when not null
    unsigned bytes;
    uint32_t notify_id, notify_token;
    uint64_t notify_addr, notify_value;
    uint64_t operand[2];
    int bad_owner; // write the owner bit of the other pass
};

struct raw_cqe {
    unsigned receive, status, substatus, opcode, entry;
    uint32_t local, bytes;
    uint64_t data;
};

// Write one SQE at the producer index, which moves; the doorbell does not. Returns the blocks that it took.
unsigned raw_put(struct raw_queue *q, const struct raw_wr *wr);
void raw_ring(struct raw_queue *q);
// 1: *out is the oldest completion, and the consumer index has moved.
int raw_poll(struct raw_queue *q, struct raw_cqe *out);

#endif
