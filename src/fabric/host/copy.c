// SPDX-License-Identifier: MIT
// Bytes between local pieces and one remote place: by loads and stores where both sides are mapped, through
// the kernel where one is not.
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "arena/xcopy.h"
#include "fabric/host/host.h"

static void count_fallback(struct dock_conn *c, uint32_t n)
{
    struct dock_port *mine = c->peer->port; // shown at the target: it is its memory that is not mapped

    atomic_fetch_add_explicit(&mine->fallback_bytes, n, memory_order_relaxed);
    atomic_fetch_add_explicit(&mine->fallback_calls, 1, memory_order_relaxed);
}

uint32_t dock_host_fault(int err)
{
    return err == -ESRCH ? DOCK_ST_RETRY_EXC : DOCK_ST_REM_OP;
}

// One local span and a remote place that is direct.
static uint32_t move_direct(const struct dock_span *s, char *remote, uint32_t n, bool to_remote)
{
    if (s->at) {
        if (to_remote)
            dock_direct_copy(remote, s->at, n);
        else
            dock_direct_copy(s->at, remote, n);
        return DOCK_OK;
    }
    int err = to_remote ? dock_xcopy_from(getpid(), remote, s->plain, n)
                        : dock_xcopy_to(getpid(), remote, s->plain, n);
    return err ? DOCK_ST_LOC_PROT : DOCK_OK;
}

// One local span and a remote place in plain memory.
static uint32_t move_plain(const struct dock_span *s, pid_t pid, uint64_t remote, uint32_t n, bool to_remote)
{
    char *here = s->at ? s->at : (char *)(uintptr_t)s->plain;
    int err = to_remote ? dock_xcopy_to(pid, here, remote, n) : dock_xcopy_from(pid, here, remote, n);

    if (err == -EFAULT && !s->at && !dock_xcopy_probe(s->plain, n, !to_remote))
        return DOCK_ST_LOC_PROT;
    return err ? dock_host_fault(err) : DOCK_OK;
}

static uint32_t move_span(struct dock_conn *c, const struct dock_span *s, struct dock_place *r, uint32_t n,
                          bool to_remote)
{
    uint32_t status;

    if (__builtin_expect(r->at != NULL, 1)) {
        status = move_direct(s, r->at, n, to_remote);
        r->at += n;
    } else {
        status = move_plain(s, r->pid, r->plain, n, to_remote);
        r->plain += n;
    }
    if (!r->at || !s->at)
        count_fallback(c, n);
    return status;
}

uint32_t dock_host_move(struct dock_conn *c, struct dock_xfer *x, struct dock_place r, uint32_t n,
                        bool to_remote)
{
    uint32_t skip = x->done;

    dock_fence_store(); // earlier requests of this queue are placed before this one
    if (x->inline_data)
        return n ? move_span(c, &(struct dock_span){.at = (char *)(uintptr_t)x->inline_data + skip}, &r, n,
                             to_remote)
                 : DOCK_OK;
    for (unsigned i = 0; i < x->nsge && n; i++) {
        uint32_t len = x->sge[i].len, take;
        struct dock_span span;
        if (skip >= len) {
            skip -= len;
            continue;
        }
        take = len - skip < n ? len - skip : n;
        uint32_t status =
            dock_up_local(c->dev, x, &x->sge[i], skip, to_remote ? 0 : DOCK_ACCESS_LOCAL_WRITE, &span);
        if (!status)
            status = move_span(c, &span, &r, take, to_remote);
        if (__builtin_expect(status, 0))
            return status;
        n -= take;
        skip = 0;
    }
    return DOCK_OK;
}

uint32_t dock_host_put(const struct dock_place *r, const void *from, uint32_t n)
{
    dock_fence_store();
    if (r->at) {
        dock_direct_copy(r->at, from, n);
        return DOCK_OK;
    }
    int err = dock_xcopy_to(r->pid, from, r->plain, n);
    return err ? dock_host_fault(err) : DOCK_OK;
}
