// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arena/idfile.h"
#include "arena/idtable.h"
#include "base/log.h"
#include "unit/arena/child.h"

static char *path;
static struct dock_rundir dir;
static struct dock_idtable ids;

static int setup(void **state)
{
    (void)state;
    path = fresh_dir();
    assert_int_equal(dock_rundir_open(path, &dir), 0);
    assert_int_equal(dock_idtable_open(&dir, &ids), 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    dock_idtable_close(&ids);
    dock_rundir_close(&dir);
    fresh_dir_end(path);
    return 0;
}

static dock_who join(void)
{
    dock_who who = 0;

    assert_int_equal(dock_idtable_join(&ids, &who), 0);
    return who;
}

static uint32_t more(dock_who who)
{
    uint32_t block = 0;

    assert_int_equal(dock_idtable_more(&ids, who, &block), 0);
    return block;
}

static void the_file_is_for_its_owner_alone(void **state)
{
    struct stat st;

    (void)state;
    assert_int_equal(fstatat(dir.fd, DOCK_IDFILE_NAME, &st, 0), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(st.st_size, 64 + 4096 * 64);
}

static void block_zero_is_never_given(void **state)
{
    dock_who who = join();

    (void)state;
    assert_int_equal(dock_who_slot(who), 1);
    assert_int_equal(dock_who_incarnation(who), 1);
    assert_int_equal(more(who), 2);
    assert_int_equal(dock_idtable_owner(&ids, 0), 0);
    dock_idtable_leave(&ids, who);
}

static void a_block_names_its_owner(void **state)
{
    dock_who a = join(), b = join();
    uint32_t of_a = more(a), of_b = more(b);

    (void)state;
    assert_int_not_equal(a, b);
    assert_int_equal(dock_idtable_owner(&ids, dock_who_slot(a)), a);
    assert_int_equal(dock_idtable_owner(&ids, of_a), a);
    assert_int_equal(dock_idtable_owner(&ids, dock_who_slot(b)), b);
    assert_int_equal(dock_idtable_owner(&ids, of_b), b);
    assert_int_equal(dock_idtable_owner(&ids, 4095), 0);
    assert_int_equal(dock_idtable_owner(&ids, DOCK_SLOTS), 0);
    assert_int_equal(dock_idtable_owner(&ids, UINT32_MAX), 0);
    dock_idtable_less(&ids, a, of_a);
    assert_int_equal(dock_idtable_owner(&ids, of_a), 0);
    dock_idtable_leave(&ids, a);
    dock_idtable_leave(&ids, b);
    assert_int_equal(dock_idtable_owner(&ids, of_b), 0);
}

static void a_block_of_another_is_not_given_back(void **state)
{
    dock_who a = join(), b = join();
    uint32_t of_b = more(b);

    (void)state;
    dock_idtable_less(&ids, a, of_b);
    dock_idtable_less(&ids, a, dock_who_slot(a)); // the first block goes with leave
    dock_idtable_less(&ids, a, UINT32_MAX);
    assert_int_equal(dock_idtable_owner(&ids, of_b), b);
    assert_int_equal(dock_idtable_owner(&ids, dock_who_slot(a)), a);
    dock_idtable_leave(&ids, a);
    dock_idtable_leave(&ids, a); // gone: nothing happens
    dock_idtable_leave(&ids, b);
}

static void blocks_that_were_never_used_come_first_then_the_longest_free(void **state)
{
    dock_who who = join();
    uint32_t first[3] = {more(who), more(who), more(who)}, high;

    (void)state;
    dock_idtable_less(&ids, who, first[1]);
    dock_idtable_less(&ids, who, first[0]);
    for (uint32_t block = 5; block < DOCK_LOW_BLOCKS; block++)
        assert_int_equal(more(who), block);
    assert_int_equal(more(who), first[1]);
    assert_int_equal(more(who), first[0]);
    high = more(who);
    assert_int_equal(high, DOCK_LOW_BLOCKS);
    dock_idtable_less(&ids, who, high);
    for (uint32_t block = DOCK_LOW_BLOCKS + 1; block < DOCK_SLOTS; block++)
        assert_int_equal(more(who), block);
    assert_int_equal(more(who), high);
    dock_idtable_leave(&ids, who);
}

// However many devices there were before.
static void ids_stay_low_as_long_as_low_ones_are_free(void **state)
{
    (void)state;
    for (uint32_t life = 0; life < 3 * DOCK_LOW_BLOCKS; life++) {
        dock_who who = join();
        assert_true(dock_who_slot(who) < DOCK_LOW_BLOCKS && more(who) < DOCK_LOW_BLOCKS);
        dock_idtable_leave(&ids, who);
    }
}

// Their owners live, by their locks, though their records are free.
static void low_blocks_that_are_all_locked_do_not_hide_the_others(void **state)
{
    off_t low = (off_t)(sizeof(struct dock_idhead) + sizeof(struct dock_idrec));
    struct flock all = {.l_type = F_WRLCK,
                        .l_start = low,
                        .l_len = (off_t)((DOCK_LOW_BLOCKS - 1) * sizeof(struct dock_idrec))};
    int told[2], fd;
    dock_who who;
    char c = 0;
    pid_t child;

    (void)state;
    assert_int_equal(pipe(told), 0);
    child = fork();
    if (!child) {
        fd = openat(dir.fd, DOCK_IDFILE_NAME, O_RDWR);
        c = fd >= 0 && !fcntl(fd, F_SETLK, &all) ? 'y' : 'n';
        (void)!write(told[1], &c, 1);
        pause();
    }
    assert_int_equal(read(told[0], &c, 1), 1);
    assert_int_equal(c, 'y');
    who = join();
    assert_true(dock_who_slot(who) >= DOCK_LOW_BLOCKS);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    dock_idtable_leave(&ids, who);
    close(told[0]);
    close(told[1]);
}

static void an_id_of_block_zero_is_chosen_by_one(void **state)
{
    dock_who a = join(), b = join();

    (void)state;
    assert_int_equal(dock_idtable_owner_of(&ids, 5), 0);
    assert_int_equal(dock_idtable_choose(&ids, a, 5), 0);
    assert_int_equal(dock_idtable_choose(&ids, b, 255), 0);
    assert_int_equal(dock_idtable_choose(&ids, b, 5), -EEXIST);
    assert_int_equal(dock_idtable_choose(&ids, a, 5), -EEXIST);
    assert_non_null(strstr(dock_log_last(), "id 5 is taken"));
    assert_int_equal(dock_idtable_choose(&ids, a, 0), -EINVAL);
    assert_int_equal(dock_idtable_choose(&ids, a, 256), -EINVAL);
    assert_int_equal(dock_idtable_choose(&ids, 77, 6), -ESRCH);
    assert_int_equal(dock_idtable_owner_of(&ids, 5), a);
    assert_int_equal(dock_idtable_owner_of(&ids, 255), b);
    assert_int_equal(dock_idtable_owner_of(&ids, dock_who_slot(b) << DOCK_BLOCK_SHIFT | 3), b);
    dock_idtable_unchoose(&ids, b, 5); // another's
    assert_int_equal(dock_idtable_owner_of(&ids, 5), a);
    dock_idtable_unchoose(&ids, a, 5);
    assert_int_equal(dock_idtable_choose(&ids, b, 5), 0);
    dock_idtable_leave(&ids, b);
    assert_int_equal(dock_idtable_owner_of(&ids, 5), 0);
    assert_int_equal(dock_idtable_owner_of(&ids, 255), 0);
    assert_int_equal(dock_idtable_owner(&ids, 0), 0);
    dock_idtable_leave(&ids, a);
}

static void the_table_is_full_after_4095_blocks(void **state)
{
    dock_who who = join(), other = 7;
    uint32_t block = 7;

    (void)state;
    for (int i = 0; i < 4094; i++)
        more(who);
    assert_int_equal(dock_idtable_more(&ids, who, &block), -ENOSPC);
    assert_non_null(strstr(dock_log_last(), "all 4095 id blocks are taken"));
    assert_int_equal(dock_idtable_join(&ids, &other), -ENOSPC);
    assert_int_equal(block, 7);
    assert_int_equal(other, 7);
    dock_idtable_less(&ids, who, 77);
    assert_int_equal(dock_who_slot(join()), 77);
    dock_idtable_leave(&ids, who);
    dock_idtable_leave(&ids, dock_idtable_owner(&ids, 77));
}

static void the_same_slot_gets_a_new_incarnation_each_time(void **state)
{
    dock_who old = join();
    struct dock_owner owner;

    (void)state;
    dock_idtable_leave(&ids, old);
    for (unsigned i = 1; i < DOCK_LOW_BLOCKS - 1; i++) // until it is slot 1's turn again
        dock_idtable_leave(&ids, join());
    dock_who again = join();
    assert_int_equal(dock_who_slot(again), 1);
    assert_int_equal(dock_who_incarnation(again), 2);
    assert_int_equal(dock_idtable_lookup(&ids, old, &owner), -ESRCH);
    assert_int_equal(dock_idtable_life(&ids, old), DOCK_LIFE_DEAD);
    assert_int_equal(dock_idtable_lookup(&ids, again, &owner), 0);
    dock_idtable_leave(&ids, again);
}

static void incarnations_wrap_and_leave_out_zero(void **state)
{
    (void)state;
    dock_set32(&ids.rec[1].incarnation, DOCK_ID_MASK);
    dock_who who = join();
    assert_int_equal(dock_who_slot(who), 1);
    assert_int_equal(dock_who_incarnation(who), 1);
    dock_idtable_leave(&ids, who);
}

static void an_owner_is_described(void **state)
{
    dock_who who = join();
    struct dock_owner owner = {0};

    (void)state;
    assert_int_equal(dock_idtable_lookup(&ids, who, &owner), 0);
    assert_int_equal(owner.who, who);
    assert_int_equal(owner.pid, getpid());
    assert_true(owner.start_time > 0);
    assert_int_equal(dock_idtable_lookup(&ids, 0, &owner), -ESRCH);
    dock_idtable_leave(&ids, who);
}

static void a_file_of_another_version_is_refused(void **state)
{
    char *other = fresh_dir(), text[4096] = "something else";
    struct dock_rundir d;
    struct dock_idtable t;
    int fds, fd;

    (void)state;
    assert_int_equal(dock_rundir_open(other, &d), 0);
    fd = openat(d.fd, DOCK_IDFILE_NAME, O_CREAT | O_WRONLY, 0600);
    assert_int_equal(write(fd, text, sizeof text), sizeof text);
    close(fd);
    fds = open_fds();
    assert_int_equal(dock_idtable_open(&d, &t), -EPROTO);
    assert_non_null(strstr(dock_log_last(), "another version"));
    assert_int_equal(open_fds(), fds);
    dock_rundir_close(&d);
    fresh_dir_end(other);
}

static void a_link_or_a_loose_file_is_refused(void **state)
{
    char *other = fresh_dir();
    struct dock_rundir d;
    struct dock_idtable t;

    (void)state;
    assert_int_equal(dock_rundir_open(other, &d), 0);
    assert_int_equal(symlinkat("/tmp/nowhere", d.fd, DOCK_IDFILE_NAME), 0);
    assert_int_equal(dock_idtable_open(&d, &t), -ELOOP);
    assert_non_null(strstr(dock_log_last(), "it is a link"));
    unlinkat(d.fd, DOCK_IDFILE_NAME, 0);
    close(openat(d.fd, DOCK_IDFILE_NAME, O_CREAT | O_WRONLY, 0600));
    assert_int_equal(fchmodat(d.fd, DOCK_IDFILE_NAME, 0666, 0), 0);
    assert_int_equal(dock_idtable_open(&d, &t), -EPROTO);
    dock_rundir_close(&d);
    fresh_dir_end(other);
}

static void a_maker_that_died_early_is_followed_by_the_next(void **state)
{
    char *other = fresh_dir(), zeros[1000] = {0};
    struct dock_rundir d;
    struct dock_idtable t;
    dock_who who;

    (void)state;
    assert_int_equal(dock_rundir_open(other, &d), 0);
    int fd = openat(d.fd, DOCK_IDFILE_NAME, O_CREAT | O_WRONLY, 0600);
    assert_int_equal(write(fd, zeros, sizeof zeros), sizeof zeros);
    close(fd);
    assert_int_equal(dock_idtable_open(&d, &t), 0);
    assert_int_equal(dock_idtable_join(&t, &who), 0);
    dock_idtable_leave(&t, who);
    dock_idtable_close(&t);
    dock_rundir_close(&d);
    fresh_dir_end(other);
}

static void several_tables_of_one_process_share_one_descriptor(void **state)
{
    struct dock_idtable more_tables[5];
    int fds = open_fds(), maps = mappings_of(DOCK_IDFILE_NAME);

    (void)state;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(dock_idtable_open(&dir, &more_tables[i]), 0);
        assert_ptr_equal(more_tables[i].rec, ids.rec);
    }
    assert_int_equal(open_fds(), fds);
    for (int i = 0; i < 5; i++)
        dock_idtable_close(&more_tables[i]);
    assert_int_equal(open_fds(), fds);
    assert_int_equal(mappings_of(DOCK_IDFILE_NAME), maps);
}

static void *come_and_go(void *arg)
{
    dock_who who;
    uint32_t block;
    intptr_t bad = 0;

    (void)arg;
    for (int i = 0; i < 100; i++) {
        bad += dock_idtable_join(&ids, &who) != 0;
        bad += dock_idtable_more(&ids, who, &block) != 0;
        bad += dock_idtable_owner(&ids, block) != who;
        bad += dock_idtable_life(&ids, who) != DOCK_LIFE_ALIVE;
        dock_idtable_leave(&ids, who);
        bad += dock_idtable_owner(&ids, block) == who;
    }
    return (void *)bad;
}

static void threads_and_processes_never_get_the_same_block(void **state)
{
    pthread_t thread[2];
    struct child child[2];
    void *bad;

    (void)state;
    for (int i = 0; i < 2; i++) {
        pid_t pid = fork();
        if (!pid)
            _exit(come_and_go(NULL) != NULL);
        child[i].pid = pid;
    }
    for (int i = 0; i < 2; i++)
        pthread_create(&thread[i], NULL, come_and_go, NULL);
    for (int i = 0; i < 2; i++) {
        int status;
        pthread_join(thread[i], &bad);
        assert_null(bad);
        waitpid(child[i].pid, &status, 0);
        assert_int_equal(status, 0);
    }
    for (uint32_t block = 0; block < DOCK_SLOTS; block++)
        assert_int_equal(dock_idtable_owner(&ids, block), 0);
}

static void first_comer(void *arg, struct child *parent)
{
    struct dock_rundir *d = arg;
    struct dock_idtable t;
    dock_who who;
    char go;

    hear(parent->from, &go, 1);
    child_check(dock_idtable_open(d, &t) == 0);
    child_check(dock_idtable_join(&t, &who) == 0);
    say(parent->to, &who, sizeof who);
    hear(parent->from, &go, 1);
}

static void many_first_comers_make_one_table(void **state)
{
    enum { N = 8 };
    char *other = fresh_dir();
    struct dock_rundir d;
    struct child c[N];
    dock_who who[N];

    (void)state;
    assert_int_equal(dock_rundir_open(other, &d), 0);
    for (int i = 0; i < N; i++)
        c[i] = child_start(first_comer, &d);
    for (int i = 0; i < N; i++)
        say(c[i].to, "x", 1);
    for (int i = 0; i < N; i++) {
        hear(c[i].from, &who[i], sizeof who[i]);
        for (int j = 0; j < i; j++)
            assert_int_not_equal(who[i], who[j]);
    }
    for (int i = 0; i < N; i++) {
        say(c[i].to, "x", 1);
        assert_int_equal(child_end(&c[i]), 0);
    }
    dock_rundir_close(&d);
    fresh_dir_end(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_file_is_for_its_owner_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(block_zero_is_never_given, setup, teardown),
        cmocka_unit_test_setup_teardown(a_block_names_its_owner, setup, teardown),
        cmocka_unit_test_setup_teardown(a_block_of_another_is_not_given_back, setup, teardown),
        cmocka_unit_test_setup_teardown(blocks_that_were_never_used_come_first_then_the_longest_free, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(an_id_of_block_zero_is_chosen_by_one, setup, teardown),
        cmocka_unit_test_setup_teardown(ids_stay_low_as_long_as_low_ones_are_free, setup, teardown),
        cmocka_unit_test_setup_teardown(low_blocks_that_are_all_locked_do_not_hide_the_others, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_table_is_full_after_4095_blocks, setup, teardown),
        cmocka_unit_test_setup_teardown(the_same_slot_gets_a_new_incarnation_each_time, setup, teardown),
        cmocka_unit_test_setup_teardown(incarnations_wrap_and_leave_out_zero, setup, teardown),
        cmocka_unit_test_setup_teardown(an_owner_is_described, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_of_another_version_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_link_or_a_loose_file_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_maker_that_died_early_is_followed_by_the_next, setup, teardown),
        cmocka_unit_test_setup_teardown(several_tables_of_one_process_share_one_descriptor, setup, teardown),
        cmocka_unit_test_setup_teardown(threads_and_processes_never_get_the_same_block, setup, teardown),
        cmocka_unit_test_setup_teardown(many_first_comers_make_one_table, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
