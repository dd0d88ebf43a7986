// SPDX-License-Identifier: MIT
// Contexts. All contexts of a process share one device and one protection domain: URMA protects memory by
// tokens, not by domains. Each context has its own queue of asynchronous events.
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "face/urma/urma_face.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned contexts; // under lock
static uint32_t domain;   // written under lock, constant while a context lives

uint32_t ur_pd(void)
{
    return domain;
}

static int join(struct ur_context *c)
{
    int err = dock_dev_get(&c->dev);

    if (err)
        return err;
    dock_lock(&lock);
    if (contexts == 0)
        err = dock_pd_create(c->dev, &domain);
    contexts += !err;
    dock_unlock(&lock);
    if (err)
        dock_dev_put(c->dev);
    return err;
}

static void leave(struct ur_context *c)
{
    dock_lock(&lock);
    if (--contexts == 0)
        dock_pd_destroy(c->dev, domain);
    dock_unlock(&lock);
    dock_dev_put(c->dev);
}

urma_context_t *urma_create_context(urma_device_t *dev, uint32_t eid_index)
{
    struct ur_context *c;
    int err;

    if (!ur_is_our_device(dev, "urma_create_context"))
        return ur_none(-EINVAL);
    if (!dock_gid_filled(eid_index))
        return ur_none(dock_refuse(-EIO, "urma_create_context: there is no EID at index %u", eid_index));
    c = calloc(1, sizeof *c);
    if (!c)
        return ur_none(dock_no_memory("a context"));
    err = join(c);
    if (err)
        goto no_device;
    err = dock_events_open(c->dev, &c->events);
    if (err)
        goto no_events;
    dock_events_skip(c->events, 1u << DOCK_EVENT_COMM_EST | 1u << DOCK_EVENT_QP_LAST_WQE |
                                    1u << DOCK_EVENT_SQ_DRAINED); // URMA has no words for them
    c->ctx = (urma_context_t){.dev = dev,
                              .ops = &ur_ops,
                              .dev_fd = dock_open("/dev/null", O_RDWR | O_CLOEXEC),
                              .async_fd = dock_events_fd(c->events),
                              .eid_index = eid_index,
                              .uasid = UR_UASID,
                              .aggr_mode = URMA_AGGR_MODE_STANDALONE};
    memcpy(c->ctx.eid.raw, dock_identity()->gid[eid_index].raw, sizeof c->ctx.eid.raw);
    pthread_mutex_init(&c->ctx.mutex, NULL);
    ur_use(&c->ctx.ref);
    return &c->ctx;

no_events:
    leave(c);
no_device:
    free(c);
    return ur_none(err);
}

urma_status_t urma_delete_context(urma_context_t *ctx)
{
    struct ur_context *c = ur_context(ctx);
    unsigned long users;

    if (!ctx)
        return dock_refuse(URMA_EINVAL, "urma_delete_context: no context given");
    users = ur_users(&ctx->ref);
    if (users > 1)
        return dock_refuse(URMA_EAGAIN, "urma_delete_context: %lu objects of this context still live",
                           users - 1);
    dock_events_close(c->events);
    leave(c);
    if (ctx->dev_fd >= 0)
        dock_close(ctx->dev_fd);
    pthread_mutex_destroy(&ctx->mutex);
    free(c);
    return URMA_SUCCESS;
}

urma_status_t urma_set_context_opt(urma_context_t *ctx, urma_opt_name_t opt_name, const void *opt_value,
                                   size_t opt_len)
{
    if (!ctx || !opt_value)
        return dock_refuse(URMA_EINVAL, "urma_set_context_opt: no context, or no value");
    return dock_refuse(
        URMA_EINVAL,
        "urma_set_context_opt: option %d of %zu bytes: only a device that aggregates others has "
        "options, this one stands alone",
        (int)opt_name, opt_len);
}

urma_status_t urma_get_uasid(uint32_t *uasid)
{
    if (!uasid)
        return dock_refuse(URMA_EINVAL, "urma_get_uasid: no place for the answer");
    if (!ur_started("urma_get_uasid"))
        return URMA_FAIL;
    *uasid = UR_UASID;
    return URMA_SUCCESS;
}
