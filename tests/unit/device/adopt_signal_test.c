// SPDX-License-Identifier: MIT
// timeout: 240
// Threads are stopped by a signal that they acknowledge, where the user says so or nothing else is left: no
// store is lost, nobody is ended by a signal that comes late, and the program finds every disposition as it
// was. Each case is a process of its own, with what is refused there.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "device/internal.h"
#include "lib/another_user.h"
#include "lib/busy.h"
#include "lib/duo.h"
#include "lib/fork.h"
#include "lib/maps.h"

#define LEN (BUSY_PAGES * BUSY_PAGE)

// What is refused: ptrace, and process_vm too.
static bool refuse(bool process_vm)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, process_vm ? SYS_process_vm_readv : SYS_ptrace, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, process_vm ? SYS_process_vm_writev : SYS_ptrace, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    };
    struct sock_fprog p = {.len = sizeof code / sizeof *code, .filter = code};

    return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p);
}

static struct dock_dev *dev;
static uint32_t pd;

// 0: it is open and adopts.
static int open_device(void)
{
    setenv("DRYDOCK_ADOPT", "inner", 1);
    busy.signals = true;
    busy.mem = maps_in_one(LEN);
    busy.pattern = memfd_create("pattern", MFD_CLOEXEC);
    char pattern[64];
    memset(pattern, 0x5a, sizeof pattern);
    if (busy.mem == MAP_FAILED || write(busy.pattern, pattern, 64) != 64 || pipe(busy.pipe) ||
        dock_dev_open(NULL, &dev) || dock_pd_create(dev, &pd))
        return 1;
    memset(busy.mem, 0, LEN);
    dock_set32(&busy.go, 1);
    return dev->adopt.mode == DOCK_ADOPT_OFF ? 77 : 0;
}

static int close_device(void)
{
    return dock_pd_destroy(dev, pd) || dock_dev_close(dev) ? 90 : 0;
}

static int begin_signals(void)
{
    setenv("DRYDOCK_STOP", "signal", 1);
    return open_device();
}

static uint64_t adopted(void)
{
    return dock_peek64(&dev->port->adopt.bytes);
}

static uint64_t refused(void)
{
    return dock_peek64(&dev->port->adopt.refused[DOCK_WHY_THREADS]);
}

// On a busy machine a thread may be too slow: then it is tried again. 0, or the last refusal.
static int register_all(struct dock_mr **mr, uint64_t want)
{
    uint64_t by = dock_now_ns() + 20000000000ull;
    int err;

    do {
        err = dock_mr_register(dev, pd, (uintptr_t)busy.mem, LEN, (uintptr_t)busy.mem, BUSY_RIGHTS, mr);
        if (!err && adopted() == want)
            return 0;
        if (!err && dock_mr_deregister(*mr))
            return -EIO;
    } while (dock_now_ns() < by);
    return err ? err : -ETIME;
}

// No handler of ours is left behind.
static bool all_default(void)
{
    struct sigaction now;

    for (int i = SIGRTMIN; i <= SIGRTMAX; i++)
        if (sigaction(i, NULL, &now) || now.sa_handler != SIG_DFL)
            return false;
    return true;
}

static void *short_lived(void *arg)
{
    return arg;
}

static void *breeder(void *arg)
{
    pthread_t t;

    (void)arg;
    while (dock_peek32(&busy.go))
        if (pthread_create(&t, NULL, short_lived, NULL) || pthread_join(t, NULL))
            atomic_fetch_add(&busy.failed, 1);
    return NULL;
}

// Its children end at once: what is asked is that they come to be.
static void *forker(void *arg)
{
    int status;

    (void)arg;
    while (dock_peek32(&busy.go)) {
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        if (child < 0 || waitpid(child, &status, 0) != child || status)
            atomic_fetch_add(&busy.failed, 1);
        test_nap_us(3000);
    }
    return NULL;
}

typedef void *body(void *);
static body *const bodies[] = {busy_hammer, busy_hammer,  busy_hammer, busy_reader, busy_pipe_reader,
                               busy_poller, busy_epoller, breeder,     forker};

#define THREADS (sizeof bodies / sizeof *bodies)

// Moves in and back under threads, of which the first `n` run.
static int work(size_t n)
{
    pthread_t t[THREADS];
    struct dock_mr *mr;
    unsigned moved;
    bool clean;

    for (size_t i = 0; i < n; i++)
        if (pthread_create(&t[i], NULL, bodies[i], (void *)i))
            return 1;
    moved = busy_move(dev, pd, test_long() ? 30000000000ull : 1000000000ull, true);
    dock_set32(&busy.go, 0);
    for (size_t i = 0; i < n; i++)
        pthread_join(t[i], NULL);
    clean = all_default();
    fprintf(
        stderr,
        "adopted %u times in %llu stops (%.2f ms each), refused %llu times; %llu stores, %llu by the kernel, "
        "lost %llu, failed calls %llu\n",
        moved, (unsigned long long)dock_peek64(&dev->port->adopt.stops),
        (double)dock_peek64(&dev->port->adopt.stopped_ns) / 1e6 /
            (double)(dock_peek64(&dev->port->adopt.stops) + 1),
        (unsigned long long)refused(), (unsigned long long)dock_peek64(&busy.stores),
        (unsigned long long)dock_peek64(&busy.kernel_stores), (unsigned long long)dock_peek64(&busy.lost),
        (unsigned long long)dock_peek64(&busy.failed));
    if (dock_peek64(&busy.lost) || dock_peek64(&busy.failed))
        return 2;
    if (!moved)
        return 3;
    // On a busy machine the last way back may have been refused: it is gone when nobody is in the way.
    for (unsigned i = 0; i < 100 && maps_look(busy.mem, LEN).adopted; i++)
        if (register_all(&mr, LEN) || dock_mr_deregister(mr))
            return 6;
    if (maps_look(busy.mem, LEN).adopted)
        return 4;
    // After a stop that not all acknowledged the handler stays until the next one that all do.
    return clean || refused() ? close_device() : 5;
}

static int asked_for(void *arg)
{
    int err = begin_signals();

    (void)arg;
    return err ? err : work(THREADS - 1);
}

static int beside_forks(void *arg)
{
    int err = begin_signals();

    (void)arg;
    return err ? err : work(THREADS);
}

static int nothing_else_is_left(void *arg)
{
    int err = refuse(true) ? open_device() : 77;

    (void)arg;
    return err ? err : work(THREADS - 1);
}

// process_vm is allowed: what stays plain is reached by it, and no thread is bothered.
static int something_is_left(void *arg)
{
    int err = refuse(false) ? open_device() : 77;
    struct dock_mr *mr;
    pthread_t t;

    (void)arg;
    busy.signals = false; // a poll must not end with EINTR
    if (err)
        return err;
    if (pthread_create(&t, NULL, busy_poller, NULL))
        return 1;
    if (dock_mr_register(dev, pd, (uintptr_t)busy.mem, LEN, (uintptr_t)busy.mem, BUSY_RIGHTS, &mr))
        return 2;
    if (adopted() || !refused())
        return 3;
    dock_set32(&busy.go, 0);
    pthread_join(t, NULL);
    if (dock_peek64(&busy.failed))
        return 4;
    return dock_mr_deregister(mr) ? 5 : close_device();
}

// A daemon that began as root: nobody may trace it now, nor look at its memory.
static int as_another_user(void)
{
    return prctl(PR_GET_DUMPABLE) != 1 ? open_device() : 77;
}

static int work_of_another_user(void *arg)
{
    (void)arg;
    if (!another_user())
        return 77;
    int err = as_another_user();
    return another_user_ends(err ? err : work(THREADS - 1));
}

// ---- a thread that blocks every signal

static void *blocks_all(void *arg)
{
    sigset_t all, was;

    (void)arg;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &was);
    dock_set32(&busy.sleepers, 1);
    while (dock_peek32(&busy.go))
        test_nap_us(1000);
    pthread_sigmask(SIG_SETMASK, &was, NULL); // what is pending comes now
    test_nap_us(1000);
    return NULL;
}

static int beside_one_that_blocks(int want_err)
{
    struct dock_mr *mr = NULL;
    pthread_t t;
    int err;

    if (pthread_create(&t, NULL, blocks_all, NULL))
        return 1;
    while (!dock_peek32(&busy.sleepers))
        test_nap_us(100);
    err = dock_mr_register(dev, pd, (uintptr_t)busy.mem, LEN, (uintptr_t)busy.mem, BUSY_RIGHTS, &mr);
    if (err != want_err || adopted() || !refused())
        return 2;
    if (!err && dock_mr_deregister(mr))
        return 3;
    dock_set32(&busy.go, 0);
    pthread_join(t, NULL);
    if (register_all(&mr, LEN) || dock_mr_deregister(mr))
        return 4;
    return all_default() ? close_device() : 5;
}

static int a_blocker_keeps_it_plain(void *arg)
{
    int err = begin_signals();

    (void)arg;
    return err ? err : beside_one_that_blocks(0);
}

static int a_blocker_fails_it(void *arg)
{
    int err = refuse(true) ? open_device() : 77;

    (void)arg;
    return err ? err : beside_one_that_blocks(-EOPNOTSUPP);
}

// ---- signals of the program

static dock_a32 handled;

static void on_signal(int number)
{
    (void)number;
    atomic_fetch_add(&handled, 1);
}

// Reads signals that everybody blocks: none of ours may be one.
static void *reads_signals(void *arg)
{
    int fd = signalfd(-1, arg, SFD_CLOEXEC);
    struct signalfd_siginfo one;

    dock_set32(&busy.sleepers, 1);
    if (read(fd, &one, sizeof one) != sizeof one || dock_peek32(&busy.go))
        atomic_fetch_add(&busy.failed, 1);
    close(fd);
    return NULL;
}

static int signals_in_use(void *arg)
{
    struct sigaction now;
    struct dock_mr *mr;
    sigset_t one;
    pthread_t t;
    int err;

    (void)arg;
    signal(SIGRTMAX, on_signal);
    sigemptyset(&one);
    sigaddset(&one, SIGRTMAX - 1);
    pthread_sigmask(SIG_BLOCK, &one, NULL);
    err = begin_signals();
    if (err)
        return err;
    if (pthread_create(&t, NULL, reads_signals, &one))
        return 1;
    while (!dock_peek32(&busy.sleepers))
        test_nap_us(100);
    for (unsigned i = 0; i < 20; i++)
        if (register_all(&mr, LEN) || dock_mr_deregister(mr))
            return 2;
    dock_set32(&busy.go, 0);
    pthread_kill(t, SIGRTMAX - 1);
    pthread_join(t, NULL);
    if (dock_peek32(&handled) || dock_peek64(&busy.failed) || sigaction(SIGRTMAX, NULL, &now) ||
        now.sa_handler != on_signal)
        return 3;
    return close_device();
}

// A signal thread, as daemons have it: it blocks all and waits for any. Others need not block them.
static void *waits_for_all(void *arg)
{
    sigset_t all;
    int number;

    (void)arg;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    dock_set32(&busy.sleepers, 1);
    while (!sigwait(&all, &number) && number != SIGUSR2)
        atomic_fetch_add(&busy.failed, 1); // ours
    return NULL;
}

static int a_signal_thread(void *arg)
{
    int err = begin_signals();
    struct dock_mr *mr;
    pthread_t t;

    (void)arg;
    if (err)
        return err;
    if (pthread_create(&t, NULL, waits_for_all, NULL))
        return 1;
    while (!dock_peek32(&busy.sleepers))
        test_nap_us(100);
    test_nap_us(10000); // most likely it sleeps by now: if not, all is right, too
    for (unsigned i = 0; i < 10; i++)
        if (dock_mr_register(dev, pd, (uintptr_t)busy.mem, LEN, (uintptr_t)busy.mem, BUSY_RIGHTS, &mr) ||
            adopted() || dock_mr_deregister(mr))
            return 2;
    pthread_kill(t, SIGUSR2);
    pthread_join(t, NULL);
    return dock_peek64(&busy.failed) ? 3 : close_device();
}

// ---- edges of a region

// What lies beside it in its first and last page comes along: plain they could not be reached.
static int with_edges(void)
{
    struct dock_mr *mr;

    if (dock_mr_register(dev, pd, (uintptr_t)busy.mem + 100, LEN - 300, (uintptr_t)busy.mem + 100,
                         BUSY_RIGHTS, &mr))
        return 2;
    if (adopted() != LEN)
        return 3;
    return dock_mr_deregister(mr) ? 4 : close_device();
}

static int edges_go_along(void *arg)
{
    int err = refuse(true) ? open_device() : 77;

    (void)arg;
    return err ? err : with_edges();
}

// process_vm works with oneself, and peers are refused.
static int edges_of_another_user(void *arg)
{
    (void)arg;
    if (!another_user())
        return 77;
    int err = as_another_user();
    return another_user_ends(err ? err : with_edges());
}

// ---- an alternate stack in memory that is registered

#define OWN_PAGES 32u // of the end

static void *on_its_own_stack(void *arg)
{
    char *low = busy.mem + LEN - OWN_PAGES * BUSY_PAGE;
    stack_t own = {.ss_sp = low, .ss_size = OWN_PAGES * BUSY_PAGE}, none = {.ss_flags = SS_DISABLE};
    uint64_t n = 0;

    (void)arg;
    if (sigaltstack(&own, NULL))
        atomic_fetch_add(&busy.failed, 1);
    dock_set32(&busy.sleepers, 1);
    while (dock_peek32(&busy.go)) {
        dock_a64 *word = (dock_a64 *)(void *)busy.mem;
        if (dock_peek64(word) != n)
            atomic_fetch_add(&busy.lost, 1);
        dock_set64(word, ++n);
    }
    sigaltstack(&none, NULL);
    return NULL;
}

static int alternate_stack(void *arg)
{
    struct dock_mr *mr;
    pthread_t t;
    int err = begin_signals();

    (void)arg;
    if (err)
        return err;
    if (pthread_create(&t, NULL, on_its_own_stack, NULL))
        return 1;
    while (!dock_peek32(&busy.sleepers))
        test_nap_us(100);
    for (unsigned i = 0; i < 20; i++) {
        if (register_all(&mr, LEN - OWN_PAGES * BUSY_PAGE))
            return 2;
        if (maps_look(busy.mem + LEN - OWN_PAGES * BUSY_PAGE, OWN_PAGES * BUSY_PAGE).adopted)
            return 3;
        if (dock_mr_deregister(mr))
            return 4;
    }
    dock_set32(&busy.go, 0);
    pthread_join(t, NULL);
    return dock_peek64(&busy.failed) || dock_peek64(&busy.lost) ? 5 : close_device();
}

// ---- after the first thread has ended

static void *goes_on(void *arg)
{
    struct dock_mr *mr;
    uint64_t by = dock_now_ns() + 20000000000ull;
    pthread_t t;
    int err;

    pthread_join(*(pthread_t *)arg, NULL);
    if (pthread_create(&t, NULL, busy_poller, NULL))
        _exit(1);
    // It cannot be told what is open, nor is plain memory reached (status.md): the threads are stopped, and
    // nothing moves. On a busy machine the first stops may be refused.
    do {
        err = dock_mr_register(dev, pd, (uintptr_t)busy.mem, LEN, (uintptr_t)busy.mem, BUSY_RIGHTS, &mr);
        if ((err && err != -EOPNOTSUPP) || adopted() || (!err && dock_mr_deregister(mr)))
            _exit(2);
    } while (!dock_peek64(&dev->port->adopt.refused[DOCK_WHY_PINNED]) && dock_now_ns() < by);
    if (!dock_peek64(&dev->port->adopt.refused[DOCK_WHY_PINNED]))
        _exit(3);
    dock_set32(&busy.go, 0);
    pthread_join(t, NULL);
    _exit(close_device());
}

static int first_thread_ends(void *arg)
{
    static pthread_t first;
    struct dock_mr *mr;
    pthread_t t;
    int err = begin_signals();

    (void)arg;
    first = pthread_self();
    if (err)
        return err;
    if (register_all(&mr, LEN) || dock_mr_deregister(mr)) // what /proc has is open from here on
        return 1;
    if (pthread_create(&t, NULL, goes_on, &first))
        return 1;
    pthread_exit(NULL);
}

// ---- with a peer

static pthread_t workers[2];

struct io_region {
    uint64_t addr;
    uint32_t rkey;
    int err;
    bool lost;
};

static void begin(struct side *s, void *arg)
{
    struct io_region *io = arg;
    struct dock_mr *mr = NULL;

    dev = s->e.dev;
    pd = s->e.pd;
    busy.mem = maps_in_one(LEN);
    memset(busy.mem, 0, LEN);
    dock_set32(&busy.go, 1);
    for (size_t i = 0; i < 2; i++)
        pthread_create(&workers[i], NULL, busy_hammer, (void *)i);
    io->err = register_all(&mr, LEN);
    io->addr = (uintptr_t)busy.mem;
    io->rkey = mr && !io->err ? mr->rkey : 0;
    s->extra = mr;
}

static void finish(struct side *s, void *arg)
{
    struct io_region *io = arg;

    io->err = dock_mr_deregister(s->extra); // pages go back under the threads
    s->extra = NULL;
    dock_set32(&busy.go, 0);
    for (size_t i = 0; i < 2; i++)
        pthread_join(workers[i], NULL);
    io->lost = dock_peek64(&busy.lost);
    for (uint64_t i = 0; i < BUSY_PAGES; i++)
        io->lost |= *(uint64_t *)(void *)(busy.mem + i * BUSY_PAGE + 2048) != i + 1;
}

static int with_a_peer(void *arg)
{
    struct io_region far = {0};
    struct dock_sge sge;
    struct dock_wc wc;
    struct duo d;

    (void)arg;
    setenv("DRYDOCK_ADOPT", "inner", 1);
#ifdef DOCK_SANITIZED
    return 77; // the sanitizer's own end of a process wants ptrace
#endif
    if (!refuse(true))
        return 77;
    duo_open(&d, HOST_ARENA, NULL);
    if (d.near.e.dev->adopt.mode == DOCK_ADOPT_OFF)
        return 77;
    duo_far(&d, begin, &far, sizeof far);
    if (far.err)
        return 2;
    for (uint64_t i = 0; i < BUSY_PAGES; i++) {
        struct dock_mr there = {.rkey = far.rkey};
        struct dock_wr wr =
            wr_onesided(DOCK_OP_WRITE, &d.near.e, &sge, 0, 8, &there, far.addr + i * BUSY_PAGE + 2048);
        *(uint64_t *)(void *)d.near.e.mem = i + 1;
        wr.flags = DOCK_F_COMPLETE;
        if (end_post(&d.near.e, &wr) || !end_wait(d.near.e.scq, &wc, 20000 * slow_down()) ||
            wc.status != DOCK_OK)
            return 3;
    }
    duo_far(&d, finish, &far, sizeof far);
    duo_close(&d);
    return far.err ? 4 : far.lost ? 5 : 0;
}

// ----

struct part {
    const char *name;
    int (*in_child)(void *);
};

static void in_a_child(void **state)
{
    const struct part *c = *state;
    pid_t child = test_fork(c->in_child, NULL);
    int status;

    assert_int_equal(test_await(child, &status, 60000 * slow_down()), TEST_EXITED);
    if (status == 77)
        skip();
    assert_int_equal(status, 0);
}

static struct part parts[] = {
    {"no store is lost", asked_for},
    {"no store is lost beside forks", beside_forks},
    {"where nothing else is left", nothing_else_is_left},
    {"as another user than at first", work_of_another_user},
    {"nobody is bothered where something is", something_is_left},
    {"one that blocks all keeps memory plain", a_blocker_keeps_it_plain},
    {"one that blocks all fails a registration", a_blocker_fails_it},
    {"signals of the program are its own", signals_in_use},
    {"beside a thread that waits for signals", a_signal_thread},
    {"edges go along", edges_go_along},
    {"edges go along of another user", edges_of_another_user},
    {"an alternate stack stays", alternate_stack},
    {"after the first thread has ended", first_thread_ends},
    {"a peer reaches what moved so", with_a_peer},
};

#define PARTS (sizeof parts / sizeof *parts)

int main(void)
{
    struct CMUnitTest tests[PARTS];

    if (getenv("DRYDOCK_EMULATED")) // an emulator has mappings and threads of its own, which do not stand
        return 77;
    for (size_t i = 0; i < PARTS; i++)
        tests[i] = (struct CMUnitTest){parts[i].name, in_a_child, NULL, NULL, &parts[i]};
    return cmocka_run_group_tests_name("threads stopped by a signal", tests, NULL, NULL);
}
