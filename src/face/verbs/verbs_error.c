// SPDX-License-Identifier: MIT
// The device's status, events and states in the words of verbs.
#include "face/verbs/verbs_face.h"

enum ibv_wc_status vb_wc_status(uint32_t device_status)
{
    switch ((enum dock_status)device_status) {
    case DOCK_OK:
        return IBV_WC_SUCCESS;
    case DOCK_ST_LOC_LEN:
        return IBV_WC_LOC_LEN_ERR;
    case DOCK_ST_UNSUPPORTED:
    case DOCK_ST_LOC_QP_OP:
        return IBV_WC_LOC_QP_OP_ERR;
    case DOCK_ST_LOC_PROT:
        return IBV_WC_LOC_PROT_ERR;
    case DOCK_ST_FLUSH:
    case DOCK_ST_FLUSH_DONE:
    case DOCK_ST_SUSPEND_DONE:
        return IBV_WC_WR_FLUSH_ERR;
    case DOCK_ST_MW_BIND:
        return IBV_WC_MW_BIND_ERR;
    case DOCK_ST_REM_RESP_LEN: // the responder's "invalid request": its receive was too short for the message
    case DOCK_ST_REM_INV_REQ:
        return IBV_WC_REM_INV_REQ_ERR;
    case DOCK_ST_REM_ACCESS:
        return IBV_WC_REM_ACCESS_ERR;
    case DOCK_ST_REM_OP:
        return IBV_WC_REM_OP_ERR;
    case DOCK_ST_RETRY_EXC:
        return IBV_WC_RETRY_EXC_ERR;
    case DOCK_ST_RNR_EXC:
        return IBV_WC_RNR_RETRY_EXC_ERR;
    }
    return IBV_WC_GENERAL_ERR;
}

static const struct {
    enum dock_event_kind device;
    enum ibv_event_type verbs;
} events[] = {
    {DOCK_EVENT_CQ_ERR, IBV_EVENT_CQ_ERR},
    {DOCK_EVENT_QP_FATAL, IBV_EVENT_QP_FATAL},
    {DOCK_EVENT_QP_REQ_ERR, IBV_EVENT_QP_REQ_ERR},
    {DOCK_EVENT_QP_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR},
    {DOCK_EVENT_COMM_EST, IBV_EVENT_COMM_EST},
    {DOCK_EVENT_SQ_DRAINED, IBV_EVENT_SQ_DRAINED},
    {DOCK_EVENT_QP_LAST_WQE, IBV_EVENT_QP_LAST_WQE_REACHED},
    {DOCK_EVENT_SRQ_LIMIT, IBV_EVENT_SRQ_LIMIT_REACHED},
    {DOCK_EVENT_SRQ_ERR, IBV_EVENT_SRQ_ERR},
    {DOCK_EVENT_DEVICE_FATAL, IBV_EVENT_DEVICE_FATAL},
    {DOCK_EVENT_PORT_ACTIVE, IBV_EVENT_PORT_ACTIVE},
    {DOCK_EVENT_PORT_ERR, IBV_EVENT_PORT_ERR},
    {DOCK_EVENT_GID_CHANGE, IBV_EVENT_GID_CHANGE},
};

enum ibv_event_type vb_event_type(enum dock_event_kind kind)
{
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        if (events[i].device == kind)
            return events[i].verbs;
    return IBV_EVENT_DEVICE_FATAL;
}

enum dock_event_kind vb_device_event(enum ibv_event_type type)
{
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        if (events[i].verbs == type)
            return events[i].device;
    return DOCK_EVENT_DEVICE_FATAL;
}

// Queue states in the order of the verbs enum. URMA's SUSPENDED is SQD for a program that can see it at all.
static const enum dock_state states[] = {
    [IBV_QPS_RESET] = DOCK_RESET, [IBV_QPS_INIT] = DOCK_INIT, [IBV_QPS_RTR] = DOCK_RTR,
    [IBV_QPS_RTS] = DOCK_RTS,     [IBV_QPS_SQD] = DOCK_SQD,   [IBV_QPS_SQE] = DOCK_SQE,
    [IBV_QPS_ERR] = DOCK_ERR,
};

enum ibv_qp_state vb_qp_state(enum dock_state state)
{
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (states[i] == state)
            return (enum ibv_qp_state)i;
    return state == DOCK_SUSPENDED ? IBV_QPS_SQD : IBV_QPS_UNKNOWN;
}

enum dock_state vb_device_state(enum ibv_qp_state state)
{
    return states[state];
}
