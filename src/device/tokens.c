// SPDX-License-Identifier: MIT
#include "device/tokens.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

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
    ssize_t n = write(t->fd, &one, sizeof one);

    (void)n;
}

// Nobody else can read: the surplus is in the descriptor, and none of these reads blocks.
static void settle(struct dock_tokens *t)
{
    uint64_t one;

    while (!t->readers && t->surplus && read(t->fd, &one, sizeof one) > 0)
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
    struct pollfd p = {.fd = t->fd, .events = POLLIN};
    uint64_t one;

    pthread_mutex_lock(lock);
    // Nobody else can read: what poll sees is still there, and it is an entry's.
    if (!t->readers && poll(&p, 1, 0) > 0 && read(t->fd, &one, sizeof one) > 0)
        return 0;
    pthread_mutex_unlock(lock);
    return -EAGAIN;
}
