// SPDX-License-Identifier: MIT
// The move of a chunk: into the arena under the program's feet, and back. The other threads stand still
// meanwhile; only raw system calls are made, so that no lock of theirs is met. The kernel copies: it tells a
// bad address from a good one, and no sanitizer looks at the program's memory.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "arena/adopt_own.h"
#include "base/filesize.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/rawcall.h"

static long map(uint64_t at, uint64_t len, int prot, int flags, int fd, uint64_t off)
{
    return dock_rawcall(SYS_mmap, (long)at, (long)len, prot, flags | MAP_FIXED, fd, (long)off);
}

// pwrite64 or pread64 of all of it. 0 or -errno.
static long transfer(long call, int fd, uint64_t at, uint64_t len, uint64_t off)
{
    while (len) {
        long n = dock_rawcall(call, fd, (long)at, (long)len, (long)off, 0, 0);
        if (n == -EINTR)
            continue;
        if (n <= 0)
            return n ? n : -EIO;
        at += (uint64_t)n;
        off += (uint64_t)n;
        len -= (uint64_t)n;
    }
    return 0;
}

// ---- in

struct look {
    uint64_t lo, hi, at;
    uint32_t prot;
    unsigned parts; // mappings
    bool anon;      // all of it
    enum dock_adopt_why why;
};

// Is the range still what it was when it was chosen, with one protection? It ends where a thread's own
// begins.
static bool look_again(void *arg, const struct dock_vma *v)
{
    struct look *l = arg;
    uint64_t from = l->lo > v->lo ? l->lo : v->lo, to = l->hi < v->hi ? l->hi : v->hi, until;
    bool clear;

    if (v->lo > l->at || !dock_vma_fits(v) || (l->parts && v->prot != l->prot)) {
        l->why = DOCK_WHY_CHANGED;
        return false;
    }
    clear = dock_stop_clear(from, to, v->lo, v->hi, &until);
    if (!clear && from == l->lo)
        l->why = DOCK_WHY_STACK;
    if (!clear && from > l->lo)
        until = from;
    if (until < to || !clear)
        l->hi = until;
    l->parts++;
    l->anon &= v->kind == DOCK_VMA_ANON;
    l->prot = v->prot;
    l->at = v->hi;
    return !l->why && l->at < l->hi;
}

static enum dock_adopt_why inspect(const struct dock_adopt *a, struct look *l)
{
    if (!dock_view_leads(&a->arena->view))
        return DOCK_WHY_HOST;
    if (dock_maps_walk(l->lo, l->hi, look_again, l) || (!l->why && l->at < l->hi))
        return DOCK_WHY_CHANGED;
    return l->why ? l->why : dock_fit_process(a);
}

// Shared memory is not copied by fork: the child gets copies of its own (adopt_fork.c).
static void settle(uint64_t lo, uint64_t len)
{
    dock_rawcall(SYS_madvise, (long)lo, (long)len, MADV_DONTFORK, 0, 0, 0);
}

static bool map_in(const struct dock_adopt *a, uint64_t lo, uint64_t len, uint32_t prot, uint64_t off)
{
    bool done = dock_rawcall_mapped(map(lo, len, (int)prot, MAP_SHARED, a->arena->view.fd, off));

    if (done)
        settle(lo, len);
    return done;
}

// The file has no page there. A mirror's pages are none as long as nobody holds them, but for those that are
// kept for a while (dock_mirror_retire), where they could not be given back (under a lock in memory, mlock,
// without a descriptor), and where a peer that was declared dead has stored to them since.
static bool make_hole(const struct dock_adopt *a, uint64_t off, uint64_t len)
{
    return !dock_rawcall(SYS_fallocate, a->arena->view.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                         (long)off, (long)len, 0, 0);
}

// Into a huge page by its alias, which takes half the time of a write to the file; where that is refused, and
// into small pages, by the file, which allocates them or fails.
static long put_in(const struct dock_adopt *a, uint64_t from, uint64_t len, uint64_t off, bool huge)
{
    struct iovec source = {(void *)(uintptr_t)from, len}, alias = {NULL, len};

    if (huge)
        alias.iov_base = dock_view_at(&a->arena->view, off, len);
    if (alias.iov_base &&
        dock_rawcall(SYS_process_vm_writev, getpid(), (long)&source, 1, (long)&alias, 1, 0) == (long)len)
        return 0;
    return transfer(SYS_pwrite64, a->arena->view.fd, from, len, off);
}

// A part that lies in huge pages of the arena, or in none.
struct part {
    uint64_t lo, hi, off;
    bool huge;
};

// What the file has no page for reads as zeros, and gets one when it is stored to: as the program's memory
// did. A huge page is made of zeros.
static long copy_part(const struct dock_adopt *a, const struct look *l, struct part p, bool sparse)
{
    uint64_t from = p.lo, to = p.hi;
    long err = 0;

    if (!sparse || (!p.huge && !make_hole(a, p.off, p.hi - p.lo)))
        return put_in(a, p.lo, p.hi - p.lo, p.off, p.huge);
    for (; !err && dock_holes_run(l->lo, p.hi, &from, &to); from = to)
        err = put_in(a, from, to - from, p.off + (from - p.lo), p.huge);
    return err;
}

static long copy_in(const struct dock_adopt *a, const struct dock_mirror *m, const struct look *l)
{
    bool sparse = a->holes && l->anon && dock_holes_read(l->lo, l->hi);
    uint64_t off = m->off + (l->lo - m->va), end = off + (l->hi - l->lo), to;
    long err = 0;

    for (uint64_t at = off; at < end && !err; at = to) {
        bool huge = dock_huge_run(m, at, end, &to);
        err = copy_part(a, l, (struct part){l->lo + (at - off), l->lo + (to - off), at, huge}, sparse);
    }
    return err;
}

static long copy_in_unsignalled(const struct dock_adopt *a, const struct dock_mirror *m, const struct look *l)
{
    struct dock_filesize limit;
    long err;

    if (dock_filesize_open_to(dock_signals_blocked())) {
        err = copy_in(a, m, l);
        if (err == -EFBIG)
            dock_filesize_refused();
    } else {
        dock_filesize_begin(&limit);
        err = copy_in(a, m, l);
        dock_filesize_end(&limit);
    }
    return err;
}

// The copy takes the place of the program's own. Where that is locked and could not be locked again, since
// the limit has come down, it stays.
static bool replace(struct dock_adopt *a, struct dock_mirror *m, const struct look *l)
{
    uint64_t off = m->off + (l->lo - m->va), len = l->hi - l->lo;
    bool locked = dock_lock_is(l->lo, len), done;
    unsigned kind = locked ? dock_lock_kind(l->lo, l->hi) : 0;

    if (locked) {
        if (!dock_lock_set(l->lo, len, kind))
            return false;
        dock_lock_lift(l->lo, len);
    }
    done = l->anon && l->parts == 1 && dock_park_in(a, m, l->lo, len, l->prot);
    if (done)
        settle(l->lo, len);
    else
        done = map_in(a, l->lo, len, l->prot, off);
    if (locked)
        dock_lock_set(l->lo, len, kind);
    else
        dock_lock_lift(l->lo, len); // of an earlier mlockall(MCL_FUTURE)
    return done;
}

// In a stop. 0; -errno of the copy; *why of everything else.
static long exchange(struct dock_adopt *a, struct dock_mirror *m, uint64_t lo, uint64_t *hi,
                     enum dock_adopt_why *why)
{
    struct look l = {.lo = lo, .hi = *hi, .at = lo, .anon = true};
    long err;

    *why = inspect(a, &l);
    *hi = l.hi;
    if (*why)
        return 0;
    err = copy_in_unsignalled(a, m, &l);
    if (err == -EFAULT)
        *why = DOCK_WHY_CHANGED;
    if (err == -EFBIG)
        *why = DOCK_WHY_LIMIT;
    if (!err && !*why && dock_keyed(lo))
        *why = DOCK_WHY_KIND;
    if (!err && !*why && !replace(a, m, &l))
        *why = DOCK_WHY_LIMIT;
    return *why ? 0 : err;
}

// What was made ready for these pages, and is not theirs.
static void discard(struct dock_adopt *a, struct dock_mirror *m, uint64_t lo, uint64_t hi)
{
    uint64_t off = m->off + (lo - m->va);

    if (lo == hi)
        return;
    dock_arena_punch(a->arena, off, hi - lo);
    dock_huge_forget(a, m, off, hi - lo);
}

int dock_move_in(struct dock_adopt *a, struct dock_mirror *m, uint64_t lo, uint64_t *hi,
                 enum dock_adopt_why *why)
{
    uint64_t off = m->off + (lo - m->va), asked = *hi;
    long err = 0;

    // Ours first: the alias must be there for whoever is told of the pages.
    if (!dock_view_at(&a->arena->view, off, *hi - lo)) {
        *why = DOCK_WHY_LIMIT;
        return 0;
    }
    dock_park_review(a, m);
    dock_views_lock();
    dock_park_prepare(a, m);
    dock_views_unlock();
    dock_huge_make(a, m, lo, *hi);
    *why = dock_stop_begin();
    if (!*why) {
        err = exchange(a, m, lo, hi, why);
        dock_stop_end(a);
    }
    discard(a, m, err || *why ? lo : *hi, asked);
    if (err) {
        dock_error("no memory for %llu bytes of a region in the arena: %s", (unsigned long long)(*hi - lo),
                   strerror((int)-err));
        return -ENOMEM;
    }
    if (!*why)
        dock_count64(&a->counts->moved_in, *hi - lo);
    return 0;
}

// ---- out

struct undo {
    struct dock_adopt *a;
    const struct dock_mirror *m;
    uint64_t off, end; // of the file
    bool huge;         // in pages that the program is to have again
    uint64_t found;    // bytes
    bool by_file;      // its descriptor leads to it
    bool failed;
};

// The descriptor may be the program's by now; the alias is always ours. By stores only where the kernel does
// not copy: what it cannot store to would be a fault here.
static bool copy_by_alias(const struct undo *u, uint64_t at, uint64_t len, uint64_t off)
{
    const char *alias = dock_view_at(&u->a->arena->view, off, len);
    struct iovec from = {(void *)(uintptr_t)alias, len}, to = {(void *)(uintptr_t)at, len};

    if (!alias)
        return false;
    long n = dock_rawcall(SYS_process_vm_writev, getpid(), (long)&from, 1, (long)&to, 1, 0);
    if (n == -EPERM || n == -ENOSYS)
        memcpy((void *)(uintptr_t)at, alias, len);
    return n == (long)len || n == -EPERM || n == -ENOSYS;
}

// What the file has no page for was never touched: the program's new pages read as zeros too.
static bool copy_data(const struct undo *u, uint64_t at, uint64_t len, uint64_t off)
{
    int fd = u->a->arena->view.fd;
    uint64_t from = off, to;
    bool done = true;

    if (u->huge)
        dock_huge_return(u->m, at, off, len);
    for (; done && from < off + len && dock_holes_run_of_file(fd, off + len, &from, &to); from = to) {
        uint64_t place = at + (from - off);
        dock_rawcall(SYS_madvise, (long)place, (long)(to - from), MADV_POPULATE_WRITE, 0, 0,
                     0); // or it faults
        done = !transfer(SYS_pread64, fd, place, to - from, from);
    }
    return done;
}

static bool copy_out(const struct undo *u, uint64_t at, uint64_t len, uint64_t off)
{
    bool done = false;

    if (u->by_file && len >= DOCK_HOLES_BACK_FROM)
        done = copy_data(u, at, len, off);
    else if (u->by_file)
        done = !transfer(SYS_pread64, u->a->arena->view.fd, at, len, off);
    return done || copy_by_alias(u, at, len, off);
}

// [at, at + len) becomes private again, with what `off` of the file holds. Where it is locked and could not
// be locked again it stays.
static bool give_back(const struct undo *u, uint64_t at, uint64_t len, uint32_t prot, uint64_t off)
{
    bool locked = dock_lock_is(at, len);
    unsigned kind = locked && u->by_file ? dock_lock_kind_of_file(u->a->arena->view.fd, off, len) : 0;

    if (locked && !dock_lock_set(at, len, kind))
        return false;
    if (dock_park_out(u->a, at, len, off, len < DOCK_HOLES_BACK_FROM ? MAP_POPULATE : 0) &&
        copy_out(u, at, len, off)) {
        if (locked)
            dock_lock_set(at, len, kind);
        else
            dock_lock_lift(at, len);
        if (prot != (PROT_READ | PROT_WRITE))
            dock_rawcall(SYS_mprotect, (long)at, (long)len, prot, 0, 0, 0);
        return true;
    }
    map_in(u->a, at, len, prot, off); // it was so a moment ago
    if (locked)
        dock_lock_set(at, len, kind);
    return false;
}

static bool undo_one(void *arg, const struct dock_vma *v)
{
    struct undo *u = arg;
    uint64_t off = u->off > v->off ? u->off : v->off, end = v->off + (v->hi - v->lo);

    end = end < u->end ? end : u->end;
    if (!dock_vma_ours(u->a, v) || off >= end || dock_views_have(v->lo))
        return true;
    u->found += end - off;
    u->failed |= !give_back(u, v->lo + (off - v->off), end - off, v->prot, off);
    return !u->failed;
}

// In a stop. Where it was put; what is not there any more the program has moved or unmapped: wherever it is.
static enum dock_adopt_why undo(struct undo *u, uint64_t at, bool anywhere)
{
    enum dock_adopt_why why;

    u->by_file = dock_view_leads(&u->a->arena->view);
    why = dock_fit_process(u->by_file ? u->a : NULL);
    if (why)
        return why;
    if (dock_maps_walk(at, at + (u->end - u->off), undo_one, u) || u->failed)
        return DOCK_WHY_LIMIT;
    u->a->moved_by_program = u->found < u->end - u->off;
    if (!u->a->moved_by_program)
        return DOCK_WHY_NONE;
    if (!anywhere)
        return DOCK_WHY_CHANGED;
    return dock_maps_walk(0, UINT64_MAX, undo_one, u) || u->failed ? DOCK_WHY_LIMIT : DOCK_WHY_NONE;
}

bool dock_move_out(struct dock_adopt *a, struct dock_mirror *m, uint64_t off, uint64_t len, bool anywhere)
{
    struct undo u = {.a = a, .m = m, .off = off, .end = off + len};
    enum dock_adopt_why why;

    u.huge = dock_huge_any(m, off, len) && dock_huge_private();
    a->moved_by_program = false;
    why = dock_stop_begin();
    if (!why) {
        why = undo(&u, m->va + (off - m->off), anywhere);
        if (!why)
            dock_park_drop(a, m, off, len);
        dock_stop_end(a);
    }
    if (why) {
        if (!a->moved_by_program || anywhere)
            dock_count64(&a->counts->refused[why], 1);
        return false;
    }
    return true;
}
