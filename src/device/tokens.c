// SPDX-License-Identifier: MIT
#include "device/tokens.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/lock.h"
#include "base/rawcall.h"

int dock_tokens_open(struct dock_tokens *t)
{
    t->fd = dock_fd_own(eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE));
    t->readers = t->surplus = 0;
    return t->fd < 0 ? -errno : 0;
}

void dock_tokens_close(struct dock_tokens *t)
{
    dock_close(t->fd);
}

void dock_tokens_add(struct dock_tokens *t)
{
    uint64_t one = 1;

    dock_rawcall(SYS_write, t->fd, (long)&one, sizeof one, 0, 0, 0);
}

// Under the caller's lock no thread may be cancelled, as it may in libc's calls.
static bool take_one(const struct dock_tokens *t)
{
    uint64_t one = 0;

    return dock_rawcall(SYS_read, t->fd, (long)&one, sizeof one, 0, 0, 0) > 0;
}

static bool has_one(const struct dock_tokens *t)
{
    struct pollfd p = {.fd = t->fd, .events = POLLIN};
    struct timespec none = {0};

    return dock_rawcall(SYS_ppoll, (long)&p, 1, (long)&none, 0, 0, 0) > 0;
}

// Nobody else can read: the surplus is in the descriptor, and none of these reads blocks.
static void settle(struct dock_tokens *t)
{
    while (!t->readers && t->surplus && take_one(t))
        t->surplus--;
}

struct reading {
    struct dock_tokens *t;
    pthread_mutex_t *lock;
};

void dock_tokens_drop(struct dock_tokens *t, uint32_t n)
{
    t->surplus += n;
    settle(t);
}

static void leave_reading(void *arg)
{
    struct reading *r = arg;

    dock_lock(r->lock);
    r->t->readers--;
    settle(r->t);
    dock_unlock(r->lock);
}

// The one point of such a call at which a thread may be cancelled: it has nothing yet.
static int await_one(struct reading r)
{
    uint64_t one;
    int err;

    pthread_cleanup_push(leave_reading, &r);
    err = read(r.t->fd, &one, sizeof one) < 0 ? -errno : 0;
    pthread_cleanup_pop(0);
    return err;
}

int dock_tokens_take(struct dock_tokens *t, pthread_mutex_t *lock)
{
    int err = 0;

    dock_lock(lock);
    while (!err) {
        t->readers++;
        dock_unlock(lock);
        err = await_one((struct reading){t, lock});
        dock_lock(lock);
        t->readers--;
        if (!err && !t->surplus)
            return 0;
        if (!err)
            t->surplus--;
        settle(t);
    }
    dock_unlock(lock);
    return err;
}

int dock_tokens_try(struct dock_tokens *t, pthread_mutex_t *lock)
{
    dock_lock(lock);
    // Nobody else can read: what poll sees is still there, and it is an entry's.
    if (!t->readers && has_one(t) && take_one(t))
        return 0;
    dock_unlock(lock);
    return -EAGAIN;
}
