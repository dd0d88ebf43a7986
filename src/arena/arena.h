// SPDX-License-Identifier: MIT
// The arena: one sparse memfd per device that holds all that a peer must reach, at offsets, never
// pointers. The file grows in windows; a view maps a window when an offset first leads into it.
#ifndef DOCK_ARENA_ARENA_H
#define DOCK_ARENA_ARENA_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/order.h"

#define DOCK_WINDOWS 512
#define DOCK_WINDOW_SHIFT 30       // 1 GiB
#define DOCK_WINDOW_SHIFT_SMALL 26 // 64 MiB: under sanitizers, valgrind, RLIMIT_AS

// A mapping of somebody's arena, ours or a peer's. Mappings are MADV_DONTDUMP and MADV_DONTFORK. A window is
// mapped whole and made accessible in chunks, so that mlockall(MCL_CURRENT), which fills what is accessible,
// does not fill the holes of the file. Views of one file share its windows: in one process a word has one
// address, whichever device looks at it, and ThreadSanitizer sees the device as two processes have it.
struct dock_view {
    int fd;
    dev_t device; // of the file, with
    ino_t inode;
    unsigned shift;                       // of the window size
    unsigned chunk;                       // shift of the chunk size: 64 in a window, a page at least
    _Atomic(char *) window[DOCK_WINDOWS]; // NULL until first use,
    dock_a32 windows;                     // as all are from this one on
    dock_a64 chunks[DOCK_WINDOWS];        // a bit for each that is accessible
    pthread_mutex_t lock;                 // of mapping, not of reading
    int pid;                              // that opened it: a forked child has none of the mappings
    struct dock_view *next, *prev;        // of the process
};

// All views of the process, as they are while the lock is held. Whoever looks at mappings of an arena must
// tell views from memory of the program.
void dock_views_lock(void);
bool dock_views_lock_for(uint64_t ns); // false: somebody else had it all the time
void dock_views_unlock(void);
bool dock_views_have(uint64_t addr);
void dock_views_each(void (*each)(const struct dock_view *v, void *window));

// View somebody's arena. Demands F_SEAL_SHRINK (else a peer's ftruncate is our SIGBUS): -EPERM.
// Owns `fd` from then on, also on failure.
int dock_view_open(struct dock_view *v, int fd, unsigned shift);
void dock_view_close(struct dock_view *v);
// Does its descriptor still lead to its file? A program that closed it may have opened one of its own there.
bool dock_view_leads(const struct dock_view *v);
// Neither a forked child nor a core dump gets the mapping. 0 or -errno.
int dock_view_seclude(void *base, size_t bytes);
// The cold half of dock_view_at: checks that the window is inside the file, maps it, and makes these chunks
// of it accessible. NULL if not.
char *dock_view_map(struct dock_view *v, unsigned window, uint64_t chunks);

// The chunks that [inside, inside + len) of a window touches; of no bytes, the one where they would be.
static inline uint64_t dock_view_chunks(const struct dock_view *v, uint64_t inside, uint64_t len)
{
    uint64_t first = inside >> v->chunk, last = (inside + (len ? len - 1 : 0)) >> v->chunk;

    return ((uint64_t)2 << last) - ((uint64_t)1 << first);
}

// Pointer to `len` bytes at `off`, NULL if they are not inside one window of the file. Any thread.
static inline void *dock_view_at(struct dock_view *v, uint64_t off, uint64_t len)
{
    uint64_t window = off >> v->shift, inside = off & (((uint64_t)1 << v->shift) - 1);

    if (window >= DOCK_WINDOWS || len > ((uint64_t)1 << v->shift) - inside)
        return NULL;
    uint64_t need = dock_view_chunks(v, inside, len);
    if (__builtin_expect((dock_acquire64(&v->chunks[window]) & need) != need,
                         0)) { // pairs with dock_view_map
        char *base = dock_view_map(v, (unsigned)window, need);
        return base ? base + inside : NULL;
    }
    return atomic_load_explicit(&v->window[window], memory_order_relaxed) + inside;
}

struct dock_arena {
    struct dock_view view;     // our own mapping of our own file
    pthread_mutex_t lock;      // of what follows
    struct dock_extent *free;  // sorted by offset, neighbours merged
    struct dock_extent *spare; // list nodes in hand, so that giving back never needs memory
    struct dock_extent *held;  // given back while somebody may still write there
    dock_a32 holding;          // changed under the lock
    uint64_t size;             // of the file: a multiple of the window size
    uint64_t used;
    uint64_t piece;  // of 2 MiB, of the file: the one that fills up,
    uint64_t filled; // and its bytes that have memory
};

// Make the memfd (sealed against shrinking) with its first window. `first` bytes at offset 0 are reserved
// for the port record and are zero. Window size by DOCK_SANITIZED, RLIMIT_AS or valgrind (shift 0 = choose).
int dock_arena_create(struct dock_arena *a, unsigned shift, uint64_t first);
void dock_arena_destroy(struct dock_arena *a);

// `size` zeroed bytes inside one window, aligned to `align` (a power of two, 64..page), backed by real
// pages (no memory is -ENOMEM here, never SIGBUS later; in a full cgroup the kernel may kill instead, as for
// any touch of memory). -EFBIG if larger than a window.
int dock_arena_alloc(struct dock_arena *a, uint64_t size, uint64_t align, uint64_t *off);
// Reserve without pages: a sparse table whose pages come as they are touched (or by mlockall).
int dock_arena_reserve(struct dock_arena *a, uint64_t size, uint64_t align, uint64_t *off);
// Give back exactly what was allocated; whole pages of it return to the system.
void dock_arena_free(struct dock_arena *a, uint64_t off, uint64_t size);

// A whole window, empty, for who divides it himself (adoption); it stays his.
int dock_arena_window(struct dock_arena *a, uint64_t *off);
// The whole pages of [off, off + size), which are inside one window, return to the system.
void dock_arena_punch(struct dock_arena *a, uint64_t off, uint64_t size);

// Quarantine: somebody who was given up while stopped may still write where he had found memory. From hold on
// what is given back is neither reused nor returned to the system (it counts as used); release gives it back.
// Where the list of it finds no memory, such a piece is never used again.
void dock_arena_hold(struct dock_arena *a);
void dock_arena_release(struct dock_arena *a);

// Pointer into our own arena, and back: the offset of a pointer into a window that is mapped, -EFAULT if
// [p, p+len) is not inside one window of this arena.
static inline void *dock_arena_at(struct dock_arena *a, uint64_t off)
{
    return dock_view_at(&a->view, off, 0);
}
int dock_arena_offset(const struct dock_arena *a, const void *p, uint64_t len, uint64_t *off);

#endif
