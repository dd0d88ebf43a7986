// SPDX-License-Identifier: MIT
// The node: what there is once per process. A thread sleeps in epoll on the connections and listeners of
// all ids and calls their state machines under cm.lock; a program need not ask for events to have its peers
// answered.
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptor.h"
#include "face/rdmacm/rdmacm_face.h"

#define PORTS_FILE "cm-ports"
#define PATIENCE_MS 64000 // 15 retries of 4.3 seconds, as the kernel's connection manager
#define GRAIN_MS 20       // deadlines are rounded up, so that many of them are one wake-up

struct cm_node cm = {
    .lock = DOCK_LOCK_OF_FORKS,
    .acked = PTHREAD_COND_INITIALIZER,
    .dir.fd = -1,
    .ports_fd = -1,
    .epoll_fd = -1,
    .wake_fd = -1,
};

// By descriptor. An event that was on its way when its descriptor was closed carries an old serial number.
struct source {
    enum cm_source_kind kind;
    uint32_t serial;
    struct cm_id *id;
};

static struct source *sources;
static size_t room;
static uint32_t serial;

uint64_t cm_now_ms(void)
{
    return dock_now_ns() / 1000000u;
}

// ---- descriptors

static int grow(int fd)
{
    size_t wanted = room ? room : 64;
    struct source *more;

    while (wanted <= (size_t)fd)
        wanted *= 2;
    if (wanted == room)
        return 0;
    more = realloc(sources, wanted * sizeof *more);
    if (!more)
        return dock_no_memory("a table of connections");
    memset(more + room, 0, (wanted - room) * sizeof *more);
    sources = more;
    room = wanted;
    return 0;
}

int cm_watch(int fd, enum cm_source_kind kind, struct cm_id *id)
{
    struct epoll_event e = {.events = EPOLLIN, .data.u64 = (uint64_t)++serial << 32 | (uint32_t)fd};
    int ret = grow(fd);

    if (ret)
        return ret;
    if (epoll_ctl(cm.epoll_fd, EPOLL_CTL_ADD, fd, &e) &&
        (errno != EEXIST || epoll_ctl(cm.epoll_fd, EPOLL_CTL_MOD, fd, &e))) {
        ret = -errno;
        dock_error("a connection cannot be watched: %s", strerror(-ret));
        return ret;
    }
    sources[fd] = (struct source){.kind = kind, .serial = serial, .id = id};
    return 0;
}

void cm_listen_to(int fd, bool on)
{
    struct epoll_event e = {.events = on ? EPOLLIN : 0,
                            .data.u64 = (uint64_t)sources[fd].serial << 32 | (uint32_t)fd};

    if (epoll_ctl(cm.epoll_fd, EPOLL_CTL_MOD, fd, &e))
        dock_error("a listener cannot be watched: %s", strerror(errno));
}

void cm_unwatch(int fd)
{
    if (fd < 0)
        return;
    if ((size_t)fd < room)
        sources[fd] = (struct source){0};
    // close() alone would leave the entry in the set while a forked child has the descriptor, too.
    epoll_ctl(cm.epoll_fd, EPOLL_CTL_DEL, fd, NULL);
    close(fd);
}

void cm_unwatch_callers(const struct cm_id *listener)
{
    for (size_t fd = 0; fd < room; fd++)
        if (sources[fd].kind == CM_SRC_NEW && sources[fd].id == listener)
            cm_unwatch((int)fd);
}

// ---- time

void cm_set_deadline(struct cm_id *id, uint64_t deadline_ms)
{
    uint64_t one = 1;

    if (deadline_ms)
        deadline_ms = (deadline_ms + GRAIN_MS - 1) / GRAIN_MS * GRAIN_MS;
    id->deadline_ms = deadline_ms;
    if (!deadline_ms || (cm.next_ms && cm.next_ms <= deadline_ms))
        return;
    cm.next_ms = deadline_ms;
    if (write(cm.wake_fd, &one, sizeof one) < 0)
        dock_warn("the connection thread cannot be woken: %s", strerror(errno));
}

static int sleep_ms(void)
{
    uint64_t now, next;

    cm_acquire();
    next = cm.next_ms;
    cm_release();
    if (!next)
        return -1;
    now = cm_now_ms();
    return next <= now ? 0 : next - now > INT_MAX ? INT_MAX : (int)(next - now);
}

static void run_timers(void)
{
    uint64_t now = cm_now_ms();

    if (!cm.next_ms || cm.next_ms > now)
        return;
    cm.next_ms = 0;
    for (struct cm_id *id = cm.ids, *next; id; id = next) {
        next = id->next;
        if (id->deadline_ms && id->deadline_ms <= now) {
            id->deadline_ms = 0;
            cm_timer(id, now);
        }
    }
    for (struct cm_id *id = cm.ids; id; id = id->next)
        if (id->deadline_ms && (!cm.next_ms || id->deadline_ms < cm.next_ms))
            cm.next_ms = id->deadline_ms;
}

// ---- the thread

static void serve(uint64_t tag)
{
    uint32_t fd = (uint32_t)tag;
    struct source s;
    uint64_t drained;

    if (fd >= room || sources[fd].serial != tag >> 32)
        return;
    s = sources[fd];
    switch (s.kind) {
    case CM_SRC_WAKE:
        if (read((int)fd, &drained, sizeof drained) < 0)
            dock_debug("the wake-up of the connection thread was taken already");
        return;
    case CM_SRC_LISTEN:
        cm_newcomer(s.id, (int)fd);
        return;
    case CM_SRC_NEW:
        cm_first_message(s.id, (int)fd);
        return;
    case CM_SRC_CONN:
        cm_readable(s.id);
        return;
    case CM_SRC_NONE:
        return;
    }
}

static void *run(void *unused)
{
    struct epoll_event e;

    for (;;) {
        int n = epoll_wait(cm.epoll_fd, &e, 1, sleep_ms());

        if (n < 0 && errno != EINTR) {
            dock_error("the connection thread ends: %s", strerror(errno));
            return unused;
        }
        cm_acquire();
        if (n == 1)
            serve(e.data.u64);
        run_timers();
        cm_release();
    }
}

static int start_thread(void)
{
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all, old;
    int ret;

    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); // signals are for the program's own threads
    ret = pthread_create(&thread, &attr, run, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    return -ret;
}

// ---- start, and what a forked child keeps of it: nothing

static void shut(void)
{
    int *fds[] = {&cm.ports_fd, &cm.epoll_fd, &cm.wake_fd};

    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++) {
        if (*fds[i] >= 0)
            close(*fds[i]);
        *fds[i] = -1;
    }
    if (cm.dir.fd >= 0)
        dock_rundir_close(&cm.dir);
}

// A child that kept its parent's connections open would hide the parent's death from the peers.
static void forked_child(void)
{
    for (size_t fd = 0; fd < room; fd++)
        if (sources[fd].kind == CM_SRC_LISTEN || sources[fd].kind == CM_SRC_NEW ||
            sources[fd].kind == CM_SRC_CONN)
            close((int)fd);
    memset(sources, 0, room * sizeof *sources);
    shut();
    cm.running = false;
    cm.ids = NULL;
    cm_ports_forget();
    cm.next_ms = 0;
    cm.generation++;
    pthread_cond_init(&cm.acked, NULL);
    dock_unlock_of_forks(&cm.lock);
}

static void watch_fork(void)
{
    pthread_atfork(cm_acquire, cm_release, forked_child);
}

static uint64_t patience(void)
{
    const char *text = getenv("DRYDOCK_CM_TIMEOUT_MS");
    unsigned long long n = text ? strtoull(text, NULL, 10) : 0;

    return n && n < 86400000u ? n : PATIENCE_MS;
}

static int start(void)
{
    int ret = dock_rundir_open(NULL, &cm.dir);

    if (ret)
        return ret;
    cm.ports_fd = dock_fd_own(openat(cm.dir.fd, PORTS_FILE, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    cm.epoll_fd = dock_fd_own(epoll_create1(EPOLL_CLOEXEC));
    cm.wake_fd = dock_fd_own(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (cm.ports_fd < 0 || cm.epoll_fd < 0 || cm.wake_fd < 0)
        ret = -errno;
    if (!ret)
        ret = cm_watch(cm.wake_fd, CM_SRC_WAKE, NULL);
    if (!ret)
        ret = start_thread();
    if (ret) {
        dock_error("connection management cannot be started: %s", strerror(-ret));
        shut();
        return ret;
    }
    cm.patience_ms = patience();
    cm.running = true;
    return 0;
}

int cm_node_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int ret;

    pthread_once(&once, watch_fork);
    cm_acquire();
    ret = cm.running ? 0 : start();
    cm_release();
    return ret;
}
