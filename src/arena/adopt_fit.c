// SPDX-License-Identifier: MIT
// What may be adopted: which mappings, beside which threads, in which process, with how much memory left.
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "arena/adopt_own.h"
#include "arena/procfile.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/rawcall.h"

#define LOOK_NS 100000000ull    // between two looks at the control group,
#define FILL_BYTES (2ull << 30) // in which a program fills no more than this
#define TCB_BYTES 8192u         // of a thread's control block and rseq area, at and behind its thread pointer

bool dock_vma_ours(const struct dock_adopt *a, const struct dock_vma *v)
{
    return dock_vma_shows(v, &a->arena->view);
}

// Initialised data of the program and its libraries: private mappings of files, which are the program's own
// memory all the same. Looked up before a stop: the loader's lock may be held by who is stopped.
#define DATA_PARTS 512u
static struct {
    uint64_t lo, hi;
} data[DATA_PARTS];
static unsigned data_parts;

static int note_data(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    (void)arg;
    for (unsigned i = 0; i < info->dlpi_phnum && data_parts < DATA_PARTS; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type != PT_LOAD || !(p->p_flags & PF_W))
            continue;
        data[data_parts].lo = info->dlpi_addr + p->p_vaddr;
        data[data_parts++].hi = info->dlpi_addr + p->p_vaddr + p->p_filesz;
    }
    return 0;
}

void dock_fit_find_data(void)
{
    data_parts = 0;
    dl_iterate_phdr(note_data, NULL);
}

static bool is_data(const struct dock_vma *v)
{
    uint64_t page = dock_page();

    for (unsigned i = 0; i < data_parts; i++)
        if (v->lo >= (data[i].lo & ~(page - 1)) && v->hi <= ((data[i].hi + page - 1) & ~(page - 1)))
            return true;
    return false;
}

bool dock_vma_fits(const struct dock_vma *v)
{
    bool own = v->kind == DOCK_VMA_ANON || (v->kind == DOCK_VMA_FILE && v->prot & PROT_WRITE && is_data(v));

    return own && !v->shared && v->prot & PROT_READ && !(v->prot & PROT_EXEC);
}

bool dock_fit_thread(uint64_t vlo, uint64_t vhi, uint64_t sp, uint64_t tp, uint64_t *first, uint64_t *end)
{
    bool stack = sp >= vlo && sp < vhi, tcb = tp >= vlo && tp < vhi;
    uint64_t page = dock_page();

    if (!stack && !tcb)
        return false;
    *first = tcb && tp - vlo > TCB_BYTES ? (tp - TCB_BYTES) & ~(page - 1) : vlo;
    *end = tcb && vhi - tp > TCB_BYTES ? (tp + TCB_BYTES + page - 1) & ~(page - 1) : vhi;
    // glibc lays a stack below its thread's control block; what was mapped above became one mapping with it.
    if (stack && (!tcb || sp < tp))
        *first = vlo;
    return true;
}

// ---- pages that the kernel may hold

// Since Linux 5.16 each io_uring and userfaultfd has an inode of its own in the file system of anonymous
// inodes. What is of another one, or the inode that all others share, pins nothing: it is told without asking
// for a name.
static struct {
    uint64_t inode, device; // 0: not known
} shared_inode;

static bool rings_are_numbered; // see own_rings

static bool kernel_is(unsigned want_major, unsigned want_minor)
{
    struct utsname u;
    unsigned major = 0, minor = 0;

    return !uname(&u) && sscanf(u.release, "%u.%u", &major, &minor) == 2 &&
           (major > want_major || (major == want_major && minor >= want_minor));
}

static uint32_t mappings = 49152;

// A number in a small file: UINT64_MAX for "max", or if it cannot be read.
static uint64_t number_in(const char *dir, const char *name)
{
    char path[512], text[32];
    ssize_t n;
    int fd;

    if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path)
        return UINT64_MAX;
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return UINT64_MAX;
    n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n < 0 ? 0 : n] = '\0';
    return text[0] >= '0' && text[0] <= '9' ? strtoull(text, NULL, 10) : UINT64_MAX;
}

// Three quarters of what a process may have.
static void learn_mappings(void)
{
    uint64_t most = number_in("/proc/sys/vm", "max_map_count");

    if (most != UINT64_MAX)
        mappings = (uint32_t)(most / 4 * 3);
}

uint32_t dock_fit_mappings(void)
{
    return mappings;
}

void dock_fit_learn(void)
{
    struct stat st = {.st_ino = 0}; // the kernel fills it behind the compiler's back
    long fd;

    learn_mappings();
    rings_are_numbered = kernel_is(6, 3);
    if (shared_inode.inode || !kernel_is(5, 16))
        return;
    fd = dock_rawcall(SYS_eventfd2, 0, 0, 0, 0, 0, 0);
    if (fd < 0)
        return;
    if (!dock_rawcall(SYS_fstat, fd, (long)&st, 0, 0, 0, 0) && !(st.st_mode & S_IFMT)) {
        shared_inode.inode = st.st_ino;
        shared_inode.device = st.st_dev;
    }
    dock_rawcall(SYS_close, fd, 0, 0, 0, 0, 0);
}

enum descriptor { CLOSED, HARMLESS, TO_NAME };

// What pins is an anonymous inode, which has no file type.
static enum descriptor look_at(long fd)
{
    struct stat st = {.st_mode = S_IFREG}; // the kernel fills it behind the compiler's back

    if (dock_rawcall(SYS_fstat, fd, (long)&st, 0, 0, 0, 0))
        return CLOSED;
    if (st.st_mode & S_IFMT)
        return HARMLESS;
    if (shared_inode.inode && (st.st_dev != shared_inode.device || st.st_ino == shared_inode.inode))
        return HARMLESS;
    return TO_NAME;
}

// `name` is its number, in the directory of descriptors.
static bool names_pinner(long dir, const char *name)
{
    static const char *const pinners[] = {"anon_inode:[io_uring]", "anon_inode:[userfaultfd]"};
    char link[32];
    long n = dock_rawcall(SYS_readlinkat, dir, (long)name, (long)link, sizeof link, 0, 0);

    for (unsigned i = 0; i < sizeof pinners / sizeof *pinners; i++)
        if (n == (long)strlen(pinners[i]) && !memcmp(link, pinners[i], (size_t)n))
            return true;
    return false;
}

// The descriptors of the last list. As long as all of them are open and as many are there, these are all:
// asking each is cheaper than a list.
#define KNOWN 512u

static struct {
    long fd[KNOWN];
    unsigned n; // more than KNOWN: too many
} known;

static bool listed_pins(long dir, const char *name, bool *listed)
{
    long fd = 0;

    for (const char *s = name; *s; s++) {
        if (*s < '0' || *s > '9')
            return false;
        fd = fd * 10 + (*s - '0');
    }
    *listed |= fd == dir;
    if (known.n < KNOWN)
        known.fd[known.n] = fd;
    known.n += known.n <= KNOWN;
    return look_at(fd) == TO_NAME && names_pinner(dir, name);
}

// The list itself must be in it: after the first thread has ended the process's directory shows nothing.
static bool any_listed_pins(long dir)
{
    _Alignas(8) char room[2048] = {0};
    bool pins = false, listed = false;
    long n;

    known.n = 0;
    dock_rawcall(SYS_lseek, dir, 0, SEEK_SET, 0, 0, 0);
    while (!pins && (n = dock_rawcall(SYS_getdents64, dir, (long)room, sizeof room, 0, 0, 0)) > 0)
        for (long at = 0; at < n && !pins;) {
            const struct dock_dirent *e = (const struct dock_dirent *)(void *)(room + at);
            pins = listed_pins(dir, e->name, &listed);
            at += e->length;
        }
    return pins || n < 0 || !listed;
}

// A program that has closed descriptors of ours has closed all, that of the arena too: then `own` is NULL.
static bool is_own(const struct dock_adopt *own, long fd)
{
    unsigned i = 0;

    while (own && i < own->owned && own->own[i] != fd)
        i++;
    return own && (i < own->owned || fd == own->arena->view.fd);
}

// An `open` of 0: a kernel that does not tell, or nothing is shown.
static bool all_harmless(uint64_t open, const struct dock_adopt *own)
{
    if (!open || open != known.n || known.n > KNOWN)
        return false;
    for (unsigned i = 0; i < known.n; i++)
        if (!is_own(own, known.fd[i]) && !dock_proc_is(known.fd[i]) && look_at(known.fd[i]) != HARMLESS)
            return false;
    return true;
}

static bool descriptor_pins(const struct dock_adopt *own)
{
    struct dock_proc list;
    bool pins;

    if (dock_proc_open(DOCK_PROC_DESCRIPTORS, &list))
        return true; // cannot be told: rather not
    pins = !all_harmless((uint64_t)list.st.st_size, own) && any_listed_pins(list.fd);
    dock_proc_done(&list);
    return pins;
}

// AIO contexts of the whole system are counted; only if there are any one looks for ours.
static bool any_aio(void)
{
    char text[24] = "";
    struct dock_proc count;
    int err = dock_proc_open(DOCK_PROC_AIO, &count);

    if (err)
        return err != -ENOENT; // a kernel without AIO
    long n = dock_rawcall(SYS_pread64, count.fd, (long)text, sizeof text, 0, 0, 0);
    dock_proc_done(&count);
    return !(n == 2 && text[0] == '0' && text[1] == '\n');
}

#ifndef SYS_io_uring_register
#define SYS_io_uring_register 427
#endif

#define OWN_RINGS 16u             // that a thread may have without a descriptor each
#define PROBE_OWN (8u | 1u << 31) // IORING_REGISTER_PROBE of the thread's n-th
#define NOT_A_PLACE 1             // where its answer cannot be stored

// What the calling thread has of io_uring. A thread that never used it is told so by one call.
enum rings { NEVER_ANY, NONE_OF_ITS_OWN, SOME_WITHOUT_DESCRIPTOR };

// Before Linux 6.3 the number would be one of a descriptor: not asked there. A filter may answer anything.
static enum rings own_rings(void)
{
    long ret = -EBADF;

    if (!rings_are_numbered)
        return NEVER_ANY;
    for (long n = 0; n < OWN_RINGS && ret == -EBADF; n++)
        ret = dock_rawcall(SYS_io_uring_register, n, PROBE_OWN, NOT_A_PLACE, 1, 0, 0);
    if (ret == -EINVAL || ret == -ENOSYS)
        return NEVER_ANY;
    return ret == -EFAULT || ret == -EACCES || ret == -EEXIST || ret == -ENXIO ? SOME_WITHOUT_DESCRIPTOR
                                                                               : NONE_OF_ITS_OWN;
}

static bool is_ring(void *found, const struct dock_vma *v)
{
    *(bool *)found = v->kind == DOCK_VMA_RING;
    return !*(bool *)found;
}

// Pages of mappings that are neither the program's own memory nor adopted: a ring that comes makes it more.
// 0: it cannot be told.
static uint64_t foreign_pages(void)
{
    char text[128] = "", *at = text;
    uint64_t field[6] = {0}; // the first is all of them, the last what is private and writable
    struct dock_proc sizes;

    if (dock_proc_open(DOCK_PROC_SIZES, &sizes))
        return 0;
    dock_rawcall(SYS_pread64, sizes.fd, (long)text, sizeof text - 1, 0, 0, 0);
    dock_proc_done(&sizes);
    for (unsigned i = 0; i < 6 && *at; i++, at += *at == ' ')
        for (; *at >= '0' && *at <= '9'; at++)
            field[i] = field[i] * 10 + (uint64_t)(*at - '0');
    return field[5] ? field[0] - field[5] -
                          (dock_peek64(&dock_adopted_bytes) + dock_peek64(&dock_park_blank)) / dock_page()
                    : 0;
}

// Does any mapping hold a ring? An older kernel does not tell the shared ones apart: all are looked at there,
// and only for AIO.
static bool any_ring_is_mapped(bool aio)
{
    static uint64_t none_at; // of so many foreign pages none was a ring; 0: none is known
    uint64_t pages = aio ? 0 : foreign_pages();
    bool found = false;
    int err;

    // The walk costs by what is adopted, which is shared memory too.
    if (pages && pages == none_at)
        return false;
    err = dock_maps_walk_shared(is_ring, &found);
    if (err == -ENOTTY)
        err = aio ? dock_maps_walk(0, UINT64_MAX, is_ring, &found) : 0;
    none_at = err || found ? 0 : pages;
    return err || found;
}

// A ring of AIO never has a descriptor, one of io_uring need not.
static bool ring_pins(void)
{
    enum rings own = own_rings();
    bool aio = any_aio();

    return own == SOME_WITHOUT_DESCRIPTOR ||
           ((aio || own != NEVER_ANY || !dock_stop_is_alone()) && any_ring_is_mapped(aio));
}

// Descriptors last: then those that the rest looks at are known.
enum dock_adopt_why dock_fit_process(const struct dock_adopt *own)
{
    return ring_pins() || descriptor_pins(own) ? DOCK_WHY_PINNED : DOCK_WHY_NONE;
}

// ---- memory

// File pages in a group's charge go when memory is asked for.
static uint64_t reclaimable(const char *dir)
{
    char path[512], key[64];
    unsigned long long value;
    uint64_t sum = 0;
    FILE *f;

    if (snprintf(path, sizeof path, "%s/memory.stat", dir) >= (int)sizeof path || !(f = fopen(path, "re")))
        return 0;
    while (fscanf(f, "%63s %llu", key, &value) == 2)
        if (!strcmp(key, "inactive_file") || !strcmp(key, "active_file"))
            sum += value;
    fclose(f);
    return sum;
}

static uint64_t spare_in(const char *dir, const char *limit_name, const char *usage_name, uint64_t wanted)
{
    uint64_t limit = number_in(dir, limit_name), used, spare;

    if (limit >= (uint64_t)1 << 60)
        return UINT64_MAX;
    used = number_in(dir, usage_name);
    if (used == UINT64_MAX)
        return UINT64_MAX;
    spare = limit > used ? limit - used : 0;
    if (spare < wanted) {
        limit += reclaimable(dir);
        spare = limit > used ? limit - used : 0;
    }
    return spare;
}

// One line of /proc/self/cgroup: "0::/path" or "4:memory:/path". What the least of its groups has left.
static uint64_t spare_by_line(char *line, uint64_t wanted)
{
    char *controller = strchr(line, ':'), *path = controller ? strchr(controller + 1, ':') : NULL;
    char dir[400];
    bool v1 = controller && !strncmp(controller, ":memory:", 8);
    uint64_t least = UINT64_MAX;

    if (!path || (!v1 && strncmp(line, "0::", 3) != 0))
        return least;
    path++;
    path[strcspn(path, "\n")] = '\0';
    for (;;) { // every group above has a limit of its own
        snprintf(dir, sizeof dir, "/sys/fs/cgroup%s%s", v1 ? "/memory" : "", path);
        uint64_t spare = v1 ? spare_in(dir, "memory.limit_in_bytes", "memory.usage_in_bytes", wanted)
                            : spare_in(dir, "memory.max", "memory.current", wanted);
        least = spare < least ? spare : least;
        char *slash = strrchr(path, '/');
        if (!slash || !*path)
            return least;
        *slash = '\0';
    }
}

static uint64_t spare_now(uint64_t wanted)
{
    FILE *f = fopen("/proc/self/cgroup", "re");
    uint64_t least = UINT64_MAX;
    char line[512];

    while (f && fgets(line, sizeof line, f)) {
        uint64_t spare = spare_by_line(line, wanted);
        least = spare < least ? spare : least;
    }
    if (f)
        fclose(f);
    return least;
}

bool dock_fit_headroom(uint64_t bytes)
{
    static uint64_t credit, looked_ns; // where there was plenty a moment ago a part of it is there still
    uint64_t now = dock_now_ns(), spare;

    if (now - looked_ns < LOOK_NS && bytes <= credit) {
        credit -= bytes;
        return true;
    }
    spare = spare_now(bytes);
    looked_ns = now;
    credit = spare > FILL_BYTES ? (spare - FILL_BYTES) / 4 : 0;
    return bytes <= spare;
}
