// SPDX-License-Identifier: MIT
// The calls that move bytes. Each leaves by what was moved, if anything was.
#include <sys/uio.h>

#include "face/rdmacm/rs.h"

static ssize_t leave(struct rs *rs, size_t done, int err)
{
    int ret = rs_leave(rs, done ? 0 : err);

    return ret ? ret : (ssize_t)done;
}

// ---- receiving

static ssize_t receive(int socket, struct rs_in *in)
{
    struct rs *rs = rs_enter(socket);
    int err;

    if (!rs)
        return -1;
    err = rs->kind->receive(rs, in);
    return leave(rs, in->done, err);
}

ssize_t rrecvfrom(int socket, void *buf, size_t len, int flags, struct sockaddr *src_addr, socklen_t *addrlen)
{
    return receive(
        socket,
        &(struct rs_in){
            .iov = &(struct iovec){buf, len}, .n = 1, .flags = flags, .addr = src_addr, .addr_len = addrlen});
}

ssize_t rrecv(int socket, void *buf, size_t len, int flags)
{
    return rrecvfrom(socket, buf, len, flags, NULL, NULL);
}

ssize_t rread(int socket, void *buf, size_t count)
{
    return rrecv(socket, buf, count, 0);
}

ssize_t rreadv(int socket, const struct iovec *iov, int iovcnt)
{
    if (iovcnt < 0)
        return cm_fail(dock_refuse(EINVAL, "rreadv: %d pieces", iovcnt));
    return receive(socket, &(struct rs_in){.iov = iov, .n = (size_t)iovcnt});
}

ssize_t rrecvmsg(int socket, struct msghdr *msg, int flags)
{
    struct rs_in in = {.flags = flags, .message = true};
    ssize_t ret;

    if (!msg || msg->msg_controllen)
        return cm_fail(dock_refuse(ENOTSUP, "rrecvmsg: no message, or control data is asked for"));
    in.iov = msg->msg_iov;
    in.n = msg->msg_iovlen;
    in.addr = msg->msg_name;
    in.addr_len = &msg->msg_namelen;
    ret = receive(socket, &in);
    msg->msg_flags = in.told;
    return ret;
}

// ---- sending

static ssize_t send_out(int socket, struct rs_out *out)
{
    struct rs *rs = rs_enter(socket);
    int err;

    if (!rs)
        return -1;
    err = rs->kind->send(rs, out);
    return leave(rs, out->done, err);
}

ssize_t rsendto(int socket, const void *buf, size_t len, int flags, const struct sockaddr *dest_addr,
                socklen_t addrlen)
{
    return send_out(socket, &(struct rs_out){.iov = &(struct iovec){(void *)(uintptr_t)buf, len},
                                             .n = 1,
                                             .flags = flags,
                                             .addr = dest_addr,
                                             .addr_len = addrlen});
}

ssize_t rsend(int socket, const void *buf, size_t len, int flags)
{
    return rsendto(socket, buf, len, flags, NULL, 0);
}

ssize_t rwrite(int socket, const void *buf, size_t count)
{
    return rsend(socket, buf, count, 0);
}

ssize_t rwritev(int socket, const struct iovec *iov, int iovcnt)
{
    if (iovcnt < 0)
        return cm_fail(dock_refuse(EINVAL, "rwritev: %d pieces", iovcnt));
    return send_out(socket, &(struct rs_out){.iov = iov, .n = (size_t)iovcnt});
}

ssize_t rsendmsg(int socket, const struct msghdr *msg, int flags)
{
    if (!msg || msg->msg_controllen)
        return cm_fail(dock_refuse(ENOTSUP, "rsendmsg: no message, or there is control data"));
    return send_out(socket, &(struct rs_out){.iov = msg->msg_iov,
                                             .n = msg->msg_iovlen,
                                             .flags = flags,
                                             .addr = msg->msg_name,
                                             .addr_len = msg->msg_namelen,
                                             .message = true});
}

// ---- mapped memory of the peer

off_t riomap(int socket, void *buf, size_t len, int prot, int flags, off_t offset)
{
    struct rs *rs = rs_enter(socket);

    (void)flags;
    if (!rs || rs_leave(rs, rs->kind->map(rs, buf, len, prot, &offset)))
        return -1;
    return offset;
}

int riounmap(int socket, void *buf, size_t len)
{
    struct rs *rs = rs_enter(socket);

    return rs ? rs_leave(rs, rs->kind->unmap(rs, buf, len)) : -1;
}

size_t riowrite(int socket, const void *buf, size_t count, off_t offset, int flags)
{
    struct rs_out out = {.iov = &(struct iovec){(void *)(uintptr_t)buf, count}, .n = 1, .flags = flags};
    struct rs *rs = rs_enter(socket);
    int err;

    if (!rs)
        return (size_t)-1;
    err = rs->kind->write_mapped(rs, &out, offset);
    return (size_t)leave(rs, out.done, err);
}
