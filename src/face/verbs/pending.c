// SPDX-License-Identifier: MIT
// Names of the ABI that are not built yet.
#include "base/log.h"
#include <errno.h>
#define P(name)                                                                                              \
    void *name(void);                                                                                        \
    void *name(void)                                                                                         \
    {                                                                                                        \
        errno = dock_refuse(EOPNOTSUPP, #name ": not built yet");                                            \
        return 0;                                                                                            \
    }
#define S(name)                                                                                              \
    int name(void);                                                                                          \
    int name(void)                                                                                           \
    {                                                                                                        \
        return dock_refuse(EOPNOTSUPP, #name ": not built yet");                                             \
    }
S(_ibv_query_gid_ex)
S(_ibv_query_gid_table)
S(ibv_ack_async_event)
S(ibv_ack_cq_events)
P(ibv_alloc_pd)
S(ibv_attach_mcast)
S(ibv_close_device)
P(ibv_create_ah)
P(ibv_create_ah_from_wc)
P(ibv_create_comp_channel)
P(ibv_create_cq)
P(ibv_create_qp)
P(ibv_create_srq)
S(ibv_dealloc_pd)
S(ibv_dereg_mr)
S(ibv_destroy_ah)
S(ibv_destroy_comp_channel)
S(ibv_destroy_cq)
S(ibv_destroy_qp)
S(ibv_destroy_srq)
S(ibv_detach_mcast)
S(ibv_get_async_event)
S(ibv_get_cq_event)
S(ibv_get_pkey_index)
P(ibv_import_device)
P(ibv_import_dm)
P(ibv_import_mr)
P(ibv_import_pd)
S(ibv_init_ah_from_wc)
S(ibv_modify_qp)
S(ibv_modify_srq)
P(ibv_open_device)
P(ibv_qp_to_qp_ex)
S(ibv_query_device)
S(ibv_query_ece)
S(ibv_query_gid)
S(ibv_query_pkey)
S(ibv_query_port)
S(ibv_query_qp)
S(ibv_query_qp_data_in_order)
S(ibv_query_srq)
P(ibv_reg_dmabuf_mr)
P(ibv_reg_mr)
P(ibv_reg_mr_iova)
P(ibv_reg_mr_iova2)
S(ibv_rereg_mr)
S(ibv_resize_cq)
S(ibv_resolve_eth_l2_from_gid)
S(ibv_set_ece)
S(ibv_unimport_dm)
S(ibv_unimport_mr)
S(ibv_unimport_pd)
