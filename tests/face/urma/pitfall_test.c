// SPDX-License-Identifier: MIT
// Pitfalls of programs that have no better place. tests/abi/urma_coverage.sh sees that each has its test.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "face/urma/lib/uend.h"

// Some devices fail a poll of more than 16; here a poll gives what there is.
static void p4_one_poll_gives_as_many_crs_as_there_are(void **state)
{
    enum { MANY = 40 };
    struct uend_options o = {.mode = URMA_TM_RM, .depth = 64};
    urma_cr_t cr[64];
    struct uend l, r;
    struct uwr w;
    int most = 0;

    (void)state;
    upair_open(&l, &r, &o);
    // A poll may come between two completions: one of several tries finds all of them.
    for (unsigned tries = 0; most < MANY && tries < 100; tries++) {
        int got = 0;
        uend_wr(&l, &w, URMA_OPC_WRITE, tries, 0, 8);
        for (unsigned i = 0; i < MANY; i++)
            CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
        while (got < MANY) {
            int n = urma_poll_jfc(l.jfc, 64, cr);
            CHECK(n >= 0);
            most = n > most ? n : most;
            got += n;
        }
        CHECK_INT(got, MANY);
    }
    CHECK_INT(most, MANY);
    upair_close(&l, &r);
}

// With an import whose flags miss something a message may be refused, and then the sender is told; it is
// never sent well and received by nobody.
static void p15_whatever_flags_an_import_has_a_message_is_received_or_refused(void **state)
{
    urma_token_t token = {UEND_TOKEN};
    struct uend l, r;
    urma_cr_t cr;
    struct uwr w;

    (void)state;
    for (unsigned n = 0; n < 16; n++) {
        struct uend_options o = {.mode = URMA_TM_RM, .halves = true, .open = n & 1};
        bool shown = n & 2;
        upair_open(&l, &r, &o);
        urma_rjfr_t name = uend_address(&r).rjfr;
        name.flag.value = 0;
        name.flag.bs.token_policy = shown ? URMA_TOKEN_PLAIN_TEXT : URMA_TOKEN_NONE;
        name.flag.bs.order_type = n & 4 ? URMA_OI : URMA_DEF_ORDER;
        name.flag.bs.share_tp = n >> 3 & 1;
        urma_target_jetty_t *t = urma_import_jfr(l.ctx, &name, &token);
        CHECK(t != NULL);
        CHECK_INT(uend_recv(&r, n, 0, 64), 0);
        uend_wr(&l, &w, URMA_OPC_SEND, n, 0, 8);
        w.wr.tjetty = t;
        CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
        CHECK(ucr_poll(l.jfc, &cr, 5000));
        if (o.open || shown)
            CHECK_INT(cr.status, URMA_CR_SUCCESS);
        else
            CHECK(cr.status != URMA_CR_SUCCESS);
        if (cr.status == URMA_CR_SUCCESS)
            ucr_expect(r.rjfc, n, URMA_CR_SUCCESS, NULL);
        else
            ucr_expect_empty(r.rjfc, 1);
        CHECK_INT(urma_unimport_jfr(t), 0);
        upair_close(&l, &r);
    }
}

// Programs make a pointer of user_ctx. The mark of a queue that came to rest belongs to no request: its flags
// say so, and it has none.
static void p6_a_mark_has_no_user_ctx_and_its_flags_say_so(void **state)
{
    static const struct uend_options kinds[] = {{.mode = URMA_TM_RM},
                                                {.mode = URMA_TM_RM, .flag = {.bs = {.error_suspend = 1}}}};
    static const urma_cr_status_t marks[] = {URMA_CR_WR_FLUSH_ERR_DONE, URMA_CR_WR_SUSPEND_DONE};
    urma_jetty_attr_t to_error = {.mask = JETTY_STATE, .state = URMA_JETTY_STATE_ERROR};
    struct uend l, r;
    urma_cr_t cr;
    struct uwr w;

    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        upair_open(&l, &r, &kinds[k]);
        uend_wr(&l, &w, URMA_OPC_WRITE, UINT64_MAX, 0, 8);
        w.remote[0].addr += 1u << 20; // beyond the segment
        CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
        ucr_expect(l.jfc, UINT64_MAX, URMA_CR_REM_ACCESS_ABORT_ERR, NULL);
        if (k == 0)
            CHECK_INT(urma_modify_jetty(l.jetty, &to_error), 0);
        memset(&cr, 0xff, sizeof cr);
        CHECK(ucr_poll(l.jfc, &cr, 5000));
        CHECK_INT(cr.status, marks[k]);
        CHECK(cr.user_ctx == 0 && !cr.flag.bs.suspend_done && !cr.flag.bs.flush_err_done);
        upair_close(&l, &r);
    }
}

// Without a target a WR is refused. In RC the one that is bound is meant, whatever the WR names, as in UMDK's
// driver.
static void p11_each_wr_names_its_target_and_in_rc_it_is_the_bound_one(void **state)
{
    static const urma_opcode_t ops[] = {URMA_OPC_WRITE, URMA_OPC_READ, URMA_OPC_SEND, URMA_OPC_FADD};
    static const urma_transport_mode_t modes[] = {URMA_TM_RM, URMA_TM_UM};
    struct uend_options rc = {.mode = URMA_TM_RC};
    urma_token_t token = {UEND_TOKEN};
    struct uend_address address;
    urma_target_jetty_t *third;
    struct uend l, r, other;
    urma_jfs_wr_t *bad;
    struct uwr w;

    (void)state;
    for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
        struct uend_options o = {.mode = modes[m]};
        upair_open(&l, &r, &o);
        for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
            uend_wr(&l, &w, ops[i], i, 0, 8);
            w.wr.tjetty = NULL;
            bad = NULL;
            CHECK_INT(uend_post(&l, &w.wr, &bad), URMA_EINVAL);
            CHECK(bad == &w.wr);
        }
        ucr_expect_empty(l.jfc, 1);
        upair_close(&l, &r);
    }
    upair_open(&l, &r, &rc);
    uend_open(&other, &rc);
    address = uend_address(&other);
    third = urma_import_jetty(l.ctx, &address.rjetty, &token);
    CHECK(third != NULL);
    CHECK_INT(urma_bind_jetty(l.jetty, third), URMA_EEXIST);
    for (unsigned named = 0; named < 2; named++) {
        CHECK_INT(uend_recv(&r, named, 0, 64), 0);
        CHECK_INT(uend_recv(&other, named, 0, 64), 0);
        uend_wr(&l, &w, URMA_OPC_SEND, named, 0, 8);
        w.wr.tjetty = named ? third : NULL;
        CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
        ucr_expect(l.jfc, named, URMA_CR_SUCCESS, NULL);
        ucr_expect(r.rjfc, named, URMA_CR_SUCCESS, NULL);
    }
    ucr_expect_empty(other.rjfc, 1);
    CHECK_INT(urma_unimport_jetty(third), 0);
    uend_close(&other);
    upair_close(&l, &r);
}

// A send's CR must not be taken for a receive's by who looks at the opcode first.
static void p17_the_opcode_of_a_cr_is_a_receives_alone(void **state)
{
    static const struct {
        urma_opcode_t op;
        urma_cr_opcode_t received; // FLUSH_WRITE: nothing is
    } of[] = {
        {URMA_OPC_WRITE, URMA_CR_OPC_FLUSH_WRITE},
        {URMA_OPC_READ, URMA_CR_OPC_FLUSH_WRITE},
        {URMA_OPC_FADD, URMA_CR_OPC_FLUSH_WRITE},
        {URMA_OPC_SEND, URMA_CR_OPC_SEND},
        {URMA_OPC_SEND_IMM, URMA_CR_OPC_SEND_WITH_IMM},
        {URMA_OPC_WRITE_IMM, URMA_CR_OPC_WRITE_WITH_IMM},
        {URMA_OPC_SEND_INVALIDATE, URMA_CR_OPC_SEND_WITH_INV}, // last: it takes the segment away
    };
    struct uend_options o = {.mode = URMA_TM_RM};
    struct uend l, r;
    urma_cr_t cr;
    struct uwr w;

    (void)state;
    upair_open(&l, &r, &o);
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        bool received = of[i].received != URMA_CR_OPC_FLUSH_WRITE;
        uend_wr(&l, &w, of[i].op, i, 0, 8);
        if (of[i].op == URMA_OPC_SEND_INVALIDATE)
            w.wr.send.tseg = l.there;
        if (received)
            CHECK_INT(uend_recv(&r, i, 0, 64), 0);
        CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
        ucr_expect(l.jfc, i, URMA_CR_SUCCESS, &cr);
        CHECK(cr.flag.bs.s_r == 0 && cr.opcode > URMA_CR_OPC_FLUSH_WRITE);
        if (received) {
            ucr_expect(r.rjfc, i, URMA_CR_SUCCESS, &cr);
            CHECK(cr.flag.bs.s_r == 1 && cr.opcode == of[i].received);
        } else {
            ucr_expect_empty(r.rjfc, 1);
        }
    }
    upair_close(&l, &r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(p4_one_poll_gives_as_many_crs_as_there_are),
        cmocka_unit_test(p6_a_mark_has_no_user_ctx_and_its_flags_say_so),
        cmocka_unit_test(p11_each_wr_names_its_target_and_in_rc_it_is_the_bound_one),
        cmocka_unit_test(p17_the_opcode_of_a_cr_is_a_receives_alone),
        cmocka_unit_test(p15_whatever_flags_an_import_has_a_message_is_received_or_refused),
    };

    return cmocka_run_group_tests_name("urma pitfalls", tests, NULL, NULL);
}
