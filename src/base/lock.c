// SPDX-License-Identifier: MIT
#include "base/lock.h"

#include <signal.h>

#include "base/rawcall.h"

#define BIT(signal) ((uint64_t)1 << ((signal)-1))
#define OWN_FAULTS (BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGILL) | BIT(SIGFPE) | BIT(SIGTRAP) | BIT(SIGSYS))
#define OF_LIBC (BIT(32) | BIT(33)) // a change of the user in another thread waits for the second

// Of the thread, and nothing that needs memory at its first use: some locks are taken by handlers of fork.
static _Thread_local __attribute__((tls_model("initial-exec"))) struct {
    unsigned cancels, signals;
    int cancel; // as they were before the first
    uint64_t mask;
} held;

void dock_uncancelled_begin(void)
{
    int was;

    if (held.cancels) {
        held.cancels++;
        return;
    }
    // First the act, then the count: a signal handler in between finds no count without it.
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &was);
    if (held.cancels++ == 0)
        held.cancel = was;
}

void dock_uncancelled_end(void)
{
    int was = held.cancel;

    if (--held.cancels == 0)
        pthread_setcancelstate(was, NULL);
}

void dock_unsignalled_begin(void)
{
    uint64_t all = ~OF_LIBC, was = 0;

    dock_rawcall(SYS_rt_sigprocmask, SIG_BLOCK, (long)&all, (long)&was, sizeof all, 0, 0);
    if (held.signals++ == 0)
        held.mask = was;
}

void dock_unsignalled_faults(void)
{
    uint64_t own = OWN_FAULTS & ~held.mask;

    dock_rawcall(SYS_rt_sigprocmask, SIG_UNBLOCK, (long)&own, 0, sizeof own, 0, 0);
}

void dock_unsignalled_end(void)
{
    uint64_t mask = held.mask;

    if (--held.signals == 0)
        dock_rawcall(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, sizeof mask, 0, 0);
}

uint64_t dock_signals_blocked(void)
{
    uint64_t mask = held.mask;

    if (!held.signals)
        dock_rawcall(SYS_rt_sigprocmask, SIG_BLOCK, 0, (long)&mask, sizeof mask, 0, 0);
    return mask;
}
