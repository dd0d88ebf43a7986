// SPDX-License-Identifier: MIT
// The device below /sys/class/ubcore, where programs of URMA look for a device's directory, its limits and
// its EIDs (URMA User Guide: "cat /sys/class/ubcore/udma1/max_write_size"). The numbers are those of
// urma_query_device; a test compares each.
#include <inttypes.h>
#include <stdio.h>

#include "cli/tree_own.h"
#include "device/device.h"
#include "device/limits.h"

// Values of urma_transport_type_t, urma_mtu_t, urma_port_state_t, urma_link_width_t and urma_speed_t.
enum { UB = 0, MTU_4096 = 5, ACTIVE = 4, X4 = 4, SPEED_100G = 10 };

static void put_ub_limits(struct tree *tree)
{
    struct dock_limits l;

    dock_limits_read(&l);
    const struct {
        const char *name;
        uint64_t value;
    } files[] = {
        {"/transport_type", UB},
        {"/port_count", 1},
        {"/feature", DOCK_UB_FEATURES},
        {"/max_jfc", l.max_cq},
        {"/max_jfs", l.max_qp},
        {"/max_jfr", l.max_srq},
        {"/max_jetty", l.max_qp},
        {"/max_jetty_grp", DOCK_UB_GROUPS},
        {"/max_jetty_in_jetty_grp", DOCK_UB_IN_GROUP},
        {"/max_jfc_depth", l.max_cqe},
        {"/max_jfs_depth", l.max_qp_wr},
        {"/max_jfr_depth", l.max_srq_wr},
        {"/max_jfs_inline_size", DOCK_UB_INLINE},
        {"/max_jfs_sge", DOCK_UB_SGE},
        {"/max_jfs_rsge", DOCK_UB_SGE},
        {"/max_jfr_sge", l.max_sge},
        {"/max_msg_size", l.max_msg},
        {"/max_read_size", DOCK_UB_ONE_SIDED},
        {"/max_write_size", DOCK_UB_ONE_SIDED},
        {"/max_cas_size", DOCK_UB_ATOMIC},
        {"/max_swap_size", DOCK_UB_ATOMIC},
        {"/max_fetch_and_add_size", DOCK_UB_ATOMIC},
        {"/max_fetch_and_sub_size", DOCK_UB_ATOMIC},
        {"/max_fetch_and_and_size", DOCK_UB_ATOMIC},
        {"/max_fetch_and_or_size", DOCK_UB_ATOMIC},
        {"/max_fetch_and_xor_size", DOCK_UB_ATOMIC},
        {"/atomic_feat", DOCK_UB_ATOMICS},
        {"/trans_mode", DOCK_UB_MODES},
        {"/congestion_ctrl_alg", 1}, // URMA_CC_NONE
        {"/ceq_cnt", 1},
        {"/max_tp_in_tpg", 1},
        {"/max_eid_cnt", DOCK_GID_TABLE},
        {"/page_size_cap", DOCK_UB_PAGES},
        {"/max_oor_cnt", 0},
        {"/mn", 0},
        {"/max_netaddr_cnt", 0},
    };
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
        dock_tree_put(tree, dock_tree_below(tree, files[i].name), "%" PRIu64, files[i].value);
}

static void put_ub_port(struct tree *tree)
{
    dock_tree_directory(tree, dock_tree_below(tree, "/port0"));
    dock_tree_put(tree, dock_tree_below(tree, "/port0/max_mtu"), "%d", MTU_4096);
    dock_tree_put(tree, dock_tree_below(tree, "/port0/active_mtu"), "%d", MTU_4096);
    dock_tree_put(tree, dock_tree_below(tree, "/port0/state"), "%d", ACTIVE);
    dock_tree_put(tree, dock_tree_below(tree, "/port0/active_width"), "%d", X4);
    dock_tree_put(tree, dock_tree_below(tree, "/port0/active_speed"), "%d", SPEED_100G);
}

void dock_tree_put_ub(struct tree *tree, const struct dock_identity *id)
{
    static const uint8_t none[16];
    uint8_t guid[16] = {0};
    char name[32];

    for (unsigned i = 0; i < sizeof(id->guid); i++)
        guid[i] = id->guid[i];
    dock_tree_directory(tree, dock_tree_below(tree, "/eids"));
    dock_tree_directory(tree, dock_tree_below(tree, "/device"));
    dock_tree_put(tree, dock_tree_below(tree, "/ubdev"), "%s", id->name);
    dock_tree_put(tree, dock_tree_below(tree, "/driver_name"), "drydock");
    dock_tree_put(tree, dock_tree_below(tree, "/device/numa_node"), "-1");
    dock_tree_put_address(tree, "/guid", guid);
    for (unsigned i = 0; i < DOCK_GID_TABLE; i++) {
        snprintf(name, sizeof(name), "/eids/eid%u", i);
        dock_tree_put_address(tree, name, i < id->gids ? id->gid[i].raw : none);
    }
    put_ub_limits(tree);
    put_ub_port(tree);
}
