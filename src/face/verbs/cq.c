// SPDX-License-Identifier: MIT
// Completion channels and completion queues; polling is in verbs_data.c and cq_ex.c.
#include <stdlib.h>

#include "face/verbs/verbs_face.h"

// ---- channels

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    struct vb_chan *chan;
    int err;

    if (!context)
        return vb_none(dock_refuse(-EINVAL, "ibv_create_comp_channel: no context given"));
    chan = calloc(1, sizeof *chan);
    if (!chan)
        return vb_none(dock_refuse(-ENOMEM, "ibv_create_comp_channel: no memory"));
    err = dock_chan_create(vb_dev(context), &chan->dev);
    if (err) {
        free(chan);
        return vb_none(err);
    }
    chan->chan.context = context;
    chan->chan.fd = dock_chan_fd(chan->dev);
    vb_object_made(context);
    return &chan->chan;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
    struct ibv_context *context;
    int err;

    if (!channel)
        return dock_refuse(EINVAL, "ibv_destroy_comp_channel: no channel given");
    context = channel->context;
    err = dock_chan_destroy(vb_chan(channel)->dev);
    if (err)
        return -err;
    free(channel);
    vb_object_gone(context);
    return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
    void *user;
    int err;

    if (!channel || !cq || !cq_context) {
        errno = dock_refuse(EINVAL, "ibv_get_cq_event: no channel, or no place for queue and context");
        return -1;
    }
    err = dock_chan_get(vb_chan(channel)->dev, &user);
    if (err) {
        errno = -err;
        return -1;
    }
    *cq = user;
    *cq_context = (*cq)->cq_context;
    return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
    if (!cq || !nevents)
        return;
    // First: with the device's count the queue may be gone.
    vb_events_completed(&cq->mutex, &cq->cond, &cq->comp_events_completed, nevents);
    dock_cq_ack(vb_cq(cq)->dev, nevents);
}

// ---- queues

static int check_cq(struct ibv_context *context, const struct ibv_cq_init_attr_ex *a, const char *call)
{
    uint32_t most = dock_dev_limits(vb_dev(context))->max_cqe;

    if (!a->cqe || a->cqe > most)
        return dock_refuse(-EINVAL, "%s: %u entries: 1 to %u are offered", call, a->cqe, most);
    if (a->comp_vector >= (uint32_t)context->num_comp_vectors)
        return dock_refuse(-EINVAL, "%s: completion vector %u: there are %d", call, a->comp_vector,
                           context->num_comp_vectors);
    if (a->channel && a->channel->context != context)
        return dock_refuse(-EINVAL, "%s: the channel belongs to another context", call);
    return 0;
}

#define WC_STAMPS (IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)

static struct vb_cq *create(struct ibv_context *context, const struct ibv_cq_init_attr_ex *a,
                            const char *call)
{
    struct dock_cq_attr attr = {
        .depth = dock_profile_depth(a->cqe, 1, dock_dev_limits(vb_dev(context))->max_cqe),
        .chan = a->channel ? vb_chan(a->channel)->dev : NULL,
        .lock_free = (a->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED) ||
                     (a->parent_domain && vb_pd(a->parent_domain)->td),
        .ignore_overrun = a->flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN,
        .stamps = a->wc_flags & WC_STAMPS,
    };
    int err = check_cq(context, a, call);
    struct vb_cq *cq;

    if (err)
        return vb_none(err);
    cq = calloc(1, sizeof *cq);
    if (!cq)
        return vb_none(dock_refuse(-ENOMEM, "%s: no memory", call));
    attr.user = cq;
    err = dock_cq_create(vb_dev(context), &attr, &cq->dev);
    if (err) {
        free(cq);
        return vb_none(err);
    }
    dock_cq_set_events(cq->dev, vb_context(context)->events);
    cq->ex.context = context;
    cq->ex.channel = a->channel;
    cq->ex.cq_context = a->cq_context;
    cq->ex.cqe = (int)dock_cq_depth(cq->dev);
    cq->ex.handle = dock_cq_number(cq->dev);
    pthread_mutex_init(&cq->ex.mutex, NULL);
    pthread_cond_init(&cq->ex.cond, NULL);
    vb_object_made(context);
    return cq;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
                             struct ibv_comp_channel *channel, int comp_vector)
{
    struct ibv_cq_init_attr_ex attr = {
        .cqe = cqe < 0 ? 0 : (uint32_t)cqe,
        .cq_context = cq_context,
        .channel = channel,
        .comp_vector = (uint32_t)comp_vector,
    };

    if (!context)
        return vb_none(dock_refuse(-EINVAL, "ibv_create_cq: no context given"));
    return (struct ibv_cq *)create(context, &attr, "ibv_create_cq");
}

#define WC_FLAGS_OFFERED (IBV_WC_STANDARD_FLAGS | WC_STAMPS)
#define CQ_FLAGS_OFFERED ((uint32_t)(IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN))

struct ibv_cq_ex *vb_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
    struct ibv_cq_init_attr_ex a = *attr;
    struct vb_cq *cq;

    if (a.comp_mask & ~(uint32_t)(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD))
        return vb_none(dock_refuse(
            -EOPNOTSUPP, "ibv_create_cq_ex: mask %#x: flags and parent domain are offered", a.comp_mask));
    if (!(a.comp_mask & IBV_CQ_INIT_ATTR_MASK_PD))
        a.parent_domain = NULL;
    else if (!a.parent_domain || a.parent_domain->context != context || !vb_pd(a.parent_domain)->parent)
        return vb_none(dock_refuse(-EINVAL, "ibv_create_cq_ex: no parent domain of this context given"));
    if (a.wc_flags & ~(uint64_t)WC_FLAGS_OFFERED)
        return vb_none(dock_refuse(-EOPNOTSUPP, "ibv_create_cq_ex: wc_flags %#llx are not offered",
                                   (unsigned long long)(a.wc_flags & ~(uint64_t)WC_FLAGS_OFFERED)));
    if (!(a.comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS))
        a.flags = 0;
    else if (a.flags & ~CQ_FLAGS_OFFERED)
        return vb_none(dock_refuse(-EINVAL, "ibv_create_cq_ex: unknown flags %#x", a.flags));
    cq = create(context, &a, "ibv_create_cq_ex");
    if (!cq)
        return NULL;
    vb_fill_cq_readers(cq, a.wc_flags);
    cq->parent = a.parent_domain;
    if (cq->parent)
        vb_pd_use(cq->parent);
    return &cq->ex;
}

int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
    uint32_t depth;
    int err;

    if (!cq || cqe < 1)
        return dock_refuse(EINVAL, "ibv_resize_cq: no queue, or %d entries", cqe);
    if (!vb_cq_known(cq))
        return vb_status(dock_refuse(ENOENT, "ibv_resize_cq: no queue has handle %#x", cq->handle));
    depth = dock_profile_depth((uint32_t)cqe, 1, dock_dev_limits(vb_dev(cq->context))->max_cqe);
    err = dock_cq_resize(vb_cq(cq)->dev, depth);
    if (!err)
        cq->cqe = (int)depth;
    return err == -EBUSY ? EINVAL : -err; // as the kernel: a size that does not hold what stands there
}

int vb_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
    if (!cq || !attr || attr->attr_mask != IBV_CQ_ATTR_MODERATE)
        return vb_status(dock_refuse(EINVAL, "ibv_modify_cq: no queue, or a mask other than moderation"));
    if (!vb_cq_known(cq))
        return vb_status(dock_refuse(ENOENT, "ibv_modify_cq: no queue has handle %#x", cq->handle));
    dock_cq_moderate(vb_cq(cq)->dev, attr->moderate.cq_count, attr->moderate.cq_period);
    return 0;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
    struct ibv_context *context;
    int err;

    if (!cq)
        return vb_status(dock_refuse(EINVAL, "ibv_destroy_cq: no queue given"));
    if (!vb_cq_known(cq))
        return vb_status(dock_refuse(ENOENT, "ibv_destroy_cq: no queue has handle %#x", cq->handle));
    context = cq->context;
    err = dock_cq_destroy(vb_cq(cq)->dev);
    if (err)
        return vb_status(-err);
    if (vb_cq(cq)->parent)
        vb_pd_drop(vb_cq(cq)->parent);
    pthread_cond_destroy(&cq->cond);
    pthread_mutex_destroy(&cq->mutex);
    free(cq);
    vb_object_gone(context);
    return 0;
}
