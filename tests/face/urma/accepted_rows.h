// SPDX-License-Identifier: MIT
// Rows like those of bad_input_rows.h: what UMDK's library was measured to take although it looks wrong, the
// right form of each call, and the rest of the measured refusals. Each call undoes what it made: 0, or what
// the refusal said. tests/abi/urma_measured_test.py looks that every measured case has a row here, there, or
// a test or a reason of its own.

// ---- context, EIDs, channels
ROW(urma_uninit, "twice, and once more", GOOD, 0, urma_uninit() + urma_uninit() + urma_init(NULL))
ROW(urma_delete_context, "right", GOOD, 0, urma_delete_context(urma_create_context(dev, 0)))
ROW(urma_set_context_opt, "wrong length", STATUS, URMA_EINVAL,
    urma_set_context_opt(l.ctx, URMA_OPT_AGGR_MODE, &mode, 1))
ROW(urma_str_to_eid, "empty", COUNT, -EINVAL, urma_str_to_eid("", &out.eid))
ROW(urma_str_to_eid, "no address", COUNT, -EINVAL, urma_str_to_eid("zzzz", &out.eid))
ROW(urma_str_to_eid, "a number", GOOD, 0, urma_str_to_eid("0x1f", &out.eid))
ROW(urma_str_to_eid, "four numbers", GOOD, 0, urma_str_to_eid("10.0.0.1", &out.eid))
ROW(urma_create_jfce, "a context without a device", POINTER, EINVAL, urma_create_jfce(&(urma_context_t){0}))
ROW(urma_delete_jfce, "right", GOOD, 0, urma_delete_jfce(urma_create_jfce(l.ctx)))

// ---- JFC
ROW(urma_create_jfc, "without a JFCE", GOOD, 0, made_jfc(.jfce = NULL))
ROW(urma_create_jfc, "a vector that is not there", GOOD, 0, made_jfc(.ceqn = 1u << 20))
ROW(urma_delete_jfc_batch, "right", GOOD, 0,
    urma_delete_jfc_batch((urma_jfc_t *[]){jfc_with(.depth = 1)}, 1, &none.jfc))
ROW(urma_alloc_jfc, "depth 0", GOOD, 0, step_jfc(0, urma_free_jfc))
ROW(urma_set_jfc_opt, "more than the most", GOOD, 0,
    urma_set_jfc_opt(step.jfc, URMA_JFC_DEPTH, &(uint32_t){UINT32_MAX}, 4) +
        urma_set_jfc_opt(step.jfc, URMA_JFC_DEPTH, &depth, 4))
ROW(urma_get_jfc_opt, "wrong length", STATUS, URMA_EINVAL,
    urma_get_jfc_opt(l.jfc, URMA_JFC_DEPTH, &out.u32, 3))
ROW(urma_active_jfc, "depth 0", STATUS, URMA_EINVAL, step_jfc(0, urma_active_jfc))
ROW(urma_active_jfc, "right", GOOD, 0, step_jfc(4, urma_active_jfc))
ROW(urma_deactive_jfc, "right", GOOD, 0, step_jfc(4, urma_deactive_jfc))
ROW(urma_free_jfc, "active", STATUS, URMA_EINVAL, urma_free_jfc(l.jfc))
ROW(urma_free_jfc, "right", GOOD, 0, step_jfc(4, urma_free_jfc))
ROW(urma_poll_jfc, "allocated, not active", COUNT, -1, urma_poll_jfc(step.jfc, 1, &out.cr))
ROW(urma_poll_jfc, "no records, no place", COUNT, -1, urma_poll_jfc(l.jfc, 0, NULL))
ROW(urma_rearm_jfc, "right", GOOD, 0, urma_rearm_jfc(l.jfc, false))
ROW(urma_ack_jfc, "an element is NULL", NOTHING, 0,
    (urma_ack_jfc((urma_jfc_t *[]){NULL}, &(uint32_t){1}, 1), 0))

// ---- JFS: each order in each mode; what is only noted
ROW(urma_create_jfs, "RM", GOOD, 0, made_jfs(.trans_mode = URMA_TM_RM))
ROW(urma_create_jfs, "RC", GOOD, 0, made_jfs(.trans_mode = URMA_TM_RC))
ROW(urma_create_jfs, "UM", GOOD, 0, made_jfs(.trans_mode = URMA_TM_UM))
ROW(urma_create_jfs, "RM with OI", GOOD, 0, made_jfs(.flag.bs.order_type = URMA_OI))
ROW(urma_create_jfs, "RM with order 5", POINTER, EINVAL, jfs_with(.flag.bs.order_type = 5))
ROW(urma_create_jfs, "RC with OT", GOOD, 0, made_jfs(.trans_mode = URMA_TM_RC, .flag.bs.order_type = URMA_OT))
ROW(urma_create_jfs, "RC with OL", GOOD, 0, made_jfs(.trans_mode = URMA_TM_RC, .flag.bs.order_type = URMA_OL))
ROW(urma_create_jfs, "RC with NO", GOOD, 0, made_jfs(.trans_mode = URMA_TM_RC, .flag.bs.order_type = URMA_NO))
ROW(urma_create_jfs, "RC with order 5", POINTER, EINVAL,
    jfs_with(.trans_mode = URMA_TM_RC, .flag.bs.order_type = 5))
ROW(urma_create_jfs, "UM with OT", POINTER, EINVAL,
    jfs_with(.trans_mode = URMA_TM_UM, .flag.bs.order_type = URMA_OT))
ROW(urma_create_jfs, "UM with OL", POINTER, EINVAL,
    jfs_with(.trans_mode = URMA_TM_UM, .flag.bs.order_type = URMA_OL))
ROW(urma_create_jfs, "UM with NO", GOOD, 0, made_jfs(.trans_mode = URMA_TM_UM, .flag.bs.order_type = URMA_NO))
ROW(urma_create_jfs, "UM with order 5", POINTER, EINVAL,
    jfs_with(.trans_mode = URMA_TM_UM, .flag.bs.order_type = 5))
ROW(urma_create_jfs, "no pieces", GOOD, 0, made_jfs(.max_sge = 0))
ROW(urma_create_jfs, "no remote pieces", GOOD, 0, made_jfs(.max_rsge = 0))
ROW(urma_create_jfs, "priority 16", GOOD, 0, made_jfs(.priority = 16))
ROW(urma_create_jfs, "8 retries", GOOD, 0, made_jfs(.rnr_retry = 8))
ROW(urma_create_jfs, "timeout 32", GOOD, 0, made_jfs(.err_timeout = 32))
ROW(urma_create_jfs, "order of RM, told back", GOOD, URMA_OI, told_order(URMA_TM_RM))
ROW(urma_create_jfs, "order of RC, told back", GOOD, URMA_OL, told_order(URMA_TM_RC))
ROW(urma_create_jfs, "order of UM, told back", GOOD, URMA_NO, told_order(URMA_TM_UM))
ROW(urma_modify_jfs, "a state that is not there", STATUS, URMA_FAIL,
    urma_modify_jfs(h.jfs, &(urma_jfs_attr_t){.mask = JFS_STATE, .state = (urma_jetty_state_t)9}))
ROW(urma_delete_jfs_batch, "right", GOOD, 0,
    urma_delete_jfs_batch((urma_jfs_t *[]){jfs_with(.depth = 1)}, 1, &none.jfs))
ROW(urma_alloc_jfs, "right", GOOD, 0, step_jfs(l.jfc, 4, urma_free_jfs))
ROW(urma_active_jfs, "right", GOOD, 0, step_jfs(l.jfc, 4, urma_active_jfs))
ROW(urma_active_jfs, "depth 0", STATUS, URMA_EINVAL, step_jfs(l.jfc, 0, urma_active_jfs))
ROW(urma_active_jfs, "no JFC", STATUS, URMA_EINVAL, step_jfs(NULL, 4, urma_active_jfs))

// ---- JFR
ROW(urma_create_jfr, "RM", GOOD, 0, made_jfr(.trans_mode = URMA_TM_RM))
ROW(urma_create_jfr, "RC", GOOD, 0, made_jfr(.trans_mode = URMA_TM_RC))
ROW(urma_create_jfr, "UM", GOOD, 0, made_jfr(.trans_mode = URMA_TM_UM))
ROW(urma_create_jfr, "no pieces", GOOD, 0, made_jfr(.max_sge = 0))
ROW(urma_create_jfr, "order 9", GOOD, 0, made_jfr(.flag.bs.order_type = 9))
ROW(urma_create_jfr, "RM with OT", GOOD, 0, made_jfr(.flag.bs.order_type = URMA_OT))
ROW(urma_create_jfr, "timer 32", GOOD, 0, made_jfr(.min_rnr_timer = 32))
ROW(urma_create_jfr, "encrypted", POINTER, EINVAL, jfr_with(.flag.bs.token_policy = URMA_TOKEN_ALL_ENCRYPTED))
ROW(urma_modify_jfr, "right", GOOD, 0, urma_modify_jfr(l.jfr, &(urma_jfr_attr_t){.mask = JFR_RX_THRESHOLD}))
ROW(urma_modify_jfr, "a threshold above the depth", STATUS, URMA_EINVAL,
    urma_modify_jfr(l.jfr, &(urma_jfr_attr_t){.mask = JFR_RX_THRESHOLD, .rx_threshold = 1u << 20}))
ROW(urma_delete_jfr_batch, "right", GOOD, 0,
    urma_delete_jfr_batch((urma_jfr_t *[]){jfr_with(.depth = 1)}, 1, &none.jfr))
ROW(urma_alloc_jfr, "no JFC", STATUS, URMA_EINVAL, step_jfr(NULL, urma_free_jfr))
ROW(urma_alloc_jfr, "right", GOOD, 0, step_jfr(l.jfc, urma_free_jfr))
ROW(urma_active_jfr, "no JFC", STATUS, URMA_EINVAL, step_jfr(NULL, urma_active_jfr))
ROW(urma_active_jfr, "right", GOOD, 0, step_jfr(l.jfc, urma_active_jfr))

// ---- jetty, groups
ROW(urma_create_jetty, "right", GOOD, 0, made_jetty(.shared.jfr = l.jfr))
ROW(urma_create_jetty, "no JFC of its own for receives", GOOD, 0, made_jetty(.shared = {.jfr = l.jfr}))
ROW(urma_create_jetty, "RC with an RC JFR", GOOD, 0,
    made_jetty(.jfs_cfg.trans_mode = URMA_TM_RC, .shared = {.jfr = rc.jfr}))
ROW(urma_create_jetty, "an RM jetty with an RC JFR", POINTER, EINVAL, jetty_with(.shared = {.jfr = rc.jfr}))
ROW(urma_create_jetty, "another order than its JFR's", POINTER, EINVAL,
    jetty_with(.jfs_cfg.trans_mode = URMA_TM_RC, .jfs_cfg.flag.bs.order_type = URMA_OT,
               .shared = {.jfr = rc.jfr}))
ROW(urma_create_jetty, "a byte too many inline", POINTER, EINVAL,
    jetty_with(.jfs_cfg.max_inline_data = cap.max_jfs_inline_len + 1))
ROW(urma_create_jetty, "a remote piece too many", POINTER, EINVAL,
    jetty_with(.jfs_cfg.max_rsge = (uint8_t)(cap.max_jfs_rsge + 1)))
ROW(urma_create_jetty, "an id that cannot be chosen", POINTER, EINVAL, jetty_with(.id = 1u << 16))
ROW(urma_create_jetty, "a group that is full", STATUS, EPERM, filled_group())
ROW(urma_create_jetty_grp, "right", GOOD, 0, made_group(0, "alone"))
ROW(urma_create_jetty_grp, "a name without an end", POINTER, EINVAL,
    urma_create_jetty_grp(l.ctx, &endless_grp))
ROW(urma_create_jetty_grp, "policy 9", POINTER, EINVAL,
    urma_create_jetty_grp(l.ctx, &(urma_jetty_grp_cfg_t){.policy = (urma_jetty_grp_policy_t)9}))
ROW(urma_modify_jetty, "right", GOOD, 0,
    urma_modify_jetty(l.jetty, &(urma_jetty_attr_t){.mask = JETTY_STATE, .state = URMA_JETTY_STATE_READY}))
ROW(urma_delete_jetty_batch, "right", GOOD, 0,
    urma_delete_jetty_batch((urma_jetty_t *[]){jetty_with(.id = 0)}, 1, &none.jetty))
ROW(urma_alloc_jetty, "no JFR", GOOD, 0, step_jetty(NULL, l.jfc, urma_free_jetty))
ROW(urma_alloc_jetty, "right", GOOD, 0, step_jetty(l.jfr, l.jfc, urma_free_jetty))
ROW(urma_active_jetty, "no JFR", STATUS, URMA_EINVAL, step_jetty(NULL, l.jfc, urma_active_jetty))
ROW(urma_active_jetty, "a JFR that is not active", STATUS, URMA_EINVAL,
    step_jetty(step.jfr, l.jfc, urma_active_jetty))
ROW(urma_active_jetty, "no JFC of its own for receives", GOOD, 0, step_jetty(l.jfr, NULL, urma_active_jetty))
ROW(urma_active_jetty, "right", GOOD, 0, step_jetty(l.jfr, l.jfc, urma_active_jetty))
ROW(urma_post_jetty_send_wr, "allocated, not active", STATUS, URMA_EINVAL,
    urma_post_jetty_send_wr(step.jetty, &a_send.wr, &none.jfs_wr))

// ---- handles of a peer's queues
ROW(urma_import_jetty, "right", GOOD, 0, imported(.type = URMA_JETTY))
ROW(urma_import_jetty, "shared transport", GOOD, 0, imported(.flag.bs.share_tp = 1))
ROW(urma_import_jetty, "RC", GOOD, 0, imported(.trans_mode = URMA_TM_RC))
ROW(urma_import_jetty, "UM with UTP", GOOD, 0, imported(.trans_mode = URMA_TM_UM, .tp_type = URMA_UTP))
ROW(urma_import_jetty, "UM with CTP", GOOD, 0, imported(.trans_mode = URMA_TM_UM, .tp_type = URMA_CTP))
ROW(urma_import_jetty, "RM with CTP", GOOD, 0, imported(.tp_type = URMA_CTP))
ROW(urma_import_jetty, "transport type 9", GOOD, 0, imported(.tp_type = (urma_tp_type_t)9))
ROW(urma_import_jetty, "RM with OL", POINTER, EINVAL, import_with(.flag.bs.order_type = URMA_OL))
ROW(urma_import_jetty, "no token, none asked", GOOD, 0,
    gone_jetty(urma_import_jetty(l.ctx, &(urma_rjetty_t){RJETTY_USUAL}, NULL)))
ROW(urma_import_jetty, "no token where one is asked", GOOD, 0,
    gone_jetty(urma_import_jetty(
        l.ctx, &(urma_rjetty_t){RJETTY_USUAL, .flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT}, NULL)))
ROW(urma_import_jetty_ex, "right", GOOD, 0,
    gone_jetty(urma_import_jetty_ex(l.ctx, &peer.rjetty, &token, &(urma_import_jetty_ex_cfg_t){0})))
ROW(urma_import_jfr, "right", GOOD, 0, gone_jfr(urma_import_jfr(l.ctx, &peer.rjfr, &token)))
ROW(urma_import_jfr, "no token, none asked", GOOD, 0, imported_jfr(NULL, .trans_mode = URMA_TM_RM))
ROW(urma_import_jfr, "mode 0", POINTER, EINVAL,
    urma_import_jfr(l.ctx, &(urma_rjfr_t){.trans_mode = 0}, &token))
ROW(urma_import_jfr, "RC", GOOD, 0, imported_jfr(&token, .trans_mode = URMA_TM_RC))
ROW(urma_import_jfr, "shared transport", GOOD, 0,
    imported_jfr(&token, .trans_mode = URMA_TM_RM, .flag.bs.share_tp = 1))
ROW(urma_import_jfr, "RM with UTP", POINTER, EINVAL,
    urma_import_jfr(l.ctx, &(urma_rjfr_t){.trans_mode = URMA_TM_RM, .tp_type = URMA_UTP}, &token))
ROW(urma_bind_jetty, "an RM jetty and an RC target", STATUS, URMA_ENOPERM,
    urma_bind_jetty(l.jetty, rc.target))
ROW(urma_bind_jetty, "another order", STATUS, URMA_ENOPERM, bound_of_another_order())
ROW(urma_bind_jetty_ex, "the same again", GOOD, 0,
    urma_bind_jetty_ex(rc.jetty, rc.target, &(urma_bind_jetty_ex_cfg_t){0}))
ROW(urma_unbind_jetty, "an RC jetty that is not bound", STATUS, URMA_EINVAL, unbound_rc(urma_unbind_jetty))
ROW(urma_advise_jetty, "RM with RC", STATUS, URMA_EINVAL, urma_advise_jetty(l.jetty, rc.target))
ROW(urma_unadvise_jetty, "RC", GOOD, 0, urma_unadvise_jetty(rc.jetty, rc.target))
ROW(urma_get_rjetty, "its fields", GOOD, 0, wrong_fields())
ROW(urma_delete_notifier, "right", GOOD, 0, urma_delete_notifier(urma_create_notifier(l.ctx)))
ROW(urma_import_jetty_async, "no token where one is asked", POINTER, EINVAL,
    urma_import_jetty_async(notifier, &peer.rjetty, NULL, 0, 0))

// ---- segments, tokens
ROW(urma_free_token_id, "right", GOOD, 0, urma_free_token_id(urma_alloc_token_id(l.ctx)))
ROW(urma_alloc_token_id_ex, "no flag", GOOD, 0,
    urma_free_token_id(urma_alloc_token_id_ex(l.ctx, (urma_token_id_flag_t){0})))
ROW(urma_alloc_token_id_ex, "several segments", GOOD, 0,
    urma_free_token_id(urma_alloc_token_id_ex(l.ctx, (urma_token_id_flag_t){.bs.multi_seg = 1})))
ROW(urma_register_seg, "right", GOOD, 0, made_seg(.len = 4096))
ROW(urma_register_seg, "length 0", GOOD, 0, made_seg(.len = 0))
ROW(urma_register_seg, "with a token id", GOOD, 0, seg_of_own_token())
ROW(urma_register_seg, "access 0", GOOD, 0, made_seg(.flag.bs.access = 0))
ROW(urma_register_seg, "LOCAL_ONLY", GOOD, 0, made_seg(.flag.bs.access = URMA_ACCESS_LOCAL_ONLY))
ROW(urma_register_seg, "READ", GOOD, 0, made_seg(.flag.bs.access = URMA_ACCESS_READ))
ROW(urma_register_seg, "READ and WRITE", GOOD, 0,
    made_seg(.flag.bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE))
ROW(urma_register_seg, "all access", GOOD, 0, made_seg(.flag.bs.access = ALL_ACCESS))
ROW(urma_register_seg, "access bit 4", GOOD, 0, made_seg(.flag.bs.access = 16))
ROW(urma_register_seg, "token policy 4", POINTER, EINVAL, seg_with(.flag.bs.token_policy = 4))
ROW(urma_register_seg, "token value 0", GOOD, 0,
    made_seg(.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT, .token_value = {0}))
ROW(urma_register_seg, "not pinned", GOOD, 0, made_seg(.flag.bs.non_pin = 1))
ROW(urma_register_seg, "an address of its own", GOOD, 0, made_seg(.flag.bs.user_iova = 1, .iova = 4096))
ROW(urma_import_seg, "right", GOOD, 0, gone_seg(urma_import_seg(l.ctx, &peer.seg, &token, 0, no_flag)))
ROW(urma_import_seg, "no token, none asked", GOOD, 0, imported_seg(.len = 8))
ROW(urma_import_seg, "length 0", GOOD, 0, imported_seg(.len = 0))

// ---- data path: who posts looks at no address; what becomes of it the record says. The sends come last:
// nobody receives them.
ROW(urma_write, "right", GOOD, 0, write_(h.raddr, AT, 8, h.seg))
ROW(urma_write, "no local segment", GOOD, 0, write_(h.raddr, AT, 8, NULL))
ROW(urma_write, "from address 0", GOOD, 0, write_(h.raddr, 0, 8, h.seg))
ROW(urma_write, "to address 0", GOOD, 0, write_(0, AT, 8, h.seg))
ROW(urma_write, "no bytes", GOOD, 0, write_(h.raddr, AT, 0, h.seg))
ROW(urma_read, "right", GOOD, 0, read_(AT, h.raddr, 8))
ROW(urma_read, "addresses 0", GOOD, 0, read_(0, 0, 8))
ROW(urma_post_jfs_wr, "no target", STATUS, URMA_EINVAL,
    urma_post_jfs_wr(h.jfs, &(urma_jfs_wr_t){.opcode = URMA_OPC_WRITE}, &none.jfs_wr))
ROW(urma_recv, "right", GOOD, 0, urma_recv(h.jfr, h.seg, AT, 8, 0))
ROW(urma_recv, "no bytes", GOOD, 0, urma_recv(h.jfr, h.seg, AT, 0, 0))
ROW(urma_send, "right", GOOD, 0, send_(AT, 8, h.seg, no_wr_flag))
ROW(urma_send, "no segment, inline", GOOD, 0, send_(AT, 8, NULL, (urma_jfs_wr_flag_t){.bs.inline_flag = 1}))
ROW(urma_send, "from address 0", GOOD, 0, send_(0, 8, h.seg, no_wr_flag))
ROW(urma_send, "no bytes", GOOD, 0, send_(AT, 0, h.seg, no_wr_flag))

// ---- channels, log, statistics
ROW(urma_user_ctl, "right", GOOD, 0,
    urma_user_ctl(l.ctx, &(urma_user_ctl_in_t){.opcode = 10},
                  &(urma_user_ctl_out_t){.addr = (uintptr_t)out.text, .len = sizeof(struct udma_u_ue_info)}))
ROW(urma_get_tpn, "right", GOOD, 0, urma_get_tpn(l.jetty) != (int)l.jetty->jetty_id.id)
ROW(urma_modify_tp, "no way, no attributes", COUNT, EINVAL,
    urma_modify_tp(l.ctx, 1, NULL, NULL, (urma_tp_attr_mask_t){0}))
ROW(urma_log_get_level, "after 0", GOOD, 0, level_after((urma_vlog_level_t)0))
ROW(urma_start_perf, "once", GOOD, 0, urma_start_perf())
ROW(urma_stop_perf, "right", GOOD, 0, urma_stop_perf())
ROW(urma_stop_perf, "never started", GOOD, 0, urma_stop_perf())
