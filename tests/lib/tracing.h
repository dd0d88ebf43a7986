// SPDX-License-Identifier: MIT
// Where nobody may trace, no thread can be stopped unseen, and memory beside threads stays where it is: tests
// of what is adopted there have nothing to look at.
#ifndef TESTS_LIB_TRACING_H
#define TESTS_LIB_TRACING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/ptrace.h>
#include <unistd.h>

#include "lib/fork.h"

static inline int tracing_waits(void *arg)
{
    (void)arg;
    return pause();
}

static inline bool tracing_works(void)
{
    pid_t child = test_fork(tracing_waits, NULL);
    bool works = child > 0 && !ptrace(PTRACE_SEIZE, child, 0, 0);

    if (child > 0)
        test_kill(child);
    return works;
}

static inline void tracing_or_skip(void)
{
    if (tracing_works())
        return;
    print_message("skipped: nobody may be traced here\n");
    skip();
}

#endif
