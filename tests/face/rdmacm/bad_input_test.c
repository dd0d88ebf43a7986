// SPDX-License-Identifier: MIT
// Every wrong argument of every call: the documented error, a reason in words, and nothing has changed. The
// rows are in bad_input_rows.h.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <rdma/rdma_verbs.h>

#include "base/log.h"
#include "face/lib/cm.h"

enum kind { MINUS1, VALUE, NOTHING };

static struct rdma_event_channel *channel;
static struct rdma_cm_id *fresh, *bound, *listener, *resolved, *datagram;

static union {
    char bytes[256];
    struct rdma_cm_event *event;
    struct rdma_cm_id *id;
    struct ibv_qp_init_attr qp;
    struct ibv_qp_init_attr_ex qp_ex;
    struct ibv_srq_init_attr srq;
    struct ibv_srq_init_attr_ex srq_ex;
    struct ibv_qp_attr attr;
    int mask;
    struct rdma_conn_param param;
    struct rdma_addrinfo info, *infos;
    struct ibv_ece ece;
} out;

#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define TOTAL(function)
#define ROW(function, what, kind, expected, call)                                                            \
    static long CAT(row_, __LINE__)(void)                                                                    \
    {                                                                                                        \
        return (long)(call);                                                                                 \
    }
#include "face/rdmacm/bad_input_rows.h"
#undef ROW

static const struct row {
    const char *name;
    enum kind kind;
    long expected;
    long (*call)(void);
} rows[] = {
#define ROW(function, what, kind, expected, call) {#function ": " what, kind, expected, CAT(row_, __LINE__)},
#include "face/rdmacm/bad_input_rows.h"
#undef ROW
};

static void check(const struct row *row, const char *said_before)
{
    long got;

    memset(&out, 0, sizeof out);
    errno = 0;
    got = row->call();
    if (row->kind == VALUE && got != row->expected)
        fail_msg("%s: expected %ld, got %ld", row->name, row->expected, got);
    if (row->kind != MINUS1)
        return;
    if (got != -1 || errno != row->expected)
        fail_msg("%s: expected -1 and errno %ld, got %ld and errno %d", row->name, row->expected, got, errno);
    if (!strcmp(dock_log_last(), said_before))
        fail_msg("%s: no reason was given", row->name);
}

static void each_wrong_argument_is_refused_in_words(void **state)
{
    static const char mark[] = "nothing said";

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dock_debug("%s", mark);
        check(&rows[i], mark);
    }
    CHECK(!cm_readable_within(channel, 20)); // and no event came of it
}

static void everything_still_works_afterwards(void **state)
{
    (void)state;
    CHECK_INT(rdma_bind_addr(fresh, cm_addr4("127.0.0.1", 0)), 0);
    CHECK_INT(rdma_listen(bound, 1), 0);
    cm_make_qp(resolved);
    CHECK_INT(rdma_connect(resolved, NULL), 0);
    cm_expect_status(channel, RDMA_CM_EVENT_REJECTED, 8);
    CHECK_INT(rdma_join_multicast(datagram, cm_addr4("239.0.0.1", 0), NULL), 0);
    cm_expect_ok(channel, RDMA_CM_EVENT_MULTICAST_JOIN);
}

static int open_all(void **state)
{
    (void)state;
    channel = cm_channel();
    fresh = cm_new_id(channel, RDMA_PS_TCP);
    bound = cm_new_id(channel, RDMA_PS_TCP);
    CHECK_INT(rdma_bind_addr(bound, cm_addr4("127.0.0.1", 0)), 0);
    listener = cm_new_id(channel, RDMA_PS_TCP);
    CHECK_INT(rdma_bind_addr(listener, cm_addr4("127.0.0.1", 0)), 0);
    CHECK_INT(rdma_listen(listener, 1), 0);
    resolved = cm_new_id(channel, RDMA_PS_TCP);
    cm_resolve(channel, resolved, 1);
    datagram = cm_new_id(channel, RDMA_PS_UDP);
    CHECK_INT(rdma_bind_addr(datagram, cm_addr4("127.0.0.1", 0)), 0);
    return 0;
}

static int close_all(void **state)
{
    struct rdma_cm_id **all[] = {&fresh, &bound, &listener, &resolved, &datagram};

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        cm_end(all[i]);
    rdma_destroy_event_channel(channel);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_wrong_argument_is_refused_in_words),
        cmocka_unit_test(everything_still_works_afterwards),
    };

    return cmocka_run_group_tests(tests, open_all, close_all);
}
