// SPDX-License-Identifier: MIT
// The interposers: each hands its path through dock_shim_path() and calls the function of the same name
// behind it.
//
// glibc's own code calls these functions by hidden names, so what it does inside glob() or scandir() is not
// seen here; that is why glob() is given directory functions of ours. A path relative to a directory of ours
// needs no help: the descriptor or working directory already lies in the tree.

// The names below are defined here, so neither fortified inline copies nor 64-bit renames of them may exist.
#undef _FORTIFY_SOURCE
#undef _FILE_OFFSET_BITS
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "preload/shim_path.h"

// What headers no longer declare, or declare only for fortified callers.
int __xstat(int version, const char *path, struct stat *st);
int __lxstat(int version, const char *path, struct stat *st);
int __xstat64(int version, const char *path, struct stat64 *st);
int __lxstat64(int version, const char *path, struct stat64 *st);
int __fxstatat(int version, int dir, const char *path, struct stat *st, int flags);
int __fxstatat64(int version, int dir, const char *path, struct stat64 *st, int flags);
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);
int __openat64_2(int dir, const char *path, int flags);
ssize_t __readlink_chk(const char *path, char *text, size_t size, size_t room);
ssize_t __readlinkat_chk(int dir, const char *path, char *text, size_t size, size_t room);
char *__realpath_chk(const char *path, char *resolved, size_t room);

struct next {
    __typeof__(&stat) stat, lstat;
    __typeof__(&stat64) stat64, lstat64;
    __typeof__(&fstatat) fstatat;
    __typeof__(&fstatat64) fstatat64;
    __typeof__(&statx) statx;
    __typeof__(&access) access, euidaccess;
    __typeof__(&faccessat) faccessat;
    __typeof__(&getxattr) getxattr, lgetxattr;
    __typeof__(&open) open, open64;
    __typeof__(&openat) openat, openat64;
    __typeof__(&__open_2) open_2, open64_2;
    __typeof__(&__openat_2) openat_2, openat64_2;
    __typeof__(&fopen) fopen, fopen64;
    __typeof__(&opendir) opendir;
    __typeof__(&chdir) chdir;
    __typeof__(&scandir) scandir;
    __typeof__(&scandir64) scandir64;
    __typeof__(&readlink) readlink;
    __typeof__(&readlinkat) readlinkat;
    __typeof__(&__readlink_chk) readlink_chk;
    __typeof__(&__readlinkat_chk) readlinkat_chk;
    __typeof__(&realpath) realpath;
    __typeof__(&__realpath_chk) realpath_chk;
    __typeof__(&canonicalize_file_name) canonicalize_file_name;
    __typeof__(&glob) glob;
    __typeof__(&glob64) glob64;
};

static struct next found;
static bool resolved;

static void resolve_opening(void)
{
    found.open = dlsym(RTLD_NEXT, "open");
    found.open64 = dlsym(RTLD_NEXT, "open64");
    found.openat = dlsym(RTLD_NEXT, "openat");
    found.openat64 = dlsym(RTLD_NEXT, "openat64");
    found.open_2 = dlsym(RTLD_NEXT, "__open_2");
    found.open64_2 = dlsym(RTLD_NEXT, "__open64_2");
    found.openat_2 = dlsym(RTLD_NEXT, "__openat_2");
    found.openat64_2 = dlsym(RTLD_NEXT, "__openat64_2");
    found.fopen = dlsym(RTLD_NEXT, "fopen");
    found.fopen64 = dlsym(RTLD_NEXT, "fopen64");
    found.opendir = dlsym(RTLD_NEXT, "opendir");
    found.chdir = dlsym(RTLD_NEXT, "chdir");
    found.scandir = dlsym(RTLD_NEXT, "scandir");
    found.scandir64 = dlsym(RTLD_NEXT, "scandir64");
    found.glob = dlsym(RTLD_NEXT, "glob");
    found.glob64 = dlsym(RTLD_NEXT, "glob64");
}

static void resolve_asking(void)
{
    found.stat = dlsym(RTLD_NEXT, "stat");
    found.lstat = dlsym(RTLD_NEXT, "lstat");
    found.stat64 = dlsym(RTLD_NEXT, "stat64");
    found.lstat64 = dlsym(RTLD_NEXT, "lstat64");
    found.fstatat = dlsym(RTLD_NEXT, "fstatat");
    found.fstatat64 = dlsym(RTLD_NEXT, "fstatat64");
    found.statx = dlsym(RTLD_NEXT, "statx");
    found.access = dlsym(RTLD_NEXT, "access");
    found.euidaccess = dlsym(RTLD_NEXT, "euidaccess");
    found.faccessat = dlsym(RTLD_NEXT, "faccessat");
    found.getxattr = dlsym(RTLD_NEXT, "getxattr");
    found.lgetxattr = dlsym(RTLD_NEXT, "lgetxattr");
    found.readlink = dlsym(RTLD_NEXT, "readlink");
    found.readlinkat = dlsym(RTLD_NEXT, "readlinkat");
    found.readlink_chk = dlsym(RTLD_NEXT, "__readlink_chk");
    found.readlinkat_chk = dlsym(RTLD_NEXT, "__readlinkat_chk");
    found.realpath = dlsym(RTLD_NEXT, "realpath");
    found.realpath_chk = dlsym(RTLD_NEXT, "__realpath_chk");
    found.canonicalize_file_name = dlsym(RTLD_NEXT, "canonicalize_file_name");
}

// dlsym is not safe in a signal handler: everything is looked up before main, or earlier when a constructor
// of another library opens a file first.
__attribute__((constructor)) static void resolve(void)
{
    if (resolved)
        return;
    resolve_opening();
    resolve_asking();
    resolved = true;
}

static const struct next *next(void)
{
    if (__builtin_expect(!resolved, 0))
        resolve();
    return &found;
}

// --- asking about a file

int stat(const char *path, struct stat *st)
{
    struct dock_shim_buf buf;
    return next()->stat(dock_shim_path(path, &buf), st);
}

int lstat(const char *path, struct stat *st)
{
    struct dock_shim_buf buf;
    return next()->lstat(dock_shim_path(path, &buf), st);
}

int stat64(const char *path, struct stat64 *st)
{
    struct dock_shim_buf buf;
    return next()->stat64(dock_shim_path(path, &buf), st);
}

int lstat64(const char *path, struct stat64 *st)
{
    struct dock_shim_buf buf;
    return next()->lstat64(dock_shim_path(path, &buf), st);
}

int fstatat(int dir, const char *path, struct stat *st, int flags)
{
    struct dock_shim_buf buf;
    return next()->fstatat(dir, dock_shim_path(path, &buf), st, flags);
}

int fstatat64(int dir, const char *path, struct stat64 *st, int flags)
{
    struct dock_shim_buf buf;
    return next()->fstatat64(dir, dock_shim_path(path, &buf), st, flags);
}

int statx(int dir, const char *path, int flags, unsigned int mask, struct statx *stx)
{
    struct dock_shim_buf buf;
    return next()->statx(dir, dock_shim_path(path, &buf), flags, mask, stx);
}

// Binaries built for a glibc before 2.33 ask through these; the version only ever named this struct stat.
int __xstat(int version, const char *path, struct stat *st)
{
    (void)version;
    return stat(path, st);
}

int __lxstat(int version, const char *path, struct stat *st)
{
    (void)version;
    return lstat(path, st);
}

int __xstat64(int version, const char *path, struct stat64 *st)
{
    (void)version;
    return stat64(path, st);
}

int __lxstat64(int version, const char *path, struct stat64 *st)
{
    (void)version;
    return lstat64(path, st);
}

int __fxstatat(int version, int dir, const char *path, struct stat *st, int flags)
{
    (void)version;
    return fstatat(dir, path, st, flags);
}

int __fxstatat64(int version, int dir, const char *path, struct stat64 *st, int flags)
{
    (void)version;
    return fstatat64(dir, path, st, flags);
}

int access(const char *path, int mode)
{
    struct dock_shim_buf buf;
    return next()->access(dock_shim_path(path, &buf), mode);
}

int euidaccess(const char *path, int mode)
{
    struct dock_shim_buf buf;
    return next()->euidaccess(dock_shim_path(path, &buf), mode);
}

int eaccess(const char *path, int mode)
{
    return euidaccess(path, mode);
}

int faccessat(int dir, const char *path, int mode, int flags)
{
    struct dock_shim_buf buf;
    return next()->faccessat(dir, dock_shim_path(path, &buf), mode, flags);
}

// `ls -l` looks for access lists.
ssize_t getxattr(const char *path, const char *name, void *value, size_t size)
{
    struct dock_shim_buf buf;
    return next()->getxattr(dock_shim_path(path, &buf), name, value, size);
}

ssize_t lgetxattr(const char *path, const char *name, void *value, size_t size)
{
    struct dock_shim_buf buf;
    return next()->lgetxattr(dock_shim_path(path, &buf), name, value, size);
}

// --- opening

static mode_t mode_argument(int flags, va_list args)
{
    return __OPEN_NEEDS_MODE(flags) ? va_arg(args, mode_t) : 0;
}

int open(const char *path, int flags, ...)
{
    struct dock_shim_buf buf;
    va_list args;
    mode_t mode;

    va_start(args, flags);
    mode = mode_argument(flags, args);
    va_end(args);
    return next()->open(dock_shim_path(path, &buf), flags, mode);
}

int open64(const char *path, int flags, ...)
{
    struct dock_shim_buf buf;
    va_list args;
    mode_t mode;

    va_start(args, flags);
    mode = mode_argument(flags, args);
    va_end(args);
    return next()->open64(dock_shim_path(path, &buf), flags, mode);
}

int openat(int dir, const char *path, int flags, ...)
{
    struct dock_shim_buf buf;
    va_list args;
    mode_t mode;

    va_start(args, flags);
    mode = mode_argument(flags, args);
    va_end(args);
    return next()->openat(dir, dock_shim_path(path, &buf), flags, mode);
}

int openat64(int dir, const char *path, int flags, ...)
{
    struct dock_shim_buf buf;
    va_list args;
    mode_t mode;

    va_start(args, flags);
    mode = mode_argument(flags, args);
    va_end(args);
    return next()->openat64(dir, dock_shim_path(path, &buf), flags, mode);
}

int __open_2(const char *path, int flags)
{
    struct dock_shim_buf buf;
    return next()->open_2(dock_shim_path(path, &buf), flags);
}

int __open64_2(const char *path, int flags)
{
    struct dock_shim_buf buf;
    return next()->open64_2(dock_shim_path(path, &buf), flags);
}

int __openat_2(int dir, const char *path, int flags)
{
    struct dock_shim_buf buf;
    return next()->openat_2(dir, dock_shim_path(path, &buf), flags);
}

int __openat64_2(int dir, const char *path, int flags)
{
    struct dock_shim_buf buf;
    return next()->openat64_2(dir, dock_shim_path(path, &buf), flags);
}

FILE *fopen(const char *path, const char *mode)
{
    struct dock_shim_buf buf;
    return next()->fopen(dock_shim_path(path, &buf), mode);
}

FILE *fopen64(const char *path, const char *mode)
{
    struct dock_shim_buf buf;
    return next()->fopen64(dock_shim_path(path, &buf), mode);
}

// --- directories

DIR *opendir(const char *path)
{
    struct dock_shim_buf buf;
    return next()->opendir(dock_shim_path(path, &buf));
}

// A shell's `cd`.
int chdir(const char *path)
{
    struct dock_shim_buf buf;
    return next()->chdir(dock_shim_path(path, &buf));
}

int scandir(const char *path, struct dirent ***list, int (*keep)(const struct dirent *),
            int (*order)(const struct dirent **, const struct dirent **))
{
    struct dock_shim_buf buf;
    return next()->scandir(dock_shim_path(path, &buf), list, keep, order);
}

int scandir64(const char *path, struct dirent64 ***list, int (*keep)(const struct dirent64 *),
              int (*order)(const struct dirent64 **, const struct dirent64 **))
{
    struct dock_shim_buf buf;
    return next()->scandir64(dock_shim_path(path, &buf), list, keep, order);
}

// glob() with a rewritten pattern would answer with paths of the tree; with the interposers as its directory
// functions it answers with the paths that the program asked for.
static void *glob_opendir(const char *path)
{
    return opendir(path);
}

static struct dirent *glob_readdir(void *dir)
{
    return readdir(dir);
}

static struct dirent64 *glob_readdir64(void *dir)
{
    return readdir64(dir);
}

static void glob_closedir(void *dir)
{
    closedir(dir);
}

int glob(const char *pattern, int flags, int (*on_error)(const char *, int), glob_t *result)
{
    if (!(flags & GLOB_ALTDIRFUNC) && dock_shim_owns(pattern)) {
        flags |= GLOB_ALTDIRFUNC;
        result->gl_opendir = glob_opendir;
        result->gl_readdir = glob_readdir;
        result->gl_closedir = glob_closedir;
        result->gl_stat = stat;
        result->gl_lstat = lstat;
    }
    return next()->glob(pattern, flags, on_error, result);
}

int glob64(const char *pattern, int flags, int (*on_error)(const char *, int), glob64_t *result)
{
    if (!(flags & GLOB_ALTDIRFUNC) && dock_shim_owns(pattern)) {
        flags |= GLOB_ALTDIRFUNC;
        result->gl_opendir = glob_opendir;
        result->gl_readdir = glob_readdir64;
        result->gl_closedir = glob_closedir;
        result->gl_stat = stat64;
        result->gl_lstat = lstat64;
    }
    return next()->glob64(pattern, flags, on_error, result);
}

// --- links

ssize_t readlink(const char *path, char *text, size_t size)
{
    struct dock_shim_buf buf;
    return next()->readlink(dock_shim_path(path, &buf), text, size);
}

ssize_t readlinkat(int dir, const char *path, char *text, size_t size)
{
    struct dock_shim_buf buf;
    return next()->readlinkat(dir, dock_shim_path(path, &buf), text, size);
}

ssize_t __readlink_chk(const char *path, char *text, size_t size, size_t room)
{
    struct dock_shim_buf buf;
    return next()->readlink_chk(dock_shim_path(path, &buf), text, size, room);
}

ssize_t __readlinkat_chk(int dir, const char *path, char *text, size_t size, size_t room)
{
    struct dock_shim_buf buf;
    return next()->readlinkat_chk(dir, dock_shim_path(path, &buf), text, size, room);
}

char *realpath(const char *path, char *resolved_path)
{
    struct dock_shim_buf buf;
    return next()->realpath(dock_shim_path(path, &buf), resolved_path);
}

char *__realpath_chk(const char *path, char *resolved_path, size_t room)
{
    struct dock_shim_buf buf;
    return next()->realpath_chk(dock_shim_path(path, &buf), resolved_path, room);
}

char *canonicalize_file_name(const char *path)
{
    struct dock_shim_buf buf;
    return next()->canonicalize_file_name(dock_shim_path(path, &buf));
}
