// SPDX-License-Identifier: MIT
// The lives of objects: who keeps whom, what may be bound, the life in steps and its options, notices,
// events.
#include <fcntl.h>
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

// ---- p13: the library is started once

static void p13_the_library_starts_once_and_before_it_there_is_no_device(void **state)
{
    int n = -1;

    (void)state;
    errno = 0;
    CHECK(urma_get_device_list(&n) == NULL && n == 0 && errno == ENODEV);
    CHECK_INT(urma_init(NULL), URMA_SUCCESS);
    CHECK_INT(urma_init(NULL), URMA_EEXIST);
    CHECK_INT(urma_uninit(), URMA_SUCCESS);
    CHECK_INT(urma_uninit(), URMA_SUCCESS);
    CHECK_INT(urma_init(NULL), URMA_SUCCESS);
}

// ---- p9: order of deletion

static void p9_nothing_goes_while_something_uses_it(void **state)
{
    struct uend_options o = {.mode = URMA_TM_RC, .events = true};
    struct uend l, r;

    (void)state;
    upair_open(&l, &r, &o);
    CHECK_INT(urma_delete_jetty(l.jetty), URMA_ENOPERM); // bound
    CHECK_INT(urma_unimport_jetty(l.target), URMA_FAIL); // somebody is bound to it
    CHECK_INT(urma_delete_jfr(l.jfr), URMA_FAIL);        // the jetty's
    CHECK_INT(urma_delete_jfc(l.jfc), URMA_FAIL);        // the jetty's
    CHECK_INT(urma_delete_jfce(l.jfce), URMA_FAIL);      // the JFCs'
    CHECK_INT(urma_delete_context(l.ctx), URMA_EAGAIN);  // everybody's
    CHECK_INT(urma_free_token_id(l.seg->token_id), URMA_EINVAL);
    upair_close(&l, &r); // and in the right order all of it goes
}

static void an_rc_jetty_has_one_peer(void **state)
{
    struct uend a, b, c;
    struct uend_address ab, cb;

    (void)state;
    upair_open(&a, &b, NULL);
    uend_open(&c, NULL);
    CHECK_INT(urma_bind_jetty(a.jetty, a.target), URMA_SUCCESS); // the same pair again
    CHECK(a.jetty->remote_jetty == a.target);
    cb = uend_address(&c);
    ab = uend_address(&a);
    uend_import(&c, &ab);
    CHECK_INT(urma_bind_jetty(a.jetty, c.target), URMA_EEXIST); // a has a peer already
    CHECK_INT(urma_bind_jetty(c.jetty, a.target), URMA_EINVAL); // that handle is taken
    (void)cb;
    CHECK_INT(urma_unbind_jetty(a.jetty), URMA_SUCCESS);
    CHECK(a.jetty->remote_jetty == NULL);
    CHECK_INT(urma_unbind_jetty(a.jetty), URMA_EINVAL);
    uend_close(&c);
    upair_close(&a, &b);
}

static void an_unbound_rc_jetty_takes_no_sends(void **state)
{
    struct uend e;
    struct uwr w;

    (void)state;
    uend_open(&e, NULL);
    memset(&w, 0, sizeof w);
    w.wr.opcode = URMA_OPC_NOP;
    CHECK_INT(uend_post(&e, &w.wr, NULL), URMA_EINVAL);
    uend_close(&e);
}

static void p12_a_jetty_and_its_jfr_agree_on_mode_and_order(void **state)
{
    urma_jetty_cfg_t cfg;
    struct uend e;

    (void)state;
    uend_open(&e, &rm);
    cfg = e.jetty->jetty_cfg;
    cfg.jfs_cfg.trans_mode = URMA_TM_RC;
    cfg.jfs_cfg.flag.bs.order_type = 0;
    errno = 0;
    CHECK(urma_create_jetty(e.ctx, &cfg) == NULL && errno == EINVAL);
    cfg = e.jetty->jetty_cfg;
    cfg.flag.bs.share_jfr = 0;
    CHECK(urma_create_jetty(e.ctx, &cfg) == NULL && errno == EINVAL);
    uend_close(&e);
}

// ---- the life in steps

static void a_jetty_in_steps_shows_its_ring(void **state)
{
    struct uend l, r;
    urma_jetty_cfg_t cfg;
    urma_jetty_t *jetty;
    uint64_t base = 0, doorbell = 0;
    uint16_t pi = 99, ci = 99, type = 1;
    uint32_t depth = 5, id = 0;
    urma_jfs_wr_t *bad;
    urma_cr_t cr;
    struct uwr w;

    (void)state;
    upair_open(&l, &r, &rm);
    cfg = l.jetty->jetty_cfg;
    CHECK_INT(urma_alloc_jetty(l.ctx, &cfg, &jetty), 0);
    CHECK_INT(urma_set_jetty_opt(jetty, URMA_JFS_DEPTH, &depth, 3), URMA_EINVAL);
    CHECK_INT(urma_set_jetty_opt(jetty, URMA_JFS_DEPTH, &depth, sizeof depth), 0);
    CHECK_INT(urma_set_jetty_opt(jetty, URMA_JFS_PI_TYPE, &type, sizeof type), 0);
    CHECK_INT(urma_set_jetty_opt(jetty, URMA_JFS_SQE_BASE_ADDR, &base, 8), URMA_EINVAL);
    CHECK_INT(urma_delete_jetty(jetty), URMA_EINVAL);
    CHECK_INT(urma_deactive_jetty(jetty), URMA_EINVAL);
    CHECK_INT(urma_active_jetty(jetty), 0);
    CHECK_INT(urma_active_jetty(jetty), URMA_EINVAL);
    CHECK_INT(urma_set_jetty_opt(jetty, URMA_JFS_DEPTH, &depth, sizeof depth), URMA_EINVAL);
    CHECK_INT(urma_get_jetty_opt(jetty, URMA_JFS_SQE_BASE_ADDR, &base, 8), 0);
    CHECK_INT(urma_get_jetty_opt(jetty, URMA_JFS_DB_ADDR, &doorbell, 8), 0);
    CHECK_INT(urma_get_jetty_opt(jetty, URMA_JETTY_ID, &id, 4), 0);
    CHECK(base && doorbell && id == jetty->jetty_id.id);
    CHECK_INT(urma_get_jetty_opt(jetty, URMA_JFS_PI, &pi, 2), 0);
    uint32_t before = *(volatile uint32_t *)(uintptr_t)doorbell; // the doorbell word is the PI
    CHECK_INT((uint16_t)before, pi);
    uend_wr(&l, &w, URMA_OPC_WRITE, 1, 0, 8);
    CHECK_INT(urma_post_jetty_send_wr(jetty, &w.wr, &bad), 0);
    CHECK_INT(urma_get_jetty_opt(jetty, URMA_JFS_PI, &pi, 2), 0);
    CHECK_INT((uint16_t)(before + 1), pi);
    CHECK_INT(urma_get_jetty_opt(jetty, URMA_JFS_CI, &ci, 2), 0);
    CHECK_INT((uint16_t)before, ci); // no completion that covers it was polled
    CHECK(ucr_poll(l.jfc, &cr, 5000));
    CHECK_INT(urma_get_jetty_opt(jetty, URMA_JFS_CI, &ci, 2), 0);
    CHECK_INT(pi, ci);
    for (unsigned i = 0; i < depth; i++)
        CHECK_INT(urma_post_jetty_send_wr(jetty, &w.wr, &bad), 0);
    CHECK_INT(urma_post_jetty_send_wr(jetty, &w.wr, &bad), URMA_ENOMEM);
    CHECK_INT(urma_free_jetty(jetty), URMA_EINVAL);
    CHECK(jetty->urma_jetty_opt.jfs_opt.urma_jfs_db_addr == doorbell);
    CHECK_INT(urma_deactive_jetty(jetty), 0);
    CHECK(!jetty->urma_jetty_opt.jfs_opt.urma_jfs_db_addr && !jetty->urma_jetty_opt.is_actived);
    CHECK_INT(jetty->urma_jetty_opt.jfs_opt.urma_jfs_pi_type, 1); // what was set stays
    CHECK_INT(urma_free_jetty(jetty), 0);
    upair_close(&l, &r);
}

static void every_option_of_a_jfc_and_a_jfr_can_be_read(void **state)
{
    static const struct {
        uint64_t opt;
        uint32_t len;
    } jfc[] = {{URMA_JFC_DEPTH, 4},
               {URMA_JFC_CEQN, 4},
               {URMA_JFC_FLAG, 4},
               {URMA_JFC_BIND_JFCE, 8},
               {URMA_JFC_USER_CTX, 8},
               {URMA_JFC_CQE_BASE_ADDR, 8},
               {URMA_JFC_ID, 4},
               {URMA_JFC_DB_ADDR, 8},
               {URMA_JFC_DB_STATUS, 1},
               {URMA_JFC_PI, 2},
               {URMA_JFC_PI_TYPE, 2},
               {URMA_JFC_CI, 2},
               {URMA_JFC_FULL_CTX, sizeof(urma_jfc_opt_t)}},
      jfr[] = {{URMA_JFR_DEPTH, 4},
               {URMA_JFR_FLAG, 4},
               {URMA_JFR_TRANS_MODE, 4},
               {URMA_JFR_MAX_SGE, 1},
               {URMA_JFR_MIN_RNR_TIMER, 1},
               {URMA_JFR_BIND_JFC, 8},
               {URMA_JFR_TOKEN_VALUE, 4},
               {URMA_JFR_USER_CTX, 8},
               {URMA_JFR_RQE_BASE_ADDR, 8},
               {URMA_JFR_ID, 4},
               {URMA_JFR_DB_ADDR, 8},
               {URMA_JFR_DB_STATUS, 1},
               {URMA_JFR_PI, 2},
               {URMA_JFR_PI_TYPE, 2},
               {URMA_JFR_CI, 2},
               {URMA_JFR_FULL_CTX, sizeof(urma_jfr_opt_t)}};
    char value[256];
    uint16_t pi;
    struct uend e;

    (void)state;
    uend_open(&e, &rm);
    for (size_t i = 0; i < sizeof jfc / sizeof *jfc; i++) {
        CHECK_INT(urma_get_jfc_opt(e.jfc, jfc[i].opt, value, jfc[i].len), 0);
        CHECK_INT(urma_set_jfc_opt(e.jfc, jfc[i].opt, value, jfc[i].len), URMA_EINVAL); // it is active
    }
    CHECK_INT(uend_recv(&e, 1, 0, 8), 0);
    for (size_t i = 0; i < sizeof jfr / sizeof *jfr; i++) {
        CHECK_INT(urma_get_jfr_opt(e.jfr, jfr[i].opt, value, jfr[i].len), 0);
        CHECK_INT(urma_get_jfr_opt(e.jfr, jfr[i].opt, value, jfr[i].len + 1), URMA_EINVAL);
    }
    CHECK_INT(urma_get_jfr_opt(e.jfr, URMA_JFR_PI, &pi, 2), 0);
    CHECK_INT(e.jfr->urma_jfr_opt.urma_jfr_pi - e.jfr->urma_jfr_opt.urma_jfr_ci, 1);
    CHECK_INT(urma_get_jfc_opt(e.jfc, 1ull << 60, value, 4), URMA_EINVAL);
    uend_close(&e);
}

// ---- deleting several

static void a_batch_stops_at_the_first_that_is_refused(void **state)
{
    urma_jfc_t *all[3], *bad = NULL;
    urma_jfc_cfg_t cfg = {.depth = 4};
    struct uend e;

    (void)state;
    uend_open(&e, &rm);
    all[0] = urma_create_jfc(e.ctx, &cfg);
    all[1] = e.jfc; // a jetty uses it
    all[2] = urma_create_jfc(e.ctx, &cfg);
    CHECK(all[0] && all[2]);
    CHECK_INT(urma_delete_jfc_batch(all, 3, &bad), URMA_FAIL);
    CHECK(bad == e.jfc);
    CHECK_INT(urma_delete_jfc_batch(&all[2], 1, &bad), 0);
    uend_close(&e);
}

// ---- notices

static void an_import_and_a_bind_by_notice(void **state)
{
    struct uend a, b;
    struct uend_address there;
    urma_notifier_t *n;
    urma_notify_t got[4];
    urma_token_t token = {UEND_TOKEN};
    urma_target_jetty_t *t;

    (void)state;
    uend_open(&a, NULL);
    uend_open(&b, NULL);
    there = uend_address(&b);
    n = urma_create_notifier(a.ctx);
    CHECK(n != NULL);
    CHECK_INT(urma_wait_notify(n, 4, got, 0), 0);
    t = urma_import_jetty_async(n, &there.rjetty, &token, 41, 20000);
    CHECK(t != NULL);
    CHECK_INT(urma_bind_jetty_async(n, a.jetty, t, 42, 20000), 0);
    CHECK_INT(poll(&(struct pollfd){.fd = n->fd, .events = POLLIN}, 1, 20000), 1);
    for (int all = 0, some; all < 2; all += some) { // the second may come later
        some = urma_wait_notify(n, 4 - (uint32_t)all, got + all, 20000);
        CHECK(some > 0);
    }
    CHECK(got[0].type == URMA_IMPORT_JETTY_NOTIFY && got[0].user_ctx == 41 && got[0].tjetty == t);
    CHECK(got[1].type == URMA_BIND_JETTY_NOTIFY && got[1].user_ctx == 42 && got[1].jetty == a.jetty);
    CHECK_INT(got[0].status, URMA_SUCCESS);
    CHECK_INT(urma_ack_notify(a.ctx, 2, got), 0);
    CHECK_INT(urma_wait_notify(n, 0, got, 0), 0);
    CHECK_INT(urma_wait_notify(n, 4, NULL, 0), -1);
    CHECK_INT(urma_unbind_jetty_async(a.jetty), 0);
    CHECK_INT(urma_unimport_jetty_async(t), 0);
    CHECK_INT(urma_delete_context(a.ctx), URMA_EAGAIN);
    CHECK_INT(urma_delete_notifier(n), 0);
    uend_close(&a);
    uend_close(&b);
}

// ---- completions by event. p5: wait, rearm, poll, ack

static void p5_wait_gives_a_count_and_an_event_is_never_missed(void **state)
{
    struct uend_options o = {.mode = URMA_TM_RM, .events = true};
    urma_jfc_t *fired[4];
    uint32_t one = 1;
    struct uend l, r;
    struct uwr w;

    (void)state;
    upair_open(&l, &r, &o);
    CHECK_INT(urma_wait_jfc(l.jfce, 4, 0, fired), 0);
    CHECK_INT(urma_wait_jfc(l.jfce, 4, 20, fired), 0);
    uend_wr(&l, &w, URMA_OPC_WRITE, 1, 0, 8);
    for (unsigned i = 0; i < 50; i++) {
        if (i % 2)
            CHECK_INT(urma_rearm_jfc(l.jfc, false), 0);
        CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
        if (!(i % 2))
            CHECK_INT(urma_rearm_jfc(l.jfc, false), 0); // what is there already fires at once
        CHECK_INT(urma_wait_jfc(l.jfce, 4, 5000, fired), 1);
        CHECK(fired[0] == l.jfc);
        ucr_expect(l.jfc, 1, URMA_CR_SUCCESS, NULL);
        urma_ack_jfc(fired, &one, 1);
    }
    CHECK_INT(urma_wait_jfc(l.jfce, 4, 0, fired), 0); // one shot
    CHECK_INT(fcntl(l.jfce->fd, F_SETFL, O_NONBLOCK), 0);
    CHECK_INT(urma_wait_jfc(l.jfce, 4, -1, fired), 0); // the descriptor says not to wait
    CHECK_INT(urma_alloc_jfc(l.ctx, &l.jfc->jfc_cfg, &fired[0]), 0);
    urma_ack_jfc(fired, &one, 1); // not active: nothing is owed
    CHECK_INT(urma_free_jfc(fired[0]), 0);
    upair_close(&l, &r);
}

static void one_channel_tells_of_each_jfc_behind_it(void **state)
{
    struct uend_options o = {.mode = URMA_TM_RM, .events = true};
    urma_jfc_t *fired[2];
    uint32_t ones[2] = {1, 1};
    struct uend l, r;
    struct uwr w;

    (void)state;
    upair_open(&l, &r, &o);
    CHECK_INT(uend_recv(&l, 1, 0, 8), 0);
    CHECK_INT(urma_rearm_jfc(l.jfc, false), 0);
    CHECK_INT(urma_rearm_jfc(l.rjfc, false), 0);
    uend_wr(&r, &w, URMA_OPC_SEND, 2, 0, 8);
    CHECK_INT(uend_post(&r, &w.wr, NULL), 0);
    CHECK_INT(urma_wait_jfc(l.jfce, 1, 5000, &fired[0]), 1); // of the receives alone: nothing was sent yet
    CHECK(fired[0] == l.rjfc);
    uend_wr(&l, &w, URMA_OPC_WRITE, 3, 0, 8);
    CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
    CHECK_INT(urma_wait_jfc(l.jfce, 2, 5000, &fired[1]), 1);
    CHECK(fired[1] == l.jfc);
    urma_ack_jfc(fired, ones, 2);
    ucr_expect(l.rjfc, 1, URMA_CR_SUCCESS, NULL);
    ucr_expect(l.jfc, 3, URMA_CR_SUCCESS, NULL);
    ucr_expect(r.jfc, 2, URMA_CR_SUCCESS, NULL);
    upair_close(&l, &r);
}

// C32: a wait may end with a JFC that has nothing; who arms again before he waits again misses nothing.
static void c32_a_noisy_jfce_tells_of_an_empty_jfc(void **state)
{
    struct uend_options o = {.mode = URMA_TM_RM, .events = true};
    urma_jfc_t *fired[1];
    uint32_t one = 1;
    unsigned empty = 0;
    struct uend l, r;
    struct uwr w;
    urma_cr_t cr;

    (void)state;
    setenv("DRYDOCK_EVENTS", "noisy", 1);
    upair_open(&l, &r, &o);
    unsetenv("DRYDOCK_EVENTS");
    uend_wr(&l, &w, URMA_OPC_WRITE, 1, 0, 8);
    for (unsigned i = 0; i < 8; i++) {
        CHECK_INT(urma_rearm_jfc(l.jfc, i & 1), 0);
        if (urma_wait_jfc(l.jfce, 1, 0, fired) == 1) {
            CHECK_INT(urma_poll_jfc(l.jfc, 1, &cr), 0);
            urma_ack_jfc(fired, &one, 1);
            CHECK_INT(urma_rearm_jfc(l.jfc, false), 0);
            empty++;
        } else {
            CHECK_INT(urma_rearm_jfc(l.jfc, false), 0);
        }
        CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
        CHECK_INT(urma_wait_jfc(l.jfce, 1, 5000, fired), 1);
        CHECK(fired[0] == l.jfc);
        urma_ack_jfc(fired, &one, 1);
        ucr_expect(l.jfc, 1, URMA_CR_SUCCESS, NULL);
    }
    CHECK_INT(empty, 4);
    upair_close(&l, &r);
}

static void solicited_only_fires_for_what_was_solicited(void **state)
{
    struct uend_options o = {.mode = URMA_TM_RM, .events = true};
    urma_jfc_t *fired[1];
    uint32_t one = 1;
    struct uend l, r;
    struct uwr w;

    (void)state;
    upair_open(&l, &r, &o);
    CHECK_INT(uend_recv(&r, 1, 0, 8), 0);
    CHECK_INT(uend_recv(&r, 2, 0, 8), 0);
    CHECK_INT(urma_rearm_jfc(r.rjfc, true), 0);
    uend_wr(&l, &w, URMA_OPC_SEND, 7, 0, 8);
    CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
    ucr_expect(l.jfc, 7, URMA_CR_SUCCESS, NULL);
    CHECK_INT(urma_wait_jfc(r.jfce, 1, 20, fired), 0);
    w.wr.flag.bs.solicited_enable = 1;
    CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
    CHECK_INT(urma_wait_jfc(r.jfce, 1, 5000, fired), 1);
    CHECK(fired[0] == r.rjfc);
    urma_ack_jfc(fired, &one, 1);
    upair_close(&l, &r);
}

struct deletion {
    urma_jfc_t *jfc;     // or
    urma_jetty_t *jetty; // one of both
    atomic_int done;
};

static void *delete_it(void *arg)
{
    struct deletion *d = arg;

    CHECK_INT(urma_delete_jfc(d->jfc), 0);
    d->done = 1;
    return NULL;
}

static void deletion_waits_for_acknowledgement(void **state)
{
    struct uend_options o = {.mode = URMA_TM_RM, .events = true};
    urma_jfc_cfg_t cfg = {.depth = 4};
    urma_jetty_cfg_t jcfg;
    urma_jfc_t *fired[1];
    struct deletion d = {0};
    urma_jetty_t *jetty;
    urma_jfs_wr_t *bad;
    pthread_t thread;
    uint32_t one = 1;
    struct uend l, r;
    struct uwr w;

    (void)state;
    upair_open(&l, &r, &o);
    for (unsigned non_blocking = 0; non_blocking < 2; non_blocking++) {
        cfg.jfce = l.jfce;
        cfg.flag.bs.non_blocking = non_blocking;
        d.jfc = urma_create_jfc(l.ctx, &cfg);
        d.done = 0;
        jcfg = l.jetty->jetty_cfg;
        jcfg.jfs_cfg.jfc = d.jfc;
        jetty = urma_create_jetty(l.ctx, &jcfg);
        CHECK(d.jfc && jetty);
        CHECK_INT(urma_rearm_jfc(d.jfc, false), 0);
        uend_wr(&l, &w, URMA_OPC_WRITE, 1, 0, 8);
        CHECK_INT(urma_post_jetty_send_wr(jetty, &w.wr, &bad), 0);
        CHECK_INT(urma_wait_jfc(l.jfce, 1, 5000, fired), 1);
        CHECK_INT(urma_delete_jetty(jetty), 0);
        if (non_blocking) {
            CHECK_INT(urma_delete_jfc(d.jfc), URMA_EAGAIN);
            urma_ack_jfc(fired, &one, 1);
            CHECK_INT(urma_delete_jfc(d.jfc), 0);
            continue;
        }
        CHECK_INT(pthread_create(&thread, NULL, delete_it, &d), 0);
        usleep(20000);
        CHECK_INT(d.done, 0);
        urma_ack_jfc(fired, &one, 1);
        pthread_join(thread, NULL);
        CHECK_INT(d.done, 1);
    }
    upair_close(&l, &r);
}

// ---- asynchronous events

static void a_jfr_below_its_threshold_tells_once(void **state)
{
    urma_jfr_attr_t attr = {.mask = JFR_RX_THRESHOLD, .rx_threshold = 2};
    urma_async_event_t event;
    struct uend l, r;
    struct uwr w;

    (void)state;
    upair_open(&l, &r, &rm);
    for (unsigned i = 0; i < 2; i++)
        CHECK_INT(uend_recv(&r, i, 0, 8), 0);
    CHECK_INT(urma_modify_jfr(r.jfr, &attr), 0);
    CHECK_INT(fcntl(r.ctx->async_fd, F_SETFL, O_NONBLOCK), 0);
    CHECK_INT(urma_get_async_event(r.ctx, &event), URMA_FAIL);
    uend_wr(&l, &w, URMA_OPC_SEND, 7, 0, 8);
    CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
    CHECK_INT(poll(&(struct pollfd){.fd = r.ctx->async_fd, .events = POLLIN}, 1, 5000), 1);
    CHECK_INT(urma_get_async_event(r.ctx, &event), 0);
    CHECK_INT(event.event_type, URMA_EVENT_JFR_LIMIT);
    CHECK(event.element.jfr == r.jfr && event.urma_ctx == r.ctx);
    urma_ack_async_event(&event);
    CHECK_INT(urma_get_async_event(r.ctx, &event), URMA_FAIL);
    upair_close(&l, &r);
}

static urma_async_event_t next_event(struct uend *e)
{
    urma_async_event_t event;

    CHECK_INT(poll(&(struct pollfd){.fd = e->ctx->async_fd, .events = POLLIN}, 1, 5000), 1);
    CHECK_INT(urma_get_async_event(e->ctx, &event), 0);
    return event;
}

static void *delete_the_jetty(void *arg)
{
    struct deletion *d = arg;

    CHECK_INT(urma_delete_jetty(d->jetty), 0);
    d->done = 1;
    return NULL;
}

static void a_broken_connection_tells_both_ends_and_deletion_waits_for_that(void **state)
{
    struct deletion d = {0};
    urma_async_event_t event;
    pthread_t thread;
    struct uend l, r;
    struct uwr w;

    (void)state;
    for (unsigned non_blocking = 0; non_blocking < 2; non_blocking++) {
        struct uend_options o = {.mode = URMA_TM_RC, .jetty_flag = {.bs = {.non_blocking = non_blocking}}};
        upair_open(&l, &r, &o);
        uend_wr(&l, &w, URMA_OPC_WRITE, 1, 0, 8);
        w.remote[0].addr += 1u << 20; // beyond the segment
        CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
        ucr_expect(l.jfc, 1, URMA_CR_REM_ACCESS_ABORT_ERR, NULL);
        event = next_event(&r);
        CHECK(event.event_type == URMA_EVENT_JETTY_ERR && event.element.jetty == r.jetty);
        urma_ack_async_event(&event);
        event = next_event(&l);
        CHECK(event.event_type == URMA_EVENT_JETTY_ERR && event.element.jetty == l.jetty);
        CHECK_INT(urma_unbind_jetty(l.jetty), 0);
        d = (struct deletion){.jetty = l.jetty};
        if (non_blocking) {
            CHECK_INT(urma_delete_jetty(l.jetty), URMA_EAGAIN);
            urma_ack_async_event(&event);
            CHECK_INT(urma_delete_jetty(l.jetty), 0);
        } else {
            CHECK_INT(pthread_create(&thread, NULL, delete_the_jetty, &d), 0);
            usleep(20000);
            CHECK_INT(d.done, 0);
            urma_ack_async_event(&event);
            pthread_join(thread, NULL);
            CHECK_INT(d.done, 1);
        }
        l.jetty = NULL; // it is deleted
        upair_close(&l, &r);
    }
}

static void a_jfc_that_overflows_tells_and_is_unusable(void **state)
{
    struct uend_options o = {.mode = URMA_TM_RM, .jfc_depth = 2};
    urma_async_event_t event;
    struct uend l, r;
    urma_cr_t cr[4];
    struct uwr w;
    int n = 0;

    (void)state;
    upair_open(&l, &r, &o);
    CHECK_INT(fcntl(l.ctx->async_fd, F_SETFL, O_NONBLOCK), 0);
    uend_wr(&l, &w, URMA_OPC_WRITE, 7, 0, 8);
    for (unsigned i = 0; i < 4; i++)
        uend_post(&l, &w.wr, NULL);
    CHECK_INT(poll(&(struct pollfd){.fd = l.ctx->async_fd, .events = POLLIN}, 1, 5000), 1);
    CHECK_INT(urma_get_async_event(l.ctx, &event), 0);
    CHECK_INT(event.event_type, URMA_EVENT_JFC_ERR);
    CHECK(event.element.jfc == l.jfc);
    urma_ack_async_event(&event);
    for (unsigned i = 0; i < 3 && n >= 0; i++)
        n = urma_poll_jfc(l.jfc, 4, cr);
    CHECK_INT(n, -1);
    upair_close(&l, &r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(p13_the_library_starts_once_and_before_it_there_is_no_device),
        cmocka_unit_test(p9_nothing_goes_while_something_uses_it),
        cmocka_unit_test(an_rc_jetty_has_one_peer),
        cmocka_unit_test(an_unbound_rc_jetty_takes_no_sends),
        cmocka_unit_test(p12_a_jetty_and_its_jfr_agree_on_mode_and_order),
        cmocka_unit_test(a_jetty_in_steps_shows_its_ring),
        cmocka_unit_test(every_option_of_a_jfc_and_a_jfr_can_be_read),
        cmocka_unit_test(a_batch_stops_at_the_first_that_is_refused),
        cmocka_unit_test(an_import_and_a_bind_by_notice),
        cmocka_unit_test(p5_wait_gives_a_count_and_an_event_is_never_missed),
        cmocka_unit_test(one_channel_tells_of_each_jfc_behind_it),
        cmocka_unit_test(c32_a_noisy_jfce_tells_of_an_empty_jfc),
        cmocka_unit_test(solicited_only_fires_for_what_was_solicited),
        cmocka_unit_test(deletion_waits_for_acknowledgement),
        cmocka_unit_test(a_jfr_below_its_threshold_tells_once),
        cmocka_unit_test(a_broken_connection_tells_both_ends_and_deletion_waits_for_that),
        cmocka_unit_test(a_jfc_that_overflows_tells_and_is_unusable),
    };

    return cmocka_run_group_tests_name("urma lives", tests, NULL, NULL);
}
