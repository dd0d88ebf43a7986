// SPDX-License-Identifier: MIT
// timeout: 300
// What a program has asked for its memory is there again when the memory comes back from the arena, or the
// memory stays; and pages that come back in any order are one mapping again.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arena/adopt_own.h"
#include "base/seed.h"
#include "device/internal.h"
#include "lib/adopting.h"
#include "lib/duo.h"
#include "lib/maps.h"

#define PAGE 4096u
#define LEN (1ul << 20)
#define SCATTERED 6000u
#define WAVES 3u
#define FEW 1500u // without what makes them one it is 2,000 after the first
#define RIGHTS (DOCK_ACCESS_LOCAL_WRITE | DOCK_ACCESS_REMOTE_READ | DOCK_ACCESS_REMOTE_WRITE)

#ifndef MPOL_BIND
#define MPOL_BIND 2
#define MPOL_F_ADDR 2
#endif

struct fix {
    struct dock_dev *dev;
    uint32_t pd;
    char *mem;
};

static int set_up(void **state)
{
    struct fix *f = calloc(1, sizeof *f);

    setenv("DRYDOCK_ADOPT", "inner", 1);
    open_adopting(&f->dev);
    assert_int_equal(dock_pd_create(f->dev, &f->pd), 0);
    f->mem = maps_in_one(LEN);
    assert_ptr_not_equal(f->mem, MAP_FAILED);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fix *f = *state;

    munmap(f->mem, LEN);
    assert_int_equal(dock_pd_destroy(f->dev, f->pd), 0);
    assert_int_equal(dock_dev_close(f->dev), 0);
    free(f);
    return 0;
}

static struct dock_mr *reg_any(const struct fix *f, const char *at, size_t len)
{
    struct dock_mr *mr;

    assert_int_equal(dock_mr_register(f->dev, f->pd, (uintptr_t)at, len, (uintptr_t)at, RIGHTS, &mr), 0);
    return mr;
}

static struct dock_mr *reg(const struct fix *f, const char *at, size_t len)
{
    struct dock_mr *mr = reg_any(f, at, len);

    if (maps_look(at, len).adopted != len) {
        assert_int_equal(dock_mr_deregister(mr), 0);
        skip(); // a thread's own lies in it
    }
    return mr;
}

static void dereg(struct dock_mr *mr)
{
    assert_int_equal(dock_mr_deregister(mr), 0);
}

static void advice_is_there_again(void **state)
{
    static const struct {
        int advice;
        const char *flag;
    } asked[] = {{MADV_HUGEPAGE, " hg"}, {MADV_NOHUGEPAGE, " nh"}, {MADV_DONTDUMP, " dd"},
                 {MADV_DONTFORK, " dc"}, {MADV_WIPEONFORK, " wf"}, {MADV_MERGEABLE, " mg"}};
    struct fix *f = *state;
    unsigned tried = 0;

    for (unsigned i = 0; i < sizeof asked / sizeof *asked; i++) {
        if (madvise(f->mem, LEN, asked[i].advice)) // a kernel that does not know it
            continue;
        assert_true(maps_has(f->mem, asked[i].flag));
        bytes_fill(f->mem, LEN, i);
        uint64_t sum = bytes_sum(f->mem, LEN);
        struct dock_mr *mr = reg(f, f->mem, LEN);
        dereg(mr);
        for (size_t at = 0; at < LEN; at += PAGE * 16)
            assert_true(maps_has(f->mem + at, asked[i].flag));
        assert_int_equal(bytes_sum(f->mem, LEN), sum);
        tried++;
        munmap(f->mem, LEN);
        f->mem = maps_in_one(LEN);
        assert_ptr_not_equal(f->mem, MAP_FAILED);
    }
    assert_in_range(tried, 3, sizeof asked / sizeof *asked);
}

// Several mappings of one region, each with something else.
static void each_mapping_gets_its_own_back(void **state)
{
    struct fix *f = *state;

    assert_int_equal(madvise(f->mem, LEN / 2, MADV_DONTDUMP), 0);
    assert_int_equal(mprotect(f->mem + LEN / 4, PAGE, PROT_READ), 0);
    struct dock_mr *mr;
    assert_int_equal(dock_mr_register(f->dev, f->pd, (uintptr_t)f->mem, LEN, (uintptr_t)f->mem,
                                      DOCK_ACCESS_REMOTE_READ, &mr),
                     0);
    dereg(mr);
    assert_true(maps_has(f->mem, " dd"));
    assert_true(maps_has(f->mem + LEN / 4, " dd"));
    assert_false(maps_has(f->mem + LEN / 4, " wr"));
    assert_true(maps_has(f->mem + LEN / 2 - PAGE, " wr"));
    assert_true(maps_has(f->mem + LEN / 2 - PAGE, " dd"));
    assert_false(maps_has(f->mem + LEN / 2, " dd"));
}

static void a_memory_policy_is_there_again(void **state)
{
    struct fix *f = *state;
    unsigned long nodes = 1;
    int mode = 0;

    if (syscall(SYS_mbind, f->mem, LEN, MPOL_BIND, &nodes, 64ul, 0ul))
        skip();
    struct dock_mr *mr = reg(f, f->mem, LEN);
    dereg(mr);
    assert_int_equal(syscall(SYS_get_mempolicy, &mode, NULL, 0ul, f->mem, (unsigned long)MPOL_F_ADDR), 0);
    assert_int_equal(mode, MPOL_BIND);
}

// KiB
static unsigned long locked_now(void)
{
    unsigned long n = ~0ul;
    char line[128];
    FILE *f = fopen("/proc/self/status", "re");

    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmLck: %lu", &n) == 1)
            break;
    if (f)
        fclose(f);
    return n;
}

// A sanitizer's mlock and mlockall do nothing.
#ifdef DOCK_SANITIZED
static const bool locks = false;
#else
static const bool locks = true;
#endif

static void lock_or_skip(const char *at, size_t len, unsigned how)
{
    if (!locks)
        skip();
    if (syscall(SYS_mlock2, at, len, how))
        skip();
}

static void stays_locked(const struct fix *f, size_t len, unsigned how)
{
    unsigned long before;

    memset(f->mem + PAGE, 3, len);
    lock_or_skip(f->mem + PAGE, len, how);
    before = locked_now();
    struct dock_mr *mr = reg(f, f->mem + PAGE, len);
    assert_true(maps_has(f->mem + PAGE, " lo"));
    assert_int_equal(locked_now(), before);
    dereg(mr);
    assert_true(maps_has(f->mem + PAGE, " lo"));
    assert_int_equal(locked_now(), before);
    munlock(f->mem + PAGE, len);
    assert_int_equal(locked_now(), before - len / 1024);
}

static void locked_memory_is_locked_wherever_it_lies(void **state)
{
    static const size_t sizes[] = {PAGE, 17 * PAGE, LEN - 2 * PAGE};

    for (unsigned i = 0; i < 3; i++) {
        stays_locked(*state, sizes[i], 0);
        stays_locked(*state, sizes[i], MLOCK_ONFAULT);
    }
}

static void a_lock_that_comes_or_goes_meanwhile_counts(void **state)
{
    struct fix *f = *state;

    if (!locks)
        skip();
    struct dock_mr *mr = reg(f, f->mem, 32 * PAGE);
    lock_or_skip(f->mem, 8 * PAGE, 0);
    dereg(mr);
    assert_true(maps_has(f->mem, " lo"));
    assert_false(maps_has(f->mem + 8 * PAGE, " lo"));
    mr = reg_any(f, f->mem, 32 * PAGE);
    munlock(f->mem, 8 * PAGE);
    dereg(mr);
    assert_false(maps_has(f->mem, " lo"));
}

// Without the right to lock whatever it likes. false: it cannot be given away.
static bool without_the_right(bool without)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2];

    if (syscall(SYS_capget, &head, sets))
        return false;
    if (without)
        sets[0].effective &= ~(1u << CAP_IPC_LOCK);
    else
        sets[0].effective |= sets[0].permitted & 1u << CAP_IPC_LOCK;
    return !syscall(SYS_capset, &head, sets);
}

static void what_could_not_be_locked_again_stays(void **state)
{
    struct fix *f = *state;
    struct rlimit was, none;

    lock_or_skip(f->mem, 4 * PAGE, 0);
    assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &was), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = was.rlim_max};
    if (!without_the_right(true))
        skip();
    assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &none), 0);
    struct dock_mr *mr = reg_any(f, f->mem, 4 * PAGE);
    assert_int_equal(maps_look(f->mem, 4 * PAGE).adopted, 0);
    assert_true(maps_has(f->mem, " lo"));
    dereg(mr);
    // The limit is asked for what is locked, not for twice of it.
    none.rlim_cur = locked_now() * 1024;
    assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &none), 0);
    mr = reg(f, f->mem, 4 * PAGE);
    assert_true(maps_has(f->mem, " lo"));
    dereg(mr);
    assert_true(maps_has(f->mem, " lo"));
    // Nor does it come back before it can be locked.
    mr = reg(f, f->mem, 4 * PAGE);
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &none), 0);
    dereg(mr);
    assert_true(maps_has(f->mem, " lo"));
    assert_int_equal(maps_look(f->mem, 4 * PAGE).adopted, 4 * PAGE);
    assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &was), 0);
    mr = reg_any(f, f->mem, 4 * PAGE);
    dereg(mr);
    assert_int_equal(maps_look(f->mem, 4 * PAGE).private_anon, 4 * PAGE);
    assert_true(maps_has(f->mem, " lo"));
    assert_true(without_the_right(false));
}

// Nobody else can get a part of it.
static void room_is_whole(const struct fix *f)
{
    for (const struct dock_mirror *m = f->dev->adopt.mirrors; m; m = m->next)
        if (m->park.base)
            assert_int_equal(maps_look(m->park.room, dock_park_room(&f->dev->adopt)).private_anon,
                             dock_park_room(&f->dev->adopt));
}

// mlockall(MCL_FUTURE) asks for a lock of all that is mapped from then on, which is not the program's wish
// for memory that it had before.
static void what_was_not_locked_is_not_locked_later(void **state)
{
    struct fix *f = *state;

    memset(f->mem, 6, LEN);
    dereg(reg(f, f->mem, LEN)); // what the device needs itself is there
    if (!locks || mlockall(MCL_FUTURE))
        skip();
    unsigned long before = locked_now();
    for (unsigned pages = 1; pages <= LEN / PAGE; pages *= 16) {
        struct dock_mr *mr = reg_any(f, f->mem, (size_t)pages * PAGE);
        assert_in_range(locked_now(), before, before + 64);
        dereg(mr);
        assert_in_range(locked_now(), before, before + 64);
        assert_false(maps_has(f->mem, " lo"));
    }
    munlockall();
    room_is_whole(f);
}

// The arena's pages cannot be mapped, for they would be locked and there may not be more: the memory is back
// where it was, and nothing has a hole.
static void a_move_that_fails_leaves_no_hole(void **state)
{
    struct fix *f = *state;
    struct rlimit was, none;

    memset(f->mem, 6, LEN);
    dereg(reg(f, f->mem, LEN));
    assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &was), 0);
    none = (struct rlimit){.rlim_cur = LEN / 2, .rlim_max = was.rlim_max};
    if (!locks || mlockall(MCL_FUTURE) || !without_the_right(true))
        skip();
    assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &none), 0);
    struct dock_mr *mr = reg_any(f, f->mem, LEN);
    assert_int_equal(maps_look(f->mem, LEN).adopted, 0);
    assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &was), 0);
    assert_true(without_the_right(false));
    munlockall();
    room_is_whole(f);
    for (unsigned i = 0; i < LEN; i += PAGE / 2)
        assert_int_equal(f->mem[i], 6);
    dereg(mr);
    dereg(reg(f, f->mem, LEN));
}

static void shuffle(unsigned *order, unsigned n, uint64_t *random)
{
    for (unsigned i = n - 1; i; i--) {
        *random = dock_mix(*random + i);
        unsigned j = (unsigned)(*random % (i + 1)), was = order[i];
        order[i] = order[j];
        order[j] = was;
    }
}

// Each page is a region of its own; all of them come, and go, in any order.
static void come_and_go(const struct fix *f, const char *mem, unsigned n, uint64_t *random)
{
    static struct dock_mr *mr[SCATTERED];
    static unsigned order[SCATTERED];

    for (unsigned i = 0; i < n; i++)
        order[i] = i;
    shuffle(order, n, random);
    for (unsigned i = 0; i < n; i++)
        mr[order[i]] = reg_any(f, mem + (size_t)order[i] * PAGE, PAGE);
    assert_int_equal(maps_look(mem, (size_t)n * PAGE).adopted, (uint64_t)n * PAGE);
    shuffle(order, n, random);
    for (unsigned i = 0; i < n; i++)
        dereg(mr[order[i]]);
    assert_int_equal(maps_look(mem, (size_t)n * PAGE).private_anon, (uint64_t)n * PAGE);
}

static void scattered_pages_are_one_mapping_again(void **state)
{
    struct fix *f = *state;
    uint64_t random = dock_seed();
    unsigned n = SCATTERED / (slow_down() > 1 ? 4 : 1);
    char *mem = maps_in_one((size_t)n * PAGE);

    print_message("DRYDOCK_SEED=%#" PRIx64 " repeats the order\n", random);
    assert_ptr_not_equal(mem, MAP_FAILED);
    bytes_fill(mem, (size_t)n * PAGE, 4);
    uint64_t sum = bytes_sum(mem, (size_t)n * PAGE);
    for (unsigned wave = 0; wave < WAVES; wave++) {
        come_and_go(f, mem, n, &random);
        unsigned after = maps_look(mem, (size_t)n * PAGE).mappings;
        print_message("%u pages: %u mappings after they came and went\n", n, after);
        assert_in_range(after, 1, FEW);
    }
    assert_int_equal(bytes_sum(mem, (size_t)n * PAGE), sum);
    munmap(mem, (size_t)n * PAGE);
}

static struct dock_mr *reg_plain(const struct fix *f)
{
    struct dock_mr *mr = reg_any(f, f->mem, LEN);

    assert_int_equal(maps_look(f->mem, LEN).adopted, 0);
    return mr;
}

// A key shuts its memory: the arena's pages, which have none, do not come into its place.
static void memory_under_a_key_stays(void **state)
{
    struct fix *f = *state;
    int key = pkey_alloc(0, 0);

    if (key < 0)
        skip(); // this processor has none
    memset(f->mem, 4, LEN);
    assert_int_equal(pkey_mprotect(f->mem, LEN, PROT_READ | PROT_WRITE, key), 0);
    dereg(reg_plain(f));
    assert_int_equal(pkey_set(key, PKEY_DISABLE_ACCESS), 0); // who cannot touch it cannot register it either
    struct dock_mr *mr;
    assert_int_equal(dock_mr_register(f->dev, f->pd, (uintptr_t)f->mem, LEN, (uintptr_t)f->mem, RIGHTS, &mr),
                     -EFAULT);
    assert_int_equal(maps_look(f->mem, LEN).adopted, 0);
    assert_int_equal(pkey_set(key, 0), 0);
    assert_int_equal(f->mem[LEN - 1], 4);
    assert_int_equal(pkey_mprotect(f->mem, LEN, PROT_READ | PROT_WRITE, 0), 0);
    assert_int_equal(pkey_free(key), 0);
    dereg(reg(f, f->mem, LEN));
}

// Scattered regions take mappings: some are left to the program.
static void mappings_are_left_to_the_program(void **state)
{
    struct fix *f = *state;
    uint32_t before = dock_adopted_runs, left = dock_fit_mappings() / 2;

    struct dock_mr *mr[3];
    mr[0] = reg(f, f->mem, PAGE);
    assert_int_equal(dock_adopted_runs, before + 1);
    mr[1] = reg(f, f->mem + 2 * PAGE, PAGE);
    assert_int_equal(dock_adopted_runs, before + 2);
    mr[2] = reg(f, f->mem + PAGE, PAGE);
    assert_int_equal(dock_adopted_runs, before + 1);
    dereg(mr[2]);
    assert_int_equal(dock_adopted_runs, before + 2);
    dock_adopted_runs += left; // as many as there may be
    mr[2] = reg_any(f, f->mem + 8 * PAGE, PAGE);
    assert_int_equal(maps_look(f->mem + 8 * PAGE, PAGE).adopted, 0);
    dereg(mr[2]);
    mr[2] = reg(f, f->mem + PAGE, PAGE); // one less
    dereg(mr[2]);
    dock_adopted_runs -= left;
    dereg(mr[0]);
    dereg(mr[1]);
    assert_int_equal(dock_adopted_runs, before);
}

static void what_the_program_unmaps_does_not_wait(void **state)
{
    struct fix *f = *state;

    struct dock_mr *mr = reg(f, f->mem, LEN);
    uint64_t with = dock_peek64(&dock_park_blank);
    assert_int_equal(munmap(f->mem, LEN), 0);
    dereg(mr);
    assert_int_equal(dock_peek64(&dock_park_blank), with + LEN);
    f->mem = maps_in_one(LEN);
    assert_ptr_not_equal(f->mem, MAP_FAILED);
}

static void a_forked_child_has_it_too(void **state)
{
    struct fix *f = *state;
    int status = 0;

    assert_int_equal(madvise(f->mem, LEN, MADV_DONTDUMP), 0);
    bytes_fill(f->mem, LEN, 9);
    uint64_t sum = bytes_sum(f->mem, LEN);
    struct dock_mr *mr = reg(f, f->mem, LEN);
    pid_t child = fork();
    if (!child)
        _exit(bytes_sum(f->mem, LEN) != sum ? 1 : maps_has(f->mem, " dd") && maps_has(f->mem, " ac") ? 0 : 2);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    dereg(mr);
    assert_true(maps_has(f->mem, " dd"));
    assert_int_equal(bytes_sum(f->mem, LEN), sum);
}

int main(void)
{
    if (getenv("DRYDOCK_EMULATED")) // an emulator has mappings of its own, which do not stand
        return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(advice_is_there_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(each_mapping_gets_its_own_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_memory_policy_is_there_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(locked_memory_is_locked_wherever_it_lies, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_lock_that_comes_or_goes_meanwhile_counts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_could_not_be_locked_again_stays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_was_not_locked_is_not_locked_later, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_move_that_fails_leaves_no_hole, set_up, tear_down),
        cmocka_unit_test_setup_teardown(scattered_pages_are_one_mapping_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(memory_under_a_key_stays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(mappings_are_left_to_the_program, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_the_program_unmaps_does_not_wait, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_forked_child_has_it_too, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("what is asked for memory that moves", tests, NULL, NULL);
}
