// SPDX-License-Identifier: MIT
// Processes of a fault test: started before any device is open, watched with a limit on every wait.
#ifndef TESTS_LIB_FORK_H
#define TESTS_LIB_FORK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

// What sanitizers and emulation stretch time by.
unsigned test_slow(void);

static inline bool test_long(void)
{
#ifdef DOCK_LONG
    return true;
#else
    const char *wants = getenv("DRYDOCK_LONG");
    return wants && *wants && strcmp(wants, "0") != 0;
#endif
}

void test_nap_us(unsigned us);

// Run body(arg) in a child that dies with us and whose return is its exit status.
pid_t test_fork(int (*body)(void *), void *arg);

enum test_end { TEST_RUNS, TEST_STOPPED, TEST_EXITED, TEST_KILLED };

// What became of a child since the last look; *status is its exit status or signal.
enum test_end test_look(pid_t pid, int *status);
// Wait up to `ms` for anything but TEST_RUNS.
enum test_end test_await(pid_t pid, int *status, unsigned ms);
void test_kill(pid_t pid); // and reap

// Memory that the children share with us, zeroed.
void *test_shared(size_t size);

#endif
