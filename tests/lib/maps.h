// SPDX-License-Identifier: MIT
// What /proc/self/maps says of a range, for tests of adoption; and memory whose place says nothing.
#ifndef TESTS_LIB_MAPS_H
#define TESTS_LIB_MAPS_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

struct maps_seen {
    unsigned mappings;              // that overlap the range
    uint64_t adopted, private_anon; // bytes of the range
};

static inline struct maps_seen maps_look(const void *at, uint64_t len)
{
    struct maps_seen seen = {0};
    uint64_t from = (uintptr_t)at, to = from + len, lo, hi, inode;
    char line[512], prot[8];
    FILE *f = fopen("/proc/self/maps", "re");

    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %*s %*s %" SCNu64, &lo, &hi, prot, &inode) != 4 ||
            lo >= to || hi <= from)
            continue;
        uint64_t n = (hi < to ? hi : to) - (lo > from ? lo : from);
        seen.mappings++;
        if (strstr(line, "drydock-arena") && prot[3] == 's')
            seen.adopted += n;
        else if (!inode && prot[3] == 'p')
            seen.private_anon += n;
    }
    if (f)
        fclose(f);
    return seen;
}

static inline unsigned maps_count(void)
{
    return maps_look(NULL, UINT64_MAX).mappings;
}

// Is this among the flags that the kernel has for the mapping of `at`?
static inline bool maps_has(const void *at, const char *flag)
{
    uint64_t lo, hi;
    char line[512];
    bool inside = false, found = false;
    FILE *f = fopen("/proc/self/smaps", "re");

    while (f && !found && fgets(line, sizeof line, f)) {
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " ", &lo, &hi) == 2)
            inside = (uintptr_t)at >= lo && (uintptr_t)at < hi;
        if (inside && !strncmp(line, "VmFlags:", 8)) {
            found = strstr(line + 8, flag);
            break;
        }
    }
    if (f)
        fclose(f);
    return found;
}

// Private memory that lies within one window's part of the address space, and so in one mirror, wherever the
// kernel puts it: it crosses no multiple of a power of two that is as long. MAP_FAILED: there is none.
static inline void *maps_in_one(size_t len)
{
    size_t size = 4096, before;
    char *p;

    while (size < len)
        size *= 2;
    p = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return p;
    before = (size_t)(-(uintptr_t)p & (size - 1));
    if (before)
        munmap(p, before);
    munmap(p + before + len, 2 * size - before - len);
    return p + before;
}

#endif
