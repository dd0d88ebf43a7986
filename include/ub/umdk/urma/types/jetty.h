// SPDX-License-Identifier: MIT
// A jetty: a send queue and a receive queue under one id; its groups; its handle at a peer (target jetty).
#ifndef DRYDOCK_URMA_TYPES_JETTY_H
#define DRYDOCK_URMA_TYPES_JETTY_H

#include "jfr.h"
#include "jfs.h"

#define URMA_MAX_JETTY_IN_JETTY_GRP 32U

typedef enum urma_tp_type {
    URMA_RTP = 0,
    URMA_CTP = 1,
    URMA_UTP = 2,
} urma_tp_type_t;

typedef enum urma_jetty_grp_policy {
    URMA_JETTY_GRP_POLICY_RR = 0,
    URMA_JETTY_GRP_POLICY_HASH_HINT = 1,
} urma_jetty_grp_policy_t;

typedef enum urma_target_type {
    URMA_JFR = 0,
    URMA_JETTY = 1,
    URMA_JETTY_GROUP = 2,
} urma_target_type_t;

typedef enum urma_jetty_attr_mask {
    JETTY_RX_THRESHOLD = 1 << 0,
    JETTY_STATE = 1 << 1,
} urma_jetty_attr_mask_t;

typedef enum urma_notify_type {
    URMA_IMPORT_JETTY_NOTIFY = 0,
    URMA_BIND_JETTY_NOTIFY = 1,
} urma_notify_type_t;

typedef struct urma_jetty_grp urma_jetty_grp_t;

typedef union urma_import_jetty_flag {
    struct {
        uint32_t token_policy : 3;
        uint32_t order_type : 8;
        uint32_t share_tp : 1;
        uint32_t has_drv_ext : 1;
        uint32_t has_user_info : 1;
        uint32_t reserved : 18;
    } bs;
    uint32_t value;
} urma_import_jetty_flag_t;

typedef struct urma_rjfr {
    urma_jfr_id_t jfr_id;
    urma_transport_mode_t trans_mode;
    urma_import_jetty_flag_t flag;
    urma_tp_type_t tp_type;
} urma_rjfr_t;

typedef struct urma_tp {
    uint32_t tpn;
} urma_tp_t;

typedef union urma_jetty_flag {
    struct {
        uint32_t share_jfr : 1;
        uint32_t non_blocking : 1;
        uint32_t has_drv_ext : 1;
        uint32_t has_user_info : 1;
        uint32_t reserved : 28;
    } bs;
    uint32_t value;
} urma_jetty_flag_t;

typedef struct urma_jetty_cfg {
    uint32_t id;
    urma_jetty_flag_t flag;
    urma_jfs_cfg_t jfs_cfg;
    union {
        struct {
            urma_jfr_t *jfr;
            urma_jfc_t *jfc;
        } shared;
        urma_jfr_cfg_t *jfr_cfg;
    };
    urma_jetty_grp_t *jetty_grp;
    uint64_t user_ctx;
} urma_jetty_cfg_t;

typedef union urma_ext_flag {
    struct {
        uint32_t enable : 1;
        uint32_t reserved : 31;
    } bs;
    uint32_t value;
} urma_ext_flag_t;

typedef struct urma_ext {
    urma_ext_flag_t flag;
    uint32_t length;
    char buf[0];
} urma_ext_t;

typedef struct urma_rjetty {
    urma_jetty_id_t jetty_id;
    urma_transport_mode_t trans_mode;
    urma_jetty_grp_policy_t policy;
    urma_target_type_t type;
    urma_import_jetty_flag_t flag;
    urma_tp_type_t tp_type;
} urma_rjetty_t;

typedef struct urma_target_jetty {
    urma_context_t *urma_ctx;
    urma_jetty_id_t id;
    uint64_t handle;
    urma_transport_mode_t trans_mode;
    urma_tp_t tp;
    urma_target_type_t type;
    urma_import_jetty_flag_t flag;
    urma_jetty_grp_policy_t policy;
    urma_tp_type_t tp_type;
} urma_target_jetty_t;

typedef struct urma_jetty_attr {
    uint32_t mask;
    uint32_t rx_threshold;
    urma_jetty_state_t state;
} urma_jetty_attr_t;

typedef struct urma_jetty_opt {
    bool is_actived;
    urma_jfs_opt_t jfs_opt;
    uint64_t reserved[URMA_OPT_REVERSED_NUM];
} urma_jetty_opt_t;

typedef struct urma_jetty {
    urma_context_t *urma_ctx;
    urma_jetty_id_t jetty_id;
    urma_target_jetty_t *remote_jetty;
    urma_jetty_cfg_t jetty_cfg;
    uint64_t handle;
    pthread_mutex_t event_mutex;
    pthread_cond_t event_cond;
    uint32_t async_events_acked;
    urma_jetty_opt_t urma_jetty_opt;
} urma_jetty_t;

typedef struct urma_notifier {
    urma_context_t *urma_ctx;
    int fd;
    void *incomplete_tjetty_list;
} urma_notifier_t;

typedef struct urma_notify {
    urma_notify_type_t type;
    urma_status_t status;
    uint64_t user_ctx;
    union {
        urma_target_jetty_t *tjetty;
        urma_jetty_t *jetty;
    };
} urma_notify_t;

typedef union urma_jetty_grp_flag {
    struct {
        uint32_t token_policy : 3;
        uint32_t reserved : 29;
    } bs;
    uint32_t value;
} urma_jetty_grp_flag_t;

typedef struct urma_jetty_grp_cfg {
    char name[URMA_MAX_NAME];
    urma_jetty_grp_flag_t flag;
    urma_token_t token_value;
    uint32_t id;
    urma_jetty_grp_policy_t policy;
    uint64_t user_ctx;
} urma_jetty_grp_cfg_t;

struct urma_jetty_grp {
    urma_context_t *urma_ctx;
    urma_jetty_id_t jetty_grp_id;
    urma_jetty_grp_cfg_t cfg;
    uint32_t jetty_cnt;
    urma_jetty_t **jetty_list;
    pthread_mutex_t list_mutex;
    uint64_t handle;
    pthread_mutex_t event_mutex;
    pthread_cond_t event_cond;
    uint32_t async_events_acked;
};

typedef void (*urma_advise_async_cb_func)(urma_status_t result, void *cb_arg);

#endif
