// SPDX-License-Identifier: MIT
// How a stream comes up and goes down: the connection manager's events, step by step.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "face/rdmacm/rs.h"

#define MAGIC 0x31535244u // "DRS1"

// ---- queues and memory

static size_t pages(size_t n)
{
    return (n + 4095) & ~(size_t)4095;
}

// Pages of its own, so that the device can move them where a peer has them mapped.
int rs_take_memory(struct rs_memory *m, struct ibv_pd *pd, size_t ring, int access)
{
    m->size = pages(ring) + pages(RS_MAPS * sizeof(struct rs_map));
    m->ring = mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m->ring == MAP_FAILED) {
        m->ring = NULL;
        return -ENOMEM;
    }
    m->table = (void *)(m->ring + pages(ring));
    m->mr = ibv_reg_mr(pd, m->ring, m->size, access);
    return m->mr ? 0 : -errno;
}

static void drop_memory(struct rs_memory *m)
{
    if (m->mr)
        ibv_dereg_mr(m->mr);
    if (m->ring)
        munmap(m->ring, m->size);
    *m = (struct rs_memory){0};
}

// One that nobody ever waits in: rs_disarm relies on it.
int rs_make_channel(struct rs *rs)
{
    struct ibv_comp_channel *c = ibv_create_comp_channel(rs->id->verbs);
    int ret;

    if (!c)
        return -errno;
    if (fcntl(c->fd, F_SETFL, O_NONBLOCK)) {
        ret = -errno;
        ibv_destroy_comp_channel(c);
        return ret;
    }
    rs->comp = c;
    return 0;
}

static int make_queues(struct rs *rs)
{
    struct ibv_qp_init_attr attr = {
        .cap = {RS_DEPTH, 2 * RS_DEPTH, 1, 1, 0}, .qp_type = IBV_QPT_RC, .sq_sig_all = 1};
    int ret = rs_make_channel(rs);

    if (ret)
        return ret;
    rs->cq = ibv_create_cq(rs->id->verbs, 3 * RS_DEPTH + 1, NULL, rs->comp, 0);
    if (!rs->cq)
        return -errno;
    attr.send_cq = attr.recv_cq = rs->cq;
    return rdma_create_qp(rs->id, NULL, &attr) ? -errno : 0;
}

int rs_build(struct rs *rs)
{
    int ret = make_queues(rs);

    if (!ret)
        ret = rs_take_memory(&rs->in, rs->id->pd, rs->in_size,
                             IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    if (!ret)
        ret = rs_take_memory(&rs->out, rs->id->pd, rs->out_size, 0);
    if (!ret)
        ret = rs_post_receives(rs, 2 * RS_DEPTH);
    if (ret)
        rs_tear_down(rs);
    return ret;
}

void rs_tear_down(struct rs *rs)
{
    if (rs->id && rs->id->qp) {
        ibv_destroy_qp(rs->id->qp);
        rs->id->qp = NULL;
    }
    for (int i = 0; i < RS_MAPS; i++)
        if (rs->mapped[i].mr) {
            ibv_dereg_mr(rs->mapped[i].mr);
            rs->mapped[i].mr = NULL;
        }
    drop_memory(&rs->in);
    drop_memory(&rs->out);
    rs_disarm(rs);
    if (rs->cq)
        ibv_destroy_cq(rs->cq);
    if (rs->comp)
        ibv_destroy_comp_channel(rs->comp);
    rs->cq = NULL;
    rs->comp = NULL;
}

// ---- what the ends tell each other

void rs_hello_fill(const struct rs *rs, struct rs_hello *h)
{
    *h = (struct rs_hello){
        .magic = MAGIC,
        .maps = (uint32_t)rs->maps,
        .ring = (uintptr_t)rs->in.ring,
        .table = (uintptr_t)rs->in.table,
        .rkey = rs->in.mr->rkey,
        .size = rs->in_size,
    };
}

bool rs_hello_take(struct rs *rs, const void *data, unsigned len)
{
    struct rs_hello h;

    if (!data || len < sizeof h)
        return false;
    memcpy(&h, data, sizeof h);
    if (h.magic != MAGIC || h.size < RS_MIN_BUFFER || h.size > RS_MAX_BUFFER || h.maps > RS_MAPS)
        return false;
    rs->peer = h;
    return true;
}

// ---- steps

static void fail(struct rs *rs, int error)
{
    rs->state = RS_DOWN;
    rs->error = error;
}

static void ask(struct rs *rs)
{
    struct rs_hello hello;
    struct rdma_conn_param p = {
        .private_data = &hello, .private_data_len = sizeof hello, .retry_count = 7, .rnr_retry_count = 7};
    int ret = rs_build(rs);

    if (ret) {
        fail(rs, -ret);
        return;
    }
    rs_hello_fill(rs, &hello);
    if (rdma_connect(rs->id, &p))
        fail(rs, errno);
}

static void came_up(struct rs *rs, const struct rdma_cm_event *e)
{
    if (!rs->passive && !rs_hello_take(rs, e->param.conn.private_data, e->param.conn.private_data_len)) {
        dock_refuse(0, "rconnect: what listens there is no rsocket");
        rdma_disconnect(rs->id);
        fail(rs, EPROTO);
        return;
    }
    if (rs->state != RS_CONNECTING)
        return;
    rs->state = RS_UP;
    if (rs->write_off) // paired with rshutdown, which did not wait
        rs_put_end(rs);
}

// What the peer had written before it went is ours still.
static void peer_went(struct rs *rs)
{
    rs_flow_progress(rs);
    rs->peer_done = true;
    rs->state = RS_DOWN;
    rdma_disconnect(rs->id);
}

static void take(struct rs *rs, const struct rdma_cm_event *e)
{
    switch (e->event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
        if (rdma_resolve_route(rs->id, 2000))
            fail(rs, errno);
        return;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
        ask(rs);
        return;
    case RDMA_CM_EVENT_ESTABLISHED:
        came_up(rs, e);
        return;
    case RDMA_CM_EVENT_DISCONNECTED:
        peer_went(rs);
        return;
    case RDMA_CM_EVENT_REJECTED:
        fail(rs, ECONNREFUSED);
        return;
    case RDMA_CM_EVENT_UNREACHABLE:
        fail(rs, ETIMEDOUT);
        return;
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
    case RDMA_CM_EVENT_CONNECT_ERROR:
        fail(rs, e->status < 0 ? -e->status : ECONNRESET);
        return;
    default:
        return;
    }
}

void rs_step(struct rs *rs)
{
    struct rdma_cm_event *e;

    // A listener's requests are for raccept.
    while (rs->state != RS_LISTENING && cm_has_event(rs->channel) && !rdma_get_cm_event(rs->channel, &e)) {
        take(rs, e);
        rdma_ack_cm_event(e);
    }
}
