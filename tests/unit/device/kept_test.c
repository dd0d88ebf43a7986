// SPDX-License-Identifier: MIT
// What was posted and not rung for, from inside: how long its doorbell is watched, what a watch leaves to the
// rest of the engine, and a doorbell that is only ever raised.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>

#include "base/clock.h"
#include "device/internal.h"
#include "lib/pair.h"

struct world {
    struct dock_dev *dev;
    struct end a, b;
};

static void open_world(struct world *w, bool engine, bool lock_free)
{
    struct dock_config cfg = {.no_engine_thread = !engine};
    struct end_opts o = {.lock_free = lock_free};

    assert_int_equal(dock_dev_open(&cfg, &w->dev), 0);
    end_open(&w->a, w->dev, &o);
    end_open(&w->b, w->dev, &o);
    pair_connect(&w->a, &w->b);
}

static void close_world(struct world *w)
{
    end_close(&w->a);
    end_close(&w->b);
    assert_int_equal(dock_dev_close(w->dev), 0);
}

static void put(struct world *w, struct dock_post *p, uint64_t id)
{
    struct dock_sge sge;
    struct dock_wr wr = wr_onesided(DOCK_OP_WRITE, &w->a, &sge, 0, 8, w->b.mr, (uintptr_t)w->b.mem);

    wr.id = id;
    assert_int_equal(dock_post_put(p, &wr), 0);
}

static void keep(struct world *w, uint64_t id)
{
    struct dock_post p;

    dock_post_open(w->a.qp, &p);
    put(w, &p, id);
    dock_post_keep(&p);
}

static void post(struct world *w, uint64_t id)
{
    struct dock_post p;

    dock_post_begin(w->a.qp, &p);
    put(w, &p, id);
    dock_post_end(&p);
}

static void expect(struct world *w, uint64_t id)
{
    struct dock_wc wc = {0};

    assert_true(end_wait(w->a.scq, &wc, 10000));
    assert_int_equal(wc.status, DOCK_OK);
    assert_int_equal(wc.id, id);
}

// ---- the watch; without an engine thread the test says when it looks

static void a_doorbell_is_watched_until_what_was_kept_is_rung_for(void **state)
{
    struct world w;

    (void)state;
    open_world(&w, false, false);
    struct dock_sq_post *sq = &w.a.qp->sq.post;
    for (uint64_t n = 1; n <= 3; n++) { // left alone, it is found again
        keep(&w, 10 * n);
        keep(&w, 10 * n + 1);
        assert_int_equal(dock_peek32(&w.dev->raw_queues), 1);
        dock_raw_watch(w.dev); // its doorbell had moved before, perhaps
        assert_false(dock_raw_watch(w.dev));
        dock_publish32(sq->doorbell, dock_peek32(&sq->pi) - 1); // for the first of two
        assert_true(dock_raw_watch(w.dev));
        expect(&w, 10 * n);
        dock_raw_forsake(w.dev);
        assert_int_equal(dock_peek32(&w.dev->raw_queues), 1);
        dock_publish32(sq->doorbell, dock_peek32(&sq->pi));
        assert_true(dock_raw_watch(w.dev));
        expect(&w, 10 * n + 1);
        post(&w, 10 * n + 2); // of this no watch is needed
        assert_false(dock_raw_watch(w.dev));
        expect(&w, 10 * n + 2);
        dock_raw_forsake(w.dev);
        assert_int_equal(dock_peek32(&w.dev->raw_queues), 0);
    }
    keep(&w, 40);
    post(&w, 41); // rings for both
    assert_true(dock_raw_watch(w.dev));
    dock_raw_forsake(w.dev);
    assert_int_equal(dock_peek32(&w.dev->raw_queues), 0);
    expect(&w, 40);
    expect(&w, 41);
    keep(&w, 50); // goes with the queue, watched
    close_world(&w);
}

#define MS 1000000ull

static void a_watch_makes_the_engine_look_sooner_and_never_later(void **state)
{
    static const struct {
        uint32_t queues, held;
        uint64_t since_move, since_work, expected;
    } rows[] = {
        {0, 0, 0, 5 * MS, MS / 5},         {0, 0, 0, 20 * MS, 1000 * MS},
        {0, 1, 0, 20 * MS, MS / 5},        {1, 0, 10000, 20 * MS, 0},
        {1, 0, 20 * MS, 20 * MS, MS},      {1, 0, 2000 * MS, 2000 * MS, 4 * MS},
        {1, 0, 20 * MS, 5 * MS, MS / 5}, // work beside the watch is ticked for as without it
        {1, 0, 2000 * MS, 5 * MS, MS / 5}, {1, 1, 2000 * MS, 2000 * MS, MS / 5},
    };
    static struct dock_dev dev;
    const uint64_t now = 1000000 * MS;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dock_set32(&dev.raw_queues, rows[i].queues);
        dock_set32(&dev.held_events, rows[i].held);
        dock_set64(&dev.raw_moved_ns, now - rows[i].since_move);
        dev.worked_ns = now - rows[i].since_work;
        uint64_t got = dock_engine_patience(&dev, now);
        if (got != rows[i].expected)
            fail_msg("row %zu: expected %llu ns, got %llu", i, (unsigned long long)rows[i].expected,
                     (unsigned long long)got);
    }
}

static void an_engine_that_watches_is_woken_for_work_as_one_that_sleeps_deep(void **state)
{
    uint64_t until = dock_now_ns() + 20000 * MS;
    struct world w;

    (void)state;
    open_world(&w, true, false);
    keep(&w, 1);
    while (dock_peek32(&w.dev->port->asleep) != DOCK_DEEP && dock_now_ns() < until)
        sched_yield();
    assert_true(dock_now_ns() < until);
    assert_int_equal(dock_peek32(&w.dev->raw_queues), 1);
    close_world(&w);
}

// ---- raising

static void a_ring_raises_the_doorbell_and_never_lowers_it(void **state)
{
    struct world w;

    (void)state;
    open_world(&w, false, true);
    struct dock_sq_post *sq = &w.a.qp->sq.post;
    keep(&w, 1);
    uint32_t pi = dock_peek32(&sq->pi);
    assert_true(dock_sq_raise(sq));
    assert_int_equal(dock_peek32(sq->doorbell), pi);
    assert_false(dock_sq_raise(sq)); // it says so already
    dock_set32(sq->doorbell, pi + 1);
    assert_false(dock_sq_raise(sq)); // somebody rang for more
    assert_int_equal(dock_peek32(sq->doorbell), pi + 1);
    dock_set32(sq->doorbell, pi);
    dock_post_ring(w.a.qp);
    dock_sq_ring(&w.a.qp->sq, DOCK_BY_POLLER);
    expect(&w, 1);
    close_world(&w);
}

static void *ring_all_the_time(void *arg)
{
    struct world *w = arg;

    for (unsigned i = 0; i < 3000; i++) {
        dock_post_ring(w->a.qp);
        if (i % 16 == 0)
            sched_yield();
    }
    return NULL;
}

static void one_posts_without_a_lock_and_another_rings(void **state)
{
    struct world w;
    pthread_t t;

    (void)state;
    open_world(&w, false, true);
    assert_int_equal(pthread_create(&t, NULL, ring_all_the_time, &w), 0);
    for (uint64_t id = 0; id < 1000; id += 2) {
        keep(&w, id);
        post(&w, id + 1);
        expect(&w, id);
        expect(&w, id + 1);
    }
    pthread_join(t, NULL);
    assert_int_equal(dock_qp_state(w.a.qp), DOCK_RTS);
    close_world(&w);
}

// ---- what a doorbell cannot say

static void reset_forgets_what_was_kept(void **state)
{
    const struct dock_qp_mod reset = {.mask = DOCK_MOD_STATE, .state = DOCK_RESET};
    struct dock_wc wc;
    struct world w;

    (void)state;
    open_world(&w, false, false);
    keep(&w, 1);
    keep(&w, 2);
    assert_int_equal(dock_qp_modify(w.a.qp, &reset), 0);
    end_connect(&w.a, dock_qp_number(w.b.qp), NULL);
    dock_post_ring(w.a.qp);
    dock_raw_watch(w.dev); // nothing waits any more
    dock_raw_forsake(w.dev);
    assert_int_equal(dock_peek32(&w.dev->raw_queues), 0);
    post(&w, 3);
    expect(&w, 3);
    assert_false(end_poll(w.a.scq, &wc));
    close_world(&w);
}

static void a_doorbell_that_goes_back_repeats_nothing(void **state)
{
    struct dock_wc wc;
    struct world w;

    (void)state;
    open_world(&w, false, false);
    struct dock_sq_post *sq = &w.a.qp->sq.post;
    keep(&w, 1);
    uint32_t mine = dock_peek32(&sq->pi);
    post(&w, 2); // rings for both
    expect(&w, 1);
    expect(&w, 2);
    dock_publish32(sq->doorbell, mine); // the store that was meant for the first comes late
    dock_raw_watch(w.dev);
    dock_sq_ring(&w.a.qp->sq, DOCK_BY_POLLER);
    assert_false(end_poll(w.a.scq, &wc));
    assert_int_equal(dock_qp_state(w.a.qp), DOCK_RTS);
    post(&w, 3);
    expect(&w, 3);
    close_world(&w);
}

static void a_doorbell_past_what_was_posted_completes_nothing_but_that(void **state)
{
    static const uint32_t past[] = {1, 60, 100000};
    struct dock_wc wc;
    struct world w;

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        open_world(&w, false, false);
        struct dock_sq_post *sq = &w.a.qp->sq.post;
        keep(&w, 1);
        dock_publish32(sq->doorbell, dock_peek32(&sq->pi) + past[i]);
        for (unsigned n = 0; n < 3; n++)
            dock_engine_step(w.dev);
        assert_int_equal(dock_peek32(sq->doorbell), dock_peek32(&sq->pi));
        assert_int_equal(dock_qp_state(w.a.qp), DOCK_ERR);
        assert_true(end_wait(w.a.scq, &wc, 1000));
        assert_int_equal(wc.id, 1);
        assert_int_equal(wc.status, DOCK_ST_FLUSH);
        assert_false(end_poll(w.a.scq, &wc));
        post(&w, 2); // in ERR: there is room, and it is flushed
        assert_true(end_wait(w.a.scq, &wc, 1000));
        assert_int_equal(wc.id, 2);
        assert_int_equal(wc.status, DOCK_ST_FLUSH);
        close_world(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_doorbell_is_watched_until_what_was_kept_is_rung_for),
        cmocka_unit_test(a_watch_makes_the_engine_look_sooner_and_never_later),
        cmocka_unit_test(an_engine_that_watches_is_woken_for_work_as_one_that_sleeps_deep),
        cmocka_unit_test(a_ring_raises_the_doorbell_and_never_lowers_it),
        cmocka_unit_test(one_posts_without_a_lock_and_another_rings),
        cmocka_unit_test(reset_forgets_what_was_kept),
        cmocka_unit_test(a_doorbell_that_goes_back_repeats_nothing),
        cmocka_unit_test(a_doorbell_past_what_was_posted_completes_nothing_but_that),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
