// SPDX-License-Identifier: MIT
// Queue pairs: creation, modification, query, destruction.
#include <stdlib.h>

#include "face/verbs/verbs_face.h"

#define OP(name) (1u << IBV_WR_##name)
#define UD_OPS (OP(SEND) | OP(SEND_WITH_IMM))
#define UC_OPS                                                                                               \
    (UD_OPS | OP(SEND_WITH_INV) | OP(RDMA_WRITE) | OP(RDMA_WRITE_WITH_IMM) | OP(LOCAL_INV) | OP(BIND_MW))
#define RC_OPS (UC_OPS | OP(RDMA_READ) | OP(ATOMIC_CMP_AND_SWP) | OP(ATOMIC_FETCH_AND_ADD))

// A window belongs to one queue, and requests of XRC come to a target: nothing to bind or invalidate.
#define XRC_OPS (RC_OPS & ~(OP(SEND_WITH_INV) | OP(LOCAL_INV) | OP(BIND_MW)))

// What a service has not is found when the request is executed, as a local QP operation error, or at the
// post.
static uint32_t taken(uint32_t ops)
{
    return dock_profile()->wrong_op_refused ? ops : RC_OPS;
}

static int service_of(enum ibv_qp_type type, enum dock_service *service, uint32_t *ops)
{
    switch (type) {
    case IBV_QPT_RC:
        *service = DOCK_RC;
        *ops = taken(RC_OPS);
        return 0;
    case IBV_QPT_XRC_SEND:
        *service = DOCK_RC;
        *ops = XRC_OPS;
        return 0;
    case IBV_QPT_UC:
        *service = DOCK_UC;
        *ops = taken(UC_OPS);
        return 0;
    case IBV_QPT_UD:
        *service = DOCK_UD;
        *ops = taken(UD_OPS);
        return 0;
    default:
        return dock_refuse(-EOPNOTSUPP, "ibv_create_qp: queue type %d: RC, UC, UD and XRC are offered",
                           (int)type);
    }
}

static int check_caps(const struct dock_limits *l, const struct ibv_qp_cap *c, bool own_rq, bool direct)
{
    const struct {
        const char *what;
        uint32_t value, most;
    } caps[] = {
        {"max_send_wr", c->max_send_wr, direct ? DOCK_RING_BLOCKS_MAX : l->max_qp_wr},
        {"max_send_sge", c->max_send_sge, l->max_sge},
        {"max_inline_data", c->max_inline_data, l->max_inline},
        {"max_recv_wr", own_rq ? c->max_recv_wr : 0, l->max_qp_wr},
        {"max_recv_sge", own_rq ? c->max_recv_sge : 0, l->max_sge},
    };

    for (size_t i = 0; i < sizeof caps / sizeof *caps; i++)
        if (caps[i].value > caps[i].most)
            return dock_refuse(-EINVAL, "ibv_create_qp: %s %u: at most %u", caps[i].what, caps[i].value,
                               caps[i].most);
    return 0;
}

static bool sends_only(const struct ibv_qp_init_attr_ex *a)
{
    return a->qp_type == IBV_QPT_XRC_SEND;
}

static int check_objects(struct ibv_pd *pd, const struct ibv_qp_init_attr_ex *a)
{
    if (a->qp_type == IBV_QPT_XRC_RECV)
        return dock_refuse(-EINVAL,
                           "ibv_create_qp: an XRC target is made with an XRC domain (ibv_create_qp_ex)");
    if (sends_only(a) && a->srq)
        return dock_refuse(-EINVAL, "ibv_create_qp: an XRC initiator receives nothing");
    if (!a->send_cq || (!a->recv_cq && !sends_only(a)))
        return dock_refuse(
            -EINVAL, "ibv_create_qp: a queue pair needs a completion queue for sends and one for receives");
    if (a->send_cq->context != pd->context || (a->recv_cq && a->recv_cq->context != pd->context))
        return dock_refuse(-EINVAL, "ibv_create_qp: domain and completion queues are of different contexts");
    if (!vb_pd_known(pd) || !vb_cq_known(a->send_cq) || (a->recv_cq && !vb_cq_known(a->recv_cq)) ||
        (a->srq && !vb_srq_known(a->srq)))
        return dock_refuse(-ENOENT, "ibv_create_qp: no such domain, completion queue or shared queue");
    if (a->srq && a->srq->context != pd->context)
        return dock_refuse(-EINVAL, "ibv_create_qp: the shared receive queue is of another context");
    if (a->srq && a->qp_type == IBV_QPT_UC)
        return dock_refuse(-EINVAL, "ibv_create_qp: UC queues cannot use a shared receive queue");
    return 0;
}

static int make(struct ibv_context *context, const struct ibv_qp_init_attr_ex *a, bool direct,
                struct vb_qp *qp)
{
    struct ibv_pd *pd = a->pd;
    struct dock_qp_attr attr = {
        .pd = pd ? vb_pd(pd)->number : 0,
        .send_cq = a->send_cq ? vb_cq(a->send_cq)->dev : NULL,
        .recv_cq = a->recv_cq && !sends_only(a) ? vb_cq(a->recv_cq)->dev : NULL,
        .srq = a->srq ? vb_srq(a->srq)->dev : NULL,
        .max_send_wr = qp->cap.max_send_wr,
        .max_recv_wr = qp->cap.max_recv_wr,
        .max_send_sge = qp->cap.max_send_sge,
        .max_recv_sge = qp->cap.max_recv_sge,
        .max_inline = qp->cap.max_inline_data,
        .signal_all = a->sq_sig_all != 0,
        .lock_free = pd && vb_pd(pd)->td,
        .raw = direct,
        .role = sends_only(a) ? DOCK_SENDS : DOCK_BOTH,
        .xrc = sends_only(a) ? DOCK_XRC_INI : DOCK_XRC_NONE,
        .block_self = a->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS && a->create_flags,
        .user = qp,
    };
    int err = service_of(a->qp_type, &attr.service, &qp->ops);

    if (!err)
        err = dock_qp_create(vb_dev(context), &attr, &qp->dev);
    if (err)
        return err;
    dock_qp_set_events(qp->dev, vb_context(context)->events);
    qp->rq = attr.xrc ? NULL : dock_qp_rq(qp->dev);
    return 0;
}

void vb_qp_fill(struct vb_qp *qp, struct ibv_context *context, const struct ibv_qp_init_attr_ex *a)
{
    struct ibv_qp *q = &qp->ex.qp_base;

    q->context = context;
    q->qp_context = a->qp_context;
    q->pd = a->pd;
    q->send_cq = a->send_cq;
    q->recv_cq = a->recv_cq;
    q->srq = a->srq;
    q->handle = dock_qp_number(qp->dev);
    q->qp_num = q->handle;
    q->state = IBV_QPS_RESET;
    q->qp_type = a->qp_type;
    qp->sq_sig_all = a->sq_sig_all;
    qp->xrcini = sends_only(a);
    qp->send_sge = qp->cap.max_send_sge;
    qp->inline_max = qp->cap.max_inline_data;
    pthread_mutex_init(&q->mutex, NULL);
    pthread_cond_init(&q->cond, NULL);
    pthread_mutex_init(&qp->own.modify, NULL);
    qp->now = &qp->own;
}

enum { PIECE = sizeof(struct ibv_sge) };

// What there is where the profile gives more than was asked for. The limits hold as many inline bytes as
// pieces.
static void round_up(const struct dock_limits *l, struct ibv_qp_cap *cap)
{
    cap->max_send_wr = dock_profile_depth(cap->max_send_wr, 0, l->max_qp_wr);
    cap->max_recv_wr = dock_profile_depth(cap->max_recv_wr, 0, l->max_qp_wr);
    if (!dock_profile()->inline_in_pieces)
        return;
    if (cap->max_inline_data < cap->max_send_sge * PIECE)
        cap->max_inline_data = cap->max_send_sge * PIECE;
    cap->max_send_sge = cap->max_inline_data / PIECE;
}

enum form { PLAIN, BUILDERS, DIRECT };

static struct ibv_qp *create(struct ibv_pd *pd, struct ibv_qp_init_attr_ex *a, uint64_t send_ops,
                             enum form form)
{
    struct vb_qp *qp;
    bool custom;
    int err = check_objects(pd, a);

    if (!err)
        err = check_caps(dock_dev_limits(vb_dev(pd->context)), &a->cap, !a->srq && !sends_only(a),
                         form == DIRECT);
    if (err)
        return vb_none(err);
    qp = vb_pd_calloc(pd, sizeof *qp, &custom);
    if (!qp)
        return vb_none(dock_refuse(-ENOMEM, "ibv_create_qp: no memory"));
    qp->custom = custom;
    qp->cap = a->cap;
    if (form != DIRECT)
        round_up(dock_dev_limits(vb_dev(pd->context)), &qp->cap);
    if (a->srq || sends_only(a))
        qp->cap.max_recv_wr = qp->cap.max_recv_sge = 0;
    a->pd = pd;
    err = make(pd->context, a, form == DIRECT, qp);
    if (err)
        goto no_queue;
    vb_qp_fill(qp, pd->context, a);
    if (form == DIRECT)
        qp->ops = 0; // nothing may be posted by the library
    if (form == BUILDERS) {
        err = vb_fill_builders(qp, send_ops);
        if (err)
            goto no_builders;
    }
    a->cap = qp->cap;
    vb_pd_use(pd);
    vb_object_made(pd->context);
    return &qp->ex.qp_base;

no_builders:
    dock_qp_destroy(qp->dev);
no_queue:
    vb_pd_free(pd, qp, custom);
    return vb_none(err);
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    struct ibv_qp_init_attr_ex a = {0};
    struct ibv_qp *qp;

    if (!pd || !attr)
        return vb_none(dock_refuse(-EINVAL, "ibv_create_qp: no domain or no attributes given"));
    memcpy(&a, attr, sizeof *attr); // the long form begins with the short one
    qp = create(pd, &a, 0, PLAIN);
    if (qp)
        attr->cap = a.cap;
    return qp;
}

struct ibv_qp *vb_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
    uint32_t offered = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    bool builders;

    if (attr && attr->qp_type == IBV_QPT_XRC_RECV)
        return vb_create_target(context, attr);
    if (!attr || attr->comp_mask & ~offered)
        return vb_none(dock_refuse(-EOPNOTSUPP,
                                   "ibv_create_qp_ex: mask %#x: TSO and receive hashing are not offered",
                                   attr ? attr->comp_mask : 0));
    if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd || attr->pd->context != context)
        return vb_none(dock_refuse(-EINVAL, "ibv_create_qp_ex: no domain of this context given"));
    if ((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) &&
        (attr->create_flags & ~(uint32_t)IBV_QP_CREATE_BLOCK_SELF_MCAST_LB ||
         (attr->create_flags && attr->qp_type != IBV_QPT_UD)))
        return vb_none(dock_refuse(-EOPNOTSUPP, "ibv_create_qp_ex: creation flags %#x are not offered",
                                   attr->create_flags));
    builders = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    return create(attr->pd, attr, builders ? attr->send_ops_flags : 0, builders ? BUILDERS : PLAIN);
}

struct ibv_qp *vb_create_direct_qp(struct ibv_pd *pd, struct ibv_qp_init_attr_ex *attr)
{
    return create(pd, attr, 0, DIRECT);
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
    if (qp && vb_qp(qp)->build)
        return &vb_qp(qp)->ex;
    return vb_none(dock_refuse(-EOPNOTSUPP, "ibv_qp_to_qp_ex: the queue was created without send_ops_flags"));
}

// ---- modify

static void translate(const struct ibv_qp_attr *a, int mask, struct dock_qp_mod *m)
{
    static const struct {
        int verbs;
        uint32_t device;
    } map[] = {
        {IBV_QP_STATE, DOCK_MOD_STATE},
        {IBV_QP_ACCESS_FLAGS, DOCK_MOD_ACCESS},
        {IBV_QP_QKEY, DOCK_MOD_QKEY},
        {IBV_QP_TIMEOUT, DOCK_MOD_TIMEOUT},
        {IBV_QP_RETRY_CNT, DOCK_MOD_RETRY},
        {IBV_QP_RNR_RETRY, DOCK_MOD_RNR_RETRY},
        {IBV_QP_MIN_RNR_TIMER, DOCK_MOD_RNR_TIMER},
        {IBV_QP_MAX_QP_RD_ATOMIC, DOCK_MOD_RD_ATOMIC},
        {IBV_QP_MAX_DEST_RD_ATOMIC, DOCK_MOD_DEST_RD_ATOMIC},
        {IBV_QP_EN_SQD_ASYNC_NOTIFY, DOCK_MOD_SQD_EVENT},
        {IBV_QP_AV | IBV_QP_DEST_QPN, DOCK_MOD_DEST},
    };

    for (size_t i = 0; i < sizeof map / sizeof *map; i++)
        if (mask & map[i].verbs)
            m->mask |= map[i].device;
    if (mask & IBV_QP_STATE)
        m->state = vb_device_state(a->qp_state);
    m->qkey = a->qkey;
    m->timeout = a->timeout;
    m->retry = a->retry_cnt;
    m->rnr_retry = a->rnr_retry;
    m->rnr_timer = a->min_rnr_timer;
    m->rd_atomic = a->max_rd_atomic;
    m->dest_rd_atomic = a->max_dest_rd_atomic;
    m->sqd_event = a->en_sqd_async_notify;
}

// Copy what `mask` names into the attributes that query shows.
static void remember(struct ibv_qp_attr *to, const struct ibv_qp_attr *a, int mask)
{
#define KEEP(bit, field)                                                                                     \
    if (mask & (bit))                                                                                        \
    to->field = a->field
    KEEP(IBV_QP_ACCESS_FLAGS, qp_access_flags);
    KEEP(IBV_QP_PKEY_INDEX, pkey_index);
    KEEP(IBV_QP_PORT, port_num);
    KEEP(IBV_QP_QKEY, qkey);
    KEEP(IBV_QP_AV, ah_attr);
    KEEP(IBV_QP_PATH_MTU, path_mtu);
    KEEP(IBV_QP_TIMEOUT, timeout);
    KEEP(IBV_QP_RETRY_CNT, retry_cnt);
    KEEP(IBV_QP_RNR_RETRY, rnr_retry);
    KEEP(IBV_QP_RQ_PSN, rq_psn);
    KEEP(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
    KEEP(IBV_QP_MIN_RNR_TIMER, min_rnr_timer);
    KEEP(IBV_QP_SQ_PSN, sq_psn);
    KEEP(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
    KEEP(IBV_QP_DEST_QPN, dest_qp_num);
#undef KEEP
    to->ah_attr.grh.flow_label &= 0xfffff; // what fits into the header
}

static int modify(struct vb_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    struct ibv_qp *q = &qp->ex.qp_base;
    struct ibv_qp_attr after = qp->now->attr;
    struct dock_qp_mod m = {0};
    int err = vb_qp_rules(q->qp_type, vb_qp_state(dock_qp_state(qp->dev)), attr, mask,
                          dock_dev_limits(vb_dev(q->context)));

    if (err)
        return err;
    if ((mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RESET)
        memset(&after, 0, sizeof after);
    remember(&after, attr, mask);
    translate(attr, mask, &m);
    memcpy(m.eid, after.ah_attr.grh.dgid.raw, sizeof m.eid); // a new address vector alone keeps the number
    m.dest_qp = after.dest_qp_num;
    err = vb_access(after.qp_access_flags & ~(unsigned)(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND),
                    "ibv_modify_qp", &m.access); // what a queue has no say in is no error
    if (err)
        return -err;
    err = dock_qp_modify(qp->dev, &m);
    if (err)
        return -err;
    qp->now->attr = after;
    if (mask & IBV_QP_STATE)
        q->state = attr->qp_state;
    return 0;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask)
{
    int err;

    if (!qp || !attr)
        return dock_refuse(EINVAL, "ibv_modify_qp: no queue or no attributes given");
    if (!vb_qp_known(qp))
        return vb_status(dock_refuse(ENOENT, "ibv_modify_qp: no queue has handle %#x", qp->handle));
    dock_lock(&vb_qp(qp)->now->modify);
    err = modify(vb_qp(qp), attr, attr_mask);
    dock_unlock(&vb_qp(qp)->now->modify);
    return err;
}

// ---- query, destroy, and what is not offered

int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
                 struct ibv_qp_init_attr *init_attr)
{
    struct vb_qp *v = vb_qp(qp);

    if (!qp || !attr || !init_attr)
        return dock_refuse(EINVAL, "ibv_query_qp: no queue or no place for the answer");
    if (!vb_qp_known(qp))
        return vb_status(dock_refuse(ENOENT, "ibv_query_qp: no queue has handle %#x", qp->handle));
    dock_lock(&v->now->modify);
    *attr = v->now->attr;
    dock_unlock(&v->now->modify);
    attr->qp_state = vb_qp_state(dock_qp_state(v->dev));
    attr->cur_qp_state = attr->qp_state;
    attr->path_mig_state = IBV_MIG_MIGRATED;
    attr->cap = v->cap;
    if (attr_mask & IBV_QP_STATE) // the mask is a hint otherwise: all attributes are at hand
        qp->state = attr->qp_state;
    *init_attr = (struct ibv_qp_init_attr){
        .qp_context = qp->qp_context,
        .send_cq = qp->send_cq,
        .recv_cq = qp->recv_cq,
        .srq = qp->srq,
        .cap = v->cap,
        .qp_type = qp->qp_type,
        .sq_sig_all = v->sq_sig_all,
    };
    return 0;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
    struct ibv_context *context;
    struct ibv_pd *pd;
    int err;

    if (!qp)
        return vb_status(dock_refuse(EINVAL, "ibv_destroy_qp: no queue given"));
    if (!vb_qp_known(qp))
        return vb_status(dock_refuse(ENOENT, "ibv_destroy_qp: no queue has handle %#x", qp->handle));
    context = qp->context;
    pd = qp->pd;
    if (vb_qp(qp)->target) {
        vb_target_close(vb_qp(qp));
    } else {
        err = dock_qp_destroy(vb_qp(qp)->dev);
        if (err)
            return vb_status(-err);
    }
    pthread_mutex_destroy(&vb_qp(qp)->own.modify);
    pthread_cond_destroy(&qp->cond);
    pthread_mutex_destroy(&qp->mutex);
    vb_free_builders(vb_qp(qp));
    if (pd) {
        vb_pd_free(pd, qp, vb_qp(qp)->custom);
        vb_pd_drop(pd);
    } else {
        free(vb_qp(qp));
    }
    vb_object_gone(context);
    return 0;
}

// No promise is made beyond column "strict" of the rules: a reader must not poll on payload bytes.
int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
    (void)qp;
    (void)op;
    (void)flags;
    return 0;
}

// Enhanced options of a connection: the vendor is known, and there are none. What two sides agree on is what
// both have: nothing.
int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    if (!qp || !ece || ece->comp_mask)
        return vb_status(dock_refuse(EINVAL, "ibv_set_ece: no queue, no options, or an unknown mask"));
    if (ece->options)
        return vb_status(dock_refuse(EOPNOTSUPP, "ibv_set_ece: options %#x of vendor %#x are not known",
                                     ece->options, ece->vendor_id));
    return 0;
}

int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    if (!qp || !ece)
        return vb_status(dock_refuse(EINVAL, "ibv_query_ece: no queue or no place for the answer"));
    *ece = (struct ibv_ece){.vendor_id = dock_profile()->vendor_id};
    return 0;
}
