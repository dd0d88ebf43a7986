// SPDX-License-Identifier: MIT
// timeout: 120
// Huge pages. Those of a pool (hugetlb) stay where they are and are reached through the kernel. Other memory
// that moves lies in transparent ones as long as it is registered, in the program's view and a peer's, and
// has them again that it had; where the kernel refuses them, that the program's are broken up is said once.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arena/huge.h"
#include "device/internal.h"
#include "lib/adopting.h"
#include "lib/duo.h"
#include "lib/fork.h"
#include "lib/maps.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#define PAGE 4096u
#define HUGE (2ul << 20)
#define LEN (4 * HUGE)
#define RIGHTS (DOCK_ACCESS_LOCAL_WRITE | DOCK_ACCESS_REMOTE_READ | DOCK_ACCESS_REMOTE_WRITE)

struct fix {
    struct dock_dev *dev;
    struct end a, b;
};

static int set_up(void **state)
{
    struct fix *f = calloc(1, sizeof *f);
    struct end_opts o = {0};

    open_adopting(&f->dev);
    end_open(&f->a, f->dev, &o);
    end_open(&f->b, f->dev, &o);
    pair_connect(&f->a, &f->b);
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

static struct dock_mr *reg(const struct fix *f, char *at)
{
    struct dock_mr *mr;

    assert_int_equal(dock_mr_register(f->dev, f->b.pd, (uintptr_t)at, LEN, (uintptr_t)at, RIGHTS, &mr), 0);
    return mr;
}

static void run(struct fix *f, uint8_t op, const struct dock_mr *mr, char *at, uint32_t len)
{
    struct dock_sge sge;
    struct dock_wr wr = wr_onesided(op, &f->a, &sge, 0, len, mr, (uintptr_t)at);

    carry_out(&f->a, &wr);
}

// ---- of a pool

#define SPARE "/proc/sys/vm/nr_overcommit_hugepages"

static bool number(const char *path, char text[24], bool store)
{
    int fd = open(path, (store ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : store ? write(fd, text, strlen(text)) : read(fd, text, 23);

    if (fd >= 0)
        close(fd);
    if (!store && n > 0)
        text[n] = '\0';
    return n > 0;
}

static char *map_from_pool(void)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_POPULATE | 21 << MAP_HUGE_SHIFT;
    char *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, flags, -1, 0), was[24] = "", more[24] = "16\n";

    // Pages beyond the pool, which come and go with whoever maps them. Where there may be some already it is
    // another run of this that asks, and takes the permission back.
    if (p == MAP_FAILED && number(SPARE, was, false) && !strcmp(was, "0\n") && number(SPARE, more, true)) {
        p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, flags, -1, 0);
        number(SPARE, was, true);
    }
    return p == MAP_FAILED ? NULL : p;
}

static void those_of_a_pool_are_reached_through_the_kernel(void **state)
{
    struct fix *f = *state;
    char *p = map_from_pool();
    static char sent[100000];

    if (!p) {
        print_message("no huge pages in the pool, and none to be had\n");
        skip();
    }
    memset(p, 3, LEN);
    uint64_t kind = dock_peek64(&f->dev->port->adopt.refused[DOCK_WHY_KIND]);
    uint64_t calls = dock_peek64(&f->dev->port->fallback_calls);
    struct dock_mr *mr = reg(f, p);
    assert_int_equal(maps_look(p, LEN).adopted, 0);
    assert_int_equal(dock_peek64(&f->dev->port->adopt.refused[DOCK_WHY_KIND]), kind + 1);
    char *at = p + HUGE - 5000; // over the end of a page
    bytes_fill(sent, sizeof sent, 9);
    memcpy(f->a.mem, sent, sizeof sent);
    run(f, DOCK_OP_WRITE, mr, at, sizeof sent);
    assert_memory_equal(at, sent, sizeof sent);
    assert_int_equal(at[-1], 3);
    at[77] ^= 1;
    run(f, DOCK_OP_READ, mr, at, sizeof sent);
    assert_memory_equal(f->a.mem, at, sizeof sent);
    assert_true(dock_peek64(&f->dev->port->fallback_calls) > calls);
    assert_int_equal(dock_mr_deregister(mr), 0);
    munmap(p, LEN);
}

// ---- transparent ones

// A registration alone, of plain memory of whole pieces.
static struct dock_mr *reg_part(const struct fix *f, char *at, uint64_t len, uint32_t rights)
{
    struct dock_mr *mr;

    assert_int_equal(dock_mr_register(f->dev, f->b.pd, (uintptr_t)at, len, (uintptr_t)at, rights, &mr), 0);
    return mr;
}

static bool chosen(const char *name, const char *choice)
{
    char path[96], text[128] = "";

    snprintf(path, sizeof path, "/sys/kernel/mm/transparent_hugepage/%s", name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool is = fd >= 0 && read(fd, text, sizeof text - 1) > 0 && strstr(text, choice);

    if (fd >= 0)
        close(fd);
    return is;
}

// Then any page may bring one, and what has how many says nothing.
static bool come_by_themselves(void)
{
    return chosen("shmem_enabled", "[always]") || chosen("shmem_enabled", "[within_size]") ||
           chosen("shmem_enabled", "[force]");
}

// Memory whose address is a multiple of a huge page, in one window's part of the address space.
static char *map_pieces(void)
{
    char *p = maps_in_one(LEN);

    assert_ptr_not_equal(p, MAP_FAILED);
    return p;
}

// Does this kernel make a file in memory huge when asked? Without the device, so that it is asked right.
static bool kernel_gives(void)
{
    static int gives = -1;
    int fd = memfd_create("bare", MFD_CLOEXEC);
    char *p = map_pieces();

    if (gives >= 0 || fd < 0 || ftruncate(fd, LEN) ||
        mmap(p, LEN, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
        gives = gives > 0;
    } else {
        memset(p, 1, LEN);
        gives = chosen("hpage_pmd_size", "2097152") && !come_by_themselves() &&
                !dock_huge_collapse((uintptr_t)p, LEN);
    }
    munmap(p, LEN);
    if (fd >= 0)
        close(fd);
    if (!gives)
        print_message("the kernel gives a file in memory no huge page of 2 MiB, or by itself\n");
    return gives;
}

// What smaps says of the mappings of [at, at + len) in lines that begin with `key`: the sum of their KiB in
// bytes, or, when `flag` is not NULL, how many name it.
static uint64_t smaps(const char *at, uint64_t len, const char *key, const char *flag)
{
    FILE *f = fopen("/proc/self/smaps", "re");
    unsigned long lo, hi;
    uint64_t sum = 0;
    bool inside = false;
    char line[512];

    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "%lx-%lx ", &lo, &hi) == 2)
            inside = (uintptr_t)at < hi && (uintptr_t)at + len > lo;
        if (inside && !strncmp(line, key, strlen(key)))
            sum += flag ? strstr(line, flag) != NULL : strtoul(line + strlen(key), NULL, 10) << 10;
    }
    if (f)
        fclose(f);
    return sum;
}

// Bytes that are mapped as huge pages: of a file in memory, or private.
static uint64_t huge_in(const char *at, uint64_t len, bool shared)
{
    return smaps(at, len, shared ? "ShmemPmdMapped:" : "AnonHugePages:", NULL);
}

// Is the mapping of `at` marked so, by a program's own advice?
static bool marked(const char *at, const char *flag)
{
    return smaps(at, 1, "VmFlags:", flag) != 0;
}

// Pages of the arena that have memory.
static size_t in_arena(const struct fix *f)
{
    struct stat st;

    assert_int_equal(fstat(f->dev->arena.view.fd, &st), 0);
    return (size_t)st.st_blocks * 512 / PAGE;
}

static uint64_t counted(const struct fix *f)
{
    return dock_peek64(&f->dev->port->adopt.huge);
}

static void touch(const char *at, uint64_t len)
{
    for (uint64_t i = 0; i < len; i += PAGE)
        (void)((const volatile char *)at)[i];
}

static void what_is_written_lies_in_huge_pages(void **state)
{
    struct fix *f = *state;
    char *p = map_pieces();

    if (!kernel_gives())
        skip();
    madvise(p, LEN, MADV_NOHUGEPAGE); // small ones
    bytes_fill(p, LEN, 11);
    uint64_t sum = bytes_sum(p, LEN);
    assert_int_equal(huge_in(p, LEN, false), 0);
    struct dock_mr *mr = reg(f, p);
    touch(p, LEN);
    assert_int_equal(huge_in(p, LEN, true), LEN);
    assert_int_equal(counted(f), LEN);
    assert_true(bytes_sum(p, LEN) == sum);
    run(f, DOCK_OP_READ, mr, p + HUGE - 5000, 10000);
    assert_memory_equal(f->a.mem, p + HUGE - 5000, 10000);
    assert_int_equal(dock_mr_deregister(mr), 0);
    assert_int_equal(counted(f), 0);
    assert_int_equal(maps_look(p, LEN).private_anon, LEN);
    assert_true(bytes_sum(p, LEN) == sum);
    munmap(p, LEN);
}

// The edges are of pieces that belong to others, too.
static void only_whole_pieces_do(void **state)
{
    struct fix *f = *state;
    char *p = map_pieces();

    if (!kernel_gives())
        skip();
    bytes_fill(p, LEN, 12);
    uint64_t sum = bytes_sum(p, LEN);
    size_t before = in_arena(f);
    struct dock_mr *mr = reg_part(f, p + HUGE - 3 * PAGE, HUGE + 5 * PAGE, RIGHTS);
    assert_int_equal(counted(f), HUGE);
    assert_int_equal(in_arena(f), before + HUGE / PAGE + 5);
    assert_true(bytes_sum(p, LEN) == sum);
    assert_int_equal(dock_mr_deregister(mr), 0);
    assert_int_equal(in_arena(f), before);
    assert_true(bytes_sum(p, LEN) == sum);
    munmap(p, LEN);
}

// By the program's wish; none is added to the mapping.
static void what_had_them_has_them_again(void **state)
{
    struct fix *f = *state;
    char *p = map_pieces();

    memset(p, 7, LEN);
    if (!kernel_gives() || chosen("enabled", "[never]") || madvise(p, LEN, MADV_COLLAPSE) ||
        huge_in(p, LEN, false) != LEN)
        skip();
    bytes_fill(p, LEN, 13);
    uint64_t sum = bytes_sum(p, LEN);
    for (unsigned i = 0; i < 3; i++) {
        struct dock_mr *mr = reg(f, p);
        touch(p, LEN);
        assert_int_equal(huge_in(p, LEN, true), LEN);
        assert_int_equal(dock_mr_deregister(mr), 0);
        assert_true(bytes_sum(p, LEN) == sum);
        assert_int_equal(huge_in(p, LEN, false), LEN);
        assert_false(marked(p, " hg"));
    }
    munmap(p, LEN);
}

// A page of a piece has what it had: nothing, where nobody touched it, also when a short region left
// something at its place in the arena.
static void a_piece_that_is_mostly_empty_stays_so(void **state)
{
    struct fix *f = *state;
    const uint64_t small = 4 * PAGE;
    char *p = map_pieces(), *full = p + 3 * HUGE;

    if (!kernel_gives())
        skip();
    memset(full, 0xee, small);
    size_t before = in_arena(f);
    assert_int_equal(dock_mr_deregister(reg_part(f, full, small, RIGHTS)), 0);
    madvise(p, LEN, MADV_DONTNEED);
    madvise(p, LEN, MADV_NOHUGEPAGE);      // a page that is touched comes alone
    memset(p, 1, HUGE);                    // all of it,
    p[HUGE + 5 * PAGE] = 2;                // a page, none,
    memset(full + small, 4, HUGE - small); // and nearly all
    struct dock_mr *mr = reg(f, p);
    size_t has = in_arena(f);
    assert_int_equal(counted(f), 2 * HUGE);
    assert_in_range(has, before + 2 * HUGE / PAGE + 1, before + 2 * HUGE / PAGE + 64);
    for (uint64_t i = 0; i < LEN; i++) {
        int want = i < HUGE ? 1 : i == HUGE + 5 * PAGE ? 2 : i >= 3 * HUGE + small ? 4 : 0;
        if (p[i] != want)
            fail_msg("byte %#llx is %d, and was %d", (unsigned long long)i, p[i], want);
    }
    assert_int_equal(dock_mr_deregister(mr), 0);
    assert_int_equal(p[HUGE - 1] + p[HUGE + 5 * PAGE] + full[0] + full[small], 1 + 2 + 0 + 4);
    munmap(p, LEN);
}

// A region inside of another one, which ends first: what it holds stays, what it does not goes back.
static void a_part_of_one_goes_back(void **state)
{
    struct fix *f = *state;
    const uint64_t at = HUGE + 100 * PAGE, len = 32 * PAGE;
    char *p = map_pieces();

    if (!kernel_gives())
        skip();
    bytes_fill(p, LEN, 14);
    uint64_t sum = bytes_sum(p, LEN);
    size_t before = in_arena(f);
    struct dock_mr *all = reg(f, p), *part = reg_part(f, p + at, len, RIGHTS);
    assert_int_equal(dock_mr_deregister(all), 0);
    assert_int_equal(maps_look(p, LEN).adopted, len);
    assert_int_equal(counted(f), 0);
    assert_in_range(in_arena(f), before + 32, before + 64);
    assert_true(bytes_sum(p, LEN) == sum);
    run(f, DOCK_OP_READ, part, p + at, (uint32_t)len);
    assert_memory_equal(f->a.mem, p + at, len);
    assert_int_equal(dock_mr_deregister(part), 0);
    assert_true(bytes_sum(p, LEN) == sum);
    munmap(p, LEN);
}

static void memory_that_may_only_be_read_moves_too(void **state)
{
    struct fix *f = *state;
    char *p = map_pieces();

    if (!kernel_gives())
        skip();
    bytes_fill(p, LEN, 15);
    uint64_t sum = bytes_sum(p, LEN);
    assert_int_equal(mprotect(p, LEN, PROT_READ), 0);
    struct dock_mr *mr = reg_part(f, p, LEN, DOCK_ACCESS_REMOTE_READ);
    assert_int_equal(counted(f), LEN);
    assert_true(bytes_sum(p, LEN) == sum);
    assert_false(marked(p, " wr"));
    assert_int_equal(dock_mr_deregister(mr), 0);
    assert_true(bytes_sum(p, LEN) == sum);
    assert_false(marked(p, " wr"));
    munmap(p, LEN);
}

static void a_forked_child_has_its_own(void **state)
{
    struct fix *f = *state;
    char *p = map_pieces();
    int status;

    if (!kernel_gives())
        skip();
    bytes_fill(p, LEN, 16);
    uint64_t sum = bytes_sum(p, LEN);
    struct dock_mr *mr = reg(f, p);
    pid_t child = fork();
    if (!child) {
        bool right = bytes_sum(p, LEN) == sum && maps_look(p, LEN).private_anon == LEN;
        memset(p, 1, LEN);
        _exit(!right);
    }
    assert_int_not_equal(child, -1);
    assert_int_equal(test_await(child, &status, 20000 * slow_down()), TEST_EXITED);
    assert_int_equal(status, 0);
    assert_true(bytes_sum(p, LEN) == sum);
    assert_int_equal(counted(f), LEN);
    assert_int_equal(dock_mr_deregister(mr), 0);
    munmap(p, LEN);
}

// The pages were made before it was known.
static void what_does_not_move_leaves_none_behind(void **state)
{
    struct fix *f = *state;
    char *p = map_pieces();
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | 1); // of user mode only

    if (fd < 0) {
        print_message("no userfaultfd here\n");
        skip();
    }
    memset(p, 9, LEN);
    size_t before = in_arena(f);
    struct dock_mr *mr = reg(f, p);
    assert_int_equal(maps_look(p, LEN).adopted, 0);
    assert_int_equal(in_arena(f), before);
    assert_int_equal(counted(f), 0);
    close(fd);
    assert_int_equal(dock_mr_deregister(mr), 0);
    munmap(p, LEN);
}

static void none_where_they_are_switched_off(void **state)
{
    struct fix *f = *state;
    char *p = map_pieces();

    madvise(p, LEN, MADV_NOHUGEPAGE);
    memset(p, 9, LEN);
    setenv("DRYDOCK_HUGE", "off", 1);
    dock_huge_learn();
    struct dock_mr *mr = reg(f, p);
    unsetenv("DRYDOCK_HUGE");
    dock_huge_learn();
    assert_int_equal(maps_look(p, LEN).adopted, LEN);
    assert_int_equal(counted(f), 0);
    assert_int_equal(dock_mr_deregister(mr), 0);
    munmap(p, LEN);
}

// ---- a peer

static struct {
    char *mem;
    struct dock_mr *mr;
} far;

struct io_far {
    uint64_t addr, sum;
    uint32_t rkey;
};

static void begin(struct side *s, void *arg)
{
    struct io_far *io = arg;

    far.mem = memset(map_pieces(), 3, LEN);
    if (dock_mr_register(s->e.dev, s->e.pd, (uintptr_t)far.mem, LEN, (uintptr_t)far.mem, RIGHTS, &far.mr))
        return;
    io->addr = (uintptr_t)far.mem;
    io->rkey = far.mr->rkey;
}

static void finish(struct side *s, void *arg)
{
    struct io_far *io = arg;

    (void)s;
    io->sum = dock_mr_deregister(far.mr) ? 0 : bytes_sum(far.mem, LEN);
}

static void a_peer_maps_them_as_such(void **state)
{
    const uint32_t len = 4096;
    struct duo_opts o = {.adopted = true};
    struct io_far io = {0};
    struct duo d;

    (void)state;
    if (!kernel_gives() || !place_possible(HOST_PLAIN))
        skip();
    duo_open(&d, HOST_PLAIN, &o);
    duo_far(&d, begin, &io, sizeof io);
    assert_int_not_equal(io.rkey, 0);
    struct dock_mr mr = {.rkey = io.rkey};
    uint64_t before = huge_in(NULL, UINT64_MAX, true);
    char *should = memset(map_pieces(), 3, LEN);
    for (uint64_t at = 0; at < LEN; at += HUGE / 2) {
        struct dock_sge sge;
        struct dock_wr wr = wr_onesided(DOCK_OP_WRITE, &d.near.e, &sge, 0, len, &mr, io.addr + at);
        bytes_fill(d.near.e.mem, len, at + 1);
        memcpy(should + at, d.near.e.mem, len);
        carry_out(&d.near.e, &wr);
    }
    assert_int_equal(huge_in(NULL, UINT64_MAX, true) - before, LEN);
    duo_far(&d, finish, &io, sizeof io);
    assert_true(io.sum == bytes_sum(should, LEN));
    munmap(should, LEN);
    duo_close(&d);
}

// ---- a kernel that refuses

static unsigned told;

static bool count_line(enum dock_log_level level, const char *line)
{
    bool mine = level == DOCK_LOG_WARN && strstr(line, "loses its huge pages");

    told += mine;
    return mine;
}

// An older kernel does not know the advice.
static bool refuse_collapse(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MADV_COLLAPSE, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog p = {.len = sizeof code / sizeof *code, .filter = code};

    return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p);
}

// In a child of its own: 0 fine, 77 it has none to lose, else what is wrong.
static int without_any(void *arg)
{
    struct dock_dev *dev;
    struct dock_mr *mr;
    uint32_t pd;
    char *p = map_pieces();

    (void)arg;
    if (dock_dev_open(NULL, &dev) || dock_pd_create(dev, &pd))
        return 1;
    memset(p, 6, LEN);
    bool had = !madvise(p, LEN, MADV_COLLAPSE) && huge_in(p, LEN, false);
    if (!had || come_by_themselves() || !refuse_collapse())
        return 77;
    bytes_fill(p, LEN, 17);
    uint64_t sum = bytes_sum(p, LEN);
    dock_log_set_sink(count_line);
    for (unsigned i = 0; i < 2; i++) {
        if (dock_mr_register(dev, pd, (uintptr_t)p, LEN, (uintptr_t)p, RIGHTS, &mr))
            return 2;
        if (maps_look(p, LEN).adopted != LEN || dock_peek64(&dev->port->adopt.huge))
            return 3;
        if (bytes_sum(p, LEN) != sum || dock_mr_deregister(mr) || bytes_sum(p, LEN) != sum)
            return 4;
        if (told != 1)
            return 5;
    }
    return 0;
}

static void breaking_them_up_is_said_once(void **state)
{
    int status;
    pid_t child = test_fork(without_any, NULL);

    (void)state;
    assert_int_equal(test_await(child, &status, 20000 * slow_down()), TEST_EXITED);
    if (status == 77)
        skip();
    assert_int_equal(status, 0);
}

int main(void)
{
    if (getenv("DRYDOCK_EMULATED")) // an emulator has mappings of its own, which do not stand
        return 77;
    setenv("DRYDOCK_ADOPT", "inner", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_peer_maps_them_as_such), // it forks
        cmocka_unit_test(breaking_them_up_is_said_once),
        cmocka_unit_test_setup_teardown(those_of_a_pool_are_reached_through_the_kernel, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_written_lies_in_huge_pages, set_up, tear_down),
        cmocka_unit_test_setup_teardown(only_whole_pieces_do, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_had_them_has_them_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_piece_that_is_mostly_empty_stays_so, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_part_of_one_goes_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(memory_that_may_only_be_read_moves_too, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_forked_child_has_its_own, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_does_not_move_leaves_none_behind, set_up, tear_down),
        cmocka_unit_test_setup_teardown(none_where_they_are_switched_off, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("huge pages and adoption", tests, NULL, NULL);
}
