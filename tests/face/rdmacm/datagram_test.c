// SPDX-License-Identifier: MIT
// also: threads
// The datagram service: a look-up of the queue pair behind a port, and what it says when there is none.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "face/lib/cm.h"

static struct cm_both b;

static void a_look_up_tells_queue_key_and_address(void **state)
{
    struct rdma_conn_param ask = {.private_data = "who", .private_data_len = 3};
    struct rdma_conn_param answer = {.private_data = "me", .private_data_len = 2};
    char buf[40 + 16] = "", text[16] = "datagram";
    struct rdma_cm_event *e;
    struct ibv_wc wc;

    (void)state;
    cm_both_open(&b, RDMA_PS_UDP, 4);
    CHECK_INT(b.active->qp_type, IBV_QPT_UD);
    cm_make_qp(b.active);
    CHECK_INT(cm_qp_state(b.active), IBV_QPS_RTS);
    CHECK_INT(rdma_connect(b.active, &ask), 0);
    e = cm_expect(b.passive_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
    CHECK_INT(e->param.ud.private_data_len, 180);
    CHECK(!strcmp(e->param.ud.private_data, "who"));
    b.passive = e->id;
    CHECK_INT(rdma_ack_cm_event(e), 0);
    cm_make_qp(b.passive);

    struct ibv_mr *in = ibv_reg_mr(b.passive->pd, buf, sizeof buf, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_mr *out = ibv_reg_mr(b.active->pd, text, sizeof text, 0);
    struct ibv_sge in_sge = {(uintptr_t)buf, sizeof buf, in->lkey},
                   out_sge = {(uintptr_t)text, sizeof text, out->lkey};
    struct ibv_recv_wr recv = {.wr_id = 1, .sg_list = &in_sge, .num_sge = 1}, *bad_recv;
    CHECK_INT(ibv_post_recv(b.passive->qp, &recv, &bad_recv), 0);
    CHECK_INT(rdma_accept(b.passive, &answer), 0);
    CHECK(!cm_readable_within(b.passive_channel, 20)); // who answers is told nothing more

    e = cm_expect(b.active_channel, RDMA_CM_EVENT_ESTABLISHED);
    CHECK_INT(e->param.ud.private_data_len, 136);
    CHECK(!strcmp(e->param.ud.private_data, "me"));
    CHECK_INT(e->param.ud.qp_num, b.passive->qp->qp_num);
    CHECK_INT(e->param.ud.qkey, RDMA_UDP_QKEY);
    struct ibv_ah *ah = ibv_create_ah(b.active->pd, &e->param.ud.ah_attr);
    CHECK(ah);
    struct ibv_send_wr *bad_send, send = {.wr_id = 2,
                                          .sg_list = &out_sge,
                                          .num_sge = 1,
                                          .opcode = IBV_WR_SEND,
                                          .wr.ud = {ah, e->param.ud.qp_num, e->param.ud.qkey}};
    CHECK_INT(ibv_post_send(b.active->qp, &send, &bad_send), 0);
    CHECK_INT(rdma_ack_cm_event(e), 0);
    expect_wc(b.passive->recv_cq, 1, IBV_WC_SUCCESS, &wc);
    CHECK(!strcmp(buf + 40, "datagram"));
    CHECK_INT(ibv_destroy_ah(ah), 0);
    CHECK_INT(ibv_dereg_mr(in), 0);
    CHECK_INT(ibv_dereg_mr(out), 0);
    cm_both_close(&b);
}

static void a_refused_look_up_is_unreachable_with_status_2(void **state)
{
    (void)state;
    cm_both_open(&b, RDMA_PS_UDP, 4);
    cm_make_qp(b.active);
    CHECK_INT(rdma_connect(b.active, NULL), 0);
    cm_take_request(&b);
    CHECK_INT(rdma_reject(b.passive, NULL, 0), 0);
    cm_expect_status(b.active_channel, RDMA_CM_EVENT_UNREACHABLE, 2);
    cm_both_close(&b);
}

static void a_port_without_listener_is_unreachable_with_status_1(void **state)
{
    (void)state;
    cm_both_open(&b, RDMA_PS_UDP, 4);
    cm_end(&b.listener);
    cm_make_qp(b.active);
    CHECK_INT(rdma_connect(b.active, NULL), 0);
    cm_expect_status(b.active_channel, RDMA_CM_EVENT_UNREACHABLE, 1);
    cm_both_close(&b);
}

// The same number in the connected port space is another port.
static void port_spaces_are_apart(void **state)
{
    struct rdma_cm_id *other;

    (void)state;
    cm_both_open(&b, RDMA_PS_TCP, 4);
    other = cm_new_id(b.active_channel, RDMA_PS_UDP);
    cm_resolve(b.active_channel, other, b.port);
    cm_make_qp(other);
    CHECK_INT(rdma_connect(other, NULL), 0);
    cm_expect_status(b.active_channel, RDMA_CM_EVENT_UNREACHABLE, 1);
    CHECK(!cm_readable_within(b.passive_channel, 20));
    cm_end(&other);
    cm_both_close(&b);
}

// ---- groups

struct member {
    struct rdma_cm_id *id;
    char buf[40 + 16];
    struct ibv_mr *mr;
};

static struct rdma_ud_param join(struct rdma_event_channel *c, struct member *m, const char *group,
                                 bool send_only)
{
    struct rdma_cm_join_mc_attr_ex attr = {
        .comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
        .join_flags = send_only ? RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER : RDMA_MC_JOIN_FLAG_FULLMEMBER,
        .addr = cm_addr4(group, 0)};
    struct rdma_ud_param param;
    struct rdma_cm_event *e;

    m->id = cm_new_id(c, RDMA_PS_UDP);
    CHECK_INT(rdma_bind_addr(m->id, cm_addr4("127.0.0.1", 0)), 0);
    cm_make_qp(m->id);
    memset(m->buf, 0, sizeof m->buf);
    m->mr = ibv_reg_mr(m->id->pd, m->buf, sizeof m->buf, IBV_ACCESS_LOCAL_WRITE);
    CHECK(m->mr);
    CHECK_INT(rdma_join_multicast_ex(m->id, &attr, m), 0);
    e = cm_expect(c, RDMA_CM_EVENT_MULTICAST_JOIN);
    CHECK(e->param.ud.private_data == m);
    CHECK_INT(e->param.ud.qp_num, 0xffffff);
    param = e->param.ud;
    CHECK_INT(rdma_ack_cm_event(e), 0);
    return param;
}

static void end_member(struct member *m)
{
    cm_end(&m->id);
    CHECK_INT(ibv_dereg_mr(m->mr), 0);
}

static void what_is_sent_to_a_group_reaches_its_members(void **state)
{
    struct rdma_event_channel *c = cm_channel();
    struct member member, sender;
    struct rdma_ud_param group;
    struct ibv_wc wc;

    (void)state;
    join(c, &member, "239.1.2.3", false);
    group = join(c, &sender, "239.1.2.3", true);
    struct ibv_sge sge = {(uintptr_t)member.buf, sizeof member.buf, member.mr->lkey};
    struct ibv_recv_wr recv = {.wr_id = 1, .sg_list = &sge, .num_sge = 1}, *bad_recv;
    CHECK_INT(ibv_post_recv(member.id->qp, &recv, &bad_recv), 0);
    strcpy(sender.buf, "to all");
    struct ibv_ah *ah = ibv_create_ah(sender.id->pd, &group.ah_attr);
    CHECK(ah);
    struct ibv_sge out = {(uintptr_t)sender.buf, 16, sender.mr->lkey};
    struct ibv_send_wr *bad_send, send = {.wr_id = 2,
                                          .sg_list = &out,
                                          .num_sge = 1,
                                          .opcode = IBV_WR_SEND,
                                          .wr.ud = {ah, group.qp_num, group.qkey}};
    CHECK_INT(ibv_post_send(sender.id->qp, &send, &bad_send), 0);
    expect_wc(member.id->recv_cq, 1, IBV_WC_SUCCESS, &wc);
    CHECK(!strcmp(member.buf + 40, "to all"));

    CHECK_INT(rdma_leave_multicast(member.id, cm_addr4("239.1.2.3", 0)), 0);
    CHECK_INT(rdma_leave_multicast(member.id, cm_addr4("239.1.2.3", 0)), -1);
    CHECK_INT(errno, EADDRNOTAVAIL);
    CHECK_INT(ibv_post_recv(member.id->qp, &recv, &bad_recv), 0);
    CHECK_INT(ibv_post_send(sender.id->qp, &send, &bad_send), 0);
    expect_empty(member.id->recv_cq, 20);
    CHECK_INT(ibv_destroy_ah(ah), 0);
    end_member(&member);
    end_member(&sender);
    rdma_destroy_event_channel(c);
}

static void a_group_is_joined_by_datagram_ids_only(void **state)
{
    struct rdma_event_channel *c = cm_channel();
    struct rdma_cm_id *id = cm_new_id(c, RDMA_PS_TCP);

    (void)state;
    CHECK_INT(rdma_bind_addr(id, cm_addr4("127.0.0.1", 0)), 0);
    CHECK_INT(rdma_join_multicast(id, cm_addr4("239.1.2.3", 0), NULL), -1);
    CHECK_INT(errno, EINVAL);
    CHECK_INT(rdma_destroy_id(id), 0);
    rdma_destroy_event_channel(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_look_up_tells_queue_key_and_address),
        cmocka_unit_test(a_refused_look_up_is_unreachable_with_status_2),
        cmocka_unit_test(a_port_without_listener_is_unreachable_with_status_1),
        cmocka_unit_test(port_spaces_are_apart),
        cmocka_unit_test(what_is_sent_to_a_group_reaches_its_members),
        cmocka_unit_test(a_group_is_joined_by_datagram_ids_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
