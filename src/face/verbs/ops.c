// SPDX-License-Identifier: MIT
// The tables of functions that header inlines reach through a context.
#include "face/verbs/verbs_face.h"

// The table types them all alike; a caller casts back before the call.
#define OLD(f) ((void *(*)(void))(void (*)(void))(f))

void vb_fill_ops(struct verbs_context *v)
{
    struct ibv_context_ops *ops = &v->context.ops;

    vb_fill_refusals(v);
    v->query_port = vb_query_port;
    v->query_device_ex = vb_query_device_ex;
    v->query_rt_values = vb_query_rt_values;
    v->create_cq_ex = vb_create_cq_ex;
    v->modify_cq = vb_modify_cq;
    v->create_qp_ex = vb_create_qp_ex;
    v->create_srq_ex = vb_create_srq_ex;
    v->get_srq_num = vb_get_srq_num;
    v->open_xrcd = vb_open_xrcd;
    v->close_xrcd = vb_close_xrcd;
    v->open_qp = vb_open_qp;
    v->alloc_td = vb_alloc_td;
    v->dealloc_td = vb_dealloc_td;
    v->alloc_parent_domain = vb_alloc_parent_domain;
    v->alloc_null_mr = vb_alloc_null_mr;
    v->advise_mr = vb_advise_mr;
    v->alloc_dm = vb_alloc_dm;
    v->free_dm = vb_free_dm;
    v->reg_dm_mr = vb_reg_dm_mr;

    ops->alloc_mw = vb_alloc_mw;
    ops->bind_mw = vb_bind_mw;
    ops->dealloc_mw = vb_dealloc_mw;
    ops->poll_cq = vb_poll_cq;
    ops->req_notify_cq = vb_req_notify_cq;
    ops->post_srq_recv = vb_post_srq_recv;
    ops->post_send = vb_post_send;
    ops->post_recv = vb_post_recv;

    // Programs of before 2018 called these through the table; they find what the exported names are now.
    ops->_compat_query_device = ibv_query_device;
    ops->_compat_query_port = ibv_query_port;
    ops->_compat_alloc_pd = OLD(ibv_alloc_pd);
    ops->_compat_dealloc_pd = OLD(ibv_dealloc_pd);
    ops->_compat_reg_mr = OLD(ibv_reg_mr);
    ops->_compat_rereg_mr = OLD(ibv_rereg_mr);
    ops->_compat_dereg_mr = OLD(ibv_dereg_mr);
    ops->_compat_create_cq = OLD(ibv_create_cq);
    ops->_compat_cq_event = OLD(ibv_get_cq_event);
    ops->_compat_resize_cq = OLD(ibv_resize_cq);
    ops->_compat_destroy_cq = OLD(ibv_destroy_cq);
    ops->_compat_create_srq = OLD(ibv_create_srq);
    ops->_compat_modify_srq = OLD(ibv_modify_srq);
    ops->_compat_query_srq = OLD(ibv_query_srq);
    ops->_compat_destroy_srq = OLD(ibv_destroy_srq);
    ops->_compat_create_qp = OLD(ibv_create_qp);
    ops->_compat_query_qp = OLD(ibv_query_qp);
    ops->_compat_modify_qp = OLD(ibv_modify_qp);
    ops->_compat_destroy_qp = OLD(ibv_destroy_qp);
    ops->_compat_create_ah = OLD(ibv_create_ah);
    ops->_compat_destroy_ah = OLD(ibv_destroy_ah);
    ops->_compat_attach_mcast = OLD(ibv_attach_mcast);
    ops->_compat_detach_mcast = OLD(ibv_detach_mcast);
    ops->_compat_async_event = OLD(ibv_get_async_event);
}
