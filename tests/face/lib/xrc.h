// SPDX-License-Identifier: MIT
// The parts of XRC, with what the manual asks of each and no more.
#ifndef DOCK_TESTS_FACE_LIB_XRC_H
#define DOCK_TESTS_FACE_LIB_XRC_H

#include "face/lib/ends.h"

struct ibv_xrcd *xrc_domain(struct ibv_context *ctx, int fd, int oflags); // NULL and errno, as the call does
struct ibv_srq *xrc_srq(struct ibv_pd *pd, struct ibv_xrcd *xrcd, struct ibv_cq *cq, uint32_t *number);
struct ibv_qp *xrc_initiator(struct ibv_pd *pd, struct ibv_cq *cq);
struct ibv_qp *xrc_target(struct ibv_xrcd *xrcd);
struct ibv_qp *xrc_open_qp(struct ibv_xrcd *xrcd, uint32_t number, enum ibv_qp_type type, void *user);
void xrc_connect(struct ibv_qp *qp, uint32_t peer); // either half, to RTS
enum ibv_qp_state xrc_state(struct ibv_qp *qp);
// What a request does to a target is done by the target's device, when it hears of it: waits for that.
bool xrc_becomes(struct ibv_qp *tgt, enum ibv_qp_state state);

#endif
