// SPDX-License-Identifier: MIT
// Stopping the other threads for a moment. A helper that shares the address space, but is no thread of the
// process, seizes every thread by ptrace, interrupts it and waits for the stop: a thread in a system call
// leaves it first, so no store of the kernel is under way either; a blocked signal does not matter; and the
// program sees nothing of it (but an EINTR of few calls: adopt_stop_anew.c).
#include <errno.h>
#include <fcntl.h>
#include <linux/elf.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "arena/adopt_stop_own.h"
#include "base/clock.h"

#define STACK_BYTES 65536u
#define PATIENCE_NS 500000000ull // for one thread to stop: one that waits in vfork stops only at the exec

#define TURNS 32u // that others get, before we sleep: a real-time helper gives none to those below it
#define NAP_NS 50000

#define TEND_NS 10000000 // between two looks at each other

#define CALL_ANEW (-513) // ERESTARTNOINTR of the kernel: a stop of the process came first

#define STANDSTILL_NS 2000000000l // so long a sweep takes no thread
#define AGAIN_NS 250000000ull     // the watch over it is set anew no sooner

enum { WORKING, ARMED, STOPPED, FAILED, GO_ON };

static struct {
    dock_a32 state;
    char *stack; // of the helper
    int helper;
    bool refused;
    uint64_t number; // of this stop
    bool readable;   // by the helper, when it began
    const struct dock_fork_steps *steps;
} stop;

// ---- the helper: raw system calls only, its thread-local storage is the caller's

static long trace(int request, int32_t tid, long addr, long data)
{
    return dock_rawcall(SYS_ptrace, request, tid, addr, data, 0, 0);
}

static bool read_registers(struct dock_stop_thread *t)
{
    struct user_regs_struct r = {0};
    struct iovec v = {&r, sizeof r};

    if (trace(PTRACE_GETREGSET, t->tid, NT_PRSTATUS, (long)&v))
        return false;
    if (dock_call_anew(&r))
        trace(PTRACE_SETREGSET, t->tid, NT_PRSTATUS, (long)&v); // else it sees EINTR
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
static bool await_stop(struct dock_stop_thread *t)
{
    const struct timespec nap = {.tv_nsec = NAP_NS};
    uint64_t start = dock_now_ns();

    for (unsigned turn = 0;; turn++) {
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
        if (turn < TURNS)
            dock_rawcall(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
        else
            dock_rawcall(SYS_nanosleep, (long)&nap, 0, 0, 0, 0, 0);
    }
}

// While a thread executes a program nobody can seize it, and it waits itself for the end of all others: those
// that we have seized before wait there for us to take note, who wait for it (ptrace(2), BUGS). So a sweep
// that stands still is the end of the helper, with which all are let go.
static struct {
    int32_t timer;
    bool set;
    uint64_t since_ns;
} watch;

static void watch_for(long ns)
{
    struct itimerspec in = {.it_value = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000}};

    if (watch.set)
        dock_rawcall(SYS_timer_settime, watch.timer, 0, (long)&in, 0, 0, 0);
}

static void watch_again(void)
{
    uint64_t now = dock_now_ns();

    if (now - watch.since_ns < AGAIN_NS)
        return;
    watch.since_ns = now;
    watch_for(STANDSTILL_NS);
}

// false: the kernel has no timer left, and without one nothing may be stopped.
static bool watch_begin(void)
{
    struct sigevent end = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};

    watch.set = !dock_rawcall(SYS_timer_create, CLOCK_MONOTONIC, (long)&end, (long)&watch.timer, 0, 0, 0);
    watch.since_ns = 0;
    watch_again();
    return watch.set;
}

static enum dock_taken seize(struct dock_stop_thread *t)
{
    watch_again();
    long ret = trace(PTRACE_SEIZE, t->tid, 0, 0);

    if (ret) {
        if (dock_thread_is_dead(t->tid))
            return DOCK_GONE;
        stop.refused = true;
        return DOCK_REFUSED;
    }
    dock_stopping.threads++; // from here on it is let go whatever happens
    ret = trace(PTRACE_INTERRUPT, t->tid, 0, 0);
    if (ret || !await_stop(t) || !read_registers(t)) {
        if (!dock_thread_is_dead(t->tid))
            return DOCK_REFUSED;
        dock_stopping.threads--;
        return DOCK_GONE;
    }
    return DOCK_TAKEN;
}

static void tell(uint32_t state)
{
    dock_publish32(&stop.state, state); // pairs with await_state
    dock_rawcall(SYS_futex, (long)&stop.state, FUTEX_WAKE_PRIVATE, 2, 0, 0, 0);
}

// Does the process have the memory that we have? Once its first thread has ended the kernel shows none; no
// other program begins without one.
static bool reads_as_we_do(void)
{
    uint64_t seen = 0;
    struct iovec to = {&seen, sizeof seen}, from = {&stop.number, sizeof seen};
    long ret = dock_rawcall(SYS_process_vm_readv, dock_stopping.pid, (long)&to, 1, (long)&from, 1, 0);

    return ret == -ESRCH || (ret == (long)sizeof seen && seen == stop.number);
}

// Who is traced goes on whatever stopped him. What wait4 says of him now; 0: he runs.
static long send_on(int32_t tid)
{
    int status = 0; // the kernel fills it behind the compiler's back
    long ret;

    while ((ret = dock_rawcall(SYS_wait4, tid, (long)&status, __WALL | WNOHANG, 0, 0, 0)) == tid &&
           WIFSTOPPED(status))
        trace(PTRACE_CONT, tid, 0, status >> 16 ? 0 : WSTOPSIG(status));
    return ret;
}

// A stop of the whole process, by SIGSTOP for instance, would keep the caller in the middle of ours; and the
// process would not count as stopped, since we hold the others. So the caller goes on for now: it stops with
// them when all are let go.
//
// Who is not ours to wait for has ended, or his number is another thread's, by an exec that we have not
// stopped. Then the process has other memory, which we may not even be allowed to read.
static bool caller_is_gone(void)
{
    return send_on(dock_stopping.caller) ||
           dock_rawcall(SYS_getppid, 0, 0, 0, 0, 0, 0) != dock_stopping.pid ||
           (stop.readable && !reads_as_we_do());
}

// A stop of the process group may have met it before it left the group: no SIGCONT to the group wakes it
// then.
static bool helper_is_gone(void)
{
    if (dock_rawcall(SYS_wait4, stop.helper, 0, __WALL | WNOHANG, 0, 0, 0))
        return true;
    dock_rawcall(SYS_kill, stop.helper, SIGCONT, 0, 0, 0, 0);
    return false;
}

// Until the state is another than `was`, or an end of the other one that nobody should see: the helper waits
// for a process that was killed, the process for a helper that was.
static uint32_t await_state(uint32_t was, uint64_t patience_ns, bool (*other_is_gone)(void))
{
    uint64_t start = dock_now_ns();
    uint32_t now;

    while ((now = dock_acquire32(&stop.state)) == was) {
        struct timespec t = {.tv_nsec = TEND_NS};
        if (dock_rawcall(SYS_futex, (long)&stop.state, FUTEX_WAIT_PRIVATE, was, (long)&t, 0, 0) ==
                -ETIMEDOUT &&
            (other_is_gone() || dock_now_ns() - start > patience_ns) && dock_acquire32(&stop.state) == was)
            return FAILED;
    }
    return now;
}

static void let_go(void)
{
    for (uint32_t i = 0; i < dock_stopping.threads; i++)
        trace(PTRACE_DETACH, dock_stopping.thread[i].tid, 0, dock_stopping.thread[i].signal);
    dock_stopping.threads = 0;
}

static bool sweep_all(void)
{
    int fresh;

    if (!watch_begin())
        return false;
    do // threads that were running may have made more
        fresh = dock_threads_pass(seize);
    while (fresh > 0);
    watch_for(0);
    return fresh == 0;
}

// A stop of the program's process group is not for the helper, or nobody could go on.
static void leave_group(void)
{
    dock_rawcall(SYS_setpgid, 0, 0, 0, 0, 0, 0);
}

static int __attribute__((no_sanitize_address)) helper(void *arg)
{
    bool all;

    (void)arg;
    leave_group();
    stop.readable = reads_as_we_do();
    // Not interrupted. Who would trace it now, and wait for the others for ever, is told that he cannot. It
    // is let go by our end.
    stop.refused = trace(PTRACE_SEIZE, dock_stopping.caller, 0, 0);
    all = !stop.refused && sweep_all();
    if (all) {
        tell(STOPPED);
        await_state(STOPPED, UINT64_MAX, caller_is_gone);
    }
    let_go();
    if (!all)
        tell(FAILED);
    return 0;
}

// A thread, or what shares the address space until it executes a program, is no copy: a handler of fork that
// runs behind ours may make one.
static bool copies_process(const struct __ptrace_syscall_info *info)
{
    uint64_t flags; // the kernel fills it behind the compiler's back

#ifdef SYS_fork
    if (info->entry.nr == SYS_fork)
        return true;
#endif
    if (info->entry.nr == SYS_clone)
        return !(info->entry.args[0] & CLONE_VM);
    if (info->entry.nr != SYS_clone3)
        return false;
    flags = CLONE_VM; // where they cannot be read the call fails
    trace(PTRACE_PEEKDATA, dock_stopping.caller, (long)info->entry.args[0], (long)&flags);
    return !(flags & CLONE_VM);
}

// Until it stands still again. false: it is gone.
static bool await_traced(const struct dock_stop_thread *t, int *status)
{
    long ret;

    *status = 0; // the kernel fills it behind the compiler's back
    do
        ret = dock_rawcall(SYS_wait4, t->tid, (long)status, __WALL, 0, 0, 0);
    while (ret == -EINTR);
    return ret == t->tid && WIFSTOPPED(*status);
}

// The forking thread goes on, one system call after the other, until it asks for its child. By then it holds
// the locks that fork takes, so that no thread which is stopped from here on has them.
static bool follow_to_clone(struct dock_stop_thread *t)
{
    struct __ptrace_syscall_info info = {.op = 0}; // the kernel fills it behind the compiler's back
    int status;

    for (;;) {
        // One whose process is stopped waits for SIGCONT, as it would without us.
        if (t->group ? trace(PTRACE_LISTEN, t->tid, 0, 0) : trace(PTRACE_SYSCALL, t->tid, 0, t->signal))
            return false;
        t->signal = 0;
        if (!await_traced(t, &status))
            return false;
        t->group = is_group_stop(status);
        if (WSTOPSIG(status) != (SIGTRAP | 0x80)) {
            t->signal = status >> 16 ? 0 : WSTOPSIG(status);
            continue;
        }
        if (trace(PTRACE_GET_SYSCALL_INFO, t->tid, sizeof info, (long)&info) <= 0)
            return false;
        if (info.op == PTRACE_SYSCALL_INFO_ENTRY && copies_process(&info))
            return true;
    }
}

// From the call's entry to its end. What it returns.
static long follow_through_clone(const struct dock_stop_thread *t)
{
    struct __ptrace_syscall_info info = {.op = 0}; // the kernel fills it behind the compiler's back
    int status;

    if (trace(PTRACE_SYSCALL, t->tid, 0, 0) || !await_traced(t, &status) ||
        trace(PTRACE_GET_SYSCALL_INFO, t->tid, sizeof info, (long)&info) <= 0 ||
        info.op != PTRACE_SYSCALL_INFO_EXIT)
        return -ESRCH;
    return (long)info.exit.rval;
}

// The others stand still for the child's copies. A stop of the process group does not count before they are
// let go, so the child has them first: it is traced then, goes on, and stops when it is let go.
static int32_t sent_on; // 0: nobody

static void look_after(long child)
{
    if (!sent_on && dock_process_is_stopped((int32_t)child) && !trace(PTRACE_SEIZE, (int32_t)child, 0, 0))
        sent_on = (int32_t)child;
    if (sent_on)
        send_on(sent_on);
}

// Before the others are: who is traced executes no program with other rights.
static void let_child_go(void)
{
    struct dock_stop_thread t = {.tid = sent_on};

    if (sent_on && !trace(PTRACE_INTERRUPT, t.tid, 0, 0) && await_stop(&t))
        trace(PTRACE_DETACH, t.tid, 0, t.signal);
    sent_on = 0;
}

// A call that is made anew comes behind a stop of the process, for which nobody may be held.
static bool fork_stopped(struct dock_stop_thread *t)
{
    long child = CALL_ANEW;
    bool made;

    while (child == CALL_ANEW) {
        let_go();
        if (!follow_to_clone(t) || !sweep_all())
            return false;
        stop.steps->lend();
        child = follow_through_clone(t);
        stop.steps->take_back();
    }
    made = stop.steps->made(child, look_after);
    let_child_go();
    return made;
}

static int __attribute__((no_sanitize_address)) fork_helper(void *arg)
{
    struct dock_stop_thread t = {.tid = dock_stopping.caller};
    bool all = false;

    (void)arg;
    leave_group();
    stop.readable = reads_as_we_do();
    if (trace(PTRACE_SEIZE, t.tid, 0, PTRACE_O_TRACESYSGOOD)) {
        tell(FAILED);
        return 0;
    }
    if (!trace(PTRACE_INTERRUPT, t.tid, 0, 0) && await_stop(&t)) {
        tell(ARMED);
        all = fork_stopped(&t);
    }
    if (!all)
        let_go();
    dock_publish32(&stop.state, all ? STOPPED : FAILED); // it is the caller's again: nobody waits for it
    trace(all ? PTRACE_CONT : PTRACE_DETACH, t.tid, 0, t.signal);
    if (all) {
        if (await_state(STOPPED, DOCK_FORK_PATIENCE_NS, caller_is_gone) == FAILED)
            dock_publish32(&stop.state, FAILED); // so the parent is told that they ran on
        let_go();
    }
    return 0;
}

// ---- the caller

const void *dock_ptrace_stack(size_t *bytes)
{
    *bytes = STACK_BYTES;
    return stop.stack;
}

bool dock_ptrace_prepare(void)
{
    stop.stack = dock_room_once(stop.stack, STACK_BYTES);
    return stop.stack;
}

static void reap(void)
{
    long ret;

    do // with luck the program has not waited for it already
        ret = dock_rawcall(SYS_wait4, stop.helper, 0, __WALL, 0, 0, 0);
    while (ret == -EINTR);
    stop.helper = 0;
}

// After unshare(CLONE_NEWPID) they are born into another pid namespace. The helper could name nobody there,
// and the first one to be born takes the namespace with it when it ends; until it is, none is shown. Of the
// process the kernel shows none either once its first thread has ended, so the thread is asked.
static bool children_are_elsewhere(void)
{
    struct stat own = {.st_ino = 0}, theirs = own; // the kernel fills them behind the compiler's back

    if (dock_rawcall(SYS_newfstatat, AT_FDCWD, (long)"/proc/thread-self/ns/pid", (long)&own, 0, 0, 0))
        return false; // nothing is shown
    long err = dock_rawcall(SYS_newfstatat, AT_FDCWD, (long)"/proc/thread-self/ns/pid_for_children",
                            (long)&theirs, 0, 0, 0);
    return err ? err == -ENOENT : theirs.st_ino != own.st_ino;
}

// The state that the helper comes to.
static uint32_t start_helper(int (*body)(void *))
{
    int tid;

    stop.helper = 0;
    stop.refused = false;
    if (!dock_stop_prepare() || children_are_elsewhere() || !dock_threads_begin())
        return FAILED;
    stop.number = dock_now_ns();
    dock_set32(&stop.state, WORKING); // the clone orders it
    // No signal tells of its end: who waits for children as usual does not meet it.
    tid = clone(body, stop.stack + STACK_BYTES, CLONE_VM | CLONE_FS | CLONE_FILES, NULL);
    if (tid < 0)
        return FAILED;
    stop.helper = tid;
    uint32_t state = await_state(WORKING, UINT64_MAX, helper_is_gone);
    if (state == FAILED)
        reap();
    return state;
}

static bool begin(void)
{
    return start_helper(helper) == STOPPED;
}

static void end(void)
{
    tell(GO_ON);
    reap();
}

const struct dock_stop_way dock_stop_by_ptrace = {.begin = begin, .end = end};

bool dock_ptrace_refused(void)
{
    return stop.refused;
}

// ---- over a fork: the others run until the child is asked for, since fork waits for locks of theirs

bool dock_ptrace_fork(const struct dock_fork_steps *steps)
{
    stop.steps = steps;
    return start_helper(fork_helper) != FAILED;
}

bool dock_stop_elsewhere(int (*body)(void *))
{
    int pid =
        stop.stack && !children_are_elsewhere()
            ? clone(body, stop.stack + STACK_BYTES, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_VFORK, NULL)
            : -1;

    while (pid > 0 && dock_rawcall(SYS_wait4, pid, 0, __WALL, 0, 0, 0) == -EINTR)
        ;
    return pid > 0;
}

bool dock_ptrace_forked(void)
{
    bool stood = true;

    if (stop.helper) {
        stood = dock_acquire32(&stop.state) == STOPPED; // else they were not stopped
        end();
    }
    return stood;
}
