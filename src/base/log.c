// SPDX-License-Identifier: MIT
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/filesize.h"
#include "base/rawcall.h"

static const char *const level_name[] = {"error", "warn", "info", "debug"};
static _Thread_local char last_line[240];
static _Atomic(dock_log_sink) line_sink;

void dock_log_set_sink(dock_log_sink sink)
{
    atomic_store_explicit(&line_sink, sink, memory_order_release); // pairs with put()
}

static enum dock_log_level threshold(void)
{
    const char *want = getenv("DRYDOCK_LOG");

    for (unsigned i = 0; want && i < sizeof level_name / sizeof *level_name; i++)
        if (!strcmp(want, level_name[i]))
            return (enum dock_log_level)i;
    return DOCK_LOG_ERROR;
}

bool dock_log_on(enum dock_log_level level)
{
    return level <= threshold();
}

static void put(enum dock_log_level level, const char *fmt, va_list args)
{
    struct dock_filesize limit;
    char line[300];
    int saved = errno;
    dock_log_sink sink =
        atomic_load_explicit(&line_sink, memory_order_acquire); // pairs with dock_log_set_sink

    // NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): the callers have started it
    vsnprintf(last_line, sizeof last_line, fmt, args);
    if (!(sink && sink(level, last_line)) && dock_log_on(level)) {
        int n =
            snprintf(line, sizeof line, "drydock[%d] %s: %s\n", (int)getpid(), level_name[level], last_line);
        dock_filesize_begin(&limit); // it may be a file
        // One write per line, so that lines of several processes on one terminal do not mix. Not by libc's
        // call, in which a thread could be cancelled with our locks.
        dock_rawcall(SYS_write, STDERR_FILENO, (long)line, n < (int)sizeof line ? n : (int)sizeof line - 1, 0,
                     0, 0);
        dock_filesize_end(&limit);
    }
    errno = saved;
}

void dock_error(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    put(DOCK_LOG_ERROR, fmt, args);
    va_end(args);
}

void dock_warn(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    put(DOCK_LOG_WARN, fmt, args);
    va_end(args);
}

void dock_info(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    put(DOCK_LOG_INFO, fmt, args);
    va_end(args);
}

void dock_debug(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    put(DOCK_LOG_DEBUG, fmt, args);
    va_end(args);
}

int dock_refuse(int code, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    put(DOCK_LOG_INFO, fmt, args);
    va_end(args);
    return code;
}

const char *dock_log_last(void)
{
    return last_line;
}
