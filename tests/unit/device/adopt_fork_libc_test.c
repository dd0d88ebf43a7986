// SPDX-License-Identifier: MIT
// timeout: 120
// What libc itself does in a forked child before any handler runs, to pages that have moved: the locks of its
// allocator's arenas and of its open files, and the stack of who forks. And a fork beside children without
// handlers.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "arena/adopt_own.h"
#include "arena/procfile.h"
#include "device/internal.h"
#include "lib/adopting.h"
#include "lib/filter.h"
#include "lib/fork.h"
#include "lib/maps.h"
#include "lib/tracing.h"

#define PAGE 4096u
#define LEN (256 * PAGE)

static struct dock_dev *dev;
static uint32_t pd;

static int ended(pid_t child)
{
    int status;

    if (child < 0 || waitpid(child, &status, 0) != child)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static int open_device(const char *mode)
{
    setenv("DRYDOCK_ADOPT", mode, 1);
    if (dock_dev_open(NULL, &dev) || dock_pd_create(dev, &pd))
        return 1;
    return dev->adopt.mode == DOCK_ADOPT_OFF ? 77 : 0;
}

static struct dock_mr *hold(void *at, size_t len)
{
    struct dock_mr *mr = NULL;

    return dock_mr_register(dev, pd, (uintptr_t)at, len, (uintptr_t)at, DOCK_ACCESS_LOCAL_WRITE, &mr) ? NULL
                                                                                                      : mr;
}

static uint64_t adopted_page(const void *at)
{
    return maps_look((void *)((uintptr_t)at & ~(uintptr_t)(PAGE - 1)), PAGE).adopted;
}

static void *sleeper(void *arg)
{
    (void)arg;
    for (;;)
        pause();
    return NULL;
}

// libc takes locks over a fork only in a process with threads.
static int be_many(void)
{
    pthread_t t;

    return pthread_create(&t, NULL, sleeper, NULL);
}

// The locks that libc holds over the fork are free in the child.
static int child_uses(FILE *f)
{
    alarm(30 * test_slow());
    void *small = malloc(100), *large = malloc(60000);

    return !small || !large || fprintf(f, "child\n") != 6 || fflush(f) || fclose(f);
}

static bool heap_of(void *inside, uintptr_t *lo, uintptr_t *hi)
{
    FILE *f = fopen("/proc/self/maps", "re");
    char line[512];
    bool found = false;

    while (f && !found && fgets(line, sizeof line, f))
        found = sscanf(line, "%" SCNxPTR "-%" SCNxPTR, lo, hi) == 2 && (uintptr_t)inside >= *lo &&
                (uintptr_t)inside < *hi;
    if (f)
        fclose(f);
    return found;
}

static int open_file_in_memory_that_moved(void *arg)
{
    FILE *f = fopen("/dev/null", "w");
    uintptr_t lo, hi;
    int err = open_device("inner");

    (void)arg;
    if (err || be_many() || !f || !heap_of(f, &lo, &hi))
        return err ? err : 2;
    if (!hold((void *)lo, hi - lo) || !adopted_page(f))
        return 3;
    for (unsigned i = 0; i < 5; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(child_uses(f));
        if (fprintf(f, "parent\n") != 7 || fflush(f))
            return 4;
        if ((err = ended(child)) != 0)
            return err == 1000 + SIGSEGV ? 5 : 6;
        if (!adopted_page(f))
            return 7;
    }
    return fclose(f) ? 8 : 0;
}

static void *hold_of_own_arena(void *arg)
{
    char *p = malloc(64);

    *(int *)arg = !p || !hold(p, 64) || !adopted_page(p) ||
                  adopted_page((void *)((uintptr_t)p & ~0x3ffffffull)) != PAGE;
    return NULL;
}

static int arena_of_the_allocator_that_moved(void *arg)
{
    FILE *f = fopen("/dev/null", "w");
    pthread_t t;
    int err = open_device("on"), not_moved = 1;

    (void)arg;
    if (err || be_many() || pthread_create(&t, NULL, hold_of_own_arena, &not_moved))
        return err ? err : 2;
    pthread_join(t, NULL);
    if (not_moved)
        return 3;
    for (unsigned i = 0; i < 5; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(child_uses(f));
        if ((err = ended(child)) != 0)
            return err == 1000 + SIGSEGV ? 5 : 6;
    }
    return 0;
}

static ucontext_t here, there;
static int on_stack;

static void fork_on_it(void)
{
    uint64_t kept[64], sum = 0;

    for (unsigned i = 0; i < 64; i++)
        kept[i] = i * 7 + (uint64_t)getpid();
    uint64_t id = (uint64_t)getpid();
    pid_t child = fork();
    for (unsigned i = 0; i < 64; i++)
        sum += kept[i] != i * 7 + id;
    if (child == 0)
        _exit(sum != 0);
    on_stack = sum ? 7 : ended(child);
}

static int stack_that_moved(void *arg)
{
    char *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int err = open_device("inner");

    (void)arg;
    if (err || be_many() || !hold(p, LEN) || maps_look(p, LEN).adopted != LEN)
        return err ? err : 2;
    for (unsigned i = 0; i < 5; i++) {
        on_stack = -1;
        getcontext(&there);
        there.uc_stack.ss_sp = p;
        there.uc_stack.ss_size = LEN;
        there.uc_link = &here;
        makecontext(&there, fork_on_it, 0);
        swapcontext(&here, &there);
        if (on_stack || maps_look(p, LEN).adopted != LEN)
            return on_stack == 1000 + SIGSEGV ? 5 : 6;
    }
    return 0;
}

// ---- a child without handlers, made while the fork is on its way, that lives on

static struct {
    dock_a32 flushing, over;
    unsigned before; // descriptors
    pid_t child;
} beside;

static unsigned descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    unsigned n = 0;

    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

// fflush(NULL) holds the list of files meanwhile, for which fork waits behind its handlers: by then they have
// what they opened.
static void await_the_handlers(void)
{
    dock_publish32(&beside.flushing, 1);
    for (unsigned i = 0; i < 20000 * test_slow() && descriptors() <= beside.before; i++)
        test_nap_us(1000);
}

static ssize_t make_a_child(void *arg, const char *text, size_t n)
{
    (void)arg;
    (void)text;
    await_the_handlers();
    beside.child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (beside.child == 0)
        for (syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);;)
            syscall(SYS_ppoll, NULL, 0, NULL, NULL, 0);
    return (ssize_t)n;
}

static void *flush_all(void *arg)
{
    (void)arg;
    fflush(NULL);
    while (!dock_peek32(&beside.over)) // the child dies with this thread
        test_nap_us(1000);
    return NULL;
}

// No child for this thread from here on; helpers and threads share its memory.
static bool refuse_copies(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_VM, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog p = {.len = 6, .filter = code};

    return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p);
}

static int beside_a_child_without_handlers(bool refused)
{
    char *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int err = open_device("inner");
    FILE *f = fopencookie(NULL, "w", (cookie_io_functions_t){.write = make_a_child});
    pthread_t t;

    if (err || !f || !hold(p, LEN) || maps_look(p, LEN).adopted != LEN)
        return err ? err : 2;
    memset(p, 5, LEN);
    fputs("something", f);
    beside.before = descriptors();
    if (pthread_create(&t, NULL, flush_all, NULL))
        return 3;
    while (!dock_acquire32(&beside.flushing))
        test_nap_us(1000);
    if (refused && !refuse_copies())
        return 77;
    pid_t child = fork();
    if (child == 0)
        _exit(p[LEN - 1] != 5);
    err = refused ? child != -1 : ended(child);
    if (!err &&
        strstr(dock_log_last(), "threads cannot be stopped")) // it has waited until its patience was over
        err = 5;
    if (beside.child <= 0 || waitpid(beside.child, NULL, WNOHANG)) // it must have been there all the time
        return 4;
    dock_set32(&beside.over, 1);
    pthread_join(t, NULL);
    kill(beside.child, SIGKILL); // which may not have come to ask for it at the thread's end
    waitpid(beside.child, NULL, 0);
    return err;
}

static int child_without_handlers(void *arg)
{
    (void)arg;
    return beside_a_child_without_handlers(false);
}

static int fork_that_is_refused(void *arg)
{
    (void)arg;
    return beside_a_child_without_handlers(true);
}

// A kernel that tells mappings as text, of a process that lives.
static bool answer_queries(uint32_t err)
{
    return !filter_call(SYS_ioctl, SECCOMP_RET_ERRNO | err, SECCOMP_FILTER_FLAG_TSYNC);
}

static ssize_t close_the_maps(void *arg, const char *text, size_t n)
{
    (void)arg;
    (void)text;
    await_the_handlers();
    close((int)dock_proc_kept(DOCK_PROC_MAPS));
    return (ssize_t)n;
}

// The helper then opens the file itself, of itself.
static int file_of_the_helper(void *arg)
{
    char *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *q = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int err = open_device("inner");
    FILE *f = fopencookie(NULL, "w", (cookie_io_functions_t){.write = close_the_maps});
    pthread_t t;

    (void)arg;
    if (err || !answer_queries(ENOTTY))
        return err ? err : 77;
    if (!f || !hold(p, LEN) || maps_look(p, LEN).adopted != LEN)
        return 2;
    memset(p, 5, LEN);
    fputs("something", f);
    beside.before = descriptors();
    if (pthread_create(&t, NULL, flush_all, NULL))
        return 3;
    while (!dock_acquire32(&beside.flushing))
        test_nap_us(1000);
    pid_t child = fork();
    if (child == 0)
        _exit(p[LEN - 1] != 5);
    err = ended(child);
    dock_set32(&beside.over, 1);
    pthread_join(t, NULL);
    if (!err && (!hold(q, LEN) || maps_look(q, LEN).adopted != LEN))
        err = 4;
    return err;
}

static bool no_more(void *arg, const struct dock_vma *v)
{
    (void)arg;
    (void)v;
    return false;
}

static int nothing_is_told(void *arg)
{
    char *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int err = open_device("inner");

    (void)arg;
    if (err || !hold(p, LEN) || maps_look(p, LEN).adopted != LEN)
        return err ? err : 2;
    dock_adopt_lock();
    bool asked = dock_maps_walk_shared(no_more, NULL) != -ENOTTY; // else the kernel tells by text
    dock_adopt_unlock();
    if (!asked || !answer_queries(ENOMEM))
        return 77;
    signal(SIGSEGV, SIG_DFL); // a sanitizer's
    pid_t child = fork();
    if (child == 0)
        _exit(*(volatile char *)p); // which is not there
    if (ended(child) != 1000 + SIGSEGV)
        return 3;
    return strstr(dock_log_last(), "what is mapped cannot be told") ? 0 : 4;
}

// The first child that is born into a pid namespace ends it by its own end: none of ours may be it.
static int namespace_for_children(void *arg)
{
    char *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int err = open_device("inner");

    (void)arg;
    if (err || be_many())
        return err ? err : 2;
    if (unshare(CLONE_NEWPID))
        return 77;
    if (!hold(p, LEN))
        return 3;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    return child < 0 ? 4 : ended(child);
}

// ---- a handler that was registered before ours: it runs behind it, and makes a thread

static dock_a64 *of_early;

static void *store(void *arg)
{
    dock_count64(arg, 1);
    return NULL;
}

static void prepare_early(void)
{
    pthread_t t;

    if (of_early && !pthread_create(&t, NULL, store, of_early))
        pthread_join(t, NULL);
}

__attribute__((constructor(101))) static void register_early(void)
{
    pthread_atfork(prepare_early, NULL, NULL);
}

static int thread_of_a_handler(void *arg)
{
    char *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int err = open_device("inner");

    (void)arg;
    if (err || !hold(p, LEN) || maps_look(p, LEN).adopted != LEN)
        return err ? err : 2;
    of_early = (dock_a64 *)(void *)p;
    for (uint64_t i = 1; i <= 5; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(dock_peek64(of_early) != i);
        if (ended(child))
            return 3;
        if (dock_peek64(of_early) != i)
            return 4;
    }
    return 0;
}

static void run(int (*body)(void *))
{
    int status;
    pid_t child = test_fork(body, NULL);

    assert_int_equal(test_await(child, &status, 90000 * test_slow()), TEST_EXITED);
    if (status == 77)
        skip();
    assert_int_equal(status, 0);
}

// A sanitizer's allocator lays memory out in another way.
static void skip_without_malloc_of_libc(void)
{
#if defined(__SANITIZE_ADDRESS__)
    skip();
#endif
}

static void a_file_that_is_open(void **state)
{
    (void)state;
    tracing_or_skip();
    skip_without_malloc_of_libc();
    run(open_file_in_memory_that_moved);
}

static void an_arena_of_the_allocator(void **state)
{
    (void)state;
    tracing_or_skip();
    skip_without_malloc_of_libc();
    run(arena_of_the_allocator_that_moved);
}

static void the_stack_of_who_forks(void **state)
{
    (void)state;
    tracing_or_skip();
    run(stack_that_moved);
}

static void a_child_without_handlers_beside_it(void **state)
{
    (void)state;
    tracing_or_skip();
    run(child_without_handlers);
}

static void a_fork_that_is_refused_beside_one(void **state)
{
    (void)state;
    tracing_or_skip();
    run(fork_that_is_refused);
}

static void a_file_of_the_helper_that_is_not_kept(void **state)
{
    (void)state;
    run(file_of_the_helper);
}

static void mappings_that_cannot_be_told(void **state)
{
    (void)state;
    run(nothing_is_told);
}

static void a_pid_namespace_for_children(void **state)
{
    (void)state;
    run(namespace_for_children);
}

static void a_thread_that_a_handler_makes(void **state)
{
    (void)state;
    run(thread_of_a_handler);
}

int main(void)
{
    if (getenv("DRYDOCK_EMULATED")) // an emulator has mappings and threads of its own, which do not stand
        return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_that_is_open),
        cmocka_unit_test(an_arena_of_the_allocator),
        cmocka_unit_test(the_stack_of_who_forks),
        cmocka_unit_test(a_child_without_handlers_beside_it),
        cmocka_unit_test(a_fork_that_is_refused_beside_one),
        cmocka_unit_test(a_file_of_the_helper_that_is_not_kept),
        cmocka_unit_test(mappings_that_cannot_be_told),
        cmocka_unit_test(a_pid_namespace_for_children),
        cmocka_unit_test(a_thread_that_a_handler_makes),
    };

    return cmocka_run_group_tests_name("adoption, fork and libc", tests, NULL, NULL);
}
