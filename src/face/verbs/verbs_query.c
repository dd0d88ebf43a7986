// SPDX-License-Identifier: MIT
// What the device and its one port say of themselves.
#include <stdio.h>
#include <time.h>

#include "arena/groups.h"
#include "device/identity.h"
#include "device/link.h"
#include "face/verbs/verbs_face.h"

// The port structure of before port_cap_flags2 and flags: callers of the exported ibv_query_port have no
// more room.
#define SHORT_PORT_ATTR 48

enum { WIDTH_4X = 2, SPEED_25G = 32, PHYS_DISABLED = 3, PHYS_LINK_UP = 5, PKEY_DEFAULT = 0xffff };

static void fill_device(const struct dock_limits *l, struct ibv_device_attr *a)
{
    const struct dock_identity *id = dock_identity();

    memset(a, 0, sizeof *a);
    snprintf(a->fw_ver, sizeof a->fw_ver, VB_FW_VERSION);
    memcpy(&a->node_guid, id->guid, sizeof a->node_guid);
    memcpy(&a->sys_image_guid, id->guid, sizeof a->sys_image_guid);
    a->max_mr_size = l->max_mr_size;
    a->page_size_cap = ~0xfffull;
    a->vendor_id = id->vendor_id;
    a->vendor_part_id = id->vendor_part_id;
    a->hw_ver = 1;
    a->max_qp = (int)l->max_qp;
    a->max_qp_wr = (int)l->max_qp_wr;
    a->device_cap_flags = IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_SYS_IMAGE_GUID |
                          IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_MEM_WINDOW |
                          IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_XRC;
    a->max_sge = (int)l->max_sge;
    a->max_sge_rd = (int)l->max_sge;
    a->max_cq = (int)l->max_cq;
    a->max_cqe = (int)l->max_cqe;
    a->max_mr = (int)l->max_mr;
    a->max_pd = (int)l->max_pd;
    a->max_qp_rd_atom = (int)l->max_rd_atomic;
    a->max_res_rd_atom = (int)(l->max_rd_atomic * l->max_qp);
    a->max_qp_init_rd_atom = (int)l->max_rd_atomic;
    a->atomic_cap = IBV_ATOMIC_HCA;
    a->max_mw = (int)l->max_mw;
    a->max_ah = (int)l->max_ah;
    a->max_srq = (int)l->max_srq;
    a->max_srq_wr = (int)l->max_srq_wr;
    a->max_srq_sge = (int)l->max_sge;
    a->max_mcast_grp = DOCK_GROUP_MEMBERS; // of the host
    a->max_mcast_qp_attach = DOCK_GROUP_MEMBERS;
    a->max_total_mcast_qp_attach = DOCK_GROUP_MEMBERS;
    a->max_pkeys = 1;
    a->phys_port_cnt = 1;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *device_attr)
{
    if (!context || !device_attr)
        return dock_refuse(EINVAL, "ibv_query_device: no context or no place for the answer");
    fill_device(dock_dev_limits(vb_dev(context)), device_attr);
    return 0;
}

// Every access looks the memory up anew, so all of it is on demand.
#define ODP_UD (IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV)
#define ODP_UC (IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE)
#define ODP_RC (ODP_UD | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC)

int vb_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
                       struct ibv_device_attr_ex *attr, size_t attr_size)
{
    struct ibv_device_attr_ex full = {.completion_timestamp_mask = UINT64_MAX, .hca_core_clock = 1000000};

    if (input && input->comp_mask)
        return dock_refuse(EINVAL, "ibv_query_device_ex: input mask %#x: no bit has a meaning",
                           input->comp_mask);
    if (!attr || attr_size < sizeof attr->orig_attr)
        return dock_refuse(EINVAL, "ibv_query_device_ex: %zu bytes are too few for an answer", attr_size);
    fill_device(dock_dev_limits(vb_dev(context)), &full.orig_attr);
    full.device_cap_flags_ex = full.orig_attr.device_cap_flags;
    full.phys_port_cnt_ex = 1;
    full.max_dm_size = VB_MAX_DM;
    full.cq_mod_caps =
        (struct ibv_cq_moderation_caps){.max_cq_count = UINT16_MAX, .max_cq_period = UINT16_MAX};
    full.odp_caps = (struct ibv_odp_caps){
        .general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT,
        .per_transport_caps = {.rc_odp_caps = ODP_RC, .uc_odp_caps = ODP_UC, .ud_odp_caps = ODP_UD}};
    full.xrc_odp_caps = ODP_RC;
    memset(attr, 0, attr_size);
    memcpy(attr, &full, attr_size < sizeof full ? attr_size : sizeof full);
    return 0;
}

int vb_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr, size_t attr_size)
{
    struct ibv_port_attr full = {
        .state = dock_link_down() ? IBV_PORT_DOWN : IBV_PORT_ACTIVE,
        .max_mtu = IBV_MTU_4096,
        .active_mtu = IBV_MTU_4096,
        .gid_tbl_len = DOCK_GID_TABLE,
        .port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS,
        .pkey_tbl_len = 1,
        .active_width = WIDTH_4X,
        .active_speed = SPEED_25G,
        .phys_state = dock_link_down() ? PHYS_DISABLED : PHYS_LINK_UP,
        .link_layer = IBV_LINK_LAYER_ETHERNET,
        .flags = IBV_QPF_GRH_REQUIRED,
    };

    if (!context || !attr || port_num != VB_PORT)
        return dock_refuse(EINVAL, "ibv_query_port: port %u: the only port is 1", port_num);
    full.max_msg_sz = (uint32_t)dock_dev_limits(vb_dev(context))->max_msg;
    memset(attr, 0, attr_size);
    memcpy(attr, &full, attr_size < sizeof full ? attr_size : sizeof full);
    return 0;
}

int ibv_query_port(struct ibv_context *context, uint8_t port_num, struct _compat_ibv_port_attr *port_attr)
{
    return vb_query_port(context, port_num, (struct ibv_port_attr *)port_attr, SHORT_PORT_ATTR);
}

int vb_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
    (void)context;
    if (!values || values->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK)
        return dock_refuse(EINVAL, "ibv_query_rt_values_ex: only the raw clock can be asked for");
    if (values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK)
        clock_gettime(CLOCK_MONOTONIC, &values->raw_clock); // the clock of completion timestamps
    return 0;
}

// ---- P_Key table: the default key and nothing else

int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey)
{
    if (!context || !pkey || port_num != VB_PORT || index != 0) {
        errno = dock_refuse(EINVAL, "ibv_query_pkey: port %u, index %d: there is port 1 with index 0",
                            port_num, index);
        return -1;
    }
    *pkey = PKEY_DEFAULT;
    return 0;
}

int ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey)
{
    if (context && port_num == VB_PORT && pkey == PKEY_DEFAULT)
        return 0;
    errno = dock_refuse(EINVAL, "ibv_get_pkey_index: port %u holds no P_Key but the default", port_num);
    return -1;
}

// ---- GID table

// Programs walk the whole table and give up at the first error, so an empty entry is zeros, not a failure.
int ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid)
{
    if (!context || !gid || port_num != VB_PORT || index < 0 || index >= DOCK_GID_TABLE) {
        errno = dock_refuse(EINVAL, "ibv_query_gid: port %u, index %d: there is port 1 with %d entries",
                            port_num, index, DOCK_GID_TABLE);
        return -1;
    }
    memcpy(gid->raw, dock_identity()->gid[index].raw, sizeof gid->raw);
    return 0;
}

static void fill_gid_entry(struct ibv_gid_entry *entry, uint32_t index, size_t entry_size)
{
    struct ibv_gid_entry full = {
        .gid_index = index,
        .port_num = VB_PORT,
        .gid_type = IBV_GID_TYPE_ROCE_V2,
        .ndev_ifindex = dock_identity()->gid[index].ifindex,
    };

    memcpy(full.gid.raw, dock_identity()->gid[index].raw, sizeof full.gid.raw);
    memset(entry, 0, entry_size);
    memcpy(entry, &full, entry_size < sizeof full ? entry_size : sizeof full);
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
                      struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
    if (!context || !entry || entry_size < sizeof *entry)
        return dock_refuse(EINVAL, "ibv_query_gid_ex: no context, or an entry of only %zu bytes", entry_size);
    if (flags)
        return dock_refuse(EINVAL, "ibv_query_gid_ex: flags %#x: none is defined", flags);
    if (port_num != VB_PORT || gid_index >= DOCK_GID_TABLE)
        return dock_refuse(EINVAL, "ibv_query_gid_ex: port %u, index %u: there is port 1 with %d entries",
                           port_num, gid_index, DOCK_GID_TABLE);
    if (!dock_gid_filled(gid_index))
        return dock_refuse(ENODATA, "ibv_query_gid_ex: entry %u is empty", gid_index);
    fill_gid_entry(entry, gid_index, entry_size);
    return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max_entries,
                             uint32_t flags, size_t entry_size)
{
    uint32_t n = 0, at = 0;

    for (uint32_t i = 0; i < DOCK_GID_TABLE; i++)
        n += dock_gid_filled(i);
    if (!context || !entries || flags || entry_size < sizeof *entries)
        return dock_refuse(-EINVAL, "ibv_query_gid_table: no context or table, flags, or too small an entry");
    if (max_entries < n)
        return dock_refuse(-EINVAL, "ibv_query_gid_table: room for %zu entries, %u are filled", max_entries,
                           n);
    for (uint32_t i = 0; i < DOCK_GID_TABLE && at < n; i++)
        if (dock_gid_filled(i))
            fill_gid_entry((struct ibv_gid_entry *)((char *)entries + at++ * entry_size), i, entry_size);
    return at;
}
