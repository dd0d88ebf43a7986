// SPDX-License-Identifier: MIT
// Memory that is not simply registered: regions changed in place, the null region, advice, device memory.
#include <pthread.h>
#include <stdlib.h>

#include "face/verbs/verbs_face.h"

// ---- ibv_rereg_mr

#define REREG_KNOWN (IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS)

static int wrong_input(int error)
{
    errno = error;
    return IBV_REREG_MR_ERR_INPUT;
}

static int check_rereg(const struct ibv_mr *mr, int flags, const struct ibv_pd *pd, const void *addr,
                       size_t length)
{
    if (!mr || !flags || flags & ~REREG_KNOWN)
        return dock_refuse(EINVAL, "ibv_rereg_mr: no region, or flags %#x", flags);
    if (!vb_mr_known(mr) || ((const struct vb_mr *)mr)->special)
        return dock_refuse(EINVAL, "ibv_rereg_mr: region %#x cannot be changed", mr->lkey);
    if (flags & IBV_REREG_MR_CHANGE_TRANSLATION && (!addr || !length))
        return dock_refuse(EINVAL, "ibv_rereg_mr: a new range of %zu bytes at %p", length, addr);
    if (flags & IBV_REREG_MR_CHANGE_PD && (!pd || pd->context != mr->context || !vb_pd_known(pd)))
        return dock_refuse(EINVAL, "ibv_rereg_mr: no domain of the region's context given");
    return 0;
}

static int change(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
    struct dock_mr_change c = {.addr = (uintptr_t)addr, .len = length, .va = (uintptr_t)addr};
    int err;

    if (flags & IBV_REREG_MR_CHANGE_TRANSLATION)
        c.what |= DOCK_CHANGE_RANGE;
    if (flags & IBV_REREG_MR_CHANGE_PD) {
        c.what |= DOCK_CHANGE_PD;
        c.pd = vb_pd(pd)->number;
    }
    if (flags & IBV_REREG_MR_CHANGE_ACCESS) {
        c.what |= DOCK_CHANGE_ACCESS;
        err = vb_region_access((unsigned int)access, "ibv_rereg_mr", &c.access);
        if (err)
            return err;
    }
    return dock_mr_change(vb_mr(mr)->seg, &c);
}

// The keys stay. A refusal changes nothing, though the manual would allow the region to be lost.
int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
    int err = check_rereg(mr, flags, pd, addr, length);

    if (err)
        return wrong_input(err);
    err = change(mr, flags, pd, addr, length, access);
    if (err) {
        errno = -err;
        return IBV_REREG_MR_ERR_CMD;
    }
    if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
        mr->addr = addr;
        mr->length = length;
    }
    if (flags & IBV_REREG_MR_CHANGE_PD) {
        vb_pd_use(pd);
        vb_pd_drop(mr->pd);
        mr->pd = pd;
    }
    return 0;
}

// ---- the null region, advice

static struct vb_mr *special_mr(struct ibv_pd *pd, const char *call)
{
    struct vb_mr *mr;

    if (!vb_pd_known(pd))
        return vb_none(dock_refuse(-ENOENT, "%s: no domain has handle %#x", call, pd->handle));
    mr = calloc(1, sizeof *mr);
    if (!mr)
        return vb_none(dock_refuse(-ENOMEM, "%s: no memory", call));
    mr->special = true;
    mr->mr.context = pd->context;
    mr->mr.pd = pd;
    return mr;
}

static struct ibv_mr *special_done(struct vb_mr *mr)
{
    mr->mr.handle = mr->seg->tid;
    mr->mr.lkey = mr->seg->lkey;
    mr->mr.rkey = mr->seg->rkey;
    vb_pd_use(mr->mr.pd);
    vb_object_made(mr->mr.context);
    return &mr->mr;
}

struct ibv_mr *vb_alloc_null_mr(struct ibv_pd *pd)
{
    struct vb_mr *mr = special_mr(pd, "ibv_alloc_null_mr");
    int err;

    if (!mr)
        return NULL;
    err = dock_mr_nothing(vb_dev(pd->context), vb_pd(pd)->number, &mr->seg);
    if (err) {
        free(mr);
        return vb_none(err);
    }
    mr->mr.length = SIZE_MAX;
    return special_done(mr);
}

// Memory is looked at when it is used, so there is nothing to fetch ahead: what can be said is whether the
// range could be.
int vb_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge *sg_list,
                 uint32_t num_sge)
{
    if ((unsigned)advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT ||
        flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH)
        return dock_refuse(EOPNOTSUPP, "ibv_advise_mr: advice %d, flags %#x are not known", (int)advice,
                           flags);
    if (!sg_list || !num_sge)
        return dock_refuse(EINVAL, "ibv_advise_mr: advice about no memory");
    for (uint32_t i = 0; i < num_sge; i++) {
        const struct ibv_sge *s = &sg_list[i];
        struct dock_mr mr;
        if (dock_mr_find(vb_dev(pd->context), vb_pd(pd)->number, s->lkey, &mr))
            return dock_refuse(ENOENT, "ibv_advise_mr: the domain has no region %#x", s->lkey);
        if (s->addr < mr.va || s->length > mr.len || s->addr - mr.va > mr.len - s->length)
            return dock_refuse(EFAULT, "ibv_advise_mr: %u bytes at %#llx are outside region %#x", s->length,
                               (unsigned long long)s->addr, s->lkey);
        if (!(mr.access & DOCK_ACCESS_ON_DEMAND) ||
            (advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE && !(mr.access & DOCK_ACCESS_LOCAL_WRITE)))
            return dock_refuse(EINVAL, "ibv_advise_mr: region %#x is not on demand, or not writable",
                               s->lkey);
    }
    return 0;
}

// ---- device memory: a piece of the arena, which every peer has mapped

static dock_a64 dm_in_use;                                  // bytes, of all contexts
static pthread_mutex_t dm_lock = PTHREAD_MUTEX_INITIALIZER; // of the list and the handles
static struct vb_dm *dms;
static uint32_t dm_given;

// As on adapters that have such memory: whole words of four bytes, inside the allocation.
static int check_copy(const struct vb_dm *v, uint64_t offset, size_t length, const char *call)
{
    if ((offset | length) & 3 || offset > v->length || length > v->length - offset)
        return dock_refuse(EINVAL, "%s: %zu bytes at %llu of %zu: not in words of four, or outside", call,
                           length, (unsigned long long)offset, v->length);
    return 0;
}

static int copy_to(struct ibv_dm *dm, uint64_t offset, const void *from, size_t length)
{
    struct vb_dm *v = (struct vb_dm *)dm;

    int err = check_copy(v, offset, length, "ibv_memcpy_to_dm");

    if (!err)
        memcpy(v->at + offset, from, length);
    return err;
}

static int copy_from(void *to, struct ibv_dm *dm, uint64_t offset, size_t length)
{
    struct vb_dm *v = (struct vb_dm *)dm;

    int err = check_copy(v, offset, length, "ibv_memcpy_from_dm");

    if (!err)
        memcpy(to, v->at + offset, length);
    return err;
}

static bool dm_take(uint64_t bytes)
{
    uint64_t used = dock_peek64(&dm_in_use);

    do {
        if (bytes > VB_MAX_DM - used)
            return false;
    } while (!dock_claim64(&dm_in_use, &used, used + bytes));
    return true;
}

static void dm_enlist(struct vb_dm *v)
{
    dock_lock(&dm_lock);
    v->dm.handle = ++dm_given;
    v->next = dms;
    dms = v;
    dock_unlock(&dm_lock);
}

// Out of the list, unless somebody uses it: then how many.
static uint32_t dm_delist(struct vb_dm *v)
{
    struct vb_dm **at = &dms;
    uint32_t users;

    dock_lock(&dm_lock);
    users = dock_peek32(&v->users);
    while (*at != v)
        at = &(*at)->next;
    if (!users)
        *at = v->next;
    dock_unlock(&dm_lock);
    return users;
}

struct vb_dm *vb_dm_hold(struct ibv_context *context, uint32_t handle)
{
    struct vb_dm *v;

    dock_lock(&dm_lock);
    for (v = dms; v; v = v->next)
        if (v->dm.handle == handle && vb_dev(v->dm.context) == vb_dev(context))
            break;
    if (v)
        vb_count(&v->users, 1);
    dock_unlock(&dm_lock);
    return v;
}

struct ibv_dm *vb_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
    struct vb_dm *v;
    void *at;
    int err;

    if (!attr || !attr->length || attr->length > VB_MAX_DM || attr->log_align_req > 12 || attr->comp_mask)
        return vb_none(dock_refuse(-EINVAL,
                                   "ibv_alloc_dm: no length, more than %u bytes, alignment above a "
                                   "page, or an unknown mask",
                                   VB_MAX_DM));
    if (!dm_take(attr->length))
        return vb_none(
            dock_refuse(-ENOMEM, "ibv_alloc_dm: %zu bytes: the device has %u", attr->length, VB_MAX_DM));
    v = calloc(1, sizeof *v);
    err = v ? dock_mem_alloc(vb_dev(context), attr->length, &at)
            : dock_refuse(-ENOMEM, "ibv_alloc_dm: no memory");
    if (err || !v) {
        free(v);
        atomic_fetch_sub_explicit(&dm_in_use, attr->length, memory_order_relaxed);
        return vb_none(err);
    }
    *v = (struct vb_dm){.dm = {.context = context, .memcpy_to_dm = copy_to, .memcpy_from_dm = copy_from},
                        .at = at,
                        .length = attr->length};
    dm_enlist(v);
    vb_object_made(context);
    return &v->dm;
}

int vb_free_dm(struct ibv_dm *dm)
{
    struct vb_dm *v = (struct vb_dm *)dm;
    uint32_t users;

    if (v->of)
        return vb_status(dock_refuse(EINVAL, "ibv_free_dm: it was imported: ibv_unimport_dm gives it back"));
    users = dm_delist(v);
    if (users)
        return vb_status(
            dock_refuse(EBUSY, "ibv_free_dm: %u regions or imports of it are still there", users));
    dock_mem_free(vb_dev(dm->context), v->at, v->length);
    atomic_fetch_sub_explicit(&dm_in_use, v->length, memory_order_relaxed);
    vb_object_gone(dm->context);
    free(v);
    return 0;
}

struct ibv_mr *vb_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t dm_offset, size_t length,
                            unsigned int access)
{
    struct vb_dm *v = (struct vb_dm *)dm;
    struct vb_mr *mr;
    uint32_t rights;
    int err;

    if (dm->context != pd->context)
        return vb_none(dock_refuse(-EINVAL, "ibv_reg_dm_mr: memory and domain are of different contexts"));
    if (!(access & IBV_ACCESS_ZERO_BASED) || dm_offset > v->length || length > v->length - dm_offset)
        return vb_none(dock_refuse(-EINVAL, "ibv_reg_dm_mr: not zero-based, or %zu bytes at %llu of %zu",
                                   length, (unsigned long long)dm_offset, v->length));
    err = vb_region_access(access, "ibv_reg_dm_mr", &rights);
    if (err)
        return vb_none(err);
    mr = special_mr(pd, "ibv_reg_dm_mr");
    if (!mr)
        return NULL;
    err = dock_mr_register(vb_dev(pd->context), vb_pd(pd)->number, (uintptr_t)v->at + dm_offset, length, 0,
                           rights, &mr->seg);
    if (err) {
        free(mr);
        return vb_none(err);
    }
    mr->dm = v->of ? v->of : v; // which the import may be given back before
    mr->mr.length = length;
    vb_count(&mr->dm->users, 1);
    return special_done(mr);
}
