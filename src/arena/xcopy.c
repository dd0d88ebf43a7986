// SPDX-License-Identifier: MIT
#include "arena/xcopy.h"

#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "arena/home.h"
#include "base/log.h"
#include "base/order.h"

#define PROBE_BATCH 256
#define COPY_MAX ((size_t)1 << 30) // the kernel moves less than 2 GiB per call

void dock_xcopy_allow(void)
{
    // Yama holds one exception per process, so with several peers it must be "any". Without Yama: EINVAL, not
    // needed.
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
}

bool dock_xcopy_works(void)
{
    static dock_a32 known; // 0 not tried, 1 works, 2 does not
    uint32_t state = dock_peek32(&known);

    if (!state) {
        char from = 1, to = 0;
        struct iovec local = {&to, 1}, remote = {&from, 1};
        state = process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1 && to == 1 ? 1 : 2;
        if (state == 2)
            dock_warn(
                "process_vm_readv is not allowed here (%s): memory that is not mapped cannot be reached",
                strerror(errno));
        dock_set32(&known, state);
    }
    return state == 1;
}

bool dock_xcopy_by_peers(void)
{
    return dock_xcopy_works() && prctl(PR_GET_DUMPABLE) == 1;
}

static int refused(pid_t pid, int cause)
{
    static dock_a32 said;

    if (!dock_swap32(&said, 1))
        dock_error(
            "the memory of process %d may not be copied (%s): needs the same user, not changed since "
            "the start (else PR_SET_DUMPABLE), a filter that allows process_vm_readv, ptrace_scope 0 or 1",
            (int)pid, strerror(cause));
    return -EPERM;
}

typedef ssize_t vm_call(pid_t, const struct iovec *, unsigned long, const struct iovec *, unsigned long,
                        unsigned long);

// The kernel looks the process up once a call and goes through the pieces in their order, so a first piece
// that lies in its home ends the call, with nothing moved, when it runs another image.
static ssize_t copy_some(vm_call *call, pid_t pid, uint64_t home, struct iovec here, struct iovec there)
{
    uint64_t word = dock_home_word(home);
    struct iovec local[2] = {{&word, sizeof word}, here};
    struct iovec remote[2] = {{(void *)(uintptr_t)home, sizeof word}, there};
    ssize_t n;

    if (!home)
        return call(pid, &here, 1, &there, 1, 0);
    n = call(pid, local, 2, remote, 2, 0);
    if ((n < 0 && errno == EFAULT) || (n >= 0 && n < (ssize_t)sizeof word) || word != dock_home_word(home)) {
        errno = ESRCH;
        return -1;
    }
    return n < 0 ? n : n - (ssize_t)sizeof word;
}

static int copy(vm_call *call, pid_t pid, uint64_t home, uint64_t here, uint64_t there, size_t len)
{
    while (len) {
        size_t piece = len < COPY_MAX ? len : COPY_MAX;
        ssize_t n = copy_some(call, pid, home, (struct iovec){(void *)(uintptr_t)here, piece},
                              (struct iovec){(void *)(uintptr_t)there, piece});

        if (n < 0)
            return errno == EPERM || errno == ENOSYS ? refused(pid, errno) : -errno;
        if (n == 0)
            return -EFAULT;
        // A short copy stopped before a bad page: going on tells.
        here += (size_t)n;
        there += (size_t)n;
        len -= (size_t)n;
    }
    return 0;
}

int dock_xcopy_to(pid_t pid, uint64_t home, const void *here, uint64_t there, size_t len)
{
    return copy(process_vm_writev, pid, home, (uintptr_t)here, there, len);
}

int dock_xcopy_from(pid_t pid, uint64_t home, void *here, uint64_t there, size_t len)
{
    return copy(process_vm_readv, pid, home, (uintptr_t)here, there, len);
}

// One byte of each of `n` pages, the first at `at`, the others at the beginnings of theirs.
static bool readable(uint64_t at, size_t n, size_t page)
{
    char bytes[PROBE_BATCH];
    struct iovec local = {bytes, n}, remote[PROBE_BATCH];

    for (size_t i = 0; i < n; i++)
        remote[i] = (struct iovec){(void *)(uintptr_t)(i ? (at & ~(page - 1)) + i * page : at), 1};
    return process_vm_readv(getpid(), &local, 1, remote, n, 0) == (ssize_t)n;
}

// An atomic "add 0", done by the kernel: writes to the page, changes nothing, loses no store of another
// thread. For a page that a handler of userfaultfd has to bring the kernel does not wait there; it does where
// it is asked for the page alone.
static bool is_writable(uint64_t word, size_t page)
{
    uint32_t own = 0;

    return syscall(SYS_futex, &own, FUTEX_WAKE_OP_PRIVATE, 0, NULL, (void *)(uintptr_t)word,
                   FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_LT, -2048)) >= 0 ||
           syscall(SYS_madvise, (void *)(uintptr_t)word, page, MADV_POPULATE_WRITE) == 0;
}

static bool writable(uint64_t at, size_t n, size_t page)
{
    for (size_t i = 0; i < n; i++)
        if (!is_writable((at & ~(page - 1)) + i * page, page))
            return false;
    return true;
}

bool dock_xcopy_probe(uint64_t here, size_t len, bool write)
{
    size_t page = (size_t)getpagesize();

    if (len && here + len - 1 < here)
        return false;
    while (len) {
        size_t pages = (here + len - 1) / page - here / page + 1;
        size_t n = pages < PROBE_BATCH ? pages : PROBE_BATCH;
        size_t bytes = n * page - (here & (page - 1));

        if (!(write ? writable : readable)(here, n, page))
            return false;
        if (bytes >= len)
            return true;
        here += bytes;
        len -= bytes;
    }
    return true;
}
