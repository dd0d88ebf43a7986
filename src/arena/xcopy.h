// SPDX-License-Identifier: MIT
// Copies to and from a program's plain memory through the kernel (process_vm_*), so that a bad address is
// an error code and never a signal. The fallback for memory that is not in an arena.
#ifndef DOCK_ARENA_XCOPY_H
#define DOCK_ARENA_XCOPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// Let peers reach our plain memory (PR_SET_PTRACER_ANY under Yama). Called once at open.
void dock_xcopy_allow(void);
// Does this process may use process_vm_* at all (seccomp, gVisor)? Tried once on itself, then remembered.
bool dock_xcopy_works(void);
// Could peers reach memory of ours that stays plain? Not of a process that has changed its user, unless it
// says it may be looked at. Asked each time.
bool dock_xcopy_by_peers(void);

// Copy `len` bytes between our memory at `here` and `there` in process `pid`. Our side may be a bad address
// as well. 0; -EFAULT somewhere not mapped (part of the bytes may have moved); -ESRCH gone; -EPERM not
// allowed. With the process's `home` (arena/home.h) it is gone also when it runs another image now: nothing
// is written there, and what was read is not to be believed. 0: not known, or it is ourselves.
int dock_xcopy_to(pid_t pid, uint64_t home, const void *here, uint64_t there, size_t len);
int dock_xcopy_from(pid_t pid, uint64_t home, void *here, uint64_t there, size_t len);
// Can `len` bytes at our own address be read (or, with `write`, written)? Touches one byte per page through
// the kernel; tells which side of a failed copy was at fault.
bool dock_xcopy_probe(uint64_t here, size_t len, bool write);

#endif
