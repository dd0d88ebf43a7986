// SPDX-License-Identifier: MIT
// The four exported conversions between the kernel's connection-manager structures and the public ones.
// librdmacm is their only user; nothing of ours speaks to a kernel.
#include <infiniband/sa.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>

#include "face/verbs/verbs_face.h"

void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *dst, struct ib_uverbs_ah_attr *src);
void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *dst, struct ib_uverbs_qp_attr *src);
void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *dst, struct ib_user_path_rec *src);
void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *dst, struct ibv_sa_path_rec *src);

void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *dst, struct ib_uverbs_ah_attr *src)
{
    *dst = (struct ibv_ah_attr){
        .grh.flow_label = src->grh.flow_label,
        .grh.sgid_index = src->grh.sgid_index,
        .grh.hop_limit = src->grh.hop_limit,
        .grh.traffic_class = src->grh.traffic_class,
        .dlid = src->dlid,
        .sl = src->sl,
        .src_path_bits = src->src_path_bits,
        .static_rate = src->static_rate,
        .is_global = src->is_global,
        .port_num = src->port_num,
    };
    memcpy(dst->grh.dgid.raw, src->grh.dgid, sizeof dst->grh.dgid.raw);
}

void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *dst, struct ib_uverbs_qp_attr *src)
{
    *dst = (struct ibv_qp_attr){
        .qp_state = src->qp_state,
        .cur_qp_state = src->cur_qp_state,
        .path_mtu = src->path_mtu,
        .path_mig_state = src->path_mig_state,
        .qkey = src->qkey,
        .rq_psn = src->rq_psn,
        .sq_psn = src->sq_psn,
        .dest_qp_num = src->dest_qp_num,
        .qp_access_flags = src->qp_access_flags,
        .cap.max_send_wr = src->max_send_wr,
        .cap.max_recv_wr = src->max_recv_wr,
        .cap.max_send_sge = src->max_send_sge,
        .cap.max_recv_sge = src->max_recv_sge,
        .cap.max_inline_data = src->max_inline_data,
        .pkey_index = src->pkey_index,
        .alt_pkey_index = src->alt_pkey_index,
        .en_sqd_async_notify = src->en_sqd_async_notify,
        .sq_draining = src->sq_draining,
        .max_rd_atomic = src->max_rd_atomic,
        .max_dest_rd_atomic = src->max_dest_rd_atomic,
        .min_rnr_timer = src->min_rnr_timer,
        .port_num = src->port_num,
        .timeout = src->timeout,
        .retry_cnt = src->retry_cnt,
        .rnr_retry = src->rnr_retry,
        .alt_port_num = src->alt_port_num,
        .alt_timeout = src->alt_timeout,
    };
    ibv_copy_ah_attr_from_kern(&dst->ah_attr, &src->ah_attr);
    ibv_copy_ah_attr_from_kern(&dst->alt_ah_attr, &src->alt_ah_attr);
}

void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *dst, struct ib_user_path_rec *src)
{
    *dst = (struct ibv_sa_path_rec){
        .dlid = src->dlid,
        .slid = src->slid,
        .raw_traffic = (int)src->raw_traffic,
        .flow_label = src->flow_label,
        .hop_limit = src->hop_limit,
        .traffic_class = src->traffic_class,
        .reversible = (int)src->reversible,
        .numb_path = src->numb_path,
        .pkey = src->pkey,
        .sl = src->sl,
        .mtu_selector = src->mtu_selector,
        .mtu = (uint8_t)src->mtu,
        .rate_selector = src->rate_selector,
        .rate = src->rate,
        .packet_life_time_selector = src->packet_life_time_selector,
        .packet_life_time = src->packet_life_time,
        .preference = src->preference,
    };
    memcpy(dst->dgid.raw, src->dgid, sizeof src->dgid);
    memcpy(dst->sgid.raw, src->sgid, sizeof src->sgid);
}

void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *dst, struct ibv_sa_path_rec *src)
{
    *dst = (struct ib_user_path_rec){
        .dlid = src->dlid,
        .slid = src->slid,
        .raw_traffic = (uint32_t)src->raw_traffic,
        .flow_label = src->flow_label,
        .reversible = (uint32_t)src->reversible,
        .mtu = src->mtu,
        .pkey = src->pkey,
        .hop_limit = src->hop_limit,
        .traffic_class = src->traffic_class,
        .numb_path = src->numb_path,
        .sl = src->sl,
        .mtu_selector = src->mtu_selector,
        .rate_selector = src->rate_selector,
        .rate = src->rate,
        .packet_life_time_selector = src->packet_life_time_selector,
        .packet_life_time = src->packet_life_time,
        .preference = src->preference,
    };
    memcpy(dst->dgid, src->dgid.raw, sizeof dst->dgid);
    memcpy(dst->sgid, src->sgid.raw, sizeof dst->sgid);
}
