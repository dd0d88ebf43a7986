// SPDX-License-Identifier: MIT
// A process that is out of descriptors: a listener lets callers wait and takes them when there is room again;
// who asks is told what is short and may ask again.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <sys/resource.h>
#include <unistd.h>

#include "face/lib/cm.h"

static struct rlimit usual;

// Every number below the limit is taken: the next descriptor is refused.
static void run_out(void)
{
    struct rlimit now;
    int next = dup(0);

    CHECK(next >= 0);
    close(next);
    CHECK_INT(getrlimit(RLIMIT_NOFILE, &usual), 0);
    now = usual;
    now.rlim_cur = (rlim_t)next;
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &now), 0);
    CHECK(dup(0) < 0 && errno == EMFILE);
}

static void have_room(void)
{
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &usual), 0);
}

static void listens(int sock)
{
    struct rdma_event_channel *c = cm_channel();
    struct rdma_cm_id *id = cm_new_id(c, RDMA_PS_TCP);
    struct rdma_cm_event *e;
    uint16_t port;

    CHECK_INT(rdma_bind_addr(id, cm_addr4("127.0.0.1", 0)), 0);
    CHECK_INT(rdma_listen(id, 4), 0);
    port = ntohs(rdma_get_src_port(id));
    run_out();
    tell(sock, &port, sizeof port);
    meet(sock); // he has asked
    CHECK(!cm_readable_within(c, 300));
    have_room();
    e = cm_expect(c, RDMA_CM_EVENT_CONNECT_REQUEST);
    CHECK_INT(rdma_reject(e->id, NULL, 0), 0);
    struct rdma_cm_id *child = e->id;
    CHECK_INT(rdma_ack_cm_event(e), 0);
    CHECK_INT(rdma_destroy_id(child), 0);
    CHECK_INT(rdma_destroy_id(id), 0);
    rdma_destroy_event_channel(c);
}

static void asks(int sock)
{
    struct rdma_event_channel *c = cm_channel();
    struct rdma_cm_id *id;
    uint16_t port;

    hear(sock, &port, sizeof port);
    id = cm_caller(c, port);
    CHECK_INT(rdma_connect(id, NULL), 0);
    meet(sock);
    cm_expect_status(c, RDMA_CM_EVENT_REJECTED, 28); // the program's own answer
    cm_end(&id);
    rdma_destroy_event_channel(c);
}

static void a_caller_waits_while_the_listener_has_no_descriptor(void **state)
{
    (void)state;
    two_processes(listens, asks);
}

static void who_cannot_ask_is_told_and_may_ask_again(void **state)
{
    struct cm_both b;

    (void)state;
    cm_both_open(&b, RDMA_PS_TCP, 4);
    cm_make_qp(b.active);
    run_out();
    errno = 0;
    CHECK_INT(rdma_connect(b.active, NULL), -1);
    CHECK_INT(errno, EMFILE);
    have_room();
    CHECK_INT(rdma_connect(b.active, NULL), 0);
    cm_take_request(&b);
    cm_make_qp(b.passive);
    CHECK_INT(rdma_accept(b.passive, NULL), 0);
    cm_expect_ok(b.active_channel, RDMA_CM_EVENT_ESTABLISHED);
    cm_both_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_caller_waits_while_the_listener_has_no_descriptor),
        cmocka_unit_test(who_cannot_ask_is_told_and_may_ask_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
