// SPDX-License-Identifier: MIT
// C52, C26: datagrams. Data starts at byte 40 of the receive; the header before it leads back to the sender.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "face/lib/ends.h"

static const struct end_options ud = {.type = IBV_QPT_UD};

struct ud_pair {
    struct end l, r;
    struct ibv_ah *ah; // from l to r
};

static struct ibv_ah *handle(struct end *from, const union ibv_gid *to)
{
    struct ibv_ah_attr a = {.is_global = 1,
                            .port_num = 1,
                            .grh = {.dgid = *to, .sgid_index = (uint8_t)from->gid_index, .hop_limit = 1}};
    struct ibv_ah *ah = ibv_create_ah(from->pd, &a);

    CHECK(ah != NULL);
    return ah;
}

static void ud_open(struct ud_pair *p)
{
    end_open(&p->l, &ud);
    end_open(&p->r, &ud);
    end_to_rts(&p->l, NULL);
    end_to_rts(&p->r, NULL);
    p->ah = handle(&p->l, &p->r.gid);
}

static void ud_close(struct ud_pair *p)
{
    CHECK_INT(ibv_destroy_ah(p->ah), 0);
    pair_close(&p->l, &p->r);
}

static struct ibv_send_wr datagram(struct ud_pair *p, struct ibv_sge *sge, uint64_t id)
{
    struct ibv_send_wr wr = {
        .wr_id = id,
        .opcode = IBV_WR_SEND,
        .sg_list = sge,
        .num_sge = 1,
        .send_flags = IBV_SEND_SIGNALED,
        .wr.ud = {.ah = p->ah, .remote_qpn = p->r.qp->qp_num, .remote_qkey = 0x11111111}};
    return wr;
}

static void data_starts_at_byte_40(void **state)
{
    struct ud_pair p;
    struct ibv_wc wc;

    (void)state;
    ud_open(&p);
    memset(p.l.buf, 0x61, 100);
    memset(p.r.buf, 0x7e, 200);
    struct ibv_sge sge = end_sge(&p.l, 0, 100);
    struct ibv_send_wr wr = datagram(&p, &sge, 1);
    wr.opcode = IBV_WR_SEND_WITH_IMM;
    wr.imm_data = 0x44332211;
    CHECK_INT(post_recv(&p.r, 2, 0, 140), 0);
    CHECK_INT(post(&p.l, &wr), 0);
    expect_wc(p.l.cq, 1, IBV_WC_SUCCESS, NULL);
    expect_wc(p.r.rcq, 2, IBV_WC_SUCCESS, &wc);
    CHECK_INT(wc.byte_len, 140);
    CHECK_INT(wc.wc_flags, IBV_WC_GRH | IBV_WC_WITH_IMM);
    CHECK_INT(wc.imm_data, 0x44332211);
    CHECK_INT(wc.src_qp, p.l.qp->qp_num);
    CHECK_INT(wc.qp_num, p.r.qp->qp_num);
    CHECK_INT(wc.sl & 7, 2); // IPv4, where UCX looks for it
    for (int i = 40; i < 140; i++)
        CHECK_INT(p.r.buf[i], 0x61);
    CHECK_INT(p.r.buf[140], 0x7e);
    ud_close(&p);
}

// The last 20 of the 40 bytes are an IPv4 header with a correct checksum, the first nibble is not 6.
static void the_header_is_ipv4(void **state)
{
    struct ud_pair p;
    uint32_t sum = 0;

    (void)state;
    ud_open(&p);
    struct ibv_sge sge = end_sge(&p.l, 0, 4);
    struct ibv_send_wr wr = datagram(&p, &sge, 1);
    CHECK_INT(post_recv(&p.r, 2, 0, 100), 0);
    CHECK_INT(post(&p.l, &wr), 0);
    expect_wc(p.r.rcq, 2, IBV_WC_SUCCESS, NULL);
    const unsigned char *h = (const unsigned char *)p.r.buf;
    CHECK(h[0] >> 4 != 6);
    CHECK_INT(h[20], 0x45);
    for (int i = 20; i < 40; i += 2)
        sum += (uint32_t)h[i] << 8 | h[i + 1];
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    CHECK_INT(sum, 0xffff);
    CHECK(!memcmp(h + 32, p.l.gid.raw + 12, 4));
    CHECK(!memcmp(h + 36, p.r.gid.raw + 12, 4));
    ud_close(&p);
}

static void reply(struct ud_pair *pp)
{
    struct ud_pair p = *pp;
    struct ibv_wc wc;

    struct ibv_sge sge = end_sge(&p.l, 0, 4), back = end_sge(&p.r, 1000, 8);
    struct ibv_send_wr wr = datagram(&p, &sge, 1);
    CHECK_INT(post_recv(&p.r, 2, 0, 100), 0);
    CHECK_INT(post_recv(&p.l, 3, 500, 100), 0);
    CHECK_INT(post(&p.l, &wr), 0);
    expect_wc(p.r.rcq, 2, IBV_WC_SUCCESS, &wc);
    struct ibv_ah *ah = ibv_create_ah_from_wc(p.r.pd, &wc, (struct ibv_grh *)(void *)p.r.buf, 1);
    CHECK(ah != NULL);
    memset(p.r.buf + 1000, 0x42, 8);
    struct ibv_send_wr reply = {.wr_id = 4,
                                .opcode = IBV_WR_SEND,
                                .sg_list = &back,
                                .num_sge = 1,
                                .send_flags = IBV_SEND_SIGNALED,
                                .wr.ud = {.ah = ah, .remote_qpn = wc.src_qp, .remote_qkey = 0x11111111}};
    CHECK_INT(post(&p.r, &reply), 0);
    expect_wc(p.l.rcq, 3, IBV_WC_SUCCESS, NULL);
    CHECK_INT(p.l.buf[540], 0x42);
    expect_wc(p.r.cq, 4, IBV_WC_SUCCESS, NULL);
    CHECK_INT(ibv_destroy_ah(ah), 0);
}

static void a_reply_finds_its_way_by_the_completion(void **state)
{
    struct ud_pair p;

    (void)state;
    ud_open(&p);
    reply(&p);
    ud_close(&p);
}

// The same with the link-local GID: the header is IPv6 then.
static void a_reply_finds_its_way_to_a_link_local_gid(void **state)
{
    struct ud_pair p;

    (void)state;
    ud_open(&p);
    CHECK_INT(ibv_destroy_ah(p.ah), 0);
    p.l.gid_index = 0;
    CHECK_INT(ibv_query_gid(p.r.ctx, 1, 0, &p.r.gid), 0);
    p.ah = handle(&p.l, &p.r.gid);
    reply(&p);
    CHECK_INT((unsigned char)p.r.buf[0] >> 4, 6);
    ud_close(&p);
}

// No receive, a wrong Q_Key, no such queue: the sender succeeds and nothing arrives.
static void what_cannot_be_delivered_is_dropped_silently(void **state)
{
    struct ud_pair p;

    (void)state;
    ud_open(&p);
    struct ibv_sge sge = end_sge(&p.l, 0, 4);
    struct ibv_send_wr wr = datagram(&p, &sge, 1);
    CHECK_INT(post(&p.l, &wr), 0); // no receive is posted
    expect_wc(p.l.cq, 1, IBV_WC_SUCCESS, NULL);
    CHECK_INT(post_recv(&p.r, 2, 0, 100), 0);
    wr.wr.ud.remote_qkey = 0x22222222;
    CHECK_INT(post(&p.l, &wr), 0);
    expect_wc(p.l.cq, 1, IBV_WC_SUCCESS, NULL);
    wr.wr.ud.remote_qkey = 0x11111111;
    wr.wr.ud.remote_qpn = p.r.qp->qp_num + 1000;
    CHECK_INT(post(&p.l, &wr), 0);
    expect_wc(p.l.cq, 1, IBV_WC_SUCCESS, NULL);
    expect_empty(p.r.rcq, 30);
    wr.wr.ud.remote_qpn = p.r.qp->qp_num;
    CHECK_INT(post(&p.l, &wr), 0);
    expect_wc(p.r.rcq, 2, IBV_WC_SUCCESS, NULL); // the receive was not spent by any of them
    ud_close(&p);
}

// C52: room for the message but not for the 40 bytes: not a success.
static void a_receive_without_room_for_40_more_bytes(void **state)
{
    struct ud_pair p;
    struct ibv_wc wc;

    (void)state;
    ud_open(&p);
    struct ibv_sge sge = end_sge(&p.l, 0, 100);
    struct ibv_send_wr wr = datagram(&p, &sge, 1);
    CHECK_INT(post_recv(&p.r, 2, 0, 100), 0);
    CHECK_INT(post(&p.l, &wr), 0);
    if (poll_one(p.r.rcq, &wc, 50))
        CHECK(wc.status != IBV_WC_SUCCESS);
    ud_close(&p);
}

static void a_datagram_longer_than_the_mtu_is_a_local_error(void **state)
{
    struct ud_pair p;
    struct ibv_wc wc;

    (void)state;
    ud_open(&p);
    struct ibv_sge sge = end_sge(&p.l, 0, 4097);
    struct ibv_send_wr wr = datagram(&p, &sge, 1);
    CHECK_INT(post_recv(&p.r, 2, 0, 8192), 0);
    int err = post(&p.l, &wr);
    if (!err) {
        CHECK(poll_one(p.l.cq, &wc, 5000));
        CHECK_INT(wc.status, IBV_WC_LOC_LEN_ERR);
    } else {
        CHECK_INT(err, EINVAL);
    }
    expect_empty(p.r.rcq, 20);
    ud_close(&p);
}

// IBTA vol 1, C10-10: they are found wrong when they are executed.
static void a_handle_of_another_domain_and_a_foreign_opcode_are_local_operation_errors(void **state)
{
    struct ud_pair p;

    (void)state;
    for (int foreign_op = 0; foreign_op < 2; foreign_op++) {
        ud_open(&p);
        struct ibv_sge sge = end_sge(&p.l, 0, 4);
        struct ibv_send_wr wr = datagram(&p, &sge, 1);
        wr.wr.ud.ah = NULL;
        CHECK_INT(post(&p.l, &wr), EINVAL);
        struct ibv_ah *foreign = handle(&p.r, &p.l.gid); // of another domain
        wr = datagram(&p, &sge, 1);
        if (foreign_op)
            wr.opcode = IBV_WR_RDMA_WRITE;
        else
            wr.wr.ud.ah = foreign;
        CHECK_INT(post(&p.l, &wr), 0);
        expect_wc(p.l.cq, 1, IBV_WC_LOC_QP_OP_ERR, NULL);
        CHECK_INT(end_state(&p.l), IBV_QPS_SQE);
        CHECK_INT(ibv_destroy_ah(foreign), 0);
        ud_close(&p);
    }
}

// IBTA vol 1, 9.9.3: it is dropped, and the receive stays for the next one.
static void a_datagram_that_does_not_fit_leaves_the_receive(void **state)
{
    struct ud_pair p;
    struct ibv_wc wc;

    (void)state;
    ud_open(&p);
    struct ibv_sge sge = end_sge(&p.l, 0, 100);
    struct ibv_send_wr wr = datagram(&p, &sge, 1);
    CHECK_INT(post_recv(&p.r, 2, 0, 139), 0);
    CHECK_INT(post(&p.l, &wr), 0);
    expect_wc(p.l.cq, 1, IBV_WC_SUCCESS, NULL);
    expect_empty(p.r.rcq, 10);
    sge.length = 99;
    CHECK_INT(post(&p.l, &wr), 0);
    expect_wc(p.r.rcq, 2, IBV_WC_SUCCESS, &wc);
    CHECK_INT(wc.byte_len, 139);
    ud_close(&p);
}

static void traffic_class_and_hop_limit_stand_in_the_header(void **state)
{
    struct ud_pair p;

    (void)state;
    ud_open(&p);
    struct ibv_ah_attr a = {.is_global = 1,
                            .port_num = 1,
                            .grh = {.dgid = p.r.gid,
                                    .sgid_index = (uint8_t)p.l.gid_index,
                                    .hop_limit = 9,
                                    .traffic_class = 0xa8,
                                    .flow_label = ~0u}}; // 20 bits of it count, the others are dropped
    struct ibv_ah *ah = ibv_create_ah(p.l.pd, &a);
    CHECK(ah != NULL);
    struct ibv_sge sge = end_sge(&p.l, 0, 4);
    struct ibv_send_wr wr = datagram(&p, &sge, 1);
    wr.wr.ud.ah = ah;
    CHECK_INT(post_recv(&p.r, 2, 0, 100), 0);
    CHECK_INT(post(&p.l, &wr), 0);
    expect_wc(p.r.rcq, 2, IBV_WC_SUCCESS, NULL);
    CHECK_INT((uint8_t)p.r.buf[21], 0xa8);
    CHECK_INT(p.r.buf[28], 9);
    CHECK_INT(ibv_destroy_ah(ah), 0);
    ud_close(&p);
}

static void an_address_without_grh_is_refused(void **state)
{
    struct ibv_ah_attr a = {.dlid = 1, .port_num = 1};
    struct end e;

    (void)state;
    end_open(&e, &ud);
    errno = 0;
    CHECK(!ibv_create_ah(e.pd, &a));
    CHECK_INT(errno, EINVAL);
    end_close(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_starts_at_byte_40),
        cmocka_unit_test(the_header_is_ipv4),
        cmocka_unit_test(a_reply_finds_its_way_by_the_completion),
        cmocka_unit_test(a_reply_finds_its_way_to_a_link_local_gid),
        cmocka_unit_test(what_cannot_be_delivered_is_dropped_silently),
        cmocka_unit_test(a_receive_without_room_for_40_more_bytes),
        cmocka_unit_test(a_datagram_longer_than_the_mtu_is_a_local_error),
        cmocka_unit_test(a_handle_of_another_domain_and_a_foreign_opcode_are_local_operation_errors),
        cmocka_unit_test(a_datagram_that_does_not_fit_leaves_the_receive),
        cmocka_unit_test(traffic_class_and_hop_limit_stand_in_the_header),
        cmocka_unit_test(an_address_without_grh_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
