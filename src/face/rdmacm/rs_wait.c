// SPDX-License-Identifier: MIT
// Waiting: of one call for its socket, of rpoll and rselect for many.
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/select.h>

#include "base/clock.h"
#include "face/rdmacm/rs.h"

enum {
    SPIN_NS = 10000,
    NAP_MS = 100, // the longest sleep: another thread may have taken the event that was ours
    SHORT_NAP_MS = 5,
};

static void look(struct rs *rs)
{
    rs_step(rs);
    rs->kind->progress(rs);
}

bool rs_waits(const struct rs *rs, int flags)
{
    return !rs->nonblock && !(flags & MSG_DONTWAIT);
}

void rs_arm(struct rs *rs)
{
    if (rs->cq && ibv_req_notify_cq(rs->cq, 0))
        dock_warn("rsocket: a completion queue cannot be armed");
}

void rs_disarm(struct rs *rs)
{
    struct ibv_cq *cq;
    void *context;

    while (rs->comp && !ibv_get_cq_event(rs->comp, &cq, &context))
        ibv_ack_cq_events(cq, 1);
}

bool rs_connected(const struct rs *rs)
{
    return rs->state == RS_UP || rs->state == RS_DOWN;
}

static void wake_up(struct rs *rs)
{
    dock_lock(&rs->lock);
    rs->waiters--;
    rs_disarm(rs);
}

// It does not come back to its call: what it holds beside that is a count that keeps the socket's memory.
static void be_cancelled(void *arg)
{
    struct rs *rs = arg;

    wake_up(rs);
    dock_unlock(&rs->lock);
}

// Lock held, let go in between: here, and nowhere else, a thread may be cancelled.
static int sleep_on(struct rs *rs)
{
    struct pollfd p[2] = {{.fd = rs->channel->fd, .events = POLLIN},
                          {.fd = rs->comp ? rs->comp->fd : -1, .events = POLLIN}};
    int n, err, ms;

    rs->waiters++;
    ms = rs->waiters > 1 ? SHORT_NAP_MS : NAP_MS;
    dock_unlock(&rs->lock);
    pthread_cleanup_push(be_cancelled, rs);
    n = poll(p, 2, ms);
    err = n < 0 ? errno : 0;
    pthread_cleanup_pop(0);
    wake_up(rs);
    return err;
}

int rs_wait(struct rs *rs, bool (*ready)(const struct rs *), bool wait)
{
    uint64_t until = 0;
    int err;

    for (;;) {
        if (rs->closed)
            return EBADF;
        look(rs);
        if (ready(rs))
            return 0;
        if (!wait)
            return EAGAIN;
        if (!until)
            until = dock_now_ns() + SPIN_NS;
        if (rs->state == RS_UP && dock_now_ns() < until)
            continue;
        rs_arm(rs);
        look(rs);
        if (ready(rs))
            return 0;
        err = sleep_on(rs);
        if (err)
            return err;
    }
}

// ---- many

static bool request_waits(const struct rs *rs)
{
    struct pollfd p = {.fd = rs->channel->fd, .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

static short state_of(struct rs *rs, short wanted)
{
    short got = 0;

    switch (rs->state) {
    case RS_CONNECTING:
        return 0;
    case RS_LISTENING:
        return request_waits(rs) ? POLLIN & wanted : 0;
    case RS_NEW:
    case RS_UP:
    case RS_DOWN:
        break;
    }
    if (rs->kind->can_receive(rs))
        got |= wanted & (POLLIN | POLLRDNORM);
    if (rs->kind->can_send(rs))
        got |= wanted & (POLLOUT | POLLWRNORM);
    // Not before what came is read: programs take POLLHUP for the end.
    if (rs->state == RS_DOWN && rs->kind->drained(rs))
        got |= rs->error ? POLLERR : POLLHUP;
    return got;
}

// The socket behind a number, if it is one: to be dropped.
static struct rs *ours(int fd)
{
    return rs_is(fd) ? rs_get(fd) : NULL;
}

// How many are ready; arms those that are not when `arm`.
static int scan(struct pollfd *fds, nfds_t n, bool arm)
{
    int ready = 0;

    for (nfds_t i = 0; i < n; i++) {
        struct rs *rs = ours(fds[i].fd);

        if (!rs)
            continue;
        dock_lock(&rs->lock);
        if (arm)
            rs_arm(rs);
        look(rs);
        fds[i].revents = state_of(rs, fds[i].events);
        dock_unlock(&rs->lock);
        rs_drop(rs);
        ready += fds[i].revents != 0;
    }
    return ready;
}

// Two descriptors for each socket: of its events, of its completions. Others stand first, as they are.
static void collect(const struct pollfd *fds, nfds_t n, struct pollfd *all)
{
    for (nfds_t i = 0; i < n; i++) {
        struct rs *rs = ours(fds[i].fd);

        all[2 * i] = fds[i];
        all[2 * i + 1] = (struct pollfd){.fd = -1};
        if (!rs)
            continue;
        dock_lock(&rs->lock);
        all[2 * i].events = POLLIN;
        all[2 * i + 1] = (struct pollfd){.fd = rs->comp ? rs->comp->fd : -1, .events = POLLIN};
        dock_unlock(&rs->lock);
        rs_drop(rs);
    }
}

static int others(struct pollfd *fds, nfds_t n, const struct pollfd *all)
{
    int ready = 0;

    for (nfds_t i = 0; i < n; i++) {
        if (rs_is(fds[i].fd))
            continue;
        fds[i].revents = all[2 * i].revents;
        ready += fds[i].revents != 0;
    }
    return ready;
}

static void quiet(const struct pollfd *fds, nfds_t n)
{
    for (nfds_t i = 0; i < n; i++) {
        struct rs *rs = ours(fds[i].fd);

        if (!rs)
            continue;
        dock_lock(&rs->lock);
        rs_disarm(rs);
        dock_unlock(&rs->lock);
        rs_drop(rs);
    }
}

static bool only_ours(const struct pollfd *fds, nfds_t n)
{
    for (nfds_t i = 0; i < n; i++)
        if (!rs_is(fds[i].fd))
            return false;
    return true;
}

static int nap(uint64_t until, int timeout)
{
    uint64_t now = dock_now_ns(), left = until > now ? (until - now + 999999) / 1000000 : 0;

    return timeout < 0 || left > NAP_MS ? NAP_MS : (int)left;
}

static int poll_all(struct pollfd *fds, nfds_t n, int timeout, struct pollfd *all)
{
    uint64_t until = dock_now_ns() + (timeout > 0 ? (uint64_t)timeout * 1000000u : 0);
    bool ours = only_ours(fds, n);

    for (;;) {
        int ready = scan(fds, n, false);

        if (ours && (ready || !timeout)) // no system call for what is known
            return ready;
        ready += scan(fds, n, timeout != 0);

        collect(fds, n, all);
        if (poll(all, 2 * n, ready ? 0 : nap(until, timeout)) < 0)
            return -1;
        ready = others(fds, n, all);
        quiet(fds, n);
        ready += scan(fds, n, false);
        if (ready || (timeout >= 0 && dock_now_ns() >= until))
            return ready;
    }
}

int rpoll(struct pollfd *fds, nfds_t nfds, int timeout)
{
    struct pollfd *all;
    int ret, why;

    if (!fds && nfds)
        return cm_fail(dock_refuse(EFAULT, "rpoll: no list given"));
    if (nfds > INT_MAX / 4)
        return cm_fail(dock_refuse(EINVAL, "rpoll: too many descriptors"));
    all = calloc(2 * nfds + 1, sizeof *all);
    if (!all)
        return cm_fail(dock_refuse(ENOMEM, "rpoll: no memory"));
    for (nfds_t i = 0; i < nfds; i++)
        fds[i].revents = 0;
    ret = poll_all(fds, nfds, timeout, all);
    why = errno;
    free(all);
    errno = why;
    return ret;
}

// ---- the older form

static int select_list(int nfds, const fd_set *r, const fd_set *w, const fd_set *x, struct pollfd *list)
{
    int n = 0;

    for (int fd = 0; fd < nfds; fd++) {
        short events = (r && FD_ISSET(fd, r) ? POLLIN : 0) | (w && FD_ISSET(fd, w) ? POLLOUT : 0);
        bool except = x && FD_ISSET(fd, x);

        if (events || except)
            list[n++] = (struct pollfd){.fd = fd, .events = events};
    }
    return n;
}

static int select_mark(const struct pollfd *p, fd_set *set, short any)
{
    if (!set)
        return 0;
    if (!FD_ISSET(p->fd, set))
        return 0;
    if (p->revents & any)
        return 1;
    FD_CLR(p->fd, set);
    return 0;
}

int rselect(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds, struct timeval *timeout)
{
    struct pollfd list[FD_SETSIZE];
    int ms = timeout ? (int)(timeout->tv_sec * 1000 + timeout->tv_usec / 1000) : -1;
    int n, ret, marked = 0;

    if (nfds < 0 || nfds > FD_SETSIZE)
        return cm_fail(dock_refuse(EINVAL, "rselect: %d descriptors", nfds));
    n = select_list(nfds, readfds, writefds, exceptfds, list);
    ret = rpoll(list, (nfds_t)n, ms);
    if (ret < 0)
        return ret;
    for (int i = 0; i < n; i++) {
        marked += select_mark(&list[i], readfds, POLLIN | POLLHUP | POLLERR);
        marked += select_mark(&list[i], writefds, POLLOUT | POLLERR);
        marked += select_mark(&list[i], exceptfds, POLLPRI);
    }
    return marked;
}
