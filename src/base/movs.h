// SPDX-License-Identifier: MIT
// The processor's own copy of a string of bytes. What it stores is seen in any order, and before any later
// store.
#ifndef DOCK_BASE_MOVS_H
#define DOCK_BASE_MOVS_H

#include <stddef.h>
#include <string.h>

// As memcpy.
static inline void dock_movs(char *to, const char *from, size_t n)
{
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
#else
    memcpy(to, from, n);
#endif
}

#endif
