// SPDX-License-Identifier: MIT
// Send queues (JFS).
#ifndef DRYDOCK_URMA_TYPES_JFS_H
#define DRYDOCK_URMA_TYPES_JFS_H

#include "jfc.h"

#define URMA_JFS_SQE_BASE_ADDR_MASK (1ULL << 0)
#define URMA_JFS_ID_MASK (1ULL << 1)
#define URMA_JFS_DB_ADDR_MASK (1ULL << 2)
#define URMA_JFS_DB_STATUS_MASK (1ULL << 3)
#define URMA_JFS_PI_MASK (1ULL << 4)
#define URMA_JFS_PI_TYPE_MASK (1ULL << 5)
#define URMA_JFS_CI_MASK (1ULL << 6)

typedef enum urma_order_type {
    URMA_DEF_ORDER = 0,
    URMA_OT = 1,
    URMA_OI = 2,
    URMA_OL = 3,
    URMA_NO = 4,
} urma_order_type_t;

typedef enum urma_jfs_attr_mask {
    JFS_STATE = 1 << 0,
} urma_jfs_attr_mask_t;

typedef urma_jetty_state_t urma_jfs_state_t;

typedef union urma_jfs_flag {
    struct {
        uint32_t lock_free : 1;
        uint32_t error_suspend : 1;
        uint32_t outorder_comp : 1;
        uint32_t order_type : 8;
        uint32_t multi_path : 1;
        uint32_t ctp_rc_mul_path_mode : 1;
        uint32_t non_blocking : 1;
        uint32_t has_drv_ext : 1;
        uint32_t reserved : 17;
    } bs;
    uint32_t value;
} urma_jfs_flag_t;

union urma_jfs_opt_mask {
    struct {
        uint64_t urma_jfs_cqe_base_addr : 1;
        uint64_t urma_jfs_db_addr : 1;
        uint64_t urma_jfs_id : 1;
        uint64_t urma_jfs_pi : 1;
        uint64_t urma_jfs_pi_type : 1;
        uint64_t urma_jfs_ci : 1;
        uint64_t urma_jfs_db_status : 1;
        uint64_t reserved : 57;
    } bs;
    uint64_t value;
};

typedef struct urma_jfs_opt {
    union urma_jfs_opt_mask jfs_opt_mask;
    bool is_actived;
    uint64_t urma_jfs_sqe_base_addr;
    uint32_t urma_jfs_id;
    uint64_t urma_jfs_db_addr;
    uint8_t urma_jfs_db_status;
    uint16_t urma_jfs_pi;
    uint16_t urma_jfs_pi_type;
    uint16_t urma_jfs_ci;
    uint64_t reserved[URMA_OPT_REVERSED_NUM];
} urma_jfs_opt_t;

typedef struct urma_jfs_cfg {
    uint32_t depth;
    urma_jfs_flag_t flag;
    urma_transport_mode_t trans_mode;
    uint8_t priority;
    uint8_t max_sge;
    uint8_t max_rsge;
    uint32_t max_inline_data;
    uint8_t rnr_retry;
    uint8_t err_timeout;
    urma_jfc_t *jfc;
    uint64_t user_ctx;
} urma_jfs_cfg_t;

typedef struct urma_jfs {
    urma_context_t *urma_ctx;
    urma_jfs_id_t jfs_id;
    urma_jfs_cfg_t jfs_cfg;
    uint64_t handle;
    pthread_mutex_t event_mutex;
    pthread_cond_t event_cond;
    uint32_t async_events_acked;
    urma_jfs_opt_t urma_jfs_opt;
} urma_jfs_t;

typedef struct urma_jfs_attr {
    uint32_t mask;
    urma_jfs_state_t state;
} urma_jfs_attr_t;

#endif
