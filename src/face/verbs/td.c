// SPDX-License-Identifier: MIT
// Thread domains and parent domains: how a verbs program says that it serialises the calls on a queue
// itself. A parent domain is a protection domain that carries a thread domain; queues made with it take no
// lock of their own. What is left is shared with others than the callers: the execution token, and of a
// receive queue the short lock of its free numbers, which go from its posters to the pollers of its CQ.
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

#define PARENT_KNOWN (IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
#define CACHE_LINE 64

// Rings lie in the arena, where peers find them. What a program's own allocators give memory for is the
// rest: the queue pairs of the domain as the library keeps them.
static bool has_allocators(const struct vb_pd *pd)
{
    return pd->parent && pd->custom.comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
}

static void *context_of(const struct vb_pd *pd)
{
    return pd->custom.comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT ? pd->custom.pd_context : NULL;
}

void *vb_pd_calloc(struct ibv_pd *ibpd, size_t size, bool *custom)
{
    struct vb_pd *pd = vb_pd(ibpd);
    void *p = IBV_ALLOCATOR_USE_DEFAULT;

    if (has_allocators(pd))
        p = pd->custom.alloc(ibpd, context_of(pd), size, CACHE_LINE, 0);
    *custom = p != IBV_ALLOCATOR_USE_DEFAULT;
    if (!*custom)
        return calloc(1, size);
    if (p)
        memset(p, 0, size);
    return p;
}

void vb_pd_free(struct ibv_pd *ibpd, void *p, bool custom)
{
    if (custom)
        vb_pd(ibpd)->custom.free(ibpd, context_of(vb_pd(ibpd)), p, 0);
    else
        free(p);
}

struct ibv_pd *vb_alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr)
{
    struct vb_pd *pd;

    if (!attr || !attr->pd || attr->pd->context != context || (attr->td && attr->td->context != context))
        return vb_none(dock_refuse(-EINVAL,
                                   "ibv_alloc_parent_domain: no domain of this context, or a foreign thread "
                                   "domain"));
    if (vb_pd(attr->pd)->parent)
        return vb_none(dock_refuse(-EINVAL, "ibv_alloc_parent_domain: the domain is itself a parent domain"));
    if (attr->comp_mask & ~(uint32_t)PARENT_KNOWN ||
        (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS && (!attr->alloc || !attr->free)))
        return vb_none(
            dock_refuse(-EINVAL, "ibv_alloc_parent_domain: mask %#x, or no allocators", attr->comp_mask));
    pd = calloc(1, sizeof *pd);
    if (!pd)
        return vb_none(dock_refuse(-ENOMEM, "ibv_alloc_parent_domain: no memory"));
    pd->pd = *attr->pd;
    pd->owner = context;
    pd->number = vb_pd(attr->pd)->number;
    pd->parent = vb_pd(attr->pd);
    pd->td = (struct vb_td *)attr->td;
    pd->custom = *attr;
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
