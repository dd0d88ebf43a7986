// SPDX-License-Identifier: MIT
#include "arena/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/log.h"

#define MAGIC 0x54464947u // "GIFT"
#define VERSION 1
#define MAX_FDS 3 // arena, bell, pidfd

struct message {
    uint32_t magic, version;
    dock_who who;
    int32_t pid;
    uint32_t shift, nfds;
};

// Room for a message's descriptors, aligned as a control message must be.
union control {
    struct cmsghdr align;
    char room[CMSG_SPACE(MAX_FDS * sizeof(int))];
};

static void socket_name(dock_who who, char *name, size_t size)
{
    snprintf(name, size, "d%u.%u", dock_who_slot(who), dock_who_incarnation(who));
}

static socklen_t address(const struct dock_rundir *dir, dock_who who, struct sockaddr_un *a)
{
    char name[24];

    socket_name(who, name, sizeof name);
    return dock_rundir_address(dir, name, a);
}

static int open_socket(void)
{
    int fd = dock_fd_own(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));

    return fd < 0 ? -errno : fd;
}

static void unlink_name(const struct dock_rundir *dir, dock_who who)
{
    char name[24];

    socket_name(who, name, sizeof name);
    unlinkat(dir->fd, name, 0);
}

// What an owner that died has left: incarnations of a slot are consecutive, so there is at most the one
// before.
static void unlink_stale(const struct dock_rundir *dir, dock_who who)
{
    uint32_t last = dock_who_incarnation(who) - 1;

    unlink_name(dir, dock_who_make(dock_who_slot(who), last ? last : DOCK_ID_MASK));
    unlink_name(dir, who);
}

int dock_gift_listen(const struct dock_rundir *dir, dock_who who, int *listen_fd)
{
    struct sockaddr_un a;
    socklen_t len = address(dir, who, &a);
    int fd = open_socket(), ret = fd < 0 ? fd : 0;

    unlink_stale(dir, who);
    if (!ret && (bind(fd, (struct sockaddr *)&a, len) || listen(fd, SOMAXCONN))) {
        ret = -errno;
        unlink_name(dir, who);
    }
    if (ret) {
        dock_error("listening in the runtime directory %s failed: %s", dir->path, strerror(-ret));
        if (fd >= 0)
            close(fd);
        return ret;
    }
    *listen_fd = fd;
    return 0;
}

void dock_gift_unlisten(const struct dock_rundir *dir, dock_who who, int listen_fd)
{
    unlink_name(dir, who);
    close(listen_fd);
}

static int send_gift(int fd, const struct dock_gift *g)
{
    int fds[MAX_FDS] = {g->arena_fd, g->bell_fd, g->pidfd};
    unsigned nfds = g->pidfd >= 0 ? 3 : 2;
    struct message m = {MAGIC, VERSION, g->who, g->pid, g->shift, nfds};
    struct iovec iov = {&m, sizeof m};
    union control control = {.room = {0}};
    struct msghdr h = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.room,
                       .msg_controllen = CMSG_SPACE(nfds * sizeof(int))};
    struct cmsghdr *c = CMSG_FIRSTHDR(&h);

    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(nfds * sizeof(int));
    memcpy(CMSG_DATA(c), fds, nfds * sizeof(int));
    return sendmsg(fd, &h, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof m ? 0 : -errno;
}

int dock_gift_serve(int listen_fd, const struct dock_gift *mine)
{
    int fd = dock_fd_own(accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)), pid = 0, ret;

    if (fd < 0) {
        ret = -errno;
        // A caller that gave up, or a signal: there may be another caller, the next call tells.
        if (ret == -ECONNABORTED || ret == -EINTR)
            return 0;
        if (ret != -EAGAIN)
            dock_warn("accepting a caller of this device failed: %s", strerror(-ret));
        return ret;
    }
    ret = dock_rundir_check_user(fd, "a caller of this device", &pid);
    if (!ret) {
        ret = send_gift(fd, mine);
        if (ret)
            dock_warn("handing this device to process %d failed: %s", pid, strerror(-ret));
    }
    close(fd); // what was sent stays readable
    return 0;
}

int dock_gift_begin(const struct dock_rundir *dir, dock_who who, int *sock)
{
    struct sockaddr_un a;
    socklen_t len = address(dir, who, &a);
    int fd = open_socket(), ret = fd < 0 ? fd : 0, pid;

    if (!ret && connect(fd, (struct sockaddr *)&a, len))
        ret = -errno;
    if (!ret)
        ret = dock_rundir_check_user(fd, "a device in the runtime directory", &pid);
    if (ret) {
        dock_info("connecting to device %u.%u in %s failed: %s", dock_who_slot(who),
                  dock_who_incarnation(who), dir->path, strerror(-ret));
        if (fd >= 0)
            close(fd);
        return ret;
    }
    *sock = fd;
    return 0;
}

// The descriptors that came with a message; how many (at most MAX_FDS, the kernel closes what has no room).
static unsigned received_fds(struct msghdr *h, int fds[MAX_FDS])
{
    unsigned n = 0;

    for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        unsigned here = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        for (unsigned i = 0; i < here && n < MAX_FDS; i++)
            memcpy(&fds[n++], CMSG_DATA(c) + i * sizeof(int), sizeof(int));
    }
    return n;
}

static const char *fault_of(const struct message *m, ssize_t len, const struct msghdr *h, unsigned nfds,
                            dock_who who)
{
    if (len != (ssize_t)sizeof *m || m->magic != MAGIC || (h->msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
        return "malformed";
    if (m->version != VERSION)
        return "of another version of Drydock";
    if (m->who != who)
        return "of another incarnation";
    if (nfds != m->nfds || nfds < 2)
        return "without its descriptors";
    return NULL;
}

static int drop_all(const int *fds, unsigned n, int ret)
{
    for (unsigned i = 0; i < n; i++)
        close(fds[i]);
    return ret;
}

static int receive(int sock, dock_who who, struct dock_gift *out)
{
    struct message m;
    struct iovec iov = {&m, sizeof m};
    union control control;
    // Not the whole room: padding would hold a descriptor more, which nobody would close.
    struct msghdr h = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.room,
                       .msg_controllen = CMSG_LEN(MAX_FDS * sizeof(int))};
    ssize_t len = recvmsg(sock, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    int fds[MAX_FDS] = {-1, -1, -1}, pid = 0, ret;

    if (len < 0)
        return errno == EINTR ? -EAGAIN : -errno;
    unsigned nfds = received_fds(&h, fds);
    if (len == 0 && !nfds)
        return -ECONNRESET;
    if (h.msg_flags & MSG_CTRUNC &&
        nfds < MAX_FDS) // there was room for more in the call, and not in the process
        return drop_all(fds, nfds, -EMFILE);
    const char *fault = fault_of(&m, len, &h, nfds, who);
    if (fault) {
        dock_error("what device %u.%u handed over is %s", dock_who_slot(who), dock_who_incarnation(who),
                   fault);
        return drop_all(fds, nfds, -EPROTO);
    }
    ret = dock_rundir_check_user(sock, "a device in the runtime directory", &pid);
    if (ret)
        return drop_all(fds, nfds, ret);
    for (unsigned i = 0; i < nfds; i++) {
        fds[i] = dock_fd_own(fds[i]);
        if (fds[i] < 0)
            return drop_all(fds, nfds, -errno);
    }
    *out = (struct dock_gift){.who = m.who,
                              .pid = m.pid,
                              .seen_pid = pid,
                              .shift = m.shift,
                              .arena_fd = fds[0],
                              .bell_fd = fds[1],
                              .pidfd = fds[2]};
    return 0;
}

int dock_gift_take(int sock, dock_who who, struct dock_gift *out)
{
    int ret = receive(sock, who, out);

    if (ret == -EAGAIN)
        return ret;
    if (ret && ret != -EPROTO && ret != -EPERM)
        dock_warn("device %u.%u handed nothing over: %s", dock_who_slot(who), dock_who_incarnation(who),
                  strerror(-ret));
    close(sock);
    return ret;
}

void dock_gift_drop(struct dock_gift *gift)
{
    int *fds[] = {&gift->arena_fd, &gift->bell_fd, &gift->pidfd};

    for (unsigned i = 0; i < sizeof fds / sizeof *fds; i++) {
        if (*fds[i] >= 0)
            close(*fds[i]);
        *fds[i] = -1;
    }
}

bool dock_pidfd_dead(int pidfd)
{
    struct pollfd p = {.fd = pidfd, .events = POLLIN};

    return pidfd >= 0 && poll(&p, 1, 0) == 1 && (p.revents & POLLIN);
}
