// SPDX-License-Identifier: MIT
// Datagram sockets: one UD queue pair each, found by its port (rs_names.c). A name that a dead process left
// leads to a queue pair that is gone, or at worst to another socket's, which the head of each datagram tells
// apart.
#include <poll.h>
#include <stdlib.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "face/rdmacm/rs.h"

#define MAGIC 0x31474452u // "RDG1"
// Not that of rdma_cm's datagrams: a stale number may have become the queue pair of one, which gets nothing.
#define QKEY MAGIC

enum {
    GRH = 40,
    MTU = 4096,
    IN_SLOT = (GRH + MTU + 63) / 64 * 64,
    MIN_DEPTH = 16,
    MAX_DEPTH = 2 * RS_DEPTH,
    PATIENCE_MS = 1000,
};

// In front of each datagram: for whom it is and from whom it comes. Ports as they stand in addresses.
struct head {
    uint32_t magic;
    uint16_t to, from;
    uint32_t v6, scope;
    uint8_t addr[16];
};

enum { MOST = MTU - sizeof(struct head) };

struct arrival {
    uint32_t slot, len;
};

struct rs_dgram {
    unsigned in_depth, out_depth;
    struct arrival *arrivals; // a ring of in_depth
    unsigned first, waiting;
    union cm_addr peer; // of rconnect; no family: none
    char names[2][CM_NAME];
    // The host address to which the last datagram went: the next one often goes there too.
    union cm_addr at;
    struct ibv_ah *ah;
    uint32_t last; // queue pair to which the last one went
};

static int make(struct rs *rs)
{
    rs->dg = calloc(1, sizeof *rs->dg);
    if (!rs->dg)
        return ENOMEM;
    rs->in_size = rs->out_size = 1 << 19;
    return 0;
}

// ---- queue, memory, name

static unsigned depth_of(uint32_t size)
{
    unsigned depth = size / MTU;

    return depth < MIN_DEPTH ? MIN_DEPTH : depth > MAX_DEPTH ? MAX_DEPTH : depth;
}

static uint8_t *in_slot(const struct rs *rs, uint32_t slot)
{
    return rs->in.ring + (size_t)slot * IN_SLOT;
}

static uint8_t *out_slot(const struct rs *rs, uint32_t slot)
{
    return rs->in.ring + (size_t)rs->dg->in_depth * IN_SLOT + (size_t)slot * MTU;
}

static int post_receive(struct rs *rs, uint32_t slot)
{
    struct ibv_sge sge = {(uintptr_t)in_slot(rs, slot), GRH + MTU, rs->in.mr->lkey};
    struct ibv_recv_wr *bad, wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1};

    return -ibv_post_recv(rs->id->qp, &wr, &bad);
}

static int make_queue(struct rs *rs)
{
    struct rs_dgram *dg = rs->dg;
    struct ibv_qp_init_attr attr = {
        .cap = {dg->out_depth, dg->in_depth, 1, 1, 0}, .qp_type = IBV_QPT_UD, .sq_sig_all = 1};
    int ret = rs_make_channel(rs);

    if (ret)
        return ret;
    rs->cq = ibv_create_cq(rs->id->verbs, (int)(dg->in_depth + dg->out_depth + 1), NULL, rs->comp, 0);
    if (!rs->cq)
        return -errno;
    attr.send_cq = attr.recv_cq = rs->cq;
    if (rdma_create_qp(rs->id, NULL, &attr))
        return -errno;
    return -ibv_modify_qp(rs->id->qp, &(struct ibv_qp_attr){.qkey = QKEY}, IBV_QP_QKEY);
}

static int make_memory(struct rs *rs)
{
    struct rs_dgram *dg = rs->dg;
    int ret =
        rs_take_memory(&rs->in, rs->id->pd, (size_t)dg->in_depth * IN_SLOT + (size_t)dg->out_depth * MTU,
                       IBV_ACCESS_LOCAL_WRITE);

    if (ret)
        return ret;
    dg->arrivals = calloc(dg->in_depth, sizeof *dg->arrivals);
    if (!dg->arrivals)
        return -ENOMEM;
    for (uint32_t i = 0; i < dg->in_depth && !ret; i++)
        ret = post_receive(rs, i);
    return ret;
}

static int build(struct rs *rs)
{
    int ret = 0;

    rs->dg->in_depth = depth_of(rs->in_size);
    rs->dg->out_depth = depth_of(rs->out_size);
    cm_acquire();
    if (!rs->id->verbs) // bound to all addresses: one GID is as good as another
        ret = cm_take_device(cm_id(rs->id));
    cm_release();
    if (!ret)
        ret = make_queue(rs);
    if (!ret)
        ret = make_memory(rs);
    if (ret)
        return ret;
    cm_acquire();
    ret = rs_name_publish(rs->id, rs->dg->names);
    cm_release();
    return ret;
}

static void close_it(struct rs *rs)
{
    struct rs_dgram *dg = rs->dg;

    rs_name_withdraw(dg->names); // while the port is ours
    if (dg->ah)
        ibv_destroy_ah(dg->ah);
    free(dg->arrivals);
    *dg = (struct rs_dgram){0};
    rs_tear_down(rs);
}

static void end(struct rs *rs)
{
    close_it(rs);
    free(rs->dg);
}

// Bound, if need be to a free port, and with a queue. 0 or a positive errno value.
static int open_it(struct rs *rs)
{
    union cm_addr any = {.any = {.sa_family = (sa_family_t)rs->domain}};
    int ret = 0;

    if (rs->state != RS_NEW)
        return 0;
    if (!cm_addr_len(rdma_get_local_addr(rs->id))) {
        rs_set_id_options(rs);
        if (rdma_bind_addr(rs->id, &any.any))
            return errno;
    }
    ret = -build(rs);
    if (!ret) {
        rs->state = RS_UP;
        return 0;
    }
    close_it(rs); // and it is unbound as before, to be bound by a later call
    cm_acquire();
    cm_unbind(cm_id(rs->id));
    cm_release();
    return ret;
}

static int bind_to(struct rs *rs, const struct sockaddr *addr, socklen_t len)
{
    int err;

    if (addr && len >= sizeof addr->sa_family && addr->sa_family != rs->domain)
        return dock_refuse(EAFNOSUPPORT, "rbind: an address of another family than the socket's");
    err = rs_bind_id(rs, addr, len);
    return err ? err : open_it(rs);
}

// ---- addresses

// Of an IPv6 socket an IPv4 address is a mapped one, on the way in and out.
static void unmap(union cm_addr *a)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = a->v6.sin6_port};

    if (a->any.sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&a->v6.sin6_addr))
        return;
    memcpy(&v4.sin_addr, a->v6.sin6_addr.s6_addr + 12, 4);
    a->v4 = v4;
}

static void map(union cm_addr *a)
{
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = a->v4.sin_port};

    v6.sin6_addr.s6_addr[10] = v6.sin6_addr.s6_addr[11] = 0xff;
    memcpy(v6.sin6_addr.s6_addr + 12, &a->v4.sin_addr, 4);
    a->v6 = v6;
}

// The port is not looked at.
static bool same_host(const union cm_addr *a, const union cm_addr *b)
{
    if (a->any.sa_family != b->any.sa_family)
        return false;
    return a->any.sa_family == AF_INET ? a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr
                                       : IN6_ARE_ADDR_EQUAL(&a->v6.sin6_addr, &b->v6.sin6_addr);
}

// Does it reach IPv4, too? One of IPv6 that is, or will be, bound to all addresses of both.
static bool dual(const struct rs *rs)
{
    return rs->state == RS_NEW ? !rs->v6only : cm_id(rs->id)->port.both;
}

// A destination as the program gives it. 0 or a positive errno value.
static int take_address(const struct rs *rs, const struct sockaddr *addr, socklen_t len, union cm_addr *out)
{
    *out = (union cm_addr){0};
    if (!addr || len < sizeof addr->sa_family || !cm_addr_len(addr) || len < cm_addr_len(addr))
        return dock_refuse(EINVAL, "rsocket: no address of IPv4 or IPv6");
    memcpy(out, addr, cm_addr_len(addr));
    if (!cm_addr_port(addr))
        return dock_refuse(EINVAL, "rsocket: port 0 is nobody's");
    if (addr->sa_family != rs->domain)
        return dock_refuse(EAFNOSUPPORT, "rsocket: an address of another family than the socket's");
    if (cm_addr_any(addr) && addr->sa_family == AF_INET) // the host itself, as the kernel takes it
        out->v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    else if (cm_addr_any(addr))
        out->v6.sin6_addr = in6addr_loopback;
    unmap(out);
    if (out->any.sa_family != rs->domain && !dual(rs))
        return dock_refuse(ENETUNREACH, "rsocket: a socket of IPv6 alone reaches no IPv4 address");
    if (rs->dg->ah && same_host(out, &rs->dg->at)) // known to be one of the host's
        return 0;
    if (cm_addr_multicast(&out->any) || !cm_addr_local(&out->any))
        return dock_refuse(EHOSTUNREACH, "rsocket: that is no address of this host; no other is reached");
    return 0;
}

static int connect_to(struct rs *rs, const struct sockaddr *addr, socklen_t len)
{
    union cm_addr to;
    int err;

    if (addr && len >= sizeof addr->sa_family && addr->sa_family == AF_UNSPEC) {
        rs->dg->peer = (union cm_addr){0};
        return 0;
    }
    err = take_address(rs, addr, len, &to);
    if (!err)
        err = open_it(rs);
    if (!err)
        rs->dg->peer = to;
    return err;
}

static bool peer(const struct rs *rs, union cm_addr *out)
{
    *out = rs->dg->peer;
    if (out->any.sa_family == AF_INET && rs->domain == AF_INET6)
        map(out);
    return out->any.sa_family;
}

// ---- what arrives

// Is it for this socket, and from its peer, if it has one?
static bool sender_of(const struct rs *rs, const struct head *h, union cm_addr *from)
{
    const union cm_addr *peer = &rs->dg->peer;

    *from = (union cm_addr){0};
    if (h->magic != MAGIC || ntohs(h->to) != cm_addr_port(rdma_get_local_addr(rs->id)))
        return false;
    if (h->v6) {
        from->v6.sin6_family = AF_INET6;
        from->v6.sin6_port = h->from;
        from->v6.sin6_scope_id = h->scope;
        memcpy(&from->v6.sin6_addr, h->addr, 16);
    } else {
        from->v4.sin_family = AF_INET;
        from->v4.sin_port = h->from;
        memcpy(&from->v4.sin_addr, h->addr, 4);
    }
    return !peer->any.sa_family ||
           (same_host(from, peer) && cm_addr_port(&from->any) == cm_addr_port(&peer->any));
}

static void give_back(struct rs *rs, uint32_t slot)
{
    if (rs->state == RS_UP && post_receive(rs, slot)) // it takes no more: the queue is in error
        rs->state = RS_DOWN;
}

static void arrived(struct rs *rs, const struct ibv_wc *wc)
{
    struct rs_dgram *dg = rs->dg;
    uint32_t slot = (uint32_t)wc->wr_id;
    union cm_addr from;
    struct head h;

    if (wc->byte_len >= GRH + sizeof h) {
        memcpy(&h, in_slot(rs, slot) + GRH, sizeof h);
        if (sender_of(rs, &h, &from)) {
            dg->arrivals[(dg->first + dg->waiting++) % dg->in_depth] =
                (struct arrival){slot, wc->byte_len - GRH - (uint32_t)sizeof h};
            return;
        }
    }
    give_back(rs, slot);
}

static void progress(struct rs *rs)
{
    struct ibv_wc wc[16];
    int n = 0;

    while (rs->cq && (n = ibv_poll_cq(rs->cq, 16, wc)) > 0)
        for (int i = 0; i < n; i++) {
            if (wc[i].status != IBV_WC_SUCCESS)
                rs->state = RS_DOWN;
            else if (wc[i].opcode == IBV_WC_RECV)
                arrived(rs, &wc[i]);
            else
                rs->finished++;
        }
    if (n < 0)
        rs->state = RS_DOWN;
}

// ---- sending

static int find_way(struct rs *rs, const union cm_addr *to)
{
    struct ibv_ah_attr av = {.is_global = 1, .port_num = CM_PORT, .grh.hop_limit = 64};
    struct rs_dgram *dg = rs->dg;
    uint32_t index;
    int ret;

    if (dg->ah && same_host(to, &dg->at))
        return 0;
    ret = cm_addr_gid(&to->any, &av.grh.dgid, &index);
    if (ret)
        return -ret;
    if (dg->ah)
        ibv_destroy_ah(dg->ah);
    av.grh.sgid_index = (uint8_t)index;
    dg->ah = ibv_create_ah(rs->id->pd, &av);
    dg->at = *to;
    return dg->ah ? 0 : errno;
}

// The sender: a socket that is bound to all addresses sends from the one that it sends to.
static struct head head_of(const struct rs *rs, const union cm_addr *to)
{
    union cm_addr own = {0};
    struct head h = {.magic = MAGIC};
    const struct sockaddr *bound = rdma_get_local_addr(rs->id);
    uint16_t port = cm_addr_port(bound);

    memcpy(&own, bound, cm_addr_len(bound));
    unmap(&own);
    if (cm_addr_any(bound))
        own = *to;
    h.to = htons(cm_addr_port(&to->any));
    h.from = htons(port);
    h.v6 = own.any.sa_family == AF_INET6;
    if (h.v6) {
        h.scope = own.v6.sin6_scope_id;
        memcpy(h.addr, &own.v6.sin6_addr, 16);
    } else {
        memcpy(h.addr, &own.v4.sin_addr, 4);
    }
    return h;
}

static int post_datagram(struct rs *rs, const struct rs_out *out, size_t len, const union cm_addr *to,
                         uint32_t qpn)
{
    uint32_t slot = rs->posted % rs->dg->out_depth;
    uint8_t *at = out_slot(rs, slot);
    struct head h = head_of(rs, to);
    struct ibv_sge sge = {(uintptr_t)at, (uint32_t)(sizeof h + len), rs->in.mr->lkey};
    struct ibv_send_wr *bad, wr = {.sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_SEND,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .wr.ud = {rs->dg->ah, qpn, QKEY}};
    int err;

    memcpy(at, &h, sizeof h);
    at += sizeof h;
    for (size_t i = 0; i < out->n; i++) {
        if (out->iov[i].iov_len)
            memcpy(at, out->iov[i].iov_base, out->iov[i].iov_len);
        at += out->iov[i].iov_len;
    }
    err = ibv_post_send(rs->id->qp, &wr, &bad);
    if (!err)
        rs->posted++;
    return err;
}

// The first datagram to a queue pair waits for the way to it, which the device's thread looks for. A program
// may end right after it has sent one, so the call waits with it; what another one does is told by the next.
static void see_off(struct rs *rs, uint32_t qpn)
{
    uint64_t until = dock_now_ns() + PATIENCE_MS * 1000000ull;

    if (qpn == rs->dg->last)
        return;
    rs->dg->last = qpn;
    progress(rs);
    while (rs->state == RS_UP && rs->posted != rs->finished && dock_now_ns() < until) {
        poll(NULL, 0, 1);
        progress(rs);
    }
}

static bool can_send(const struct rs *rs) // a new one is made ready by sending
{
    return rs->state == RS_NEW || rs->state == RS_DOWN || rs->write_off ||
           rs->posted - rs->finished < rs->dg->out_depth;
}

static int send_one(struct rs *rs, struct rs_out *out)
{
    union cm_addr to = rs->dg->peer;
    size_t len = 0;
    uint32_t qpn;
    int err = 0;

    for (size_t i = 0; i < out->n && len <= MOST; i++)
        len += out->iov[i].iov_len <= MOST ? out->iov[i].iov_len : MOST + 1;
    if (out->flags & MSG_OOB)
        return EOPNOTSUPP;
    if (len > MOST)
        return dock_refuse(EMSGSIZE, "rsocket: a datagram has at most %d bytes", (int)MOST);
    if (out->addr)
        err = take_address(rs, out->addr, out->addr_len, &to);
    if (!err && !to.any.sa_family)
        err = EDESTADDRREQ;
    if (!err)
        err = open_it(rs);
    if (!err)
        err = rs_wait(rs, can_send, rs_waits(rs, out->flags));
    if (!err && rs->write_off)
        err = EPIPE;
    if (!err && rs->state == RS_DOWN)
        err = ENETDOWN;
    if (!err)
        err = find_way(rs, &to);
    if (err)
        return err;
    qpn = rs_name_find(&to.any);
    if (qpn)
        err = post_datagram(rs, out, len, &to, qpn);
    if (qpn && !err)
        see_off(rs, qpn);
    out->done = err ? 0 : len;
    return err;
}

// ---- receiving

static bool drained(const struct rs *rs)
{
    return !rs->dg->waiting;
}

static bool can_receive(const struct rs *rs)
{
    return rs->dg->waiting || rs->read_off || rs->state == RS_DOWN;
}

static void tell_name(const struct rs *rs, const struct head *h, const struct rs_in *in)
{
    union cm_addr from;

    sender_of(rs, h, &from);
    if (from.any.sa_family == AF_INET && rs->domain == AF_INET6)
        map(&from);
    rs_tell_address(&from.any, in->addr, in->addr_len);
}

// The first that waits, into the pieces; how much they do not hold, which is lost.
static size_t take(struct rs *rs, const struct rs_in *in)
{
    struct rs_dgram *dg = rs->dg;
    struct arrival a = dg->arrivals[dg->first];
    const uint8_t *from = in_slot(rs, a.slot) + GRH;
    size_t left = a.len;
    struct head h;

    memcpy(&h, from, sizeof h);
    tell_name(rs, &h, in);
    from += sizeof h;
    for (size_t i = 0; i < in->n && left; i++) {
        size_t piece = in->iov[i].iov_len < left ? in->iov[i].iov_len : left;

        if (piece)
            memcpy(in->iov[i].iov_base, from, piece);
        from += piece;
        left -= piece;
    }
    if (!(in->flags & MSG_PEEK)) {
        dg->first = (dg->first + 1) % dg->in_depth;
        dg->waiting--;
        give_back(rs, a.slot);
    }
    return left;
}

static int receive_one(struct rs *rs, struct rs_in *in)
{
    int err = in->flags & MSG_OOB ? EOPNOTSUPP : open_it(rs);
    size_t whole, left;

    if (!err)
        err = rs_wait(rs, can_receive, rs_waits(rs, in->flags));
    if (err || !rs->dg->waiting)
        return err || rs->read_off ? err : ENETDOWN;
    whole = rs->dg->arrivals[rs->dg->first].len;
    left = take(rs, in);
    if (left)
        in->told = MSG_TRUNC;
    in->done = in->flags & MSG_TRUNC ? whole : whole - left;
    return 0;
}

// ---- ending

// Who waits to receive is told by its next look.
static int shut(struct rs *rs, int how)
{
    union cm_addr it;

    if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
        return EINVAL;
    if (!peer(rs, &it))
        return ENOTCONN;
    rs->read_off |= how != SHUT_WR;
    rs->write_off |= how != SHUT_RD;
    return 0;
}

// The peer of a datagram socket does not know of it.
static void part(struct rs *rs)
{
    (void)rs;
}

const struct rs_kind rs_datagrams = {
    .type = SOCK_DGRAM,
    .space = RDMA_PS_UDP,
    .make = make,
    .end = end,
    .bind = bind_to,
    .listen = rs_no_listen,
    .accept = rs_no_accept,
    .connect = connect_to,
    .shut = shut,
    .part = part,
    .peer = peer,
    .send = send_one,
    .receive = receive_one,
    .progress = progress,
    .can_send = can_send,
    .can_receive = can_receive,
    .drained = drained,
    .map = rs_no_map,
    .unmap = rs_no_unmap,
    .write_mapped = rs_no_write,
};
