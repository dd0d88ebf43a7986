// SPDX-License-Identifier: MIT
// rsockets: not offered yet, and every call says so.
#include <rdma/rsocket.h>

#include "face/rdmacm/rdmacm_face.h"

static int refuse(const char *call)
{
    return cm_fail(dock_refuse(EOPNOTSUPP, "%s: rsockets are not offered yet", call));
}

int rsocket(int domain, int type, int protocol)
{
    (void)domain;
    (void)type;
    (void)protocol;
    return refuse("rsocket");
}

int rbind(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
    (void)socket;
    (void)addr;
    (void)addrlen;
    return refuse("rbind");
}

int rlisten(int socket, int backlog)
{
    (void)socket;
    (void)backlog;
    return refuse("rlisten");
}

int raccept(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
    (void)socket;
    (void)addr;
    (void)addrlen;
    return refuse("raccept");
}

int rconnect(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
    (void)socket;
    (void)addr;
    (void)addrlen;
    return refuse("rconnect");
}

int rshutdown(int socket, int how)
{
    (void)socket;
    (void)how;
    return refuse("rshutdown");
}

int rclose(int socket)
{
    (void)socket;
    return refuse("rclose");
}

ssize_t rrecv(int socket, void *buf, size_t len, int flags)
{
    (void)socket;
    (void)buf;
    (void)len;
    (void)flags;
    return refuse("rrecv");
}

ssize_t rrecvfrom(int socket, void *buf, size_t len, int flags, struct sockaddr *src_addr, socklen_t *addrlen)
{
    (void)socket;
    (void)buf;
    (void)len;
    (void)flags;
    (void)src_addr;
    (void)addrlen;
    return refuse("rrecvfrom");
}

ssize_t rrecvmsg(int socket, struct msghdr *msg, int flags)
{
    (void)socket;
    (void)msg;
    (void)flags;
    return refuse("rrecvmsg");
}

ssize_t rsend(int socket, const void *buf, size_t len, int flags)
{
    (void)socket;
    (void)buf;
    (void)len;
    (void)flags;
    return refuse("rsend");
}

ssize_t rsendto(int socket, const void *buf, size_t len, int flags, const struct sockaddr *dest_addr,
                socklen_t addrlen)
{
    (void)socket;
    (void)buf;
    (void)len;
    (void)flags;
    (void)dest_addr;
    (void)addrlen;
    return refuse("rsendto");
}

ssize_t rsendmsg(int socket, const struct msghdr *msg, int flags)
{
    (void)socket;
    (void)msg;
    (void)flags;
    return refuse("rsendmsg");
}

ssize_t rread(int socket, void *buf, size_t count)
{
    (void)socket;
    (void)buf;
    (void)count;
    return refuse("rread");
}

ssize_t rreadv(int socket, const struct iovec *iov, int iovcnt)
{
    (void)socket;
    (void)iov;
    (void)iovcnt;
    return refuse("rreadv");
}

ssize_t rwrite(int socket, const void *buf, size_t count)
{
    (void)socket;
    (void)buf;
    (void)count;
    return refuse("rwrite");
}

ssize_t rwritev(int socket, const struct iovec *iov, int iovcnt)
{
    (void)socket;
    (void)iov;
    (void)iovcnt;
    return refuse("rwritev");
}

int rpoll(struct pollfd *fds, nfds_t nfds, int timeout)
{
    (void)fds;
    (void)nfds;
    (void)timeout;
    return refuse("rpoll");
}

int rselect(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds, struct timeval *timeout)
{
    (void)nfds;
    (void)readfds;
    (void)writefds;
    (void)exceptfds;
    (void)timeout;
    return refuse("rselect");
}

int rgetpeername(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
    (void)socket;
    (void)addr;
    (void)addrlen;
    return refuse("rgetpeername");
}

int rgetsockname(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
    (void)socket;
    (void)addr;
    (void)addrlen;
    return refuse("rgetsockname");
}

int rsetsockopt(int socket, int level, int optname, const void *optval, socklen_t optlen)
{
    (void)socket;
    (void)level;
    (void)optname;
    (void)optval;
    (void)optlen;
    return refuse("rsetsockopt");
}

int rgetsockopt(int socket, int level, int optname, void *optval, socklen_t *optlen)
{
    (void)socket;
    (void)level;
    (void)optname;
    (void)optval;
    (void)optlen;
    return refuse("rgetsockopt");
}

int rfcntl(int socket, int cmd, ...)
{
    (void)socket;
    (void)cmd;
    return refuse("rfcntl");
}

off_t riomap(int socket, void *buf, size_t len, int prot, int flags, off_t offset)
{
    (void)socket;
    (void)buf;
    (void)len;
    (void)prot;
    (void)flags;
    (void)offset;
    return refuse("riomap");
}

int riounmap(int socket, void *buf, size_t len)
{
    (void)socket;
    (void)buf;
    (void)len;
    return refuse("riounmap");
}

size_t riowrite(int socket, const void *buf, size_t count, off_t offset, int flags)
{
    (void)socket;
    (void)buf;
    (void)count;
    (void)offset;
    (void)flags;
    return (size_t)refuse("riowrite");
}
