// SPDX-License-Identifier: MIT
// The symbols of the first verbs ABI (structures of 2005) and the old driver entry. They exist so that a
// program that names them loads; the device is not offered through them: the old list is empty, and every
// other call says ENOSYS, since no object to call it with can exist.
#include "face/verbs/verbs_face.h"

static int refuse(const char *name)
{
    return dock_refuse(
        ENOSYS, "%s@IBVERBS_1.0: the first verbs ABI is not offered, rebuild against libibverbs 1.1", name);
}

#define TWIN(type, name, version)                                                                            \
    type vb_##name##_compat(void);                                                                           \
    __asm__(".symver vb_" #name "_compat, " #name "@" version);                                              \
    type vb_##name##_compat(void)

#define STATUS_TWIN(name)                                                                                    \
    TWIN(int, name, "IBVERBS_1.0")                                                                           \
    {                                                                                                        \
        return refuse(#name);                                                                                \
    }

#define POINTER_TWIN(name)                                                                                   \
    TWIN(void *, name, "IBVERBS_1.0")                                                                        \
    {                                                                                                        \
        errno = refuse(#name);                                                                               \
        return NULL;                                                                                         \
    }

#define VOID_TWIN(name)                                                                                      \
    TWIN(void, name, "IBVERBS_1.0")                                                                          \
    {                                                                                                        \
        refuse(#name);                                                                                       \
    }

VOID_TWIN(ibv_ack_async_event)
VOID_TWIN(ibv_ack_cq_events)
POINTER_TWIN(ibv_alloc_pd)
STATUS_TWIN(ibv_attach_mcast)
STATUS_TWIN(ibv_close_device)
POINTER_TWIN(ibv_create_ah)
POINTER_TWIN(ibv_create_cq)
POINTER_TWIN(ibv_create_qp)
POINTER_TWIN(ibv_create_srq)
STATUS_TWIN(ibv_dealloc_pd)
STATUS_TWIN(ibv_dereg_mr)
STATUS_TWIN(ibv_destroy_ah)
STATUS_TWIN(ibv_destroy_cq)
STATUS_TWIN(ibv_destroy_qp)
STATUS_TWIN(ibv_destroy_srq)
STATUS_TWIN(ibv_detach_mcast)
VOID_TWIN(ibv_free_device_list)
STATUS_TWIN(ibv_get_async_event)
STATUS_TWIN(ibv_get_cq_event)
POINTER_TWIN(ibv_get_device_name)
STATUS_TWIN(ibv_modify_qp)
STATUS_TWIN(ibv_modify_srq)
POINTER_TWIN(ibv_open_device)
STATUS_TWIN(ibv_query_device)
STATUS_TWIN(ibv_query_gid)
STATUS_TWIN(ibv_query_pkey)
STATUS_TWIN(ibv_query_port)
STATUS_TWIN(ibv_query_qp)
STATUS_TWIN(ibv_query_srq)
POINTER_TWIN(ibv_reg_mr)
STATUS_TWIN(ibv_resize_cq)

__be64 vb_ibv_get_device_guid_compat(void *device);
__asm__(".symver vb_ibv_get_device_guid_compat, ibv_get_device_guid@IBVERBS_1.0");
__be64 vb_ibv_get_device_guid_compat(void *device)
{
    (void)device;
    refuse("ibv_get_device_guid");
    return 0;
}

void *vb_ibv_get_device_list_compat(int *num);
__asm__(".symver vb_ibv_get_device_list_compat, ibv_get_device_list@IBVERBS_1.0");
void *vb_ibv_get_device_list_compat(int *num)
{
    if (num)
        *num = 0;
    errno = refuse("ibv_get_device_list");
    return NULL;
}

// Called by driver libraries of before 2018 from their constructors; there is nothing to drive.
void vb_ibv_register_driver_compat(const char *name, void *init);
__asm__(".symver vb_ibv_register_driver_compat, ibv_register_driver@IBVERBS_1.1");
void vb_ibv_register_driver_compat(const char *name, void *init)
{
    (void)init;
    dock_debug("driver %s registers itself (old ABI); this library drives no hardware", name);
}
