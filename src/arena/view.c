// SPDX-License-Identifier: MIT
#include "arena/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "arena/huge.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/rawcall.h"

#define SHIFT_MIN 16 // a window is at least a page on every machine
#define SHIFT_MAX 40
#define CHUNKS_SHIFT 6 // as many chunks in a window as a word has bits

static pthread_mutex_t views_lock = DOCK_LOCK_OF_FORKS; // cancels nobody: under it no call is a point of that
static struct dock_view *views;

void dock_views_lock(void)
{
    pthread_mutex_lock(&views_lock);
}

bool dock_views_lock_for(uint64_t ns)
{
    uint64_t by = dock_now_ns() + ns;
    struct timespec t = {.tv_sec = (time_t)(by / 1000000000u), .tv_nsec = (long)(by % 1000000000u)};

    return !pthread_mutex_clocklock(&views_lock, CLOCK_MONOTONIC, &t);
}

void dock_views_unlock(void)
{
    if (pthread_mutex_unlock(&views_lock)) // as in dock_unlock_of_forks
        views_lock = (pthread_mutex_t)DOCK_LOCK_OF_FORKS;
}

bool dock_views_have(uint64_t addr)
{
    for (const struct dock_view *v = views; v; v = v->next)
        for (unsigned i = 0; i < dock_peek32(&v->windows); i++) {
            const char *base = atomic_load_explicit(&v->window[i], memory_order_relaxed); // under the lock
            if (base && addr - (uintptr_t)base < (uint64_t)1 << v->shift)
                return true;
        }
    return false;
}

void dock_views_each(void (*each)(const struct dock_view *v, void *window))
{
    for (const struct dock_view *v = views; v; v = v->next)
        for (unsigned i = 0; i < dock_peek32(&v->windows); i++) {
            void *base = atomic_load_explicit(&v->window[i], memory_order_relaxed); // under the lock
            if (base)
                each(v, base);
        }
}

static void enlist(struct dock_view *v)
{
    dock_views_lock();
    v->prev = NULL;
    v->next = views;
    if (views)
        views->prev = v;
    views = v;
    dock_views_unlock();
}

static void delist(struct dock_view *v)
{
    if (v->prev)
        v->prev->next = v->next;
    else
        views = v->next;
    if (v->next)
        v->next->prev = v->prev;
}

// Another view of this process has the window mapped: its base. A forked child has none of its parent's
// mappings, only the list. The lock of the views is held.
static char *mapped_by_another(const struct dock_view *v, unsigned window)
{
    if (v->pid != getpid())
        return NULL;
    for (const struct dock_view *o = views; o; o = o->next) {
        if (o == v || o->pid != v->pid || o->shift != v->shift || o->inode != v->inode ||
            o->device != v->device)
            continue;
        char *base = atomic_load_explicit(&o->window[window], memory_order_relaxed); // under the lock
        if (base)
            return base;
    }
    return NULL;
}

static unsigned chunk_shift(unsigned shift)
{
    unsigned page = (unsigned)__builtin_ctzl((unsigned long)sysconf(_SC_PAGESIZE));

    return shift - CHUNKS_SHIFT > page ? shift - CHUNKS_SHIFT : page;
}

int dock_view_open(struct dock_view *v, int fd, unsigned shift)
{
    int seals = fcntl(fd, F_GET_SEALS), ret = 0;
    struct stat st;

    if (shift < SHIFT_MIN || shift > SHIFT_MAX) {
        dock_error("an arena with windows of 2^%u bytes is refused: 2^%d to 2^%d are possible", shift,
                   SHIFT_MIN, SHIFT_MAX);
        ret = -EINVAL;
    } else if (seals < 0 || !(seals & F_SEAL_SHRINK)) {
        dock_error("an arena that its owner could shrink is refused: F_SEAL_SHRINK is missing");
        ret = -EPERM;
    } else if (fstat(fd, &st)) {
        ret = -errno;
        dock_error("an arena cannot be looked at: %s", strerror(-ret));
    } else {
        ret = -pthread_mutex_init(&v->lock, NULL);
    }
    if (ret) {
        close(fd);
        return ret;
    }
    v->fd = fd;
    v->device = st.st_dev;
    v->inode = st.st_ino;
    v->shift = shift;
    v->chunk = chunk_shift(shift);
    v->pid = getpid();
    dock_set32(&v->windows, 0);
    for (unsigned i = 0; i < DOCK_WINDOWS; i++) {
        atomic_init(&v->window[i], NULL);
        dock_set64(&v->chunks[i], 0);
    }
    enlist(v);
    return 0;
}

void dock_view_close(struct dock_view *v)
{
    size_t size = (size_t)1 << v->shift;

    dock_views_lock();
    for (unsigned i = 0; i < DOCK_WINDOWS; i++) {
        char *base = atomic_exchange(&v->window[i], NULL);
        dock_set64(&v->chunks[i], 0);
        // In a forked child something else may live at these addresses by now.
        if (base && v->pid == getpid() && !mapped_by_another(v, i))
            munmap(base, size);
    }
    delist(v);
    dock_views_unlock();
    pthread_mutex_destroy(&v->lock);
    dock_close(v->fd);
    v->fd = -1;
}

bool dock_view_leads(const struct dock_view *v)
{
    struct stat st;

    return !fstat(v->fd, &st) && st.st_ino == v->inode && st.st_dev == v->device;
}

// A core dump would fill the holes as well; a forked child must not write into what is its parent's. Not by
// the call of the same name: the shim takes that for the program's and asks us (adopt_change.c).
int dock_view_seclude(void *base, size_t bytes)
{
    long ret = dock_rawcall(SYS_madvise, (long)base, (long)bytes, MADV_DONTDUMP, 0, 0, 0);

    return (int)(ret ? ret : dock_rawcall(SYS_madvise, (long)base, (long)bytes, MADV_DONTFORK, 0, 0, 0));
}

// An address that lies as the offset does, modulo a huge page: the kernel maps one as such only then. It is
// free, unless somebody has just taken it; NULL: anywhere.
static void *aligned_place(size_t size)
{
    char *p = size < DOCK_HUGE_BYTES ? MAP_FAILED
                                     : mmap(NULL, size + DOCK_HUGE_BYTES, PROT_NONE,
                                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (p == MAP_FAILED)
        return NULL;
    munmap(p, size + DOCK_HUGE_BYTES);
    return p + (-(uintptr_t)p & (DOCK_HUGE_BYTES - 1));
}

// Map one window, without access: only an accessible mapping is filled by mlockall. The wish of an earlier
// mlockall(MCL_FUTURE) ends with munlock.
static char *map_window(int fd, uint64_t off, size_t size)
{
    char *base = mmap(aligned_place(size), size, PROT_NONE, MAP_SHARED, fd, (off_t)off);

    if (base == MAP_FAILED)
        return NULL;
    munlock(base, size);
    int ret = dock_view_seclude(base, size);
    if (ret) {
        munmap(base, size);
        errno = -ret;
        return NULL;
    }
    return base;
}

// The window's base, mapped if it is not yet. The lock of mapping is held.
static char *window_at(struct dock_view *v, unsigned window)
{
    uint64_t size = (uint64_t)1 << v->shift;
    char *base = atomic_load_explicit(&v->window[window], memory_order_relaxed);
    struct stat st;

    if (base)
        return base;
    if (fstat(v->fd, &st)) {
        dock_error("an arena cannot be looked at: %s", strerror(errno));
        return NULL;
    }
    if ((window + 1) * size > (uint64_t)st.st_size)
        return NULL;
    dock_views_lock(); // nobody sees the mapping and takes it for the program's
    base = mapped_by_another(v, window);
    if (!base)
        base = map_window(v->fd, window * size, size);
    if (base) {
        atomic_store_explicit(&v->window[window], base, memory_order_release); // pairs with dock_arena_offset
        if (window >= dock_peek32(&v->windows))
            dock_publish32(&v->windows, window + 1); // pairs with dock_arena_offset
    }
    dock_views_unlock();
    if (!base) // not under that lock: who logs may allocate, and ask us about it
        dock_error("mapping window %u (%llu MiB) of an arena failed: %s", window,
                   (unsigned long long)size >> 20, strerror(errno));
    return base;
}

// Make chunks accessible, neighbours by one call. The lock of mapping is held.
static bool open_chunks(struct dock_view *v, unsigned window, char *base, uint64_t chunks)
{
    for (uint64_t left = chunks & ~dock_peek64(&v->chunks[window]); left;) {
        unsigned first = (unsigned)__builtin_ctzll(left);
        uint64_t rest = ~(left >> first);
        unsigned n = rest ? (unsigned)__builtin_ctzll(rest) : 64;
        if (mprotect(base + ((uint64_t)first << v->chunk), (uint64_t)n << v->chunk, PROT_READ | PROT_WRITE)) {
            dock_error("making %llu KiB of an arena accessible failed: %s",
                       ((unsigned long long)n << v->chunk) >> 10, strerror(errno));
            return false;
        }
        left &= first + n < 64 ? ~(uint64_t)0 << (first + n) : 0;
    }
    atomic_fetch_or_explicit(&v->chunks[window], chunks, memory_order_release); // pairs with dock_view_at
    return true;
}

char *dock_view_map(struct dock_view *v, unsigned window, uint64_t chunks)
{
    char *base = NULL;

    if (window >= DOCK_WINDOWS)
        return NULL;
    pthread_mutex_lock(&v->lock);
    base = window_at(v, window);
    if (base && !open_chunks(v, window, base, chunks))
        base = NULL;
    pthread_mutex_unlock(&v->lock);
    return base;
}
