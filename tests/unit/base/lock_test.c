// SPDX-License-Identifier: MIT
// timeout: 30
// What the calling thread blocks, and whether it may be cancelled, while it has locks of ours.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

#include "base/lock.h"

static bool blocks(int signal)
{
    sigset_t now;

    pthread_sigmask(SIG_SETMASK, NULL, &now);
    return sigismember(&now, signal) == 1;
}

static bool is_cancelled_at_points(void)
{
    int was;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &was);
    pthread_setcancelstate(was, NULL);
    return was == PTHREAD_CANCEL_ENABLE;
}

static void no_signal_is_handled_and_faults_when_asked_for(void **state)
{
    (void)state;
    dock_unsignalled_begin();
    assert_true(blocks(SIGUSR1) && blocks(SIGSEGV) && blocks(SIGBUS) && blocks(SIGTRAP));
    assert_int_equal(dock_signals_blocked(), 0);
    dock_unsignalled_faults();
    assert_true(blocks(SIGUSR1) && !blocks(SIGSEGV) && !blocks(SIGBUS) && !blocks(SIGTRAP));
    dock_unsignalled_end();
    assert_false(blocks(SIGUSR1) || blocks(SIGSEGV));
}

static void what_the_program_blocks_stays_blocked(void **state)
{
    sigset_t own, was;

    (void)state;
    sigemptyset(&own);
    sigaddset(&own, SIGSEGV);
    sigaddset(&own, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &own, &was);
    dock_unsignalled_begin();
    assert_int_equal(dock_signals_blocked(), (uint64_t)1 << (SIGSEGV - 1) | (uint64_t)1 << (SIGUSR2 - 1));
    dock_unsignalled_faults();
    assert_true(blocks(SIGSEGV) && !blocks(SIGBUS));
    dock_unsignalled_end();
    assert_true(blocks(SIGSEGV) && blocks(SIGUSR2) && !blocks(SIGUSR1));
    pthread_sigmask(SIG_SETMASK, &was, NULL);
}

static void the_outermost_end_allows_cancellation_again(void **state)
{
    int was;

    (void)state;
    dock_uncancelled_begin();
    dock_uncancelled_begin();
    assert_false(is_cancelled_at_points());
    dock_uncancelled_end();
    assert_false(is_cancelled_at_points());
    dock_uncancelled_end();
    assert_true(is_cancelled_at_points());

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &was);
    dock_uncancelled_begin();
    dock_uncancelled_end();
    assert_false(is_cancelled_at_points());
    pthread_setcancelstate(was, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_signal_is_handled_and_faults_when_asked_for),
        cmocka_unit_test(what_the_program_blocks_stays_blocked),
        cmocka_unit_test(the_outermost_end_allows_cancellation_again),
    };

    return cmocka_run_group_tests_name("locks of cold calls", tests, NULL, NULL);
}
