// SPDX-License-Identifier: MIT
// Completion queues and their event channels.
#ifndef DRYDOCK_URMA_API_JFC_H
#define DRYDOCK_URMA_API_JFC_H

#include "../urma_types.h"

#ifdef __cplusplus
extern "C" {
#endif

urma_jfc_t *urma_create_jfc(urma_context_t *ctx, urma_jfc_cfg_t *jfc_cfg);

urma_status_t urma_modify_jfc(urma_jfc_t *jfc, urma_jfc_attr_t *attr);

urma_status_t urma_delete_jfc(urma_jfc_t *jfc);

urma_status_t urma_alloc_jfc(urma_context_t *urma_ctx, urma_jfc_cfg_t *cfg, urma_jfc_t **jfc);

urma_status_t urma_set_jfc_opt(urma_jfc_t *jfc, uint64_t opt, void *buf, uint32_t len);

urma_status_t urma_active_jfc(urma_jfc_t *jfc);

urma_status_t urma_get_jfc_opt(urma_jfc_t *jfc, uint64_t opt, void *buf, uint32_t len);

urma_status_t urma_deactive_jfc(urma_jfc_t *jfc);

urma_status_t urma_free_jfc(urma_jfc_t *jfc);

urma_status_t urma_delete_jfc_batch(urma_jfc_t **jfc_arr, int jfc_num, urma_jfc_t **bad_jfc);

urma_jfce_t *urma_create_jfce(urma_context_t *ctx);

urma_status_t urma_delete_jfce(urma_jfce_t *jfce);

urma_status_t urma_rearm_jfc(urma_jfc_t *jfc, bool solicited_only);

int urma_wait_jfc(urma_jfce_t *jfce, uint32_t jfc_cnt, int time_out, urma_jfc_t *jfc[]);

void urma_ack_jfc(urma_jfc_t *jfc[], uint32_t nevents[], uint32_t jfc_cnt);

#ifdef __cplusplus
}
#endif

#endif
