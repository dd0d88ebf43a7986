// SPDX-License-Identifier: MIT
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

#include "arena/arena.h"
#include "base/log.h"
#include "unit/arena/child.h"
#include "unit/arena/vmflags.h"

#define SHIFT 20
#define WINDOW (1ull << SHIFT)

static struct dock_arena arena;

static int setup(void **state)
{
    (void)state;
    return dock_arena_create(&arena, SHIFT, 4096);
}

static int teardown(void **state)
{
    (void)state;
    dock_arena_destroy(&arena);
    return 0;
}

static void look_from_outside(void *arg, struct child *parent)
{
    uint64_t off = *(uint64_t *)arg;
    struct dock_view v;
    char *p, go;

    // The inherited mapping is not there: DONTFORK. The descriptor is, and a view of one's own is.
    child_check(mappings_of("drydock-arena") == 0);
    child_check(dock_view_open(&v, dup(arena.view.fd), SHIFT) == 0);
    child_check(mappings_of("drydock-arena") == 0);
    p = dock_view_at(&v, off, 6);
    child_check(p && !strcmp(p, "hello"));
    child_check(mappings_of("drydock-arena") > 0);
    strcpy(p, "there");
    say(parent->to, "x", 1);
    hear(parent->from, &go, 1);
    child_check(!strcmp(p, "again")); // what the parent writes is here without any call
    dock_view_close(&v);
    child_check(mappings_of("drydock-arena") == 0);
}

static void another_process_sees_the_bytes_and_we_see_its(void **state)
{
    if (emulated())
        skip();

    uint64_t off;
    struct child c;
    char done, *p;

    (void)state;
    assert_int_equal(dock_arena_alloc(&arena, 64, 64, &off), 0);
    p = dock_arena_at(&arena, off);
    strcpy(p, "hello");
    c = child_start(look_from_outside, &off);
    hear(c.from, &done, 1);
    assert_string_equal(p, "there");
    strcpy(p, "again");
    say(c.to, "x", 1);
    assert_int_equal(child_end(&c), 0);
}

static void windows_that_come_later_are_seen_without_a_word(void **state)
{
    struct dock_view v;
    uint64_t off;

    (void)state;
    assert_int_equal(dock_view_open(&v, dup(arena.view.fd), SHIFT), 0);
    assert_null(dock_view_at(&v, WINDOW, 1)); // not in the file yet
    assert_int_equal(dock_arena_alloc(&arena, WINDOW, 64, &off), 0);
    assert_int_equal(off, WINDOW);
    assert_non_null(dock_view_at(&v, WINDOW, WINDOW));
    dock_view_close(&v);
}

static bool refuse_advice(uint32_t advice)
{
    struct sock_filter f[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, advice, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EXDEV),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog prog = {.len = sizeof f / sizeof *f, .filter = f};

    return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

static void look_without_advice(void *arg, struct child *parent)
{
    struct dock_view v;

    (void)parent;
    child_check(dock_view_open(&v, dup(arena.view.fd), SHIFT - 1) == 0); // its windows are mapped anew
    child_check(refuse_advice(*(uint32_t *)arg));
    errno = 0;
    child_check(!dock_view_at(&v, 0, 1));
    child_check(strstr(dock_log_last(), strerror(EXDEV)) != NULL);
    dock_view_close(&v);
}

// The kernel's own word is told, though that call sets no errno.
static void a_window_that_cannot_be_kept_to_ourselves_is_none_with_the_reason(void **state)
{
    uint32_t advice[] = {MADV_DONTDUMP, MADV_DONTFORK};

    (void)state;
    if (emulated())
        skip();
    for (unsigned i = 0; i < 2; i++) {
        struct child c = child_start(look_without_advice, &advice[i]);
        assert_int_equal(child_end(&c), 0);
    }
}

// One address for a word in a process, for as long as anybody views it.
static void views_of_one_arena_share_its_mappings_until_the_last_is_closed(void **state)
{
    struct dock_arena owner;
    struct dock_view v[2], other_size;
    char *p;

    (void)state;
    int before = mappings_of("drydock-arena");
    assert_int_equal(dock_arena_create(&owner, SHIFT, 4096), 0);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(dock_view_open(&v[i], dup(owner.view.fd), SHIFT), 0);
    assert_int_equal(dock_view_open(&other_size, dup(owner.view.fd), SHIFT - 1), 0);
    p = dock_view_at(&v[0], 64, 6);
    assert_ptr_equal(p, dock_arena_at(&owner, 64));
    assert_ptr_equal(p, dock_view_at(&v[1], 64, 6));
    assert_ptr_not_equal(p, dock_view_at(&other_size, 64, 6));
    dock_view_close(&other_size);
    dock_arena_destroy(&owner);
    strcpy(p, "still");
    dock_view_close(&v[0]);
    assert_string_equal(dock_view_at(&v[1], 64, 6), "still");
    dock_view_close(&v[1]);
    assert_int_equal(mappings_of("drydock-arena"), before);
}

static void nothing_outside_one_window_of_the_file_is_given(void **state)
{
    struct dock_view *v = &arena.view;

    (void)state;
    assert_non_null(dock_view_at(v, 0, WINDOW));
    assert_non_null(dock_view_at(v, WINDOW - 1, 1));
    assert_null(dock_view_at(v, WINDOW - 1, 2));
    assert_null(dock_view_at(v, 0, WINDOW + 1));
    assert_null(dock_view_at(v, 8, UINT64_MAX));
    assert_null(dock_view_at(v, DOCK_WINDOWS * WINDOW, 1));
    assert_null(dock_view_at(v, UINT64_MAX, 1));
    assert_null(dock_view_map(v, DOCK_WINDOWS, 1));
    assert_null(dock_view_map(v, UINT32_MAX, 1));
}

static void a_file_that_can_shrink_is_refused(void **state)
{
    struct dock_view v;
    int fds = open_fds(), fd = memfd_create("other", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    (void)state;
    assert_int_equal(ftruncate(fd, WINDOW), 0);
    assert_int_equal(dock_view_open(&v, fd, SHIFT), -EPERM);
    assert_non_null(strstr(dock_log_last(), "F_SEAL_SHRINK"));
    assert_int_equal(open_fds(), fds); // it owned the descriptor
}

static void no_file_of_memory_is_refused(void **state)
{
    struct dock_view v;

    (void)state;
    assert_int_equal(dock_view_open(&v, open("/dev/null", O_RDWR), SHIFT), -EPERM);
    assert_int_equal(dock_view_open(&v, -1, SHIFT), -EPERM);
}

static void window_sizes_out_of_range_are_refused(void **state)
{
    struct dock_view v;
    int fds = open_fds();

    (void)state;
    assert_int_equal(dock_view_open(&v, dup(arena.view.fd), 0), -EINVAL);
    assert_int_equal(dock_view_open(&v, dup(arena.view.fd), 12), -EINVAL);
    assert_int_equal(dock_view_open(&v, dup(arena.view.fd), 64), -EINVAL);
    assert_int_equal(dock_view_open(&v, dup(arena.view.fd), UINT32_MAX), -EINVAL);
    assert_non_null(strstr(dock_log_last(), "windows of 2^"));
    assert_int_equal(open_fds(), fds);
}

static void mappings_are_neither_dumped_nor_inherited(void **state)
{
    if (emulated())
        skip();

    char flags[512];

    (void)state;
    vm_flags(dock_arena_at(&arena, 0), flags);
    if (!flags[0])
        skip();                            // no smaps under emulation
    assert_non_null(strstr(flags, " dd")); // MADV_DONTDUMP
    assert_non_null(strstr(flags, " dc")); // MADV_DONTFORK
}

static void close_in_a_child(void *arg, struct child *parent)
{
    char *inherited = arg, *place;

    (void)parent;
    // Something of the child's own now lives where the parent's window was.
    place = mmap(inherited, WINDOW, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    child_check(place == inherited);
    strcpy(place, "mine");
    dock_arena_destroy(&arena);
    child_check(!strcmp(place, "mine"));
}

static void a_child_that_closes_unmaps_nothing_of_its_own(void **state)
{
    struct child c = child_start(close_in_a_child, dock_arena_at(&arena, 0));

    (void)state;
    assert_int_equal(child_end(&c), 0);
    assert_non_null(dock_arena_at(&arena, 0));
}

static void check_small(const struct dock_arena *a, long long most)
{
    struct stat st;

    child_check(fstat(a->view.fd, &st) == 0);
    if (st.st_blocks * 512 <= most)
        return;
    fprintf(stderr, "the file holds %lld bytes, expected at most %lld\n", (long long)st.st_blocks * 512,
            most);
    _exit(1);
}

static void lock_future(void *arg, struct child *parent)
{
    struct dock_arena a;
    uint64_t off;

    (void)arg;
    (void)parent;
    if (mlockall(MCL_FUTURE))
        _exit(77);
    child_check(dock_arena_create(&a, 26, 4096) == 0);
    child_check(dock_arena_reserve(&a, 64u << 20, 64, &off) == 0);
    child_check(dock_arena_at(&a, off) != NULL);
    check_small(&a, 1 << 20);
    dock_arena_destroy(&a);
}

// Windows of 64 chunks of a MiB: the first is ours from the start, the fourth and fifth come afterwards.
static void lock_current(void *arg, struct child *parent)
{
    struct dock_arena a;
    struct dock_view v;
    char *p;

    (void)arg;
    (void)parent;
    child_check(dock_arena_create(&a, 26, 4096) == 0);
    child_check(dock_view_open(&v, dup(a.view.fd), 26) == 0);
    child_check(dock_view_at(&v, 0, 64) != NULL);
    if (mlockall(MCL_CURRENT))
        _exit(77);
    check_small(&a, 1 << 20);
    p = dock_view_at(&v, (5 << 20) - 1, 2);
    child_check(p != NULL);
    p[0] = p[1] = 1;
    check_small(&a, 3 << 20);
    child_check(!mlockall(MCL_CURRENT));
    check_small(&a, 3 << 20);
    dock_view_close(&v);
    dock_arena_destroy(&a);
}

static void check_locking(void (*body)(void *, struct child *))
{
    struct child c = child_start(body, NULL);
    int status = child_end(&c);

    if (status == 77)
        skip();
    assert_int_equal(status, 0);
}

static void mlockall_future_does_not_fill_the_holes(void **state)
{
    (void)state;
    check_locking(lock_future);
}

static void mlockall_current_fills_no_more_than_was_accessed(void **state)
{
    (void)state;
    check_locking(lock_current);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(another_process_sees_the_bytes_and_we_see_its, setup, teardown),
        cmocka_unit_test_setup_teardown(windows_that_come_later_are_seen_without_a_word, setup, teardown),
        cmocka_unit_test_setup_teardown(a_window_that_cannot_be_kept_to_ourselves_is_none_with_the_reason,
                                        setup, teardown),
        cmocka_unit_test(views_of_one_arena_share_its_mappings_until_the_last_is_closed),
        cmocka_unit_test_setup_teardown(nothing_outside_one_window_of_the_file_is_given, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_that_can_shrink_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(no_file_of_memory_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(window_sizes_out_of_range_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(mappings_are_neither_dumped_nor_inherited, setup, teardown),
        cmocka_unit_test_setup_teardown(a_child_that_closes_unmaps_nothing_of_its_own, setup, teardown),
        cmocka_unit_test_setup_teardown(mlockall_future_does_not_fill_the_holes, setup, teardown),
        cmocka_unit_test_setup_teardown(mlockall_current_fills_no_more_than_was_accessed, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
