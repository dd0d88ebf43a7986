// SPDX-License-Identifier: MIT
// Thread domains and parent domains: how a verbs program says that it serialises the calls on a queue
// itself. A parent domain is a protection domain that carries a thread domain; queues made with it take no
// locks.
#include <stdlib.h>

#include "face/verbs/verbs_face.h"

struct ibv_td *vb_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
    struct vb_td *td;

    if (!attr || attr->comp_mask)
        return vb_none(
            dock_refuse(-EINVAL, "ibv_alloc_td: no attributes, or a mask of which no bit has a meaning"));
    td = calloc(1, sizeof *td);
    if (!td)
        return vb_none(dock_refuse(-ENOMEM, "ibv_alloc_td: no memory"));
    td->td.context = context;
    vb_object_made(context);
    return &td->td;
}

int vb_dealloc_td(struct ibv_td *td)
{
    struct vb_td *v = (struct vb_td *)td;
    uint32_t users = dock_peek32(&v->users);

    if (users)
        return dock_refuse(EBUSY, "ibv_dealloc_td: %u parent domains still use it", users);
    vb_object_gone(td->context);
    free(v);
    return 0;
}

// Rings lie in the arena, where peers find them, so a program's own allocator could not be used for anything.
struct ibv_pd *vb_alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr)
{
    struct vb_pd *pd;

    if (!attr || !attr->pd || attr->pd->context != context || (attr->td && attr->td->context != context))
        return vb_none(dock_refuse(-EINVAL,
                                   "ibv_alloc_parent_domain: no domain of this context, or a foreign thread "
                                   "domain"));
    if (vb_pd(attr->pd)->parent)
        return vb_none(dock_refuse(-EINVAL, "ibv_alloc_parent_domain: the domain is itself a parent domain"));
    if (attr->comp_mask)
        return vb_none(dock_refuse(
            -EOPNOTSUPP, "ibv_alloc_parent_domain: mask %#x: allocators are not offered", attr->comp_mask));
    pd = calloc(1, sizeof *pd);
    if (!pd)
        return vb_none(dock_refuse(-ENOMEM, "ibv_alloc_parent_domain: no memory"));
    pd->pd = *attr->pd;
    pd->owner = context;
    pd->number = vb_pd(attr->pd)->number;
    pd->parent = vb_pd(attr->pd);
    pd->td = (struct vb_td *)attr->td;
    vb_pd_use(attr->pd);
    if (pd->td)
        vb_count(&pd->td->users, 1);
    vb_object_made(context);
    return &pd->pd;
}

void vb_free_parent_domain(struct vb_pd *pd)
{
    if (pd->td)
        vb_count(&pd->td->users, -1);
    vb_pd_drop(&pd->parent->pd);
    vb_object_gone(pd->owner);
    free(pd);
}
