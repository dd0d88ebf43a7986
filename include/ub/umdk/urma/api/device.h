// SPDX-License-Identifier: MIT
// The library, its devices, contexts.
#ifndef DRYDOCK_URMA_API_DEVICE_H
#define DRYDOCK_URMA_API_DEVICE_H

#include "../urma_types.h"

#ifdef __cplusplus
extern "C" {
#endif

// Starts the library in this process. conf may be NULL; its token and uasid are not used, since a process
// here has one address space, number 0. URMA_EEXIST when it runs already: there is no count. URMA_FAIL when
// no device can be had. Not thread safe: nobody else may be in any call. fork() after it is not supported.
// Guide 2.2.1.1.
urma_status_t urma_init(urma_init_attr_t *conf);

// Stops the library; also URMA_SUCCESS when it never ran. Contexts that are still open stay usable. Not
// thread safe. Guide 2.2.1.2.
urma_status_t urma_uninit(void);

// The devices as an array of *num_devices pointers, NULL after the last; drydock has one. The array is the
// caller's, to be given back with urma_free_device_list; what it points to stays the library's, valid until
// urma_uninit. NULL with EINVAL (num_devices is NULL), ENODEV (before urma_init), ENOMEM. Guide 2.2.2.1.1.
urma_device_t **urma_get_device_list(int *num_devices);

// Frees the array alone. NULL does nothing. Guide 2.2.2.1.2.
void urma_free_device_list(urma_device_t **device_list);

// The EIDs that a context can be opened under, with the index of each: *cnt entries, the caller's, to be
// given back with urma_free_eid_list. NULL with EINVAL (NULL argument or not a device of the list), EIO (no
// EID), ENOMEM. Guide 2.2.2.2.1.
urma_eid_info_t *urma_get_eid_list(urma_device_t *dev, uint32_t *cnt);

// Frees the array. NULL does nothing. Guide 2.2.2.2.2.
void urma_free_eid_list(urma_eid_info_t *eid_list);

// The device of this exact name. NULL with EINVAL (NULL, empty, or 64 characters and more), ENODEV (no such
// device, or before urma_init). Nothing to free. Guide 2.2.2.1.3.
urma_device_t *urma_get_device_by_name(char *dev_name);

// The device of this transport type (URMA_TRANSPORT_UB) that has the EID. NULL with ENODEV. Nothing to free.
// Guide 2.2.2.1.4.
urma_device_t *urma_get_device_by_eid(urma_eid_t eid, urma_transport_type_t type);

// Fills *dev_attr, the caller's, with what the device can do. Every limit is exact: one more is refused.
// URMA_EINVAL (and errno EINVAL) for NULL or a pointer that is not a device. Guide 2.2.2.1.5.
urma_status_t urma_query_device(urma_device_t *dev, urma_device_attr_t *dev_attr);

// Opens the device under one of its EIDs. Everything else is made from the context and counted by it.
// ctx->async_fd can be polled and set non-blocking; it is readable while an asynchronous event waits. NULL
// with EINVAL (dev is no device), EIO (eid_index has no EID), ENOMEM, or what opening the runtime directory
// gave. Ends with urma_delete_context. Guide 2.2.2.4.1.
urma_context_t *urma_create_context(urma_device_t *dev, uint32_t eid_index);

// Closes it. URMA_EAGAIN while any object of it lives, URMA_EINVAL for NULL. Nobody may use the context at
// the same time. Guide 2.2.2.4.2.
urma_status_t urma_delete_context(urma_context_t *ctx);

// Sets URMA_OPT_AGGR_MODE, which only an aggregated device has: always URMA_EINVAL here, as UMDK answers for
// any other device. Guide 2.2.2.4.3.
urma_status_t urma_set_context_opt(urma_context_t *ctx, urma_opt_name_t opt_name, const void *opt_value,
                                   size_t opt_len);

// *uasid = 0, the number of every address space on this device. URMA_EINVAL for NULL. Guide 2.2.2.3.1.
urma_status_t urma_get_uasid(uint32_t *uasid);

// A call to the device by number: in->opcode, in->addr and in->len bytes of argument, out->addr and out->len
// bytes of answer; both buffers are the caller's, of exactly these sizes. The numbers are those of
// udma/udma_u_ctl.h; docs/urma.md has them one by one. URMA_ENOPERM for those that need a chip, URMA_FAIL for
// what a call behind a number refused, for a buffer of another size and for any other number, URMA_EINVAL for
// NULL. Each refusal with its reason in the log. Guide 2.5.1.1.
urma_status_t urma_user_ctl(urma_context_t *ctx, urma_user_ctl_in_t *in, urma_user_ctl_out_t *out);

#ifdef __cplusplus
}
#endif

#endif
