// SPDX-License-Identifier: MIT
// timeout: 60
// Huge pages. Those of a pool (hugetlb) stay where they are and are reached through the kernel; transparent
// ones are broken up where shared memory may not have them, which is said once.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/internal.h"
#include "lib/adopting.h"
#include "lib/duo.h"
#include "lib/fork.h"
#include "lib/maps.h"

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

static unsigned told;

static bool count_line(enum dock_log_level level, const char *line)
{
    bool mine = level == DOCK_LOG_WARN && strstr(line, "loses its huge pages");

    told += mine;
    return mine;
}

static bool shared_may_not(void)
{
    char text[128] = "";
    int fd = open("/sys/kernel/mm/transparent_hugepage/shmem_enabled", O_RDONLY | O_CLOEXEC);
    bool none =
        fd < 0 || read(fd, text, sizeof text - 1) <= 0 || strstr(text, "[never]") || strstr(text, "[deny]");

    if (fd >= 0)
        close(fd);
    return none;
}

// KiB of huge pages in the mapping of `at`.
static unsigned long huge_at(const char *at)
{
    FILE *smaps = fopen("/proc/self/smaps", "re");
    unsigned long lo, hi, kib = 0;
    bool inside = false;
    char line[512];

    while (smaps && fgets(line, sizeof line, smaps)) {
        if (sscanf(line, "%lx-%lx ", &lo, &hi) == 2)
            inside = (uintptr_t)at >= lo && (uintptr_t)at < hi;
        if (inside)
            sscanf(line, "AnonHugePages: %lu kB", &kib);
    }
    if (smaps)
        fclose(smaps);
    return kib;
}

// In whole huge pages, with a page between it and its neighbours.
static char *map_with(int advice, char **all)
{
    *all = mmap(NULL, LEN + 2 * HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(*all, MAP_FAILED);
    char *p = *all + HUGE - ((uintptr_t)*all & (HUGE - 1));
    assert_int_equal(mprotect(p, LEN, PROT_READ | PROT_WRITE), 0);
    madvise(p, LEN, advice);
    return memset(p, 7, LEN);
}

static void breaking_them_up_is_said_once(void **state)
{
    struct fix *f = *state;
    char *all;
    char *p = map_with(MADV_NOHUGEPAGE, &all);

    dock_log_set_sink(count_line);
    assert_int_equal(dock_mr_deregister(reg(f, p)), 0);
    assert_int_equal(told, 0); // there were none
    munmap(all, LEN + 2 * HUGE);
    p = map_with(MADV_HUGEPAGE, &all);
    unsigned times = 0;
    for (; times < 2 && huge_at(p); times++) {
        struct dock_mr *mr = reg(f, p);
        assert_int_equal(maps_look(p, LEN).adopted, LEN);
        assert_int_equal(told, shared_may_not());
        assert_int_equal(dock_mr_deregister(mr), 0);
        munmap(all, LEN + 2 * HUGE);
        p = map_with(MADV_HUGEPAGE, &all);
    }
    dock_log_set_sink(NULL);
    munmap(all, LEN + 2 * HUGE);
    if (!times) {
        print_message("this kernel gives no transparent huge pages, or has none left\n");
        skip();
    }
}

int main(void)
{
    if (getenv("DRYDOCK_EMULATED")) // an emulator has mappings of its own, which do not stand
        return 77;
    setenv("DRYDOCK_ADOPT", "inner", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(those_of_a_pool_are_reached_through_the_kernel),
        cmocka_unit_test(breaking_them_up_is_said_once),
    };

    return cmocka_run_group_tests_name("huge pages and adoption", tests, set_up, tear_down);
}
