// SPDX-License-Identifier: MIT
// What stands between liburma and a device driver. Programs read ctx->ops through urma_ops_t; drydock's own
// device fills that table. No other driver can be loaded, so the functions for drivers are not declared.
#ifndef URMA_PROVIDER_H
#define URMA_PROVIDER_H

#include <stddef.h>
#include <sys/types.h>

#include "urma_api.h"

#ifdef __cplusplus
extern "C" {
#endif

#define URMA_SYSFS_DEV_FLAG_DRIVER_CREATED 0x1
#define URMA_CFG_MASK 0

typedef enum {
    TARGET_CFG = 0,
    TARGET_OPT = 1,
    TARGET_JFS_CFG = 2,
} urma_field_target_t;

typedef struct {
    uint64_t opt;
    uint64_t mask;
    urma_field_target_t tgt;
    size_t offset;
    size_t size;
} opt_map_t;

typedef struct urma_match_entry {
    uint16_t vendor_id;
    uint16_t device_id;
} urma_match_entry_t;

typedef struct urma_udrv {
    uint64_t in_addr;
    uint32_t in_len;
    uint64_t out_addr;
    uint32_t out_len;
} urma_udrv_t;

typedef struct urma_ops {
    const char *name;
    urma_jfc_t *(*create_jfc)(urma_context_t *, urma_jfc_cfg_t *);
    urma_status_t (*modify_jfc)(urma_jfc_t *, urma_jfc_attr_t *);
    urma_status_t (*delete_jfc)(urma_jfc_t *);
    urma_status_t (*delete_jfc_batch)(urma_jfc_t **, int, urma_jfc_t **);
    urma_status_t (*alloc_jfc)(urma_context_t *, urma_jfc_cfg_t *, urma_jfc_t **);
    urma_status_t (*set_jfc_opt)(urma_jfc_t *, uint64_t, void *, uint32_t);
    urma_status_t (*active_jfc)(urma_jfc_t *);
    urma_status_t (*get_jfc_opt)(urma_jfc_t *, uint64_t, void *, uint32_t);
    urma_status_t (*deactive_jfc)(urma_jfc_t *);
    urma_status_t (*free_jfc)(urma_jfc_t *);
    urma_jfs_t *(*create_jfs)(urma_context_t *, urma_jfs_cfg_t *);
    urma_status_t (*modify_jfs)(urma_jfs_t *, urma_jfs_attr_t *);
    urma_status_t (*query_jfs)(urma_jfs_t *, urma_jfs_cfg_t *, urma_jfs_attr_t *);
    int (*flush_jfs)(urma_jfs_t *, int, urma_cr_t *);
    urma_status_t (*delete_jfs)(urma_jfs_t *);
    urma_status_t (*delete_jfs_batch)(urma_jfs_t **, int, urma_jfs_t **);
    urma_status_t (*alloc_jfs)(urma_context_t *, urma_jfs_cfg_t *, urma_jfs_t **);
    urma_status_t (*set_jfs_opt)(urma_jfs_t *, uint64_t, void *, uint32_t);
    urma_status_t (*active_jfs)(urma_jfs_t *);
    urma_status_t (*get_jfs_opt)(urma_jfs_t *, uint64_t, void *, uint32_t);
    urma_status_t (*deactive_jfs)(urma_jfs_t *);
    urma_status_t (*free_jfs)(urma_jfs_t *);
    urma_jfr_t *(*create_jfr)(urma_context_t *, urma_jfr_cfg_t *);
    urma_status_t (*modify_jfr)(urma_jfr_t *, urma_jfr_attr_t *);
    urma_status_t (*query_jfr)(urma_jfr_t *, urma_jfr_cfg_t *, urma_jfr_attr_t *);
    urma_status_t (*delete_jfr)(urma_jfr_t *);
    urma_status_t (*delete_jfr_batch)(urma_jfr_t **, int, urma_jfr_t **);
    urma_target_jetty_t *(*import_jfr)(urma_context_t *, urma_rjfr_t *, urma_token_t *);
    urma_status_t (*unimport_jfr)(urma_target_jetty_t *);
    urma_status_t (*advise_jfr)(urma_jfs_t *, urma_target_jetty_t *);
    urma_status_t (*unadvise_jfr)(urma_jfs_t *, urma_target_jetty_t *);
    urma_status_t (*advise_jfr_async)(urma_jfs_t *, urma_target_jetty_t *, urma_advise_async_cb_func, void *);
    urma_status_t (*alloc_jfr)(urma_context_t *, urma_jfr_cfg_t *, urma_jfr_t **);
    urma_status_t (*set_jfr_opt)(urma_jfr_t *, uint64_t, void *, uint32_t);
    urma_status_t (*active_jfr)(urma_jfr_t *);
    urma_status_t (*get_jfr_opt)(urma_jfr_t *, uint64_t, void *, uint32_t);
    urma_status_t (*deactive_jfr)(urma_jfr_t *);
    urma_status_t (*free_jfr)(urma_jfr_t *);
    urma_jetty_t *(*create_jetty)(urma_context_t *, urma_jetty_cfg_t *);
    urma_status_t (*modify_jetty)(urma_jetty_t *, urma_jetty_attr_t *);
    urma_status_t (*query_jetty)(urma_jetty_t *, urma_jetty_cfg_t *, urma_jetty_attr_t *);
    int (*flush_jetty)(urma_jetty_t *, int, urma_cr_t *);
    urma_status_t (*delete_jetty)(urma_jetty_t *);
    urma_status_t (*delete_jetty_batch)(urma_jetty_t **, int, urma_jetty_t **);
    urma_target_jetty_t *(*import_jetty)(urma_context_t *, urma_rjetty_t *, urma_token_t *);
    urma_status_t (*unimport_jetty)(urma_target_jetty_t *);
    urma_status_t (*advise_jetty)(urma_jetty_t *, urma_target_jetty_t *);
    urma_status_t (*unadvise_jetty)(urma_jetty_t *, urma_target_jetty_t *);
    urma_status_t (*advise_jetty_async)(urma_jetty_t *, urma_target_jetty_t *, urma_advise_async_cb_func,
                                        void *);
    urma_status_t (*bind_jetty)(urma_jetty_t *, urma_target_jetty_t *);
    urma_status_t (*unbind_jetty)(urma_jetty_t *);
    urma_status_t (*alloc_jetty)(urma_context_t *, urma_jetty_cfg_t *, urma_jetty_t **);
    urma_status_t (*set_jetty_opt)(urma_jetty_t *, uint64_t, void *, uint32_t);
    urma_status_t (*active_jetty)(urma_jetty_t *);
    urma_status_t (*get_jetty_opt)(urma_jetty_t *, uint64_t, void *, uint32_t);
    urma_status_t (*deactive_jetty)(urma_jetty_t *);
    urma_status_t (*free_jetty)(urma_jetty_t *);
    urma_jetty_grp_t *(*create_jetty_grp)(urma_context_t *, urma_jetty_grp_cfg_t *);
    urma_status_t (*delete_jetty_grp)(urma_jetty_grp_t *);
    urma_jfce_t *(*create_jfce)(urma_context_t *);
    urma_status_t (*delete_jfce)(urma_jfce_t *);
    int (*get_tpn)(urma_jetty_t *);
    int (*modify_tp)(urma_context_t *, uint32_t, urma_tp_cfg_t *, urma_tp_attr_t *, urma_tp_attr_mask_t);
    urma_status_t (*get_tp_list)(urma_context_t *, urma_get_tp_cfg_t *, uint32_t *, urma_tp_info_t *);
    urma_status_t (*set_tp_attr)(const urma_context_t *, const uint64_t, const uint8_t, const uint32_t,
                                 const urma_tp_attr_value_t *);
    urma_status_t (*get_tp_attr)(const urma_context_t *, const uint64_t, uint8_t *, uint32_t *,
                                 urma_tp_attr_value_t *);
    urma_target_jetty_t *(*import_jetty_ex)(urma_context_t *, urma_rjetty_t *, urma_token_t *,
                                            urma_active_tp_cfg_t *);
    urma_target_jetty_t *(*import_jfr_ex)(urma_context_t *, urma_rjfr_t *, urma_token_t *,
                                          urma_active_tp_cfg_t *);
    urma_status_t (*bind_jetty_ex)(urma_jetty_t *, urma_target_jetty_t *, urma_active_tp_cfg_t *);
    urma_token_id_t *(*alloc_token_id)(urma_context_t *);
    urma_token_id_t *(*alloc_token_id_ex)(urma_context_t *, urma_token_id_flag_t);
    urma_status_t (*free_token_id)(urma_token_id_t *);
    urma_target_seg_t *(*register_seg)(urma_context_t *, urma_seg_cfg_t *);
    urma_status_t (*unregister_seg)(urma_target_seg_t *);
    urma_target_seg_t *(*import_seg)(urma_context_t *, urma_seg_t *, urma_token_t *, uint64_t,
                                     urma_import_seg_flag_t);
    urma_status_t (*unimport_seg)(urma_target_seg_t *);
    urma_status_t (*get_async_event)(urma_context_t *, urma_async_event_t *);
    void (*ack_async_event)(urma_async_event_t *);
    int (*user_ctl)(urma_context_t *, urma_user_ctl_in_t *, urma_user_ctl_out_t *);
    urma_status_t (*post_jfs_wr)(urma_jfs_t *, urma_jfs_wr_t *, urma_jfs_wr_t **);
    urma_status_t (*post_jfr_wr)(urma_jfr_t *, urma_jfr_wr_t *, urma_jfr_wr_t **);
    urma_status_t (*post_jetty_send_wr)(urma_jetty_t *, urma_jfs_wr_t *, urma_jfs_wr_t **);
    urma_status_t (*post_jetty_recv_wr)(urma_jetty_t *, urma_jfr_wr_t *, urma_jfr_wr_t **);
    int (*poll_jfc)(urma_jfc_t *, int, urma_cr_t *);
    urma_status_t (*rearm_jfc)(urma_jfc_t *, bool);
    int (*wait_jfc)(urma_jfce_t *, uint32_t, int, urma_jfc_t **);
    void (*ack_jfc)(urma_jfc_t **, uint32_t *, uint32_t);
    urma_target_jetty_t *(*import_jetty_async)(urma_notifier_t *, const urma_rjetty_t *, const urma_token_t *,
                                               uint64_t, int);
    urma_status_t (*unimport_jetty_async)(urma_target_jetty_t *);
    urma_status_t (*bind_jetty_async)(urma_notifier_t *, urma_jetty_t *, urma_target_jetty_t *, uint64_t,
                                      int);
    urma_status_t (*unbind_jetty_async)(urma_jetty_t *);
    urma_notifier_t *(*create_notifier)(urma_context_t *);
    urma_status_t (*delete_notifier)(urma_notifier_t *);
    int (*wait_notify)(urma_notifier_t *, uint32_t, urma_notify_t *, int);
    void (*ack_notify)(uint32_t, urma_notify_t *);
    urma_status_t (*get_eid_by_ip)(const urma_context_t *, const urma_net_addr_t *, urma_eid_t *);
    urma_status_t (*get_ip_by_eid)(const urma_context_t *, const urma_eid_t *, urma_net_addr_t *);
    urma_status_t (*get_smac)(const urma_context_t *, uint8_t *);
    urma_status_t (*get_dmac)(const urma_context_t *, const urma_net_addr_t *, uint8_t *);
} urma_ops_t;

typedef struct urma_provider_attr {
    uint32_t version;
    urma_transport_type_t transport_type;
} urma_provider_attr_t;

typedef struct urma_provider_ops {
    const char *name;
    urma_provider_attr_t attr;
    urma_match_entry_t *match_table;
    urma_status_t (*init)(urma_init_attr_t *);
    urma_status_t (*uninit)(void);
    urma_status_t (*query_device)(urma_device_t *, urma_device_attr_t *);
    urma_context_t *(*create_context)(urma_device_t *, uint32_t, int);
    urma_status_t (*delete_context)(urma_context_t *);
    urma_status_t (*get_uasid)(uint32_t *);
} urma_provider_ops_t;

typedef struct urma_import_tseg_cfg {
    urma_ubva_t ubva;
    uint64_t len;
    urma_seg_attr_t attr;
    uint32_t token_id;
    urma_token_t *token;
    urma_import_seg_flag_t flag;
    uint64_t mva;
} urma_import_tseg_cfg_t;

typedef struct urma_tjfr_cfg {
    urma_jfr_id_t jfr_id;
    urma_import_jetty_flag_t flag;
    urma_token_t *token;
    urma_transport_mode_t trans_mode;
    urma_tp_type_t tp_type;
} urma_tjfr_cfg_t;

typedef struct urma_tjetty_cfg {
    urma_jetty_id_t jetty_id;
    urma_import_jetty_flag_t flag;
    urma_token_t *token;
    urma_transport_mode_t trans_mode;
    urma_jetty_grp_policy_t policy;
    urma_target_type_t type;
    urma_tp_type_t tp_type;
} urma_tjetty_cfg_t;

typedef struct urma_context_cfg {
    struct urma_device *dev;
    struct urma_ops *ops;
    uint32_t eid_index;
    int dev_fd;
    uint32_t uasid;
} urma_context_cfg_t;

typedef struct urma_cmd_udrv_priv {
    uint64_t in_addr;
    uint32_t in_len;
    uint64_t out_addr;
    uint32_t out_len;
} urma_cmd_udrv_priv_t;

typedef struct urma_post_and_ret_db_in {
    bool is_jetty;
    union {
        urma_jfs_t *jfs;
        urma_jetty_t *jetty;
    };
    urma_jfs_wr_t *wr;
} urma_post_and_ret_db_in_t;

typedef struct urma_post_and_ret_db_out {
    urma_jfs_wr_t **bad_wr;
    uint64_t db_addr;
    uint64_t db_data;
} urma_post_and_ret_db_out_t;

#ifdef __cplusplus
}
#endif

#endif
