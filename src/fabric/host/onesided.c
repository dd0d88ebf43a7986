// SPDX-License-Identifier: MIT
// WRITE (plain; the immediate and notify forms begin with it) and READ.
#include "base/log.h"
#include "fabric/host/host.h"
#include "fabric/host/rules.h"

// A READ does not pass earlier WRITEs of its queue: they are visible before it looks. Pairs with itself: two
// queues that write a word each and read the other's do not both miss.
static inline void look_last(void)
{
    if (DOCK_RULE_READ_LAST)
        dock_fence_full();
}

static enum dock_go fail(struct dock_xfer *x, uint32_t status)
{
    x->status = status;
    return DOCK_GO_DONE;
}

static uint32_t remote_right(const struct dock_xfer *x)
{
    return x->op == DOCK_OP_READ ? DOCK_ACCESS_REMOTE_READ : DOCK_ACCESS_REMOTE_WRITE;
}

// The whole range is checked before the first byte moves, and again for every piece: the key may be gone.
static uint32_t check(struct dock_conn *c, struct dock_xfer *x, const struct dock_rkey **k)
{
    uint32_t need = remote_right(x);

    if (__builtin_expect(!(dock_peek32(&dock_conn_target(c)->queue->access) & need), 0)) {
        dock_info("queue %u: queue %u allows no such request (rights %#x)", c->source_qp, c->dest_qp, need);
        return DOCK_ST_REM_INV_REQ;
    }
    return dock_host_rkey(c, x->remote, x->token, x->raddr, x->len, need, k);
}

static uint32_t notify(struct dock_conn *c, const struct dock_xfer *x)
{
    const struct dock_rkey *k;
    uint32_t status =
        dock_host_rkey(c, x->notify_tid, x->notify_token, x->notify_addr, 8, DOCK_ACCESS_REMOTE_WRITE, &k);
    struct dock_place at;

    if (status)
        return status;
    if (x->notify_addr & 7)
        return DOCK_ST_REM_INV_REQ;
    at = dock_host_place(c, k, x->notify_addr);
    return dock_host_put(c, &at, &x->notify_value, 8);
}

enum dock_go dock_host_onesided(struct dock_conn *c, struct dock_xfer *x)
{
    const struct dock_rkey *k;
    uint32_t left = x->len - x->done, n = left < x->piece ? left : x->piece, status;

    if (!n && __builtin_expect(c->zero_length_checked, 0) && (status = check(c, x, &k)))
        return fail(x, status);
    if (n) { // a zero-length request names no memory: its key is not looked at (IBTA vol 1, C9-88)
        status = check(c, x, &k);
        if (__builtin_expect(status, 0)) // of a WRITE the local side comes first: nothing has left yet
            return fail(x, x->op != DOCK_OP_READ && dock_host_local(c, x) ? DOCK_ST_LOC_PROT : status);
        if (x->op == DOCK_OP_READ && x->done == 0)
            look_last();
        status = dock_host_move(c, x, dock_host_place(c, k, x->raddr + x->done), n, x->op != DOCK_OP_READ);
        if (__builtin_expect(status, 0))
            return fail(x, status);
        x->done += n;
        dock_probe(DOCK_AT_PLACE, c->source_qp, x->done);
        if (x->done < x->len)
            return DOCK_GO_MORE;
    }
    x->bytes = x->len;
    x->status = DOCK_OK;
    if (dock_op_notifies(x->op))
        x->status = x->op == DOCK_OP_WRITE_NOTIFY ? notify(c, x) : dock_host_add(c, x);
    return DOCK_GO_DONE;
}

bool dock_direct_read(struct dock_conn *c, uint64_t name, uint64_t raddr, char *to, uint64_t len)
{
    const struct dock_rkey *k = dock_conn_key(c, (uint32_t)name, false);
    uint64_t inside = raddr - k->mapped;

    // A target that takes no READs at all, and one that takes none of this queue.
    if (!dock_peek32(&c->queue->rd_atomic) || !(dock_peek32(&c->queue->access) & DOCK_ACCESS_REMOTE_READ) ||
        !k->rec || dock_rkey_name(k->tid, k->token) != name || !(k->access & DOCK_ACCESS_REMOTE_READ) ||
        dock_direct_misses(k, inside, len))
        return false;
    look_last();
    dock_direct_copy(to, k->base + inside, len);
    return true;
}
