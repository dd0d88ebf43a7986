// SPDX-License-Identifier: MIT
// Which attributes a change of queue state must and may carry, by service, and the range of each. Pure:
// looks at nothing but its arguments, so that a change which is refused has changed nothing.
#include <stdio.h>

#include "face/verbs/verbs_face.h"

enum {
    RC = 1,
    UC = 2,
    UD = 4,
    INI = 8,
    TGT = 16,
    XRC = INI | TGT,
    CONNECTED = RC | UC | XRC,
    ALL = RC | UC | UD | INI,
};

struct rule {
    enum ibv_qp_state from, to;
    uint8_t services;
    int required, optional; // beside IBV_QP_STATE
};

#define INIT_CONN (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define INIT_UD (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY)
#define RTR_UC (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define RTR_RC (RTR_UC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTS_RC                                                                                               \
    (IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_TIMEOUT)
// Half of an XRC connection may be told what only the other half has use for: perftest does.
#define RESPONDS (IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define REQUESTS (IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY)
#define LIVE_UC (IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE)
#define LIVE_RC (LIVE_UC | IBV_QP_MIN_RNR_TIMER)
#define LIVE_UD (IBV_QP_CUR_STATE | IBV_QP_QKEY)
#define SQD_UC (IBV_QP_AV | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PATH_MIG_STATE)
#define SQD_RC                                                                                               \
    (SQD_UC | IBV_QP_PORT | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC | \
     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)

// The manual gives the required ones from RESET to RTS; the optional ones and the other rows are those of
// the InfiniBand specification's table of transitions. RESET and ERR can be reached from everywhere and
// take nothing.
static const struct rule rules[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, CONNECTED, INIT_CONN, 0},
    {IBV_QPS_RESET, IBV_QPS_INIT, UD, INIT_UD, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, CONNECTED, 0, INIT_CONN},
    {IBV_QPS_INIT, IBV_QPS_INIT, UD, 0, INIT_UD},
    {IBV_QPS_INIT, IBV_QPS_RTR, RC, RTR_RC, IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {IBV_QPS_INIT, IBV_QPS_RTR, TGT, RTR_RC, IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {IBV_QPS_INIT, IBV_QPS_RTR, UC, RTR_UC, IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {IBV_QPS_INIT, IBV_QPS_RTR, INI, RTR_UC,
     RESPONDS | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {IBV_QPS_INIT, IBV_QPS_RTR, UD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
    {IBV_QPS_RTR, IBV_QPS_RTS, RC, RTS_RC, LIVE_RC},
    {IBV_QPS_RTR, IBV_QPS_RTS, INI, RTS_RC, LIVE_UC},
    {IBV_QPS_RTR, IBV_QPS_RTS, TGT, IBV_QP_SQ_PSN | IBV_QP_TIMEOUT, REQUESTS | LIVE_RC},
    {IBV_QPS_RTR, IBV_QPS_RTS, UC, IBV_QP_SQ_PSN, LIVE_UC},
    {IBV_QPS_RTR, IBV_QPS_RTS, UD, IBV_QP_SQ_PSN, LIVE_UD},
    {IBV_QPS_RTS, IBV_QPS_RTS, RC | TGT, 0, LIVE_RC},
    {IBV_QPS_RTS, IBV_QPS_RTS, UC | INI, 0, LIVE_UC},
    {IBV_QPS_RTS, IBV_QPS_RTS, UD, 0, LIVE_UD},
    {IBV_QPS_RTS, IBV_QPS_SQD, ALL, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPS_SQD, IBV_QPS_RTS, RC, 0, LIVE_RC},
    {IBV_QPS_SQD, IBV_QPS_RTS, UC | INI, 0, LIVE_UC},
    {IBV_QPS_SQD, IBV_QPS_RTS, UD, 0, LIVE_UD},
    {IBV_QPS_SQD, IBV_QPS_SQD, RC, 0, SQD_RC},
    {IBV_QPS_SQD, IBV_QPS_SQD, UC, 0, SQD_UC},
    {IBV_QPS_SQD, IBV_QPS_SQD, INI, 0, SQD_RC & ~(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)},
    {IBV_QPS_SQD, IBV_QPS_SQD, UD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
    {IBV_QPS_SQE, IBV_QPS_RTS, UC, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
    {IBV_QPS_SQE, IBV_QPS_RTS, UD, 0, LIVE_UD},
};

static const char *state_name(enum ibv_qp_state s)
{
    static const char *const name[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
    return (unsigned)s < sizeof name / sizeof *name ? name[s] : "?";
}

// Names of the bits of `mask`, for the log. The longest text has about 250 bytes.
static const char *mask_names(int mask, char *text, size_t size)
{
    static const char *const name[] = {
        "STATE",
        "CUR_STATE",
        "EN_SQD_ASYNC_NOTIFY",
        "ACCESS_FLAGS",
        "PKEY_INDEX",
        "PORT",
        "QKEY",
        "AV",
        "PATH_MTU",
        "TIMEOUT",
        "RETRY_CNT",
        "RNR_RETRY",
        "RQ_PSN",
        "MAX_QP_RD_ATOMIC",
        "ALT_PATH",
        "MIN_RNR_TIMER",
        "SQ_PSN",
        "MAX_DEST_RD_ATOMIC",
        "PATH_MIG_STATE",
        "CAP",
        "DEST_QPN",
    };
    size_t used = 0;

    text[0] = '\0';
    for (int bit = 0; bit < 32 && used < size; bit++)
        if (mask & (1u << bit))
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? " " : "",
                                     bit < (int)(sizeof name / sizeof *name) ? name[bit] : "unknown");
    return text;
}

static int check_transition(uint8_t service, enum ibv_qp_state now, enum ibv_qp_state next, int mask)
{
    char text[300];

    mask &= ~IBV_QP_STATE;
    if (next == IBV_QPS_RESET || next == IBV_QPS_ERR) {
        if (mask)
            return dock_refuse(EINVAL, "ibv_modify_qp: to %s goes with no other attribute, given: %s",
                               state_name(next), mask_names(mask, text, sizeof text));
        return 0;
    }
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const struct rule *r = &rules[i];
        if (r->from != now || r->to != next || !(r->services & service))
            continue;
        if (r->required & ~mask)
            return dock_refuse(EINVAL, "ibv_modify_qp: %s to %s lacks %s", state_name(now), state_name(next),
                               mask_names(r->required & ~mask, text, sizeof text));
        if (mask & ~(r->required | r->optional))
            return dock_refuse(EINVAL, "ibv_modify_qp: %s to %s does not take %s", state_name(now),
                               state_name(next),
                               mask_names(mask & ~(r->required | r->optional), text, sizeof text));
        return 0;
    }
    return dock_refuse(EINVAL, "ibv_modify_qp: there is no way from %s to %s", state_name(now),
                       state_name(next));
}

struct range {
    int bit;
    uint64_t value, most;
    const char *what;
};

static int check_ranges(const struct ibv_qp_attr *a, int mask, const struct dock_limits *l)
{
    const struct range ranges[] = {
        {IBV_QP_PKEY_INDEX, a->pkey_index, 0, "P_Key index"},
        {IBV_QP_RQ_PSN, a->rq_psn, 0xffffff, "receive PSN"},
        {IBV_QP_SQ_PSN, a->sq_psn, 0xffffff, "send PSN"},
        {IBV_QP_DEST_QPN, a->dest_qp_num, 0xffffff, "destination queue number"},
        {IBV_QP_TIMEOUT, a->timeout, 31, "timeout"},
        {IBV_QP_RETRY_CNT, a->retry_cnt, 7, "retry count"},
        {IBV_QP_RNR_RETRY, a->rnr_retry, 7, "RNR retry count"},
        {IBV_QP_MIN_RNR_TIMER, a->min_rnr_timer, 31, "RNR timer"},
        {IBV_QP_MAX_QP_RD_ATOMIC, a->max_rd_atomic, l->max_rd_atomic, "max_rd_atomic"},
        {IBV_QP_MAX_DEST_RD_ATOMIC, a->max_dest_rd_atomic, l->max_rd_atomic, "max_dest_rd_atomic"},
        {IBV_QP_PATH_MIG_STATE, (uint64_t)a->path_mig_state, IBV_MIG_MIGRATED, "path migration state"},
        {IBV_QP_EN_SQD_ASYNC_NOTIFY, a->en_sqd_async_notify, 1, "SQD notification"},
    };

    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if ((mask & ranges[i].bit) && ranges[i].value > ranges[i].most)
            return dock_refuse(EINVAL, "ibv_modify_qp: %s %llu: at most %llu", ranges[i].what,
                               (unsigned long long)ranges[i].value, (unsigned long long)ranges[i].most);
    return 0;
}

#define REMOTE_RIGHTS                                                                                        \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC |  \
     IBV_ACCESS_MW_BIND | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_OPTIONAL_RANGE)

static int check_values(const struct ibv_qp_attr *a, int mask, const struct dock_limits *l)
{
    if ((mask & IBV_QP_PORT) && a->port_num != VB_PORT)
        return dock_refuse(EINVAL, "ibv_modify_qp: port %u: the only port is 1", a->port_num);
    if ((mask & IBV_QP_PATH_MTU) && (a->path_mtu < IBV_MTU_256 || a->path_mtu > IBV_MTU_4096))
        return dock_refuse(EINVAL, "ibv_modify_qp: path MTU code %d: 1 to 5 exist", (int)a->path_mtu);
    if ((mask & IBV_QP_ACCESS_FLAGS) && (a->qp_access_flags & ~(unsigned)REMOTE_RIGHTS))
        return dock_refuse(EINVAL, "ibv_modify_qp: unknown access flags %#x", a->qp_access_flags);
    if (mask & IBV_QP_ALT_PATH)
        return dock_refuse(
            EINVAL, "ibv_modify_qp: alternate paths are not offered (IBV_DEVICE_AUTO_PATH_MIG not set)");
    if (mask & (IBV_QP_CAP | IBV_QP_RATE_LIMIT))
        return dock_refuse(EINVAL,
                           "ibv_modify_qp: capabilities are fixed at creation, rates are not limited");
    if ((mask & IBV_QP_AV) && vb_check_av(&a->ah_attr, "ibv_modify_qp"))
        return EINVAL;
    return check_ranges(a, mask, l);
}

static uint8_t service_of(enum ibv_qp_type type)
{
    switch (type) {
    case IBV_QPT_RC:
        return RC;
    case IBV_QPT_UC:
        return UC;
    case IBV_QPT_XRC_SEND:
        return INI;
    case IBV_QPT_XRC_RECV:
        return TGT;
    default:
        return UD;
    }
}

int vb_qp_rules(enum ibv_qp_type type, enum ibv_qp_state now, const struct ibv_qp_attr *attr, int mask,
                const struct dock_limits *limits)
{
    enum ibv_qp_state next = mask & IBV_QP_STATE ? attr->qp_state : now;
    int err;

    if ((unsigned)next > IBV_QPS_ERR)
        return dock_refuse(EINVAL, "ibv_modify_qp: %d is no queue state", (int)next);
    if ((mask & IBV_QP_CUR_STATE) && attr->cur_qp_state != now)
        return dock_refuse(EINVAL, "ibv_modify_qp: the caller takes the queue to be in %s, it is in %s",
                           state_name(attr->cur_qp_state), state_name(now));
    err = check_transition(service_of(type), now, next, mask);
    return err ? err : check_values(attr, mask, limits);
}
