// SPDX-License-Identifier: MIT
#include "base/order.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

bool dock_fence_asymmetric;

#ifdef __SANITIZE_THREAD__
dock_a32 dock_fence_word;
#endif

void dock_fence_init(void)
{
#ifndef __SANITIZE_THREAD__
    // GLOBAL_EXPEDITED reaches the processes that registered, which every opener of the device has done.
    long ok = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0);
    dock_fence_asymmetric = ok == 0;
#endif
}

void dock_fence_heavy(void)
{
    dock_fence_full();
    if (dock_fence_asymmetric)
        syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}
