// SPDX-License-Identifier: MIT
// XRC domains. Targets and shared queues that meet in one belong to one context; a file names a domain of it.
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "face/verbs/verbs_face.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of the list and the handles
static struct vb_xrcd *domains;
static uint64_t given;

// What a target must have and never uses: it reaches memory by the domain of the shared queue, and completes
// nothing itself.
static int make_parts(struct dock_dev *dev, struct vb_xrcd *x)
{
    struct dock_cq_attr attr = {.depth = 1};
    int err = dock_pd_create(dev, &x->pd);

    if (err)
        return err;
    err = dock_cq_create(dev, &attr, &x->cq);
    if (err)
        dock_pd_destroy(dev, x->pd);
    return err;
}

static struct vb_xrcd *find(struct ibv_context *context, const struct stat *file)
{
    for (struct vb_xrcd *x = domains; x; x = x->next)
        if (x->inode == file->st_ino && x->device == file->st_dev && x->xrcd.context == context)
            return x;
    return NULL;
}

static int make(struct ibv_context *context, const struct stat *file, struct vb_xrcd **out)
{
    struct vb_xrcd *x = calloc(1, sizeof *x);
    int err;

    if (!x)
        return dock_refuse(-ENOMEM, "ibv_open_xrcd: no memory");
    err = make_parts(vb_dev(context), x);
    if (err) {
        free(x);
        return err;
    }
    x->xrcd.context = context;
    x->handles = 1;
    x->number = (uint64_t)dock_dev_who(vb_dev(context)) << 32 | ++given;
    x->device = file->st_dev;
    x->inode = file->st_ino;
    x->next = domains;
    domains = x;
    vb_object_made(context);
    *out = x;
    return 0;
}

// The file of an attribute; none: an inode of 0.
static int file_of(const struct ibv_xrcd_init_attr *a, struct stat *file)
{
    uint32_t both = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;

    memset(file, 0, sizeof *file);
    if (!a || a->comp_mask != both || a->oflags & ~(O_CREAT | O_EXCL))
        return dock_refuse(-EINVAL,
                           "ibv_open_xrcd: both a descriptor (or -1) and O_CREAT, O_EXCL are wanted");
    if (a->fd == -1)
        return a->oflags & O_CREAT
                   ? 0
                   : dock_refuse(-EINVAL, "ibv_open_xrcd: without a file it can only be made");
    return fstat(a->fd, file) ? dock_refuse(-EBADF, "ibv_open_xrcd: descriptor %d is not open", a->fd) : 0;
}

static int open_locked(struct ibv_context *context, const struct stat *file, int oflags, struct vb_xrcd **out)
{
    struct vb_xrcd *x = file->st_ino ? find(context, file) : NULL;

    if (!x && !(oflags & O_CREAT))
        return dock_refuse(-ENOENT, "ibv_open_xrcd: no XRC domain belongs to this file");
    if (x && oflags & O_EXCL)
        return dock_refuse(-EEXIST, "ibv_open_xrcd: the file has an XRC domain already");
    if (x) {
        x->handles++;
        *out = x;
        return 0;
    }
    return make(context, file, out);
}

struct ibv_xrcd *vb_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
    struct vb_xrcd *x = NULL;
    struct stat file;
    int err = file_of(attr, &file);

    if (err)
        return vb_none(err);
    pthread_mutex_lock(&lock);
    err = open_locked(context, &file, attr->oflags, &x);
    pthread_mutex_unlock(&lock);
    return err ? vb_none(err) : &x->xrcd;
}

static void end(struct vb_xrcd *x)
{
    struct vb_xrcd **at = &domains;
    struct dock_dev *dev = vb_dev(x->xrcd.context);

    while (*at != x)
        at = &(*at)->next;
    *at = x->next;
    dock_cq_destroy(x->cq);
    dock_pd_destroy(dev, x->pd);
    vb_object_gone(x->xrcd.context);
    free(x);
}

int vb_close_xrcd(struct ibv_xrcd *xrcd)
{
    struct vb_xrcd *x = (struct vb_xrcd *)xrcd;
    int err = 0;

    pthread_mutex_lock(&lock);
    if (x->handles > 1)
        x->handles--;
    else if (dock_peek32(&x->users))
        err = dock_refuse(EBUSY, "ibv_close_xrcd: %u queues still belong to the domain",
                          dock_peek32(&x->users));
    else
        end(x);
    pthread_mutex_unlock(&lock);
    return vb_status(err);
}

void vb_xrc_target(struct ibv_xrcd *xrcd, struct dock_qp_attr *attr)
{
    struct vb_xrcd *x = (struct vb_xrcd *)xrcd;

    attr->pd = x->pd;
    attr->recv_cq = x->cq;
    attr->xrcd = x->number;
    attr->xrc = DOCK_XRC_TGT;
    attr->role = DOCK_RECEIVES;
}

void vb_xrcd_use(struct ibv_xrcd *xrcd, int by)
{
    vb_count(&((struct vb_xrcd *)xrcd)->users, by);
}
