// SPDX-License-Identifier: MIT
// Two ends of a connection for device tests: queue pairs with CQs and one region each, in one process (two
// devices, or one with itself) or, with the descriptions exchanged, in two.
#ifndef TESTS_LIB_PAIR_H
#define TESTS_LIB_PAIR_H

#include "device/cq.h"
#include "device/device.h"
#include "device/rq.h"
#include "device/sq.h"

struct end {
    struct dock_dev *dev;
    uint32_t pd;
    struct dock_cq *scq, *rcq;
    struct dock_qp *qp;
    enum dock_service service;
    struct dock_mr *mr;
    char *mem; // mem_size bytes, registered with all rights
    size_t mem_size;
    bool plain, shares_pd;
};

struct end_opts {
    uint32_t pd; // of another end, which is closed later; 0: its own
    enum dock_service service;
    uint32_t wr, sge, inline_max, cqe; // 0: 64, 4, 64, 256
    size_t mem;                        // 0: 1 MiB
    bool plain;                        // memory from mmap instead of the arena
    bool signal_all, lock_free, raw, open, short_atomics;
    enum dock_on_error on_error;
    bool unordered;
    struct dock_bundle *bundle;
    struct dock_rq *srq;
    struct dock_chan *chan;
};

extern uint8_t test_eid[16]; // an address of this host

// Abort with words on any failure: a test has no use for half an end.
void end_open(struct end *e, struct dock_dev *dev, const struct end_opts *o);
void end_close(struct end *e);
// To RTS. knobs may be NULL: timeout 14, retry 7, rnr_retry 7, rnr_timer 1, 16 reads. RM, UM: dest_qp means
// nothing.
void end_connect(struct end *e, uint32_t dest_qp, const struct dock_qp_mod *knobs);
void pair_connect(struct end *a, struct end *b);
// Of two devices without engines, strangers so far: who connects waits for the other one to answer, which a
// thread steps meanwhile.
void pair_connect_stepped(struct end *a, struct end *b);

// Name the target of a request of a queue without a connection.
void wr_aim(struct dock_wr *wr, uint32_t dest_qp);
// Post one WR; the return of dock_post_put.
int end_post(struct end *e, const struct dock_wr *wr);
int end_recv(struct end *e, uint64_t id, void *at, uint32_t len);
// Poll until one completion comes or `ms` pass. true: *wc filled.
bool end_wait(struct dock_cq *cq, struct dock_wc *wc, unsigned ms);
// Poll once.
bool end_poll(struct dock_cq *cq, struct dock_wc *wc);

// A one-SGE WR of e's memory at `off` against b's memory at `roff`.
struct dock_wr wr_onesided(uint8_t op, struct end *e, struct dock_sge *sge, size_t off, uint32_t len,
                           const struct dock_mr *remote, uint64_t raddr);

#endif
