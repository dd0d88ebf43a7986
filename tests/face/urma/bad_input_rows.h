// SPDX-License-Identifier: MIT
// The bad-input table of the URMA face, included more than once with other meanings of
//
//     ROW(function, what, kind, expected, call)
//
// kind: POINTER  NULL, errno = expected        STATUS  returns expected, a URMA_E* code
//       COUNT    returns expected              NOTHING returns nothing, must only not crash
//       REFUSED  returns expected although everything is right: the device has none of it, and says so in
//                docs/urma-errors.md
//       GOOD     is accepted: the call is one that looks wrong and is not, or the right form beside the wrong
// A refusal is logged in words (not for NOTHING and GOOD) and changes no object. Expected values are what
// UMDK's library was measured to answer (tests/abi/data/urma_badinput.csv), but for the rows that
// docs/urma-errors.md names. tests/abi/urma_coverage.sh fails when a public function has no line here.

// ---- device, EIDs, context
ROW(urma_init, "twice", STATUS, URMA_EEXIST, urma_init(NULL))
ROW(urma_get_device_list, "no place for the number", POINTER, EINVAL, urma_get_device_list(NULL))
ROW(urma_free_device_list, "no list", NOTHING, 0, (urma_free_device_list(NULL), 0))
ROW(urma_get_eid_list, "no device", POINTER, EINVAL, urma_get_eid_list(NULL, &out.u32))
ROW(urma_get_eid_list, "no place for the number", POINTER, EINVAL, urma_get_eid_list(dev, NULL))
ROW(urma_free_eid_list, "no list", NOTHING, 0, (urma_free_eid_list(NULL), 0))
ROW(urma_get_device_by_name, "no name", POINTER, EINVAL, urma_get_device_by_name(NULL))
ROW(urma_get_device_by_name, "64 characters", POINTER, EINVAL, urma_get_device_by_name(long_name))
ROW(urma_get_device_by_name, "no such device", POINTER, ENODEV, urma_get_device_by_name((char *)"nobody"))
ROW(urma_get_device_by_eid, "nobody's EID", POINTER, ENODEV,
    urma_get_device_by_eid((urma_eid_t){.raw = {0xfd, 9}}, URMA_TRANSPORT_UB))
ROW(urma_get_device_by_eid, "another kind of device", POINTER, ENODEV,
    urma_get_device_by_eid(l.ctx->eid, URMA_TRANSPORT_IB))
ROW(urma_query_device, "no device", STATUS, URMA_EINVAL, urma_query_device(NULL, &out.dev))
ROW(urma_query_device, "no place", STATUS, URMA_EINVAL, urma_query_device(dev, NULL))
ROW(urma_create_context, "no device", POINTER, EINVAL, urma_create_context(NULL, 0))
ROW(urma_create_context, "an index without an EID", POINTER, EIO, urma_create_context(dev, 1023))
ROW(urma_delete_context, "no context", STATUS, URMA_EINVAL, urma_delete_context(NULL))
ROW(urma_delete_context, "with objects", STATUS, URMA_EAGAIN, urma_delete_context(l.ctx))
ROW(urma_set_context_opt, "no context", STATUS, URMA_EINVAL,
    urma_set_context_opt(NULL, URMA_OPT_AGGR_MODE, &mode, sizeof(mode)))
ROW(urma_set_context_opt, "an unknown option", STATUS, URMA_EINVAL,
    urma_set_context_opt(l.ctx, (urma_opt_name_t)9, &mode, sizeof(mode)))
ROW(urma_set_context_opt, "no value", STATUS, URMA_EINVAL,
    urma_set_context_opt(l.ctx, URMA_OPT_AGGR_MODE, NULL, sizeof(mode)))
ROW(urma_set_context_opt, "not an aggregated device", REFUSED, URMA_EINVAL,
    urma_set_context_opt(l.ctx, URMA_OPT_AGGR_MODE, &mode, sizeof(mode)))
ROW(urma_get_uasid, "no place", STATUS, URMA_EINVAL, urma_get_uasid(NULL))
ROW(urma_get_uasid, "right", GOOD, 0, urma_get_uasid(&out.u32))
ROW(urma_str_to_eid, "no text", COUNT, -EINVAL, urma_str_to_eid(NULL, &out.eid))
ROW(urma_str_to_eid, "no place", COUNT, -EINVAL, urma_str_to_eid("::1", NULL))
ROW(urma_str_to_eid, "two characters", COUNT, -EINVAL, urma_str_to_eid("12", &out.eid))
ROW(urma_str_to_eid, "right", GOOD, 0, urma_str_to_eid("::1", &out.eid))
ROW(urma_u32_to_eid, "no place", NOTHING, 0, (urma_u32_to_eid(1, NULL), 0))
ROW(urma_user_ctl, "no context", STATUS, URMA_EINVAL, urma_user_ctl(NULL, &ctl_in, &ctl_out))
ROW(urma_user_ctl, "no argument", STATUS, URMA_EINVAL, urma_user_ctl(l.ctx, NULL, &ctl_out))
ROW(urma_user_ctl, "no place", STATUS, URMA_EINVAL, urma_user_ctl(l.ctx, &ctl_in, NULL))
ROW(urma_user_ctl, "a number of a chip", REFUSED, URMA_ENOPERM, urma_user_ctl(l.ctx, &ctl_chip, &ctl_out))
ROW(urma_user_ctl, "an unknown number", STATUS, URMA_FAIL, urma_user_ctl(l.ctx, &ctl_in, &ctl_out))

// ---- JFCE, JFC
ROW(urma_create_jfce, "no context", POINTER, EINVAL, urma_create_jfce(NULL))
ROW(urma_delete_jfce, "none", STATUS, URMA_EINVAL, urma_delete_jfce(NULL))
ROW(urma_delete_jfce, "a JFC uses it", STATUS, URMA_FAIL, urma_delete_jfce(l.jfce))
ROW(urma_create_jfc, "no context", POINTER, EINVAL, urma_create_jfc(NULL, &jfc_cfg))
ROW(urma_create_jfc, "no configuration", POINTER, EINVAL, urma_create_jfc(l.ctx, NULL))
ROW(urma_create_jfc, "depth 0", POINTER, EINVAL, jfc_with(.depth = 0))
ROW(urma_create_jfc, "one more than the most", POINTER, EINVAL, jfc_with(.depth = cap.max_jfc_depth + 1))
ROW(urma_modify_jfc, "none", STATUS, URMA_EINVAL, urma_modify_jfc(NULL, &(urma_jfc_attr_t){0}))
ROW(urma_modify_jfc, "no attributes", STATUS, URMA_EINVAL, urma_modify_jfc(l.jfc, NULL))
ROW(urma_modify_jfc, "mask 0", GOOD, 0, urma_modify_jfc(l.jfc, &(urma_jfc_attr_t){0}))
ROW(urma_delete_jfc, "none", STATUS, URMA_EINVAL, urma_delete_jfc(NULL))
ROW(urma_delete_jfc, "allocated, not active", STATUS, URMA_EINVAL, urma_delete_jfc(step.jfc))
ROW(urma_delete_jfc_batch, "no array", STATUS, URMA_EINVAL, urma_delete_jfc_batch(NULL, 1, &none.jfc))
ROW(urma_delete_jfc_batch, "0 elements", STATUS, URMA_EINVAL, urma_delete_jfc_batch(&l.jfc, 0, &none.jfc))
ROW(urma_delete_jfc_batch, "-1 elements", STATUS, URMA_EINVAL, urma_delete_jfc_batch(&l.jfc, -1, &none.jfc))
ROW(urma_delete_jfc_batch, "no place for the bad one", STATUS, URMA_EINVAL,
    urma_delete_jfc_batch(&l.jfc, 1, NULL))
ROW(urma_delete_jfc_batch, "an element is NULL", STATUS, URMA_EINVAL,
    urma_delete_jfc_batch((urma_jfc_t *[]){NULL}, 1, &none.jfc))
ROW(urma_alloc_jfc, "no context", STATUS, URMA_EINVAL, urma_alloc_jfc(NULL, &jfc_cfg, &none.jfc))
ROW(urma_alloc_jfc, "no configuration", STATUS, URMA_EINVAL, urma_alloc_jfc(l.ctx, NULL, &none.jfc))
ROW(urma_alloc_jfc, "no place", STATUS, URMA_EINVAL, urma_alloc_jfc(l.ctx, &jfc_cfg, NULL))
ROW(urma_set_jfc_opt, "none", STATUS, URMA_EINVAL, urma_set_jfc_opt(NULL, URMA_JFC_DEPTH, &out.u32, 4))
ROW(urma_set_jfc_opt, "no value", STATUS, URMA_EINVAL, urma_set_jfc_opt(step.jfc, URMA_JFC_DEPTH, NULL, 4))
ROW(urma_set_jfc_opt, "wrong length", STATUS, URMA_EINVAL,
    urma_set_jfc_opt(step.jfc, URMA_JFC_DEPTH, &out.u32, 3))
ROW(urma_set_jfc_opt, "option 0", STATUS, URMA_EINVAL, urma_set_jfc_opt(step.jfc, 0, &out.u32, 4))
ROW(urma_set_jfc_opt, "an unknown option", STATUS, URMA_EINVAL,
    urma_set_jfc_opt(step.jfc, 1ull << 60, &out.u32, 4))
ROW(urma_set_jfc_opt, "active", STATUS, URMA_EINVAL, urma_set_jfc_opt(l.jfc, URMA_JFC_DEPTH, &depth, 4))
ROW(urma_set_jfc_opt, "right", GOOD, 0, urma_set_jfc_opt(step.jfc, URMA_JFC_DEPTH, &depth, 4))
ROW(urma_get_jfc_opt, "option 0", STATUS, URMA_EINVAL, urma_get_jfc_opt(l.jfc, 0, &out.u32, 4))
ROW(urma_get_jfc_opt, "none", STATUS, URMA_EINVAL, urma_get_jfc_opt(NULL, URMA_JFC_DEPTH, &out.u32, 4))
ROW(urma_get_jfc_opt, "right", GOOD, 0, urma_get_jfc_opt(l.jfc, URMA_JFC_DEPTH, &out.u32, 4))
ROW(urma_active_jfc, "none", STATUS, URMA_EINVAL, urma_active_jfc(NULL))
ROW(urma_active_jfc, "twice", STATUS, URMA_EINVAL, urma_active_jfc(l.jfc))
ROW(urma_deactive_jfc, "none", STATUS, URMA_EINVAL, urma_deactive_jfc(NULL))
ROW(urma_deactive_jfc, "never activated", STATUS, URMA_EINVAL, urma_deactive_jfc(step.jfc))
ROW(urma_free_jfc, "none", STATUS, URMA_EINVAL, urma_free_jfc(NULL))
ROW(urma_free_jfc, "from create", STATUS, URMA_EINVAL, urma_free_jfc(l.jfc))
ROW(urma_poll_jfc, "none", COUNT, -1, urma_poll_jfc(NULL, 1, &out.cr))
ROW(urma_poll_jfc, "no place", COUNT, -1, urma_poll_jfc(l.jfc, 1, NULL))
ROW(urma_poll_jfc, "-1 records", COUNT, -1, urma_poll_jfc(l.jfc, -1, &out.cr))
ROW(urma_poll_jfc, "no records", GOOD, 0, urma_poll_jfc(l.jfc, 0, &out.cr))
ROW(urma_poll_jfc, "empty", GOOD, 0, urma_poll_jfc(l.jfc, 1, &out.cr))
ROW(urma_rearm_jfc, "none", STATUS, URMA_EINVAL, urma_rearm_jfc(NULL, false))
ROW(urma_rearm_jfc, "a JFC without a JFCE", GOOD, 0, urma_rearm_jfc(h.jfc, false))
ROW(urma_wait_jfc, "no channel", COUNT, -1, urma_wait_jfc(NULL, 1, 0, &none.jfc))
ROW(urma_wait_jfc, "no place", COUNT, -1, urma_wait_jfc(l.jfce, 1, 0, NULL))
ROW(urma_wait_jfc, "0 places", COUNT, -1, urma_wait_jfc(l.jfce, 0, 0, &none.jfc))
ROW(urma_wait_jfc, "nothing there", GOOD, 0, urma_wait_jfc(l.jfce, 1, 0, &none.jfc))
ROW(urma_ack_jfc, "no array", NOTHING, 0, (urma_ack_jfc(NULL, &out.u32, 1), 0))
ROW(urma_ack_jfc, "no counts", NOTHING, 0, (urma_ack_jfc(&l.jfc, NULL, 1), 0))
ROW(urma_ack_jfc, "nothing", NOTHING, 0, (urma_ack_jfc(&l.jfc, &out.u32, 0), 0))

// ---- JFS
ROW(urma_create_jfs, "no context", POINTER, EINVAL, urma_create_jfs(NULL, &jfs_cfg))
ROW(urma_create_jfs, "no configuration", POINTER, EINVAL, urma_create_jfs(l.ctx, NULL))
ROW(urma_create_jfs, "no JFC", POINTER, EINVAL, jfs_with(.jfc = NULL))
ROW(urma_create_jfs, "mode 0", POINTER, EINVAL, jfs_with(.trans_mode = 0))
ROW(urma_create_jfs, "mode 3", POINTER, EINVAL, jfs_with(.trans_mode = 3))
ROW(urma_create_jfs, "mode 8", POINTER, EINVAL, jfs_with(.trans_mode = 8))
ROW(urma_create_jfs, "RM with OT", POINTER, EINVAL, jfs_with(.flag.bs.order_type = URMA_OT))
ROW(urma_create_jfs, "RM with OL", POINTER, EINVAL, jfs_with(.flag.bs.order_type = URMA_OL))
ROW(urma_create_jfs, "RM with NO", POINTER, EINVAL, jfs_with(.flag.bs.order_type = URMA_NO))
ROW(urma_create_jfs, "UM with OI", POINTER, EINVAL,
    jfs_with(.trans_mode = URMA_TM_UM, .flag.bs.order_type = URMA_OI))
ROW(urma_create_jfs, "RC with OI", POINTER, EINVAL,
    jfs_with(.trans_mode = URMA_TM_RC, .flag.bs.order_type = URMA_OI))
ROW(urma_create_jfs, "depth 0", POINTER, EINVAL, jfs_with(.depth = 0))
ROW(urma_create_jfs, "one more than the most", POINTER, EINVAL, jfs_with(.depth = cap.max_jfs_depth + 1))
ROW(urma_create_jfs, "a byte too many inline", POINTER, EINVAL,
    jfs_with(.max_inline_data = cap.max_jfs_inline_len + 1))
ROW(urma_create_jfs, "a piece too many", POINTER, EINVAL, jfs_with(.max_sge = (uint8_t)(cap.max_jfs_sge + 1)))
ROW(urma_create_jfs, "a remote piece too many", POINTER, EINVAL,
    jfs_with(.max_rsge = (uint8_t)(cap.max_jfs_rsge + 1)))
ROW(urma_modify_jfs, "none", STATUS, URMA_EINVAL, urma_modify_jfs(NULL, &(urma_jfs_attr_t){0}))
ROW(urma_modify_jfs, "no attributes", STATUS, URMA_EINVAL, urma_modify_jfs(h.jfs, NULL))
ROW(urma_modify_jfs, "mask 0", GOOD, 0, urma_modify_jfs(h.jfs, &(urma_jfs_attr_t){0}))
ROW(urma_modify_jfs, "mask 2", STATUS, URMA_EINVAL, urma_modify_jfs(h.jfs, &(urma_jfs_attr_t){.mask = 2}))
ROW(urma_query_jfs, "none", STATUS, URMA_EINVAL, urma_query_jfs(NULL, &out.jfs, &out.jfs_attr))
ROW(urma_query_jfs, "no configuration", STATUS, URMA_EINVAL, urma_query_jfs(h.jfs, NULL, &out.jfs_attr))
ROW(urma_query_jfs, "no attributes", STATUS, URMA_EINVAL, urma_query_jfs(h.jfs, &out.jfs, NULL))
ROW(urma_query_jfs, "right", GOOD, 0, urma_query_jfs(h.jfs, &out.jfs, &out.jfs_attr))
ROW(urma_flush_jfs, "none", COUNT, -EINVAL, urma_flush_jfs(NULL, 1, &out.cr))
ROW(urma_flush_jfs, "no place", COUNT, -EINVAL, urma_flush_jfs(h.jfs, 1, NULL))
ROW(urma_flush_jfs, "0 records", COUNT, -EINVAL, urma_flush_jfs(h.jfs, 0, &out.cr))
ROW(urma_flush_jfs, "-1 records", COUNT, -EINVAL, urma_flush_jfs(h.jfs, -1, &out.cr))
ROW(urma_flush_jfs, "more than the depth", COUNT, -EINVAL, urma_flush_jfs(h.jfs, 1 << 20, &out.cr))
ROW(urma_flush_jfs, "before the mark", GOOD, 0, urma_flush_jfs(h.jfs, 1, &out.cr))
ROW(urma_delete_jfs, "none", STATUS, URMA_EINVAL, urma_delete_jfs(NULL))
ROW(urma_delete_jfs_batch, "0 elements", STATUS, URMA_EINVAL, urma_delete_jfs_batch(&h.jfs, 0, &none.jfs))
ROW(urma_delete_jfs_batch, "an element is NULL", STATUS, URMA_EINVAL,
    urma_delete_jfs_batch((urma_jfs_t *[]){NULL}, 1, &none.jfs))
ROW(urma_alloc_jfs, "no JFC", STATUS, URMA_EINVAL, alloc_jfs_with(.jfc = NULL))
ROW(urma_alloc_jfs, "mode 0", STATUS, URMA_EINVAL, alloc_jfs_with(.trans_mode = 0))
ROW(urma_alloc_jfs, "no place", STATUS, URMA_EINVAL, urma_alloc_jfs(l.ctx, &jfs_cfg, NULL))
ROW(urma_set_jfs_opt, "none", STATUS, URMA_EINVAL, urma_set_jfs_opt(NULL, URMA_JFS_DEPTH, &depth, 4))
ROW(urma_set_jfs_opt, "active", STATUS, URMA_EINVAL, urma_set_jfs_opt(h.jfs, URMA_JFS_DEPTH, &depth, 4))
ROW(urma_set_jfs_opt, "right", GOOD, 0, urma_set_jfs_opt(step.jfs, URMA_JFS_DEPTH, &depth, 4))
ROW(urma_get_jfs_opt, "option 0", STATUS, URMA_EINVAL, urma_get_jfs_opt(h.jfs, 0, &out.u32, 4))
ROW(urma_get_jfs_opt, "right", GOOD, 0, urma_get_jfs_opt(h.jfs, URMA_JFS_DEPTH, &out.u32, 4))
ROW(urma_active_jfs, "none", STATUS, URMA_EINVAL, urma_active_jfs(NULL))
ROW(urma_active_jfs, "its JFC is not active", STATUS, URMA_EINVAL, urma_active_jfs(step.jfs))
ROW(urma_deactive_jfs, "never activated", STATUS, URMA_EINVAL, urma_deactive_jfs(step.jfs))
ROW(urma_free_jfs, "from create", STATUS, URMA_EINVAL, urma_free_jfs(h.jfs))

// ---- JFR
ROW(urma_create_jfr, "no context", POINTER, EINVAL, urma_create_jfr(NULL, &jfr_cfg))
ROW(urma_create_jfr, "no configuration", POINTER, EINVAL, urma_create_jfr(l.ctx, NULL))
ROW(urma_create_jfr, "no JFC", POINTER, EINVAL, jfr_with(.jfc = NULL))
ROW(urma_create_jfr, "mode 0", POINTER, EINVAL, jfr_with(.trans_mode = 0))
ROW(urma_create_jfr, "mode 3", POINTER, EINVAL, jfr_with(.trans_mode = 3))
ROW(urma_create_jfr, "depth 0", POINTER, EINVAL, jfr_with(.depth = 0))
ROW(urma_create_jfr, "one more than the most", POINTER, EINVAL, jfr_with(.depth = cap.max_jfr_depth + 1))
ROW(urma_create_jfr, "a piece too many", POINTER, EINVAL, jfr_with(.max_sge = (uint8_t)(cap.max_jfr_sge + 1)))
ROW(urma_create_jfr, "signed", POINTER, EINVAL, jfr_with(.flag.bs.token_policy = URMA_TOKEN_SIGNED))
ROW(urma_modify_jfr, "none", STATUS, URMA_EINVAL, urma_modify_jfr(NULL, &(urma_jfr_attr_t){0}))
ROW(urma_modify_jfr, "no attributes", STATUS, URMA_EINVAL, urma_modify_jfr(h.jfr, NULL))
ROW(urma_query_jfr, "no configuration", STATUS, URMA_EINVAL, urma_query_jfr(h.jfr, NULL, &out.jfr_attr))
ROW(urma_query_jfr, "right", GOOD, 0, urma_query_jfr(h.jfr, &out.jfr, &out.jfr_attr))
ROW(urma_delete_jfr, "none", STATUS, URMA_EINVAL, urma_delete_jfr(NULL))
ROW(urma_delete_jfr_batch, "an element is NULL", STATUS, URMA_EINVAL,
    urma_delete_jfr_batch((urma_jfr_t *[]){NULL}, 1, &none.jfr))
ROW(urma_alloc_jfr, "no place", STATUS, URMA_EINVAL, urma_alloc_jfr(l.ctx, &jfr_cfg, NULL))
ROW(urma_set_jfr_opt, "active", STATUS, URMA_EINVAL, urma_set_jfr_opt(h.jfr, URMA_JFR_DEPTH, &depth, 4))
ROW(urma_set_jfr_opt, "right", GOOD, 0, urma_set_jfr_opt(step.jfr, URMA_JFR_DEPTH, &depth, 4))
ROW(urma_get_jfr_opt, "option 0", STATUS, URMA_EINVAL, urma_get_jfr_opt(h.jfr, 0, &out.u32, 4))
ROW(urma_get_jfr_opt, "right", GOOD, 0, urma_get_jfr_opt(h.jfr, URMA_JFR_DEPTH, &out.u32, 4))
ROW(urma_active_jfr, "its JFC is not active", STATUS, URMA_EINVAL, urma_active_jfr(step.jfr))
ROW(urma_deactive_jfr, "never activated", STATUS, URMA_EINVAL, urma_deactive_jfr(step.jfr))
ROW(urma_free_jfr, "from create", STATUS, URMA_EINVAL, urma_free_jfr(h.jfr))

// ---- jetty, groups
ROW(urma_create_jetty, "no context", POINTER, EINVAL, urma_create_jetty(NULL, &jetty_cfg))
ROW(urma_create_jetty, "no configuration", POINTER, EINVAL, urma_create_jetty(l.ctx, NULL))
ROW(urma_create_jetty, "its JFR is not shared", POINTER, EINVAL, jetty_with(.flag.bs.share_jfr = 0))
ROW(urma_create_jetty, "no JFR", POINTER, EINVAL, jetty_with(.shared.jfr = NULL))
ROW(urma_create_jetty, "no JFC", POINTER, EINVAL, jetty_with(.jfs_cfg.jfc = NULL))
ROW(urma_create_jetty, "an RC jetty with an RM JFR", POINTER, EINVAL,
    jetty_with(.jfs_cfg.trans_mode = URMA_TM_RC))
ROW(urma_create_jetty, "depth 0", POINTER, EINVAL, jetty_with(.jfs_cfg.depth = 0))
ROW(urma_create_jetty, "one more than the most", POINTER, EINVAL,
    jetty_with(.jfs_cfg.depth = cap.max_jfs_depth + 1))
ROW(urma_create_jetty, "a piece too many", POINTER, EINVAL,
    jetty_with(.jfs_cfg.max_sge = (uint8_t)(cap.max_jfs_sge + 1)))
ROW(urma_modify_jetty, "none", STATUS, URMA_EINVAL, urma_modify_jetty(NULL, &(urma_jetty_attr_t){0}))
ROW(urma_modify_jetty, "no attributes", STATUS, URMA_EINVAL, urma_modify_jetty(l.jetty, NULL))
ROW(urma_modify_jetty, "mask 0", GOOD, 0, urma_modify_jetty(l.jetty, &(urma_jetty_attr_t){0}))
ROW(urma_query_jetty, "no configuration", STATUS, URMA_EINVAL,
    urma_query_jetty(l.jetty, NULL, &out.jetty_attr))
ROW(urma_query_jetty, "no attributes", STATUS, URMA_EINVAL, urma_query_jetty(l.jetty, &out.jetty, NULL))
ROW(urma_query_jetty, "right", GOOD, 0, urma_query_jetty(l.jetty, &out.jetty, &out.jetty_attr))
ROW(urma_flush_jetty, "none", COUNT, -EINVAL, urma_flush_jetty(NULL, 1, &out.cr))
ROW(urma_flush_jetty, "more than the depth", COUNT, -EINVAL, urma_flush_jetty(l.jetty, 1 << 20, &out.cr))
ROW(urma_flush_jetty, "before the mark", GOOD, 0, urma_flush_jetty(l.jetty, 1, &out.cr))
ROW(urma_delete_jetty, "none", STATUS, URMA_EINVAL, urma_delete_jetty(NULL))
ROW(urma_delete_jetty, "a bound one", STATUS, URMA_ENOPERM, urma_delete_jetty(rc.jetty))
ROW(urma_delete_jetty_batch, "an element is NULL", STATUS, URMA_EINVAL,
    urma_delete_jetty_batch((urma_jetty_t *[]){NULL}, 1, &none.jetty))
ROW(urma_alloc_jetty, "no place", STATUS, URMA_EINVAL, urma_alloc_jetty(l.ctx, &jetty_cfg, NULL))
ROW(urma_set_jetty_opt, "active", STATUS, URMA_EINVAL,
    urma_set_jetty_opt(l.jetty, URMA_JETTY_ID, &out.u32, 4))
ROW(urma_set_jetty_opt, "right", GOOD, 0, urma_set_jetty_opt(step.jetty, URMA_JETTY_USER_CTX, &out.u64, 8))
ROW(urma_get_jetty_opt, "option 0", STATUS, URMA_EINVAL, urma_get_jetty_opt(l.jetty, 0, &out.u32, 4))
ROW(urma_get_jetty_opt, "right", GOOD, 0, urma_get_jetty_opt(l.jetty, URMA_JETTY_ID, &out.u32, 4))
ROW(urma_active_jetty, "twice", STATUS, URMA_EINVAL, urma_active_jetty(l.jetty))
ROW(urma_deactive_jetty, "never activated", STATUS, URMA_EINVAL, urma_deactive_jetty(step.jetty))
ROW(urma_free_jetty, "from create", STATUS, URMA_EINVAL, urma_free_jetty(l.jetty))
ROW(urma_create_jetty_grp, "no context", POINTER, EINVAL, urma_create_jetty_grp(NULL, &grp_cfg))
ROW(urma_create_jetty_grp, "no configuration", POINTER, EINVAL, urma_create_jetty_grp(l.ctx, NULL))
ROW(urma_delete_jetty_grp, "none", STATUS, URMA_EINVAL, urma_delete_jetty_grp(NULL))

// ---- handles of a peer's queues
ROW(urma_import_jetty, "no context", POINTER, EINVAL, urma_import_jetty(NULL, &peer.rjetty, &token))
ROW(urma_import_jetty, "no descriptor", POINTER, EINVAL, urma_import_jetty(l.ctx, NULL, &token))
ROW(urma_import_jetty, "mode 0", POINTER, EINVAL, import_with(.trans_mode = 0))
ROW(urma_import_jetty, "mode 3", POINTER, EINVAL, import_with(.trans_mode = 3))
ROW(urma_import_jetty, "RM with UTP", POINTER, EINVAL, import_with(.tp_type = URMA_UTP))
ROW(urma_import_jetty, "RC with UTP", POINTER, EINVAL,
    import_with(.trans_mode = URMA_TM_RC, .tp_type = URMA_UTP))
ROW(urma_import_jetty, "UM with RTP", POINTER, EINVAL, import_with(.trans_mode = URMA_TM_UM))
ROW(urma_import_jetty, "order 9", POINTER, EINVAL, import_with(.flag.bs.order_type = 9))
ROW(urma_import_jetty, "RM with OT", POINTER, EINVAL, import_with(.flag.bs.order_type = URMA_OT))
ROW(urma_unimport_jetty, "none", STATUS, URMA_EINVAL, urma_unimport_jetty(NULL))
ROW(urma_unimport_jetty, "a jetty is bound to it", STATUS, URMA_FAIL, urma_unimport_jetty(rc.target))
ROW(urma_import_jetty_ex, "no token", POINTER, EINVAL,
    urma_import_jetty_ex(l.ctx, &peer.rjetty, NULL, &(urma_import_jetty_ex_cfg_t){0}))
ROW(urma_import_jetty_ex, "no channel", POINTER, EINVAL,
    urma_import_jetty_ex(l.ctx, &peer.rjetty, &token, NULL))
ROW(urma_import_jfr, "no context", POINTER, EINVAL, urma_import_jfr(NULL, &peer.rjfr, &token))
ROW(urma_import_jfr, "no descriptor", POINTER, EINVAL, urma_import_jfr(l.ctx, NULL, &token))
ROW(urma_import_jfr, "no token where one is asked", POINTER, EINVAL,
    urma_import_jfr(l.ctx, &(urma_rjfr_t){.trans_mode = URMA_TM_RM, .flag.bs.token_policy = 1}, NULL))
ROW(urma_import_jfr_ex, "no channel", POINTER, EINVAL, urma_import_jfr_ex(l.ctx, &peer.rjfr, &token, NULL))
ROW(urma_unimport_jfr, "none", STATUS, URMA_EINVAL, urma_unimport_jfr(NULL))
ROW(urma_bind_jetty, "none", STATUS, URMA_EINVAL, urma_bind_jetty(NULL, rc.target))
ROW(urma_bind_jetty, "no target", STATUS, URMA_EINVAL, urma_bind_jetty(rc.jetty, NULL))
ROW(urma_bind_jetty, "RM", STATUS, URMA_ENOPERM, urma_bind_jetty(l.jetty, l.target))
ROW(urma_bind_jetty, "an RC jetty and an RM target", STATUS, URMA_ENOPERM,
    urma_bind_jetty(rc.jetty, l.target))
ROW(urma_bind_jetty, "the same again", GOOD, 0, urma_bind_jetty(rc.jetty, rc.target))
ROW(urma_bind_jetty_ex, "no channel", STATUS, URMA_EINVAL, urma_bind_jetty_ex(rc.jetty, rc.target, NULL))
ROW(urma_unbind_jetty, "none", STATUS, URMA_EINVAL, urma_unbind_jetty(NULL))
ROW(urma_unbind_jetty, "nothing is bound", STATUS, URMA_EINVAL, urma_unbind_jetty(l.jetty))
ROW(urma_advise_jetty, "none", STATUS, URMA_EINVAL, urma_advise_jetty(NULL, l.target))
ROW(urma_advise_jetty, "RC", STATUS, URMA_EINVAL, urma_advise_jetty(rc.jetty, rc.target))
ROW(urma_advise_jetty, "RM", GOOD, 0, urma_advise_jetty(l.jetty, l.target))
ROW(urma_unadvise_jetty, "never advised", GOOD, 0, urma_unadvise_jetty(l.jetty, l.target))
ROW(urma_advise_jfr, "none", STATUS, URMA_EINVAL, urma_advise_jfr(NULL, h.target))
ROW(urma_advise_jfr, "RM", GOOD, 0, urma_advise_jfr(h.jfs, h.target))
ROW(urma_advise_jfr_async, "no function", STATUS, URMA_EINVAL,
    urma_advise_jfr_async(h.jfs, h.target, NULL, &out))
ROW(urma_unadvise_jfr, "never advised", GOOD, 0, urma_unadvise_jfr(h.jfs, h.target))
ROW(urma_get_rjetty, "none", STATUS, URMA_EINVAL, urma_get_rjetty(NULL, &none.rjetty, &out.u32))
ROW(urma_get_rjetty, "no place", STATUS, URMA_EINVAL, urma_get_rjetty(l.jetty, NULL, &out.u32))
ROW(urma_get_rjetty, "no length", STATUS, URMA_EINVAL, urma_get_rjetty(l.jetty, &none.rjetty, NULL))
ROW(urma_put_rjetty, "none", NOTHING, 0, (urma_put_rjetty(NULL), 0))
ROW(urma_create_notifier, "no context", POINTER, EINVAL, urma_create_notifier(NULL))
ROW(urma_delete_notifier, "none", STATUS, URMA_EINVAL, urma_delete_notifier(NULL))
ROW(urma_import_jetty_async, "no notifier", POINTER, EINVAL,
    urma_import_jetty_async(NULL, &peer.rjetty, &token, 0, 0))
ROW(urma_import_jetty_async, "no descriptor", POINTER, EINVAL,
    urma_import_jetty_async(notifier, NULL, &token, 0, 0))
ROW(urma_unimport_jetty_async, "none", STATUS, URMA_EINVAL, urma_unimport_jetty_async(NULL))
ROW(urma_bind_jetty_async, "none", STATUS, URMA_EINVAL,
    urma_bind_jetty_async(notifier, NULL, rc.target, 0, 0))
ROW(urma_bind_jetty_async, "RM", STATUS, URMA_ENOPERM,
    urma_bind_jetty_async(notifier, l.jetty, l.target, 0, 0))
ROW(urma_unbind_jetty_async, "nothing is bound", STATUS, URMA_EINVAL, urma_unbind_jetty_async(l.jetty))
ROW(urma_wait_notify, "no notifier", COUNT, -1, urma_wait_notify(NULL, 1, &out.notify, 0))
ROW(urma_wait_notify, "no place", COUNT, -1, urma_wait_notify(notifier, 1, NULL, 0))
ROW(urma_wait_notify, "0 places", GOOD, 0, urma_wait_notify(notifier, 0, &out.notify, 0))
ROW(urma_ack_notify, "no context", STATUS, URMA_EINVAL, urma_ack_notify(NULL, 1, &out.notify))
ROW(urma_ack_notify, "no array", STATUS, URMA_EINVAL, urma_ack_notify(l.ctx, 1, NULL))
ROW(urma_ack_notify, "nothing", GOOD, 0, urma_ack_notify(l.ctx, 0, &out.notify))

// ---- segments, tokens
ROW(urma_alloc_token_id, "no context", POINTER, EINVAL, urma_alloc_token_id(NULL))
ROW(urma_alloc_token_id_ex, "no context", POINTER, EINVAL,
    urma_alloc_token_id_ex(NULL, (urma_token_id_flag_t){0}))
ROW(urma_free_token_id, "none", STATUS, URMA_EINVAL, urma_free_token_id(NULL))
ROW(urma_free_token_id, "a segment uses it", STATUS, URMA_EINVAL, urma_free_token_id(l.seg->token_id))
ROW(urma_register_seg, "no context", POINTER, EINVAL, urma_register_seg(NULL, &seg_cfg))
ROW(urma_register_seg, "no configuration", POINTER, EINVAL, urma_register_seg(l.ctx, NULL))
ROW(urma_register_seg, "address 0", POINTER, EINVAL, seg_with(.va = 0))
ROW(urma_register_seg, "valid, but no token id", POINTER, EINVAL, seg_with(.flag.bs.token_id_valid = 1))
ROW(urma_register_seg, "a token id, but not valid", POINTER, EINVAL, seg_with(.token_id = l.seg->token_id))
ROW(urma_register_seg, "LOCAL_ONLY with READ", POINTER, EINVAL, seg_with(.flag.bs.access = 3))
ROW(urma_register_seg, "WRITE without READ", POINTER, EINVAL, seg_with(.flag.bs.access = 4))
ROW(urma_register_seg, "ATOMIC alone", POINTER, EINVAL, seg_with(.flag.bs.access = 8))
ROW(urma_register_seg, "ATOMIC without WRITE", POINTER, EINVAL, seg_with(.flag.bs.access = 10))
ROW(urma_register_seg, "ATOMIC without READ", POINTER, EINVAL, seg_with(.flag.bs.access = 12))
ROW(urma_unregister_seg, "none", STATUS, URMA_EINVAL, urma_unregister_seg(NULL))
ROW(urma_import_seg, "no context", POINTER, EINVAL, urma_import_seg(NULL, &peer.seg, &token, 0, no_flag))
ROW(urma_import_seg, "no descriptor", POINTER, EINVAL, urma_import_seg(l.ctx, NULL, &token, 0, no_flag))
ROW(urma_import_seg, "no token where one is asked", POINTER, EINVAL,
    urma_import_seg(l.ctx, &peer.seg, NULL, 0, no_flag))
ROW(urma_unimport_seg, "none", STATUS, URMA_EINVAL, urma_unimport_seg(NULL))
ROW(urma_get_seg_ctx, "none", STATUS, URMA_EINVAL, urma_get_seg_ctx(NULL, &none.seg, &out.u32))
ROW(urma_get_seg_ctx, "no size", STATUS, URMA_EINVAL, urma_get_seg_ctx(l.seg, &none.seg, NULL))
ROW(urma_put_seg_ctx, "none", NOTHING, 0, (urma_put_seg_ctx(NULL), 0))

// ---- data path
ROW(urma_post_jfs_wr, "none", STATUS, URMA_EINVAL, urma_post_jfs_wr(NULL, &a_send.wr, &none.jfs_wr))
ROW(urma_post_jfs_wr, "no request", STATUS, URMA_EINVAL, urma_post_jfs_wr(h.jfs, NULL, &none.jfs_wr))
ROW(urma_post_jfs_wr, "no place for the bad one", STATUS, URMA_EINVAL,
    urma_post_jfs_wr(h.jfs, &a_send.wr, NULL))
ROW(urma_post_jfr_wr, "none", STATUS, URMA_EINVAL, urma_post_jfr_wr(NULL, &recv_wr, &none.jfr_wr))
ROW(urma_post_jfr_wr, "no request", STATUS, URMA_EINVAL, urma_post_jfr_wr(h.jfr, NULL, &none.jfr_wr))
ROW(urma_post_jfr_wr, "no place for the bad one", STATUS, URMA_EINVAL,
    urma_post_jfr_wr(h.jfr, &recv_wr, NULL))
ROW(urma_post_jetty_send_wr, "none", STATUS, URMA_EINVAL,
    urma_post_jetty_send_wr(NULL, &a_send.wr, &none.jfs_wr))
ROW(urma_post_jetty_send_wr, "no request", STATUS, URMA_EINVAL,
    urma_post_jetty_send_wr(l.jetty, NULL, &none.jfs_wr))
ROW(urma_post_jetty_send_wr, "no place for the bad one", STATUS, URMA_EINVAL,
    urma_post_jetty_send_wr(l.jetty, &a_send.wr, NULL))
ROW(urma_post_jetty_send_wr, "an unknown opcode", STATUS, URMA_EINVAL, post_with(.opcode = URMA_OPC_LAST))
ROW(urma_post_jetty_send_wr, "no target (p11)", STATUS, URMA_EINVAL, post_with(.tjetty = NULL))
ROW(urma_post_jetty_send_wr, "a piece too many", STATUS, URMA_EINVAL, post_with(.send.src.num_sge = 100))
ROW(urma_post_jetty_send_wr, "a byte too many inline (p16)", STATUS, URMA_EINVAL,
    post_with(.flag.bs.inline_flag = 1, .send.src = {.sge = &long_piece, .num_sge = 1}))
ROW(urma_post_jetty_recv_wr, "none", STATUS, URMA_EINVAL,
    urma_post_jetty_recv_wr(NULL, &recv_wr, &none.jfr_wr))
ROW(urma_post_jetty_recv_wr, "no request", STATUS, URMA_EINVAL,
    urma_post_jetty_recv_wr(l.jetty, NULL, &none.jfr_wr))
ROW(urma_post_jetty_recv_wr, "no place for the bad one", STATUS, URMA_EINVAL,
    urma_post_jetty_recv_wr(l.jetty, &recv_wr, NULL))
ROW(urma_write, "none", STATUS, URMA_EINVAL,
    urma_write(NULL, h.target, h.there, h.seg, 1, 1, 1, no_wr_flag, 0))
ROW(urma_write, "no target", STATUS, URMA_EINVAL,
    urma_write(h.jfs, NULL, h.there, h.seg, 1, 1, 1, no_wr_flag, 0))
ROW(urma_write, "no remote segment", STATUS, URMA_EINVAL,
    urma_write(h.jfs, h.target, NULL, h.seg, 1, 1, 1, no_wr_flag, 0))
ROW(urma_read, "no target", STATUS, URMA_EINVAL,
    urma_read(h.jfs, NULL, h.seg, h.there, 1, 1, 1, no_wr_flag, 0))
ROW(urma_read, "no remote segment", STATUS, URMA_EINVAL,
    urma_read(h.jfs, h.target, h.seg, NULL, 1, 1, 1, no_wr_flag, 0))
ROW(urma_read, "no local segment", STATUS, URMA_EINVAL,
    urma_read(h.jfs, h.target, NULL, h.there, 1, 1, 1, no_wr_flag, 0))
ROW(urma_send, "no target", STATUS, URMA_EINVAL, urma_send(h.jfs, NULL, h.seg, 1, 1, no_wr_flag, 0))
ROW(urma_send, "no segment, not inline", STATUS, URMA_EINVAL,
    urma_send(h.jfs, h.target, NULL, 1, 1, no_wr_flag, 0))
ROW(urma_recv, "none", STATUS, URMA_EINVAL, urma_recv(NULL, h.seg, 1, 1, 0))
ROW(urma_recv, "no segment", STATUS, URMA_EINVAL, urma_recv(h.jfr, NULL, 1, 1, 0))
ROW(urma_recv, "address 0", STATUS, URMA_FAIL, urma_recv(h.jfr, h.seg, 0, 1, 0))

// ---- events, channels, addresses
ROW(urma_get_async_event, "no context", STATUS, URMA_EINVAL, urma_get_async_event(NULL, &out.event))
ROW(urma_get_async_event, "no place", STATUS, URMA_EINVAL, urma_get_async_event(l.ctx, NULL))
ROW(urma_ack_async_event, "none", NOTHING, 0, (urma_ack_async_event(NULL), 0))
ROW(urma_get_tp_list, "0 places", STATUS, URMA_EINVAL,
    urma_get_tp_list(l.ctx, &tp_cfg, &(uint32_t){0}, &out.tp))
ROW(urma_get_tp_list, "no place", STATUS, URMA_EINVAL, urma_get_tp_list(l.ctx, &tp_cfg, &(uint32_t){1}, NULL))
ROW(urma_get_tp_list, "mode 0", STATUS, URMA_EINVAL,
    urma_get_tp_list(l.ctx, &(urma_get_tp_cfg_t){0}, &(uint32_t){1}, &out.tp))
ROW(urma_get_tp_list, "right", GOOD, 0, urma_get_tp_list(l.ctx, &tp_cfg, &(uint32_t){1}, &out.tp))
ROW(urma_set_tp_attr, "no context", STATUS, URMA_EINVAL, urma_set_tp_attr(NULL, 1, 1, 1, &out.tp_attr))
ROW(urma_set_tp_attr, "no attributes", STATUS, URMA_EINVAL, urma_set_tp_attr(l.ctx, 1, 1, 1, NULL))
ROW(urma_set_tp_attr, "right", REFUSED, URMA_ENOPERM, urma_set_tp_attr(l.ctx, 1, 1, 1, &out.tp_attr))
ROW(urma_get_tp_attr, "no places", STATUS, URMA_EINVAL, urma_get_tp_attr(l.ctx, 1, NULL, NULL, NULL))
ROW(urma_get_tpn, "none", COUNT, -EINVAL, urma_get_tpn(NULL))
ROW(urma_modify_tp, "no context", COUNT, EINVAL,
    urma_modify_tp(NULL, 1, NULL, NULL, (urma_tp_attr_mask_t){0}))
ROW(urma_modify_tp, "right", REFUSED, EINVAL,
    urma_modify_tp(l.ctx, 1, &tp_way, &tp_change, (urma_tp_attr_mask_t){0}))
ROW(urma_get_net_addr_list, "no context", POINTER, EINVAL, urma_get_net_addr_list(NULL, &out.u32))
ROW(urma_free_net_addr_list, "none", NOTHING, 0, (urma_free_net_addr_list(NULL), 0))
ROW(urma_get_eid_by_ip, "no address", STATUS, URMA_EINVAL, urma_get_eid_by_ip(l.ctx, NULL, &out.eid))
ROW(urma_get_ip_by_eid, "no EID", STATUS, URMA_EINVAL, urma_get_ip_by_eid(l.ctx, NULL, &out.net))
ROW(urma_get_smac, "no place", STATUS, URMA_EINVAL, urma_get_smac(l.ctx, NULL))
ROW(urma_get_smac, "right", GOOD, 0, urma_get_smac(l.ctx, out.mac))
ROW(urma_get_dmac, "no place", STATUS, URMA_EINVAL, urma_get_dmac(l.ctx, &out.net, NULL))

// ---- log, statistics
ROW(urma_register_log_func, "none", STATUS, URMA_EINVAL, urma_register_log_func(NULL))
ROW(urma_register_loc_log_func, "none", STATUS, URMA_EINVAL, urma_register_loc_log_func(NULL))
ROW(urma_unregister_log_func, "nothing registered", GOOD, 0, urma_unregister_log_func())
ROW(urma_log_set_level, "99", NOTHING, 0, (urma_log_set_level((urma_vlog_level_t)99), 0))
ROW(urma_log_get_level, "after 99", GOOD, URMA_VLOG_LEVEL_INFO, urma_log_get_level())
ROW(urma_log_set_thread_tag, "none", NOTHING, 0, (urma_log_set_thread_tag(NULL), 0))
ROW(urma_log_get_thread_tag, "after none", NOTHING, 0, urma_log_get_thread_tag()[0])
ROW(urma_start_perf, "twice", GOOD, 0, urma_start_perf() + urma_start_perf())
ROW(urma_stop_perf, "twice", GOOD, 0, urma_stop_perf() + urma_stop_perf())
ROW(urma_get_perf_info, "no place", STATUS, URMA_EINVAL, urma_get_perf_info(NULL, &out.u32))
ROW(urma_get_perf_info, "no length", STATUS, URMA_EINVAL, urma_get_perf_info(out.text, NULL))
ROW(urma_get_perf_info, "no room", STATUS, URMA_EINVAL, urma_get_perf_info(out.text, &(uint32_t){3}))
ROW(urma_uninit, "a context is open", GOOD, 0, urma_uninit() + urma_init(NULL))

// ---- no argument, nothing to refuse
ROW(urma_log_get_level, "always", NOTHING, 0, urma_log_get_level())
ROW(urma_unregister_log_func, "none is registered", NOTHING, 0, urma_unregister_log_func())
ROW(urma_stop_perf, "not started", NOTHING, 0, urma_stop_perf())
ROW(urma_start_perf, "and again", NOTHING, 0, (urma_start_perf(), urma_start_perf(), urma_stop_perf()))
ROW(urma_uninit, "twice, with a context", NOTHING, 0, (urma_uninit(), urma_uninit(), urma_init(NULL)))
ROW(urma_unadvise_jetty, "no jetty", STATUS, URMA_EINVAL, urma_unadvise_jetty(NULL, l.target))
ROW(urma_unadvise_jetty, "no target", STATUS, URMA_EINVAL, urma_unadvise_jetty(l.jetty, NULL))
ROW(urma_unadvise_jfr, "no JFS", STATUS, URMA_EINVAL, urma_unadvise_jfr(NULL, h.target))
ROW(urma_unadvise_jfr, "no target", STATUS, URMA_EINVAL, urma_unadvise_jfr(h.jfs, NULL))
