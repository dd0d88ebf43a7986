// SPDX-License-Identifier: MIT
// What the examples of direct drive have in common, and none of it is direct drive: a device, a target memory
// that may be written and counted in by peers, and some queue pairs of this process connected to each other,
// whose send side is left to the program. In your program the targets are other processes; nothing else
// changes.
#ifndef EXAMPLES_DIRECT_DRIVE_H
#define EXAMPLES_DIRECT_DRIVE_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drydock/verbs.h"

enum { DRIVE_QUEUES = 4, DRIVE_BLOCKS = 64 };

struct drive {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    unsigned char *source, *target; // `bytes` each
    size_t bytes;
    struct ibv_mr *source_mr, *target_mr;
    struct drydock_target to; // the target memory, as every queue names it
    unsigned queues;
    struct {
        struct ibv_cq *cq, *peer_cq; // one CQ for one queue: its producer polls it alone
        struct ibv_qp *qp, *peer;
        struct drydock_queue q; // what the producer gets
    } way[DRIVE_QUEUES];
};

static inline void must(int ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

static inline void drive_connect(struct drive *d, struct ibv_qp *qp, uint32_t dest)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
                            .port_num = 1,
                            .qp_access_flags =
                                IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC};

    must(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
         "to INIT");
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                             .path_mtu = IBV_MTU_4096,
                             .dest_qp_num = dest,
                             .max_dest_rd_atomic = 1,
                             .min_rnr_timer = 12};
    a.ah_attr = (struct ibv_ah_attr){.port_num = 1, .is_global = 1, .grh.hop_limit = 1};
    must(!ibv_query_gid(d->ctx, 1, 0, &a.ah_attr.grh.dgid), "ibv_query_gid");
    must(!ibv_modify_qp(qp, &a,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                            IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
         "to RTR");
    a = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
    must(!ibv_modify_qp(qp, &a,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                            IBV_QP_MAX_QP_RD_ATOMIC),
         "to RTS");
}

static inline void drive_open_way(struct drive *d, unsigned i)
{
    struct ibv_qp_init_attr attr = {
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = DRIVE_BLOCKS, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};

    must((d->way[i].cq = ibv_create_cq(d->ctx, DRIVE_BLOCKS, NULL, NULL, 0)) != NULL, "ibv_create_cq");
    must((d->way[i].peer_cq = ibv_create_cq(d->ctx, DRIVE_BLOCKS, NULL, NULL, 0)) != NULL, "ibv_create_cq");
    attr.send_cq = attr.recv_cq = d->way[i].peer_cq;
    must((d->way[i].peer = ibv_create_qp(d->pd, &attr)) != NULL, "ibv_create_qp");
    attr.send_cq = d->way[i].cq;
    // The only unusual line: nobody will call ibv_post_send on this one.
    must((d->way[i].qp = drydock_create_direct_qp(d->pd, &attr)) != NULL, "drydock_create_direct_qp");
    drive_connect(d, d->way[i].qp, d->way[i].peer->qp_num);
    drive_connect(d, d->way[i].peer, d->way[i].qp->qp_num);
    must(!drydock_direct_queue(d->way[i].qp, &d->way[i].q), "drydock_direct_queue");
}

static inline struct ibv_mr *drive_register(struct drive *d, unsigned char **memory)
{
    struct ibv_mr *mr;

    must((*memory = aligned_alloc(4096, d->bytes)) != NULL, "memory");
    memset(*memory, 0, d->bytes);
    mr = ibv_reg_mr(d->pd, *memory, d->bytes,
                    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                        IBV_ACCESS_REMOTE_ATOMIC);
    must(mr != NULL, "ibv_reg_mr");
    return mr;
}

static inline void drive_open(struct drive *d, unsigned queues, size_t bytes)
{
    int n;
    struct ibv_device **list = ibv_get_device_list(&n);

    must(list && n > 0 && (d->ctx = ibv_open_device(list[0])) != NULL, "no device");
    ibv_free_device_list(list);
    must((d->pd = ibv_alloc_pd(d->ctx)) != NULL, "ibv_alloc_pd");
    d->bytes = bytes;
    d->source_mr = drive_register(d, &d->source);
    d->target_mr = drive_register(d, &d->target);
    d->to = drydock_target_of((uintptr_t)d->target, bytes, d->target_mr->rkey);
    d->queues = queues;
    for (unsigned i = 0; i < queues; i++)
        drive_open_way(d, i);
}

static inline void drive_close(struct drive *d)
{
    for (unsigned i = 0; i < d->queues; i++)
        must(!ibv_destroy_qp(d->way[i].qp) && !ibv_destroy_qp(d->way[i].peer) &&
                 !ibv_destroy_cq(d->way[i].cq) && !ibv_destroy_cq(d->way[i].peer_cq),
             "destroy");
    must(!ibv_dereg_mr(d->source_mr) && !ibv_dereg_mr(d->target_mr) && !ibv_dealloc_pd(d->pd) &&
             !ibv_close_device(d->ctx),
         "close");
    free(d->source);
    free(d->target);
}

#endif
