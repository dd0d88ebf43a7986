// SPDX-License-Identifier: MIT
// also: threads
// Event channels: the descriptor, acknowledgement, ids that change their channel.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "face/lib/cm.h"

static struct cm_both b;

static void a_descriptor_is_readable_exactly_while_events_wait(void **state)
{
    struct rdma_event_channel *c = cm_channel();
    struct rdma_cm_id *id[3];
    struct rdma_cm_event *e;

    (void)state;
    CHECK(!cm_readable_within(c, 0));
    for (int i = 0; i < 3; i++) {
        id[i] = cm_new_id(c, RDMA_PS_TCP);
        CHECK_INT(rdma_resolve_addr(id[i], NULL, cm_addr4("127.0.0.1", 1), 100), 0);
    }
    for (int i = 0; i < 2; i++) {
        CHECK(cm_readable_within(c, 0));
        CHECK_INT(rdma_get_cm_event(c, &e), 0);
        CHECK(e->id == id[i]);
        CHECK_INT(rdma_ack_cm_event(e), 0);
    }
    CHECK(cm_readable_within(c, 0));
    CHECK_INT(rdma_destroy_id(id[2]), 0); // takes its event along
    CHECK(!cm_readable_within(c, 0));
    CHECK_INT(fcntl(c->fd, F_SETFL, O_NONBLOCK), 0);
    CHECK_INT(rdma_get_cm_event(c, &e), -1);
    CHECK_INT(errno, EAGAIN);
    for (int i = 0; i < 2; i++)
        CHECK_INT(rdma_destroy_id(id[i]), 0);
    rdma_destroy_event_channel(c);
}

static void *destroy(void *arg)
{
    CHECK_INT(rdma_destroy_id(arg), 0);
    return NULL;
}

static void *get(void *arg)
{
    struct rdma_cm_event *e;

    CHECK_INT(rdma_get_cm_event(arg, &e), 0);
    return e;
}

static bool ends_within(pthread_t t, int ms, void **result)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += ms % 1000 * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000L;
    }
    return !pthread_timedjoin_np(t, result, &until);
}

static void destroying_an_id_waits_for_its_last_acknowledgement(void **state)
{
    struct rdma_event_channel *c = cm_channel();
    struct rdma_cm_id *id = cm_new_id(c, RDMA_PS_TCP);
    struct rdma_cm_event *e;
    pthread_t t;

    (void)state;
    CHECK_INT(rdma_resolve_addr(id, NULL, cm_addr4("127.0.0.1", 1), 100), 0);
    e = cm_expect(c, RDMA_CM_EVENT_ADDR_RESOLVED);
    CHECK_INT(pthread_create(&t, NULL, destroy, id), 0);
    CHECK(!ends_within(t, 100, NULL));
    CHECK_INT(rdma_ack_cm_event(e), 0);
    CHECK(ends_within(t, CM_WAIT_MS, NULL));
    rdma_destroy_event_channel(c);
}

// A request belongs to the listener until it is acknowledged, and not to the new id.
static void a_request_is_the_listeners_event(void **state)
{
    struct rdma_cm_event *e;
    pthread_t t;

    (void)state;
    cm_both_open(&b, RDMA_PS_TCP, 4);
    cm_make_qp(b.active);
    CHECK_INT(rdma_connect(b.active, NULL), 0);
    e = cm_expect(b.passive_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
    CHECK_INT(rdma_destroy_id(e->id), 0);
    CHECK_INT(pthread_create(&t, NULL, destroy, b.listener), 0);
    CHECK(!ends_within(t, 100, NULL));
    CHECK_INT(rdma_ack_cm_event(e), 0);
    CHECK(ends_within(t, CM_WAIT_MS, NULL));
    b.listener = NULL;
    cm_expect_status(b.active_channel, RDMA_CM_EVENT_REJECTED, 28);
    cm_both_close(&b);
}

static void who_waits_for_an_event_is_woken_by_it(void **state)
{
    struct rdma_event_channel *c = cm_channel();
    struct rdma_cm_id *id = cm_new_id(c, RDMA_PS_TCP);
    void *got;
    pthread_t t;

    (void)state;
    CHECK_INT(pthread_create(&t, NULL, get, c), 0);
    CHECK(!ends_within(t, 50, NULL));
    CHECK_INT(rdma_resolve_addr(id, NULL, cm_addr4("127.0.0.1", 1), 100), 0);
    CHECK(ends_within(t, CM_WAIT_MS, &got));
    CHECK_INT(rdma_ack_cm_event(got), 0);
    CHECK_INT(rdma_destroy_id(id), 0);
    rdma_destroy_event_channel(c);
}

static void an_id_that_migrates_takes_its_events_along(void **state)
{
    struct rdma_event_channel *from = cm_channel(), *to = cm_channel();
    struct rdma_cm_id *id = cm_new_id(from, RDMA_PS_TCP);

    (void)state;
    CHECK_INT(rdma_resolve_addr(id, NULL, cm_addr4("127.0.0.1", 1), 100), 0);
    CHECK_INT(rdma_migrate_id(id, to), 0);
    CHECK(id->channel == to);
    CHECK(!cm_readable_within(from, 0));
    rdma_destroy_event_channel(from);
    cm_expect_ok(to, RDMA_CM_EVENT_ADDR_RESOLVED);
    CHECK_INT(rdma_destroy_id(id), 0);
    rdma_destroy_event_channel(to);
}

static void an_id_without_a_channel_waits_and_may_get_one(void **state)
{
    struct rdma_event_channel *c = cm_channel();
    struct rdma_cm_id *id = cm_new_id(NULL, RDMA_PS_TCP);

    (void)state;
    CHECK_INT(rdma_resolve_addr(id, NULL, cm_addr4("127.0.0.1", 1), 100), 0);
    CHECK(id->event && id->event->event == RDMA_CM_EVENT_ADDR_RESOLVED);
    CHECK_INT(rdma_migrate_id(id, NULL), -1);
    CHECK_INT(errno, EINVAL);
    CHECK_INT(rdma_migrate_id(id, c), 0);
    CHECK(!id->event);
    CHECK_INT(rdma_resolve_route(id, 100), 0);
    CHECK(!id->event);
    cm_expect_ok(c, RDMA_CM_EVENT_ROUTE_RESOLVED);
    CHECK_INT(id->route.num_paths, 1);
    CHECK_INT(rdma_destroy_id(id), 0);
    rdma_destroy_event_channel(c);
}

// Programs exist that destroy the channel first, or never destroy the id.
static void ids_outlive_their_channel_and_are_only_to_be_destroyed(void **state)
{
    struct rdma_event_channel *c = cm_channel();
    struct rdma_cm_id *listener = cm_new_id(c, RDMA_PS_TCP), *other;
    uint16_t port;

    (void)state;
    CHECK_INT(rdma_bind_addr(listener, cm_addr4("127.0.0.1", 0)), 0);
    CHECK_INT(rdma_listen(listener, 1), 0);
    port = ntohs(rdma_get_src_port(listener));
    rdma_destroy_event_channel(c);
    c = cm_channel();
    other = cm_new_id(c, RDMA_PS_TCP);
    CHECK_INT(rdma_bind_addr(other, cm_addr4("127.0.0.1", port)), 0); // its port is free
    CHECK_INT(rdma_destroy_id(listener), 0);
    CHECK_INT(rdma_destroy_id(other), 0);
    rdma_destroy_event_channel(c);
}

// Programs exist whose main thread destroys the channel while another takes events from it.
static void a_destroyed_channel_is_refused_by_every_call(void **state)
{
    struct rdma_event_channel *c = cm_channel(), *gone = cm_channel();
    struct rdma_cm_id *id = cm_new_id(c, RDMA_PS_TCP), *sync = cm_new_id(NULL, RDMA_PS_TCP), *none = NULL;
    struct rdma_cm_event *e;

    (void)state;
    rdma_destroy_event_channel(gone);
    rdma_destroy_event_channel(gone);
    CHECK_INT(rdma_get_cm_event(gone, &e), -1);
    CHECK_INT(errno, EBADF);
    CHECK_INT(rdma_create_id(gone, &none, NULL, RDMA_PS_TCP), -1);
    CHECK_INT(errno, EBADF);
    CHECK(!none);
    CHECK_INT(rdma_migrate_id(id, gone), -1);
    CHECK_INT(errno, EBADF);
    CHECK(id->channel == c);
    CHECK_INT(rdma_resolve_addr(sync, NULL, cm_addr4("127.0.0.1", 1), 100), 0);
    CHECK_INT(rdma_migrate_id(sync, gone), -1);
    CHECK_INT(errno, EBADF);
    CHECK(sync->event && sync->event->event == RDMA_CM_EVENT_ADDR_RESOLVED); // nothing of it was taken
    CHECK_INT(rdma_destroy_id(sync), 0);
    CHECK_INT(rdma_destroy_id(id), 0);
    rdma_destroy_event_channel(c);
}

static void *get_or_be_refused(void *arg)
{
    struct rdma_cm_event *e;

    CHECK_INT(rdma_get_cm_event(arg, &e), -1);
    CHECK_INT(errno, EBADF);
    return NULL;
}

// As with a kernel, who sleeps inside sleeps on, until it is canceled; who comes late is refused.
static void a_channel_may_be_destroyed_while_somebody_waits_inside(void **state)
{
    (void)state;
    for (int ms = 0; ms <= 50; ms += 10) { // 0: it may not have arrived yet
        struct rdma_event_channel *c = cm_channel();
        void *result;
        pthread_t t;

        CHECK_INT(pthread_create(&t, NULL, get_or_be_refused, c), 0);
        if (ms)
            CHECK(!ends_within(t, ms, NULL));
        rdma_destroy_event_channel(c);
        if (!ends_within(t, ms, &result)) {
            CHECK_INT(pthread_cancel(t), 0);
            CHECK(ends_within(t, CM_WAIT_MS, &result));
            CHECK(result == PTHREAD_CANCELED || !result);
        }
    }
}

static void who_waits_at_a_descriptor_that_is_closed_is_told(void **state)
{
    struct rdma_event_channel *c = cm_channel();
    struct rdma_cm_event *e;

    (void)state;
    CHECK_INT(close(c->fd), 0);
    CHECK_INT(rdma_get_cm_event(c, &e), -1);
    CHECK_INT(errno, EBADF);
    rdma_destroy_event_channel(c);
}

static void a_forked_child_has_no_channels_but_may_make_one(void **state)
{
    struct rdma_event_channel *c = cm_channel();
    struct rdma_cm_id *id = cm_new_id(c, RDMA_PS_TCP);
    int status;
    pid_t pid = fork();

    (void)state;
    if (pid == 0) {
        struct rdma_cm_event *e;
        struct rdma_event_channel *own;

        if (rdma_get_cm_event(c, &e) != -1 || errno != ENODEV ||
            rdma_bind_addr(id, cm_addr4("127.0.0.1", 0)) != -1)
            _exit(1);
        own = rdma_create_event_channel();
        if (!own || rdma_create_id(own, &id, NULL, RDMA_PS_TCP) ||
            rdma_bind_addr(id, cm_addr4("127.0.0.1", 0)))
            _exit(2);
        rdma_destroy_event_channel(c); // its own copy
        if (rdma_get_cm_event(c, &e) != -1 || errno != EBADF)
            _exit(3);
        _exit(0);
    }
    CHECK_INT(waitpid(pid, &status, 0), pid);
    CHECK_INT(status, 0);
    CHECK_INT(rdma_bind_addr(id, cm_addr4("127.0.0.1", 0)), 0); // the parent's goes on
    CHECK_INT(rdma_destroy_id(id), 0);
    rdma_destroy_event_channel(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_descriptor_is_readable_exactly_while_events_wait),
        cmocka_unit_test(destroying_an_id_waits_for_its_last_acknowledgement),
        cmocka_unit_test(a_request_is_the_listeners_event),
        cmocka_unit_test(who_waits_for_an_event_is_woken_by_it),
        cmocka_unit_test(an_id_that_migrates_takes_its_events_along),
        cmocka_unit_test(an_id_without_a_channel_waits_and_may_get_one),
        cmocka_unit_test(ids_outlive_their_channel_and_are_only_to_be_destroyed),
        cmocka_unit_test(a_destroyed_channel_is_refused_by_every_call),
        cmocka_unit_test(a_channel_may_be_destroyed_while_somebody_waits_inside),
        cmocka_unit_test(who_waits_at_a_descriptor_that_is_closed_is_told),
        cmocka_unit_test(a_forked_child_has_no_channels_but_may_make_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
