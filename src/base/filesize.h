// SPDX-License-Identifier: MIT
// A limit on the size of files (RLIMIT_FSIZE) answers by a signal, SIGXFSZ, which ends a program that has not
// asked for it. What the device lets grow is the device's: it learns of the limit by EFBIG, and the program
// is not told. Around each call that lets a file grow.
#ifndef DOCK_BASE_FILESIZE_H
#define DOCK_BASE_FILESIZE_H

#include <stdbool.h>
#include <stdint.h>

struct dock_filesize {
    bool limited;  // else nothing was done
    bool pending;  // the program has one to come
    uint64_t mask; // its own
};

// By raw calls, so also while other threads stand still, and in a signal handler. One if there is no limit.
void dock_filesize_begin(struct dock_filesize *f);
void dock_filesize_end(const struct dock_filesize *f);
// Instead of both, for who handles no signal and whose program does not block this one (`blocked`, as in
// dock_signals_blocked), so that none can be pending: after EFBIG. Nothing is asked as long as there is room.
bool dock_filesize_open_to(uint64_t blocked);
void dock_filesize_refused(void);

#endif
