// SPDX-License-Identifier: MIT
// Send queues.
#ifndef DRYDOCK_URMA_API_JFS_H
#define DRYDOCK_URMA_API_JFS_H

#include "../urma_types.h"

#ifdef __cplusplus
extern "C" {
#endif

// A send queue for exactly jfs_cfg->depth requests (1 to max_jfs_depth), in mode RM, UM or RC; records go to
// jfs_cfg->jfc. order_type 0 takes the mode's own and is written back into *jfs_cfg (RM: OI, RC: OL, UM: NO).
// rnr_retry 7 tries for ever; err_timeout n waits 4.096 us * 2^n, n up to 31. max_inline_data in bytes; 0 is
// the device's maximum. lock_free: one thread at a time posts. NULL with EINVAL (NULL, jfc NULL, mode or its
// order, a limit of the device exceeded), ENOMEM. Ends with urma_delete_jfs. Guide 2.3.1.4.1.
urma_jfs_t *urma_create_jfs(urma_context_t *ctx, urma_jfs_cfg_t *jfs_cfg);

// With JFS_STATE in mask sets the state: RESET to READY, READY to ERROR or SUSPENDED, SUSPENDED to ERROR,
// ERROR to RESET, or the same again. To ERROR or SUSPENDED makes the mark record once everything in flight
// has completed. mask 0 changes nothing. URMA_EINVAL for NULL or another bit; URMA_FAIL for a transition that
// does not exist. Guide 2.3.1.4.2.
urma_status_t urma_modify_jfs(urma_jfs_t *jfs, urma_jfs_attr_t *attr);

// Copies configuration and state into the caller's structures. URMA_EINVAL for NULL. Guide 2.3.1.4.3.
urma_status_t urma_query_jfs(urma_jfs_t *jfs, urma_jfs_cfg_t *cfg, urma_jfs_attr_t *attr);

// Ends it: what is in flight is flushed and its records are gone from the JFC. Waits for acknowledgements of
// its asynchronous events, or says URMA_EAGAIN with flag.non_blocking. URMA_EINVAL for NULL or not active.
// Nobody may use it at the same time. Guide 2.3.1.4.4.
urma_status_t urma_delete_jfs(urma_jfs_t *jfs);

// As urma_delete_jfc_batch. Guide 2.3.1.4.5.
urma_status_t urma_delete_jfs_batch(urma_jfs_t **jfs_arr, int jfs_num, urma_jfs_t **bad_jfs);

// After the mark (URMA_CR_WR_FLUSH_ERR_DONE or URMA_CR_WR_SUSPEND_DONE) has been polled: hands back the
// requests that were never executed, oldest first, at most cr_cnt, as records of status URMA_CR_WR_UNHANDLED
// with their user_ctx. Returns their number, 0 when there are none or before the mark; -EINVAL for NULL or
// cr_cnt not in 1 to depth. Does not wait. Guide 2.3.1.4.6.
int urma_flush_jfs(urma_jfs_t *jfs, int cr_cnt, urma_cr_t *cr);

// First step of two: allocates the object and copies *cfg, without making it live: only pointers are looked
// at. *jfs is set on success and ends with urma_free_jfs. URMA_EINVAL for NULL, cfg->jfc NULL or a transport
// mode that does not exist, URMA_ENOMEM. Guide 2.3.1.4.
urma_status_t urma_alloc_jfs(urma_context_t *urma_ctx, urma_jfs_cfg_t *cfg, urma_jfs_t **jfs);

// Sets one option (URMA_JFS_*) of an object that is allocated and not active, from len bytes at buf; the
// value is checked when the object is activated. URMA_EINVAL for NULL, an unknown option, a length that is
// not the option's, an active object, or an option that only the device sets. Guide 2.3.1.4.
// URMA_JFS_DB_STATUS is the exception: 1, set before activation, leaves the doorbell to the program: posts do
// not ring, or the ring is driven by hand instead of posts (drydock/urma.h). The depth counts blocks of 64
// bytes then, for posts too: a request takes at least one, an atomic two. 0, at any time, rings for what was
// posted and not rung for, and lets posts ring again; URMA_EINVAL when the doorbell stands past what was
// posted: a ring that was driven by hand stays so.
// URMA_JFS_ID: 1 to 255 (urma_device_attr_t.reserved_jetty_id_max), taken at activation: URMA_EEXIST then
// when somebody on the host has it, URMA_EINVAL beyond. URMA_JFS_SQE_BASE_ADDR: memory for the ring, 64 bytes
// aligned, drydock_send_ring_bytes (drydock/urma.h) of it, which the library owns while the object is active;
// deactivation forgets it. URMA_EINVAL for NULL. It is written at activation: an address that nobody may
// write ends the program, as a store of its own would.
urma_status_t urma_set_jfs_opt(urma_jfs_t *jfs, uint64_t opt, void *buf, uint32_t len);

// Second step: makes it live, with the checks of urma_create_jfs. URMA_EINVAL also when it is active or its
// JFC is not. Guide 2.3.1.4.
urma_status_t urma_active_jfs(urma_jfs_t *jfs);

// Reads one option (URMA_JFS_*) into len bytes at buf. Addresses and indices of an active object lead into
// the live ring. URMA_EINVAL for NULL, option 0, an unknown option or a length that is not the option's.
// Guide 2.3.1.4.
urma_status_t urma_get_jfs_opt(urma_jfs_t *jfs, uint64_t opt, void *buf, uint32_t len);

// Undoes urma_active_jfs; what lay in it is lost. URMA_EINVAL for NULL or when it is not active. Guide
// 2.3.1.4.
urma_status_t urma_deactive_jfs(urma_jfs_t *jfs);

// Ends an object of urma_alloc_jfs. URMA_EINVAL for NULL, while it is active, or when urma_create_jfs made
// it. Guide 2.3.1.4.
urma_status_t urma_free_jfs(urma_jfs_t *jfs);

#ifdef __cplusplus
}
#endif

#endif
