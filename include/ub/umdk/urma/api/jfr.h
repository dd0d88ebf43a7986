// SPDX-License-Identifier: MIT
// Receive queues.
#ifndef DRYDOCK_URMA_API_JFR_H
#define DRYDOCK_URMA_API_JFR_H

#include "../urma_types.h"

#ifdef __cplusplus
extern "C" {
#endif

// A receive queue of jfr_cfg->depth buffers (1 to max_jfr_depth) of up to max_sge pieces; records go to
// jfr_cfg->jfc. jetties share it. token_policy URMA_TOKEN_NONE or URMA_TOKEN_PLAIN_TEXT with token_value,
// which senders must show. min_rnr_timer says how long a sender waits that found no buffer. id: as for
// urma_create_jetty. NULL with EINVAL (NULL, jfc NULL, mode, depth, max_sge, an id beyond the range), EEXIST
// (somebody has that id), ENOMEM. Ends with urma_delete_jfr. Guide 2.3.1.5.1.
urma_jfr_t *urma_create_jfr(urma_context_t *ctx, urma_jfr_cfg_t *jfr_cfg);

// JFR_RX_THRESHOLD arms URMA_EVENT_JFR_LIMIT, once, for fewer than rx_threshold buffers; JFR_STATE sets the
// state: RESET to READY, READY to ERROR, ERROR to RESET (which forgets the buffers), or the same again. mask
// 0 changes nothing. URMA_EINVAL for NULL, another bit, or a threshold that is not below the depth; URMA_FAIL
// for a transition that does not exist, and for RESET while jettys receive through it. Guide 2.3.1.5.2.
urma_status_t urma_modify_jfr(urma_jfr_t *jfr, urma_jfr_attr_t *attr);

// Copies configuration, threshold and state into the caller's structures. URMA_EINVAL for NULL. Guide
// 2.3.1.5.3.
urma_status_t urma_query_jfr(urma_jfr_t *jfr, urma_jfr_cfg_t *cfg, urma_jfr_attr_t *attr);

// As urma_delete_jfs; URMA_FAIL while a jetty shares it. Guide 2.3.1.5.4.
urma_status_t urma_delete_jfr(urma_jfr_t *jfr);

// As urma_delete_jfc_batch. Guide 2.3.1.5.5.
urma_status_t urma_delete_jfr_batch(urma_jfr_t **jfr_arr, int jfr_num, urma_jfr_t **bad_jfr);

// First step of two: allocates the object and copies *cfg, without making it live: only pointers are looked
// at. *jfr is set on success and ends with urma_free_jfr. URMA_EINVAL for NULL, cfg->jfc NULL or a transport
// mode that does not exist, URMA_ENOMEM. Guide 2.3.1.5.
urma_status_t urma_alloc_jfr(urma_context_t *urma_ctx, urma_jfr_cfg_t *cfg, urma_jfr_t **jfr);

// Sets one option (URMA_JFR_*) of an object that is allocated and not active, from len bytes at buf; the
// value is checked when the object is activated. URMA_EINVAL for NULL, an unknown option, a length that is
// not the option's, an active object, or an option that only the device sets. Guide 2.3.1.5.
// URMA_JFR_ID may be chosen, as for urma_set_jfs_opt; URMA_JFR_RQE_BASE_ADDR as URMA_JFC_CQE_BASE_ADDR, with
// drydock_jfr_ring_bytes for the receives and what belongs to them.
urma_status_t urma_set_jfr_opt(urma_jfr_t *jfr, uint64_t opt, void *buf, uint32_t len);

// Second step: makes it live, with the checks of urma_create_jfr. URMA_EINVAL also when it is active or its
// JFC is not, URMA_FAIL as urma_active_jfc. Guide 2.3.1.5.
urma_status_t urma_active_jfr(urma_jfr_t *jfr);

// Reads one option (URMA_JFR_*) into len bytes at buf. Addresses and indices of an active object lead into
// the live ring. URMA_EINVAL for NULL, option 0, an unknown option or a length that is not the option's.
// Guide 2.3.1.5.
urma_status_t urma_get_jfr_opt(urma_jfr_t *jfr, uint64_t opt, void *buf, uint32_t len);

// Undoes urma_active_jfr; what lay in it is lost. URMA_EINVAL for NULL or when it is not active. Guide
// 2.3.1.5.
urma_status_t urma_deactive_jfr(urma_jfr_t *jfr);

// Ends an object of urma_alloc_jfr. URMA_EINVAL for NULL, while it is active, or when urma_create_jfr made
// it. Guide 2.3.1.5.
urma_status_t urma_free_jfr(urma_jfr_t *jfr);

#ifdef __cplusplus
}
#endif

#endif
