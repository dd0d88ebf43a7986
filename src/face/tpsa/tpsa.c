// SPDX-License-Identifier: MIT
// libtpsa: in UMDK, the library that knows the machine room: which node is where, which link leads to which.
// The software device has one port and no links to choose among. So the question that programs ask, which
// ways lead from one EID to another, has an answer; what would change or tell of hardware is refused in
// words.
#include <errno.h>
#include <string.h>

#include <ub/umdk/urma/uvs_api.h>

#include "base/log.h"
#include "device/identity.h"

static bool is_ours(const uvs_eid_t *eid)
{
    const struct dock_identity *id = dock_identity();

    for (uint32_t i = 0; i < id->gids; i++) {
        if (memcmp(id->gid[i].raw, eid->raw, sizeof(eid->raw)) == 0)
            return true;
    }
    return false;
}

int uvs_get_path_set(const uvs_eid_t *src_bondind_eid, const uvs_eid_t *dst_bonding_eid,
                     enum uvs_tp_type tp_type, bool iodie_level, uvs_path_set_t *uvs_path_set)
{
    (void)iodie_level; // one die, one port: the same path
    if (!src_bondind_eid || !dst_bonding_eid || !uvs_path_set)
        return dock_refuse(-EINVAL, "uvs_get_path_set: an argument is NULL");
    if (tp_type != UVS_RTP && tp_type != UVS_CTP && tp_type != UVS_UTP)
        return dock_refuse(-EINVAL, "uvs_get_path_set: no path type %d", (int)tp_type);
    if (!is_ours(src_bondind_eid))
        return dock_refuse(-ENODEV, "uvs_get_path_set: the source is not an EID of this device");
    memset(uvs_path_set, 0, sizeof(*uvs_path_set));
    uvs_path_set->topo_type = UVS_TOPO_TYPE_FULLMESH_1D;
    uvs_path_set->chip_count = 1;
    uvs_path_set->die_count = 1;
    uvs_path_set->path_count = 1;
    uvs_path_set->paths[0].src_eid = *src_bondind_eid;
    uvs_path_set->paths[0].dst_eid = *dst_bonding_eid;
    return 0;
}

int uvs_get_device_name_by_eid(uvs_eid_t *eid, char *buf, size_t len)
{
    const char *name = dock_identity()->name;

    if (!eid || !buf || len <= strlen(name))
        return dock_refuse(-EINVAL, "uvs_get_device_name_by_eid: no EID, or no room for the name");
    if (!is_ours(eid))
        return dock_refuse(-ENODEV, "uvs_get_device_name_by_eid: no device has this EID");
    strcpy(buf, name);
    return 0;
}

static int no_hardware(const char *call, const void *argument)
{
    if (!argument)
        return dock_refuse(-EINVAL, "%s: an argument is NULL", call);
    return dock_refuse(-EOPNOTSUPP, "%s: a software device has no topology to tell or to change", call);
}

int uvs_create_agg_dev(uvs_eid_t *agg_eid, const char *dev_name)
{
    return no_hardware(__func__, dev_name ? (const void *)agg_eid : NULL);
}

int uvs_delete_agg_dev(uvs_eid_t *agg_eid)
{
    return no_hardware(__func__, agg_eid);
}

int uvs_set_topo_info(void *topo_buf, uint32_t node_size, uint32_t node_num)
{
    return no_hardware(__func__, node_size && node_num ? topo_buf : NULL);
}

int uvs_set_share_topo_info(void *topo_buf, uint32_t node_size, uint32_t node_num)
{
    return no_hardware(__func__, node_size && node_num ? topo_buf : NULL);
}

int uvs_insert_main_ue_eid(const uvs_main_ue_eid_entry_t *entry)
{
    return no_hardware(__func__, entry);
}

int uvs_insert_main_ue_eid_batch(const uvs_main_ue_eid_batch_entry_t *entry)
{
    return no_hardware(__func__, entry);
}

int uvs_delete_main_ue_eid(const uvs_eid_t *eid)
{
    return no_hardware(__func__, eid);
}

int uvs_lookup_main_ue_eid(const uvs_eid_t *eid, uvs_eid_t *main_ue_eid)
{
    return no_hardware(__func__, main_ue_eid ? (const void *)eid : NULL);
}

int uvs_flush_main_ue_eid(void)
{
    return dock_refuse(-EOPNOTSUPP, "uvs_flush_main_ue_eid: a software device has no such table");
}

int uvs_get_topo_info(void *topo)
{
    return no_hardware(__func__, topo);
}
