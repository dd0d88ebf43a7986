// SPDX-License-Identifier: MIT
// A run ends where its budget or the doorbell does: what the poster has put and not published is not looked
// at, also when the budget ends just before requests that suit the straight way.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/internal.h"
#include "lib/pair.h"

static struct dock_dev *one, *other;
static struct end a, b;

static void open_both(void)
{
    struct dock_config cfg = {.no_engine_thread = true};
    struct end_opts o = {.service = DOCK_RC};

    assert_int_equal(dock_dev_open(&cfg, &one), 0);
    assert_int_equal(dock_dev_open(&cfg, &other), 0);
    end_open(&a, one, &o);
    end_open(&b, other, &o);
    pair_connect_stepped(&a, &b);
}

static void close_both(void)
{
    end_close(&a);
    end_close(&b);
    assert_int_equal(dock_dev_close(one), 0);
    assert_int_equal(dock_dev_close(other), 0);
}

static struct dock_wr word_wr(uint8_t op, struct dock_sge *sge, unsigned slot)
{
    struct dock_wr wr = wr_onesided(op, &a, sge, 8 * slot, 8, b.mr, (uintptr_t)b.mem + 8 * slot);

    wr.flags = 0;
    return wr;
}

static void post_words(uint8_t op, unsigned first, unsigned n)
{
    struct dock_sge sge;

    for (unsigned i = first; i < first + n; i++) {
        struct dock_wr wr = word_wr(op, &sge, i);
        assert_int_equal(end_post(&a, &wr), 0);
    }
}

static uint64_t arrived(unsigned slot)
{
    return ((uint64_t *)(void *)b.mem)[slot];
}

// Atomics go the long way: as many as a budget has, then WRITEs that would be straight.
static void what_is_not_published_is_not_executed(void **state)
{
    enum { ATOMICS = DOCK_BUDGET_WRS, WRITES = 2, HIDDEN = 40 };
    struct dock_sge sge;
    struct dock_post list;

    (void)state;
    open_both();
    for (unsigned i = 0; i < 64; i++)
        ((uint64_t *)(void *)a.mem)[i] = 100 + i;
    post_words(DOCK_OP_WRITE, 50, 1); // the long way opens the straight one
    for (unsigned step = 0; step < 1000 && !arrived(50); step++) {
        dock_engine_step(one);
        dock_engine_step(other);
    }
    assert_int_equal(arrived(50), 150);
    dock_sq_hold(&a.qp->sq);
    post_words(DOCK_OP_FADD, 60, 1);
    for (unsigned i = 1; i < ATOMICS; i++)
        post_words(DOCK_OP_FADD, 61, 1);
    post_words(DOCK_OP_WRITE, 1, WRITES);
    uint32_t doorbell = dock_peek32(&a.qp->sq.post.pi);
    dock_post_open(a.qp, &list);
    struct dock_wr wr = word_wr(DOCK_OP_WRITE, &sge, HIDDEN);
    assert_int_equal(dock_post_put(&list, &wr), 0);
    dock_sq_release(&a.qp->sq); // a run
    while (dock_ready_run(one, DOCK_BY_POLLER))
        ;
    assert_int_equal(a.qp->sq.exec, doorbell);
    assert_int_equal(arrived(1), 101);
    assert_int_equal(arrived(2), 102);
    assert_int_equal(arrived(HIDDEN), 0);
    dock_post_end(&list);
    assert_int_equal(arrived(HIDDEN), 100 + HIDDEN);
    close_both();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_published_is_not_executed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
