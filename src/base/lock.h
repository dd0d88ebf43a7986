// SPDX-License-Identifier: MIT
// Mutexes of cold calls. A thread that is cancelled inside such a call must not end with a lock: while it has
// any it is not cancelled, and the request waits for the next point after the last one.
//
// The handlers of fork take some of the locks. A handler of a signal may fork, too, in the middle of a call
// that has them: those are recursive. What it finds half done its child cannot use anyway, which may only
// call what is safe in a handler; but for the program's memory, which moves with signals blocked.
#ifndef DOCK_BASE_LOCK_H
#define DOCK_BASE_LOCK_H

#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

// Until as many ends as begins the calling thread is not cancelled.
void dock_uncancelled_begin(void);
void dock_uncancelled_end(void);
// Nor does it handle a signal. One that a wrong access of its own sends would end the process: after `faults`
// these are handled again, until the last end.
void dock_unsignalled_begin(void);
void dock_unsignalled_faults(void);
void dock_unsignalled_end(void);
// What the calling thread blocks, but for what is blocked by these: bit number - 1.
uint64_t dock_signals_blocked(void);

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

#define DOCK_LOCK_OF_FORKS PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP

// The other half of dock_lock for such a one. In a forked child it is still the parent's thread's.
static inline void dock_unlock_of_forks(pthread_mutex_t *m)
{
    if (pthread_mutex_unlock(m))
        *m = (pthread_mutex_t)DOCK_LOCK_OF_FORKS;
    dock_uncancelled_end();
}

#endif
