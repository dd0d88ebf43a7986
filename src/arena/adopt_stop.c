// SPDX-License-Identifier: MIT
// Stopping the other threads for a moment: by which way, and what of the address space is a thread's own.
// Nothing between begin and end may allocate, log or take a lock: whoever holds it may be stopped.
#include <signal.h>
#include <time.h>

#include "arena/adopt_stop_own.h"
#include "arena/procfile.h"
#include "base/clock.h"

#define GATE_PATIENCE_NS 100000000ull

static struct {
    sigset_t mask;
    bool others;
    uint64_t began_ns;
} stop;

bool dock_stop_prepare(void)
{
    bool room = dock_threads_room();

    return dock_ptrace_prepare() && room;
}

static void open_gates(const struct dock_adopt *end)
{
    for (struct dock_adopt *a = dock_adopters; a != end; a = a->next)
        if (a->engine)
            pthread_mutex_unlock(&a->gate);
}

// An engine may wait behind its gate for a lock that our caller has, an allocator's over a fork for instance.
static bool shut_gates(void)
{
    uint64_t by = dock_now_ns() + GATE_PATIENCE_NS;
    struct timespec t = {.tv_sec = (time_t)(by / 1000000000u), .tv_nsec = (long)(by % 1000000000u)};

    for (struct dock_adopt *a = dock_adopters; a; a = a->next)
        if (a->engine && pthread_mutex_clocklock(&a->gate, CLOCK_MONOTONIC, &t)) {
            open_gates(a);
            return false;
        }
    return true;
}

// Alone but for our own engines, which stand still behind their gates?
static bool alone(void)
{
    unsigned engines = 0;

    for (const struct dock_adopt *a = dock_adopters; a; a = a->next)
        engines += a->engine;
    return dock_threads_count() == 1 + engines && shut_gates();
}

// An engine takes the views' lock behind its gate; other threads may be stopped while they have it. So it
// comes after the gates, and before the helper.
enum dock_adopt_why dock_stop_begin(struct dock_adopt *a)
{
    sigset_t all;
    enum dock_adopt_why why = DOCK_WHY_NONE;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &stop.mask);
    stop.began_ns = dock_now_ns();
    dock_stopping.threads = 0;
    dock_proc_still(true);
    stop.others = !alone();
    dock_views_lock();
    if (stop.others) {
        why = dock_stop_by_ptrace.begin() ? DOCK_WHY_NONE : DOCK_WHY_THREADS;
        dock_proc_still(!why); // what was asked before they stopped does not count
    }
    (void)a;
    if (why) {
        dock_views_unlock();
        pthread_sigmask(SIG_SETMASK, &stop.mask, NULL);
    }
    return why;
}

bool dock_stop_is_alone(void)
{
    return !stop.others;
}

void dock_stop_end(struct dock_adopt *a)
{
    dock_proc_still(false);
    if (stop.others) {
        dock_stop_by_ptrace.end();
        dock_count64(&a->counts->stops, 1);
        dock_count64(&a->counts->stopped_ns, dock_now_ns() - stop.began_ns);
    } else {
        open_gates(NULL);
    }
    dock_views_unlock();
    pthread_sigmask(SIG_SETMASK, &stop.mask, NULL);
}

// ---- over a fork: the others run until the child is asked for, since fork waits for locks of theirs

bool dock_stop_fork(void (*at_clone)(void))
{
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &stop.mask);
    stop.began_ns = dock_now_ns();
    stop.others = !alone();
    dock_views_lock();
    dock_adopt_fork_begins();
    return !stop.others || dock_ptrace_fork(at_clone);
}

bool dock_stop_forked(bool in_child)
{
    bool stood = true;

    if (stop.others && !in_child)
        stood = dock_ptrace_forked();
    if (!stop.others)
        open_gates(NULL);
    dock_adopt_fork_ends(in_child);
    dock_views_unlock();
    pthread_sigmask(SIG_SETMASK, &stop.mask, NULL);
    return stood;
}

// Where this thread's control block is.
static uint64_t own_pointer(void)
{
    return (uintptr_t)pthread_self();
}

// A part of the mapping that is taken.
struct taken {
    uint64_t lo, hi; // asked
    bool clear;      // lo is
    uint64_t until;
};

static void take_out(struct taken *t, uint64_t first, uint64_t end)
{
    if (first > t->lo) {
        t->until = t->clear && first < t->until ? first : t->until;
    } else if (end > t->lo) {
        t->until = end < t->hi ? end : t->hi;
        t->clear = false;
    }
}

bool dock_stop_clear(uint64_t lo, uint64_t hi, uint64_t vlo, uint64_t vhi, uint64_t *until)
{
    struct taken t = {.lo = lo, .hi = hi, .clear = true, .until = hi};
    uint64_t first, end;

    if (dock_fit_thread(vlo, vhi, (uintptr_t)__builtin_frame_address(0), own_pointer(), &first, &end))
        take_out(&t, first, end);
    for (const struct dock_adopt *a = dock_adopters; a; a = a->next)
        if (a->engine_stack_end)
            take_out(&t, a->engine_stack, a->engine_stack_end);
    for (uint32_t i = 0; i < dock_stopping.threads; i++)
        if (dock_fit_thread(vlo, vhi, dock_stopping.thread[i].sp, dock_stopping.thread[i].tp, &first, &end))
            take_out(&t, first, end);
    *until = t.until;
    return t.clear;
}
