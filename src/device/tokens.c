// SPDX-License-Identifier: MIT
#include "device/tokens.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/rawcall.h"

int dock_tokens_open(struct dock_tokens *t)
{
    t->fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
    t->readers = t->surplus = 0;
    return t->fd < 0 ? -errno : 0;
}

void dock_tokens_close(struct dock_tokens *t)
{
    close(t->fd);
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

void dock_tokens_drop(struct dock_tokens *t, uint32_t n)
{
    t->surplus += n;
    settle(t);
}

int dock_tokens_take(struct dock_tokens *t, pthread_mutex_t *lock)
{
    uint64_t one;
    int err = 0;

    pthread_mutex_lock(lock);
    while (!err) {
        t->readers++;
        pthread_mutex_unlock(lock);
        if (read(t->fd, &one, sizeof one) < 0)
            err = -errno;
        pthread_mutex_lock(lock);
        t->readers--;
        if (!err && !t->surplus)
            return 0;
        if (!err)
            t->surplus--;
        settle(t);
    }
    pthread_mutex_unlock(lock);
    return err;
}

int dock_tokens_try(struct dock_tokens *t, pthread_mutex_t *lock)
{
    pthread_mutex_lock(lock);
    // Nobody else can read: what poll sees is still there, and it is an entry's.
    if (!t->readers && has_one(t) && take_one(t))
        return 0;
    pthread_mutex_unlock(lock);
    return -EAGAIN;
}
