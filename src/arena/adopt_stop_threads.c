// SPDX-License-Identifier: MIT
// Which threads a process has, from its directory in /proc: also for a helper that is no thread of it. The
// numbers there are those of the pid namespace that /proc was mounted for. In another one, under its parent's
// /proc for instance, they name other threads or none, and nobody could be stopped by them.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "arena/adopt_stop_own.h"
#include "arena/procfile.h"

#define MISSED 8 // passes in a row that found fewer threads than there are

struct dock_stop_list dock_stopping;

bool dock_threads_room(void)
{
    dock_stopping.thread =
        dock_room_once(dock_stopping.thread, DOCK_STOP_THREADS * sizeof(struct dock_stop_thread));
    return dock_stopping.thread;
}

static void add_number(char *text, int32_t n)
{
    char digits[12], *at = text + strlen(text);
    unsigned count = 0;

    for (; n; n /= 10)
        digits[count++] = (char)('0' + n % 10);
    while (count)
        *at++ = digits[--count];
    *at = '\0';
}

bool dock_threads_begin(void)
{
    char own[64], shown[sizeof own] = "";

    dock_stopping.pid = getpid();
    dock_stopping.caller = (int32_t)dock_rawcall(SYS_gettid, 0, 0, 0, 0, 0, 0);
    dock_stopping.threads = 0;
    dock_stopping.missed = 0;
    strcpy(dock_stopping.path, "/proc/");
    add_number(dock_stopping.path, dock_stopping.pid);
    strcat(dock_stopping.path, "/task");
    strcpy(own, dock_stopping.path + strlen("/proc/"));
    strcat(own, "/");
    add_number(own, dock_stopping.caller);
    return dock_rawcall(SYS_readlinkat, AT_FDCWD, (long)"/proc/thread-self", (long)shown, sizeof shown - 1, 0,
                        0) > 0 &&
           !strcmp(own, shown);
}

unsigned dock_threads_count(void)
{
    struct dock_proc tasks;

    if (dock_proc_open(DOCK_PROC_TASKS, &tasks))
        return 0;
    dock_proc_done(&tasks);
    return (unsigned)tasks.st.st_nlink - 2;
}

static long read_file(const char *path, char *text, size_t size)
{
    long fd, n;

    fd = dock_rawcall(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (fd < 0)
        return fd;
    n = dock_rawcall(SYS_read, fd, (long)text, (long)size - 1, 0, 0, 0);
    dock_rawcall(SYS_close, fd, 0, 0, 0, 0, 0);
    text[n < 0 ? 0 : n] = '\0';
    return n;
}

long dock_thread_file(int32_t tid, const char *name, char *text, size_t size)
{
    char path[64];

    strcpy(path, dock_stopping.path);
    strcat(path, "/");
    add_number(path, tid);
    strcat(path, name);
    return read_file(path, text, size);
}

// Of the text of a file "stat".
static char state_in(const char *text)
{
    const char *name_end = strrchr(text, ')');

    return name_end && name_end[1] ? name_end[2] : '\0';
}

bool dock_thread_is_dead(int32_t tid)
{
    char text[256];
    long n = dock_thread_file(tid, "/stat", text, sizeof text);

    if (n <= 0)
        return n == 0 || n == -ENOENT || n == -ESRCH;
    return state_in(text) == 'Z' || state_in(text) == 'X';
}

bool dock_process_is_stopped(int32_t pid)
{
    char path[64], text[256];

    strcpy(path, "/proc/");
    add_number(path, pid);
    strcat(path, "/stat");
    return read_file(path, text, sizeof text) > 0 && state_in(text) == 'T';
}

static int32_t number(const char *s)
{
    int32_t n = 0;

    for (; *s >= '0' && *s <= '9'; s++)
        n = n * 10 + (*s - '0');
    return *s ? 0 : n;
}

static bool known(int32_t tid)
{
    for (uint32_t i = 0; i < dock_stopping.threads; i++)
        if (dock_stopping.thread[i].tid == tid)
            return true;
    return false;
}

// How many are fresh; those that are no more are counted too.
static int take_listed(long dir, dock_threads_take *take, uint32_t *gone)
{
    _Alignas(8) char room[4096] = {0};
    int fresh = 0;
    long n;

    while ((n = dock_rawcall(SYS_getdents64, dir, (long)room, sizeof room, 0, 0, 0)) > 0)
        for (long at = 0; at < n;) {
            const struct dock_dirent *e = (const struct dock_dirent *)(void *)(room + at);
            int32_t tid = number(e->name);
            at += e->length;
            if (!tid || tid == dock_stopping.caller || known(tid))
                continue;
            if (dock_stopping.threads == DOCK_STOP_THREADS)
                return -1;
            struct dock_stop_thread *t = &dock_stopping.thread[dock_stopping.threads];
            *t = (struct dock_stop_thread){.tid = tid};
            enum dock_taken taken = take(t);
            if (taken == DOCK_REFUSED)
                return -1;
            fresh += taken == DOCK_TAKEN;
            *gone += taken == DOCK_GONE;
        }
    return n < 0 ? -1 : fresh;
}

// Behind a pass that found nobody fresh: are there no others? While threads end the list may leave one out.
static bool all_found(long dir, uint32_t gone)
{
    struct stat st = {.st_nlink = 0}; // the kernel fills it behind the compiler's back

    if (dock_rawcall(SYS_fstat, dir, (long)&st, 0, 0, 0, 0))
        return false;
    return st.st_nlink <= 2u + 1u + dock_stopping.threads + gone;
}

int dock_threads_pass(dock_threads_take *take)
{
    long dir = dock_rawcall(SYS_openat, AT_FDCWD, (long)dock_stopping.path,
                            O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0, 0, 0);
    uint32_t gone = 0;
    int fresh = dir < 0 ? -1 : take_listed(dir, take, &gone);

    if (fresh > 0)
        dock_stopping.missed = 0;
    if (!fresh && !all_found(dir, gone))
        fresh = ++dock_stopping.missed < MISSED ? 1 : -1;
    if (dir >= 0)
        dock_rawcall(SYS_close, dir, 0, 0, 0, 0, 0);
    return fresh;
}
