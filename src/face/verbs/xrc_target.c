// SPDX-License-Identifier: MIT
// XRC targets. A program never has a target itself but handles of it, of one context each: the first by
// making it, others by ibv_open_qp. Each handle modifies and shows the same queue and is told of its events;
// the target ends with the last one. A target of another process is that process's alone.
#include <stdlib.h>

#include "face/verbs/verbs_face.h"

struct vb_target {
    struct dock_qp *dev;
    uint64_t domain;
    struct vb_xrc_parts *parts;
    struct vb_qp_now now;
    uint32_t handles;
    struct vb_target *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of the list and the handles
static struct vb_target *targets;                        // of this process

// NULL and errno, as the next.
static struct vb_target *make(struct ibv_xrcd *xrcd)
{
    struct vb_target *t = calloc(1, sizeof *t);
    struct dock_qp_attr attr = {.service = DOCK_RC, .role = DOCK_RECEIVES, .xrc = DOCK_XRC_TGT};
    int err;

    if (!t)
        return vb_none(dock_refuse(-ENOMEM, "ibv_create_qp_ex: no memory"));
    t->domain = ((struct vb_xrcd *)xrcd)->number;
    t->parts = vb_xrc_parts_hold(xrcd);
    attr.xrcd = t->domain;
    attr.pd = t->parts->pd;
    attr.recv_cq = t->parts->cq;
    err = dock_qp_create(t->parts->dev, &attr, &t->dev);
    if (err) {
        vb_xrc_parts_drop(t->parts);
        free(t);
        return vb_none(err);
    }
    pthread_mutex_init(&t->now.modify, NULL);
    t->handles = 1;
    return t;
}

static void end(struct vb_target *t)
{
    dock_qp_destroy(t->dev);
    vb_xrc_parts_drop(t->parts);
    pthread_mutex_destroy(&t->now.modify);
    free(t);
}

static void drop(struct vb_target *t)
{
    struct vb_target **at = &targets;
    bool last;

    dock_lock(&lock);
    last = !--t->handles;
    while (last && *at != t)
        at = &(*at)->next;
    if (last)
        *at = t->next;
    dock_unlock(&lock);
    if (last)
        end(t);
}

// A handle for which the target was counted; it is not any more where that fails.
static struct ibv_qp *make_handle(struct vb_target *t, struct ibv_xrcd *xrcd, void *user)
{
    struct ibv_qp_init_attr_ex a = {.qp_type = IBV_QPT_XRC_RECV, .qp_context = user};
    struct vb_qp *qp = calloc(1, sizeof *qp);
    int err;

    if (!qp) {
        drop(t);
        return vb_none(dock_refuse(-ENOMEM, "ibv_open_qp: no memory"));
    }
    qp->dev = t->dev;
    vb_qp_fill(qp, xrcd->context, &a);
    qp->ex.qp_base.state = vb_qp_state(dock_qp_state(t->dev));
    qp->now = &t->now;
    qp->target = t;
    qp->xrcd = xrcd;
    // Last: from here on an event may be read that names the handle.
    err = dock_qp_listen(t->dev, vb_context(xrcd->context)->events, qp, &qp->listener);
    if (err) {
        free(qp);
        drop(t);
        return vb_none(err);
    }
    vb_xrcd_use(xrcd, 1);
    vb_object_made(xrcd->context);
    return &qp->ex.qp_base;
}

struct ibv_qp *vb_create_target(struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr)
{
    struct vb_target *t;

    if (attr->comp_mask != IBV_QP_INIT_ATTR_XRCD || !attr->xrcd || attr->xrcd->context != context)
        return vb_none(dock_refuse(
            -EINVAL, "ibv_create_qp_ex: an XRC target needs an XRC domain of this context alone"));
    t = make(attr->xrcd);
    if (!t)
        return NULL;
    dock_lock(&lock);
    t->next = targets;
    targets = t;
    dock_unlock(&lock);
    return make_handle(t, attr->xrcd, attr->qp_context);
}

// ---- opening

static int check(struct ibv_context *context, const struct ibv_qp_open_attr *a)
{
    uint32_t all = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;

    if (!a || a->comp_mask & ~(all | IBV_QP_OPEN_ATTR_CONTEXT))
        return dock_refuse(-EOPNOTSUPP, "ibv_open_qp: no attributes, or an unknown mask %#x",
                           a ? a->comp_mask : 0);
    if ((a->comp_mask & all) != all)
        return dock_refuse(-EINVAL, "ibv_open_qp: number, XRC domain and type are wanted");
    if (!a->xrcd || a->xrcd->context != context)
        return dock_refuse(-EINVAL, "ibv_open_qp: the XRC domain is of another context");
    if (a->qp_type != IBV_QPT_XRC_RECV)
        return dock_refuse(-EINVAL, "ibv_open_qp: type %d: only XRC targets can be opened", (int)a->qp_type);
    return 0;
}

// Found ones are counted, and stay until that is taken back.
static struct vb_target *hold(uint64_t domain, uint32_t number)
{
    struct vb_target *t;

    dock_lock(&lock);
    for (t = targets; t && (t->domain != domain || dock_qp_number(t->dev) != number); t = t->next)
        ;
    if (t)
        t->handles++;
    dock_unlock(&lock);
    return t;
}

struct ibv_qp *vb_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
    int err = check(context, attr);
    struct vb_target *t;

    if (err)
        return vb_none(err);
    t = hold(((struct vb_xrcd *)attr->xrcd)->number, attr->qp_num);
    if (!t)
        return vb_none(dock_refuse(-EINVAL,
                                   "ibv_open_qp: this process has made no target %#x in this domain (one of "
                                   "another process is that process's alone)",
                                   attr->qp_num));
    return make_handle(t, attr->xrcd, attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT ? attr->qp_context : NULL);
}

void vb_target_close(struct vb_qp *qp)
{
    dock_listener_end(qp->listener);
    drop(qp->target);
    vb_xrcd_use(qp->xrcd, -1);
}
