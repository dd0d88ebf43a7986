// SPDX-License-Identifier: MIT
#include "cli/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static int result(long value)
{
    return value < 0 ? -errno : 0;
}

static int read_parent(pid_t parent, uint64_t *word)
{
    uint64_t copy = 0;
    struct iovec here = {&copy, sizeof(copy)};
    struct iovec there = {word, sizeof(*word)};

    if (process_vm_readv(parent, &here, 1, &there, 1, 0) != (ssize_t)sizeof(copy))
        return errno;
    return copy == *word ? 0 : EIO;
}

// Towards a process that is not our child and has allowed it as an open device does: the way peers use it.
static int ask_process_vm(void)
{
    uint64_t word = 0x6472796b636f64;
    pid_t self = getpid();
    pid_t child;
    int status;

    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    child = fork();
    if (child == 0)
        _exit(read_parent(self, &word));
    if (child < 0 || waitpid(child, &status, 0) != child)
        return -errno;
    return WIFEXITED(status) ? -WEXITSTATUS(status) : -EINTR;
}

static int ask_memfd(void)
{
    int fd = memfd_create("drydock-info", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int rc = result(fd);

    if (fd < 0)
        return rc;
    rc = result(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
    close(fd);
    return rc;
}

static int ask_pidfd(void)
{
    long fd = syscall(SYS_pidfd_open, getpid(), 0);
    int rc = result(fd);

    if (fd >= 0)
        close((int)fd);
    return rc;
}

static int ask_membarrier(void)
{
    long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);

    if (commands < 0)
        return -errno;
    return commands & MEMBARRIER_CMD_GLOBAL_EXPEDITED ? 0 : -ENOSYS;
}

static const struct dock_ability abilities[] = {
    {"process_vm", "memory that is not in the arena cannot be registered for remote access", ask_process_vm},
    {"memfd", "no device can be opened", ask_memfd},
    {"pidfd", "a peer's death is seen by a record lock, later", ask_pidfd},
    {"membarrier", "every request pays a full fence", ask_membarrier},
};

const struct dock_ability *dock_machine_abilities(size_t *count)
{
    *count = sizeof(abilities) / sizeof(abilities[0]);
    return abilities;
}
