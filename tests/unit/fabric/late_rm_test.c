// SPDX-License-Identifier: MIT
// One queue to several targets over a fabric that finishes late: order of completions, and rest that is told
// when nothing is under way any more.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/seed.h"
#include "device/internal.h"
#include "lib/late.h"
#include "lib/pair.h"

#define TARGETS 3u
#define WRS 9u

struct world {
    struct dock_dev *dev;
    struct end from, to[TARGETS];
    uint64_t seed;
};

static void open_world(struct world *w, enum dock_on_error on_error)
{
    struct dock_config cfg = {.fabric = &late_fabric, .no_engine_thread = true};
    struct end_opts o = {.service = DOCK_RM, .mem = 65536, .on_error = on_error};

    w->seed = dock_seed();
    late_open(w->seed, 0);
    assert_int_equal(dock_dev_open(&cfg, &w->dev), 0);
    end_open(&w->from, w->dev, &o);
    end_connect(&w->from, 0, NULL);
    for (unsigned i = 0; i < TARGETS; i++) {
        end_open(&w->to[i], w->dev, &o);
        end_connect(&w->to[i], 0, NULL);
    }
}

static void close_world(struct world *w)
{
    late_drain();
    end_close(&w->from);
    for (unsigned i = 0; i < TARGETS; i++)
        end_close(&w->to[i]);
    assert_int_equal(dock_dev_close(w->dev), 0);
    late_close();
}

static uint64_t *word(struct end *e, unsigned i)
{
    return (uint64_t *)(void *)(e->mem + 64 * (size_t)i);
}

// WR i writes i + 1 to word i of target i modulo their number.
static void post_all(struct world *w)
{
    for (unsigned i = 0; i < WRS; i++) {
        struct end *to = &w->to[i % TARGETS];
        struct dock_sge sge;
        struct dock_wr wr =
            wr_onesided(DOCK_OP_WRITE, &w->from, &sge, 64 * (size_t)i, 8, to->mr, (uintptr_t)word(to, i));
        *word(&w->from, i) = i + 1;
        wr.id = i;
        wr_aim(&wr, dock_qp_number(to->qp));
        assert_int_equal(end_post(&w->from, &wr), 0);
    }
    assert_int_equal(late_count().started, WRS); // none waits for another, whomever it is for
}

static struct dock_wc expect(struct world *w, uint64_t id, uint32_t status)
{
    struct dock_wc wc = {.status = 0xfff};

    if (!end_poll(w->from.scq, &wc) || wc.id != id || wc.status != status)
        print_error("WR %llu: expected status %#x, got %llu, %#x; seed %#llx: DRYDOCK_SEED repeats it\n",
                    (unsigned long long)id, status, (unsigned long long)wc.id, wc.status,
                    (unsigned long long)w->seed);
    assert_int_equal(wc.id, id);
    assert_int_equal(wc.status, status);
    return wc;
}

static void expect_none(struct world *w)
{
    struct dock_wc wc;

    assert_false(end_poll(w->from.scq, &wc));
}

static void finished_backwards_they_complete_in_order_and_tell_their_targets(void **state)
{
    struct world w;

    (void)state;
    open_world(&w, DOCK_ON_ERROR_CONTINUE);
    post_all(&w);
    for (unsigned i = WRS; i-- > 1;) {
        assert_true(late_bring(i, LATE_FINISH));
        expect_none(&w);
    }
    assert_true(late_bring(0, LATE_FINISH));
    for (unsigned i = 0; i < WRS; i++) {
        struct end *to = &w.to[i % TARGETS];
        assert_int_equal(expect(&w, i, DOCK_OK).src_qp, dock_qp_number(to->qp));
        assert_int_equal(*word(to, i), i + 1);
    }
    close_world(&w);
}

static void rest_is_told_when_nothing_is_under_way(void **state)
{
    struct dock_qp_mod m = {.mask = DOCK_MOD_STATE, .state = DOCK_SUSPENDED};
    struct world w;

    (void)state;
    open_world(&w, DOCK_ON_ERROR_SUSPEND);
    post_all(&w);
    assert_int_equal(dock_qp_modify(w.from.qp, &m), 0);
    for (unsigned i = 1; i < WRS; i++)
        assert_true(late_bring(i, LATE_FINISH));
    expect_none(&w); // the first is still under way
    late_drain();
    for (unsigned i = 0; i < WRS; i++)
        expect(&w, i, DOCK_OK);
    expect(&w, 0, DOCK_ST_SUSPEND_DONE);
    expect_none(&w);
    close_world(&w);
}

// What was started to other targets before the failure was known succeeds; behind it at the same one it does
// not.
static void a_late_failure_suspends_and_the_others_finish(void **state)
{
    struct world w;

    (void)state;
    open_world(&w, DOCK_ON_ERROR_SUSPEND);
    late_fail(1, DOCK_ST_REM_ACCESS);
    post_all(&w);
    late_drain();
    for (unsigned i = 0; i < WRS; i++)
        expect(&w, i, i == 1 ? DOCK_ST_REM_ACCESS : i % TARGETS == 1 ? DOCK_ST_FLUSH : DOCK_OK);
    expect(&w, 0, DOCK_ST_SUSPEND_DONE);
    expect_none(&w);
    assert_int_equal(dock_qp_state(w.from.qp), DOCK_SUSPENDED);
    close_world(&w);
}

static void a_late_failure_stops_and_everything_behind_it_is_flushed(void **state)
{
    struct world w;

    (void)state;
    open_world(&w, DOCK_ON_ERROR_STOP);
    late_fail(1, DOCK_ST_REM_ACCESS);
    post_all(&w);
    late_drain();
    expect(&w, 0, DOCK_OK);
    expect(&w, 1, DOCK_ST_REM_ACCESS);
    for (unsigned i = 2; i < WRS; i++)
        expect(&w, i, DOCK_ST_FLUSH);
    dock_engine_step(w.dev); // receives are flushed by the engine, and then the record is due
    expect(&w, 0, DOCK_ST_FLUSH_DONE);
    expect_none(&w);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finished_backwards_they_complete_in_order_and_tell_their_targets),
        cmocka_unit_test(rest_is_told_when_nothing_is_under_way),
        cmocka_unit_test(a_late_failure_suspends_and_the_others_finish),
        cmocka_unit_test(a_late_failure_stops_and_everything_behind_it_is_flushed),
    };

    return cmocka_run_group_tests_name("one queue to several, late", tests, NULL, NULL);
}
