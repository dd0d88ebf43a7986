// SPDX-License-Identifier: MIT
// The calls that make, name, connect and end sockets.
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/clock.h"
#include "face/rdmacm/rs.h"

enum { LINGER_MS = 10000 };

int rsocket(int domain, int type, int protocol)
{
    struct rs *rs;

    if (domain != PF_INET && domain != PF_INET6)
        return cm_fail(dock_refuse(EAFNOSUPPORT, "rsocket: family %d: IPv4 and IPv6 are offered", domain));
    if ((type != SOCK_STREAM && type != SOCK_DGRAM) ||
        (protocol && protocol != (type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP)))
        return cm_fail(dock_refuse(EPROTONOSUPPORT,
                                   "rsocket: type %d, protocol %d: streams and datagrams are offered", type,
                                   protocol));
    rs = rs_new(domain, type, NULL);
    return rs ? rs->fd : -1;
}

// rs_get and its lock; -1 and errno.
static struct rs *enter(int fd)
{
    struct rs *rs = rs_get(fd);

    if (rs)
        pthread_mutex_lock(&rs->lock);
    return rs;
}

static int leave(struct rs *rs, int err)
{
    pthread_mutex_unlock(&rs->lock);
    rs_drop(rs);
    return err ? cm_fail(err) : 0;
}

void rs_set_id_options(struct rs *rs)
{
    if (rs->reuse)
        rdma_set_option(rs->id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &rs->reuse, sizeof rs->reuse);
    if (rs->v6only)
        rdma_set_option(rs->id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &rs->v6only, sizeof rs->v6only);
}

int rbind(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
    struct rs *rs = enter(socket);
    union cm_addr copy;
    int err = EINVAL;

    if (!rs)
        return -1;
    if (rs->dg && addr && addrlen >= sizeof addr->sa_family && addr->sa_family != rs->domain) {
        err = dock_refuse(EAFNOSUPPORT, "rbind: an address of another family than the socket's");
    } else if (rs->state == RS_NEW && addr && addrlen >= cm_addr_len(addr) && cm_addr_len(addr)) {
        memcpy(&copy, addr, cm_addr_len(addr));
        rs_set_id_options(rs);
        err = rdma_bind_addr(rs->id, &copy.any) ? errno : 0;
        if (!err && rs->dg)
            err = -rs_dg_open(rs);
    } else {
        dock_refuse(EINVAL, "rbind: no address of IPv4 or IPv6, or the socket is in use");
    }
    return leave(rs, err);
}

int rlisten(int socket, int backlog)
{
    struct rs *rs = enter(socket);
    int err = EINVAL;

    if (!rs)
        return -1;
    if (rs->dg) {
        err = dock_refuse(EOPNOTSUPP, "rlisten: datagrams have no connections");
    } else if (rs->state == RS_LISTENING) {
        err = 0;
    } else if (rs->state == RS_NEW) {
        err = rdma_listen(rs->id, backlog) ? errno : 0;
        if (!err)
            rs->state = RS_LISTENING;
    } else {
        dock_refuse(EINVAL, "rlisten: the socket is connected or was");
    }
    return leave(rs, err);
}

// ---- accepting

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
    rs = rs_new(listener->domain, SOCK_STREAM, e->id);
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

static void tell_address(const struct sockaddr *from, struct sockaddr *to, socklen_t *len)
{
    socklen_t size = cm_addr_len(from);

    if (!to || !len)
        return;
    memcpy(to, from, size < *len ? size : *len);
    *len = size;
}

int raccept(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
    struct rs *listener = enter(socket), *rs = NULL;
    int err;

    if (!listener)
        return -1;
    if (listener->dg)
        return leave(listener, dock_refuse(EOPNOTSUPP, "raccept: datagrams have no connections"));
    do {
        err =
            listener->state == RS_LISTENING ? rs_wait(listener, request_waits, !listener->nonblock) : EINVAL;
        if (!err)
            err = take_request(listener, &rs);
    } while (err == EAGAIN && !listener->nonblock);
    if (leave(listener, err) || !rs)
        return -1;
    tell_address(rdma_get_peer_addr(rs->id), addr, addrlen);
    return rs->fd;
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

int rconnect(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
    struct rs *rs = enter(socket);
    int err = EINVAL;

    if (!rs)
        return -1;
    if (rs->dg)
        return leave(rs, rs_dg_connect(rs, addr, addrlen));
    if (addr && cm_addr_len(addr) && addrlen >= cm_addr_len(addr))
        err = start_connect(rs, addr);
    else
        dock_refuse(EINVAL, "rconnect: no address of IPv4 or IPv6");
    if (!err) {
        err = rs_wait(rs, rs_connected, !rs->nonblock);
        if (err == EAGAIN)
            err = EINPROGRESS;
        if (!err && rs->state == RS_DOWN) {
            err = rs->error ? rs->error : ECONNRESET;
            rs->error = 0;
        }
    }
    return leave(rs, err);
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

// Who waits to receive is told by its next look.
static int shut_datagrams(struct rs *rs, int how)
{
    union cm_addr peer;

    if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
        return EINVAL;
    if (!rs_dg_peer(rs, &peer))
        return ENOTCONN;
    rs->read_off |= how != SHUT_WR;
    rs->write_off |= how != SHUT_RD;
    return 0;
}

int rshutdown(int socket, int how)
{
    struct rs *rs = enter(socket);
    bool later; // just accepted, and the socket does not wait: the end follows the last word of the handshake
    int err = 0;

    if (!rs)
        return -1;
    if (rs->dg)
        return leave(rs, shut_datagrams(rs, how));
    later = rs->passive && rs->nonblock;
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
    return leave(rs, err);
}

// What was accepted is delivered, if the peer takes it in time. SO_LINGER tells how long; 0 is not at all.
static void linger(struct rs *rs)
{
    uint64_t seconds = rs->linger.l_linger > 0 ? (uint64_t)rs->linger.l_linger : 0;
    uint64_t ns = rs->linger.l_onoff ? seconds * 1000000000ull : LINGER_MS * 1000000ull;
    uint64_t until = dock_now_ns() + ns;

    while (!rs->closed && !sent_all(rs) && dock_now_ns() < until)
        if (rs_wait(rs, sent_all, false) == EAGAIN) {
            pthread_mutex_unlock(&rs->lock);
            poll(NULL, 0, 1);
            pthread_mutex_lock(&rs->lock);
        }
}

int rclose(int socket)
{
    struct rs *rs = enter(socket);

    if (!rs)
        return -1;
    if (rs->state == RS_CONNECTING && rs->passive) { // nothing was sent yet that could be waited for
        rs_wait(rs, rs_connected, false);
        if (rs->state == RS_CONNECTING)
            cm_part(cm_id(rs->id));
    }
    if (rs->state == RS_UP && !rs->dg)
        linger(rs);
    if (rs->state == RS_UP && !rs->dg)
        rdma_disconnect(rs->id);
    rs->closed = true;
    pthread_mutex_unlock(&rs->lock);
    rs_free(rs);
    rs_drop(rs);
    return 0;
}

// ---- names and flags

int rgetpeername(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
    struct rs *rs = enter(socket);
    union cm_addr peer;

    if (!rs)
        return -1;
    if (rs->dg ? !rs_dg_peer(rs, &peer) : rs->state != RS_UP && rs->state != RS_CONNECTING)
        return leave(rs, ENOTCONN);
    tell_address(rs->dg ? &peer.any : rdma_get_peer_addr(rs->id), addr, addrlen);
    return leave(rs, 0);
}

int rgetsockname(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
    struct rs *rs = enter(socket);
    struct sockaddr_storage none = {0};
    const struct sockaddr *own;

    if (!rs)
        return -1;
    own = rdma_get_local_addr(rs->id);
    none.ss_family = (sa_family_t)rs->domain;
    tell_address(cm_addr_len(own) ? own : (struct sockaddr *)&none, addr, addrlen);
    return leave(rs, 0);
}

int rfcntl(int socket, int cmd, ...)
{
    struct rs *rs = enter(socket);
    int flags, ret = 0;
    va_list args;

    if (!rs)
        return -1;
    va_start(args, cmd);
    if (cmd == F_GETFL) {
        ret = O_RDWR | (rs->nonblock ? O_NONBLOCK : 0);
    } else if (cmd == F_SETFL) {
        flags = va_arg(args, int);
        rs->nonblock = flags & O_NONBLOCK;
    } else {
        ret = cm_fail(dock_refuse(EINVAL, "rfcntl: command %d: F_GETFL and F_SETFL are offered", cmd));
    }
    va_end(args);
    pthread_mutex_unlock(&rs->lock);
    rs_drop(rs);
    return ret;
}
