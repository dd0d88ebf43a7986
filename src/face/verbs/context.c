// SPDX-License-Identifier: MIT
// Opening and closing the device. All contexts of a process share one device; each has its own queue of
// asynchronous events.
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/descriptor.h"
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

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct vb_context *list;

static void enlist(struct vb_context *c)
{
    dock_lock(&list_lock);
    c->next = list;
    list = c;
    dock_unlock(&list_lock);
}

static void delist(struct vb_context *c)
{
    struct vb_context **at = &list;

    dock_lock(&list_lock);
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    dock_unlock(&list_lock);
}

bool vb_context_of(int fd, bool (*same)(int, int))
{
    struct vb_context *c;

    dock_lock(&list_lock);
    for (c = list; c && !same(c->v.context.cmd_fd, fd); c = c->next)
        ;
    dock_unlock(&list_lock);
    return c != NULL;
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
    c->v.context.cmd_fd = dock_fd_own(memfd_create("drydock-context", MFD_CLOEXEC)); // programs duplicate it
    c->v.context.async_fd = dock_events_fd(c->events);
    c->v.context.num_comp_vectors = 1;
    c->v.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
    pthread_mutex_init(&c->v.context.mutex, NULL);
    vb_fill_ops(&c->v);
    enlist(c);
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
    delist(c);
    dock_events_close(c->events);
    dock_dev_put(c->dev);
    if (context->cmd_fd >= 0)
        dock_close(context->cmd_fd);
    pthread_mutex_destroy(&context->mutex);
    free(c);
    return 0;
}
