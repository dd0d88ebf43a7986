// SPDX-License-Identifier: MIT
// Import and bind by notice, with a peer that is stopped: the calls return, nothing is told before there is
// something to tell, and who gives a handle back is not held up.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "face/urma/lib/uend.h"

enum { FOREVER = 600000 }; // milliseconds; no test lasts so long

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
    };

    setenv("DRYDOCK_STOPPED_MS", "600000", 1); // who is stopped here is not dead
    return cmocka_run_group_tests_name("urma notices", tests, NULL, NULL);
}
