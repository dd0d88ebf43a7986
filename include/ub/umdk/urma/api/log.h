// SPDX-License-Identifier: MIT
// The log.
#ifndef DRYDOCK_URMA_API_LOG_H
#define DRYDOCK_URMA_API_LOG_H

#include "../urma_types.h"

#ifdef __cplusplus
extern "C" {
#endif

// From now on each line goes to func instead of stderr; it may be called by any thread, also by the device's
// own, and must not call back into the library. URMA_EINVAL for NULL. The last registered function, of either
// kind, counts. Guide 2.5.2.1.
urma_status_t urma_register_log_func(urma_log_cb_t func);

// The same with file, function and line, where they are known ("drydock", "" and 0 where not). Guide 2.5.2.2.
urma_status_t urma_register_loc_log_func(urma_loc_log_cb func);

// Back to stderr, as DRYDOCK_LOG allows. Always URMA_SUCCESS. Guide 2.5.2.3.
urma_status_t urma_unregister_log_func(void);

// Lines less urgent than this level are dropped. URMA_VLOG_LEVEL_INFO, or what the environment's
// URMA_LOG_LEVEL (fatal, error, warning, info, debug) says. Guide 2.5.2.4.
urma_vlog_level_t urma_log_get_level(void);

// Sets it; URMA_VLOG_LEVEL_MAX and more is ignored. Any thread. Guide 2.5.2.5.
void urma_log_set_level(urma_vlog_level_t level);

// The calling thread's tag, "-" at first. The library's, valid until the thread sets another. Guide 2.5.2.6.
const char *urma_log_get_thread_tag(void);

// The tag stands in each line that the thread causes. At most 63 characters; NULL or more is ignored. Guide
// 2.5.2.7.
void urma_log_set_thread_tag(const char *tag);

#ifdef __cplusplus
}
#endif

#endif
