// SPDX-License-Identifier: MIT
// timeout: 60
// A large region that is mostly untouched costs what is in it: pages that nobody stored to take no memory in
// the arena, nor when the program gets its own back, nor in a forked child. Their bytes are right all the
// same, whatever state the kernel has a page in.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arena/adopt_own.h"
#include "device/internal.h"
#include "lib/adopting.h"
#include "lib/duo.h"
#include "lib/fork.h"
#include "lib/maps.h"

#define PAGE 4096u
#define LEN (16ul << 20)
#define SPACE (LEN / PAGE / 4 * 3) // pages; a touched one may bring a huge page of 512 with it
#define RIGHTS (DOCK_ACCESS_LOCAL_WRITE | DOCK_ACCESS_REMOTE_READ | DOCK_ACCESS_REMOTE_WRITE)

// Pages that are touched: at both ends, on both sides of a chunk's end, and alone.
static const size_t touched[] = {0, 1023, 1024, 3333, LEN / PAGE - 1};

#define TOUCHED (sizeof touched / sizeof *touched)

struct fix {
    struct dock_dev *dev;
    uint32_t pd;
    char *mem;
};

static bool holes_are_allowed(void)
{
    char mode = '2';
    int fd = open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
    bool told = fd >= 0 && read(fd, &mode, 1) == 1;

    if (fd >= 0)
        close(fd);
    return told && mode != '2';
}

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

static struct dock_mr *reg_part(const struct fix *f, uint64_t at, uint64_t len)
{
    struct dock_mr *mr;

    assert_int_equal(dock_mr_register(f->dev, f->pd, at, len, at, RIGHTS, &mr), 0);
    if (dock_peek64(&f->dev->port->adopt.bytes) != len) {
        assert_int_equal(dock_mr_deregister(mr), 0);
        skip(); // a thread's own lies in it
    }
    return mr;
}

static struct dock_mr *reg(const struct fix *f)
{
    return reg_part(f, (uintptr_t)f->mem, LEN);
}

static void store(char *mem)
{
    for (unsigned i = 0; i < TOUCHED; i++)
        bytes_fill(mem + touched[i] * PAGE, PAGE, touched[i] + 1);
}

// Is it what store() has left, and zeros? 0, or which page is not, and one.
static size_t wrong_page(const char *mem)
{
    static const char zeros[PAGE];
    static char stored[PAGE];
    unsigned next = 0;

    for (size_t i = 0; i < LEN / PAGE; i++) {
        bool mine = next < TOUCHED && touched[next] == i;
        if (mine)
            bytes_fill(stored, PAGE, touched[next++] + 1);
        if (memcmp(mem + i * PAGE, mine ? stored : zeros, PAGE) != 0)
            return i + 1;
    }
    return 0;
}

// Pages of the arena that have memory.
static size_t in_arena(const struct fix *f)
{
    struct stat st;

    assert_int_equal(fstat(f->dev->arena.view.fd, &st), 0);
    return (size_t)st.st_blocks * 512 / PAGE;
}

// Pages of [at, at + LEN) that this process has memory for, or a copy of in the swap.
static size_t in_program(const char *at)
{
    static uint64_t word[LEN / PAGE];
    int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    size_t n = 0;

    if (fd < 0 || pread(fd, word, sizeof word, (off_t)((uintptr_t)at / PAGE * sizeof *word)) != sizeof word)
        abort();
    close(fd);
    for (size_t i = 0; i < LEN / PAGE; i++)
        n += word[i] >> 62 != 0;
    return n;
}

static void what_nobody_touched_takes_no_memory(void **state)
{
    struct fix *f = *state;

    if (!holes_are_allowed())
        skip();
    store(f->mem);
    size_t before = in_arena(f), mine = in_program(f->mem);
    struct dock_mr *mr = reg(f);
    assert_in_range(in_arena(f), before + TOUCHED, before + SPACE);
    assert_int_equal(dock_mr_deregister(mr), 0);
    assert_in_range(in_program(f->mem), TOUCHED, mine + SPACE);
    assert_in_range(in_arena(f), 0, before + 64); // the table of segments
    assert_int_equal(wrong_page(f->mem), 0);
}

// It is the region that is large, not its parts in the chunks that move.
static void a_region_in_two_small_parts_takes_none_either(void **state)
{
    struct fix *f = *state;
    uint64_t end_of_chunk = ((uintptr_t)f->mem + LEN / 2) & ~(DOCK_ADOPT_CHUNK - 1ull);
    uint64_t part = DOCK_HOLES_FROM - 128 * 1024;
    size_t before = in_arena(f);

    if (!holes_are_allowed())
        skip();
    struct dock_mr *mr = reg_part(f, end_of_chunk - part, 2 * part);
    assert_in_range(in_arena(f), 0, before + 64); // the table of segments
    assert_int_equal(dock_mr_deregister(mr), 0);
    assert_in_range(in_program(f->mem), 0, 64);
}

// Bits of a word of the page map, as the kernel tells them (linux: admin-guide/mm/pagemap).
static void only_a_word_that_says_nothing_is_empty(void **state)
{
    (void)state;
    assert_true(dock_holes_empty(0));
    for (unsigned bit = 0; bit < 64; bit++) { // 63 present, 62 swapped, 61 of a file, 58 guarded, 57 watched
        bool empty = dock_holes_empty(1ull << bit);
        if (empty != (bit == 55)) // softly dirty: of pages that are not there too
            fail_msg("a word with bit %u alone: expected %s", bit, empty ? "something" : "nothing");
    }
}

static void what_was_stored_meanwhile_comes_back(void **state)
{
    struct fix *f = *state;
    struct dock_mr *mr = reg(f);

    store(f->mem);
    assert_int_equal(wrong_page(f->mem), 0);
    assert_int_equal(dock_mr_deregister(mr), 0);
    assert_int_equal(maps_look(f->mem, LEN).private_anon, LEN);
    assert_int_equal(wrong_page(f->mem), 0);
}

static int stay(void *arg)
{
    (void)arg;
    pause();
    return 0;
}

// Written out to the swap where there is one; the shared page of zeros for what was only read; shared with a
// child that still runs.
static void a_page_in_any_state_keeps_its_bytes(void **state)
{
    struct fix *f = *state;

    store(f->mem);
    madvise(f->mem, LEN / 2, MADV_PAGEOUT);
    for (size_t i = 40; i < 60; i++)
        assert_int_equal(((volatile char *)f->mem)[i * PAGE], 0);
    pid_t child = test_fork(stay, NULL);
    struct dock_mr *mr = reg(f);
    assert_int_equal(wrong_page(f->mem), 0);
    assert_int_equal(dock_mr_deregister(mr), 0);
    assert_int_equal(wrong_page(f->mem), 0);
    test_kill(child);
}

static void a_child_does_not_fill_it_either(void **state)
{
    struct fix *f = *state;
    int status;

    if (!holes_are_allowed())
        skip();
    store(f->mem);
    struct dock_mr *mr = reg(f);
    pid_t child = fork();
    if (!child) {
        size_t has = in_program(f->mem);
        _exit(has < TOUCHED || has > SPACE ? 1 : wrong_page(f->mem) ? 2 : 0);
    }
    assert_int_not_equal(child, -1);
    assert_int_equal(test_await(child, &status, 20000 * slow_down()), TEST_EXITED);
    assert_int_equal(status, 0);
    assert_int_equal(dock_mr_deregister(mr), 0);
    assert_int_equal(wrong_page(f->mem), 0);
}

// The program's memory where it was, but new.
static void map_anew(const struct fix *f)
{
    munmap(f->mem, LEN);
    assert_ptr_equal(
        mmap(f->mem, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
        f->mem);
}

static char *as_a_peer_sees_it(const struct fix *f)
{
    const struct dock_mirror *m = f->dev->adopt.mirrors;
    char *alias = dock_view_at(&f->dev->arena.view, m->off + ((uintptr_t)f->mem - m->va), LEN);

    assert_non_null(alias);
    return alias;
}

// A peer that was declared dead in the middle of a copy goes on after the pages were given back.
static void what_a_late_peer_stored_is_never_seen(void **state)
{
    struct fix *f = *state;
    struct dock_mr *mr = reg(f);
    char *peers = as_a_peer_sees_it(f);

    dock_arena_hold(&f->dev->arena);
    assert_int_equal(dock_mr_deregister(mr), 0);
    memset(peers + 5 * PAGE, 0xab, 2 * PAGE);
    dock_arena_release(&f->dev->arena);
    map_anew(f);
    store(f->mem);
    mr = reg(f);
    assert_int_equal(wrong_page(f->mem), 0);
    assert_int_equal(dock_mr_deregister(mr), 0);
    assert_int_equal(wrong_page(f->mem), 0);
}

static void memory_that_the_program_locks_is_returned_too(void **state)
{
    struct fix *f = *state;
    size_t before = in_arena(f);
    struct dock_mr *mr = reg(f);
    char *alias = as_a_peer_sees_it(f);

    memset(f->mem, 0xaa, LEN);
    if (mlock(alias, LEN / 4)) { // mlockall would do the same
        assert_int_equal(dock_mr_deregister(mr), 0);
        skip();
    }
    assert_int_equal(dock_mr_deregister(mr), 0);
    munlock(alias, LEN / 4);
    assert_in_range(in_arena(f), 0, before + 64); // the table of segments
    map_anew(f);
    store(f->mem);
    mr = reg(f);
    assert_int_equal(wrong_page(f->mem), 0);
    assert_int_equal(dock_mr_deregister(mr), 0);
}

int main(void)
{
    if (getenv("DRYDOCK_EMULATED")) // an emulator has mappings of its own, which do not stand
        return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_nobody_touched_takes_no_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_region_in_two_small_parts_takes_none_either, set_up, tear_down),
        cmocka_unit_test(only_a_word_that_says_nothing_is_empty),
        cmocka_unit_test_setup_teardown(what_was_stored_meanwhile_comes_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_page_in_any_state_keeps_its_bytes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_child_does_not_fill_it_either, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_a_late_peer_stored_is_never_seen, set_up, tear_down),
        cmocka_unit_test_setup_teardown(memory_that_the_program_locks_is_returned_too, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("sparse regions", tests, NULL, NULL);
}
