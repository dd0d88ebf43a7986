// SPDX-License-Identifier: MIT
// timeout: 60
// Adoption where memory is short, and of memory that is not from an allocator.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arena/adopt_own.h"
#include "arena/procfile.h"
#include "device/internal.h"
#include "lib/duo.h"
#include "lib/filter.h"
#include "lib/fork.h"
#include "lib/maps.h"
#include "lib/tracing.h"

#define PAGE 4096u
#define PAGES 16u
#define RIGHTS (DOCK_ACCESS_LOCAL_WRITE | DOCK_ACCESS_REMOTE_READ | DOCK_ACCESS_REMOTE_WRITE)

// From here on one system call fails.
static bool answer(uint32_t call, uint32_t code_of)
{
    return !filter_call(call, SECCOMP_RET_ERRNO | code_of, SECCOMP_FILTER_FLAG_TSYNC);
}

// The file system of the arena is full: a store to it fails as tmpfs lets it fail.
static bool fill_file_system(void)
{
    return answer(SYS_pwrite64, ENOSPC);
}

static int without_room(void *arg)
{
    char *p = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct dock_dev *dev;
    struct dock_mr *mr;
    uint32_t pd;

    (void)arg;
    if (p == MAP_FAILED || dock_dev_open(NULL, &dev) || dock_pd_create(dev, &pd))
        return 1;
    if (dev->adopt.mode == DOCK_ADOPT_OFF)
        return 77;
    bytes_fill(p, PAGES * PAGE, 3);
    uint64_t sum = bytes_sum(p, PAGES * PAGE);
    if (!fill_file_system())
        return 77;
    if (dock_mr_register(dev, pd, (uintptr_t)p, PAGES * PAGE, (uintptr_t)p, RIGHTS, &mr) != -ENOMEM)
        return 2;
    if (!strstr(dock_log_last(), "no memory for"))
        return 3;
    if (bytes_sum(p, PAGES * PAGE) != sum || maps_look(p, PAGES * PAGE).private_anon != PAGES * PAGE)
        return 4;
    if (dock_peek64(&dev->port->adopt.bytes) || dock_pd_destroy(dev, pd) || dock_dev_close(dev))
        return 5;
    return 0;
}

static int status_of(int (*body)(void *), void *arg)
{
    int status;

    assert_int_equal(test_await(test_fork(body, arg), &status, 20000 * slow_down()), TEST_EXITED);
    return status;
}

static void a_full_file_system_refuses_the_registration(void **state)
{
    int status = status_of(without_room, NULL);

    (void)state;
    if (status == 77)
        skip();
    assert_int_equal(status, 0);
}

static int without_descriptors(void *arg)
{
    char *p = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const struct rlimit none = {0, 0};
    struct dock_dev *dev;
    struct dock_mr *mr;
    uint32_t pd;

    (void)arg;
    if (p == MAP_FAILED || dock_dev_open(NULL, &dev) || dock_pd_create(dev, &pd))
        return 1;
    bool adopts = dev->adopt.mode != DOCK_ADOPT_OFF;
    if (setrlimit(RLIMIT_NOFILE, &none) ||
        dock_mr_register(dev, pd, (uintptr_t)p, PAGES * PAGE, (uintptr_t)p, RIGHTS, &mr))
        return 2;
    if (dock_peek64(&dev->port->adopt.refused[DOCK_WHY_HOST]) != adopts)
        return 3;
    return dock_mr_deregister(mr) || dock_pd_destroy(dev, pd) || dock_dev_close(dev) ? 4 : 0;
}

static void without_a_descriptor_memory_stays_plain(void **state)
{
    (void)state;
    assert_int_equal(status_of(without_descriptors, NULL), 0);
}

static char initialised[PAGES * PAGE] = {1, 2, 3}, zeroed[PAGES * PAGE];

static void is_adopted_inside(char *at, size_t len)
{
    struct dock_dev *dev;
    struct dock_mr *mr;
    uint32_t pd;

    assert_int_equal(dock_dev_open(NULL, &dev), 0);
    if (dev->adopt.mode == DOCK_ADOPT_OFF) {
        assert_int_equal(dock_dev_close(dev), 0);
        skip();
    }
    assert_int_equal(dock_pd_create(dev, &pd), 0);
    uint64_t sum = bytes_sum(at, len);
    assert_int_equal(dock_mr_register(dev, pd, (uintptr_t)at, len, (uintptr_t)at, RIGHTS, &mr), 0);
    assert_true(maps_look(at, len).adopted >= len - 2 * PAGE);
    assert_int_equal(bytes_sum(at, len), sum);
    at[len / 2] ^= 1;
    sum = bytes_sum(at, len);
    assert_int_equal(dock_mr_deregister(mr), 0);
    assert_int_equal(bytes_sum(at, len), sum);
    assert_int_equal(maps_look(at, len).adopted, 0);
    assert_int_equal(dock_pd_destroy(dev, pd), 0);
    assert_int_equal(dock_dev_close(dev), 0);
}

static void static_data_is_adopted(void **state)
{
    (void)state;
    is_adopted_inside(initialised, sizeof initialised);
    is_adopted_inside(initialised, sizeof initialised); // no mapping of a file any more
    is_adopted_inside(zeroed, sizeof zeroed);
}

static void a_mapped_file_is_not(void **state)
{
    struct dock_dev *dev;
    struct dock_mr *mr;
    uint32_t pd;
    int fd = memfd_create("file", MFD_CLOEXEC);

    (void)state;
    assert_int_equal(ftruncate(fd, PAGES * PAGE), 0);
    char *p = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    assert_ptr_not_equal(p, MAP_FAILED);
    assert_int_equal(dock_dev_open(NULL, &dev), 0);
    assert_int_equal(dock_pd_create(dev, &pd), 0);
    assert_int_equal(dock_mr_register(dev, pd, (uintptr_t)p, PAGES * PAGE, (uintptr_t)p, RIGHTS, &mr), 0);
    assert_int_equal(maps_look(p, PAGES * PAGE).adopted, 0);
    assert_int_equal(dock_mr_deregister(mr), 0);
    assert_int_equal(dock_pd_destroy(dev, pd), 0);
    assert_int_equal(dock_dev_close(dev), 0);
    munmap(p, PAGES * PAGE);
    close(fd);
}

// The kernel may hold pages, or be asked to, as long as there is a context for reads under way or a program's
// own userfaultfd. 0, and what `close_one` is given; or it is not allowed here.
static int open_aio(uint64_t *out)
{
    aio_context_t ctx = 0;
    int ret = (int)syscall(SYS_io_setup, 4, &ctx);

    *out = ctx;
    return ret;
}

static void close_aio(uint64_t ctx)
{
    assert_int_equal(syscall(SYS_io_destroy, ctx), 0);
}

static int open_faults(uint64_t *out)
{
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | 1); // 1: of its own stores only, which needs no right

    *out = (uint64_t)fd;
    return fd < 0 ? -1 : 0;
}

static void close_faults(uint64_t fd)
{
    assert_int_equal(close((int)fd), 0);
}

static void not_beside(int (*open_one)(uint64_t *), void (*close_one)(uint64_t))
{
    char *p = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct dock_dev *dev;
    struct dock_mr *mr;
    uint64_t pinner;
    uint32_t pd;

    assert_ptr_not_equal(p, MAP_FAILED);
    if (open_one(&pinner))
        skip();
    assert_int_equal(dock_dev_open(NULL, &dev), 0);
    assert_int_equal(dock_pd_create(dev, &pd), 0);
    bool adopts = dev->adopt.mode != DOCK_ADOPT_OFF;
    assert_int_equal(dock_mr_register(dev, pd, (uintptr_t)p, PAGES * PAGE, (uintptr_t)p, RIGHTS, &mr), 0);
    assert_int_equal(maps_look(p, PAGES * PAGE).adopted, 0);
    assert_int_equal(dock_peek64(&dev->port->adopt.refused[DOCK_WHY_PINNED]), adopts);
    assert_int_equal(dock_mr_deregister(mr), 0);
    close_one(pinner);
    assert_int_equal(dock_mr_register(dev, pd, (uintptr_t)p, PAGES * PAGE, (uintptr_t)p, RIGHTS, &mr), 0);
    assert_true(maps_look(p, PAGES * PAGE).adopted >=
                (adopts ? (PAGES - 4) * PAGE : 0)); // but a thread's own
    assert_int_equal(dock_mr_deregister(mr), 0);
    assert_int_equal(dock_pd_destroy(dev, pd), 0);
    assert_int_equal(dock_dev_close(dev), 0);
    munmap(p, PAGES * PAGE);
}

// Its process goes on without the thread that it began with, for which /proc shows nothing any more.
struct heir {
    struct dock_dev *dev;
    uint32_t pd;
    pthread_t first;
};

static void *register_alone(void *arg)
{
    struct heir *h = arg;
    char *p = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct dock_mr *mr;

    if (p == MAP_FAILED || pthread_join(h->first, NULL))
        _exit(2);
    memset(p, 1, PAGES * PAGE);
    if (dock_mr_register(h->dev, h->pd, (uintptr_t)p, PAGES * PAGE, (uintptr_t)p, RIGHTS, &mr))
        _exit(3);
    _exit(dock_peek64(&h->dev->port->adopt.refused[DOCK_WHY_PINNED]) == 1 ? 0 : 4);
}

static int first_thread_ends(void *arg)
{
    static struct heir h;
    char *p = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct dock_mr *mr;
    uint64_t pinner;
    pthread_t heir;

    (void)arg;
    h.first = pthread_self();
    if (p == MAP_FAILED || dock_dev_open(NULL, &h.dev) || dock_pd_create(h.dev, &h.pd) ||
        dock_mr_register(h.dev, h.pd, (uintptr_t)p, PAGES * PAGE, (uintptr_t)p, RIGHTS, &mr))
        return 1; // what /proc has is open from here on
    if (h.dev->adopt.mode == DOCK_ADOPT_OFF || open_faults(&pinner))
        return 77;
    if (pthread_create(&heir, NULL, register_alone, &h))
        return 1;
    pthread_exit(NULL);
}

static void not_beside_userfaultfd_when_the_first_thread_has_ended(void **state)
{
    (void)state;
    tracing_or_skip();
    int status = status_of(first_thread_ends, NULL);
    if (status == 77)
        skip();
    assert_int_equal(status, 0);
}

static void not_beside_aio(void **state)
{
    (void)state;
    not_beside(open_aio, close_aio);
}

static void not_beside_userfaultfd(void **state)
{
    (void)state;
    not_beside(open_faults, close_faults);
}

// A ring that has no descriptor any more: the thread that made it knows it by its own number.
struct ring {
    void *at;
    uint32_t number;
};

// false: not on this kernel, or not allowed.
static bool open_ring(struct ring *r)
{
    uint32_t params[30] = {0}; // struct io_uring_params
    int fd = (int)syscall(SYS_io_uring_setup, 4, params);
    struct {
        uint32_t number, rest;
        uint64_t fd;
    } own = {.number = UINT32_MAX, .fd = (uint64_t)fd};

    if (fd < 0)
        return false;
    r->at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    bool kept = r->at != MAP_FAILED && syscall(SYS_io_uring_register, fd, 20, &own, 1) == 1;
    r->number = own.number;
    // Before Linux 6.3 it cannot be asked by its number, nor given back.
    if (kept && syscall(SYS_io_uring_register, r->number, 8u | 1u << 31, 1, 1) == -1 && errno != EFAULT) {
        syscall(SYS_io_uring_register, fd, 21, &own, 1);
        kept = false;
    }
    if (!kept && r->at != MAP_FAILED)
        munmap(r->at, PAGE);
    close(fd);
    return kept;
}

static void close_ring(const struct ring *r)
{
    struct {
        uint32_t number, rest;
        uint64_t none;
    } own = {.number = r->number};

    munmap(r->at, PAGE);
    assert_int_equal(syscall(SYS_io_uring_register, r->number, 21u | 1u << 31, &own, 1), 1);
}

static int open_own_ring(uint64_t *out)
{
    static struct ring r;

    *out = (uintptr_t)&r;
    return open_ring(&r) ? 0 : -1;
}

static void close_own_ring(uint64_t r)
{
    close_ring((const struct ring *)(uintptr_t)r);
}

static void not_beside_a_ring_without_a_descriptor(void **state)
{
    (void)state;
    not_beside(open_own_ring, close_own_ring);
}

// A filter in place of the kernel: whatever it says, it is no ring.
static int where_rings_are_refused(void *arg)
{
    char *p = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct dock_dev *dev;
    struct dock_mr *mr;
    uint32_t pd;

    if (p == MAP_FAILED || dock_dev_open(NULL, &dev) || dock_pd_create(dev, &pd))
        return 1;
    if (dev->adopt.mode == DOCK_ADOPT_OFF || !answer(SYS_io_uring_register, *(const uint32_t *)arg))
        return 77;
    if (dock_mr_register(dev, pd, (uintptr_t)p, PAGES * PAGE, (uintptr_t)p, RIGHTS, &mr))
        return 2;
    if (maps_look(p, PAGES * PAGE).adopted < (PAGES - 4) * PAGE) // but a thread's own
        return 3;
    return dock_mr_deregister(mr) || dock_pd_destroy(dev, pd) || dock_dev_close(dev) ? 4 : 0;
}

static void a_refused_question_is_no_ring(void **state)
{
    static const uint32_t answers[] = {EOPNOTSUPP, EPERM, ENOSYS, EINVAL, ENOTTY};

    (void)state;
    for (unsigned i = 0; i < sizeof answers / sizeof *answers; i++) {
        int status = status_of(where_rings_are_refused, (void *)(uintptr_t)&answers[i]);
        if (status == 77)
            skip();
        if (status)
            fail_msg("io_uring_register answers %s: exit status %d, expected 0", strerror((int)answers[i]),
                     status);
    }
}

// A ring of another thread: it is seen by its mapping.
struct owner {
    int made[2], end[2];
    bool can;
};

static void *own_a_ring(void *arg)
{
    struct owner *o = arg;
    struct ring r = {0};
    char byte;

    o->can = open_ring(&r);
    if (write(o->made[1], "", 1) != 1 || read(o->end[0], &byte, 1) != 0)
        abort();
    if (o->can)
        close_ring(&r);
    return NULL;
}

static bool no_more(void *arg, const struct dock_vma *v)
{
    (void)arg;
    (void)v;
    return false;
}

// Does this kernel find shared mappings among others? Older ones do not, and such a ring is not seen there.
static bool shared_are_told_apart(void)
{
    dock_adopt_lock();
    int err = dock_maps_walk_shared(no_more, NULL);
    dock_adopt_unlock();
    return err != -ENOTTY;
}

static void not_beside_a_ring_of_another_thread(void **state)
{
    char *p = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), byte;
    struct owner o;
    struct dock_dev *dev;
    struct dock_mr *mr;
    pthread_t t;
    uint32_t pd;

    (void)state;
    assert_true(!pipe2(o.made, O_CLOEXEC) && !pipe2(o.end, O_CLOEXEC));
    assert_int_equal(pthread_create(&t, NULL, own_a_ring, &o), 0);
    assert_int_equal(read(o.made[0], &byte, 1), 1);
    assert_int_equal(dock_dev_open(NULL, &dev), 0);
    assert_int_equal(dock_pd_create(dev, &pd), 0);
    assert_int_equal(dock_mr_register(dev, pd, (uintptr_t)p, PAGES * PAGE, (uintptr_t)p, RIGHTS, &mr), 0);
    uint64_t adopted = maps_look(p, PAGES * PAGE).adopted;
    bool can = o.can && shared_are_told_apart();
    assert_int_equal(dock_mr_deregister(mr), 0);
    close(o.end[1]);
    pthread_join(t, NULL);
    assert_int_equal(dock_pd_destroy(dev, pd), 0);
    assert_int_equal(dock_dev_close(dev), 0);
    munmap(p, PAGES * PAGE);
    close(o.end[0]);
    close(o.made[0]);
    close(o.made[1]);
    if (!can)
        skip();
    assert_int_equal(adopted, 0);
}

// A descriptor far behind the others, which are few: it is found by the list.
static void not_beside_a_far_descriptor(void **state)
{
    uint64_t near;
    int far;

    (void)state;
    if (open_faults(&near))
        skip();
    far = fcntl((int)near, F_DUPFD_CLOEXEC, 900);
    close((int)near);
    if (far < 0)
        skip();
    char *p = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct dock_dev *dev;
    struct dock_mr *mr;
    uint32_t pd;
    assert_int_equal(dock_dev_open(NULL, &dev), 0);
    assert_int_equal(dock_pd_create(dev, &pd), 0);
    assert_int_equal(dock_mr_register(dev, pd, (uintptr_t)p, PAGES * PAGE, (uintptr_t)p, RIGHTS, &mr), 0);
    assert_int_equal(maps_look(p, PAGES * PAGE).adopted, 0);
    assert_int_equal(dock_mr_deregister(mr), 0);
    assert_int_equal(dock_pd_destroy(dev, pd), 0);
    assert_int_equal(dock_dev_close(dev), 0);
    munmap(p, PAGES * PAGE);
    close(far);
}

static dock_a32 comes_and_goes;

static void *come_and_go(void *arg)
{
    (void)arg;
    while (dock_peek32(&comes_and_goes)) {
        struct dock_dev *dev;
        if (dock_dev_open(NULL, &dev) || dock_dev_close(dev))
            abort();
    }
    return NULL;
}

// Regions that overlap: every move pauses all devices, also one that is being opened or closed.
static void beside_devices_that_come_and_go(void **state)
{
    char *p = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct dock_mr *edge, *all;
    struct dock_dev *dev;
    pthread_t t;
    uint32_t pd;

    (void)state;
    assert_int_equal(dock_dev_open(NULL, &dev), 0);
    assert_int_equal(dock_pd_create(dev, &pd), 0);
    dock_set32(&comes_and_goes, 1);
    assert_int_equal(pthread_create(&t, NULL, come_and_go, NULL), 0);
    for (unsigned i = 0; i < 200 / slow_down(); i++) {
        uint64_t at = (uintptr_t)p;
        assert_int_equal(dock_mr_register(dev, pd, at + 64, 128, at + 64, RIGHTS, &edge), 0);
        assert_int_equal(dock_mr_register(dev, pd, at, PAGES * PAGE, at, RIGHTS, &all), 0);
        assert_int_equal(dock_mr_deregister(all), 0);
        assert_int_equal(dock_mr_deregister(edge), 0);
    }
    dock_set32(&comes_and_goes, 0);
    pthread_join(t, NULL);
    assert_int_equal(maps_look(p, PAGES * PAGE).private_anon, PAGES * PAGE);
    assert_int_equal(dock_pd_destroy(dev, pd), 0);
    assert_int_equal(dock_dev_close(dev), 0);
    munmap(p, PAGES * PAGE);
}

// Numbers of inodes are those of a file system: a file of the program's may have that of the arena.
static void a_file_with_the_number_of_the_arena_is_not_the_arena(void **state)
{
    int file = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    struct dock_dev *dev;
    struct stat st;

    (void)state;
    if (file < 0 || fstat(file, &st))
        skip();
    assert_int_equal(dock_dev_open(NULL, &dev), 0);
    assert_true(dock_view_leads(&dev->arena.view));
    const ino_t inode = dev->arena.view.inode;
    const int fd = dev->arena.view.fd;
    int arena = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    assert_true(arena >= 0 && dup2(file, fd) >= 0);
    dev->arena.view.inode = st.st_ino;
    bool taken = dock_view_leads(&dev->arena.view);
    dev->arena.view.inode = inode;
    assert_true(dup3(arena, fd, O_CLOEXEC) >= 0);
    close(arena);
    close(file);
    assert_false(taken);
    assert_int_equal(dock_dev_close(dev), 0);
}

// Memory that may only be read is written to on its way back. Where it may not be made writable it stays
// where it is until it may.
static int read_only_without_room_for_data(void *arg)
{
    const size_t len = 1u << 20; // its own mapping waits
    char *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct rlimit was, none;
    struct dock_dev *dev;
    struct dock_mr *mr;
    uint32_t pd;

    (void)arg;
    if (p == MAP_FAILED || dock_dev_open(NULL, &dev) || dock_pd_create(dev, &pd))
        return 1;
    memset(p, 7, len);
    bool locked = !syscall(SYS_mlock2, p, len, 0); // a sanitizer's mlock does nothing
    if (mprotect(p, len, PROT_READ) ||
        dock_mr_register(dev, pd, (uintptr_t)p, len, (uintptr_t)p, DOCK_ACCESS_REMOTE_READ, &mr))
        return 2;
    bool adopts = mr->hold.pieces;
    getrlimit(RLIMIT_DATA, &was);
    none = (struct rlimit){PAGE, was.rlim_max}; // 0 is as none for a kernel that takes valgrind into account
    if (setrlimit(RLIMIT_DATA, &none) || dock_mr_deregister(mr))
        return 3;
    if (maps_look(p, len).private_anon != (adopts ? 0 : len) || dock_lock_is((uintptr_t)p, len) != locked)
        return 4;
    for (size_t i = 0; i < len; i++)
        if (p[i] != 7)
            return 5;
    setrlimit(RLIMIT_DATA, &was);
    if (dock_pd_destroy(dev, pd) || dock_dev_close(dev) || maps_look(p, len).private_anon != len ||
        dock_lock_is((uintptr_t)p, len) != locked)
        return 6;
    for (size_t i = 0; i < len; i++)
        if (p[i] != 7)
            return 7;
    return 0;
}

static void memory_that_may_not_be_made_writable_stays(void **state)
{
    (void)state;
    assert_int_equal(status_of(read_only_without_room_for_data, NULL), 0);
}

static int wait_for_the_end(void *arg)
{
    (void)arg;
    return pause();
}

// A file, or another process's file of the same name, which answers as ours would.
static int others_file(pid_t other)
{
    char path[40];
    int file;

    snprintf(path, sizeof path, "/proc/%d/maps", other);
    if (other)
        return open(path, O_RDONLY | O_CLOEXEC);
    char text[8192] = "0 is what it begins with\n";
    file = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    return file < 0 || write(file, text, sizeof text) != sizeof text || lseek(file, 5, SEEK_SET) != 5 ? -1
                                                                                                      : file;
}

static int seven_is_there(void *p)
{
    return *(volatile char *)p != 7;
}

// Files of /proc stay open from one move to the next. The program has closed one, and its own got the number.
static void a_file_with_the_number_of_one_of_ours_is_left_alone(void **state)
{
    const enum dock_proc_name names[] = {DOCK_PROC_MAPS, DOCK_PROC_AIO, DOCK_PROC_TASKS,
                                         DOCK_PROC_DESCRIPTORS};
    char *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned count = sizeof names / sizeof *names;
    struct dock_dev *dev;
    struct dock_mr *mr;
    uint32_t pd;

    (void)state;
    *p = 1;
    pid_t other = test_fork(wait_for_the_end, NULL); // which has other memory there
    assert_int_equal(dock_dev_open(NULL, &dev), 0);
    bool adopts = dev->adopt.mode != DOCK_ADOPT_OFF;
    assert_int_equal(dock_pd_create(dev, &pd), 0);
    for (unsigned i = 0; adopts && i < 2 * count; i++) {
        assert_int_equal(dock_mr_register(dev, pd, (uintptr_t)p, PAGE, (uintptr_t)p, RIGHTS, &mr), 0);
        assert_int_equal(dock_mr_deregister(mr), 0);
        assert_int_equal(dock_mr_register(dev, pd, (uintptr_t)p, PAGE, (uintptr_t)p, RIGHTS, &mr), 0);
        int kept = (int)dock_proc_kept(names[i % count]), file = others_file(i < count ? 0 : other);
        assert_true(kept >= 0 && file >= 0 && dup3(file, kept, O_CLOEXEC) >= 0);
        assert_int_equal(dock_mr_deregister(mr), 0);
        assert_int_equal(maps_look(p, PAGE).private_anon, PAGE);
        assert_int_equal(dock_mr_register(dev, pd, (uintptr_t)p, PAGE, (uintptr_t)p, RIGHTS, &mr), 0);
        assert_int_equal(mr->hold.pieces, 1);
        assert_int_equal(dock_mr_deregister(mr), 0);
        assert_int_equal(maps_look(p, PAGE).private_anon, PAGE);
        assert_int_equal(lseek(file, 0, SEEK_CUR), i < count ? 5 : 0);
        assert_int_equal(fcntl(kept, F_GETFD), FD_CLOEXEC);
        close(kept);
        close(file);
    }
    test_kill(other);
    assert_int_equal(dock_pd_destroy(dev, pd), 0);
    assert_int_equal(dock_dev_close(dev), 0);
}

// Another process has memory there that may not be written. Its answer refuses nothing here.
static void what_another_process_may_not_write(void **state)
{
    char *p = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct dock_dev *dev;
    struct dock_mr *mr;
    uint32_t pd;

    (void)state;
    pid_t other = test_fork(wait_for_the_end, NULL);
    assert_int_equal(mprotect(p, PAGE, PROT_READ | PROT_WRITE), 0);
    assert_int_equal(dock_dev_open(NULL, &dev), 0);
    assert_int_equal(dock_pd_create(dev, &pd), 0);
    assert_int_equal(dock_mr_register(dev, pd, (uintptr_t)p, PAGE, (uintptr_t)p, RIGHTS, &mr), 0);
    bool adopted = maps_look(p, PAGE).adopted;
    assert_int_equal(dock_mr_deregister(mr), 0);
    int kept = (int)dock_proc_kept(DOCK_PROC_MAPS), file = others_file(other);
    if (adopted && kept >= 0) {
        assert_true(file >= 0 && dup3(file, kept, O_CLOEXEC) >= 0);
        assert_int_equal(dock_mr_register(dev, pd, (uintptr_t)p, PAGE, (uintptr_t)p, RIGHTS, &mr), 0);
        assert_int_equal(dock_mr_deregister(mr), 0);
        close(kept);
    }
    close(file);
    test_kill(other);
    assert_int_equal(dock_pd_destroy(dev, pd), 0);
    assert_int_equal(dock_dev_close(dev), 0);
}

#define LEVELS 25

static void name_of_level(char name[201])
{
    memset(name, 'x', 200);
    name[200] = '\0';
}

// A page of a file with a name of more than PATH_MAX bytes.
static char *map_far_down(void)
{
    char name[201], top[] = "/tmp/drydock-far-XXXXXX", *p = MAP_FAILED;
    int depth = 0, fd;

    name_of_level(name);
    if (!mkdtemp(top) || chdir(top))
        return MAP_FAILED;
    while (depth < LEVELS && !mkdir(name, 0700) && !chdir(name))
        depth++;
    fd = open("file", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (depth == LEVELS && fd >= 0 && !ftruncate(fd, PAGE))
        p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    while (depth-- && !chdir(".."))
        ;
    return p;
}

static void remove_far_down(void)
{
    char name[201];
    int depth = 0;

    name_of_level(name);
    while (depth < LEVELS && !chdir(name))
        depth++;
    unlink("file");
    for (; depth && !chdir(".."); depth--)
        rmdir(name);
}

// Mappings are looked through beside it: over a fork all of them.
static int beside_a_long_name(void *arg)
{
    char *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), top[64];
    char *far = map_far_down();
    struct dock_dev *dev;
    struct dock_mr *mr;
    uint32_t pd;
    int status, err = 0;

    (void)arg;
    if (far == MAP_FAILED || !getcwd(top, sizeof top) || dock_dev_open(NULL, &dev) ||
        dock_pd_create(dev, &pd))
        return 1;
    *p = 7;
    if (dev->adopt.mode == DOCK_ADOPT_OFF)
        err = 77;
    else if (dock_mr_register(dev, pd, (uintptr_t)p, PAGE, (uintptr_t)p, RIGHTS, &mr) ||
             maps_look(p, PAGE).adopted != PAGE)
        err = 2;
    else if (test_await(test_fork(seven_is_there, p), &status, 20000 * slow_down()) != TEST_EXITED || status)
        err = 3;
    remove_far_down();
    return chdir("/") || rmdir(top) ? 4 : err;
}

static void a_file_with_a_long_name_hides_nothing(void **state)
{
    int status = status_of(beside_a_long_name, NULL);

    (void)state;
    if (status == 77)
        skip();
    assert_int_equal(status, 0);
}

int main(void)
{
    if (getenv("DRYDOCK_EMULATED")) // an emulator has mappings of its own, which do not stand
        return 77;
    setenv("DRYDOCK_ADOPT", "inner", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_file_system_refuses_the_registration),
        cmocka_unit_test(without_a_descriptor_memory_stays_plain),
        cmocka_unit_test(static_data_is_adopted),
        cmocka_unit_test(a_mapped_file_is_not),
        cmocka_unit_test(not_beside_aio),
        cmocka_unit_test(not_beside_userfaultfd),
        cmocka_unit_test(not_beside_userfaultfd_when_the_first_thread_has_ended),
        cmocka_unit_test(not_beside_a_ring_without_a_descriptor),
        cmocka_unit_test(a_refused_question_is_no_ring),
        cmocka_unit_test(not_beside_a_ring_of_another_thread),
        cmocka_unit_test(not_beside_a_far_descriptor),
        cmocka_unit_test(a_file_with_the_number_of_the_arena_is_not_the_arena),
        cmocka_unit_test(beside_devices_that_come_and_go),
        cmocka_unit_test(a_file_with_the_number_of_one_of_ours_is_left_alone),
        cmocka_unit_test(memory_that_may_not_be_made_writable_stays),
        cmocka_unit_test(what_another_process_may_not_write),
        cmocka_unit_test(a_file_with_a_long_name_hides_nothing),
    };

    return cmocka_run_group_tests_name("adoption at its limits", tests, NULL, NULL);
}
