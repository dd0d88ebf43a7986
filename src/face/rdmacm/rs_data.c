// SPDX-License-Identifier: MIT
// The calls that move bytes.
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "face/rdmacm/rs.h"

static bool waits(const struct rs *rs, int flags)
{
    return !rs->nonblock && !(flags & MSG_DONTWAIT);
}

// The socket, locked, connected or over. NULL and errno. Calls that send nothing of the program's wait for a
// connection that is being made.
static struct rs *enter(int fd, bool always_wait, int flags)
{
    struct rs *rs = rs_get(fd);
    int err = 0;

    if (!rs)
        return NULL;
    pthread_mutex_lock(&rs->lock);
    if (rs->dg)
        return rs;
    if (rs->state == RS_CONNECTING)
        err = rs_wait(rs, rs_connected, always_wait || waits(rs, flags));
    else if (rs->state == RS_NEW || rs->state == RS_LISTENING)
        err = ENOTCONN;
    if (!err)
        return rs;
    pthread_mutex_unlock(&rs->lock);
    rs_drop(rs);
    errno = err;
    return NULL;
}

// The socket, locked, if it is one of datagrams: true. Not when there is none (-1 and errno, in *ret), or it
// is of a stream (0).
static bool enter_datagrams(int fd, struct rs **out, int *ret)
{
    struct rs *rs = rs_get(fd);

    *out = rs;
    *ret = rs ? 0 : -1;
    if (!rs)
        return false;
    if (!rs->dg) {
        rs_drop(rs);
        return false;
    }
    pthread_mutex_lock(&rs->lock);
    return true;
}

static ssize_t leave(struct rs *rs, size_t done, int err)
{
    pthread_mutex_unlock(&rs->lock);
    rs_drop(rs);
    if (done || !err)
        return (ssize_t)done;
    return cm_fail(err);
}

// ---- receiving

// A datagram, all of it by one call.
static ssize_t receive_one(struct rs *rs, const struct iovec *iov, size_t n, int flags,
                           const struct rs_from *from, int *told)
{
    size_t done = 0;
    bool cut = false;
    int err = rs_dg_receive(rs, iov, n, flags, from, &done, &cut);

    if (told && cut)
        *told |= MSG_TRUNC;
    return leave(rs, done, err);
}

static ssize_t receive(int socket, void *buf, size_t len, int flags, const struct rs_from *from)
{
    struct rs *rs = enter(socket, false, flags);
    size_t done = 0;
    int err = 0;

    if (!rs)
        return -1;
    if (rs->dg)
        return receive_one(rs, &(struct iovec){buf, len}, 1, flags, from, NULL);
    while (done < len) {
        err = rs_wait(rs, rs_can_receive, waits(rs, flags));
        if (err)
            break;
        size_t n = rs_take(rs, (uint8_t *)buf + done, len - done, flags & MSG_PEEK);
        if (!n && rs->state == RS_DOWN && rs->error) {
            err = rs->error;
            rs->error = 0;
        }
        done += n;
        if (!n || !(flags & MSG_WAITALL) || (flags & MSG_PEEK))
            break;
    }
    ssize_t ret = leave(rs, done, err);
    if (ret >= 0 && from->addr)
        rgetpeername(socket, from->addr, from->len);
    return ret;
}

ssize_t rrecv(int socket, void *buf, size_t len, int flags)
{
    return receive(socket, buf, len, flags, &(struct rs_from){NULL, NULL});
}

ssize_t rrecvfrom(int socket, void *buf, size_t len, int flags, struct sockaddr *src_addr, socklen_t *addrlen)
{
    return receive(socket, buf, len, flags, &(struct rs_from){src_addr, addrlen});
}

ssize_t rread(int socket, void *buf, size_t count)
{
    return rrecv(socket, buf, count, 0);
}

// The pieces one after the other: later ones take only what is there already.
static ssize_t receive_pieces(int socket, const struct iovec *iov, size_t count, int flags)
{
    ssize_t total = 0;

    while (count > 1 && !iov->iov_len)
        iov++, count--;
    if (flags & MSG_PEEK && count > 1) // as much as the first piece holds: a look always begins at the front
        count = 1;
    for (size_t i = 0; i < count; i++) {
        int more = total && !(flags & MSG_WAITALL) ? MSG_DONTWAIT : 0;
        ssize_t n = rrecv(socket, iov[i].iov_base, iov[i].iov_len, flags | more);

        if (n < 0)
            return total ? total : -1;
        total += n;
        if ((size_t)n < iov[i].iov_len)
            break;
    }
    return total;
}

ssize_t rreadv(int socket, const struct iovec *iov, int iovcnt)
{
    struct rs *rs;
    int ret;

    if (iovcnt < 0)
        return cm_fail(dock_refuse(EINVAL, "rreadv: %d pieces", iovcnt));
    if (enter_datagrams(socket, &rs, &ret))
        return receive_one(rs, iov, (size_t)iovcnt, 0, &(struct rs_from){NULL, NULL}, NULL);
    return ret ? ret : receive_pieces(socket, iov, (size_t)iovcnt, 0);
}

ssize_t rrecvmsg(int socket, struct msghdr *msg, int flags)
{
    struct rs *rs;
    int ret;

    if (!msg || msg->msg_controllen)
        return cm_fail(dock_refuse(ENOTSUP, "rrecvmsg: no message, or control data is asked for"));
    msg->msg_flags = 0;
    if (enter_datagrams(socket, &rs, &ret))
        return receive_one(rs, msg->msg_iov, msg->msg_iovlen, flags,
                           &(struct rs_from){msg->msg_name, &msg->msg_namelen}, &msg->msg_flags);
    msg->msg_namelen = 0;
    return ret ? ret : receive_pieces(socket, msg->msg_iov, msg->msg_iovlen, flags);
}

// ---- sending

// Why nothing can be sent any more, 0 if something can.
static int send_error(struct rs *rs)
{
    int err;

    if (rs->state != RS_DOWN)
        return rs->write_off ? EPIPE : 0;
    err = rs->error ? rs->error : ECONNRESET;
    rs->error = 0;
    return err;
}

static ssize_t send_one(struct rs *rs, const struct iovec *iov, size_t n, int flags, const struct rs_to *to)
{
    size_t len = 0;
    int err = rs_dg_send(rs, iov, n, flags, to);

    for (size_t i = 0; i < n && !err; i++)
        len += iov[i].iov_len;
    return leave(rs, len, err);
}

ssize_t rsend(int socket, const void *buf, size_t len, int flags)
{
    struct rs *rs = enter(socket, false, flags);
    bool wait;
    size_t done = 0;
    int err = 0;

    if (!rs)
        return -1;
    if (rs->dg)
        return send_one(rs, &(struct iovec){(void *)(uintptr_t)buf, len}, 1, flags, &(struct rs_to){NULL, 0});
    wait = waits(rs, flags);
    while (done < len && !err) {
        err = rs_wait(rs, rs_can_send, wait);
        if (!err)
            err = send_error(rs);
        if (!err)
            done += rs_put(rs, (const uint8_t *)buf + done, len - done);
    }
    return leave(rs, done, err);
}

ssize_t rsendto(int socket, const void *buf, size_t len, int flags, const struct sockaddr *dest_addr,
                socklen_t addrlen)
{
    struct rs *rs;
    int ret;

    if (enter_datagrams(socket, &rs, &ret))
        return send_one(rs, &(struct iovec){(void *)(uintptr_t)buf, len}, 1, flags,
                        &(struct rs_to){dest_addr, addrlen});
    if (ret)
        return ret;
    if (dest_addr)
        return cm_fail(dock_refuse(EISCONN, "rsendto: a stream has its destination"));
    return rsend(socket, buf, len, flags);
}

ssize_t rwrite(int socket, const void *buf, size_t count)
{
    return rsend(socket, buf, count, 0);
}

static ssize_t send_pieces(int socket, const struct iovec *iov, size_t count, int flags)
{
    ssize_t total = 0;

    for (size_t i = 0; i < count; i++) {
        ssize_t n = rsend(socket, iov[i].iov_base, iov[i].iov_len, flags);

        if (n < 0)
            return total ? total : -1;
        total += n;
        if ((size_t)n < iov[i].iov_len)
            break;
    }
    return total;
}

ssize_t rwritev(int socket, const struct iovec *iov, int iovcnt)
{
    struct rs *rs;
    int ret;

    if (iovcnt < 0)
        return cm_fail(dock_refuse(EINVAL, "rwritev: %d pieces", iovcnt));
    if (enter_datagrams(socket, &rs, &ret))
        return send_one(rs, iov, (size_t)iovcnt, 0, &(struct rs_to){NULL, 0});
    return ret ? ret : send_pieces(socket, iov, (size_t)iovcnt, 0);
}

ssize_t rsendmsg(int socket, const struct msghdr *msg, int flags)
{
    struct rs *rs;
    int ret;

    if (!msg || msg->msg_controllen)
        return cm_fail(dock_refuse(ENOTSUP, "rsendmsg: no message, or there is control data"));
    if (enter_datagrams(socket, &rs, &ret))
        return send_one(rs, msg->msg_iov, msg->msg_iovlen, flags,
                        &(struct rs_to){msg->msg_name, msg->msg_namelen});
    return ret ? ret : send_pieces(socket, msg->msg_iov, msg->msg_iovlen, flags);
}

// ---- mapped memory, of streams

static struct rs *enter_stream(int fd, bool always_wait, int flags)
{
    struct rs *rs = enter(fd, always_wait, flags);

    if (!rs || !rs->dg)
        return rs;
    leave(rs, 0, 0);
    errno = dock_refuse(EOPNOTSUPP, "rsocket: datagrams have no mapped memory");
    return NULL;
}

static bool has_request(const struct rs *rs)
{
    return rs->state != RS_UP || rs->posted - rs->finished < RS_DEPTH;
}

// The entry of the peer's table for this buffer is written anew and announced.
static int announce(struct rs *rs, unsigned index, const struct rs_map *map)
{
    int err = rs_wait(rs, has_request, true);

    if (err)
        return err;
    rs->out.table[index] = *map;
    return rs->state == RS_UP && rs_put_map(rs, index) ? 0 : ECONNRESET;
}

static int free_slot(const struct rs *rs)
{
    for (unsigned i = 0; i < rs->peer.maps; i++)
        if (!rs->mapped[i].mr)
            return (int)i;
    return -1;
}

static int map(struct rs *rs, void *buf, size_t len, int prot, off_t *offset)
{
    int slot = free_slot(rs),
        access = IBV_ACCESS_LOCAL_WRITE | (prot & PROT_WRITE ? IBV_ACCESS_REMOTE_WRITE : 0);
    struct ibv_mr *mr;

    if (!len || (prot & ~(PROT_WRITE | PROT_NONE)))
        return dock_refuse(EINVAL, "riomap: no bytes, or another right than PROT_WRITE");
    if (slot < 0)
        return dock_refuse(rs->peer.maps ? ENOBUFS : ENOTSUP,
                           "riomap: the peer takes %u mappings (RDMA_IOMAPSIZE)", rs->peer.maps);
    mr = ibv_reg_mr(rs->id->pd, buf, len, access);
    if (!mr)
        return errno;
    if (*offset == -1)
        *offset = (off_t)(uintptr_t)buf;
    rs->mapped[slot] = (struct rs_mapped){buf, mr};
    int err = 0;
    if (prot & PROT_WRITE)
        err = announce(rs, (unsigned)slot,
                       &(struct rs_map){(uint64_t)*offset, (uintptr_t)buf, len, mr->rkey, 0});
    if (err) {
        ibv_dereg_mr(mr);
        rs->mapped[slot].mr = NULL;
    }
    return err;
}

off_t riomap(int socket, void *buf, size_t len, int prot, int flags, off_t offset)
{
    struct rs *rs = enter_stream(socket, true, 0);
    int err;

    (void)flags;
    if (!rs)
        return -1;
    err = rs->state == RS_UP ? map(rs, buf, len, prot, &offset) : ENOTCONN;
    pthread_mutex_unlock(&rs->lock);
    rs_drop(rs);
    return err ? cm_fail(err) : offset;
}

int riounmap(int socket, void *buf, size_t len)
{
    struct rs *rs = enter_stream(socket, true, 0);
    int err = EINVAL;

    if (!rs)
        return -1;
    for (unsigned i = 0; i < RS_MAPS && err == EINVAL; i++) {
        if (!rs->mapped[i].mr || rs->mapped[i].buf != buf || rs->mapped[i].mr->length != len)
            continue;
        // A peer that has gone has no table to be told in.
        announce(rs, i, &(struct rs_map){0});
        err = ibv_dereg_mr(rs->mapped[i].mr);
        rs->mapped[i].mr = NULL;
    }
    pthread_mutex_unlock(&rs->lock);
    rs_drop(rs);
    return err ? cm_fail(dock_refuse(err, "riounmap: that buffer is not mapped")) : 0;
}

// The peer's mapping that holds `offset`, read once: the peer writes the table.
static bool find_map(const struct rs *rs, uint64_t offset, struct rs_map *out)
{
    for (int i = 0; i < RS_MAPS; i++) {
        if (!rs->table_valid[i])
            continue;
        *out = rs->in.table[i];
        if (offset >= out->offset && offset - out->offset < out->len)
            return true;
    }
    return false;
}

size_t riowrite(int socket, const void *buf, size_t count, off_t offset, int flags)
{
    struct rs *rs = enter_stream(socket, false, flags);
    bool wait;
    size_t done = 0;
    int err = 0;

    if (!rs)
        return (size_t)-1;
    wait = waits(rs, flags);
    while (done < count && !err) {
        uint64_t at = (uint64_t)offset + done;
        struct rs_map m = {0};

        err = rs_wait(rs, rs_can_send, wait);
        if (!err)
            err = send_error(rs);
        if (!err && !find_map(rs, at, &m))
            err = dock_refuse(EINVAL, "riowrite: the peer has mapped nothing there");
        if (!err) {
            uint64_t in = at - m.offset, left = m.len - in;

            done += rs_put_mapped(rs, (const uint8_t *)buf + done,
                                  count - done < left ? count - done : (size_t)left, m.addr + in, m.rkey);
        }
    }
    return (size_t)leave(rs, done, err);
}
