// SPDX-License-Identifier: MIT
#include "lib/fork.h"

#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

unsigned test_slow(void)
{
    const char *s = getenv("DRYDOCK_SLOW");
    int n = s ? atoi(s) : 1;

    return n > 1 ? (unsigned)n : 1;
}

void test_nap_us(unsigned us)
{
    struct timespec t = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000l};

    nanosleep(&t, NULL);
}

pid_t test_fork(int (*body)(void *), void *arg)
{
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(body(arg));
    }
    return pid;
}

enum test_end test_look(pid_t pid, int *status)
{
    int s = 0;

    if (waitpid(pid, &s, WNOHANG | WUNTRACED) <= 0)
        return TEST_RUNS;
    if (WIFSTOPPED(s)) {
        *status = WSTOPSIG(s);
        return TEST_STOPPED;
    }
    *status = WIFEXITED(s) ? WEXITSTATUS(s) : WTERMSIG(s);
    return WIFEXITED(s) ? TEST_EXITED : TEST_KILLED;
}

enum test_end test_await(pid_t pid, int *status, unsigned ms)
{
    uint64_t until = dock_now_ns() + ms * 1000000ull;
    enum test_end end;

    while ((end = test_look(pid, status)) == TEST_RUNS && dock_now_ns() < until)
        test_nap_us(100);
    return end;
}

void test_kill(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

void *test_shared(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        abort();
    return p;
}
