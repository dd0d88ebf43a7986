// SPDX-License-Identifier: MIT
// A JFC's and a JFR's ring in the program's memory. Peers write them, and see the device's arena alone: the
// memory is registered, for nobody's requests, so that adoption moves it there whole and keeps it there. From
// then on the queue works at its place in the arena, whatever the program does to the address.
#include <errno.h>

#include "face/urma/urma_face.h"

int ur_ring_place(struct ur_ring *r, urma_context_t *ctx, uint64_t bytes, uint64_t *off, const char *call)
{
    uint64_t at = (uintptr_t)r->at, pages = (bytes + UR_PAGE - 1) / UR_PAGE * UR_PAGE;
    int err;

    *off = 0;
    if (!r->at)
        return 0;
    if (r->room && r->room < pages)
        return dock_refuse(-EINVAL, "%s: a ring in %u bytes: it needs %llu", call, r->room,
                           (unsigned long long)pages);
    if (!dock_mem_offset(ur_dev(ctx), r->at, 1, off))
        return dock_refuse(-EINVAL, "%s: a ring at %#llx: this memory is the device's own", call,
                           (unsigned long long)at);
    *off = 0;
    err = dock_mr_register(ur_dev(ctx), ur_pd(), at, pages, at, DOCK_ACCESS_LOCAL_WRITE, &r->mr);
    if (err)
        return err;
    err = dock_mr_arena(r->mr, off);
    if (!err)
        return 0;
    ur_ring_leave(r);
    return dock_refuse(err,
                       "%s: a ring at %#llx: this memory cannot be adopted, and peers, which write the ring, "
                       "would not reach it",
                       call, (unsigned long long)at);
}

void ur_ring_leave(struct ur_ring *r)
{
    if (r->mr && dock_mr_deregister(r->mr)) // nobody binds or maps it, unless memory is corrupted
        dock_error("the memory of a ring at %p stays registered", r->at);
    r->mr = NULL;
}

void ur_ring_end(struct ur_ring *r)
{
    ur_ring_leave(r);
    *r = (struct ur_ring){0};
}
