// SPDX-License-Identifier: MIT
// One side of a connection is killed at each step of its making and its life. The other one is told what a
// kernel would have told in the dead one's place, within a bound, and its next calls answer.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "face/lib/cm.h"

enum step { BOUND, LISTENING, REQUESTED, ANSWERED, ESTABLISHED, PARTING, STEPS };

static const char *const step_name[STEPS] = {"bound",    "listening",   "requested",
                                             "answered", "established", "parting"};

static int sock;

// ---- the side that dies: goes as far as `last`, says so, and waits for the end

static void stay(void)
{
    char byte = 1;

    CHECK_INT(write(sock, &byte, 1), 1);
    for (;;)
        pause();
}

static void reached(enum step now, enum step last)
{
    if (now == last)
        stay();
}

static void dying_listener(enum step last)
{
    struct rdma_event_channel *c = cm_channel();
    struct rdma_cm_id *id = cm_new_id(c, RDMA_PS_TCP), *child;
    struct rdma_cm_event *e;
    uint16_t port;

    CHECK_INT(rdma_bind_addr(id, cm_addr4("127.0.0.1", 0)), 0);
    port = ntohs(rdma_get_src_port(id));
    tell(sock, &port, sizeof port);
    reached(BOUND, last);
    CHECK_INT(rdma_listen(id, 4), 0);
    reached(LISTENING, last);
    meet(sock); // he may ask now
    e = cm_expect(c, RDMA_CM_EVENT_CONNECT_REQUEST);
    child = e->id;
    CHECK_INT(rdma_ack_cm_event(e), 0);
    reached(REQUESTED, last);
    cm_make_qp(child);
    CHECK_INT(rdma_accept(child, NULL), 0);
    reached(ANSWERED, last);
    cm_expect_ok(c, RDMA_CM_EVENT_ESTABLISHED);
    reached(ESTABLISHED, last);
    CHECK_INT(rdma_disconnect(child), 0);
    stay();
}

static void dying_client(enum step last)
{
    struct rdma_event_channel *c = cm_channel();
    struct rdma_cm_id *id;
    uint16_t port;

    hear(sock, &port, sizeof port);
    id = cm_caller(c, port);
    CHECK_INT(rdma_connect(id, NULL), 0);
    reached(REQUESTED, last);
    CHECK(cm_readable_within(c, CM_WAIT_MS)); // the answer has come and nobody has taken it
    reached(ANSWERED, last);
    cm_expect_ok(c, RDMA_CM_EVENT_ESTABLISHED);
    reached(ESTABLISHED, last);
    CHECK_INT(rdma_disconnect(id), 0);
    stay();
}

static pid_t start(void (*side)(enum step), enum step last)
{
    int ends[2];
    pid_t pid;

    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    pid = fork();
    if (pid == 0) {
        close(ends[0]);
        sock = ends[1];
        side(last);
        _exit(0);
    }
    close(ends[1]);
    sock = ends[0];
    return pid;
}

static void strike(pid_t pid)
{
    char byte;

    CHECK_INT(read(sock, &byte, 1), 1); // it is there
    kill(pid, SIGKILL);
    CHECK_INT(waitpid(pid, NULL, 0), pid);
    close(sock);
}

// ---- the survivors. Each runs in a child of its own: a device must not be open when another is forked off.

static void client_survives(enum step last)
{
    pid_t pid = start(dying_listener, last);
    struct rdma_event_channel *c = cm_channel();
    struct rdma_cm_id *id;
    uint16_t port;

    hear(sock, &port, sizeof port);
    id = cm_caller(c, port);
    if (last <= LISTENING) {
        strike(pid);
        CHECK_INT(rdma_connect(id, NULL), 0);
        cm_expect_status(c, RDMA_CM_EVENT_REJECTED, 8);
        goto end;
    }
    meet(sock);
    CHECK_INT(rdma_connect(id, NULL), 0);
    if (last == REQUESTED) {
        strike(pid);
        cm_expect_status(c, RDMA_CM_EVENT_REJECTED, 28);
    } else if (last == ANSWERED) {
        // Its answer may be taken as one or not; either way there is an end.
        struct rdma_cm_event *e;

        strike(pid);
        CHECK(cm_readable_within(c, CM_WAIT_MS));
        CHECK_INT(rdma_get_cm_event(c, &e), 0);
        CHECK(e->event == RDMA_CM_EVENT_CONNECT_ERROR || e->event == RDMA_CM_EVENT_ESTABLISHED);
        if (e->event == RDMA_CM_EVENT_ESTABLISHED)
            cm_expect_ok(c, RDMA_CM_EVENT_DISCONNECTED);
        CHECK_INT(rdma_ack_cm_event(e), 0);
    } else {
        cm_expect_ok(c, RDMA_CM_EVENT_ESTABLISHED);
        strike(pid);
        cm_expect_ok(c, RDMA_CM_EVENT_DISCONNECTED);
        CHECK_INT(rdma_disconnect(id), 0);
        cm_expect_ok(c, RDMA_CM_EVENT_TIMEWAIT_EXIT);
    }
end:
    cm_end(&id);
    rdma_destroy_event_channel(c);
}

static void listener_survives(enum step last)
{
    pid_t pid = start(dying_client, last);
    struct rdma_event_channel *c = cm_channel();
    struct rdma_cm_id *id = cm_new_id(c, RDMA_PS_TCP), *child;
    struct rdma_cm_event *e;
    uint16_t port;

    CHECK_INT(rdma_bind_addr(id, cm_addr4("127.0.0.1", 0)), 0);
    CHECK_INT(rdma_listen(id, 4), 0);
    port = ntohs(rdma_get_src_port(id));
    tell(sock, &port, sizeof port);
    e = cm_expect(c, RDMA_CM_EVENT_CONNECT_REQUEST);
    child = e->id;
    CHECK_INT(rdma_ack_cm_event(e), 0);
    cm_make_qp(child);
    if (last == REQUESTED) {
        strike(pid);
        if (!rdma_accept(child, NULL)) // its death was still on its way
            cm_expect_status(c, RDMA_CM_EVENT_REJECTED, 28);
        else
            CHECK_INT(errno, EINVAL);
    } else {
        CHECK_INT(rdma_accept(child, NULL), 0);
        if (last > ANSWERED)
            cm_expect_ok(c, RDMA_CM_EVENT_ESTABLISHED);
        strike(pid);
        if (last > ANSWERED)
            cm_expect_ok(c, RDMA_CM_EVENT_DISCONNECTED);
        else
            cm_expect_status(c, RDMA_CM_EVENT_REJECTED, 28);
        CHECK_INT(rdma_disconnect(child), 0);
    }
    cm_end(&child);
    cm_end(&id);
    rdma_destroy_event_channel(c);
}

static void in_a_child(const char *who, void (*survivor)(enum step), enum step last)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        survivor(last);
        _exit(0);
    }
    CHECK_INT(waitpid(pid, &status, 0), pid);
    if (status)
        fail_msg("the %s was killed when it was %s: expected status 0 of the other side, got %#x", who,
                 step_name[last], status);
}

static void a_listener_that_is_killed_is_told_to_its_client(void **state)
{
    (void)state;
    for (enum step last = BOUND; last < STEPS; last++)
        in_a_child("listener", client_survives, last);
}

static void a_client_that_is_killed_is_told_to_its_listener(void **state)
{
    (void)state;
    for (enum step last = REQUESTED; last < STEPS; last++)
        in_a_child("client", listener_survives, last);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_listener_that_is_killed_is_told_to_its_client),
        cmocka_unit_test(a_client_that_is_killed_is_told_to_its_listener),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
