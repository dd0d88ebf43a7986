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
    int err = to_remote ? dock_xcopy_from(getpid(), 0, remote, s->plain, n)
                        : dock_xcopy_to(getpid(), 0, remote, s->plain, n);
    return err ? DOCK_ST_LOC_PROT : DOCK_OK;
}

// One local span and a remote place in plain memory.
static uint32_t move_plain(const struct dock_span *s, const struct dock_place *r, uint64_t home, uint32_t n,
                           bool to_remote)
{
    char *here = s->at ? s->at : (char *)(uintptr_t)s->plain;

    if (r->pid == DOCK_NOBODY)
        return DOCK_OK;
    int err = to_remote ? dock_xcopy_to(r->pid, home, here, r->plain, n)
                        : dock_xcopy_from(r->pid, home, here, r->plain, n);

    if (err == -EFAULT && !s->at && !dock_xcopy_probe(s->plain, n, !to_remote))
        return DOCK_ST_LOC_PROT;
    return err ? dock_host_fault(err) : DOCK_OK;
}

static void advance(struct dock_conn *c, struct dock_place *r, uint32_t n)
{
    if (__builtin_expect(r->key && n == r->room, 0)) {
        // At the end of the segment nothing is looked for: nobody asks for more.
        if (r->va + n - r->key->va < r->key->len)
            *r = dock_host_seek(c, r->key, r->va + n);
        return;
    }
    if (r->at)
        r->at += n;
    r->plain += n;
    r->va += n;
    r->room -= n;
}

// One local span, and a remote place as far as it is reached in one way.
static uint32_t move_part(struct dock_conn *c, const struct dock_span *s, struct dock_place *r, uint32_t n,
                          bool to_remote)
{
    uint32_t status = __builtin_expect(r->at != NULL, 1) ? move_direct(s, r->at, n, to_remote)
                                                         : move_plain(s, r, c->peer->home, n, to_remote);

    if (!r->at || !s->at)
        count_fallback(c, n);
    advance(c, r, n);
    return status;
}

static uint32_t move_span(struct dock_conn *c, struct dock_span s, struct dock_place *r, uint32_t n,
                          bool to_remote)
{
    uint32_t status = DOCK_OK;

    while (n && !status) {
        uint32_t part = r->key && r->room < n ? (uint32_t)r->room : n;
        status = move_part(c, &s, r, part, to_remote);
        if (s.at)
            s.at += part;
        s.plain += part;
        n -= part;
    }
    return status;
}

// A piece of one SGE: its memory may be partly mapped and partly not.
static uint32_t move_sge(struct dock_conn *c, struct dock_xfer *x, const struct dock_sge_local *sge,
                         uint32_t skip, uint32_t n, struct dock_place *r, bool to_remote)
{
    uint32_t need = to_remote ? 0 : DOCK_ACCESS_LOCAL_WRITE, status = DOCK_OK;
    struct dock_span span;

    while (n && !status) {
        status = dock_up_local(c->dev, x, sge, skip, need, &span);
        if (__builtin_expect(status, 0))
            break;
        uint32_t part = span.room < n ? (uint32_t)span.room : n;
        status = move_span(c, span, r, part, to_remote);
        skip += part;
        n -= part;
    }
    return status;
}

uint32_t dock_host_move(struct dock_conn *c, struct dock_xfer *x, struct dock_place r, uint32_t n,
                        bool to_remote)
{
    uint32_t skip = x->done;

    dock_fence_store(); // earlier requests of this queue are placed before this one
    if (x->inline_data)
        return move_span(c, (struct dock_span){.at = (char *)(uintptr_t)x->inline_data + skip}, &r, n,
                         to_remote);
    for (unsigned i = 0; i < x->nsge && n; i++) {
        uint32_t len = x->sge[i].len, take;
        if (skip >= len) {
            skip -= len;
            continue;
        }
        take = len - skip < n ? len - skip : n;
        uint32_t status = move_sge(c, x, &x->sge[i], skip, take, &r, to_remote);
        if (__builtin_expect(status, 0))
            return status;
        n -= take;
        skip = 0;
    }
    return DOCK_OK;
}

uint32_t dock_host_put(struct dock_conn *c, struct dock_place *r, const void *from, uint32_t n)
{
    const char *at = from;
    int err = 0;

    dock_fence_store();
    while (n && !err) {
        uint32_t part = r->key && r->room < n ? (uint32_t)r->room : n;
        if (r->at)
            dock_direct_copy(r->at, at, part);
        else if (r->pid != DOCK_NOBODY)
            err = dock_xcopy_to(r->pid, c->peer->home, at, r->plain, part);
        advance(c, r, part);
        at += part;
        n -= part;
    }
    return err ? dock_host_fault(err) : DOCK_OK;
}
