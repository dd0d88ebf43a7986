// SPDX-License-Identifier: MIT
#include "base/order.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

dock_a32 dock_fence_asymmetric;

#ifdef __SANITIZE_THREAD__
void dock_fence_unseen(void);

// What the machine needs of a full fence.
void dock_fence_unseen(void)
{
#if defined(__x86_64__)
    __asm__ volatile("lock orl $0, (%%rsp)" ::: "memory", "cc");
#elif defined(__aarch64__)
    __asm__ volatile("dmb ish" ::: "memory");
#endif
}
#endif

static void find_out(void)
{
#ifndef __SANITIZE_THREAD__
    // GLOBAL_EXPEDITED reaches the processes that registered, which every opener of the device has done.
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0)
        dock_set32(&dock_fence_asymmetric, 1); // ordered by pthread_once
#endif
}

void dock_fence_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, find_out);
}

void dock_fence_symmetric(void)
{
    dock_set32(&dock_fence_asymmetric, 0);
    dock_fence_full();
}

void dock_fence_heavy(void)
{
    dock_fence_full();
    if (dock_peek32(&dock_fence_asymmetric))
        syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}
