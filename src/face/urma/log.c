// SPDX-License-Identifier: MIT
// The program's view of the log. Lines of the device and of this library pass the URMA level, then go to the
// program's own function if it registered one, else to stderr as DRYDOCK_LOG allows.
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <ub/umdk/urma/urma_api.h>

#include "base/log.h"

void urma_log(const char *function, int line, urma_vlog_level_t level, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
bool urma_log_drop(urma_vlog_level_t level);

enum { LINE = 512 };

static atomic_int threshold = URMA_VLOG_LEVEL_INFO;
// At most one of the two is set; each is loaded once before it is called.
static _Atomic(urma_log_cb_t) plain_function;
static _Atomic(urma_loc_log_cb) located_function;
static _Thread_local char tag[URMA_MAX_NAME] = "-";

struct where {
    const char *file, *function;
    int line;
};

// True when the program has a function for its lines. It gets a copy, since its argument is not const.
static bool tell_program(int level, struct where where, const char *text)
{
    urma_loc_log_cb located = atomic_load_explicit(&located_function, memory_order_acquire);
    urma_log_cb_t plain = atomic_load_explicit(&plain_function, memory_order_acquire);
    char copy[LINE + URMA_MAX_NAME + 4];

    if (!located && !plain)
        return false;
    if (strcmp(tag, "-") == 0)
        snprintf(copy, sizeof(copy), "%s", text);
    else
        snprintf(copy, sizeof(copy), "[%s] %s", tag, text);
    if (located)
        located(level, where.file, where.function, where.line, copy);
    else
        plain(level, copy);
    return true;
}

static bool take_line(enum dock_log_level level, const char *text)
{
    static const urma_vlog_level_t levels[] = {
        [DOCK_LOG_ERROR] = URMA_VLOG_LEVEL_ERR,
        [DOCK_LOG_WARN] = URMA_VLOG_LEVEL_WARNING,
        [DOCK_LOG_INFO] = URMA_VLOG_LEVEL_INFO,
        [DOCK_LOG_DEBUG] = URMA_VLOG_LEVEL_DEBUG,
    };

    return urma_log_drop(levels[level]) ||
           tell_program((int)levels[level], (struct where){"drydock", "", 0}, text);
}

static void __attribute__((constructor)) start(void)
{
    static const struct {
        const char *word;
        int level;
    } words[] = {{"fatal", URMA_VLOG_LEVEL_CRIT},
                 {"error", URMA_VLOG_LEVEL_ERR},
                 {"warning", URMA_VLOG_LEVEL_WARNING},
                 {"info", URMA_VLOG_LEVEL_INFO},
                 {"debug", URMA_VLOG_LEVEL_DEBUG}};
    const char *want = getenv("URMA_LOG_LEVEL");

    for (size_t i = 0; want && i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcasecmp(want, words[i].word) == 0)
            atomic_store_explicit(&threshold, words[i].level, memory_order_relaxed);
    }
    dock_log_set_sink(take_line);
}

// The sink must be gone before the code of it is.
static void __attribute__((destructor)) stop(void)
{
    dock_log_set_sink(NULL);
}

bool urma_log_drop(urma_vlog_level_t level)
{
    return (int)level > atomic_load_explicit(&threshold, memory_order_relaxed);
}

void urma_log(const char *function, int line, urma_vlog_level_t level, const char *format, ...)
{
    char text[LINE];
    va_list args;
    size_t n;

    if (!format || urma_log_drop(level))
        return;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    n = strlen(text);
    if (n && text[n - 1] == '\n')
        text[n - 1] = '\0';
    if (tell_program((int)level, (struct where){"", function ? function : "", line}, text))
        return;
    if (level <= URMA_VLOG_LEVEL_ERR)
        dock_error("%s: %s", function ? function : "-", text);
    else if (level == URMA_VLOG_LEVEL_WARNING)
        dock_warn("%s: %s", function ? function : "-", text);
    else if (level <= URMA_VLOG_LEVEL_INFO)
        dock_info("%s: %s", function ? function : "-", text);
    else
        dock_debug("%s: %s", function ? function : "-", text);
}

urma_status_t urma_register_log_func(urma_log_cb_t func)
{
    if (!func)
        return (urma_status_t)dock_refuse(URMA_EINVAL, "urma_register_log_func: no function");
    atomic_store_explicit(&located_function, NULL, memory_order_release);
    atomic_store_explicit(&plain_function, func, memory_order_release); // both pair with tell_program
    return URMA_SUCCESS;
}

urma_status_t urma_register_loc_log_func(urma_loc_log_cb func)
{
    if (!func)
        return (urma_status_t)dock_refuse(URMA_EINVAL, "urma_register_loc_log_func: no function");
    atomic_store_explicit(&plain_function, NULL, memory_order_release);
    atomic_store_explicit(&located_function, func, memory_order_release); // both pair with tell_program
    return URMA_SUCCESS;
}

urma_status_t urma_unregister_log_func(void)
{
    atomic_store_explicit(&plain_function, NULL, memory_order_release);
    atomic_store_explicit(&located_function, NULL, memory_order_release); // both pair with tell_program
    return URMA_SUCCESS;
}

urma_vlog_level_t urma_log_get_level(void)
{
    return (urma_vlog_level_t)atomic_load_explicit(&threshold, memory_order_relaxed);
}

void urma_log_set_level(urma_vlog_level_t level)
{
    if ((unsigned)level < URMA_VLOG_LEVEL_MAX)
        atomic_store_explicit(&threshold, (int)level, memory_order_relaxed);
}

const char *urma_log_get_thread_tag(void)
{
    return tag;
}

void urma_log_set_thread_tag(const char *new_tag)
{
    if (new_tag && strnlen(new_tag, sizeof(tag)) < sizeof(tag))
        strcpy(tag, new_tag);
    else
        dock_refuse(0, "urma_log_set_thread_tag: a tag has 0 to %d characters", URMA_MAX_NAME - 1);
}
