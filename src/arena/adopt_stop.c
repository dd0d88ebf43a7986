// SPDX-License-Identifier: MIT
// Stopping the other threads for a moment. A helper that shares the address space, but is no thread of the
// process, seizes every thread by ptrace, interrupts it and waits for the stop: a thread in a system call
// leaves it first, so no store of the kernel is under way either; a blocked signal does not matter; and the
// program sees nothing of it (but an EINTR from epoll_wait). Nothing here or between begin and end may
// allocate, log or take a lock: whoever holds it may be stopped.
#include <errno.h>
#include <fcntl.h>
#include <linux/elf.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#include "arena/adopt_own.h"
#include "arena/procfile.h"
#include "base/clock.h"
#include "base/rawcall.h"

#define THREADS 4096u
#define STACK_BYTES 65536u
#define PATIENCE_NS 500000000ull // for one thread to stop: one that waits in vfork stops only at the exec

#define FORK_PATIENCE_NS 30000000000ull // for the copies of a forked child, and for what else may hold it up

#define GATE_PATIENCE_NS 100000000ull

enum { WORKING, ARMED, STOPPED, FAILED, GO_ON };

struct thread {
    int32_t tid, signal; // to be delivered when it goes on
    uint64_t sp, tp;
    bool group; // its process is stopped by a signal: it is to stay so
};

static struct {
    dock_a32 state;
    int32_t pid, caller; // the process, and the thread that is not stopped
    char path[32];
    uint32_t threads;
    struct thread *thread;
    char *stack; // of the helper
    sigset_t mask;
    int helper;
    bool others;
    uint64_t began_ns;
    void (*at_clone)(void); // what the helper does first when a fork has stopped the threads
} stop;

// ---- the helper: raw system calls only, its thread-local storage is the caller's

static long trace(int request, int32_t tid, long addr, long data)
{
    return dock_rawcall(SYS_ptrace, request, tid, addr, data, 0, 0);
}

static bool read_registers(struct thread *t)
{
    struct user_regs_struct r = {0};
    struct iovec v = {&r, sizeof r};

    if (trace(PTRACE_GETREGSET, t->tid, NT_PRSTATUS, (long)&v))
        return false;
#if defined(__x86_64__)
    t->sp = r.rsp;
    t->tp = r.fs_base;
    return true;
#else
    t->sp = r.sp;
    v = (struct iovec){&t->tp, sizeof t->tp};
    return trace(PTRACE_GETREGSET, t->tid, NT_ARM_TLS, (long)&v) == 0;
#endif
}

// A stop of the whole process, by SIGSTOP for instance; the stops that we ask for come with SIGTRAP.
static bool is_group_stop(int status)
{
    return status >> 16 == PTRACE_EVENT_STOP && WSTOPSIG(status) != SIGTRAP;
}

// The stop that was asked for, or another one that came first: the thread stands still either way.
static bool await_stop(struct thread *t)
{
    uint64_t start = dock_now_ns();

    for (;;) {
        int status = 0;
        long ret = dock_rawcall(SYS_wait4, t->tid, (long)&status, __WALL | WNOHANG, 0, 0, 0);

        if (ret == t->tid) {
            if (!WIFSTOPPED(status))
                return false;
            if (status >> 16 == 0) // about to take a signal: it will when it is let go
                t->signal = WSTOPSIG(status);
            t->group = is_group_stop(status);
            return true;
        }
        if (ret < 0 && ret != -EINTR)
            return false;
        if (dock_now_ns() - start > PATIENCE_NS)
            return false;
        dock_rawcall(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
    }
}

// A thread that has ended, the first one of a process for instance, stays listed and cannot be seized.
static bool is_dead(const char *name)
{
    char path[64], text[256];
    long fd, n;

    strcpy(path, stop.path);
    strcat(path, "/");
    strncat(path, name, 16);
    strcat(path, "/stat");
    fd = dock_rawcall(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (fd < 0)
        return fd == -ENOENT || fd == -ESRCH;
    n = dock_rawcall(SYS_read, fd, (long)text, sizeof text - 1, 0, 0, 0);
    dock_rawcall(SYS_close, fd, 0, 0, 0, 0, 0);
    if (n <= 0)
        return true;
    text[n] = '\0';
    const char *state = strrchr(text, ')');
    return state && (state[2] == 'Z' || state[2] == 'X');
}

enum seized { SEIZED, GONE, REFUSED };

static enum seized seize(struct thread *t, const char *name)
{
    long ret = trace(PTRACE_SEIZE, t->tid, 0, 0);

    if (ret)
        return ret == -ESRCH || is_dead(name) ? GONE : REFUSED;
    stop.threads++; // from here on it is let go whatever happens
    ret = trace(PTRACE_INTERRUPT, t->tid, 0, 0);
    if (ret || !await_stop(t) || !read_registers(t)) {
        if (!is_dead(name))
            return REFUSED;
        stop.threads--;
        return GONE;
    }
    return SEIZED;
}

static int32_t number(const char *s)
{
    int32_t n = 0;

    for (; *s >= '0' && *s <= '9'; s++)
        n = n * 10 + (*s - '0');
    return *s ? 0 : n;
}

static bool known(int32_t tid)
{
    for (uint32_t i = 0; i < stop.threads; i++)
        if (stop.thread[i].tid == tid)
            return true;
    return false;
}

// Seize what the list has and we have not yet. -1: it cannot be done; else how many were new.
static int sweep(long dir)
{
    _Alignas(8) char room[4096] = {0};
    int fresh = 0;
    long n;

    dock_rawcall(SYS_lseek, dir, 0, SEEK_SET, 0, 0, 0);
    while ((n = dock_rawcall(SYS_getdents64, dir, (long)room, sizeof room, 0, 0, 0)) > 0)
        for (long at = 0; at < n;) {
            const struct dock_dirent *e = (const struct dock_dirent *)(void *)(room + at);
            int32_t tid = number(e->name);
            at += e->length;
            if (!tid || tid == stop.caller || known(tid))
                continue;
            if (stop.threads == THREADS)
                return -1;
            stop.thread[stop.threads] = (struct thread){.tid = tid};
            enum seized s = seize(&stop.thread[stop.threads], e->name);
            if (s == REFUSED)
                return -1;
            fresh += s == SEIZED;
        }
    return n < 0 ? -1 : fresh;
}

static void tell(uint32_t state)
{
    dock_publish32(&stop.state, state); // pairs with await_state
    dock_rawcall(SYS_futex, (long)&stop.state, FUTEX_WAKE_PRIVATE, 2, 0, 0, 0);
}

// The helper waits for a process that was killed; the process for a helper that was.
static bool other_is_gone(bool as_helper)
{
    if (as_helper)
        return dock_rawcall(SYS_getppid, 0, 0, 0, 0, 0, 0) != stop.pid;
    return dock_rawcall(SYS_wait4, stop.helper, 0, __WALL | WNOHANG, 0, 0, 0) != 0;
}

// Until the state is another than `was`, or an end that nobody should see.
static uint32_t await_state(uint32_t was, uint64_t patience_ns)
{
    uint64_t start = dock_now_ns();
    uint32_t now;

    while ((now = dock_acquire32(&stop.state)) == was) {
        struct timespec t = {.tv_nsec = 100000000};
        if (dock_rawcall(SYS_futex, (long)&stop.state, FUTEX_WAIT_PRIVATE, was, (long)&t, 0, 0) ==
                -ETIMEDOUT &&
            (other_is_gone(was == STOPPED) || dock_now_ns() - start > patience_ns) &&
            dock_acquire32(&stop.state) == was)
            return FAILED;
    }
    return now;
}

static void let_go(void)
{
    for (uint32_t i = 0; i < stop.threads; i++)
        trace(PTRACE_DETACH, stop.thread[i].tid, 0, stop.thread[i].signal);
}

static bool sweep_all(void)
{
    long dir =
        dock_rawcall(SYS_openat, AT_FDCWD, (long)stop.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0, 0, 0);
    int fresh = dir < 0 ? -1 : 1;

    while (fresh > 0) // threads that were running may have made more
        fresh = sweep(dir);
    if (dir >= 0)
        dock_rawcall(SYS_close, dir, 0, 0, 0, 0, 0);
    return fresh == 0;
}

static int __attribute__((no_sanitize_address)) helper(void *arg)
{
    bool all = sweep_all();

    (void)arg;
    if (all) {
        tell(STOPPED);
        await_state(STOPPED, UINT64_MAX);
    }
    let_go();
    if (!all)
        tell(FAILED);
    return 0;
}

static bool copies_process(uint64_t call)
{
#ifdef SYS_fork
    if (call == SYS_fork || call == SYS_vfork)
        return true;
#endif
    return call == SYS_clone || call == SYS_clone3;
}

// The forking thread goes on, one system call after the other, until it asks for its child. By then it holds
// the locks that fork takes, so that no thread which is stopped from here on has them.
static bool follow_to_clone(struct thread *t)
{
    struct __ptrace_syscall_info info;
    int status = 0; // the kernel fills it behind the compiler's back

    for (;;) {
        // One whose process is stopped waits for SIGCONT, as it would without us.
        if (t->group ? trace(PTRACE_LISTEN, t->tid, 0, 0) : trace(PTRACE_SYSCALL, t->tid, 0, t->signal))
            return false;
        t->signal = 0;
        long ret;
        do
            ret = dock_rawcall(SYS_wait4, t->tid, (long)&status, __WALL, 0, 0, 0);
        while (ret == -EINTR);
        if (ret != t->tid || !WIFSTOPPED(status))
            return false;
        t->group = is_group_stop(status);
        if (WSTOPSIG(status) != (SIGTRAP | 0x80)) {
            t->signal = status >> 16 ? 0 : WSTOPSIG(status);
            continue;
        }
        if (trace(PTRACE_GET_SYSCALL_INFO, t->tid, sizeof info, (long)&info) <= 0)
            return false;
        if (info.op == PTRACE_SYSCALL_INFO_ENTRY && copies_process(info.entry.nr))
            return true;
    }
}

static int __attribute__((no_sanitize_address)) fork_helper(void *arg)
{
    struct thread t = {.tid = stop.caller};
    bool all = false;

    (void)arg;
    if (trace(PTRACE_SEIZE, t.tid, 0, PTRACE_O_TRACESYSGOOD)) {
        tell(FAILED);
        return 0;
    }
    if (!trace(PTRACE_INTERRUPT, t.tid, 0, 0) && await_stop(&t)) {
        tell(ARMED);
        all = follow_to_clone(&t) && sweep_all();
    }
    if (all)
        stop.at_clone();
    else
        let_go();
    dock_publish32(&stop.state, all ? STOPPED : FAILED); // it is the caller's again: nobody waits for it
    trace(PTRACE_DETACH, t.tid, 0, t.signal);
    if (all) {
        if (await_state(STOPPED, FORK_PATIENCE_NS) == FAILED)
            dock_publish32(&stop.state, FAILED); // so the parent is told that they ran on
        let_go();
    }
    return 0;
}

// ---- the caller

bool dock_stop_prepare(void)
{
    size_t size = STACK_BYTES + THREADS * sizeof(struct thread);
    char *room;

    if (stop.stack)
        return true;
    room = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        return false;
    stop.thread = (struct thread *)(void *)(room + STACK_BYTES);
    stop.stack = room;
    return true;
}

static void name_tasks(void)
{
    char digits[12];
    unsigned n = 0;

    for (int32_t left = stop.pid; left; left /= 10)
        digits[n++] = (char)('0' + left % 10);
    strcpy(stop.path, "/proc/");
    for (char *at = stop.path + 6; n;) {
        *at++ = digits[--n];
        *at = '\0';
    }
    strcat(stop.path, "/task");
}

// Threads of this process, or 0.
static unsigned count_threads(void)
{
    struct dock_proc tasks;

    if (dock_proc_open(DOCK_PROC_TASKS, &tasks))
        return 0;
    dock_proc_done(&tasks);
    return (unsigned)tasks.st.st_nlink - 2;
}

static void reap(void)
{
    long ret;

    do // with luck the program has not waited for it already
        ret = dock_rawcall(SYS_wait4, stop.helper, 0, __WALL, 0, 0, 0);
    while (ret == -EINTR);
    stop.helper = 0;
}

// The state that the helper comes to.
static uint32_t start_helper(int (*body)(void *))
{
    int tid;

    if (!dock_stop_prepare())
        return FAILED;
    stop.pid = getpid();
    stop.caller = (int32_t)dock_rawcall(SYS_gettid, 0, 0, 0, 0, 0, 0);
    stop.threads = 0;
    stop.helper = 0;
    name_tasks();
    dock_set32(&stop.state, WORKING); // the clone orders it
    // No signal tells of its end: a program that waits for its children does not meet it.
    tid = clone(body, stop.stack + STACK_BYTES, CLONE_VM | CLONE_FS | CLONE_FILES, NULL);
    if (tid < 0)
        return FAILED;
    stop.helper = tid;
    uint32_t state = await_state(WORKING, UINT64_MAX);
    if (state == FAILED)
        reap();
    return state;
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
    return count_threads() == 1 + engines && shut_gates();
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
    stop.threads = 0;
    dock_proc_still(true);
    stop.others = !alone();
    dock_views_lock();
    if (stop.others) {
        why = start_helper(helper) == STOPPED ? DOCK_WHY_NONE : DOCK_WHY_THREADS;
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
        tell(GO_ON);
        reap();
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
    stop.at_clone = at_clone;
    stop.helper = 0;
    stop.others = !alone();
    dock_views_lock();
    dock_adopt_fork_begins();
    return !stop.others || start_helper(fork_helper) != FAILED;
}

bool dock_stop_forked(bool in_child)
{
    bool stood = true;

    if (stop.others && stop.helper && !in_child) {
        stood = dock_acquire32(&stop.state) == STOPPED; // else they were not stopped
        tell(GO_ON);
        reap();
    }
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
    for (uint32_t i = 0; i < stop.threads; i++)
        if (dock_fit_thread(vlo, vhi, stop.thread[i].sp, stop.thread[i].tp, &first, &end))
            take_out(&t, first, end);
    *until = t.until;
    return t.clear;
}
