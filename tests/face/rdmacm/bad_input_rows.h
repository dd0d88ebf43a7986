// SPDX-License-Identifier: MIT
// The bad-input table of the rdma_cm face:
//
//     ROW(function, what, kind, expected, call)
//     TOTAL(function)   takes nothing that can be wrong, or every value has an answer
//
// kind: MINUS1   -1, errno = expected, and a reason in words    VALUE   returns expected
//       NOTHING  returns nothing, must only not crash
// tests/abi/rdmacm_symbols.sh fails when an exported function has no line here.
// `fresh` is bound to nothing, `bound` to 127.0.0.1, `listener` listens, `resolved` has a route.

TOTAL(rdma_create_event_channel)
ROW(rdma_destroy_event_channel, "none", NOTHING, 0, (rdma_destroy_event_channel(NULL), 0))
ROW(rdma_get_cm_event, "no channel", MINUS1, EINVAL, rdma_get_cm_event(NULL, &out.event))
ROW(rdma_get_cm_event, "no place", MINUS1, EINVAL, rdma_get_cm_event(channel, NULL))
ROW(rdma_ack_cm_event, "no event", MINUS1, EINVAL, rdma_ack_cm_event(NULL))
TOTAL(rdma_event_str)
TOTAL(rdma_get_devices)
ROW(rdma_free_devices, "no list", NOTHING, 0, (rdma_free_devices(NULL), 0))

ROW(rdma_create_id, "no place", MINUS1, EINVAL, rdma_create_id(channel, NULL, NULL, RDMA_PS_TCP))
ROW(rdma_create_id, "no port space", MINUS1, EINVAL, rdma_create_id(channel, &out.id, NULL, 0x777))
ROW(rdma_destroy_id, "no id", MINUS1, EINVAL, rdma_destroy_id(NULL))
ROW(rdma_migrate_id, "no id", MINUS1, EINVAL, rdma_migrate_id(NULL, channel))
ROW(rdma_get_src_port, "no id", VALUE, 0, rdma_get_src_port(NULL))
ROW(rdma_get_dst_port, "no id", VALUE, 0, rdma_get_dst_port(NULL))

ROW(rdma_bind_addr, "no id", MINUS1, EINVAL, rdma_bind_addr(NULL, cm_addr4("127.0.0.1", 0)))
ROW(rdma_bind_addr, "no address", MINUS1, EINVAL, rdma_bind_addr(fresh, NULL))
ROW(rdma_bind_addr, "another family", MINUS1, EINVAL,
    rdma_bind_addr(fresh, &(struct sockaddr){.sa_family = AF_UNIX}))
ROW(rdma_bind_addr, "not of this host", MINUS1, EADDRNOTAVAIL,
    rdma_bind_addr(fresh, cm_addr4("203.0.113.9", 0)))
ROW(rdma_bind_addr, "bound already", MINUS1, EINVAL, rdma_bind_addr(bound, cm_addr4("127.0.0.1", 0)))
ROW(rdma_resolve_addr, "no id", MINUS1, EINVAL, rdma_resolve_addr(NULL, NULL, cm_addr4("127.0.0.1", 1), 1))
ROW(rdma_resolve_addr, "no destination", MINUS1, EINVAL, rdma_resolve_addr(fresh, NULL, NULL, 1))
ROW(rdma_resolve_addr, "two families", MINUS1, EINVAL,
    rdma_resolve_addr(fresh, cm_addr6("::1", 0), cm_addr4("127.0.0.1", 1), 1))
ROW(rdma_resolve_addr, "bound to another family", MINUS1, EINVAL,
    rdma_resolve_addr(bound, NULL, cm_addr6("::1", 1), 1))
ROW(rdma_resolve_addr, "a listener", MINUS1, EINVAL,
    rdma_resolve_addr(listener, NULL, cm_addr4("127.0.0.1", 1), 1))
ROW(rdma_resolve_addr, "twice", MINUS1, EINVAL,
    rdma_resolve_addr(resolved, NULL, cm_addr4("127.0.0.1", 1), 1))
ROW(rdma_resolve_route, "no id", MINUS1, EINVAL, rdma_resolve_route(NULL, 1))
ROW(rdma_resolve_route, "no address yet", MINUS1, EINVAL, rdma_resolve_route(bound, 1))
ROW(rdma_resolve_route, "twice", MINUS1, EINVAL, rdma_resolve_route(resolved, 1))
ROW(rdma_set_option, "no id", MINUS1, EINVAL, rdma_set_option(NULL, 0, 0, &out, 1))
ROW(rdma_set_option, "no value", MINUS1, EINVAL, rdma_set_option(fresh, 0, 0, NULL, 1))
ROW(rdma_set_option, "unknown", MINUS1, ENOSYS, rdma_set_option(fresh, 9, 9, &out, 1))
ROW(rdma_set_option, "a path before the address", MINUS1, EINVAL,
    rdma_set_option(fresh, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &out, sizeof(struct ibv_path_data)))

ROW(rdma_create_qp, "no id", MINUS1, EINVAL, rdma_create_qp(NULL, NULL, &out.qp))
ROW(rdma_create_qp, "no attributes", MINUS1, EINVAL, rdma_create_qp(resolved, NULL, NULL))
ROW(rdma_create_qp, "no device yet", MINUS1, EINVAL, rdma_create_qp(fresh, NULL, &out.qp))
ROW(rdma_create_qp_ex, "no id", MINUS1, EINVAL, rdma_create_qp_ex(NULL, &out.qp_ex))
ROW(rdma_create_qp_ex, "no attributes", MINUS1, EINVAL, rdma_create_qp_ex(resolved, NULL))
ROW(rdma_destroy_qp, "no id", NOTHING, 0, (rdma_destroy_qp(NULL), 0))
ROW(rdma_destroy_qp, "no queue", NOTHING, 0, (rdma_destroy_qp(fresh), 0))
ROW(rdma_create_srq, "no id", MINUS1, EINVAL, rdma_create_srq(NULL, NULL, &out.srq))
ROW(rdma_create_srq, "no attributes", MINUS1, EINVAL, rdma_create_srq(resolved, NULL, NULL))
ROW(rdma_create_srq_ex, "no type", MINUS1, EINVAL, rdma_create_srq_ex(resolved, &out.srq_ex))
ROW(rdma_create_srq_ex, "no device yet", MINUS1, EINVAL,
    rdma_create_srq_ex(fresh, &(struct ibv_srq_init_attr_ex){.comp_mask = IBV_SRQ_INIT_ATTR_TYPE}))
ROW(rdma_destroy_srq, "no queue", NOTHING, 0, (rdma_destroy_srq(fresh), 0))
ROW(rdma_init_qp_attr, "no id", MINUS1, EINVAL, rdma_init_qp_attr(NULL, &out.attr, &out.mask))
ROW(rdma_init_qp_attr, "no place", MINUS1, EINVAL, rdma_init_qp_attr(resolved, NULL, &out.mask))
ROW(rdma_init_qp_attr, "no mask", MINUS1, EINVAL, rdma_init_qp_attr(resolved, &out.attr, NULL))
ROW(rdma_init_qp_attr, "no peer yet", MINUS1, EINVAL,
    rdma_init_qp_attr(resolved, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RTR}, &out.mask))

ROW(rdma_listen, "no id", MINUS1, EINVAL, rdma_listen(NULL, 1))
ROW(rdma_listen, "twice", MINUS1, EINVAL, rdma_listen(listener, 1))
ROW(rdma_listen, "an active id", MINUS1, EINVAL, rdma_listen(resolved, 1))
ROW(rdma_connect, "no id", MINUS1, EINVAL, rdma_connect(NULL, NULL))
ROW(rdma_connect, "no route yet", MINUS1, EINVAL, rdma_connect(bound, &out.param))
ROW(rdma_connect, "a listener", MINUS1, EINVAL, rdma_connect(listener, &out.param))
ROW(rdma_connect, "neither queue nor parameters", MINUS1, EINVAL, rdma_connect(resolved, NULL))
ROW(rdma_connect, "57 bytes of data", MINUS1, EINVAL,
    rdma_connect(resolved, &(struct rdma_conn_param){.private_data = &out, .private_data_len = 57}))
ROW(rdma_connect, "too many reads", MINUS1, EINVAL,
    rdma_connect(resolved, &(struct rdma_conn_param){.responder_resources = 254}))
ROW(rdma_connect, "too deep", MINUS1, EINVAL,
    rdma_connect(resolved, &(struct rdma_conn_param){.initiator_depth = 254}))
ROW(rdma_establish, "no id", MINUS1, EINVAL, rdma_establish(NULL))
ROW(rdma_establish, "no response", MINUS1, EINVAL, rdma_establish(resolved))
ROW(rdma_accept, "no id", MINUS1, EINVAL, rdma_accept(NULL, NULL))
ROW(rdma_accept, "no request", MINUS1, EINVAL, rdma_accept(resolved, &out.param))
ROW(rdma_accept, "a listener", MINUS1, EINVAL, rdma_accept(listener, NULL))
ROW(rdma_reject, "no id", MINUS1, EINVAL, rdma_reject(NULL, NULL, 0))
ROW(rdma_reject, "no request", MINUS1, EINVAL, rdma_reject(resolved, NULL, 0))
ROW(rdma_reject, "149 bytes of data", MINUS1, EINVAL, rdma_reject(resolved, &out, 149))
ROW(rdma_reject_ece, "no request", MINUS1, EINVAL, rdma_reject_ece(resolved, NULL, 0))
ROW(rdma_notify, "no id", MINUS1, EINVAL, rdma_notify(NULL, IBV_EVENT_COMM_EST))
ROW(rdma_notify, "not connecting", MINUS1, EINVAL, rdma_notify(resolved, IBV_EVENT_COMM_EST))
ROW(rdma_disconnect, "no id", MINUS1, EINVAL, rdma_disconnect(NULL))
ROW(rdma_disconnect, "never connected", MINUS1, EINVAL, rdma_disconnect(resolved))
ROW(rdma_disconnect, "no device", MINUS1, EINVAL, rdma_disconnect(fresh))

ROW(rdma_join_multicast, "no id", MINUS1, EINVAL, rdma_join_multicast(NULL, cm_addr4("239.0.0.1", 0), NULL))
ROW(rdma_join_multicast, "no address", MINUS1, EINVAL, rdma_join_multicast(datagram, NULL, NULL))
ROW(rdma_join_multicast, "no group", MINUS1, EINVAL,
    rdma_join_multicast(datagram, cm_addr4("127.0.0.1", 0), NULL))
ROW(rdma_join_multicast, "a connected id", MINUS1, EINVAL,
    rdma_join_multicast(resolved, cm_addr4("239.0.0.1", 0), NULL))
ROW(rdma_join_multicast_ex, "no attributes", MINUS1, EINVAL, rdma_join_multicast_ex(datagram, NULL, NULL))
ROW(rdma_join_multicast_ex, "no kind", MINUS1, EINVAL,
    rdma_join_multicast_ex(datagram, &(struct rdma_cm_join_mc_attr_ex){.comp_mask = 1}, NULL))
ROW(rdma_join_multicast_ex, "an unknown mask", MINUS1, ENOTSUP,
    rdma_join_multicast_ex(datagram, &(struct rdma_cm_join_mc_attr_ex){.comp_mask = 4}, NULL))
ROW(rdma_join_multicast_ex, "an unknown kind", MINUS1, EINVAL,
    rdma_join_multicast_ex(datagram, &(struct rdma_cm_join_mc_attr_ex){.comp_mask = 3, .join_flags = 2},
                           NULL))
ROW(rdma_leave_multicast, "no id", MINUS1, EINVAL, rdma_leave_multicast(NULL, cm_addr4("239.0.0.1", 0)))
ROW(rdma_leave_multicast, "no address", MINUS1, EINVAL, rdma_leave_multicast(datagram, NULL))
ROW(rdma_leave_multicast, "not a member", MINUS1, EADDRNOTAVAIL,
    rdma_leave_multicast(datagram, cm_addr4("239.0.0.1", 0)))

ROW(rdma_create_ep, "no place", MINUS1, EINVAL, rdma_create_ep(NULL, &out.info, NULL, NULL))
ROW(rdma_create_ep, "no address", MINUS1, EINVAL, rdma_create_ep(&out.id, NULL, NULL, NULL))
ROW(rdma_create_ep, "an empty one", MINUS1, EINVAL, rdma_create_ep(&out.id, &out.info, NULL, NULL))
ROW(rdma_destroy_ep, "no id", NOTHING, 0, (rdma_destroy_ep(NULL), 0))
ROW(rdma_get_request, "no listener", MINUS1, EINVAL, rdma_get_request(NULL, &out.id))
ROW(rdma_get_request, "not synchronous", MINUS1, EINVAL, rdma_get_request(listener, &out.id))
ROW(rdma_getaddrinfo, "nothing asked", MINUS1, EINVAL, rdma_getaddrinfo(NULL, NULL, NULL, &out.infos))
ROW(rdma_getaddrinfo, "no place", MINUS1, EINVAL, rdma_getaddrinfo("127.0.0.1", "1", NULL, NULL))
ROW(rdma_freeaddrinfo, "none", NOTHING, 0, (rdma_freeaddrinfo(NULL), 0))
ROW(rdma_set_local_ece, "no id", MINUS1, EINVAL, rdma_set_local_ece(NULL, &out.ece))
ROW(rdma_set_local_ece, "no options", MINUS1, EINVAL, rdma_set_local_ece(fresh, NULL))
ROW(rdma_set_local_ece, "no vendor", MINUS1, EINVAL, rdma_set_local_ece(fresh, &out.ece))
ROW(rdma_get_remote_ece, "no id", MINUS1, EINVAL, rdma_get_remote_ece(NULL, &out.ece))
ROW(rdma_get_remote_ece, "no place", MINUS1, EINVAL, rdma_get_remote_ece(fresh, NULL))
