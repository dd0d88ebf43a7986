// SPDX-License-Identifier: MIT
// A call's pieces through a stream, waiting where there is none or no room.
#include <sys/uio.h>

#include "face/rdmacm/rs.h"

int rs_await_peer(struct rs *rs, bool wait)
{
    if (rs->state == RS_CONNECTING)
        return rs_wait(rs, rs_connected, wait);
    return rs->state == RS_NEW || rs->state == RS_LISTENING ? ENOTCONN : 0;
}

// ---- receiving

// Into one piece; how much came. The error is told where nothing did.
static size_t take_piece(struct rs *rs, const struct iovec *piece, int flags, bool wait, int *err)
{
    size_t got = 0, n;

    *err = 0;
    while (got < piece->iov_len) {
        *err = rs_wait(rs, rs_flow_can_receive, wait);
        if (*err)
            break;
        n = rs_take(rs, (uint8_t *)piece->iov_base + got, piece->iov_len - got, flags & MSG_PEEK);
        if (!n && rs->state == RS_DOWN && rs->error) {
            *err = rs->error;
            rs->error = 0;
        }
        got += n;
        if (!n || !(flags & MSG_WAITALL) || (flags & MSG_PEEK))
            break;
    }
    return got;
}

// One after the other: later ones take only what is there already.
static int take_pieces(struct rs *rs, struct rs_in *in)
{
    const struct iovec *iov = in->iov;
    bool wait = rs_waits(rs, in->flags);
    size_t n = in->n;
    int err = 0;

    while (n > 1 && !iov->iov_len)
        iov++, n--;
    if (in->flags & MSG_PEEK && n > 1) // as much as the first piece holds: a look always begins at the front
        n = 1;
    for (size_t i = 0; i < n; i++) {
        size_t got = take_piece(rs, &iov[i], in->flags, wait && (!in->done || in->flags & MSG_WAITALL), &err);

        in->done += got;
        if (got < iov[i].iov_len)
            break;
    }
    return err;
}

int rs_bytes_receive(struct rs *rs, struct rs_in *in)
{
    union cm_addr peer;
    int err = 0;

    if (in->message)
        *in->addr_len = 0;
    if (in->n)
        err = rs_await_peer(rs, rs_waits(rs, in->flags));
    if (!err)
        err = take_pieces(rs, in);
    if (!in->message && (in->done || !err) && rs->kind->peer(rs, &peer))
        rs_tell_address(&peer.any, in->addr, in->addr_len);
    return err;
}

// ---- sending

int rs_send_error(struct rs *rs)
{
    int err;

    if (rs->state != RS_DOWN)
        return rs->write_off ? EPIPE : 0;
    err = rs->error ? rs->error : ECONNRESET;
    rs->error = 0;
    return err;
}

int rs_bytes_send(struct rs *rs, struct rs_out *out)
{
    bool wait = rs_waits(rs, out->flags);
    int err = 0;

    if (out->addr && !out->message)
        return dock_refuse(EISCONN, "rsendto: a stream has its destination");
    if (out->n)
        err = rs_await_peer(rs, wait);
    for (size_t i = 0; i < out->n && !err; i++) {
        const uint8_t *from = out->iov[i].iov_base;
        size_t sent = 0, len = out->iov[i].iov_len;

        while (sent < len && !err) {
            err = rs_wait(rs, rs_flow_can_send, wait);
            if (!err)
                err = rs_send_error(rs);
            if (!err)
                sent += rs_put(rs, from + sent, len - sent);
        }
        out->done += sent;
    }
    return err;
}
