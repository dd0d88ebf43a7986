// SPDX-License-Identifier: MIT
// A short copy stores each word once and whole, a long one its last byte last: a child copies step by step,
// and after each instruction this process looks what came. Of a short one it clears that, as a receiver does
// that takes a flag back.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "fabric/bulk.h"
#include "fabric/direct.h"

#define STEPS 200000u
#define LONGEST 70000u
#define EDGE 128u // bytes beside a copy that it must not touch

static const struct row {
    unsigned at, n, word; // where in a cache line, how many bytes, of words of how many
} rows[] = {
    {0, 2, 2},  {6, 2, 2},  {2, 6, 2},  {4, 4, 4},  {8, 8, 8},  {0, 12, 4}, {4, 12, 4}, {2, 14, 2},
    {8, 16, 8}, {4, 24, 4}, {0, 24, 8}, {8, 40, 8}, {8, 48, 8}, {2, 62, 2}, {0, 64, 8},
};

static void __attribute__((noreturn)) copier(char *to, size_t n)
{
    static char from[LONGEST];

    memset(from, 0x5a, sizeof from);
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
        _exit(77);
    raise(SIGSTOP);
    dock_direct_copy(to, from, n);
    raise(SIGSTOP); // no step of an exit, of which a sanitizer makes a long one
    _exit(0);
}

// What this step stored is cleared; how often each byte was is counted.
static void look(char *mem, unsigned *times, const struct row *r)
{
    for (unsigned w = r->at; w < r->at + r->n; w += r->word) {
        unsigned here = 0;
        for (unsigned i = w; i < w + r->word; i++) {
            here += mem[i] == 0x5a;
            times[i] += mem[i] == 0x5a;
            mem[i] = 0;
        }
        if (here && here != r->word)
            fail_msg("%u bytes at %u: the word at %u came by halves (%u bytes)", r->n, r->at, w, here);
    }
}

// A child that stops at each instruction of a copy to `to`.
static pid_t start(char *to, size_t n)
{
    int status;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0)
        copier(to, n);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        printf("skipped: a child must not be traced here\n");
        exit(77);
    }
    return child;
}

// False: it has reached the end.
static bool step(pid_t child)
{
    int status;

    assert_int_equal(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP;
}

static void stop(pid_t child, unsigned steps)
{
    int status;

    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    assert_true(steps < STEPS);
}

static void copy_in_steps(char *mem, const struct row *r)
{
    unsigned times[128] = {0}, steps = 0;
    pid_t child = start(mem + r->at, r->n);
    bool on;

    do {
        on = step(child);
        look(mem, times, r);
    } while (++steps < STEPS && on);
    stop(child, steps);
    for (unsigned i = r->at; i < r->at + r->n; i++)
        if (times[i] != 1)
            fail_msg("%u bytes at %u: byte %u was stored %u times, once is expected", r->n, r->at, i,
                     times[i]);
}

static void each_word_is_stored_once(void **state)
{
    char *mem = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    (void)state;
    assert_ptr_not_equal(mem, MAP_FAILED);
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
        copy_in_steps(mem, &rows[i]);
    munmap(mem, 4096);
}

// How many steps it took.
static unsigned long_copy_in_steps(char *mem, unsigned at, unsigned n)
{
    unsigned steps = 0;
    pid_t child;
    bool on;

    memset(mem, 0, at + n + 1);
    child = start(mem + at, n);
    do {
        on = step(child);
        for (unsigned i = 0; mem[at + n - 1] && i < n; i++)
            if (mem[at + i] != 0x5a)
                fail_msg("%u bytes at %u: the last one is there, and byte %u is not", n, at, i);
    } while (++steps < STEPS && on);
    stop(child, steps);
    assert_int_equal(mem[at + n - 1], 0x5a);
    assert_int_equal(mem[at + n], 0);
    return steps;
}

static void a_long_copy_ends_with_its_last_byte(void **state)
{
    static const unsigned sizes[] = {15,   33,   63,  65, 66, 68, 71, 96, 128, 200, 257,
#ifndef __SANITIZE_THREAD__ // its memcpy takes some steps for each byte
                                     1000, 2049, 4096
#endif
    };
    char *mem = mmap(NULL, 2 * LONGEST, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    (void)state;
    assert_ptr_not_equal(mem, MAP_FAILED);
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (unsigned at = 1; at < 64; at += sizes[i] < 65 ? 2 : 13)
            long_copy_in_steps(mem, at, sizes[i]);
    for (unsigned i = 3; i < sizeof sizes / sizeof *sizes; i++)
        long_copy_in_steps(mem, 0, sizes[i]);
    for (unsigned n = 1; n < 15; n += n < 8 ? 1 : 2) // inside of a word, and across two
        for (unsigned at = 0; at < 8; at++)
            long_copy_in_steps(mem, at, n);
    munmap(mem, 2 * LONGEST);
}

// The second of two of one length begins with its end. Not where the first one took a step for each byte:
// that is a string instruction, which does not turn.
static void a_bulk_copy_ends_with_its_last_byte(void **state)
{
    static const unsigned sizes[] = {32768, 65536, LONGEST};
    char *mem = mmap(NULL, 2 * LONGEST, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    static char from[LONGEST], to[LONGEST];

    (void)state;
#ifdef __SANITIZE_THREAD__
    skip(); // its memcpy takes hundreds of thousands of steps
#endif
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (unsigned turn = 0; turn < 2; turn++) { // the child begins where this thread is
            if (long_copy_in_steps(mem, turn * 8, sizes[i]) > sizes[i] / 2)
                break;
            dock_direct_copy(to, from, sizes[i]);
        }
    munmap(mem, 2 * LONGEST);
}

// By pages of the target, of which the first has some bytes or few: of a whole line, or less.
static void copies_are_whole(const char *name, void (*copy)(char *to, const char *from, size_t n))
{
    static char from[LONGEST + 64], want[LONGEST + 64 + 4096 + EDGE];
    static _Alignas(4096) char to[sizeof want];

    for (unsigned i = 0; i < sizeof from; i++)
        from[i] = (char)(i * 31 + i / 251);
    for (unsigned n = 2000; n < LONGEST; n += n < 5000 ? 41 : n / 13)
        for (unsigned at = 0; at < 64 * 8; at += 11) {
            char *place = to + 4096 - 64 - 32 + at / 8 * (at % 2 + 1);
            size_t all = (size_t)(place - to) + n + EDGE;
            memset(to, 0x77, all);
            memset(want, 0x77, all);
            memcpy(want + (place - to), from + at % 9, n);
            copy(place, from + at % 9, n);
            if (memcmp(to, want, all) != 0)
                fail_msg("%s: %u bytes at %u from %u came wrong", name, n, (unsigned)(place - to), at % 9);
        }
}

static void bulk_copies_are_whole(void **state)
{
    (void)state;
    copies_are_whole("as chosen here", dock_direct_copy);
    for (const struct dock_bulk_way *w = dock_bulk_ways; w->name; w++)
        if (w->runs_here())
            copies_are_whole(w->name, w->copy);
}

static void memory_moves_down(void **state)
{
    static const unsigned sizes[] = {65, 257, 1000, 2048, 5000, 40000, LONGEST}, by[] = {1, 8, 63, 64, 4096};
    static char from[LONGEST + 4096], want[LONGEST];

    (void)state;
    for (unsigned i = 0; i < 2 * sizeof sizes / sizeof *sizes;
         i++) // every second long one begins with its end
        for (unsigned j = 0; j < sizeof by / sizeof *by; j++) {
            unsigned n = sizes[i / 2];
            for (unsigned k = 0; k < n + by[j]; k++)
                from[k] = (char)(k * 31 + k / 251);
            memcpy(want, from + by[j], n);
            dock_direct_copy(from, from + by[j], n);
            if (memcmp(from, want, n))
                fail_msg("%u bytes moved down by %u came wrong", n, by[j]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_word_is_stored_once),
        cmocka_unit_test(a_long_copy_ends_with_its_last_byte),
        cmocka_unit_test(a_bulk_copy_ends_with_its_last_byte),
        cmocka_unit_test(bulk_copies_are_whole),
        cmocka_unit_test(memory_moves_down),
    };

    return cmocka_run_group_tests_name("copies", tests, NULL, NULL);
}
