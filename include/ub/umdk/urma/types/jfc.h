// SPDX-License-Identifier: MIT
// Completion queues (JFC) and the channels that wake who waits for one (JFCE).
#ifndef DRYDOCK_URMA_TYPES_JFC_H
#define DRYDOCK_URMA_TYPES_JFC_H

#include "context.h"

#define URMA_OPT_REVERSED_NUM 4
#define URMA_JFC_CQE_BASE_ADDR_MASK (1ULL << 0)
#define URMA_JFC_ID_MASK (1ULL << 1)
#define URMA_JFC_DB_ADDR_MASK (1ULL << 2)
#define URMA_JFC_DB_STATUS_MASK (1ULL << 3)
#define URMA_JFC_PI_MASK (1ULL << 4)
#define URMA_JFC_PI_TYPE_MASK (1ULL << 5)
#define URMA_JFC_CI_MASK (1ULL << 6)

typedef enum urma_jfc_attr_mask {
    JFC_MODERATE_COUNT = 1 << 0,
    JFC_MODERATE_PERIOD = 1 << 1,
} urma_jfc_attr_mask_t;

typedef struct urma_jfce_cfg {
    uint32_t depth;
    uint64_t user_ctx;
} urma_jfce_cfg_t;

typedef struct urma_jfce {
    urma_context_t *urma_ctx;
    int fd;
    struct urma_ref ref;
} urma_jfce_t;

typedef union urma_jfc_flag {
    struct {
        uint32_t lock_free : 1;
        uint32_t jfc_inline : 1;
        uint32_t non_blocking : 1;
        uint32_t has_drv_ext : 1;
        uint32_t reserved : 28;
    } bs;
    uint32_t value;
} urma_jfc_flag_t;

typedef struct urma_jfc_cfg {
    uint32_t depth;
    urma_jfc_flag_t flag;
    uint32_t ceqn;
    urma_jfce_t *jfce;
    uint64_t user_ctx;
} urma_jfc_cfg_t;

typedef struct urma_jfc_attr {
    uint32_t mask;
    uint16_t moderate_count;
    uint16_t moderate_period;
} urma_jfc_attr_t;

union urma_jfc_opt_mask {
    struct {
        uint64_t urma_jfc_cqe_base_addr : 1;
        uint64_t urma_jfc_db_addr : 1;
        uint64_t urma_jfc_id : 1;
        uint64_t urma_jfc_pi : 1;
        uint64_t urma_jfc_pi_type : 1;
        uint64_t urma_jfc_ci : 1;
        uint64_t urma_jfc_db_status : 1;
        uint64_t reserved : 57;
    } bs;
    uint64_t value;
};

typedef struct urma_jfc_opt {
    union urma_jfc_opt_mask jfc_opt_mask;
    bool is_actived;
    uint64_t urma_jfc_cqe_base_addr;
    uint32_t urma_jfc_id;
    uint64_t urma_jfc_db_addr;
    uint8_t urma_jfc_db_status;
    uint16_t urma_jfc_pi;
    uint16_t urma_jfc_pi_type;
    uint16_t urma_jfc_ci;
    uint64_t reserved[URMA_OPT_REVERSED_NUM];
} urma_jfc_opt_t;

typedef struct urma_jfc {
    urma_context_t *urma_ctx;
    urma_jfc_id_t jfc_id;
    urma_jfc_cfg_t jfc_cfg;
    uint64_t handle;
    pthread_mutex_t event_mutex;
    pthread_cond_t event_cond;
    uint32_t comp_events_acked;
    uint32_t async_events_acked;
    urma_jfc_opt_t urma_jfc_opt;
} urma_jfc_t;

#endif
