// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "arena/peer.h"
#include "base/log.h"
#include "unit/arena/child.h"

#define SHIFT 20

static char *path;
static struct dock_rundir dir;
static struct dock_arena arena;
static struct dock_gift mine;
static int listener;
static const dock_who who = 5u << DOCK_SLOT_BITS | 3; // slot 3, incarnation 5

static int setup(void **state)
{
    (void)state;
    path = fresh_dir();
    assert_int_equal(dock_rundir_open(path, &dir), 0);
    assert_int_equal(dock_arena_create(&arena, SHIFT, 4096), 0);
    mine = (struct dock_gift){.who = who,
                              .pid = getpid(),
                              .shift = SHIFT,
                              .arena_fd = arena.view.fd,
                              .bell_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC),
                              .pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0)};
    assert_int_equal(dock_gift_listen(&dir, who, &listener), 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    dock_gift_unlisten(&dir, who, listener);
    close(mine.bell_fd);
    if (mine.pidfd >= 0)
        close(mine.pidfd);
    dock_arena_destroy(&arena);
    dock_rundir_close(&dir);
    assert_int_equal(rmdir(path), 0); // no socket is left
    free(path);
    return 0;
}

static int begin(void)
{
    int sock = -1;

    assert_int_equal(dock_gift_begin(&dir, who, &sock), 0);
    return sock;
}

static void wait_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    assert_int_equal(poll(&p, 1, 5000), 1);
}

static void a_device_is_handed_over_with_arena_bell_and_pidfd(void **state)
{
    struct dock_gift got;
    struct dock_view v;
    uint64_t rings;
    int sock = begin();

    (void)state;
    assert_int_equal(dock_gift_take(sock, who, &got), -EAGAIN); // nobody has served it yet
    assert_int_equal(dock_gift_serve(listener, &mine), 0);
    assert_int_equal(dock_gift_serve(listener, &mine), -EAGAIN);
    wait_readable(sock);
    assert_int_equal(dock_gift_take(sock, who, &got), 0);
    assert_int_equal(got.who, who);
    assert_int_equal(got.pid, getpid());
    assert_int_equal(got.seen_pid, getpid());
    assert_int_equal(got.shift, SHIFT);
    assert_int_equal(got.pidfd >= 0, mine.pidfd >= 0);
    assert_true(fcntl(got.arena_fd, F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl(got.bell_fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(eventfd_write(got.bell_fd, 1), 0);
    assert_int_equal(eventfd_read(mine.bell_fd, &rings), 0);
    assert_int_equal(dock_view_open(&v, dup(got.arena_fd), got.shift), 0);
    strcpy(dock_view_at(&v, 0, 6), "hello");
    assert_string_equal(dock_arena_at(&arena, 0), "hello");
    dock_view_close(&v);
    dock_gift_drop(&got);
    assert_int_equal(got.arena_fd, -1);
    dock_gift_drop(&got); // nothing left: nothing happens
}

static void a_kernel_without_pidfds_hands_over_two(void **state)
{
    struct dock_gift got, without = mine;
    int sock = begin();

    (void)state;
    without.pidfd = -1;
    assert_int_equal(dock_gift_serve(listener, &without), 0);
    assert_int_equal(dock_gift_take(sock, who, &got), 0);
    assert_int_equal(got.pidfd, -1);
    assert_false(dock_pidfd_dead(got.pidfd));
    dock_gift_drop(&got);
}

static void descriptors_are_equal_before_and_after(void **state)
{
    struct dock_gift got;
    int fds = open_fds();

    (void)state;
    for (int i = 0; i < 200; i++) {
        int sock = begin();
        assert_int_equal(dock_gift_serve(listener, &mine), 0);
        assert_int_equal(dock_gift_take(sock, who, &got), 0);
        dock_gift_drop(&got);
    }
    assert_int_equal(open_fds(), fds);
}

static void nobody_there_is_said_at_once(void **state)
{
    int sock = -7;

    (void)state;
    assert_int_equal(dock_gift_begin(&dir, who + 1, &sock), -ENOENT);
    assert_int_equal(sock, -7);
}

static void what_a_dead_owner_left_refuses_and_goes_with_the_next_owner(void **state)
{
    const dock_who old = dock_who_make(9, DOCK_ID_MASK), next = dock_who_make(9, 1);
    int fd, sock = -7;

    (void)state;
    assert_int_equal(dock_gift_listen(&dir, old, &fd), 0);
    close(fd); // as a killed process does: the name stays
    assert_int_equal(dock_gift_begin(&dir, old, &sock), -ECONNREFUSED);
    assert_int_equal(dock_gift_listen(&dir, next, &fd), 0);
    assert_int_equal(dock_gift_begin(&dir, old, &sock), -ENOENT);
    dock_gift_unlisten(&dir, next, fd);
}

static void a_name_that_is_there_already_does_not_hinder(void **state)
{
    const dock_who w = dock_who_make(9, 4);
    int first, second, sock;

    (void)state;
    assert_int_equal(dock_gift_listen(&dir, w, &first), 0);
    close(first);
    assert_int_equal(dock_gift_listen(&dir, w, &second), 0);
    assert_int_equal(dock_gift_begin(&dir, w, &sock), 0);
    close(sock);
    dock_gift_unlisten(&dir, w, second);
}

static void a_gift_of_another_incarnation_is_refused(void **state)
{
    struct dock_gift got = {.who = 7}, other = mine;
    int sock = begin(), fds = open_fds();

    (void)state;
    other.who = who + (1u << DOCK_SLOT_BITS);
    assert_int_equal(dock_gift_serve(listener, &other), 0);
    assert_int_equal(dock_gift_take(sock, who, &got), -EPROTO);
    assert_non_null(strstr(dock_log_last(), "another incarnation"));
    assert_int_equal(got.who, 7);
    assert_int_equal(open_fds(), fds - 1); // only `sock` went
}

static void a_giver_that_goes_away_is_noticed(void **state)
{
    struct dock_gift got;
    int sock = begin();

    (void)state;
    close(accept(listener, NULL, NULL));
    wait_readable(sock);
    assert_int_equal(dock_gift_take(sock, who, &got), -ECONNRESET);
}

static void a_taker_that_goes_away_does_not_hurt(void **state)
{
    (void)state;
    close(begin());
    assert_int_equal(dock_gift_serve(listener, &mine), 0);
    assert_int_equal(dock_gift_serve(listener, &mine), -EAGAIN);
}

// Send `len` bytes and `nfds` descriptors from the giver's end.
static void send_raw(const void *bytes, size_t len, int nfds)
{
    int fd = accept(listener, NULL, NULL), fds[8];
    char control[CMSG_SPACE(sizeof fds)] = {0};
    struct iovec iov = {(void *)bytes, len};
    struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};

    for (int i = 0; i < nfds; i++)
        fds[i] = mine.bell_fd;
    if (nfds) {
        h.msg_control = control;
        h.msg_controllen = CMSG_SPACE((size_t)nfds * sizeof(int));
        *CMSG_FIRSTHDR(&h) = (struct cmsghdr){.cmsg_len = CMSG_LEN((size_t)nfds * sizeof(int)),
                                              .cmsg_level = SOL_SOCKET,
                                              .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&h)), fds, (size_t)nfds * sizeof(int));
    }
    assert_int_equal(sendmsg(fd, &h, 0), len);
    close(fd);
}

static void malformed_gifts_are_refused_and_leak_nothing(void **state)
{
    if (emulated())
        skip();

    // magic, version, who, pid, shift, number of descriptors: as it should be, for three
    const uint32_t good[7] = {0x54464947, 1, who, 1, SHIFT, 3};
    struct dock_gift got;
    int fds = open_fds();

    (void)state;
    for (int field = 0; field < 6; field++) {
        if (field == 3 || field == 4)
            continue; // any number is a pid; the window size is checked by who maps it
        uint32_t bad[6];
        memcpy(bad, good, sizeof bad);
        bad[field] ^= 1;
        int sock = begin();
        send_raw(bad, sizeof bad, 3);
        assert_int_equal(dock_gift_take(sock, who, &got), -EPROTO);
        assert_int_equal(open_fds(), fds);
    }
    for (size_t len = 1; len <= sizeof good; len++) {
        if (len == 24)
            continue;
        int sock = begin();
        send_raw(good, len, 3);
        assert_int_equal(dock_gift_take(sock, who, &got), -EPROTO);
        assert_int_equal(open_fds(), fds);
    }
    for (int n = 0; n <= 8; n++) {
        if (n == 3)
            continue;
        int sock = begin();
        send_raw(good, 24, n);
        assert_int_equal(dock_gift_take(sock, who, &got), -EPROTO);
        assert_int_equal(open_fds(), fds);
    }
}

// Who has no room for them is told so, and not that the other one is wrong.
static void a_gift_without_room_for_its_descriptors_is_named(void **state)
{
    const uint32_t good[6] = {0x54464947, 1, who, 1, SHIFT, 3};
    int fds = open_fds(), room[3] = {-1, -1, -1};
    struct rlimit old, limit;
    struct dock_gift got;

    (void)state;
    if (emulated())
        skip();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    for (int left = 0; left < 3; left++) {
        int sock = begin();
        send_raw(good, sizeof good, 3);
        for (int i = 0; i < 3; i++)
            room[i] = dup(sock);
        limit = (struct rlimit){.rlim_cur = (rlim_t)room[2] + 1, .rlim_max = old.rlim_max};
        for (int i = 0; i < left; i++)
            close(room[i]);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        int err = dock_gift_take(sock, who, &got);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
        assert_int_equal(err, -EMFILE);
        assert_non_null(strstr(dock_log_last(), strerror(EMFILE)));
        for (int i = left; i < 3; i++)
            close(room[i]);
        assert_int_equal(open_fds(), fds);
    }
}

static void become_nobody_and_call(void *arg, struct child *parent)
{
    struct dock_gift got;
    int sock = -1;
    char go;

    (void)arg;
    child_check(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
    prctl(PR_SET_DUMPABLE, 1); // or /proc/self/fd, which leads past closed parents, would not be ours
    child_check(dock_gift_begin(&dir, who, &sock) == -EPERM); // the listener is of another user
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof a.sun_path, "/proc/self/fd/%d/d3.5", dir.fd);
    sock = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    child_check(connect(sock, (struct sockaddr *)&a, sizeof a) == 0);
    say(parent->to, "x", 1);
    hear(parent->from, &go, 1);
    child_check(dock_gift_take(sock, who, &got) == -ECONNRESET); // nothing came
}

static void another_user_gets_nothing(void **state)
{
    struct child c;
    char ready;

    (void)state;
    if (geteuid() != 0)
        skip();
    // What a loose directory would let happen: everybody may come in and write.
    assert_int_equal(chmod(path, 0777), 0);
    assert_int_equal(fchmodat(dir.fd, "d3.5", 0777, 0), 0);
    c = child_start(become_nobody_and_call, NULL);
    hear(c.from, &ready, 1);
    assert_int_equal(dock_gift_serve(listener, &mine), 0); // the one that gave up with EPERM, or the other
    while (dock_gift_serve(listener, &mine) == 0)
        ;
    assert_non_null(strstr(dock_log_last(), "refused: it is of user 65534"));
    say(c.to, "x", 1);
    assert_int_equal(child_end(&c), 0);
}

static void wait_for_word(void *arg, struct child *parent)
{
    char go;

    (void)arg;
    hear(parent->from, &go, 1);
}

static void a_pidfd_tells_death(void **state)
{
    struct child c = child_start(wait_for_word, NULL);
    int pidfd = (int)syscall(SYS_pidfd_open, c.pid, 0);

    (void)state;
    assert_false(dock_pidfd_dead(-1));
    if (pidfd >= 0) {
        assert_false(dock_pidfd_dead(pidfd));
        kill(c.pid, SIGSTOP);
        assert_false(dock_pidfd_dead(pidfd));
        kill(c.pid, SIGKILL);
        for (int i = 0; i < 2000 && !dock_pidfd_dead(pidfd); i++)
            usleep(1000);
        assert_true(dock_pidfd_dead(pidfd));
        close(pidfd);
        assert_false(dock_pidfd_dead(pidfd));
    }
    child_kill(&c);
}

// The directory is moved away and another takes its name: names are resolved from the descriptor.
static void the_path_is_not_resolved_again(void **state)
{
    char away[128];
    int sock;

    (void)state;
    snprintf(away, sizeof away, "%s.away", path);
    assert_int_equal(rename(path, away), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(dock_gift_begin(&dir, who, &sock), 0);
    close(sock);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rename(away, path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_device_is_handed_over_with_arena_bell_and_pidfd, setup, teardown),
        cmocka_unit_test_setup_teardown(a_kernel_without_pidfds_hands_over_two, setup, teardown),
        cmocka_unit_test_setup_teardown(descriptors_are_equal_before_and_after, setup, teardown),
        cmocka_unit_test_setup_teardown(nobody_there_is_said_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(what_a_dead_owner_left_refuses_and_goes_with_the_next_owner, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_name_that_is_there_already_does_not_hinder, setup, teardown),
        cmocka_unit_test_setup_teardown(a_gift_of_another_incarnation_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_giver_that_goes_away_is_noticed, setup, teardown),
        cmocka_unit_test_setup_teardown(a_taker_that_goes_away_does_not_hurt, setup, teardown),
        cmocka_unit_test_setup_teardown(malformed_gifts_are_refused_and_leak_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(a_gift_without_room_for_its_descriptors_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(another_user_gets_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(a_pidfd_tells_death, setup, teardown),
        cmocka_unit_test_setup_teardown(the_path_is_not_resolved_again, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
