// SPDX-License-Identifier: MIT
// Sharing objects by a context's command descriptor and their handles: within one process, where all
// contexts are of one device anyway. Another process has another device, so a descriptor that came from
// there is refused.
#include <stdlib.h>
#include <sys/stat.h>

#include "face/verbs/verbs_face.h"

// A context knows its own descriptor, and every duplicate of it, by the file.
static bool same_file(int a, int b)
{
    struct stat x, y;

    return !fstat(a, &x) && !fstat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

struct ibv_context *ibv_import_device(int cmd_fd)
{
    struct ibv_context *context;

    if (!vb_context_of(cmd_fd, same_file))
        return vb_none(dock_refuse(
            -EINVAL, "ibv_import_device: descriptor %d is of no context of this process", cmd_fd));
    context = ibv_open_device(vb_device());
    return context;
}

struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
    struct vb_pd *pd;
    int err;

    if (!context)
        return vb_none(dock_refuse(-EINVAL, "ibv_import_pd: no context given"));
    err = dock_pd_hold(vb_dev(context), pd_handle);
    if (err)
        return vb_none(dock_refuse(-ENOENT, "ibv_import_pd: there is no domain %u", pd_handle));
    pd = calloc(1, sizeof *pd);
    if (!pd) {
        dock_pd_let_go(vb_dev(context), pd_handle);
        return vb_none(dock_refuse(-ENOMEM, "ibv_import_pd: no memory"));
    }
    pd->owner = context;
    pd->number = pd_handle;
    pd->imported = true;
    pd->pd = (struct ibv_pd){.context = context, .handle = pd_handle};
    vb_object_made(context);
    return &pd->pd;
}

void ibv_unimport_pd(struct ibv_pd *pd)
{
    if (!pd || !vb_pd(pd)->imported) {
        dock_refuse(EINVAL, "ibv_unimport_pd: it was not imported");
        return;
    }
    dock_pd_let_go(vb_dev(pd->context), vb_pd(pd)->number);
    vb_object_gone(pd->context);
    free(pd);
}

// The handle of a region is found again; the region stays its maker's.
struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
    struct dock_mr found;
    struct vb_mr *mr;

    if (!pd || dock_mr_find_handle(vb_dev(pd->context), vb_pd(pd)->number, mr_handle, &found))
        return vb_none(
            dock_refuse(-ENOENT, "ibv_import_mr: the domain has no region with handle %u", mr_handle));
    mr = calloc(1, sizeof *mr + sizeof found);
    if (!mr)
        return vb_none(dock_refuse(-ENOMEM, "ibv_import_mr: no memory"));
    mr->seg = (struct dock_mr *)(mr + 1);
    *mr->seg = found;
    mr->special = mr->imported = true;
    mr->mr = (struct ibv_mr){.context = pd->context,
                             .pd = pd,
                             .addr = (void *)(uintptr_t)found.addr,
                             .length = found.len,
                             .handle = mr_handle,
                             .lkey = found.lkey,
                             .rkey = found.rkey};
    return &mr->mr;
}

void ibv_unimport_mr(struct ibv_mr *mr)
{
    if (!mr || !vb_mr(mr)->imported) {
        dock_refuse(EINVAL, "ibv_unimport_mr: it was not imported");
        return;
    }
    free(mr);
}

// The memory stays its maker's, and regions in it count there.
struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t dm_handle)
{
    struct vb_dm *of, *dm;

    if (!context)
        return vb_none(dock_refuse(-EINVAL, "ibv_import_dm: no context given"));
    of = vb_dm_hold(context, dm_handle);
    if (!of)
        return vb_none(
            dock_refuse(-ENOENT, "ibv_import_dm: there is no device memory with handle %u", dm_handle));
    dm = calloc(1, sizeof *dm);
    if (!dm) {
        vb_count(&of->users, -1);
        return vb_none(dock_refuse(-ENOMEM, "ibv_import_dm: no memory"));
    }
    *dm = (struct vb_dm){.dm = of->dm, .at = of->at, .length = of->length, .of = of};
    dm->dm.context = context;
    vb_object_made(context);
    return &dm->dm;
}

void ibv_unimport_dm(struct ibv_dm *dm)
{
    struct vb_dm *v = (struct vb_dm *)dm;

    if (!dm || !v->of) {
        dock_refuse(EINVAL, "ibv_unimport_dm: it was not imported");
        return;
    }
    vb_count(&v->of->users, -1);
    vb_object_gone(dm->context);
    free(v);
}
