// SPDX-License-Identifier: MIT
#include "base/job.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/filesize.h"
#include "base/log.h"

static size_t bytes_of(unsigned size)
{
    return sizeof(struct dock_job) + size * sizeof(struct dock_seat);
}

static int set_size(int fd, size_t bytes)
{
    struct dock_filesize limit;
    int err;

    dock_filesize_begin(&limit);
    err = ftruncate(fd, (off_t)bytes) ? -errno : 0;
    dock_filesize_end(&limit);
    return err;
}

int dock_job_open(const char *path, unsigned size, struct dock_job **out)
{
    if (size == 0 || size > DOCK_JOB_MAX)
        return dock_refuse(-EINVAL, "a job of %u processes: 1 to %u are possible", size, DOCK_JOB_MAX);
    int fd = dock_fd_own(open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)),
        err = fd < 0 ? -errno : 0;
    void *p = MAP_FAILED;

    // All make it the same size, so it does not matter who comes first.
    if (!err)
        err = set_size(fd, bytes_of(size));
    if (!err) {
        p = mmap(NULL, bytes_of(size), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        err = p == MAP_FAILED ? -errno : 0;
    }
    if (fd >= 0)
        close(fd);
    if (err) {
        dock_error("the job's file %s cannot be used: %s", path, strerror(-err));
        return err;
    }
    *out = p;
    return 0;
}

void dock_job_close(struct dock_job *job, unsigned size)
{
    munmap(job, bytes_of(size));
}
