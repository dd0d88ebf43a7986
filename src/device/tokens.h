// SPDX-License-Identifier: MIT
// A descriptor that is readable as long as an entry of some list waits: an eventfd in semaphore mode that
// holds one token per entry, so that O_NONBLOCK, poll and epoll work as on a device file. A reader takes its
// token without the list's lock (it may block); entries are added and dropped under it.
//
//     tokens in the descriptor + tokens in readers' hands = entries + surplus
//
// Surplus tokens are those of entries that were dropped while somebody was reading; readers swallow them.
#ifndef DOCK_DEVICE_TOKENS_H
#define DOCK_DEVICE_TOKENS_H

#include <pthread.h>
#include <stdint.h>

struct dock_tokens {
    int fd;
    uint32_t readers, surplus; // under the list's lock
};

int dock_tokens_open(struct dock_tokens *t); // -errno
void dock_tokens_close(struct dock_tokens *t);
void dock_tokens_add(struct dock_tokens *t);              // an entry was added; locked
void dock_tokens_drop(struct dock_tokens *t, uint32_t n); // n entries were dropped; locked
// Take the token of one entry: 0, and `lock` is held, the list is not empty, the caller takes its head.
// Blocks unless the descriptor is O_NONBLOCK (-EAGAIN); -EINTR. On failure the lock is not held.
int dock_tokens_take(struct dock_tokens *t, pthread_mutex_t *lock);
// The same, never blocking: -EAGAIN, also while somebody else waits (it is his then).
int dock_tokens_try(struct dock_tokens *t, pthread_mutex_t *lock);

#endif
