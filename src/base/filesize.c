// SPDX-License-Identifier: MIT
#include "base/filesize.h"

#include <signal.h>
#include <stddef.h>
#include <sys/resource.h>
#include <time.h>

#include "base/rawcall.h"

#define SIGNAL_BIT ((uint64_t)1 << (SIGXFSZ - 1))

void dock_filesize_begin(struct dock_filesize *f)
{
    struct rlimit64 r = {.rlim_cur = RLIM64_INFINITY};
    uint64_t all = SIGNAL_BIT, pending = 0;

    *f = (struct dock_filesize){.limited = false};
    if (dock_rawcall(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&r, 0, 0) || r.rlim_cur == RLIM64_INFINITY)
        return;
    f->limited = !dock_rawcall(SYS_rt_sigprocmask, SIG_BLOCK, (long)&all, (long)&f->mask, sizeof all, 0, 0);
    dock_rawcall(SYS_rt_sigpending, (long)&pending, sizeof pending, 0, 0, 0, 0);
    f->pending = pending & SIGNAL_BIT;
}

bool dock_filesize_open_to(uint64_t blocked)
{
    return !(blocked & SIGNAL_BIT);
}

// It is sent to the thread that let the file grow, before the call returns.
void dock_filesize_refused(void)
{
    uint64_t ours = SIGNAL_BIT;
    struct timespec none = {0};

    dock_rawcall(SYS_rt_sigtimedwait, (long)&ours, 0, (long)&none, sizeof ours, 0, 0);
}

void dock_filesize_end(const struct dock_filesize *f)
{
    if (!f->limited)
        return;
    if (!f->pending)
        dock_filesize_refused();
    dock_rawcall(SYS_rt_sigprocmask, SIG_SETMASK, (long)&f->mask, 0, sizeof f->mask, 0, 0);
}
