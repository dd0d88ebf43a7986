// SPDX-License-Identifier: MIT
// Queue pairs of ids: created, moved from state to state, destroyed, all through verbs.
#include "face/rdmacm/rdmacm_face.h"

// ---- attributes by state

void cm_fill_av(const struct cm_id *id, struct ibv_ah_attr *av)
{
    memset(av, 0, sizeof *av);
    av->is_global = 1;
    av->port_num = CM_PORT;
    av->grh.dgid = id->id.route.addr.addr.ibaddr.dgid;
    av->grh.sgid_index = (uint8_t)id->sgid_index;
    av->grh.hop_limit = 64;
    av->grh.traffic_class = id->tos;
}

static bool has_peer(const struct cm_id *id)
{
    switch (id->state) {
    case CM_REQ_RCVD:
    case CM_REP_SENT:
    case CM_REP_RCVD:
    case CM_ESTABLISHED:
    case CM_DREQ_SENT:
    case CM_DREQ_RCVD:
        return true;
    default:
        return false;
    }
}

static int init_attr(const struct cm_id *id, struct ibv_qp_attr *a)
{
    a->pkey_index = 0;
    a->port_num = CM_PORT;
    if (cm_is_ud(id)) {
        a->qkey = RDMA_UDP_QKEY;
        return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
    }
    a->qp_access_flags = 0;
    if (id->state >= CM_REQ_SENT) {
        a->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
        if (id->responder_resources)
            a->qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    }
    return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
}

static bool reliable(const struct cm_id *id)
{
    return id->id.qp_type != IBV_QPT_UC;
}

static int rtr_attr(const struct cm_id *id, struct ibv_qp_attr *a)
{
    cm_fill_av(id, &a->ah_attr);
    a->path_mtu = IBV_MTU_4096;
    a->dest_qp_num = id->remote_qpn;
    a->rq_psn = id->remote_psn;
    if (!reliable(id))
        return IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    a->max_dest_rd_atomic = id->responder_resources;
    a->min_rnr_timer = 0;
    return IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
}

static int rts_attr(const struct cm_id *id, struct ibv_qp_attr *a)
{
    a->sq_psn = id->psn;
    if (!reliable(id))
        return IBV_QP_STATE | IBV_QP_SQ_PSN;
    a->timeout = id->timeout;
    a->retry_cnt = id->retry;
    a->rnr_retry = id->rnr_retry;
    a->max_rd_atomic = id->initiator_depth;
    return IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
           IBV_QP_MAX_QP_RD_ATOMIC;
}

static int datagram_attr(enum ibv_qp_state state, struct ibv_qp_attr *a)
{
    a->sq_psn = 0;
    return state == IBV_QPS_RTS ? IBV_QP_STATE | IBV_QP_SQ_PSN : IBV_QP_STATE;
}

// The mask of attributes for a->qp_state, filled; or -EINVAL.
static int attributes(const struct cm_id *id, struct ibv_qp_attr *a)
{
    if (!id->id.verbs)
        return -EINVAL;
    switch (a->qp_state) {
    case IBV_QPS_INIT:
        return init_attr(id, a);
    case IBV_QPS_RTR:
    case IBV_QPS_RTS:
        if (cm_is_ud(id))
            return datagram_attr(a->qp_state, a);
        if (!has_peer(id))
            return -EINVAL;
        return a->qp_state == IBV_QPS_RTR ? rtr_attr(id, a) : rts_attr(id, a);
    default:
        return -EINVAL;
    }
}

int rdma_init_qp_attr(struct rdma_cm_id *rid, struct ibv_qp_attr *qp_attr, int *qp_attr_mask)
{
    int mask;

    if (!cm_id_ok(rid, "rdma_init_qp_attr"))
        return -1;
    if (!qp_attr || !qp_attr_mask)
        return cm_fail(dock_refuse(EINVAL, "rdma_init_qp_attr: no place for the attributes"));
    cm_acquire();
    mask = attributes(cm_id(rid), qp_attr);
    cm_release();
    if (mask < 0)
        return cm_fail(dock_refuse(mask, "rdma_init_qp_attr: state %d: the id knows no device or no peer yet",
                                   (int)qp_attr->qp_state));
    *qp_attr_mask = mask;
    return 0;
}

// ---- transitions. Errors as calls return them: -1 and errno.

static int modify(struct cm_id *id, struct ibv_qp *qp, struct ibv_qp_attr *a)
{
    int mask;

    if (rdma_init_qp_attr(&id->id, a, &mask))
        return -1;
    return cm_verbs(ibv_modify_qp(qp, a, mask));
}

int cm_qp_to_rtr(struct cm_id *id, uint8_t responder_resources)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT};
    int mask;

    if (!id->id.qp)
        return 0;
    // Once more to INIT: what remote access is wanted is known only now.
    if (modify(id, id->id.qp, &a))
        return -1;
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR};
    if (rdma_init_qp_attr(&id->id, &a, &mask))
        return -1;
    if (responder_resources != RDMA_MAX_RESP_RES)
        a.max_dest_rd_atomic = responder_resources;
    return cm_verbs(ibv_modify_qp(id->id.qp, &a, mask));
}

int cm_qp_to_rts(struct cm_id *id, uint8_t initiator_depth)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS};
    int mask;

    if (!id->id.qp)
        return 0;
    if (rdma_init_qp_attr(&id->id, &a, &mask))
        return -1;
    if (initiator_depth != RDMA_MAX_INIT_DEPTH)
        a.max_rd_atomic = initiator_depth;
    return cm_verbs(ibv_modify_qp(id->id.qp, &a, mask));
}

int cm_qp_to_err(struct cm_id *id)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_ERR};

    return id->id.qp ? cm_verbs(ibv_modify_qp(id->id.qp, &a, IBV_QP_STATE)) : 0;
}

// As far as a new queue pair goes before there is a peer: a datagram one all the way.
static int prepare(struct cm_id *id, struct ibv_qp *qp)
{
    static const enum ibv_qp_state states[] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS};

    for (int i = 0; i < (cm_is_ud(id) ? 3 : 1); i++) {
        struct ibv_qp_attr a = {.qp_state = states[i]};

        if (modify(id, qp, &a))
            return -1;
    }
    return 0;
}

// ---- completion queues that an id makes for itself

static void destroy_cqs(struct rdma_cm_id *id)
{
    if (id->qp_type == IBV_QPT_XRC_RECV && id->srq)
        return;
    if (id->recv_cq)
        ibv_destroy_cq(id->recv_cq);
    if (id->send_cq && id->send_cq != id->recv_cq)
        ibv_destroy_cq(id->send_cq);
    if (id->recv_cq_channel)
        ibv_destroy_comp_channel(id->recv_cq_channel);
    if (id->send_cq_channel && id->send_cq_channel != id->recv_cq_channel)
        ibv_destroy_comp_channel(id->send_cq_channel);
    id->recv_cq = id->send_cq = NULL;
    id->recv_cq_channel = id->send_cq_channel = NULL;
}

static int create_cq(struct rdma_cm_id *id, uint32_t size, struct ibv_comp_channel **channel,
                     struct ibv_cq **cq)
{
    if (!size)
        return 0;
    *channel = ibv_create_comp_channel(id->verbs);
    if (*channel)
        *cq = ibv_create_cq(id->verbs, (int)size, id, *channel, 0);
    return *cq ? 0 : -1;
}

static int create_cqs(struct rdma_cm_id *id, uint32_t send_size, uint32_t recv_size)
{
    int ret = create_cq(id, recv_size, &id->recv_cq_channel, &id->recv_cq);

    if (!ret)
        ret = create_cq(id, send_size, &id->send_cq_channel, &id->send_cq);
    if (ret)
        destroy_cqs(id);
    return ret;
}

// ---- queue pairs

static int complete_attr(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
    if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd) {
        attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
        attr->pd = id->pd;
    } else if (attr->pd->context != id->verbs) {
        return cm_fail(dock_refuse(EINVAL, "rdma_create_qp: the domain is of another context than the id"));
    }
    if ((id->recv_cq && attr->recv_cq && id->recv_cq != attr->recv_cq) ||
        (id->send_cq && attr->send_cq && id->send_cq != attr->send_cq))
        return cm_fail(dock_refuse(EINVAL, "rdma_create_qp: the id has other completion queues"));
    if (attr->qp_type == IBV_QPT_XRC_RECV) // completes nothing: that is its shared queues'
        return 0;
    if (create_cqs(id, attr->send_cq || id->send_cq ? 0 : attr->cap.max_send_wr,
                   attr->recv_cq || id->recv_cq ? 0 : attr->cap.max_recv_wr))
        return -1;
    if (!attr->send_cq)
        attr->send_cq = id->send_cq;
    if (!attr->recv_cq)
        attr->recv_cq = id->recv_cq;
    if (id->srq && !attr->srq)
        attr->srq = id->srq;
    return 0;
}

// Options of the peer's kind are handed to the queue pair; where the device has none, they stay what was set.
static void exchange_ece(struct cm_id *id, struct ibv_qp *qp)
{
    struct ibv_ece ece = {0};

    if (ibv_query_ece(qp, &ece))
        return;
    id->local_ece = ece;
    if (!id->remote_ece.vendor_id)
        return;
    if (id->remote_ece.vendor_id == ece.vendor_id)
        ece.options = id->remote_ece.options;
    else
        ece.options = 0;
    if (!ibv_set_ece(qp, &ece) && !ibv_query_ece(qp, &ece))
        id->local_ece.options = ece.options;
}

// An XRC target has an XRC domain and nothing else: the program's, or the one of all ids.
static struct ibv_qp *create_target(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
    struct ibv_qp_init_attr_ex target = {
        .qp_context = attr->qp_context, .qp_type = attr->qp_type, .comp_mask = IBV_QP_INIT_ATTR_XRCD};

    if (!(attr->comp_mask & IBV_QP_INIT_ATTR_XRCD)) {
        attr->xrcd = cm_xrcd();
        if (!attr->xrcd)
            return NULL;
        attr->comp_mask |= IBV_QP_INIT_ATTR_XRCD;
    }
    target.xrcd = attr->xrcd;
    return ibv_create_qp_ex(id->verbs, &target);
}

static int check_create(struct rdma_cm_id *id, const void *attr)
{
    if (!cm_id_ok(id, "rdma_create_qp"))
        return -1;
    if (!attr || id->qp)
        return cm_fail(
            dock_refuse(EINVAL, "rdma_create_qp: no attributes, or the id has a queue pair already"));
    if (!id->verbs)
        return cm_fail(dock_refuse(EINVAL, "rdma_create_qp: the id is not bound to a device yet"));
    return 0;
}

int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
    struct ibv_qp *qp;
    int why;

    if (check_create(id, attr) || complete_attr(id, attr))
        return -1;
    qp = attr->qp_type == IBV_QPT_XRC_RECV ? create_target(id, attr) : ibv_create_qp_ex(id->verbs, attr);
    if (!qp)
        goto no_queue;
    exchange_ece(cm_id(id), qp);
    if (prepare(cm_id(id), qp))
        goto not_prepared;
    if (qp->pd) // a target has none
        id->pd = qp->pd;
    id->qp = qp;
    return 0;

not_prepared:
    why = errno;
    ibv_destroy_qp(qp);
    errno = why;
no_queue:
    why = errno;
    destroy_cqs(id);
    errno = why;
    return -1;
}

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr)
{
    struct ibv_qp_init_attr_ex ex = {0};
    int ret;

    if (check_create(id, qp_init_attr))
        return -1;
    // The extended structure begins like the plain one.
    memcpy(&ex, qp_init_attr, sizeof *qp_init_attr);
    ex.comp_mask = IBV_QP_INIT_ATTR_PD;
    ex.pd = pd ? pd : id->pd;
    ret = rdma_create_qp_ex(id, &ex);
    memcpy(qp_init_attr, &ex, sizeof *qp_init_attr);
    return ret;
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
    if (!id || !id->qp)
        return;
    ibv_destroy_qp(id->qp);
    id->qp = NULL;
    destroy_cqs(id);
}

// ---- shared receive queues

// An XRC queue has a domain, and completes by itself.
static int complete_xrc(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
    if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_XRCD)) {
        attr->xrcd = cm_xrcd();
        if (!attr->xrcd)
            return -1;
        attr->comp_mask |= IBV_SRQ_INIT_ATTR_XRCD;
    }
    if (attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ)
        return 0;
    if (!id->recv_cq && create_cqs(id, 0, attr->attr.max_wr))
        return -1;
    attr->cq = id->recv_cq;
    attr->comp_mask |= IBV_SRQ_INIT_ATTR_CQ;
    return 0;
}

int rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
    bool made;
    struct ibv_srq *srq;
    int why;

    if (!cm_id_ok(id, "rdma_create_srq"))
        return -1;
    made = !id->recv_cq;
    if (!attr || !(attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) || !id->verbs)
        return cm_fail(
            dock_refuse(EINVAL, "rdma_create_srq: no type given, or the id is not bound to a device"));
    if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd) {
        attr->pd = id->pd;
        attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
    }
    if (attr->srq_type == IBV_SRQT_XRC && complete_xrc(id, attr))
        return -1;
    srq = ibv_create_srq_ex(id->verbs, attr);
    if (!srq && made && id->recv_cq) {
        why = errno;
        ibv_destroy_cq(id->recv_cq);
        ibv_destroy_comp_channel(id->recv_cq_channel);
        id->recv_cq = NULL;
        id->recv_cq_channel = NULL;
        errno = why;
    }
    if (!srq)
        return -1;
    id->srq = srq;
    return 0;
}

int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
    struct ibv_srq_init_attr_ex ex = {0};
    int ret;

    if (!cm_id_ok(id, "rdma_create_srq"))
        return -1;
    if (!attr)
        return cm_fail(dock_refuse(EINVAL, "rdma_create_srq: no attributes given"));
    memcpy(&ex, attr, sizeof *attr);
    ex.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
    ex.srq_type = id->qp_type == IBV_QPT_XRC_RECV ? IBV_SRQT_XRC : IBV_SRQT_BASIC;
    ex.pd = pd;
    ret = rdma_create_srq_ex(id, &ex);
    memcpy(attr, &ex, sizeof *attr);
    return ret;
}

void rdma_destroy_srq(struct rdma_cm_id *id)
{
    if (!id || !id->srq)
        return;
    ibv_destroy_srq(id->srq);
    id->srq = NULL;
    destroy_cqs(id);
}
