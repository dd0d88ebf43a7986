// SPDX-License-Identifier: MIT
// What the tests of the rdma_cm face share: events with a limit on the wait, both ends of a connection in one
// process.
#ifndef DOCK_TESTS_FACE_LIB_CM_H
#define DOCK_TESTS_FACE_LIB_CM_H

#include <rdma/rdma_cma.h>

#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>

#include "face/lib/ends.h"

enum { CM_WAIT_MS = 20000 };

static inline struct sockaddr *cm_addr4(const char *text, uint16_t port)
{
    static _Thread_local struct sockaddr_in a[4];
    static _Thread_local unsigned turn;
    struct sockaddr_in *in = &a[turn++ % 4];

    memset(in, 0, sizeof *in);
    in->sin_family = AF_INET;
    in->sin_port = htons(port);
    CHECK(inet_pton(AF_INET, text, &in->sin_addr) == 1);
    return (struct sockaddr *)in;
}

static inline struct sockaddr *cm_addr6(const char *text, uint16_t port)
{
    static _Thread_local struct sockaddr_in6 a[4];
    static _Thread_local unsigned turn;
    struct sockaddr_in6 *in = &a[turn++ % 4];

    memset(in, 0, sizeof *in);
    in->sin6_family = AF_INET6;
    in->sin6_port = htons(port);
    CHECK(inet_pton(AF_INET6, text, &in->sin6_addr) == 1);
    return (struct sockaddr *)in;
}

static inline struct rdma_event_channel *cm_channel(void)
{
    struct rdma_event_channel *c = rdma_create_event_channel();

    CHECK(c != NULL);
    return c;
}

static inline struct rdma_cm_id *cm_new_id(struct rdma_event_channel *c, enum rdma_port_space ps)
{
    struct rdma_cm_id *id;

    CHECK_INT(rdma_create_id(c, &id, NULL, ps), 0);
    return id;
}

static inline bool cm_readable_within(const struct rdma_event_channel *c, int ms)
{
    struct pollfd p = {.fd = c->fd, .events = POLLIN};

    return poll(&p, 1, ms) == 1;
}

// The next event, which must be of this type.
static inline struct rdma_cm_event *cm_expect(struct rdma_event_channel *c, enum rdma_cm_event_type type)
{
    struct rdma_cm_event *e;

    CHECK(cm_readable_within(c, CM_WAIT_MS));
    CHECK_INT(rdma_get_cm_event(c, &e), 0);
    if (e->event != type)
        check_failed(__FILE__, __LINE__, "expected %s, got %s (status %d)", rdma_event_str(type),
                     rdma_event_str(e->event), e->status);
    return e;
}

// The same, of this status, acknowledged.
static inline void cm_expect_status(struct rdma_event_channel *c, enum rdma_cm_event_type type, int status)
{
    struct rdma_cm_event *e = cm_expect(c, type);

    CHECK_INT(e->status, status);
    CHECK_INT(rdma_ack_cm_event(e), 0);
}

static inline void cm_expect_ok(struct rdma_event_channel *c, enum rdma_cm_event_type type)
{
    cm_expect_status(c, type, 0);
}

// ---- both ends in one process: a listener on a free port of 127.0.0.1, and an id whose route to it is
// resolved

struct cm_both {
    struct rdma_event_channel *active_channel, *passive_channel;
    struct rdma_cm_id *listener, *active, *passive; // passive: once there is a request
    uint16_t port;
};

static inline void cm_resolve(struct rdma_event_channel *c, struct rdma_cm_id *id, uint16_t port)
{
    CHECK_INT(rdma_resolve_addr(id, NULL, cm_addr4("127.0.0.1", port), 2000), 0);
    cm_expect_ok(c, RDMA_CM_EVENT_ADDR_RESOLVED);
    CHECK_INT(rdma_resolve_route(id, 2000), 0);
    cm_expect_ok(c, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static inline void cm_both_open(struct cm_both *b, enum rdma_port_space ps, int backlog)
{
    memset(b, 0, sizeof *b);
    b->active_channel = cm_channel();
    b->passive_channel = cm_channel();
    b->listener = cm_new_id(b->passive_channel, ps);
    CHECK_INT(rdma_bind_addr(b->listener, cm_addr4("127.0.0.1", 0)), 0);
    CHECK_INT(rdma_listen(b->listener, backlog), 0);
    b->port = ntohs(rdma_get_src_port(b->listener));
    CHECK(b->port != 0);
    b->active = cm_new_id(b->active_channel, ps);
    cm_resolve(b->active_channel, b->active, b->port);
}

static inline void cm_make_qp(struct rdma_cm_id *id)
{
    struct ibv_qp_init_attr attr = {.cap = {8, 8, 1, 1, 0}, .qp_type = id->qp_type, .sq_sig_all = 1};

    CHECK_INT(rdma_create_qp(id, NULL, &attr), 0);
}

// A request of the active id has come.
static inline void cm_take_request(struct cm_both *b)
{
    struct rdma_cm_event *e = cm_expect(b->passive_channel, RDMA_CM_EVENT_CONNECT_REQUEST);

    CHECK(e->listen_id == b->listener);
    b->passive = e->id;
    CHECK_INT(rdma_ack_cm_event(e), 0);
}

static inline void cm_both_connect(struct cm_both *b)
{
    struct rdma_conn_param p = {
        .responder_resources = 1, .initiator_depth = 1, .retry_count = 7, .rnr_retry_count = 7};

    cm_make_qp(b->active);
    CHECK_INT(rdma_connect(b->active, &p), 0);
    cm_take_request(b);
    cm_make_qp(b->passive);
    CHECK_INT(rdma_accept(b->passive, &p), 0);
    cm_expect_ok(b->active_channel, RDMA_CM_EVENT_ESTABLISHED);
    cm_expect_ok(b->passive_channel, RDMA_CM_EVENT_ESTABLISHED);
}

// An id that may ask at this port: resolved, with a queue pair.
static inline struct rdma_cm_id *cm_caller(struct rdma_event_channel *c, uint16_t port)
{
    struct rdma_cm_id *id = cm_new_id(c, RDMA_PS_TCP);

    cm_resolve(c, id, port);
    cm_make_qp(id);
    return id;
}

static inline void cm_end(struct rdma_cm_id **id)
{
    if (!*id)
        return;
    rdma_destroy_qp(*id);
    CHECK_INT(rdma_destroy_id(*id), 0);
    *id = NULL;
}

static inline void cm_both_close(struct cm_both *b)
{
    cm_end(&b->active);
    cm_end(&b->passive);
    cm_end(&b->listener);
    rdma_destroy_event_channel(b->active_channel);
    rdma_destroy_event_channel(b->passive_channel);
}

static inline enum ibv_qp_state cm_qp_state(const struct rdma_cm_id *id)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;

    CHECK_INT(ibv_query_qp(id->qp, &attr, IBV_QP_STATE, &init), 0);
    return attr.qp_state;
}

#endif
