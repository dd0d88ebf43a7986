// SPDX-License-Identifier: MIT
#include "arena/idfile.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/lock.h"
#include "base/log.h"

#define MAGIC 0x73644959524b4344u
#define VERSION 1
#define FILE_SIZE (sizeof(struct dock_idhead) + DOCK_SLOTS * sizeof(struct dock_idrec))
#define LOCK_PATIENCE_S 10u

_Static_assert(sizeof(struct dock_idrec) == 64 && sizeof(struct dock_idhead) == 64,
               "a record is a cache line");

// Of the list of files and of all changes: record locks do not exclude the threads of one process.
static pthread_mutex_t process_lock = DOCK_LOCK_OF_FORKS;
static struct dock_idfile *files;

static void before_fork(void)
{
    dock_lock(&process_lock);
}

static void after_fork(void)
{
    dock_unlock_of_forks(&process_lock);
}

void dock_idfile_watch_forks(void)
{
    pthread_atfork(before_fork, after_fork, after_fork);
}

static int set_lock(int fd, short type, off_t at)
{
    struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};

    if (!fcntl(fd, F_SETLK, &l))
        return 0;
    return errno == EACCES ? -EAGAIN : -errno;
}

// The header's lock. Never waits for ever: its holder may have been stopped.
static int lock_header(int fd)
{
    uint64_t until = dock_now_ns() + LOCK_PATIENCE_S * 1000000000ull;
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
    int ret;

    while ((ret = set_lock(fd, F_WRLCK, 0)) == -EAGAIN || ret == -EINTR) {
        if (dock_now_ns() > until) {
            fcntl(fd, F_GETLK, &l);
            dock_error("process %d holds the id table for %u s: is it stopped?", (int)l.l_pid,
                       LOCK_PATIENCE_S);
            return -ETIMEDOUT;
        }
        dock_nap(200000);
    }
    if (ret)
        dock_error("locking the id table failed: %s", strerror(-ret));
    return ret;
}

// A program that closes all descriptors may have given our number to a file of its own. One that is open and
// tells nothing of itself counts as ours.
static bool still_ours(const struct dock_idfile *f)
{
    struct stat st;

    if (fstat(f->fd, &st))
        return errno != EBADF;
    return st.st_dev == f->dev && st.st_ino == f->ino;
}

int dock_idfile_lock(struct dock_idfile *f)
{
    int ret;

    dock_lock(&process_lock);
    if (still_ours(f)) {
        ret = lock_header(f->fd);
    } else {
        dock_error("the program has closed the descriptor of the id table");
        ret = -EBADF;
    }
    if (ret)
        dock_unlock_of_forks(&process_lock);
    else if (f->pid != getpid()) { // a child's first change
        memset(f->joined, 0, sizeof f->joined);
        dock_process_self(&f->self);
        f->pid = getpid();
    }
    return ret;
}

void dock_idfile_unlock(struct dock_idfile *f)
{
    set_lock(f->fd, F_UNLCK, 0);
    dock_unlock_of_forks(&process_lock);
}

static off_t slot_at(uint32_t slot)
{
    return (off_t)(sizeof(struct dock_idhead) + slot * sizeof(struct dock_idrec));
}

int dock_idfile_hold(struct dock_idfile *f, uint32_t slot)
{
    int ret = set_lock(f->fd, F_WRLCK, slot_at(slot));

    if (!ret)
        atomic_fetch_or(&f->joined[slot / 64], 1ull << slot % 64);
    return ret;
}

void dock_idfile_release(struct dock_idfile *f, uint32_t slot)
{
    atomic_fetch_and(&f->joined[slot / 64], ~(1ull << slot % 64));
    if (still_ours(f))
        set_lock(f->fd, F_UNLCK, slot_at(slot));
}

int dock_idfile_held(struct dock_idfile *f, uint32_t slot)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = slot_at(slot), .l_len = 1};

    if (!still_ours(f))
        return -EBADF;
    if (fcntl(f->fd, F_GETLK, &l))
        return -errno;
    return l.l_type != F_UNLCK;
}

bool dock_idfile_joined(const struct dock_idfile *f, uint32_t slot)
{
    return f->pid == getpid() && (dock_peek64(&f->joined[slot / 64]) >> slot % 64 & 1);
}

static int say(const struct dock_rundir *dir, int code, const char *why)
{
    dock_error("id table %s/%s: %s", dir->path, DOCK_IDFILE_NAME, why);
    return code;
}

// The header is locked. Whoever comes first finds no magic; so does who follows one that died before writing
// it.
static int make_or_check(int fd, const struct dock_rundir *dir)
{
    struct dock_idhead head = {.magic = 0};
    struct stat st;
    int ret;

    if (fstat(fd, &st) || pread(fd, &head, sizeof head, 0) < 0)
        return say(dir, -errno, strerror(errno));
    if (dock_peek64(&head.magic) == 0) {
        ret = dock_rundir_size(fd, FILE_SIZE);
        if (ret)
            return say(dir, ret, strerror(-ret));
        dock_set32(&head.version, VERSION);
        dock_set64(&head.magic, MAGIC);
        return pwrite(fd, &head, sizeof head, 0) == (ssize_t)sizeof head
                   ? 0
                   : say(dir, -EIO, "cannot be written");
    }
    if (dock_peek64(&head.magic) != MAGIC || dock_peek32(&head.version) != VERSION ||
        st.st_size != (off_t)FILE_SIZE)
        return say(dir, -EPROTO,
                   "made by another version of Drydock: end the programs that use it, then remove it");
    return 0;
}

static int open_file(const struct dock_rundir *dir, struct stat *st, int *out)
{
    int fd = dock_fd_own(openat(dir->fd, DOCK_IDFILE_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600)),
        ret;

    if (fd < 0)
        return say(dir, -errno, errno == ELOOP ? "refused: it is a link" : strerror(errno));
    if (fstat(fd, st))
        ret = say(dir, -errno, strerror(errno));
    else if (!S_ISREG(st->st_mode) || st->st_uid != geteuid() || (st->st_mode & 077))
        ret = say(dir, -EPROTO, "refused: it is not a file of this user alone");
    else
        ret = lock_header(fd);
    if (ret)
        goto close_fd;
    ret = make_or_check(fd, dir);
    set_lock(fd, F_UNLCK, 0);
    if (ret)
        goto close_fd;
    *out = fd;
    return 0;
close_fd:
    close(fd);
    return ret;
}

static int first_open(const struct dock_rundir *dir, struct dock_idfile **out)
{
    struct dock_idfile *f = calloc(1, sizeof *f);
    struct stat st = {0};
    int ret;

    if (!f)
        return say(dir, -ENOMEM, strerror(ENOMEM));
    ret = open_file(dir, &st, &f->fd);
    if (ret)
        goto free_file;
    void *map = mmap(NULL, FILE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
    if (map == MAP_FAILED) {
        ret = say(dir, -errno, strerror(errno));
        goto close_fd;
    }
    f->head = map;
    f->rec = (struct dock_idrec *)(f->head + 1);
    f->dev = st.st_dev;
    f->ino = st.st_ino;
    f->users = 1;
    f->next = files;
    files = f;
    *out = f;
    return 0;
close_fd:
    close(f->fd);
free_file:
    free(f);
    return ret;
}

// The program closed our descriptor, and with it fell the locks of the slots that we still use.
static int reopen(const struct dock_rundir *dir, struct dock_idfile *f)
{
    struct stat st;
    int ret = open_file(dir, &st, &f->fd);

    for (uint32_t slot = 1; !ret && slot < DOCK_SLOTS; slot++)
        if (dock_idfile_joined(f, slot))
            ret = dock_idfile_hold(f, slot);
    return ret;
}

int dock_idfile_open(const struct dock_rundir *dir, struct dock_idfile **out)
{
    struct dock_idfile *f = NULL;
    struct stat st;
    int ret = 0;

    dock_lock(&process_lock);
    // Asked by name: opening it, only to close it again, would drop the locks of this process.
    if (!fstatat(dir->fd, DOCK_IDFILE_NAME, &st, AT_SYMLINK_NOFOLLOW))
        for (f = files; f && (f->dev != st.st_dev || f->ino != st.st_ino);)
            f = f->next;
    else if (errno != ENOENT) // we may have it
        ret = say(dir, -errno, strerror(errno));
    if (!f && !ret)
        ret = first_open(dir, out);
    else if (f && (still_ours(f) || !(ret = reopen(dir, f)))) {
        f->users++;
        *out = f;
    }
    dock_unlock_of_forks(&process_lock);
    return ret;
}

void dock_idfile_close(struct dock_idfile *f)
{
    dock_lock(&process_lock);
    if (--f->users == 0) {
        struct dock_idfile **at = &files;
        while (*at != f)
            at = &(*at)->next;
        *at = f->next;
        munmap(f->head, FILE_SIZE);
        if (still_ours(f))
            close(f->fd);
        free(f);
    }
    dock_unlock_of_forks(&process_lock);
}
