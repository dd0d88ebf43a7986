// SPDX-License-Identifier: MIT
// Descriptors of the device beside those of a program that has closed its standard ones.
#ifndef DOCK_BASE_DESCRIPTOR_H
#define DOCK_BASE_DESCRIPTOR_H

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/lock.h"

// A program writes text to 0, 1 and 2 whether they are open or not, and so do we: what others can see or
// wait for must not have these numbers. To be called where it was opened, before anything is known by it:
// record locks of a file go with each descriptor that is closed. -1 and errno, as what opened it.
static inline int dock_fd_own(int fd)
{
    int high, err;

    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    high = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    err = errno;
    dock_close(fd);
    errno = err;
    return high;
}

#endif
