// SPDX-License-Identifier: MIT
// What is executed while it is posted, from inside: a small WRITE or SEND with nothing before it is placed by
// its put; what stands behind another, is refused, or has not all at hand is not.
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/internal.h"
#include "lib/pair.h"

enum { DEPTH = 8 };

struct world {
    struct dock_dev *dev;
    struct end a, b;
    struct dock_sge sge;
    struct dock_post post;
};

static uint64_t *word(struct end *e, unsigned at)
{
    return (uint64_t *)(void *)(e->mem + 8ul * at);
}

static struct dock_wr wr_of(struct world *w, uint8_t op, unsigned at, uint32_t len)
{
    struct dock_wr wr =
        wr_onesided(op, &w->a, &w->sge, 8ul * at, len, w->b.mr, (uintptr_t)w->b.mem + 8ul * at);

    wr.id = at;
    wr.flags = 0;
    return wr;
}

static int put(struct world *w, uint8_t op, unsigned at, uint32_t flags)
{
    struct dock_wr wr = wr_of(w, op, at, 8);

    wr.flags = flags;
    wr.inline_len = 8;
    return dock_post_put(&w->post, &wr);
}

static void expect(struct dock_cq *cq, uint64_t id, uint32_t status)
{
    struct dock_wc wc = {0};

    assert_true(end_wait(cq, &wc, 10000));
    assert_int_equal(wc.status, status);
    assert_int_equal(wc.id, id);
}

// The first request goes the long way, which finds the peer and the key; with it everything is polled.
static void settle(struct world *w, unsigned at)
{
    dock_post_begin(w->a.qp, &w->post);
    assert_int_equal(put(w, DOCK_OP_WRITE, at, DOCK_F_COMPLETE), 0);
    dock_post_end(&w->post);
    expect(w->a.scq, at, DOCK_OK);
}

static void open_world_of(struct world *w, uint32_t depth, uint32_t inline_max)
{
    struct dock_config cfg = {.no_engine_thread = true};
    struct end_opts o = {.wr = depth, .inline_max = inline_max};

    assert_int_equal(dock_dev_open(&cfg, &w->dev), 0);
    end_open(&w->a, w->dev, &o);
    end_open(&w->b, w->dev, &o);
    pair_connect(&w->a, &w->b);
    for (unsigned i = 0; i < w->a.mem_size / 8; i++)
        *word(&w->a, i) = 1000 + i;
    settle(w, 0);
    dock_post_begin(w->a.qp, &w->post);
}

static void open_world(struct world *w)
{
    open_world_of(w, DEPTH, 8);
}

static void close_world(struct world *w)
{
    end_close(&w->a);
    end_close(&w->b);
    assert_int_equal(dock_dev_close(w->dev), 0);
}

static bool arrived(struct world *w, unsigned at)
{
    return *word(&w->b, at) == 1000 + at;
}

static void what_is_put_is_placed(void **state)
{
    struct world w;
    struct dock_sq *sq;
    uint64_t executed;

    (void)state;
    open_world(&w);
    sq = &w.a.qp->sq;
    executed = dock_peek64(&sq->rec->executed);
    for (unsigned at = 1; at <= 3; at++) {
        assert_int_equal(put(&w, DOCK_OP_WRITE, at, at == 2 ? DOCK_F_INLINE : 0), 0);
        assert_true(arrived(&w, at));
    }
    assert_true(dock_peek64(&sq->busy) & 1); // who takes the memory away waits for the end
    assert_true(sq->conn->hazard_value & 1);
    dock_post_end(&w.post);
    assert_false(dock_peek64(&sq->busy) & 1);
    assert_false(sq->conn->hazard_value & 1);
    assert_int_equal(dock_peek64(&sq->rec->executed), executed + 3);
    assert_int_equal(dock_peek32(&sq->post.word), 0);
    settle(&w, 4);
    close_world(&w);
}

static void what_stands_behind_another_waits_for_it(void **state)
{
    struct world w;

    (void)state;
    open_world(&w);
    *word(&w.b, 1) = 7;
    assert_int_equal(put(&w, DOCK_OP_WRITE, 2, 0), 0);
    assert_int_equal(put(&w, DOCK_OP_READ, 1, 0), 0);
    assert_int_equal(put(&w, DOCK_OP_WRITE, 3, DOCK_F_COMPLETE), 0);
    assert_true(arrived(&w, 2));
    assert_false(arrived(&w, 3));
    dock_post_end(&w.post);
    expect(w.a.scq, 3, DOCK_OK);
    assert_true(arrived(&w, 3));
    assert_int_equal(*word(&w.a, 1), 7);
    close_world(&w);
}

static void what_was_kept_goes_first(void **state)
{
    struct world w;

    (void)state;
    open_world(&w);
    dock_post_end(&w.post);
    dock_post_open(w.a.qp, &w.post);
    assert_int_equal(put(&w, DOCK_OP_WRITE, 1, 0), 0);
    assert_false(arrived(&w, 1)); // the lock alone is held
    dock_post_keep(&w.post);
    dock_post_begin(w.a.qp, &w.post);
    assert_int_equal(put(&w, DOCK_OP_WRITE, 2, 0), 0);
    assert_false(arrived(&w, 1) || arrived(&w, 2));
    dock_post_end(&w.post);
    assert_true(arrived(&w, 1) && arrived(&w, 2));
    close_world(&w);
}

static void what_is_refused_is_not_placed(void **state)
{
    struct world w;
    struct dock_wr wr;

    (void)state;
    open_world(&w);
    wr = wr_of(&w, DOCK_OP_WRITE, 20, 16);
    wr.flags = DOCK_F_INLINE;
    wr.inline_len = 16;
    assert_int_equal(dock_post_put(&w.post, &wr), -EINVAL);
    assert_false(arrived(&w, 20));
    dock_post_end(&w.post);
    dock_post_begin(w.a.qp, &w.post);
    for (unsigned at = 1; at <= DEPTH; at++)
        assert_int_equal(put(&w, DOCK_OP_WRITE, at, 0), 0);
    assert_int_equal(put(&w, DOCK_OP_WRITE, 30, 0), -ENOMEM);
    assert_false(arrived(&w, 30));
    dock_post_end(&w.post);
    assert_true(arrived(&w, DEPTH));
    assert_int_equal(w.a.qp->sq.exec, dock_peek32(&w.a.qp->sq.post.pi));
    close_world(&w);
}

static void the_first_failure_ends_it(void **state)
{
    struct world w;
    struct dock_wr wr;

    (void)state;
    open_world(&w);
    assert_int_equal(put(&w, DOCK_OP_WRITE, 1, 0), 0);
    wr = wr_of(&w, DOCK_OP_WRITE, 2, 8);
    wr.rkey ^= 0x10;
    assert_int_equal(dock_post_put(&w.post, &wr), 0);
    assert_int_equal(put(&w, DOCK_OP_WRITE, 3, 0), 0);
    dock_post_end(&w.post);
    expect(w.a.scq, 2, DOCK_ST_REM_ACCESS);
    expect(w.a.scq, 3, DOCK_ST_FLUSH);
    assert_true(arrived(&w, 1));
    assert_false(arrived(&w, 2) || arrived(&w, 3));
    close_world(&w);
}

static void completions_come_in_order(void **state)
{
    struct world w;

    (void)state;
    open_world(&w);
    for (unsigned at = 1; at <= 6; at++)
        assert_int_equal(put(&w, DOCK_OP_WRITE, at, at == 2 || at == 3 || at == 6 ? DOCK_F_COMPLETE : 0), 0);
    dock_post_end(&w.post);
    expect(w.a.scq, 2, DOCK_OK);
    expect(w.a.scq, 3, DOCK_OK);
    expect(w.a.scq, 6, DOCK_OK);
    for (unsigned at = 1; at <= 6; at++)
        assert_true(arrived(&w, at));
    close_world(&w);
}

// Of what does not fit into the budget of a call nothing is placed by its put, nor of what is long.
static void a_put_is_short(void **state)
{
    enum { EACH = 4096, FIT = DOCK_BUDGET_BYTES / EACH };
    struct world w;
    struct dock_wr wr;

    (void)state;
    open_world_of(&w, 64, 8);
    for (unsigned i = 0; i <= FIT; i++) {
        wr = wr_of(&w, DOCK_OP_WRITE, 10 + i * EACH / 8, EACH);
        wr.flags = i == FIT ? DOCK_F_COMPLETE : 0;
        assert_int_equal(dock_post_put(&w.post, &wr), 0);
        assert_int_equal(arrived(&w, 10 + i * EACH / 8), i < FIT);
    }
    dock_post_end(&w.post);
    expect(w.a.scq, 10 + FIT * EACH / 8, DOCK_OK);
    assert_true(arrived(&w, 10 + (FIT + 1) * EACH / 8 - 1));
    dock_post_begin(w.a.qp, &w.post);
    wr = wr_of(&w, DOCK_OP_WRITE, 20000, EACH + 8);
    wr.flags = DOCK_F_COMPLETE;
    assert_int_equal(dock_post_put(&w.post, &wr), 0);
    assert_false(arrived(&w, 20000));
    assert_int_equal(put(&w, DOCK_OP_WRITE, 9, 0), 0);
    dock_post_end(&w.post);
    expect(w.a.scq, 20000, DOCK_OK);
    assert_true(arrived(&w, 20000 + EACH / 8) && arrived(&w, 9));
    close_world(&w);
}

static void a_call_has_the_budget_of_a_run(void **state)
{
    enum { MANY = DOCK_BUDGET_WRS + 8 };
    struct world w;

    (void)state;
    open_world_of(&w, 64, 8);
    for (unsigned at = 1; at <= MANY; at++) {
        assert_int_equal(put(&w, DOCK_OP_WRITE, at, at == MANY ? DOCK_F_COMPLETE : 0), 0);
        assert_int_equal(arrived(&w, at), at <= DOCK_BUDGET_WRS);
    }
    dock_post_end(&w.post);
    assert_false(arrived(&w, DOCK_BUDGET_WRS + 1)); // whoever polls goes on
    expect(w.a.scq, MANY, DOCK_OK);
    assert_true(arrived(&w, MANY));
    close_world(&w);
}

// As posted, also where they go to their own place.
static void inline_bytes_are_taken_first(void **state)
{
    struct world w;
    struct dock_wr wr;

    (void)state;
    open_world_of(&w, DEPTH, 16);
    for (unsigned op = 0; op < 2; op++) {
        for (unsigned i = 0; i < 3; i++)
            *word(&w.b, 40 + i) = 10 + i;
        wr = wr_of(&w, DOCK_OP_WRITE, 41, 16);
        w.sge.addr = (uintptr_t)word(&w.b, 40);
        wr.flags = DOCK_F_INLINE;
        wr.inline_len = 16;
        assert_int_equal(dock_post_put(&w.post, &wr), 0);
        assert_int_equal(*word(&w.b, 41), 10);
        assert_int_equal(*word(&w.b, 42), 11);
    }
    dock_post_end(&w.post);
    close_world(&w);
}

static void no_bytes_inline(void **state)
{
    struct world w;
    struct dock_wr wr;

    (void)state;
    open_world(&w);
    dock_post_end(&w.post);
    assert_int_equal(end_recv(&w.b, 100, word(&w.b, 50), 8), 0);
    wr = wr_of(&w, DOCK_OP_SEND, 1, 0);
    w.sge.addr = 0;
    wr.flags = DOCK_F_INLINE;
    assert_int_equal(end_post(&w.a, &wr), 0);
    expect(w.b.rcq, 100, DOCK_OK);
    close_world(&w);
}

// ---- a region changes beside a poster whose last key was its, and whose next one is not

struct changer {
    struct dock_mr *mr;
    struct dock_mr_change to;
    sem_t go, done;
};

enum { CHANGES = 300 };

static void *change(void *arg)
{
    struct changer *c = arg;

    for (unsigned i = 0; i < CHANGES; i++) {
        while (sem_wait(&c->go))
            ;
        c->to.len = i % 2 ? 4096 : 8192;
        assert_int_equal(dock_mr_change(c->mr, &c->to), 0);
        sem_post(&c->done);
    }
    return NULL;
}

static void a_key_is_seen_before_its_place(void **state)
{
    struct world w;
    struct changer c = {.to = {.what = DOCK_CHANGE_RANGE}};
    struct dock_wr wr;
    pthread_t t;

    (void)state;
    open_world_of(&w, 4 * CHANGES, 8);
    dock_post_end(&w.post);
    c.to.addr = c.to.va = (uintptr_t)w.a.mem;
    assert_int_equal(
        dock_mr_register(w.dev, w.a.pd, c.to.addr, 4096, c.to.va, DOCK_ACCESS_LOCAL_WRITE, &c.mr), 0);
    assert_int_equal(sem_init(&c.go, 0, 0) | sem_init(&c.done, 0, 0), 0);
    assert_int_equal(pthread_create(&t, NULL, change, &c), 0);
    for (unsigned i = 0; i < CHANGES; i++) {
        wr = wr_of(&w, DOCK_OP_WRITE, 1, 8);
        w.sge.key = c.mr->lkey;
        assert_int_equal(end_post(&w.a, &wr), 0);
        sem_post(&c.go);
        wr = wr_of(&w, DOCK_OP_WRITE, 2, 8); // ThreadSanitizer sees what it reads of the other key
        assert_int_equal(end_post(&w.a, &wr), 0);
        while (sem_wait(&c.done))
            ;
    }
    assert_int_equal(pthread_join(t, NULL), 0);
    assert_int_equal(dock_mr_deregister(c.mr), 0);
    close_world(&w);
}

static void a_message_is_placed_and_told(void **state)
{
    struct world w;
    struct dock_wc wc = {0};

    (void)state;
    open_world(&w);
    dock_post_end(&w.post);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(end_recv(&w.b, 100 + i, word(&w.b, 50 + i), 8), 0);
    dock_post_begin(w.a.qp, &w.post);
    assert_int_equal(put(&w, DOCK_OP_SEND, 1, 0), 0); // the long way finds the first receive
    dock_post_end(&w.post);
    expect(w.b.rcq, 100, DOCK_OK);
    dock_post_begin(w.a.qp, &w.post);
    assert_int_equal(put(&w, DOCK_OP_SEND, 2, 0), 0);
    assert_true(end_poll(w.b.rcq, &wc));
    assert_int_equal(wc.id, 101);
    assert_int_equal(*word(&w.b, 51), 1002);
    assert_int_equal(put(&w, DOCK_OP_SEND, 3, DOCK_F_COMPLETE | DOCK_F_INLINE), 0);
    assert_true(end_poll(w.b.rcq, &wc));
    assert_false(end_poll(w.a.scq, &wc)); // ours stands when the queue's head has moved
    assert_int_equal(put(&w, DOCK_OP_WRITE, 4, DOCK_F_COMPLETE), 0);
    assert_false(arrived(&w, 4));
    dock_post_end(&w.post);
    expect(w.a.scq, 3, DOCK_OK);
    expect(w.a.scq, 4, DOCK_OK);
    assert_true(arrived(&w, 4));
    close_world(&w);
}

// Messages are for a target whose memory may not be written to as well.
static void a_write_needs_the_right(void **state)
{
    struct world w;
    struct dock_qp_mod none = {.mask = DOCK_MOD_ACCESS, .access = 0};

    (void)state;
    open_world(&w);
    dock_post_end(&w.post);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(end_recv(&w.b, 100 + i, word(&w.b, 50 + i), 8), 0);
    assert_int_equal(dock_qp_modify(w.b.qp, &none), 0);
    dock_post_begin(w.a.qp, &w.post);
    assert_int_equal(put(&w, DOCK_OP_SEND, 1, 0), 0);
    dock_post_end(&w.post);
    expect(w.b.rcq, 100, DOCK_OK);
    dock_post_begin(w.a.qp, &w.post);
    assert_int_equal(put(&w, DOCK_OP_SEND, 2, 0), 0);
    assert_int_equal(*word(&w.b, 51), 1002);
    assert_int_equal(put(&w, DOCK_OP_WRITE, 3, 0), 0);
    dock_post_end(&w.post);
    assert_false(arrived(&w, 3));
    expect(w.a.scq, 3, DOCK_ST_REM_INV_REQ);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_put_is_placed),
        cmocka_unit_test(what_stands_behind_another_waits_for_it),
        cmocka_unit_test(what_was_kept_goes_first),
        cmocka_unit_test(what_is_refused_is_not_placed),
        cmocka_unit_test(the_first_failure_ends_it),
        cmocka_unit_test(completions_come_in_order),
        cmocka_unit_test(a_put_is_short),
        cmocka_unit_test(a_call_has_the_budget_of_a_run),
        cmocka_unit_test(inline_bytes_are_taken_first),
        cmocka_unit_test(no_bytes_inline),
        cmocka_unit_test(a_key_is_seen_before_its_place),
        cmocka_unit_test(a_message_is_placed_and_told),
        cmocka_unit_test(a_write_needs_the_right),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
