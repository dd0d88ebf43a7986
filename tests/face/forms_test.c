// SPDX-License-Identifier: MIT
// The other forms of posting and polling: ibv_wr_* builders, extended completion queues. Same results as the
// plain ones.
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>

#include <cmocka.h>

#include "face/lib/ends.h"

static const struct end_options both = {.builders = true, .extended_cq = true};

static struct ibv_cq_ex *ex(struct end *e)
{
    return (struct ibv_cq_ex *)(void *)e->cq;
}

static void start_poll_within(struct ibv_cq_ex *cq, int ms)
{
    struct ibv_poll_cq_attr attr = {0};
    int err = ENOENT;

    for (int i = 0; i < ms * 100 && err == ENOENT; i++)
        err = ibv_start_poll(cq, &attr);
    CHECK_INT(err, 0);
}

static void an_empty_extended_queue_says_enoent(void **state)
{
    struct ibv_poll_cq_attr attr = {0}, bad = {.comp_mask = 1};
    struct end e;

    (void)state;
    end_open(&e, &both);
    CHECK_INT(ibv_start_poll(ex(&e), &attr), ENOENT);
    CHECK_INT(ibv_start_poll(ex(&e), &attr), ENOENT); // the lock was not kept
    CHECK_INT(ibv_start_poll(ex(&e), &bad), EINVAL);
    end_close(&e);
}

static void builders_post_what_setters_filled(void **state)
{
    struct end l, r;

    (void)state;
    pair_open(&l, &r, &both);
    struct ibv_qp_ex *q = ibv_qp_to_qp_ex(l.qp);
    uint64_t *word = (uint64_t *)(void *)(r.buf + 4096);
    CHECK(q != NULL);
    memset(l.buf, 0x31, 64);
    *word = 5;
    CHECK_INT(post_recv(&r, 90, 2048, 64), 0);
    ibv_wr_start(q);
    q->wr_id = 1;
    q->wr_flags = 0;
    ibv_wr_rdma_write(q, r.mr->rkey, (uintptr_t)r.buf);
    ibv_wr_set_sge(q, l.mr->lkey, (uintptr_t)l.buf, 16);
    q->wr_id = 2;
    q->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send_imm(q, htonl(9));
    char text[] = "inline";
    ibv_wr_set_inline_data(q, text, sizeof text);
    memset(text, 0, sizeof text); // copied in the setter
    q->wr_id = 3;
    ibv_wr_atomic_fetch_add(q, r.mr->rkey, (uintptr_t)word, 37);
    ibv_wr_set_sge(q, l.mr->lkey, (uintptr_t)l.buf + 1024, 8);
    CHECK_INT(ibv_wr_complete(q), 0);

    start_poll_within(ex(&l), 5000);
    CHECK_INT(ex(&l)->wr_id, 2);
    CHECK_INT(ex(&l)->status, IBV_WC_SUCCESS);
    CHECK_INT(ibv_wc_read_opcode(ex(&l)), IBV_WC_SEND);
    CHECK_INT(ibv_wc_read_qp_num(ex(&l)), l.qp->qp_num);
    CHECK(ibv_wc_read_completion_ts(ex(&l)) != 0);
    int err;
    while ((err = ibv_next_poll(ex(&l))) == ENOENT)
        ;
    CHECK_INT(err, 0);
    CHECK_INT(ex(&l)->wr_id, 3);
    CHECK_INT(ibv_wc_read_opcode(ex(&l)), IBV_WC_FETCH_ADD);
    CHECK_INT(ibv_next_poll(ex(&l)), ENOENT);
    ibv_end_poll(ex(&l));

    CHECK_INT(r.buf[15], 0x31);
    CHECK_INT(r.buf[16], 0);
    CHECK_INT(*word, 42);
    struct ibv_wc wc;
    expect_wc(r.rcq, 90, IBV_WC_SUCCESS, &wc);
    CHECK_INT(ntohl(wc.imm_data), 9);
    CHECK_INT(wc.byte_len, sizeof text);
    assert_string_equal(r.buf + 2048, "inline");
    pair_close(&l, &r);
}

// Two completions that differ in nothing: one taken by ibv_poll_cq, the next by each reader.
static void compare(struct ibv_cq *cq, uint64_t id)
{
    struct ibv_cq_ex *e = (struct ibv_cq_ex *)(void *)cq;
    struct ibv_wc wc;

    expect_wc(cq, id, IBV_WC_SUCCESS, &wc);
    start_poll_within(e, 5000);
    CHECK_INT(e->wr_id, id);
    CHECK_INT(e->status, wc.status);
    CHECK_INT(ibv_wc_read_opcode(e), wc.opcode);
    CHECK_INT(ibv_wc_read_vendor_err(e), wc.vendor_err);
    CHECK_INT(ibv_wc_read_wc_flags(e), wc.wc_flags);
    CHECK_INT(ibv_wc_read_qp_num(e), wc.qp_num);
    CHECK_INT(ibv_wc_read_src_qp(e), wc.src_qp);
    CHECK_INT(ibv_wc_read_slid(e), wc.slid);
    CHECK_INT(ibv_wc_read_sl(e), wc.sl);
    CHECK_INT(ibv_wc_read_dlid_path_bits(e), wc.dlid_path_bits);
    if (wc.opcode == IBV_WC_RECV) { // of a send it says nothing
        CHECK_INT(ibv_wc_read_byte_len(e), wc.byte_len);
        CHECK_INT(ibv_wc_read_imm_data(e), wc.imm_data);
    }
    ibv_end_poll(e);
}

static void readers_tell_what_poll_cq_tells(void **state)
{
    static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};

    (void)state;
    for (unsigned t = 0; t < 3; t++) {
        struct end_options opt = {.type = types[t], .extended_cq = true};
        struct end l, r;
        pair_open(&l, &r, &opt);
        struct ibv_ah_attr to = {
            .is_global = 1, .port_num = 1, .grh = {.dgid = r.gid, .sgid_index = (uint8_t)l.gid_index}};
        struct ibv_ah *ah = ibv_create_ah(l.pd, &to);
        struct ibv_sge sge = end_sge(&l, 0, 24);
        struct ibv_send_wr wr = send_wr(7, IBV_WR_SEND_WITH_IMM, &sge, 0, 0);
        wr.imm_data = htonl(0x01020304);
        if (types[t] == IBV_QPT_UD) {
            wr.wr.ud.ah = ah;
            wr.wr.ud.remote_qpn = r.qp->qp_num;
            wr.wr.ud.remote_qkey = 0x11111111;
        }
        for (unsigned i = 0; i < 2; i++) {
            CHECK_INT(post_recv(&r, 8, 0, 128), 0);
            CHECK_INT(post(&l, &wr), 0);
        }
        compare(l.cq, 7);
        compare(r.rcq, 8);
        CHECK_INT(ibv_destroy_ah(ah), 0);
        pair_close(&l, &r);
    }
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// The stamps lie between before and after, by the raw clock (which is CLOCK_MONOTONIC) and by the wall's; a
// CQ for one thread tells them too.
static void stamps_are_of_their_moment(void **state)
{
    struct ibv_cq_init_attr_ex attr = {.cqe = 4,
                                       .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                                                   IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
                                       .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
                                       .flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED};
    struct ibv_values_ex raw = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
    struct end l, r;

    (void)state;
    end_open(&l, NULL);
    end_open(&r, NULL);
    struct ibv_cq_ex *cq = ibv_create_cq_ex(l.ctx, &attr);
    CHECK(cq != NULL);
    struct ibv_qp_init_attr init = {
        .send_cq = ibv_cq_ex_to_cq(cq), .recv_cq = l.rcq, .cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    CHECK_INT(ibv_destroy_qp(l.qp), 0);
    l.qp = ibv_create_qp(l.pd, &init);
    CHECK(l.qp != NULL);
    struct end_address al = end_address(&l), ar = end_address(&r);
    end_to_rts(&l, &ar);
    end_to_rts(&r, &al);
    struct ibv_sge sge = end_sge(&l, 0, 8);
    struct ibv_send_wr wr = send_wr(1, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)r.buf, r.mr->rkey);
    uint64_t wall = clock_ns(CLOCK_REALTIME), before = clock_ns(CLOCK_MONOTONIC);
    CHECK_INT(post(&l, &wr), 0);
    start_poll_within(cq, 5000);
    uint64_t stamp = ibv_wc_read_completion_ts(cq), after = clock_ns(CLOCK_MONOTONIC);
    CHECK(before <= stamp && stamp <= after);
    CHECK(ibv_wc_read_completion_wallclock_ns(cq) + 1000000000 >
          wall); // a second: the wall's clock is set at times
    CHECK(ibv_wc_read_completion_wallclock_ns(cq) < clock_ns(CLOCK_REALTIME) + 1000000000);
    ibv_end_poll(cq);
    CHECK_INT(ibv_query_rt_values_ex(l.ctx, &raw), 0);
    CHECK((uint64_t)raw.raw_clock.tv_sec * 1000000000u + (uint64_t)raw.raw_clock.tv_nsec >= after);
    CHECK_INT(ibv_destroy_qp(l.qp), 0);
    l.qp = NULL;
    CHECK_INT(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
    pair_close(&l, &r);
}

static void abort_and_errors_publish_nothing(void **state)
{
    struct end l, r;

    (void)state;
    pair_open(&l, &r, &both);
    struct ibv_qp_ex *q = ibv_qp_to_qp_ex(l.qp);
    memset(l.buf, 0x31, 64);
    ibv_wr_start(q);
    ibv_wr_rdma_write(q, r.mr->rkey, (uintptr_t)r.buf);
    ibv_wr_set_sge(q, l.mr->lkey, (uintptr_t)l.buf, 16);
    ibv_wr_abort(q);
    ibv_wr_start(q);
    ibv_wr_rdma_write(q, r.mr->rkey, (uintptr_t)r.buf);
    ibv_wr_set_sge(q, l.mr->lkey, (uintptr_t)l.buf, 16);
    struct ibv_sge many[5] = {{0}};
    ibv_wr_rdma_write(q, r.mr->rkey, (uintptr_t)r.buf);
    ibv_wr_set_sge_list(q, 5, many); // one more than it was created for
    CHECK_INT(ibv_wr_complete(q), EINVAL);
    ibv_wr_start(q);
    char big[65] = {0};
    ibv_wr_send(q);
    ibv_wr_set_inline_data(q, big, sizeof big);
    CHECK_INT(ibv_wr_complete(q), EINVAL);
    for (unsigned i = 0; i < 17; i++) { // 16 fit
        if (i == 0)
            ibv_wr_start(q);
        ibv_wr_rdma_write(q, r.mr->rkey, (uintptr_t)r.buf);
        ibv_wr_set_sge(q, l.mr->lkey, (uintptr_t)l.buf, 16);
    }
    CHECK_INT(ibv_wr_complete(q), ENOMEM);
    for (unsigned i = 0; i < 16; i++)
        CHECK_INT(r.buf[i], 0);
    ibv_wr_start(q);
    q->wr_id = 4;
    q->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_write(q, r.mr->rkey, (uintptr_t)r.buf);
    ibv_wr_set_sge(q, l.mr->lkey, (uintptr_t)l.buf, 16);
    CHECK_INT(ibv_wr_complete(q), 0);
    expect_wc(l.cq, 4, IBV_WC_SUCCESS, NULL);
    CHECK_INT(r.buf[0], 0x31);
    pair_close(&l, &r);
}

static void a_failed_completion_reads_alike_in_both_forms(void **state)
{
    (void)state;
    for (unsigned form = 0; form < 2; form++) {
        struct end l, r;
        struct ibv_wc wc;
        pair_open(&l, &r, &both);
        struct ibv_sge sge = end_sge(&l, 0, 8);
        struct ibv_send_wr wr = send_wr(1, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)r.buf, r.mr->lkey);
        CHECK_INT(post(&l, &wr), 0);
        if (form) {
            start_poll_within(ex(&l), 5000);
            CHECK_INT(ex(&l)->status, IBV_WC_REM_ACCESS_ERR);
            CHECK_INT(ex(&l)->wr_id, 1);
            CHECK_INT(ibv_wc_read_qp_num(ex(&l)), l.qp->qp_num);
            ibv_end_poll(ex(&l));
        } else {
            expect_wc(l.cq, 1, IBV_WC_REM_ACCESS_ERR, &wc);
            CHECK_INT(wc.qp_num, l.qp->qp_num);
        }
        pair_close(&l, &r);
    }
}

static void a_queue_without_builders_has_no_extended_form(void **state)
{
    struct end e;

    (void)state;
    end_open(&e, NULL);
    CHECK(ibv_qp_to_qp_ex(e.qp) == NULL);
    end_close(&e);
}

static void operations_that_a_service_has_not_fail_the_creation(void **state)
{
    struct end e;

    (void)state;
    end_open(&e, NULL);
    struct ibv_qp_init_attr_ex a = {.send_cq = e.cq,
                                    .recv_cq = e.rcq,
                                    .cap = {1, 1, 1, 1, 0},
                                    .qp_type = IBV_QPT_UC,
                                    .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                    .pd = e.pd,
                                    .send_ops_flags = IBV_QP_EX_WITH_RDMA_READ};
    errno = 0;
    CHECK(!ibv_create_qp_ex(e.ctx, &a));
    CHECK_INT(errno, EOPNOTSUPP);
    a.qp_type = IBV_QPT_RC;
    a.send_ops_flags = IBV_QP_EX_WITH_TSO;
    errno = 0;
    CHECK(!ibv_create_qp_ex(e.ctx, &a));
    CHECK_INT(errno, EOPNOTSUPP);
    end_close(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_extended_queue_says_enoent),
        cmocka_unit_test(builders_post_what_setters_filled),
        cmocka_unit_test(readers_tell_what_poll_cq_tells),
        cmocka_unit_test(stamps_are_of_their_moment),
        cmocka_unit_test(abort_and_errors_publish_nothing),
        cmocka_unit_test(a_failed_completion_reads_alike_in_both_forms),
        cmocka_unit_test(a_queue_without_builders_has_no_extended_form),
        cmocka_unit_test(operations_that_a_service_has_not_fail_the_creation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
