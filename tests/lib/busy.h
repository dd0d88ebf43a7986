// SPDX-License-Identifier: MIT
// Threads that work in memory while it moves, and count what of it they miss: stores of theirs, and of the
// kernel on their behalf.
#ifndef TESTS_LIB_BUSY_H
#define TESTS_LIB_BUSY_H

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "device/internal.h"
#include "lib/fork.h"

#define BUSY_PAGE 4096u
#define BUSY_PAGES 256u
#define BUSY_RIGHTS (DOCK_ACCESS_LOCAL_WRITE | DOCK_ACCESS_REMOTE_READ | DOCK_ACCESS_REMOTE_WRITE)

static struct {
    char *mem;
    dock_a32 go, sleepers; // sleepers: those that are in their system call
    dock_a64 lost, stores, failed, kernel_stores;
    int pattern; // a file of 64 known bytes
    int pipe[2];
    bool block;   // the second hammer blocks all signals
    bool signals; // threads are stopped by one: a poll may end with EINTR, a registration be refused
} busy;

// A word of its own in every page, counted up.
static inline void *busy_hammer(void *arg)
{
    size_t id = (size_t)arg;
    uint64_t *shadow = calloc(BUSY_PAGES, 8);
    sigset_t all;

    sigfillset(&all);
    if (id == 1 && busy.block)
        pthread_sigmask(SIG_BLOCK, &all, NULL);
    for (uint64_t n = 0; dock_peek32(&busy.go); n++)
        for (unsigned i = 0; i < BUSY_PAGES; i++) {
            dock_a64 *word = (dock_a64 *)(void *)(busy.mem + i * BUSY_PAGE) + id;
            if (dock_peek64(word) != shadow[i])
                atomic_fetch_add(&busy.lost, 1);
            dock_set64(word, ++shadow[i]);
            atomic_fetch_add_explicit(&busy.stores, 1, memory_order_relaxed);
        }
    free(shadow);
    return NULL;
}

// The kernel's stores: read(2) into the memory.
static inline void *busy_reader(void *arg)
{
    char want[64];

    (void)arg;
    if (pread(busy.pattern, want, 64, 0) != 64)
        abort();
    for (uint64_t n = 0; dock_peek32(&busy.go); n++) {
        char *to = busy.mem + dock_mix(n) % BUSY_PAGES * BUSY_PAGE + 512;
        memset(to, 0, 64);
        if (pread(busy.pattern, to, 64, 0) != 64)
            atomic_fetch_add(&busy.failed, 1);
        else if (memcmp(to, want, 64) != 0)
            atomic_fetch_add(&busy.lost, 1);
        dock_count64(&busy.kernel_stores, 1);
    }
    return NULL;
}

// Asleep in a read into the memory that ends after the move.
static inline void *busy_pipe_reader(void *arg)
{
    (void)arg;
    atomic_fetch_add(&busy.sleepers, 1);
    for (unsigned i = 0; i < BUSY_PAGES; i++)
        if (read(busy.pipe[0], busy.mem + i * BUSY_PAGE + 1024, 8) != 8 ||
            *(uint64_t *)(void *)(busy.mem + i * BUSY_PAGE + 1024) != i + 1)
            atomic_fetch_add(&busy.failed, 1);
    return NULL;
}

static inline void *busy_poller(void *arg)
{
    (void)arg;
    while (dock_peek32(&busy.go))
        if (poll(NULL, 0, 20) < 0 && !(busy.signals && errno == EINTR))
            atomic_fetch_add(&busy.failed, 1);
    return NULL;
}

static inline void *busy_epoller(void *arg)
{
    int fd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event e;

    (void)arg;
    while (dock_peek32(&busy.go))
        if (epoll_wait(fd, &e, 1, 20) < 0 && errno != EINTR) // it has a timeout: see status.md
            atomic_fetch_add(&busy.failed, 1);
    close(fd);
    return NULL;
}

// Register and deregister under them. How often the memory was adopted: a busy machine may take longer than
// the patience with a thread, so if it must be it is tried again.
static inline unsigned busy_move(struct dock_dev *dev, uint32_t pd, uint64_t ns, bool must)
{
    uint64_t end = dock_now_ns() + ns, last = end + (must ? 20000000000ull : 0);
    unsigned adopted = 0, sent = 0;
    uint64_t word;

    do {
        struct dock_mr *mr;
        int err = dock_mr_register(dev, pd, (uintptr_t)busy.mem, BUSY_PAGES * BUSY_PAGE, (uintptr_t)busy.mem,
                                   BUSY_RIGHTS, &mr);
        if (err == -EOPNOTSUPP && busy.signals)
            continue;
        if (err)
            abort();
        adopted += dock_peek64(&dev->port->adopt.bytes) == BUSY_PAGES * BUSY_PAGE;
        for (word = ++sent; sent <= BUSY_PAGES && write(busy.pipe[1], &word, 8) != 8;)
            ;
        test_nap_us(500);
        if (dock_mr_deregister(mr))
            abort();
        test_nap_us(500);
    } while (dock_now_ns() < (adopted ? end : last));
    for (; sent < BUSY_PAGES;) {
        word = ++sent;
        if (write(busy.pipe[1], &word, 8) != 8)
            abort();
    }
    return adopted;
}

#endif
