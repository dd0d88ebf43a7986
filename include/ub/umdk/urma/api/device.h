// SPDX-License-Identifier: MIT
// The library, its devices, contexts.
#ifndef DRYDOCK_URMA_API_DEVICE_H
#define DRYDOCK_URMA_API_DEVICE_H

#include "../urma_types.h"

#ifdef __cplusplus
extern "C" {
#endif

urma_status_t urma_init(urma_init_attr_t *conf);

urma_status_t urma_uninit(void);

urma_device_t **urma_get_device_list(int *num_devices);

void urma_free_device_list(urma_device_t **device_list);

urma_eid_info_t *urma_get_eid_list(urma_device_t *dev, uint32_t *cnt);

void urma_free_eid_list(urma_eid_info_t *eid_list);

urma_device_t *urma_get_device_by_name(char *dev_name);

urma_device_t *urma_get_device_by_eid(urma_eid_t eid, urma_transport_type_t type);

urma_status_t urma_query_device(urma_device_t *dev, urma_device_attr_t *dev_attr);

urma_context_t *urma_create_context(urma_device_t *dev, uint32_t eid_index);

urma_status_t urma_delete_context(urma_context_t *ctx);

urma_status_t urma_set_context_opt(urma_context_t *ctx, urma_opt_name_t opt_name, const void *opt_value,
                                   size_t opt_len);

urma_status_t urma_get_uasid(uint32_t *uasid);

urma_status_t urma_user_ctl(urma_context_t *ctx, urma_user_ctl_in_t *in, urma_user_ctl_out_t *out);

#ifdef __cplusplus
}
#endif

#endif
