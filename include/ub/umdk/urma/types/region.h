// SPDX-License-Identifier: MIT
// Named regions of several segments. The types exist; no function of this release takes them.
#ifndef DRYDOCK_URMA_TYPES_REGION_H
#define DRYDOCK_URMA_TYPES_REGION_H

#include "segment.h"

#define UR_NAME_MAX_LEN 256
#define JFR_NAME_MAX_LEN 256
#define URMA_MAX_SEGS_PER_UR_OPT 64

typedef union urma_ur_attr {
    struct {
        uint32_t reserved : 32;
    } bs;
    uint32_t value;
} urma_ur_attr_t;

typedef union urma_import_ur_flag {
    struct {
        uint32_t mapping : 2;
        uint32_t reserved : 30;
    } bs;
    uint32_t value;
} urma_import_ur_flag_t;

typedef struct urma_ur {
    char name[UR_NAME_MAX_LEN];
    uint64_t size;
    urma_ur_attr_t attr;
    uint64_t token;
    uint64_t user_ctx;
} urma_ur_t;

typedef struct urma_target_ur {
    char name[UR_NAME_MAX_LEN];
    uint64_t size;
    urma_import_ur_flag_t flag;
    urma_target_seg_t **tseg_list;
    uint32_t cnt;
} urma_target_ur_t;

typedef struct urma_seg_info {
    urma_seg_t seg;
    uint32_t idx_in_ur;
} urma_seg_info_t;

typedef struct urma_ur_info {
    char name[UR_NAME_MAX_LEN];
    uint64_t size;
    urma_ur_attr_t attr;
    uint32_t cnt;
    urma_seg_info_t seg_list[0];
} urma_ur_info_t;

typedef struct urma_jfr_info {
    char name[UR_NAME_MAX_LEN];
    urma_eid_t eid;
    uint32_t uasid;
    uint32_t id;
} urma_jfr_info_t;

#endif
