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
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "device/internal.h"
#include "lib/duo.h"
#include "lib/fork.h"
#include "lib/maps.h"

#define PAGE 4096u
#define PAGES 256u
#define RIGHTS (DOCK_ACCESS_LOCAL_WRITE | DOCK_ACCESS_REMOTE_READ | DOCK_ACCESS_REMOTE_WRITE)

static struct {
    char *mem;
    dock_a32 go, sleepers; // sleepers: those that are in their system call
    dock_a64 lost, stores, failed, kernel_stores;
    int pattern; // a file of 64 known bytes
} at_work;

// A word of its own in every page, counted up.
static void *hammer(void *arg)
{
    size_t id = (size_t)arg;
    uint64_t *shadow = calloc(PAGES, 8);
    sigset_t all;

    sigfillset(&all);
    if (id == 1)
        pthread_sigmask(SIG_BLOCK, &all, NULL);
    for (uint64_t n = 0; dock_peek32(&at_work.go); n++)
        for (unsigned i = 0; i < PAGES; i++) {
            dock_a64 *word = (dock_a64 *)(void *)(at_work.mem + i * PAGE) + id;
            if (dock_peek64(word) != shadow[i])
                atomic_fetch_add(&at_work.lost, 1);
            dock_set64(word, ++shadow[i]);
            atomic_fetch_add_explicit(&at_work.stores, 1, memory_order_relaxed);
        }
    free(shadow);
    return NULL;
}

// The kernel's stores: read(2) into the memory.
static void *reader(void *arg)
{
    char want[64];

    (void)arg;
    if (pread(at_work.pattern, want, 64, 0) != 64)
        abort();
    for (uint64_t n = 0; dock_peek32(&at_work.go); n++) {
        char *to = at_work.mem + dock_mix(n) % PAGES * PAGE + 512;
        memset(to, 0, 64);
        if (pread(at_work.pattern, to, 64, 0) != 64)
            atomic_fetch_add(&at_work.failed, 1);
        else if (memcmp(to, want, 64) != 0)
            atomic_fetch_add(&at_work.lost, 1);
        dock_count64(&at_work.kernel_stores, 1);
    }
    return NULL;
}

// Asleep in a read into the memory that ends after the move.
static int pipe_ends[2];

static void *pipe_reader(void *arg)
{
    (void)arg;
    atomic_fetch_add(&at_work.sleepers, 1);
    for (unsigned i = 0; i < PAGES; i++)
        if (read(pipe_ends[0], at_work.mem + i * PAGE + 1024, 8) != 8 ||
            *(uint64_t *)(void *)(at_work.mem + i * PAGE + 1024) != i + 1)
            atomic_fetch_add(&at_work.failed, 1);
    return NULL;
}

static void *poller(void *arg)
{
    (void)arg;
    while (dock_peek32(&at_work.go))
        if (poll(NULL, 0, 20) < 0)
            atomic_fetch_add(&at_work.failed, 1);
    return NULL;
}

static void *epoller(void *arg)
{
    int fd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event e;

    (void)arg;
    while (dock_peek32(&at_work.go))
        if (epoll_wait(fd, &e, 1, 20) < 0 && errno != EINTR) // the one trace of a stop, documented
            atomic_fetch_add(&at_work.failed, 1);
    close(fd);
    return NULL;
}

static dock_a32 handled;

static void on_signal(int sig)
{
    (void)sig;
    atomic_fetch_add(&handled, 1);
}

typedef void *body(void *);
static body *const bodies[] = {hammer, hammer, hammer, reader, pipe_reader, poller, epoller};

#define THREADS (sizeof bodies / sizeof *bodies)

// Register and deregister under them. How often the memory was adopted: a busy machine may take longer than
// the patience with a thread, so if it must be it is tried again.
static unsigned move_under(struct dock_dev *dev, uint32_t pd, uint64_t ns, bool must)
{
    uint64_t end = dock_now_ns() + ns, last = end + (must ? 20000000000ull : 0);
    unsigned adopted = 0, sent = 0;
    uint64_t word;

    do {
        struct dock_mr *mr;
        if (dock_mr_register(dev, pd, (uintptr_t)at_work.mem, PAGES * PAGE, (uintptr_t)at_work.mem, RIGHTS,
                             &mr))
            abort();
        adopted += dock_peek64(&dev->port->adopt.bytes) == PAGES * PAGE;
        for (word = ++sent; sent <= PAGES && write(pipe_ends[1], &word, 8) != 8;)
            ;
        test_nap_us(500);
        if (dock_mr_deregister(mr))
            abort();
        test_nap_us(500);
    } while (dock_now_ns() < (adopted ? end : last));
    for (; sent < PAGES;) {
        word = ++sent;
        if (write(pipe_ends[1], &word, 8) != 8)
            abort();
    }
    return adopted;
}

// The whole in a child of its own: what is adopted, what a filter allows, which threads run is its own
// business. Exit status: 0 fine, 77 nothing is adopted here.
static int under_threads(void *arg)
{
    pthread_t t[THREADS];
    struct dock_dev *dev;
    uint32_t pd;
    char pattern[64];
    bool must_adopt = arg != NULL;

    signal(SIGUSR1, on_signal);
    setenv("DRYDOCK_ADOPT", "inner", 1);
    at_work.mem = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    at_work.pattern = memfd_create("pattern", MFD_CLOEXEC);
    memset(pattern, 0x5a, sizeof pattern);
    if (at_work.mem == MAP_FAILED || write(at_work.pattern, pattern, 64) != 64 || pipe(pipe_ends) ||
        dock_dev_open(NULL, &dev) || dock_pd_create(dev, &pd))
        return 1;
    if (dev->adopt.mode == DOCK_ADOPT_OFF)
        return 77;
    dock_set32(&at_work.go, 1);
    for (size_t i = 0; i < THREADS; i++)
        if (pthread_create(&t[i], NULL, bodies[i], (void *)i))
            return 1;
    unsigned adopted = move_under(dev, pd, test_long() ? 30000000000ull : 1000000000ull, must_adopt);
    dock_set32(&at_work.go, 0);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    fprintf(
        stderr,
        "adopted %u times in %llu stops (%.2f ms each), %llu stores, %llu by the kernel; lost %llu, failed "
        "calls %llu, handlers run %u\n",
        adopted, (unsigned long long)dock_peek64(&dev->port->adopt.stops),
        (double)dock_peek64(&dev->port->adopt.stopped_ns) / 1e6 /
            (double)(dock_peek64(&dev->port->adopt.stops) + 1),
        (unsigned long long)dock_peek64(&at_work.stores),
        (unsigned long long)dock_peek64(&at_work.kernel_stores),
        (unsigned long long)dock_peek64(&at_work.lost), (unsigned long long)dock_peek64(&at_work.failed),
        dock_peek32(&handled));
    if (dock_peek64(&at_work.lost) || dock_peek64(&at_work.failed) || dock_peek32(&handled))
        return 2;
    if (must_adopt && !adopted)
        return 3;
    if (!must_adopt && adopted)
        return 4;
    if (maps_look(at_work.mem, PAGES * PAGE).adopted)
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
    expect(under_threads, "adopt");
}

#ifdef __x86_64__

// What the default profile of Docker refuses on x86-64 without capabilities; clone3 does not exist there.
static const uint16_t denied[] = {SYS_uselib,
                                  SYS_ustat,
                                  SYS_sysfs,
                                  SYS_vhangup,
                                  SYS_pivot_root,
                                  SYS__sysctl,
                                  SYS_acct,
                                  SYS_mount,
                                  SYS_umount2,
                                  SYS_swapon,
                                  SYS_swapoff,
                                  SYS_reboot,
                                  SYS_sethostname,
                                  SYS_setdomainname,
                                  SYS_iopl,
                                  SYS_ioperm,
                                  SYS_create_module,
                                  SYS_init_module,
                                  SYS_delete_module,
                                  SYS_get_kernel_syms,
                                  SYS_query_module,
                                  SYS_quotactl,
                                  SYS_nfsservctl,
                                  SYS_lookup_dcookie,
                                  SYS_clock_settime,
                                  SYS_mbind,
                                  SYS_set_mempolicy,
                                  SYS_get_mempolicy,
                                  SYS_kexec_load,
                                  SYS_add_key,
                                  SYS_request_key,
                                  SYS_keyctl,
                                  SYS_migrate_pages,
                                  SYS_unshare,
                                  SYS_move_pages,
                                  SYS_perf_event_open,
                                  SYS_fanotify_init,
                                  SYS_open_by_handle_at,
                                  SYS_clock_adjtime,
                                  SYS_setns,
                                  SYS_kcmp,
                                  SYS_finit_module,
                                  SYS_kexec_file_load,
                                  SYS_bpf,
                                  SYS_userfaultfd,
                                  SYS_io_uring_setup,
                                  SYS_io_uring_enter,
                                  SYS_io_uring_register,
                                  SYS_open_tree,
                                  SYS_move_mount,
                                  SYS_fsopen,
                                  SYS_fsconfig,
                                  SYS_fsmount,
                                  SYS_fspick,
                                  SYS_pidfd_getfd,
                                  SYS_mount_setattr};

#define NEW_NAMESPACES 0x7e020000u // what clone may not ask for

static bool filter_as_docker(void)
{
    enum { N = sizeof denied / sizeof *denied };
    struct sock_filter code[2 * N + 16];
    unsigned n = 0;

    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
    for (unsigned i = 0; i < N; i++) {
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, denied[i], 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    }
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args));
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, NEW_NAMESPACES, 0, 1);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog p = {.len = (unsigned short)n, .filter = code};
    return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p);
}

static int in_a_container(void *arg)
{
    if (setgid(65534) || setuid(65534))
        return 77;
    setenv("DRYDOCK_DIR", "", 1);
    char dir[] = "/tmp/drydock-test-XXXXXX";
    if (!mkdtemp(dir))
        return 1;
    setenv("DRYDOCK_DIR", dir, 1);
    prctl(PR_SET_DUMPABLE, 1); // as a program that was started by this user has it
    return filter_as_docker() ? under_threads(arg) : 77;
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
    expect(in_a_container, "adopt");
}

// Somebody traces us already, gdb for instance: nothing is stopped, nothing is adopted, all goes on.
static int traced(void *arg)
{
    (void)arg;
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog p = {.len = 4, .filter = code};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p))
        return 77;
    return under_threads(NULL);
}

static void where_nobody_can_be_stopped(void **state)
{
    (void)state;
    expect(traced, NULL);
}

int main(void)
{
    if (getenv("DRYDOCK_EMULATED")) // an emulator has mappings and threads of its own, which do not stand
        return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_store_is_lost),
        cmocka_unit_test(no_store_is_lost_in_a_container),
        cmocka_unit_test(where_nobody_can_be_stopped),
    };

    return cmocka_run_group_tests_name("adoption under threads", tests, NULL, NULL);
}
