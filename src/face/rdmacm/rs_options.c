// SPDX-License-Identifier: MIT
// Options of rsockets: kept, told back, and where they mean something here, used.
#include <netinet/tcp.h>
#include <stddef.h>

#include "face/rdmacm/rs.h"

// Options that are one int, and where it is kept.
static const struct {
    int level, name;
    size_t at;
} ints[] = {
    {SOL_SOCKET, SO_REUSEADDR, offsetof(struct rs, reuse)},
    {SOL_SOCKET, SO_KEEPALIVE, offsetof(struct rs, keepalive)},
    {SOL_SOCKET, SO_OOBINLINE, offsetof(struct rs, oobinline)},
    {IPPROTO_TCP, TCP_NODELAY, offsetof(struct rs, nodelay)},
    {IPPROTO_TCP, TCP_KEEPIDLE, offsetof(struct rs, keepidle)},
    {IPPROTO_TCP, TCP_KEEPINTVL, offsetof(struct rs, keepintvl)},
    {IPPROTO_TCP, TCP_KEEPCNT, offsetof(struct rs, keepcnt)},
    {IPPROTO_IPV6, IPV6_V6ONLY, offsetof(struct rs, v6only)},
    {SOL_RDMA, RDMA_SQSIZE, offsetof(struct rs, sq_size)},
    {SOL_RDMA, RDMA_RQSIZE, offsetof(struct rs, rq_size)},
    {SOL_RDMA, RDMA_INLINE, offsetof(struct rs, inline_size)},
};

static int *find(struct rs *rs, int level, int name)
{
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++)
        if (ints[i].level == level && ints[i].name == name)
            return (int *)((char *)rs + ints[i].at);
    return NULL;
}

// Whole pages, a power of two of them so that positions wrap where the ring does.
static uint32_t buffer_size(int wanted)
{
    uint32_t size = RS_MIN_BUFFER;

    while (size < RS_MAX_BUFFER && size < (uint32_t)(wanted < 0 ? 0 : wanted))
        size *= 2;
    return size;
}

static int set_int(struct rs *rs, int level, int name, int value)
{
    int *kept = find(rs, level, name);

    if (kept) {
        *kept = value;
        return 0;
    }
    if (level == SOL_SOCKET && (name == SO_RCVBUF || name == SO_SNDBUF)) {
        // Fixed once connected; later values are accepted and change nothing, as with sockets that clamp.
        if (rs->state == RS_NEW || rs->state == RS_LISTENING)
            *(name == SO_RCVBUF ? &rs->in_size : &rs->out_size) = buffer_size(value);
        return 0;
    }
    if (level == SOL_RDMA && name == RDMA_IOMAPSIZE) {
        if (value < 0 || (rs->state != RS_NEW && rs->state != RS_LISTENING))
            return EINVAL;
        rs->maps = value > RS_MAPS ? RS_MAPS : value;
        return 0;
    }
    return ENOPROTOOPT;
}

static int set(struct rs *rs, int level, int name, const void *value, socklen_t len)
{
    int number;

    if (level == SOL_SOCKET && name == SO_LINGER) {
        if (len < sizeof rs->linger)
            return EINVAL;
        memcpy(&rs->linger, value, sizeof rs->linger);
        return 0;
    }
    if (level == SOL_RDMA && name == RDMA_ROUTE)
        return 0; // there is one way, and it is known
    if (len < sizeof number)
        return EINVAL;
    memcpy(&number, value, sizeof number);
    return set_int(rs, level, name, number);
}

int rsetsockopt(int socket, int level, int optname, const void *optval, socklen_t optlen)
{
    struct rs *rs = rs_get(socket);
    int err;

    if (!rs)
        return -1;
    dock_lock(&rs->lock);
    err = optval ? set(rs, level, optname, optval, optlen) : EFAULT;
    dock_unlock(&rs->lock);
    rs_drop(rs);
    return err ? cm_fail(dock_refuse(err, "rsetsockopt: level %d, option %d", level, optname)) : 0;
}

static int get_int(struct rs *rs, int level, int name, int *value)
{
    const int *kept = find(rs, level, name);

    if (kept) {
        *value = *kept;
    } else if (level == SOL_SOCKET && name == SO_ERROR) {
        *value = rs->error;
        rs->error = 0;
    } else if (level == SOL_SOCKET && name == SO_TYPE) {
        *value = rs->kind->type;
    } else if (level == SOL_SOCKET && (name == SO_RCVBUF || name == SO_SNDBUF)) {
        *value = (int)(name == SO_RCVBUF ? rs->in_size : rs->out_size);
    } else if (level == IPPROTO_TCP && name == TCP_MAXSEG) {
        *value = 4096;
    } else if (level == SOL_RDMA && name == RDMA_IOMAPSIZE) {
        *value = rs->maps;
    } else {
        return ENOPROTOOPT;
    }
    return 0;
}

static int get(struct rs *rs, int level, int name, void *value, socklen_t *len)
{
    int number, err;

    if (level == SOL_SOCKET && name == SO_LINGER) {
        if (*len < sizeof rs->linger)
            return EINVAL;
        memcpy(value, &rs->linger, sizeof rs->linger);
        *len = sizeof rs->linger;
        return 0;
    }
    if (*len < sizeof number)
        return EINVAL;
    err = get_int(rs, level, name, &number);
    if (err)
        return err;
    memcpy(value, &number, sizeof number);
    *len = sizeof number;
    return 0;
}

int rgetsockopt(int socket, int level, int optname, void *optval, socklen_t *optlen)
{
    struct rs *rs = rs_get(socket);
    int err;

    if (!rs)
        return -1;
    dock_lock(&rs->lock);
    rs_step(rs); // SO_ERROR tells what became of connecting
    err = optval && optlen ? get(rs, level, optname, optval, optlen) : EFAULT;
    dock_unlock(&rs->lock);
    rs_drop(rs);
    return err ? cm_fail(dock_refuse(err, "rgetsockopt: level %d, option %d", level, optname)) : 0;
}
