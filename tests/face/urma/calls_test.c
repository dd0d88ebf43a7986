// SPDX-License-Identifier: MIT
// The right form of calls that no other test makes; what the wrong forms give is in bad_input_test.c.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "face/urma/lib/uend.h"

static struct uend l, r; // halves: JFS and JFR, RM

static int open_pair(void **state)
{
    (void)state;
    upair_open(&l, &r, &(struct uend_options){.mode = URMA_TM_RM, .halves = true});
    return 0;
}

static int close_pair(void **state)
{
    (void)state;
    upair_close(&l, &r);
    return 0;
}

static urma_cr_t next_record(urma_jfc_t *jfc)
{
    urma_cr_t cr;
    int n = 0;

    for (int i = 0; n == 0 && i < 2000000; i++)
        n = urma_poll_jfc(jfc, 1, &cr);
    CHECK_INT(n, 1);
    CHECK_INT(cr.status, URMA_CR_SUCCESS);
    return cr;
}

static void a_flat_write_and_a_flat_read_move_bytes(void **state)
{
    urma_jfs_wr_flag_t flag = {.bs.complete_enable = 1};
    uint64_t mine = (uintptr_t)l.buf;

    (void)state;
    memset(l.buf, 0x5a, 64);
    CHECK_INT(urma_write(l.jfs, l.target, l.there, l.seg, l.raddr, mine, 64, flag, 1), URMA_SUCCESS);
    CHECK_INT(next_record(l.jfc).user_ctx, 1);
    CHECK_INT(r.buf[63], 0x5a);
    CHECK_INT(urma_read(l.jfs, l.target, l.seg, l.there, mine + 64, l.raddr, 64, flag, 2), URMA_SUCCESS);
    CHECK_INT(next_record(l.jfc).user_ctx, 2);
    CHECK_INT(l.buf[127], 0x5a);
}

static void a_flat_send_meets_a_flat_receive(void **state)
{
    urma_jfs_wr_flag_t flag = {.bs.complete_enable = 1};
    urma_cr_t cr;

    (void)state;
    memset(l.buf, 0x6b, 32);
    CHECK_INT(urma_recv(r.jfr, r.seg, (uintptr_t)r.buf + 256, 64, 7), URMA_SUCCESS);
    CHECK_INT(urma_send(l.jfs, l.target, l.seg, (uintptr_t)l.buf, 32, flag, 8), URMA_SUCCESS);
    CHECK_INT(next_record(l.jfc).user_ctx, 8);
    cr = next_record(r.rjfc);
    CHECK_INT(cr.user_ctx, 7);
    CHECK_INT(cr.completion_len, 32);
    CHECK_INT(cr.opcode, URMA_CR_OPC_SEND);
    CHECK_INT(r.buf[256 + 31], 0x6b);
}

static void a_write_with_atomic_adds_behind_its_data(void **state)
{
    uint64_t *sum = (uint64_t *)(void *)(r.buf + 4096);
    struct uwr w;

    (void)state;
    *sum = 40;
    memset(l.buf, 0x7c, 64);
    uend_wr(&l, &w, URMA_OPC_WRITE_ATOMIC, 21, 0, 64);
    w.remote[1].addr = l.raddr + 4096;
    w.wr.rw.notify_data = 2;
    CHECK_INT(uend_post(&l, &w.wr, NULL), URMA_SUCCESS);
    ucr_expect(l.jfc, 21, URMA_CR_SUCCESS, NULL);
    CHECK(*sum == 42 && r.buf[63] == 0x7c);
    w.remote[1].addr = l.raddr + 4097; // a word lies on its boundary
    CHECK_INT(uend_post(&l, &w.wr, NULL), URMA_SUCCESS);
    ucr_expect(l.jfc, 21, URMA_CR_REM_UNSUPPORTED_REQ_ERR, NULL);
    CHECK(*sum == 42);
}

static void a_jfc_with_inline_data_has_it_in_memory(void **state)
{
    struct uend_options o = {.mode = URMA_TM_RM, .jfc_flag.bs.jfc_inline = 1};
    urma_device_attr_t attr;
    struct uend from, to;
    struct uwr w;

    (void)state;
    CHECK_INT(urma_query_device(the_device(), &attr), URMA_SUCCESS);
    CHECK(attr.dev_cap.feature.bs.jfc_inline);
    upair_open(&from, &to, &o);
    CHECK_INT(uend_recv(&to, 5, 128, 16), URMA_SUCCESS);
    memset(from.buf, 0x2d, 8);
    uend_wr(&from, &w, URMA_OPC_SEND, 4, 0, 8);
    CHECK_INT(uend_post(&from, &w.wr, NULL), URMA_SUCCESS);
    ucr_expect(to.rjfc, 5, URMA_CR_SUCCESS, NULL);
    CHECK(to.buf[128] == 0x2d && to.buf[135] == 0x2d && to.buf[136] == 0);
    upair_close(&from, &to);
}

static void devices_are_found_by_name_and_by_eid(void **state)
{
    urma_device_t *dev = the_device();

    (void)state;
    CHECK(urma_get_device_by_name(dev->name) == dev);
    CHECK(urma_get_device_by_eid(l.ctx->eid, URMA_TRANSPORT_UB) == dev);
}

static void an_ip_address_and_an_eid_name_each_other(void **state)
{
    urma_net_addr_info_t *list;
    urma_net_addr_t back;
    urma_eid_t eid;
    uint8_t mac[6];
    uint32_t n = 0;

    (void)state;
    list = urma_get_net_addr_list(l.ctx, &n);
    CHECK(list != NULL && n > 0);
    CHECK_INT(urma_get_eid_by_ip(l.ctx, &list[0].netaddr, &eid), URMA_SUCCESS);
    CHECK_INT(urma_get_ip_by_eid(l.ctx, &eid, &back), URMA_SUCCESS);
    CHECK_INT(back.sin_family, list[0].netaddr.sin_family);
    CHECK(memcmp(&back.in6, &list[0].netaddr.in6, back.sin_family == AF_INET ? 4 : 16) == 0);
    CHECK_INT(urma_get_dmac(l.ctx, &list[0].netaddr, mac), URMA_SUCCESS);
    urma_free_net_addr_list(list);
}

static void a_token_id_outlives_its_segment(void **state)
{
    urma_token_id_t *id = urma_alloc_token_id(l.ctx);
    urma_token_id_t *other = urma_alloc_token_id_ex(l.ctx, (urma_token_id_flag_t){0});
    urma_seg_cfg_t cfg = {.va = (uintptr_t)l.buf, .len = 4096, .token_id = id, .flag.bs.token_id_valid = 1};
    urma_target_seg_t *seg;
    urma_seg_t *copy;
    uint32_t size = 0;

    (void)state;
    CHECK(id && other);
    seg = urma_register_seg(l.ctx, &cfg);
    CHECK(seg && seg->seg.token_id == id->token_id && seg->seg.attr.bs.user_token_id == 1);
    CHECK_INT(urma_get_seg_ctx(seg, &copy, &size), URMA_SUCCESS);
    CHECK_INT(size, sizeof(urma_seg_t));
    CHECK(memcmp(copy, &seg->seg, size) == 0);
    urma_put_seg_ctx(copy);
    CHECK_INT(urma_free_token_id(id), URMA_EINVAL);
    CHECK_INT(urma_unregister_seg(seg), URMA_SUCCESS);
    CHECK_INT(urma_free_token_id(id), URMA_SUCCESS);
    CHECK_INT(urma_free_token_id(other), URMA_SUCCESS);
}

static void a_life_in_steps_is_a_life(void **state)
{
    urma_jfc_cfg_t jfc_cfg = {.depth = 16};
    urma_jfs_cfg_t jfs_cfg = {.depth = 8, .trans_mode = URMA_TM_RM, .max_sge = 1, .max_rsge = 1};
    urma_jfr_cfg_t jfr_cfg = {.depth = 8, .trans_mode = URMA_TM_RM, .max_sge = 1};
    urma_jfc_t *jfc = NULL;
    urma_jfs_t *jfs = NULL;
    urma_jfr_t *jfr = NULL;

    (void)state;
    CHECK_INT(urma_alloc_jfc(l.ctx, &jfc_cfg, &jfc), URMA_SUCCESS);
    CHECK_INT(urma_active_jfc(jfc), URMA_SUCCESS);
    CHECK_INT(urma_active_jfc(jfc), URMA_EINVAL);
    CHECK_INT(urma_free_jfc(jfc), URMA_EINVAL); // while it is active
    jfs_cfg.jfc = jfr_cfg.jfc = jfc;
    CHECK_INT(urma_alloc_jfs(l.ctx, &jfs_cfg, &jfs), URMA_SUCCESS);
    CHECK_INT(urma_active_jfs(jfs), URMA_SUCCESS);
    CHECK_INT(urma_alloc_jfr(l.ctx, &jfr_cfg, &jfr), URMA_SUCCESS);
    CHECK_INT(urma_active_jfr(jfr), URMA_SUCCESS);
    CHECK_INT(urma_deactive_jfr(jfr), URMA_SUCCESS);
    CHECK_INT(urma_deactive_jfs(jfs), URMA_SUCCESS);
    CHECK_INT(urma_deactive_jfs(jfs), URMA_EINVAL);
    CHECK_INT(urma_deactive_jfc(jfc), URMA_SUCCESS);
    CHECK_INT(urma_free_jfr(jfr), URMA_SUCCESS);
    CHECK_INT(urma_free_jfs(jfs), URMA_SUCCESS);
    CHECK_INT(urma_free_jfc(jfc), URMA_SUCCESS);
}

static void what_is_not_active_posts_nothing_and_names_the_first(void **state)
{
    urma_jfs_cfg_t jfs_cfg = {
        .depth = 8, .trans_mode = URMA_TM_RM, .max_sge = 1, .max_rsge = 1, .jfc = l.jfc};
    urma_jfr_cfg_t jfr_cfg = {.depth = 8, .trans_mode = URMA_TM_RM, .max_sge = 1, .jfc = l.rjfc};
    urma_jfs_wr_t wr = {.opcode = URMA_OPC_NOP}, *bad_jfs = NULL, *bad_jetty = NULL;
    urma_jfr_wr_t recv = {0}, *bad_jfr = NULL, *bad_recv = NULL;
    urma_jetty_cfg_t jetty_cfg = {.jfs_cfg = jfs_cfg};
    urma_jetty_t *jetty = NULL;
    urma_jfs_t *jfs = NULL;
    urma_jfr_t *jfr = NULL;

    (void)state;
    CHECK_INT(urma_alloc_jfs(l.ctx, &jfs_cfg, &jfs), URMA_SUCCESS);
    CHECK_INT(urma_alloc_jfr(l.ctx, &jfr_cfg, &jfr), URMA_SUCCESS);
    jetty_cfg.flag.bs.share_jfr = 1;
    jetty_cfg.shared.jfr = jfr;
    CHECK_INT(urma_alloc_jetty(l.ctx, &jetty_cfg, &jetty), URMA_SUCCESS);
    CHECK_INT(urma_post_jfs_wr(jfs, &wr, &bad_jfs), URMA_EINVAL);
    CHECK_INT(urma_post_jfr_wr(jfr, &recv, &bad_jfr), URMA_EINVAL);
    CHECK_INT(urma_post_jetty_send_wr(jetty, &wr, &bad_jetty), URMA_EINVAL);
    CHECK_INT(urma_post_jetty_recv_wr(jetty, &recv, &bad_recv), URMA_EINVAL);
    CHECK(bad_jfs == &wr && bad_jetty == &wr && bad_jfr == &recv && bad_recv == &recv);
    CHECK_INT(urma_free_jetty(jetty), URMA_SUCCESS);
    CHECK_INT(urma_free_jfr(jfr), URMA_SUCCESS);
    CHECK_INT(urma_free_jfs(jfs), URMA_SUCCESS);
}

static void batches_delete_all(void **state)
{
    urma_jfs_cfg_t jfs_cfg = {
        .depth = 8, .trans_mode = URMA_TM_RM, .max_sge = 1, .max_rsge = 1, .jfc = l.jfc};
    urma_jfr_cfg_t jfr_cfg = {.depth = 8, .trans_mode = URMA_TM_RM, .max_sge = 1, .jfc = l.jfc};
    urma_jfs_t *jfs[2], *bad_jfs = NULL;
    urma_jfr_t *jfr[2], *bad_jfr = NULL;
    urma_jetty_t *jetty[2], *bad_jetty = NULL;

    (void)state;
    for (int i = 0; i < 2; i++) {
        urma_jetty_cfg_t cfg = {.flag.bs.share_jfr = 1, .jfs_cfg = jfs_cfg};

        jfs[i] = urma_create_jfs(l.ctx, &jfs_cfg);
        jfr[i] = urma_create_jfr(l.ctx, &jfr_cfg);
        CHECK(jfs[i] && jfr[i]);
        cfg.shared.jfr = jfr[i];
        jetty[i] = urma_create_jetty(l.ctx, &cfg);
        CHECK(jetty[i] != NULL);
    }
    CHECK_INT(urma_delete_jetty_batch(jetty, 2, &bad_jetty), URMA_SUCCESS);
    CHECK_INT(urma_delete_jfr_batch(jfr, 2, &bad_jfr), URMA_SUCCESS);
    CHECK_INT(urma_delete_jfs_batch(jfs, 2, &bad_jfs), URMA_SUCCESS);
}

static void a_state_that_cannot_follow_fails(void **state)
{
    urma_jfs_attr_t attr = {.mask = JFS_STATE, .state = URMA_JETTY_STATE_READY};
    urma_jfs_attr_t got;
    urma_jfs_cfg_t cfg;

    (void)state;
    CHECK_INT(urma_modify_jfs(l.jfs, &attr), URMA_SUCCESS); // the same again
    attr.state = URMA_JETTY_STATE_RESET;
    CHECK_INT(urma_modify_jfs(l.jfs, &attr), URMA_FAIL);
    CHECK_INT(urma_query_jfs(l.jfs, &cfg, &got), URMA_SUCCESS);
    CHECK_INT(got.state, URMA_JETTY_STATE_READY);
}

static void ignore(urma_status_t result, void *called)
{
    (void)result;
    *(bool *)called = true;
}

static void a_hint_is_taken(void **state)
{
    bool called = false;

    (void)state;
    CHECK_INT(urma_advise_jfr_async(l.jfs, l.target, ignore, &called), URMA_SUCCESS);
    CHECK_INT(called, false); // as on UB hardware
    CHECK_INT(urma_advise_jfr(l.jfs, l.target), URMA_SUCCESS);
    CHECK_INT(urma_unadvise_jfr(l.jfs, l.target), URMA_SUCCESS);
}

static void a_channel_is_named_and_used(void **state)
{
    struct uend a, b;
    struct uend_address there;
    urma_import_jetty_ex_cfg_t channel = {0};
    urma_target_jetty_t *target;
    urma_tp_attr_value_t attr;
    urma_tp_info_t tp;
    urma_token_t token = {UEND_TOKEN};
    urma_get_tp_cfg_t cfg = {.flag.bs.rtp = 1, .trans_mode = URMA_TM_RC};
    uint32_t n = 1, bitmap = 0;
    uint8_t count = 0;

    (void)state;
    uend_open(&a, &(struct uend_options){.mode = URMA_TM_RC});
    uend_open(&b, &(struct uend_options){.mode = URMA_TM_RC});
    there = uend_address(&b);
    cfg.local_eid = a.ctx->eid;
    cfg.peer_eid = b.ctx->eid;
    CHECK_INT(urma_get_tp_list(a.ctx, &cfg, &n, &tp), URMA_SUCCESS);
    CHECK_INT(n, 1);
    CHECK_INT(urma_get_tp_attr(a.ctx, tp.tp_handle, &count, &bitmap, &attr), URMA_SUCCESS);
    CHECK(count == 2 && bitmap == 5); // retries and our own address
    channel.tp_handle = tp.tp_handle;
    target = urma_import_jetty_ex(a.ctx, &there.rjetty, &token, &channel);
    CHECK(target != NULL);
    CHECK_INT(urma_bind_jetty_ex(a.jetty, target, &channel), URMA_SUCCESS);
    CHECK(a.jetty->remote_jetty == target);
    CHECK(urma_get_tpn(a.jetty) >= 0);
    CHECK_INT(urma_unbind_jetty(a.jetty), URMA_SUCCESS);
    CHECK_INT(urma_unimport_jetty(target), URMA_SUCCESS);
    uend_close(&b);
    uend_close(&a);
    there = uend_address(&r);
    target = urma_import_jfr_ex(l.ctx, &there.rjfr, &token, &channel);
    CHECK(target != NULL);
    CHECK_INT(urma_unimport_jfr(target), URMA_SUCCESS);
}

static void a_jetty_goes_to_error_and_shows_it(void **state)
{
    urma_jetty_attr_t attr = {.mask = JETTY_STATE, .state = URMA_JETTY_STATE_ERROR};
    urma_jetty_cfg_t cfg;
    struct uend a;

    (void)state;
    uend_open(&a, &(struct uend_options){.mode = URMA_TM_RM});
    CHECK_INT(urma_modify_jetty(a.jetty, &attr), URMA_SUCCESS);
    attr.state = URMA_JETTY_STATE_READY;
    CHECK_INT(urma_query_jetty(a.jetty, &cfg, &attr), URMA_SUCCESS);
    CHECK_INT(attr.state, URMA_JETTY_STATE_ERROR);
    uend_close(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flat_write_and_a_flat_read_move_bytes),
        cmocka_unit_test(a_flat_send_meets_a_flat_receive),
        cmocka_unit_test(a_write_with_atomic_adds_behind_its_data),
        cmocka_unit_test(a_jfc_with_inline_data_has_it_in_memory),
        cmocka_unit_test(devices_are_found_by_name_and_by_eid),
        cmocka_unit_test(an_ip_address_and_an_eid_name_each_other),
        cmocka_unit_test(a_token_id_outlives_its_segment),
        cmocka_unit_test(a_life_in_steps_is_a_life),
        cmocka_unit_test(what_is_not_active_posts_nothing_and_names_the_first),
        cmocka_unit_test(batches_delete_all),
        cmocka_unit_test(a_state_that_cannot_follow_fails),
        cmocka_unit_test(a_hint_is_taken),
        cmocka_unit_test(a_channel_is_named_and_used),
        cmocka_unit_test(a_jetty_goes_to_error_and_shows_it),
    };

    return cmocka_run_group_tests(tests, open_pair, close_pair);
}
