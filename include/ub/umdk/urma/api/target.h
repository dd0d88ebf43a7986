// SPDX-License-Identifier: MIT
// Handles for queues of a peer: import, bind, and the asynchronous forms.
#ifndef DRYDOCK_URMA_API_TARGET_H
#define DRYDOCK_URMA_API_TARGET_H

#include "../urma_types.h"

#ifdef __cplusplus
extern "C" {
#endif

urma_target_jetty_t *urma_import_jfr(urma_context_t *ctx, urma_rjfr_t *rjfr, urma_token_t *token_value);

urma_target_jetty_t *urma_import_jfr_ex(urma_context_t *ctx, urma_rjfr_t *rjfr, urma_token_t *token_value,
                                        urma_import_jfr_ex_cfg_t *cfg);

urma_status_t urma_unimport_jfr(urma_target_jetty_t *target_jfr);

urma_status_t urma_advise_jfr(urma_jfs_t *jfs, urma_target_jetty_t *tjfr);

urma_status_t urma_advise_jfr_async(urma_jfs_t *jfs, urma_target_jetty_t *tjfr,
                                    urma_advise_async_cb_func cb_fun, void *cb_arg);

urma_status_t urma_unadvise_jfr(urma_jfs_t *jfs, urma_target_jetty_t *tjfr);

urma_target_jetty_t *urma_import_jetty(urma_context_t *ctx, urma_rjetty_t *rjetty, urma_token_t *token_value);

urma_target_jetty_t *urma_import_jetty_ex(urma_context_t *ctx, urma_rjetty_t *rjetty,
                                          urma_token_t *token_value, urma_import_jetty_ex_cfg_t *cfg);

urma_status_t urma_unimport_jetty(urma_target_jetty_t *tjetty);

urma_status_t urma_advise_jetty(urma_jetty_t *jetty, urma_target_jetty_t *tjetty);

urma_status_t urma_unadvise_jetty(urma_jetty_t *jetty, urma_target_jetty_t *tjetty);

urma_status_t urma_bind_jetty(urma_jetty_t *jetty, urma_target_jetty_t *tjetty);

urma_status_t urma_bind_jetty_ex(urma_jetty_t *jetty, urma_target_jetty_t *tjetty,
                                 urma_bind_jetty_ex_cfg_t *cfg);

urma_status_t urma_unbind_jetty(urma_jetty_t *jetty);

urma_status_t urma_get_rjetty(urma_jetty_t *jetty, urma_rjetty_t **rjetty, uint32_t *length);

void urma_put_rjetty(urma_rjetty_t *rjetty);

urma_target_jetty_t *urma_import_jetty_async(urma_notifier_t *notifier, const urma_rjetty_t *rjetty,
                                             const urma_token_t *token_value, uint64_t user_ctx, int timeout);

urma_status_t urma_unimport_jetty_async(urma_target_jetty_t *tjetty);

urma_status_t urma_bind_jetty_async(urma_notifier_t *notifier, urma_jetty_t *jetty,
                                    urma_target_jetty_t *tjetty, uint64_t user_ctx, int timeout);

urma_status_t urma_unbind_jetty_async(urma_jetty_t *jetty);

urma_notifier_t *urma_create_notifier(urma_context_t *ctx);

urma_status_t urma_delete_notifier(urma_notifier_t *notifier);

int urma_wait_notify(urma_notifier_t *notifier, uint32_t cnt, urma_notify_t *notify, int timeout);

urma_status_t urma_ack_notify(urma_context_t *ctx, uint32_t cnt, urma_notify_t *notify);

#ifdef __cplusplus
}
#endif

#endif
