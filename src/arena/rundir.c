// SPDX-License-Identifier: MIT
#include "arena/rundir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/filesize.h"
#include "base/lock.h"
#include "base/log.h"

#define SOCKET_NAME 14 // "/d4095.1048575": where /proc is missing, a socket is reached by its whole path
#define PATH_MAX_HERE (sizeof((struct sockaddr_un *)0)->sun_path - 1 - SOCKET_NAME)

_Static_assert(PATH_MAX_HERE < DOCK_RUNDIR_PATH, "the longest path that is accepted has its place");

// After su or sudo the variable may still name the directory of another user.
static bool ours(const char *dir)
{
    struct stat st;

    if (!dir || dir[0] != '/')
        return false;
    if (!stat(dir, &st) && S_ISDIR(st.st_mode) && st.st_uid == geteuid())
        return true;
    dock_info("XDG_RUNTIME_DIR=%s is not a directory of user %u: not used", dir, (unsigned)geteuid());
    return false;
}

static int choose(const char *wanted, char *path, size_t size)
{
    const char *env = getenv("DRYDOCK_DIR"), *xdg = getenv("XDG_RUNTIME_DIR");
    int n;

    if (!wanted && env && *env)
        wanted = env;
    if (wanted && *wanted != '/') {
        dock_error("runtime directory %s refused: it must be an absolute path, or it would change with chdir",
                   wanted);
        return -EINVAL;
    }
    if (wanted)
        n = snprintf(path, size, "%s", wanted);
    else if (ours(xdg))
        n = snprintf(path, size, "%s/drydock", xdg);
    else
        n = snprintf(path, size, "/tmp/drydock-%u", (unsigned)geteuid());
    if (n > 0 && (size_t)n <= PATH_MAX_HERE) {
        // "link/" would be followed where "link" is not.
        while (n > 1 && path[n - 1] == '/')
            path[--n] = '\0';
        return 0;
    }
    dock_error("runtime directory %s refused: its path has more than %zu bytes", wanted ? wanted : xdg,
               PATH_MAX_HERE);
    return -ENAMETOOLONG;
}

// Is what was opened a directory of ours that nobody else may enter?
static int check(int fd, const char *path)
{
    struct stat st;

    if (fstat(fd, &st)) {
        int code = -errno;
        dock_error("runtime directory %s: %s", path, strerror(-code));
        return code;
    }
    if (st.st_uid != geteuid()) {
        dock_error("runtime directory %s refused: it belongs to user %u, not to %u", path,
                   (unsigned)st.st_uid, (unsigned)geteuid());
        return -EPERM;
    }
    if (st.st_mode & 077) {
        dock_error("runtime directory %s refused: group or others may enter (mode %04o, wanted 0700)", path,
                   (unsigned)(st.st_mode & 07777));
        return -EACCES;
    }
    return 0;
}

int dock_rundir_open(const char *wanted, struct dock_rundir *out)
{
    struct dock_rundir dir;
    int ret = choose(wanted, dir.path, sizeof dir.path);

    if (ret)
        return ret;
    if (mkdir(dir.path, 0700) && errno != EEXIST) {
        ret = -errno;
        dock_error("making the runtime directory %s failed: %s", dir.path, strerror(-ret));
        return ret;
    }
    dir.fd = dock_open(dir.path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir.fd < 0) {
        ret = errno == ELOOP ? -ENOTDIR : -errno;
        dock_error("runtime directory %s refused: %s", dir.path,
                   ret == -ENOTDIR ? "it is a link or no directory, and links are not followed"
                                   : strerror(-ret));
        return ret;
    }
    ret = check(dir.fd, dir.path);
    if (ret) {
        dock_close(dir.fd);
        return ret;
    }
    *out = dir;
    return 0;
}

void dock_rundir_close(struct dock_rundir *dir)
{
    dock_close(dir->fd);
    dir->fd = -1;
}

int dock_rundir_size(int fd, size_t size)
{
    struct dock_filesize limit;
    int err;

    dock_filesize_begin(&limit);
    dock_uncancelled_begin();
    err = -posix_fallocate(fd, 0, (off_t)size);
    dock_uncancelled_end();
    dock_filesize_end(&limit);
    return err;
}

static int open_table(const struct dock_rundir *dir, const char *name, size_t size)
{
    dock_uncancelled_begin();
    int fd = dock_fd_own(openat(dir->fd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600)), err;
    dock_uncancelled_end();
    struct stat st;

    if (fd < 0)
        return -errno;
    err = fstat(fd, &st) ? -errno : 0;
    if (!err && (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 077))
        err = -EPROTO;
    if (!err)
        err = dock_rundir_size(fd, size);
    if (!err)
        return fd;
    dock_close(fd);
    return err;
}

int dock_rundir_map(const struct dock_rundir *dir, const char *name, size_t size, void **out)
{
    int fd = open_table(dir, name, size), err = fd < 0 ? fd : 0;
    void *map = MAP_FAILED;

    if (!err) {
        map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        err = map == MAP_FAILED ? -errno : 0;
        dock_close(fd);
    }
    if (err) {
        dock_error("table %s/%s: %s", dir->path, name,
                   err == -EPROTO ? "refused: not a file of this user alone" : strerror(-err));
        return err;
    }
    *out = map;
    return 0;
}

unsigned dock_rundir_address(const struct dock_rundir *dir, const char *name, struct sockaddr_un *out)
{
    char prefix[DOCK_RUNDIR_PATH];
    int n;

    snprintf(prefix, sizeof prefix, "/proc/self/fd/%d", dir->fd);
    out->sun_family = AF_UNIX;
    n = snprintf(out->sun_path, sizeof out->sun_path, "%s/%s", access(prefix, X_OK) ? dir->path : prefix,
                 name);
    return (unsigned)(offsetof(struct sockaddr_un, sun_path) + (size_t)n + 1);
}

int dock_rundir_check_user(int fd, const char *what, int *pid)
{
    struct ucred c;
    socklen_t len = sizeof c;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &len))
        return -errno;
    if (c.uid != geteuid()) {
        dock_error("%s (process %d) refused: it is of user %u, this is user %u", what, (int)c.pid,
                   (unsigned)c.uid, (unsigned)geteuid());
        return -EPERM;
    }
    *pid = c.pid;
    return 0;
}
