// SPDX-License-Identifier: MIT
// Posted, executed, observed: three moments, and whoever is there does the work.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "device/internal.h"
#include "lib/duo.h"

#define MIB (1u << 20)

// One device, several queues to themselves; without an engine thread nothing happens but by this thread.
struct lone {
    struct dock_dev *dev;
    struct end a, b, c, e; // a -> b, c -> e
};

static void open_lone(struct lone *l, bool engine)
{
    struct dock_config cfg = {.no_engine_thread = !engine};
    struct end_opts o = {.mem = 4 * MIB};

    assert_int_equal(dock_dev_open(&cfg, &l->dev), 0);
    end_open(&l->a, l->dev, &o);
    end_open(&l->b, l->dev, &o);
    end_open(&l->c, l->dev, &o);
    end_open(&l->e, l->dev, &o);
    pair_connect(&l->a, &l->b);
    pair_connect(&l->c, &l->e);
}

static void close_lone(struct lone *l)
{
    end_close(&l->a);
    end_close(&l->b);
    end_close(&l->c);
    end_close(&l->e);
    assert_int_equal(dock_dev_close(l->dev), 0);
}

static void post_write(struct end *from, struct end *to, uint32_t len)
{
    struct dock_sge sge;
    struct dock_wr wr = wr_onesided(DOCK_OP_WRITE, from, &sge, 0, len, to->mr, (uintptr_t)to->mem);

    wr.id = len;
    assert_int_equal(end_post(from, &wr), 0);
}

static uint64_t executed(const struct end *e)
{
    const struct dock_qrec *r = e->qp->rec; // who did it is counted last

    return dock_peek64(&r->by_poster) + dock_peek64(&r->by_poller) + dock_peek64(&r->by_engine);
}

static void expect_runners(const struct end *e, uint64_t poster, uint64_t poller, uint64_t engine)
{
    const struct dock_qrec *r = e->qp->rec;

    assert_int_equal(dock_peek64(&r->by_poster), poster);
    assert_int_equal(dock_peek64(&r->by_poller), poller);
    assert_int_equal(dock_peek64(&r->by_engine), engine);
    assert_int_equal(dock_peek64(&r->executed), poster + poller + engine);
}

static void a_post_of_a_mebibyte_returns_before_it_is_executed(void **state)
{
    struct lone l;
    struct dock_wc wc;

    (void)state;
    open_lone(&l, false);
    memset(l.a.mem, 7, MIB);
    post_write(&l.a, &l.b, MIB);
    assert_int_equal(dock_peek64(&l.a.qp->rec->posted), 1); // posted
    assert_int_equal(executed(&l.a), 0);                    // not executed
    assert_int_equal(l.b.mem[MIB - 1], 0);
    while (!executed(&l.a))
        dock_engine_step(l.dev);
    assert_int_equal(l.b.mem[MIB - 1], 7);
    assert_int_equal(dock_peek64(&l.a.qp->sq.post.freed) >> 32, 0); // executed, and not observed
    assert_true(end_poll(l.a.scq, &wc));
    assert_int_equal(dock_peek64(&l.a.qp->sq.post.freed) >> 32, 1); // observed
    close_lone(&l);
}

static void the_poster_executes_what_its_budget_allows(void **state)
{
    struct lone l;

    (void)state;
    open_lone(&l, false);
    post_write(&l.a, &l.b, 8);
    expect_runners(&l.a, 1, 0, 0);
    close_lone(&l);
}

// 40 WRs behind one doorbell: 32 by the poster, the rest by whoever polls an empty CQ of the device.
static void a_poller_of_any_cq_helps(void **state)
{
    struct lone l;
    struct dock_sge sge;
    struct dock_post p;
    struct dock_wc wc;

    (void)state;
    open_lone(&l, false);
    dock_post_begin(l.a.qp, &p);
    for (unsigned i = 0; i < 40; i++) {
        struct dock_wr wr = wr_onesided(DOCK_OP_WRITE, &l.a, &sge, 0, 8, l.b.mr, (uintptr_t)l.b.mem);
        wr.flags = 0;
        assert_int_equal(dock_post_put(&p, &wr), 0);
    }
    dock_post_end(&p);
    expect_runners(&l.a, 32, 0, 0);
    assert_false(end_poll(l.c.rcq, &wc));
    expect_runners(&l.a, 32, 8, 0);
    close_lone(&l);
}

static void the_engine_executes_what_nobody_polls_for(void **state)
{
    struct lone l;
    uint64_t until = dock_now_ns() + 5000000000ull * slow_down();
    struct timespec nap = {.tv_nsec = 1000000};
    struct dock_wc wc;

    (void)state;
    open_lone(&l, true);
    memset(l.a.mem, 9, 4 * MIB);
    post_write(&l.a, &l.b, 4 * MIB); // and the poster goes away
    while (!executed(&l.a) && dock_now_ns() < until)
        nanosleep(&nap, NULL);
    expect_runners(&l.a, 0, 0, 1);
    assert_true(end_wait(l.a.scq, &wc, 1000)); // only what was observed may be looked at
    assert_int_equal(l.b.mem[4 * MIB - 1], 9);
    close_lone(&l);
}

// The record tells of whole requests only.
static int64_t moved(const struct end *e)
{
    return (int64_t)e->qp->sq.bytes;
}

static void a_poll_does_no_more_than_one_long_piece(void **state)
{
    static const uint8_t ops[] = {DOCK_OP_WRITE, DOCK_OP_READ, DOCK_OP_SEND};

    (void)state;
    for (unsigned i = 0; i < sizeof ops; i++) {
        struct lone l;
        struct dock_sge sge;
        struct dock_wc wc;
        open_lone(&l, false);
        const char *to = ops[i] == DOCK_OP_READ ? l.a.mem : l.b.mem;
        memset(ops[i] == DOCK_OP_READ ? l.b.mem : l.a.mem, 3, 4 * MIB);
        assert_int_equal(end_recv(&l.b, 1, l.b.mem, 4 * MIB), 0);
        struct dock_wr wr = wr_onesided(ops[i], &l.a, &sge, 0, 4 * MIB, l.b.mr, (uintptr_t)l.b.mem);
        assert_int_equal(end_post(&l.a, &wr), 0);
        for (unsigned at = DOCK_PIECE; at < 4 * MIB; at += DOCK_PIECE_ALONE) {
            assert_int_equal(moved(&l.a), at);
            assert_int_equal(to[at - 1], 3);
            assert_int_equal(to[at], 0);
            assert_int_equal(end_poll(l.a.scq, &wc), at + DOCK_PIECE_ALONE >= 4 * MIB);
        }
        expect_runners(&l.a, 0, 1, 0);
        close_lone(&l);
    }
}

// Long pieces are for who is alone. The end of one request is told before the next begins.
static void another_ready_queue_has_its_turn_after_the_piece(void **state)
{
    struct lone l;
    struct dock_wc wc;

    (void)state;
    open_lone(&l, false);
    post_write(&l.a, &l.b, 2 * MIB);
    end_poll(l.a.scq, &wc);
    assert_int_equal(moved(&l.a), DOCK_PIECE + DOCK_PIECE_ALONE);
    post_write(&l.c, &l.e, MIB);
    for (unsigned turn = 1; turn <= 3; turn++) {
        end_poll(l.b.rcq, &wc);
        assert_int_equal(moved(&l.a), DOCK_PIECE_ALONE + (1 + turn) * DOCK_PIECE);
        end_poll(l.b.rcq, &wc);
        assert_int_equal(moved(&l.c), (1 + turn) * DOCK_PIECE);
    }
    assert_true(end_wait(l.a.scq, &wc, 5000));
    assert_true(end_wait(l.c.scq, &wc, 5000));
    post_write(&l.a, &l.b, MIB);
    post_write(&l.a, &l.b, MIB);
    assert_true(end_wait(l.a.scq, &wc, 5000));
    assert_int_equal(moved(&l.a), 3 * MIB);
    close_lone(&l);
}

// An engine that sleeps for long is rung by each post of more than a budget: it does not while such go on,
// though it finds nothing to do. A quiet look tells it of nothing.
static void what_pollers_took_keeps_the_engine_ticking(void **state)
{
    struct lone l;
    struct dock_wc wc;

    (void)state;
    open_lone(&l, false);
    dock_engine_step(l.dev);
    l.dev->worked_ns = 0;
    uint64_t deep = dock_engine_patience(l.dev, dock_now_ns());
    for (unsigned i = 0; i < 3; i++) {
        post_write(&l.a, &l.b, MIB);
        assert_true(end_wait(l.a.scq, &wc, 5000));
        uint64_t before = dock_now_ns();
        dock_engine_step(l.dev);
        assert_true(l.dev->worked_ns >= before);
        assert_true(dock_engine_patience(l.dev, l.dev->worked_ns) < deep);
        l.dev->worked_ns = 0;
        dock_engine_step(l.dev);
        assert_int_equal(l.dev->worked_ns, 0);
    }
    close_lone(&l);
}

static void queues_take_turns(void **state)
{
    struct lone l;
    struct dock_wc wc;

    (void)state;
    open_lone(&l, false);
    post_write(&l.a, &l.b, MIB);
    post_write(&l.c, &l.e, MIB);
    for (unsigned i = 0; i < 20; i++) {
        int64_t apart;
        end_poll(l.b.rcq, &wc);
        apart = moved(&l.a) - moved(&l.c);
        assert_true(apart >= -(int64_t)DOCK_BUDGET_BYTES && apart <= (int64_t)DOCK_BUDGET_BYTES);
    }
    post_write(&l.a, &l.b,
               8); // a short one behind a long one waits for its turn in the queue, not in the device
    assert_true(end_wait(l.a.scq, &wc, 5000));
    assert_int_equal(wc.id, MIB);
    assert_true(end_wait(l.a.scq, &wc, 5000));
    assert_int_equal(wc.id, 8);
    close_lone(&l);
}

// One-sided is really one-sided, and a message to a posted receive too: the target process is stopped.
static void the_target_need_not_run(void **state)
{
    static const uint8_t ops[] = {DOCK_OP_WRITE, DOCK_OP_READ, DOCK_OP_FADD, DOCK_OP_SEND, DOCK_OP_WRITE_IMM};

    (void)state;
    for (unsigned place = HOST_ARENA; place <= HOST_PLAIN; place++) {
        if (!place_reachable(place))
            continue;
        struct duo d;
        struct io_recv r = {.len = 64};
        struct dock_sge sge;
        struct dock_wc wc;
        duo_open(&d, (enum place)place, NULL);
        for (unsigned i = 0; i < 2; i++)
            duo_far(&d, side_recv, &r, sizeof r);
        assert_int_equal(kill(d.pid, SIGSTOP), 0);
        for (unsigned i = 0; i < sizeof ops; i++) {
            struct dock_wr wr = wr_onesided(ops[i], &d.near.e, &sge, 0, 8, &d.mr, d.mem);
            assert_int_equal(end_post(&d.near.e, &wr), 0);
            assert_true(end_wait(d.near.e.scq, &wc, 10000 * slow_down()));
            assert_int_equal(wc.status, DOCK_OK);
        }
        assert_int_equal(kill(d.pid, SIGCONT), 0);
        duo_close(&d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_post_of_a_mebibyte_returns_before_it_is_executed),
        cmocka_unit_test(the_poster_executes_what_its_budget_allows),
        cmocka_unit_test(a_poller_of_any_cq_helps),
        cmocka_unit_test(the_engine_executes_what_nobody_polls_for),
        cmocka_unit_test(a_poll_does_no_more_than_one_long_piece),
        cmocka_unit_test(another_ready_queue_has_its_turn_after_the_piece),
        cmocka_unit_test(what_pollers_took_keeps_the_engine_ticking),
        cmocka_unit_test(queues_take_turns),
        cmocka_unit_test(the_target_need_not_run),
    };

    return cmocka_run_group_tests_name("posted, executed, observed", tests, NULL, NULL);
}
