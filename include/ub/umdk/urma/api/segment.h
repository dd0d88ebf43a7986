// SPDX-License-Identifier: MIT
// Registered memory and its tokens.
#ifndef DRYDOCK_URMA_API_SEGMENT_H
#define DRYDOCK_URMA_API_SEGMENT_H

#include "../urma_types.h"

#ifdef __cplusplus
extern "C" {
#endif

urma_token_id_t *urma_alloc_token_id(urma_context_t *ctx);

urma_token_id_t *urma_alloc_token_id_ex(urma_context_t *ctx, urma_token_id_flag_t flag);

urma_status_t urma_free_token_id(urma_token_id_t *token_id);

urma_target_seg_t *urma_register_seg(urma_context_t *ctx, urma_seg_cfg_t *seg_cfg);

urma_status_t urma_unregister_seg(urma_target_seg_t *target_seg);

urma_target_seg_t *urma_import_seg(urma_context_t *ctx, urma_seg_t *seg, urma_token_t *token_value,
                                   uint64_t addr, urma_import_seg_flag_t flag);

urma_status_t urma_unimport_seg(urma_target_seg_t *tseg);

urma_status_t urma_get_seg_ctx(urma_target_seg_t *tseg, urma_seg_t **seg, uint32_t *size);

void urma_put_seg_ctx(urma_seg_t *seg);

#ifdef __cplusplus
}
#endif

#endif
