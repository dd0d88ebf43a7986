// SPDX-License-Identifier: MIT
#include "arena/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "arena/arena.h"
#include "base/lock.h"
#include "base/order.h"
#include "base/rawcall.h"

// PROCMAP_QUERY of Linux 6.11 (linux/fs.h): one mapping by address, without the text of all before it.
struct query {
    uint64_t size, flags, addr;                            // asked
    uint64_t start, end, vma_flags, page_size, off, inode; // answered
    uint32_t major, minor, name_size, build_id_size;       // name_size is both
    uint64_t name_addr, build_id_addr;                     // asked
};

#define QUERY _IOWR('f', 17, struct query)
#define QUERY_OR_NEXT 0x10u

enum { READABLE = 1, WRITABLE = 2, EXECUTABLE = 4, SHARED = 8 }; // told, and with QUERY_OR_NEXT asked for

#define NAME_ROOM 4096 // PATH_MAX: the query does not tell a longer one

static enum dock_vma_kind kind_of(const char *name, uint64_t inode)
{
    if (!strncmp(name, "/[aio]", 6) || !strncmp(name, "anon_inode:[io_uring]", 21))
        return DOCK_VMA_RING;
    if (inode)
        return DOCK_VMA_FILE;
    if (!*name || !strcmp(name, "[heap]") || !strncmp(name, "[anon:", 6))
        return DOCK_VMA_ANON;
    if (!strncmp(name, "[stack", 6))
        return DOCK_VMA_STACK;
    return *name == '[' ? DOCK_VMA_OTHER : DOCK_VMA_FILE;
}

static struct dock_vma answer(const struct query *q, const char *name)
{
    return (struct dock_vma){.lo = q->start,
                             .hi = q->end,
                             .off = q->off,
                             .inode = q->inode,
                             .major = q->major,
                             .minor = q->minor,
                             .prot = (q->vma_flags & READABLE ? PROT_READ : 0) |
                                     (q->vma_flags & WRITABLE ? PROT_WRITE : 0) |
                                     (q->vma_flags & EXECUTABLE ? PROT_EXEC : 0),
                             .shared = q->vma_flags & SHARED,
                             .kind = kind_of(name, q->inode)};
}

// `text` is what it is called.
static long ask(int fd, uint64_t flags, uint64_t at, struct query *q, char *text)
{
    long ret;

    *q = (struct query){
        .size = sizeof *q, .flags = flags, .addr = at, .name_size = NAME_ROOM, .name_addr = (uintptr_t)text};
    ret = dock_rawcall(SYS_ioctl, fd, QUERY, (long)q, 0, 0, 0);
    if (ret == -ENAMETOOLONG) { // only a file's can be
        q->name_size = q->name_addr = 0;
        ret = dock_rawcall(SYS_ioctl, fd, QUERY, (long)q, 0, 0, 0);
        strcpy(text, "/");
    } else if (!q->name_size) {
        text[0] = '\0';
    }
    return ret;
}

static int by_query(int fd, uint64_t only, char *text, uint64_t lo, uint64_t hi, dock_vma_each *each,
                    void *arg)
{
    while (lo < hi) {
        struct query q;
        long ret = ask(fd, QUERY_OR_NEXT | only, lo, &q, text);

        if (ret == -ENOENT)
            return 0;
        if (ret)
            return (int)ret;
        if (q.start >= hi)
            return 0;
        struct dock_vma v = answer(&q, text);
        if (!each(arg, &v))
            return 0;
        lo = q.end;
    }
    return 0;
}

static const char *number(const char *s, unsigned base, uint64_t *out)
{
    *out = 0;
    for (;; s++) {
        unsigned digit = *s >= '0' && *s <= '9'   ? (unsigned)(*s - '0')
                         : *s >= 'a' && *s <= 'f' ? (unsigned)(*s - 'a' + 10)
                                                  : 99;
        if (digit >= base)
            return s;
        *out = *out * base + digit;
    }
}

// "lo-hi rwxp off major:minor inode   name"
static struct dock_vma parse(const char *s)
{
    struct dock_vma v = {0};
    uint64_t n;

    s = number(s, 16, &v.lo);
    s = number(s + 1, 16, &v.hi);
    v.prot = (s[1] == 'r' ? PROT_READ : 0) | (s[2] == 'w' ? PROT_WRITE : 0) | (s[3] == 'x' ? PROT_EXEC : 0);
    v.shared = s[4] == 's';
    s = number(s + 6, 16, &v.off);
    s = number(s + 1, 16, &n);
    v.major = (uint32_t)n;
    s = number(s + 1, 16, &n);
    v.minor = (uint32_t)n;
    s = number(s + 1, 10, &v.inode);
    while (*s == ' ')
        s++;
    v.kind = kind_of(s, v.inode);
    return v;
}

// One line. false: nobody wants more.
static bool tell(const char *line, uint64_t lo, uint64_t hi, dock_vma_each *each, void *arg)
{
    struct dock_vma v = parse(line);

    return v.lo < hi && (v.hi <= lo || each(arg, &v));
}

static int by_text(int fd, struct dock_maps_room *room, uint64_t lo, uint64_t hi, dock_vma_each *each,
                   void *arg)
{
    char *text = room->text;
    size_t have = 0;

    for (;;) {
        long n =
            dock_rawcall(SYS_read, fd, (long)(text + have), (long)(sizeof room->text - 1 - have), 0, 0, 0);
        char *line = text, *end;

        if (n == -EINTR)
            continue;
        if (n <= 0)
            return (int)n;
        have += (size_t)n;
        text[have] = '\0';
        while ((end = memchr(line, '\n', have - (size_t)(line - text)))) {
            *end = '\0';
            if (!tell(line, lo, hi, each, arg))
                return 0;
            line = end + 1;
        }
        have -= (size_t)(line - text);
        memmove(text, line, have);
        if (have >= sizeof room->text - 1)
            return -E2BIG;
    }
}

static dock_a32 no_query; // all walks find out the same

static bool query_is_missing(long ret)
{
    return ret == -ENOTTY || ret == -EINVAL || ret == -EPERM;
}

int dock_maps_at(uint64_t at, bool named, struct dock_vma *v)
{
    char name[64]; // a longer one is an error of the query
    struct query q = {.size = sizeof q,
                      .addr = at,
                      .name_size = named ? sizeof name : 0,
                      .name_addr = named ? (uintptr_t)name : 0};
    long fd = dock_proc_kept(DOCK_PROC_MAPS), ret;

    if (dock_peek32(&no_query) || fd < 0)
        return -ENOTTY;
    ret = dock_rawcall(SYS_ioctl, fd, QUERY, (long)&q, 0, 0, 0);
    if (!ret)
        *v = answer(&q, q.name_size ? name : "");
    return (int)ret;
}

int dock_maps_walk_in(struct dock_maps_room *room, uint64_t lo, uint64_t hi, dock_vma_each *each, void *arg)
{
    struct dock_proc maps;
    int ret = dock_proc_open(room->file, &maps);

    if (ret)
        return ret;
    ret = dock_peek32(&no_query) ? -ENOTTY : by_query((int)maps.fd, 0, room->text, lo, hi, each, arg);
    if (query_is_missing(ret)) {
        dock_set32(&no_query, 1);
        ret = (int)dock_rawcall(SYS_lseek, maps.fd, 0, SEEK_SET, 0, 0, 0);
        ret = ret ? ret : by_text((int)maps.fd, room, lo, hi, each, arg);
    }
    dock_proc_done(&maps);
    return ret;
}

bool dock_vma_shows(const struct dock_vma *v, const struct dock_view *view)
{
    return v->shared && v->kind == DOCK_VMA_FILE && v->inode == view->inode &&
           v->major == major(view->device) && v->minor == minor(view->device);
}

static bool keep_first(void *arg, const struct dock_vma *v)
{
    *(struct dock_vma *)arg = *v;
    return false;
}

int dock_maps_of(int pid, uint64_t at, struct dock_vma *v)
{
    struct dock_maps_room room;
    char path[32];
    int fd, ret;

    *v = (struct dock_vma){0};
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    fd = dock_open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ret = dock_peek32(&no_query) ? -ENOTTY : by_query(fd, 0, room.text, at, at + 1, keep_first, v);
    if (query_is_missing(ret)) // it has not moved in the file
        ret = by_text(fd, &room, at, at + 1, keep_first, v);
    dock_close(fd);
    return ret;
}

static struct dock_maps_room locked = {.file = DOCK_PROC_MAPS}; // of who has the adoption lock

int dock_maps_walk(uint64_t lo, uint64_t hi, dock_vma_each *each, void *arg)
{
    return dock_maps_walk_in(&locked, lo, hi, each, arg);
}

int dock_maps_walk_shared(dock_vma_each *each, void *arg)
{
    struct dock_proc maps;
    int ret = dock_proc_open(locked.file, &maps);

    if (ret)
        return ret;
    ret = dock_peek32(&no_query)
              ? -ENOTTY
              : by_query((int)maps.fd, WRITABLE | SHARED, locked.text, 0, UINT64_MAX, each, arg);
    dock_proc_done(&maps);
    return query_is_missing(ret) ? -ENOTTY : ret;
}
