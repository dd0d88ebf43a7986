// SPDX-License-Identifier: MIT
// Memory that the program has locked (mlock) is locked wherever it lies: in the arena, and when it is the
// program's own again. It counts once, so a limit that was enough is enough.
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arena/adopt_own.h"
#include "base/rawcall.h"

// The one question that the kernel answers by whether memory is locked.
bool dock_lock_is(uint64_t at, uint64_t len)
{
    return dock_rawcall(SYS_msync, (long)at, (long)len, MS_INVALIDATE, 0, 0, 0) == -EBUSY;
}

// What is locked is there, unless it was to be locked as it comes.
unsigned dock_lock_kind(uint64_t lo, uint64_t hi)
{
    uint64_t from = lo, to;

    if (!dock_holes_read(lo, hi))
        return 0;
    return dock_holes_run(lo, hi, &from, &to) && from == lo && to == hi ? 0 : MLOCK_ONFAULT;
}

unsigned dock_lock_kind_of_file(int fd, uint64_t off, uint64_t len)
{
    long hole = dock_rawcall(SYS_lseek, fd, (long)off, SEEK_HOLE, 0, 0, 0);

    return hole >= 0 && (uint64_t)hole < off + len ? MLOCK_ONFAULT : 0;
}

bool dock_lock_set(uint64_t at, uint64_t len, unsigned kind)
{
    return !dock_rawcall(SYS_mlock2, (long)at, (long)len, kind, 0, 0, 0);
}

void dock_lock_lift(uint64_t at, uint64_t len)
{
    dock_rawcall(SYS_munlock, (long)at, (long)len, 0, 0, 0, 0);
}
