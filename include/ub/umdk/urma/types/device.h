// SPDX-License-Identifier: MIT
// What a device is and can.
#ifndef DRYDOCK_URMA_TYPES_DEVICE_H
#define DRYDOCK_URMA_TYPES_DEVICE_H

#include "address.h"

#define MAX_PORT_CNT 8
#define URMA_MAX_PATH 4096
#define URMA_MAX_DEV_NAME 64
#define URMA_GUID_SIZE 16
#define URMA_MAX_PRIORITY_CNT 16
#define URMA_MAX_EID_CNT 1024
#define URMA_CC_IDX_TABLE_SIZE 80

struct urma_ops;
struct urma_provider_ops;
struct urma_sysfs_dev;

typedef enum urma_mtu {
    URMA_MTU_256 = 1,
    URMA_MTU_512 = 2,
    URMA_MTU_1024 = 3,
    URMA_MTU_2048 = 4,
    URMA_MTU_4096 = 5,
    URMA_MTU_8192 = 6,
} urma_mtu_t;

typedef enum urma_port_state {
    URMA_PORT_NOP = 0,
    URMA_PORT_DOWN = 1,
    URMA_PORT_INIT = 2,
    URMA_PORT_ARMED = 3,
    URMA_PORT_ACTIVE = 4,
    URMA_PORT_ACTIVE_DEFER = 5,
} urma_port_state_t;

typedef enum urma_speed {
    URMA_SP_10M = 0,
    URMA_SP_100M = 1,
    URMA_SP_1G = 2,
    URMA_SP_2_5G = 3,
    URMA_SP_5G = 4,
    URMA_SP_10G = 5,
    URMA_SP_14G = 6,
    URMA_SP_25G = 7,
    URMA_SP_40G = 8,
    URMA_SP_50G = 9,
    URMA_SP_100G = 10,
    URMA_SP_200G = 11,
    URMA_SP_400G = 12,
    URMA_SP_800G = 13,
} urma_speed_t;

typedef enum urma_link_width {
    URMA_LINK_X1 = 1,
    URMA_LINK_X2 = 2,
    URMA_LINK_X4 = 4,
    URMA_LINK_X8 = 8,
    URMA_LINK_X16 = 16,
    URMA_LINK_X32 = 32,
} urma_link_width_t;

typedef enum urma_tp_cc_alg {
    URMA_TP_CC_NONE = 0,
    URMA_TP_CC_DCQCN = 1,
    URMA_TP_CC_CAQM = 2,
    URMA_TP_CC_LDCP = 3,
    URMA_TP_CC_LDCP_L2_HEADER = 4,
    URMA_TP_CC_LDCP_TP_HEADER = 5,
    URMA_TP_CC_DIP = 6,
    URMA_TP_CC_ACC = 7,
    URMA_TP_CC_CUSTOM_1 = 8,
    URMA_TP_CC_CUSTOM_2 = 9,
    URMA_TP_CC_NUM = 10,
} urma_tp_cc_alg_t;

typedef enum urma_congestion_ctrl_alg {
    URMA_CC_NONE = 1 << 0,
    URMA_CC_DCQCN = 1 << 1,
    URMA_CC_CAQM = 1 << 2,
    URMA_CC_LDCP = 1 << 3,
    URMA_CC_LDCP_L2_HEADER = 1 << 4,
    URMA_CC_LDCP_TP_HEADER = 1 << 5,
    URMA_CC_DIP = 1 << 6,
    URMA_CC_ACC = 1 << 7,
    URMA_CC_CUSTOM_1 = 1 << 8,
    URMA_CC_CUSTOM_2 = 1 << 9,
} urma_congestion_ctrl_alg_t;

typedef struct urma_port_attr {
    urma_mtu_t max_mtu;
    urma_port_state_t state;
    urma_link_width_t active_width;
    urma_speed_t active_speed;
    urma_mtu_t active_mtu;
} urma_port_attr_t;

union urma_tp_type_en {
    struct {
        uint32_t rtp : 1;
        uint32_t ctp : 1;
        uint32_t utp : 1;
        uint32_t reserved : 29;
    } bs;
    uint32_t value;
};

struct urma_sl_info {
    uint32_t SL;
    union urma_tp_type_en tp_type;
};

typedef union urma_device_feature {
    struct {
        uint32_t oor : 1;
        uint32_t jfc_per_wr : 1;
        uint32_t stride_op : 1;
        uint32_t load_store_op : 1;
        uint32_t non_pin : 1;
        uint32_t pmem : 1;
        uint32_t jfc_inline : 1;
        uint32_t spray_en : 1;
        uint32_t selective_retrans : 1;
        uint32_t live_migrate : 1;
        uint32_t dca : 1;
        uint32_t jetty_grp : 1;
        uint32_t error_suspend : 1;
        uint32_t outorder_comp : 1;
        uint32_t mn : 1;
        uint32_t clan : 1;
        uint32_t muti_seg_per_token_id : 1;
        uint32_t ipourma_en : 1;
        uint32_t ctp_en : 1;
        uint32_t uboe : 1;
        uint32_t reserved : 12;
    } bs;
    uint32_t value;
} urma_device_feature_t;

typedef union urma_atomic_feature {
    struct {
        uint32_t cas : 1;
        uint32_t swap : 1;
        uint32_t fetch_and_add : 1;
        uint32_t fetch_and_sub : 1;
        uint32_t fetch_and_and : 1;
        uint32_t fetch_and_or : 1;
        uint32_t fetch_and_xor : 1;
        uint32_t reserved : 25;
    } bs;
    uint32_t value;
} urma_atomic_feature_t;

typedef union urma_order_type_cap {
    struct {
        uint32_t ot : 1;
        uint32_t oi : 1;
        uint32_t ol : 1;
        uint32_t no : 1;
        uint32_t reserved : 28;
    } bs;
    uint32_t value;
} urma_order_type_cap_t;

typedef union urma_tp_type_cap {
    struct {
        uint32_t rtp : 1;
        uint32_t ctp : 1;
        uint32_t utp : 1;
        uint32_t reserved : 29;
    } bs;
    uint32_t value;
} urma_tp_type_cap_t;

typedef union urma_tp_feature {
    struct {
        uint32_t rm_multi_path : 1;
        uint32_t rc_multi_path : 1;
        uint32_t reserved : 30;
    } bs;
    uint32_t value;
} urma_tp_feature_t;

typedef struct urma_device_cap {
    urma_device_feature_t feature;
    uint32_t max_jfc;
    uint32_t max_jfs;
    uint32_t max_jfr;
    uint32_t max_jetty;
    uint32_t max_jetty_grp;
    uint32_t max_jetty_in_jetty_grp;
    uint32_t max_jfc_depth;
    uint32_t max_jfs_depth;
    uint32_t max_jfr_depth;
    uint32_t max_jfs_inline_len;
    uint32_t max_jfs_sge;
    uint32_t max_jfs_rsge;
    uint32_t max_jfr_sge;
    uint64_t max_msg_size;
    uint32_t max_read_size;
    uint32_t max_write_size;
    uint32_t max_cas_size;
    uint32_t max_swap_size;
    uint32_t max_fetch_and_add_size;
    uint32_t max_fetch_and_sub_size;
    uint32_t max_fetch_and_and_size;
    uint32_t max_fetch_and_or_size;
    uint32_t max_fetch_and_xor_size;
    urma_atomic_feature_t atomic_feat;
    uint16_t trans_mode;
    uint16_t reserved;
    uint16_t congestion_ctrl_alg;
    uint32_t ceq_cnt;
    uint32_t max_tp_in_tpg;
    uint32_t max_eid_cnt;
    uint64_t page_size_cap;
    uint32_t max_oor_cnt;
    uint32_t mn;
    uint32_t max_netaddr_cnt;
    urma_order_type_cap_t rm_order_cap;
    urma_order_type_cap_t rc_order_cap;
    urma_tp_type_cap_t rm_tp_cap;
    urma_tp_type_cap_t rc_tp_cap;
    urma_tp_type_cap_t um_tp_cap;
    urma_tp_feature_t tp_feature;
    struct urma_sl_info priority_info[URMA_MAX_PRIORITY_CNT];
} urma_device_cap_t;

typedef struct urma_guid {
    uint8_t raw[URMA_GUID_SIZE];
} urma_guid_t;

typedef struct urma_device_attr {
    urma_guid_t guid;
    urma_device_cap_t dev_cap;
    uint8_t port_cnt;
    struct urma_port_attr port_attr[MAX_PORT_CNT];
    uint32_t reserved_jetty_id_min;
    uint32_t reserved_jetty_id_max;
} urma_device_attr_t;

typedef struct urma_cc_entry {
    urma_tp_cc_alg_t alg;
    uint8_t cc_pattern_idx;
    uint8_t cc_priority;
} __attribute__((packed)) urma_cc_entry_t;

typedef struct urma_device {
    char name[URMA_MAX_NAME];
    char path[URMA_MAX_PATH];
    urma_transport_type_t type;
    struct urma_provider_ops *ops;
    struct urma_sysfs_dev *sysfs_dev;
} urma_device_t;

#endif
