// SPDX-License-Identifier: MIT
#include "arena/procfile.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/rawcall.h"

static const char *const path[DOCK_PROC_FILES] = {
    [DOCK_PROC_MAPS] = "/proc/self/maps",          [DOCK_PROC_TASKS] = "/proc/self/task",
    [DOCK_PROC_DESCRIPTORS] = "/proc/self/fd",     [DOCK_PROC_AIO] = "/proc/sys/fs/aio-nr",
    [DOCK_PROC_PAGES] = "/proc/self/pagemap",      [DOCK_PROC_SIZES] = "/proc/self/statm",
    [DOCK_PROC_MAPS_OF_CALLS] = "/proc/self/maps",
};

struct kept {
    long fd;
    uint64_t inode, device; // inode 0: none
    bool asked;             // since everything stands still, and `st` is what was answered
    struct stat st;
};

static bool all_still; // of the adoption lock

struct kept_page {
    struct kept file[DOCK_PROC_FILES];
    long owner; // the process whose they are; 0: nobody has asked yet
};

// What is known of them is wiped in a forked child, for which they are the parent's.
static struct kept_page *known_page(void)
{
    static struct kept_page *page;
    long size = sysconf(_SC_PAGESIZE), at;

    if (page)
        return page;
    at = dock_rawcall(SYS_mmap, 0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at < 0 && at > -4096)
        return NULL;
    if (dock_rawcall(SYS_madvise, at, size, MADV_WIPEONFORK, 0, 0, 0)) {
        dock_rawcall(SYS_munmap, at, size, 0, 0, 0, 0);
        return NULL;
    }
    page = (struct kept_page *)at;
    return page;
}

static struct kept *kept_page(void)
{
    struct kept_page *page = known_page();

    return page ? page->file : NULL;
}

const void *dock_proc_room(size_t *bytes)
{
    *bytes = sizeof(struct kept_page);
    return known_page();
}

// Not of a helper that shares the address space: it is another process, and what it opens is of no use behind
// its end.
static bool may_keep(void)
{
    struct kept_page *page = known_page();
    long pid = dock_rawcall(SYS_getpid, 0, 0, 0, 0, 0, 0);

    if (page && !page->owner) // the process itself comes first
        page->owner = pid;
    return page && page->owner == pid;
}

// The program may have closed it, and its own file got the number.
static bool is_kept(const struct kept *k, struct stat *st)
{
    return k->inode && !dock_rawcall(SYS_fstat, k->fd, (long)st, 0, 0, 0, 0) && st->st_ino == k->inode &&
           st->st_dev == k->device;
}

static void note_answer(struct kept *k, const struct stat *st)
{
    k->asked = true;
    k->st = *st;
}

void dock_proc_still(bool still)
{
    struct kept *page = kept_page();

    all_still = still && page;
    for (unsigned i = 0; page && i < DOCK_PROC_MAPS_OF_CALLS; i++)
        page[i].asked = false;
}

bool dock_proc_is(long fd)
{
    struct kept *page = kept_page();
    unsigned i = 0;

    while (all_still && i < DOCK_PROC_MAPS_OF_CALLS && !(page[i].inode && page[i].fd == fd))
        i++;
    if (!all_still || i == DOCK_PROC_MAPS_OF_CALLS)
        return false;
    page[i].asked = page[i].asked || is_kept(&page[i], &page[i].st);
    return page[i].asked;
}

int dock_proc_open(enum dock_proc_name name, struct dock_proc *out)
{
    struct kept *page = kept_page(), *k = page ? page + name : NULL;
    struct dock_proc p = {.st = {.st_ino = 0}}; // the kernel fills it behind the compiler's back
    bool still = name != DOCK_PROC_MAPS_OF_CALLS && all_still;

    if (k && still && k->asked) {
        *out = (struct dock_proc){.fd = k->fd, .st = k->st};
        return 0;
    }
    if (k && is_kept(k, &p.st)) {
        p.fd = k->fd;
        if (still)
            note_answer(k, &p.st);
        *out = p;
        return 0;
    }
    p.fd = dock_rawcall(SYS_openat, AT_FDCWD, (long)path[name], O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (p.fd < 0)
        return (int)p.fd;
    long err = dock_rawcall(SYS_fstat, p.fd, (long)&p.st, 0, 0, 0, 0);
    p.closes = !k || !may_keep() || err;
    if (!p.closes)
        *k = (struct kept){.fd = p.fd, .inode = p.st.st_ino, .device = p.st.st_dev};
    if (!p.closes && still)
        note_answer(k, &p.st);
    *out = p;
    return 0;
}

long dock_proc_kept(enum dock_proc_name name)
{
    const struct kept *page = kept_page();

    return page && page[name].inode ? page[name].fd : -1;
}

void dock_proc_done(const struct dock_proc *p)
{
    if (p->closes)
        dock_rawcall(SYS_close, p->fd, 0, 0, 0, 0, 0);
}

void dock_proc_close(void)
{
    struct kept *page = kept_page();
    struct stat st = {.st_ino = 0}; // the kernel fills it

    for (unsigned i = 0; page && i < DOCK_PROC_FILES; i++) {
        if (is_kept(&page[i], &st))
            dock_rawcall(SYS_close, page[i].fd, 0, 0, 0, 0, 0);
        page[i].inode = 0;
    }
}
