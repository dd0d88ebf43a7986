// SPDX-License-Identifier: MIT
// Connection messages between processes of one host: one message is one packet of a SOCK_SEQPACKET
// connection in the runtime directory. A connection of ids is a connection of sockets, so the death of
// either end is its end.
#ifndef DOCK_FACE_RDMACM_WIRE_H
#define DOCK_FACE_RDMACM_WIRE_H

#include <infiniband/verbs.h>
#include <netinet/in.h>

#include <stdint.h>

#include "arena/rundir.h"

// Private data by message, as InfiniBand has it; a receiver always sees the whole field, zeros behind the
// data.
enum {
    CM_DATA_REQ = 56,
    CM_DATA_REP = 196,
    CM_DATA_REJ = 148,
    CM_DATA_SIDR_REQ = 180,
    CM_DATA_SIDR_REP = 136,
    CM_PRIVATE_MAX = 224,
};

enum cm_type {
    CM_MSG_REQ = 1,
    CM_MSG_REP,
    CM_MSG_RTU,
    CM_MSG_REJ,
    CM_MSG_DREQ,
    CM_MSG_DREP,
    CM_MSG_SIDR_REQ,
    CM_MSG_SIDR_REP,
};

union cm_addr {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

// Numbers stand as the sender sees them: "responder" and "initiator" are the sender's own.
struct cm_msg {
    uint32_t magic;
    uint8_t type;
    uint8_t status; // reason of a REJ, status of a SIDR_REP
    uint8_t responder_resources, initiator_depth;
    uint8_t retry, rnr_retry, flow_control, srq;
    uint32_t qp_num, psn, qkey, qp_type;
    uint32_t ece_vendor, ece_options;
    union cm_addr src, dst;
    uint8_t private_data[CM_PRIVATE_MAX];
};

// A message of `type` with everything else 0.
void cm_msg_init(struct cm_msg *m, enum cm_type type);
// 0 or -errno. Never waits, never raises SIGPIPE.
int cm_msg_send(int fd, const struct cm_msg *m);
// 0; -EAGAIN: nothing there; -ECONNRESET: the other end is gone; -EPROTO: not one of ours (logged).
int cm_msg_receive(int fd, struct cm_msg *m);

// Connect to the listener of that name. 0, -ECONNREFUSED (nobody listens there), -EAGAIN (it has no room
// now).
int cm_wire_connect(const struct dock_rundir *dir, const char *name, int *fd);
// Listen under that name. What a dead process left there is removed: the caller holds the port.
int cm_wire_listen(const struct dock_rundir *dir, const char *name, int *fd);
// Accept one: -EAGAIN when there is none. Only processes of our user are let in.
int cm_wire_accept(int listener, int *fd);

#endif
