// SPDX-License-Identifier: MIT
// Pitfalls of programs that have no better place: how many CRs one poll gives, what an import may leave out.
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(p4_one_poll_gives_as_many_crs_as_there_are),
        cmocka_unit_test(p15_whatever_flags_an_import_has_a_message_is_received_or_refused),
    };

    return cmocka_run_group_tests_name("urma pitfalls", tests, NULL, NULL);
}
