// SPDX-License-Identifier: MIT
// The n-th allocation or system call fails, for every n until nothing fails any more: each failure is an
// error code with a reason in words, and descriptors, mappings and heap are as before. This program's own
// functions stand in for the C library's.
#ifdef __SANITIZE_THREAD__
int main(void)
{
    return 77; // ThreadSanitizer needs these functions for itself
}
#else
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arena/arena.h"
#include "arena/idtable.h"
#include "arena/peer.h"
#include "arena/rundir.h"
#include "base/log.h"
#include "unit/arena/child.h"

static long countdown; // the call that fails; 0 = none
static const char *failed_call;
static long live_blocks;

static bool fails(const char *call, int code)
{
    if (countdown == 0 || --countdown)
        return false;
    failed_call = call;
    errno = code;
    return true;
}

#ifndef DOCK_SANITIZED
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
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

void free(void *p)
{
    live_blocks -= p != NULL;
    __libc_free(p);
}
#endif

int open(const char *path, int flags, ...)
{
    return fails("open", EMFILE) ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0600);
}

int openat(int dir, const char *path, int flags, ...)
{
    return fails("openat", EMFILE) ? -1 : (int)syscall(SYS_openat, dir, path, flags, 0600);
}

int mkdir(const char *path, mode_t mode)
{
    return fails("mkdir", ENOSPC) ? -1 : (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

int memfd_create(const char *name, unsigned flags)
{
    return fails("memfd_create", EMFILE) ? -1 : (int)syscall(SYS_memfd_create, name, flags);
}

int fcntl(int fd, int command, ...)
{
    va_list args;
    va_start(args, command);
    void *arg = va_arg(args, void *);
    va_end(args);
    return fails("fcntl", ENOLCK) ? -1 : (int)syscall(SYS_fcntl, fd, command, arg);
}

int ftruncate(int fd, off_t size)
{
    return fails("ftruncate", ENOSPC) ? -1 : (int)syscall(SYS_ftruncate, fd, size);
}

int fallocate(int fd, int mode, off_t off, off_t size)
{
    return fails("fallocate", ENOSPC) ? -1 : (int)syscall(SYS_fallocate, fd, mode, off, size);
}

int posix_fallocate(int fd, off_t off, off_t size)
{
    return fails("posix_fallocate", ENOSPC) || syscall(SYS_fallocate, fd, 0, off, size) ? errno : 0;
}

ssize_t pread(int fd, void *to, size_t size, off_t off)
{
    return fails("pread", EIO) ? -1 : syscall(SYS_pread64, fd, to, size, off);
}

ssize_t pwrite(int fd, const void *from, size_t size, off_t off)
{
    return fails("pwrite", ENOSPC) ? -1 : syscall(SYS_pwrite64, fd, from, size, off);
}

void *mmap(void *at, size_t size, int prot, int flags, int fd, off_t off)
{
    return fails("mmap", ENOMEM) ? MAP_FAILED : (void *)syscall(SYS_mmap, at, size, prot, flags, fd, off);
}

int mprotect(void *at, size_t size, int prot)
{
    return fails("mprotect", ENOMEM) ? -1 : (int)syscall(SYS_mprotect, at, size, prot);
}

int madvise(void *at, size_t size, int advice)
{
    return fails("madvise", EINVAL) ? -1 : (int)syscall(SYS_madvise, at, size, advice);
}

int socket(int family, int type, int protocol)
{
    return fails("socket", EMFILE) ? -1 : (int)syscall(SYS_socket, family, type, protocol);
}

int bind(int fd, const struct sockaddr *a, socklen_t len)
{
    return fails("bind", ENOSPC) ? -1 : (int)syscall(SYS_bind, fd, a, len);
}

int listen(int fd, int backlog)
{
    return fails("listen", ENOBUFS) ? -1 : (int)syscall(SYS_listen, fd, backlog);
}

int connect(int fd, const struct sockaddr *a, socklen_t len)
{
    return fails("connect", ENOBUFS) ? -1 : (int)syscall(SYS_connect, fd, a, len);
}

int accept4(int fd, struct sockaddr *a, socklen_t *len, int flags)
{
    return fails("accept4", EMFILE) ? -1 : (int)syscall(SYS_accept4, fd, a, len, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
    return fails("sendmsg", ENOBUFS) ? -1 : syscall(SYS_sendmsg, fd, m, flags);
}

ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
    return fails("recvmsg", ENOMEM) ? -1 : syscall(SYS_recvmsg, fd, m, flags);
}

struct state {
    char *path;
    int bell;
    struct dock_rundir dir;
    struct dock_idtable ids;
    dock_who who;
    struct dock_arena arena;
    int listener;
};

static int use_arena(struct state *s)
{
    uint64_t a = 0, b = 0;
    int ret = dock_arena_alloc(&s->arena, 100, 64, &a);

    if (ret)
        return ret;
    ret = dock_arena_alloc(&s->arena, 1 << 20, 64, &b); // needs a window of its own
    if (!ret) {
        if (!dock_view_at(&s->arena.view, b, 1 << 20))
            ret = -ENOMEM;
        dock_arena_free(&s->arena, b, 1 << 20);
    }
    dock_arena_free(&s->arena, a, 100);
    return ret;
}

static int use_gift(struct state *s)
{
    struct dock_gift mine = {s->who, getpid(), 0, s->arena.view.shift, s->arena.view.fd, s->bell, -1}, got;
    struct dock_view v;
    int sock = -1, ret = dock_gift_begin(&s->dir, s->who, &sock);

    if (ret)
        return ret;
    ret = dock_gift_serve(s->listener, &mine);
    if (ret) {
        close(sock);
        return ret;
    }
    ret = dock_gift_take(sock, s->who, &got);
    if (ret == -EAGAIN)
        close(sock);
    if (ret)
        return ret;
    ret = dock_view_open(&v, got.arena_fd, got.shift); // owns it
    got.arena_fd = -1;
    if (!ret) {
        ret = dock_view_at(&v, 0, 64) ? 0 : -ENOMEM;
        dock_view_close(&v);
    }
    dock_gift_drop(&got);
    return ret;
}

// A device's whole life, as far as the arena goes.
static int live(struct state *s)
{
    uint32_t block;
    int ret = dock_rundir_open(s->path, &s->dir);

    if (ret)
        return ret;
    ret = dock_idtable_open(&s->dir, &s->ids);
    if (ret)
        goto close_dir;
    ret = dock_idtable_join(&s->ids, &s->who);
    if (ret)
        goto close_table;
    ret = dock_idtable_more(&s->ids, s->who, &block);
    if (ret)
        goto leave;
    ret = dock_arena_create(&s->arena, 20, 4096);
    if (ret)
        goto leave;
    ret = dock_gift_listen(&s->dir, s->who, &s->listener);
    if (ret)
        goto destroy;
    ret = use_arena(s);
    if (!ret)
        ret = use_gift(s);
    dock_gift_unlisten(&s->dir, s->who, s->listener);
destroy:
    dock_arena_destroy(&s->arena);
leave:
    dock_idtable_leave(&s->ids, s->who);
close_table:
    dock_idtable_close(&s->ids);
close_dir:
    dock_rundir_close(&s->dir);
    return ret;
}

static void clear(const char *path)
{
    char name[200];

    snprintf(name, sizeof name, "%s/drydock.ids", path);
    unlink(name);
}

static int wrong(long n, const char *what, long expected, long got)
{
    printf("call %ld (%s) failed: %s: expected %ld, got %ld\n"
           "again: scripts/run-one build/dev/tests/fault/arena_nomem_test\n",
           n, failed_call ? failed_call : "none", what, expected, got);
    return 1;
}

int main(void)
{
    char *base = fresh_dir(), path[150];
    struct state s = {.bell = eventfd(0, 0)};
    int quiet = open("/dev/null", O_WRONLY), bad = 0, errors = 0;

    setvbuf(stdout, NULL, _IONBF, 0); // no heap for words
    snprintf(path, sizeof path, "%s/run", base);
    s.path = path;
    bad = live(&s) != 0; // what the process does once (atfork handlers) happens here
    dup2(quiet, STDERR_FILENO);
    int fds = open_fds(), maps = mappings_of("drydock");
    long blocks = live_blocks, n = 0;
    do {
        clear(path);
        dock_debug("%s", "");
        failed_call = NULL;
        countdown = ++n;
        int ret = live(&s);
        countdown = 0;
        errors += ret != 0;
        if (ret && !failed_call)
            bad = wrong(n, "result without a failure", 0, ret);
        if (ret && !dock_log_last()[0])
            bad = wrong(n, "characters of a reason", 1, 0);
        if (open_fds() != fds)
            bad = wrong(n, "descriptors", fds, open_fds());
        if (mappings_of("drydock") != maps)
            bad = wrong(n, "mappings", maps, mappings_of("drydock"));
        if (live_blocks != blocks)
            bad = wrong(n, "heap blocks", blocks, live_blocks);
    } while (failed_call && !bad);
    printf("%ld calls failed in turn, %d of them ended in an error, the others were done without\n", n - 1,
           errors);
    clear(path);
    rmdir(path);
    fresh_dir_end(base);
    return bad || errors < 20;
}
#endif
