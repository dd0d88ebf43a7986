// SPDX-License-Identifier: MIT
// timeout: 60
// A control group that is full kills who asks for more: the registration looks first and refuses. Once with a
// tree of control groups that this test writes, once with a real group where it may make one.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device/internal.h"
#include "lib/fork.h"
#include "lib/maps.h"

#define MIB (1ull << 20)
#define RIGHTS (DOCK_ACCESS_LOCAL_WRITE | DOCK_ACCESS_REMOTE_READ | DOCK_ACCESS_REMOTE_WRITE)

static struct dock_dev *dev;
static uint32_t pd;

// 0, or what a test is to end with.
static int open_device(void)
{
    setenv("DRYDOCK_ADOPT", "inner", 1);
    if (dock_dev_open(NULL, &dev) || dock_pd_create(dev, &pd))
        return 1;
    return dev->adopt.mode == DOCK_ADOPT_OFF ? 77 : 0;
}

static char *map_filled(uint64_t bytes, int with)
{
    char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p != MAP_FAILED)
        memset(p, with, bytes);
    return p == MAP_FAILED ? NULL : p;
}

static int reg(char *p, uint64_t bytes, struct dock_mr **mr)
{
    return dock_mr_register(dev, pd, (uintptr_t)p, bytes, (uintptr_t)p, RIGHTS, mr);
}

static bool write_file(const char *dir, const char *name, const char *text)
{
    char path[600];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        close(fd);
    return done;
}

// ---- a written tree

struct row {
    const char *limit, *used, *stat; // as the files have it
    bool refused;
};

static const struct row rows[] = {
    {"104857600\n", "104000000\n", "inactive_file 0\nactive_file 0\n", true},
    {"104857600\n", "104000000\n", "anon 5\ninactive_file 3000000\nactive_file 3000000\n", false},
    {"104857600\n", "90000000\n", "", false},
    {"max\n", "104857600\n", "", false},
    {"9223372036854771712\n", "104857600\n", "", false}, // as the older form says that there is none
};

static bool in_a_group(void)
{
    char line[512];
    bool found = false;
    FILE *f = fopen("/proc/self/cgroup", "re");

    while (f && !found && fgets(line, sizeof line, f))
        found = !strncmp(line, "0::", 3) || strstr(line, ":memory:");
    if (f)
        fclose(f);
    return found;
}

// Both forms of it: whichever this process is in.
static bool write_tree(const char *dir, const struct row *r)
{
    char older[520];

    snprintf(older, sizeof older, "%s/memory", dir);
    mkdir(older, 0755);
    return write_file(dir, "memory.max", r->limit) && write_file(dir, "memory.current", r->used) &&
           write_file(dir, "memory.stat", r->stat) && write_file(older, "memory.limit_in_bytes", r->limit) &&
           write_file(older, "memory.usage_in_bytes", r->used) && write_file(older, "memory.stat", r->stat);
}

// 0, or what a test is to end with.
static int mount_tree(const struct row *r)
{
    if (!in_a_group() || (unshare(CLONE_NEWNS) && unshare(CLONE_NEWUSER | CLONE_NEWNS)) ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("none", "/sys/fs/cgroup", "tmpfs", 0, NULL))
        return 77;
    return write_tree("/sys/fs/cgroup", r) ? 0 : 1;
}

static int with_row(void *arg)
{
    const struct row *r = arg;
    struct dock_mr *mr;
    char *p = map_filled(4 * MIB, 5);

    int err = p ? mount_tree(r) : 1;
    if (!err)
        err = open_device();
    if (err)
        return err;
    err = reg(p, 4 * MIB, &mr);
    if (err != (r->refused ? -ENOMEM : 0))
        return 2;
    if (r->refused && !strstr(dock_log_last(), "memory limit"))
        return 3;
    if (maps_look(p, 4 * MIB).adopted != (r->refused ? 0 : 4 * MIB))
        return 4;
    for (uint64_t i = 0; i < 4 * MIB; i++)
        if (p[i] != 5)
            return 5;
    return (!err && dock_mr_deregister(mr)) || dock_pd_destroy(dev, pd) || dock_dev_close(dev) ? 6 : 0;
}

static size_t pages_with_memory(char *p)
{
    static unsigned char has[16 * MIB / 4096];
    size_t n = 0;

    if (mincore(p, 16 * MIB, has))
        abort();
    for (size_t i = 0; i < sizeof has; i++)
        n += has[i] & 1;
    return n;
}

// A region of one page that holds something goes back as the group fills up.
static int empty_in_a_full_group(void *arg)
{
    static const struct row space = {"104857600\n", "1000000\n", "", false},
                            full = {"104857600\n", "104000000\n", "", false};
    char *p = mmap(NULL, 16 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct dock_mr *mr;
    int err = p == MAP_FAILED ? 1 : mount_tree(&space);

    (void)arg;
    if (!err)
        err = open_device();
    if (err)
        return err;
    p[5 * MIB] = 5;
    if (reg(p, 16 * MIB, &mr) || !write_tree("/sys/fs/cgroup", &full) || dock_mr_deregister(mr))
        return 2;
    size_t has = pages_with_memory(p); // one, or those of a huge one
    if (has < 1 || has > 1024)
        return 3;
    if (p[5 * MIB] != 5 || maps_look(p, 16 * MIB).adopted)
        return 4;
    return dock_pd_destroy(dev, pd) || dock_dev_close(dev) ? 5 : 0;
}

static void expect(int (*body)(void *), const void *arg)
{
    int status;
    pid_t child = test_fork(body, (void *)(uintptr_t)arg);

    assert_int_equal(test_await(child, &status, 20000 * test_slow()), TEST_EXITED);
    if (status == 77)
        skip();
    assert_int_equal(status, 0);
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        print_message("row %u\n", i);
        expect(with_row, &rows[i]);
    }
}

static void what_is_empty_goes_back_empty_to_a_full_group(void **state)
{
    (void)state;
    expect(empty_in_a_full_group, NULL);
}

// ---- a real group

#define LIMIT (64 * MIB)

static char group[512];

// Below the one that we are in.
static bool make_group(void)
{
    char line[512], *path = NULL;
    FILE *f = fopen("/proc/self/cgroup", "re");

    while (f && !path && fgets(line, sizeof line, f))
        if ((path = strstr(line, ":memory:")))
            path += strlen(":memory:");
    if (f)
        fclose(f);
    if (!path)
        return false;
    path[strcspn(path, "\n")] = '\0';
    if (snprintf(group, sizeof group, "/sys/fs/cgroup/memory%s/drydock-test-%d", path, (int)getpid()) >=
            (int)sizeof group ||
        mkdir(group, 0755))
        return false;
    return write_file(group, "memory.limit_in_bytes", "67108864\n");
}

static uint64_t in_use(void)
{
    char path[600], text[32] = "";

    snprintf(path, sizeof path, "%s/memory.usage_in_bytes", group);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof text - 1) <= 0)
        return UINT64_MAX;
    close(fd);
    return strtoull(text, NULL, 10);
}

// A region that moves in one piece, filled with `byte`: pieces end where 4 MiB of addresses do, and several
// would need less room, each the room of the one before.
static char *one_piece(int byte)
{
    char *all = mmap(NULL, 8 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0), *p;

    if (all == MAP_FAILED)
        return NULL;
    p = all + (-(uintptr_t)all & (4 * MIB - 1));
    if (mprotect(p, 4 * MIB, PROT_READ | PROT_WRITE))
        return NULL;
    return memset(p, byte, 4 * MIB);
}

// Two regions are filled while there is room. One is registered then, the other one when there is none:
// nobody is killed, and what was refused is still there.
static int fill_group(void *arg)
{
    char me[24], *p[2];
    struct dock_mr *mr[2];

    (void)arg;
    snprintf(me, sizeof me, "%d\n", (int)getpid());
    if (!write_file(group, "cgroup.procs", me))
        return 77;
    int err = open_device();
    if (err)
        return err;
    for (int i = 0; i < 2; i++)
        if (!(p[i] = one_piece(i + 1)))
            return 1;
    if (reg(p[0], 4 * MIB, &mr[0]) || maps_look(p[0], 4 * MIB).adopted != 4 * MIB)
        return 2;
    while (in_use() + 3 * MIB < LIMIT)
        if (!map_filled(MIB / 2, 7))
            return 1;
    if (reg(p[1], 4 * MIB, &mr[1]) != -ENOMEM)
        return 3;
    for (int i = 0; i < 2; i++)
        for (uint64_t at = 0; at < 4 * MIB; at++)
            if (p[i][at] != i + 1)
                return 4;
    return dock_mr_deregister(mr[0]) ? 5 : 0;
}

static void a_full_group_kills_nobody(void **state)
{
    (void)state;
#ifdef DOCK_SANITIZED
    skip(); // a shadow of the memory counts as well
#endif
    if (!make_group()) {
        rmdir(group);
        skip();
    }
    int status;
    pid_t child = test_fork(fill_group, NULL);
    enum test_end end = test_await(child, &status, 20000 * test_slow());

    for (unsigned i = 0; rmdir(group) && i < 100; i++)
        test_nap_us(10000);
    assert_int_equal(end, TEST_EXITED);
    if (status == 77)
        skip();
    assert_int_equal(status, 0);
}

int main(void)
{
    if (getenv("DRYDOCK_EMULATED"))
        return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(what_is_empty_goes_back_empty_to_a_full_group),
        cmocka_unit_test(a_full_group_kills_nobody),
    };

    return cmocka_run_group_tests_name("adoption in a full control group", tests, NULL, NULL);
}
