// SPDX-License-Identifier: MIT
// A message that has failed its target and is tried again takes no further receive, also before the target's
// own engine has looked.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/internal.h"
#include "lib/fork.h"
#include "lib/pair.h"

#define NO_WINDOW 0xdead00u
#define RECEIVES 4u

// A sender, and a receiver of another device whose engine runs only when it is told to.
struct world {
    struct dock_dev *near, *far;
    struct end a, b;
};

static void open_world(struct world *w)
{
    // Nobody answers: 4 ms, four times.
    static const struct dock_qp_mod knobs = {
        .timeout = 10, .retry = 3, .rnr_retry = 0, .rnr_timer = 1, .rd_atomic = 16, .dest_rd_atomic = 16};
    struct dock_config cfg = {.no_engine_thread = true};
    struct end_opts o = {0};

    assert_int_equal(dock_dev_open(&cfg, &w->near), 0);
    assert_int_equal(dock_dev_open(&cfg, &w->far), 0);
    end_open(&w->a, w->near, &o);
    end_open(&w->b, w->far, &o);
    pair_connect_stepped(&w->a, &w->b);
    assert_int_equal(
        dock_qp_modify(w->a.qp, &(struct dock_qp_mod){.mask = DOCK_MOD_STATE, .state = DOCK_RESET}), 0);
    end_connect(&w->a, dock_qp_number(w->b.qp), &knobs);
    for (unsigned i = 0; i < RECEIVES; i++)
        assert_int_equal(end_recv(&w->b, i, w->b.mem, 64), 0);
}

static void close_world(struct world *w)
{
    end_close(&w->a);
    end_close(&w->b);
    assert_int_equal(dock_dev_close(w->near), 0);
    assert_int_equal(dock_dev_close(w->far), 0);
}

static void send_inv(struct world *w)
{
    struct dock_sge sge;
    struct dock_wr wr = wr_onesided(DOCK_OP_SEND_INV, &w->a, &sge, 0, 8, w->a.mr, 0);

    wr.rkey = NO_WINDOW;
    assert_int_equal(end_post(&w->a, &wr), 0);
}

static uint32_t sent(struct world *w)
{
    struct dock_wc wc;

    for (unsigned i = 0; !end_poll(w->a.scq, &wc); i++) {
        assert_true(i < 10000);
        dock_engine_step(w->near);
        test_nap_us(100);
    }
    return wc.status;
}

// One receive has told why; the others are flushed when the target's engine looks.
static void expect_one_failed_and_the_rest_flushed(struct world *w)
{
    struct dock_wc wc;

    assert_true(end_poll(w->b.rcq, &wc));
    assert_int_equal(wc.id, 0);
    assert_int_equal(wc.status, DOCK_ST_LOC_PROT);
    assert_false(end_poll(w->b.rcq, &wc));
    for (unsigned i = 0; i < 3; i++)
        dock_engine_step(w->far);
    for (unsigned i = 1; i < RECEIVES; i++) {
        assert_true(end_poll(w->b.rcq, &wc));
        assert_int_equal(wc.id, i);
        assert_int_equal(wc.status, DOCK_ST_FLUSH);
    }
}

static void a_retry_takes_no_further_receive(void **state)
{
    struct world w;

    (void)state;
    open_world(&w);
    send_inv(&w);
    assert_int_equal(sent(&w), DOCK_ST_RETRY_EXC);
    expect_one_failed_and_the_rest_flushed(&w);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_retry_takes_no_further_receive),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
