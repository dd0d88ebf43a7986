// SPDX-License-Identifier: MIT
// The passive side until the program hears of a request.
#include <stdlib.h>
#include <unistd.h>

#include "face/rdmacm/rdmacm_face.h"

enum { PAUSE_MS = 100 }; // of a listener that can let nobody in

// ---- listening

static int open_listener(struct cm_id *id, int slot, const struct cm_port *port)
{
    char name[CM_NAME];
    int fd, ret;

    cm_port_name(port, false, name);
    ret = cm_wire_listen(&cm.dir, name, &fd);
    if (!ret) {
        ret = cm_watch(fd, CM_SRC_LISTEN, id);
        if (ret)
            close(fd);
        else
            id->listener[slot] = fd;
    }
    return ret;
}

static int start_listening(struct cm_id *id)
{
    struct cm_port four = id->port;
    int ret = cm_port_alone(&id->port);

    if (ret)
        return dock_refuse(ret, "rdma_listen: somebody else is bound to the port");
    four.v6 = false;
    ret = open_listener(id, 0, &id->port);
    if (!ret && id->port.both)
        ret = open_listener(id, 1, &four);
    return ret;
}

void cm_stop_listening(struct cm_id *id)
{
    struct cm_port port = id->port;

    if (id->listener[0] >= 0)
        cm_unwatch_callers(id);
    for (int i = 0; i < 2; i++) {
        char name[CM_NAME];

        if (id->listener[i] < 0)
            continue;
        cm_port_name(&port, false, name);
        unlinkat(cm.dir.fd, name, 0);
        cm_unwatch(id->listener[i]);
        id->listener[i] = -1;
        port.v6 = false;
    }
}

void cm_listen_again(struct cm_id *id)
{
    for (int i = 0; i < 2; i++)
        if (id->listener[i] >= 0)
            cm_listen_to(id->listener[i], true);
}

int rdma_listen(struct rdma_cm_id *rid, int backlog)
{
    struct sockaddr_in any = {.sin_family = AF_INET};
    struct cm_id *id = cm_id(rid);
    int ret = 0;

    if (!cm_id_ok(rid, "rdma_listen"))
        return -1;
    cm_acquire();
    if (id->state == CM_IDLE)
        ret = cm_bind(id, (struct sockaddr *)&any, "rdma_listen");
    if (!ret && id->state != CM_BOUND)
        ret = dock_refuse(-EINVAL, "rdma_listen: the id listens already or has a destination");
    if (!ret)
        ret = start_listening(id);
    if (ret) {
        cm_stop_listening(id);
    } else {
        id->backlog = backlog <= 0 || backlog > CM_MAX_BACKLOG ? CM_MAX_BACKLOG : backlog;
        id->state = CM_LISTEN;
    }
    cm_release();
    return ret ? cm_fail(ret) : 0;
}

// ---- requests

void cm_newcomer(struct cm_id *listener, int fd)
{
    int sock, ret = cm_wire_accept(fd, &sock);

    if (ret == -EAGAIN || ret == -ECONNABORTED || ret == -EINTR || ret == -EPERM)
        return;
    if (ret) { // no descriptor, no memory: the caller waits in the queue, and asking at once is no use
        dock_warn("rdma_listen: a caller cannot be let in for now: %s", strerror(-ret));
        cm_listen_to(fd, false);
        cm_set_deadline(listener, cm_now_ms() + PAUSE_MS);
        return;
    }
    if (cm_watch(sock, CM_SRC_NEW, listener))
        close(sock);
}

static void refuse(int fd, bool datagram, uint8_t reason)
{
    struct cm_msg m;

    cm_msg_init(&m, datagram ? CM_MSG_SIDR_REP : CM_MSG_REJ);
    m.status = datagram ? CM_SIDR_REJECT : reason;
    if (cm_msg_send(fd, &m))
        dock_debug("a caller was gone before he could be refused");
}

void cm_refuse_child(struct cm_id *child)
{
    cm_id_leave(child);
    cm_id_free(child);
}

static bool sane(const struct cm_msg *m, const struct cm_id *listener)
{
    bool datagram = cm_is_ud(listener);

    return m->type == (datagram ? CM_MSG_SIDR_REQ : CM_MSG_REQ) && cm_addr_len(&m->src.any) &&
           m->src.any.sa_family == m->dst.any.sa_family && m->qp_num <= 0xffffff;
}

static struct cm_id *make_child(struct cm_id *listener, const struct cm_msg *m)
{
    struct cm_id *child =
        cm_id_new(listener->id.channel, listener->id.context, listener->id.ps, listener->id.qp_type);
    struct rdma_addr *a;
    uint32_t unused;

    if (!child)
        return NULL;
    a = &child->id.route.addr;
    memcpy(&a->src_addr, &m->dst, cm_addr_len(&m->dst.any));
    memcpy(&a->dst_addr, &m->src, cm_addr_len(&m->src.any));
    if (cm_take_device(child) || cm_addr_gid(&a->dst_addr, &a->addr.ibaddr.dgid, &unused)) {
        cm_id_free(child);
        return NULL;
    }
    cm_fill_path(child);
    child->passive = true;
    child->state = CM_REQ_RCVD;
    child->responder_resources = m->initiator_depth; // what he may start here, and the other way round
    child->initiator_depth = m->responder_resources;
    child->retry = m->retry;
    child->rnr_retry = m->rnr_retry;
    child->remote_psn = m->psn & 0xffffff;
    child->remote_qpn = m->qp_num;
    child->remote_ece.vendor_id = m->ece_vendor;
    child->remote_ece.options = m->ece_options;
    return child;
}

static void describe(struct cm_event *e, const struct cm_msg *m, bool datagram)
{
    memcpy(e->data, m->private_data, sizeof e->data);
    if (datagram) {
        e->event.param.ud.private_data = e->data;
        e->event.param.ud.private_data_len = CM_DATA_SIDR_REQ;
        return;
    }
    e->event.param.conn = (struct rdma_conn_param){
        .private_data = e->data,
        .private_data_len = CM_DATA_REQ,
        .responder_resources = m->initiator_depth,
        .initiator_depth = m->responder_resources,
        .flow_control = m->flow_control,
        .retry_count = m->retry,
        .rnr_retry_count = m->rnr_retry,
        .srq = m->srq,
        .qp_num = m->qp_num,
    };
}

// -ENOMEM, -ENOBUFS: he is to be refused.
static int admit(struct cm_id *listener, int fd, const struct cm_msg *m)
{
    struct cm_id *child;
    struct cm_event *e;

    if (listener->pending >= listener->backlog)
        return dock_refuse(-ENOBUFS, "rdma_listen: the backlog of %d is full: a request is refused",
                           listener->backlog);
    child = make_child(listener, m);
    if (!child)
        return -ENOMEM;
    // The listener's, who waits for its acknowledgement: the child's reserve is for events of its own.
    e = cm_event_new(listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
    if (!e || cm_watch(fd, CM_SRC_CONN, child)) {
        if (e)
            cm_event_free(e);
        cm_id_free(child);
        return -ENOMEM;
    }
    child->sock = fd;
    child->next = cm.ids;
    if (child->next)
        child->next->prev = child;
    cm.ids = child;
    e->event.id = &child->id;
    e->event.listen_id = &listener->id;
    describe(e, m, cm_is_ud(listener));
    listener->pending++;
    cm_event_queue(e);
    return 0;
}

void cm_first_message(struct cm_id *listener, int fd)
{
    struct cm_msg m;
    int ret = cm_msg_receive(fd, &m);

    if (ret == -EAGAIN)
        return;
    if (!ret && sane(&m, listener)) {
        if (!admit(listener, fd, &m))
            return;
        refuse(fd, cm_is_ud(listener), CM_REJ_CONSUMER);
    } else if (!ret) {
        dock_warn("rdma_listen: a first message of type %u is no request for this port", m.type);
    }
    cm_unwatch(fd);
}
