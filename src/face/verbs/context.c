// SPDX-License-Identifier: MIT
// Opening and closing the device. All contexts of a process share one device; each has its own queue of
// asynchronous events.
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "face/verbs/verbs_face.h"

static int make(struct vb_context *c)
{
    int err = dock_dev_get(&c->dev);

    if (err)
        return err;
    err = dock_events_open(c->dev, &c->events);
    if (err)
        dock_dev_put(c->dev);
    return err;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    struct vb_context *c;
    int err;

    if (!vb_is_our_device(device, "ibv_open_device"))
        return NULL;
    c = calloc(1, sizeof *c);
    if (!c)
        return vb_none(dock_refuse(-ENOMEM, "ibv_open_device: no memory for a context"));
    err = make(c);
    if (err) {
        free(c);
        return vb_none(err);
    }
    c->v.sz = sizeof c->v;
    c->v.context.device = device;
    c->v.context.cmd_fd = open("/dev/null", O_RDWR | O_CLOEXEC); // programs duplicate it
    c->v.context.async_fd = dock_events_fd(c->events);
    c->v.context.num_comp_vectors = 1;
    c->v.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
    pthread_mutex_init(&c->v.context.mutex, NULL);
    vb_fill_ops(&c->v);
    return &c->v.context;
}

// Objects that are still there keep context and device alive, as the manual allows: they are lost to the
// program until it ends, but a thread that still polls one of them does no harm.
int ibv_close_device(struct ibv_context *context)
{
    struct vb_context *c;
    uint32_t left;

    if (!context) {
        errno = dock_refuse(EINVAL, "ibv_close_device: no context given");
        return -1;
    }
    c = vb_context(context);
    left = dock_peek32(&c->objects);
    if (left) {
        dock_warn("ibv_close_device: %u objects of this context were not destroyed; they stay until the "
                  "process ends",
                  left);
        return 0;
    }
    dock_events_close(c->events);
    dock_dev_put(c->dev);
    if (context->cmd_fd >= 0)
        close(context->cmd_fd);
    pthread_mutex_destroy(&context->mutex);
    free(c);
    return 0;
}

// ---- sharing objects with another process by a command descriptor: there is none

struct ibv_context *ibv_import_device(int cmd_fd)
{
    return vb_none(
        dock_refuse(-EOPNOTSUPP, "ibv_import_device: descriptor %d: contexts cannot be shared", cmd_fd));
}

struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
    (void)context;
    return vb_none(dock_refuse(-EOPNOTSUPP, "ibv_import_pd: handle %u: domains cannot be shared", pd_handle));
}

struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
    (void)pd;
    return vb_none(dock_refuse(-EOPNOTSUPP, "ibv_import_mr: handle %u: regions cannot be shared", mr_handle));
}

struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t dm_handle)
{
    (void)context;
    return vb_none(
        dock_refuse(-EOPNOTSUPP, "ibv_import_dm: handle %u: there is no device memory", dm_handle));
}

void ibv_unimport_pd(struct ibv_pd *pd)
{
    (void)pd;
    dock_refuse(EOPNOTSUPP, "ibv_unimport_pd: nothing was imported");
}

void ibv_unimport_mr(struct ibv_mr *mr)
{
    (void)mr;
    dock_refuse(EOPNOTSUPP, "ibv_unimport_mr: nothing was imported");
}

void ibv_unimport_dm(struct ibv_dm *dm)
{
    (void)dm;
    dock_refuse(EOPNOTSUPP, "ibv_unimport_dm: nothing was imported");
}
