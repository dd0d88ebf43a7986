// SPDX-License-Identifier: MIT
// Names of enum values in words. Values that no header names yet read "unknown", never NULL: programs print
// the result without a look.
#include "face/verbs/verbs_face.h"

#define WORDS(table, value) words(table, sizeof(table) / sizeof *(table), value)

static const char *words(const char *const *table, size_t n, int value)
{
    return value >= 0 && (size_t)value < n && table[value] ? table[value] : "unknown";
}

const char *ibv_node_type_str(enum ibv_node_type node_type)
{
    static const char *const table[] = {
        [IBV_NODE_CA] = "InfiniBand channel adapter",
        [IBV_NODE_SWITCH] = "InfiniBand switch",
        [IBV_NODE_ROUTER] = "InfiniBand router",
        [IBV_NODE_RNIC] = "iWARP NIC",
        [IBV_NODE_USNIC] = "usNIC",
        [IBV_NODE_USNIC_UDP] = "usNIC UDP",
        [IBV_NODE_UNSPECIFIED] = "unspecified",
    };
    return WORDS(table, node_type);
}

const char *ibv_port_state_str(enum ibv_port_state port_state)
{
    static const char *const table[] = {
        [IBV_PORT_NOP] = "no change (NOP)", [IBV_PORT_DOWN] = "down",
        [IBV_PORT_INIT] = "init",           [IBV_PORT_ARMED] = "armed",
        [IBV_PORT_ACTIVE] = "active",       [IBV_PORT_ACTIVE_DEFER] = "active defer",
    };
    return WORDS(table, port_state);
}

const char *ibv_event_type_str(enum ibv_event_type event)
{
    static const char *const table[] = {
        [IBV_EVENT_CQ_ERR] = "completion queue error",
        [IBV_EVENT_QP_FATAL] = "QP fatal error",
        [IBV_EVENT_QP_REQ_ERR] = "QP invalid request",
        [IBV_EVENT_QP_ACCESS_ERR] = "QP access violation",
        [IBV_EVENT_COMM_EST] = "communication established",
        [IBV_EVENT_SQ_DRAINED] = "send queue drained",
        [IBV_EVENT_PATH_MIG] = "path migrated",
        [IBV_EVENT_PATH_MIG_ERR] = "path migration failed",
        [IBV_EVENT_DEVICE_FATAL] = "device fatal error",
        [IBV_EVENT_PORT_ACTIVE] = "port active",
        [IBV_EVENT_PORT_ERR] = "port error",
        [IBV_EVENT_LID_CHANGE] = "LID changed",
        [IBV_EVENT_PKEY_CHANGE] = "P_Key table changed",
        [IBV_EVENT_SM_CHANGE] = "subnet manager changed",
        [IBV_EVENT_SRQ_ERR] = "SRQ fatal error",
        [IBV_EVENT_SRQ_LIMIT_REACHED] = "SRQ limit reached",
        [IBV_EVENT_QP_LAST_WQE_REACHED] = "last WQE reached",
        [IBV_EVENT_CLIENT_REREGISTER] = "client must register again",
        [IBV_EVENT_GID_CHANGE] = "GID table changed",
        [IBV_EVENT_WQ_FATAL] = "work queue fatal error",
    };
    return WORDS(table, event);
}

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
    static const char *const table[] = {
        [IBV_WC_SUCCESS] = "success",
        [IBV_WC_LOC_LEN_ERR] = "local length error",
        [IBV_WC_LOC_QP_OP_ERR] = "local QP operation error",
        [IBV_WC_LOC_EEC_OP_ERR] = "local EE context operation error",
        [IBV_WC_LOC_PROT_ERR] = "local protection error",
        [IBV_WC_WR_FLUSH_ERR] = "work request flushed",
        [IBV_WC_MW_BIND_ERR] = "memory window bind error",
        [IBV_WC_BAD_RESP_ERR] = "bad response error",
        [IBV_WC_LOC_ACCESS_ERR] = "local access error",
        [IBV_WC_REM_INV_REQ_ERR] = "remote invalid request error",
        [IBV_WC_REM_ACCESS_ERR] = "remote access error",
        [IBV_WC_REM_OP_ERR] = "remote operation error",
        [IBV_WC_RETRY_EXC_ERR] = "transport retries exceeded",
        [IBV_WC_RNR_RETRY_EXC_ERR] = "RNR retries exceeded",
        [IBV_WC_LOC_RDD_VIOL_ERR] = "local RDD violation",
        [IBV_WC_REM_INV_RD_REQ_ERR] = "remote invalid RD request",
        [IBV_WC_REM_ABORT_ERR] = "remote aborted",
        [IBV_WC_INV_EECN_ERR] = "invalid EE context number",
        [IBV_WC_INV_EEC_STATE_ERR] = "invalid EE context state",
        [IBV_WC_FATAL_ERR] = "fatal error",
        [IBV_WC_RESP_TIMEOUT_ERR] = "response timeout",
        [IBV_WC_GENERAL_ERR] = "general error",
        [IBV_WC_TM_ERR] = "tag matching error",
        [IBV_WC_TM_RNDV_INCOMPLETE] = "tag matching rendezvous incomplete",
    };
    return WORDS(table, status);
}
