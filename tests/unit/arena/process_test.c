// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arena/process.h"
#include "unit/arena/child.h"

static void say_who(void *arg, struct child *parent)
{
    struct dock_process me;
    char go;

    (void)arg;
    dock_process_self(&me);
    say(parent->to, &me, sizeof me);
    hear(parent->from, &go, 1);
}

static struct child start(struct dock_process *who)
{
    struct child c = child_start(say_who, NULL);

    hear(c.from, who, sizeof *who);
    return c;
}

static void a_process_knows_itself(void **state)
{
    struct dock_process a, b;

    (void)state;
    dock_process_self(&a);
    dock_process_self(&b);
    assert_int_equal(a.pid, getpid());
    assert_true(a.start_time > 0);
    assert_true(a.pid_namespace > 0);
    assert_true(dock_process_equal(&a, &b));
    assert_int_equal(dock_process_alive(&a), 1);
}

static void a_child_is_somebody_else_in_the_same_namespace(void **state)
{
    if (emulated())
        skip();

    struct dock_process me, other;
    struct child c = start(&other);

    (void)state;
    dock_process_self(&me);
    assert_false(dock_process_equal(&me, &other));
    assert_int_equal(me.pid_namespace, other.pid_namespace);
    assert_int_equal(dock_process_alive(&other), 1);
    child_kill(&c);
}

static void a_killed_process_is_dead_before_it_is_waited_for(void **state)
{
    struct dock_process who;
    struct child c = start(&who);

    (void)state;
    kill(c.pid, SIGKILL);
    for (int i = 0; i < 2000 && dock_process_alive(&who) == 1; i++)
        usleep(1000);
    assert_int_equal(dock_process_alive(&who), 0); // a zombie
    child_end(&c);
    assert_int_equal(dock_process_alive(&who), 0); // nobody
}

static void a_stopped_process_is_alive(void **state)
{
    if (emulated())
        skip();

    struct dock_process who;
    struct child c = start(&who);
    int status;

    (void)state;
    kill(c.pid, SIGSTOP);
    waitpid(c.pid, &status, WUNTRACED);
    assert_int_equal(dock_process_alive(&who), 1);
    child_kill(&c);
}

static void another_user_of_the_same_pid_is_another_process(void **state)
{
    struct dock_process me;

    (void)state;
    dock_process_self(&me);
    me.start_time++;
    assert_int_equal(dock_process_alive(&me), 0);
}

static void *stay(void *arg)
{
    (void)arg;
    for (;;)
        pause();
    return NULL;
}

static void leave_main(void *arg, struct child *parent)
{
    pthread_t t;

    child_check(pthread_create(&t, NULL, stay, NULL) == 0);
    struct dock_process me;
    dock_process_self(&me);
    say(parent->to, &me, sizeof me);
    (void)arg;
    syscall(SYS_exit, 0); // as pthread_exit in main: this thread alone
}

static void a_process_whose_main_thread_has_ended_is_alive(void **state)
{
    if (emulated())
        skip();

    struct child c = child_start(leave_main, NULL);
    struct dock_process who;

    (void)state;
    hear(c.from, &who, sizeof who);
    usleep(50000); // time to become what ps shows as a zombie
    assert_int_equal(dock_process_alive(&who), 1);
    kill(c.pid, SIGKILL);
    for (int i = 0; i < 2000 && dock_process_alive(&who) == 1; i++)
        usleep(1000);
    assert_int_equal(dock_process_alive(&who), 0);
    child_end(&c);
}

static void a_name_with_parentheses_does_not_mislead(void **state)
{
    struct dock_process before, after;
    char old[32];

    (void)state;
    dock_process_self(&before);
    prctl(PR_GET_NAME, old);
    prctl(PR_SET_NAME, ") Z 1 2 (");
    dock_process_self(&after);
    assert_int_equal(dock_process_alive(&before), 1);
    prctl(PR_SET_NAME, old);
    assert_true(dock_process_equal(&before, &after));
}

static void mappings_are_found_by_file_name(void **state)
{
    int fd = memfd_create("drydock-unit", MFD_CLOEXEC);

    (void)state;
    assert_int_equal(ftruncate(fd, 4096), 0);
    assert_int_equal(dock_process_maps(getpid(), "memfd:drydock-unit"), 0);
    void *p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    assert_int_equal(dock_process_maps(getpid(), "memfd:drydock-unit"), 1);
    munmap(p, 4096);
    assert_int_equal(dock_process_maps(getpid(), "memfd:drydock-unit"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_knows_itself),
        cmocka_unit_test(a_child_is_somebody_else_in_the_same_namespace),
        cmocka_unit_test(a_killed_process_is_dead_before_it_is_waited_for),
        cmocka_unit_test(a_stopped_process_is_alive),
        cmocka_unit_test(another_user_of_the_same_pid_is_another_process),
        cmocka_unit_test(a_process_whose_main_thread_has_ended_is_alive),
        cmocka_unit_test(a_name_with_parentheses_does_not_mislead),
        cmocka_unit_test(mappings_are_found_by_file_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
