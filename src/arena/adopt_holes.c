// SPDX-License-Identifier: MIT
// Pages that nobody ever touched: they are neither copied when a region moves nor when it moves back, so that
// a large region that is mostly empty costs what is in it, in time and in memory.
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "arena/adopt_own.h"
#include "arena/procfile.h"
#include "base/rawcall.h"

#define SOFT_DIRTY (1ull << 55) // of a page's word: told of pages that are not there too

// One word for each page of a chunk. Under the adoption lock.
static uint64_t word[DOCK_ADOPT_CHUNK / 4096];

// Where memory is promised when it is mapped, a hole in a file is not: a store to it may be a SIGBUS.
bool dock_holes_allowed(void)
{
    char mode = '2';
    long fd = dock_rawcall(SYS_openat, AT_FDCWD, (long)"/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC,
                           0, 0, 0);

    if (fd < 0)
        return false;
    if (dock_rawcall(SYS_read, fd, (long)&mode, 1, 0, 0, 0) != 1)
        mode = '2';
    dock_rawcall(SYS_close, fd, 0, 0, 0, 0, 0);
    return mode == '0' || mode == '1';
}

bool dock_holes_read(uint64_t lo, uint64_t hi)
{
    uint64_t page = dock_page(), bytes = (hi - lo) / page * sizeof *word;
    struct dock_proc map;
    long n;

    if (bytes > sizeof word || dock_proc_open(DOCK_PROC_PAGES, &map))
        return false;
    n = dock_rawcall(SYS_pread64, map.fd, (long)word, (long)bytes, (long)(lo / page * sizeof *word), 0, 0);
    dock_proc_done(&map);
    return n == (long)bytes;
}

// Swapped out, guarded, watched, of a file: whatever the word says, it is more than nothing.
bool dock_holes_empty(uint64_t of)
{
    return !(of & ~SOFT_DIRTY);
}

bool dock_holes_run(uint64_t lo, uint64_t hi, uint64_t *from, uint64_t *to)
{
    uint64_t page = dock_page(), i = (*from - lo) / page, end = (hi - lo) / page;

    while (i < end && dock_holes_empty(word[i]))
        i++;
    *from = lo + i * page;
    while (i < end && !dock_holes_empty(word[i]))
        i++;
    *to = lo + i * page;
    return *from < hi;
}

uint64_t dock_holes_full(uint64_t lo, uint64_t from, uint64_t to)
{
    uint64_t page = dock_page(), n = 0;

    for (uint64_t i = (from - lo) / page; i < (to - lo) / page; i++)
        n += !dock_holes_empty(word[i]);
    return n;
}

bool dock_holes_run_of_file(int fd, uint64_t end, uint64_t *from, uint64_t *to)
{
    long at = dock_rawcall(SYS_lseek, fd, (long)*from, SEEK_DATA, 0, 0, 0);

    if (at == -ENXIO || (at >= 0 && (uint64_t)at >= end))
        return false;
    if (at < 0) { // it cannot be told: all of it
        *to = end;
        return true;
    }
    *from = (uint64_t)at;
    at = dock_rawcall(SYS_lseek, fd, at, SEEK_HOLE, 0, 0, 0);
    *to = at < 0 || (uint64_t)at > end ? end : (uint64_t)at;
    return true;
}
