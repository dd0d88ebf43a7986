// SPDX-License-Identifier: MIT
// Jetty groups: one number for several jettys, by turns or by hint; and events for several completions at
// once.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "face/urma/lib/uend.h"

enum { MEMBERS = 3 };

static const struct uend_options rm = {.mode = URMA_TM_RM};

struct group {
    struct uend home; // its own jetty is no member
    urma_jetty_grp_t *g;
    urma_jfr_t *jfr[MEMBERS];
    urma_jetty_t *member[MEMBERS];
};

static urma_jetty_grp_cfg_t named(const char *name, urma_jetty_grp_policy_t policy)
{
    urma_jetty_grp_cfg_t cfg = {.policy = policy, .token_value = {UEND_TOKEN}};

    snprintf(cfg.name, sizeof cfg.name, "%s", name);
    cfg.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
    return cfg;
}

static void open_group(struct group *s, urma_jetty_grp_policy_t policy)
{
    urma_jetty_grp_cfg_t cfg = named("sinks", policy);

    uend_open(&s->home, &rm);
    s->g = urma_create_jetty_grp(s->home.ctx, &cfg);
    CHECK(s->g != NULL);
    for (unsigned i = 0; i < MEMBERS; i++) {
        urma_jfr_cfg_t rcfg = s->home.jfr->jfr_cfg;
        urma_jetty_cfg_t jcfg = s->home.jetty->jetty_cfg;
        s->jfr[i] = urma_create_jfr(s->home.ctx, &rcfg);
        CHECK(s->jfr[i] != NULL);
        jcfg.shared.jfr = s->jfr[i];
        jcfg.jetty_grp = s->g;
        s->member[i] = urma_create_jetty(s->home.ctx, &jcfg);
        CHECK(s->member[i] != NULL);
    }
    CHECK_INT(s->g->jetty_cnt, MEMBERS);
}

static void close_group(struct group *s)
{
    CHECK_INT(urma_delete_jetty_grp(s->g), URMA_ENOPERM);
    for (unsigned i = 0; i < MEMBERS; i++) {
        CHECK_INT(urma_delete_jetty(s->member[i]), 0);
        CHECK_INT(urma_delete_jfr(s->jfr[i]), 0);
    }
    CHECK_INT(s->g->jetty_cnt, 0);
    CHECK_INT(urma_delete_jetty_grp(s->g), 0);
    uend_close(&s->home);
}

static urma_target_jetty_t *import_group(struct uend *e, const struct group *s)
{
    urma_rjetty_t r = {.jetty_id = s->g->jetty_grp_id,
                       .trans_mode = URMA_TM_RM,
                       .policy = s->g->cfg.policy,
                       .type = URMA_JETTY_GROUP};
    urma_token_t token = {UEND_TOKEN};
    urma_target_jetty_t *t;

    r.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
    t = urma_import_jetty(e->ctx, &r, &token);
    CHECK(t != NULL);
    return t;
}

// Twelve messages to the group; how many did each member get?
static void send_to_group(struct group *s, bool hints, unsigned got[MEMBERS])
{
    urma_target_jetty_t *t;
    urma_jfr_wr_t *bad;
    struct uend e;
    urma_cr_t cr;
    struct uwr w;

    uend_open(&e, &rm);
    t = import_group(&e, s);
    for (unsigned i = 0; i < MEMBERS; i++)
        for (unsigned k = 0; k < 12; k++) {
            urma_sge_t sge = {.addr = (uintptr_t)s->home.buf, .len = 64, .tseg = s->home.seg};
            urma_jfr_wr_t rwr = {.src = {&sge, 1}, .user_ctx = k};
            CHECK_INT(urma_post_jetty_recv_wr(s->member[i], &rwr, &bad), 0);
        }
    for (unsigned i = 0; i < 12; i++) {
        uend_wr(&e, &w, URMA_OPC_SEND, i, 0, 8);
        w.wr.tjetty = t;
        w.wr.send.target_hint = hints ? 1 : 0;
        CHECK_INT(uend_post(&e, &w.wr, NULL), 0);
        ucr_expect(e.jfc, i, URMA_CR_SUCCESS, NULL);
        CHECK(ucr_poll(s->home.rjfc, &cr, 5000));
        CHECK_INT(cr.status, URMA_CR_SUCCESS);
        for (unsigned m = 0; m < MEMBERS; m++)
            got[m] += cr.local_id == s->member[m]->jetty_id.id;
    }
    CHECK_INT(urma_unimport_jetty(t), 0);
    uend_close(&e);
}

static void by_turns_each_member_gets_its_share(void **state)
{
    unsigned got[MEMBERS] = {0};
    struct group s;

    (void)state;
    open_group(&s, URMA_JETTY_GRP_POLICY_RR);
    send_to_group(&s, false, got);
    for (unsigned i = 0; i < MEMBERS; i++)
        CHECK_INT(got[i], 12 / MEMBERS);
    close_group(&s);
}

static void by_hint_one_member_gets_all(void **state)
{
    unsigned got[MEMBERS] = {0}, most = 0;
    struct group s;

    (void)state;
    open_group(&s, URMA_JETTY_GRP_POLICY_HASH_HINT);
    send_to_group(&s, true, got);
    for (unsigned i = 0; i < MEMBERS; i++)
        most = got[i] > most ? got[i] : most;
    CHECK_INT(most, 12);
    close_group(&s);
}

static void a_name_leads_to_one_group_and_a_group_takes_only_its_kind(void **state)
{
    urma_jetty_grp_cfg_t cfg = named("one", URMA_JETTY_GRP_POLICY_RR);
    urma_jetty_grp_t *g, *same;
    urma_jetty_cfg_t jcfg;
    struct uend e, rc;

    (void)state;
    uend_open(&e, &rm);
    uend_open(&rc, NULL);
    g = urma_create_jetty_grp(e.ctx, &cfg);
    same = urma_create_jetty_grp(e.ctx, &cfg);
    CHECK(g && same == g);
    jcfg = rc.jetty->jetty_cfg;
    jcfg.jetty_grp = g;
    errno = 0;
    CHECK(urma_create_jetty(rc.ctx, &jcfg) == NULL && errno == EINVAL); // RC
    cfg.token_value.token++;
    errno = 0;
    CHECK(urma_create_jetty_grp(e.ctx, &cfg) == NULL && errno == EINVAL); // the name, another token
    CHECK_INT(urma_delete_jetty_grp(g), 0);
    CHECK_INT(g->jetty_cnt, 0);
    CHECK_INT(urma_delete_jetty_grp(same), 0); // created twice
    cfg = named("two", URMA_JETTY_GRP_POLICY_RR);
    cfg.token_value.token++;
    g = urma_create_jetty_grp(e.ctx, &cfg);
    CHECK(g != NULL);
    jcfg = e.jetty->jetty_cfg;
    jcfg.jetty_grp = g;
    CHECK(urma_create_jetty(e.ctx, &jcfg) == NULL && errno == EINVAL); // another token
    CHECK_INT(urma_delete_jetty_grp(g), 0);
    uend_close(&rc);
    uend_close(&e);
}

static void moderation_wakes_for_several_completions_at_once(void **state)
{
    struct uend_options o = {.mode = URMA_TM_RM, .events = true};
    urma_jfc_attr_t attr = {.mask = JFC_MODERATE_COUNT | JFC_MODERATE_PERIOD, .moderate_count = 4};
    urma_jfc_t *fired[1];
    uint32_t one = 1;
    struct uend l, r;
    struct uwr w;

    (void)state;
    upair_open(&l, &r, &o);
    CHECK_INT(urma_modify_jfc(l.jfc, &attr), 0);
    CHECK_INT(urma_rearm_jfc(l.jfc, false), 0);
    uend_wr(&l, &w, URMA_OPC_WRITE, 1, 0, 8);
    for (unsigned i = 0; i < 3; i++)
        CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
    CHECK_INT(urma_wait_jfc(l.jfce, 1, 30, fired), 0);
    CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
    CHECK_INT(urma_wait_jfc(l.jfce, 1, 5000, fired), 1);
    urma_ack_jfc(fired, &one, 1);
    for (urma_cr_t cr; urma_poll_jfc(l.jfc, 1, &cr) == 1;)
        ;
    attr.moderate_period = 1000; // one alone is told when the time is over
    CHECK_INT(urma_modify_jfc(l.jfc, &attr), 0);
    CHECK_INT(urma_rearm_jfc(l.jfc, false), 0);
    CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
    CHECK_INT(urma_wait_jfc(l.jfce, 1, 5000, fired), 1);
    urma_ack_jfc(fired, &one, 1);
    upair_close(&l, &r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_turns_each_member_gets_its_share),
        cmocka_unit_test(by_hint_one_member_gets_all),
        cmocka_unit_test(a_name_leads_to_one_group_and_a_group_takes_only_its_kind),
        cmocka_unit_test(moderation_wakes_for_several_completions_at_once),
    };

    return cmocka_run_group_tests_name("urma groups", tests, uend_keep_device, uend_let_device_go);
}
