// SPDX-License-Identifier: MIT
// Handles for queues of a peer: import, bind, and the asynchronous forms.
#ifndef DRYDOCK_URMA_API_TARGET_H
#define DRYDOCK_URMA_API_TARGET_H

#include "../urma_types.h"

#ifdef __cplusplus
extern "C" {
#endif

// As urma_import_jetty, for a peer's JFR; a missing token with a policy other than URMA_TOKEN_NONE is refused
// with EINVAL. Guide 2.3.1.5.6.
urma_target_jetty_t *urma_import_jfr(urma_context_t *ctx, urma_rjfr_t *rjfr, urma_token_t *token_value);

// As urma_import_jfr over the channel that cfg names; token_value and cfg are required. Guide 2.3.1.5.7.
urma_target_jetty_t *urma_import_jfr_ex(urma_context_t *ctx, urma_rjfr_t *rjfr, urma_token_t *token_value,
                                        urma_import_jfr_ex_cfg_t *cfg);

// As urma_unimport_jetty. Guide 2.3.1.5.8.
urma_status_t urma_unimport_jfr(urma_target_jetty_t *target_jfr);

// As urma_advise_jetty. Guide 2.3.1.5.9.
urma_status_t urma_advise_jfr(urma_jfs_t *jfs, urma_target_jetty_t *tjfr);

// As urma_advise_jfr. On this kind of device it succeeds at once and cb_fun is not called. URMA_EINVAL for
// NULL, cb_fun and cb_arg included. Guide 2.3.1.5.10.
urma_status_t urma_advise_jfr_async(urma_jfs_t *jfs, urma_target_jetty_t *tjfr,
                                    urma_advise_async_cb_func cb_fun, void *cb_arg);

// As urma_unadvise_jetty. Guide 2.3.1.5.11.
urma_status_t urma_unadvise_jfr(urma_jfs_t *jfs, urma_target_jetty_t *tjfr);

// A handle for a peer's jetty or group, made from the descriptor that the peer gave (urma_get_rjetty, or
// filled by hand). order and tp_type must be ones that the mode allows (RM: OI; RTP, CTP. RC: OT, OL, NO;
// RTP, CTP. UM: NO; CTP, UTP); order 0 takes the mode's own and is written back. token_value may be NULL when
// the peer's policy is URMA_TOKEN_NONE; a wrong one shows when a message is refused. Each import is a handle
// of its own. NULL with EINVAL (NULL, mode, order, tp_type), ENOMEM. Ends with urma_unimport_jetty. Guide
// 2.3.1.6.6.
urma_target_jetty_t *urma_import_jetty(urma_context_t *ctx, urma_rjetty_t *rjetty, urma_token_t *token_value);

// As urma_import_jetty over the channel that cfg names (tp_handle of urma_get_tp_list); token_value and cfg
// are required. Guide 2.3.1.6.7.
urma_target_jetty_t *urma_import_jetty_ex(urma_context_t *ctx, urma_rjetty_t *rjetty,
                                          urma_token_t *token_value, urma_import_jetty_ex_cfg_t *cfg);

// URMA_EINVAL for NULL; URMA_FAIL while a jetty is bound to it. Requests that name it must have completed.
// Guide 2.3.1.6.8.
urma_status_t urma_unimport_jetty(urma_target_jetty_t *tjetty);

// A hint that needs nothing here: the way to a peer is made at its first request. URMA_EINVAL for NULL or
// when not both are RM. Guide 2.3.1.6.9.
urma_status_t urma_advise_jetty(urma_jetty_t *jetty, urma_target_jetty_t *tjetty);

// Undoes the hint. URMA_EINVAL for NULL. Guide 2.3.1.6.10.
urma_status_t urma_unadvise_jetty(urma_jetty_t *jetty, urma_target_jetty_t *tjetty);

// Connects an RC jetty with one imported RC jetty; both sides do so. All its requests then go there, whatever
// their tjetty says, and jetty->remote_jetty shows it. Again with the same target succeeds. URMA_EINVAL
// (NULL, or the target is bound to another jetty), URMA_ENOPERM (not both RC, or orders differ), URMA_EEXIST
// (bound elsewhere). A peer that is not there is found out by the first request. Guide 2.3.1.6.11.
urma_status_t urma_bind_jetty(urma_jetty_t *jetty, urma_target_jetty_t *tjetty);

// As urma_bind_jetty over the channel that cfg names; cfg is required. Guide 2.3.1.6.12.
urma_status_t urma_bind_jetty_ex(urma_jetty_t *jetty, urma_target_jetty_t *tjetty,
                                 urma_bind_jetty_ex_cfg_t *cfg);

// Disconnects it. URMA_EINVAL for NULL or when nothing is bound. What is in flight is flushed. Guide
// 2.3.1.6.13.
urma_status_t urma_unbind_jetty(urma_jetty_t *jetty);

// The descriptor of a local jetty for a peer, *length bytes that may be copied as they are. To be given back
// with urma_put_rjetty. URMA_EINVAL for NULL or a jetty without a JFR, URMA_ENOMEM. Guide 2.3.1.6.15.
urma_status_t urma_get_rjetty(urma_jetty_t *jetty, urma_rjetty_t **rjetty, uint32_t *length);

// Frees a descriptor; it is plain free(). NULL does nothing. Guide 2.3.1.6.16.
void urma_put_rjetty(urma_rjetty_t *rjetty);

// Starts urma_import_jetty and returns the handle at once; it may be used when urma_wait_notify has said that
// the import succeeded. The notice's status is URMA_ETIMEOUT when the peer's process has not answered within
// timeout milliseconds (0 or less: 2 seconds). NULL with EINVAL, ENOMEM. Guide 2.3.1.6.17.
urma_target_jetty_t *urma_import_jetty_async(urma_notifier_t *notifier, const urma_rjetty_t *rjetty,
                                             const urma_token_t *token_value, uint64_t user_ctx, int timeout);

// As urma_unimport_jetty, also for a handle whose import is under way (no notice of it will come) or has
// failed. Guide 2.3.1.6.18.
urma_status_t urma_unimport_jetty_async(urma_target_jetty_t *tjetty);

// Starts urma_bind_jetty; its result, or URMA_ETIMEOUT as for an import, comes through urma_wait_notify with
// user_ctx. URMA_EINVAL, URMA_ENOPERM, URMA_ENOMEM at once. Guide 2.3.1.6.19.
urma_status_t urma_bind_jetty_async(urma_notifier_t *notifier, urma_jetty_t *jetty,
                                    urma_target_jetty_t *tjetty, uint64_t user_ctx, int timeout);

// As urma_unbind_jetty. Guide 2.3.1.6.20.
urma_status_t urma_unbind_jetty_async(urma_jetty_t *jetty);

// Collects the results of the asynchronous calls; notifier->fd is readable while one waits. It has a thread.
// NULL with EINVAL, ENOMEM, EMFILE, EAGAIN (no thread). Ends with urma_delete_notifier. Guide 2.3.1.6.21.
urma_notifier_t *urma_create_notifier(urma_context_t *ctx);

// Ends it, and what is still under way without a notice. URMA_EINVAL for NULL. Guide 2.3.1.6.22.
urma_status_t urma_delete_notifier(urma_notifier_t *notifier);

// Fills notify[] with at most cnt results, waiting at most timeout milliseconds for the first (0: not, -1:
// for ever). Each is to be acknowledged. Returns their number, 0 for cnt 0 or when none came, -1 with errno
// EINVAL for NULL. Guide 2.3.1.6.23.
int urma_wait_notify(urma_notifier_t *notifier, uint32_t cnt, urma_notify_t *notify, int timeout);

// Acknowledges cnt results. URMA_EINVAL for NULL; cnt 0 succeeds. Guide 2.3.1.6.24.
urma_status_t urma_ack_notify(urma_context_t *ctx, uint32_t cnt, urma_notify_t *notify);

#ifdef __cplusplus
}
#endif

#endif
