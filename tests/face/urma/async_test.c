// SPDX-License-Identifier: MIT
// Import and bind by notice, with a peer that is stopped: the calls return, nothing is told before there is
// something to tell, and who gives a handle back is not held up.
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "face/urma/lib/uend.h"

enum {
    FOREVER = 600000, // milliseconds; no test lasts so long
    MANY = 20,
    MANY_MS = 500,
};

struct peer {
    pid_t pid;
    struct uend_address at;
};

static urma_token_t token = {UEND_TOKEN};

static void is_stopped_and_goes_on(int sock)
{
    struct peer me = {.pid = getpid()};
    struct uend e;

    uend_open(&e, NULL);
    me.at = uend_address(&e);
    tell(sock, &me, sizeof me);
    meet(sock);
    uend_close(&e);
}

// The peer is stopped before this process has anything to do with it.
static urma_notifier_t *begin(struct uend *e, struct peer *peer, int sock)
{
    urma_notifier_t *n;

    hear(sock, peer, sizeof *peer);
    CHECK_INT(kill(peer->pid, SIGSTOP), 0);
    uend_open(e, NULL);
    n = urma_create_notifier(e->ctx);
    CHECK(n != NULL);
    return n;
}

static urma_target_jetty_t *import(urma_notifier_t *n, const struct peer *p, uint64_t id, int ms)
{
    urma_target_jetty_t *t = urma_import_jetty_async(n, &p->at.rjetty, &token, id, ms);

    CHECK(t != NULL);
    return t;
}

static void expect_notice(urma_notifier_t *n, uint64_t id, urma_status_t status)
{
    urma_notify_t got = {0};

    CHECK_INT(urma_wait_notify(n, 1, &got, 20000), 1);
    CHECK_INT(got.user_ctx, id);
    CHECK_INT(got.status, status);
    CHECK_INT(urma_ack_notify(n->urma_ctx, 1, &got), 0);
}

static void asks_a_stopped_one(int sock)
{
    urma_target_jetty_t *t;
    urma_notify_t got;
    struct peer peer;
    struct uend e;
    urma_notifier_t *n = begin(&e, &peer, sock);

    t = import(n, &peer, 1, 30);
    expect_notice(n, 1, URMA_ETIMEOUT);
    CHECK_INT(urma_unimport_jetty_async(t), 0);

    t = import(n, &peer, 2, FOREVER);
    CHECK_INT(urma_bind_jetty_async(n, e.jetty, t, 3, FOREVER), 0);
    CHECK_INT(urma_wait_notify(n, 1, &got, 20), 0);
    CHECK_INT(urma_unimport_jetty_async(t), 0); // and with it goes what was under way

    t = import(n, &peer, 4, FOREVER);
    CHECK_INT(urma_bind_jetty_async(n, e.jetty, t, 5, FOREVER), 0);
    CHECK_INT(urma_wait_notify(n, 1, &got, 20), 0);
    CHECK_INT(kill(peer.pid, SIGCONT), 0);
    expect_notice(n, 4, URMA_SUCCESS);
    expect_notice(n, 5, URMA_SUCCESS);
    CHECK(e.jetty->remote_jetty == t);
    CHECK_INT(urma_bind_jetty_async(n, e.jetty, t, 6, 0), 0); // the same again
    expect_notice(n, 6, URMA_SUCCESS);
    CHECK_INT(urma_unimport_jetty(t), URMA_FAIL); // bound
    CHECK_INT(urma_unbind_jetty_async(e.jetty), 0);
    CHECK_INT(urma_unimport_jetty_async(t), 0);
    CHECK_INT(urma_delete_notifier(n), 0);
    meet(sock);
    uend_close(&e);
}

static void gives_up(int sock)
{
    urma_target_jetty_t *t;
    struct peer peer;
    struct uend e;
    urma_notifier_t *n = begin(&e, &peer, sock);

    t = import(n, &peer, 1, FOREVER);
    CHECK_INT(urma_bind_jetty_async(n, e.jetty, t, 2, FOREVER), 0);
    CHECK_INT(urma_delete_notifier(n), 0);
    CHECK_INT(urma_unimport_jetty(t), 0);
    CHECK_INT(kill(peer.pid, SIGCONT), 0);
    meet(sock);
    uend_close(&e);
}

static void asks_one_that_answers(urma_notifier_t *n, uint64_t id)
{
    struct uend_address at;
    urma_target_jetty_t *t;
    struct uend e;

    uend_open(&e, NULL);
    at = uend_address(&e);
    t = urma_import_jetty_async(n, &at.rjetty, &token, id, FOREVER);
    CHECK(t != NULL);
    expect_notice(n, id, URMA_SUCCESS);
    CHECK_INT(urma_unimport_jetty(t), 0);
    uend_close(&e);
}

// One after the other they would take MANY times as long; and what stands behind them would wait for all.
static void asks_a_stopped_one_often(int sock)
{
    urma_target_jetty_t *t[MANY];
    struct peer peer;
    struct uend e;
    urma_notifier_t *n = begin(&e, &peer, sock);
    uint64_t before = dock_now_ns(), ms;

    for (unsigned i = 0; i < MANY; i++)
        t[i] = import(n, &peer, 1, MANY_MS);
    for (unsigned i = 0; i < MANY; i++)
        expect_notice(n, 1, URMA_ETIMEOUT);
    ms = (dock_now_ns() - before) / 1000000;
    if (ms >= MANY * MANY_MS / 2)
        printf("expected: %d imports of %d ms at once, took %lu ms\n", MANY, MANY_MS, (unsigned long)ms);
    CHECK(ms < MANY * MANY_MS / 2);
    for (unsigned i = 0; i < MANY; i++)
        CHECK_INT(urma_unimport_jetty(t[i]), 0);

    t[0] = import(n, &peer, 2, FOREVER);
    CHECK_INT(urma_bind_jetty_async(n, e.jetty, t[0], 3, FOREVER), 0);
    asks_one_that_answers(n, 4);
    asks_one_that_answers(n, 5);
    CHECK_INT(kill(peer.pid, SIGCONT), 0);
    expect_notice(n, 2, URMA_SUCCESS);
    expect_notice(n, 3, URMA_SUCCESS);
    CHECK_INT(urma_unbind_jetty(e.jetty), 0);
    CHECK_INT(urma_unimport_jetty(t[0]), 0);
    CHECK_INT(urma_delete_notifier(n), 0);
    meet(sock);
    uend_close(&e);
}

static bool tells(const urma_notifier_t *n, int ms)
{
    struct pollfd p = {.fd = n->fd, .events = POLLIN};

    return poll(&p, 1, ms) == 1;
}

static void a_notice_goes_with_its_handle_unless_that_stays(void **state)
{
    urma_target_jetty_t *first, *t;
    struct uend_address at;
    urma_notify_t got;
    urma_notifier_t *n;
    struct uend e, to;

    (void)state;
    uend_open(&e, NULL);
    uend_open(&to, NULL);
    at = uend_address(&to);
    n = urma_create_notifier(e.ctx);
    CHECK(n != NULL);

    first = urma_import_jetty_async(n, &at.rjetty, &token, 1, FOREVER);
    CHECK(first != NULL && tells(n, 20000));
    CHECK_INT(urma_unimport_jetty(first), 0);
    CHECK(!tells(n, 0));
    CHECK_INT(urma_wait_notify(n, 1, &got, 0), 0);

    t = urma_import_jetty(e.ctx, &at.rjetty, &token);
    CHECK(t != NULL);
    CHECK_INT(urma_bind_jetty_async(n, e.jetty, t, 2, FOREVER), 0);
    CHECK(tells(n, 20000));
    CHECK_INT(urma_unimport_jetty(t), URMA_FAIL);        // bound: handle and notice stay
    CHECK_INT(urma_delete_jetty(e.jetty), URMA_ENOPERM); // as with the jetty
    expect_notice(n, 2, URMA_SUCCESS);
    CHECK_INT(urma_unbind_jetty(e.jetty), 0);
    CHECK_INT(urma_unimport_jetty(t), 0);
    CHECK_INT(urma_delete_notifier(n), 0);
    uend_close(&to);
    uend_close(&e);
}

static void who_does_not_answer_holds_up_nobody_else(void **state)
{
    (void)state;
    two_processes(asks_a_stopped_one_often, is_stopped_and_goes_on);
}

static void a_notice_comes_when_the_peer_answers_and_not_before(void **state)
{
    (void)state;
    two_processes(asks_a_stopped_one, is_stopped_and_goes_on);
}

static void a_notifier_goes_with_what_is_under_way(void **state)
{
    (void)state;
    two_processes(gives_up, is_stopped_and_goes_on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_notice_comes_when_the_peer_answers_and_not_before),
        cmocka_unit_test(a_notifier_goes_with_what_is_under_way),
        cmocka_unit_test(who_does_not_answer_holds_up_nobody_else),
        cmocka_unit_test(a_notice_goes_with_its_handle_unless_that_stays),
    };

    setenv("DRYDOCK_STOPPED_MS", "600000", 1); // who is stopped here is not dead
    return cmocka_run_group_tests_name("urma notices", tests, NULL, NULL);
}
