// SPDX-License-Identifier: MIT
// Asynchronous events of queues that fail, each at its element, and of a group that nobody is in; what a
// deletion takes out of a JFC.
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "face/urma/lib/uend.h"

static const struct uend_options rm = {.mode = URMA_TM_RM};
static const struct uend_options halves = {.mode = URMA_TM_RM, .halves = true, .jfc_depth = 2};

enum { PATIENCE = 30000 }; // milliseconds, of a busy machine

static struct uend l, r;

static bool is_there(struct uend *e, int ms)
{
    return poll(&(struct pollfd){.fd = e->ctx->async_fd, .events = POLLIN}, 1, ms) == 1;
}

static urma_async_event_t next(struct uend *e)
{
    urma_async_event_t event;

    CHECK(is_there(e, PATIENCE));
    CHECK_INT(urma_get_async_event(e->ctx, &event), 0);
    CHECK(event.urma_ctx == e->ctx);
    return event;
}

// The two events of a JFC that overflowed and of the queue behind it, in either order.
static void jfc_and(struct uend *e, urma_jfc_t *jfc, urma_async_event_type_t type, void *element)
{
    for (unsigned seen = 0; seen != 3;) {
        urma_async_event_t event = next(e);
        bool of_jfc = event.event_type == URMA_EVENT_JFC_ERR;

        if (!of_jfc)
            CHECK_INT(event.event_type, type);
        CHECK((of_jfc ? (void *)event.element.jfc : (void *)event.element.jfs) ==
              (of_jfc ? (void *)jfc : element));
        CHECK(!(seen & (of_jfc ? 1u : 2u)));
        seen |= of_jfc ? 1 : 2;
        urma_ack_async_event(&event);
    }
    CHECK(!is_there(e, 0));
}

static void a_jfs_that_cannot_complete_is_in_error_and_says_so(void **state)
{
    urma_jfs_cfg_t cfg;
    urma_jfs_attr_t attr;
    struct uwr w;

    (void)state;
    upair_open(&l, &r, &halves);
    uend_wr(&l, &w, URMA_OPC_WRITE, 7, 0, 8);
    for (unsigned i = 0; i < 3; i++)
        uend_post(&l, &w.wr, NULL); // the third may find the queue in error
    jfc_and(&l, l.jfc, URMA_EVENT_JFS_ERR, l.jfs);
    CHECK_INT(urma_query_jfs(l.jfs, &cfg, &attr), 0);
    CHECK_INT(attr.state, URMA_JETTY_STATE_ERROR);
    upair_close(&l, &r);
}

// It has not failed: it stays where it is.
static void a_jfs_in_reset_says_nothing(void **state)
{
    urma_jfs_attr_t attr = {.mask = JFS_STATE, .state = URMA_JETTY_STATE_ERROR};
    urma_jfs_cfg_t cfg;
    urma_jfs_t *resting;
    struct uwr w;

    (void)state;
    upair_open(&l, &r, &halves);
    cfg = l.jfs->jfs_cfg;
    resting = urma_create_jfs(l.ctx, &cfg);
    CHECK(resting != NULL);
    CHECK_INT(urma_modify_jfs(resting, &attr), 0);
    attr.state = URMA_JETTY_STATE_RESET;
    CHECK_INT(urma_modify_jfs(resting, &attr), 0);
    uend_wr(&l, &w, URMA_OPC_WRITE, 7, 0, 8);
    for (unsigned i = 0; i < 3; i++)
        uend_post(&l, &w.wr, NULL);
    jfc_and(&l, l.jfc, URMA_EVENT_JFS_ERR, l.jfs);
    CHECK(!is_there(&l, 1));
    CHECK_INT(urma_query_jfs(resting, &cfg, &attr), 0);
    CHECK_INT(attr.state, URMA_JETTY_STATE_RESET);
    CHECK_INT(urma_delete_jfs(resting), 0);
    upair_close(&l, &r);
}

static void a_jfr_that_cannot_complete_is_in_error_and_says_so(void **state)
{
    urma_jfr_cfg_t cfg;
    urma_jfr_attr_t attr;
    urma_cr_t cr;
    struct uwr w;

    (void)state;
    upair_open(&l, &r, &halves);
    for (unsigned i = 0; i < 4; i++)
        CHECK_INT(uend_recv(&r, i, 0, 8), 0);
    for (unsigned i = 0; i < 3; i++) {
        uend_wr(&l, &w, URMA_OPC_SEND, i, 0, 8);
        CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
        if (i < 2)
            ucr_expect(l.jfc, i, URMA_CR_SUCCESS, &cr);
    }
    jfc_and(&r, r.rjfc, URMA_EVENT_JFR_ERR, r.jfr);
    CHECK_INT(urma_query_jfr(r.jfr, &cfg, &attr), 0);
    CHECK_INT(attr.state, URMA_JFR_STATE_ERROR);
    upair_close(&l, &r);
}

// ---- a group without members

struct deletion {
    urma_jetty_grp_t *group;
    _Atomic int done;
};

static void *delete_the_group(void *arg)
{
    struct deletion *d = arg;

    CHECK_INT(urma_delete_jetty_grp(d->group), 0);
    d->done = 1;
    return NULL;
}

static urma_target_jetty_t *import(struct uend *e, const urma_jetty_grp_t *g)
{
    urma_rjetty_t at = {.jetty_id = g->jetty_grp_id, .trans_mode = URMA_TM_RM, .type = URMA_JETTY_GROUP};
    urma_target_jetty_t *t = urma_import_jetty(e->ctx, &at, &(urma_token_t){0});

    CHECK(t != NULL);
    return t;
}

static void join_and_leave(struct uend *e, urma_jetty_grp_t *g)
{
    urma_jetty_cfg_t cfg = e->jetty->jetty_cfg;
    urma_jetty_t *member;

    cfg.jetty_grp = g;
    member = urma_create_jetty(e->ctx, &cfg);
    CHECK(member != NULL);
    CHECK_INT(urma_delete_jetty(member), 0);
}

static void a_group_without_a_jetty_tells_once_until_it_had_one(void **state)
{
    urma_jetty_grp_cfg_t cfg = {.policy = URMA_JETTY_GRP_POLICY_RR,
                                .name = "nobody",
                                .token_value = {UEND_TOKEN},
                                .flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT};
    urma_async_event_t event;
    urma_target_jetty_t *t;
    struct deletion d = {0};
    urma_jetty_grp_t *other;
    pthread_t thread;
    urma_cr_t cr;
    struct uwr w;

    (void)state;
    upair_open(&l, &r, &rm);
    d.group = urma_create_jetty_grp(r.ctx, &cfg);
    CHECK(d.group != NULL);
    t = import(&l, d.group);
    CHECK(!is_there(&r, 0)); // nobody has asked yet
    uend_wr(&l, &w, URMA_OPC_SEND, 1, 0, 8);
    w.wr.tjetty = t;
    CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
    event = next(&r);
    CHECK_INT(event.event_type, URMA_EVENT_JETTY_GRP_ERR);
    CHECK(event.element.jetty_grp == d.group);
    urma_ack_async_event(&event);
    CHECK(ucr_poll(l.jfc, &cr, PATIENCE));
    CHECK_INT(cr.status, URMA_CR_ACK_TIMEOUT_ERR);
    CHECK(!is_there(&r, 1)); // though it was tried again and again
    join_and_leave(&r, d.group);
    CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
    event = next(&r);
    CHECK_INT(event.event_type, URMA_EVENT_JETTY_GRP_ERR);
    CHECK_INT(pthread_create(&thread, NULL, delete_the_group, &d), 0);
    usleep(20000);
    CHECK_INT(d.done, 0); // it waits for the acknowledgement, and keeps nobody from other groups
    snprintf(cfg.name, sizeof cfg.name, "another");
    other = urma_create_jetty_grp(r.ctx, &cfg);
    CHECK(other != NULL);
    CHECK_INT(urma_delete_jetty_grp(other), 0);
    urma_ack_async_event(&event);
    pthread_join(thread, NULL);
    CHECK_INT(d.done, 1);
    CHECK_INT(urma_unimport_jetty(t), 0);
    upair_close(&l, &r);
}

// ---- what a queue has completed goes with it

// A JFC that tells how many records it ever got: no other way to know that they are there takes one out.
static urma_jfc_t *counting_jfc(struct uend *e)
{
    urma_jfc_cfg_t cfg = {.depth = 16};
    uint16_t counts = 1;
    urma_jfc_t *jfc;

    CHECK_INT(urma_alloc_jfc(e->ctx, &cfg, &jfc), 0);
    CHECK_INT(urma_set_jfc_opt(jfc, URMA_JFC_PI_TYPE, &counts, 2), 0);
    CHECK_INT(urma_active_jfc(jfc), 0);
    return jfc;
}

static uint16_t records(urma_jfc_t *jfc)
{
    uint16_t pi = 0;

    CHECK_INT(urma_get_jfc_opt(jfc, URMA_JFC_PI, &pi, 2), 0);
    return pi;
}

static void wait_for(urma_jfc_t *jfc, uint16_t pi)
{
    for (unsigned tries = 0; records(jfc) != pi; tries++) {
        CHECK(tries < 5000);
        usleep(1000);
    }
}

static urma_jetty_t *jetty_at(struct uend *e, urma_jfc_t *sends, urma_jfc_t *receives)
{
    urma_jetty_cfg_t cfg = e->jetty->jetty_cfg;
    urma_jetty_t *jetty;

    cfg.jfs_cfg.jfc = sends;
    cfg.shared.jfc = receives;
    jetty = urma_create_jetty(e->ctx, &cfg);
    CHECK(jetty != NULL);
    return jetty;
}

static void write_from(urma_jetty_t *jetty, uint64_t id)
{
    urma_jfs_wr_t *bad;
    struct uwr w;

    uend_wr(&l, &w, URMA_OPC_WRITE, id, 0, 8);
    CHECK_INT(urma_post_jetty_send_wr(jetty, &w.wr, &bad), 0);
}

static void send_to(urma_jetty_t *jetty)
{
    urma_token_t token = {UEND_TOKEN};
    urma_target_jetty_t *t;
    urma_rjetty_t *at;
    struct uwr w;
    uint32_t n;

    CHECK_INT(urma_get_rjetty(jetty, &at, &n), 0);
    t = urma_import_jetty(l.ctx, at, &token);
    CHECK(t != NULL);
    uend_wr(&l, &w, URMA_OPC_SEND, 1, 0, 8);
    w.wr.tjetty = t;
    CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
    ucr_expect(l.jfc, 1, URMA_CR_SUCCESS, NULL);
    CHECK_INT(urma_unimport_jetty(t), 0);
    urma_put_rjetty(at);
}

static void deletion_takes_away_what_a_queue_has_sent_and_no_more(void **state)
{
    urma_jetty_t *goes, *stays;
    urma_jfc_t *jfc;
    uint16_t before;

    (void)state;
    upair_open(&l, &r, &rm);
    jfc = counting_jfc(&l);
    before = records(jfc);
    goes = jetty_at(&l, jfc, NULL);
    stays = jetty_at(&l, jfc, NULL);
    for (unsigned i = 0; i < 3; i++)
        write_from(goes, 10 + i);
    write_from(stays, 5);
    write_from(goes, 13);
    wait_for(jfc, (uint16_t)(before + 5));
    CHECK_INT(urma_delete_jetty(goes), 0);
    ucr_expect(jfc, 5, URMA_CR_SUCCESS, NULL);
    ucr_expect_empty(jfc, 1);
    CHECK_INT(urma_delete_jetty(stays), 0);
    CHECK_INT(urma_delete_jfc(jfc), 0);
    upair_close(&l, &r);
}

static void deletion_takes_away_what_a_queue_has_received_and_no_more(void **state)
{
    urma_jetty_t *goes, *stays;
    urma_jfc_t *jfc;
    uint16_t before;
    urma_cr_t cr;

    (void)state;
    upair_open(&l, &r, &rm);
    jfc = counting_jfc(&r);
    before = records(jfc);
    goes = jetty_at(&r, r.jfc, jfc);
    stays = jetty_at(&r, r.jfc, jfc);
    for (unsigned i = 0; i < 4; i++)
        CHECK_INT(uend_recv(&r, i, 0, 8), 0);
    send_to(goes);
    send_to(stays);
    send_to(goes);
    wait_for(jfc, (uint16_t)(before + 3));
    CHECK_INT(urma_delete_jetty(goes), 0);
    ucr_expect(jfc, 1, URMA_CR_SUCCESS, &cr);
    CHECK_INT(cr.local_id, stays->jetty_id.id);
    ucr_expect_empty(jfc, 1);
    CHECK_INT(urma_delete_jetty(stays), 0);
    CHECK_INT(urma_delete_jfc(jfc), 0);
    upair_close(&l, &r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_jfs_that_cannot_complete_is_in_error_and_says_so),
        cmocka_unit_test(a_jfs_in_reset_says_nothing),
        cmocka_unit_test(a_jfr_that_cannot_complete_is_in_error_and_says_so),
        cmocka_unit_test(a_group_without_a_jetty_tells_once_until_it_had_one),
        cmocka_unit_test(deletion_takes_away_what_a_queue_has_sent_and_no_more),
        cmocka_unit_test(deletion_takes_away_what_a_queue_has_received_and_no_more),
    };

    return cmocka_run_group_tests_name("urma errors of queues, and what goes with them", tests,
                                       uend_keep_device, uend_let_device_go);
}
