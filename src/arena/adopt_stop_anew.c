// SPDX-License-Identifier: MIT
// System calls that a stop by ptrace would end with EINTR, though no handler runs. Most calls the kernel
// makes anew by itself; these it does not (signal(7)). So their result becomes the one by which it does so:
// if a handler runs before the thread goes on it is EINTR as ever, and else nobody sees the stop. A call with
// a timeout of its own argument is left alone: it would wait all of that again, after each stop.
#include <errno.h>

#include "arena/adopt_stop_own.h"

#if defined(__x86_64__)

#define RESTART_WITHOUT_HANDLER 514u // ERESTARTNOHAND of the kernel
#define SEGMENT 0x33u                // of code that makes calls by these numbers

static bool may_wait_again(const struct user_regs_struct *r)
{
    switch (r->orig_rax) {
    case SYS_read:
    case SYS_readv:
    case SYS_write:
    case SYS_writev: // of sockets with a timeout, as the next ones
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
    case SYS_accept:
    case SYS_accept4:
    case SYS_connect:
    case SYS_semop:
        return true;
    case SYS_recvmmsg:
        return !r->r8;
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
        return (int32_t)r->r10 < 0;
    case SYS_epoll_pwait2:
    case SYS_semtimedop:
        return !r->r10;
    case SYS_rt_sigtimedwait:
        return !r->rdx;
    default:
        return false;
    }
}

bool dock_call_anew(struct user_regs_struct *r)
{
    if (r->cs != SEGMENT || (int64_t)r->rax != -EINTR || !may_wait_again(r))
        return false;
    r->rax = -(uint64_t)RESTART_WITHOUT_HANDLER;
    return true;
}

#else

// The kernel has decided before a tracer sees the registers.
bool dock_call_anew(struct user_regs_struct *r)
{
    (void)r;
    return false;
}

#endif
