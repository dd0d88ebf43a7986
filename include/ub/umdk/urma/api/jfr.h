// SPDX-License-Identifier: MIT
// Receive queues.
#ifndef DRYDOCK_URMA_API_JFR_H
#define DRYDOCK_URMA_API_JFR_H

#include "../urma_types.h"

#ifdef __cplusplus
extern "C" {
#endif

urma_jfr_t *urma_create_jfr(urma_context_t *ctx, urma_jfr_cfg_t *jfr_cfg);

urma_status_t urma_modify_jfr(urma_jfr_t *jfr, urma_jfr_attr_t *attr);

urma_status_t urma_query_jfr(urma_jfr_t *jfr, urma_jfr_cfg_t *cfg, urma_jfr_attr_t *attr);

urma_status_t urma_delete_jfr(urma_jfr_t *jfr);

urma_status_t urma_delete_jfr_batch(urma_jfr_t **jfr_arr, int jfr_num, urma_jfr_t **bad_jfr);

urma_status_t urma_alloc_jfr(urma_context_t *urma_ctx, urma_jfr_cfg_t *cfg, urma_jfr_t **jfr);

urma_status_t urma_set_jfr_opt(urma_jfr_t *jfr, uint64_t opt, void *buf, uint32_t len);

urma_status_t urma_active_jfr(urma_jfr_t *jfr);

urma_status_t urma_get_jfr_opt(urma_jfr_t *jfr, uint64_t opt, void *buf, uint32_t len);

urma_status_t urma_deactive_jfr(urma_jfr_t *jfr);

urma_status_t urma_free_jfr(urma_jfr_t *jfr);

#ifdef __cplusplus
}
#endif

#endif
