// SPDX-License-Identifier: MIT
// Protection domains, memory regions, memory windows.
#include <stdlib.h>

#include "face/verbs/verbs_face.h"

// ---- domains

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    struct vb_pd *pd;
    int err;

    if (!context)
        return vb_none(dock_refuse(-EINVAL, "ibv_alloc_pd: no context given"));
    pd = calloc(1, sizeof *pd);
    if (!pd)
        return vb_none(dock_refuse(-ENOMEM, "ibv_alloc_pd: no memory"));
    err = dock_pd_create(vb_dev(context), &pd->number);
    if (err) {
        free(pd);
        return vb_none(err);
    }
    pd->owner = context;
    pd->pd.context = context;
    pd->pd.handle = pd->number;
    vb_object_made(context);
    return &pd->pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
    struct ibv_context *owner;
    int err;

    if (!pd)
        return vb_status(dock_refuse(EINVAL, "ibv_dealloc_pd: no domain given"));
    owner = vb_pd(pd)->owner;
    if (pd->context != owner || !vb_pd_known(pd))
        return vb_status(dock_refuse(ENOENT, "ibv_dealloc_pd: its context has no domain %u", pd->handle));
    if (dock_peek32(&vb_pd(pd)->users))
        return vb_status(dock_refuse(EBUSY, "ibv_dealloc_pd: %u objects still belong to domain %u",
                                     dock_peek32(&vb_pd(pd)->users), pd->handle));
    if (vb_pd(pd)->imported)
        return vb_status(dock_refuse(EINVAL, "ibv_dealloc_pd: the domain was imported, it is another's"));
    if (vb_pd(pd)->parent) {
        vb_free_parent_domain(vb_pd(pd));
        return 0;
    }
    err = dock_pd_destroy(vb_dev(owner), vb_pd(pd)->number);
    if (err)
        return vb_status(-err);
    free(pd);
    vb_object_gone(owner);
    return 0;
}

// ---- regions

#define NEED_LOCAL_WRITE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

int vb_access(unsigned int flags, const char *call, uint32_t *out)
{
    static const struct {
        unsigned int verbs, device;
    } map[] = {
        {IBV_ACCESS_LOCAL_WRITE, DOCK_ACCESS_LOCAL_WRITE},
        {IBV_ACCESS_REMOTE_READ, DOCK_ACCESS_REMOTE_READ},
        {IBV_ACCESS_REMOTE_WRITE, DOCK_ACCESS_REMOTE_WRITE},
        {IBV_ACCESS_REMOTE_ATOMIC, DOCK_ACCESS_REMOTE_ATOMIC},
        {IBV_ACCESS_MW_BIND, DOCK_ACCESS_MW_BIND},
        {IBV_ACCESS_ZERO_BASED, DOCK_ACCESS_ZERO_BASED},
        {IBV_ACCESS_RELAXED_ORDERING, DOCK_ACCESS_RELAXED},
        {IBV_ACCESS_ON_DEMAND, DOCK_ACCESS_ON_DEMAND},
    };
    unsigned int known = IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE;
    uint32_t access = 0;

    for (size_t i = 0; i < sizeof map / sizeof *map; i++) {
        known |= map[i].verbs;
        if (flags & map[i].verbs)
            access |= map[i].device;
    }
    if (flags & ~known)
        return dock_refuse(-EINVAL, "%s: unknown access flags %#x", call, flags & ~known);
    *out = access;
    return 0;
}

int vb_region_access(unsigned int flags, const char *call, uint32_t *out)
{
    if ((flags & NEED_LOCAL_WRITE) && !(flags & IBV_ACCESS_LOCAL_WRITE))
        return dock_refuse(-EINVAL, "%s: remote write and atomic access need local write as well", call);
    return vb_access(flags, call, out);
}

static struct ibv_mr *register_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t va,
                                  unsigned int flags, const char *call)
{
    uint32_t access = 0;
    struct vb_mr *mr;
    int err;

    if (!pd || !vb_pd_known(pd))
        return vb_none(dock_refuse(pd ? -ENOENT : -EINVAL, "%s: no domain given", call));
    err = vb_region_access(flags, call, &access);
    if (err)
        return vb_none(err);
    mr = calloc(1, sizeof *mr);
    if (!mr)
        return vb_none(dock_refuse(-ENOMEM, "%s: no memory", call));
    if (flags & IBV_ACCESS_ZERO_BASED)
        va = 0;
    err = dock_mr_register(vb_dev(pd->context), vb_pd(pd)->number, (uintptr_t)addr, length, va, access,
                           &mr->seg);
    if (err) {
        free(mr);
        return vb_none(err);
    }
    mr->mr = (struct ibv_mr){
        .context = pd->context,
        .pd = pd,
        .addr = addr,
        .length = length,
        .handle = mr->seg->tid,
        .lkey = mr->seg->lkey,
        .rkey = mr->seg->rkey,
    };
    vb_pd_use(pd);
    vb_object_made(pd->context);
    return &mr->mr;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    return register_mr(pd, addr, length, (uintptr_t)addr, (unsigned int)access, "ibv_reg_mr");
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
    return register_mr(pd, addr, length, iova, (unsigned int)access, "ibv_reg_mr_iova");
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                unsigned int access)
{
    return register_mr(pd, addr, length, iova, access, "ibv_reg_mr_iova2");
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
                                 int access)
{
    (void)pd;
    (void)offset;
    (void)length;
    (void)iova;
    (void)access;
    return vb_none(
        dock_refuse(-EOPNOTSUPP, "ibv_reg_dmabuf_mr: descriptor %d: dma-buf memory is not offered", fd));
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
    struct ibv_context *context;
    int err;

    if (!mr)
        return vb_status(dock_refuse(EINVAL, "ibv_dereg_mr: no region given"));
    if (!vb_mr_known(mr))
        return vb_status(dock_refuse(ENOENT, "ibv_dereg_mr: no region has handle %#x", mr->handle));
    if (vb_mr(mr)->imported)
        return vb_status(dock_refuse(EINVAL, "ibv_dereg_mr: the region was imported, it is another's"));
    context = mr->context;
    err = dock_mr_deregister(vb_mr(mr)->seg);
    if (err)
        return vb_status(-err);
    if (vb_mr(mr)->dm)
        vb_count(&vb_mr(mr)->dm->users, -1);
    vb_pd_drop(mr->pd);
    free(mr);
    vb_object_gone(context);
    return 0;
}

// ---- windows

struct ibv_mw *vb_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
    struct vb_mw *mw;
    int err;

    if (!pd || !vb_pd_known(pd) || (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2))
        return vb_none(
            dock_refuse(-EINVAL, "ibv_alloc_mw: no domain, or window type %d (1 and 2 exist)", (int)type));
    mw = calloc(1, sizeof *mw);
    if (!mw)
        return vb_none(dock_refuse(-ENOMEM, "ibv_alloc_mw: no memory"));
    err = dock_mw_create(vb_dev(pd->context), vb_pd(pd)->number,
                         type == IBV_MW_TYPE_1 ? DOCK_SEG_MW1 : DOCK_SEG_MW2, &mw->seg);
    if (err) {
        free(mw);
        return vb_none(err);
    }
    mw->mw = (struct ibv_mw){
        .context = pd->context, .pd = pd, .rkey = mw->seg->rkey, .handle = mw->seg->tid, .type = type};
    vb_pd_use(pd);
    vb_object_made(pd->context);
    return &mw->mw;
}

int vb_dealloc_mw(struct ibv_mw *mw)
{
    struct ibv_context *context = mw->context;
    int err;

    if (!vb_mw_known(mw))
        return vb_status(dock_refuse(ENOENT, "ibv_dealloc_mw: no window has handle %#x", mw->handle));
    // pairs with the release in qp_builders.c
    if (atomic_load_explicit(&vb_mw(mw)->section, memory_order_acquire))
        return vb_status(
            dock_refuse(EBUSY, "ibv_dealloc_mw: window %#x: a section that binds it is open", mw->rkey));
    err = dock_mw_destroy(vb_mw(mw)->seg);
    if (err)
        return vb_status(-err);
    vb_pd_drop(mw->pd);
    free(mw);
    vb_object_gone(context);
    return 0;
}
