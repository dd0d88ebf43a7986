// SPDX-License-Identifier: MIT
// The phases of a request, each by the host path's own hands: what is late is when, not what.
#include "lib/late_request.h"

#include <stdlib.h>
#include <string.h>

static enum late_kind kind_of(const struct dock_xfer *x)
{
    if (x->op == DOCK_OP_READ)
        return LATE_READ;
    if (dock_op_is_atomic(x->op))
        return LATE_ATOMIC;
    return x->op <= DOCK_OP_SEND_INV || x->op == DOCK_OP_WRITE_IMM ? LATE_SEND : LATE_WRITE;
}

struct late_request *late_request_make(struct dock_conn *conn, const struct dock_xfer *x, void *sq)
{
    struct late_request *r = calloc(1, sizeof *r);

    r->x = *x;
    r->x.status = DOCK_OK;
    r->conn = conn;
    r->sq = sq;
    r->seq = x->seq;
    r->kind = kind_of(x);
    r->buffer = malloc(x->len ? x->len : 1);
    if (x->inline_data) {
        memcpy(r->buffer, x->inline_data, x->len);
        r->x.inline_data = r->buffer;
    }
    r->done[LATE_SOURCE] = x->inline_data || late_answered(r);
    r->done[LATE_RESULT] = !late_answered(r);
    return r;
}

void late_request_free(struct late_request *r)
{
    free(r->buffer);
    free(r);
}

void late_read_source(struct late_request *r)
{
    struct dock_place here = {.at = (char *)r->buffer};

    dock_up_enter(r->worker);
    r->x.status = dock_host_move(r->conn, &r->x, here, r->x.len, true);
    dock_up_leave(r->worker);
    r->x.inline_data = r->buffer;
}

void late_write_result(struct late_request *r)
{
    struct dock_place here = {.at = (char *)r->buffer};
    struct dock_xfer x = r->x;

    x.inline_data = NULL;
    x.done = 0;
    dock_up_enter(r->worker);
    r->x.status = dock_host_move(r->conn, &x, here, r->x.len, false);
    dock_up_leave(r->worker);
}

// The word of a sound fetch-and-add. What is unsound goes through the host path whole, which knows the
// status.
static bool find_word(struct late_request *r, struct dock_place *word)
{
    const struct dock_rkey *k;
    struct dock_conn *c = r->conn;

    if (r->x.op != DOCK_OP_FADD || r->x.nsge != 1 || r->x.len != 8 || r->x.raddr & 7 ||
        dock_host_overtaxed(c, &r->x) || !(dock_peek32(&c->queue->access) & DOCK_ACCESS_REMOTE_ATOMIC))
        return false;
    if (dock_host_rkey(c, r->x.remote, r->x.token, r->x.raddr, 8, DOCK_ACCESS_REMOTE_ATOMIC, &k))
        return false;
    *word = dock_host_place(c, k, r->x.raddr);
    return true;
}

// Half of a fetch-and-add: read the word, or write it. Between the two others may write: the atomicity that
// is announced is that among remote atomics. false: not done this way.
static bool half_atomic(struct late_request *r)
{
    struct dock_place word;
    struct dock_xfer x = r->x;
    uint64_t sum;
    bool found;

    if (dock_peek32(&r->conn->peer->dead) || !dock_host_enter(r->conn, false))
        return false;
    found = find_word(r, &word);
    if (found && !r->half) {
        r->x.status = dock_host_move(r->conn, &x, word, 8, false);
    } else if (found) {
        memcpy(&sum, r->buffer, 8);
        sum += r->x.operand;
        r->x.status = dock_host_put(r->conn, &word, &sum, 8);
    }
    dock_direct_leave(r->conn);
    return found;
}

static enum late_got by_host(struct late_request *r)
{
    enum dock_go go = dock_host_start(r->conn, &r->x, r->sq);

    dock_conn_wake(r->conn);
    switch (go) {
    case DOCK_GO_MORE:
        return LATE_PART;
    case DOCK_GO_RNR:
        return LATE_NOT_READY;
    case DOCK_GO_NOBODY:
        r->x.status = DOCK_ST_RETRY_EXC;
        return LATE_WHOLE;
    default:
        return LATE_WHOLE;
    }
}

static bool whole_atomics;

void late_set_whole_atomics(bool on)
{
    whole_atomics = on;
}

enum late_got late_have_effect(struct late_request *r)
{
    bool second = r->half;

    if (r->inject) {
        r->x.status = r->inject;
        return LATE_WHOLE;
    }
    r->x.inline_data = r->buffer;
    if (r->kind != LATE_ATOMIC || whole_atomics || !half_atomic(r))
        return by_host(r);
    r->half = true;
    return second || r->x.status ? LATE_WHOLE : LATE_PART;
}
