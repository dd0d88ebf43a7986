// SPDX-License-Identifier: MIT
// What the ways to stop threads share. Between begin and end of a stop nothing may allocate, log or take a
// lock: whoever holds it may be stopped. Raw system calls only.
#ifndef DOCK_ARENA_ADOPT_STOP_OWN_H
#define DOCK_ARENA_ADOPT_STOP_OWN_H

#include <sys/user.h>

#include "arena/adopt_own.h"
#include "base/rawcall.h"

#define DOCK_STOP_THREADS 4096u

// One that is stopped, or about to be.
struct dock_stop_thread {
    int32_t tid, signal; // signal: to be delivered when it goes on
    uint64_t sp, tp;
    bool group;      // its process is stopped by a signal: it is to stay so
    dock_a64 word;   // of adopt_stop_signal.c: its answer
    uint64_t frame;  // of what it waits in, or 0
    uint64_t lo, hi; // the alternate stack that this frame is on, or 0
};

// The process, the thread that is not stopped, and the others. One stop at a time (the adoption lock).
struct dock_stop_list {
    int32_t pid, caller;
    char path[32];
    uint64_t mask;  // what the caller blocked before the stop
    bool asked_for; // the user has chosen the way
    uint32_t threads, missed;
    struct dock_stop_thread *thread; // room for DOCK_STOP_THREADS
};

extern struct dock_stop_list dock_stopping;

struct dock_stop_way {
    bool (*begin)(void); // all threads but the caller, and engines if it is, stand still; or false: none does
    void (*end)(void);
    bool behind_gates; // the engines stand still behind their gates already, and are not asked
};

extern const struct dock_stop_way dock_stop_by_ptrace, dock_stop_by_signal;

// ---- adopt_stop_threads.c: who the threads are
unsigned dock_threads_count(void); // or 0
// Room for the list, once. false: there is no memory.
bool dock_threads_room(void);
// Empties the list. false: /proc does not show the threads by the numbers that they have here.
bool dock_threads_begin(void);
// The beginning of a file in its directory, as text. How long it is, or -errno.
long dock_thread_file(int32_t tid, const char *name, char *text, size_t size);
// A thread that has ended, the first one of a process for instance, stays listed and cannot be stopped.
bool dock_thread_is_dead(int32_t tid);
bool dock_process_is_stopped(int32_t pid); // by a signal, and not traced

enum dock_taken { DOCK_TAKEN, DOCK_GONE, DOCK_REFUSED };

// Stop the thread at the end of the list and count it there, from when on it must be let go.
typedef enum dock_taken dock_threads_take(struct dock_stop_thread *t);

// Each thread that is not in the list yet. -1: one was refused, or they cannot be listed; else whether to
// look once more, for threads that were running may have made others. 0: there is none but those taken.
int dock_threads_pass(dock_threads_take *take);

// ---- adopt_stop_ptrace.c: by a helper that traces them
bool dock_ptrace_prepare(void);
const void *dock_ptrace_stack(size_t *bytes); // of the helper; NULL: there is none yet
bool dock_ptrace_refused(void);               // the last one that failed: the kernel does not let us trace
// As dock_stop_fork wants it. forked: in the parent.
bool dock_ptrace_fork(const struct dock_fork_steps *steps);
bool dock_ptrace_forked(void);

// ---- adopt_stop_anew.c
// true: `r` has changed, and with it the thread makes the call anew that the stop would have ended.
bool dock_call_anew(struct user_regs_struct *r);

#endif
