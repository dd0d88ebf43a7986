// SPDX-License-Identifier: MIT
// What a program does to mappings of memory that is adopted, so that it finds what it would have found with
// its own: the preloaded shim asks here. munmap, brk and a mapping over it need no help: the kernel does
// right, the device's view stays as long as it is registered, and the undo looks what is there.
//
// An allocator asks with its locks held, and whoever it works for may hold the device's: so nothing is waited
// for here but the views' lock, which a move holds while it changes mappings, and under which nobody
// allocates.
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "arena/adopt_own.h"
#include "base/memhooks.h"
#include "base/rawcall.h"

#define LOOK_NS 1000000ull // between two looks whether a fork has begun
#define PARTS 65536u       // mappings that one call may concern: more a process cannot have

extern dock_memory_hooks_p dock_memory_hooks __attribute__((weak)); // the shim's, if it is there

struct part {
    uint64_t lo, hi;
    uint32_t prot;
    const struct dock_adopt *of; // it is adopted, and lies
    uint64_t off;                // there
};

static pthread_mutex_t calls_lock = PTHREAD_MUTEX_INITIALIZER; // one call at a time; the views' comes after
static dock_a64 forker;                                        // the thread that forks; 0: none does

// A fork holds the views' lock while the allocator's handlers wait for threads that are in here. They go on
// without: the fork keeps everything else from what they read. The forking thread itself must not wait for
// them, since they may stand still.
static bool enter(bool *views)
{
    *views = false;
    if (dock_peek64(&forker) == (uintptr_t)pthread_self())
        return !pthread_mutex_trylock(&calls_lock);
    pthread_mutex_lock(&calls_lock);
    while (!(*views = dock_views_lock_for(LOOK_NS)) && !dock_acquire64(&forker)) // pairs with fork_begins
        ;
    return true;
}

static void leave(bool entered, bool views)
{
    if (views)
        dock_views_unlock();
    if (entered)
        pthread_mutex_unlock(&calls_lock);
}

void dock_adopt_fork_begins(void)
{
    dock_publish64(&forker, (uintptr_t)pthread_self()); // pairs with enter
}

void dock_adopt_fork_ends(bool in_child)
{
    if (in_child) // who was in there is not in the child
        calls_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    else // who is in there goes on without the views as long as `forker` says so: we have them
        pthread_mutex_lock(&calls_lock);
    dock_set64(&forker, 0); // the lock orders it: who comes behind us waits for the views
    if (!in_child)
        pthread_mutex_unlock(&calls_lock);
}

// The mappings of a range, for the call that has entered.
static struct dock_maps_room maps = {.file = DOCK_PROC_MAPS_OF_CALLS};
static struct {
    uint64_t lo, hi;
    struct part *part; // room for PARTS: only what is written has memory
    unsigned parts;
    bool adopted, too_many; // too_many: what is there cannot be told
} seen;

static bool note(void *arg, const struct dock_vma *v)
{
    struct part p = {
        .lo = v->lo > seen.lo ? v->lo : seen.lo, .hi = v->hi < seen.hi ? v->hi : seen.hi, .prot = v->prot};

    (void)arg;
    for (const struct dock_adopt *a = dock_adopters; a && !p.of; a = a->next)
        if (dock_vma_ours(a, v) && !dock_views_have(v->lo))
            p.of = a;
    p.off = v->off + (p.lo - v->lo);
    seen.adopted |= p.of != NULL;
    seen.too_many = seen.parts == PARTS;
    if (!seen.too_many)
        seen.part[seen.parts++] = p;
    return !seen.too_many;
}

static bool make_room(void)
{
    void *room = seen.part;

    if (!room)
        room = mmap(NULL, PARTS * sizeof *seen.part, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    seen.too_many = room == MAP_FAILED;
    seen.part = seen.too_many ? NULL : room;
    return !seen.too_many;
}

// Is anything of [lo, hi) adopted? `seen` tells what, then.
static bool look(uint64_t lo, uint64_t hi)
{
    seen.lo = lo;
    seen.hi = hi;
    seen.parts = 0;
    seen.adopted = seen.too_many = false;
    if (!make_room())
        return true;                                  // it may be: the call fails for want of memory
    if (dock_maps_walk_in(&maps, lo, hi, note, NULL)) // no descriptor, say
        seen.too_many = true;
    return seen.adopted || seen.too_many;
}

#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif

// Freed memory reads as zero: the program gets its own pages, empty, the device keeps the old ones. Memory
// that is locked is freed by a call of its own alone, and stays so.
static long detach(const struct part *p, int advice)
{
    uint64_t len = p->hi - p->lo;
    bool locked = dock_lock_is(p->lo, len);

    if (locked && advice != MADV_DONTNEED_LOCKED)
        return -EINVAL;
    if (!dock_rawcall_mapped(dock_map_private(p->lo, len, p->prot, 0)))
        return -ENOMEM;
    if (locked)
        dock_lock_set(p->lo, len, MLOCK_ONFAULT);
    return 0;
}

static bool frees(int advice)
{
    return advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_DONTNEED_LOCKED;
}

// The program's own mapping keeps it. Of the arena's it is true as well what dumps and huge pages are told; a
// fork gives none of its pages to the child (adopt_fork.c).
static long keep(const struct part *p, int advice)
{
    if (advice == MADV_HUGEPAGE || advice == MADV_NOHUGEPAGE || advice == MADV_DONTDUMP ||
        advice == MADV_DODUMP)
        dock_rawcall(SYS_madvise, (long)p->lo, (long)(p->hi - p->lo), advice, 0, 0, 0);
    return dock_park_advise(p->of, p->off, p->hi - p->lo, advice);
}

// One by one. Where nothing is mapped the kernel says so at the end, too.
static long advise_parts(uint64_t lo, uint64_t hi, int advice)
{
    long err = 0, hole = 0;

    for (unsigned i = 0; i < seen.parts && !err; lo = seen.part[i++].hi) {
        const struct part *p = &seen.part[i];
        hole = p->lo > lo ? -ENOMEM : hole;
        if (!p->of)
            err = dock_rawcall(SYS_madvise, (long)p->lo, (long)(p->hi - p->lo), advice, 0, 0, 0);
        else if (advice == MADV_REMOVE) // of a file that is shared, which the program's memory is not
            err = -EINVAL;
        else
            err = dock_advice_stays(advice) ? keep(p, advice) : detach(p, advice);
    }
    return err ? err : lo < hi ? -ENOMEM : hole;
}

static bool on_madvise(void *at, size_t len, int advice, int *ret)
{
    uint64_t page = dock_page(), lo = (uintptr_t)at, hi = (lo + len + page - 1) & ~(page - 1);
    bool done, entered, views;
    long err = dock_advice_stays(advice) ? 0 : -ENOMEM;

    if (!dock_adopted_any() || lo % page || hi <= lo ||
        (!frees(advice) && advice != MADV_REMOVE && !dock_advice_stays(advice)))
        return false;
    entered = enter(&views);
    done = !entered || look(lo, hi); // what is not adopted (any more) is the kernel's to do
    if (entered && done && !seen.too_many)
        err = advise_parts(lo, hi, advice);
    leave(entered, views);
    if (done) {
        *ret = err ? -1 : 0;
        errno = err ? (int)-err : errno;
    }
    return done;
}

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

// The old mappings at a new place, one by one, so that the device goes on seeing what the program sees.
static long move_parts(uint64_t from, uint64_t to, unsigned *moved)
{
    for (*moved = 0; *moved < seen.parts; ++*moved) {
        const struct part *p = &seen.part[*moved];
        long at = dock_map_move(p->lo, p->hi - p->lo, to + (p->lo - from));
        if (!dock_rawcall_mapped(at))
            return at;
    }
    return 0;
}

// The program is told that nothing has moved. Where the kernel has no room for that either a part is missing:
// rather a fault than other bytes.
static void move_back(uint64_t from, uint64_t to, unsigned moved)
{
    while (moved--) {
        const struct part *p = &seen.part[moved];
        dock_map_move(to + (p->lo - from), p->hi - p->lo, p->lo);
    }
}

// A place that is kept until something moves there.
static long map_nothing(uint64_t len)
{
    return dock_rawcall(SYS_mmap, 0, (long)len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

// To `at`, all or nothing: first what is new there, last what stays behind.
static long move_all(uint64_t old, uint64_t old_len, uint64_t new_len, int flags, uint64_t at)
{
    const struct part *last = &seen.part[seen.parts - 1];
    long err = new_len > old_len ? dock_map_private(at + old_len, new_len - old_len, last->prot, 0) : 0;
    unsigned moved = 0;

    if (dock_rawcall_mapped(err))
        err = move_parts(old, at, &moved);
    if (dock_rawcall_mapped(err) && flags & MREMAP_DONTUNMAP)
        err = dock_map_private(old, old_len, seen.part[0].prot, 0);
    if (dock_rawcall_mapped(err))
        return (long)at;
    move_back(old, at, moved);
    return err;
}

static long grow(uint64_t old, uint64_t old_len, uint64_t new_len, int flags, uint64_t to)
{
    uint32_t prot = seen.part[seen.parts - 1].prot;
    long place, at;

    if (flags & MREMAP_FIXED)
        return move_all(old, old_len, new_len, flags, to);
    if (!(flags & MREMAP_DONTUNMAP)) { // where it is, if there is room behind it
        at = dock_rawcall(SYS_mmap, (long)(old + old_len), (long)(new_len - old_len), prot,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (at == (long)(old + old_len))
            return (long)old;
        if (dock_rawcall_mapped(at)) // a kernel that does not know the flag
            dock_rawcall(SYS_munmap, at, (long)(new_len - old_len), 0, 0, 0, 0);
        if (!(flags & MREMAP_MAYMOVE))
            return -ENOMEM;
    }
    place = map_nothing(new_len);
    if (!dock_rawcall_mapped(place))
        return place;
    at = move_all(old, old_len, new_len, flags, (uint64_t)place);
    if (!dock_rawcall_mapped(at))
        dock_rawcall(SYS_munmap, place, (long)new_len, 0, 0, 0, 0);
    return at;
}

static bool is_whole(uint64_t lo, uint64_t hi)
{
    for (unsigned i = 0; i < seen.parts && seen.part[i].lo <= lo; i++)
        lo = seen.part[i].hi;
    return lo >= hi;
}

// What a program's own memory would answer with, or 0.
static long refuse(uint64_t lo, uint64_t len)
{
    return seen.too_many ? -ENOMEM : !len ? -EINVAL : !is_whole(lo, lo + len) ? -EFAULT : 0;
}

static long remap(uint64_t lo, uint64_t len, uint64_t wanted, int flags, uint64_t to)
{
    long at = refuse(lo, len);

    if (!at && wanted < len) { // a shorter one elsewhere: the end goes first
        dock_rawcall(SYS_munmap, (long)(lo + wanted), (long)(len - wanted), 0, 0, 0, 0);
        look(lo, lo + wanted);
        len = wanted;
        at = refuse(lo, len);
    }
    if (at || !seen.part)
        return at ? at : -ENOMEM;
    return grow(lo, len, wanted, flags, to);
}

// What the kernel refuses whatever is mapped there it is left to.
static bool is_refused(uint64_t lo, uint64_t len, uint64_t wanted, int flags, uint64_t to)
{
    uint64_t page = dock_page();

    if (lo % page || !wanted || flags & ~(MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP))
        return true;
    if (flags & (MREMAP_FIXED | MREMAP_DONTUNMAP) && !(flags & MREMAP_MAYMOVE))
        return true;
    if (flags & MREMAP_DONTUNMAP && len != wanted)
        return true;
    return flags & MREMAP_FIXED && (to % page || (to < lo + len && lo < to + wanted));
}

static bool on_mremap(void *old, size_t old_len, size_t new_len, int flags, void *to, void **ret)
{
    uint64_t page = dock_page(), lo = (uintptr_t)old, len = (old_len + page - 1) & ~(page - 1),
             wanted = (new_len + page - 1) & ~(page - 1);
    bool done, entered, views;
    long at = -ENOMEM;

    if (!dock_adopted_any() || is_refused(lo, len, wanted, flags, (uintptr_t)to) ||
        (len && wanted <= len && !(flags & (MREMAP_FIXED | MREMAP_DONTUNMAP))))
        return false;
    entered = enter(&views);
    done = !entered || look(lo, lo + (len ? len : page));
    if (entered && done)
        at = remap(lo, len, wanted, flags, (uintptr_t)to);
    leave(entered, views);
    if (done) {
        *ret = dock_rawcall_mapped(at) ? (void *)(uintptr_t)at : MAP_FAILED;
        errno = dock_rawcall_mapped(at) ? errno : (int)-at;
    }
    return done;
}

static bool on_adopted(const void *at)
{
    uint64_t page = dock_page(), lo = (uintptr_t)at & ~(page - 1);
    bool any = false, entered, views;

    if (dock_adopted_any()) {
        entered = enter(&views);
        any = !entered || look(lo, lo + page);
        leave(entered, views);
    }
    return any;
}

void dock_adopt_hook(void)
{
    static const struct dock_memory_hooks mine = {
        .madvise = on_madvise, .mremap = on_mremap, .adopted = on_adopted};

    if (&dock_memory_hooks)
        atomic_store_explicit(&dock_memory_hooks, &mine, memory_order_release); // pairs with the shim's load
}
