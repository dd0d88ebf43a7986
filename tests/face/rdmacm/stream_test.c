// SPDX-License-Identifier: MIT
// also: threads
// rsockets: every byte in order over rings that wrap, ends, polling, options, mapped memory.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/seed.h"
#include "face/lib/cm.h"

static int left, right; // connected

static void set_int(int fd, int level, int name, int value)
{
    CHECK_INT(rsetsockopt(fd, level, name, &value, sizeof value), 0);
}

static int listen_on(uint16_t *port, int maps)
{
    struct sockaddr_in name;
    socklen_t len = sizeof name;
    int fd = rsocket(AF_INET, SOCK_STREAM, 0);

    CHECK(fd >= 0);
    set_int(fd, SOL_SOCKET, SO_RCVBUF, 8192);
    set_int(fd, SOL_SOCKET, SO_SNDBUF, 8192);
    set_int(fd, SOL_RDMA, RDMA_IOMAPSIZE, maps);
    CHECK_INT(rbind(fd, cm_addr4("127.0.0.1", 0), sizeof name), 0);
    CHECK_INT(rlisten(fd, 4), 0);
    CHECK_INT(rgetsockname(fd, (struct sockaddr *)&name, &len), 0);
    *port = ntohs(name.sin_port);
    return fd;
}

static void *connect_right(void *arg)
{
    uint16_t port = *(uint16_t *)arg;

    right = rsocket(AF_INET, SOCK_STREAM, 0);
    CHECK(right >= 0);
    set_int(right, SOL_SOCKET, SO_RCVBUF, 8192);
    set_int(right, SOL_RDMA, RDMA_IOMAPSIZE, 2);
    CHECK_INT(rconnect(right, cm_addr4("127.0.0.1", port), sizeof(struct sockaddr_in)), 0);
    return NULL;
}

static void open_both(int maps)
{
    struct sockaddr_in peer;
    socklen_t len = sizeof peer;
    uint16_t port;
    int fd = listen_on(&port, maps);
    pthread_t t;

    CHECK_INT(pthread_create(&t, NULL, connect_right, &port), 0);
    left = raccept(fd, (struct sockaddr *)&peer, &len);
    CHECK(left >= 0);
    CHECK_INT(peer.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
    // The last word of the handshake is taken by the other side's call.
    CHECK_INT(pthread_join(t, NULL), 0);
    CHECK_INT(rclose(fd), 0);
}

static void close_both(void)
{
    CHECK_INT(rclose(left), 0);
    CHECK_INT(rclose(right), 0);
}

// ---- bytes

enum { BYTES = 300000 };

static uint8_t byte_at(uint32_t i)
{
    return (uint8_t)dock_mix(i);
}

static void *send_all(void *seed)
{
    uint64_t random = *(uint64_t *)seed;
    static uint8_t buf[20000];

    for (uint32_t at = 0; at < BYTES;) {
        size_t n = 1 + dock_rand(&random) % sizeof buf;

        if (n > BYTES - at)
            n = BYTES - at;
        for (size_t i = 0; i < n; i++)
            buf[i] = byte_at(at + (uint32_t)i);
        CHECK_INT(rsend(left, buf, n, 0), n);
        at += (uint32_t)n;
    }
    CHECK_INT(rshutdown(left, SHUT_WR), 0);
    return NULL;
}

static void every_byte_arrives_in_order_over_rings_that_wrap(void **state)
{
    uint64_t seed = dock_seed(), random = seed + 1;
    static uint8_t buf[9000];
    uint32_t at = 0;
    pthread_t t;

    (void)state;
    open_both(0);
    CHECK_INT(pthread_create(&t, NULL, send_all, &seed), 0);
    for (;;) {
        ssize_t n = rrecv(right, buf, 1 + dock_rand(&random) % sizeof buf, 0);

        CHECK(n >= 0);
        if (!n)
            break;
        for (ssize_t i = 0; i < n; i++)
            if (buf[i] != byte_at(at + (uint32_t)i))
                fail_msg("byte %u: expected %u, got %u (DRYDOCK_SEED=%llu)", at + (unsigned)i,
                         byte_at(at + (uint32_t)i), buf[i], (unsigned long long)seed);
        at += (uint32_t)n;
    }
    CHECK_INT(at, BYTES);
    CHECK_INT(pthread_join(t, NULL), 0);
    CHECK_INT(rsend(left, "x", 1, 0), -1);
    CHECK_INT(errno, EPIPE);
    close_both();
}

static void pieces_and_peeks(void **state)
{
    char a[4] = "", b[8] = "";
    struct iovec out[2] = {{"one", 3}, {"two", 3}}, in[2] = {{a, 3}, {b, 3}};
    struct msghdr msg = {.msg_iov = out, .msg_iovlen = 2};
    ssize_t n;

    (void)state;
    open_both(0);
    CHECK_INT(rwritev(left, out, 2), 6);
    CHECK_INT(rsendmsg(left, &msg, 0), 6);
    CHECK_INT(rrecv(right, b, 3, MSG_PEEK), 3); // and they stay
    CHECK_INT(rrecv(right, b, 6, MSG_WAITALL), 6);
    CHECK(!memcmp(b, "onetwo", 6));
    n = rreadv(right, in, 2); // waits for the first bytes only
    CHECK(n >= 3 && n <= 6 && !memcmp(a, "one", 3));
    if (n < 6)
        CHECK_INT(rrecv(right, b + n - 3, (size_t)(6 - n), MSG_WAITALL), 6 - n);
    CHECK(!memcmp(b, "two", 3));
    close_both();
}

// ---- without waiting

static void a_full_stream_says_so_and_polling_tells_when(void **state)
{
    static uint8_t buf[4096];
    struct pollfd p;
    size_t total = 0;
    ssize_t n;

    (void)state;
    open_both(0);
    CHECK_INT(rfcntl(left, F_SETFL, O_NONBLOCK), 0);
    CHECK(rfcntl(left, F_GETFL) & O_NONBLOCK);
    do { // what was sent may still be on its way: full is what stays full
        while ((n = rsend(left, buf, sizeof buf, 0)) > 0)
            total += (size_t)n;
        CHECK_INT(errno, EAGAIN);
        p = (struct pollfd){.fd = left, .events = POLLOUT};
    } while (rpoll(&p, 1, 200) == 1);
    CHECK(total >= 8192);
    p = (struct pollfd){.fd = left, .events = POLLIN};
    CHECK_INT(rpoll(&p, 1, 0), 0);
    p = (struct pollfd){.fd = right, .events = POLLIN};
    CHECK_INT(rpoll(&p, 1, CM_WAIT_MS), 1);
    CHECK_INT(p.revents, POLLIN);
    while (total) {
        n = rrecv(right, buf, sizeof buf, 0);
        CHECK(n > 0);
        total -= (size_t)n;
    }
    CHECK_INT(rrecv(right, buf, 1, MSG_DONTWAIT), -1);
    CHECK_INT(errno, EAGAIN);
    p = (struct pollfd){.fd = left, .events = POLLOUT};
    CHECK_INT(rpoll(&p, 1, CM_WAIT_MS), 1);
    CHECK_INT(p.revents, POLLOUT);
    close_both();
}

static void connecting_without_waiting(void **state)
{
    struct sockaddr_in none;
    socklen_t len = sizeof(int), name = sizeof none;
    uint16_t port;
    int listener = listen_on(&port, 0), err = -1;
    struct pollfd p;

    (void)state;
    CHECK_INT(rfcntl(listener, F_SETFL, O_NONBLOCK), 0);
    CHECK_INT(raccept(listener, NULL, NULL), -1);
    CHECK_INT(errno, EAGAIN);
    right = rsocket(AF_INET, SOCK_STREAM, 0);
    CHECK_INT(rgetpeername(right, (struct sockaddr *)&none, &name), -1);
    CHECK_INT(errno, ENOTCONN);
    CHECK_INT(rfcntl(right, F_SETFL, O_NONBLOCK), 0);
    CHECK_INT(rconnect(right, cm_addr4("127.0.0.1", port), sizeof none), -1);
    CHECK_INT(errno, EINPROGRESS);
    for (;;) { // both sides are ours: each takes its turn
        struct pollfd both[2] = {{.fd = listener, .events = POLLIN}, {.fd = right, .events = POLLOUT}};

        CHECK(rpoll(both, 2, CM_WAIT_MS) > 0);
        if (both[0].revents)
            CHECK((left = raccept(listener, NULL, NULL)) >= 0);
        if (both[1].revents)
            break;
    }
    CHECK_INT(rgetsockopt(right, SOL_SOCKET, SO_ERROR, &err, &len), 0);
    CHECK_INT(err, 0);
    CHECK_INT(rsend(right, "hello", 5, 0), 5);
    p = (struct pollfd){.fd = left, .events = POLLIN};
    CHECK_INT(rpoll(&p, 1, CM_WAIT_MS), 1);
    CHECK_INT(rclose(listener), 0);
    close_both();
}

// Accepted on the left, while the right has not taken notice.
static void accept_left(void)
{
    socklen_t size = sizeof(struct sockaddr_in);
    uint16_t port;
    int listener = listen_on(&port, 0);
    struct pollfd p;
    uint64_t start;

    CHECK_INT(rfcntl(listener, F_SETFL, O_NONBLOCK), 0);
    right = rsocket(AF_INET, SOCK_STREAM, 0);
    CHECK_INT(rfcntl(right, F_SETFL, O_NONBLOCK), 0);
    CHECK_INT(rconnect(right, cm_addr4("127.0.0.1", port), size), -1);
    CHECK_INT(errno, EINPROGRESS);
    left = -1;
    for (start = dock_now_ns(); left < 0 && dock_now_ns() - start < CM_WAIT_MS * 1000000ull;) {
        p = (struct pollfd){.fd = right, .events = POLLOUT};
        CHECK_INT(rpoll(&p, 1, 1), 0);
        left = raccept(listener, NULL, NULL);
    }
    CHECK(left >= 0);
    CHECK_INT(rclose(listener), 0);
}

// The right finds a connection, and its end.
static void right_finds_an_end(void)
{
    struct pollfd p = {.fd = right, .events = POLLIN};
    socklen_t len = sizeof(int);
    int err = -1;
    char c;

    CHECK_INT(rpoll(&p, 1, CM_WAIT_MS), 1);
    CHECK_INT(rgetsockopt(right, SOL_SOCKET, SO_ERROR, &err, &len), 0);
    CHECK_INT(err, 0);
    CHECK_INT(rrecv(right, &c, 1, 0), 0);
}

// As with TCP: who accepts and closes does not wait until the other has taken notice.
static void closing_what_was_just_accepted_waits_for_nobody(void **state)
{
    uint64_t start;

    (void)state;
    accept_left();
    start = dock_now_ns();
    CHECK_INT(rclose(left), 0);
    CHECK(dock_now_ns() - start < CM_WAIT_MS * 1000000ull / 2); // the other end had no turn meanwhile
    right_finds_an_end();
    CHECK_INT(rclose(right), 0);
}

// The end that was shut follows when there is a connection; the other direction stands.
static void shutting_what_was_just_accepted_waits_for_nobody(void **state)
{
    struct pollfd p;
    uint64_t start;
    char c = 0;

    (void)state;
    accept_left();
    CHECK_INT(rfcntl(left, F_SETFL, O_NONBLOCK), 0);
    start = dock_now_ns();
    CHECK_INT(rshutdown(left, SHUT_WR), 0);
    CHECK_INT(rshutdown(left, SHUT_WR), 0);
    CHECK(dock_now_ns() - start < CM_WAIT_MS * 1000000ull / 2);
    p = (struct pollfd){.fd = right, .events = POLLOUT};
    CHECK_INT(rpoll(&p, 1, CM_WAIT_MS), 1);
    CHECK_INT(rsend(right, "x", 1, 0), 1);
    p = (struct pollfd){.fd = left, .events = POLLIN};
    CHECK_INT(rpoll(&p, 1, CM_WAIT_MS), 1);
    CHECK_INT(rrecv(left, &c, 1, 0), 1);
    CHECK_INT(c, 'x');
    CHECK_INT(rsend(left, "y", 1, 0), -1);
    CHECK_INT(errno, EPIPE);
    right_finds_an_end();
    close_both();
}

static void polling_mixes_with_other_descriptors(void **state)
{
    int ends[2];
    struct pollfd p[2];

    (void)state;
    open_both(0);
    CHECK_INT(pipe(ends), 0);
    p[0] = (struct pollfd){.fd = right, .events = POLLIN};
    p[1] = (struct pollfd){.fd = ends[0], .events = POLLIN};
    CHECK_INT(rpoll(p, 2, 20), 0);
    CHECK_INT(write(ends[1], "x", 1), 1);
    CHECK_INT(rpoll(p, 2, CM_WAIT_MS), 1);
    CHECK_INT(p[0].revents, 0);
    CHECK_INT(p[1].revents, POLLIN);
    CHECK_INT(rsend(left, "y", 1, 0), 1);
    while (rpoll(p, 2, CM_WAIT_MS) != 2)
        ;
    close(ends[0]);
    close(ends[1]);

    fd_set set;
    struct timeval tv = {.tv_sec = CM_WAIT_MS / 1000};
    FD_ZERO(&set);
    FD_SET(right, &set);
    CHECK_INT(rselect(right + 1, &set, NULL, NULL, &tv), 1);
    CHECK(FD_ISSET(right, &set));
    close_both();
}

// ---- ends

static void a_refused_connection_is_refused(void **state)
{
    uint16_t port;
    int listener = listen_on(&port, 0);

    (void)state;
    CHECK_INT(rclose(listener), 0);
    right = rsocket(AF_INET, SOCK_STREAM, 0);
    CHECK_INT(rconnect(right, cm_addr4("127.0.0.1", port), sizeof(struct sockaddr_in)), -1);
    CHECK_INT(errno, ECONNREFUSED);
    CHECK_INT(rclose(right), 0);
}

static void what_was_sent_before_the_end_is_still_read(void **state)
{
    char buf[16] = "";

    (void)state;
    open_both(0);
    CHECK_INT(rsend(left, "last words", 10, 0), 10);
    CHECK_INT(rclose(left), 0);
    CHECK_INT(rrecv(right, buf, sizeof buf, 0), 10);
    CHECK(!memcmp(buf, "last words", 10));
    CHECK_INT(rrecv(right, buf, sizeof buf, 0), 0);
    CHECK_INT(rclose(right), 0);
}

static void a_killed_peer_ends_the_stream(void **state)
{
    char buf[8];
    uint16_t port;
    int ends[2];
    pid_t pid;

    (void)state;
    CHECK_INT(pipe(ends), 0);
    pid = fork();
    if (pid == 0) {
        int fd = listen_on(&port, 0);

        CHECK_INT(write(ends[1], &port, sizeof port), sizeof port);
        left = raccept(fd, NULL, NULL);
        CHECK_INT(rsend(left, "up", 2, 0), 2);
        pause();
    }
    CHECK_INT(read(ends[0], &port, sizeof port), sizeof port);
    connect_right(&port);
    CHECK_INT(rrecv(right, buf, 2, MSG_WAITALL), 2);
    kill(pid, SIGKILL);
    CHECK_INT(waitpid(pid, NULL, 0), pid);
    CHECK(rrecv(right, buf, 1, 0) <= 0);
    CHECK_INT(rsend(right, buf, 1, 0), -1);
    CHECK_INT(rclose(right), 0);
    close(ends[0]);
    close(ends[1]);
}

// ---- mapped memory

static void a_write_into_mapped_memory_comes_before_the_next_message(void **state)
{
    static char target[5000] __attribute__((aligned(4096)));
    static char source[5000];
    char byte;

    (void)state;
    open_both(2);
    memset(source, 'm', sizeof source);
    CHECK_INT(riomap(left, target, sizeof target, PROT_WRITE, 0, 1000), 1000);
    CHECK_INT(rsend(left, "r", 1, 0), 1);
    CHECK_INT(rrecv(right, &byte, 1, 0), 1);
    CHECK_INT(riowrite(right, source, 10, 999, 0), (size_t)-1);
    CHECK_INT(errno, EINVAL);
    CHECK_INT(riowrite(right, source, 4000, 1100, 0), 4000);
    CHECK_INT(rsend(right, "w", 1, 0), 1);
    CHECK_INT(rrecv(left, &byte, 1, 0), 1);
    CHECK(target[99] == 0 && target[100] == 'm' && target[4099] == 'm' && target[4100] == 0);
    CHECK_INT(riounmap(left, target, sizeof target), 0);
    CHECK_INT(riounmap(left, target, sizeof target), -1);
    CHECK_INT(errno, EINVAL);
    CHECK_INT(rsend(left, "u", 1, 0), 1);
    CHECK_INT(rrecv(right, &byte, 1, 0), 1);
    CHECK_INT(riowrite(right, source, 1, 1100, 0), (size_t)-1);
    CHECK_INT(errno, EINVAL);
    close_both();
}

static void a_peer_that_takes_no_mappings_is_given_none(void **state)
{
    static char buf[64];

    (void)state;
    open_both(0);
    CHECK_INT(riomap(right, buf, sizeof buf, PROT_WRITE, 0, -1), -1);
    CHECK_INT(errno, ENOTSUP);
    close_both();
}

// ---- wrong calls

static void *receive_one(void *result)
{
    char byte;

    *(int *)result = rrecv(left, &byte, 1, 0) < 0 ? errno : 0;
    return NULL;
}

// Whether it waits already or comes a moment later.
static void a_socket_closed_under_a_waiting_thread_lets_it_go(void **state)
{
    int results[2] = {-1, -1};
    pthread_t t[2];

    (void)state;
    open_both(0);
    for (int i = 0; i < 2; i++)
        CHECK_INT(pthread_create(&t[i], NULL, receive_one, &results[i]), 0);
    usleep(50000);
    CHECK_INT(rclose(left), 0);
    for (int i = 0; i < 2; i++) {
        CHECK_INT(pthread_join(t[i], NULL), 0);
        CHECK_INT(results[i], EBADF);
    }
    CHECK_INT(rclose(left), -1);
    CHECK_INT(errno, EBADF);
    CHECK_INT(rclose(right), 0);
}

static void wrong_calls_are_refused(void **state)
{
    int fd = rsocket(AF_INET, SOCK_STREAM, 0), value = 1;
    socklen_t len = sizeof value;

    (void)state;
#define ROW(call, expected)                                                                                  \
    do {                                                                                                     \
        errno = 0;                                                                                           \
        long got_ = (long)(call);                                                                            \
        if (got_ != -1 || errno != (expected))                                                               \
            fail_msg("%s: expected -1 and errno %d, got %ld and %d", #call, expected, got_, errno);          \
    } while (0)
    ROW(rsocket(AF_UNIX, SOCK_STREAM, 0), EAFNOSUPPORT);
    ROW(rsocket(AF_INET, SOCK_RAW, 0), EPROTONOSUPPORT);
    ROW(rbind(-1, cm_addr4("127.0.0.1", 0), 16), EBADF);
    ROW(rbind(fd, NULL, 0), EINVAL);
    ROW(rbind(fd, cm_addr4("127.0.0.1", 0), 4), EINVAL);
    ROW(rbind(fd, cm_addr4("203.0.113.5", 0), 16), EADDRNOTAVAIL);
    ROW(rlisten(0, 1), EBADF);
    ROW(raccept(fd, NULL, NULL), EINVAL);
    ROW(rconnect(fd, NULL, 0), EINVAL);
    ROW(rconnect(12345, NULL, 0), EBADF);
    ROW(rsend(fd, "x", 1, 0), ENOTCONN);
    ROW(rrecv(fd, &value, 1, 0), ENOTCONN);
    ROW(rsend(0, "x", 1, 0), EBADF);
    ROW(rrecvfrom(0, &value, 1, 0, NULL, NULL), EBADF);
    ROW(rsendto(fd, "x", 1, 0, cm_addr4("127.0.0.1", 1), 16), EISCONN);
    ROW(rrecvmsg(fd, NULL, 0), ENOTSUP);
    ROW(rsendmsg(fd, NULL, 0), ENOTSUP);
    ROW(rread(0, &value, 1), EBADF);
    ROW(rwrite(0, &value, 1), EBADF);
    ROW(rshutdown(fd, SHUT_WR), ENOTCONN);
    ROW(rclose(0), EBADF);
    ROW(rpoll(NULL, 1, 0), EFAULT);
    ROW(rselect(-1, NULL, NULL, NULL, NULL), EINVAL);
    ROW(rfcntl(fd, F_DUPFD, 0), EINVAL);
    ROW(rfcntl(0, F_GETFL), EBADF);
    ROW(rgetsockname(0, NULL, NULL), EBADF);
    ROW(rsetsockopt(fd, 77, 1, &value, sizeof value), ENOPROTOOPT);
    ROW(rsetsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, NULL, 4), EFAULT);
    ROW(rsetsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &value, 1), EINVAL);
    ROW(rgetsockopt(fd, 77, 1, &value, &len), ENOPROTOOPT);
    ROW(rgetsockopt(fd, SOL_SOCKET, SO_ERROR, NULL, NULL), EFAULT);
    ROW(riomap(fd, &value, 4, PROT_WRITE, 0, 0), ENOTCONN);
    ROW(riounmap(0, &value, 4), EBADF);
    ROW(riowrite(fd, &value, 4, 0, 0), ENOTCONN);
#undef ROW
    CHECK_INT(rsetsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &value, sizeof value), 0);
    value = 0;
    CHECK_INT(rgetsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &value, &len), 0);
    CHECK_INT(value, 1);
    CHECK_INT(rclose(fd), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_arrives_in_order_over_rings_that_wrap),
        cmocka_unit_test(pieces_and_peeks),
        cmocka_unit_test(a_full_stream_says_so_and_polling_tells_when),
        cmocka_unit_test(connecting_without_waiting),
        cmocka_unit_test(closing_what_was_just_accepted_waits_for_nobody),
        cmocka_unit_test(shutting_what_was_just_accepted_waits_for_nobody),
        cmocka_unit_test(polling_mixes_with_other_descriptors),
        cmocka_unit_test(a_refused_connection_is_refused),
        cmocka_unit_test(what_was_sent_before_the_end_is_still_read),
        cmocka_unit_test(a_killed_peer_ends_the_stream),
        cmocka_unit_test(a_write_into_mapped_memory_comes_before_the_next_message),
        cmocka_unit_test(a_peer_that_takes_no_mappings_is_given_none),
        cmocka_unit_test(a_socket_closed_under_a_waiting_thread_lets_it_go),
        cmocka_unit_test(wrong_calls_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
