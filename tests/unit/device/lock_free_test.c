// SPDX-License-Identifier: MIT
// What lock_free leaves out and what it leaves in. One thread is between begin and end of a call, as the
// locked form forbids to a second; another makes the same call, and gets through or waits.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "device/internal.h"
#include "lib/beside.h"
#include "lib/pair.h"

struct world {
    struct dock_dev *dev;
    struct end e;
    struct dock_cq *cq;
    struct dock_rq *srq;
    struct dock_post post;
    int err;
};

static void post_begin(struct world *w)
{
    dock_post_begin(w->e.qp, &w->post);
}

static void post_end(struct world *w)
{
    w->post.pi = w->post.sq->pi; // nothing was put: what the other posted stays
    w->post.posted = w->post.sq->posted;
    dock_post_end(&w->post);
}

static void post(void *arg)
{
    struct world *w = arg;
    struct dock_sge sge;
    struct dock_wr wr = wr_onesided(DOCK_OP_WRITE, &w->e, &sge, 0, 8, w->e.mr, (uintptr_t)w->e.mem + 4096);

    w->err = end_post(&w->e, &wr);
}

static int receive_into(struct world *w, struct dock_rq *rq)
{
    struct dock_sge sge = {.addr = (uintptr_t)w->e.mem, .len = 8, .key = w->e.mr->lkey};
    int err;

    dock_recv_begin(rq);
    err = dock_recv_put(rq, 1, &sge, 1);
    dock_recv_end(rq);
    return err;
}

static void receive_begin(struct world *w)
{
    dock_recv_begin(dock_qp_rq(w->e.qp));
}

static void receive_end(struct world *w)
{
    dock_recv_end(dock_qp_rq(w->e.qp));
}

static void receive(void *arg)
{
    struct world *w = arg;

    w->err = receive_into(w, dock_qp_rq(w->e.qp));
}

static void shared_begin(struct world *w)
{
    dock_recv_begin(w->srq);
}

static void shared_end(struct world *w)
{
    dock_recv_end(w->srq);
}

static void receive_shared(void *arg)
{
    struct world *w = arg;

    w->err = receive_into(w, w->srq);
}

static void poll_begin(struct world *w)
{
    dock_cq_begin(w->cq);
}

static void poll_end(struct world *w)
{
    dock_cq_end(w->cq);
}

static void poll(void *arg)
{
    struct world *w = arg;
    struct dock_wc wc;

    w->err = end_poll(w->cq, &wc);
}

static const struct {
    const char *what;
    void (*begin)(struct world *), (*end)(struct world *), (*call)(void *);
} rows[] = {
    {"a post", post_begin, post_end, post},
    {"a receive", receive_begin, receive_end, receive},
    {"a shared receive", shared_begin, shared_end, receive_shared},
    {"a poll", poll_begin, poll_end, poll},
};

static void open_world(struct world *w, bool lock_free)
{
    struct dock_config cfg = {.no_engine_thread = true};
    struct end_opts o = {.lock_free = lock_free};
    struct dock_cq_attr ca = {.depth = 8, .lock_free = lock_free};
    struct dock_srq_attr sa = {.max_wr = 8, .max_sge = 1, .lock_free = lock_free};

    assert_int_equal(dock_dev_open(&cfg, &w->dev), 0);
    end_open(&w->e, w->dev, &o);
    end_connect(&w->e, dock_qp_number(w->e.qp), NULL);
    sa.pd = w->e.pd;
    assert_int_equal(dock_cq_create(w->dev, &ca, &w->cq), 0);
    assert_int_equal(dock_srq_create(w->dev, &sa, &w->srq), 0);
}

static void close_world(struct world *w)
{
    assert_int_equal(dock_srq_destroy(w->srq), 0);
    assert_int_equal(dock_cq_destroy(w->cq), 0);
    end_close(&w->e);
    assert_int_equal(dock_dev_close(w->dev), 0);
}

static void run(bool lock_free)
{
    struct world w;
    unsigned wrong = 0;

    open_world(&w, lock_free);
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool goes = lock_free, went;
        struct beside other;
        rows[i].begin(&w);
        beside_start(&other, rows[i].call, &w);
        went = beside_done(&other, goes ? BESIDE_GOES_MS : BESIDE_WAITS_MS);
        rows[i].end(&w);
        beside_end(&other);
        if (went == goes && w.err == 0)
            continue;
        wrong++;
        fprintf(stderr, "%s, %s: expected that it %s, and 0, got that it %s, and %d\n", rows[i].what,
                lock_free ? "lock_free" : "locked", goes ? "goes" : "waits", went ? "goes" : "waits", w.err);
    }
    close_world(&w);
    assert_int_equal(wrong, 0);
}

static void a_locked_queue_makes_the_second_wait(void **state)
{
    (void)state;
    run(false);
}

static void a_lock_free_queue_takes_no_lock(void **state)
{
    (void)state;
    run(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_locked_queue_makes_the_second_wait),
        cmocka_unit_test(a_lock_free_queue_takes_no_lock),
    };

    return cmocka_run_group_tests_name("locks left out", tests, NULL, NULL);
}
