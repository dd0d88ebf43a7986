// SPDX-License-Identifier: MIT
// Send queues.
#ifndef DRYDOCK_URMA_API_JFS_H
#define DRYDOCK_URMA_API_JFS_H

#include "../urma_types.h"

#ifdef __cplusplus
extern "C" {
#endif

urma_jfs_t *urma_create_jfs(urma_context_t *ctx, urma_jfs_cfg_t *jfs_cfg);

urma_status_t urma_modify_jfs(urma_jfs_t *jfs, urma_jfs_attr_t *attr);

urma_status_t urma_query_jfs(urma_jfs_t *jfs, urma_jfs_cfg_t *cfg, urma_jfs_attr_t *attr);

urma_status_t urma_delete_jfs(urma_jfs_t *jfs);

urma_status_t urma_delete_jfs_batch(urma_jfs_t **jfs_arr, int jfs_num, urma_jfs_t **bad_jfs);

int urma_flush_jfs(urma_jfs_t *jfs, int cr_cnt, urma_cr_t *cr);

urma_status_t urma_alloc_jfs(urma_context_t *urma_ctx, urma_jfs_cfg_t *cfg, urma_jfs_t **jfs);

urma_status_t urma_set_jfs_opt(urma_jfs_t *jfs, uint64_t opt, void *buf, uint32_t len);

urma_status_t urma_active_jfs(urma_jfs_t *jfs);

urma_status_t urma_get_jfs_opt(urma_jfs_t *jfs, uint64_t opt, void *buf, uint32_t len);

urma_status_t urma_deactive_jfs(urma_jfs_t *jfs);

urma_status_t urma_free_jfs(urma_jfs_t *jfs);

#ifdef __cplusplus
}
#endif

#endif
