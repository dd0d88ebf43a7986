// SPDX-License-Identifier: MIT
// A context: one process on one device under one EID; every other object hangs on it.
#ifndef DRYDOCK_URMA_TYPES_CONTEXT_H
#define DRYDOCK_URMA_TYPES_CONTEXT_H

#include <pthread.h>

#include "address.h"
#include "device.h"

typedef enum urma_context_opt_name {
    URMA_OPT_AGGR_MODE = 0,
} urma_opt_name_t;

typedef enum urma_context_aggr_mode {
    URMA_AGGR_MODE_STANDALONE = 0,
    URMA_AGGR_MODE_ACTIVE_BACKUP = 1,
    URMA_AGGR_MODE_BALANCE = 2,
} urma_context_aggr_mode_t;

typedef struct urma_context {
    struct urma_device *dev;
    struct urma_ops *ops;
    int dev_fd;
    int async_fd;
    pthread_mutex_t mutex;
    urma_eid_t eid;
    uint32_t eid_index;
    uint32_t uasid;
    struct urma_ref ref;
    urma_context_aggr_mode_t aggr_mode;
} urma_context_t;

typedef struct urma_eid_info {
    urma_eid_t eid;
    uint32_t eid_index;
} urma_eid_info_t;

typedef struct urma_user_ctl_in {
    uint64_t addr;
    uint32_t len;
    uint32_t opcode;
} urma_user_ctl_in_t;

typedef struct urma_user_ctl_out {
    uint64_t addr;
    uint32_t len;
    uint32_t reserved;
} urma_user_ctl_out_t;

#endif
