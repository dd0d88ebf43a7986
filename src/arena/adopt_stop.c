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
#include "base/clock.h"
#include "base/rawcall.h"

#define THREADS 4096u
#define STACK_BYTES 65536u
#define PATIENCE_NS 500000000ull // for one thread to stop: one that waits in vfork stops only at the exec

enum { WORKING, STOPPED, FAILED, GO_ON };

struct thread {
    int32_t tid, signal; // to be delivered when it goes on
    uint64_t sp, tp;
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

// Until the state is another than `was`.
static uint32_t await_state(uint32_t was)
{
    uint32_t now;

    while ((now = dock_acquire32(&stop.state)) == was) {
        struct timespec t = {.tv_nsec = 100000000};
        if (dock_rawcall(SYS_futex, (long)&stop.state, FUTEX_WAIT_PRIVATE, was, (long)&t, 0, 0) ==
                -ETIMEDOUT &&
            other_is_gone(was == STOPPED) && dock_acquire32(&stop.state) == was)
            return FAILED;
    }
    return now;
}

static int __attribute__((no_sanitize_address)) helper(void *arg)
{
    long dir =
        dock_rawcall(SYS_openat, AT_FDCWD, (long)stop.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0, 0, 0);
    int fresh = dir < 0 ? -1 : 1;

    (void)arg;
    while (fresh > 0) // threads that were running may have made more
        fresh = sweep(dir);
    if (dir >= 0)
        dock_rawcall(SYS_close, dir, 0, 0, 0, 0, 0);
    if (fresh == 0) {
        tell(STOPPED);
        await_state(STOPPED);
    }
    for (uint32_t i = 0; i < stop.threads; i++)
        trace(PTRACE_DETACH, stop.thread[i].tid, 0, stop.thread[i].signal);
    if (fresh)
        tell(FAILED);
    return 0;
}

// ---- the caller

static bool prepare(void)
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
    struct stat st;

    return stat("/proc/self/task", &st) ? 0 : (unsigned)st.st_nlink - 2;
}

static void reap(void)
{
    long ret;

    do // with luck the program has not waited for it already
        ret = dock_rawcall(SYS_wait4, stop.helper, 0, __WALL, 0, 0, 0);
    while (ret == -EINTR);
    stop.helper = 0;
}

static enum dock_adopt_why stop_others(void)
{
    int tid;

    if (!prepare())
        return DOCK_WHY_THREADS;
    stop.pid = getpid();
    stop.caller = (int32_t)dock_rawcall(SYS_gettid, 0, 0, 0, 0, 0, 0);
    stop.threads = 0;
    stop.helper = 0;
    name_tasks();
    dock_set32(&stop.state, WORKING); // the clone orders it
    // No signal tells of its end: a program that waits for its children does not meet it.
    tid = clone(helper, stop.stack + STACK_BYTES, CLONE_VM | CLONE_FS | CLONE_FILES, NULL);
    if (tid < 0)
        return DOCK_WHY_THREADS;
    stop.helper = tid;
    if (await_state(WORKING) == STOPPED)
        return DOCK_WHY_NONE;
    reap();
    return DOCK_WHY_THREADS;
}

static void gates(bool shut)
{
    for (struct dock_adopt *a = dock_adopters; a; a = a->next)
        if (a->engine)
            shut ? pthread_mutex_lock(&a->gate) : pthread_mutex_unlock(&a->gate);
}

// Alone but for our own engines, which stand still behind their gates?
static bool alone(void)
{
    unsigned engines = 0;

    for (const struct dock_adopt *a = dock_adopters; a; a = a->next)
        engines += a->engine;
    if (count_threads() != 1 + engines)
        return false;
    gates(true);
    return true;
}

enum dock_adopt_why dock_stop_begin(struct dock_adopt *a)
{
    sigset_t all;
    enum dock_adopt_why why = DOCK_WHY_NONE;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &stop.mask);
    stop.began_ns = dock_now_ns();
    stop.threads = 0;
    stop.others = !alone();
    if (stop.others)
        why = stop_others();
    (void)a;
    if (why)
        pthread_sigmask(SIG_SETMASK, &stop.mask, NULL);
    return why;
}

void dock_stop_end(struct dock_adopt *a)
{
    if (stop.others) {
        tell(GO_ON);
        reap();
        dock_count64(&a->counts->stops, 1);
        dock_count64(&a->counts->stopped_ns, dock_now_ns() - stop.began_ns);
    } else {
        gates(false);
    }
    pthread_sigmask(SIG_SETMASK, &stop.mask, NULL);
}

// Where this thread's control block is.
static uint64_t own_pointer(void)
{
    return (uintptr_t)pthread_self();
}

bool dock_stop_clear(uint64_t lo, uint64_t hi, uint64_t vlo, uint64_t vhi)
{
    if (dock_fit_thread(lo, hi, vlo, vhi, (uintptr_t)__builtin_frame_address(0), own_pointer()))
        return false;
    for (const struct dock_adopt *a = dock_adopters; a; a = a->next)
        if (lo < a->engine_stack_end && hi > a->engine_stack)
            return false;
    for (uint32_t i = 0; i < stop.threads; i++)
        if (dock_fit_thread(lo, hi, vlo, vhi, stop.thread[i].sp, stop.thread[i].tp))
            return false;
    return true;
}
