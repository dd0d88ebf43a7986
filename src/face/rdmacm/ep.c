// SPDX-License-Identifier: MIT
// Endpoints: ids whose calls wait.
#include <stdlib.h>

#include "face/rdmacm/rdmacm_face.h"

static int passive(struct cm_id *id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
                   const struct ibv_qp_init_attr *attr)
{
    if (rdma_bind_addr(&id->id, res->ai_src_addr))
        return -1;
    if (pd)
        id->id.pd = pd;
    if (!attr)
        return 0;
    id->ep_attr = malloc(sizeof *attr);
    if (!id->ep_attr)
        return cm_fail(dock_refuse(ENOMEM, "rdma_create_ep: no memory"));
    *id->ep_attr = *attr;
    id->ep_attr->qp_type = res->ai_qp_type;
    return 0;
}

static int resolve_route(struct cm_id *id, const struct rdma_addrinfo *res)
{
    if (!res->ai_route_len)
        return rdma_resolve_route(&id->id, 2000);
    if (rdma_set_option(&id->id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, res->ai_route, res->ai_route_len))
        return -1;
    cm_acquire();
    return cm_end_call(id, 0);
}

static int active(struct cm_id *id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
                  struct ibv_qp_init_attr *attr)
{
    if (rdma_resolve_addr(&id->id, res->ai_src_addr, res->ai_dst_addr, 2000) || resolve_route(id, res))
        return -1;
    if (attr) {
        attr->qp_type = res->ai_qp_type;
        if (rdma_create_qp(&id->id, pd, attr))
            return -1;
    }
    if (!res->ai_connect_len)
        return 0;
    id->connect = malloc(res->ai_connect_len);
    if (!id->connect)
        return cm_fail(dock_refuse(ENOMEM, "rdma_create_ep: no memory"));
    memcpy(id->connect, res->ai_connect, res->ai_connect_len);
    id->connect_len = res->ai_connect_len;
    return 0;
}

int rdma_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *res, struct ibv_pd *pd,
                   struct ibv_qp_init_attr *qp_init_attr)
{
    struct rdma_cm_id *made;
    int ret, why;

    if (!id || !res)
        return cm_fail(dock_refuse(EINVAL, "rdma_create_ep: no place for the id, or no address"));
    if (cm_create_id(NULL, &made, NULL, res->ai_port_space, res->ai_qp_type))
        return -1;
    ret = res->ai_flags & RAI_PASSIVE ? passive(cm_id(made), res, pd, qp_init_attr)
                                      : active(cm_id(made), res, pd, qp_init_attr);
    if (ret) {
        why = errno;
        rdma_destroy_ep(made);
        return cm_fail(why);
    }
    *id = made;
    return 0;
}

void rdma_destroy_ep(struct rdma_cm_id *id)
{
    if (!id)
        return;
    rdma_destroy_qp(id);
    rdma_destroy_srq(id);
    rdma_destroy_id(id);
}

// 0, or a positive errno value.
static int judge(struct cm_id *listen, struct rdma_cm_event *e)
{
    struct ibv_qp_init_attr attr;

    if (e->event == RDMA_CM_EVENT_REJECTED)
        return ECONNREFUSED;
    if (e->status)
        return e->status < 0 ? -e->status : e->status;
    if (e->event != RDMA_CM_EVENT_CONNECT_REQUEST)
        return EINVAL;
    if (!listen->ep_attr)
        return 0;
    attr = *listen->ep_attr;
    return rdma_create_qp(e->id, listen->id.pd, &attr) ? errno : 0;
}

int rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id)
{
    struct rdma_cm_event *e;
    int err;

    if (!cm_id_ok(listen, "rdma_get_request"))
        return -1;
    if (!id || !cm_id(listen)->sync)
        return cm_fail(
            dock_refuse(EINVAL, "rdma_get_request: no place for the id, or the listener is not synchronous"));
    if (listen->event) {
        rdma_ack_cm_event(listen->event);
        listen->event = NULL;
    }
    if (rdma_get_cm_event(listen->channel, &e))
        return -1;
    err = judge(cm_id(listen), e);
    if (err) {
        // A request that got no queue pair is nobody's: its asker must not wait for an answer.
        if (e->event == RDMA_CM_EVENT_CONNECT_REQUEST)
            rdma_destroy_id(e->id);
        listen->event = e;
        return cm_fail(err);
    }
    *id = e->id;
    (*id)->event = e;
    return 0;
}
