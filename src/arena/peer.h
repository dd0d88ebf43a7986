// SPDX-License-Identifier: MIT
// Reaching another device on this host: its arena, its bell and its pidfd come over a Unix socket in the
// runtime directory, once, at first use. After that the peer need not run.
#ifndef DOCK_ARENA_PEER_H
#define DOCK_ARENA_PEER_H

#include <stdbool.h>

#include "arena/arena.h"
#include "arena/idtable.h"
#include "arena/rundir.h"

// What one device hands to another.
struct dock_gift {
    dock_who who;
    int pid;      // in the giver's pid namespace
    int seen_pid; // taker only: in its own pid namespace, as process_vm takes it; 0 if the giver is not in it
    unsigned shift; // window size of the arena
    int arena_fd, bell_fd;
    int pidfd; // of the giver, -1 where the kernel has none
};

// The giver's side: a listening SOCK_SEQPACKET socket named after `who`. -errno.
int dock_gift_listen(const struct dock_rundir *dir, dock_who who, int *listen_fd);
void dock_gift_unlisten(const struct dock_rundir *dir, dock_who who, int listen_fd);
// Serve one waiting caller, never blocking. Callers of another user get nothing (SO_PEERCRED), that is 0 as
// well. -EAGAIN if nobody waits; other -errno as the system gave it (-EMFILE: the caller still waits).
int dock_gift_serve(int listen_fd, const struct dock_gift *mine);

// The taker's side, in two halves so that an engine thread never blocks on it. Begin connects (the
// listener's backlog answers at once) and returns a descriptor that becomes readable when the gift is
// there: -ECONNREFUSED or -ENOENT when nobody listens, -EAGAIN when the listener's backlog is full, -EPERM
// when another user listens. Take reads it: -EAGAIN not yet there, -ECONNRESET the giver went away, -EPROTO
// malformed or of another incarnation. Take closes `sock` unless it returns -EAGAIN.
int dock_gift_begin(const struct dock_rundir *dir, dock_who who, int *sock);
int dock_gift_take(int sock, dock_who who, struct dock_gift *out);
void dock_gift_drop(struct dock_gift *gift); // close its descriptors

// Is the process behind a pidfd dead? false for -1. One poll(2), no blocking.
bool dock_pidfd_dead(int pidfd);

#endif
