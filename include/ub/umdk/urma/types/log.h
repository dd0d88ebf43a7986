// SPDX-License-Identifier: MIT
// Log levels and where log lines can be sent.
#ifndef DRYDOCK_URMA_TYPES_LOG_H
#define DRYDOCK_URMA_TYPES_LOG_H

typedef enum urma_vlog_level {
    URMA_VLOG_LEVEL_EMERG = 0,
    URMA_VLOG_LEVEL_ALERT = 1,
    URMA_VLOG_LEVEL_CRIT = 2,
    URMA_VLOG_LEVEL_ERR = 3,
    URMA_VLOG_LEVEL_WARNING = 4,
    URMA_VLOG_LEVEL_NOTICE = 5,
    URMA_VLOG_LEVEL_INFO = 6,
    URMA_VLOG_LEVEL_DEBUG = 7,
    URMA_VLOG_LEVEL_MAX = 8,
} urma_vlog_level_t;

typedef void (*urma_log_cb_t)(int level, char *message);
typedef void (*urma_loc_log_cb)(int level, const char *file, const char *func, int line, char *message);

#endif
