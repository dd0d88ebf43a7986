// SPDX-License-Identifier: MIT
// Jetties and jetty groups.
#ifndef DRYDOCK_URMA_API_JETTY_H
#define DRYDOCK_URMA_API_JETTY_H

#include "../urma_types.h"

#ifdef __cplusplus
extern "C" {
#endif

urma_jetty_t *urma_create_jetty(urma_context_t *ctx, urma_jetty_cfg_t *jetty_cfg);

urma_status_t urma_modify_jetty(urma_jetty_t *jetty, urma_jetty_attr_t *attr);

urma_status_t urma_query_jetty(urma_jetty_t *jetty, urma_jetty_cfg_t *cfg, urma_jetty_attr_t *attr);

urma_status_t urma_delete_jetty(urma_jetty_t *jetty);

urma_status_t urma_delete_jetty_batch(urma_jetty_t **jetty_arr, int jetty_num, urma_jetty_t **bad_jetty);

int urma_flush_jetty(urma_jetty_t *jetty, int cr_cnt, urma_cr_t *cr);

urma_status_t urma_alloc_jetty(urma_context_t *urma_ctx, urma_jetty_cfg_t *cfg, urma_jetty_t **jetty);

urma_status_t urma_set_jetty_opt(urma_jetty_t *jetty, uint64_t opt, void *buf, uint32_t len);

urma_status_t urma_active_jetty(urma_jetty_t *jetty);

urma_status_t urma_get_jetty_opt(urma_jetty_t *jetty, uint64_t opt, void *buf, uint32_t len);

urma_status_t urma_deactive_jetty(urma_jetty_t *jetty);

urma_status_t urma_free_jetty(urma_jetty_t *jetty);

urma_jetty_grp_t *urma_create_jetty_grp(urma_context_t *ctx, urma_jetty_grp_cfg_t *cfg);

urma_status_t urma_delete_jetty_grp(urma_jetty_grp_t *jetty_grp);

#ifdef __cplusplus
}
#endif

#endif
