// SPDX-License-Identifier: MIT
// Ports: which binds exclude each other, in one process and between two; what a dead process held is free.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "face/lib/cm.h"

// Of this test program alone, as far as that goes: others run at the same time.
static uint16_t port_for(size_t i)
{
    static unsigned base;

    if (!base)
        base = 10000 + (unsigned)getpid() % 600 * 30;
    return (uint16_t)(base + i);
}

enum { V4_ANY, V4_A, V4_B, V6_ANY, V6_ONLY_ANY, V6_A };

static struct sockaddr *address(int which, uint16_t port)
{
    switch (which) {
    case V4_ANY:
        return cm_addr4("0.0.0.0", port);
    case V4_A:
        return cm_addr4("127.0.0.1", port);
    case V4_B:
        return cm_addr4("127.0.0.2", port);
    case V6_ANY:
    case V6_ONLY_ANY:
        return cm_addr6("::", port);
    default:
        return cm_addr6("::1", port);
    }
}

// Errno of a bind, 0.
static int try_bind(struct rdma_event_channel *c, struct rdma_cm_id **id, int which, bool reuse,
                    uint16_t port, enum rdma_port_space ps)
{
    int on = 1;

    *id = cm_new_id(c, ps);
    if (reuse)
        CHECK_INT(rdma_set_option(*id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof on), 0);
    if (which == V6_ONLY_ANY)
        CHECK_INT(rdma_set_option(*id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof on), 0);
    return rdma_bind_addr(*id, address(which, port)) ? errno : 0;
}

static const struct {
    const char *what;
    int first, second;
    bool first_reuse, second_reuse, other_space;
    int expected;
} rows[] = {
    {"the same address", V4_A, V4_A, false, false, false, EADDRINUSE},
    {"two addresses", V4_A, V4_B, false, false, false, 0},
    {"one address, then all", V4_A, V4_ANY, false, false, false, EADDRINUSE},
    {"all, then one address", V4_ANY, V4_A, false, false, false, EADDRINUSE},
    {"another port space", V4_ANY, V4_ANY, false, false, true, 0},
    {"reuse on both sides", V4_A, V4_A, true, true, false, 0},
    {"reuse on one side", V4_A, V4_A, true, false, false, EADDRINUSE},
    {"reuse on the other side", V4_A, V4_A, false, true, false, EADDRINUSE},
    {"IPv6 any takes IPv4 too", V6_ANY, V4_A, false, false, false, EADDRINUSE},
    {"IPv6 only", V6_ONLY_ANY, V4_ANY, false, false, false, 0},
    {"IPv6 only, IPv6", V6_ONLY_ANY, V6_A, false, false, false, EADDRINUSE},
    {"one IPv6, one IPv4", V6_A, V4_A, false, false, false, 0},
};

static void check_row(size_t i, uint16_t port, int (*second)(size_t, uint16_t))
{
    struct rdma_event_channel *c = cm_channel();
    struct rdma_cm_id *first;
    int got;

    CHECK_INT(try_bind(c, &first, rows[i].first, rows[i].first_reuse, port, RDMA_PS_TCP), 0);
    got = second(i, port);
    if (got != rows[i].expected)
        fail_msg("%s: expected errno %d, got %d", rows[i].what, rows[i].expected, got);
    CHECK_INT(rdma_destroy_id(first), 0);
    rdma_destroy_event_channel(c);
}

static int bind_here(size_t i, uint16_t port)
{
    struct rdma_event_channel *c = cm_channel();
    struct rdma_cm_id *id;
    int got = try_bind(c, &id, rows[i].second, rows[i].second_reuse, port,
                       rows[i].other_space ? RDMA_PS_UDP : RDMA_PS_TCP);

    CHECK_INT(rdma_destroy_id(id), 0);
    rdma_destroy_event_channel(c);
    return got;
}

static int bind_in_a_child(size_t i, uint16_t port)
{
    int status;
    pid_t pid = fork();

    if (pid == 0)
        _exit(bind_here(i, port));
    CHECK_INT(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void ports_exclude_each_other_in_one_process(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_row(i, port_for(i), bind_here);
}

static void ports_exclude_each_other_between_processes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_row(i, port_for(i), bind_in_a_child);
}

static void a_port_that_is_given_back_can_be_had_again(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        check_row(1, port_for(20), bind_here);
}

static void a_listener_shares_its_port_with_nobody(void **state)
{
    struct rdma_event_channel *c = cm_channel();
    struct rdma_cm_id *id[2];

    (void)state;
    for (int i = 0; i < 2; i++)
        CHECK_INT(try_bind(c, &id[i], V4_A, true, port_for(21), RDMA_PS_TCP), 0);
    CHECK_INT(rdma_listen(id[0], 1), -1);
    CHECK_INT(errno, EADDRINUSE);
    CHECK_INT(rdma_destroy_id(id[1]), 0);
    CHECK_INT(rdma_listen(id[0], 1), 0);
    CHECK_INT(rdma_destroy_id(id[0]), 0);
    rdma_destroy_event_channel(c);
}

static void free_ports_differ(void **state)
{
    enum { N = 50 };
    struct rdma_event_channel *c = cm_channel();
    struct rdma_cm_id *id[N];

    (void)state;
    for (int i = 0; i < N; i++) {
        CHECK_INT(try_bind(c, &id[i], V4_A, false, 0, RDMA_PS_TCP), 0);
        CHECK(rdma_get_src_port(id[i]) != 0);
        for (int j = 0; j < i; j++)
            CHECK(rdma_get_src_port(id[j]) != rdma_get_src_port(id[i]));
    }
    for (int i = 0; i < N; i++)
        CHECK_INT(rdma_destroy_id(id[i]), 0);
    rdma_destroy_event_channel(c);
}

// The listener dies without a word; its socket's name stays behind.
static void the_port_of_a_killed_listener_is_free(void **state)
{
    struct rdma_event_channel *c;
    struct rdma_cm_id *id;
    int ends[2];
    char ready;
    pid_t pid;

    (void)state;
    CHECK_INT(pipe(ends), 0);
    pid = fork();
    if (pid == 0) {
        c = cm_channel();
        CHECK_INT(try_bind(c, &id, V4_ANY, false, port_for(22), RDMA_PS_TCP), 0);
        CHECK_INT(rdma_listen(id, 1), 0);
        CHECK_INT(write(ends[1], "r", 1), 1);
        pause();
    }
    close(ends[1]);
    CHECK_INT(read(ends[0], &ready, 1), 1);
    close(ends[0]);
    c = cm_channel();
    CHECK_INT(try_bind(c, &id, V4_ANY, false, port_for(22), RDMA_PS_TCP), EADDRINUSE);
    CHECK_INT(rdma_destroy_id(id), 0);
    kill(pid, SIGKILL);
    CHECK_INT(waitpid(pid, NULL, 0), pid);
    CHECK_INT(try_bind(c, &id, V4_ANY, false, port_for(22), RDMA_PS_TCP), 0);
    CHECK_INT(rdma_listen(id, 1), 0);
    CHECK_INT(rdma_destroy_id(id), 0);
    rdma_destroy_event_channel(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ports_exclude_each_other_in_one_process),
        cmocka_unit_test(ports_exclude_each_other_between_processes),
        cmocka_unit_test(a_port_that_is_given_back_can_be_had_again),
        cmocka_unit_test(a_listener_shares_its_port_with_nobody),
        cmocka_unit_test(free_ports_differ),
        cmocka_unit_test(the_port_of_a_killed_listener_is_free),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
