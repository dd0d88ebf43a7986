// SPDX-License-Identifier: MIT
// What the tests of the verbs face share: one end of a connection with everything it needs, two of them
// connected in one process or in two, polling with a time limit. A check that fails ends the test with the
// place and what was expected; in a child process it ends the child with status 1.
#ifndef DOCK_TESTS_FACE_LIB_ENDS_H
#define DOCK_TESTS_FACE_LIB_ENDS_H

#include <infiniband/verbs.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "face/lib/two.h"

#define FULL_ACCESS                                                                                          \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

// Zeros mean the usual: RC, 16 WRs, 4 SGEs, 64 inline bytes, 64 KiB of memory with all rights.
struct end_options {
    enum ibv_qp_type type;
    uint32_t send_wr, recv_wr, sge, inline_data;
    int cqe;
    size_t bytes;
    int mr_access; // -1: none at all
    int qp_access; // -1: none at all
    bool sig_all, channel, srq, builders, extended_cq;
    uint8_t rnr_retry, timeout, rd_atomic; // rnr_retry 0 stays 0; timeout 0 = 14; rd_atomic 0 = 4
};

struct end {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;   // of sends
    struct ibv_cq *rcq;  // of receives
    struct ibv_srq *srq; // or NULL
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    char *buf;
    struct end_options opt;
    int gid_index;
    union ibv_gid gid;
};

// What one end must know of the other.
struct end_address {
    uint32_t qpn, rkey;
    uint64_t addr;
    union ibv_gid gid;
};

struct ibv_context *open_device(void);
void end_open(struct end *e, const struct end_options *opt); // queue in RESET; opt may be NULL
void end_close(struct end *e);
struct end_address end_address(const struct end *e);

// Attributes and masks of the usual way RESET, INIT, RTR, RTS for the end's service.
struct ibv_qp_attr end_attr(const struct end *e, enum ibv_qp_state to, const struct end_address *peer,
                            int *mask);
void end_to_init(struct end *e);
void end_to_rtr(struct end *e, const struct end_address *peer);
void end_to_rts(struct end *e, const struct end_address *peer);
void end_to(struct end *e, enum ibv_qp_state state); // RESET, ERR, SQD
enum ibv_qp_state end_state(struct end *e);

// Two ends of this process, connected and ready.
void pair_open(struct end *l, struct end *r, const struct end_options *opt);
void pair_close(struct end *l, struct end *r);

// One completion within `ms`; false: none came.
bool poll_one(struct ibv_cq *cq, struct ibv_wc *wc, int ms);
// The next completion has this wr_id and status, within 5 s.
void expect_wc(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status, struct ibv_wc *wc);
void expect_empty(struct ibv_cq *cq, int ms);

struct ibv_sge end_sge(const struct end *e, size_t offset, uint32_t length);
int post_recv(struct end *e, uint64_t wr_id, size_t offset, uint32_t length);
// One WR with one SGE at `offset` of e's memory, remote side at `raddr`.
struct ibv_send_wr send_wr(uint64_t wr_id, enum ibv_wr_opcode op, struct ibv_sge *sge, uint64_t raddr,
                           uint32_t rkey);
int post(struct end *e, struct ibv_send_wr *wr);

// end_open, exchange of addresses over `sock`, connect.
void end_meet(struct end *e, const struct end_options *opt, int sock, struct end_address *peer);

#endif
