// SPDX-License-Identifier: MIT
// The life of a program in steps, up and down again, once for every call of the C library that can fail in
// it. Included by one program after nth_calls.h.
#ifndef TESTS_FAULT_NTH_LIFE_H
#define TESTS_FAULT_NTH_LIFE_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/log.h"
#include "fault/nth_calls.h"

// Both answer 0 or a positive code.
struct step {
    const char *name;
    int (*up)(void), (*down)(void);
};

static const struct step *steps;
static int nsteps;
static const char *program;

static int nothing(void)
{
    return 0;
}

// A creator's answer as a positive errno value.
static int made(const void *object)
{
    return object ? 0 : errno ? errno : -1;
}

static int fault = EIO; // how the interface says that a file cannot be read or looked at
static int refusals[2]; // how a peer in this process that lacks something answers; 0: no such peer

// What a failing call may become: itself, or what the calls document for want of something.
static bool documented(int ret)
{
    if (ret == refusals[0] || ret == refusals[1])
        return true;
    if (ret == fault && atomic_load(&failed_code) == EIO)
        return true;
    return failed_becomes(ret);
}

static const char *at; // the step, for messages

// Up as far as it goes and down again: what `up` said, or -1 when a `down` fails.
static int live(void)
{
    int n = 0, ret = 0;

    for (; n < nsteps && !ret; n += !ret) {
        at = steps[n].name;
        errno = 0;
        ret = steps[n].up();
    }
    while (n-- > 0)
        if (steps[n].down()) {
            at = steps[n].name;
            ret = -1;
        }
    return ret;
}

// ---- what is left

struct wealth {
    long fds, maps, blocks;
};

static struct wealth count(void)
{
    DIR *d = opendir("/proc/self/fd");
    long n = 0;

    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return (struct wealth){n, live_maps, live_blocks};
}

// What threads of the libraries close, they close when they come to it.
static struct wealth settled(const struct wealth *wanted)
{
    struct wealth w = count();

    for (int i = 0; i < 400 && memcmp(&w, wanted, sizeof w) != 0; i++) {
        usleep(5000);
        w = count();
    }
    return w;
}

static int wrong(long n, const char *what, long expected, long got)
{
    const char *call = atomic_load(&failed_call);

    printf("call %ld (%s) failed, step %s: %s: expected %ld, got %ld (%s)\n"
           "again: scripts/run-one build/dev/tests/%s %ld\n",
           n, call ? call : "none", at, what, expected, got, dock_log_last(), program, n);
    return 1;
}

static int one(long n, struct wealth *before, bool *failed, bool *error)
{
    int bad = 0, ret;

    dock_debug("%s", "");
    atomic_store(&failed_call, NULL);
    arm(n);
    ret = live();
    arm(0);
    struct wealth after = settled(before);
    *failed = atomic_load(&failed_call) != NULL;
    *error = ret != 0;
    if (ret && (!*failed || !documented(ret)))
        bad = wrong(n, "the failed call's code, or a documented one", atomic_load(&failed_code), ret);
    if (ret && !dock_log_last()[0])
        bad = wrong(n, "characters of a reason", 1, 0);
    if (after.fds != before->fds)
        bad = wrong(n, "descriptors", before->fds, after.fds);
    if (after.maps != before->maps)
        bad = wrong(n, "mappings", before->maps, after.maps);
    if (after.blocks != before->blocks)
        bad = wrong(n, "heap blocks", before->blocks, after.blocks);
    *before = after; // a leak is told once
    return bad;
}

// In a process that has not asked for anything yet, the n-th call of the first step fails; what could not be
// done once is then done by the next life. 0: so it was; 2: nothing failed any more; 1: told what is wrong.
static int first_of_all(long n)
{
    int all = nsteps, ret, again;

    nsteps = 1;
    arm(n);
    ret = live();
    arm(0);
    nsteps = all;
    if (ret < 0 || (ret && !atomic_load(&failed_call)))
        return wrong(n, "a positive errno value of a failed call", atomic_load(&failed_code), ret);
    again = live();
    if (again)
        return wrong(n, "the whole life after a start that failed", 0, again);
    return atomic_load(&failed_call) ? 0 : 2;
}

// True: nothing failed any more.
static bool first(long n, int *bad)
{
    int status;
    pid_t pid = fork();

    if (!pid) {
        status = first_of_all(n);
        fflush(stdout); // what it said is in our copy of the buffer alone
        _exit(status);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return false;
    *bad |= !WIFEXITED(status) || WEXITSTATUS(status) == 1;
    return WIFEXITED(status) && WEXITSTATUS(status) == 2;
}

static inline int first_main(void)
{
    int bad = 0, clean = 0;
    long n = 0;

    fflush(stdout);
    while (clean < 5)
        clean = first(++n, &bad) ? clean + 1 : 0;
    printf("%ld calls of a first start failed in turn\n", n - 5);
    return bad;
}

// At least `least` failures must end in an error: a test that finds fewer looks at nothing.
static int nth_main(int argc, char **argv, int least)
{
    bool failed = true, error;
    int bad = 0, errors = 0, clean = 0;
    long n = 0;

    setvbuf(stdout, NULL, _IONBF, 0); // no heap for words
    setenv("DRYDOCK_STOPPED_MS", "300", 0);
    for (int i = 0; i < 2; i++) // what a process does once happens here
        if (live())
            return wrong(0, "result without a failure", 0, 1);
    if (argc < 2)
        dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
    struct wealth before = count();
    if (argc > 1)
        return one(atol(argv[1]), &before, &failed, &error);
    // The engine's calls come when they come: the end is where nothing has failed several times in a row.
    while (clean < 5) {
        bad |= one(++n, &before, &failed, &error);
        errors += error;
        clean = failed ? 0 : clean + 1;
    }
    printf("%ld calls failed in turn, %d of them ended in an error, the others were done without\n", n - 5,
           errors);
    return bad || errors < least;
}

#endif
