// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arena/home.h"
#include "arena/xcopy.h"
#include "base/log.h"
#include "base/order.h"
#include "unit/arena/child.h"

static size_t page;

// Four pages of which the second cannot be read and the third cannot be written; the fourth is not there.
static char *mixed;

static int group_setup(void **state)
{
    (void)state;
    if (!dock_xcopy_works())
        exit(77);
    page = (size_t)sysconf(_SC_PAGESIZE);
    mixed = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(mixed, 'm', 3 * page);
    mprotect(mixed + page, page, PROT_NONE);
    mprotect(mixed + 2 * page, page, PROT_READ);
    munmap(mixed + 3 * page, page);
    return 0;
}

static uint64_t at(const void *p)
{
    return (uintptr_t)p;
}

struct theirs {
    size_t len;
    char *memory;
};

static void be_copied(void *arg, struct child *parent)
{
    struct theirs *t = arg;
    char go;

    dock_xcopy_allow();
    memset(t->memory, 'c', t->len); // its own copy now
    say(parent->to, "x", 1);
    hear(parent->from, &go, 1);
    for (size_t i = 0; i < t->len; i++)
        child_check(t->memory[i] == 'p');
}

static void bytes_move_both_ways_between_processes(void **state)
{
    struct theirs t = {.len = 5 * page + 7};
    struct child c;
    char ready, *here = malloc(t.len);

    (void)state;
    t.memory = malloc(t.len);
    memset(here, 0, t.len);
    memset(t.memory, 'o', t.len);
    c = child_start(be_copied, &t);
    hear(c.from, &ready, 1);
    assert_int_equal(dock_xcopy_from(c.pid, 0, here, at(t.memory), t.len), 0);
    for (size_t i = 0; i < t.len; i++)
        assert_int_equal(here[i], 'c');
    memset(here, 'p', t.len);
    assert_int_equal(dock_xcopy_to(c.pid, 0, here, at(t.memory), t.len), 0);
    assert_int_equal(t.memory[0], 'o'); // theirs, not ours
    say(c.to, "x", 1);
    assert_int_equal(child_end(&c), 0);
    free(t.memory);
    free(here);
}

static void nothing_is_always_possible(void **state)
{
    (void)state;
    assert_int_equal(dock_xcopy_from(getpid(), 0, NULL, 0, 0), 0);
    assert_true(dock_xcopy_probe(0, 0, true));
}

static void a_bad_address_on_either_side_is_an_error_and_no_signal(void **state)
{
    char *good = malloc(2 * page);

    (void)state;
    assert_int_equal(dock_xcopy_from(getpid(), 0, good, at(mixed), page), 0);
    assert_int_equal(dock_xcopy_from(getpid(), 0, good, at(mixed), page + 1), -EFAULT);
    assert_int_equal(dock_xcopy_from(getpid(), 0, good, at(mixed + 3 * page), 1), -EFAULT);
    assert_int_equal(dock_xcopy_from(getpid(), 0, mixed + page - 1, at(good), 2), -EFAULT);
    assert_int_equal(dock_xcopy_to(getpid(), 0, good, at(mixed + 2 * page), 1), -EFAULT);
    assert_int_equal(dock_xcopy_to(getpid(), 0, mixed + 3 * page, at(good), 1), -EFAULT);
    assert_int_equal(dock_xcopy_from(getpid(), 0, good, 0, 1), -EFAULT);
    assert_int_equal(dock_xcopy_from(getpid(), 0, good, UINT64_MAX, 1), -EFAULT);
    assert_int_equal(dock_xcopy_from(getpid(), 0, good, at(mixed), SIZE_MAX), -EFAULT);
    free(good);
}

static void a_process_that_is_gone_is_said(void **state)
{
    struct theirs t = {.len = 1, .memory = mixed};
    struct child c = child_start(be_copied, &t);
    char byte;

    (void)state;
    child_kill(&c);
    assert_int_equal(dock_xcopy_from(c.pid, 0, &byte, at(mixed), 1), -ESRCH);
}

// The image after the exec: the same program, so that it has the same mapping where the one before had it.
static int main_again(char **argv)
{
    char *memory = (char *)(uintptr_t)strtoull(argv[2], NULL, 0), go;
    int to = atoi(argv[3]), from = atoi(argv[4]);

    page = (size_t)sysconf(_SC_PAGESIZE);
    child_check(mmap(memory, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
                     -1, 0) == memory);
    dock_home_own(); // it has one, too
    dock_xcopy_allow();
    memset(memory, 'n', page);
    say(to, "x", 1);
    for (char kept = 'n'; read(from, &go, 1) == 1; kept = 'p') {
        for (size_t i = 0; i < page; i++)
            child_check(memory[i] == kept);
        say(to, "x", 1);
    }
    return 0;
}

static void be_another_image(void *arg, struct child *parent)
{
    struct theirs *t = arg;
    uint64_t home = dock_home_own();
    char go, memory[24], to[12], from[12];

    dock_xcopy_allow();
    memset(t->memory, 'c', t->len);
    say(parent->to, &home, sizeof home);
    hear(parent->from, &go, 1);
    snprintf(memory, sizeof memory, "%#llx", (unsigned long long)at(t->memory));
    snprintf(to, sizeof to, "%d", parent->to);
    snprintf(from, sizeof from, "%d", parent->from);
    execl("/proc/self/exe", "xcopy_test", "again", memory, to, from, (char *)NULL);
    child_check(false);
}

static void nothing_is_written_into_the_image_after_an_exec(void **state)
{
    // Far from all that either image is given.
    char *far = (char *)(((uintptr_t)&page / 2 + ((uintptr_t)&page >> 8)) & ~(page - 1)),
         *here = malloc(page), go;
    struct theirs t = {.len = page, .memory = far};
    uint64_t home;
    struct child c;

    (void)state;
    if (emulated())
        skip();
    far = mmap(far, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (far != t.memory)
        skip(); // a sanitizer has it
    c = child_start(be_another_image, &t);
    hear(c.from, &home, sizeof home);
    assert_int_not_equal(home, 0);
    assert_int_equal(dock_xcopy_from(c.pid, home, here, at(far), page), 0);
    for (size_t i = 0; i < page; i++)
        assert_int_equal(here[i], 'c');
    assert_int_equal(dock_xcopy_to(c.pid, home, here, at(far), page), 0);
    assert_int_equal(dock_xcopy_to(c.pid, home, here, at(mixed + 3 * page), 1), -EFAULT);
    assert_int_equal(dock_xcopy_to(c.pid, home, mixed + 3 * page, at(far), 1), -EFAULT);
    assert_false(dock_home_left(c.pid, home));
    say(c.to, "x", 1);
    hear(c.from, &go, 1);
    assert_true(dock_home_left(c.pid, home));
    memset(here, 'p', page);
    assert_int_equal(dock_xcopy_to(c.pid, home, here, at(far), page), -ESRCH);
    assert_int_equal(dock_xcopy_from(c.pid, home, here, at(far), page), -ESRCH);
    say(c.to, "x", 1);
    hear(c.from, &go, 1);                                              // it has looked: nothing came
    assert_int_equal(dock_xcopy_to(c.pid, 0, here, at(far), page), 0); // by its number alone it is reached
    say(c.to, "x", 1);
    hear(c.from, &go, 1);
    assert_int_equal(child_end(&c), 0);
    munmap(far, page);
    free(here);
}

static void be_nobody(void *arg, struct child *parent)
{
    struct theirs *t = arg;
    char byte;

    (void)parent;
    child_check(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
    child_check(dock_xcopy_from(getppid(), 0, &byte, at(t->memory), 1) == -EPERM);
    child_check(strstr(dock_log_last(), "may not be copied") && strstr(dock_log_last(), "ptrace_scope"));
    dock_info("%s", "something else");
    child_check(dock_xcopy_from(getppid(), 0, &byte, at(t->memory), 1) == -EPERM);
    child_check(!strcmp(dock_log_last(), "something else")); // said once
}

static void another_users_memory_is_refused_in_words_once(void **state)
{
    struct theirs t = {.len = 1, .memory = mixed};
    struct child c;

    (void)state;
    if (geteuid() != 0)
        skip();
    c = child_start(be_nobody, &t);
    assert_int_equal(child_end(&c), 0);
}

static void a_probe_tells_what_can_be_read_and_what_written(void **state)
{
    (void)state;
    assert_true(dock_xcopy_probe(at(mixed), page, false));
    assert_true(dock_xcopy_probe(at(mixed), page, true));
    assert_true(dock_xcopy_probe(at(mixed + page - 1), 1, true));
    assert_false(dock_xcopy_probe(at(mixed + page - 1), 2, false));
    assert_false(dock_xcopy_probe(at(mixed + page), 1, false));
    assert_true(dock_xcopy_probe(at(mixed + 2 * page), page, false));
    assert_false(dock_xcopy_probe(at(mixed + 2 * page), page, true));
    assert_false(dock_xcopy_probe(at(mixed + 3 * page - 1), 2, false));
    assert_false(dock_xcopy_probe(0, 1, false));
    assert_false(dock_xcopy_probe(UINT64_MAX, 1, false));
    assert_false(dock_xcopy_probe(at(mixed), SIZE_MAX, false));
    assert_false(dock_xcopy_probe(1, SIZE_MAX, true));
}

static void a_probe_of_many_pages_finds_the_one_bad_page(void **state)
{
    enum { PAGES = 600 }; // more than one batch
    char *p = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    static const int bad[] = {0, 1, 255, 256, 257, 511, 512, PAGES - 1};

    (void)state;
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++)
        for (int write = 0; write < 2; write++) {
            assert_true(dock_xcopy_probe(at(p) + 3, PAGES * page - 3, write));
            mprotect(p + (size_t)bad[i] * page, page, PROT_NONE);
            assert_false(dock_xcopy_probe(at(p) + 3, PAGES * page - 3, write));
            mprotect(p + (size_t)bad[i] * page, page, PROT_READ | PROT_WRITE);
        }
    munmap(p, PAGES * page);
}

static void *count(void *arg)
{
    for (int i = 0; i < 100000; i++)
        atomic_fetch_add((dock_a32 *)arg, 1);
    return NULL;
}

static void a_write_probe_loses_no_store_of_another_thread(void **state)
{
    dock_a32 *counter = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_t t;

    (void)state;
    assert_int_equal(pthread_create(&t, NULL, count, counter), 0);
    while (dock_peek32(counter) < 90000)
        assert_true(dock_xcopy_probe(at(counter), 4, true));
    pthread_join(t, NULL);
    assert_int_equal(dock_peek32(counter), 100000);
    munmap(counter, page);
}

int main(int argc, char **argv)
{
    if (argc > 4 && !strcmp(argv[1], "again"))
        return main_again(argv);

    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_move_both_ways_between_processes),
        cmocka_unit_test(nothing_is_always_possible),
        cmocka_unit_test(a_bad_address_on_either_side_is_an_error_and_no_signal),
        cmocka_unit_test(a_process_that_is_gone_is_said),
        cmocka_unit_test(nothing_is_written_into_the_image_after_an_exec),
        cmocka_unit_test(another_users_memory_is_refused_in_words_once),
        cmocka_unit_test(a_probe_tells_what_can_be_read_and_what_written),
        cmocka_unit_test(a_probe_of_many_pages_finds_the_one_bad_page),
        cmocka_unit_test(a_write_probe_loses_no_store_of_another_thread),
    };
    return cmocka_run_group_tests(tests, group_setup, NULL);
}
