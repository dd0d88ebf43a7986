// SPDX-License-Identifier: MIT
// Mutexes of cold calls. A thread that is cancelled inside such a call must not end with a lock: while it has
// any it is not cancelled, and the request waits for the next point after the last one. A handler of the
// program's may interrupt a call and fork, and the handlers of fork take some of the locks: those are held
// with signals blocked. What is taken by one of a pair is let go by the same pair.
#ifndef DOCK_BASE_LOCK_H
#define DOCK_BASE_LOCK_H

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

// Until as many ends as begins the calling thread is not cancelled.
void dock_uncancelled_begin(void);
void dock_uncancelled_end(void);
// The same for signals, but for those that a wrong access of its own sends.
void dock_unsignalled_begin(void);
void dock_unsignalled_end(void);

// As libc's, and no points of cancellation.
static inline int dock_open(const char *path, int flags)
{
    dock_uncancelled_begin();
    int fd = open(path, flags);
    dock_uncancelled_end();
    return fd;
}

static inline void dock_close(int fd)
{
    dock_uncancelled_begin();
    close(fd);
    dock_uncancelled_end();
}

static inline void dock_lock(pthread_mutex_t *m)
{
    dock_uncancelled_begin();
    pthread_mutex_lock(m);
}

static inline void dock_unlock(pthread_mutex_t *m)
{
    pthread_mutex_unlock(m);
    dock_uncancelled_end();
}

// Of a lock that a fork takes. Who waits for it is open to signals: a stop of all threads may go by one.
void dock_lock_beside_forks(pthread_mutex_t *m);

static inline void dock_unlock_beside_forks(pthread_mutex_t *m)
{
    dock_unlock(m);
    dock_unsignalled_end();
}

// A wait inside of it may be long: signals come meanwhile.
static inline void dock_cond_wait_beside_forks(pthread_cond_t *c, pthread_mutex_t *m)
{
    dock_unsignalled_end();
    pthread_cond_wait(c, m);
    dock_unsignalled_begin();
}

#endif
