// SPDX-License-Identifier: MIT
// XRC domains. One that a file names is the same for all processes of the host that open it by that file;
// here it stands once for each context.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "face/verbs/verbs_face.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of the list and the handles
static struct vb_xrcd *domains;
static uint64_t given;

// As long as a domain is open its file's number must not be another file's. A descriptor that only names the
// file: closing it takes no record lock of the program away.
static int keep_file(int fd, int *out)
{
    char path[32];
    int kept;

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    kept = dock_open(path, O_PATH | O_CLOEXEC);
    if (kept < 0 && errno != ENOENT) // where there is no /proc, the program keeps its own
        return dock_refuse(-errno, "ibv_open_xrcd: the file cannot be kept: %s", strerror(errno));
    *out = kept;
    return 0;
}

static int make_parts(struct dock_dev *dev, struct vb_xrc_parts **out)
{
    struct vb_xrc_parts *p = calloc(1, sizeof *p);
    struct dock_cq_attr attr = {.depth = 1};
    int err;

    if (!p)
        return dock_refuse(-ENOMEM, "ibv_open_xrcd: no memory");
    *p = (struct vb_xrc_parts){.dev = dev, .users = 1};
    err = dock_pd_create(dev, &p->pd);
    if (err)
        goto no_domain;
    err = dock_cq_create(dev, &attr, &p->cq);
    if (err)
        goto no_queue;
    *out = p;
    return 0;
no_queue:
    dock_pd_destroy(dev, p->pd);
no_domain:
    free(p);
    return err;
}

// The lock is held.
static void drop_parts(struct vb_xrc_parts *p)
{
    if (--p->users)
        return;
    dock_cq_destroy(p->cq);
    dock_pd_destroy(p->dev, p->pd);
    free(p);
}

static struct vb_xrcd *find(struct ibv_context *context, const struct dock_domain_name *name)
{
    for (struct vb_xrcd *x = domains; x; x = x->next)
        if (x->inode == name->inode && x->device == name->device && x->xrcd.context == context)
            return x;
    return NULL;
}

// The number of a domain: of a file's the host's, of others one of our own, which is never below 2^32.
static int take_number(struct dock_dev *dev, const struct dock_domain_name *name, uint64_t *number)
{
    if (name->inode)
        return dock_xrc_domain_open(dev, name, number);
    *number = (uint64_t)dock_dev_who(dev) << 32 | ++given;
    return 0;
}

static void give_number(struct dock_dev *dev, const struct vb_xrcd *x)
{
    if (x->inode)
        dock_xrc_domain_close(dev, x->number);
    if (x->file >= 0)
        dock_close(x->file);
}

static int make(struct ibv_context *context, const struct dock_domain_name *name, int fd,
                struct vb_xrcd **out)
{
    struct vb_xrcd *x = calloc(1, sizeof *x);
    struct dock_dev *dev = vb_dev(context);
    int err = 0;

    if (!x)
        return dock_refuse(-ENOMEM, "ibv_open_xrcd: no memory");
    x->device = name->device;
    x->inode = name->inode;
    x->file = -1;
    if (name->inode)
        err = keep_file(fd, &x->file);
    if (!err)
        err = take_number(dev, name, &x->number);
    if (err)
        goto no_number;
    err = make_parts(dev, &x->parts);
    if (err)
        goto no_parts;
    x->xrcd.context = context;
    x->handles = 1;
    x->next = domains;
    domains = x;
    vb_object_made(context);
    *out = x;
    return 0;
no_parts:
    give_number(dev, x);
    free(x);
    return err;
no_number:
    if (x->file >= 0)
        dock_close(x->file);
    free(x);
    return err;
}

// What the attributes name; no file: an inode of 0.
static int name_of(const struct ibv_xrcd_init_attr *a, struct dock_domain_name *name)
{
    uint32_t both = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
    struct stat file = {0};

    if (!a || a->comp_mask != both || a->oflags & ~(O_CREAT | O_EXCL))
        return dock_refuse(-EINVAL,
                           "ibv_open_xrcd: both a descriptor (or -1) and O_CREAT, O_EXCL are wanted");
    if (a->fd == -1 && !(a->oflags & O_CREAT))
        return dock_refuse(-EINVAL, "ibv_open_xrcd: without a file it can only be made");
    if (a->fd != -1 && fstat(a->fd, &file))
        return dock_refuse(-errno, "ibv_open_xrcd: descriptor %d cannot be looked at: %s", a->fd,
                           strerror(errno));
    *name = (struct dock_domain_name){.device = file.st_dev,
                                      .inode = file.st_ino,
                                      .create = a->oflags & O_CREAT,
                                      .exclusive = a->oflags & O_EXCL};
    return 0;
}

static int open_locked(struct ibv_context *context, const struct dock_domain_name *name, int fd,
                       struct vb_xrcd **out)
{
    struct vb_xrcd *x = name->inode ? find(context, name) : NULL;

    if (!x)
        return make(context, name, fd, out);
    if (name->exclusive)
        return dock_refuse(-EEXIST, "ibv_open_xrcd: the file has an XRC domain already");
    x->handles++;
    *out = x;
    return 0;
}

struct ibv_xrcd *vb_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
    struct dock_domain_name name = {0};
    struct vb_xrcd *x = NULL;
    int err = name_of(attr, &name);

    if (err)
        return vb_none(err);
    dock_lock(&lock);
    err = open_locked(context, &name, attr->fd, &x);
    dock_unlock(&lock);
    return err ? vb_none(err) : &x->xrcd;
}

static void end(struct vb_xrcd *x)
{
    struct vb_xrcd **at = &domains;
    struct dock_dev *dev = vb_dev(x->xrcd.context);

    while (*at != x)
        at = &(*at)->next;
    *at = x->next;
    drop_parts(x->parts);
    give_number(dev, x);
    vb_object_gone(x->xrcd.context);
    free(x);
}

int vb_close_xrcd(struct ibv_xrcd *xrcd)
{
    struct vb_xrcd *x = (struct vb_xrcd *)xrcd;
    int err = 0;

    dock_lock(&lock);
    if (x->handles > 1)
        x->handles--;
    else if (dock_peek32(&x->users))
        err = dock_refuse(EBUSY, "ibv_close_xrcd: %u queues still belong to the domain",
                          dock_peek32(&x->users));
    else
        end(x);
    dock_unlock(&lock);
    return vb_status(err);
}

struct vb_xrc_parts *vb_xrc_parts_hold(struct ibv_xrcd *xrcd)
{
    struct vb_xrc_parts *p = ((struct vb_xrcd *)xrcd)->parts;

    dock_lock(&lock);
    p->users++;
    dock_unlock(&lock);
    return p;
}

void vb_xrc_parts_drop(struct vb_xrc_parts *parts)
{
    dock_lock(&lock);
    drop_parts(parts);
    dock_unlock(&lock);
}

void vb_xrcd_use(struct ibv_xrcd *xrcd, int by)
{
    vb_count(&((struct vb_xrcd *)xrcd)->users, by);
}
