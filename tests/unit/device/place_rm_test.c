// SPDX-License-Identifier: MIT
// As place_test, of a queue without a connection: a small WRITE to the target that the one before it went to
// is placed by its put; one to another target waits for the end of the call, and so does what is behind it.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/internal.h"
#include "lib/pair.h"

enum { DEPTH = 8, TARGETS = 2 };

struct world {
    struct dock_dev *dev;
    struct end a, b[TARGETS];
    struct dock_sge sge;
    struct dock_post post;
};

static const struct dock_qp_mod impatient = {
    .timeout = 10, .retry = 1, .rnr_retry = 1, .rnr_timer = 1, .rd_atomic = 16};

static uint64_t *word(struct end *e, unsigned at)
{
    return (uint64_t *)(void *)(e->mem + 8ul * at);
}

static int put(struct world *w, unsigned target, unsigned at, uint32_t flags)
{
    struct end *b = &w->b[target];
    struct dock_wr wr =
        wr_onesided(DOCK_OP_WRITE, &w->a, &w->sge, 8ul * at, 8, b->mr, (uintptr_t)b->mem + 8ul * at);

    wr_aim(&wr, dock_qp_number(b->qp));
    wr.id = at;
    wr.flags = flags;
    wr.inline_len = 8;
    return dock_post_put(&w->post, &wr);
}

static bool arrived(struct world *w, unsigned target, unsigned at)
{
    return *word(&w->b[target], at) == 1000 + at;
}

static void expect(struct world *w, uint64_t id, unsigned target, uint32_t status)
{
    struct dock_wc wc = {0};

    assert_true(end_wait(w->a.scq, &wc, 10000));
    assert_int_equal(wc.status, status);
    assert_int_equal(wc.id, id);
    assert_int_equal(wc.src_qp, dock_qp_number(w->b[target].qp)); // to whom it went
}

// The first request to a target goes the long way, which finds it and the key.
static void settle(struct world *w, unsigned target, unsigned at)
{
    dock_post_begin(w->a.qp, &w->post);
    assert_int_equal(put(w, target, at, DOCK_F_COMPLETE), 0);
    dock_post_end(&w->post);
    expect(w, at, target, DOCK_OK);
}

static void open_world_with(struct world *w, bool engine)
{
    struct dock_config cfg = {.no_engine_thread = !engine};
    struct end_opts o = {.wr = DEPTH, .inline_max = 8, .service = DOCK_RM};

    assert_int_equal(dock_dev_open(&cfg, &w->dev), 0);
    end_open(&w->a, w->dev, &o);
    end_connect(&w->a, 0, &impatient);
    for (unsigned i = 0; i < TARGETS; i++) {
        end_open(&w->b[i], w->dev, &o);
        end_connect(&w->b[i], 0, &impatient);
    }
    for (unsigned i = 0; i < w->a.mem_size / 8; i++)
        *word(&w->a, i) = 1000 + i;
    settle(w, 1, 0);
    settle(w, 0, 0);
    dock_post_begin(w->a.qp, &w->post);
}

static void open_world(struct world *w)
{
    open_world_with(w, false);
}

static void close_world(struct world *w)
{
    end_close(&w->a);
    for (unsigned i = 0; i < TARGETS; i++)
        end_close(&w->b[i]);
    assert_int_equal(dock_dev_close(w->dev), 0);
}

static void what_goes_the_way_gone_last_is_placed(void **state)
{
    struct world w;
    struct dock_sq *sq;

    (void)state;
    open_world(&w);
    sq = &w.a.qp->sq;
    for (unsigned at = 1; at <= 3; at++) {
        assert_int_equal(put(&w, 0, at, at == 2 ? DOCK_F_INLINE : 0), 0);
        assert_true(arrived(&w, 0, at));
    }
    assert_true(dock_peek64(&sq->busy) & 1); // who takes the memory away waits for the end
    assert_int_equal(put(&w, 0, 4, DOCK_F_COMPLETE), 0);
    assert_true(arrived(&w, 0, 4));
    dock_post_end(&w.post);
    assert_false(dock_peek64(&sq->busy) & 1);
    assert_int_equal(dock_peek32(&sq->post.word), 0);
    expect(&w, 4, 0, DOCK_OK);
    close_world(&w);
}

static void another_target_waits_and_what_is_behind_it_too(void **state)
{
    struct world w;

    (void)state;
    open_world(&w);
    assert_int_equal(put(&w, 0, 1, 0), 0);
    assert_int_equal(put(&w, 1, 2, DOCK_F_COMPLETE), 0);
    assert_int_equal(put(&w, 0, 3, DOCK_F_COMPLETE), 0);
    assert_true(arrived(&w, 0, 1));
    assert_false(arrived(&w, 1, 2));
    assert_false(arrived(&w, 0, 3));
    dock_post_end(&w.post);
    expect(&w, 2, 1, DOCK_OK);
    expect(&w, 3, 0, DOCK_OK);
    assert_true(arrived(&w, 1, 2) && arrived(&w, 0, 3));
    assert_false(arrived(&w, 1, 1) || arrived(&w, 0, 2) || arrived(&w, 1, 3));
    settle(&w, 1, 5); // and that is the way gone last
    dock_post_begin(w.a.qp, &w.post);
    assert_int_equal(put(&w, 1, 6, DOCK_F_COMPLETE), 0);
    assert_true(arrived(&w, 1, 6));
    dock_post_end(&w.post);
    expect(&w, 6, 1, DOCK_OK);
    close_world(&w);
}

static void what_is_refused_is_not_placed(void **state)
{
    struct world w;

    (void)state;
    open_world(&w);
    for (unsigned at = 1; at <= DEPTH; at++)
        assert_int_equal(put(&w, 0, at, at == DEPTH ? DOCK_F_COMPLETE : 0), 0);
    dock_post_end(&w.post);
    dock_post_begin(w.a.qp, &w.post); // nothing stands before it, and nothing is polled
    assert_int_equal(put(&w, 0, DEPTH + 1, 0), -ENOMEM);
    assert_false(arrived(&w, 0, DEPTH + 1));
    dock_post_end(&w.post);
    expect(&w, DEPTH, 0, DOCK_OK);
    settle(&w, 0, DEPTH + 1);
    close_world(&w);
}

static void a_target_that_is_gone_is_not_written_to(void **state)
{
    struct end *b;
    struct world w;
    struct dock_wc wc;

    (void)state;
    open_world_with(&w, true); // it counts the retries
    dock_post_end(&w.post);
    b = &w.b[0];
    struct dock_wr wr = wr_onesided(DOCK_OP_WRITE, &w.a, &w.sge, 8, 8, b->mr, (uintptr_t)b->mem + 8);
    wr_aim(&wr, dock_qp_number(b->qp));
    assert_int_equal(dock_qp_destroy(b->qp), 0);
    b->qp = NULL;
    assert_int_equal(end_post(&w.a, &wr), 0);
    assert_true(end_wait(w.a.scq, &wc, 10000));
    assert_int_equal(wc.status, DOCK_ST_RETRY_EXC);
    assert_false(arrived(&w, 0, 1));
    close_world(&w);
}

static uint8_t nobody[16] = {1};

static void to_the_other_target(struct world *w, struct dock_wr *wr)
{
    wr_aim(wr, dock_qp_number(w->b[1].qp));
}

static void to_another_address(struct world *w, struct dock_wr *wr)
{
    (void)w;
    wr->eid = nobody;
}

static void to_a_group_of_that_number(struct world *w, struct dock_wr *wr)
{
    (void)w;
    wr->bundle = true;
}

// Memory of the target that was written to last, by a request that names another one.
static void a_key_alone_is_not_the_way(void **state)
{
    void (*const turned[])(struct world *, struct dock_wr *) = {NULL, to_the_other_target, to_another_address,
                                                                to_a_group_of_that_number};
    struct world w;
    struct dock_wc wc;

    (void)state;
    for (unsigned i = 0; i < sizeof turned / sizeof *turned; i++) {
        struct end *b = &w.b[0];
        open_world_with(&w, true); // it counts the retries
        dock_post_end(&w.post);
        struct dock_wr wr = wr_onesided(DOCK_OP_WRITE, &w.a, &w.sge, 8, 8, b->mr, (uintptr_t)b->mem + 8);
        wr_aim(&wr, dock_qp_number(b->qp));
        if (turned[i])
            turned[i](&w, &wr);
        assert_int_equal(end_post(&w.a, &wr), 0);
        assert_true(end_wait(w.a.scq, &wc, 10000));
        assert_int_equal(wc.status == DOCK_OK, !turned[i]);
        assert_int_equal(arrived(&w, 0, 1), !turned[i]);
        close_world(&w);
    }
}

// Where a request went is told with its completion, also of one that goes nowhere.
static void a_nop_between_two_is_told_as_one(void **state)
{
    struct world w;
    struct dock_wc wc;
    struct dock_wr nop = {.op = DOCK_OP_NOP, .flags = DOCK_F_COMPLETE, .id = 7};

    (void)state;
    open_world(&w);
    assert_int_equal(dock_post_put(&w.post, &nop), 0);
    dock_post_end(&w.post);
    assert_true(end_wait(w.a.scq, &wc, 10000));
    assert_int_equal(wc.id, 7);
    dock_post_begin(w.a.qp, &w.post);
    assert_int_equal(put(&w, 0, 1, DOCK_F_COMPLETE), 0);
    assert_true(arrived(&w, 0, 1));
    dock_post_end(&w.post);
    expect(&w, 1, 0, DOCK_OK);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_goes_the_way_gone_last_is_placed),
        cmocka_unit_test(another_target_waits_and_what_is_behind_it_too),
        cmocka_unit_test(what_is_refused_is_not_placed),
        cmocka_unit_test(a_target_that_is_gone_is_not_written_to),
        cmocka_unit_test(a_key_alone_is_not_the_way),
        cmocka_unit_test(a_nop_between_two_is_told_as_one),
    };

    return cmocka_run_group_tests_name("placing without a connection", tests, NULL, NULL);
}
