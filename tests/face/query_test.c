// SPDX-License-Identifier: MIT
// What the device says of itself: list, attributes, port, GID and P_Key tables, names of values.
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "face/lib/ends.h"

static struct ibv_context *ctx;

static int open_one(void **state)
{
    (void)state;
    ctx = open_device();
    return 0;
}

static int close_one(void **state)
{
    (void)state;
    return ibv_close_device(ctx);
}

static void the_list_holds_one_device_and_ends_with_null(void **state)
{
    int n = 0;
    struct ibv_device **list = ibv_get_device_list(&n);

    (void)state;
    assert_int_equal(n, 1);
    assert_non_null(list[0]);
    assert_null(list[1]);
    assert_string_equal(ibv_get_device_name(list[0]), "drydock0");
    assert_int_equal(list[0]->node_type, IBV_NODE_CA);
    assert_int_equal(list[0]->transport_type, IBV_TRANSPORT_IB);
    assert_int_not_equal(ibv_get_device_guid(list[0]), 0);
    ibv_free_device_list(list);
}

// libmlx5 and libefa read a pointer behind any ibv_device and look into what it points to.
static void behind_the_device_lies_a_readable_table(void **state)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    const void *const *behind = (const void *const *)(list[0] + 1);

    (void)state;
    assert_non_null(*behind);
    for (unsigned i = 0; i < 32; i++)
        assert_null(((const void *const *)*behind)[i]);
    ibv_free_device_list(list);
}

#define PLACE(field) (offsetof(struct verbs_context, field) / sizeof(void *))

static void a_context_is_extended_and_its_tables_are_filled(void **state)
{
    struct verbs_context *v = verbs_get_ctx(ctx);
    void *const *op = (void *const *)&ctx->ops;

    (void)state;
    assert_non_null(v);
    assert_int_equal(v->sz, sizeof *v);
    for (size_t i = 0; i < sizeof ctx->ops / sizeof *op; i++)
        if (!op[i])
            fail_msg("ibv_context_ops has a NULL at index %zu: an inline of the header would jump there", i);
    op = (void *const *)v;
    for (size_t i = 0; i < offsetof(struct verbs_context, _ABI_placeholder3) / sizeof *op; i++)
        if (!op[i] && i != PLACE(priv) && i != PLACE(ABI_placeholder1) && i != PLACE(ABI_placeholder2))
            fail_msg("verbs_context has a NULL at index %zu: its caller is told EOPNOTSUPP without a word",
                     i);
    assert_true(ctx->async_fd >= 0);
    assert_true(ctx->num_comp_vectors >= 1);
}

static void what_is_not_offered_says_eopnotsupp(void **state)
{
    (void)state;
    errno = 0;
    assert_null(ibv_create_wq(ctx, &(struct ibv_wq_init_attr){0}));
    assert_int_equal(errno, EOPNOTSUPP);
    errno = 0;
    assert_null(ibv_reg_dmabuf_mr(NULL, 0, 64, 0, 0, 0));
    assert_int_equal(errno, EOPNOTSUPP);
}

static void device_attributes_are_sane_in_both_forms(void **state)
{
    struct ibv_device_attr a;
    struct ibv_device_attr_ex ex;

    (void)state;
    assert_int_equal(ibv_query_device(ctx, &a), 0);
    assert_true(a.max_qp > 0 && a.max_cq > 0 && a.max_mr > 0 && a.max_pd > 0 && a.max_qp_wr > 0 &&
                a.max_cqe > 0);
    assert_int_equal(a.max_sge, 12);
    assert_int_equal(a.phys_port_cnt, 1);
    assert_int_equal(a.max_pkeys, 1);
    assert_int_equal(a.atomic_cap, IBV_ATOMIC_HCA);
    assert_int_not_equal(a.vendor_id, 0);
    assert_int_not_equal(a.vendor_id, 0x02c9);
    assert_int_equal(ibv_query_device_ex(ctx, NULL, &ex), 0);
    assert_memory_equal(&ex.orig_attr, &a, sizeof a);
    assert_int_equal(ex.phys_port_cnt_ex, 1);
}

static void the_short_port_query_writes_48_bytes_and_no_more(void **state)
{
    int (*short_form)(struct ibv_context *, uint8_t, struct _compat_ibv_port_attr *) =
        ctx->ops._compat_query_port;
    unsigned char room[64];
    struct ibv_port_attr full;

    (void)state;
    memset(room, 0xa5, sizeof room);
    assert_int_equal(short_form(ctx, 1, (struct _compat_ibv_port_attr *)room), 0);
    for (unsigned i = 48; i < sizeof room; i++)
        assert_int_equal(room[i], 0xa5);
    assert_int_equal(ibv_query_port(ctx, 1, &full), 0);
    assert_memory_equal(room, &full, 47);
    assert_int_equal(full.state, IBV_PORT_ACTIVE);
    assert_int_equal(full.link_layer, IBV_LINK_LAYER_ETHERNET);
    assert_int_equal(full.active_mtu, IBV_MTU_4096);
    assert_int_equal(full.flags, IBV_QPF_GRH_REQUIRED);
}

static void gids_are_link_local_then_ipv4_then_empty(void **state)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    struct ibv_port_attr port;
    union ibv_gid gid;
    struct ibv_gid_entry entry;
    int filled = 0;

    (void)state;
    assert_int_equal(ibv_query_port(ctx, 1, &port), 0);
    for (int i = 0; i < port.gid_tbl_len; i++) {
        assert_int_equal(ibv_query_gid(ctx, 1, i, &gid), 0);
        int err = ibv_query_gid_ex(ctx, 1, (uint32_t)i, &entry, 0);
        if (err) {
            assert_int_equal(err, ENODATA);
            assert_true(!gid.global.subnet_prefix && !gid.global.interface_id);
            continue;
        }
        assert_int_equal(i, filled); // no hole
        filled++;
        assert_int_equal(entry.gid_type, IBV_GID_TYPE_ROCE_V2);
        assert_int_equal(entry.gid_index, i);
        assert_int_equal(entry.port_num, 1);
        assert_memory_equal(entry.gid.raw, gid.raw, 16);
        if (i == 0)
            assert_true(gid.raw[0] == 0xfe && gid.raw[1] == 0x80);
        else
            assert_memory_equal(gid.raw, mapped, sizeof mapped);
    }
    assert_true(filled >= 2 && filled < port.gid_tbl_len);
}

static void the_gid_table_refuses_a_short_buffer(void **state)
{
    struct ibv_gid_entry entries[32];
    ssize_t n = ibv_query_gid_table(ctx, entries, 32, 0);

    (void)state;
    assert_true(n >= 2);
    assert_int_equal(ibv_query_gid_table(ctx, entries, (size_t)n - 1, 0), -EINVAL);
    assert_int_equal(ibv_query_gid_table(ctx, entries, 32, 1), -EINVAL);
}

static void the_pkey_table_holds_the_default_key(void **state)
{
    __be16 key = 0;

    (void)state;
    assert_int_equal(ibv_query_pkey(ctx, 1, 0, &key), 0);
    assert_int_equal(key, 0xffff);
    assert_int_equal(ibv_get_pkey_index(ctx, 1, 0xffff), 0);
    assert_int_equal(ibv_get_pkey_index(ctx, 1, 0x1234), -1);
    assert_int_equal(ibv_query_pkey(ctx, 1, 1, &key), -1);
}

int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

static void board_id_is_answered_from_the_device_path(void **state)
{
    char text[64];

    (void)state;
    assert_int_equal(ibv_read_sysfs_file(ctx->device->ibdev_path, "board_id", text, sizeof text), 7);
    assert_string_equal(text, "DRYDOCK");
    assert_int_equal(ibv_read_sysfs_file(ctx->device->ibdev_path, "board_id", text, 4), 3);
    assert_string_equal(text, "DRY");
    assert_int_equal(ibv_read_sysfs_file("/nowhere", "board_id", text, sizeof text), -1);
}

// Names and rates are total functions: every int has an answer.
static void names_and_rates_of_unknown_values(void **state)
{
    (void)state;
    for (int v = -3; v < 300; v++) {
        assert_non_null(ibv_wc_status_str((enum ibv_wc_status)v));
        assert_non_null(ibv_event_type_str((enum ibv_event_type)v));
        assert_non_null(ibv_node_type_str((enum ibv_node_type)v));
        assert_non_null(ibv_port_state_str((enum ibv_port_state)v));
    }
    assert_string_equal(ibv_wc_status_str(IBV_WC_SUCCESS), "success");
    assert_string_equal(ibv_wc_status_str((enum ibv_wc_status)99), "unknown");
    for (int r = IBV_RATE_2_5_GBPS; r <= IBV_RATE_1200_GBPS; r++)
        assert_int_equal(mbps_to_ibv_rate(ibv_rate_to_mbps((enum ibv_rate)r)), r);
    for (int m = 1; m <= 480; m++)
        if (mult_to_ibv_rate(m) != IBV_RATE_MAX)
            assert_int_equal(ibv_rate_to_mult(mult_to_ibv_rate(m)), m);
    assert_int_equal(ibv_rate_to_mult(IBV_RATE_MAX), -1);
    assert_int_equal(ibv_rate_to_mbps((enum ibv_rate)99), -1);
    assert_int_equal(ibv_rate_to_mult(IBV_RATE_120_GBPS), 48);
    assert_int_equal(ibv_rate_to_mbps(IBV_RATE_100_GBPS), 103125);
}

static void many_contexts_are_one_device(void **state)
{
    struct ibv_context *more[20];

    (void)state;
    for (int i = 0; i < 20; i++)
        more[i] = open_device();
    for (int i = 0; i < 20; i++)
        assert_int_equal(ibv_close_device(more[i]), 0);
}

static void fork_needs_no_preparation(void **state)
{
    (void)state;
    assert_int_equal(ibv_fork_init(), 0);
    assert_int_equal(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_list_holds_one_device_and_ends_with_null),
        cmocka_unit_test(behind_the_device_lies_a_readable_table),
        cmocka_unit_test(a_context_is_extended_and_its_tables_are_filled),
        cmocka_unit_test(what_is_not_offered_says_eopnotsupp),
        cmocka_unit_test(device_attributes_are_sane_in_both_forms),
        cmocka_unit_test(the_short_port_query_writes_48_bytes_and_no_more),
        cmocka_unit_test(gids_are_link_local_then_ipv4_then_empty),
        cmocka_unit_test(the_gid_table_refuses_a_short_buffer),
        cmocka_unit_test(the_pkey_table_holds_the_default_key),
        cmocka_unit_test(board_id_is_answered_from_the_device_path),
        cmocka_unit_test(names_and_rates_of_unknown_values),
        cmocka_unit_test(many_contexts_are_one_device),
        cmocka_unit_test(fork_needs_no_preparation),
    };
    return cmocka_run_group_tests(tests, open_one, close_one);
}
