// SPDX-License-Identifier: MIT
// Connections: the calls of both sides. What becomes of them is in peer.c.
#include <stdlib.h>

#include "face/rdmacm/rdmacm_face.h"

enum { RETRY_MS = 40, GRACE_MS = 500 };

// ---- the active side

static int connect_to(struct cm_id *id, bool any, int *fd)
{
    struct cm_port port = {0};
    char name[CM_NAME];

    cm_port_of(&port, id->id.ps, &id->id.route.addr.dst_addr);
    cm_port_name(&port, any, name);
    return cm_wire_connect(&cm.dir, name, fd);
}

// Programs tell each other a port when it is bound and listen a moment later; on a network the request
// takes that moment to arrive. Somebody who holds the port and does not listen yet is given a short while.
static bool may_listen_soon(const struct cm_id *id, uint64_t now)
{
    struct cm_port port = {0};

    cm_port_of(&port, id->id.ps, &id->id.route.addr.dst_addr);
    return now < id->give_up_ms - cm.patience_ms + GRACE_MS && cm_port_bound(&port);
}

// This process is short of something: that says nothing about the peer.
static bool is_shortage(int ret)
{
    return ret == -EMFILE || ret == -ENFILE || ret == -ENOMEM || ret == -ENOBUFS || ret == -ENOSPC;
}

int cm_try_request(struct cm_id *id, uint64_t now)
{
    bool shortage;
    int fd = -1, ret = connect_to(id, false, &fd);

    if (ret == -ECONNREFUSED)
        ret = connect_to(id, true, &fd);
    if (!ret) {
        ret = cm_watch(fd, CM_SRC_CONN, id);
        id->sock = fd;
    }
    if (!ret)
        ret = cm_msg_send(fd, id->request);
    if (!ret) {
        cm_set_deadline(id, id->give_up_ms);
        return 0;
    }
    cm_hang_up(id);
    shortage = is_shortage(ret);
    if (((ret == -EAGAIN || shortage) && now < id->give_up_ms) ||
        (ret == -ECONNREFUSED && may_listen_soon(id, now))) {
        cm_set_deadline(id, now + RETRY_MS);
    } else if (cm_is_ud(id)) {
        cm_unreachable(id, ret == -ECONNREFUSED ? CM_SIDR_UNSUPPORTED : -ETIMEDOUT);
    } else if (ret == -EAGAIN || shortage) {
        cm_unreachable(id, -ETIMEDOUT);
    } else {
        dock_refuse(0, "rdma_connect: nobody listens on that port");
        cm_rejected(id, CM_REJ_INVALID_SERVICE, NULL);
    }
    return shortage ? ret : 0;
}

static uint8_t least(uint8_t a, uint8_t b)
{
    return a < b ? a : b;
}

// The parts of a message that rdma_connect and rdma_accept fill alike. `limit`: bytes of private data.
static int fill(struct cm_msg *m, const struct cm_id *id, const struct rdma_conn_param *p, unsigned limit,
                const char *call)
{
    unsigned len = p && p->private_data ? p->private_data_len : 0;

    if (id->connect_len + len > limit)
        return dock_refuse(-EINVAL, "%s: %zu bytes of private data: at most %u", call, id->connect_len + len,
                           limit);
    if (id->connect_len)
        memcpy(m->private_data, id->connect, id->connect_len);
    if (len)
        memcpy(m->private_data + id->connect_len, p->private_data, len);
    m->qp_num = (id->id.qp ? id->id.qp->qp_num : p ? p->qp_num : 0) & 0xffffff;
    m->srq = id->id.qp ? id->id.qp->srq != NULL : p && p->srq;
    m->flow_control = p && p->flow_control;
    m->retry = least(7, p ? p->retry_count : 7);
    m->rnr_retry = least(7, p ? p->rnr_retry_count : 7);
    m->psn = id->psn;
    m->qp_type = id->id.qp_type;
    m->ece_vendor = id->local_ece.vendor_id;
    m->ece_options = id->local_ece.options;
    return 0;
}

static int check_depths(const struct cm_id *id, const struct rdma_conn_param *p, const char *call)
{
    const struct cm_limits *most = cm_limits();

    if (id->id.ps != RDMA_PS_TCP)
        return 0;
    if (!p)
        return id->id.qp ? 0 : dock_refuse(-EINVAL, "%s: neither a queue pair nor parameters", call);
    if (p->responder_resources != RDMA_MAX_RESP_RES && p->responder_resources > most->responder_resources)
        return dock_refuse(-EINVAL, "%s: %u responder resources: at most %u", call, p->responder_resources,
                           most->responder_resources);
    if (p->initiator_depth != RDMA_MAX_INIT_DEPTH && p->initiator_depth > most->initiator_depth)
        return dock_refuse(-EINVAL, "%s: initiator depth %u: at most %u", call, p->initiator_depth,
                           most->initiator_depth);
    return 0;
}

static int request(struct cm_id *id, const struct rdma_conn_param *p)
{
    bool ud = cm_is_ud(id);
    struct cm_msg *m;
    int ret =
        id->state == CM_ROUTE
            ? check_depths(id, p, "rdma_connect")
            : dock_refuse(-EINVAL, "rdma_connect: no route is resolved, or the id was connected before");

    if (ret)
        return ret;
    m = malloc(sizeof *m);
    if (!m)
        return dock_refuse(-ENOMEM, "rdma_connect: no memory");
    cm_msg_init(m, ud ? CM_MSG_SIDR_REQ : CM_MSG_REQ);
    ret = fill(m, id, p, ud ? CM_DATA_SIDR_REQ : CM_DATA_REQ, "rdma_connect");
    if (ret) {
        free(m);
        return ret;
    }
    m->responder_resources = least(p ? p->responder_resources : 255, cm_limits()->responder_resources);
    m->initiator_depth = least(p ? p->initiator_depth : 255, cm_limits()->initiator_depth);
    memcpy(&m->src, &id->id.route.addr.src_addr, cm_addr_len(&id->id.route.addr.src_addr));
    memcpy(&m->dst, &id->id.route.addr.dst_addr, cm_addr_len(&id->id.route.addr.dst_addr));
    id->responder_resources = m->responder_resources;
    id->initiator_depth = m->initiator_depth;
    id->retry = m->retry;
    id->request = m;
    id->state = CM_REQ_SENT;
    id->give_up_ms = cm_now_ms() + cm.patience_ms;
    ret = cm_try_request(id, cm_now_ms());
    if (ret) {
        cm_set_deadline(id, 0);
        free(m);
        id->request = NULL;
        id->state = CM_ROUTE;
        return dock_refuse(ret, "rdma_connect: this process cannot ask: %s", strerror(-ret));
    }
    return 0;
}

int rdma_connect(struct rdma_cm_id *rid, struct rdma_conn_param *conn_param)
{
    struct cm_id *id = cm_id(rid);
    int ret;

    if (!cm_id_ok(rid, "rdma_connect"))
        return -1;
    cm_acquire();
    ret = request(id, conn_param);
    return cm_end_call(id, ret);
}

// The answer to a reply: the connection stands. Where `over_is_fine`, the peer may have accepted and closed
// before its reply was looked at: there was a connection, and its end is told next.
static int ready_to_use(struct cm_id *id, bool over_is_fine, const char *call)
{
    int ret = 0;

    cm_acquire();
    if (id->state == CM_REP_RCVD) {
        cm_say(id, CM_MSG_RTU, 0);
        id->state = CM_ESTABLISHED;
    } else if (!over_is_fine || id->state != CM_DREQ_RCVD) {
        ret = dock_refuse(-EINVAL, "%s: there is no response of the peer, or it has gone since", call);
    }
    cm_release();
    return ret ? cm_fail(ret) : 0;
}

int cm_finish_response(struct cm_id *id)
{
    int ret = cm_qp_to_rtr(id, RDMA_MAX_RESP_RES);

    if (!ret)
        ret = cm_qp_to_rts(id, RDMA_MAX_INIT_DEPTH);
    if (!ret)
        ret = ready_to_use(id, true, "rdma_get_cm_event");
    if (ret) {
        int why = errno;

        cm_qp_to_err(id);
        errno = why;
    }
    return ret;
}

int rdma_establish(struct rdma_cm_id *rid)
{
    if (!cm_id_ok(rid, "rdma_establish"))
        return -1;
    if (rid->qp)
        return cm_fail(
            dock_refuse(EINVAL, "rdma_establish: the id has a queue pair, so this is done for it"));
    return ready_to_use(cm_id(rid), false, "rdma_establish");
}

// ---- the passive side

static int prepare_accept(struct cm_id *id, const struct rdma_conn_param *p)
{
    const struct cm_limits *most = cm_limits();
    int ret = check_depths(id, p, "rdma_accept");

    if (ret)
        return cm_fail(ret);
    if (!p && !id->id.qp)
        return cm_fail(dock_refuse(EINVAL, "rdma_accept: neither a queue pair nor parameters"));
    id->initiator_depth = p && p->initiator_depth != RDMA_MAX_INIT_DEPTH
                              ? p->initiator_depth
                              : least(id->initiator_depth, most->initiator_depth);
    id->responder_resources = p && p->responder_resources != RDMA_MAX_RESP_RES
                                  ? p->responder_resources
                                  : least(id->responder_resources, most->responder_resources);
    if (cm_is_ud(id))
        return 0;
    ret = cm_qp_to_rtr(id, id->responder_resources);
    return ret ? ret : cm_qp_to_rts(id, id->initiator_depth);
}

static int reply(struct cm_id *id, const struct rdma_conn_param *p)
{
    bool ud = cm_is_ud(id);
    struct cm_msg m;
    int ret;

    if (id->state != CM_REQ_RCVD)
        return dock_refuse(-EINVAL, "rdma_accept: there is no request to accept, or who asked has gone");
    cm_msg_init(&m, ud ? CM_MSG_SIDR_REP : CM_MSG_REP);
    ret = fill(&m, id, p, ud ? CM_DATA_SIDR_REP : CM_DATA_REP, "rdma_accept");
    if (ret)
        return ret;
    m.responder_resources = id->responder_resources;
    m.initiator_depth = id->initiator_depth;
    m.ece_vendor = id->remote_ece.vendor_id;
    m.qkey = RDMA_UDP_QKEY;
    if (cm_msg_send(id->sock, &m))
        return dock_refuse(-EINVAL, "rdma_accept: who asked has gone");
    id->accepted = true;
    id->state = ud ? CM_UD_DONE : CM_REP_SENT;
    if (ud)
        cm_hang_up(id);
    else
        cm_set_deadline(id, cm_now_ms() + cm.patience_ms);
    return 0;
}

static bool in_state(struct cm_id *id, enum cm_state state)
{
    bool in;

    cm_acquire();
    in = id->state == state;
    cm_release();
    return in;
}

static int reject(struct cm_id *id, const void *data, uint8_t len, uint8_t reason)
{
    bool ud = cm_is_ud(id);
    unsigned limit = ud ? CM_DATA_SIDR_REP : CM_DATA_REJ;
    struct cm_msg m;

    if (!data)
        len = 0;
    if (len > limit)
        return dock_refuse(-EINVAL, "rdma_reject: %u bytes of private data: at most %u", len, limit);
    if (id->state != CM_REQ_RCVD && id->state != CM_REP_RCVD && id->state != CM_REP_SENT)
        return dock_refuse(-EINVAL, "rdma_reject: there is no request to reject");
    cm_msg_init(&m, ud ? CM_MSG_SIDR_REP : CM_MSG_REJ);
    m.status = ud ? CM_SIDR_REJECT : reason;
    if (len)
        memcpy(m.private_data, data, len);
    if (cm_msg_send(id->sock, &m))
        dock_debug("a peer was gone before it was rejected");
    cm_over(id);
    return 0;
}

int rdma_accept(struct rdma_cm_id *rid, struct rdma_conn_param *conn_param)
{
    struct cm_id *id = cm_id(rid);
    int ret;

    if (!cm_id_ok(rid, "rdma_accept"))
        return -1;
    if (!in_state(id, CM_REQ_RCVD))
        return cm_fail(
            dock_refuse(EINVAL, "rdma_accept: there is no request to accept, or who asked has gone"));
    ret = prepare_accept(id, conn_param);
    if (ret)
        return ret;
    cm_acquire();
    ret = reply(id, conn_param);
    if (!ret && !(id->sync && cm_is_ud(id)))
        return cm_end_call(id, 0);
    // Who asked is told, as by the kernel: there is no second accept, its queue would be in ERR.
    if (ret && id->state == CM_REQ_RCVD)
        reject(id, NULL, 0, CM_REJ_CONSUMER);
    cm_release();
    if (!ret) { // a synchronous datagram id has nothing to wait for: nobody answers it
        cm_let_event_go(id);
        return 0;
    }
    cm_qp_to_err(id);
    return cm_fail(ret);
}

static int reject_call(struct rdma_cm_id *rid, const void *data, uint8_t len, uint8_t reason)
{
    int ret;

    if (!cm_id_ok(rid, "rdma_reject"))
        return -1;
    cm_acquire();
    ret = reject(cm_id(rid), data, len, reason);
    cm_release();
    return ret ? cm_fail(ret) : 0;
}

int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
    return reject_call(id, private_data, private_data_len, CM_REJ_CONSUMER);
}

int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
    return reject_call(id, private_data, private_data_len, CM_REJ_VENDOR_OPTION);
}

// ---- both

int rdma_notify(struct rdma_cm_id *rid, enum ibv_event_type event)
{
    struct cm_id *id = cm_id(rid);
    int ret = -EINVAL;

    if (!cm_id_ok(rid, "rdma_notify"))
        return -1;
    cm_acquire();
    if (event == IBV_EVENT_COMM_EST && id->state == CM_REP_SENT) {
        id->state = CM_ESTABLISHED;
        cm_set_deadline(id, 0);
        cm_tell_connection(id, RDMA_CM_EVENT_ESTABLISHED, 0, NULL, 0);
        ret = 0;
    } else if (event == IBV_EVENT_COMM_EST && id->state == CM_ESTABLISHED) {
        ret = -EISCONN;
    }
    cm_release();
    return ret ? cm_fail(dock_refuse(ret, "rdma_notify: event %d means nothing in this state", (int)event))
               : 0;
}

static void part(struct cm_id *id)
{
    switch (id->state) {
    case CM_ESTABLISHED:
        cm_say(id, CM_MSG_DREQ, 0);
        id->state = CM_DREQ_SENT;
        cm_set_deadline(id, cm_now_ms() + cm.patience_ms);
        return;
    case CM_DREQ_RCVD:
        cm_say(id, CM_MSG_DREP, 0);
        cm_timewait(id);
        return;
    default:
        return;
    }
}

void cm_part(struct cm_id *id)
{
    cm_acquire();
    if (id->state == CM_REP_SENT)
        id->state = CM_ESTABLISHED;
    part(id);
    cm_release();
}

int rdma_disconnect(struct rdma_cm_id *rid)
{
    struct cm_id *id = cm_id(rid);
    bool never, nothing;

    if (!cm_id_ok(rid, "rdma_disconnect"))
        return -1;
    cm_acquire();
    never = !rid->verbs || id->state < CM_REQ_SENT;
    cm_release();
    if (never)
        return cm_fail(dock_refuse(EINVAL, "rdma_disconnect: the id was never connected"));
    if (cm_qp_to_err(id))
        return -1;
    cm_acquire();
    // Nothing is on its way then that a synchronous id could wait for.
    nothing = id->state == CM_OVER && id->sync && !(rid->channel && cm_chan(rid->channel)->first);
    part(id);
    if (!nothing)
        return cm_end_call(id, 0);
    cm_release();
    return 0;
}
