// SPDX-License-Identifier: MIT
// The log.
#ifndef DRYDOCK_URMA_API_LOG_H
#define DRYDOCK_URMA_API_LOG_H

#include "../urma_types.h"

#ifdef __cplusplus
extern "C" {
#endif

urma_status_t urma_register_log_func(urma_log_cb_t func);

urma_status_t urma_register_loc_log_func(urma_loc_log_cb func);

urma_status_t urma_unregister_log_func(void);

urma_vlog_level_t urma_log_get_level(void);

void urma_log_set_level(urma_vlog_level_t level);

const char *urma_log_get_thread_tag(void);

void urma_log_set_thread_tag(const char *tag);

#ifdef __cplusplus
}
#endif

#endif
