// SPDX-License-Identifier: MIT
// The program's own mapping waits aside while the arena's pages are in its place: empty, but with all that
// the program has asked for it (madvise, mbind, a name), which only the kernel knows and tells nobody; and
// with what makes it one with its neighbours again when it comes back, in whatever order they come.
//
// A mirror has a part of the address space without access for it, as long as itself, where a mapping waits at
// the place that its address has in the mirror: so neighbours are one there too, and huge pages lie as they
// did.
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "arena/adopt_own.h"
#include "base/memhooks.h"
#include "base/rawcall.h"

#define LOOSE 256u   // pages of a mirror that may be out in short runs without it,
#define MANY 1024u   // mappings of the program in what a mirror stands for,
#define PIECES 8192u // and mappings that wait: a process cannot have many more than 65,000
#define ALIGNED ((uint64_t)DOCK_HUGE_BYTES)

dock_a64 dock_park_blank;
uint32_t dock_park_pieces;

extern dock_memory_asked_p dock_memory_asked __attribute__((weak)); // the shim's, if it is there

// ---- which wait

uint64_t dock_park_bytes(const struct dock_adopt *a)
{
    return (dock_mirror_size(a) / dock_page() + 63) / 64 * sizeof(uint64_t);
}

static bool waits(const struct dock_park *p, uint64_t page)
{
    return p->base && p->bit[page / 64] >> page % 64 & 1;
}

// Those of [first, end) and their neighbours count as one mapping where they touch.
static void mark(const struct dock_adopt *a, struct dock_park *p, uint64_t first, uint64_t end, bool wait)
{
    uint64_t last = dock_mirror_size(a) / dock_page();
    unsigned beside = (first && waits(p, first - 1)) + (end < last && waits(p, end));

    for (uint64_t i = first; i < end; i++)
        p->bit[i / 64] ^= 1ull << i % 64;
    dock_park_pieces += wait ? 1 - beside : beside - 1;
    p->pages += (uint32_t)(wait ? end - first : first - end);
    dock_count64(&dock_park_blank, (wait ? first - end : end - first) * dock_page());
}

// The end of the run of pages from `page` on that wait as it does, at most `end`.
static uint64_t run_end(const struct dock_park *p, uint64_t page, uint64_t end)
{
    bool wait = waits(p, page);

    while (page < end && waits(p, page) == wait)
        page++;
    return page;
}

static bool seen_asking(void)
{
    return &dock_memory_asked && atomic_load_explicit(&dock_memory_asked, memory_order_relaxed);
}

static bool count(void *arg, const struct dock_vma *v)
{
    (void)v;
    return ++*(unsigned *)arg < MANY;
}

void dock_park_review(const struct dock_adopt *a, struct dock_mirror *m)
{
    unsigned mappings = 0;

    if (m->park.odd < LOOSE)
        return;
    m->park.odd = 0;
    m->park.always = dock_maps_walk(m->va, m->va + dock_mirror_size(a), count, &mappings) || mappings == MANY;
}

static bool wanted(const struct dock_adopt *a, const struct dock_mirror *m)
{
    return !m->park.torn && dock_park_pieces < PIECES &&
           (a->large || m->park.always || m->live - m->park.pages > LOOSE || seen_asking());
}

// ---- where they wait

static bool is_short_of_addresses(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur != RLIM_INFINITY;
}

uint64_t dock_park_room(const struct dock_adopt *a)
{
    return dock_mirror_size(a) + ALIGNED;
}

static bool reserve(const struct dock_adopt *a, struct dock_park *p)
{
    void *bit = mmap(NULL, dock_park_bytes(a), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    void *room = MAP_FAILED;

    if (bit != MAP_FAILED)
        room = mmap(NULL, dock_park_room(a), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) {
        if (bit != MAP_FAILED)
            munmap(bit, dock_park_bytes(a));
        return false;
    }
    munlock(room, dock_park_room(a)); // of an earlier mlockall(MCL_FUTURE)
    p->bit = bit;
    p->room = room;
    p->base = ((uintptr_t)room + ALIGNED - 1) & ~(ALIGNED - 1);
    dock_count64(&dock_park_blank, dock_park_room(a));
    return true;
}

static void open_room(const struct dock_adopt *a, struct dock_park *p)
{
    if (!p->base && !p->torn)
        p->torn =
            is_short_of_addresses() || !dock_holes_allowed() || !reserve(a, p); // what waits is promised
}

void dock_park_prepare(const struct dock_adopt *a, struct dock_mirror *m)
{
    if (wanted(a, m))
        open_room(a, &m->park);
}

void dock_park_close(const struct dock_adopt *a, struct dock_mirror *m)
{
    struct dock_park *p = &m->park;

    if (!p->base)
        return;
    dock_count64(&dock_park_blank, p->pages * dock_page() - dock_park_room(a));
    if (!p->torn) // else something of the program's may lie in it
        munmap(p->room, dock_park_room(a));
    munmap(p->bit, dock_park_bytes(a));
    *p = (struct dock_park){0};
}

// Nobody shall find room where something waited. After mlockall(MCL_FUTURE) it would be locked: that ends
// here, and where there may not be so much at once it goes by parts.
static void blank(struct dock_park *p, uint64_t at, uint64_t len)
{
    for (uint64_t end = at + len, part; at < end; at += part) {
        part = end - at;
        while (!dock_rawcall_mapped(dock_map_private(at, part, PROT_NONE, MAP_NORESERVE)))
            if ((part = part / 2 & ~(dock_page() - 1)) == 0) {
                p->torn = true;
                return;
            }
        dock_lock_lift(at, part);
    }
}

// ---- in and out

// The copy in the arena, where the memory itself cannot come back.
static void restore(uint64_t lo, uint64_t len, uint32_t prot, int fd, uint64_t off)
{
    uint64_t start = lo;

    dock_map_private(lo, len, PROT_READ | PROT_WRITE, 0);
    for (long n = 1; len && n > 0; lo += (uint64_t)n, off += (uint64_t)n, len -= (uint64_t)n)
        n = dock_rawcall(SYS_pread64, fd, (long)lo, (long)len, (long)off, 0, 0);
    if (prot != (PROT_READ | PROT_WRITE))
        dock_rawcall(SYS_mprotect, (long)start, (long)(lo - start), prot, 0, 0, 0);
}

// Between the two calls there is nothing where the program's pages were: no memory is touched then but the
// caller's stack, for the device's own structures may be there with them.
static bool change_places(uint64_t lo, uint64_t len, uint64_t aside, uint32_t prot, int fd, uint64_t off)
{
    if (!dock_rawcall_mapped(dock_map_move(lo, len, aside)))
        return false;
    if (dock_rawcall_mapped(
            dock_rawcall(SYS_mmap, (long)lo, (long)len, prot, MAP_SHARED | MAP_FIXED, fd, (long)off)))
        return true;
    if (!dock_rawcall_mapped(dock_map_move(aside, len, lo)))
        restore(lo, len, prot, fd, off);
    return false;
}

bool dock_park_in(const struct dock_adopt *a, struct dock_mirror *m, uint64_t lo, uint64_t len, uint32_t prot)
{
    struct dock_park *p = &m->park;
    uint64_t inside = lo - m->va, first = inside / dock_page(), end = first + len / dock_page();

    if (!p->base || !wanted(a, m) || waits(p, first) || run_end(p, first, end) < end)
        return false;
    if (!change_places(lo, len, p->base + inside, prot, a->arena->view.fd, m->off + inside)) {
        blank(p, p->base + inside, len); // the kernel has unmapped it, wherever it failed
        return false;
    }
    mark(a, p, first, end, true);
    dock_rawcall(SYS_madvise, (long)(p->base + inside), (long)len, MADV_DONTNEED, 0, 0, 0);
    return true;
}

// What was two mappings before may have become one in the arena; older kernels move one at a time. It may not
// be had for writing where it was not and the program has no room left for such (RLIMIT_DATA, mappings).
static bool bring(uint64_t from, uint64_t len, uint64_t to)
{
    for (uint64_t done = 0, step; done < len; done += step) {
        step = len - done;
        while (!dock_rawcall_mapped(dock_map_move(from + done, step, to + done)))
            if ((step = step / 2 & ~(dock_page() - 1)) == 0)
                return false;
    }
    return !dock_rawcall(SYS_mprotect, (long)to, (long)len, PROT_READ | PROT_WRITE, 0, 0, 0);
}

// Of one mirror, or of none, where nothing waits.
static bool take(const struct dock_adopt *a, struct dock_mirror *m, uint64_t at, uint64_t len, uint64_t off,
                 int flags)
{
    uint64_t page = dock_page(), inside = off - (m ? m->off : off), i = inside / page, end = i + len / page;
    bool done = true;

    if (!m)
        return dock_rawcall_mapped(dock_map_private(at, len, PROT_READ | PROT_WRITE, flags));
    if (i && m->refs[i - 1] && end < dock_mirror_size(a) / page && m->refs[end] && !waits(&m->park, i))
        m->park.odd++;
    for (uint64_t next; done && i < end; i = next) {
        next = run_end(&m->park, i, end);
        uint64_t to = at + (i * page - inside), bytes = (next - i) * page, aside = m->park.base + i * page;
        bool wait = waits(&m->park, i);
        if (!wait || !bring(aside, bytes, to))
            done = dock_rawcall_mapped(dock_map_private(to, bytes, PROT_READ | PROT_WRITE, flags));
        if (wait) {
            mark(a, &m->park, i, next, false);
            blank(&m->park, aside, bytes);
        }
    }
    return done;
}

bool dock_park_out(const struct dock_adopt *a, uint64_t at, uint64_t len, uint64_t off, int flags)
{
    uint64_t size = dock_mirror_size(a);
    bool done = true;

    for (uint64_t part; len && done; at += part, off += part, len -= part) {
        part = size - (off & (size - 1));
        part = part < len ? part : len;
        done = take(a, dock_mirror_at(a, off), at, part, off, flags);
    }
    return done;
}

void dock_park_drop(const struct dock_adopt *a, struct dock_mirror *m, uint64_t off, uint64_t len)
{
    uint64_t page = dock_page(), i = (off - m->off) / page, end = i + len / page;

    if (!m->park.base)
        return;
    for (uint64_t next; i < end; i = next) {
        next = run_end(&m->park, i, end);
        if (!waits(&m->park, i))
            continue;
        mark(a, &m->park, i, next, false);
        blank(&m->park, m->park.base + i * page, (next - i) * page);
    }
}

// Short runs have nothing that waits for them: now it comes.
static bool make(const struct dock_adopt *a, struct dock_mirror *m, uint64_t first, uint64_t end)
{
    struct dock_park *p = &m->park;
    uint64_t page = dock_page();

    if (p->torn || dock_park_pieces >= PIECES ||
        !dock_rawcall_mapped(
            dock_map_private(p->base + first * page, (end - first) * page, PROT_READ | PROT_WRITE, 0)))
        return false;
    mark(a, p, first, end, true);
    return true;
}

long dock_park_advise(const struct dock_adopt *a, uint64_t off, uint64_t len, int advice)
{
    uint64_t page = dock_page(), size = dock_mirror_size(a);
    long err = 0;

    for (uint64_t part, next; len; off += part, len -= part) {
        struct dock_mirror *m = dock_mirror_at(a, off);
        part = size - (off & (size - 1));
        part = part < len ? part : len;
        if (!m)
            continue;
        open_room(a, &m->park);
        uint64_t i = (off - m->off) / page, end = i + part / page;
        for (; m->park.base && i < end; i = next) {
            next = run_end(&m->park, i, end);
            if (!waits(&m->park, i) && !make(a, m, i, next))
                continue;
            long ret = dock_rawcall(SYS_madvise, (long)(m->park.base + i * page), (long)((next - i) * page),
                                    advice, 0, 0, 0);
            err = err ? err : ret;
        }
    }
    return err;
}
