// SPDX-License-Identifier: MIT
// What the fuzz harnesses share: numbers and memory out of nothing, and rounds that are processes of their
// own.
#ifndef DOCK_TESTS_FUZZ_LIB_FUZZ_H
#define DOCK_TESTS_FUZZ_LIB_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FUZZ_BYTES = 4096 };

static uint64_t state_of_random;

static inline uint64_t chance(void) // splitmix64
{
    uint64_t z = state_of_random += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

// NULL one time in four, else memory of zeros, ones or noise. Pointers inside noise would be the program's
// own fault: structures that hold some are filled by the callers.
static inline void *anything(void)
{
    static _Alignas(16) char room[16][FUZZ_BYTES];
    static unsigned next;
    char *p = room[next++ % 16];

    switch (chance() % 4) {
    case 0:
        return NULL;
    case 1:
        memset(p, 0, FUZZ_BYTES);
        break;
    case 2:
        memset(p, 0xff, FUZZ_BYTES);
        break;
    default:
        for (size_t i = 0; i < FUZZ_BYTES; i += 8) {
            uint64_t v = chance();

            memcpy(p + i, &v, 8);
        }
    }
    return p;
}

// Each round is a process that must end by itself with 0: no signal, no hang. `test` is the name below
// tests/.
static inline void fuzz_rounds(unsigned rounds, unsigned seconds, int (*round_of)(void), const char *test)
{
    const char *wanted = getenv("DRYDOCK_SEED");
    uint64_t first = wanted ? strtoull(wanted, NULL, 0) : (uint64_t)time(NULL);

    for (uint64_t i = 0; i < (wanted ? 1 : rounds); i++) {
        pid_t pid = fork();
        int status = 0;

        assert_true(pid >= 0);
        if (pid == 0) {
            alarm(seconds);
            state_of_random = first + i;
            _exit(round_of());
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (status != 0)
            fail_msg(
                "expected exit 0, got %s %d; again: DRYDOCK_SEED=%llu scripts/run-one build/dev/tests/%s",
                WIFSIGNALED(status) ? "signal" : "exit",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), (unsigned long long)(first + i),
                test);
    }
}

#endif
