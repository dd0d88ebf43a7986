// SPDX-License-Identifier: MIT
// Huge pages. A piece of 2 MiB that moves wholly gets one in the arena, if nearly all of it holds something:
// the copy takes a fraction of the time, and so does everybody's access to it afterwards. Pages of one piece
// lie in one piece of the arena, since offsets mirror addresses. Where the kernel refuses (huge.h) the pages
// are small ones.
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "arena/adopt_own.h"
#include "arena/procfile.h"
#include "base/log.h"
#include "base/rawcall.h"

#define HUGE ((uint64_t)DOCK_HUGE_BYTES)
#define EMPTY_MOST 64u // pages of a piece that get memory although nobody touched them: an eighth

static long never; // why this kernel gives none: -errno, or 0

static uint8_t *piece_at(const struct dock_mirror *m, uint64_t off)
{
    return &m->huge[(off - m->off) >> DOCK_HUGE_SHIFT];
}

static long advise(uint64_t at, uint64_t len, int advice)
{
    return dock_rawcall(SYS_madvise, (long)at, (long)len, advice, 0, 0, 0);
}

// ---- those that are lost

// PAGEMAP_SCAN of Linux 6.7 (linux/fs.h): the first run of pages of a category.
struct scan {
    uint64_t size, flags, start, end, walk_end, found, founds, most;
    uint64_t inverted, all_of, any_of, told;
};

#define SCAN _IOWR('f', 16, struct scan)
#define IS_HUGE (1u << 6)

// Has the program any there? 1, 0, or -errno: it cannot be told.
static long any_huge(uint64_t lo, uint64_t hi)
{
    uint64_t run[3];
    struct scan s = {.size = sizeof s,
                     .start = lo,
                     .end = hi,
                     .found = (uintptr_t)run,
                     .founds = 1,
                     .all_of = IS_HUGE,
                     .told = IS_HUGE};
    struct dock_proc pages;
    long n = dock_proc_open(DOCK_PROC_PAGES, &pages);

    if (n)
        return n;
    n = dock_rawcall(SYS_ioctl, pages.fd, SCAN, (long)&s, 0, 0, 0);
    dock_proc_done(&pages);
    return n;
}

// Where shared memory is given some by itself the copy brings them.
static bool come_by_themselves(void)
{
    char text[96];

    return dock_huge_setting("shmem_enabled", text) &&
           (strstr(text, "[always]") || strstr(text, "[within_size]") || strstr(text, "[force]"));
}

static void tell_of_loss(uint64_t lo, uint64_t hi, long err)
{
    static bool said;
    char text[96];
    long any;

    if (said || come_by_themselves())
        return;
    any = any_huge(lo, hi);
    if (!any || (any < 0 && !(dock_huge_setting("enabled", text) && strstr(text, "[always]"))))
        return;
    said = true;
    dock_warn("registered memory loses its huge pages: the kernel gives shared memory none (%s). "
              "DRYDOCK_ADOPT=off keeps them",
              strerror((int)-err));
}

// ---- in

// No more of them for this registration; or for any, where it is not a matter of memory. The program's are
// still there.
static void refused(struct dock_adopt *a, uint64_t lo, uint64_t hi, long err)
{
    a->huge = false;
    if (err != -ENOMEM && err != -EAGAIN && err != -EBUSY) {
        if (!never)
            dock_info("the kernel gives shared memory no huge pages: %s", strerror((int)-err));
        never = err;
    }
    tell_of_loss(lo, hi, err);
}

// From nothing: a page that somebody left there would be read. The kernel makes a huge page of what is there,
// so one page is. 0 or -errno.
static long make_run(struct dock_adopt *a, struct dock_mirror *m, uint64_t off, uint64_t len)
{
    uint64_t alias = (uintptr_t)dock_view_at(&a->arena->view, off, len), page = dock_page();
    long all = alias ? advise(alias, len, MADV_REMOVE) : -ENOMEM, err = all;

    if (err) // the program has locked its memory, say
        return -EAGAIN;
    for (uint64_t i = 0; i < len && !err; i += HUGE)
        err = advise(alias + i, page, MADV_POPULATE_WRITE);
    if (!err)
        all = dock_huge_collapse(alias, len);
    for (uint64_t i = 0; i < len && !err; i += HUGE) {
        if (all) // which of them? One that is huge already costs little
            err = dock_huge_collapse(alias + i, HUGE);
        if (!err) {
            *piece_at(m, off + i) = 1;
            dock_count64(&a->counts->huge, HUGE);
        }
    }
    return err;
}

void dock_huge_make(struct dock_adopt *a, struct dock_mirror *m, uint64_t lo, uint64_t hi)
{
    uint64_t first = (lo + HUGE - 1) & ~(HUGE - 1), end = hi & ~(HUGE - 1), to;
    bool counted = false;
    long err = never;

    if (!a->huge || first >= end)
        return;
    if (!err)
        counted = a->holes && dock_holes_read(lo, hi);
    for (uint64_t at = first; at < end && !err; at = to + HUGE) {
        to = at;
        while (to < end &&
               (!counted || dock_holes_full(lo, to, to + HUGE) >= HUGE / dock_page() - EMPTY_MOST))
            to += HUGE;
        if (to > at)
            err = make_run(a, m, m->off + (at - m->va), to - at);
    }
    if (err)
        refused(a, lo, hi, err);
}

// ---- what is known of them

void dock_huge_forget(struct dock_adopt *a, struct dock_mirror *m, uint64_t off, uint64_t len)
{
    uint64_t inside = off - m->off;

    for (uint64_t i = inside >> DOCK_HUGE_SHIFT; i << DOCK_HUGE_SHIFT < inside + len; i++) {
        if (m->huge[i])
            dock_count64(&a->counts->huge, -HUGE);
        m->huge[i] = 0;
    }
}

bool dock_huge_run(const struct dock_mirror *m, uint64_t off, uint64_t end, uint64_t *to)
{
    uint8_t is = *piece_at(m, off);
    uint64_t at = off;

    do
        at = (at | (HUGE - 1)) + 1;
    while (at < end && *piece_at(m, at) == is);
    *to = at < end ? at : end;
    return is;
}

// ---- back

bool dock_huge_private(void)
{
    char text[96];

    if (dock_huge_setting("hugepages-2048kB/enabled", text) && !strstr(text, "[inherit]"))
        return !strstr(text, "[never]");
    return dock_huge_setting("enabled", text) && !strstr(text, "[never]");
}

bool dock_huge_any(const struct dock_mirror *m, uint64_t off, uint64_t len)
{
    for (uint64_t at = (off + HUGE - 1) & ~(HUGE - 1); at + HUGE <= off + len; at += HUGE)
        if (*piece_at(m, at))
            return true;
    return false;
}

// Where that is refused they come as small pages when they are filled.
void dock_huge_return(const struct dock_mirror *m, uint64_t at, uint64_t off, uint64_t len)
{
    uint64_t first = (off + HUGE - 1) & ~(HUGE - 1), end = (off + len) & ~(HUGE - 1), to;

    if ((at ^ off) & (HUGE - 1)) // the program has moved them
        return;
    for (uint64_t from = first; from < end; from = to) {
        if (!dock_huge_run(m, from, end, &to))
            continue;
        for (uint64_t i = from; i < to; i += HUGE)
            advise(at + (i - off), dock_page(), MADV_POPULATE_WRITE);
        dock_huge_collapse(at + (from - off), to - from);
    }
}
