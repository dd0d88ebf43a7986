// SPDX-License-Identifier: MIT
// One line in words on stderr for whoever first knows the cause. DRYDOCK_LOG = error (default), warn,
// info or debug. errno survives a call. Never called on a path that a correct program takes per request.
#ifndef DOCK_BASE_LOG_H
#define DOCK_BASE_LOG_H

#include <errno.h>
#include <stdbool.h>
#include <string.h>

enum dock_log_level { DOCK_LOG_ERROR, DOCK_LOG_WARN, DOCK_LOG_INFO, DOCK_LOG_DEBUG };

bool dock_log_on(enum dock_log_level level);

void dock_error(const char *fmt, ...) __attribute__((format(printf, 1, 2), cold));
void dock_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2), cold));
void dock_info(const char *fmt, ...) __attribute__((format(printf, 1, 2), cold));
void dock_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2), cold));

// The program did something that the manual forbids and will be told so by an error code: level info,
// so that a program which probes limits on purpose stays quiet. Returns `code`, to end a check in one line.
int dock_refuse(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3), cold));

// An allocation of the process's heap failed. Inline, so that the compiler sees that it is never 0.
static inline int dock_no_memory(const char *what)
{
    dock_error("no memory for %s", what);
    return -ENOMEM;
}

// What the device needs of the system is not to be had. Returns `code`, a negative errno value.
static inline int dock_cannot(const char *what, int code)
{
    dock_error("%s: %s", what, strerror(-code));
    return code;
}

// Every line goes to `sink` first, which answers whether it took care of it; else it goes to stderr as
// DRYDOCK_LOG allows. One sink per process, NULL for none. The sink may be called by any thread, also while
// the device's locks are held, and must not call the device.
typedef bool (*dock_log_sink)(enum dock_log_level level, const char *line);
void dock_log_set_sink(dock_log_sink sink);

// Tests read the last line that was logged by this thread, at any level, shown or not ("" if none).
const char *dock_log_last(void);

#endif
