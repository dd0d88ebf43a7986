// SPDX-License-Identifier: MIT
// What each event does in each state of a queue: posts, receives, flush calls, requests of a peer, unbinding
// and deletion. One table, for jettys in RM, RC and UM, and for a JFS.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "face/urma/lib/uend.h"

enum { RESET, READY, SUSPENDED, ERROR, STATES };

static const char *const state_name[] = {"RESET", "READY", "SUSPENDED", "ERROR"};

static const struct kind {
    const char *name;
    struct uend_options opt;
} kinds[] = {{"RM jetty", {.mode = URMA_TM_RM}},
             {"RC jetty", {.mode = URMA_TM_RC}},
             {"UM jetty", {.mode = URMA_TM_UM}},
             {"RM JFS", {.mode = URMA_TM_RM, .halves = true}}};

static struct uend l, r; // l is in the state; r is its peer, and READY

// What an event comes to.
enum outcome {
    OK = 1,   // done, with a CR of success
    REFUSED,  // the call says EINVAL
    FLUSHED,  // taken, and a CR of WR_FLUSH_ERR
    KEPT,     // taken, no CR; a flush call gives it back as WR_UNHANDLED
    TAKEN,    // the call says 0, no CR belongs to it
    NONE,     // a flush call finds nothing
    UNSEEN,   // a peer's request waits until the queue is READY
    LOST,     // a peer's datagram is gone, and its sender does not learn
    NO_EVENT, // there is no such call for this kind
};

static const char *const outcome_name[] = {
    "?", "success", "EINVAL",   "a flushed CR", "kept for a flush call",
    "0", "nothing", "it waits", "it is lost"};

static urma_status_t go(urma_jetty_state_t to)
{
    urma_jetty_attr_t ja = {.mask = JETTY_STATE, .state = to};
    urma_jfs_attr_t sa = {.mask = JFS_STATE, .state = to};

    return l.jfs ? urma_modify_jfs(l.jfs, &sa) : urma_modify_jetty(l.jetty, &ja);
}

static void expect_mark(urma_cr_status_t status)
{
    urma_cr_t cr;

    CHECK(ucr_poll(l.jfc, &cr, 5000));
    CHECK_INT(cr.status, status);
}

static void lead_to(int state)
{
    if (state == SUSPENDED) {
        CHECK_INT(go(URMA_JETTY_STATE_SUSPENDED), 0);
        expect_mark(URMA_CR_WR_SUSPEND_DONE);
    }
    if (state == ERROR || state == RESET) {
        CHECK_INT(go(URMA_JETTY_STATE_ERROR), 0);
        expect_mark(URMA_CR_WR_FLUSH_ERR_DONE);
    }
    if (state == RESET)
        CHECK_INT(go(URMA_JETTY_STATE_RESET), 0);
}

static void lead_back(int state)
{
    if (state == SUSPENDED)
        CHECK_INT(go(URMA_JETTY_STATE_ERROR), 0);
    if (state != RESET && state != READY)
        CHECK_INT(go(URMA_JETTY_STATE_RESET), 0);
    if (state != READY)
        CHECK_INT(go(URMA_JETTY_STATE_READY), 0);
}

// ---- events; each says what came of it

static int flush(urma_cr_t *cr)
{
    return l.jfs ? urma_flush_jfs(l.jfs, 4, cr) : urma_flush_jetty(l.jetty, 4, cr);
}

static enum outcome post(urma_opcode_t op)
{
    urma_status_t status;
    urma_cr_t cr[4];
    struct uwr w;

    uend_wr(&l, &w, op, 5, 0, 8);
    if (op == URMA_OPC_SEND)
        CHECK_INT(uend_recv(&r, 1, 64, 8), 0);
    status = uend_post(&l, &w.wr, NULL);
    if (status)
        return status == URMA_EINVAL ? REFUSED : NO_EVENT;
    if (!ucr_poll(l.jfc, cr, 20)) {
        CHECK_INT(flush(cr), 1);
        CHECK_INT(cr[0].status, URMA_CR_WR_UNHANDLED);
        CHECK_INT(cr[0].user_ctx, 5);
        return KEPT;
    }
    CHECK_INT(cr[0].user_ctx, 5);
    return cr[0].status == URMA_CR_SUCCESS ? OK : cr[0].status == URMA_CR_WR_FLUSH_ERR ? FLUSHED : NO_EVENT;
}

static enum outcome posts_a_write(int state)
{
    (void)state;
    return post(URMA_OPC_WRITE);
}

static enum outcome posts_a_message(int state)
{
    (void)state;
    return post(URMA_OPC_SEND);
}

static enum outcome posts_a_receive(int state)
{
    (void)state;
    return uend_recv(&l, 1, 0, 8) ? REFUSED : TAKEN;
}

static enum outcome calls_flush(int state)
{
    urma_cr_t cr[4];

    (void)state;
    return flush(cr) ? KEPT : NONE;
}

// What nobody answers is sent again until the queue is READY: a WRITE, and a SEND behind it.
static enum outcome peer_writes_and_sends(int state)
{
    enum outcome came = OK;
    urma_cr_t cr;
    struct uwr w;

    *(volatile char *)(l.buf + 256) = 'o';
    r.buf[256] = 'n';
    CHECK_INT(uend_recv(&l, 1, 128, 8), 0);
    uend_wr(&r, &w, URMA_OPC_WRITE, 8, 256, 1);
    CHECK_INT(uend_post(&r, &w.wr, NULL), 0);
    uend_wr(&r, &w, URMA_OPC_SEND, 9, 0, 8);
    CHECK_INT(uend_post(&r, &w.wr, NULL), 0);
    if (!ucr_poll(r.jfc, &cr, 20)) {
        came = UNSEEN;
        lead_back(state);
        CHECK(ucr_poll(r.jfc, &cr, 20000));
    }
    CHECK(cr.user_ctx == 8 && cr.status == URMA_CR_SUCCESS);
    ucr_expect(r.jfc, 9, URMA_CR_SUCCESS, NULL);
    bool written = *(volatile char *)(l.buf + 256) == 'n',
         received = ucr_poll(l.rjfc, &cr, r.opt.mode == URMA_TM_UM ? 20 : 5000);
    CHECK_INT(received, written);
    if (!received)
        return LOST;
    CHECK(cr.user_ctx == 1 && cr.status == URMA_CR_SUCCESS);
    return came;
}

static enum outcome is_unbound(int state)
{
    (void)state;
    if (l.opt.mode != URMA_TM_RC)
        return NO_EVENT;
    return urma_unbind_jetty(l.jetty) ? REFUSED : TAKEN;
}

static enum outcome is_deleted_and_made_anew(int state)
{
    urma_jetty_cfg_t cfg;

    (void)state;
    if (l.jfs || l.opt.mode == URMA_TM_RC)
        return NO_EVENT;
    cfg = l.jetty->jetty_cfg;
    if (urma_delete_jetty(l.jetty))
        return REFUSED;
    l.jetty = urma_create_jetty(l.ctx, &cfg);
    CHECK(l.jetty != NULL);
    return TAKEN;
}

// ---- the table: RESET, READY, SUSPENDED, ERROR

static const struct event {
    const char *name;
    enum outcome (*happens)(int state);
    enum outcome comes[STATES];
    enum outcome um[STATES];  // where a jetty in UM differs
    enum outcome jfs[STATES]; // where a JFS does: who sends to this end reaches its JFR, which is READY
} events[] = {
    {"a WRITE is posted", posts_a_write, {REFUSED, OK, KEPT, FLUSHED}, {0}, {0}},
    {"a SEND is posted", posts_a_message, {REFUSED, OK, KEPT, FLUSHED}, {0}, {0}},
    {"a receive is posted", posts_a_receive, {TAKEN, TAKEN, TAKEN, TAKEN}, {0}, {0}},
    {"a flush call", calls_flush, {NONE, NONE, NONE, NONE}, {0}, {0}},
    {"a peer's WRITE and SEND",
     peer_writes_and_sends,
     {UNSEEN, OK, OK, UNSEEN},
     {LOST, OK, OK, LOST},
     {OK, OK, OK, OK}},
    {"it is unbound", is_unbound, {TAKEN, TAKEN, TAKEN, TAKEN}, {0}, {0}},
    {"it is deleted", is_deleted_and_made_anew, {TAKEN, TAKEN, TAKEN, TAKEN}, {0}, {0}},
};

static enum outcome expected(const struct event *e, const struct kind *k, int state)
{
    const enum outcome *own = k->opt.halves ? e->jfs : k->opt.mode == URMA_TM_UM ? e->um : e->comes;

    return own[state] ? own[state] : e->comes[state];
}

static void each_event_in_each_state(void **state)
{
    unsigned cells = 0;

    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (size_t i = 0; i < sizeof events / sizeof *events; i++)
            for (int s = 0; s < STATES; s++) {
                struct uend_options opt = kinds[k].opt;
                opt.err_timeout = 16; // a quarter of a second between two tries, eight of them
                upair_open(&l, &r, &opt);
                lead_to(s);
                enum outcome got = events[i].happens(s), want = expected(&events[i], &kinds[k], s);
                if (got != want && got != NO_EVENT)
                    check_failed(__FILE__, __LINE__, "%s in %s: %s: expected %s, got %s", kinds[k].name,
                                 state_name[s], events[i].name, outcome_name[want], outcome_name[got]);
                cells += got != NO_EVENT;
                upair_close(&l, &r);
            }
    printf("%u cells\n", cells);
    CHECK(cells >= 92);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_event_in_each_state),
    };

    return cmocka_run_group_tests_name("urma states and events", tests, uend_keep_device, uend_let_device_go);
}
