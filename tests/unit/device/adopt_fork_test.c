// SPDX-License-Identifier: MIT
// timeout: 120
// Registered memory and fork: the child has the memory as it was, the parent's transfers go on.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "device/internal.h"
#include "lib/adopting.h"
#include "lib/duo.h"
#include "lib/fork.h"
#include "lib/maps.h"
#include "lib/tracing.h"

#define PAGE 4096u
#define LEN (256 * PAGE)
#define RIGHTS (DOCK_ACCESS_LOCAL_WRITE | DOCK_ACCESS_REMOTE_READ | DOCK_ACCESS_REMOTE_WRITE)

extern char **environ;

struct fix {
    struct dock_dev *dev;
    struct end a, b; // b's memory is adopted
};

static int set_up(void **state)
{
    struct fix *f = calloc(1, sizeof *f);
    struct end_opts o = {0}, plain = {.plain = true, .mem = LEN};

    setenv("DRYDOCK_ADOPT", "inner", 1);
    open_adopting(&f->dev);
    end_open(&f->a, f->dev, &o);
    end_open(&f->b, f->dev, &plain);
    pair_connect(&f->a, &f->b);
    assert_int_equal(maps_look(f->b.mem, LEN).adopted, LEN);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fix *f = *state;

    end_close(&f->a);
    end_close(&f->b);
    assert_int_equal(dock_dev_close(f->dev), 0);
    free(f);
    return 0;
}

static void transfer(struct fix *f, uint64_t value)
{
    struct dock_sge sge;
    struct dock_wr wr = wr_onesided(DOCK_OP_WRITE, &f->a, &sge, 0, 8, f->b.mr, (uintptr_t)f->b.mem + PAGE);

    *(uint64_t *)(void *)f->a.mem = value;
    carry_out(&f->a, &wr);
    assert_int_equal(*(uint64_t *)(void *)(f->b.mem + PAGE), value);
}

static int ended(pid_t child)
{
    int status;

    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void whoever_writes_first(void **state)
{
    struct fix *f = *state;

    for (unsigned i = 0; i < 20; i++) {
        bytes_fill(f->b.mem, LEN, i);
        uint64_t sum = bytes_sum(f->b.mem, LEN);
        pid_t child = fork();
        if (child == 0) {
            alarm(30 * slow_down());
            if (i % 2)
                test_nap_us(2000);
            int same = bytes_sum(f->b.mem, LEN) == sum && !maps_look(f->b.mem, LEN).adopted;
            memset(f->b.mem, 0xff, LEN);
            _exit(!same);
        }
        if (i % 2 == 0)
            test_nap_us(2000);
        assert_int_equal(bytes_sum(f->b.mem, LEN), sum);
        memset(f->b.mem, (int)i, LEN);
        transfer(f, i);
        assert_int_equal(ended(child), 0);
        assert_int_equal((uint8_t)f->b.mem[0], i);
        transfer(f, i + 100);
    }
    assert_true(dock_peek64(&f->dev->port->adopt.forked_bytes) >= 20 * LEN);
}

// A thread that writes under a lock which the program's own handlers take over the fork.
static struct {
    pthread_mutex_t lock;
    dock_a32 go;
    char *mem;
} locked = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void take_lock(void)
{
    pthread_mutex_lock(&locked.lock);
}

static void leave_lock(void)
{
    pthread_mutex_unlock(&locked.lock);
}

static void *writer(void *arg)
{
    (void)arg;
    for (uint64_t n = 1; dock_peek32(&locked.go); n++) {
        take_lock();
        for (unsigned i = 0; i < LEN; i += PAGE)
            *(uint64_t *)(void *)(locked.mem + i) = n;
        leave_lock();
    }
    return NULL;
}

static void no_snapshot_is_torn(void **state)
{
    struct fix *f = *state;
    pthread_t t;
    unsigned torn = 0;

    locked.mem = f->b.mem;
    memset(f->b.mem, 0, LEN);
    dock_set32(&locked.go, 1);
    pthread_atfork(take_lock, leave_lock, leave_lock);
    assert_int_equal(pthread_create(&t, NULL, writer, NULL), 0);
    for (unsigned k = 0; k < 20; k++) {
        test_nap_us(1000);
        pid_t child = fork();
        if (child == 0) {
            uint64_t first = *(uint64_t *)(void *)f->b.mem;
            for (unsigned i = 0; i < LEN; i += PAGE)
                if (*(uint64_t *)(void *)(f->b.mem + i) != first)
                    _exit(1);
            _exit(0);
        }
        torn += ended(child) != 0;
    }
    dock_set32(&locked.go, 0);
    pthread_join(t, NULL);
    assert_int_equal(torn, 0);
}

// Without any lock: one thread stores to a plain word, then to all adopted pages, over and over. Whenever the
// child was made, its pages are of one instant: page by page not newer than the one before, and all of the
// plain word's round or the one before.
static struct {
    dock_a32 go;
    dock_a64 *plain;
    char *mem;
} free_running;

static void *storer(void *arg)
{
    sigset_t all;

    (void)arg;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    for (uint64_t n = 1; dock_peek32(&free_running.go); n++) {
        dock_publish64(free_running.plain, n);
        for (unsigned i = 0; i < LEN; i += PAGE)
            dock_publish64((dock_a64 *)(void *)(free_running.mem + i), n);
    }
    return NULL;
}

static int is_one_instant(void)
{
    uint64_t newest = dock_peek64(free_running.plain), last = newest;

    for (unsigned i = 0; i < LEN; i += PAGE) {
        uint64_t n = dock_peek64((dock_a64 *)(void *)(free_running.mem + i));
        if (n > last || newest - n > 1)
            return 1;
        last = n;
    }
    return 0;
}

static void a_child_sees_one_instant(void **state)
{
    struct fix *f = *state;
    pthread_t t;
    unsigned torn = 0;

    tracing_or_skip();
    free_running.mem = f->b.mem;
    free_running.plain = calloc(1, sizeof *free_running.plain);
    memset(f->b.mem, 0, LEN);
    dock_set32(&free_running.go, 1);
    assert_int_equal(pthread_create(&t, NULL, storer, NULL), 0);
    for (unsigned k = 0; k < 20; k++) {
        test_nap_us(500);
        pid_t child = fork();
        if (child == 0) {
            alarm(60 * slow_down());
            void *p = malloc(100000); // the child has its allocator
            _exit(!p || is_one_instant());
        }
        torn += ended(child) != 0;
    }
    dock_set32(&free_running.go, 0);
    pthread_join(t, NULL);
    assert_int_equal(torn, 0);
    transfer(f, 5);
    free((void *)free_running.plain);
}

static dock_a32 forks;

static const struct itimerval soon = {.it_value = {0, 2000}}; // of the thread's own time after each

static void fork_in_a_handler(int signal)
{
    pid_t child = fork();

    (void)signal;
    if (child == 0)
        _exit(0);
    if (child > 0)
        waitpid(child, NULL, 0);
    atomic_fetch_add(&forks, 1);
    setitimer(ITIMER_REAL, &soon, NULL);
}

// As handlers that report a crash do. In a process that never had a thread: beside one, libc's fork waits for
// the allocator's lock, which the call that was interrupted may have. 0, or what went wrong.
static int register_beside_the_handler(void *arg)
{
    struct dock_config alone = {.no_engine_thread = true};
    struct sigaction act = {.sa_handler = fork_in_a_handler, .sa_flags = SA_RESTART};
    uint64_t until = dock_now_ns() + 60000000000ull * slow_down();
    struct dock_dev *dev;
    struct dock_mr *mr;
    uint32_t pd;

    (void)arg;
    setenv("DRYDOCK_ADOPT", "inner", 1);
    if (dock_dev_open(&alone, &dev) || dock_pd_create(dev, &pd) || sigaction(SIGALRM, &act, NULL))
        return 1;
    if (dev->adopt.mode == DOCK_ADOPT_OFF)
        return 77;
    setitimer(ITIMER_REAL, &soon, NULL);
    while (dock_peek32(&forks) < 100) {
        char *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memset(p, 1, LEN);
        if (dock_mr_register(dev, pd, (uintptr_t)p, LEN, (uintptr_t)p, DOCK_ACCESS_LOCAL_WRITE, &mr) ||
            maps_look(p, LEN).adopted != LEN || dock_mr_deregister(mr))
            return 2;
        munmap(p, LEN);
        if (dock_now_ns() > until)
            return 3;
    }
    return 0;
}

// A hang is the end of the child's time.
static void a_handler_that_forks_in_the_middle_of_a_registration(void **state)
{
    int status;
    pid_t child = test_fork(register_beside_the_handler, NULL);

    (void)state;
    assert_int_equal(test_await(child, &status, 90000 * slow_down()), TEST_EXITED);
    if (status == 77)
        skip();
    assert_int_equal(status, 0);
}

static void children_that_never_return_here(void **state)
{
    struct fix *f = *state;
    char *argv[] = {"true", NULL};
    pid_t child;

    assert_int_equal(system("true"), 0);
    transfer(f, 1);
    assert_int_equal(posix_spawnp(&child, "true", NULL, NULL, argv, environ), 0);
    assert_int_equal(ended(child), 0);
    transfer(f, 2);
    child = vfork();
    if (child == 0) {
        execvp("true", argv);
        _exit(1);
    }
    assert_int_equal(ended(child), 0);
    transfer(f, 3);
}

static void a_raw_clone_faults(void **state)
{
    struct fix *f = *state;

    bytes_fill(f->b.mem, LEN, 9);
    uint64_t sum = bytes_sum(f->b.mem, LEN);
    long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGSEGV, SIG_DFL);
        f->b.mem[0] = 1;
        _exit(0);
    }
    assert_int_equal(ended((pid_t)child), 1000 + SIGSEGV);
    assert_int_equal(bytes_sum(f->b.mem, LEN), sum);
    transfer(f, 4);
}

// What the child does with what it has inherited is refused, or without effect; its own device is one.
static int use_inherited(struct fix *f)
{
    struct dock_mr *mr;
    struct dock_wc wc;
    struct dock_sge sge;
    struct dock_wr wr = wr_onesided(DOCK_OP_WRITE, &f->a, &sge, 0, 8, f->b.mr, (uintptr_t)f->b.mem);
    struct dock_dev *own;
    char *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    alarm(30 * slow_down());
    wr.flags = DOCK_F_COMPLETE;
    if (dock_mr_register(f->dev, f->a.pd, (uintptr_t)p, LEN, (uintptr_t)p, RIGHTS, &mr) != -EIO ||
        !strstr(dock_log_last(), "parent"))
        return 1;
    *(uint64_t *)(void *)f->a.mem = 0xbad;
    end_post(&f->a, &wr);
    if (end_poll(f->a.scq, &wc))
        return 2;
    f->b.mem[0] = 1; // its own copy
    dock_mr_deregister(f->b.mr);
    dock_qp_destroy(f->b.qp);
    dock_qp_destroy(f->a.qp);
    dock_dev_close(f->dev);
    struct fix mine;
    struct end_opts o = {0}, plain = {.plain = true, .mem = LEN};
    if (dock_dev_open(NULL, &own))
        return 3;
    mine.dev = own;
    end_open(&mine.a, own, &o);
    end_open(&mine.b, own, &plain);
    pair_connect(&mine.a, &mine.b);
    if (maps_look(mine.b.mem, LEN).adopted != LEN)
        return 4;
    transfer(&mine, 77);
    end_close(&mine.a);
    end_close(&mine.b);
    return dock_dev_close(own) ? 5 : 0;
}

static void what_is_inherited_is_refused(void **state)
{
    struct fix *f = *state;

    memset(f->b.mem, 0, LEN);
    pid_t child = fork();
    if (child == 0)
        _exit(use_inherited(f));
    for (unsigned i = 0; i < 200; i++)
        transfer(f, i);
    assert_int_equal(ended(child), 0);
    assert_int_equal(f->b.mem[0], 0);
    for (unsigned i = 0; i < 200; i++)
        transfer(f, i);
}

// The numbers of our descriptors are the program's files now: nothing is done to these.
static int close_everything(void *arg)
{
    struct fix f;
    char *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
         name[] = "/tmp/dockXXXXXX";
    struct dock_mr *mr;
    char back[64];
    int fd, files[64];

    (void)arg;
    set_up((void **)&arg);
    f = *(struct fix *)arg;
    bytes_fill(f.b.mem, LEN, 5);
    uint64_t sum = bytes_sum(f.b.mem, LEN);
    close_range(3, 1000, 0);
    fd = mkstemp(name);
    if (write(fd, "the program's own bytes, all of them, in a file of its own......", 64) != 64)
        return 1;
    for (unsigned i = 0; i < 64; i++)
        files[i] = dup(fd);
    (void)files;
    pid_t child = fork();
    if (child == 0)
        _exit(bytes_sum(f.b.mem, LEN) != sum);
    if (ended(child))
        return 2;
    transfer(&f, 6);
    if (dock_mr_register(f.dev, f.a.pd, (uintptr_t)p, LEN, (uintptr_t)p, RIGHTS, &mr) ||
        maps_look(p, LEN).adopted || dock_mr_deregister(mr))
        return 3;
    bytes_fill(f.b.mem, LEN, 5);
    if (dock_qp_destroy(f.b.qp) || dock_mr_deregister(f.b.mr) || bytes_sum(f.b.mem, LEN) != sum ||
        maps_look(f.b.mem, LEN).adopted)
        return 4;
    unlink(name);
    return pread(fd, back, 64, 0) == 64 && !strncmp(back, "the program's own bytes", 23) &&
                   lseek(fd, 0, SEEK_END) == 64
               ? 0
               : 5;
}

// daemon(): the parent is gone, its registered memory is the daemon's own, and a device opened anew works.
static int become_daemon(void *arg)
{
    int *pipe_ends = arg, result = 0;
    void *state = NULL;

    set_up(&state);
    struct fix *f = state;
    bytes_fill(f->b.mem, LEN, 8);
    uint64_t sum = bytes_sum(f->b.mem, LEN);
    if (daemon(1, 1))
        return 1;
    if (bytes_sum(f->b.mem, LEN) != sum || maps_look(f->b.mem, LEN).adopted)
        result = 2;
    else
        result = use_inherited(f);
    return write(pipe_ends[1], &result, sizeof result) != sizeof result;
}

static void a_daemon_opens_anew(void **state)
{
    int status, ends[2], result = -1;

    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t child = test_fork(become_daemon, ends);
    close(ends[1]);
    assert_int_equal(test_await(child, &status, 60000 * slow_down()), TEST_EXITED);
    if (status == 77)
        skip();
    assert_int_equal(status, 0);
    assert_int_equal(read(ends[0], &result, sizeof result), sizeof result);
    assert_int_equal(result, 0);
    close(ends[0]);
}

static void all_descriptors_closed(void **state)
{
    int status;
    pid_t child = test_fork(close_everything, NULL);

    (void)state;
    assert_int_equal(test_await(child, &status, 60000 * slow_down()), TEST_EXITED);
    if (status == 77)
        skip();
    assert_int_equal(status, 0);
}

int main(void)
{
    if (getenv("DRYDOCK_EMULATED")) // an emulator has mappings and threads of its own, which do not stand
        return 77;
    const struct CMUnitTest tests[] = {
        // before a device is open here, or a thread there
        cmocka_unit_test(a_handler_that_forks_in_the_middle_of_a_registration),
        cmocka_unit_test(all_descriptors_closed),
        cmocka_unit_test(a_daemon_opens_anew),
        cmocka_unit_test_setup_teardown(whoever_writes_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(children_that_never_return_here, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_raw_clone_faults, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_inherited_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_child_sees_one_instant, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_snapshot_is_torn, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("adoption and fork", tests, NULL, NULL);
}
