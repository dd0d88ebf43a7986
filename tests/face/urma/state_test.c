// SPDX-License-Identifier: MIT
// States of queues, what happens to requests in them, and the marks that tell that a queue has come to rest.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "face/urma/lib/uend.h"

#define RESET URMA_JETTY_STATE_RESET
#define READY URMA_JETTY_STATE_READY
#define SUSPENDED URMA_JETTY_STATE_SUSPENDED
#define ERROR URMA_JETTY_STATE_ERROR

static urma_jetty_state_t state_of(struct uend *e)
{
    urma_jetty_attr_t ja;
    urma_jetty_cfg_t jc;
    urma_jfs_attr_t sa;
    urma_jfs_cfg_t sc;

    if (e->jfs) {
        CHECK_INT(urma_query_jfs(e->jfs, &sc, &sa), 0);
        return sa.state;
    }
    CHECK_INT(urma_query_jetty(e->jetty, &jc, &ja), 0);
    return ja.state;
}

static urma_status_t go(struct uend *e, urma_jetty_state_t to)
{
    urma_jetty_attr_t ja = {.mask = JETTY_STATE, .state = to};
    urma_jfs_attr_t sa = {.mask = JFS_STATE, .state = to};

    return e->jfs ? urma_modify_jfs(e->jfs, &sa) : urma_modify_jetty(e->jetty, &ja);
}

static void lead_to(struct uend *e, urma_jetty_state_t state)
{
    if (state == SUSPENDED)
        CHECK_INT(go(e, SUSPENDED), 0);
    if (state == ERROR || state == RESET)
        CHECK_INT(go(e, ERROR), 0);
    if (state == RESET)
        CHECK_INT(go(e, RESET), 0);
    CHECK_INT(state_of(e), state);
}

// The table of the guide: row from, column to.
static const bool may[4][4] = {
    [RESET] = {[RESET] = true, [READY] = true},
    [READY] = {[READY] = true, [SUSPENDED] = true, [ERROR] = true},
    [SUSPENDED] = {[SUSPENDED] = true, [ERROR] = true},
    [ERROR] = {[ERROR] = true, [RESET] = true},
};

static void every_change_of_state_is_allowed_or_refused_as_the_table_says(void **state)
{
    static const struct uend_options kinds[] = {{.mode = URMA_TM_RM},
                                                {.mode = URMA_TM_RC},
                                                {.mode = URMA_TM_UM},
                                                {.mode = URMA_TM_RM, .halves = true}};

    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int from = 0; from < 4; from++)
            for (int to = 0; to < 4; to++) {
                struct uend l, r;
                upair_open(&l, &r, &kinds[k]);
                lead_to(&l, (urma_jetty_state_t)from);
                urma_status_t got = go(&l, (urma_jetty_state_t)to), expected = may[from][to] ? 0 : URMA_FAIL;
                if (got != expected || (int)state_of(&l) != (may[from][to] ? to : from))
                    check_failed(__FILE__, __LINE__, "kind %zu, state %d to %d: expected %d, got %d, now %d",
                                 k, from, to, expected, got, (int)state_of(&l));
                upair_close(&l, &r);
            }
}

static void expect_mark(struct uend *e, urma_cr_status_t status)
{
    urma_cr_t cr;

    if (!ucr_poll(e->jfc, &cr, 5000))
        check_failed(__FILE__, __LINE__, "expected the mark of status %d, none came", (int)status);
    CHECK_INT(cr.status, status);
    CHECK_INT(cr.flag.bs.suspend_done, 0); // set on real completions only: user_ctx of a mark means nothing
    CHECK_INT(cr.flag.bs.flush_err_done, 0);
    CHECK_INT(cr.flag.bs.s_r, 0);
    CHECK_INT(cr.local_id, e->jfs ? e->jfs->jfs_id.id : e->jetty->jetty_id.id);
}

// ---- p6, p7: in ERROR what was posted is flushed, and then the mark comes

static void p7_the_mark_comes_behind_everything_that_was_posted(void **state)
{
    static const urma_transport_mode_t modes[] = {URMA_TM_RM, URMA_TM_RC};
    struct uend l, r;
    urma_cr_t cr[4];
    struct uwr w;

    (void)state;
    for (size_t m = 0; m < 2; m++) {
        struct uend_options o = {.mode = modes[m]};
        upair_open(&l, &r, &o);
        uend_wr(&l, &w, URMA_OPC_SEND, 0, 0, 8); // nobody receives: it waits, and the rest behind it
        for (unsigned i = 0; i < 4; i++) {
            w.wr.user_ctx = i;
            w.wr.flag.bs.complete_enable = i % 2;
            CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
        }
        ucr_expect_empty(l.jfc, 5);
        CHECK_INT(go(&l, ERROR), 0);
        for (unsigned i = 0; i < 4; i++)
            ucr_expect(l.jfc, i, URMA_CR_WR_FLUSH_ERR, NULL);
        expect_mark(&l, URMA_CR_WR_FLUSH_ERR_DONE);
        ucr_expect_empty(l.jfc, 5); // p6: one mark for one arrival
        CHECK_INT(l.jetty ? urma_flush_jetty(l.jetty, 4, cr) : 0, 0);
        CHECK_INT(go(&l, RESET), 0);
        CHECK_INT(go(&l, READY), 0);
        CHECK_INT(uend_recv(&r, 9, 0, 8), 0);
        w.wr.user_ctx = 8;
        CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
        ucr_expect(l.jfc, 8, URMA_CR_SUCCESS, NULL); // it lives again
        ucr_expect(r.rjfc, 9, URMA_CR_SUCCESS, NULL);
        upair_close(&l, &r);
    }
}

// ---- p8: suspended by an error, the rest is fetched by the program

static void p8_what_a_suspended_queue_never_began_is_fetched_by_flush(void **state)
{
    static const struct uend_options kinds[] = {
        {.mode = URMA_TM_RM, .flag = {.bs = {.error_suspend = 1}}},
        {.mode = URMA_TM_RC, .flag = {.bs = {.error_suspend = 1}}},
        {.mode = URMA_TM_RM, .halves = true, .flag = {.bs = {.error_suspend = 1}}}};
    struct uend l, r;
    struct uwr w[6];
    urma_cr_t cr[8];

    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        upair_open(&l, &r, &kinds[k]);
        for (unsigned i = 0; i < 6; i++) {
            uend_wr(&l, &w[i], URMA_OPC_WRITE, i, i * 8, 8);
            w[i].wr.next = i < 5 ? &w[i + 1].wr : NULL;
        }
        w[1].remote[0].addr += 1u << 20; // beyond the segment
        CHECK_INT(uend_post(&l, &w[0].wr, NULL), 0);
        ucr_expect(l.jfc, 0, URMA_CR_SUCCESS, NULL);
        ucr_expect(l.jfc, 1, URMA_CR_REM_ACCESS_ABORT_ERR, NULL);
        int early = l.jfs ? urma_flush_jfs(l.jfs, 8, cr) : urma_flush_jetty(l.jetty, 8, cr);
        CHECK_INT(early, 0); // the mark was not polled yet
        expect_mark(&l, URMA_CR_WR_SUSPEND_DONE);
        CHECK_INT(state_of(&l), SUSPENDED);
        int got = l.jfs ? urma_flush_jfs(l.jfs, 3, cr) : urma_flush_jetty(l.jetty, 3, cr);
        CHECK_INT(got, 3);
        got = l.jfs ? urma_flush_jfs(l.jfs, 8, cr + 3) : urma_flush_jetty(l.jetty, 8, cr + 3);
        CHECK_INT(got, 1);
        for (unsigned i = 0; i < 4; i++) {
            CHECK_INT(cr[i].user_ctx, 2 + i);
            CHECK_INT(cr[i].status, URMA_CR_WR_UNHANDLED);
            CHECK_INT(cr[i].completion_len, 8);
        }
        ucr_expect_empty(l.jfc, 5);
        upair_close(&l, &r);
    }
}

static void without_error_suspend_rm_goes_on_and_rc_stops(void **state)
{
    struct uend l, r;
    struct uwr w[3];

    (void)state;
    for (unsigned rc = 0; rc < 2; rc++) {
        struct uend_options o = {.mode = rc ? URMA_TM_RC : URMA_TM_RM};
        upair_open(&l, &r, &o);
        for (unsigned i = 0; i < 3; i++) {
            uend_wr(&l, &w[i], URMA_OPC_WRITE, i, i * 8, 8);
            w[i].wr.next = i < 2 ? &w[i + 1].wr : NULL;
        }
        w[1].remote[0].addr += 1u << 20;
        CHECK_INT(uend_post(&l, &w[0].wr, NULL), 0);
        ucr_expect(l.jfc, 0, URMA_CR_SUCCESS, NULL);
        ucr_expect(l.jfc, 1, URMA_CR_REM_ACCESS_ABORT_ERR, NULL);
        ucr_expect(l.jfc, 2, rc ? URMA_CR_WR_FLUSH_ERR : URMA_CR_SUCCESS, NULL);
        if (rc)
            expect_mark(&l, URMA_CR_WR_FLUSH_ERR_DONE);
        CHECK_INT(state_of(&l), rc ? ERROR : READY);
        upair_close(&l, &r);
    }
}

// ---- what ends with a connection, and with a RESET

static void unbinding_flushes_what_was_posted_and_the_jetty_stays(void **state)
{
    struct uend l, r;
    struct uwr w;

    (void)state;
    upair_open(&l, &r, NULL);
    uend_wr(&l, &w, URMA_OPC_SEND, 0, 0, 8); // nobody receives: it waits, and the rest behind it
    for (unsigned i = 0; i < 3; i++) {
        w.wr.user_ctx = i;
        CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
    }
    ucr_expect_empty(l.jfc, 5);
    CHECK_INT(urma_unbind_jetty(l.jetty), 0);
    for (unsigned i = 0; i < 3; i++)
        ucr_expect(l.jfc, i, URMA_CR_WR_FLUSH_ERR, NULL);
    CHECK_INT(state_of(&l), READY);
    CHECK_INT(uend_post(&l, &w.wr, NULL), URMA_EINVAL); // bound to nobody
    CHECK_INT(urma_bind_jetty(l.jetty, l.target), 0);
    CHECK_INT(uend_recv(&r, 9, 0, 8), 0);
    w.wr.user_ctx = 8;
    CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
    ucr_expect(l.jfc, 8, URMA_CR_SUCCESS, NULL);
    ucr_expect(r.rjfc, 9, URMA_CR_SUCCESS, NULL);
    ucr_expect_empty(r.rjfc, 5);
    upair_close(&l, &r);
}

static urma_status_t set_jfr(struct uend *e, urma_jfr_state_t to)
{
    urma_jfr_attr_t attr = {.mask = JFR_STATE, .state = to};

    return urma_modify_jfr(e->jfr, &attr);
}

static void a_jfr_that_is_reset_forgets_its_receives(void **state)
{
    struct uend_options o = {.mode = URMA_TM_RM, .halves = true};
    struct uend l, r;
    struct uwr w;

    (void)state;
    upair_open(&l, &r, &o);
    CHECK_INT(uend_recv(&r, 1, 0, 8), 0);
    CHECK_INT(uend_recv(&r, 2, 0, 8), 0);
    CHECK_INT(set_jfr(&r, URMA_JFR_STATE_ERROR), 0);
    CHECK_INT(set_jfr(&r, URMA_JFR_STATE_RESET), 0);
    CHECK_INT(set_jfr(&r, URMA_JFR_STATE_READY), 0);
    for (unsigned i = 0; i < 16; i++) // its whole depth is free again
        CHECK_INT(uend_recv(&r, 9, 0, 8), 0);
    uend_wr(&l, &w, URMA_OPC_SEND, 3, 0, 8);
    CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
    ucr_expect(l.jfc, 3, URMA_CR_SUCCESS, NULL);
    ucr_expect(r.rjfc, 9, URMA_CR_SUCCESS, NULL);
    upair_close(&l, &r);
}

static void a_jfr_that_a_jetty_receives_through_is_not_reset(void **state)
{
    struct uend_options o = {.mode = URMA_TM_RM};
    urma_jfr_attr_t attr = {.mask = JFR_RX_THRESHOLD, .rx_threshold = 16};
    struct uend e;

    (void)state;
    uend_open(&e, &o);
    CHECK_INT(urma_modify_jfr(e.jfr, &attr), URMA_EINVAL); // not below the depth
    attr.rx_threshold = 15;
    CHECK_INT(urma_modify_jfr(e.jfr, &attr), 0);
    CHECK_INT(set_jfr(&e, URMA_JFR_STATE_ERROR), 0);
    CHECK_INT(set_jfr(&e, URMA_JFR_STATE_RESET), URMA_FAIL);
    uend_close(&e);
}

// ---- SEND with invalidate

static void a_message_that_fails_takes_no_segment_away(void **state)
{
    struct uend_options o = {.mode = URMA_TM_RM};
    struct uend l, r;
    struct uwr w;

    (void)state;
    upair_open(&l, &r, &o);
    CHECK_INT(uend_recv(&r, 5, 0, 4), 0);
    uend_wr(&l, &w, URMA_OPC_SEND_INVALIDATE, 1, 0, 8);
    w.wr.send.tseg = l.there;
    CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
    ucr_expect(l.jfc, 1, URMA_CR_REM_RESP_LEN_ERR, NULL);
    ucr_expect(r.rjfc, 5, URMA_CR_LOC_LEN_ERR, NULL);
    uend_wr(&l, &w, URMA_OPC_WRITE, 2, 0, 8);
    CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
    ucr_expect(l.jfc, 2, URMA_CR_SUCCESS, NULL);
    upair_close(&l, &r);
}

static void send_with_invalidate_takes_the_segment_away(void **state)
{
    struct uend_options o = {.mode = URMA_TM_RM};
    struct uend l, r;
    urma_cr_t cr;
    struct uwr w;

    (void)state;
    upair_open(&l, &r, &o);
    urma_seg_cfg_t cfg = {.va = (uintptr_t)r.buf, .len = 4096, .token_value = {77}};
    cfg.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
    cfg.flag.bs.access = ALL_ACCESS;
    urma_target_seg_t *lent = urma_register_seg(r.ctx, &cfg), *there;
    urma_token_t token = {77};
    CHECK(lent != NULL);
    there =
        urma_import_seg(l.ctx, &lent->seg, &token, 0, (urma_import_seg_flag_t){.bs = {.access = ALL_ACCESS}});
    CHECK(there != NULL);
    uend_wr(&l, &w, URMA_OPC_WRITE, 1, 0, 8);
    w.remote[0].tseg = there;
    CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
    ucr_expect(l.jfc, 1, URMA_CR_SUCCESS, NULL);
    CHECK_INT(uend_recv(&r, 5, 8192, 64), 0);
    uend_wr(&l, &w, URMA_OPC_SEND_INVALIDATE, 2, 0, 8);
    w.wr.send.tseg = there;
    CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
    ucr_expect(l.jfc, 2, URMA_CR_SUCCESS, NULL);
    ucr_expect(r.rjfc, 5, URMA_CR_SUCCESS, &cr);
    CHECK_INT(cr.opcode, URMA_CR_OPC_SEND_WITH_INV);
    CHECK_INT(cr.invalid_token.token_id, lent->seg.token_id);
    CHECK_INT(cr.invalid_token.token_value.token, 77);
    uend_wr(&l, &w, URMA_OPC_WRITE, 3, 0, 8);
    w.remote[0].tseg = there;
    CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
    ucr_expect(l.jfc, 3, URMA_CR_REM_ACCESS_ABORT_ERR, NULL);
    CHECK_INT(urma_unimport_seg(there), 0);
    CHECK_INT(urma_unregister_seg(lent), 0);
    upair_close(&l, &r);
}

// ---- token ids

static void a_token_id_exists_before_its_segment_and_after_it(void **state)
{
    struct uend_options o = {.mode = URMA_TM_RM};
    urma_target_seg_t *seg;
    urma_token_id_t *id;
    struct uend e;

    (void)state;
    uend_open(&e, &o);
    id = urma_alloc_token_id(e.ctx);
    CHECK(id != NULL);
    urma_seg_cfg_t cfg = {.va = (uintptr_t)e.buf, .len = 64, .token_id = id};
    cfg.flag.bs.token_id_valid = 1;
    for (unsigned i = 0; i < 3; i++) {
        seg = urma_register_seg(e.ctx, &cfg);
        CHECK(seg && seg->seg.token_id == id->token_id && seg->seg.attr.bs.user_token_id);
        errno = 0;
        CHECK(urma_register_seg(e.ctx, &cfg) == NULL && errno == EINVAL); // one segment at a time
        CHECK_INT(urma_free_token_id(id), URMA_EINVAL);
        CHECK_INT(urma_unregister_seg(seg), 0);
    }
    CHECK_INT(urma_free_token_id(id), 0);
    uend_close(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_change_of_state_is_allowed_or_refused_as_the_table_says),
        cmocka_unit_test(p7_the_mark_comes_behind_everything_that_was_posted),
        cmocka_unit_test(p8_what_a_suspended_queue_never_began_is_fetched_by_flush),
        cmocka_unit_test(without_error_suspend_rm_goes_on_and_rc_stops),
        cmocka_unit_test(unbinding_flushes_what_was_posted_and_the_jetty_stays),
        cmocka_unit_test(a_jfr_that_is_reset_forgets_its_receives),
        cmocka_unit_test(a_jfr_that_a_jetty_receives_through_is_not_reset),
        cmocka_unit_test(a_message_that_fails_takes_no_segment_away),
        cmocka_unit_test(send_with_invalidate_takes_the_segment_away),
        cmocka_unit_test(a_token_id_exists_before_its_segment_and_after_it),
    };

    return cmocka_run_group_tests_name("urma states", tests, uend_keep_device, uend_let_device_go);
}
