// SPDX-License-Identifier: MIT
#include "face/rdmacm/wire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/log.h"

#define MAGIC 0x314d4344u // "DCM1": another layout gets another number

void cm_msg_init(struct cm_msg *m, enum cm_type type)
{
    memset(m, 0, sizeof *m);
    m->magic = MAGIC;
    m->type = (uint8_t)type;
}

int cm_msg_send(int fd, const struct cm_msg *m)
{
    if (fd < 0)
        return -ENOTCONN;
    return send(fd, m, sizeof *m, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof *m ? 0 : -errno;
}

int cm_msg_receive(int fd, struct cm_msg *m)
{
    ssize_t n;

    // An end that was closed with messages unread says ECONNRESET once; what it sent before is still there.
    do
        n = recv(fd, m, sizeof *m, MSG_DONTWAIT);
    while (n < 0 && (errno == EINTR || errno == ECONNRESET));
    if (n == 0)
        return -ECONNRESET;
    if (n < 0)
        return errno == EAGAIN ? -EAGAIN : -ECONNRESET;
    if (n != (ssize_t)sizeof *m || m->magic != MAGIC) {
        dock_error("a connection message of %zd bytes is not of this version of Drydock", n);
        return -EPROTO;
    }
    return 0;
}

static int open_socket(void)
{
    int fd = dock_fd_own(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));

    return fd < 0 ? -errno : fd;
}

int cm_wire_connect(const struct dock_rundir *dir, const char *name, int *fd)
{
    struct sockaddr_un a;
    socklen_t len = dock_rundir_address(dir, name, &a);
    int sock = open_socket(), ret = sock < 0 ? sock : 0, pid;

    if (!ret && connect(sock, (struct sockaddr *)&a, len))
        ret = errno == ENOENT ? -ECONNREFUSED : -errno;
    if (!ret)
        ret = dock_rundir_check_user(sock, "a listener in the runtime directory", &pid);
    if (ret) {
        if (sock >= 0)
            close(sock);
        return ret;
    }
    *fd = sock;
    return 0;
}

int cm_wire_listen(const struct dock_rundir *dir, const char *name, int *fd)
{
    struct sockaddr_un a;
    socklen_t len = dock_rundir_address(dir, name, &a);
    int sock = open_socket(), ret = sock < 0 ? sock : 0;

    unlinkat(dir->fd, name, 0);
    if (!ret && (bind(sock, (struct sockaddr *)&a, len) || listen(sock, SOMAXCONN)))
        ret = -errno;
    if (ret) {
        dock_error("listening in the runtime directory %s failed: %s", dir->path, strerror(-ret));
        if (sock >= 0)
            close(sock);
        return ret;
    }
    *fd = sock;
    return 0;
}

int cm_wire_accept(int listener, int *fd)
{
    int sock = dock_fd_own(accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)), pid, ret;

    if (sock < 0)
        return -errno;
    ret = dock_rundir_check_user(sock, "a caller of an rdma_cm listener", &pid);
    if (ret) {
        close(sock);
        return ret;
    }
    *fd = sock;
    return 0;
}
