// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arena/lockword.h"
#include "base/clock.h"
#include "base/log.h"
#include "unit/arena/child.h"

#define LIMIT_NS (200000000ull * slow_factor()) // of a stopped holder, here
#define LONG_NS 20000000000u                    // where a holder is only kept from running by the machine

struct shared {
    dock_a64 word;
    uint64_t plain; // guarded by the word, not atomic
    dock_a32 turns;
    uint64_t gap_ns; // the longest that a holder did not move, though it wanted to
};

static char *path;
static struct dock_rundir dir;
static struct dock_idtable ids;
static struct dock_waiter me;
static struct shared *shared;
static uint64_t limit_ns;

static int setup(void **state)
{
    (void)state;
    path = fresh_dir();
    assert_int_equal(dock_rundir_open(path, &dir), 0);
    assert_int_equal(dock_idtable_open(&dir, &ids), 0);
    limit_ns = LIMIT_NS;
    me = (struct dock_waiter){.ids = &ids, .stopped_limit_ns = limit_ns};
    assert_int_equal(dock_idtable_join(&ids, &me.me), 0);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    munmap(shared, sizeof *shared);
    dock_idtable_leave(&ids, me.me);
    dock_idtable_close(&ids);
    dock_rundir_close(&dir);
    fresh_dir_end(path);
    return 0;
}

// Where nobody is stopped, a holder that the machine lets wait is not to be taken for one.
static void be_patient(void)
{
    me.stopped_limit_ns = limit_ns = LONG_NS;
}

// A child's own waiter: a device of its own.
static struct dock_waiter join(void)
{
    struct dock_waiter w = {.ids = &ids, .stopped_limit_ns = limit_ns};

    child_check(dock_idtable_join(&ids, &w.me) == 0);
    return w;
}

static void lock_and_hold(void *arg, struct child *parent)
{
    struct dock_waiter w = join();
    bool inherited;
    char go;

    (void)arg;
    uint32_t value = dock_word_lock(&shared->word, &w, &inherited);
    child_check(!inherited);
    say(parent->to, &w.me, sizeof w.me);
    hear(parent->from, &go, 1);
    dock_word_unlock(&shared->word, &w, value + 1);
}

static struct child holder(dock_who *who)
{
    struct child c = child_start(lock_and_hold, NULL);

    hear(c.from, who, sizeof *who);
    return c;
}

static void a_free_word_gives_its_value(void **state)
{
    bool inherited = true;

    (void)state;
    dock_publish64(&shared->word, dock_word_make(UINT32_MAX, 0));
    assert_int_equal(dock_word_lock(&shared->word, &me, &inherited), UINT32_MAX);
    assert_false(inherited);
    assert_int_equal(dock_word_holder(dock_peek64(&shared->word)), me.me);
    dock_word_unlock(&shared->word, &me, 7);
    assert_int_equal(dock_peek64(&shared->word), 7);
}

static void the_dead_holders_word_is_taken_over_within_a_bound(void **state)
{
    bool inherited = false;
    dock_who who;
    struct child c;
    uint64_t start;

    (void)state;
    be_patient();
    dock_publish64(&shared->word, dock_word_make(41, 0));
    c = holder(&who);
    kill(c.pid, SIGKILL);
    assert_int_equal(waitid(P_PID, (id_t)c.pid, &(siginfo_t){.si_code = 0}, WEXITED | WNOWAIT), 0);
    start = dock_now_ns();
    assert_int_equal(dock_word_lock(&shared->word, &me, &inherited), 41); // what it had published
    uint64_t took = dock_now_ns() - start;
    assert_true(inherited);
    if (took >= LONG_NS) // that is when it would have been taken for stopped
        fail_msg("expected less than %llu us, got %llu us", (unsigned long long)LONG_NS / 1000,
                 (unsigned long long)took / 1000);
    assert_false(strstr(dock_log_last(), "taken for dead"));
    dock_word_unlock(&shared->word, &me, 42);
    child_end(&c);
    assert_int_equal(dock_word_lock(&shared->word, &me, &inherited), 42);
    assert_false(inherited);
}

static void a_stopped_holder_is_evicted_after_the_limit(void **state)
{
    bool inherited = false;
    dock_who who;
    struct child c = holder(&who);
    uint64_t start, took;

    (void)state;
    kill(c.pid, SIGSTOP);
    start = dock_now_ns();
    dock_word_lock(&shared->word, &me, &inherited);
    took = dock_now_ns() - start;
    assert_true(inherited);
    assert_true(took >= LIMIT_NS);
    assert_true(took < 10 * LIMIT_NS);
    assert_true(dock_idtable_evicted(&ids, who));
    assert_non_null(strstr(dock_log_last(), "taken for dead"));
    child_kill(&c);
}

static void a_living_holder_that_lets_go_is_waited_for(void **state)
{
    bool inherited = true;
    dock_who who;
    struct child c;
    pid_t later;

    (void)state;
    be_patient();
    c = holder(&who);
    later = fork();
    if (later == 0) {
        usleep(20000);
        say(c.to, "x", 1);
        _exit(0);
    }
    assert_int_equal(dock_word_lock(&shared->word, &me, &inherited), 1);
    assert_false(inherited);
    assert_false(dock_idtable_evicted(&ids, who));
    waitpid(later, NULL, 0);
    assert_int_equal(child_end(&c), 0);
}

// Holds the word nearly always, but moves: longer than the limit.
static void hold_and_move(void *arg, struct child *parent)
{
    struct dock_waiter w = join();
    bool inherited;

    (void)arg;
    uint32_t value = dock_word_lock(&shared->word, &w, &inherited);
    say(parent->to, &w.me, sizeof w.me);
    uint64_t begin = dock_now_ns(), last = begin;
    for (uint64_t now = begin; now < begin + 3 * LIMIT_NS; now = dock_now_ns()) {
        shared->gap_ns = now - last > shared->gap_ns ? now - last : shared->gap_ns;
        last = now;
        dock_publish64(&shared->word, dock_word_make(++value, w.me));
        usleep(LIMIT_NS / 1000 / 10);
    }
    child_check(!dock_idtable_evicted(&ids, w.me) || shared->gap_ns > LIMIT_NS / 2);
    dock_word_unlock(&shared->word, &w, 1000);
}

static void a_slow_holder_that_moves_is_not_evicted(void **state)
{
    bool inherited = true;
    dock_who who;
    struct child c = child_start(hold_and_move, NULL);

    (void)state;
    hear(c.from, &who, sizeof who);
    uint32_t value = dock_word_lock(&shared->word, &me, &inherited);
    assert_int_equal(child_end(&c), 0);
    if (shared->gap_ns > LIMIT_NS / 2) { // the machine let it wait: that says nothing
        print_message("the holder got no processor for %llu ms\n",
                      (unsigned long long)shared->gap_ns / 1000000);
        skip();
    }
    assert_int_equal(value, 1000);
    assert_false(inherited);
}

static unsigned turns(void)
{
    return 20000 / slow_factor();
}

static void *lock_count_unlock(void *arg)
{
    bool inherited;

    for (unsigned i = 0, n = turns(); i < n; i++) {
        uint32_t value = dock_word_lock(&shared->word, arg, &inherited);
        shared->plain++;
        dock_word_unlock(&shared->word, arg, value + 1);
    }
    return NULL;
}

static void threads_of_one_device_exclude_each_other(void **state)
{
    pthread_t t[3];

    (void)state;
    for (int i = 0; i < 3; i++)
        pthread_create(&t[i], NULL, lock_count_unlock, &me);
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    assert_int_equal(shared->plain, 3 * turns());
    assert_int_equal(dock_peek64(&shared->word), 3 * turns());
}

static void count_too(void *arg, struct child *parent)
{
    struct dock_waiter w = join();

    (void)arg;
    (void)parent;
    lock_count_unlock(&w);
}

static void processes_exclude_each_other(void **state)
{
    struct child c[2];

    (void)state;
    be_patient();
    for (int i = 0; i < 2; i++)
        c[i] = child_start(count_too, NULL);
    lock_count_unlock(&me);
    for (int i = 0; i < 2; i++)
        assert_int_equal(child_end(&c[i]), 0);
    assert_int_equal(shared->plain, 3 * turns());
}

static void *wait_for_own(void *arg)
{
    bool inherited = true;

    (void)arg;
    dock_word_lock(&shared->word, &me, &inherited);
    dock_swap32(&shared->turns, inherited ? 2 : 1);
    dock_word_unlock(&shared->word, &me, 0);
    return NULL;
}

static void another_thread_of_the_same_device_is_never_evicted(void **state)
{
    bool inherited;
    pthread_t t;

    (void)state;
    dock_word_lock(&shared->word, &me, &inherited);
    pthread_create(&t, NULL, wait_for_own, NULL);
    usleep(2 * LIMIT_NS / 1000);
    assert_int_equal(dock_acquire32(&shared->turns), 0);
    assert_false(dock_idtable_evicted(&ids, me.me));
    dock_word_unlock(&shared->word, &me, 0);
    pthread_join(t, NULL);
    assert_int_equal(dock_acquire32(&shared->turns), 1);
}

static void a_holder_that_never_was_is_taken_over(void **state)
{
    static const dock_who nobody[] = {1u << DOCK_SLOT_BITS, 77, UINT32_MAX};
    bool inherited;

    (void)state;
    for (unsigned i = 0; i < sizeof nobody / sizeof *nobody; i++) {
        inherited = false;
        dock_publish64(&shared->word, dock_word_make(5, nobody[i]));
        assert_int_equal(dock_word_lock(&shared->word, &me, &inherited), 5);
        assert_true(inherited);
    }
}

static void wait_in_vain(void *arg, struct child *parent)
{
    struct dock_waiter w = join();
    bool inherited;

    (void)arg;
    say(parent->to, &w.me, sizeof w.me);
    dock_word_lock(&shared->word, &w, &inherited);
    dock_word_unlock(&shared->word, &w, inherited ? 2000 : 3000);
}

// Holder and waiter are stopped together, for longer than the limit, as by a debugger or a paused container.
static void a_waiter_that_was_stopped_itself_does_not_blame_the_holder(void **state)
{
    dock_who who;
    struct child h = holder(&who), w = child_start(wait_in_vain, NULL);
    dock_who waiter;

    (void)state;
    hear(w.from, &waiter, sizeof waiter);
    usleep(20000);
    kill(w.pid, SIGSTOP);
    kill(h.pid, SIGSTOP);
    usleep(2 * LIMIT_NS / 1000);
    uint64_t since = dock_now_ns();
    kill(w.pid, SIGCONT);
    usleep(20000);
    bool evicted = dock_idtable_evicted(&ids, who);
    kill(h.pid, SIGCONT);
    // From here on it watches the holder stand still, and may blame it: as long as we took is none of our
    // doing.
    if (dock_now_ns() - since > LIMIT_NS / 2) {
        print_message("continuing took %llu ms\n", (unsigned long long)(dock_now_ns() - since) / 1000000);
        child_kill(&h);
        child_kill(&w);
        skip();
    }
    assert_false(evicted);
    say(h.to, "x", 1);
    assert_int_equal(child_end(&h), 0);
    assert_int_equal(child_end(&w), 0);
    assert_int_equal(dock_peek64(&shared->word), 3000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_free_word_gives_its_value, setup, teardown),
        cmocka_unit_test_setup_teardown(the_dead_holders_word_is_taken_over_within_a_bound, setup, teardown),
        cmocka_unit_test_setup_teardown(a_stopped_holder_is_evicted_after_the_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(a_living_holder_that_lets_go_is_waited_for, setup, teardown),
        cmocka_unit_test_setup_teardown(a_slow_holder_that_moves_is_not_evicted, setup, teardown),
        cmocka_unit_test_setup_teardown(threads_of_one_device_exclude_each_other, setup, teardown),
        cmocka_unit_test_setup_teardown(processes_exclude_each_other, setup, teardown),
        cmocka_unit_test_setup_teardown(another_thread_of_the_same_device_is_never_evicted, setup, teardown),
        cmocka_unit_test_setup_teardown(a_holder_that_never_was_is_taken_over, setup, teardown),
        cmocka_unit_test_setup_teardown(a_waiter_that_was_stopped_itself_does_not_blame_the_holder, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
