// SPDX-License-Identifier: MIT
// The calls that make, name, connect and end sockets of either kind.
#include <fcntl.h>
#include <stdarg.h>

#include "face/rdmacm/rs.h"

int rsocket(int domain, int type, int protocol)
{
    const struct rs_kind *kind = type == SOCK_DGRAM ? &rs_datagrams : &rs_streams;
    struct rs *rs;

    if (domain != PF_INET && domain != PF_INET6)
        return cm_fail(dock_refuse(EAFNOSUPPORT, "rsocket: family %d: IPv4 and IPv6 are offered", domain));
    if (type != kind->type || (protocol && protocol != (type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP)))
        return cm_fail(dock_refuse(EPROTONOSUPPORT,
                                   "rsocket: type %d, protocol %d: streams and datagrams are offered", type,
                                   protocol));
    rs = rs_new(domain, kind, NULL);
    return rs ? rs->fd : -1;
}

void rs_set_id_options(struct rs *rs)
{
    if (rs->reuse)
        rdma_set_option(rs->id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &rs->reuse, sizeof rs->reuse);
    if (rs->v6only)
        rdma_set_option(rs->id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &rs->v6only, sizeof rs->v6only);
}

int rs_bind_id(struct rs *rs, const struct sockaddr *addr, socklen_t len)
{
    union cm_addr copy;

    if (rs->state != RS_NEW || !addr || len < cm_addr_len(addr) || !cm_addr_len(addr))
        return dock_refuse(EINVAL, "rbind: no address of IPv4 or IPv6, or the socket is in use");
    memcpy(&copy, addr, cm_addr_len(addr));
    rs_set_id_options(rs);
    return rdma_bind_addr(rs->id, &copy.any) ? errno : 0;
}

int rbind(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
    struct rs *rs = rs_enter(socket);

    return rs ? rs_leave(rs, rs->kind->bind(rs, addr, addrlen)) : -1;
}

int rlisten(int socket, int backlog)
{
    struct rs *rs = rs_enter(socket);

    return rs ? rs_leave(rs, rs->kind->listen(rs, backlog)) : -1;
}

int raccept(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
    struct rs *listener = rs_enter(socket), *rs = NULL;

    if (!listener || rs_leave(listener, listener->kind->accept(listener, &rs)))
        return -1;
    rs_tell_address(rdma_get_peer_addr(rs->id), addr, addrlen);
    return rs->fd;
}

int rconnect(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
    struct rs *rs = rs_enter(socket);

    return rs ? rs_leave(rs, rs->kind->connect(rs, addr, addrlen)) : -1;
}

int rshutdown(int socket, int how)
{
    struct rs *rs = rs_enter(socket);

    return rs ? rs_leave(rs, rs->kind->shut(rs, how)) : -1;
}

int rclose(int socket)
{
    struct rs *rs = rs_enter(socket);

    if (!rs)
        return -1;
    rs->kind->part(rs);
    rs->closed = true;
    dock_unlock(&rs->lock);
    rs_free(rs);
    rs_drop(rs);
    return 0;
}

// ---- names and flags

void rs_tell_address(const struct sockaddr *from, struct sockaddr *to, socklen_t *len)
{
    socklen_t size = cm_addr_len(from);

    if (!to || !len)
        return;
    memcpy(to, from, size < *len ? size : *len);
    *len = size;
}

int rgetpeername(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
    struct rs *rs = rs_enter(socket);
    union cm_addr peer;

    if (!rs)
        return -1;
    if (!rs->kind->peer(rs, &peer))
        return rs_leave(rs, ENOTCONN);
    rs_tell_address(&peer.any, addr, addrlen);
    return rs_leave(rs, 0);
}

int rgetsockname(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
    struct rs *rs = rs_enter(socket);
    struct sockaddr_storage none = {0};
    const struct sockaddr *own;

    if (!rs)
        return -1;
    own = rdma_get_local_addr(rs->id);
    none.ss_family = (sa_family_t)rs->domain;
    rs_tell_address(cm_addr_len(own) ? own : (struct sockaddr *)&none, addr, addrlen);
    return rs_leave(rs, 0);
}

int rfcntl(int socket, int cmd, ...)
{
    struct rs *rs = rs_enter(socket);
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
    dock_unlock(&rs->lock);
    rs_drop(rs);
    return ret;
}
