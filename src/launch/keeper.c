// SPDX-License-Identifier: MIT
#include "launch/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/job.h"

enum { TRIES = 100, TRY_MS = 10 }; // for a second

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    remove(path);
    return 0;
}

static void remove_directory(const char *dir)
{
    nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

// A PE that is being killed may still make a file.
static void remove_at_last(const char *dir)
{
    struct timespec nap = {.tv_nsec = TRY_MS * 1000000l};

    remove_directory(dir);
    for (unsigned i = 0; i < TRIES && access(dir, F_OK) == 0; i++) {
        nanosleep(&nap, NULL);
        remove_directory(dir);
    }
}

// Which groups there are now, as the launcher tells.
static void listen_to(int from, pid_t group[DOCK_JOB_MAX])
{
    pid_t pid;

    while (read(from, &pid, sizeof pid) == (ssize_t)sizeof pid) {
        pid_t had = pid > 0 ? 0 : -pid;
        unsigned i = 0;
        while (i < DOCK_JOB_MAX && group[i] != had)
            i++;
        if (i < DOCK_JOB_MAX)
            group[i] = pid > 0 ? pid : 0;
    }
}

static void keep(int from, const char *dir)
{
    static pid_t group[DOCK_JOB_MAX]; // 0: nobody's
    sigset_t all;

    setsid(); // what ends the launcher's group is not for us
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    // Who reads the job's output waits for its end only.
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        close(fd);
    listen_to(from, group);
    for (unsigned i = 0; i < DOCK_JOB_MAX; i++)
        if (group[i])
            kill(-group[i], SIGKILL);
    remove_at_last(dir);
}

static FILE *open_children(void)
{
    return fopen("/proc/thread-self/children", "re"); // the launcher has one thread
}

static int remember_children(struct dock_keeper *k)
{
    FILE *list = open_children();
    int pid, err = 0;

    while (list && !err && fscanf(list, "%d", &pid) == 1) {
        pid_t *more = realloc(k->before, (k->n_before + 1) * sizeof *more);
        if (more) {
            k->before = more;
            k->before[k->n_before++] = pid;
        } else {
            err = -ENOMEM;
        }
    }
    if (list)
        fclose(list);
    return err;
}

static bool was_before(const struct dock_keeper *k, pid_t pid)
{
    unsigned i = 0;

    while (i < k->n_before && k->before[i] != pid)
        i++;
    return i < k->n_before;
}

int dock_keeper_start(struct dock_keeper *k, const char *dir)
{
    int end[2];
    pid_t pid;

    errno = -remember_children(k);
    if (errno || pipe2(end, O_CLOEXEC))
        goto no_pipe;
    pid = fork();
    if (pid < 0)
        goto no_process;
    if (pid == 0) {
        close(end[1]);
        keep(end[0], dir);
        _exit(0);
    }
    close(end[0]);
    k->pid = pid;
    k->to = end[1];
    return 0;
no_process:
    close(end[0]);
    close(end[1]);
no_pipe:
    fprintf(stderr, "oshrun: no process to keep the job: %s\n", strerror(errno));
    return -errno;
}

void dock_keeper_tell(const struct dock_keeper *k, pid_t pid)
{
    ssize_t ignored = write(k->to, &pid, sizeof pid); // if the keeper was killed, the launcher is still there

    (void)ignored;
}

// The children of this process get the signal, but not the keeper and who was there before. How many.
static unsigned kill_children(const struct dock_keeper *k)
{
    FILE *list = open_children();
    unsigned n = 0;
    int pid;

    while (list && fscanf(list, "%d", &pid) == 1)
        if (pid != k->pid && !was_before(k, pid) && kill(pid, SIGKILL) == 0)
            n++;
    if (list)
        fclose(list);
    return n;
}

void dock_keeper_sweep(const struct dock_keeper *k)
{
    siginfo_t info = {0};

    // One after the other is taken off: whose parent was killed comes to us then.
    while (kill_children(k) && waitid(P_ALL, 0, &info, WEXITED | WNOWAIT) == 0 && info.si_pid != k->pid)
        waitpid(info.si_pid, NULL, 0);
}

void dock_keeper_end(struct dock_keeper *k, const char *dir)
{
    if (k->pid) {
        close(k->to);
        waitpid(k->pid, NULL, 0);
        k->pid = 0;
    }
    free(k->before);
    k->before = NULL;
    k->n_before = 0;
    remove_directory(dir); // if the keeper was killed
}
