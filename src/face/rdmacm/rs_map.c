// SPDX-License-Identifier: MIT
// Memory of one end of a stream that its peer writes where it likes.
#include <sys/mman.h>
#include <sys/uio.h>

#include "face/rdmacm/rs.h"

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

static int map_one(struct rs *rs, void *buf, size_t len, int prot, off_t *offset)
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
    rs->mapped[slot] = (struct rs_mapped){.buf = buf, .mr = mr, .telling = true};
    int err = 0;
    if (prot & PROT_WRITE)
        err = announce(rs, (unsigned)slot,
                       &(struct rs_map){(uint64_t)*offset, (uintptr_t)buf, len, mr->rkey, 0});
    rs->mapped[slot].telling = false;
    if (err) {
        ibv_dereg_mr(mr);
        rs->mapped[slot].mr = NULL;
    }
    return err;
}

int rs_map(struct rs *rs, void *buf, size_t len, int prot, off_t *offset)
{
    int err = rs_await_peer(rs, true);

    if (err)
        return err;
    return rs->state == RS_UP ? map_one(rs, buf, len, prot, offset) : ENOTCONN;
}

int rs_unmap(struct rs *rs, void *buf, size_t len)
{
    int err = rs_await_peer(rs, true);

    if (err)
        return err;
    for (unsigned i = 0; i < RS_MAPS; i++) {
        struct rs_mapped *m = &rs->mapped[i];
        if (!m->mr || m->telling || m->buf != buf || m->mr->length != len)
            continue;
        m->telling = true;
        // A peer that has gone has no table to be told in.
        announce(rs, i, &(struct rs_map){0});
        err = ibv_dereg_mr(m->mr);
        *m = (struct rs_mapped){0};
        return err;
    }
    return dock_refuse(EINVAL, "riounmap: that buffer is not mapped");
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

int rs_write_mapped(struct rs *rs, struct rs_out *out, off_t offset)
{
    const uint8_t *from = out->iov->iov_base;
    bool wait = rs_waits(rs, out->flags);
    size_t count = out->iov->iov_len;
    int err = rs_await_peer(rs, wait);

    while (out->done < count && !err) {
        uint64_t at = (uint64_t)offset + out->done;
        struct rs_map m = {0};

        err = rs_wait(rs, rs_flow_can_send, wait);
        if (!err)
            err = rs_send_error(rs);
        if (!err && !find_map(rs, at, &m))
            err = dock_refuse(EINVAL, "riowrite: the peer has mapped nothing there");
        if (!err) {
            uint64_t in = at - m.offset, left = m.len - in;
            size_t n = count - out->done < left ? count - out->done : (size_t)left;

            out->done += rs_put_mapped(rs, from + out->done, n, m.addr + in, m.rkey);
        }
    }
    return err;
}
