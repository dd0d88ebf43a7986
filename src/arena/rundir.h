// SPDX-License-Identifier: MIT
// The runtime directory: where the devices of one user on one host find each other. It holds the id table
// and one socket per live device. $DRYDOCK_DIR, else $XDG_RUNTIME_DIR/drydock where that directory is ours,
// else /tmp/drydock-<uid>.
#ifndef DOCK_ARENA_RUNDIR_H
#define DOCK_ARENA_RUNDIR_H

#include <stddef.h>

struct sockaddr_un;

#define DOCK_RUNDIR_PATH 96 // a socket address holds 108 bytes; the name of a socket takes the rest

struct dock_rundir {
    int fd; // O_PATH|O_DIRECTORY: names below it are resolved from here, never from the path
    char path[DOCK_RUNDIR_PATH]; // as chosen, for messages
};

// Open, and make if missing, the runtime directory (mode 0700). `wanted` NULL: chosen from the environment.
// Refused with a reason in words: -EINVAL (not absolute); -ENAMETOOLONG; -ENOTDIR (a link, or no directory:
// never followed); -EPERM (another owner); -EACCES (group or others may enter). Other -errno as the system
// gave it.
int dock_rundir_open(const char *wanted, struct dock_rundir *out);
void dock_rundir_close(struct dock_rundir *dir);

// Map the table `name` of `size` bytes in the directory, shared and writable; whoever comes first makes it,
// of zeros. -errno as the system gave it; -EPROTO: it is not a file of this user alone. To be unmapped by
// munmap.
int dock_rundir_map(const struct dock_rundir *dir, const char *name, size_t size, void **out);

// A file of `size` bytes at least, with real blocks now: a full file system is an error here and not SIGBUS
// later. -errno; -EFBIG beyond RLIMIT_FSIZE, without its signal.
int dock_rundir_size(int fd, size_t size);

// The address of the socket `name` (at most 13 characters) in the directory; returns its length. It leads
// through the directory's descriptor, so that the path is not resolved again; without /proc it is the path.
unsigned dock_rundir_address(const struct dock_rundir *dir, const char *name, struct sockaddr_un *out);
// Is the other side of a connected socket of our user? -EPERM, said in words with `what` in front. *pid: its
// process.
int dock_rundir_check_user(int fd, const char *what, int *pid);

#endif
