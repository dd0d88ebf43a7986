// SPDX-License-Identifier: MIT
// timeout: 300 The n-th allocation or system call of a PE's whole life fails, for every n until nothing
// fails any more, each in a process of its own. The call that cannot do its work says so by its result, or,
// where OpenSHMEM has no result for it, ends the program with a reason; nothing crashes or hangs, and what
// is left of the life works. One failure: nth_shmem_test N
#ifdef DOCK_SANITIZED
int main(void)
{
    return 77; // a sanitizer's runtime needs these functions for itself
}
#else
#include <shmem.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "drydock/shmem.h"
#include "fault/nth_calls.h"

enum { MOST = 5000, NOTHING_FAILED = 3, WRONG = 4, SECONDS = 60 };

static long word;

static void must(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "wrong: %s\n", what);
    _exit(WRONG);
}

static void with_context(void)
{
    shmem_ctx_t c;
    long one = 1;

    if (shmem_ctx_create(0, &c)) {
        must(c == SHMEM_CTX_INVALID, "a context that was not made");
        return;
    }
    shmem_ctx_long_put_nbi(c, &word, &one, 1, 0);
    shmem_ctx_quiet(c);
    must(word == 1, "a put on a context");
    shmem_ctx_destroy(c);
}

static void with_heap(void)
{
    long *p = shmem_malloc(10 * sizeof *p), *more;

    if (!p)
        return;
    p[0] = 5;
    more = shmem_realloc(p, 100000);
    p = more ? more : p;
    must(p[0] == 5, "what realloc keeps");
    shmem_long_atomic_add(p, 2, 0);
    shmem_quiet();
    must(shmem_long_g(p, 0) == 7, "an atomic in the heap");
    shmem_free(p);
}

static void with_team(void)
{
    shmem_team_t t;

    if (shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 1, NULL, 0, &t) == 0)
        shmem_team_destroy(t);
}

static void with_table(void)
{
    struct drydock_table *t;

    if (drydock_table_open(2, 16, DRYDOCK_TABLE_RELAYS, &t))
        return;
    must(drydock_table_queue(t, 0, 0, 1) != NULL, "a table without its queue");
    drydock_table_close(t);
}

static void life(void)
{
    shmem_init();
    with_context();
    with_heap();
    with_team();
    with_table();
    with_heap();
    shmem_finalize();
}

static void child(uint64_t n, int words)
{
    dup2(words, STDERR_FILENO);
    alarm(SECONDS);
    arm((long)n);
    life();
    _exit(dock_peek64(&countdown) ? NOTHING_FAILED : 0);
}

// false: nothing failed any more.
static bool nth(uint64_t n, int *wrong)
{
    char text[4096] = "";
    int words[2], how;

    if (pipe(words))
        abort();
    fcntl(words[1], F_SETPIPE_SZ, 1 << 20); // the child never waits for a reader
    pid_t pid = fork();
    if (pid == 0)
        child(n, words[1]);
    close(words[1]);
    waitpid(pid, &how, 0);
    ssize_t got = read(words[0], text, sizeof text - 1);
    close(words[0]);
    if (WIFEXITED(how) && WEXITSTATUS(how) == NOTHING_FAILED)
        return false;
    if (!(WIFEXITED(how) && (WEXITSTATUS(how) == 0 || (WEXITSTATUS(how) == 1 && strstr(text, "error"))))) {
        printf("FAILED call %llu: expected a result or an end with a reason, got status %#x and\n%.*s\n"
               "again: nth_shmem_test %llu\n",
               (unsigned long long)n, (unsigned)how, (int)(got > 0 ? got : 0), text, (unsigned long long)n);
        (*wrong)++;
    }
    return true;
}

int main(int argc, char **argv)
{
    uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    int wrong = 0;

    if (argc > 1) {
        child(n, STDERR_FILENO);
        return 0;
    }
    while (n < MOST && nth(n, &wrong))
        n++;
    printf("%llu calls failed in turn, %d wrong\n", (unsigned long long)(n - 1), wrong);
    return wrong || n < 20 || n == MOST;
}
#endif
