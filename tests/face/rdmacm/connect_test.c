// SPDX-License-Identifier: MIT
// also: threads
// Connections: what each side is told, what becomes of the queue pairs, and of requests that fail.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "face/lib/cm.h"

static struct cm_both b;

static void close_both(void)
{
    cm_both_close(&b);
}

// Zero behind the data, to the end of the field.
static void check_data(const void *data, unsigned len, const char *text, unsigned field)
{
    char wanted[256] = {0};

    CHECK_INT(len, field);
    memcpy(wanted, text, strlen(text));
    CHECK(data && !memcmp(data, wanted, field));
}

static void depths_are_negotiated_and_private_data_fills_its_field(void **state)
{
    struct rdma_conn_param ask = {.private_data = "please",
                                  .private_data_len = 6,
                                  .responder_resources = 3,
                                  .initiator_depth = 2,
                                  .retry_count = 5,
                                  .rnr_retry_count = 4,
                                  .flow_control = 1};
    struct rdma_conn_param answer = {.private_data = "granted",
                                     .private_data_len = 7,
                                     .responder_resources = 2,
                                     .initiator_depth = 1,
                                     .rnr_retry_count = 6};
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    struct rdma_cm_event *e;

    (void)state;
    cm_both_open(&b, RDMA_PS_TCP, 4);
    cm_make_qp(b.active);
    CHECK_INT(cm_qp_state(b.active), IBV_QPS_INIT);
    CHECK_INT(rdma_connect(b.active, &ask), 0);
    e = cm_expect(b.passive_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
    check_data(e->param.conn.private_data, e->param.conn.private_data_len, "please", 56);
    CHECK_INT(e->param.conn.responder_resources, 2); // what the other side may start here
    CHECK_INT(e->param.conn.initiator_depth, 3);
    CHECK_INT(e->param.conn.retry_count, 5);
    CHECK_INT(e->param.conn.rnr_retry_count, 4);
    CHECK_INT(e->param.conn.flow_control, 1);
    CHECK_INT(e->param.conn.qp_num, b.active->qp->qp_num);
    b.passive = e->id;
    CHECK(e->listen_id == b.listener && b.passive->verbs == b.active->verbs);
    CHECK_INT(ntohs(rdma_get_src_port(b.passive)), b.port);
    CHECK_INT(rdma_get_dst_port(b.passive), rdma_get_src_port(b.active));
    CHECK_INT(rdma_ack_cm_event(e), 0);
    cm_make_qp(b.passive);
    CHECK_INT(rdma_accept(b.passive, &answer), 0);

    e = cm_expect(b.active_channel, RDMA_CM_EVENT_ESTABLISHED);
    check_data(e->param.conn.private_data, e->param.conn.private_data_len, "granted", 196);
    CHECK_INT(e->param.conn.responder_resources, 1);
    CHECK_INT(e->param.conn.initiator_depth, 2);
    CHECK_INT(e->param.conn.qp_num, b.passive->qp->qp_num);
    CHECK_INT(rdma_ack_cm_event(e), 0);
    cm_expect_ok(b.passive_channel, RDMA_CM_EVENT_ESTABLISHED);

    CHECK_INT(ibv_query_qp(b.active->qp, &attr, IBV_QP_STATE, &init), 0);
    CHECK_INT(attr.qp_state, IBV_QPS_RTS);
    CHECK_INT(attr.max_rd_atomic, 2);
    CHECK_INT(attr.max_dest_rd_atomic, 1);
    CHECK_INT(attr.rnr_retry, 6); // his
    CHECK_INT(attr.retry_cnt, 5);
    CHECK_INT(ibv_query_qp(b.passive->qp, &attr, IBV_QP_STATE, &init), 0);
    CHECK_INT(attr.qp_state, IBV_QPS_RTS);
    CHECK_INT(attr.max_rd_atomic, 1);
    CHECK_INT(attr.max_dest_rd_atomic, 2);
    CHECK_INT(attr.rnr_retry, 4);
    close_both();
}

static void data_moves_both_ways_over_what_was_connected(void **state)
{
    char buf[2][64] = {"from the one", ""};
    struct ibv_mr *mr[2];
    struct ibv_sge sge[2];
    struct ibv_wc wc;

    (void)state;
    cm_both_open(&b, RDMA_PS_TCP, 4);
    cm_both_connect(&b);
    for (int i = 0; i < 2; i++) {
        mr[i] = ibv_reg_mr((i ? b.passive : b.active)->pd, buf[i], sizeof buf[i], IBV_ACCESS_LOCAL_WRITE);
        CHECK(mr[i]);
        sge[i] = (struct ibv_sge){(uintptr_t)buf[i], sizeof buf[i], mr[i]->lkey};
    }
    struct ibv_recv_wr recv = {.wr_id = 1, .sg_list = &sge[1], .num_sge = 1}, *bad_recv;
    struct ibv_send_wr send = {.wr_id = 2, .sg_list = &sge[0], .num_sge = 1, .opcode = IBV_WR_SEND},
                       *bad_send;
    CHECK_INT(ibv_post_recv(b.passive->qp, &recv, &bad_recv), 0);
    CHECK_INT(ibv_post_send(b.active->qp, &send, &bad_send), 0);
    expect_wc(b.active->send_cq, 2, IBV_WC_SUCCESS, &wc);
    expect_wc(b.passive->recv_cq, 1, IBV_WC_SUCCESS, &wc);
    CHECK(!strcmp(buf[1], "from the one"));
    for (int i = 0; i < 2; i++)
        CHECK_INT(ibv_dereg_mr(mr[i]), 0);
    close_both();
}

static void a_disconnect_is_told_to_both_and_timewait_ends(void **state)
{
    (void)state;
    cm_both_open(&b, RDMA_PS_TCP, 4);
    cm_both_connect(&b);
    CHECK_INT(rdma_disconnect(b.active), 0);
    CHECK_INT(cm_qp_state(b.active), IBV_QPS_ERR);
    cm_expect_ok(b.passive_channel, RDMA_CM_EVENT_DISCONNECTED);
    CHECK_INT(cm_qp_state(b.passive), IBV_QPS_RTS);   // until its program says so too
    CHECK(!cm_readable_within(b.active_channel, 50)); // the answer is the other program's
    CHECK_INT(rdma_disconnect(b.passive), 0);
    CHECK_INT(cm_qp_state(b.passive), IBV_QPS_ERR);
    cm_expect_ok(b.active_channel, RDMA_CM_EVENT_DISCONNECTED);
    cm_expect_ok(b.active_channel, RDMA_CM_EVENT_TIMEWAIT_EXIT);
    cm_expect_ok(b.passive_channel, RDMA_CM_EVENT_TIMEWAIT_EXIT);
    close_both();
}

static void an_id_that_is_destroyed_disconnects(void **state)
{
    (void)state;
    cm_both_open(&b, RDMA_PS_TCP, 4);
    cm_both_connect(&b);
    cm_end(&b.active);
    cm_expect_ok(b.passive_channel, RDMA_CM_EVENT_DISCONNECTED);
    close_both();
}

static void a_rejection_has_reason_28_and_its_data(void **state)
{
    struct rdma_cm_event *e;

    (void)state;
    cm_both_open(&b, RDMA_PS_TCP, 4);
    cm_make_qp(b.active);
    CHECK_INT(rdma_connect(b.active, NULL), 0);
    cm_take_request(&b);
    CHECK_INT(rdma_reject(b.passive, "no", 2), 0);
    e = cm_expect(b.active_channel, RDMA_CM_EVENT_REJECTED);
    CHECK_INT(e->status, 28);
    check_data(e->param.conn.private_data, e->param.conn.private_data_len, "no", 148);
    CHECK_INT(rdma_ack_cm_event(e), 0);
    CHECK_INT(cm_qp_state(b.active), IBV_QPS_ERR);
    CHECK_INT(rdma_connect(b.active, NULL), -1); // an id connects once
    CHECK_INT(errno, EINVAL);
    close_both();
}

static void a_refused_accept_is_a_rejection(void **state)
{
    static const char much[197];
    struct rdma_conn_param p = {.private_data = much, .private_data_len = sizeof much};

    (void)state;
    cm_both_open(&b, RDMA_PS_TCP, 4);
    cm_make_qp(b.active);
    CHECK_INT(rdma_connect(b.active, NULL), 0);
    cm_take_request(&b);
    cm_make_qp(b.passive);
    CHECK_INT(rdma_accept(b.passive, &p), -1);
    CHECK_INT(errno, EINVAL);
    cm_expect_status(b.active_channel, RDMA_CM_EVENT_REJECTED, 28);
    close_both();
}

static void nobody_listening_is_a_rejection_with_reason_8(void **state)
{
    (void)state;
    cm_both_open(&b, RDMA_PS_TCP, 4);
    cm_end(&b.listener);
    cm_make_qp(b.active);
    CHECK_INT(rdma_connect(b.active, NULL), 0);
    cm_expect_status(b.active_channel, RDMA_CM_EVENT_REJECTED, 8);
    close_both();
}

static void who_holds_the_port_and_listens_a_moment_later_is_found(void **state)
{
    struct rdma_cm_id *late;

    (void)state;
    cm_both_open(&b, RDMA_PS_TCP, 4);
    cm_end(&b.listener);
    late = cm_new_id(b.passive_channel, RDMA_PS_TCP);
    CHECK_INT(rdma_bind_addr(late, cm_addr4("127.0.0.1", b.port)), 0);
    cm_make_qp(b.active);
    CHECK_INT(rdma_connect(b.active, NULL), 0);
    CHECK_INT(rdma_listen(late, 1), 0);
    b.listener = late;
    cm_take_request(&b);
    close_both();
}

static void a_request_beyond_the_backlog_is_rejected(void **state)
{
    struct rdma_cm_id *second;

    (void)state;
    cm_both_open(&b, RDMA_PS_TCP, 1);
    cm_make_qp(b.active);
    CHECK_INT(rdma_connect(b.active, NULL), 0);
    CHECK(cm_readable_within(b.passive_channel, CM_WAIT_MS)); // and nobody takes it
    second = cm_new_id(b.active_channel, RDMA_PS_TCP);
    cm_resolve(b.active_channel, second, b.port);
    cm_make_qp(second);
    CHECK_INT(rdma_connect(second, NULL), 0);
    cm_expect_status(b.active_channel, RDMA_CM_EVENT_REJECTED, 28);
    cm_take_request(&b);
    cm_end(&second);
    close_both();
}

static void requests_that_wait_are_rejected_when_the_listener_goes(void **state)
{
    (void)state;
    cm_both_open(&b, RDMA_PS_TCP, 4);
    cm_make_qp(b.active);
    CHECK_INT(rdma_connect(b.active, NULL), 0);
    CHECK(cm_readable_within(b.passive_channel, CM_WAIT_MS));
    cm_end(&b.listener);
    CHECK(!cm_readable_within(b.passive_channel, 0));
    cm_expect_status(b.active_channel, RDMA_CM_EVENT_REJECTED, 28);
    close_both();
}

static void accepting_fails_when_who_asked_has_gone(void **state)
{
    (void)state;
    cm_both_open(&b, RDMA_PS_TCP, 4);
    cm_make_qp(b.active);
    CHECK_INT(rdma_connect(b.active, NULL), 0);
    cm_take_request(&b);
    cm_make_qp(b.passive);
    cm_end(&b.active);
    if (rdma_accept(b.passive, NULL) == 0) { // his leaving was still on its way: then it is told
        cm_expect_status(b.passive_channel, RDMA_CM_EVENT_REJECTED, 4);
    } else {
        CHECK_INT(errno, EINVAL);
        CHECK(!cm_readable_within(b.passive_channel, 20)); // nothing is told of what was not accepted
    }
    close_both();
}

// Options of a vendor, which ids without a queue pair carry for the program.
static void options_of_a_vendor_are_carried_both_ways(void **state)
{
    struct ibv_ece asked = {.vendor_id = 0x1234, .options = 0x55},
                   said = {.vendor_id = 0x1234, .options = 0x11};
    struct rdma_conn_param p = {.responder_resources = 1, .initiator_depth = 1, .qp_num = 7};
    struct ibv_ece got;

    (void)state;
    for (int accepted = 0; accepted < 2; accepted++) {
        cm_both_open(&b, RDMA_PS_TCP, 4);
        CHECK_INT(rdma_set_local_ece(b.active, &asked), 0);
        CHECK_INT(rdma_connect(b.active, &p), 0);
        cm_take_request(&b);
        CHECK_INT(rdma_get_remote_ece(b.passive, &got), 0);
        CHECK(got.vendor_id == asked.vendor_id && got.options == asked.options && !got.comp_mask);
        if (accepted) {
            CHECK_INT(rdma_set_local_ece(b.passive, &said), 0);
            CHECK_INT(rdma_accept(b.passive, &p), 0);
            cm_expect_ok(b.active_channel, RDMA_CM_EVENT_CONNECT_RESPONSE);
            CHECK_INT(rdma_get_remote_ece(b.active, &got), 0);
            CHECK(got.vendor_id == said.vendor_id && got.options == said.options);
        } else {
            CHECK_INT(rdma_reject_ece(b.passive, NULL, 0), 0);
            cm_expect_status(b.active_channel, RDMA_CM_EVENT_REJECTED, 35);
        }
        close_both();
    }
}

// With an id that has no queue pair the program moves its own.
static void an_external_queue_pair_is_established_by_hand(void **state)
{
    static const enum ibv_qp_state states[] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS};
    struct rdma_conn_param p = {.responder_resources = 1, .initiator_depth = 1};
    struct rdma_cm_id *ids[2];
    struct ibv_qp *qp[2];
    struct rdma_cm_event *e;

    (void)state;
    cm_both_open(&b, RDMA_PS_TCP, 4);
    struct ibv_cq *cq = ibv_create_cq(b.active->verbs, 8, NULL, NULL, 0);
    CHECK(b.active->pd != NULL); // an id that knows its device has a domain to make queue pairs in
    struct ibv_qp_init_attr init = {
        .send_cq = cq, .recv_cq = cq, .cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    for (int i = 0; i < 2; i++)
        CHECK((qp[i] = ibv_create_qp(b.active->pd, &init)) != NULL);
    p.qp_num = qp[0]->qp_num;
    CHECK_INT(rdma_establish(b.active), -1); // too early
    CHECK_INT(errno, EINVAL);
    CHECK_INT(rdma_connect(b.active, &p), 0);
    cm_take_request(&b);
    p.qp_num = qp[1]->qp_num;
    CHECK_INT(rdma_accept(b.passive, &p), 0);
    e = cm_expect(b.active_channel, RDMA_CM_EVENT_CONNECT_RESPONSE);
    CHECK_INT(e->param.conn.qp_num, qp[1]->qp_num);
    CHECK_INT(rdma_ack_cm_event(e), 0);
    ids[0] = b.active;
    ids[1] = b.passive;
    for (int s = 0; s < 3; s++)
        for (int i = 0; i < 2; i++) {
            struct ibv_qp_attr attr = {.qp_state = states[s]};
            int mask;

            CHECK_INT(rdma_init_qp_attr(ids[i], &attr, &mask), 0);
            CHECK_INT(ibv_modify_qp(qp[i], &attr, mask), 0);
        }
    CHECK_INT(rdma_establish(b.active), 0);
    cm_expect_ok(b.passive_channel, RDMA_CM_EVENT_ESTABLISHED);
    cm_end(&b.active);
    cm_expect_ok(b.passive_channel, RDMA_CM_EVENT_DISCONNECTED);
    for (int i = 0; i < 2; i++)
        CHECK_INT(ibv_destroy_qp(qp[i]), 0);
    CHECK_INT(ibv_destroy_cq(cq), 0);
    close_both();
}

// Data may arrive before the last message of the handshake: the program says so.
static void a_notified_connection_is_established(void **state)
{
    struct rdma_conn_param p = {.qp_num = 1};
    struct rdma_cm_event *e;

    (void)state;
    cm_both_open(&b, RDMA_PS_TCP, 4);
    CHECK_INT(rdma_connect(b.active, &p), 0);
    cm_take_request(&b);
    CHECK_INT(rdma_notify(b.passive, IBV_EVENT_COMM_EST), -1);
    CHECK_INT(errno, EINVAL);
    CHECK_INT(rdma_accept(b.passive, &p), 0);
    CHECK_INT(rdma_notify(b.passive, IBV_EVENT_COMM_EST), 0);
    cm_expect_ok(b.passive_channel, RDMA_CM_EVENT_ESTABLISHED);
    CHECK_INT(rdma_notify(b.passive, IBV_EVENT_COMM_EST), -1);
    CHECK_INT(errno, EISCONN);
    e = cm_expect(b.active_channel, RDMA_CM_EVENT_CONNECT_RESPONSE);
    CHECK_INT(rdma_ack_cm_event(e), 0);
    CHECK_INT(rdma_establish(b.active), 0);
    CHECK(!cm_readable_within(b.passive_channel, 20)); // once is enough
    close_both();
}

static void a_peer_that_says_nothing_is_unreachable(void **state)
{
    (void)state;
    cm_both_open(&b, RDMA_PS_TCP, 4);
    cm_make_qp(b.active);
    CHECK_INT(rdma_connect(b.active, NULL), 0);
    cm_take_request(&b);
    cm_expect_status(b.active_channel, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
    CHECK_INT(rdma_accept(b.passive, &(struct rdma_conn_param){.qp_num = 1}), -1);
    CHECK_INT(errno, EINVAL);
    close_both();
}

static void an_address_of_no_interface_is_not_resolved(void **state)
{
    struct rdma_event_channel *c = cm_channel();
    struct rdma_cm_id *id = cm_new_id(c, RDMA_PS_TCP);

    (void)state;
    CHECK_INT(rdma_bind_addr(id, cm_addr4("203.0.113.77", 0)), -1);
    CHECK_INT(errno, EADDRNOTAVAIL);
    CHECK_INT(rdma_resolve_addr(id, NULL, cm_addr4("203.0.113.77", 4711), 100), 0);
    cm_expect_status(c, RDMA_CM_EVENT_ADDR_ERROR, -EHOSTUNREACH);
    CHECK_INT(rdma_resolve_addr(id, cm_addr4("127.0.0.1", 0), cm_addr4("203.0.113.77", 4711), 100), 0);
    cm_expect_status(c, RDMA_CM_EVENT_ADDR_ERROR, -EHOSTUNREACH);
    CHECK_INT(rdma_destroy_id(id), 0);
    rdma_destroy_event_channel(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(depths_are_negotiated_and_private_data_fills_its_field),
        cmocka_unit_test(data_moves_both_ways_over_what_was_connected),
        cmocka_unit_test(a_disconnect_is_told_to_both_and_timewait_ends),
        cmocka_unit_test(an_id_that_is_destroyed_disconnects),
        cmocka_unit_test(a_rejection_has_reason_28_and_its_data),
        cmocka_unit_test(a_refused_accept_is_a_rejection),
        cmocka_unit_test(nobody_listening_is_a_rejection_with_reason_8),
        cmocka_unit_test(who_holds_the_port_and_listens_a_moment_later_is_found),
        cmocka_unit_test(a_request_beyond_the_backlog_is_rejected),
        cmocka_unit_test(requests_that_wait_are_rejected_when_the_listener_goes),
        cmocka_unit_test(accepting_fails_when_who_asked_has_gone),
        cmocka_unit_test(options_of_a_vendor_are_carried_both_ways),
        cmocka_unit_test(an_external_queue_pair_is_established_by_hand),
        cmocka_unit_test(a_notified_connection_is_established),
        cmocka_unit_test(a_peer_that_says_nothing_is_unreachable),
        cmocka_unit_test(an_address_of_no_interface_is_not_resolved),
    };

    setenv("DRYDOCK_CM_TIMEOUT_MS", "1500", 1); // of the whole program: only one test waits for it
    return cmocka_run_group_tests(tests, NULL, NULL);
}
