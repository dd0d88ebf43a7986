// SPDX-License-Identifier: MIT
// Streams: how one is made, connected and ended.
#include "base/clock.h"
#include "face/rdmacm/rs.h"

enum { LINGER_MS = 10000 };

static int make(struct rs *rs)
{
    rs->in_size = rs->out_size = RS_DEFAULT_BUFFER;
    return 0;
}

static bool peer(const struct rs *rs, union cm_addr *out)
{
    const struct sockaddr *it = rdma_get_peer_addr(rs->id);

    *out = (union cm_addr){0};
    memcpy(out, it, cm_addr_len(it));
    return rs->state == RS_UP || rs->state == RS_CONNECTING;
}

// ---- accepting

static int start_listening(struct rs *rs, int backlog)
{
    if (rs->state == RS_LISTENING)
        return 0;
    if (rs->state != RS_NEW)
        return dock_refuse(EINVAL, "rlisten: the socket is connected or was");
    if (rdma_listen(rs->id, backlog))
        return errno;
    rs->state = RS_LISTENING;
    return 0;
}

static void inherit(struct rs *rs, const struct rs *from)
{
    rs->in_size = from->in_size;
    rs->out_size = from->out_size;
    rs->maps = from->maps;
    rs->nodelay = from->nodelay;
    rs->keepalive = from->keepalive;
}

static int answer(struct rs *rs, const struct rdma_conn_param *asked)
{
    struct rs_hello hello;
    struct rdma_conn_param p = {
        .private_data = &hello, .private_data_len = sizeof hello, .retry_count = 7, .rnr_retry_count = 7};
    int ret;

    if (!rs_hello_take(rs, asked->private_data, asked->private_data_len)) {
        rdma_reject(rs->id, NULL, 0);
        return dock_refuse(-ECONNABORTED, "raccept: who asked is no rsocket");
    }
    ret = rs_build(rs);
    if (ret)
        return ret;
    rs_hello_fill(rs, &hello);
    rs->state = RS_CONNECTING;
    return rdma_accept(rs->id, &p) ? -ECONNABORTED : 0;
}

// The next request, with the listener's lock held. 0 or a positive errno value.
static int take_request(struct rs *listener, struct rs **out)
{
    struct rdma_cm_event *e;
    struct rs *rs;
    int ret;

    if (rdma_get_cm_event(listener->channel, &e))
        return errno;
    if (e->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
        rdma_ack_cm_event(e);
        return EAGAIN;
    }
    rs = rs_new(listener->domain, &rs_streams, e->id);
    if (!rs) {
        ret = -errno;
        rdma_destroy_id(e->id);
    } else {
        inherit(rs, listener);
        ret = answer(rs, &e->param.conn);
        if (ret)
            rs_free(rs);
    }
    rdma_ack_cm_event(e);
    if (!ret)
        *out = rs;
    return -ret;
}

static bool request_waits(const struct rs *rs)
{
    struct pollfd p = {.fd = rs->channel->fd, .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

static int accept_one(struct rs *listener, struct rs **out)
{
    int err;

    do {
        err =
            listener->state == RS_LISTENING ? rs_wait(listener, request_waits, !listener->nonblock) : EINVAL;
        if (!err)
            err = take_request(listener, out);
    } while (err == EAGAIN && !listener->nonblock);
    return err;
}

// ---- connecting

static int start_connect(struct rs *rs, const struct sockaddr *addr)
{
    union cm_addr copy;

    if (rs->state == RS_CONNECTING)
        return EALREADY;
    if (rs->state != RS_NEW)
        return EISCONN;
    memcpy(&copy, addr, cm_addr_len(addr));
    rs_set_id_options(rs);
    if (rdma_resolve_addr(rs->id, NULL, &copy.any, 2000))
        return errno;
    rs->state = RS_CONNECTING;
    return 0;
}

static int connect_to(struct rs *rs, const struct sockaddr *addr, socklen_t len)
{
    int err;

    if (!addr || !cm_addr_len(addr) || len < cm_addr_len(addr))
        return dock_refuse(EINVAL, "rconnect: no address of IPv4 or IPv6");
    err = start_connect(rs, addr);
    if (err)
        return err;
    err = rs_wait(rs, rs_connected, !rs->nonblock);
    if (err == EAGAIN)
        return EINPROGRESS;
    if (!err && rs->state == RS_DOWN) {
        err = rs->error ? rs->error : ECONNRESET;
        rs->error = 0;
    }
    return err;
}

// ---- ending

static bool sent_all(const struct rs *rs)
{
    return rs->state != RS_UP || rs->posted == rs->finished;
}

static bool may_end(const struct rs *rs)
{
    return rs->state != RS_UP || rs->posted - rs->finished < RS_DEPTH;
}

static int shut(struct rs *rs, int how)
{
    // Just accepted, and the socket does not wait: the end follows the last word of the handshake.
    bool later = rs->passive && rs->nonblock;
    int err = 0;

    if (rs->state == RS_CONNECTING)
        err = rs_wait(rs, rs_connected, !later);
    later = later && err == EAGAIN;
    if (later)
        err = 0;
    if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
        err = EINVAL;
    else if (!rs_connected(rs) && !later)
        err = ENOTCONN;
    if (!err && how != SHUT_WR)
        rs->read_off = true;
    if (!err && how != SHUT_RD && !rs->write_off) {
        rs->write_off = true;
        err = rs_wait(rs, may_end, true);
        if (!err && rs->state == RS_UP)
            rs_put_end(rs);
        // The peer has all of it when this returns, as far as it takes it.
        if (!err && !rs->nonblock)
            err = rs_wait(rs, sent_all, true);
    }
    return err;
}

// What was accepted is delivered, if the peer takes it in time. SO_LINGER tells how long; 0 is not at all.
static void linger(struct rs *rs)
{
    uint64_t seconds = rs->linger.l_linger > 0 ? (uint64_t)rs->linger.l_linger : 0;
    uint64_t ns = rs->linger.l_onoff ? seconds * 1000000000ull : LINGER_MS * 1000000ull;
    uint64_t until = dock_now_ns() + ns;

    while (!rs->closed && !sent_all(rs) && dock_now_ns() < until)
        if (rs_wait(rs, sent_all, false) == EAGAIN) {
            dock_unlock(&rs->lock);
            poll(NULL, 0, 1);
            dock_lock(&rs->lock);
        }
}

static void part(struct rs *rs)
{
    if (rs->state == RS_CONNECTING && rs->passive) { // nothing was sent yet that could be waited for
        rs_wait(rs, rs_connected, false);
        if (rs->state == RS_CONNECTING)
            cm_part(cm_id(rs->id));
    }
    if (rs->state == RS_UP)
        linger(rs);
    if (rs->state == RS_UP)
        rdma_disconnect(rs->id);
}

const struct rs_kind rs_streams = {
    .type = SOCK_STREAM,
    .space = RDMA_PS_TCP,
    .make = make,
    .end = rs_tear_down,
    .bind = rs_bind_id,
    .listen = start_listening,
    .accept = accept_one,
    .connect = connect_to,
    .shut = shut,
    .part = part,
    .peer = peer,
    .send = rs_bytes_send,
    .receive = rs_bytes_receive,
    .progress = rs_flow_progress,
    .can_send = rs_flow_can_send,
    .can_receive = rs_flow_can_receive,
    .drained = rs_flow_drained,
    .map = rs_map,
    .unmap = rs_unmap,
    .write_mapped = rs_write_mapped,
};
