// SPDX-License-Identifier: MIT
// Polling: begin, next until it returns 0, end. `end` writes the consumer index that the producers look at,
// once per call.
//
//     if (dock_cq_idle(cq))  ...there is nothing...
//     dock_cq_begin(cq);
//     while (n < max && (r = dock_cq_next(cq, &wc)) > 0)  ...translate...
//     dock_cq_end(cq);
#ifndef DOCK_DEVICE_CQ_H
#define DOCK_DEVICE_CQ_H

#include "device/device.h"

// A completion in the device's words. Of a failed one only id, status, qp_num, recv and vendor_err mean
// something.
struct dock_wc {
    uint64_t id;
    uint32_t status; // enum dock_status
    uint32_t vendor_err;
    uint8_t recv; // 1: of a receive
    uint8_t op;   // send: enum dock_op; receive: enum dock_rop
    uint8_t grh, solicited, told_eid;
    uint32_t bytes;
    // Immediate as sent; ROP_SEND_INV: the key that was invalidated (URMA: token value << 32 | tid << 8)
    uint64_t imm;
    uint32_t qp_num, src_qp; // src_qp of a send completion: where it went
    uint64_t stamp_ns;
    uint8_t eid[16]; // of the sender, when told_eid: UD, and queues made with tell_eid
    struct dock_qp *qp;
};

// Nothing to poll, nor work that waits for a poller? One look without the lock, for who polls and polls.
// false says nothing.
bool dock_cq_idle(const struct dock_cq *cq);
void dock_cq_begin(struct dock_cq *cq);
// 1: *wc filled, the slots it covers are free. 0: empty (the caller of an empty poll has by then helped with
// waiting work). -EOVERFLOW: the CQ was overrun and is unusable (DOCK_EVENT_CQ_ERR told).
int dock_cq_next(struct dock_cq *cq, struct dock_wc *wc);
void dock_cq_end(struct dock_cq *cq);

#endif
