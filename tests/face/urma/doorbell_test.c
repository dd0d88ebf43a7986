// SPDX-License-Identifier: MIT
// Doorbells that the program rings itself: WRs that were posted with db_bypass wait for one later ring,
// whoever makes it, and a JFS that is driven by hand through what urma_get_*_opt tells (drydock/urma.h).
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ub/umdk/urma/udma/udma_u_ctl.h>
#include <unistd.h>

#include "drydock/urma.h"
#include "face/urma/lib/uend.h"

#define KEPT 5u
#define LOOKS 2000000000ull // a test that hangs is ended by its time limit

static uint64_t *far_word(struct uend *e, unsigned i)
{
    return (uint64_t *)(void *)e->buf + i;
}

static urma_status_t get_opt(struct uend *e, uint64_t opt, void *value, uint32_t len)
{
    return e->jfs ? urma_get_jfs_opt(e->jfs, opt, value, len) : urma_get_jetty_opt(e->jetty, opt, value, len);
}

static urma_status_t set_status(struct uend *e, uint8_t value, uint32_t len)
{
    return e->jfs ? urma_set_jfs_opt(e->jfs, URMA_JFS_DB_STATUS, &value, len)
                  : urma_set_jetty_opt(e->jetty, URMA_JFS_DB_STATUS, &value, len);
}

// ---- db_bypass, and one later ring

static void post_bypassing(struct uend *e, unsigned i)
{
    struct uwr w;

    *far_word(e, i) = 100 + i;
    uend_wr(e, &w, i % 2 ? URMA_OPC_WRITE : URMA_OPC_FADD, i, i * 8, 8); // of one and of two blocks
    w.wr.flag.bs.db_bypass = 1;
    if (i % 2 == 0)
        w.wr.faa.operand = 7;
    CHECK_INT(uend_post(e, &w.wr, NULL), 0);
}

static void by_the_next_post(struct uend *e)
{
    struct uwr w;

    uend_wr(e, &w, URMA_OPC_WRITE, KEPT, KEPT * 8, 8);
    CHECK_INT(uend_post(e, &w.wr, NULL), 0);
}

static void by_the_option(struct uend *e)
{
    post_bypassing(e, KEPT);
    CHECK_INT(set_status(e, 0, 1), 0);
    CHECK_INT(set_status(e, 0, 1), 0); // nothing is left to ring for
}

// Through UDMA's control call: what is posted, where the doorbell is and what to store there.
static struct udma_u_post_info post_by_control(struct uend *e, bool ring)
{
    struct udma_u_jfs_wr_ex *bad, wr = {0};
    struct udma_u_wr_ex ex = {.is_jetty = e->jetty != NULL, .db_en = ring, .wr = &wr, .bad_wr = &bad};
    struct udma_u_post_info info = {0};
    urma_user_ctl_in_t in = {.addr = (uintptr_t)&ex, .len = sizeof ex, .opcode = UDMA_U_USER_CTL_POST_WR};
    urma_user_ctl_out_t out = {.addr = (uintptr_t)&info, .len = sizeof info};
    struct uwr w;

    uend_wr(e, &w, URMA_OPC_WRITE, KEPT, KEPT * 8, 8);
    wr.wr = w.wr;
    if (e->jetty)
        ex.jetty = e->jetty;
    else
        ex.jfs = e->jfs;
    CHECK_INT(urma_user_ctl(e->ctx, &in, &out), 0);
    return info;
}

static void by_a_store_to_the_doorbell(struct uend *e)
{
    struct udma_u_post_info info = post_by_control(e, false);
    uint64_t doorbell = 0;
    uint16_t pi = 0;

    CHECK_INT(get_opt(e, URMA_JFS_DB_ADDR, &doorbell, 8), 0);
    CHECK((uintptr_t)info.db_addr == doorbell);
    CHECK_INT(get_opt(e, URMA_JFS_PI, &pi, 2), 0);
    CHECK_INT(pi, info.pi & 63);        // as an index into the ring
    CHECK_INT(*info.ctrl >> 21 & 1, 1); // the WR's control: it asks for a completion
    __atomic_store_n((uint32_t *)(uintptr_t)doorbell, info.pi, __ATOMIC_RELEASE);
}

static void by_the_control_call(struct uend *e)
{
    post_by_control(e, true);
}

static const struct {
    const char *name;
    void (*ring)(struct uend *e);
} rings[] = {
    {"the next post", by_the_next_post},
    {"the option", by_the_option},
    {"a store to the doorbell", by_a_store_to_the_doorbell},
    {"the control call", by_the_control_call},
};

static void wait_kept(struct uend *l, struct uend *r, const char *name)
{
    for (unsigned i = 0; i < KEPT; i++)
        post_bypassing(l, i);
    ucr_expect_empty(l->jfc, 6); // the engine looks every millisecond
    for (unsigned i = 0; i < KEPT; i++)
        if (*far_word(r, i) != 0)
            check_failed(__FILE__, __LINE__, "rung by %s: word %u moved before: expected 0, got %llu", name,
                         i, (unsigned long long)*far_word(r, i));
}

static void what_was_posted_with_db_bypass_waits_for_one_later_ring(void **state)
{
    static const struct uend_options ends[] = {{.mode = URMA_TM_RM, .halves = true, .depth = 32},
                                               {.mode = URMA_TM_RC, .depth = 32}};
    struct uend l, r;

    (void)state;
    for (size_t k = 0; k < sizeof ends / sizeof *ends; k++) {
        upair_open(&l, &r, &ends[k]);
        for (size_t n = 0; n < sizeof rings / sizeof *rings; n++) { // each time on the same queue
            memset(r.buf, 0, 64);
            wait_kept(&l, &r, rings[n].name);
            *far_word(&l, KEPT) = 900;
            rings[n].ring(&l);
            for (unsigned i = 0; i <= KEPT; i++)
                ucr_expect(l.jfc, i, URMA_CR_SUCCESS, NULL);
            for (unsigned i = 0; i < KEPT; i++)
                CHECK_INT(*far_word(&r, i), i % 2 ? 100 + i : 7);
        }
        upair_close(&l, &r);
    }
}

static void what_was_never_rung_for_goes_with_the_queue(void **state)
{
    struct uend_options o = {.mode = URMA_TM_RM, .halves = true};
    struct uend l, r;

    (void)state;
    upair_open(&l, &r, &o);
    wait_kept(&l, &r, "nobody");
    upair_close(&l, &r);
}

static void move_to(struct uend *e, urma_jetty_state_t state)
{
    urma_jfs_attr_t a = {.mask = JFS_STATE, .state = state};

    CHECK_INT(urma_modify_jfs(e->jfs, &a), 0);
}

// All that was kept is flushed, in order, and the mark comes behind it.
static void expect_flushed(struct uend *e, uint64_t first, uint64_t end)
{
    urma_cr_t cr;

    for (uint64_t i = first; i < end; i++)
        ucr_expect(e->jfc, i, URMA_CR_WR_FLUSH_ERR, NULL);
    CHECK(ucr_poll(e->jfc, &cr, 5000));
    CHECK_INT(cr.status, URMA_CR_WR_FLUSH_ERR_DONE);
}

// As they are not executed any more, somebody hands them back: in ERROR completions before its mark, in
// SUSPENDED the flush call.
static void in_error_and_suspended_they_come_back(void **state)
{
    const struct uend_options o = {.mode = URMA_TM_RM, .halves = true};
    struct uend l, r;
    urma_cr_t cr[16];

    (void)state;
    upair_open(&l, &r, &o);
    wait_kept(&l, &r, "the end");
    move_to(&l, URMA_JETTY_STATE_ERROR);
    expect_flushed(&l, 0, KEPT);
    post_bypassing(&l, KEPT); // in ERROR nobody needs to ring
    ucr_expect(l.jfc, KEPT, URMA_CR_WR_FLUSH_ERR, NULL);
    upair_close(&l, &r);

    upair_open(&l, &r, &o);
    wait_kept(&l, &r, "the flush");
    move_to(&l, URMA_JETTY_STATE_SUSPENDED);
    CHECK(ucr_poll(l.jfc, cr, 5000));
    CHECK_INT(cr[0].status, URMA_CR_WR_SUSPEND_DONE);
    CHECK_INT(urma_flush_jfs(l.jfs, 16, cr), KEPT);
    for (unsigned i = 0; i < KEPT; i++)
        CHECK_INT(cr[i].user_ctx, i);
    CHECK_INT(*far_word(&r, 1), 0);
    upair_close(&l, &r);
}

static void after_a_failure_of_the_queue_they_come_back_as_well(void **state)
{
    const struct uend_options o = {.mode = URMA_TM_RC};
    urma_import_seg_flag_t f = {.bs = {.access = ALL_ACCESS}};
    urma_token_t wrong = {.token = UEND_TOKEN + 1};
    urma_target_seg_t *seg;
    struct uend l, r;
    struct uwr w;

    (void)state;
    upair_open(&l, &r, &o);
    seg = urma_import_seg(l.ctx, &r.seg->seg, &wrong, 0, f);
    CHECK(seg != NULL);
    uend_wr(&l, &w, URMA_OPC_WRITE, 77, 0, 8);
    w.remote[0].tseg = seg;
    w.wr.flag.bs.db_bypass = 1;
    CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
    struct udma_u_post_info info = post_by_control(&l, false);
    for (unsigned i = 0; i < 3; i++)
        post_bypassing(&l, i);
    // for the first two alone
    __atomic_store_n((uint32_t *)(void *)info.db_addr, info.pi, __ATOMIC_RELEASE);
    ucr_expect(l.jfc, 77, URMA_CR_REM_ACCESS_ABORT_ERR, NULL);
    ucr_expect(l.jfc, KEPT, URMA_CR_WR_FLUSH_ERR, NULL);
    expect_flushed(&l, 0, 3);
    CHECK_INT(urma_unimport_seg(seg), 0);
    upair_close(&l, &r);
}

// What was kept was meant for the peer until then.
static void what_was_kept_goes_to_no_other_peer(void **state)
{
    const struct uend_options o = {.mode = URMA_TM_RC};
    struct uend l, r, x, y;
    struct uend_address at_l, at_y;
    struct uwr w;

    (void)state;
    upair_open(&l, &r, &o);
    upair_open(&x, &y, &o);
    uend_wr(&l, &w, URMA_OPC_SEND, 5, 16, 8);
    w.wr.flag.bs.db_bypass = 1;
    CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
    uend_part(&l);
    uend_part(&r);
    uend_part(&x);
    uend_part(&y);
    CHECK_INT(uend_recv(&y, 9, 0, 64), 0);
    at_l = uend_address(&l);
    at_y = uend_address(&y);
    uend_connect(&l, &at_y);
    uend_connect(&y, &at_l);
    CHECK_INT(set_status(&l, 0, 1), 0);
    ucr_expect(l.jfc, 5, URMA_CR_WR_FLUSH_ERR, NULL);
    ucr_expect_empty(y.rjfc, 1); // the option has run the queue
    w.wr.user_ctx = 6;
    w.wr.flag.bs.db_bypass = 0;
    CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
    ucr_expect(l.jfc, 6, URMA_CR_SUCCESS, NULL);
    ucr_expect(y.rjfc, 9, URMA_CR_SUCCESS, NULL);
    uend_part(&l);
    uend_part(&y);
    uend_close(&l);
    uend_close(&r);
    uend_close(&x);
    uend_close(&y);
}

// A store to the doorbell that says more than was posted: its queue fails, and no other that shares its JFC.
static void a_stray_doorbell_harms_its_own_queue_alone(void **state)
{
    const struct uend_options o = {.mode = URMA_TM_RM, .halves = true, .jfc_depth = 40};
    urma_jfs_t *other;
    urma_jfs_wr_t *bad;
    struct uend l, r;
    struct uwr w;

    (void)state;
    upair_open(&l, &r, &o);
    urma_jfs_cfg_t cfg = l.jfs->jfs_cfg;
    other = urma_create_jfs(l.ctx, &cfg);
    CHECK(other != NULL);
    struct udma_u_post_info info = post_by_control(&l, false);
    __atomic_store_n((uint32_t *)(void *)info.db_addr, info.pi + 60, __ATOMIC_RELEASE);
    expect_flushed(&l, KEPT, KEPT + 1);
    uend_wr(&l, &w, URMA_OPC_WRITE, 8, 0, 8);
    CHECK_INT(urma_post_jfs_wr(other, &w.wr, &bad), 0);
    ucr_expect(l.jfc, 8, URMA_CR_SUCCESS, NULL);
    move_to(&l, URMA_JETTY_STATE_RESET);
    move_to(&l, URMA_JETTY_STATE_READY);
    for (unsigned i = 0; i < 40; i++) {
        CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
        ucr_expect(l.jfc, 8, URMA_CR_SUCCESS, NULL);
    }
    CHECK_INT(urma_delete_jfs(other), 0);
    upair_close(&l, &r);
}

static void a_full_ring_counts_what_was_kept(void **state)
{
    struct uend_options o = {.mode = URMA_TM_RC};
    struct uend l, r;
    struct uwr w;

    (void)state;
    upair_open(&l, &r, &o);
    uend_wr(&l, &w, URMA_OPC_WRITE, 1, 0, 8);
    w.wr.flag.bs.db_bypass = 1;
    for (unsigned i = 0; i < 16; i++)
        CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
    CHECK_INT(uend_post(&l, &w.wr, NULL), URMA_ENOMEM);
    CHECK_INT(set_status(&l, 0, 1), 0);
    for (unsigned i = 0; i < 16; i++)
        ucr_expect(l.jfc, 1, URMA_CR_SUCCESS, NULL);
    upair_close(&l, &r);
}

// As with UDMA's driver: the control part of the last one, and the index behind it.
static void the_control_call_tells_of_the_last_of_a_list(void **state)
{
    struct uend_options o = {.mode = URMA_TM_RM, .halves = true};
    struct udma_u_jfs_wr_ex *bad = NULL, wr[2] = {0};
    struct udma_u_wr_ex ex = {.db_en = true, .wr = wr, .bad_wr = &bad};
    struct udma_u_post_info info = {0};
    urma_user_ctl_in_t in = {.addr = (uintptr_t)&ex, .len = sizeof ex, .opcode = UDMA_U_USER_CTL_POST_WR};
    urma_user_ctl_out_t out = {.addr = (uintptr_t)&info, .len = sizeof info};
    uint64_t base = 0;
    struct uend l, r;
    struct uwr w[2];

    (void)state;
    upair_open(&l, &r, &o);
    CHECK_INT(get_opt(&l, URMA_JFS_SQE_BASE_ADDR, &base, 8), 0);
    uend_wr(&l, &w[0], URMA_OPC_FADD, 0, 0, 8); // of two blocks
    uend_wr(&l, &w[1], URMA_OPC_WRITE, 1, 8, 8);
    wr[0].wr = w[0].wr;
    wr[1].wr = w[1].wr;
    wr[0].wr.next = &wr[1].wr;
    ex.jfs = l.jfs;
    wr[1].reduce_en = true;
    CHECK_INT(urma_user_ctl(l.ctx, &in, &out), URMA_FAIL);
    CHECK(bad == &wr[1]);
    ucr_expect_empty(l.jfc, 1);
    wr[1].reduce_en = false;
    CHECK_INT(urma_user_ctl(l.ctx, &in, &out), 0);
    for (unsigned i = 0; i < 2; i++)
        ucr_expect(l.jfc, i, URMA_CR_SUCCESS, NULL);
    CHECK_INT((uintptr_t)info.ctrl - base, 2 * 64);
    CHECK_INT(info.pi, 3);
    upair_close(&l, &r);
}

static void what_is_wrong_is_refused_and_posts_nothing(void **state)
{
    struct uend_options o = {.mode = URMA_TM_RM, .halves = true};
    struct udma_u_jfs_wr_ex *bad = NULL, wr = {.reduce_en = true};
    struct udma_u_wr_ex ex = {.wr = &wr, .bad_wr = &bad};
    struct udma_u_post_info info;
    urma_user_ctl_in_t in = {.addr = (uintptr_t)&ex, .len = sizeof ex, .opcode = UDMA_U_USER_CTL_POST_WR};
    urma_user_ctl_out_t out = {.addr = (uintptr_t)&info, .len = sizeof info};
    struct drydock_queue q;
    struct uend l, r;
    struct uwr w;

    (void)state;
    upair_open(&l, &r, &o);
    CHECK_INT(set_status(&l, 2, 1), URMA_EINVAL);
    CHECK_INT(set_status(&l, 0, 2), URMA_EINVAL);
    CHECK_INT(set_status(&l, 1, 1), URMA_EINVAL); // too late for a page
    CHECK_INT(drydock_queue_of_jfs(l.jfs, &q), URMA_EINVAL);
    uend_wr(&l, &w, URMA_OPC_WRITE, 1, 0, 8);
    wr.wr = w.wr;
    CHECK_INT(urma_user_ctl(l.ctx, &in, &out), URMA_FAIL); // no queue
    CHECK(bad == &wr);
    bad = NULL;
    ex.jfs = l.jfs;
    CHECK_INT(urma_user_ctl(l.ctx, &in, &out), URMA_FAIL); // reduction
    wr.reduce_en = false;
    in.len--;
    CHECK_INT(urma_user_ctl(l.ctx, &in, &out), URMA_FAIL);
    in.len++;
    out.len = 0;
    CHECK_INT(urma_user_ctl(l.ctx, &in, &out), URMA_FAIL);
    out.len = sizeof info;
    wr.wr.opcode = URMA_OPC_LAST;
    ex.db_en = true;
    CHECK_INT(urma_user_ctl(l.ctx, &in, &out), URMA_FAIL);
    CHECK(bad == &wr);
    ucr_expect_empty(l.jfc, 1);
    upair_close(&l, &r);
}

// ---- driven by hand

struct driven {
    struct uend l, r;
    urma_jfs_t *jfs;
    urma_jfc_t *jfc;
    struct drydock_queue q;
    struct drydock_target t;
};

static void open_with_jfc_of(struct driven *d, uint32_t depth, urma_status_t viewed)
{
    const struct uend_options o = {.mode = URMA_TM_RM, .halves = true};
    urma_jfc_cfg_t jfc = {.depth = depth};
    const uint8_t own = 1;

    upair_open(&d->l, &d->r, &o);
    d->jfc = urma_create_jfc(d->l.ctx, &jfc);
    CHECK(d->jfc != NULL);
    urma_jfs_cfg_t cfg = d->l.jfs->jfs_cfg;
    cfg.jfc = d->jfc;
    cfg.depth = 13; // blocks: 16
    CHECK_INT(urma_alloc_jfs(d->l.ctx, &cfg, &d->jfs), 0);
    CHECK(drydock_queue_of_jfs(d->jfs, &d->q) == URMA_EINVAL); // there is no ring yet
    CHECK_INT(urma_set_jfs_opt(d->jfs, URMA_JFS_DB_STATUS, (void *)(uintptr_t)&own, 1), 0);
    CHECK_INT(urma_active_jfs(d->jfs), 0);
    CHECK_INT(drydock_queue_of_jfs(d->jfs, &d->q), viewed);
    d->t = drydock_target_of_seg(&d->l.target->id, &d->r.seg[0], (urma_token_t){UEND_TOKEN});
}

static void open_driven(struct driven *d)
{
    open_with_jfc_of(d, 16, URMA_SUCCESS);
    CHECK_INT(d->q.blocks, 16);
}

static void close_driven(struct driven *d)
{
    CHECK_INT(urma_deactive_jfs(d->jfs), 0);
    CHECK_INT(urma_free_jfs(d->jfs), 0);
    CHECK_INT(urma_delete_jfc(d->jfc), 0);
    upair_close(&d->l, &d->r);
}

static int quiet(struct driven *d)
{
    return drydock_poll_until(&d->q, d->q.rung, LOOKS);
}

static void a_jfs_is_driven_by_stores_alone(void **state)
{
    struct driven d;
    uint64_t *mine;

    (void)state;
    open_driven(&d);
    mine = far_word(&d.l, 0);
    for (uint64_t pass = 1; pass <= 30;
         pass++) { // five blocks each: two-block WQEs lie across the ring's end
        mine[0] = 1000 + pass;
        CHECK_INT(drydock_post_write(&d.q, &d.t, d.t.address, mine, 8, 0), 0);
        CHECK_INT(
            drydock_post_write_notify(&d.q, &d.t, d.t.address + 8, mine, 8, &d.t, d.t.address + 16, pass, 0),
            0);
        CHECK_INT(drydock_post_fetch_add(&d.q, &d.t, d.t.address + 24, mine + 1, 3, DRYDOCK_COMPLETE), 0);
        drydock_ring(&d.q);
        CHECK_INT(quiet(&d), 0);
        CHECK_INT(*far_word(&d.r, 0), 1000 + pass);
        CHECK_INT(*far_word(&d.r, 1), 1000 + pass);
        CHECK_INT(*far_word(&d.r, 2), pass);
        CHECK_INT(mine[1], 3 * (pass - 1));
    }
    mine[0] = 5;
    CHECK_INT(drydock_post_write(&d.q, &d.t, d.t.address, mine, 8, DRYDOCK_COMPLETE), 0);
    CHECK_INT(drydock_ring_whole(&d.q), 0); // the page has its place
    CHECK_INT(quiet(&d), 0);
    CHECK_INT(*far_word(&d.r, 0), 5);
    close_driven(&d);
}

static void an_error_of_a_driven_jfs_is_returned(void **state)
{
    struct driven d;

    (void)state;
    open_driven(&d);
    d.t.token ^= 1;
    CHECK_INT(drydock_post_write(&d.q, &d.t, d.t.address, d.l.buf, 8, DRYDOCK_COMPLETE), 0);
    drydock_ring(&d.q);
    CHECK_INT(quiet(&d), 0x302); // remote access
    close_driven(&d);
}

// Each block may have a completion; a ring of completions is rounded up, what waits in it is not.
static void a_jfc_without_a_place_for_each_block_is_refused(void **state)
{
    static const uint32_t too_short[] = {8, 9, 15};
    struct driven d;

    (void)state;
    for (size_t i = 0; i < sizeof too_short / sizeof *too_short; i++) {
        open_with_jfc_of(&d, too_short[i], URMA_EINVAL);
        close_driven(&d);
    }
    open_with_jfc_of(&d, 17, URMA_SUCCESS);
    for (unsigned i = 0; i < 16; i++)
        CHECK_INT(drydock_post_write(&d.q, &d.t, d.t.address, d.l.buf, 8, DRYDOCK_COMPLETE), 0);
    drydock_ring(&d.q);
    CHECK_INT(quiet(&d), 0);
    close_driven(&d);
}

static void what_was_driven_by_hand_stays_driven(void **state)
{
    struct udma_u_jfs_wr_ex *bad = NULL, wr = {0};
    struct udma_u_wr_ex ex = {.db_en = true, .wr = &wr, .bad_wr = &bad};
    struct udma_u_post_info info;
    urma_user_ctl_in_t in = {.addr = (uintptr_t)&ex, .len = sizeof ex, .opcode = UDMA_U_USER_CTL_POST_WR};
    urma_user_ctl_out_t out = {.addr = (uintptr_t)&info, .len = sizeof info};
    uint8_t ring = 0, own;
    struct driven d;
    struct uwr w;

    (void)state;
    open_driven(&d);
    for (unsigned pass = 1; pass <= 2; pass++) { // what was refused changed nothing
        for (unsigned i = 0; i < 3; i++)
            CHECK_INT(drydock_post_write(&d.q, &d.t, d.t.address, d.l.buf, 8, DRYDOCK_COMPLETE), 0);
        drydock_ring(&d.q);
        CHECK_INT(quiet(&d), 0);
        CHECK_INT(urma_set_jfs_opt(d.jfs, URMA_JFS_DB_STATUS, &ring, 1), URMA_EINVAL);
        CHECK_INT(urma_get_jfs_opt(d.jfs, URMA_JFS_DB_STATUS, &own, 1), 0);
        CHECK_INT(own, 1);
        uend_wr(&d.l, &w, URMA_OPC_WRITE, 1, 0, 8);
        wr.wr = w.wr;
        ex.jfs = d.jfs;
        bad = NULL;
        CHECK_INT(urma_user_ctl(d.l.ctx, &in, &out), URMA_FAIL);
        CHECK(bad == &wr);
        CHECK_INT(atomic_load(d.q.doorbell), pass * 3);
    }
    close_driven(&d);
}

// The other way to use the option: posts by the calls, and the program's moment for the doorbell.
static void a_jetty_that_the_program_rings_for_goes_back_to_ringing_itself(void **state)
{
    const struct uend_options o = {.mode = URMA_TM_RM};
    urma_jetty_t *usual, *own;
    struct uend l, r;
    struct uwr w;

    (void)state;
    upair_open(&l, &r, &o);
    usual = l.jetty;
    urma_jetty_cfg_t cfg = usual->jetty_cfg;
    CHECK_INT(urma_alloc_jetty(l.ctx, &cfg, &own), 0);
    l.jetty = own;
    CHECK_INT(set_status(&l, 1, 1), 0);
    CHECK_INT(urma_active_jetty(own), 0);
    for (unsigned i = 0; i < 8; i++) { // of two blocks: all 16 that the depth names
        uend_wr(&l, &w, URMA_OPC_FADD, i, 0, 8);
        w.wr.faa.operand = 1;
        CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
    }
    CHECK_INT(uend_post(&l, &w.wr, NULL), URMA_ENOMEM);
    ucr_expect_empty(l.jfc, 6);
    CHECK_INT(set_status(&l, 0, 1), 0);
    for (unsigned i = 0; i < 8; i++)
        ucr_expect(l.jfc, i, URMA_CR_SUCCESS, NULL);
    CHECK_INT(*far_word(&r, 0), 8);
    CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
    ucr_expect(l.jfc, 7, URMA_CR_SUCCESS, NULL);
    CHECK_INT(urma_deactive_jetty(own), 0);
    CHECK_INT(urma_free_jetty(own), 0);
    l.jetty = usual;
    upair_close(&l, &r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_posted_with_db_bypass_waits_for_one_later_ring),
        cmocka_unit_test(what_was_never_rung_for_goes_with_the_queue),
        cmocka_unit_test(in_error_and_suspended_they_come_back),
        cmocka_unit_test(after_a_failure_of_the_queue_they_come_back_as_well),
        cmocka_unit_test(what_was_kept_goes_to_no_other_peer),
        cmocka_unit_test(a_stray_doorbell_harms_its_own_queue_alone),
        cmocka_unit_test(a_full_ring_counts_what_was_kept),
        cmocka_unit_test(the_control_call_tells_of_the_last_of_a_list),
        cmocka_unit_test(what_is_wrong_is_refused_and_posts_nothing),
        cmocka_unit_test(a_jfs_is_driven_by_stores_alone),
        cmocka_unit_test(an_error_of_a_driven_jfs_is_returned),
        cmocka_unit_test(a_jfc_without_a_place_for_each_block_is_refused),
        cmocka_unit_test(what_was_driven_by_hand_stays_driven),
        cmocka_unit_test(a_jetty_that_the_program_rings_for_goes_back_to_ringing_itself),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
