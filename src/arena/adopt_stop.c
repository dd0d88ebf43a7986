// SPDX-License-Identifier: MIT
// Stopping the other threads for a moment: by which way, and what of the address space is a thread's own.
// Nothing between begin and end may allocate, log or take a lock: whoever holds it may be stopped.
//
// By ptrace, of which the program sees next to nothing. By a signal where the user says so; and where ptrace
// is refused and process_vm as well, so that memory which does not move could not be reached at all.
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "arena/adopt_stop_own.h"
#include "arena/procfile.h"
#include "arena/xcopy.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"

#define GATE_PATIENCE_NS 100000000ull

static struct {
    sigset_t mask;
    bool others;
    bool traced;                     // by the helper of a fork
    const struct dock_stop_way *way; // that they were stopped by
    uint64_t began_ns;
} stop;

enum wanted { AUTO, PTRACE, SIGNAL };

// DRYDOCK_STOP.
static enum wanted wanted(void)
{
    static const char *const names[] = {[AUTO] = "auto", [PTRACE] = "ptrace", [SIGNAL] = "signal"};
    static dock_a32 known; // one more
    uint32_t was = dock_peek32(&known);
    const char *text = getenv("DRYDOCK_STOP");
    uint32_t i = 0;

    if (was)
        return (enum wanted)(was - 1);
    if (!text || !*text)
        text = names[AUTO];
    while (i <= SIGNAL && strcmp(text, names[i]) != 0)
        i++;
    if (i > SIGNAL) {
        dock_error("DRYDOCK_STOP=%s is not known (auto, ptrace, signal): auto", text);
        i = AUTO;
    }
    dock_set32(&known, i + 1);
    return (enum wanted)i;
}

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

// Before anything stands still: it may be said.
static bool may_signal(void)
{
    static bool said;

    dock_stopping.asked_for = wanted() == SIGNAL;
    if (wanted() != AUTO)
        return dock_stopping.asked_for;
    if (!dock_ptrace_refused() || dock_xcopy_by_peers())
        return false;
    if (!said)
        dock_warn(
            "ptrace and process_vm are refused here: threads are stopped by a signal while registered memory "
            "moves, and system calls of theirs may return EINTR (DRYDOCK_STOP=ptrace: never)");
    said = true;
    return true;
}

// The same: who is to be stopped, by which number?
static bool are_shown(void)
{
    static bool said;
    bool shown = dock_threads_begin();

    if (!shown && !said)
        dock_warn("/proc is missing, or of another pid namespace (mount one: unshare --mount-proc): threads "
                  "cannot be stopped, and memory that is registered beside them stays where it is");
    said = said || !shown;
    return shown;
}

// An engine takes the views' lock behind its gate; other threads may be stopped while they have it. So it
// comes after the gates, and before they are stopped.
static bool stop_by(const struct dock_stop_way *way)
{
    if (way->behind_gates && !shut_gates())
        return false;
    dock_views_lock();
    stop.way = way;
    if (way->begin())
        return true;
    dock_views_unlock();
    if (way->behind_gates)
        open_gates(NULL);
    return false;
}

enum dock_adopt_why dock_stop_begin(void)
{
    enum dock_adopt_why why = DOCK_WHY_NONE;

    dock_stopping.mask = dock_signals_blocked();
    stop.began_ns = dock_now_ns();
    dock_stopping.threads = 0;
    dock_proc_still(true);
    stop.others = !alone();
    if (stop.others) {
        if (!are_shown() || (!(wanted() != SIGNAL && stop_by(&dock_stop_by_ptrace)) &&
                             !(may_signal() && stop_by(&dock_stop_by_signal))))
            why = DOCK_WHY_THREADS;
        dock_proc_still(!why); // what was asked before they stopped does not count
    } else {
        dock_views_lock();
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
        stop.way->end();
        dock_count64(&a->counts->stops, 1);
        dock_count64(&a->counts->stopped_ns, dock_now_ns() - stop.began_ns);
    }
    if (!stop.others || stop.way->behind_gates)
        open_gates(NULL);
    dock_views_unlock();
}

// ---- over a fork: the others run until the child is asked for, since fork waits for locks of theirs

// Engines too are stopped by the helper, if there is one: it is wanted for more than that.
bool dock_stop_fork(const struct dock_fork_steps *steps)
{
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &stop.mask);
    stop.began_ns = dock_now_ns();
    stop.others = !alone();
    dock_views_lock();
    dock_adopt_fork_begins();
    stop.traced = dock_ptrace_fork(steps);
    return stop.traced || !stop.others;
}

bool dock_stop_forked(bool in_child)
{
    bool stood = true;

    if (stop.traced && !in_child)
        stood = dock_ptrace_forked() || !stop.others;
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

static void take_out_thread(struct taken *taken, const struct dock_stop_thread *t, uint64_t vlo, uint64_t vhi)
{
    uint64_t page = dock_page(), first, end;

    if (dock_fit_thread(vlo, vhi, t->sp, t->tp, &first, &end))
        take_out(taken, first, end);
    if (t->hi)
        take_out(taken, t->lo & ~(page - 1), (t->hi + page - 1) & ~(page - 1));
    else if (t->frame && dock_fit_thread(vlo, vhi, t->frame, 0, &first, &end))
        take_out(taken, first, end);
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
        take_out_thread(&t, &dock_stopping.thread[i], vlo, vhi);
    *until = t.until;
    return t.clear;
}
