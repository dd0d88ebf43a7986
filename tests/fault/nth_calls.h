// SPDX-License-Identifier: MIT
// What a device asks of the C library, as functions of this program that can be made to fail: the n-th call,
// whichever thread makes it. Included by one program, whose own functions these become. Not under sanitizers,
// which need them for themselves.
#ifndef TESTS_FAULT_NTH_CALLS_H
#define TESTS_FAULT_NTH_CALLS_H

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/order.h"
#include "base/rawcall.h"

static dock_a64 countdown; // the call that fails; 0 = none
static _Atomic(const char *) failed_call;
static _Atomic int failed_code;
static _Atomic long live_blocks, live_maps;

static bool its_turn(const char *call, int code)
{
    uint64_t left = dock_peek64(&countdown);

    while (left && !dock_claim64(&countdown, &left, left - 1))
        ;
    if (left != 1)
        return false;
    atomic_store(&failed_code, code);
    atomic_store(&failed_call, call);
    return true;
}

static bool fails(const char *call, int code)
{
    bool turn = its_turn(call, code);

    if (turn)
        errno = code;
    return turn;
}

// Calls without libc, of a program whose library was compiled with DOCK_RAWCALL_FAILS. Not those that only
// let go of something, wait, wake or ask who we are, nor fstat: a descriptor that it refuses is taken for one
// that the program has closed.
static const struct {
    long number;
    const char *name;
    int code;
} raw_calls[] = {
    {SYS_openat, "raw openat", EMFILE},
    {SYS_read, "raw read", EIO},
    {SYS_pread64, "raw pread64", EIO},
    {SYS_pwrite64, "raw pwrite64", ENOSPC},
    {SYS_getdents64, "raw getdents64", EIO},
    {SYS_readlinkat, "raw readlinkat", EACCES},
    {SYS_lseek, "raw lseek", EIO},
    {SYS_ioctl, "raw ioctl", ENOTTY},
    {SYS_eventfd2, "raw eventfd2", EMFILE},
    {SYS_mmap, "raw mmap", ENOMEM},
    {SYS_madvise, "raw madvise", EINVAL},
    {SYS_fallocate, "raw fallocate", ENOSPC},
    {SYS_io_uring_register, "raw io_uring_register", EPERM},
    {SYS_ptrace, "raw ptrace", EPERM},
    {SYS_process_vm_writev, "raw process_vm_writev", ENOMEM},
};

long dock_rawcall_fails(long number);

long dock_rawcall_fails(long number)
{
    for (unsigned i = 0; i < sizeof raw_calls / sizeof *raw_calls; i++)
        if (raw_calls[i].number == number)
            return its_turn(raw_calls[i].name, raw_calls[i].code) ? -raw_calls[i].code : 0;
    return 0;
}

// What the failed call may become: its own code, or another where it stands for something else.
static inline bool failed_becomes(int code)
{
    static const struct {
        const char *call;
        int code;
    } other[] = {
        {"fallocate", ENOMEM},    // no room
        {"ftruncate", ENOMEM},    // as above
        {"raw pwrite64", ENOMEM}, // as above, of what is adopted
        {"fstat", ENOMEM},        // a window cannot be mapped
        {"raw madvise", ENOMEM},  // as above
        {"fcntl", EPERM},         // an arena whose seals cannot be read
    };
    bool known = code == atomic_load(&failed_code);

    for (unsigned i = 0; i < sizeof other / sizeof *other; i++)
        known |= code == other[i].code && !strcmp(atomic_load(&failed_call), other[i].call);
    return known;
}

// Did the kernel's copy between processes fail? Of all that a life calls it alone ends as a request's status:
// the device tells it as a fault of the source or at the target.
static inline bool copy_failed(void)
{
    const char *call = atomic_load(&failed_call);

    return call && !strncmp(call, "process_vm_", 11);
}

static dock_a32 life_number; // which one: what fails, fails in neighbouring lives in different ways

static bool waits_succeed; // of a program that waits by calls of its own as well

// Of calls that wait, and are begun anew after a signal: a signal, or a fault that is told.
static int interruption(void)
{
    return dock_peek32(&life_number) & 1 ? EINTR : EIO;
}

// The engine's sleep. Every fourth life is on a kernel that has epoll_wait alone; in the others the newer
// call fails as for a signal, with a fault, and as if it were forbidden from now on. None of them may end the
// engine's work, nor keep it busy.
static bool no_fine_wait(void)
{
    static const int code[4] = {ENOSYS, EINTR, EIO, ENOSYS};
    uint32_t kind = dock_peek32(&life_number) % 4;

    if (kind)
        return fails("epoll_pwait2", code[kind]);
    errno = ENOSYS;
    return true;
}

// The n-th call from now on fails; 0: none.
static inline void arm(long n)
{
    if (n)
        dock_set32(&life_number, (uint32_t)n);
    dock_publish64(&countdown, (uint64_t)n);
}

static long (*real_syscall)(long, ...);
static FILE *(*real_fopen)(const char *, const char *), *(*real_fdopen)(int, const char *);
static int (*real_getifaddrs)(struct ifaddrs **);

static __attribute__((constructor)) void find_real(void)
{
    real_syscall = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    real_fopen = (FILE * (*)(const char *, const char *)) dlsym(RTLD_NEXT, "fopen");
    real_fdopen = (FILE * (*)(int, const char *)) dlsym(RTLD_NEXT, "fdopen");
    real_getifaddrs = (int (*)(struct ifaddrs **))dlsym(RTLD_NEXT, "getifaddrs");
}

#define SYS(...) real_syscall(__VA_ARGS__)

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void __libc_free(void *);

void *malloc(size_t size)
{
    void *p = fails("malloc", ENOMEM) ? NULL : __libc_malloc(size);
    live_blocks += p != NULL;
    return p;
}

void *calloc(size_t n, size_t size)
{
    void *p = fails("calloc", ENOMEM) ? NULL : __libc_calloc(n, size);
    live_blocks += p != NULL;
    return p;
}

void *realloc(void *old, size_t size)
{
    void *p = fails("realloc", ENOMEM) ? NULL : __libc_realloc(old, size);
    live_blocks += p != NULL && old == NULL;
    return p;
}

void *aligned_alloc(size_t align, size_t size)
{
    void *p = fails("aligned_alloc", ENOMEM) ? NULL : __libc_memalign(align, size);
    live_blocks += p != NULL;
    return p;
}

void free(void *p)
{
    live_blocks -= p != NULL;
    __libc_free(p);
}

long syscall(long n, ...)
{
    long a[6];
    va_list args;

    va_start(args, n);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(args, long);
    va_end(args);
    if ((n == SYS_pidfd_open && fails("pidfd_open", ENOSYS)) ||
        (n == SYS_membarrier && fails("membarrier", ENOSYS)) || (n == SYS_epoll_pwait2 && no_fine_wait()))
        return -1;
    return SYS(n, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int open(const char *path, int flags, ...)
{
    return fails("open", EMFILE) ? -1 : (int)SYS(SYS_openat, AT_FDCWD, path, flags, 0600);
}

int openat(int dir, const char *path, int flags, ...)
{
    return fails("openat", EMFILE) ? -1 : (int)SYS(SYS_openat, dir, path, flags, 0600);
}

int mkdir(const char *path, mode_t mode)
{
    return fails("mkdir", ENOSPC) ? -1 : (int)SYS(SYS_mkdirat, AT_FDCWD, path, mode);
}

int memfd_create(const char *name, unsigned flags)
{
    return fails("memfd_create", EMFILE) ? -1 : (int)SYS(SYS_memfd_create, name, flags);
}

int fcntl(int fd, int command, ...)
{
    va_list args;
    va_start(args, command);
    void *arg = va_arg(args, void *);
    va_end(args);
    return fails("fcntl", ENOLCK) ? -1 : (int)SYS(SYS_fcntl, fd, command, arg);
}

int ftruncate(int fd, off_t size)
{
    return fails("ftruncate", ENOSPC) ? -1 : (int)SYS(SYS_ftruncate, fd, size);
}

int fallocate(int fd, int mode, off_t off, off_t size)
{
    return fails("fallocate", ENOSPC) ? -1 : (int)SYS(SYS_fallocate, fd, mode, off, size);
}

int posix_fallocate(int fd, off_t off, off_t size)
{
    return fails("posix_fallocate", ENOSPC) || SYS(SYS_fallocate, fd, 0, off, size) ? errno : 0;
}

ssize_t pread(int fd, void *to, size_t size, off_t off)
{
    return fails("pread", EIO) ? -1 : SYS(SYS_pread64, fd, to, size, off);
}

ssize_t pwrite(int fd, const void *from, size_t size, off_t off)
{
    return fails("pwrite", ENOSPC) ? -1 : SYS(SYS_pwrite64, fd, from, size, off);
}

void *mmap(void *at, size_t size, int prot, int flags, int fd, off_t off)
{
    void *p = fails("mmap", ENOMEM) ? MAP_FAILED : (void *)SYS(SYS_mmap, at, size, prot, flags, fd, off);
    live_maps += p != MAP_FAILED;
    return p;
}

int munmap(void *at, size_t size)
{
    live_maps--;
    return (int)SYS(SYS_munmap, at, size);
}

int mprotect(void *at, size_t size, int prot)
{
    return fails("mprotect", ENOMEM) ? -1 : (int)SYS(SYS_mprotect, at, size, prot);
}

int madvise(void *at, size_t size, int advice)
{
    return fails("madvise", EINVAL) ? -1 : (int)SYS(SYS_madvise, at, size, advice);
}

int socket(int family, int type, int protocol)
{
    return fails("socket", EMFILE) ? -1 : (int)SYS(SYS_socket, family, type, protocol);
}

int bind(int fd, const struct sockaddr *a, socklen_t len)
{
    return fails("bind", ENOSPC) ? -1 : (int)SYS(SYS_bind, fd, a, len);
}

int listen(int fd, int backlog)
{
    return fails("listen", ENOBUFS) ? -1 : (int)SYS(SYS_listen, fd, backlog);
}

int connect(int fd, const struct sockaddr *a, socklen_t len)
{
    return fails("connect", ENOBUFS) ? -1 : (int)SYS(SYS_connect, fd, a, len);
}

int accept4(int fd, struct sockaddr *a, socklen_t *len, int flags)
{
    return fails("accept4", EMFILE) ? -1 : (int)SYS(SYS_accept4, fd, a, len, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
    return fails("sendmsg", ENOBUFS) ? -1 : SYS(SYS_sendmsg, fd, m, flags);
}

ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
    return fails("recvmsg", ENOMEM) ? -1 : SYS(SYS_recvmsg, fd, m, flags);
}

int eventfd(unsigned count, int flags)
{
    return fails("eventfd", EMFILE) ? -1 : (int)SYS(SYS_eventfd2, count, flags);
}

int epoll_create1(int flags)
{
    return fails("epoll_create1", EMFILE) ? -1 : (int)SYS(SYS_epoll_create1, flags);
}

int epoll_ctl(int ep, int op, int fd, struct epoll_event *e)
{
    return op != EPOLL_CTL_DEL && fails("epoll_ctl", ENOSPC) ? -1 : (int)SYS(SYS_epoll_ctl, ep, op, fd, e);
}

ssize_t process_vm_readv(pid_t pid, const struct iovec *l, unsigned long nl, const struct iovec *r,
                         unsigned long nr, unsigned long flags)
{
    return fails("process_vm_readv", ENOMEM) ? -1 : SYS(SYS_process_vm_readv, pid, l, nl, r, nr, flags);
}

ssize_t process_vm_writev(pid_t pid, const struct iovec *l, unsigned long nl, const struct iovec *r,
                          unsigned long nr, unsigned long flags)
{
    return fails("process_vm_writev", ENOMEM) ? -1 : SYS(SYS_process_vm_writev, pid, l, nl, r, nr, flags);
}

int fstat(int fd, struct stat *st)
{
    return fails("fstat", EIO) ? -1 : (int)SYS(SYS_fstat, fd, st);
}

int stat(const char *path, struct stat *st)
{
    return fails("stat", EACCES) ? -1 : (int)SYS(SYS_newfstatat, AT_FDCWD, path, st, 0);
}

int fstatat(int dir, const char *path, struct stat *st, int flags)
{
    return fails("fstatat", EACCES) ? -1 : (int)SYS(SYS_newfstatat, dir, path, st, flags);
}

ssize_t readlink(const char *path, char *to, size_t size)
{
    return fails("readlink", EACCES) ? -1 : SYS(SYS_readlinkat, AT_FDCWD, path, to, size);
}

int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
    return fails("getsockopt", ENOBUFS) ? -1 : (int)SYS(SYS_getsockopt, fd, level, name, value, len);
}

int getifaddrs(struct ifaddrs **list)
{
    return fails("getifaddrs", ENOBUFS) ? -1 : real_getifaddrs(list);
}

FILE *fopen(const char *path, const char *mode)
{
    return fails("fopen", EMFILE) ? NULL : real_fopen(path, mode);
}

FILE *fdopen(int fd, const char *mode)
{
    return fails("fdopen", ENOMEM) ? NULL : real_fdopen(fd, mode);
}

int pipe2(int fd[2], int flags)
{
    return fails("pipe2", EMFILE) ? -1 : (int)SYS(SYS_pipe2, fd, flags);
}

// A read that a signal ends is begun anew, or told to who waits in it; with a fault the file has told
// nothing.
ssize_t read(int fd, void *to, size_t size)
{
    return !waits_succeed && fails("read", interruption()) ? -1 : SYS(SYS_read, fd, to, size);
}

ssize_t write(int fd, const void *from, size_t size)
{
    return !waits_succeed && fails("write", interruption()) ? -1 : SYS(SYS_write, fd, from, size);
}

int poll(struct pollfd *p, nfds_t n, int ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    return !waits_succeed && fails("poll", interruption())
               ? -1
               : (int)SYS(SYS_ppoll, p, n, ms < 0 ? NULL : &t, NULL, 0);
}

int epoll_wait(int ep, struct epoll_event *e, int n, int ms)
{
    return !waits_succeed && fails("epoll_wait", interruption())
               ? -1
               : (int)SYS(SYS_epoll_pwait, ep, e, n, ms, NULL, 0);
}

int pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*body)(void *), void *arg)
{
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

    if (fails("pthread_create", EAGAIN))
        return EAGAIN;
    if (!real)
        real = (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(
            RTLD_NEXT, "pthread_create");
    return real(t, a, body, arg);
}

#endif
