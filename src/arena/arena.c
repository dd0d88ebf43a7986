// SPDX-License-Identifier: MIT
#include "arena/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "arena/extent.h"
#include "arena/huge.h"
#include "base/descriptor.h"
#include "base/filesize.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/rawcall.h"

#define GRAIN 64u                           // a cache line: two allocations never share one
#define FILLED (DOCK_HUGE_BYTES / 8ull * 7) // of a piece, and the rest gets memory with it
#define BACK_CHUNK (4u << 20)               // a signal undoes one fallocate: pieces of this size go forward

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u // Linux 6.3; where vm.memfd_noexec is 2, nothing else is accepted
#endif

// Present when the program is instrumented, whether or not we are.
extern void __asan_init(void) __attribute__((weak));
extern void __tsan_init(void) __attribute__((weak));
extern void __msan_init(void) __attribute__((weak));

static unsigned choose_shift(void)
{
    const char *preload = getenv("LD_PRELOAD"); // valgrind puts its vgpreload_* there
    struct rlimit as;

#ifdef DOCK_SANITIZED
    return DOCK_WINDOW_SHIFT_SMALL;
#endif
    if (__asan_init || __tsan_init || __msan_init || (preload && strstr(preload, "vgpreload")) ||
        (!getrlimit(RLIMIT_AS, &as) && as.rlim_cur != RLIM_INFINITY))
        return DOCK_WINDOW_SHIFT_SMALL;
    return DOCK_WINDOW_SHIFT;
}

static uint64_t page_size(void)
{
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t up(uint64_t x, uint64_t unit)
{
    return (x + unit - 1) & ~(unit - 1);
}

// A memfd that nobody can shrink, and to which nobody can add seals that would hinder its owner.
static int make_file(int *out)
{
    int fd = dock_fd_own(memfd_create("drydock-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL));

    if (fd < 0 && errno == EINVAL)
        fd = dock_fd_own(memfd_create("drydock-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (fd < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL)) {
        int code = -errno;
        dock_error("making the arena (a sealed memfd) failed: %s", strerror(-code));
        if (fd >= 0)
            close(fd);
        return code;
    }
    *out = fd;
    return 0;
}

// The file one window longer. The caller holds the lock, or is alone.
static int lengthen(struct dock_arena *a)
{
    uint64_t window = (uint64_t)1 << a->view.shift;
    struct dock_filesize limit;
    int code;

    if (a->size >> a->view.shift >= DOCK_WINDOWS) {
        dock_error("the arena is full: %d windows of %llu MiB", DOCK_WINDOWS,
                   (unsigned long long)window >> 20);
        return -ENOMEM;
    }
    dock_filesize_begin(&limit);
    code = ftruncate(a->view.fd, (off_t)(a->size + window)) ? -errno : 0;
    dock_filesize_end(&limit);
    if (code) {
        dock_error("growing the arena to %llu MiB failed: %s", (unsigned long long)(a->size + window) >> 20,
                   strerror(-code));
        return code == -ENOSPC || code == -EFBIG ? -ENOMEM : code;
    }
    a->size += window;
    return 0;
}

// One window of free space more.
static int grow(struct dock_arena *a)
{
    uint64_t window = (uint64_t)1 << a->view.shift;
    int ret = dock_extent_stock(&a->spare);

    if (ret)
        return ret;
    ret = lengthen(a);
    if (ret)
        dock_extent_unstock(&a->spare);
    else
        dock_extent_give(&a->free, &a->spare, a->size - window, window, a->view.shift);
    return ret;
}

// Back the whole pages around [off, off + size). What fallocate added before a failure stays until the range
// is freed.
static int back(struct dock_arena *a, uint64_t off, uint64_t size)
{
    uint64_t page = page_size(), end = up(off + size, page);

    for (off &= ~(page - 1); off < end;) {
        uint64_t n = end - off < BACK_CHUNK ? end - off : BACK_CHUNK;

        if (!fallocate(a->view.fd, 0, (off_t)off, (off_t)n)) {
            off += n;
        } else if (errno != EINTR) {
            int code = -errno;
            dock_error("no memory for %llu bytes of the arena: %s", (unsigned long long)size,
                       strerror(-code));
            return code == -ENOSPC ? -ENOMEM : code;
        }
    }
    return 0;
}

// ---- huge pages: many small things fill the arena from its beginning, piece by piece. One that is nearly
// all in use when the next one begins lies in a huge page from then on. Nobody looks again: a piece that is
// given back in part is small pages once more, and destroying and making a queue does not break up and make
// one each time.

// Some bytes of a piece have memory from now on. Was there another one before, nearly all in use?
static bool fill_piece(struct dock_arena *a, uint64_t piece, uint64_t bytes, uint64_t *before)
{
    bool full = false;

    dock_lock(&a->lock);
    if (piece > a->piece) {
        full = a->filled >= FILLED;
        *before = a->piece;
        a->piece = piece;
        a->filled = 0;
    }
    if (piece == a->piece)
        a->filled += bytes;
    dock_unlock(&a->lock);
    return full;
}

// [off, off + size) has memory from now on. A huge page is made without the lock: the kernel waits for all
// processors first. What is given back meanwhile reads zero in it, as it should.
static void fill(struct dock_arena *a, uint64_t off, uint64_t size)
{
    uint64_t before = 0;

    for (uint64_t at = off, end = off + size, to; at < end; at = to) {
        uint64_t piece = at & ~(DOCK_HUGE_BYTES - 1ull);
        to = piece + DOCK_HUGE_BYTES < end ? piece + DOCK_HUGE_BYTES : end;
        if (fill_piece(a, piece, to - at, &before) && dock_huge_wanted())
            dock_huge_collapse((uintptr_t)dock_arena_at(a, before), DOCK_HUGE_BYTES);
    }
}

// The lock is held. What was never filled is not told apart: then the piece is taken for emptier than it is.
static void drain(struct dock_arena *a, uint64_t off, uint64_t size)
{
    uint64_t from = off > a->piece ? off : a->piece,
             to = off + size < a->piece + DOCK_HUGE_BYTES ? off + size : a->piece + DOCK_HUGE_BYTES;

    if (from < to)
        a->filled -= to - from < a->filled ? to - from : a->filled;
}

// A forked child has the descriptor, and none of the memory.
static bool is_ours(const struct dock_arena *a)
{
    return a->view.pid == getpid() && dock_view_leads(&a->view);
}

// Zero [off, off + size), and with it return every page that lies wholly in the free extent around it.
static void erase(struct dock_arena *a, uint64_t off, uint64_t size, const struct dock_extent *around)
{
    uint64_t page = page_size(), lo = off & ~(page - 1), hi = up(off + size, page);

    if (lo < around->off)
        lo = off;
    if (hi > around->off + around->size)
        hi = off + size;
    // The kernel zeroes the parts of pages at both ends.
    while (!is_ours(a) ||
           fallocate(a->view.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)lo, (off_t)(hi - lo))) {
        if (is_ours(a) && errno == EINTR)
            continue;
        void *p = dock_view_at(&a->view, off, size);
        dock_info("%llu bytes of the arena are zeroed, not returned", (unsigned long long)size);
        if (p)
            memset(p, 0, size);
        break;
    }
}

// The lock is held.
static void give_now(struct dock_arena *a, uint64_t off, uint64_t size)
{
    erase(a, off, size, dock_extent_give(&a->free, &a->spare, off, size, a->view.shift));
    dock_extent_unstock(&a->spare);
    drain(a, off, size);
    a->used -= size;
}

// The lock is held. The node is one beside those that giving back needs.
static void give_later(struct dock_arena *a, uint64_t off, uint64_t size)
{
    if (dock_extent_stock(&a->held))
        dock_error("%llu bytes of the arena are not used again", (unsigned long long)size);
    else
        *a->held = (struct dock_extent){off, size, a->held->next};
}

static void give(struct dock_arena *a, uint64_t off, uint64_t size)
{
    dock_lock(&a->lock);
    if (dock_peek32(&a->holding))
        give_later(a, off, size);
    else
        give_now(a, off, size);
    dock_unlock(&a->lock);
}

void dock_arena_hold(struct dock_arena *a)
{
    dock_lock(&a->lock);
    dock_set32(&a->holding, 1);
    dock_unlock(&a->lock);
}

void dock_arena_release(struct dock_arena *a)
{
    dock_lock(&a->lock);
    dock_set32(&a->holding, 0);
    while (a->held) {
        give_now(a, a->held->off, a->held->size);
        dock_extent_unstock(&a->held);
    }
    dock_unlock(&a->lock);
}

// What is allocated is accessible: dock_arena_at needs no length. `size` is a multiple of GRAIN and fits into
// a window.
static int take(struct dock_arena *a, uint64_t size, uint64_t align, uint64_t *off)
{
    bool found = false;
    int ret = 0;

    dock_lock(&a->lock);
    if (dock_extent_stock(&a->spare)) {
        ret = -ENOMEM;
        goto unlock;
    }
    while (!(found = dock_extent_take(&a->free, &a->spare, size, align, off)) && !ret)
        ret = grow(a);
    if (found)
        a->used += size;
    else
        dock_extent_unstock(&a->spare);
unlock:
    dock_unlock(&a->lock);
    if (ret || dock_view_at(&a->view, *off, size))
        return ret;
    give(a, *off, size);
    return -ENOMEM;
}

static int acquire(struct dock_arena *a, uint64_t size, uint64_t align, uint64_t *off)
{
    if (!size || align < GRAIN || align > page_size() || (align & (align - 1)))
        return dock_refuse(-EINVAL, "an arena allocation of %llu bytes aligned to %llu",
                           (unsigned long long)size, (unsigned long long)align);
    if (size > (uint64_t)1 << a->view.shift)
        return dock_refuse(-EFBIG, "%llu bytes do not fit into one arena window of %llu MiB",
                           (unsigned long long)size, (1ull << a->view.shift) >> 20);
    if (!is_ours(a))
        return dock_refuse(
            -EIO, "the arena is not this process's any more (fork, or its descriptor was closed), or "
                  "cannot be looked at");
    return take(a, up(size, GRAIN), align, off);
}

int dock_arena_reserve(struct dock_arena *a, uint64_t size, uint64_t align, uint64_t *off)
{
    uint64_t at = 0;
    int ret = acquire(a, size, align, &at);

    if (!ret)
        *off = at;
    return ret;
}

int dock_arena_alloc(struct dock_arena *a, uint64_t size, uint64_t align, uint64_t *off)
{
    uint64_t at = 0;
    int ret = acquire(a, size, align, &at);

    if (ret)
        return ret;
    dock_uncancelled_begin();
    ret = back(a, at, size);
    if (!ret)
        fill(a, at, up(size, GRAIN));
    dock_uncancelled_end();
    if (ret) {
        give(a, at, up(size, GRAIN));
        return ret;
    }
    *off = at;
    return 0;
}

void dock_arena_free(struct dock_arena *a, uint64_t off, uint64_t size)
{
    if (a->view.pid != getpid())
        return;
    give(a, off, up(size, GRAIN));
}

int dock_arena_create(struct dock_arena *a, unsigned shift, uint64_t first)
{
    uint64_t off = 0;
    int fd = -1, ret = 0;

    a->free = a->spare = a->held = NULL;
    dock_set32(&a->holding, 0);
    a->size = a->used = a->piece = a->filled = 0;
    dock_huge_learn();
    ret = make_file(&fd);
    if (ret)
        return ret;
    ret = dock_view_open(&a->view, fd, shift ? shift : choose_shift());
    if (ret)
        return ret;
    ret = -pthread_mutex_init(&a->lock, NULL);
    if (ret)
        goto close_view;
    ret = grow(a);
    if (!ret && first)
        ret = dock_arena_alloc(a, first, GRAIN, &off); // the first allocation of an empty window is at 0
    if (!ret && !dock_view_at(&a->view, 0, first))
        ret = -ENOMEM;
    if (!ret)
        return 0;
    dock_extent_free_list(&a->free);
    dock_extent_free_list(&a->spare);
    pthread_mutex_destroy(&a->lock);
close_view:
    dock_view_close(&a->view);
    return ret;
}

void dock_arena_destroy(struct dock_arena *a)
{
    dock_extent_free_list(&a->free);
    dock_extent_free_list(&a->spare);
    dock_extent_free_list(&a->held);
    pthread_mutex_destroy(&a->lock);
    dock_view_close(&a->view);
}

int dock_arena_window(struct dock_arena *a, uint64_t *off)
{
    int ret;

    if (!is_ours(a))
        return -EIO;
    dock_lock(&a->lock);
    ret = lengthen(a);
    if (!ret)
        *off = a->size - ((uint64_t)1 << a->view.shift);
    dock_unlock(&a->lock);
    return ret;
}

void dock_arena_punch(struct dock_arena *a, uint64_t off, uint64_t size)
{
    void *p = dock_view_at(&a->view, off, size);

    // Through the mapping, which works also when the program has closed the descriptor; or through that,
    // which works also when the program has locked its memory. Not by the call of the name, as
    // dock_view_seclude.
    if (p && !dock_rawcall(SYS_madvise, (long)p, (long)size, MADV_REMOVE, 0, 0, 0))
        return;
    if (!is_ours(a) ||
        fallocate(a->view.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)off, (off_t)size))
        dock_warn("returning %llu bytes of the arena failed: %s", (unsigned long long)size, strerror(errno));
}

int dock_arena_offset(const struct dock_arena *a, const void *p, uint64_t len, uint64_t *off)
{
    uint64_t window = (uint64_t)1 << a->view.shift;
    uint32_t windows = dock_acquire32(&a->view.windows); // pairs with window_at of view.c

    for (unsigned i = 0; i < windows; i++) {
        char *base =
            atomic_load_explicit(&a->view.window[i], memory_order_acquire); // pairs with window_at of view.c
        uint64_t inside = (uintptr_t)p - (uintptr_t)base;

        if (!base || inside >= window)
            continue;
        if (len > window - inside)
            return -EFAULT;
        *off = ((uint64_t)i << a->view.shift) + inside;
        return 0;
    }
    return -EFAULT;
}
