// SPDX-License-Identifier: MIT
// Starting the library, the list of its one device, and what that device says it can.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <ub/umdk/urma/urma_provider.h>

#include "face/urma/urma_face.h"

static dock_a32 started;
static urma_device_t the_device;
static urma_provider_ops_t the_provider = {.name = "drydock", .attr = {.transport_type = URMA_TRANSPORT_UB}};
static urma_device_cap_t caps;
static pthread_once_t once = PTHREAD_ONCE_INIT;

_Static_assert((int)DOCK_UB_MODES == (URMA_TM_RM | URMA_TM_RC | URMA_TM_UM), "the tree's modes are ours");
_Static_assert(DOCK_UB_IN_GROUP == URMA_MAX_JETTY_IN_JETTY_GRP, "the tree's groups are ours");

static void fill_caps(void)
{
    struct dock_limits l;

    dock_limits_read(&l);
    caps = (urma_device_cap_t){
        .feature = {.bs = {.load_store_op = 1,
                           .jfc_inline = 1,
                           .ctp_en = 1,
                           .error_suspend = 1,
                           .outorder_comp = 1,
                           .jetty_grp = 1,
                           .muti_seg_per_token_id = 1}},
        .max_jfc = l.max_cq,
        .max_jfs = l.max_qp,
        .max_jfr = l.max_srq,
        .max_jetty = l.max_qp,
        .max_jetty_grp = DOCK_UB_GROUPS,
        .max_jetty_in_jetty_grp = DOCK_UB_IN_GROUP,
        .max_jfc_depth = l.max_cqe,
        .max_jfs_depth = l.max_qp_wr,
        .max_jfr_depth = l.max_srq_wr,
        .max_jfs_inline_len = UR_INLINE,
        .max_jfs_sge = UR_SGE,
        .max_jfs_rsge = UR_SGE,
        .max_jfr_sge = l.max_sge,
        .max_msg_size = l.max_msg,
        .max_read_size = DOCK_UB_ONE_SIDED,
        .max_write_size = DOCK_UB_ONE_SIDED,
        .max_cas_size = DOCK_UB_ATOMIC,
        .max_swap_size = DOCK_UB_ATOMIC,
        .max_fetch_and_add_size = DOCK_UB_ATOMIC,
        .max_fetch_and_sub_size = DOCK_UB_ATOMIC,
        .max_fetch_and_and_size = DOCK_UB_ATOMIC,
        .max_fetch_and_or_size = DOCK_UB_ATOMIC,
        .max_fetch_and_xor_size = DOCK_UB_ATOMIC,
        .atomic_feat = {.value = DOCK_UB_ATOMICS},
        .trans_mode = URMA_TM_RM | URMA_TM_RC | URMA_TM_UM,
        .congestion_ctrl_alg = URMA_CC_NONE,
        .ceq_cnt = 1,
        .max_tp_in_tpg = 1,
        .max_eid_cnt = DOCK_GID_TABLE,
        .page_size_cap = DOCK_UB_PAGES,
        .rm_order_cap = {.bs = {.oi = 1}},
        .rc_order_cap = {.bs = {.ot = 1, .ol = 1, .no = 1}},
        .rm_tp_cap = {.bs = {.rtp = 1, .ctp = 1}},
        .rc_tp_cap = {.bs = {.rtp = 1, .ctp = 1}},
        .um_tp_cap = {.bs = {.ctp = 1, .utp = 1}},
    };
    // Programs look for a priority of the transport that they want: both lead the same way.
    for (unsigned i = 0; i < URMA_MAX_PRIORITY_CNT; i++) {
        caps.priority_info[i].SL = i;
        caps.priority_info[i].tp_type.bs.rtp = i < URMA_MAX_PRIORITY_CNT / 2;
        caps.priority_info[i].tp_type.bs.ctp = i >= URMA_MAX_PRIORITY_CNT / 2;
    }
}

static void fill(void)
{
    the_device.type = URMA_TRANSPORT_UB;
    the_device.ops = &the_provider;
    snprintf(the_device.name, sizeof the_device.name, "%s", dock_identity()->name);
    snprintf(the_device.path, sizeof the_device.path, "/sys/class/ubcore/%s", the_device.name);
    fill_caps();
}

const urma_device_cap_t *ur_caps(void)
{
    pthread_once(&once, fill);
    return &caps;
}

bool ur_mode_offered(urma_transport_mode_t mode)
{
    return ur_caps()->trans_mode & mode;
}

bool ur_started(const char *call)
{
    if (dock_peek32(&started))
        return true;
    dock_refuse(ENODEV, "%s: urma_init was not called", call);
    return false;
}

bool ur_is_our_device(const urma_device_t *dev, const char *call)
{
    if (ur_started(call) && dev == &the_device)
        return true;
    dock_refuse(EINVAL, "%s: %p is not a device from urma_get_device_list", call, (const void *)dev);
    return false;
}

urma_status_t urma_init(urma_init_attr_t *conf)
{
    (void)conf; // token and uasid are hints to a kernel that is not here
    if (dock_swap32(&started, 1))
        return dock_refuse(URMA_EEXIST, "urma_init: the library is started already");
    pthread_once(&once, fill);
    return URMA_SUCCESS;
}

urma_status_t urma_uninit(void)
{
    dock_swap32(&started, 0);
    return URMA_SUCCESS;
}

// ---- finding the device

urma_device_t **urma_get_device_list(int *num_devices)
{
    urma_device_t **list;

    if (!num_devices)
        return ur_none(dock_refuse(-EINVAL, "urma_get_device_list: no place for the number of devices"));
    *num_devices = 0;
    if (!ur_started("urma_get_device_list"))
        return ur_none(-ENODEV);
    list = calloc(2, sizeof *list);
    if (!list)
        return ur_none(dock_no_memory("a list of devices"));
    list[0] = &the_device;
    *num_devices = 1;
    return list;
}

void urma_free_device_list(urma_device_t **device_list)
{
    free(device_list);
}

urma_device_t *urma_get_device_by_name(char *dev_name)
{
    if (!dev_name || strnlen(dev_name, URMA_MAX_NAME) == URMA_MAX_NAME)
        return ur_none(
            dock_refuse(-EINVAL, "urma_get_device_by_name: no name, or one of 64 characters or more"));
    if (!ur_started("urma_get_device_by_name"))
        return ur_none(-ENODEV);
    if (strcmp(dev_name, the_device.name) != 0)
        return ur_none(dock_refuse(-ENODEV,
                                   "urma_get_device_by_name: there is no \"%s\", the device is \"%s\"",
                                   dev_name, the_device.name));
    return &the_device;
}

urma_device_t *urma_get_device_by_eid(urma_eid_t eid, urma_transport_type_t type)
{
    const struct dock_identity *id = dock_identity();

    if (!ur_started("urma_get_device_by_eid"))
        return ur_none(-ENODEV);
    if (type == URMA_TRANSPORT_UB)
        for (uint32_t i = 0; i < id->gids; i++)
            if (!memcmp(id->gid[i].raw, eid.raw, sizeof eid.raw))
                return &the_device;
    return ur_none(
        dock_refuse(-ENODEV, "urma_get_device_by_eid: no device of type %d has that EID", (int)type));
}

urma_eid_info_t *urma_get_eid_list(urma_device_t *dev, uint32_t *cnt)
{
    const struct dock_identity *id = dock_identity();
    urma_eid_info_t *list;

    if (!cnt)
        return ur_none(dock_refuse(-EINVAL, "urma_get_eid_list: no place for the number of EIDs"));
    if (!ur_is_our_device(dev, "urma_get_eid_list"))
        return ur_none(-EINVAL);
    list = calloc(id->gids ? id->gids : 1, sizeof *list);
    if (!list)
        return ur_none(dock_no_memory("a list of EIDs"));
    for (uint32_t i = 0; i < id->gids; i++) {
        memcpy(list[i].eid.raw, id->gid[i].raw, sizeof list[i].eid.raw);
        list[i].eid_index = i;
    }
    *cnt = id->gids;
    return list;
}

void urma_free_eid_list(urma_eid_info_t *eid_list)
{
    free(eid_list);
}

// ---- what it can

urma_status_t urma_query_device(urma_device_t *dev, urma_device_attr_t *dev_attr)
{
    if (!dev_attr || !ur_is_our_device(dev, "urma_query_device")) {
        errno = EINVAL;
        return dock_refuse(URMA_EINVAL, "urma_query_device: no device of ours, or no place for the answer");
    }
    memset(dev_attr, 0, sizeof *dev_attr);
    memcpy(dev_attr->guid.raw, dock_identity()->guid, sizeof dock_identity()->guid);
    dev_attr->dev_cap = *ur_caps();
    dev_attr->port_cnt = 1;
    dev_attr->reserved_jetty_id_min = 1; // those that a program may choose
    dev_attr->reserved_jetty_id_max = DOCK_CHOSEN_MAX;
    dev_attr->port_attr[0] = (urma_port_attr_t){.max_mtu = URMA_MTU_4096,
                                                .state = URMA_PORT_ACTIVE,
                                                .active_width = URMA_LINK_X4,
                                                .active_speed = URMA_SP_100G,
                                                .active_mtu = URMA_MTU_4096};
    return URMA_SUCCESS;
}
