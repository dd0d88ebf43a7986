// SPDX-License-Identifier: MIT
// Bytes that a CPU may poll, word by word. memcpy is no answer: for 2 bytes and for 9 to 16 or 17 to 32 it
// stores some of them twice, by pieces that overlap, and the second store undoes what the receiver did in
// between.
#include "fabric/bulk.h"
#include "fabric/direct.h"

// Programs poll the last byte of a WRITE, though nobody promises it to them: all of it is there then, as it
// is with an adapter that writes from front to back. So the last word is stored last, here and below.
static void words_of_8(char *to, const char *from, size_t n)
{
    for (size_t i = 0; i < n; i += 8) {
        uint64_t word;
        if (i + 8 == n)
            dock_fence_store();
        memcpy(&word, from + i, 8);
        atomic_store_explicit((dock_a64 *)(void *)(to + i), word, memory_order_relaxed);
    }
}

static void words_of_4(char *to, const char *from, size_t n)
{
    for (size_t i = 0; i < n; i += 4) {
        uint32_t word;
        if (i + 4 == n)
            dock_fence_store();
        memcpy(&word, from + i, 4);
        atomic_store_explicit((dock_a32 *)(void *)(to + i), word, memory_order_relaxed);
    }
}

static void words_of_2(char *to, const char *from, size_t n)
{
    for (size_t i = 0; i < n; i += 2) {
        uint16_t word;
        if (i + 2 == n)
            dock_fence_store();
        memcpy(&word, from + i, 2);
        atomic_store_explicit((_Atomic uint16_t *)(void *)(to + i), word, memory_order_relaxed);
    }
}

// At most 8 bytes from the beginning of a word on: each naturally aligned piece once, the last byte last.
static void end_of_copy(char *to, const char *from, size_t n)
{
    size_t done = 0;

    if (n == 8) {
        words_of_8(to, from, 8);
        return;
    }
    if (n & 4) {
        words_of_4(to, from, 4);
        done = 4;
    }
    if (n & 2) {
        words_of_2(to + done, from + done, 2);
        done += 2;
    }
    if (n & 1) {
        dock_fence_store();
        atomic_store_explicit((_Atomic char *)(to + done), from[done], memory_order_relaxed);
    }
}

// Bytes of one word that do not begin it: memcpy would store the last of them first.
static void bytes_of_a_word(char *to, const char *from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        dock_fence_store();
        atomic_store_explicit((_Atomic char *)(to + i), from[i], memory_order_relaxed);
    }
}

static void long_copy(char *to, const char *from, size_t n)
{
    size_t end = 1 + ((uintptr_t)to + n - 1) % 8;

    if (end > n) {
        bytes_of_a_word(to, from, n);
        return;
    }
    dock_bulk_copy(to, from, n - end);
    dock_fence_store();
    end_of_copy(to + n - end, from + n - end, end);
}

void dock_direct_copy_other(char *to, const char *from, size_t n)
{
    uintptr_t odd = (uintptr_t)to | n; // its lowest bit tells what all of it is a multiple of

    if (n > DOCK_DIRECT_WORDS || odd & 1)
        long_copy(to, from, n);
    else if (!(odd & 7))
        words_of_8(to, from, n);
    else if (!(odd & 3))
        words_of_4(to, from, n);
    else
        words_of_2(to, from, n);
}
