// SPDX-License-Identifier: MIT
// Completion queues and their event channels.
#ifndef DRYDOCK_URMA_API_JFC_H
#define DRYDOCK_URMA_API_JFC_H

#include "../urma_types.h"

#ifdef __cplusplus
extern "C" {
#endif

// A completion queue of cfg->depth records, 1 to max_jfc_depth. cfg->jfce may be NULL: then it can be polled
// only. flag.lock_free: the caller sees to it that one thread at a time polls it. flag.non_blocking: see
// urma_delete_jfc. The depth must hold what all its queues may complete and one record more for each (the
// mark of a flush); an overflow is fatal to the JFC (URMA_EVENT_JFC_ERR). NULL with EINVAL (NULL, depth),
// ENOMEM (no JFC left). Ends with urma_delete_jfc. flag.jfc_inline is taken: with it and without, what was
// received is in memory when its record can be polled. Guide 2.3.1.1.1.
urma_jfc_t *urma_create_jfc(urma_context_t *ctx, urma_jfc_cfg_t *jfc_cfg);

// Events after moderate_count records or moderate_period microseconds since the first, whichever comes first;
// mask says which of the two is set, and 0 changes nothing. URMA_EINVAL for NULL, a JFC that is not active,
// or another bit. Guide 2.3.1.1.2.
urma_status_t urma_modify_jfc(urma_jfc_t *jfc, urma_jfc_attr_t *attr);

// Waits until each event that was given for it (urma_wait_jfc, urma_get_async_event) has been acknowledged;
// with flag.non_blocking it does not wait but says URMA_EAGAIN. URMA_FAIL while a queue completes into it,
// URMA_EINVAL for NULL or a JFC that is allocated and not active. Guide 2.3.1.1.3.
urma_status_t urma_delete_jfc(urma_jfc_t *jfc);

// First step of two: allocates the object and copies *cfg, without making it live: only pointers are looked
// at. *jfc is set on success and ends with urma_free_jfc. URMA_EINVAL for NULL, URMA_ENOMEM. Guide 2.3.1.1.
urma_status_t urma_alloc_jfc(urma_context_t *urma_ctx, urma_jfc_cfg_t *cfg, urma_jfc_t **jfc);

// Sets one option (URMA_JFC_*) of an object that is allocated and not active, from len bytes at buf; the
// value is checked when the object is activated. URMA_EINVAL for NULL, an unknown option, a length that is
// not the option's, an active object, or an option that only the device sets. Guide 2.3.1.1.
// URMA_JFC_ID may be chosen, as for urma_set_jfs_opt. URMA_JFC_CQE_BASE_ADDR: memory for the ring, which
// peers write: drydock_jfc_ring_bytes (drydock/urma.h) of it at a multiple of 4096, private and anonymous. It
// is adopted and cleared at activation, and the library's until deactivation, which forgets it.
urma_status_t urma_set_jfc_opt(urma_jfc_t *jfc, uint64_t opt, void *buf, uint32_t len);

// Second step: makes it live, with the checks of urma_create_jfc. URMA_EINVAL for NULL, an active JFC, or a
// configuration that urma_create_jfc would refuse; URMA_FAIL: peers could not reach the memory for its ring,
// which cannot be adopted, or it may not be written; URMA_ENOMEM: no segment is
// left for it. Then it stays as it was. Guide 2.3.1.1.
urma_status_t urma_active_jfc(urma_jfc_t *jfc);

// Reads one option (URMA_JFC_*) into len bytes at buf. Addresses and indices of an active object lead into
// the live ring. URMA_EINVAL for NULL, option 0, an unknown option or a length that is not the option's.
// Guide 2.3.1.1.
urma_status_t urma_get_jfc_opt(urma_jfc_t *jfc, uint64_t opt, void *buf, uint32_t len);

// Undoes urma_active_jfc; what lay in it is lost. URMA_EINVAL for NULL or when it is not active. Guide
// 2.3.1.1.
urma_status_t urma_deactive_jfc(urma_jfc_t *jfc);

// Ends an object of urma_alloc_jfc. URMA_EINVAL for NULL, while it is active, or when urma_create_jfc made
// it. Guide 2.3.1.1.
urma_status_t urma_free_jfc(urma_jfc_t *jfc);

// urma_delete_jfc for jfc_num elements in order. The first that fails ends it: its code is returned and
// *bad_jfc points to it; those before it are gone. URMA_EINVAL for NULL (also an element), jfc_num < 1. Guide
// 2.3.1.1.4.
urma_status_t urma_delete_jfc_batch(urma_jfc_t **jfc_arr, int jfc_num, urma_jfc_t **bad_jfc);

// An event channel. jfce->fd is readable while an event waits that urma_wait_jfc has not given yet; it may be
// put into epoll and set non-blocking, not read. NULL with EINVAL, ENOMEM, EMFILE. Ends with
// urma_delete_jfce. Guide 2.3.1.2.1.
urma_jfce_t *urma_create_jfce(urma_context_t *ctx);

// URMA_FAIL while a JFC uses it, URMA_EINVAL for NULL. Who waits on it must have come back. Guide 2.3.1.2.2.
urma_status_t urma_delete_jfce(urma_jfce_t *jfce);

// Asks for one event at the next record, or with solicited_only at the next solicited or failed one. A record
// that lies unpolled already makes the event at once, so "poll until empty, rearm, poll again" loses none.
// URMA_EINVAL for NULL. Without a JFCE it does nothing and succeeds. Any thread. Guide 2.4.2.2.
urma_status_t urma_rearm_jfc(urma_jfc_t *jfc, bool solicited_only);

// Waits at most time_out milliseconds (0: do not wait, -1: for ever) for events and fills jfc[] with the JFCs
// that had one, at most jfc_cnt and 16. Each JFC is to be armed again, polled, and acknowledged with
// urma_ack_jfc. Returns their number, 0 when the time is over or the channel is non-blocking and has none, -1
// with errno for NULL, jfc_cnt 0, or a signal (EINTR). Any thread. Guide 2.4.2.3.
int urma_wait_jfc(urma_jfce_t *jfce, uint32_t jfc_cnt, int time_out, urma_jfc_t *jfc[]);

// Acknowledges nevents[i] events of jfc[i] for i < jfc_cnt. An event counts until then, and urma_delete_jfc
// waits for it. NULL and 0 do nothing. Any thread. Guide 2.4.2.4.
void urma_ack_jfc(urma_jfc_t *jfc[], uint32_t nevents[], uint32_t jfc_cnt);

#ifdef __cplusplus
}
#endif

#endif
