// SPDX-License-Identifier: MIT
// link: rdmacm
// timeout: 120
// rdma_cm in the hands of several threads: connections that are made and ended beside each other against one
// listener, a channel whose events two threads take, a group that is left while its event is on its way,
// streams that come and go, one datagram socket with two readers. Here, and not with the other tests of the
// face, so that it is built wherever unit tests are.
#include <rdma/rsocket.h>

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>

#include "face/lib/cm.h"

enum { THREADS = 3, ROUNDS = 12 };

static _Atomic unsigned wrong, done; // a check in a thread cannot end the test
static _Atomic bool over;
static uint16_t port;

static bool see(bool right, const char *what, long got)
{
    if (right)
        return true;
    atomic_fetch_add(&wrong, 1);
    printf("expected: %s, got %ld (errno %d)\n", what, got, errno);
    return false;
}

// `body` in each of the threads, `beside` in two more until these have ended.
static void in_threads(void *(*body)(void *), void *(*beside)(void *), void *arg)
{
    pthread_t t[THREADS + 2];

    atomic_store(&over, false);
    atomic_store(&wrong, 0);
    atomic_store(&done, 0);
    for (unsigned i = 0; i < THREADS + 2; i++)
        CHECK_INT(pthread_create(&t[i], NULL, i < THREADS ? body : beside, arg), 0);
    for (unsigned i = 0; i < THREADS + 2; i++) {
        if (i == THREADS)
            atomic_store(&over, true);
        CHECK_INT(pthread_join(t[i], NULL), 0);
    }
    CHECK_INT(atomic_load(&wrong), 0);
}

// ---- connections

static struct rdma_cm_id *listen_on(struct rdma_event_channel *c)
{
    struct rdma_cm_id *id = cm_new_id(c, RDMA_PS_TCP);

    CHECK_INT(rdma_bind_addr(id, cm_addr4("127.0.0.1", 0)), 0);
    CHECK_INT(rdma_listen(id, 64), 0);
    port = ntohs(rdma_get_src_port(id));
    return id;
}

static bool give_qp(struct rdma_cm_id *id)
{
    struct ibv_qp_init_attr attr = {.cap = {4, 4, 1, 1, 0}, .qp_type = id->qp_type, .sq_sig_all = 1};

    return see(!rdma_create_qp(id, NULL, &attr), "a queue pair", -1);
}

static void answer(struct rdma_cm_event *e)
{
    struct rdma_cm_id *id = e->id;
    enum rdma_cm_event_type type = e->event;

    rdma_ack_cm_event(e);
    if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
        see(give_qp(id) && !rdma_accept(id, NULL), "an accepted request", type);
    } else if (type == RDMA_CM_EVENT_DISCONNECTED) {
        see(!rdma_disconnect(id), "an answer to a goodbye", type);
        rdma_destroy_qp(id);
        see(!rdma_destroy_id(id), "the end of an id", type);
        atomic_fetch_add(&done, 1);
    }
}

// One of two threads that take the events of one channel; a lone one waits for the other's share, too.
static void *serve(void *arg)
{
    struct rdma_event_channel *c = arg;

    while (!atomic_load(&over) || atomic_load(&done) < THREADS * ROUNDS) {
        struct rdma_cm_event *e;

        if (!cm_readable_within(c, 20))
            continue;
        if (!rdma_get_cm_event(c, &e))
            answer(e);
        else if (!see(errno == EAGAIN, "an event that the other thread has taken, or one", errno))
            break;
    }
    return NULL;
}

static void *connect_and_part(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        struct rdma_cm_id *id;
        bool fine = see(!rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), "an id", -1);

        if (!fine)
            return NULL;
        fine = see(!rdma_resolve_addr(id, NULL, cm_addr4("127.0.0.1", port), 2000), "an address", -1) &&
               see(!rdma_resolve_route(id, 2000), "a route", -1) && give_qp(id) &&
               see(!rdma_connect(id, NULL), "a connection", -1);
        if (fine)
            see(!rdma_disconnect(id), "a goodbye", -1);
        rdma_destroy_qp(id);
        see(!rdma_destroy_id(id), "the end of an id", -1);
    }
    return NULL;
}

static void threads_connect_beside_each_other(void **state)
{
    struct rdma_event_channel *c = cm_channel();
    struct rdma_cm_id *listener = listen_on(c);

    (void)state;
    CHECK_INT(fcntl(c->fd, F_SETFL, O_NONBLOCK), 0);
    in_threads(connect_and_part, serve, c);
    CHECK_INT(rdma_destroy_id(listener), 0);
    rdma_destroy_event_channel(c);
}

// ---- requests that nobody takes

static void *ask_and_leave(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        struct rdma_event_channel *c = rdma_create_event_channel();
        struct rdma_cm_id *id;

        (void)arg;
        if (!see(c && !rdma_create_id(c, &id, NULL, RDMA_PS_TCP), "an id", -1))
            return NULL;
        cm_resolve(c, id, port);
        if (give_qp(id))
            see(!rdma_connect(id, NULL), "a request", -1);
        rdma_destroy_qp(id); // whatever has become of it by now
        see(!rdma_destroy_id(id), "the end of an id", -1);
        rdma_destroy_event_channel(c);
    }
    return NULL;
}

static void *listen_and_leave(void *arg)
{
    (void)arg;
    while (!atomic_load(&over)) {
        struct rdma_event_channel *c = rdma_create_event_channel();
        struct rdma_cm_id *id;

        if (!see(c && !rdma_create_id(c, &id, NULL, RDMA_PS_TCP), "an id", -1))
            return NULL;
        // Taken by the other thread: it is there, then.
        if (!rdma_bind_addr(id, cm_addr4("127.0.0.1", port)) && !rdma_listen(id, 4))
            cm_readable_within(c, 5);
        see(!rdma_destroy_id(id), "the end of a listener with requests", -1);
        rdma_destroy_event_channel(c);
    }
    return NULL;
}

static void listeners_go_while_they_are_asked(void **state)
{
    struct rdma_event_channel *c = cm_channel();

    (void)state;
    CHECK_INT(rdma_destroy_id(listen_on(c)), 0); // its number, which is free again
    rdma_destroy_event_channel(c);
    in_threads(ask_and_leave, listen_and_leave, NULL);
}

// ---- groups

static void *join_and_leave(void *arg)
{
    struct rdma_cm_id *id = arg;

    for (int i = 0; i < ROUNDS; i++) {
        struct sockaddr *group = cm_addr4(i % 2 ? "239.7.7.1" : "239.7.7.2", 0);

        // Another thread's membership of the same group may be the one that is left.
        if (see(!rdma_join_multicast(id, group, NULL), "a group to be joined", -1))
            see(!rdma_leave_multicast(id, group), "a group to be left", -1);
    }
    return NULL;
}

static void *take_events(void *arg)
{
    struct rdma_cm_id *id = arg;
    struct rdma_cm_event *e;

    while (!atomic_load(&over))
        if (cm_readable_within(id->channel, 5) && !rdma_get_cm_event(id->channel, &e))
            rdma_ack_cm_event(e);
    return NULL;
}

static void a_group_is_left_while_its_event_is_on_its_way(void **state)
{
    struct rdma_event_channel *c = cm_channel();
    struct rdma_cm_id *id = cm_new_id(c, RDMA_PS_UDP);

    (void)state;
    CHECK_INT(fcntl(c->fd, F_SETFL, O_NONBLOCK), 0);
    CHECK_INT(rdma_bind_addr(id, cm_addr4("127.0.0.1", 0)), 0);
    cm_make_qp(id);
    in_threads(join_and_leave, take_events, id);
    rdma_destroy_qp(id);
    CHECK_INT(rdma_destroy_id(id), 0);
    rdma_destroy_event_channel(c);
}

// ---- streams

static int stream_listener(void)
{
    int fd = rsocket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a;
    socklen_t len = sizeof a;

    CHECK(fd >= 0);
    CHECK_INT(rbind(fd, cm_addr4("127.0.0.1", 0), sizeof(struct sockaddr_in)), 0);
    CHECK_INT(rlisten(fd, 16), 0);
    CHECK_INT(rgetsockname(fd, (struct sockaddr *)&a, &len), 0);
    CHECK_INT(rfcntl(fd, F_SETFL, O_NONBLOCK), 0);
    port = ntohs(a.sin_port);
    return fd;
}

static void *send_a_line(void *arg)
{
    char back[8];

    (void)arg;
    for (int i = 0; i < ROUNDS / 3; i++) {
        int fd = rsocket(AF_INET, SOCK_STREAM, 0);

        if (!see(fd >= 0, "an rsocket", fd))
            return NULL;
        if (see(!rconnect(fd, cm_addr4("127.0.0.1", port), sizeof(struct sockaddr_in)), "a stream", -1) &&
            see(rsend(fd, "a line\n", 7, 0) == 7, "bytes to be sent", -1))
            see(rrecv(fd, back, 7, MSG_WAITALL) == 7, "bytes to come back", -1);
        see(!rclose(fd), "the end of a stream", -1);
    }
    return NULL;
}

static void *echo(void *arg)
{
    int listener = *(int *)arg;

    while (!atomic_load(&over)) {
        struct pollfd p = {.fd = listener, .events = POLLIN};
        char line[8];
        int fd = rpoll(&p, 1, 20) == 1 ? raccept(listener, NULL, NULL) : -1;

        if (fd < 0)
            continue;
        if (see(rrecv(fd, line, 7, MSG_WAITALL) == 7, "bytes to come", -1))
            see(rsend(fd, line, 7, 0) == 7, "bytes to be sent back", -1);
        rrecv(fd, line, 1, 0); // until the other end goes
        see(!rclose(fd), "the end of an accepted stream", -1);
    }
    return NULL;
}

static void streams_come_and_go_beside_each_other(void **state)
{
    int listener;

    (void)state;
    if (getenv("DRYDOCK_EMULATED")) // an emulator has no process_vm, and its own idea of what is mapped
        skip();
    listener = stream_listener();
    in_threads(send_a_line, echo, &listener);
    CHECK_INT(rclose(listener), 0);
}

// ---- datagrams

// A datagram may be lost where a thread gets no processor for long: it is sent again.
static void *ask_by_datagram(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        int fd = rsocket(AF_INET, SOCK_DGRAM, 0), n = 0;
        struct pollfd p = {.fd = fd, .events = POLLIN};
        char back[4];

        (void)arg;
        if (!see(fd >= 0, "a datagram rsocket", fd))
            return NULL;
        for (int tries = 0; tries < 30 && !n; tries++) {
            if (!see(rsendto(fd, "ask", 3, 0, cm_addr4("127.0.0.1", port), sizeof(struct sockaddr_in)) == 3,
                     "a datagram to be sent", -1))
                break;
            n = rpoll(&p, 1, 2000);
        }
        if (see(n == 1, "an answer", n))
            see(rrecv(fd, back, sizeof back, 0) == 3 && !memcmp(back, "ask", 3), "what was asked", -1);
        see(!rclose(fd), "the end of a datagram rsocket", -1);
    }
    return NULL;
}

// One of two readers: what both were told of is taken by one of them.
static void *answer_datagrams(void *arg)
{
    int fd = *(int *)arg;

    while (!atomic_load(&over)) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        struct sockaddr_in from;
        socklen_t size = sizeof from;
        char line[4];
        ssize_t n;

        if (rpoll(&p, 1, 20) != 1)
            continue;
        n = rrecvfrom(fd, line, sizeof line, MSG_DONTWAIT, (struct sockaddr *)&from, &size);
        if (n < 0)
            see(errno == EAGAIN, "a datagram, or one that the other thread has taken", errno);
        else
            see(n == 3 && rsendto(fd, line, 3, 0, (struct sockaddr *)&from, size) == 3,
                "a datagram to be sent back", n);
    }
    return NULL;
}

static void a_datagram_socket_has_two_readers(void **state)
{
    struct sockaddr_in a;
    socklen_t len = sizeof a;

    (void)state;
    if (getenv("DRYDOCK_EMULATED")) // as above
        skip();
    int fd = rsocket(AF_INET, SOCK_DGRAM, 0);
    CHECK_INT(rbind(fd, cm_addr4("127.0.0.1", 0), sizeof(struct sockaddr_in)), 0);
    CHECK_INT(rgetsockname(fd, (struct sockaddr *)&a, &len), 0);
    port = ntohs(a.sin_port);
    in_threads(ask_by_datagram, answer_datagrams, &fd);
    CHECK_INT(rclose(fd), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_connect_beside_each_other),
        cmocka_unit_test(listeners_go_while_they_are_asked),
        cmocka_unit_test(a_group_is_left_while_its_event_is_on_its_way),
        cmocka_unit_test(streams_come_and_go_beside_each_other),
        cmocka_unit_test(a_datagram_socket_has_two_readers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
