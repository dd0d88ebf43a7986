// SPDX-License-Identifier: MIT
// timeout: 180
// Memory moves under threads that work in it: no store of theirs or of the kernel on their behalf is lost,
// no system call fails, no handler runs.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/internal.h"
#include "lib/another_user.h"
#include "lib/busy.h"
#include "lib/container.h"
#include "lib/duo.h"
#include "lib/filter.h"
#include "lib/fork.h"
#include "lib/maps.h"
#include "lib/tracing.h"

#define EXECS 60u // of which one in ten meets a stop

static dock_a32 handled;

static void on_signal(int sig)
{
    (void)sig;
    atomic_fetch_add(&handled, 1);
}

// Calls that the kernel does not make anew by itself: they end when the other end of `over` closes.
static int over[2];

static void *waiter(void *arg)
{
    int fd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event e = {.events = EPOLLIN};

    (void)arg;
    if (epoll_ctl(fd, EPOLL_CTL_ADD, over[0], &e) || epoll_wait(fd, &e, 1, -1) != 1)
        atomic_fetch_add(&busy.failed, 1);
    close(fd);
    return NULL;
}

static void *receiver(void *arg)
{
    const struct timeval patience = {.tv_sec = 1000};
    char byte;

    (void)arg;
    if (setsockopt(over[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) ||
        recv(over[0], &byte, 1, 0))
        atomic_fetch_add(&busy.failed, 1);
    return NULL;
}

typedef void *body(void *);
static body *const bodies[] = {busy_hammer, busy_hammer,  busy_hammer, busy_reader, busy_pipe_reader,
                               busy_poller, busy_epoller, waiter,      receiver};

#define THREADS (sizeof bodies / sizeof *bodies)

// The whole in a child of its own: what is adopted, what a filter allows, which threads run is its own
// business. Exit status: 0 fine, 77 nothing is adopted here.
static int under_threads(void *arg)
{
    pthread_t t[THREADS];
    struct dock_dev *dev;
    uint32_t pd;
    char pattern[64];
    bool must_adopt = arg != NULL;

    busy.block = true;
    signal(SIGUSR1, on_signal);
    setenv("DRYDOCK_ADOPT", "inner", 1);
    busy.mem = mmap(NULL, BUSY_PAGES * BUSY_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    busy.pattern = memfd_create("pattern", MFD_CLOEXEC);
    memset(pattern, 0x5a, sizeof pattern);
    if (busy.mem == MAP_FAILED || write(busy.pattern, pattern, 64) != 64 || pipe(busy.pipe) ||
        socketpair(AF_UNIX, SOCK_STREAM, 0, over) || dock_dev_open(NULL, &dev) || dock_pd_create(dev, &pd))
        return 1;
    if (dev->adopt.mode == DOCK_ADOPT_OFF)
        return 77;
    dock_set32(&busy.go, 1);
    for (size_t i = 0; i < THREADS; i++)
        if (pthread_create(&t[i], NULL, bodies[i], (void *)i))
            return 1;
    unsigned adopted = busy_move(dev, pd, test_long() ? 30000000000ull : 700000000ull, must_adopt);
    dock_set32(&busy.go, 0);
    close(over[1]);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    fprintf(
        stderr,
        "adopted %u times in %llu stops (%.2f ms each), %llu stores, %llu by the kernel; lost %llu, failed "
        "calls %llu, handlers run %u\n",
        adopted, (unsigned long long)dock_peek64(&dev->port->adopt.stops),
        (double)dock_peek64(&dev->port->adopt.stopped_ns) / 1e6 /
            (double)(dock_peek64(&dev->port->adopt.stops) + 1),
        (unsigned long long)dock_peek64(&busy.stores), (unsigned long long)dock_peek64(&busy.kernel_stores),
        (unsigned long long)dock_peek64(&busy.lost), (unsigned long long)dock_peek64(&busy.failed),
        dock_peek32(&handled));
    if (dock_peek64(&busy.lost) || dock_peek64(&busy.failed) || dock_peek32(&handled))
        return 2;
    if (must_adopt && !adopted)
        return 3;
    if (!must_adopt && adopted)
        return 4;
    if (maps_look(busy.mem, BUSY_PAGES * BUSY_PAGE).adopted)
        return 5;
    return dock_pd_destroy(dev, pd) || dock_dev_close(dev) ? 6 : 0;
}

static void expect(int (*body)(void *), void *arg)
{
    int status;
    pid_t child = test_fork(body, arg);

    assert_int_equal(test_await(child, &status, 60000 * slow_down()), TEST_EXITED);
    if (status == 77)
        skip();
    assert_int_equal(status, 0);
}

static void no_store_is_lost(void **state)
{
    (void)state;
    tracing_or_skip();
    expect(under_threads, "adopt");
}

#ifdef __x86_64__

static int in_a_container(void *arg)
{
    const struct rlimit none = {0, 0};

    if (!another_user())
        return 77;
    prctl(PR_SET_DUMPABLE, 1);            // as a program that was started by this user has it
    if (setrlimit(RLIMIT_MEMLOCK, &none)) // what real adapters pin with
        return another_user_ends(1);
    return another_user_ends(container_filter() ? under_threads(arg) : 77);
}

#else

static int in_a_container(void *arg)
{
    (void)arg;
    return 77; // the table is of another processor
}

#endif

static void no_store_is_lost_in_a_container(void **state)
{
    (void)state;
    tracing_or_skip();
    expect(in_a_container, "adopt");
}

// What gdb does to its program: every thread has a tracer, which lets signals through.
static void debug(pid_t program)
{
    int status;
    pid_t stopped;

    if (ptrace(PTRACE_SEIZE, program, 0, PTRACE_O_TRACECLONE))
        _exit(77);
    if (write(1, "", 1) != 1)
        _exit(1);
    while ((stopped = waitpid(-1, &status, __WALL)) > 0)
        if (WIFSTOPPED(status))
            ptrace(PTRACE_CONT, stopped, 0, status >> 16 ? 0 : WSTOPSIG(status));
    _exit(0);
}

// Nothing can be stopped by us, nothing is adopted, all goes on.
static int debugged(void *arg)
{
    int ready[2];
    char byte;
    pid_t me = getpid();

    (void)arg;
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    if (pipe(ready))
        return 1;
    pid_t debugger = fork();
    if (debugger == 0) {
        close(ready[0]);
        dup2(ready[1], 1);
        debug(me);
    }
    close(ready[1]);
    if (read(ready[0], &byte, 1) != 1)
        return 77; // nobody may trace here
    close(ready[0]);
    return under_threads(NULL);
}

static bool traced(void)
{
    FILE *f = fopen("/proc/self/status", "re");
    char line[256];
    int tracer = 0;

    while (f && !tracer && fgets(line, sizeof line, f))
        sscanf(line, "TracerPid: %d", &tracer);
    if (f)
        fclose(f);
    return tracer != 0;
}

// Until it is attached; its end of the pipe closes when it ends.
static int under_gdb(void *arg)
{
    int *ends = arg;
    struct pollfd gone = {.fd = ends[0]};

    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    close(ends[1]);
    while (!traced())
        if (poll(&gone, 1, 5) > 0)
            return 77; // it is not there, or may not
    close(ends[0]);
    return under_threads(NULL);
}

static pid_t start_gdb(pid_t program, const int *ends)
{
    char pid[12], log[] = "/dev/null";
    pid_t gdb = fork();

    if (gdb)
        return gdb;
    close(ends[0]);
    snprintf(pid, sizeof pid, "%d", (int)program);
    if (!freopen(log, "w", stdout) || !freopen(log, "w", stderr) || !freopen(log, "r", stdin))
        _exit(1);
    execlp("gdb", "gdb", "-q", "-nx", "-batch", "-p", pid, "-ex", "continue", (char *)NULL);
    _exit(1);
}

// ---- a handler ends a call as ever, whenever its signal comes

static struct {
    dock_a32 begun, ended; // calls
    dock_a32 stop;
} calls;

static void *interrupted(void *arg)
{
    int fd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event e;
    sigset_t none;

    (void)arg;
    sigemptyset(&none);
    while (!dock_peek32(&calls.stop)) {
        atomic_fetch_add(&calls.begun, 1);
        if (epoll_pwait(fd, &e, 1, -1, &none) != -1 || errno != EINTR) // it lets the signal in only here
            atomic_fetch_add(&busy.failed, 1);
        atomic_fetch_add(&calls.ended, 1);
    }
    close(fd);
    return NULL;
}

static void *moves_on(void *arg)
{
    struct dock_dev *dev = arg;
    struct dock_mr *mr;
    uint32_t pd;

    if (dock_pd_create(dev, &pd))
        abort();
    while (dock_peek32(&busy.go))
        if (dock_mr_register(dev, pd, (uintptr_t)busy.mem, BUSY_PAGE, (uintptr_t)busy.mem, BUSY_RIGHTS,
                             &mr) ||
            dock_mr_deregister(mr))
            abort();
    if (dock_pd_destroy(dev, pd))
        abort();
    return NULL;
}

static int a_handler_ends_calls(void *arg)
{
    struct dock_dev *dev;
    pthread_t t, mover;
    sigset_t usr1;

    (void)arg;
    setenv("DRYDOCK_ADOPT", "inner", 1);
    signal(SIGUSR1, on_signal);
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &usr1, NULL);
    busy.mem = mmap(NULL, BUSY_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (busy.mem == MAP_FAILED || dock_dev_open(NULL, &dev))
        return 1;
    if (dev->adopt.mode == DOCK_ADOPT_OFF)
        return 77;
    dock_set32(&busy.go, 1);
    if (pthread_create(&t, NULL, interrupted, NULL) || pthread_create(&mover, NULL, moves_on, dev))
        return 1;
    for (uint32_t n = 1; n <= 2000; n++) {
        while (dock_peek32(&calls.begun) < n)
            sched_yield();
        dock_set32(&calls.stop, n == 2000);
        pthread_kill(t, SIGUSR1);
        for (unsigned i = 0; dock_peek32(&calls.ended) < n; i++) {
            if (i > 100000 * slow_down())
                return 2; // it was made anew behind its handler
            test_nap_us(100);
        }
    }
    dock_set32(&busy.go, 0);
    pthread_join(mover, NULL);
    pthread_join(t, NULL);
    if (dock_peek64(&busy.failed) || dock_peek32(&handled) != 2000)
        return 3;
    return dock_dev_close(dev) ? 4 : 0;
}

static void a_handler_ends_a_call(void **state)
{
    (void)state;
    expect(a_handler_ends_calls, NULL);
}

// From here on the kernel refuses this call.
static bool refuse(uint32_t call)
{
    return !filter_call(call, SECCOMP_RET_ERRNO | EPERM, 0);
}

static int not_allowed(void *arg)
{
    (void)arg;
    return refuse(SYS_ptrace) ? under_threads(NULL) : 77;
}

// An exec in the middle of a stop would hang.
static int without_a_timer(void *arg)
{
    (void)arg;
    return refuse(SYS_timer_create) ? under_threads(NULL) : 77;
}

// Its engine is no thread of the program, from the first moment on: nobody must be stopped.
static int alone_from_the_first(void *arg)
{
    char *p = mmap(NULL, BUSY_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct dock_dev *dev;
    struct dock_mr *mr;
    uint32_t pd;

    (void)arg;
    setenv("DRYDOCK_ADOPT", "inner", 1);
    if (p == MAP_FAILED || !refuse(SYS_ptrace))
        return 77;
    for (unsigned i = 0; i < 50; i++) {
        if (dock_dev_open(NULL, &dev) || dock_pd_create(dev, &pd))
            return 1;
        if (dev->adopt.mode == DOCK_ADOPT_OFF)
            return 77;
        if (dock_mr_register(dev, pd, (uintptr_t)p, BUSY_PAGE, (uintptr_t)p, BUSY_RIGHTS, &mr))
            return 2;
        if (dock_peek64(&dev->port->adopt.bytes) != BUSY_PAGE)
            return 3;
        if (dock_mr_deregister(mr) || dock_pd_destroy(dev, pd) || dock_dev_close(dev))
            return 4;
    }
    return 0;
}

// ---- a real-time thread that registers on the processor of those which it waits for

static void *by_the_side(void *arg)
{
    for (uint64_t n = 0; dock_peek32(&busy.go); n++)
        dock_set64((dock_a64 *)arg + n % 512, n);
    return NULL;
}

static int in_real_time(void *arg)
{
    const struct sched_param other = {0}, real = {.sched_priority = 10};
    char *p = mmap(NULL, BUSY_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct dock_dev *dev;
    struct dock_mr *mr;
    cpu_set_t one;
    pthread_t t;
    uint32_t pd;
    unsigned adopted = 0;

    (void)arg;
    setenv("DRYDOCK_ADOPT", "inner", 1);
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    if (p == MAP_FAILED || sched_setaffinity(0, sizeof one, &one) || dock_dev_open(NULL, &dev) ||
        dock_pd_create(dev, &pd))
        return 1;
    dock_set32(&busy.go, 1);
    if (dev->adopt.mode == DOCK_ADOPT_OFF)
        return 77;
    if (pthread_create(&t, NULL, by_the_side, p) || pthread_setschedparam(t, SCHED_OTHER, &other))
        return 2;
    if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &real))
        return 77;
    for (unsigned i = 0; i < 10; i++) {
        if (dock_mr_register(dev, pd, (uintptr_t)p, BUSY_PAGE, (uintptr_t)p, BUSY_RIGHTS, &mr))
            return 3;
        adopted += dock_peek64(&dev->port->adopt.bytes) == BUSY_PAGE;
        if (dock_mr_deregister(mr))
            return 4;
    }
    dock_set32(&busy.go, 0);
    pthread_join(t, NULL);
    fprintf(stderr, "in real time: adopted %u of 10\n", adopted);
    return adopted >= 5 ? 0 : 5; // now and then the kernel holds real-time threads back
}

static void beside_an_engine_that_has_just_begun(void **state)
{
    (void)state;
    expect(alone_from_the_first, NULL);
}

static void by_a_thread_in_real_time(void **state)
{
    (void)state;
    tracing_or_skip();
    expect(in_real_time, NULL);
}

static void where_nobody_can_be_stopped(void **state)
{
    (void)state;
    expect(not_allowed, NULL);
}

static void where_no_timer_is_left(void **state)
{
    (void)state;
    expect(without_a_timer, NULL);
}

static void under_a_debugger(void **state)
{
    (void)state;
    expect(debugged, NULL);
}

static void under_gdb_itself(void **state)
{
    int ends[2], status;

    (void)state;
#ifdef DOCK_SANITIZED
    skip(); // it reads symbols for seconds; the debugger above is as good
#endif
    assert_int_equal(pipe(ends), 0);
    pid_t program = test_fork(under_gdb, ends), gdb = start_gdb(program, ends);
    close(ends[0]);
    close(ends[1]);
    enum test_end end = test_await(program, &status, 60000 * slow_down());
    test_kill(gdb);
    assert_int_equal(end, TEST_EXITED);
    if (status == 77)
        skip();
    assert_int_equal(status, 0);
}

static void *until_killed(void *arg)
{
    for (uint64_t n = 0;; n++)
        dock_set64((dock_a64 *)arg + n % 512, n);
    return NULL;
}

static int move_for_ever(void *arg)
{
    char *p = mmap(NULL, BUSY_PAGES * BUSY_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct dock_dev *dev;
    struct dock_mr *mr;
    pthread_t t;
    uint32_t pd;

    (void)arg;
    setenv("DRYDOCK_ADOPT", "inner", 1);
    if (p == MAP_FAILED || dock_dev_open(NULL, &dev) || dock_pd_create(dev, &pd) ||
        pthread_create(&t, NULL, until_killed, p))
        return 1;
    for (;;)
        if (dock_mr_register(dev, pd, (uintptr_t)p, BUSY_PAGES * BUSY_PAGE, (uintptr_t)p, BUSY_RIGHTS, &mr) ||
            dock_mr_deregister(mr))
            return 2;
}

static void *idle(void *arg)
{
    while (dock_peek32(&busy.go))
        test_nap_us(1000);
    return arg;
}

// Its numbers of threads are none of those that /proc shows. It is the first process of its namespace.
static int under_the_parents_proc(void *arg)
{
    const char *way = arg;
    struct dock_dev *dev;
    struct dock_mr *mr;
    pthread_t t;
    uint32_t pd;
    char *p = maps_in_one(BUSY_PAGES * BUSY_PAGE);
    int code = 0;

    setenv("DRYDOCK_ADOPT", "inner", 1);
    setenv("DRYDOCK_STOP", way, 1);
    if (p == MAP_FAILED || dock_dev_open(NULL, &dev) || dock_pd_create(dev, &pd))
        return 1;
    if (dev->adopt.mode == DOCK_ADOPT_OFF)
        return 77;
    dock_set32(&busy.go, 1);
    if (pthread_create(&t, NULL, idle, NULL))
        return 1;
    for (unsigned i = 1; i <= 3 && !code; i++) {
        if (dock_mr_register(dev, pd, (uintptr_t)p, BUSY_PAGES * BUSY_PAGE, (uintptr_t)p, BUSY_RIGHTS, &mr))
            return 2;
        if (dock_peek64(&dev->port->adopt.bytes))
            code = 3; // moved, and who was stopped?
        else if (dock_peek64(&dev->port->adopt.refused[DOCK_WHY_THREADS]) < i)
            code = 4;
        if (dock_mr_deregister(mr))
            return 5;
    }
    dock_set32(&busy.go, 0);
    pthread_join(t, NULL);
    return code ? code : dock_pd_destroy(dev, pd) || dock_dev_close(dev) ? 6 : 0;
}

static int into_a_pid_namespace(void *arg)
{
    int status;

    if (unshare(CLONE_NEWPID) && unshare(CLONE_NEWUSER | CLONE_NEWPID))
        return 77;
    pid_t first = test_fork(under_the_parents_proc, arg);
    return test_await(first, &status, 60000 * test_slow()) == TEST_EXITED ? status : 99;
}

static void in_a_pid_namespace_under_another_proc(void **state)
{
    static char ways[][8] = {"ptrace", "signal"};

    (void)state;
    for (unsigned i = 0; i < 2; i++)
        expect(into_a_pid_namespace, ways[i]);
}

// The one that stops the threads is no thread of the process: it ends by itself. scripts/run-one fails a test
// that leaves it behind.
static void killed_in_the_middle(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        pid_t child = test_fork(move_for_ever, NULL);
        test_nap_us(60000 + 7000 * i);
        test_kill(child);
    }
}

static void *move_beside(void *arg)
{
    move_for_ever(arg);
    return NULL;
}

static int exec_beside(void *arg)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, move_beside, NULL))
        return 1;
    test_nap_us(*(unsigned *)arg);
    execl("/bin/true", "true", (char *)NULL);
    return 2;
}

// The thread that registers ends in the middle of its stop: the next program does not stand still for it.
static void an_exec_of_another_thread(void **state)
{
    (void)state;
    for (unsigned i = 0; i < EXECS; i++) {
        unsigned us = 3000 + i * 977 % 20000;
        int status;
        pid_t child = test_fork(exec_beside, &us);
        enum test_end end = test_await(child, &status, 20000 * slow_down());
        if (end == TEST_RUNS || end == TEST_STOPPED)
            test_kill(child);
        assert_int_equal(end, TEST_EXITED);
        assert_int_equal(status, 0);
    }
}

int main(void)
{
    if (getenv("DRYDOCK_EMULATED")) // an emulator has mappings and threads of its own, which do not stand
        return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_store_is_lost),
        cmocka_unit_test(no_store_is_lost_in_a_container),
        cmocka_unit_test(a_handler_ends_a_call),
        cmocka_unit_test(by_a_thread_in_real_time),
        cmocka_unit_test(beside_an_engine_that_has_just_begun),
        cmocka_unit_test(where_nobody_can_be_stopped),
        cmocka_unit_test(where_no_timer_is_left),
        cmocka_unit_test(in_a_pid_namespace_under_another_proc),
        cmocka_unit_test(under_a_debugger),
        cmocka_unit_test(under_gdb_itself),
        cmocka_unit_test(killed_in_the_middle),
        cmocka_unit_test(an_exec_of_another_thread),
    };

    return cmocka_run_group_tests_name("adoption under threads", tests, NULL, NULL);
}
