// SPDX-License-Identifier: MIT
#include "arena/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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

enum { READABLE = 1, WRITABLE = 2, EXECUTABLE = 4, SHARED = 8 };

#define NAME_ROOM 4096 // PATH_MAX: a longer name is an error of the query

static char text[16384]; // lines of the file, or the name of one mapping

static enum dock_vma_kind kind_of(const char *name, uint64_t inode)
{
    if (!strncmp(name, "/[aio]", 6))
        return DOCK_VMA_AIO;
    if (inode)
        return DOCK_VMA_FILE;
    if (!*name || !strcmp(name, "[heap]") || !strncmp(name, "[anon:", 6))
        return DOCK_VMA_ANON;
    if (!strncmp(name, "[stack", 6))
        return DOCK_VMA_STACK;
    return *name == '[' ? DOCK_VMA_OTHER : DOCK_VMA_FILE;
}

static int by_query(int fd, uint64_t lo, uint64_t hi, dock_vma_each *each, void *arg)
{
    while (lo < hi) {
        struct query q = {.size = sizeof q,
                          .flags = QUERY_OR_NEXT,
                          .addr = lo,
                          .name_size = NAME_ROOM,
                          .name_addr = (uintptr_t)text};
        long ret = dock_rawcall(SYS_ioctl, fd, QUERY, (long)&q, 0, 0, 0);

        if (ret == -ENOENT)
            return 0;
        if (ret)
            return (int)ret;
        if (q.start >= hi)
            return 0;
        if (!q.name_size)
            text[0] = '\0';
        struct dock_vma v = {.lo = q.start,
                             .hi = q.end,
                             .off = q.off,
                             .inode = q.inode,
                             .major = q.major,
                             .minor = q.minor,
                             .prot = (q.vma_flags & READABLE ? PROT_READ : 0) |
                                     (q.vma_flags & WRITABLE ? PROT_WRITE : 0) |
                                     (q.vma_flags & EXECUTABLE ? PROT_EXEC : 0),
                             .shared = q.vma_flags & SHARED,
                             .kind = kind_of(text, q.inode)};
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

static int by_text(int fd, uint64_t lo, uint64_t hi, dock_vma_each *each, void *arg)
{
    size_t have = 0;

    for (;;) {
        long n = dock_rawcall(SYS_read, fd, (long)(text + have), (long)(sizeof text - 1 - have), 0, 0, 0);
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
        if (have >= sizeof text - 1)
            return -E2BIG;
    }
}

// The file stays open from call to call: opening costs more than asking. What is known of it is wiped in a
// forked child, for which it is the parent's; and the program may have closed it.
struct kept {
    long fd;
    uint64_t inode, device; // inode 0: none
};

static struct kept *kept_page(void)
{
    static struct kept *page;

    if (page)
        return page;
    long at = dock_rawcall(SYS_mmap, 0, sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at < 0 && at > -4096)
        return NULL;
    if (dock_rawcall(SYS_madvise, at, sysconf(_SC_PAGESIZE), MADV_WIPEONFORK, 0, 0, 0)) {
        dock_rawcall(SYS_munmap, at, sysconf(_SC_PAGESIZE), 0, 0, 0, 0);
        return NULL;
    }
    page = (struct kept *)at;
    return page;
}

static bool same_file(const struct kept *k)
{
    struct stat st = {.st_ino = 0}; // the kernel fills it behind the compiler's back

    return k->inode && !dock_rawcall(SYS_fstat, k->fd, (long)&st, 0, 0, 0, 0) && st.st_ino == k->inode &&
           st.st_dev == k->device;
}

// *closes: the caller does, when it has read.
static long maps_file(bool *closes)
{
    struct kept *k = kept_page();
    struct stat st;
    long fd;

    *closes = false;
    if (k && same_file(k))
        return k->fd;
    fd = dock_rawcall(SYS_openat, AT_FDCWD, (long)"/proc/self/maps", O_RDONLY | O_CLOEXEC, 0, 0, 0);
    *closes = fd >= 0 && (!k || dock_rawcall(SYS_fstat, fd, (long)&st, 0, 0, 0, 0));
    if (fd >= 0 && !*closes)
        *k = (struct kept){.fd = fd, .inode = st.st_ino, .device = st.st_dev};
    return fd;
}

void dock_maps_close(void)
{
    struct kept *k = kept_page();

    if (k && same_file(k))
        dock_rawcall(SYS_close, k->fd, 0, 0, 0, 0, 0);
    if (k)
        k->inode = 0;
}

int dock_maps_walk(uint64_t lo, uint64_t hi, dock_vma_each *each, void *arg)
{
    static bool no_query;
    bool closes;
    long fd = maps_file(&closes);
    int ret = -ENOTTY;

    if (fd < 0)
        return (int)fd;
    if (!no_query)
        ret = by_query((int)fd, lo, hi, each, arg);
    if (ret == -ENOTTY || ret == -EINVAL || ret == -EPERM) {
        no_query = true;
        ret = (int)dock_rawcall(SYS_lseek, fd, 0, SEEK_SET, 0, 0, 0);
        ret = ret ? ret : by_text((int)fd, lo, hi, each, arg);
    }
    if (closes)
        dock_rawcall(SYS_close, fd, 0, 0, 0, 0, 0);
    return ret;
}
