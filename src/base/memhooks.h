// SPDX-License-Identifier: MIT
// Between the preloaded shim, which sees a program's calls on its mappings, and the device, which knows what
// of them is adopted. The shim defines `dock_memory_hooks`; the device sets it while there may be something.
#ifndef DOCK_BASE_MEMHOOKS_H
#define DOCK_BASE_MEMHOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>

struct dock_memory_hooks {
    // true: it was done, or refused with errno, as *ret says. false: the caller asks the kernel.
    bool (*madvise)(void *at, size_t len, int advice, int *ret);
    bool (*mremap)(void *old, size_t old_len, size_t new_len, int flags, void *to, void **ret);
    // Is there adopted memory at `at`? An allocator must not move it by a call that is not seen here.
    bool (*adopted)(const void *at);
};

typedef _Atomic(const struct dock_memory_hooks *) dock_memory_hooks_p;
typedef _Atomic(bool) dock_memory_asked_p; // the program has given advice that stays

// Advice that a mapping keeps, for core dumps, forks and the kernel's own threads.
static inline bool dock_advice_stays(int advice)
{
    switch (advice) {
    case MADV_DONTFORK:
    case MADV_DOFORK:
    case MADV_MERGEABLE:
    case MADV_UNMERGEABLE:
    case MADV_HUGEPAGE:
    case MADV_NOHUGEPAGE:
    case MADV_DONTDUMP:
    case MADV_DODUMP:
    case MADV_WIPEONFORK:
    case MADV_KEEPONFORK:
        return true;
    default:
        return false;
    }
}

#endif
