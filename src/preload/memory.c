// SPDX-License-Identifier: MIT
// Calls on mappings that adopted memory would answer in another way than private memory does: madvise would
// not clear it, mremap would let it grow into its neighbours. While nothing is adopted each costs one load.
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memhooks.h"

dock_memory_hooks_p dock_memory_hooks;
dock_memory_asked_p dock_memory_asked;

static inline const struct dock_memory_hooks *hooks(void)
{
    return atomic_load_explicit(&dock_memory_hooks, memory_order_acquire); // pairs with adopt_change.c
}

int madvise(void *at, size_t len, int advice)
{
    const struct dock_memory_hooks *h = hooks();
    int ret;

    if (dock_advice_stays(advice)) // a move that goes on meanwhile is between this call and the kernel's
        atomic_store_explicit(&dock_memory_asked, true, memory_order_relaxed);
    if (h && h->madvise(at, len, advice, &ret))
        return ret;
    return (int)syscall(SYS_madvise, at, len, advice);
}

void *mremap(void *old, size_t old_len, size_t new_len, int flags, ...)
{
    const struct dock_memory_hooks *h = hooks();
    void *to = NULL, *ret;
    va_list rest;

    va_start(rest, flags);
    if (flags & MREMAP_FIXED)
        to = va_arg(rest, void *);
    va_end(rest);
    if (h && h->mremap(old, old_len, new_len, flags, to, &ret))
        return ret;
    return (void *)syscall(SYS_mremap, old, old_len, new_len, flags, to);
}

// glibc moves a big block by a mremap of its own, which is not seen above.
void *realloc(void *old, size_t size)
{
    static void *(*next)(void *, size_t);
    const struct dock_memory_hooks *h = hooks();

    if (__builtin_expect(!next, 0))
        next = (void *(*)(void *, size_t))dlsym(RTLD_NEXT, "realloc");
    if (!h || !old || !size || !h->adopted(old))
        return next(old, size);
    size_t had = malloc_usable_size(old);
    void *new = malloc(size);
    if (new) {
        memcpy(new, old, had < size ? had : size);
        free(old);
    }
    return new;
}
