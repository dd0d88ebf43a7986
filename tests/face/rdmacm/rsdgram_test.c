// SPDX-License-Identifier: MIT
// also: threads
// Datagram rsockets: each datagram whole or not at all, from whom, to whom, and what is lost without a word.
// A datagram may be lost by its nature: what is sent here finds a receive, and its way at once but to another
// process that gets no processor.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "face/lib/cm.h"

enum { MOST = 4064, V4 = sizeof(struct sockaddr_in) };

static int bound(const char *address, uint16_t *port)
{
    struct sockaddr_in name;
    socklen_t len = sizeof name;
    int fd = rsocket(AF_INET, SOCK_DGRAM, 0);

    CHECK(fd >= 0);
    CHECK_INT(rbind(fd, cm_addr4(address, *port), V4), 0);
    CHECK_INT(rgetsockname(fd, (struct sockaddr *)&name, &len), 0);
    CHECK_INT(len, V4);
    *port = ntohs(name.sin_port);
    CHECK(*port != 0);
    return fd;
}

static void send_to(int fd, const void *buf, size_t len, uint16_t port)
{
    CHECK_INT(rsendto(fd, buf, len, 0, cm_addr4("127.0.0.1", port), V4), len);
}

// The next datagram, which must be this one; returns the port of its sender.
static uint16_t expect(int fd, const void *wanted, size_t len)
{
    static char buf[MOST + 1];
    struct sockaddr_in from = {0};
    socklen_t size = sizeof from;

    CHECK_INT(rrecvfrom(fd, buf, sizeof buf, 0, (struct sockaddr *)&from, &size), len);
    CHECK(!memcmp(buf, wanted, len));
    CHECK_INT(size, V4);
    CHECK_INT(from.sin_family, AF_INET);
    CHECK_INT(ntohl(from.sin_addr.s_addr), INADDR_LOOPBACK);
    return ntohs(from.sin_port);
}

static void expect_none(int fd)
{
    char c;

    CHECK_INT(rrecv(fd, &c, 1, MSG_DONTWAIT), -1);
    CHECK_INT(errno, EAGAIN);
}

// ---- two processes

// Until the other has what it wants.
static void answers(int sock)
{
    uint16_t port = 0;
    int fd = bound("0.0.0.0", &port);
    struct pollfd p[2] = {{.fd = fd, .events = POLLIN}, {.fd = sock, .events = POLLIN}};
    char buf[8];

    tell(sock, &port, sizeof port);
    for (;;) {
        struct sockaddr_in from;
        socklen_t size = sizeof from;

        CHECK(rpoll(p, 2, CM_WAIT_MS) > 0);
        if (p[1].revents)
            break;
        CHECK_INT(rrecvfrom(fd, buf, sizeof buf, 0, (struct sockaddr *)&from, &size), 6);
        CHECK_INT(rsendto(fd, buf, 5, 0, (struct sockaddr *)&from, size), 5);
    }
    meet(sock);
    CHECK_INT(rclose(fd), 0);
}

// A datagram may be lost where a process gets no processor for long: it is sent again, and old answers pass.
static void ask(int fd, uint16_t port, char turn)
{
    char question[6] = {turn, 'e', 'l', 'l', 'o', '!'}, answer[8] = "";
    struct pollfd p = {.fd = fd, .events = POLLIN};
    struct sockaddr_in from;
    socklen_t size;

    while (answer[0] != turn) {
        send_to(fd, question, sizeof question, port);
        while (answer[0] != turn && rpoll(&p, 1, 2000) == 1) {
            size = sizeof from;
            CHECK_INT(rrecvfrom(fd, answer, sizeof answer, 0, (struct sockaddr *)&from, &size), 5);
            CHECK(!memcmp(answer + 1, "ello", 4));
            CHECK_INT(ntohs(from.sin_port), port);
            CHECK_INT(ntohl(from.sin_addr.s_addr), INADDR_LOOPBACK);
        }
    }
}

static void asks(int sock)
{
    uint16_t port;
    int fd = rsocket(AF_INET, SOCK_DGRAM, 0);

    hear(sock, &port, sizeof port);
    for (unsigned i = 0; i < 3; i++)
        ask(fd, port, (char)('A' + i));
    meet(sock);
    CHECK_INT(rclose(fd), 0);
}

static void who_asks_is_answered_between_processes(void **state)
{
    (void)state;
    two_processes(answers, asks);
}

// How many sockets have left their name in the runtime directory.
static unsigned names(void)
{
    const char *path = getenv("DRYDOCK_DIR");
    DIR *dir = path ? opendir(path) : NULL;
    struct dirent *e;
    unsigned n = 0;

    while (dir && (e = readdir(dir)))
        n += (e->d_name[0] == 'd' || e->d_name[0] == 'D') && strlen(e->d_name) == 13;
    if (dir)
        closedir(dir);
    return n;
}

static const char *next; // the address that is bound behind a dead process

static void ends_bound(int sock)
{
    uint16_t port = 0, other = 0;

    bound("127.0.0.1", &port);
    bound("127.0.0.1", &other); // which nobody binds again
    tell(sock, &port, sizeof port);
}

// It has ended when its locks are gone, which is a little later than its socket.
static void binds_after_it(int sock)
{
    int fd, other = rsocket(AF_INET, SOCK_DGRAM, 0);
    uint16_t port;
    char c;

    hear(sock, &port, sizeof port);
    CHECK_INT(read(sock, &c, 1), 0);
    send_to(other, "lost", 4, port);
    fd = rsocket(AF_INET, SOCK_DGRAM, 0);
    for (unsigned i = 0; rbind(fd, cm_addr4(next, port), V4) && i < 5000; i++) {
        CHECK_INT(errno, EADDRINUSE);
        usleep(1000);
    }
    send_to(other, "found", 5, port);
    expect(fd, "found", 5);
    if (getenv("DRYDOCK_DIR"))
        CHECK_INT(names(), 2);
    CHECK_INT(rclose(fd), 0);
    CHECK_INT(rclose(other), 0);
}

static void what_a_dead_process_left_is_in_nobodys_way(void **state)
{
    static const char *const addresses[] = {"127.0.0.1", "0.0.0.0"};

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        next = addresses[i];
        two_processes(binds_after_it, ends_bound);
    }
}

static void sends_and_ends(int sock)
{
    uint16_t port;

    hear(sock, &port, sizeof port);
    send_to(rsocket(AF_INET, SOCK_DGRAM, 0), "goodbye", 7, port);
    _exit(0);
}

static void hears_it(int sock)
{
    uint16_t port = 0;
    int fd = bound("127.0.0.1", &port);
    struct pollfd p = {.fd = fd, .events = POLLIN};

    tell(sock, &port, sizeof port);
    CHECK_INT(rpoll(&p, 1, CM_WAIT_MS), 1);
    expect(fd, "goodbye", 7);
    CHECK_INT(rclose(fd), 0);
}

static void who_ends_after_one_datagram_has_sent_it(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++)
        two_processes(hears_it, sends_and_ends);
}

// ---- one process

static void a_datagram_arrives_whole_and_tells_its_sender(void **state)
{
    static const size_t sizes[] = {0, 1, 64, 1000, MOST};
    uint16_t here = 0, there = 0;
    int fd = bound("127.0.0.1", &here), other = bound("127.0.0.1", &there);
    static char buf[MOST + 16];

    (void)state;
    for (size_t i = 0; i < sizeof buf; i++)
        buf[i] = (char)(i * 7);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) // several stand there before one is read
        send_to(other, buf + i, sizes[i], here);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        CHECK_INT(expect(fd, buf + i, sizes[i]), there);
    CHECK_INT(rsendto(other, buf, MOST + 1, 0, cm_addr4("127.0.0.1", here), V4), -1);
    CHECK_INT(errno, EMSGSIZE);
    expect_none(fd);
    CHECK_INT(rclose(fd), 0);
    CHECK_INT(rclose(other), 0);
}

static void what_the_reader_has_no_room_for_is_cut(void **state)
{
    uint16_t port = 0;
    int fd = bound("127.0.0.1", &port), other = rsocket(AF_INET, SOCK_DGRAM, 0);
    char a[4] = "", b[4] = "";
    struct iovec out[2] = {{"one", 3}, {"two", 3}}, in[2] = {{a, 2}, {b, 2}};
    struct sockaddr_in from;
    struct msghdr msg = {
        .msg_name = cm_addr4("127.0.0.1", port), .msg_namelen = V4, .msg_iov = out, .msg_iovlen = 2};
    struct msghdr got = {.msg_name = &from, .msg_namelen = sizeof from, .msg_iov = in, .msg_iovlen = 2};

    (void)state;
    CHECK_INT(rsendmsg(other, &msg, 0), 6);
    CHECK_INT(rsendmsg(other, &msg, 0), 6);
    CHECK_INT(rrecv(fd, a, 2, MSG_PEEK), 2);
    CHECK_INT(rrecv(fd, a, 2, MSG_PEEK | MSG_TRUNC), 6);
    CHECK_INT(rrecvmsg(fd, &got, 0), 4);
    CHECK(got.msg_flags & MSG_TRUNC);
    CHECK_INT(got.msg_namelen, V4);
    CHECK(!memcmp(a, "on", 2) && !memcmp(b, "et", 2));
    expect(fd, "onetwo", 6); // the rest of the first is lost, the second is whole
    expect_none(fd);
    CHECK_INT(rclose(fd), 0);
    CHECK_INT(rclose(other), 0);
}

static void polling_tells_what_can_be_done(void **state)
{
    uint16_t port = 0;
    int fd = bound("127.0.0.1", &port), other = rsocket(AF_INET, SOCK_DGRAM, 0);
    struct pollfd p[2] = {{.fd = fd, .events = POLLIN | POLLOUT}, {.fd = other, .events = POLLOUT}};

    (void)state;
    CHECK_INT(rpoll(p, 2, CM_WAIT_MS), 2);
    CHECK_INT(p[0].revents, POLLOUT);
    CHECK_INT(p[1].revents, POLLOUT);
    p[0].events = POLLIN;
    CHECK_INT(rpoll(p, 1, 20), 0);
    send_to(other, "x", 1, port);
    CHECK_INT(rpoll(p, 1, CM_WAIT_MS), 1);
    CHECK_INT(p[0].revents, POLLIN);
    expect(fd, "x", 1);
    CHECK_INT(rpoll(p, 1, 0), 0);
    CHECK_INT(rclose(fd), 0);
    CHECK_INT(rclose(other), 0);
}

static void a_connected_socket_has_a_peer_and_hears_nobody_else(void **state)
{
    struct sockaddr none = {.sa_family = AF_UNSPEC};
    struct sockaddr_in peer = {0};
    socklen_t len = sizeof peer;
    uint16_t here = 0, there = 0, elsewhere = 0;
    int fd = bound("127.0.0.1", &here), other = bound("127.0.0.1", &there),
        third = bound("127.0.0.1", &elsewhere);

    (void)state;
    CHECK_INT(rsend(fd, "x", 1, 0), -1);
    CHECK_INT(errno, EDESTADDRREQ);
    CHECK_INT(rgetpeername(fd, (struct sockaddr *)&peer, &len), -1);
    CHECK_INT(errno, ENOTCONN);
    CHECK_INT(rconnect(fd, cm_addr4("127.0.0.1", there), V4), 0);
    CHECK_INT(rgetpeername(fd, (struct sockaddr *)&peer, &len), 0);
    CHECK_INT(ntohs(peer.sin_port), there);
    CHECK_INT(rsend(fd, "mine", 4, 0), 4);
    CHECK_INT(expect(other, "mine", 4), here);
    send_to(third, "strange", 7, here);
    send_to(other, "yours", 5, here);
    CHECK_INT(expect(fd, "yours", 5), there);
    expect_none(fd);
    CHECK_INT(rconnect(fd, &none, sizeof none), 0);
    send_to(third, "anybody", 7, here);
    CHECK_INT(expect(fd, "anybody", 7), elsewhere);
    CHECK_INT(rclose(fd), 0);
    CHECK_INT(rclose(other), 0);
    CHECK_INT(rclose(third), 0);
}

static void a_port_is_of_one_socket_and_of_the_next(void **state)
{
    uint16_t port = 0;
    int fd = bound("127.0.0.1", &port), other = rsocket(AF_INET, SOCK_DGRAM, 0), second;

    (void)state;
    second = rsocket(AF_INET, SOCK_DGRAM, 0);
    CHECK_INT(rbind(second, cm_addr4("127.0.0.1", port), V4), -1);
    CHECK_INT(errno, EADDRINUSE);
    send_to(other, "first", 5, port);
    expect(fd, "first", 5);
    CHECK_INT(rclose(fd), 0);
    send_to(other, "nobody", 6, port); // is lost, as on a wire
    CHECK_INT(rbind(second, cm_addr4("127.0.0.1", port), V4), 0);
    send_to(other, "second", 6, port); // its address is looked up anew
    expect(second, "second", 6);
    CHECK_INT(rclose(second), 0);
    CHECK_INT(rclose(other), 0);
}

// Those that find no receive are lost; the others come in order, and so does what follows.
static void a_reader_that_is_slow_loses_some_and_goes_on(void **state)
{
    enum { SENT = 64, SLOTS = 16 };
    uint16_t port = 0;
    int fd = rsocket(AF_INET, SOCK_DGRAM, 0), other = rsocket(AF_INET, SOCK_DGRAM, 0), small = 4096;
    uint32_t last = 0, got = 0, n;
    struct sockaddr_in name;
    socklen_t len = sizeof name;

    (void)state;
    CHECK_INT(rsetsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small), 0);
    CHECK_INT(rbind(fd, cm_addr4("127.0.0.1", 0), V4), 0);
    CHECK_INT(rgetsockname(fd, (struct sockaddr *)&name, &len), 0);
    port = ntohs(name.sin_port);
    for (n = 1; n <= SENT; n++)
        send_to(other, &n, sizeof n, port);
    n = SENT + 1;
    while (last != n) { // until one that is sent again and again arrives
        uint32_t seen;
        send_to(other, &n, sizeof n, port);
        while (rrecv(fd, &seen, sizeof seen, MSG_DONTWAIT) == sizeof seen) {
            CHECK(seen > last || seen == n);
            last = seen;
            got += seen <= SENT;
        }
    }
    CHECK(got >= SLOTS);
    CHECK_INT(rclose(fd), 0);
    CHECK_INT(rclose(other), 0);
}

static void an_ipv6_socket_hears_both_families(void **state)
{
    struct sockaddr_in6 from, name;
    socklen_t size = sizeof from, len = sizeof name;
    int fd = rsocket(AF_INET6, SOCK_DGRAM, 0), four = rsocket(AF_INET, SOCK_DGRAM, 0);
    int six = rsocket(AF_INET6, SOCK_DGRAM, 0);
    uint16_t port, asker = 0;
    char c;

    (void)state;
    CHECK_INT(rbind(fd, cm_addr6("::", 0), sizeof name), 0);
    CHECK_INT(rgetsockname(fd, (struct sockaddr *)&name, &len), 0);
    port = ntohs(name.sin6_port);
    CHECK_INT(rsendto(six, "6", 1, 0, cm_addr6("::1", port), sizeof name), 1);
    CHECK_INT(rrecvfrom(fd, &c, 1, 0, (struct sockaddr *)&from, &size), 1);
    CHECK(c == '6' && IN6_IS_ADDR_LOOPBACK(&from.sin6_addr));
    CHECK_INT(rclose(four), 0);
    four = bound("127.0.0.1", &asker);
    send_to(four, "4", 1, port);
    CHECK_INT(rrecvfrom(fd, &c, 1, 0, (struct sockaddr *)&from, &size), 1);
    CHECK_INT(c, '4');
    CHECK(IN6_IS_ADDR_V4MAPPED(&from.sin6_addr));
    CHECK_INT(ntohs(from.sin6_port), asker);
    CHECK_INT(rsendto(fd, "back", 4, 0, (struct sockaddr *)&from, size), 4);
    CHECK_INT(expect(four, "back", 4), port);
    CHECK_INT(rclose(fd), 0);
    CHECK_INT(rclose(four), 0);
    CHECK_INT(rclose(six), 0);
}

static void a_bind_that_fails_leaves_nothing_bound(void **state)
{
    struct rdma_event_channel *c = cm_channel();
    struct rdma_cm_id *id = cm_new_id(c, RDMA_PS_UDP);
    int fd = rsocket(AF_INET, SOCK_DGRAM, 0), yes = 1;
    struct sockaddr_in name;
    socklen_t len = sizeof name;
    uint16_t port;

    (void)state;
    CHECK_INT(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &yes, sizeof yes), 0);
    CHECK_INT(rdma_bind_addr(id, cm_addr4("127.0.0.1", 0)), 0);
    port = ntohs(rdma_get_src_port(id));
    CHECK_INT(rsetsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes), 0);
    CHECK_INT(rbind(fd, cm_addr4("127.0.0.1", port), V4), -1);
    CHECK_INT(errno, EADDRINUSE);
    CHECK_INT(rgetsockname(fd, (struct sockaddr *)&name, &len), 0);
    CHECK_INT(name.sin_port, 0);
    CHECK_INT(rdma_destroy_id(id), 0);
    CHECK_INT(rbind(fd, cm_addr4("127.0.0.1", port), V4), 0);
    CHECK_INT(rclose(fd), 0);
    rdma_destroy_event_channel(c);
}

static void families_are_held_apart(void **state)
{
    int six = rsocket(AF_INET6, SOCK_DGRAM, 0), only = rsocket(AF_INET6, SOCK_DGRAM, 0), yes = 1;
    struct sockaddr *mapped = cm_addr6("::ffff:127.0.0.1", 9);
    socklen_t len = sizeof(struct sockaddr_in6);

    (void)state;
    CHECK_INT(rbind(six, cm_addr4("127.0.0.1", 0), V4), -1);
    CHECK_INT(errno, EAFNOSUPPORT);
    CHECK_INT(rbind(six, cm_addr6("::1", 0), len), 0);
    CHECK_INT(rsendto(six, "x", 1, 0, mapped, len), -1);
    CHECK_INT(errno, ENETUNREACH);
    CHECK_INT(rsetsockopt(only, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes), 0);
    CHECK_INT(rsendto(only, "x", 1, 0, cm_addr6("::1", 9), len), 1); // binds it
    CHECK_INT(rsendto(only, "x", 1, 0, mapped, len), -1);
    CHECK_INT(errno, ENETUNREACH);
    CHECK_INT(rclose(six), 0);
    CHECK_INT(rclose(only), 0);
}

static void what_streams_do_datagrams_do_not(void **state)
{
    uint16_t port = 0;
    int fd = bound("127.0.0.1", &port), type = 0;
    socklen_t len = sizeof type;
    static char page[4096];

    (void)state;
#define ROW(call, code)                                                                                      \
    do {                                                                                                     \
        CHECK_INT(call, -1);                                                                                 \
        CHECK_INT(errno, code);                                                                              \
    } while (0)
    ROW(rsocket(AF_INET, SOCK_DGRAM, IPPROTO_TCP), EPROTONOSUPPORT);
    ROW(rlisten(fd, 1), EOPNOTSUPP);
    ROW(raccept(fd, NULL, NULL), EOPNOTSUPP);
    ROW(riomap(fd, page, sizeof page, 0, 0, 0), EOPNOTSUPP);
    ROW(riounmap(fd, page, sizeof page), EOPNOTSUPP);
    ROW((ssize_t)riowrite(fd, page, 1, 0, 0), EOPNOTSUPP);
    ROW(rshutdown(fd, SHUT_WR), ENOTCONN);
    ROW(rconnect(fd, cm_addr6("::1", port), sizeof(struct sockaddr_in6)), EAFNOSUPPORT);
    ROW(rsendto(fd, "x", 1, 0, cm_addr4("192.0.2.1", port), V4), EHOSTUNREACH);
    ROW(rsendto(fd, "x", 1, 0, cm_addr4("127.0.0.1", port), 4), EINVAL);
    ROW(rsendto(fd, "x", 1, 0, cm_addr4("127.0.0.1", 0), V4), EINVAL);
    ROW(rsendto(fd, "x", 1, MSG_OOB, cm_addr4("127.0.0.1", port), V4), EOPNOTSUPP);
    ROW(rrecv(fd, page, 1, MSG_OOB), EOPNOTSUPP);
    CHECK_INT(rconnect(fd, cm_addr4("127.0.0.1", port), V4), 0);
    CHECK_INT(rshutdown(fd, SHUT_RDWR), 0);
    CHECK_INT(rrecv(fd, page, 1, 0), 0);
    ROW(rsend(fd, "x", 1, 0), EPIPE);
    ROW(rwritev(fd, NULL, -1), EINVAL);
    ROW(rreadv(fd, NULL, -1), EINVAL);
    CHECK_INT(rgetsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len), 0);
    CHECK_INT(type, SOCK_DGRAM);
    CHECK_INT(rclose(fd), 0);
    // A number that leads nowhere is none of a stream either.
    struct iovec io = {page, 1};
    struct msghdr msg = {.msg_iov = &io, .msg_iovlen = 1};
    ROW(rsendto(fd, "x", 1, 0, cm_addr4("127.0.0.1", port), V4), EBADF);
    ROW(rsendmsg(fd, &msg, 0), EBADF);
    ROW(rrecvmsg(fd, &msg, 0), EBADF);
    ROW(rwritev(fd, &io, 1), EBADF);
    ROW(rreadv(fd, &io, 1), EBADF);
#undef ROW
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        // first those whose processes must not have a device yet
        cmocka_unit_test(who_asks_is_answered_between_processes),
        cmocka_unit_test(what_a_dead_process_left_is_in_nobodys_way),
        cmocka_unit_test(who_ends_after_one_datagram_has_sent_it),
        cmocka_unit_test(a_datagram_arrives_whole_and_tells_its_sender),
        cmocka_unit_test(what_the_reader_has_no_room_for_is_cut),
        cmocka_unit_test(polling_tells_what_can_be_done),
        cmocka_unit_test(a_connected_socket_has_a_peer_and_hears_nobody_else),
        cmocka_unit_test(a_port_is_of_one_socket_and_of_the_next),
        cmocka_unit_test(a_reader_that_is_slow_loses_some_and_goes_on),
        cmocka_unit_test(an_ipv6_socket_hears_both_families),
        cmocka_unit_test(a_bind_that_fails_leaves_nothing_bound),
        cmocka_unit_test(families_are_held_apart),
        cmocka_unit_test(what_streams_do_datagrams_do_not),
    };

    return cmocka_run_group_tests_name("datagram rsockets", tests, NULL, NULL);
}
