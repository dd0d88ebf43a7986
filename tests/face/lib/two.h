// SPDX-License-Identifier: MIT
// What the tests of all faces share: checks, and two processes with a socket between them. A check that fails
// ends the test with the place and what was expected; in a child process it ends the child with status 1.
#ifndef DOCK_TESTS_FACE_LIB_TWO_H
#define DOCK_TESTS_FACE_LIB_TWO_H

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

void check_failed(const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4), noreturn));

#define CHECK(cond)                                                                                          \
    do {                                                                                                     \
        if (!(cond))                                                                                         \
            check_failed(__FILE__, __LINE__, "expected: %s (errno %d)", #cond, errno);                       \
    } while (0)

#define CHECK_INT(got, expected)                                                                             \
    do {                                                                                                     \
        long long got_ = (long long)(got), expected_ = (long long)(expected);                                \
        if (got_ != expected_)                                                                               \
            check_failed(__FILE__, __LINE__, "%s: expected %lld, got %lld", #got, expected_, got_);          \
    } while (0)

// Run `left` here and `right` in a child; `sock` connects them. Returns when both ended; the test fails if
// the child did not end with 0. No device may be open.
void two_processes(void (*left)(int sock), void (*right)(int sock));
void tell(int sock, const void *p, size_t n);
void hear(int sock, void *p, size_t n);
void meet(int sock); // both sides reach this line before either goes on

#endif
