// SPDX-License-Identifier: MIT
// Shared receive queues.
#include <stdlib.h>

#include "face/verbs/verbs_face.h"

static int check(const struct dock_limits *l, const struct ibv_srq_attr *a, const char *call)
{
    if (!a->max_wr || a->max_wr > l->max_srq_wr)
        return dock_refuse(-EINVAL, "%s: max_wr %u: 1 to %u are offered", call, a->max_wr, l->max_srq_wr);
    if (a->max_sge > l->max_sge)
        return dock_refuse(-EINVAL, "%s: max_sge %u: at most %u", call, a->max_sge, l->max_sge);
    return 0;
}

// `xrcd` and `cq`: of an XRC queue, else NULL.
static struct ibv_srq *create(struct ibv_pd *pd, void *srq_context, struct ibv_srq_attr *a,
                              struct ibv_xrcd *xrcd, struct ibv_cq *cq, const char *call)
{
    struct dock_srq_attr attr = {
        .pd = vb_pd(pd)->number, .max_wr = a->max_wr, .max_sge = a->max_sge, .lock_free = vb_pd(pd)->td};
    int err = vb_pd_known(pd) ? check(dock_dev_limits(vb_dev(pd->context)), a, call)
                              : dock_refuse(-ENOENT, "%s: no domain has handle %#x", call, pd->handle);
    struct vb_srq *srq;

    if (err)
        return vb_none(err);
    srq = calloc(1, sizeof *srq);
    if (!srq)
        return vb_none(dock_refuse(-ENOMEM, "%s: no memory", call));
    attr.max_wr = dock_profile_depth(a->max_wr, 1, dock_dev_limits(vb_dev(pd->context))->max_srq_wr);
    attr.user = srq;
    err = xrcd ? dock_xrc_srq_create(vb_dev(pd->context), &attr, vb_cq(cq)->dev,
                                     ((struct vb_xrcd *)xrcd)->number, &srq->dev)
               : dock_srq_create(vb_dev(pd->context), &attr, &srq->dev);
    if (err) {
        free(srq);
        return vb_none(err);
    }
    dock_srq_set_events(srq->dev, vb_context(pd->context)->events);
    srq->srq.context = pd->context;
    srq->srq.srq_context = srq_context;
    srq->srq.pd = pd;
    srq->srq.handle = dock_srq_number(srq->dev);
    srq->xrcd = xrcd;
    srq->cq = cq;
    if (xrcd)
        vb_xrcd_use(xrcd, 1);
    srq->max_wr = a->max_wr = attr.max_wr;
    srq->max_sge = a->max_sge;
    a->srq_limit = 0;
    vb_pd_use(pd);
    pthread_mutex_init(&srq->srq.mutex, NULL);
    pthread_cond_init(&srq->srq.cond, NULL);
    vb_object_made(pd->context);
    return &srq->srq;
}

// srq_limit is ignored at creation, as the manual says.
struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
    if (!pd || !attr)
        return vb_none(dock_refuse(-EINVAL, "ibv_create_srq: no domain or no attributes given"));
    return create(pd, attr->srq_context, &attr->attr, NULL, NULL, "ibv_create_srq");
}

struct ibv_srq *vb_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
    uint32_t known =
        IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
    uint32_t xrc = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
    bool is_xrc;

    if (!attr || attr->comp_mask & ~known ||
        ((attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) && attr->srq_type != IBV_SRQT_BASIC &&
         attr->srq_type != IBV_SRQT_XRC))
        return vb_none(
            dock_refuse(-EOPNOTSUPP, "ibv_create_srq_ex: basic and XRC shared receive queues are offered"));
    is_xrc = attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && attr->srq_type == IBV_SRQT_XRC;
    if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd || attr->pd->context != context)
        return vb_none(dock_refuse(-EINVAL, "ibv_create_srq_ex: no domain of this context given"));
    if (!is_xrc)
        return create(attr->pd, attr->srq_context, &attr->attr, NULL, NULL, "ibv_create_srq_ex");
    if ((attr->comp_mask & xrc) != xrc || !attr->xrcd || !attr->cq || attr->xrcd->context != context ||
        attr->cq->context != context || !vb_cq_known(attr->cq))
        return vb_none(dock_refuse(
            -EINVAL, "ibv_create_srq_ex: an XRC queue needs an XRC domain and a CQ of this context"));
    return create(attr->pd, attr->srq_context, &attr->attr, attr->xrcd, attr->cq, "ibv_create_srq_ex");
}

static int unknown(const struct ibv_srq *srq, const char *call)
{
    return vb_status(dock_refuse(ENOENT, "%s: no queue has handle %#x", call, srq->handle));
}

int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr, int srq_attr_mask)
{
    if (!srq || !srq_attr || srq_attr_mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
        return dock_refuse(EINVAL, "ibv_modify_srq: no queue, no attributes, or unknown mask %#x",
                           srq_attr_mask);
    if (!vb_srq_known(srq))
        return unknown(srq, "ibv_modify_srq");
    if (srq_attr_mask & IBV_SRQ_MAX_WR)
        return dock_refuse(
            EINVAL, "ibv_modify_srq: the depth is fixed at creation (IBV_DEVICE_SRQ_RESIZE is not set)");
    if (!(srq_attr_mask & IBV_SRQ_LIMIT))
        return 0;
    if (srq_attr->srq_limit > vb_srq(srq)->max_wr)
        return dock_refuse(EINVAL, "ibv_modify_srq: limit %u above the depth %u", srq_attr->srq_limit,
                           vb_srq(srq)->max_wr);
    return -dock_srq_set_limit(vb_srq(srq)->dev, srq_attr->srq_limit);
}

int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr)
{
    if (!srq || !srq_attr)
        return dock_refuse(EINVAL, "ibv_query_srq: no queue or no place for the answer");
    if (!vb_srq_known(srq))
        return unknown(srq, "ibv_query_srq");
    srq_attr->max_wr = vb_srq(srq)->max_wr;
    srq_attr->max_sge = vb_srq(srq)->max_sge;
    srq_attr->srq_limit = dock_srq_limit(vb_srq(srq)->dev);
    return 0;
}

int vb_get_srq_num(struct ibv_srq *srq, uint32_t *number)
{
    if (!srq || !number)
        return dock_refuse(EINVAL, "ibv_get_srq_num: no queue or no place for the answer");
    *number = dock_srq_number(vb_srq(srq)->dev);
    return 0;
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
    struct ibv_context *context;
    int err;

    if (!srq)
        return vb_status(dock_refuse(EINVAL, "ibv_destroy_srq: no queue given"));
    if (!vb_srq_known(srq))
        return unknown(srq, "ibv_destroy_srq");
    context = srq->context;
    err = vb_srq(srq)->xrcd ? dock_xrc_srq_destroy(vb_srq(srq)->dev) : dock_srq_destroy(vb_srq(srq)->dev);
    if (err)
        return vb_status(-err);
    if (vb_srq(srq)->xrcd)
        vb_xrcd_use(vb_srq(srq)->xrcd, -1);
    vb_pd_drop(srq->pd);
    pthread_cond_destroy(&srq->cond);
    pthread_mutex_destroy(&srq->mutex);
    free(srq);
    vb_object_gone(context);
    return 0;
}
