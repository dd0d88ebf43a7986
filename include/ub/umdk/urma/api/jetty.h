// SPDX-License-Identifier: MIT
// Jetties and jetty groups.
#ifndef DRYDOCK_URMA_API_JETTY_H
#define DRYDOCK_URMA_API_JETTY_H

#include "../urma_types.h"

#ifdef __cplusplus
extern "C" {
#endif

// A send queue (jetty_cfg->jfs_cfg, as for urma_create_jfs) and the receive queue jetty_cfg->shared.jfr under
// one id. flag.share_jfr must be 1 on this kind of device. Receives complete into shared.jfc, or into the
// JFR's own JFC when that is NULL. Mode and order of JFR and jetty must agree. jetty_grp: the group it joins
// (RM only; token and policy of its JFR). id 0: the library picks; else 1 to
// urma_device_attr_t.reserved_jetty_id_max. NULL with EINVAL (NULL, JFR or JFC missing, mode, order, a limit,
// a group's rules, an id beyond), EEXIST (somebody on the host has that id), EPERM (the group is full),
// ENOMEM. Ends with urma_delete_jetty. Guide 2.3.1.6.1.
urma_jetty_t *urma_create_jetty(urma_context_t *ctx, urma_jetty_cfg_t *jetty_cfg);

// As urma_modify_jfs with JETTY_STATE; JETTY_RX_THRESHOLD is the JFR's affair and refused with URMA_EINVAL.
// Guide 2.3.1.6.2.
urma_status_t urma_modify_jetty(urma_jetty_t *jetty, urma_jetty_attr_t *attr);

// Copies configuration and state into the caller's structures. URMA_EINVAL for NULL. Guide 2.3.1.6.3.
urma_status_t urma_query_jetty(urma_jetty_t *jetty, urma_jetty_cfg_t *cfg, urma_jetty_attr_t *attr);

// As urma_delete_jfs; URMA_ENOPERM while an RC jetty is bound. Guide 2.3.1.6.4.
urma_status_t urma_delete_jetty(urma_jetty_t *jetty);

// As urma_delete_jfc_batch. Guide 2.3.1.6.5.
urma_status_t urma_delete_jetty_batch(urma_jetty_t **jetty_arr, int jetty_num, urma_jetty_t **bad_jetty);

// As urma_flush_jfs, for the send side of a jetty. Guide 2.3.1.6.14.
int urma_flush_jetty(urma_jetty_t *jetty, int cr_cnt, urma_cr_t *cr);

// First step of two: allocates the object and copies *cfg, without making it live: only pointers are looked
// at. *jetty is set on success and ends with urma_free_jetty. URMA_EINVAL for NULL, URMA_ENOMEM. Guide
// 2.3.1.6.
urma_status_t urma_alloc_jetty(urma_context_t *urma_ctx, urma_jetty_cfg_t *cfg, urma_jetty_t **jetty);

// Sets one option (URMA_JETTY_* and, for its send side, URMA_JFS_*) of an object that is allocated and not
// active, from len bytes at buf; the value is checked when the object is activated. URMA_EINVAL for NULL, an
// unknown option, a length that is not the option's, an active object, or an option that only the device
// sets. Guide 2.3.1.6.
// URMA_JFS_DB_STATUS is the exception: 1, set before activation, leaves the doorbell to the program: posts do
// not ring. The depth counts blocks of 64 bytes then: a request takes at least one, an atomic two. 0, at any
// time, rings for what was posted and not rung for, and lets posts ring again; URMA_EINVAL when the doorbell
// stands past what was posted. To drive a ring by hand take a JFS: drydock/urma.h. URMA_JETTY_ID and
// URMA_JFS_ID, which are one number, and URMA_JFS_SQE_BASE_ADDR: as for urma_set_jfs_opt.
urma_status_t urma_set_jetty_opt(urma_jetty_t *jetty, uint64_t opt, void *buf, uint32_t len);

// Second step: makes it live, with the checks of urma_create_jetty. URMA_EINVAL also when it is active, or
// its JFR or a JFC of it is not. Guide 2.3.1.6.
urma_status_t urma_active_jetty(urma_jetty_t *jetty);

// Reads one option (URMA_JETTY_* and, for its send side, URMA_JFS_*) into len bytes at buf. Addresses and
// indices of an active object lead into the live ring. URMA_EINVAL for NULL, option 0, an unknown option or a
// length that is not the option's. Guide 2.3.1.6.
urma_status_t urma_get_jetty_opt(urma_jetty_t *jetty, uint64_t opt, void *buf, uint32_t len);

// Undoes urma_active_jetty; what lay in it is lost. URMA_EINVAL for NULL or when it is not active. Guide
// 2.3.1.6.
urma_status_t urma_deactive_jetty(urma_jetty_t *jetty);

// Ends an object of urma_alloc_jetty. URMA_EINVAL for NULL, while it is active, or when urma_create_jetty
// made it. Guide 2.3.1.6.
urma_status_t urma_free_jetty(urma_jetty_t *jetty);

// A set of RM jetties that peers address as one (import it with type URMA_JETTY_GROUP). cfg->policy says who
// of them gets a message: URMA_JETTY_GRP_POLICY_RR in turn, ..._HASH_HINT by the request's target_hint.
// cfg->name ends within 64 bytes; the name of a group that is there gives that group once more. NULL with
// EINVAL (also for such a name with another policy, token or id, or when max_jetty_grp is 0), EEXIST (as for
// urma_create_jetty), ENOMEM. Each creation ends with urma_delete_jetty_grp. A message for a group without a
// jetty raises URMA_EVENT_JETTY_GRP_ERR, once until it has had one. Guide 2.3.1.7.1, 3.4.5.1.
urma_jetty_grp_t *urma_create_jetty_grp(urma_context_t *ctx, urma_jetty_grp_cfg_t *cfg);

// The last one for a group that was created several times ends it: URMA_ENOPERM while it has members.
// URMA_EINVAL for NULL. Waits until its events are acknowledged. Guide 2.3.1.7.2.
urma_status_t urma_delete_jetty_grp(urma_jetty_grp_t *jetty_grp);

#ifdef __cplusplus
}
#endif

#endif
