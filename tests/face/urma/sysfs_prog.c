// SPDX-License-Identifier: MIT
// Prints what urma_query_device and urma_get_eid_list say, in the words of /sys/class/ubcore: a path below
// the device's directory and a value in each line. link: urma
#include <inttypes.h>
#include <stdio.h>

#include <ub/umdk/urma/urma_api.h>

static void say(const char *path, uint64_t value)
{
    printf("%s %" PRIu64 "\n", path, value);
}

static void say_address(const char *path, const uint8_t raw[16])
{
    printf("%s ", path);
    for (int i = 0; i < 16; i += 2)
        printf("%s%02x%02x", i ? ":" : "", raw[i], raw[i + 1]);
    printf("\n");
}

static void say_limits(const urma_device_cap_t *c)
{
    say("feature", c->feature.value);
    say("max_jfc", c->max_jfc);
    say("max_jfs", c->max_jfs);
    say("max_jfr", c->max_jfr);
    say("max_jetty", c->max_jetty);
    say("max_jetty_grp", c->max_jetty_grp);
    say("max_jetty_in_jetty_grp", c->max_jetty_in_jetty_grp);
    say("max_jfc_depth", c->max_jfc_depth);
    say("max_jfs_depth", c->max_jfs_depth);
    say("max_jfr_depth", c->max_jfr_depth);
    say("max_jfs_inline_size", c->max_jfs_inline_len);
    say("max_jfs_sge", c->max_jfs_sge);
    say("max_jfs_rsge", c->max_jfs_rsge);
    say("max_jfr_sge", c->max_jfr_sge);
    say("max_msg_size", c->max_msg_size);
    say("max_read_size", c->max_read_size);
    say("max_write_size", c->max_write_size);
    say("max_cas_size", c->max_cas_size);
    say("max_swap_size", c->max_swap_size);
    say("max_fetch_and_add_size", c->max_fetch_and_add_size);
    say("max_fetch_and_sub_size", c->max_fetch_and_sub_size);
    say("max_fetch_and_and_size", c->max_fetch_and_and_size);
    say("max_fetch_and_or_size", c->max_fetch_and_or_size);
    say("max_fetch_and_xor_size", c->max_fetch_and_xor_size);
    say("atomic_feat", c->atomic_feat.value);
    say("trans_mode", c->trans_mode);
    say("congestion_ctrl_alg", c->congestion_ctrl_alg);
    say("ceq_cnt", c->ceq_cnt);
    say("max_tp_in_tpg", c->max_tp_in_tpg);
    say("max_eid_cnt", c->max_eid_cnt);
    say("page_size_cap", c->page_size_cap);
    say("max_oor_cnt", c->max_oor_cnt);
    say("mn", c->mn);
    say("max_netaddr_cnt", c->max_netaddr_cnt);
}

int main(void)
{
    urma_init_attr_t init = {0};
    urma_device_attr_t attr;
    urma_eid_info_t *eids;
    uint32_t count;
    char path[32];
    int devices;

    if (urma_init(&init) != URMA_SUCCESS)
        return 1;
    urma_device_t **list = urma_get_device_list(&devices);
    if (!list || urma_query_device(list[0], &attr) != URMA_SUCCESS)
        return 1;
    eids = urma_get_eid_list(list[0], &count);
    if (!eids)
        return 1;
    printf("ubdev %s\n", list[0]->name);
    say("transport_type", list[0]->type);
    say("port_count", attr.port_cnt);
    say_address("guid", attr.guid.raw);
    say_limits(&attr.dev_cap);
    say("port0/max_mtu", attr.port_attr[0].max_mtu);
    say("port0/active_mtu", attr.port_attr[0].active_mtu);
    say("port0/state", attr.port_attr[0].state);
    say("port0/active_width", attr.port_attr[0].active_width);
    say("port0/active_speed", attr.port_attr[0].active_speed);
    for (uint32_t i = 0; i < count; i++) {
        snprintf(path, sizeof path, "eids/eid%u", eids[i].eid_index);
        say_address(path, eids[i].eid.raw);
    }
    urma_free_eid_list(eids);
    urma_free_device_list(list);
    return urma_uninit() != URMA_SUCCESS;
}
