// SPDX-License-Identifier: MIT
// The symmetric heap: every PE makes the same decisions on private lists, so that an object has one offset
// everywhere. The list of free pieces is the arena's.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "face/shmem/api.h"
#include "face/shmem/shmem_face.h"

#define GRAIN 64u // a cache line: no two objects share one
#define ANYWHERE 62u
#define DROPPED                                                                                              \
    (1ull << 20) // from this size on an object's pages are given back: touching them again costs more

struct block {
    uint64_t off, size;
};

static struct {
    struct dock_extent *free, *spare;
    struct block *block; // sorted by offset
    size_t blocks, room;
    pthread_mutex_t lock;
} heap = {.lock = PTHREAD_MUTEX_INITIALIZER};

int osh_heap_open(uint64_t size)
{
    int err = dock_extent_stock(&heap.spare);

    if (!err)
        dock_extent_give(&heap.free, &heap.spare, OSH_HEAD_BYTES, size - OSH_HEAD_BYTES, ANYWHERE);
    return err;
}

void osh_heap_close(void)
{
    dock_extent_free_list(&heap.free);
    dock_extent_free_list(&heap.spare);
    free(heap.block);
    heap.block = NULL;
    heap.blocks = heap.room = 0;
}

// Index of the first block at or above `off`.
static size_t find(uint64_t off)
{
    size_t low = 0, high = heap.blocks;

    while (low < high) {
        size_t mid = (low + high) / 2;
        if (heap.block[mid].off < off)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static int remember(uint64_t off, uint64_t size)
{
    if (heap.blocks == heap.room) {
        size_t room = heap.room ? 2 * heap.room : 64;
        struct block *more = realloc(heap.block, room * sizeof *more);
        if (!more)
            return dock_no_memory("the list of the symmetric heap");
        heap.block = more;
        heap.room = room;
    }
    size_t at = find(off);
    memmove(&heap.block[at + 1], &heap.block[at], (heap.blocks - at) * sizeof *heap.block);
    heap.block[at] = (struct block){off, size};
    heap.blocks++;
    return 0;
}

static void *take(size_t size, size_t align)
{
    uint64_t off, bytes = (size + GRAIN - 1) & ~(uint64_t)(GRAIN - 1);
    int err = bytes < size ? -ENOMEM : dock_extent_stock(&heap.spare);

    if (err)
        return NULL;
    if (!dock_extent_take(&heap.free, &heap.spare, bytes, align < GRAIN ? GRAIN : align, &off)) {
        dock_extent_unstock(&heap.spare);
        dock_error("PE %d: the symmetric heap of %llu bytes has no %zu bytes left (SHMEM_SYMMETRIC_SIZE)",
                   osh.me, (unsigned long long)osh.heap_size, size);
        return NULL;
    }
    if (remember(off, bytes)) {
        dock_extent_give(&heap.free, &heap.spare, off, bytes, ANYWHERE);
        return NULL;
    }
    return osh.heap + off;
}

// The block that begins at p; NULL if none does.
static struct block *block_of(const void *p)
{
    uint64_t off = (uint64_t)((const char *)p - osh.heap);
    size_t at = find(off);

    if (at < heap.blocks && heap.block[at].off == off)
        return &heap.block[at];
    return NULL;
}

static struct block give(void *p)
{
    struct block *b = block_of(p);

    if (!b)
        osh_fatal("%p is not the beginning of an object of the symmetric heap", p);
    struct block gone = *b;
    size_t at = (size_t)(b - heap.block);

    memmove(b, b + 1, (heap.blocks - at - 1) * sizeof *b);
    heap.blocks--;
    dock_extent_give(&heap.free, &heap.spare, gone.off, gone.size, ANYWHERE);
    dock_extent_unstock(&heap.spare);
    return gone;
}

// The pages that lie wholly in what was an object. Nobody touches them before every PE has allocated again,
// and each has then been here.
static void drop_pages(struct block b)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), from = (b.off + page - 1) & ~(page - 1);
    uint64_t to = (b.off + b.size) & ~(page - 1);

    if (b.size >= DROPPED)
        dock_mem_drop(osh.dev, osh.heap + from, to - from);
}

static void started(void)
{
    if (__builtin_expect(osh.n == 0, 0))
        osh_bad_pe(0, 0);
}

static void *locked_take(size_t size, size_t align)
{
    started();
    dock_lock(&heap.lock);
    void *p = size ? take(size, align) : NULL;
    dock_unlock(&heap.lock);
    return p;
}

void *shmem_malloc(size_t size)
{
    void *p = locked_take(size, GRAIN);

    if (p)
        shmem_barrier_all(); // others may put into it when this returns
    return p;
}
API(shmem_malloc);

void *shmem_malloc_with_hints(size_t size, long hints)
{
    (void)hints;
    return shmem_malloc(size);
}
API(shmem_malloc_with_hints);

void *shmem_calloc(size_t count, size_t size)
{
    size_t bytes;

    if (__builtin_mul_overflow(count, size, &bytes))
        return NULL;
    void *p = locked_take(bytes, GRAIN);
    if (p) {
        memset(p, 0, bytes);
        shmem_barrier_all();
    }
    return p;
}
API(shmem_calloc);

void *shmem_align(size_t alignment, size_t size)
{
    if (alignment == 0 || alignment & (alignment - 1) || alignment > OSH_ALIGN_MAX) {
        dock_warn("PE %d: shmem_align to %zu: a power of two up to %zu is possible", osh.me, alignment,
                  (size_t)OSH_ALIGN_MAX);
        return NULL;
    }
    void *p = locked_take(size, alignment);
    if (p)
        shmem_barrier_all();
    return p;
}
API(shmem_align);

void shmem_free(void *ptr)
{
    started();
    if (!ptr)
        return;
    shmem_barrier_all(); // nobody still uses it
    dock_lock(&heap.lock);
    drop_pages(give(ptr));
    dock_unlock(&heap.lock);
}
API(shmem_free);

// The pages of an object that has moved, but for those where it lies now. Nobody touches them before the
// barrier at the end of realloc.
static void drop_outside(struct block old, struct block now)
{
    uint64_t end = old.off + old.size, now_end = now.off + now.size;
    uint64_t before = now.off < end ? now.off : end, after = now_end > old.off ? now_end : old.off;

    if (old.off < before)
        drop_pages((struct block){old.off, before - old.off});
    if (after < end)
        drop_pages((struct block){after, end - after});
}

// Elsewhere, or where the old object and its free neighbours lie. NULL: the old one is as it was.
static void *move(struct block old, size_t size)
{
    char *from = osh.heap + old.off;

    give(from);
    char *to = take(size, GRAIN);
    if (to) {
        memmove(to, from, old.size < size ? old.size : size);
        drop_outside(old, (struct block){(uint64_t)(to - osh.heap), size});
        return to;
    }
    if (dock_extent_stock(&heap.spare) || remember(old.off, old.size)) // room for one there was a moment ago
        osh_fatal("no memory for the list of the symmetric heap");
    dock_extent_take_at(&heap.free, &heap.spare, old.off, old.size);
    return NULL;
}

void *shmem_realloc(void *ptr, size_t size)
{
    started();
    if (!ptr)
        return shmem_malloc(size);
    if (size == 0) {
        shmem_free(ptr);
        return NULL;
    }
    shmem_barrier_all();
    dock_lock(&heap.lock);
    const struct block *b = block_of(ptr);
    void *p = !b ? NULL : b->size >= size ? ptr : move(*b, size);
    if (!b)
        dock_error("PE %d: shmem_realloc of %p, which is no object of the symmetric heap", osh.me, ptr);
    dock_unlock(&heap.lock);
    shmem_barrier_all();
    return p;
}
API(shmem_realloc);

void *shmalloc(size_t size)
{
    return shmem_malloc(size);
}
API(shmalloc);

void *shmemalign(size_t alignment, size_t size)
{
    return shmem_align(alignment, size);
}
API(shmemalign);

void *shrealloc(void *ptr, size_t size)
{
    return shmem_realloc(ptr, size);
}
API(shrealloc);

void shfree(void *ptr)
{
    shmem_free(ptr);
}
API(shfree);
