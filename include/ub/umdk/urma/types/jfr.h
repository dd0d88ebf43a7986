// SPDX-License-Identifier: MIT
// Receive queues (JFR).
#ifndef DRYDOCK_URMA_TYPES_JFR_H
#define DRYDOCK_URMA_TYPES_JFR_H

#include "jfc.h"

#define URMA_JFR_RQE_BASE_ADDR_MASK (1ULL << 0)
#define URMA_JFR_ID_MASK (1ULL << 1)
#define URMA_JFR_DB_ADDR_MASK (1ULL << 2)
#define URMA_JFR_DB_STATUS_MASK (1ULL << 3)
#define URMA_JFR_PI_MASK (1ULL << 4)
#define URMA_JFR_PI_TYPE_MASK (1ULL << 5)
#define URMA_JFR_CI_MASK (1ULL << 6)

typedef enum urma_jfr_attr_mask {
    JFR_RX_THRESHOLD = 1 << 0,
    JFR_STATE = 1 << 1,
} urma_jfr_attr_mask_t;

typedef union urma_jfr_flag {
    struct {
        uint32_t token_policy : 3;
        uint32_t tag_matching : 1;
        uint32_t lock_free : 1;
        uint32_t order_type : 8;
        uint32_t has_drv_ext : 1;
        uint32_t non_blocking : 1;
        uint32_t reserved : 17;
    } bs;
    uint32_t value;
} urma_jfr_flag_t;

union urma_jfr_opt_mask {
    struct {
        uint64_t urma_jfr_cqe_base_addr : 1;
        uint64_t urma_jfr_db_addr : 1;
        uint64_t urma_jfr_id : 1;
        uint64_t urma_jfr_pi : 1;
        uint64_t urma_jfr_pi_type : 1;
        uint64_t urma_jfr_ci : 1;
        uint64_t urma_jfr_db_status : 1;
        uint64_t reserved : 57;
    } bs;
    uint64_t value;
};

typedef struct urma_jfr_opt {
    union urma_jfr_opt_mask jfr_opt_mask;
    bool is_actived;
    uint64_t urma_jfr_rqe_base_addr;
    uint32_t urma_jfr_id;
    uint64_t urma_jfr_db_addr;
    uint8_t urma_jfr_db_status;
    uint16_t urma_jfr_pi;
    uint16_t urma_jfr_pi_type;
    uint16_t urma_jfr_ci;
    uint64_t reserved[URMA_OPT_REVERSED_NUM];
} urma_jfr_opt_t;

typedef struct urma_jfr_cfg {
    uint32_t id;
    uint32_t depth;
    urma_jfr_flag_t flag;
    urma_transport_mode_t trans_mode;
    uint8_t max_sge;
    uint8_t min_rnr_timer;
    urma_jfc_t *jfc;
    urma_token_t token_value;
    uint64_t user_ctx;
} urma_jfr_cfg_t;

typedef struct urma_jfr_attr {
    uint32_t mask;
    uint32_t rx_threshold;
    urma_jfr_state_t state;
} urma_jfr_attr_t;

typedef struct urma_jfr {
    urma_context_t *urma_ctx;
    urma_jfr_id_t jfr_id;
    urma_jfr_cfg_t jfr_cfg;
    uint64_t handle;
    pthread_mutex_t event_mutex;
    pthread_cond_t event_cond;
    uint32_t async_events_acked;
    urma_jfr_opt_t urma_jfr_opt;
} urma_jfr_t;

#endif
