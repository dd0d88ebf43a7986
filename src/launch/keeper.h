// SPDX-License-Identifier: MIT
// The launcher's keeper: a process that outlives it by a moment. When the launcher is gone, however it went,
// the keeper ends what is left of its PEs and removes the directory of the job.
#ifndef DOCK_LAUNCH_KEEPER_H
#define DOCK_LAUNCH_KEEPER_H

#include <sys/types.h>

struct dock_keeper {
    pid_t pid; // 0: there is none, and the launcher does its work
    int to;    // the pipe whose end tells the keeper that the launcher is gone
    // Children of the process before it became the launcher (`server & exec oshrun ...`): not the job's.
    pid_t *before;
    unsigned n_before;
};

// `k` is all zeros. -errno: without a keeper (a reason was said).
int dock_keeper_start(struct dock_keeper *k, const char *dir);
// A PE's group (its number), or that it is no more (the number negated).
void dock_keeper_tell(const struct dock_keeper *k, pid_t pid);
// In the launcher, a subreaper, when its PEs have ended: what they had left, in groups and sessions of their
// own, ends too.
void dock_keeper_sweep(const struct dock_keeper *k);
// The directory is gone when this returns.
void dock_keeper_end(struct dock_keeper *k, const char *dir);

#endif
