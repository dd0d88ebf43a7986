// SPDX-License-Identifier: MIT
// Memory windows of both types: a right that is given by a request and taken back by a request.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "face/lib/ends.h"

// The owner of the memory is r; l uses the window.
struct fixture {
    struct end l, r;
    struct ibv_mr *region; // of r, with the right to bind
    struct ibv_mw *mw;
};

static void open_with(struct fixture *f, enum ibv_mw_type type, const struct end_options *opt)
{
    int access = FULL_ACCESS | IBV_ACCESS_MW_BIND;

    pair_open(&f->l, &f->r, opt);
    f->region = ibv_reg_mr(f->r.pd, f->r.buf, f->r.opt.bytes, access);
    f->mw = ibv_alloc_mw(f->r.pd, type);
    CHECK(f->region && f->mw);
}

static void open_mw(struct fixture *f, enum ibv_mw_type type)
{
    open_with(f, type, NULL);
}

static void close_mw(struct fixture *f)
{
    CHECK_INT(ibv_dealloc_mw(f->mw), 0);
    CHECK_INT(ibv_dereg_mr(f->region), 0);
    pair_close(&f->l, &f->r);
}

static void bind2(struct fixture *f, uint32_t rkey, size_t offset, size_t length, unsigned access,
                  enum ibv_wc_status expected)
{
    struct ibv_send_wr wr = {.wr_id = 80,
                             .opcode = IBV_WR_BIND_MW,
                             .send_flags = IBV_SEND_SIGNALED,
                             .bind_mw = {.mw = f->mw,
                                         .rkey = rkey,
                                         .bind_info = {.mr = f->region,
                                                       .addr = (uintptr_t)f->r.buf + offset,
                                                       .length = length,
                                                       .mw_access_flags = access}}};
    struct ibv_wc wc;

    CHECK_INT(post(&f->r, &wr), 0);
    expect_wc(f->r.cq, 80, expected, &wc);
    if (expected == IBV_WC_SUCCESS) {
        CHECK_INT(wc.opcode, IBV_WC_BIND_MW);
        f->mw->rkey = rkey;
    }
}

static void write_through(struct fixture *f, uint32_t rkey, size_t offset, uint32_t n,
                          enum ibv_wc_status expected)
{
    struct ibv_sge sge = end_sge(&f->l, 0, n);
    struct ibv_send_wr wr = send_wr(1, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)f->r.buf + offset, rkey);

    CHECK_INT(post(&f->l, &wr), 0);
    expect_wc(f->l.cq, 1, expected, NULL);
}

static void a_window_shows_its_range_and_no_more(void **state)
{
    struct fixture f;

    (void)state;
    for (unsigned beyond = 0; beyond < 2; beyond++) {
        open_mw(&f, IBV_MW_TYPE_2);
        bind2(&f, ibv_inc_rkey(f.mw->rkey), 128, 64, IBV_ACCESS_REMOTE_WRITE, IBV_WC_SUCCESS);
        memset(f.l.buf, 0x21, 64);
        write_through(&f, f.mw->rkey, 128, 64, IBV_WC_SUCCESS);
        CHECK(f.r.buf[128] == 0x21 && f.r.buf[191] == 0x21);
        write_through(&f, f.mw->rkey, beyond ? 129 : 127, 64, IBV_WC_REM_ACCESS_ERR);
        CHECK(f.r.buf[127] == 0 && f.r.buf[192] == 0);
        close_mw(&f);
    }
}

static void a_window_gives_only_the_rights_it_was_bound_with(void **state)
{
    struct fixture f;

    (void)state;
    open_mw(&f, IBV_MW_TYPE_2);
    bind2(&f, ibv_inc_rkey(f.mw->rkey), 0, 64, IBV_ACCESS_REMOTE_READ, IBV_WC_SUCCESS);
    write_through(&f, f.mw->rkey, 0, 8, IBV_WC_REM_ACCESS_ERR);
    close_mw(&f);
}

static void an_unbound_window_is_refused(void **state)
{
    struct fixture f;

    (void)state;
    open_mw(&f, IBV_MW_TYPE_2);
    write_through(&f, f.mw->rkey, 0, 8, IBV_WC_REM_ACCESS_ERR);
    close_mw(&f);
}

static void an_old_key_of_a_window_is_refused(void **state)
{
    struct fixture f;

    (void)state;
    open_mw(&f, IBV_MW_TYPE_1);
    struct ibv_mw_bind bind = {.wr_id = 5,
                               .send_flags = IBV_SEND_SIGNALED,
                               .bind_info = {.mr = f.region,
                                             .addr = (uintptr_t)f.r.buf,
                                             .length = 64,
                                             .mw_access_flags = IBV_ACCESS_REMOTE_WRITE}};
    uint32_t before = f.mw->rkey, first;
    CHECK_INT(ibv_bind_mw(f.r.qp, f.mw, &bind), 0);
    expect_wc(f.r.cq, 5, IBV_WC_SUCCESS, NULL);
    first = f.mw->rkey;
    CHECK(first != before);
    write_through(&f, first, 0, 8, IBV_WC_SUCCESS);
    CHECK_INT(ibv_bind_mw(f.r.qp, f.mw, &bind), 0);
    expect_wc(f.r.cq, 5, IBV_WC_SUCCESS, NULL);
    CHECK(f.mw->rkey != first);
    write_through(&f, f.mw->rkey, 0, 8, IBV_WC_SUCCESS);
    write_through(&f, first, 0, 8, IBV_WC_REM_ACCESS_ERR);
    close_mw(&f);
}

// man dereg_mr: fails while a window is bound to the region.
static void a_region_with_a_bound_window_is_busy(void **state)
{
    struct fixture f;

    (void)state;
    open_mw(&f, IBV_MW_TYPE_2);
    bind2(&f, ibv_inc_rkey(f.mw->rkey), 0, 64, IBV_ACCESS_REMOTE_WRITE, IBV_WC_SUCCESS);
    CHECK_INT(ibv_dereg_mr(f.region), EBUSY);
    struct ibv_send_wr inv = {.wr_id = 6,
                              .opcode = IBV_WR_LOCAL_INV,
                              .send_flags = IBV_SEND_SIGNALED,
                              .invalidate_rkey = f.mw->rkey};
    struct ibv_wc wc;
    CHECK_INT(post(&f.r, &inv), 0);
    expect_wc(f.r.cq, 6, IBV_WC_SUCCESS, &wc);
    CHECK_INT(wc.opcode, IBV_WC_LOCAL_INV);
    write_through(&f, f.mw->rkey, 0, 8, IBV_WC_REM_ACCESS_ERR);
    close_mw(&f);
}

// C26: the receive tells which key was invalidated.
static void a_send_with_invalidate_takes_the_right_back(void **state)
{
    struct fixture f;
    struct ibv_wc wc;

    (void)state;
    open_mw(&f, IBV_MW_TYPE_2);
    bind2(&f, ibv_inc_rkey(f.mw->rkey), 0, 64, IBV_ACCESS_REMOTE_WRITE, IBV_WC_SUCCESS);
    write_through(&f, f.mw->rkey, 0, 8, IBV_WC_SUCCESS);
    struct ibv_sge sge = end_sge(&f.l, 0, 4);
    struct ibv_send_wr wr = send_wr(2, IBV_WR_SEND_WITH_INV, &sge, 0, 0);
    wr.invalidate_rkey = f.mw->rkey;
    CHECK_INT(post_recv(&f.r, 3, 1000, 4), 0);
    CHECK_INT(post(&f.l, &wr), 0);
    expect_wc(f.l.cq, 2, IBV_WC_SUCCESS, NULL);
    expect_wc(f.r.rcq, 3, IBV_WC_SUCCESS, &wc);
    CHECK_INT(wc.wc_flags, IBV_WC_WITH_INV);
    CHECK_INT(wc.invalidated_rkey, f.mw->rkey);
    write_through(&f, f.mw->rkey, 0, 8, IBV_WC_REM_ACCESS_ERR);
    close_mw(&f);
}

static void a_bind_that_is_not_allowed_fails(void **state)
{
    struct fixture f;

    (void)state;
    open_mw(&f, IBV_MW_TYPE_2);
    struct ibv_mr *good = f.region;
    f.region = f.r.mr; // has no MW_BIND right
    bind2(&f, ibv_inc_rkey(f.mw->rkey), 0, 64, IBV_ACCESS_REMOTE_WRITE, IBV_WC_MW_BIND_ERR);
    CHECK_INT(end_state(&f.r), IBV_QPS_ERR);
    f.region = good;
    close_mw(&f);
}

// Its queue ends with that bind, and answers nobody then: not that something was refused, nor anything else.
static void a_window_of_type_2_is_not_bound_twice(void **state)
{
    struct end_options opt = {.timeout = 8};
    struct fixture f;
    uint32_t key;

    (void)state;
    open_with(&f, IBV_MW_TYPE_2, &opt);
    key = ibv_inc_rkey(f.mw->rkey);
    bind2(&f, key, 0, 64, IBV_ACCESS_REMOTE_WRITE, IBV_WC_SUCCESS);
    write_through(&f, key, 0, 8, IBV_WC_SUCCESS);
    bind2(&f, ibv_inc_rkey(key), 0, 64, IBV_ACCESS_REMOTE_WRITE, IBV_WC_MW_BIND_ERR);
    CHECK_INT(end_state(&f.r), IBV_QPS_ERR);
    CHECK_INT(end_state(&f.l), IBV_QPS_RTS);
    write_through(&f, key, 0, 8, IBV_WC_RETRY_EXC_ERR);
    close_mw(&f);
}

// A full queue refuses the bind: the window is as it was, and so is its key.
static void a_bind_that_is_not_posted_leaves_the_key(void **state)
{
    struct end_options opt = {.send_wr = 2};
    struct fixture f;
    struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_RDMA_WRITE};
    uint32_t key;

    (void)state;
    open_with(&f, IBV_MW_TYPE_2, &opt);
    struct ibv_send_wr bind = {.opcode = IBV_WR_BIND_MW,
                               .bind_mw = {.mw = f.mw,
                                           .rkey = ibv_inc_rkey(f.mw->rkey),
                                           .bind_info = {.mr = f.region,
                                                         .addr = (uintptr_t)f.r.buf,
                                                         .length = 64,
                                                         .mw_access_flags = IBV_ACCESS_REMOTE_WRITE}}};
    key = f.mw->rkey;
    for (int i = 0; i < 2; i++)
        CHECK_INT(post(&f.r, &wr), 0);
    CHECK_INT(ibv_post_send(f.r.qp, &bind, &bad), ENOMEM);
    CHECK(bad == &bind);
    CHECK_INT(f.mw->rkey, key);
    close_mw(&f);
}

static void a_section_that_is_aborted_leaves_the_keys(void **state)
{
    struct end_options opt = {.builders = true};
    struct fixture f;

    (void)state;
    open_with(&f, IBV_MW_TYPE_2, &opt);
    struct ibv_qp_ex *q = ibv_qp_to_qp_ex(f.r.qp);
    struct ibv_mw_bind_info info = {
        .mr = f.region, .addr = (uintptr_t)f.r.buf, .length = 64, .mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
    struct ibv_mw *other = ibv_alloc_mw(f.r.pd, IBV_MW_TYPE_2);
    uint32_t key = f.mw->rkey, others = other->rkey;
    struct ibv_wc wc;

    q->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_start(q);
    ibv_wr_bind_mw(q, f.mw, ibv_inc_rkey(key), &info);
    ibv_wr_bind_mw(q, other, ibv_inc_rkey(others), &info);
    ibv_wr_bind_mw(q, f.mw, ibv_inc_rkey(f.mw->rkey), &info);
    ibv_wr_abort(q);
    CHECK_INT(f.mw->rkey, key);
    CHECK_INT(other->rkey, others);
    ibv_wr_start(q);
    q->wr_id = 7;
    ibv_wr_bind_mw(q, f.mw, ibv_inc_rkey(key), &info);
    CHECK_INT(ibv_wr_complete(q), 0);
    expect_wc(f.r.cq, 7, IBV_WC_SUCCESS, &wc);
    CHECK_INT(f.mw->rkey, ibv_inc_rkey(key));
    CHECK_INT(ibv_dealloc_mw(other), 0);
    close_mw(&f);
}

// A window that an open section binds stays, and no other section binds it.
static void a_window_in_an_open_section_is_held(void **state)
{
    struct end_options opt = {.builders = true};
    struct fixture f;

    (void)state;
    open_with(&f, IBV_MW_TYPE_2, &opt);
    struct ibv_qp_ex *q = ibv_qp_to_qp_ex(f.r.qp), *other = ibv_qp_to_qp_ex(f.l.qp);
    struct ibv_mw_bind_info info = {
        .mr = f.region, .addr = (uintptr_t)f.r.buf, .length = 64, .mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
    uint32_t key = f.mw->rkey;
    struct ibv_wc wc;

    q->wr_flags = IBV_SEND_SIGNALED;
    q->wr_id = 7;
    ibv_wr_start(q);
    ibv_wr_bind_mw(q, f.mw, ibv_inc_rkey(key), &info);
    CHECK_INT(ibv_dealloc_mw(f.mw), EBUSY);
    ibv_wr_start(other);
    ibv_wr_bind_mw(other, f.mw, ibv_inc_rkey(f.mw->rkey), &info);
    CHECK_INT(ibv_wr_complete(other), EBUSY);
    CHECK_INT(f.mw->rkey, ibv_inc_rkey(key));
    ibv_wr_abort(q);
    CHECK_INT(f.mw->rkey, key);
    ibv_wr_start(q);
    ibv_wr_bind_mw(q, f.mw, ibv_inc_rkey(key), &info);
    CHECK_INT(ibv_wr_complete(q), 0);
    expect_wc(f.r.cq, 7, IBV_WC_SUCCESS, &wc);
    close_mw(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_window_shows_its_range_and_no_more),
        cmocka_unit_test(a_window_gives_only_the_rights_it_was_bound_with),
        cmocka_unit_test(an_unbound_window_is_refused),
        cmocka_unit_test(an_old_key_of_a_window_is_refused),
        cmocka_unit_test(a_region_with_a_bound_window_is_busy),
        cmocka_unit_test(a_send_with_invalidate_takes_the_right_back),
        cmocka_unit_test(a_bind_that_is_not_allowed_fails),
        cmocka_unit_test(a_window_of_type_2_is_not_bound_twice),
        cmocka_unit_test(a_bind_that_is_not_posted_leaves_the_key),
        cmocka_unit_test(a_section_that_is_aborted_leaves_the_keys),
        cmocka_unit_test(a_window_in_an_open_section_is_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
