// SPDX-License-Identifier: MIT
// The engine thread: work that nobody is there for. It sleeps in epoll on its bell, its listener, its peers.
// Sleep protocol: set `asleep`, full fence, look for work, sleep; who makes work: write it, full fence, look
// at `asleep`. One of the two sees the other (the store-buffering litmus in tests/unit/device).
#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/rawcall.h"
#include "device/internal.h"
#include "device/link.h"

#define TICK_NS 200000ull     // while work may be left lying
#define LINGER_NS 10000000ull // ticking goes on so long after the last work
#define RAW_HOT_NS 50000ull   // a raw doorbell is polled so long after it last moved
#define RAW_IDLE_NS 1000000ull
// A sleep of a millisecond takes more than a hundredth of a processor on many machines, before anything is
// looked at: who rang no doorbell for so long waits a little longer for the first one.
#define RAW_COLD_AFTER_NS 1000000000ull
#define RAW_COLD_NS 4000000ull
#define DEEP_NS 1000000000ull
#define FAULT_NAP_NS 1000000 // after a wait that failed, and may not fail again

enum { TAG_BELL = 1u << 31, TAG_LISTEN };

static void ring(int bell_fd)
{
    uint64_t one = 1;

    // Full: it has been rung. Not by libc's call: a post is no place to cancel a thread at.
    dock_rawcall(SYS_write, bell_fd, (long)&one, sizeof one, 0, 0, 0);
}

void dock_up_bell(struct dock_peer *peer)
{
    dock_fence_full(); // pairs with the fence in may_sleep
    if (dock_peek32(&peer->port->asleep) != DOCK_AWAKE)
        ring(peer->bell_fd);
}

void dock_up_attention(struct dock_peer *peer)
{
    dock_publish32(&peer->port->attention, 1); // the flags it stands for come first: pairs with dock_attend
    dock_up_bell(peer);
}

void dock_engine_wake(struct dock_dev *dev)
{
    dock_fence_full(); // pairs with the fence in may_sleep
    if (dock_peek32(&dev->port->asleep) == DOCK_DEEP)
        ring(dev->bell_fd);
}

// Ready queues are their pollers' as long as these take any: an engine that mixes in takes the token away
// from a thread that has a processor, and may then not get one itself. Since the last look nobody came: they
// are ours.
static bool run_left_behind(struct dock_dev *dev)
{
    uint32_t taken = dock_peek32(&dev->taken_by_pollers);
    bool any = false;

    if (taken != dev->taken_seen) {
        dev->taken_seen = taken;
        return false;
    }
    for (unsigned i = 0; i < 8 && dock_ready_run(dev, DOCK_BY_ENGINE); i++)
        any = true;
    return any;
}

// true: there was work, and there may be more. What pollers took since the last look was work too, and keeps
// the ticks going: a transfer that is longer than a budget would ring a long sleeper at each post.
static bool turn(struct dock_dev *dev)
{
    uint32_t seen = dev->taken_seen;
    bool any = false;

    if (dock_peek32(&dev->port->attention)) {
        dock_attend(dev);
        any = true;
    }
    if (dock_peek32(&dev->held_events))
        dock_cq_deliver_held(dev);
    any |= run_left_behind(dev);
    any |= dock_waiting_run(dev);
    if (any || dev->taken_seen != seen)
        dev->worked_ns = dock_now_ns();
    return any;
}

// Not counted as work that ticks go on for: a watch that saw something has a patience of its own.
static void watch(struct dock_dev *dev)
{
    if (dock_raw_watch(dev))
        dock_set64(&dev->raw_moved_ns, dock_now_ns());
}

static void look_after_ourselves(struct dock_dev *dev)
{
    if (dock_idtable_evicted(&dev->ids_table, dev->waiter.me))
        dock_dev_fatal(dev);
    else
        dock_ways_show_rest(dev);
    dock_peers_check(dev);
    dock_repair_strangers(dev);
    dock_ways_check(dev);
    dock_quarantine_check(dev);
    dock_link_look(dev, true);
    dock_raw_forsake(dev);
}

static void serve(struct dock_dev *dev, const struct epoll_event *e)
{
    uint64_t count;

    if (e->data.u32 == TAG_BELL) {
        ssize_t n = read(dev->bell_fd, &count, sizeof count);
        (void)n;
    } else if (e->data.u32 == TAG_LISTEN) {
        struct dock_gift gift = dock_dev_gift(dev);
        int err = dock_gift_serve(dev->listen_fd, &gift);
        if (err && err != -EAGAIN) // no descriptor left, say: the caller waits on, and must not keep us busy
            clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){.tv_nsec = 1000000}, NULL);
    } else {
        dock_peers_ready(dev, e->data.u32);
    }
}

// Called behind the gate of adoption; asleep the engine is outside, where it touches nothing of the program.
static void wait_in_epoll(struct dock_dev *dev, uint64_t ns)
{
    struct epoll_event e[8];
    struct timespec t = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
    int n = -1;

    pthread_mutex_unlock(&dev->adopt.gate);
    if (!dev->no_fine_wait) {
        n = (int)syscall(SYS_epoll_pwait2, dev->epoll_fd, e, 8, &t, NULL, 0);
        dev->no_fine_wait = n < 0 && (errno == ENOSYS || errno == EPERM); // old kernels, valgrind, seccomp
    }
    if (dev->no_fine_wait)
        n = epoll_wait(dev->epoll_fd, e, 8, (int)((ns + 999999) / 1000000));
    if (n < 0 && errno != EINTR) { // nothing may keep us busy
        if (errno != EBADF && ns > FAULT_NAP_NS)
            t = (struct timespec){.tv_nsec = FAULT_NAP_NS};
        // else the program closed all its descriptors: it is alive, and so are we
        clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
    }
    pthread_mutex_lock(&dev->adopt.gate);
    for (int i = 0; i < n; i++)
        serve(dev, &e[i]);
}

void dock_engine_step(struct dock_dev *dev)
{
    pthread_mutex_lock(&dev->adopt.gate);
    wait_in_epoll(dev, 0);
    turn(dev);
    watch(dev);
    pthread_mutex_unlock(&dev->adopt.gate);
}

void dock_engine_nap(struct dock_dev *dev)
{
    if (dev->engine_runs)
        dock_nap(50000);
    else
        dock_engine_step(dev);
}

static bool work_waits(struct dock_dev *dev)
{
    return dock_peek32(&dev->port->attention) || dock_peek32(&dev->stop);
}

// Work that a tick would find in time, but not a long sleeper: who made it while we were awake has not rung.
static bool tick_waits(struct dock_dev *dev, uint64_t ns)
{
    return dock_peek64(&dev->ready_head) || dock_peek32(&dev->held_events) || dock_waiting_any(dev) ||
           (ns == DEEP_NS && dock_peek32(&dev->raw_queues));
}

// How long until the doorbells of others are looked at again.
static uint64_t raw_patience(struct dock_dev *dev, uint64_t now)
{
    uint64_t moved = dock_peek64(&dev->raw_moved_ns), since = now > moved ? now - moved : 0;

    return since < RAW_HOT_NS ? 0 : since < RAW_COLD_AFTER_NS ? RAW_IDLE_NS : RAW_COLD_NS;
}

uint64_t dock_engine_patience(struct dock_dev *dev, uint64_t now)
{
    bool ticks =
        now - dev->worked_ns < LINGER_NS || dock_peek64(&dev->ready_head) || dock_peek32(&dev->held_events);
    uint64_t ns = ticks ? TICK_NS : DEEP_NS;
    uint64_t raw = dock_peek32(&dev->raw_queues) ? raw_patience(dev, now) : DEEP_NS;

    return raw < ns ? raw : ns;
}

static void sleep_once(struct dock_dev *dev, uint64_t ns)
{
    bool deep = ns > TICK_NS;

    if (ns == 0) {
        wait_in_epoll(dev, 0);
        return;
    }
    dock_set32(&dev->port->asleep, deep ? DOCK_DEEP : DOCK_TICKING);
    dock_fence_full(); // pairs with the fences in dock_up_bell and dock_engine_wake
    if (!work_waits(dev) && !(deep && tick_waits(dev, ns)))
        wait_in_epoll(dev, ns);
    dock_set32(&dev->port->asleep, DOCK_AWAKE); // the bell's count is kept by the kernel: nothing to order
}

// Whoever moves memory tells it from the program's threads from `known` on.
struct birth {
    struct dock_dev *dev;
    sem_t known;
};

static void *engine(void *arg)
{
    struct birth *birth = arg;
    struct dock_dev *dev = birth->dev;
    uint64_t last_look = 0;

    dev->worked_ns = dock_now_ns();
    dock_adopt_engine(&dev->adopt, true);
    sem_post(&birth->known); // `birth` is gone after this
    while (!dock_acquire32(&dev->stop)) {
        bool any = turn(dev);
        watch(dev);
        uint64_t now = dock_now_ns();
        if (now - last_look > 100000000u) {
            look_after_ourselves(dev);
            last_look = now;
        }
        bool draining =
            any && dock_peek64(&dev->ready_head) && dock_peek32(&dev->taken_by_pollers) == dev->taken_seen;
        sleep_once(dev, draining ? 0 : dock_engine_patience(dev, now));
    }
    dock_adopt_engine(&dev->adopt, false);
    return NULL;
}

static int add(struct dock_dev *dev, int fd, uint32_t tag)
{
    struct epoll_event e = {.events = EPOLLIN, .data.u32 = tag};

    if (!epoll_ctl(dev->epoll_fd, EPOLL_CTL_ADD, fd, &e))
        return 0;
    return dock_cannot("nothing wakes the device's engine (epoll_ctl)", -errno);
}

// The program's signals are the program's: the engine takes none.
static int start_thread(struct dock_dev *dev)
{
    struct birth birth = {.dev = dev};
    sigset_t all, old;
    int err;

    sem_init(&birth.known, 0, 0);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    dock_uncancelled_begin(); // the engine reads and posts what is on this stack
    err = pthread_create(&dev->engine, NULL, engine, &birth);
    while (!err && sem_wait(&birth.known))
        ;
    dock_uncancelled_end();
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    sem_destroy(&birth.known);
    if (err)
        return dock_cannot("no thread for the device's engine", -err);
    pthread_setname_np(dev->engine, "drydock");
    dev->engine_runs = true;
    return 0;
}

int dock_engine_start(struct dock_dev *dev)
{
    int err = -1;

    dev->epoll_fd = dock_fd_own(epoll_create1(EPOLL_CLOEXEC));
    if (dev->epoll_fd < 0)
        return dock_cannot("nothing for the device's engine to sleep in (epoll)", -errno);
    err = add(dev, dev->bell_fd, TAG_BELL);
    if (!err)
        err = add(dev, dev->listen_fd, TAG_LISTEN);
    dock_link_look(dev, false);
    if (!err && !dev->cfg.no_engine_thread)
        err = start_thread(dev);
    if (err) {
        close(dev->epoll_fd);
        dev->epoll_fd = -1;
    }
    return err;
}

void dock_engine_stop(struct dock_dev *dev)
{
    dock_publish32(&dev->stop, 1); // pairs with the loop's acquire
    ring(dev->bell_fd);
    if (dev->engine_runs)
        pthread_join(dev->engine, NULL);
    dev->engine_runs = false;
    close(dev->epoll_fd);
}
