// SPDX-License-Identifier: MIT
// The bad-input table of the verbs face, included more than once with other meanings of
//
//     ROW(function, what, kind, expected, call)
//     TOTAL(function)   takes nothing that can be wrong, or every value has an answer (tested elsewhere)
//
// kind: POINTER  NULL, errno = expected        STATUS  returns expected, a positive errno value
//       MINUS1   -1, errno = expected          VALUE   returns expected, errno is not told
//       NOTHING  returns nothing, must only not crash
// A refusal is logged in words (not for VALUE and NOTHING) and changes no object.
// tests/abi/bad_input_rows.sh fails when a function has no line here: exported by a public node or our own,
// or an inline of the header, which reaches ours through a table.

// ---- device list and contexts
TOTAL(ibv_get_device_list)
ROW(ibv_free_device_list, "no list", NOTHING, 0, (ibv_free_device_list(NULL), 0))
ROW(ibv_get_device_name, "no device", POINTER, ENODEV, ibv_get_device_name(NULL))
ROW(ibv_get_device_name, "a foreign device", POINTER, ENODEV, ibv_get_device_name(&foreign))
ROW(ibv_get_device_guid, "no device", VALUE, 0, ibv_get_device_guid(NULL))
ROW(ibv_get_device_guid, "a foreign device", VALUE, 0, ibv_get_device_guid(&foreign))
ROW(ibv_get_device_index, "no device", VALUE, -1, ibv_get_device_index(NULL))
ROW(ibv_open_device, "no device", POINTER, ENODEV, ibv_open_device(NULL))
ROW(ibv_open_device, "a foreign device", POINTER, ENODEV, ibv_open_device(&foreign))
ROW(ibv_close_device, "no context", MINUS1, EINVAL, ibv_close_device(NULL))
ROW(ibv_import_device, "a foreign descriptor", POINTER, EINVAL, ibv_import_device(0))
ROW(ibv_import_pd, "no such handle", POINTER, ENOENT, ibv_import_pd(l.ctx, 0x7ffff))
ROW(ibv_import_mr, "no such handle", POINTER, ENOENT, ibv_import_mr(l.pd, 0x7ffffff))
ROW(ibv_import_dm, "no such handle", POINTER, ENOENT, ibv_import_dm(l.ctx, 0x7ffffff))
ROW(ibv_unimport_pd, "not imported", NOTHING, 0, (ibv_unimport_pd(l.pd), 0))
ROW(ibv_unimport_mr, "not imported", NOTHING, 0, (ibv_unimport_mr(l.mr), 0))
ROW(ibv_unimport_dm, "none exists", NOTHING, 0, (ibv_unimport_dm(NULL), 0))

// ---- queries
ROW(ibv_query_device, "no context", STATUS, EINVAL, ibv_query_device(NULL, &out.dev))
ROW(ibv_query_device, "no place", STATUS, EINVAL, ibv_query_device(l.ctx, NULL))
ROW(ibv_query_device_ex, "an unknown mask", STATUS, EINVAL,
    verbs_get_ctx(l.ctx)->query_device_ex(l.ctx, &(struct ibv_query_device_ex_input){1}, &out.dev_ex, 400))
ROW(ibv_query_device_ex, "no room", STATUS, EINVAL,
    verbs_get_ctx(l.ctx)->query_device_ex(l.ctx, NULL, &out.dev_ex, 16))
ROW(ibv_query_port, "port 0", STATUS, EINVAL, ibv_query_port(l.ctx, 0, &out.port))
ROW(ibv_query_port, "port 2", STATUS, EINVAL, ibv_query_port(l.ctx, 2, &out.port))
ROW(ibv_query_port, "no place", STATUS, EINVAL, verbs_get_ctx(l.ctx)->query_port(l.ctx, 1, NULL, 0))
ROW(ibv_query_gid, "port 2", MINUS1, EINVAL, ibv_query_gid(l.ctx, 2, 0, &out.gid))
ROW(ibv_query_gid, "index -1", MINUS1, EINVAL, ibv_query_gid(l.ctx, 1, -1, &out.gid))
ROW(ibv_query_gid, "an index beyond the table", MINUS1, EINVAL, ibv_query_gid(l.ctx, 1, 16, &out.gid))
ROW(ibv_query_gid, "no place", MINUS1, EINVAL, ibv_query_gid(l.ctx, 1, 0, NULL))
ROW(ibv_query_gid, "no context", MINUS1, EINVAL, ibv_query_gid(NULL, 1, 0, &out.gid))
ROW(_ibv_query_gid_ex, "port 0", STATUS, EINVAL, ibv_query_gid_ex(l.ctx, 0, 0, &out.entry, 0))
ROW(_ibv_query_gid_ex, "an index beyond the table", STATUS, EINVAL,
    ibv_query_gid_ex(l.ctx, 1, 16, &out.entry, 0))
ROW(_ibv_query_gid_ex, "an empty entry", STATUS, ENODATA, ibv_query_gid_ex(l.ctx, 1, 15, &out.entry, 0))
ROW(_ibv_query_gid_ex, "flags", STATUS, EINVAL, ibv_query_gid_ex(l.ctx, 1, 0, &out.entry, 1))
ROW(_ibv_query_gid_ex, "too small an entry", STATUS, EINVAL, _ibv_query_gid_ex(l.ctx, 1, 0, &out.entry, 0, 4))
ROW(_ibv_query_gid_ex, "no context", STATUS, EINVAL, ibv_query_gid_ex(NULL, 1, 0, &out.entry, 0))
ROW(_ibv_query_gid_table, "no room", STATUS, -EINVAL, ibv_query_gid_table(l.ctx, &out.entry, 1, 0))
ROW(_ibv_query_gid_table, "flags", STATUS, -EINVAL, ibv_query_gid_table(l.ctx, &out.entry, 1, 1))
ROW(_ibv_query_gid_table, "no table", STATUS, -EINVAL, ibv_query_gid_table(l.ctx, NULL, 16, 0))
ROW(ibv_query_pkey, "port 2", MINUS1, EINVAL, ibv_query_pkey(l.ctx, 2, 0, &out.pkey))
ROW(ibv_query_pkey, "index 1", MINUS1, EINVAL, ibv_query_pkey(l.ctx, 1, 1, &out.pkey))
ROW(ibv_query_pkey, "index -1", MINUS1, EINVAL, ibv_query_pkey(l.ctx, 1, -1, &out.pkey))
ROW(ibv_query_pkey, "no place", MINUS1, EINVAL, ibv_query_pkey(l.ctx, 1, 0, NULL))
ROW(ibv_get_pkey_index, "a key that is not there", MINUS1, EINVAL, ibv_get_pkey_index(l.ctx, 1, 0x1234))
ROW(ibv_get_pkey_index, "port 0", MINUS1, EINVAL, ibv_get_pkey_index(l.ctx, 0, 0xffff))
ROW(ibv_query_rt_values_ex, "an unknown mask", STATUS, EINVAL,
    ibv_query_rt_values_ex(l.ctx, &(struct ibv_values_ex){.comp_mask = 4}))
ROW(ibv_resolve_eth_l2_from_gid, "anything", STATUS, EOPNOTSUPP,
    ibv_resolve_eth_l2_from_gid(l.ctx, NULL, (uint8_t[6]){0}, NULL))

// ---- domains, regions, windows
ROW(ibv_alloc_pd, "no context", POINTER, EINVAL, ibv_alloc_pd(NULL))
ROW(ibv_dealloc_pd, "no domain", STATUS, EINVAL, ibv_dealloc_pd(NULL))
ROW(ibv_dealloc_pd, "a domain in use", STATUS, EBUSY, ibv_dealloc_pd(l.pd))
ROW(ibv_reg_mr, "no domain", POINTER, EINVAL, ibv_reg_mr(NULL, memory, 64, 1))
ROW(ibv_reg_mr, "remote write without local write", POINTER, EINVAL,
    ibv_reg_mr(l.pd, memory, 64, IBV_ACCESS_REMOTE_WRITE))
ROW(ibv_reg_mr, "atomic without local write", POINTER, EINVAL,
    ibv_reg_mr(l.pd, memory, 64, IBV_ACCESS_REMOTE_ATOMIC))
ROW(ibv_reg_mr, "an unknown right", POINTER, EINVAL, ibv_reg_mr(l.pd, memory, 64, 1 << 15))
ROW(ibv_reg_mr, "a range that wraps", POINTER, EFAULT, ibv_reg_mr(l.pd, (void *)(UINTPTR_MAX - 10), 64, 1))
ROW(ibv_reg_mr_iova, "no domain", POINTER, EINVAL, ibv_reg_mr_iova(NULL, memory, 64, 0, 1))
ROW(ibv_reg_mr_iova, "a name range that wraps", POINTER, EFAULT,
    ibv_reg_mr_iova(l.pd, memory, 64, UINT64_MAX - 1, 1))
ROW(ibv_reg_mr_iova2, "atomic without local write", POINTER, EINVAL,
    ibv_reg_mr_iova2(l.pd, memory, 64, 0, IBV_ACCESS_REMOTE_ATOMIC))
ROW(ibv_reg_dmabuf_mr, "any descriptor", POINTER, EOPNOTSUPP, ibv_reg_dmabuf_mr(l.pd, 0, 64, 0, 0, 1))
ROW(ibv_rereg_mr, "no flags", VALUE, IBV_REREG_MR_ERR_INPUT, ibv_rereg_mr(l.mr, 0, l.pd, memory, 64, 1))
ROW(ibv_rereg_mr, "no length", VALUE, IBV_REREG_MR_ERR_INPUT, ibv_rereg_mr(l.mr, 1, NULL, memory, 0, 1))
ROW(ibv_dereg_mr, "no region", STATUS, EINVAL, ibv_dereg_mr(NULL))
ROW(ibv_alloc_mw, "type 0", POINTER, EINVAL, ibv_alloc_mw(l.pd, (enum ibv_mw_type)0))
ROW(ibv_alloc_mw, "type 3", POINTER, EINVAL, ibv_alloc_mw(l.pd, (enum ibv_mw_type)3))

ROW(ibv_alloc_td, "an unknown mask", POINTER, EINVAL, ibv_alloc_td(l.ctx, &(struct ibv_td_init_attr){1}))
ROW(ibv_alloc_parent_domain, "no domain", POINTER, EINVAL,
    ibv_alloc_parent_domain(l.ctx, &(struct ibv_parent_domain_init_attr){0}))
ROW(ibv_alloc_parent_domain, "a domain of another context", POINTER, EINVAL,
    ibv_alloc_parent_domain(l.ctx, &(struct ibv_parent_domain_init_attr){.pd = r.pd}))
ROW(ibv_alloc_parent_domain, "allocators without a free", POINTER, EINVAL,
    ibv_alloc_parent_domain(l.ctx, &(struct ibv_parent_domain_init_attr){.pd = l.pd, .comp_mask = 1}))

// ---- channels and completion queues
ROW(ibv_create_comp_channel, "no context", POINTER, EINVAL, ibv_create_comp_channel(NULL))
ROW(ibv_destroy_comp_channel, "no channel", STATUS, EINVAL, ibv_destroy_comp_channel(NULL))
ROW(ibv_destroy_comp_channel, "a channel in use", STATUS, EBUSY, ibv_destroy_comp_channel(l.channel))
ROW(ibv_create_cq, "no context", POINTER, EINVAL, ibv_create_cq(NULL, 1, NULL, NULL, 0))
ROW(ibv_create_cq, "depth 0", POINTER, EINVAL, ibv_create_cq(l.ctx, 0, NULL, NULL, 0))
ROW(ibv_create_cq, "depth -1", POINTER, EINVAL, ibv_create_cq(l.ctx, -1, NULL, NULL, 0))
ROW(ibv_create_cq, "depth above the maximum", POINTER, EINVAL, ibv_create_cq(l.ctx, INT32_MAX, NULL, NULL, 0))
ROW(ibv_create_cq, "vector -1", POINTER, EINVAL, ibv_create_cq(l.ctx, 1, NULL, NULL, -1))
ROW(ibv_create_cq, "vector above the last", POINTER, EINVAL, ibv_create_cq(l.ctx, 1, NULL, NULL, 1))
ROW(ibv_create_cq, "a channel of another context", POINTER, EINVAL,
    ibv_create_cq(l.ctx, 1, NULL, r.channel, 0))
ROW(ibv_create_cq_ex, "an unknown mask", POINTER, EOPNOTSUPP,
    ibv_create_cq_ex(l.ctx, &(struct ibv_cq_init_attr_ex){.cqe = 1, .comp_mask = 8}))
ROW(ibv_create_cq_ex, "fields that are not offered", POINTER, EOPNOTSUPP,
    ibv_create_cq_ex(l.ctx, &(struct ibv_cq_init_attr_ex){.cqe = 1, .wc_flags = IBV_WC_EX_WITH_TM_INFO}))
ROW(ibv_create_cq_ex, "an unknown flag", POINTER, EINVAL,
    ibv_create_cq_ex(l.ctx, &(struct ibv_cq_init_attr_ex){.cqe = 1, .comp_mask = 1, .flags = 8}))
ROW(ibv_create_cq_ex, "a domain that is no parent domain", POINTER, EINVAL,
    ibv_create_cq_ex(l.ctx, &(struct ibv_cq_init_attr_ex){.cqe = 1, .comp_mask = 2, .parent_domain = l.pd}))
ROW(ibv_create_cq_ex, "depth 0", POINTER, EINVAL,
    ibv_create_cq_ex(l.ctx, &(struct ibv_cq_init_attr_ex){.cqe = 0}))
ROW(ibv_resize_cq, "no queue", STATUS, EINVAL, ibv_resize_cq(NULL, 4))
ROW(ibv_resize_cq, "depth 0", STATUS, EINVAL, ibv_resize_cq(l.cq, 0))
ROW(ibv_resize_cq, "more than max_cqe", STATUS, EINVAL, ibv_resize_cq(l.cq, 1 << 30))
ROW(ibv_destroy_cq, "no queue", STATUS, EINVAL, ibv_destroy_cq(NULL))
ROW(ibv_destroy_cq, "a queue in use", STATUS, EBUSY, ibv_destroy_cq(l.cq))
ROW(ibv_get_cq_event, "no channel", MINUS1, EINVAL, ibv_get_cq_event(NULL, &out.cq, &out.context))
ROW(ibv_get_cq_event, "no place", MINUS1, EINVAL, ibv_get_cq_event(l.channel, NULL, NULL))
ROW(ibv_ack_cq_events, "no queue", NOTHING, 0, (ibv_ack_cq_events(NULL, 1), 0))
ROW(ibv_ack_cq_events, "none", NOTHING, 0, (ibv_ack_cq_events(l.cq, 0), 0))

// ---- shared receive queues
ROW(ibv_create_srq, "no domain", POINTER, EINVAL,
    ibv_create_srq(NULL, &(struct ibv_srq_init_attr){.attr = {1, 1, 0}}))
ROW(ibv_create_srq, "no attributes", POINTER, EINVAL, ibv_create_srq(l.pd, NULL))
ROW(ibv_create_srq, "depth 0", POINTER, EINVAL,
    ibv_create_srq(l.pd, &(struct ibv_srq_init_attr){.attr = {0, 1, 0}}))
ROW(ibv_create_srq, "depth above the maximum", POINTER, EINVAL,
    ibv_create_srq(l.pd, &(struct ibv_srq_init_attr){.attr = {1u << 30, 1, 0}}))
ROW(ibv_create_srq, "SGEs above the maximum", POINTER, EINVAL,
    ibv_create_srq(l.pd, &(struct ibv_srq_init_attr){.attr = {1, 13, 0}}))
ROW(ibv_create_srq_ex, "an XRC queue without its domain", POINTER, EINVAL,
    ibv_create_srq_ex(l.ctx, &(struct ibv_srq_init_attr_ex){.attr = {1, 1, 0},
                                                            .comp_mask = IBV_SRQ_INIT_ATTR_TYPE |
                                                                         IBV_SRQ_INIT_ATTR_PD,
                                                            .srq_type = IBV_SRQT_XRC,
                                                            .pd = l.pd}))
ROW(ibv_create_srq_ex, "a domain of another context", POINTER, EINVAL,
    verbs_get_ctx(l.ctx)->create_srq_ex(
        l.ctx,
        &(struct ibv_srq_init_attr_ex){.attr = {1, 1, 0}, .comp_mask = IBV_SRQ_INIT_ATTR_PD, .pd = r.pd}))
ROW(ibv_modify_srq, "no queue", STATUS, EINVAL, ibv_modify_srq(NULL, &out.srq, IBV_SRQ_LIMIT))
ROW(ibv_modify_srq, "no attributes", STATUS, EINVAL, ibv_modify_srq(srq, NULL, IBV_SRQ_LIMIT))
ROW(ibv_modify_srq, "an unknown mask", STATUS, EINVAL, ibv_modify_srq(srq, &out.srq, 4))
ROW(ibv_modify_srq, "a new depth", STATUS, EINVAL, ibv_modify_srq(srq, &out.srq, IBV_SRQ_MAX_WR))
ROW(ibv_modify_srq, "a limit above the depth", STATUS, EINVAL,
    ibv_modify_srq(srq, &(struct ibv_srq_attr){.srq_limit = 5}, IBV_SRQ_LIMIT))
ROW(ibv_query_srq, "no queue", STATUS, EINVAL, ibv_query_srq(NULL, &out.srq))
ROW(ibv_query_srq, "no place", STATUS, EINVAL, ibv_query_srq(srq, NULL))
ROW(ibv_get_srq_num, "no place", STATUS, EINVAL, ibv_get_srq_num(srq, NULL))
ROW(ibv_destroy_srq, "no queue", STATUS, EINVAL, ibv_destroy_srq(NULL))
ROW(ibv_destroy_srq, "a queue in use", STATUS, EBUSY, ibv_destroy_srq(srq))
ROW(ibv_post_srq_recv, "too many SGEs", STATUS, EINVAL, post_srq(3, sges))
ROW(ibv_post_srq_recv, "SGEs and no list", STATUS, EINVAL, post_srq(1, NULL))
ROW(ibv_post_srq_recv, "-1 SGEs", STATUS, EINVAL, post_srq(-1, sges))

// ---- queue pairs
ROW(ibv_create_qp, "no domain", POINTER, EINVAL, ibv_create_qp(NULL, &usual))
ROW(ibv_create_qp, "no attributes", POINTER, EINVAL, ibv_create_qp(l.pd, NULL))
ROW(ibv_create_qp, "no send queue's CQ", POINTER, EINVAL, create_with(.send_cq = NULL))
ROW(ibv_create_qp, "no receive queue's CQ", POINTER, EINVAL, create_with(.recv_cq = NULL))
ROW(ibv_create_qp, "a CQ of another context", POINTER, EINVAL, create_with(.recv_cq = r.cq))
ROW(ibv_create_qp, "an SRQ of another context", POINTER, EINVAL,
    create_with(.srq = srq, .send_cq = r.cq, .recv_cq = r.cq))
ROW(ibv_create_qp, "type 0", POINTER, EOPNOTSUPP, create_with(.qp_type = (enum ibv_qp_type)0))
ROW(ibv_create_qp, "RAW_PACKET", POINTER, EOPNOTSUPP, create_with(.qp_type = IBV_QPT_RAW_PACKET))
ROW(ibv_create_qp, "sends above the maximum", POINTER, EINVAL, create_with(.cap = {1u << 30, 1, 1, 1, 0}))
ROW(ibv_create_qp, "receives above the maximum", POINTER, EINVAL, create_with(.cap = {1, 1u << 30, 1, 1, 0}))
ROW(ibv_create_qp, "send SGEs above the maximum", POINTER, EINVAL, create_with(.cap = {1, 1, 13, 1, 0}))
ROW(ibv_create_qp, "receive SGEs above the maximum", POINTER, EINVAL, create_with(.cap = {1, 1, 1, 13, 0}))
ROW(ibv_create_qp, "inline bytes above the maximum", POINTER, EINVAL, create_with(.cap = {1, 1, 1, 1, 193}))
ROW(ibv_create_qp_ex, "no domain", POINTER, EINVAL,
    ibv_create_qp_ex(l.ctx, &(struct ibv_qp_init_attr_ex){.send_cq = l.cq, .recv_cq = l.cq, .comp_mask = 4}))
ROW(ibv_create_qp_ex, "an unknown mask", POINTER, EOPNOTSUPP,
    ibv_create_qp_ex(l.ctx, &(struct ibv_qp_init_attr_ex){.comp_mask = 1 << 9}))
ROW(ibv_create_qp_ex, "creation flags", POINTER, EOPNOTSUPP,
    ibv_create_qp_ex(l.ctx, &(struct ibv_qp_init_attr_ex){.comp_mask = 5, .pd = l.pd, .create_flags = 2}))
ROW(ibv_qp_to_qp_ex, "no queue", POINTER, EOPNOTSUPP, ibv_qp_to_qp_ex(NULL))
ROW(ibv_qp_to_qp_ex, "a queue without builders", POINTER, EOPNOTSUPP, ibv_qp_to_qp_ex(srq_user))
ROW(ibv_modify_qp, "no queue", STATUS, EINVAL, ibv_modify_qp(NULL, &out.attr, IBV_QP_STATE))
ROW(ibv_modify_qp, "no attributes", STATUS, EINVAL, ibv_modify_qp(l.qp, NULL, IBV_QP_STATE))
ROW(ibv_modify_qp, "no such state", STATUS, EINVAL,
    modify_with(IBV_QP_STATE, .qp_state = (enum ibv_qp_state)7))
ROW(ibv_modify_qp, "back to INIT", STATUS, EINVAL, modify_with(IBV_QP_STATE, .qp_state = IBV_QPS_INIT))
ROW(ibv_modify_qp, "an unknown mask bit", STATUS, EINVAL, modify_with(1 << 30))
ROW(ibv_modify_qp, "an attribute that RTS does not take", STATUS, EINVAL,
    modify_with(IBV_QP_PORT, .port_num = 1))
ROW(ibv_modify_qp, "ERR with another attribute", STATUS, EINVAL,
    modify_with(IBV_QP_STATE | IBV_QP_ACCESS_FLAGS, .qp_state = IBV_QPS_ERR))
ROW(ibv_modify_qp, "the wrong current state", STATUS, EINVAL,
    modify_with(IBV_QP_STATE | IBV_QP_CUR_STATE, .qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQD))
ROW(ibv_modify_qp, "unknown rights", STATUS, EINVAL,
    modify_with(IBV_QP_ACCESS_FLAGS, .qp_access_flags = 1 << 15))
ROW(ibv_modify_qp, "an alternate path", STATUS, EINVAL, modify_with(IBV_QP_ALT_PATH))
ROW(ibv_modify_qp, "RNR timer 32", STATUS, EINVAL, modify_with(IBV_QP_MIN_RNR_TIMER, .min_rnr_timer = 32))
ROW(ibv_query_qp, "no queue", STATUS, EINVAL, ibv_query_qp(NULL, &out.attr, 0, &out.init))
ROW(ibv_query_qp, "no place", STATUS, EINVAL, ibv_query_qp(l.qp, NULL, 0, &out.init))
ROW(ibv_query_qp, "no second place", STATUS, EINVAL, ibv_query_qp(l.qp, &out.attr, 0, NULL))
ROW(ibv_destroy_qp, "no queue", STATUS, EINVAL, ibv_destroy_qp(NULL))
TOTAL(ibv_query_qp_data_in_order)
ROW(ibv_set_ece, "no options", STATUS, EINVAL, ibv_set_ece(l.qp, NULL))
ROW(ibv_set_ece, "unknown options", STATUS, EOPNOTSUPP, ibv_set_ece(l.qp, &(struct ibv_ece){.options = 1}))
ROW(ibv_query_ece, "no place", STATUS, EINVAL, ibv_query_ece(l.qp, NULL))
ROW(ibv_post_send, "an unknown opcode", STATUS, EINVAL, send_with(.opcode = (enum ibv_wr_opcode)31))
ROW(ibv_post_send, "a negative opcode", STATUS, EINVAL, send_with(.opcode = (enum ibv_wr_opcode) - 1))
ROW(ibv_post_send, "an unknown flag", STATUS, EINVAL, send_with(.send_flags = 1u << 31))
ROW(ibv_post_send, "too many SGEs", STATUS, EINVAL, send_with(.num_sge = 3, .sg_list = sges))
ROW(ibv_post_send, "-1 SGEs", STATUS, EINVAL, send_with(.num_sge = -1, .sg_list = sges))
ROW(ibv_post_send, "SGEs and no list", STATUS, EINVAL, send_with(.num_sge = 1))
ROW(ibv_post_send, "a read inline", STATUS, EINVAL,
    send_with(.opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_INLINE, .num_sge = 1, .sg_list = sges))
ROW(ibv_post_send, "too many bytes inline", STATUS, EINVAL,
    send_with(.send_flags = IBV_SEND_INLINE, .num_sge = 1, .sg_list = sges))
ROW(ibv_post_send, "a bind without a window", STATUS, EINVAL, send_with(.opcode = IBV_WR_BIND_MW))
ROW(ibv_post_recv, "too many SGEs", STATUS, EINVAL, recv_with(3, sges))
ROW(ibv_post_recv, "SGEs and no list", STATUS, EINVAL, recv_with(1, NULL))
ROW(ibv_post_recv, "-1 SGEs", STATUS, EINVAL, recv_with(-1, sges))
ROW(ibv_poll_cq, "a negative count", VALUE, 0, ibv_poll_cq(l.cq, -1, &out.wc))
ROW(ibv_attach_mcast, "a connected queue", STATUS, EINVAL, ibv_attach_mcast(l.qp, &out.gid, 0))
ROW(ibv_attach_mcast, "no queue", STATUS, EINVAL, ibv_attach_mcast(NULL, &out.gid, 0))
ROW(ibv_detach_mcast, "a connected queue", STATUS, EINVAL, ibv_detach_mcast(l.qp, &out.gid, 0))

// ---- sections of ibv_wr_*: what is wrong in one fails it as a whole
ROW(ibv_wr_start, "a queue in RESET", STATUS, EINVAL,
    (ibv_wr_start(idle), ibv_wr_send(idle), ibv_wr_complete(idle)))
ROW(ibv_wr_send, "an unknown flag", STATUS, EINVAL, flagged(ibv_wr_send(bq)))
ROW(ibv_wr_send_imm, "an unknown flag", STATUS, EINVAL, flagged(ibv_wr_send_imm(bq, 1)))
ROW(ibv_wr_send_inv, "an unknown flag", STATUS, EINVAL, flagged(ibv_wr_send_inv(bq, 1)))
ROW(ibv_wr_rdma_write, "an unknown flag", STATUS, EINVAL, flagged(ibv_wr_rdma_write(bq, 1, 1)))
ROW(ibv_wr_rdma_write_imm, "an unknown flag", STATUS, EINVAL, flagged(ibv_wr_rdma_write_imm(bq, 1, 1, 1)))
ROW(ibv_wr_rdma_read, "an unknown flag", STATUS, EINVAL, flagged(ibv_wr_rdma_read(bq, 1, 1)))
ROW(ibv_wr_atomic_cmp_swp, "an unknown flag", STATUS, EINVAL, flagged(ibv_wr_atomic_cmp_swp(bq, 1, 8, 1, 1)))
ROW(ibv_wr_atomic_fetch_add, "an unknown flag", STATUS, EINVAL, flagged(ibv_wr_atomic_fetch_add(bq, 1, 8, 1)))
ROW(ibv_wr_local_inv, "an unknown flag", STATUS, EINVAL, flagged(ibv_wr_local_inv(bq, 1)))
ROW(ibv_wr_bind_mw, "an unknown flag", STATUS, EINVAL, flagged(ibv_wr_bind_mw(bq, mw2, 9, &some_bytes)))
ROW(ibv_wr_bind_mw, "no window", STATUS, EINVAL, built(ibv_wr_bind_mw(bq, NULL, 1, &some_bytes)))
ROW(ibv_wr_bind_mw, "a range without a region", STATUS, EINVAL,
    built(ibv_wr_bind_mw(bq, mw2, 1, &(struct ibv_mw_bind_info){.length = 8})))
ROW(ibv_wr_bind_mw, "an unknown right", STATUS, EINVAL,
    built(ibv_wr_bind_mw(bq, mw2, 1, &(struct ibv_mw_bind_info){.mw_access_flags = 1 << 15})))
ROW(ibv_wr_bind_mw, "and then an error", STATUS, EINVAL,
    built(ibv_wr_bind_mw(bq, mw2, mw2->rkey + 1, &some_bytes), ibv_wr_bind_mw(bq, NULL, 1, &some_bytes)))
ROW(ibv_wr_send_tso, "not offered", STATUS, EOPNOTSUPP, built(ibv_wr_send_tso(bq, memory, 8, 8)))
ROW(ibv_wr_atomic_write, "not offered", STATUS, EOPNOTSUPP, built(ibv_wr_atomic_write(bq, 1, 8, memory)))
ROW(ibv_wr_set_sge_list, "too many SGEs", STATUS, EINVAL,
    built(ibv_wr_send(bq), ibv_wr_set_sge_list(bq, 3, sges)))
ROW(ibv_wr_set_sge_list, "SGEs and no list", STATUS, EINVAL,
    built(ibv_wr_send(bq), ibv_wr_set_sge_list(bq, 1, NULL)))
TOTAL(ibv_wr_set_sge) // a wrong key or range is found when the request is executed
ROW(ibv_wr_set_inline_data, "too many bytes", STATUS, EINVAL,
    built(ibv_wr_send(bq), ibv_wr_set_inline_data(bq, memory, 65)))
ROW(ibv_wr_set_inline_data, "a read inline", STATUS, EINVAL,
    built(ibv_wr_rdma_read(bq, 1, 1), ibv_wr_set_inline_data(bq, memory, 8)))
ROW(ibv_wr_set_inline_data_list, "too many bytes", STATUS, EINVAL,
    built(ibv_wr_send(bq),
          ibv_wr_set_inline_data_list(bq, 2, (struct ibv_data_buf[]){{memory, 64}, {memory, 1}})))
ROW(ibv_wr_set_inline_data_list, "pieces and no list", STATUS, EINVAL,
    built(ibv_wr_send(bq), ibv_wr_set_inline_data_list(bq, 1, NULL)))
ROW(ibv_wr_set_ud_addr, "no address handle", STATUS, EINVAL,
    built(ibv_wr_send(bq), ibv_wr_set_ud_addr(bq, NULL, 1, 1)))
TOTAL(ibv_wr_set_xrc_srqn) // any number is one of a queue that may exist
ROW(ibv_wr_complete, "more than the queue holds", VALUE, ENOMEM, overfull())

TOTAL(ibv_wr_abort)

// ---- polling in steps, arming
ROW(ibv_start_poll, "an unknown mask", STATUS, EINVAL,
    ibv_start_poll(cq_ex, &(struct ibv_poll_cq_attr){.comp_mask = 1}))
ROW(ibv_start_poll, "nothing there", VALUE, ENOENT, ibv_start_poll(cq_ex, &(struct ibv_poll_cq_attr){0}))
TOTAL(ibv_next_poll)
TOTAL(ibv_end_poll)
// Readers take nothing; one that was not asked for at creation is not there, as the manual says.
TOTAL(ibv_wc_read_opcode)
TOTAL(ibv_wc_read_vendor_err)
TOTAL(ibv_wc_read_byte_len)
TOTAL(ibv_wc_read_imm_data)
TOTAL(ibv_wc_read_invalidated_rkey)
TOTAL(ibv_wc_read_qp_num)
TOTAL(ibv_wc_read_src_qp)
TOTAL(ibv_wc_read_wc_flags)
TOTAL(ibv_wc_read_slid)
TOTAL(ibv_wc_read_sl)
TOTAL(ibv_wc_read_dlid_path_bits)
TOTAL(ibv_wc_read_completion_ts)
TOTAL(ibv_wc_read_completion_wallclock_ns)
TOTAL(ibv_wc_read_cvlan)
TOTAL(ibv_wc_read_flow_tag)
TOTAL(ibv_wc_read_tm_info)
ROW(ibv_req_notify_cq, "another handle", STATUS, ENOENT, strange(l.cq, ibv_req_notify_cq(l.cq, 0)))

// ---- windows, device memory, the null region, advice
ROW(ibv_bind_mw, "a window of type 2", VALUE, EINVAL, ibv_bind_mw(l.qp, mw2, &(struct ibv_mw_bind){0}))
ROW(ibv_bind_mw, "a range without a region", VALUE, EINVAL, bind_with(.length = 8))
ROW(ibv_bind_mw, "a region of another domain", VALUE, EPERM, bind_with(.mr = r.mr))
ROW(ibv_bind_mw, "an unknown right", STATUS, EINVAL, bind_with(.mw_access_flags = 1 << 15))
ROW(ibv_dealloc_mw, "another handle", STATUS, ENOENT, strange(mw1, ibv_dealloc_mw(mw1)))
ROW(ibv_alloc_dm, "no attributes", POINTER, EINVAL, ibv_alloc_dm(l.ctx, NULL))
ROW(ibv_alloc_dm, "no length", POINTER, EINVAL, dm_with(.length = 0))
ROW(ibv_alloc_dm, "more than there is", POINTER, EINVAL, dm_with(.length = SIZE_MAX))
ROW(ibv_alloc_dm, "an alignment above a page", POINTER, EINVAL, dm_with(.length = 8, .log_align_req = 13))
ROW(ibv_alloc_dm, "an unknown mask", POINTER, EINVAL, dm_with(.length = 8, .comp_mask = 1))
ROW(ibv_free_dm, "memory in use", STATUS, EBUSY, ibv_free_dm(dm))
ROW(ibv_memcpy_to_dm, "beyond the end", STATUS, EINVAL, ibv_memcpy_to_dm(dm, 60, memory, 8))
ROW(ibv_memcpy_to_dm, "no whole words", STATUS, EINVAL, ibv_memcpy_to_dm(dm, 0, memory, 3))
ROW(ibv_memcpy_to_dm, "an offset that wraps", STATUS, EINVAL, ibv_memcpy_to_dm(dm, UINT64_MAX - 3, memory, 8))
ROW(ibv_memcpy_from_dm, "beyond the end", STATUS, EINVAL, ibv_memcpy_from_dm(memory, dm, 60, 8))
ROW(ibv_memcpy_from_dm, "no whole words", STATUS, EINVAL, ibv_memcpy_from_dm(memory, dm, 2, 4))
ROW(ibv_reg_dm_mr, "not zero-based", POINTER, EINVAL, ibv_reg_dm_mr(l.pd, dm, 0, 8, IBV_ACCESS_LOCAL_WRITE))
ROW(ibv_reg_dm_mr, "beyond the end", POINTER, EINVAL, ibv_reg_dm_mr(l.pd, dm, 8, 64, IBV_ACCESS_ZERO_BASED))
ROW(ibv_reg_dm_mr, "a domain of another context", POINTER, EINVAL,
    ibv_reg_dm_mr(r.pd, dm, 0, 8, IBV_ACCESS_ZERO_BASED))
ROW(ibv_reg_dm_mr, "remote write without local write", POINTER, EINVAL,
    ibv_reg_dm_mr(l.pd, dm, 0, 8, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_WRITE))
ROW(ibv_reg_dm_mr, "another handle of the domain", POINTER, ENOENT,
    strange(l.pd, ibv_reg_dm_mr(l.pd, dm, 0, 8, IBV_ACCESS_ZERO_BASED)))
ROW(ibv_alloc_null_mr, "another handle of the domain", POINTER, ENOENT,
    strange(l.pd, ibv_alloc_null_mr(l.pd)))
ROW(ibv_advise_mr, "unknown advice", STATUS, EOPNOTSUPP, advise(9, 0, &own_bytes, 1))
ROW(ibv_advise_mr, "unknown flags", STATUS, EOPNOTSUPP, advise(0, 8, &own_bytes, 1))
ROW(ibv_advise_mr, "no list", STATUS, EINVAL, advise(0, 0, NULL, 1))
ROW(ibv_advise_mr, "an empty list", STATUS, EINVAL, advise(0, 0, &own_bytes, 0))
ROW(ibv_advise_mr, "no such region", STATUS, ENOENT, advise(0, 0, sges, 1))
ROW(ibv_advise_mr, "a region that is not on demand", STATUS, EINVAL, advise(0, 0, &own_bytes, 1))

// ---- XRC domains, thread domains
ROW(ibv_open_xrcd, "no flags", POINTER, EINVAL, xrcd_with(.comp_mask = IBV_XRCD_INIT_ATTR_FD, .fd = -1))
ROW(ibv_open_xrcd, "no file, and not to be made", POINTER, EINVAL, xrcd_with(.comp_mask = 3, .fd = -1))
ROW(ibv_open_xrcd, "a file that is not open", POINTER, EBADF, xrcd_with(.comp_mask = 3, .fd = 1 << 20))
ROW(ibv_open_xrcd, "unknown flags", POINTER, EINVAL,
    xrcd_with(.comp_mask = 3, .fd = -1, .oflags = O_CREAT | O_RDWR))
ROW(ibv_open_qp, "no mask", POINTER, EINVAL, ibv_open_qp(l.ctx, &(struct ibv_qp_open_attr){0}))
ROW(ibv_open_qp, "an unknown mask", POINTER, EOPNOTSUPP,
    ibv_open_qp(l.ctx, &(struct ibv_qp_open_attr){.comp_mask = 16}))
ROW(ibv_open_qp, "no domain", POINTER, EINVAL,
    ibv_open_qp(l.ctx, &(struct ibv_qp_open_attr){.comp_mask = 15, .qp_type = IBV_QPT_XRC_RECV}))
ROW(ibv_open_qp, "no such target", POINTER, EINVAL,
    ibv_open_qp(l.ctx,
                &(struct ibv_qp_open_attr){.comp_mask = 15, .xrcd = xrcd, .qp_type = IBV_QPT_XRC_RECV}))
ROW(ibv_close_xrcd, "a domain in use", STATUS, EBUSY, ibv_close_xrcd(xrcd))
ROW(ibv_dealloc_td, "a domain in use", STATUS, EBUSY, ibv_dealloc_td(td))

// ---- what is not offered says so
ROW(ibv_modify_qp_rate_limit, "any", STATUS, EOPNOTSUPP,
    ibv_modify_qp_rate_limit(l.qp, &(struct ibv_qp_rate_limit_attr){0}))
ROW(ibv_modify_cq, "no mask", STATUS, EINVAL, ibv_modify_cq(l.cq, &(struct ibv_modify_cq_attr){0}))
ROW(ibv_modify_cq, "an unknown mask", STATUS, EINVAL,
    ibv_modify_cq(l.cq, &(struct ibv_modify_cq_attr){.attr_mask = 3}))
ROW(ibv_post_srq_ops, "any", STATUS, EOPNOTSUPP, ibv_post_srq_ops(srq, NULL, NULL))
ROW(ibv_create_wq, "any", POINTER, EOPNOTSUPP, ibv_create_wq(l.ctx, &(struct ibv_wq_init_attr){0}))
ROW(ibv_modify_wq, "any", STATUS, EOPNOTSUPP,
    ibv_modify_wq(&(struct ibv_wq){.context = l.ctx}, &(struct ibv_wq_attr){0}))
ROW(ibv_destroy_wq, "any", STATUS, EOPNOTSUPP, ibv_destroy_wq(&(struct ibv_wq){.context = l.ctx}))
TOTAL(ibv_post_wq_recv) // nobody has a queue to post to
ROW(ibv_create_rwq_ind_table, "any", POINTER, EOPNOTSUPP,
    ibv_create_rwq_ind_table(l.ctx, &(struct ibv_rwq_ind_table_init_attr){0}))
ROW(ibv_destroy_rwq_ind_table, "any", STATUS, EOPNOTSUPP,
    ibv_destroy_rwq_ind_table(&(struct ibv_rwq_ind_table){.context = l.ctx}))
ROW(ibv_create_flow, "any", POINTER, EOPNOTSUPP, ibv_create_flow(l.qp, &(struct ibv_flow_attr){0}))
ROW(ibv_destroy_flow, "any", STATUS, EOPNOTSUPP, ibv_destroy_flow(&(struct ibv_flow){.context = l.ctx}))
ROW(ibv_create_flow_action_esp, "any", POINTER, EOPNOTSUPP,
    ibv_create_flow_action_esp(l.ctx, &(struct ibv_flow_action_esp_attr){0}))
ROW(ibv_modify_flow_action_esp, "any", STATUS, EOPNOTSUPP,
    ibv_modify_flow_action_esp(&(struct ibv_flow_action){.context = l.ctx}, NULL))
ROW(ibv_destroy_flow_action, "any", STATUS, EOPNOTSUPP,
    ibv_destroy_flow_action(&(struct ibv_flow_action){.context = l.ctx}))
ROW(ibv_create_counters, "any", POINTER, EOPNOTSUPP,
    ibv_create_counters(l.ctx, &(struct ibv_counters_init_attr){0}))
ROW(ibv_destroy_counters, "any", STATUS, EOPNOTSUPP,
    ibv_destroy_counters(&(struct ibv_counters){.context = l.ctx}))
ROW(ibv_attach_counters_point_flow, "any", STATUS, EOPNOTSUPP,
    ibv_attach_counters_point_flow(&(struct ibv_counters){.context = l.ctx}, NULL, NULL))
ROW(ibv_read_counters, "any", STATUS, EOPNOTSUPP,
    ibv_read_counters(&(struct ibv_counters){.context = l.ctx}, NULL, 0, 0))

// ---- ours
ROW(drydock_create_direct_qp, "no domain", POINTER, EINVAL, drydock_create_direct_qp(NULL, &usual))
ROW(drydock_create_direct_qp, "no attributes", POINTER, EINVAL, drydock_create_direct_qp(l.pd, NULL))
ROW(drydock_create_direct_qp, "a ring of no blocks", POINTER, EINVAL, direct_with(.cap = {0, 1, 1, 1, 0}))
ROW(drydock_create_direct_qp, "more blocks than a ring has", POINTER, EINVAL,
    direct_with(.cap = {65537, 1, 1, 1, 0}))
ROW(drydock_create_direct_qp, "a CQ that is too short", POINTER, EINVAL,
    direct_with(.cap = {4096, 1, 1, 1, 0}))
ROW(drydock_direct_queue, "no queue", STATUS, EINVAL, drydock_direct_queue(NULL, &out.direct))
ROW(drydock_direct_queue, "no place", STATUS, EINVAL, drydock_direct_queue(l.qp, NULL))
ROW(drydock_direct_queue, "a queue of the library's", STATUS, EINVAL, drydock_direct_queue(l.qp, &out.direct))

// ---- address handles
ROW(ibv_create_ah, "no domain", POINTER, EINVAL, ibv_create_ah(NULL, &out.av))
ROW(ibv_create_ah, "no address", POINTER, EINVAL, ibv_create_ah(l.pd, NULL))
ROW(ibv_create_ah, "no GRH", POINTER, EINVAL, ah_with(.is_global = 0))
ROW(ibv_create_ah, "port 0", POINTER, EINVAL, ah_with(.port_num = 0))
ROW(ibv_create_ah, "port 2", POINTER, EINVAL, ah_with(.port_num = 2))
ROW(ibv_create_ah, "service level 16", POINTER, EINVAL, ah_with(.sl = 16))
ROW(ibv_create_ah, "an empty source GID", POINTER, EINVAL, ah_with(.grh = {.sgid_index = 15, .dgid = l.gid}))
ROW(ibv_create_ah, "a destination GID of zeros", POINTER, EINVAL, ah_with(.grh = {.sgid_index = 0}))
ROW(ibv_init_ah_from_wc, "a completion without GRH", MINUS1, EINVAL,
    ibv_init_ah_from_wc(l.ctx, 1, &(struct ibv_wc){0}, &out.grh, &out.av))
ROW(ibv_init_ah_from_wc, "port 2", MINUS1, EINVAL,
    ibv_init_ah_from_wc(l.ctx, 2, &(struct ibv_wc){.wc_flags = IBV_WC_GRH}, &out.grh, &out.av))
ROW(ibv_init_ah_from_wc, "a header that was not sent to us", MINUS1, EINVAL,
    ibv_init_ah_from_wc(l.ctx, 1, &(struct ibv_wc){.wc_flags = IBV_WC_GRH}, &(struct ibv_grh){0}, &out.av))
ROW(ibv_create_ah_from_wc, "no domain", POINTER, EINVAL,
    ibv_create_ah_from_wc(NULL, &(struct ibv_wc){.wc_flags = IBV_WC_GRH}, &out.grh, 1))
ROW(ibv_create_ah_from_wc, "a completion without GRH", POINTER, EINVAL,
    ibv_create_ah_from_wc(l.pd, &(struct ibv_wc){0}, &out.grh, 1))
ROW(ibv_destroy_ah, "no handle", STATUS, EINVAL, ibv_destroy_ah(NULL))

// ---- asynchronous events
ROW(ibv_get_async_event, "no context", MINUS1, EINVAL, ibv_get_async_event(NULL, &out.event))
ROW(ibv_get_async_event, "no place", MINUS1, EINVAL, ibv_get_async_event(l.ctx, NULL))
ROW(ibv_ack_async_event, "no event", NOTHING, 0, (ibv_ack_async_event(NULL), 0))
ROW(ibv_ack_async_event, "an event of the port", NOTHING, 0,
    (ibv_ack_async_event(&(struct ibv_async_event){.event_type = IBV_EVENT_PORT_ERR}), 0))

// ---- names, rates, files, and what takes structures of which any content is legal
ROW(ibv_wc_status_str, "a status that does not exist", VALUE, 0, strcmp(ibv_wc_status_str(-1), "unknown"))
ROW(ibv_event_type_str, "an event that does not exist", VALUE, 0, strcmp(ibv_event_type_str(99), "unknown"))
ROW(ibv_node_type_str, "a type that does not exist", VALUE, 0, strcmp(ibv_node_type_str(99), "unknown"))
ROW(ibv_port_state_str, "a state that does not exist", VALUE, 0, strcmp(ibv_port_state_str(99), "unknown"))
ROW(ibv_rate_to_mult, "a rate that does not exist", VALUE, -1, ibv_rate_to_mult(99))
ROW(mult_to_ibv_rate, "a multiple that does not exist", VALUE, IBV_RATE_MAX, mult_to_ibv_rate(3))
ROW(ibv_rate_to_mbps, "a rate that does not exist", VALUE, -1, ibv_rate_to_mbps(99))
ROW(mbps_to_ibv_rate, "a rate that does not exist", VALUE, IBV_RATE_MAX, mbps_to_ibv_rate(3))
ROW(ibv_read_sysfs_file, "no directory", MINUS1, EINVAL, ibv_read_sysfs_file(NULL, "board_id", memory, 8))
ROW(ibv_read_sysfs_file, "no room", MINUS1, EINVAL, ibv_read_sysfs_file("/sys", "board_id", memory, 0))
ROW(ibv_read_sysfs_file, "no such file", VALUE, -1, ibv_read_sysfs_file("/nowhere", "board_id", memory, 8))
TOTAL(ibv_get_sysfs_path)
TOTAL(ibv_fork_init)
TOTAL(ibv_is_fork_initialized)
TOTAL(ibv_dontfork_range)
TOTAL(ibv_dofork_range)
TOTAL(ibv_copy_ah_attr_from_kern)
TOTAL(ibv_copy_qp_attr_from_kern)
TOTAL(ibv_copy_path_rec_from_kern)
TOTAL(ibv_copy_path_rec_to_kern)
