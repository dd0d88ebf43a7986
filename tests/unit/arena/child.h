// SPDX-License-Identifier: MIT
// What the arena's tests share: a child process that talks by single bytes, a directory of one's own, and
// counts of what a process owns.
#ifndef DOCK_TEST_UNIT_ARENA_CHILD_H
#define DOCK_TEST_UNIT_ARENA_CHILD_H

#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

// In a child an assertion of cmocka would jump back into the parent's list of tests: say it and end instead.
#define child_check(condition)                                                                               \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: in the child: not so: %s\n", __FILE__, __LINE__, #condition);            \
            _exit(1);                                                                                        \
        }                                                                                                    \
    } while (0)

struct child {
    pid_t pid;
    int to, from; // ends of pipes
};

static inline void hear(int fd, void *what, size_t size)
{
    if (read(fd, what, size) != (ssize_t)size) {
        fprintf(stderr, "process %d ended in the middle of a talk\n", (int)getpid());
        _exit(1);
    }
}

static inline void say(int fd, const void *what, size_t size)
{
    if (write(fd, what, size) != (ssize_t)size)
        _exit(1);
}

// Run body(arg, self) in a child; `self` talks to us. The child dies with us.
static inline struct child child_start(void (*body)(void *, struct child *), void *arg)
{
    int down[2], up[2];
    struct child c = {.pid = -1};

    if (pipe(down) || pipe(up))
        abort();
    fflush(NULL);
    c.pid = fork();
    if (c.pid == 0) {
        struct child self = {getppid(), up[1], down[0]};
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(down[1]);
        close(up[0]);
        body(arg, &self);
        _exit(0);
    }
    close(down[0]);
    close(up[1]);
    c.to = down[1];
    c.from = up[0];
    return c;
}

// The child's exit status, or minus the signal that ended it.
static inline int child_end(struct child *c)
{
    int status = 0;

    close(c->to);
    close(c->from);
    waitpid(c->pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static inline void child_kill(struct child *c)
{
    kill(c->pid, SIGKILL);
    child_end(c);
}

// A fresh directory of mode 0700; fresh_dir_end removes it and the plain files in it.
static inline char *fresh_dir(void)
{
    const char *base = getenv("DRYDOCK_DIR");
    char path[96];

    snprintf(path, sizeof path, "%s/unitXXXXXX", base ? base : "/tmp");
    if (!mkdtemp(path))
        abort();
    return strdup(path);
}

static inline void fresh_dir_end(char *path)
{
    DIR *d = opendir(path);
    struct dirent *e;

    while (d && (e = readdir(d)))
        if (e->d_name[0] != '.')
            unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        closedir(d);
    rmdir(path);
    free(path);
}

static inline int open_fds(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;

    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

// How many mappings have `name` in their line of /proc/self/maps.
static inline int mappings_of(const char *name)
{
    FILE *f = fopen("/proc/self/maps", "re");
    char line[512];
    int n = 0;

    while (fgets(line, sizeof line, f))
        n += strstr(line, name) != NULL;
    fclose(f);
    return n;
}

// User-mode emulation makes up parts of /proc, and leaves out resource limits and some advice on memory.
static inline bool emulated(void)
{
    return getenv("DRYDOCK_EMULATED") != NULL;
}

static inline unsigned slow_factor(void)
{
    const char *s = getenv("DRYDOCK_SLOW");
    unsigned n = s ? (unsigned)atoi(s) : 0;

    return n ? n : 1;
}

#endif
