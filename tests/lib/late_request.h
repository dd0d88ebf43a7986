// SPDX-License-Identifier: MIT
// Inside of the late fabric: a started request, and its phases one by one.
#ifndef TESTS_LIB_LATE_REQUEST_H
#define TESTS_LIB_LATE_REQUEST_H

#include "fabric/host/host.h"
#include "lib/late.h"

enum late_kind { LATE_WRITE, LATE_SEND, LATE_ATOMIC, LATE_READ };

struct late_request {
    struct dock_xfer x; // ours; x.inline_data is `buffer` once the source was read
    struct dock_conn *conn;
    struct dock_worker *worker; // of the connection
    void *sq;
    struct late_request *next;
    uint8_t *buffer;
    uint64_t again; // the receiver was not ready: the step from which on it is asked again
    uint32_t nth, seq;
    uint32_t inject; // the status it is to fail with
    enum late_kind kind;
    bool done[LATE_PHASES];
    bool half;  // an atomic that has read its word
    bool busy;  // somebody runs a phase of it
    bool fated; // failed or stopped: only its finish is left
};

static inline bool late_answered(const struct late_request *r)
{
    return r->kind == LATE_READ || r->kind == LATE_ATOMIC;
}

struct late_request *late_request_make(struct dock_conn *conn, const struct dock_xfer *x, void *sq);
void late_request_free(struct late_request *r);

// x.status tells how each ended.
void late_read_source(struct late_request *r);
void late_write_result(struct late_request *r);

enum late_got { LATE_WHOLE, LATE_PART, LATE_NOT_READY };
enum late_got late_have_effect(struct late_request *r);

#endif
