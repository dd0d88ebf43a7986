// SPDX-License-Identifier: MIT
// What verbs has and this device has not: flow steering and its counters, raw packet queues and what spreads
// them, limits of rate, tag matching. An empty entry of the table would give the same
// EOPNOTSUPP, and nobody would be told why.
#include "face/verbs/verbs_face.h"

static int no(const char *call, const char *what)
{
    return vb_status(dock_refuse(EOPNOTSUPP, "%s: %s: not offered", call, what));
}

static void *none(const char *call, const char *what)
{
    no(call, what);
    return NULL;
}

// ---- flow steering and counters

static const char steering[] = "flow steering and its counters";

static struct ibv_flow *create_flow(struct ibv_qp *qp, struct ibv_flow_attr *attr)
{
    return (void)qp, (void)attr, none("ibv_create_flow", steering);
}

static int destroy_flow(struct ibv_flow *flow)
{
    return (void)flow, no("ibv_destroy_flow", steering);
}

static struct ibv_flow_action *create_flow_action_esp(struct ibv_context *context,
                                                      struct ibv_flow_action_esp_attr *attr)
{
    return (void)context, (void)attr, none("ibv_create_flow_action_esp", steering);
}

static int modify_flow_action_esp(struct ibv_flow_action *action, struct ibv_flow_action_esp_attr *attr)
{
    return (void)action, (void)attr, no("ibv_modify_flow_action_esp", steering);
}

static int destroy_flow_action(struct ibv_flow_action *action)
{
    return (void)action, no("ibv_destroy_flow_action", steering);
}

static struct ibv_counters *create_counters(struct ibv_context *context, struct ibv_counters_init_attr *attr)
{
    return (void)context, (void)attr, none("ibv_create_counters", steering);
}

static int destroy_counters(struct ibv_counters *counters)
{
    return (void)counters, no("ibv_destroy_counters", steering);
}

static int attach_counters(struct ibv_counters *counters, struct ibv_counter_attach_attr *attr,
                           struct ibv_flow *flow)
{
    return (void)counters, (void)attr, (void)flow, no("ibv_attach_counters_point_flow", steering);
}

static int read_counters(struct ibv_counters *counters, uint64_t *values, uint32_t n, uint32_t flags)
{
    return (void)counters, (void)values, (void)n, (void)flags, no("ibv_read_counters", steering);
}

// ---- work queues of raw packets

static const char raw[] = "work queues of their own, as raw packet queues have them";

static struct ibv_wq *create_wq(struct ibv_context *context, struct ibv_wq_init_attr *attr)
{
    return (void)context, (void)attr, none("ibv_create_wq", raw);
}

static int modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *attr)
{
    return (void)wq, (void)attr, no("ibv_modify_wq", raw);
}

static int destroy_wq(struct ibv_wq *wq)
{
    return (void)wq, no("ibv_destroy_wq", raw);
}

static struct ibv_rwq_ind_table *create_ind_table(struct ibv_context *context,
                                                  struct ibv_rwq_ind_table_init_attr *attr)
{
    return (void)context, (void)attr, none("ibv_create_rwq_ind_table", raw);
}

static int destroy_ind_table(struct ibv_rwq_ind_table *table)
{
    return (void)table, no("ibv_destroy_rwq_ind_table", raw);
}

// ---- single calls

static int modify_qp_rate_limit(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr)
{
    return (void)qp, (void)attr, no("ibv_modify_qp_rate_limit", "limits of rate");
}

static int post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *op, struct ibv_ops_wr **bad_op)
{
    if (bad_op)
        *bad_op = op;
    return (void)srq, no("ibv_post_srq_ops", "tag matching");
}

void vb_fill_refusals(struct verbs_context *v)
{
    v->ibv_create_flow = create_flow;
    v->ibv_destroy_flow = destroy_flow;
    v->create_flow_action_esp = create_flow_action_esp;
    v->modify_flow_action_esp = modify_flow_action_esp;
    v->destroy_flow_action = destroy_flow_action;
    v->create_counters = create_counters;
    v->destroy_counters = destroy_counters;
    v->attach_counters_point_flow = attach_counters;
    v->read_counters = read_counters;
    v->create_wq = create_wq;
    v->modify_wq = modify_wq;
    v->destroy_wq = destroy_wq;
    v->create_rwq_ind_table = create_ind_table;
    v->destroy_rwq_ind_table = destroy_ind_table;
    v->modify_qp_rate_limit = modify_qp_rate_limit;
    v->post_srq_ops = post_srq_ops;
}
