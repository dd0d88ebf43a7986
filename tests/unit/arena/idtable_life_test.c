// SPDX-License-Identifier: MIT
// Who is alive: seen from another process, across fork, exec, lost descriptors and pid namespaces.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
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

static void join_and_wait(void *arg, struct child *parent)
{
    dock_who who;
    char go;

    (void)arg;
    child_check(dock_idtable_join(&ids, &who) == 0);
    say(parent->to, &who, sizeof who);
    hear(parent->from, &go, 1);
}

static struct child joined(void (*body)(void *, struct child *), dock_who *who)
{
    struct child c = child_start(body, NULL);

    hear(c.from, who, sizeof *who);
    return c;
}

static bool dies(dock_who who)
{
    for (int i = 0; i < 2000; i++) {
        if (dock_idtable_life(&ids, who) == DOCK_LIFE_DEAD)
            return true;
        usleep(1000);
    }
    return false;
}

static void a_living_peer_is_alive_and_a_killed_one_is_dead(void **state)
{
    dock_who who;
    struct child c = joined(join_and_wait, &who);

    (void)state;
    assert_int_equal(dock_idtable_life(&ids, who), DOCK_LIFE_ALIVE);
    kill(c.pid, SIGKILL);
    assert_true(dies(who)); // nobody has waited for it yet
    child_end(&c);
    assert_int_equal(dock_idtable_life(&ids, who), DOCK_LIFE_DEAD);
}

static void a_stopped_peer_is_alive_until_it_is_evicted(void **state)
{
    dock_who who;
    struct child c = joined(join_and_wait, &who);

    (void)state;
    kill(c.pid, SIGSTOP);
    assert_int_equal(dock_idtable_life(&ids, who), DOCK_LIFE_ALIVE);
    assert_false(dock_idtable_evicted(&ids, who));
    dock_idtable_evict(&ids, who);
    assert_int_equal(dock_idtable_life(&ids, who), DOCK_LIFE_DEAD);
    assert_true(dock_idtable_evicted(&ids, who));
    child_kill(&c);
}

static void an_evicted_peer_keeps_its_slot_while_it_lives(void **state)
{
    dock_who who, other;
    struct child c = joined(join_and_wait, &who);

    (void)state;
    dock_idtable_evict(&ids, who);
    assert_int_equal(dock_idtable_join(&ids, &other), 0);
    assert_int_equal(dock_idtable_owner(&ids, dock_who_slot(who)), who);
    child_kill(&c);
    dock_idtable_leave(&ids, other);
    assert_int_equal(dock_idtable_join(&ids, &other), 0);
    assert_int_equal(dock_idtable_owner(&ids, dock_who_slot(who)), 0);
    dock_idtable_leave(&ids, other);
}

static void evicting_an_old_incarnation_does_not_hurt_the_new_one(void **state)
{
    dock_who who;

    (void)state;
    assert_int_equal(dock_idtable_join(&ids, &who), 0);
    dock_idtable_evict(&ids, dock_who_make(dock_who_slot(who), dock_who_incarnation(who) - 1));
    assert_int_equal(dock_idtable_life(&ids, who), DOCK_LIFE_ALIVE);
    dock_idtable_evict(&ids, who);
    dock_idtable_leave(&ids, who);
    for (unsigned i = 0; i < DOCK_LOW_BLOCKS; i++) { // until it is the slot's turn again
        dock_who next;
        assert_int_equal(dock_idtable_join(&ids, &next), 0);
        assert_false(dock_idtable_evicted(&ids, next));
        dock_idtable_leave(&ids, next);
    }
}

static void a_number_that_nobody_has_is_dead(void **state)
{
    static const dock_who nobody[] = {0, 1, 4095, 1u << 12, UINT32_MAX};

    (void)state;
    for (unsigned i = 0; i < sizeof nobody / sizeof *nobody; i++) {
        assert_int_equal(dock_idtable_life(&ids, nobody[i]), DOCK_LIFE_DEAD);
        dock_idtable_evict(&ids, nobody[i]);
        dock_idtable_leave(&ids, nobody[i]);
    }
}

static void own_many_blocks(void *arg, struct child *parent)
{
    dock_who who;
    uint32_t block;
    char go;

    (void)arg;
    child_check(dock_idtable_join(&ids, &who) == 0);
    for (int i = 0; i < 10; i++)
        child_check(dock_idtable_more(&ids, who, &block) == 0);
    say(parent->to, &who, sizeof who);
    hear(parent->from, &go, 1);
}

static void all_blocks_of_the_dead_are_freed_by_the_next_who_joins(void **state)
{
    dock_who who, other;
    struct child c = joined(own_many_blocks, &who);
    int owned = 0;

    (void)state;
    for (uint32_t block = 0; block < DOCK_SLOTS; block++)
        owned += dock_idtable_owner(&ids, block) == who;
    assert_int_equal(owned, 11);
    child_kill(&c);
    assert_int_equal(dock_idtable_join(&ids, &other), 0);
    for (uint32_t block = 0; block < DOCK_SLOTS; block++)
        assert_int_not_equal(dock_idtable_owner(&ids, block), who);
    dock_idtable_leave(&ids, other);
}

static void child_of_an_owner(void *arg, struct child *parent)
{
    dock_who who = *(dock_who *)arg, mine;
    uint32_t block;
    char go;

    child_check(dock_idtable_life(&ids, who) == DOCK_LIFE_ALIVE); // the parent is
    dock_idtable_leave(&ids, who);
    child_check(dock_idtable_owner(&ids, dock_who_slot(who)) == who);
    child_check(dock_idtable_more(&ids, who, &block) == -ESRCH);
    child_check(dock_idtable_join(&ids, &mine) == 0 && mine != who);
    child_check(dock_idtable_life(&ids, mine) == DOCK_LIFE_ALIVE);
    say(parent->to, "x", 1);
    hear(parent->from, &go, 1);
}

static void a_forked_child_is_not_the_owner(void **state)
{
    dock_who who;
    struct child c;
    char ready;

    (void)state;
    assert_int_equal(dock_idtable_join(&ids, &who), 0);
    c = child_start(child_of_an_owner, &who);
    hear(c.from, &ready, 1);
    assert_int_equal(dock_idtable_life(&ids, who), DOCK_LIFE_ALIVE);
    say(c.to, "x", 1);
    assert_int_equal(child_end(&c), 0);
    dock_idtable_leave(&ids, who);
}

// The owner dies, a child of its lives on with everything that fork inherits.
static void join_and_leave_a_child(void *arg, struct child *parent)
{
    dock_who who;
    char go;

    (void)arg;
    child_check(dock_idtable_join(&ids, &who) == 0);
    if (fork() == 0) {
        say(parent->to, &who, sizeof who);
        _exit(read(parent->from, &go, 1) != 0); // until the test closes its end
    }
}

static void an_owner_is_dead_though_its_child_lives(void **state)
{
    dock_who who;
    struct child c = joined(join_and_leave_a_child, &who);

    (void)state;
    assert_true(dies(who));
    child_end(&c); // closes the pipe, which ends the grandchild
}

static void close_everything(void *arg, struct child *parent)
{
    dock_who who, second;
    struct dock_rundir again;
    struct dock_idtable t;
    uint32_t block;
    char go;

    (void)arg;
    child_check(dock_idtable_join(&ids, &who) == 0);
    for (int fd = 3; fd < 256; fd++)
        if (fd != parent->to && fd != parent->from)
            close(fd);
    int mine = open("/dev/null", O_RDWR); // has the number of something of the device now
    say(parent->to, &who, sizeof who);
    hear(parent->from, &go, 1);
    child_check(dock_idtable_life(&ids, who) == DOCK_LIFE_ALIVE);
    child_check(dock_idtable_join(&ids, &second) == -EBADF);
    child_check(dock_idtable_more(&ids, who, &block) == -EBADF);
    child_check(dock_rundir_open(path, &again) == 0);
    child_check(dock_idtable_open(&again, &t) == 0); // whole again
    child_check(dock_idtable_join(&t, &second) == 0);
    child_check(fcntl(mine, F_GETFD) >= 0);
    say(parent->to, &second, sizeof second);
    hear(parent->from, &go, 1);
}

static void a_process_that_closed_all_descriptors_is_alive(void **state)
{
    if (emulated())
        skip();

    dock_who who, second;
    struct child c = joined(close_everything, &who);

    (void)state;
    assert_int_equal(dock_idfile_held(ids.file, dock_who_slot(who)), 0); // the lock is lost
    assert_int_equal(dock_idtable_life(&ids, who), DOCK_LIFE_ALIVE);
    say(c.to, "x", 1);
    hear(c.from, &second, sizeof second);
    assert_int_equal(dock_idfile_held(ids.file, dock_who_slot(who)), 1); // and back
    assert_int_equal(dock_idtable_life(&ids, who), DOCK_LIFE_ALIVE);
    assert_int_equal(dock_idtable_life(&ids, second), DOCK_LIFE_ALIVE);
    kill(c.pid, SIGKILL);
    assert_true(dies(who));
    child_end(&c);
}

static void join_and_exec(void *arg, struct child *parent)
{
    dock_who who;

    (void)arg;
    child_check(dock_idtable_join(&ids, &who) == 0);
    say(parent->to, &who, sizeof who);
    execl("/bin/sleep", "sleep", "60", (char *)NULL);
    _exit(1);
}

static void what_was_before_an_exec_is_dead(void **state)
{
    dock_who who;
    struct child c = joined(join_and_exec, &who);

    (void)state;
    assert_true(dies(who));
    assert_int_equal(kill(c.pid, 0), 0); // the process itself lives
    child_kill(&c);
}

// The image after the exec: it has the table mapped, as its owner before had, and is about to join.
static int main_again(char **argv)
{
    char go;
    dock_who who;

    child_check(dock_rundir_open(argv[2], &dir) == 0 && dock_idtable_open(&dir, &ids) == 0);
    say(atoi(argv[3]), "x", 1);
    hear(atoi(argv[4]), &go, 1);
    child_check(dock_idtable_join(&ids, &who) == 0);
    say(atoi(argv[3]), &who, sizeof who);
    hear(atoi(argv[4]), &go, 1);
    return 0;
}

static void join_and_come_again(void *arg, struct child *parent)
{
    char to[12], from[12], go;
    dock_who who;

    (void)arg;
    child_check(dock_idtable_join(&ids, &who) == 0);
    say(parent->to, &who, sizeof who);
    execl("/nowhere/to/be/found", "nothing", (char *)NULL); // lives on
    hear(parent->from, &go, 1);
    snprintf(to, sizeof to, "%d", parent->to);
    snprintf(from, sizeof from, "%d", parent->from);
    execl("/proc/self/exe", "idtable_life_test", "again", path, to, from, (char *)NULL);
    child_check(false);
}

// The table is mapped there, and the number is the same: only its memory is not.
static void an_exec_ends_an_owner_whose_successor_uses_the_table(void **state)
{
    if (emulated())
        skip();

    dock_who who, next;
    struct child c = joined(join_and_come_again, &who);
    char ready;

    (void)state;
    assert_int_equal(dock_idtable_life(&ids, who), DOCK_LIFE_ALIVE);
    say(c.to, "x", 1);
    hear(c.from, &ready, 1);
    assert_int_equal(dock_idtable_owner(&ids, dock_who_slot(who)), who); // nobody has freed its blocks yet
    assert_int_equal(dock_idtable_life(&ids, who), DOCK_LIFE_DEAD);
    say(c.to, "x", 1);
    hear(c.from, &next, sizeof next);
    assert_int_not_equal(next, who);
    assert_int_equal(dock_idtable_life(&ids, next), DOCK_LIFE_ALIVE);
    say(c.to, "x", 1);
    assert_int_equal(child_end(&c), 0);
}

static void join_in_another_namespace(void *arg, struct child *parent)
{
    dock_who who;
    char go;

    (void)arg;
    if (unshare(CLONE_NEWPID)) {
        who = 0;
        say(parent->to, &who, sizeof who);
        return;
    }
    pid_t inner = fork();
    if (inner == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        join_and_wait(NULL, parent);
        _exit(0);
    }
    say(parent->to, &inner, sizeof inner);
    hear(parent->from, &go, 1);
}

// /proc is still that of the outer namespace inside, and its pid 1 means nothing outside: only the lock can
// tell.
static void across_pid_namespaces_the_lock_tells(void **state)
{
    struct child c = child_start(join_in_another_namespace, NULL);
    uint32_t a, b;
    dock_who who;
    struct dock_owner owner;

    (void)state;
    hear(c.from, &a, sizeof a);
    if (!a) {
        child_end(&c);
        skip(); // not allowed here
    }
    hear(c.from, &b, sizeof b);
    who = dock_idtable_owner(&ids, 1);
    assert_true(who == a || who == b);
    assert_int_equal(dock_idtable_lookup(&ids, who, &owner), 0);
    assert_int_equal(owner.pid, 1); // its own name for itself
    assert_int_equal(dock_idtable_life(&ids, who), DOCK_LIFE_ALIVE);
    child_kill(&c);
    assert_true(dies(who));
}

static void hold_the_header(void *arg, struct child *parent)
{
    char go;

    (void)arg;
    child_check(dock_idfile_lock(ids.file) == 0);
    say(parent->to, "x", 1);
    hear(parent->from, &go, 1);
}

static void who_dies_while_changing_the_table_gives_its_lock_back(void **state)
{
    struct child c = child_start(hold_the_header, NULL);
    dock_who who;
    char ready;

    (void)state;
    hear(c.from, &ready, 1);
    child_kill(&c);
    assert_int_equal(dock_idtable_join(&ids, &who), 0);
    dock_idtable_leave(&ids, who);
}

int main(int argc, char **argv)
{
    if (argc > 4 && !strcmp(argv[1], "again"))
        return main_again(argv);

    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_living_peer_is_alive_and_a_killed_one_is_dead, setup, teardown),
        cmocka_unit_test_setup_teardown(a_stopped_peer_is_alive_until_it_is_evicted, setup, teardown),
        cmocka_unit_test_setup_teardown(an_evicted_peer_keeps_its_slot_while_it_lives, setup, teardown),
        cmocka_unit_test_setup_teardown(evicting_an_old_incarnation_does_not_hurt_the_new_one, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_number_that_nobody_has_is_dead, setup, teardown),
        cmocka_unit_test_setup_teardown(all_blocks_of_the_dead_are_freed_by_the_next_who_joins, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_forked_child_is_not_the_owner, setup, teardown),
        cmocka_unit_test_setup_teardown(an_owner_is_dead_though_its_child_lives, setup, teardown),
        cmocka_unit_test_setup_teardown(a_process_that_closed_all_descriptors_is_alive, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_before_an_exec_is_dead, setup, teardown),
        cmocka_unit_test_setup_teardown(an_exec_ends_an_owner_whose_successor_uses_the_table, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(across_pid_namespaces_the_lock_tells, setup, teardown),
        cmocka_unit_test_setup_teardown(who_dies_while_changing_the_table_gives_its_lock_back, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
