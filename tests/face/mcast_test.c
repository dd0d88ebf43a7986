// SPDX-License-Identifier: MIT
// Multicast: who has joined a group gets what is sent to it, in whatever process; the sender too, unless it
// was created otherwise.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "face/lib/ends.h"

static const struct end_options ud = {.type = IBV_QPT_UD};
// 239.1.2.3 as rdma_cm writes it for RoCE v2, and a group of IPv6
static const union ibv_gid group4 = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 239, 1, 2, 3}};
static const union ibv_gid group6 = {.raw = {0xff, 0x0e, [15] = 7}};

static void ready(struct end *e)
{
    end_open(e, &ud);
    end_to_rts(e, NULL);
}

static void send_to(struct end *e, const union ibv_gid *group, uint64_t id, char byte)
{
    struct ibv_ah_attr a = {.is_global = 1,
                            .port_num = 1,
                            .grh = {.dgid = *group, .sgid_index = (uint8_t)e->gid_index, .hop_limit = 1}};
    struct ibv_ah *ah = ibv_create_ah(e->pd, &a);
    struct ibv_sge sge = end_sge(e, 0, 16);

    CHECK(ah != NULL);
    memset(e->buf, byte, 16);
    struct ibv_send_wr wr = {.wr_id = id,
                             .opcode = IBV_WR_SEND,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.ud = {.ah = ah, .remote_qpn = 0xffffff, .remote_qkey = 0x11111111}};
    CHECK_INT(post(e, &wr), 0);
    expect_wc(e->cq, id, IBV_WC_SUCCESS, NULL);
    CHECK_INT(ibv_destroy_ah(ah), 0);
}

static void expect_message(struct end *e, uint64_t id, size_t at, char byte, uint32_t from)
{
    struct ibv_wc wc;

    expect_wc(e->rcq, id, IBV_WC_SUCCESS, &wc);
    CHECK_INT(wc.byte_len, 56);
    CHECK_INT(wc.wc_flags, IBV_WC_GRH);
    CHECK_INT(wc.qp_num, e->qp->qp_num);
    CHECK_INT(wc.src_qp, from);
    CHECK_INT(e->buf[at + 40], byte);
    CHECK_INT(e->buf[at + 55], byte);
}

static void members_get_it_and_others_do_not(void **state)
{
    struct end e[3];

    (void)state;
    for (int i = 0; i < 3; i++) {
        ready(&e[i]);
        CHECK_INT(post_recv(&e[i], 10, 1024, 200), 0);
        CHECK_INT(post_recv(&e[i], 11, 2048, 200), 0);
    }
    CHECK_INT(ibv_attach_mcast(e[0].qp, &group4, 0), 0);
    CHECK_INT(ibv_attach_mcast(e[1].qp, &group4, 0), 0);
    CHECK_INT(ibv_attach_mcast(e[1].qp, &group4, 0), 0); // twice is once
    CHECK_INT(ibv_attach_mcast(e[2].qp, &group6, 0), 0);
    send_to(&e[0], &group4, 1, 0x41);
    expect_message(&e[0], 10, 1024, 0x41, e[0].qp->qp_num); // what one sends comes back
    expect_message(&e[1], 10, 1024, 0x41, e[0].qp->qp_num);
    CHECK(!memcmp(e[1].buf + 1024 + 36, group4.raw + 12, 4));
    expect_empty(e[1].rcq, 5);
    expect_empty(e[2].rcq, 5);
    send_to(&e[0], &group6, 2, 0x42);
    expect_message(&e[2], 10, 1024, 0x42, e[0].qp->qp_num);
    CHECK(!memcmp(e[2].buf + 1024 + 24, group6.raw, 16));
    CHECK_INT(ibv_detach_mcast(e[1].qp, &group4, 0), 0);
    CHECK_INT(ibv_detach_mcast(e[1].qp, &group4, 0), EINVAL);
    send_to(&e[0], &group4, 3, 0x43);
    expect_message(&e[0], 11, 2048, 0x43, e[0].qp->qp_num);
    expect_empty(e[1].rcq, 5);
    for (int i = 0; i < 3; i++)
        end_close(&e[i]);
}

static void a_queue_can_keep_its_own_messages_away(void **state)
{
    struct ibv_qp_init_attr_ex a = {.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
                                    .create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB,
                                    .cap = {8, 8, 1, 1, 0},
                                    .qp_type = IBV_QPT_UD};
    struct end l, r;

    (void)state;
    ready(&r);
    end_open(&l, &ud);
    CHECK_INT(ibv_destroy_qp(l.qp), 0);
    a.pd = l.pd;
    a.send_cq = l.cq;
    a.recv_cq = l.rcq;
    l.qp = ibv_create_qp_ex(l.ctx, &a);
    CHECK(l.qp != NULL);
    end_to_rts(&l, NULL);
    CHECK_INT(ibv_attach_mcast(l.qp, &group4, 0), 0);
    CHECK_INT(ibv_attach_mcast(r.qp, &group4, 0), 0);
    CHECK_INT(post_recv(&l, 10, 1024, 200), 0);
    CHECK_INT(post_recv(&r, 10, 1024, 200), 0);
    send_to(&l, &group4, 1, 0x51);
    expect_message(&r, 10, 1024, 0x51, l.qp->qp_num);
    expect_empty(l.rcq, 5);
    send_to(&r, &group4, 2, 0x52);
    expect_message(&l, 10, 1024, 0x52, r.qp->qp_num);
    end_close(&l);
    end_close(&r);
}

static void without_members_it_is_sent_to_nobody(void **state)
{
    struct end e;

    (void)state;
    ready(&e);
    CHECK_INT(ibv_attach_mcast(e.qp, &group4, 0), 0);
    CHECK_INT(ibv_detach_mcast(e.qp, &group4, 0), 0);
    send_to(&e, &group4, 1, 1);
    CHECK_INT(ibv_attach_mcast(e.qp, &e.gid, 0), EINVAL); // an address of one is no group
    end_close(&e);
}

static void sender(int sock)
{
    struct end e;

    ready(&e);
    meet(sock); // the other has joined
    send_to(&e, &group4, 1, 0x61);
    meet(sock);
    end_close(&e);
}

static void member(int sock)
{
    struct ibv_wc wc;
    struct end e;

    ready(&e);
    CHECK_INT(ibv_attach_mcast(e.qp, &group4, 0), 0);
    CHECK_INT(post_recv(&e, 10, 1024, 200), 0);
    meet(sock);
    expect_wc(e.rcq, 10, IBV_WC_SUCCESS, &wc);
    CHECK_INT(e.buf[1024 + 40], 0x61);
    meet(sock);
    end_close(&e); // its membership ends with the queue
}

static void members_of_other_processes_get_it(void **state)
{
    (void)state;
    two_processes(sender, member);
}

// ---- a program that sends and ends

enum { BURST = 40 }; // more than one turn at a queue

static void hasty_sender(int sock)
{
    struct end_options opt = {.type = IBV_QPT_UD, .send_wr = BURST};
    struct ibv_ah_attr a = {.is_global = 1, .port_num = 1, .grh = {.dgid = group4}};
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .num_sge = 1};
    struct ibv_sge sge;
    struct end e;

    end_open(&e, &opt);
    end_to_rts(&e, NULL);
    a.grh.sgid_index = (uint8_t)e.gid_index;
    sge = end_sge(&e, 0, 16);
    wr.sg_list = &sge;
    wr.wr.ud.ah = ibv_create_ah(e.pd, &a);
    wr.wr.ud.remote_qpn = 0xffffff;
    wr.wr.ud.remote_qkey = 0x11111111;
    CHECK(wr.wr.ud.ah != NULL);
    meet(sock); // the other has joined
    for (int i = 0; i < BURST; i++)
        CHECK_INT(post(&e, &wr), 0);
    CHECK_INT(ibv_destroy_ah(wr.wr.ud.ah), 0);
    end_close(&e);
    meet(sock);
}

static void patient_member(int sock)
{
    struct end_options opt = {.type = IBV_QPT_UD, .recv_wr = BURST};
    struct end e;

    end_open(&e, &opt);
    end_to_rts(&e, NULL);
    CHECK_INT(ibv_attach_mcast(e.qp, &group4, 0), 0);
    for (unsigned i = 0; i < BURST; i++)
        CHECK_INT(post_recv(&e, i, 1024, 200), 0);
    meet(sock);
    meet(sock); // the sender's queue is gone
    for (unsigned i = 0; i < BURST; i++)
        expect_wc(e.rcq, i, IBV_WC_SUCCESS, NULL);
    end_close(&e);
}

static void what_was_posted_leaves_before_its_queue_goes(void **state)
{
    (void)state;
    two_processes(hasty_sender, patient_member);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_of_other_processes_get_it),
        cmocka_unit_test(what_was_posted_leaves_before_its_queue_goes),
        cmocka_unit_test(members_get_it_and_others_do_not),
        cmocka_unit_test(a_queue_can_keep_its_own_messages_away),
        cmocka_unit_test(without_members_it_is_sent_to_nobody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
