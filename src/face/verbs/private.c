// SPDX-License-Identifier: MIT
// The private node. Driver libraries (libmlx5, libefa, every plug-in) bind to these names at load, so all
// must exist; their constructors call only verbs_register_driver_34, and with no kernel device no other
// call has anything to act on. The declarations are ours: rdma-core installs no header for them.
#include <stdarg.h>
#include <stdio.h>

#include "device/identity.h"
#include "face/verbs/verbs_face.h"

// Read by libmlx5 as a one-byte flag: false means that a destroy which fails is reported as failed.
extern bool verbs_allow_disassociate_destroy;
bool verbs_allow_disassociate_destroy = false;

static int refuse(const char *name)
{
    return dock_refuse(EOPNOTSUPP, "%s: a driver call, and there is no kernel device behind this library",
                       name);
}

void verbs_register_driver_34(const void *ops);
void verbs_register_driver_34(const void *ops)
{
    (void)ops;
}

// Tolerates any context, ours and NULL included: libfabric's EFA provider logs about every device it sees.
void __verbs_log(void *context, uint32_t level, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void __verbs_log(void *context, uint32_t level, const char *fmt, ...)
{
    char text[200];
    va_list args;

    (void)context;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    text[strcspn(text, "\n")] = '\0';
    dock_debug("driver (level %u): %s", level, text);
}

enum sysfs_gid_type { SYSFS_GID_IB_ROCE_V1, SYSFS_GID_ROCE_V2 };

int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
                       enum sysfs_gid_type *type);
int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
                       enum sysfs_gid_type *type)
{
    if (!context || port_num != VB_PORT || index >= DOCK_GID_TABLE || !type) {
        errno = dock_refuse(EINVAL, "ibv_query_gid_type: port %u, index %u: there is port 1 with %d entries",
                            port_num, index, DOCK_GID_TABLE);
        return -1;
    }
    *type = dock_gid_filled(index) ? SYSFS_GID_ROCE_V2 : SYSFS_GID_IB_ROCE_V1;
    return 0;
}

unsigned int __ioctl_final_num_attrs(unsigned int num_attrs, void *link);
unsigned int __ioctl_final_num_attrs(unsigned int num_attrs, void *link)
{
    (void)link;
    return num_attrs;
}

void *_verbs_init_and_alloc_context(void *device, int cmd_fd, size_t size, void *offset, uint32_t driver_id);
void *_verbs_init_and_alloc_context(void *device, int cmd_fd, size_t size, void *offset, uint32_t driver_id)
{
    (void)device;
    (void)cmd_fd;
    (void)size;
    (void)offset;
    (void)driver_id;
    errno = refuse(__func__);
    return NULL;
}

void *verbs_open_device(void *device, void *private_data);
void *verbs_open_device(void *device, void *private_data)
{
    (void)device;
    (void)private_data;
    errno = refuse(__func__);
    return NULL;
}

#define VOID_STUB(name)                                                                                      \
    void name(void);                                                                                         \
    void name(void)                                                                                          \
    {                                                                                                        \
        refuse(#name);                                                                                       \
    }

#define STUB(name)                                                                                           \
    int name(void);                                                                                          \
    int name(void)                                                                                           \
    {                                                                                                        \
        return refuse(#name);                                                                                \
    }

VOID_STUB(verbs_init_cq)
VOID_STUB(verbs_set_ops)
VOID_STUB(verbs_uninit_context)
STUB(execute_ioctl)

STUB(ibv_cmd_advise_mr)
STUB(ibv_cmd_alloc_dm)
STUB(ibv_cmd_alloc_mw)
STUB(ibv_cmd_alloc_pd)
STUB(ibv_cmd_attach_mcast)
STUB(ibv_cmd_close_xrcd)
STUB(ibv_cmd_create_ah)
STUB(ibv_cmd_create_counters)
STUB(ibv_cmd_create_cq)
STUB(ibv_cmd_create_cq_ex)
STUB(ibv_cmd_create_flow)
STUB(ibv_cmd_create_flow_action_esp)
STUB(ibv_cmd_create_qp)
STUB(ibv_cmd_create_qp_ex)
STUB(ibv_cmd_create_qp_ex2)
STUB(ibv_cmd_create_rwq_ind_table)
STUB(ibv_cmd_create_srq)
STUB(ibv_cmd_create_srq_ex)
STUB(ibv_cmd_create_wq)
STUB(ibv_cmd_dealloc_mw)
STUB(ibv_cmd_dealloc_pd)
STUB(ibv_cmd_dereg_mr)
STUB(ibv_cmd_destroy_ah)
STUB(ibv_cmd_destroy_counters)
STUB(ibv_cmd_destroy_cq)
STUB(ibv_cmd_destroy_flow)
STUB(ibv_cmd_destroy_flow_action)
STUB(ibv_cmd_destroy_qp)
STUB(ibv_cmd_destroy_rwq_ind_table)
STUB(ibv_cmd_destroy_srq)
STUB(ibv_cmd_destroy_wq)
STUB(ibv_cmd_detach_mcast)
STUB(ibv_cmd_free_dm)
STUB(ibv_cmd_get_context)
STUB(ibv_cmd_modify_cq)
STUB(ibv_cmd_modify_flow_action_esp)
STUB(ibv_cmd_modify_qp)
STUB(ibv_cmd_modify_qp_ex)
STUB(ibv_cmd_modify_srq)
STUB(ibv_cmd_modify_wq)
STUB(ibv_cmd_open_qp)
STUB(ibv_cmd_open_xrcd)
STUB(ibv_cmd_poll_cq)
STUB(ibv_cmd_post_recv)
STUB(ibv_cmd_post_send)
STUB(ibv_cmd_post_srq_recv)
STUB(ibv_cmd_query_context)
STUB(ibv_cmd_query_device_any)
STUB(ibv_cmd_query_mr)
STUB(ibv_cmd_query_port)
STUB(ibv_cmd_query_qp)
STUB(ibv_cmd_query_srq)
STUB(ibv_cmd_read_counters)
STUB(ibv_cmd_reg_dm_mr)
STUB(ibv_cmd_reg_dmabuf_mr)
STUB(ibv_cmd_reg_mr)
STUB(ibv_cmd_req_notify_cq)
STUB(ibv_cmd_rereg_mr)
STUB(ibv_cmd_resize_cq)