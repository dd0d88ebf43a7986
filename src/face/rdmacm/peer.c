// SPDX-License-Identifier: MIT
// What the peer's messages, its silence and its end mean in each state. The states and reasons are those of
// InfiniBand's connection management; one socket is one connection.
#include "face/rdmacm/rdmacm_face.h"

void cm_over(struct cm_id *id)
{
    id->state = CM_OVER;
    cm_set_deadline(id, 0);
}

void cm_hang_up(struct cm_id *id)
{
    cm_unwatch(id->sock);
    id->sock = -1;
}

void cm_timewait(struct cm_id *id)
{
    id->state = CM_TIMEWAIT;
    cm_set_deadline(id, cm_now_ms() + CM_TIMEWAIT_MS);
}

void cm_say(struct cm_id *id, enum cm_type type, uint8_t status)
{
    struct cm_msg m;

    cm_msg_init(&m, type);
    m.status = status;
    if (cm_msg_send(id->sock, &m))
        dock_debug("a peer was gone before message %d", (int)type);
}

// ---- events

void cm_tell_connection(struct cm_id *id, enum rdma_cm_event_type type, int status, const struct cm_msg *m,
                        uint8_t len)
{
    struct cm_event *e;

    // Before the program has accepted a request it hears nothing of what becomes of it: accepting will fail.
    if (id->passive && !id->accepted)
        return;
    e = cm_event_new(id, type, status);
    if (!e)
        return;
    if (m) {
        memcpy(e->data, m->private_data, sizeof e->data);
        e->event.param.conn = (struct rdma_conn_param){
            .private_data = len ? e->data : NULL,
            .private_data_len = len,
            .responder_resources = m->initiator_depth,
            .initiator_depth = m->responder_resources,
            .flow_control = m->flow_control,
            .rnr_retry_count = m->rnr_retry,
            .srq = m->srq,
            .qp_num = m->qp_num,
        };
    }
    cm_event_queue(e);
}

void cm_rejected(struct cm_id *id, uint8_t reason, const struct cm_msg *m)
{
    cm_over(id);
    cm_tell_connection(id, RDMA_CM_EVENT_REJECTED, reason, m, m ? CM_DATA_REJ : 0);
}

void cm_unreachable(struct cm_id *id, int status)
{
    cm_over(id);
    cm_hang_up(id);
    cm_tell(id, RDMA_CM_EVENT_UNREACHABLE, status);
}

// ---- what the peer says

static void on_reply(struct cm_id *id, const struct cm_msg *m)
{
    if (id->state != CM_REQ_SENT || cm_is_ud(id))
        return;
    id->state = CM_REP_RCVD;
    cm_set_deadline(id, 0);
    id->remote_qpn = m->qp_num & 0xffffff;
    id->remote_psn = m->psn & 0xffffff;
    id->responder_resources = m->initiator_depth;
    id->initiator_depth = m->responder_resources;
    id->rnr_retry = m->rnr_retry;
    id->remote_ece.vendor_id = m->ece_vendor;
    id->remote_ece.options = m->ece_options;
    cm_tell_connection(id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, m, CM_DATA_REP);
}

static void on_datagram_reply(struct cm_id *id, const struct cm_msg *m)
{
    struct cm_event *e;

    if (id->state != CM_REQ_SENT || !cm_is_ud(id))
        return;
    if (m->status) {
        cm_unreachable(id, m->status);
        return;
    }
    id->state = CM_UD_DONE;
    cm_set_deadline(id, 0);
    cm_hang_up(id);
    id->remote_qpn = m->qp_num & 0xffffff;
    e = cm_event_new(id, RDMA_CM_EVENT_ESTABLISHED, 0);
    if (!e)
        return;
    memcpy(e->data, m->private_data, sizeof e->data);
    e->event.param.ud.private_data = e->data;
    e->event.param.ud.private_data_len = CM_DATA_SIDR_REP;
    e->event.param.ud.qp_num = id->remote_qpn;
    e->event.param.ud.qkey = m->qkey;
    cm_fill_av(id, &e->event.param.ud.ah_attr);
    cm_event_queue(e);
}

static void on_reject(struct cm_id *id, const struct cm_msg *m)
{
    switch (id->state) {
    case CM_REQ_SENT:
    case CM_REP_RCVD:
    case CM_REP_SENT:
        cm_rejected(id, m->status, m);
        return;
    case CM_REQ_RCVD:
        cm_over(id);
        return;
    default:
        return;
    }
}

static void on_disconnect_request(struct cm_id *id)
{
    switch (id->state) {
    case CM_ESTABLISHED:
    case CM_REP_SENT:
    case CM_REP_RCVD: // accepted and closed at once: who takes the reply finds the end behind it
        id->state = CM_DREQ_RCVD;
        cm_set_deadline(id, 0);
        break;
    case CM_DREQ_SENT: // both at once
        cm_timewait(id);
        break;
    default:
        return;
    }
    cm_tell_connection(id, RDMA_CM_EVENT_DISCONNECTED, 0, NULL, 0);
}

static void on_message(struct cm_id *id, const struct cm_msg *m)
{
    switch (m->type) {
    case CM_MSG_REP:
        on_reply(id, m);
        return;
    case CM_MSG_SIDR_REP:
        on_datagram_reply(id, m);
        return;
    case CM_MSG_REJ:
        on_reject(id, m);
        return;
    case CM_MSG_RTU:
        if (id->state == CM_REP_SENT) {
            id->state = CM_ESTABLISHED;
            cm_set_deadline(id, 0);
            cm_tell_connection(id, RDMA_CM_EVENT_ESTABLISHED, 0, NULL, 0);
        }
        return;
    case CM_MSG_DREQ:
        on_disconnect_request(id);
        return;
    case CM_MSG_DREP:
        if (id->state == CM_DREQ_SENT) {
            cm_timewait(id);
            cm_tell_connection(id, RDMA_CM_EVENT_DISCONNECTED, 0, NULL, 0);
        }
        return;
    default:
        dock_warn("a connection message of type %u means nothing here", m->type);
        return;
    }
}

// The other end is closed. Who goes in order has said so before; of a process that died this is all that
// comes, and it means what a kernel would have said in its place.
static void on_end(struct cm_id *id)
{
    cm_hang_up(id);
    switch (id->state) {
    case CM_REQ_SENT:
        if (cm_is_ud(id))
            cm_unreachable(id, -ETIMEDOUT);
        else
            cm_rejected(id, CM_REJ_CONSUMER, NULL);
        return;
    case CM_REP_RCVD:
    case CM_REP_SENT:
        cm_rejected(id, CM_REJ_CONSUMER, NULL);
        return;
    case CM_REQ_RCVD:
        cm_over(id);
        return;
    case CM_ESTABLISHED:
    case CM_DREQ_SENT:
        cm_timewait(id);
        cm_tell_connection(id, RDMA_CM_EVENT_DISCONNECTED, 0, NULL, 0);
        return;
    default:
        return;
    }
}

void cm_readable(struct cm_id *id)
{
    struct cm_msg m;
    int ret = cm_msg_receive(id->sock, &m);

    if (!ret)
        on_message(id, &m);
    else if (ret != -EAGAIN)
        on_end(id);
}

void cm_timer(struct cm_id *id, uint64_t now)
{
    switch (id->state) {
    case CM_LISTEN:
        cm_listen_again(id);
        return;
    case CM_REQ_SENT:
        if (id->sock < 0 && now < id->give_up_ms) {
            cm_try_request(id, now);
            return;
        }
        cm_say(id, CM_MSG_REJ, CM_REJ_TIMEOUT);
        cm_unreachable(id, -ETIMEDOUT);
        return;
    case CM_REP_SENT:
        cm_say(id, CM_MSG_REJ, CM_REJ_TIMEOUT);
        cm_unreachable(id, -ETIMEDOUT);
        return;
    case CM_DREQ_SENT:
        cm_timewait(id);
        cm_tell_connection(id, RDMA_CM_EVENT_DISCONNECTED, -ETIMEDOUT, NULL, 0);
        return;
    case CM_TIMEWAIT:
        cm_over(id);
        cm_tell(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
        return;
    default:
        return;
    }
}

void cm_goodbye(struct cm_id *id)
{
    switch (id->state) {
    case CM_REQ_SENT:
        cm_say(id, CM_MSG_REJ, CM_REJ_TIMEOUT);
        break;
    case CM_REQ_RCVD:
        if (cm_is_ud(id))
            cm_say(id, CM_MSG_SIDR_REP, CM_SIDR_REJECT);
        else
            cm_say(id, CM_MSG_REJ, CM_REJ_CONSUMER);
        break;
    case CM_REP_RCVD:
    case CM_REP_SENT:
        cm_say(id, CM_MSG_REJ, CM_REJ_CONSUMER);
        break;
    case CM_ESTABLISHED:
        cm_say(id, CM_MSG_DREQ, 0);
        break;
    case CM_DREQ_RCVD:
        cm_say(id, CM_MSG_DREP, 0);
        break;
    default:
        break;
    }
    cm_hang_up(id);
    cm_over(id);
}
