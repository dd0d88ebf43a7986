// SPDX-License-Identifier: MIT
// Memory windows: a key of its own over a part of a region, bound by a WR, taken back by a WR, from far or
// near.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "device/internal.h"
#include "lib/duo.h"

#define RIGHTS (DOCK_ACCESS_REMOTE_READ | DOCK_ACCESS_REMOTE_WRITE)
#define AT 4096u
#define LEN 256u

// Two pairs of queues of one domain: `near` uses what `far` exposes; `other` is a second queue beside `far`.
struct pairs {
    struct dock_dev *dev;
    struct end near, far, other_near, other;
    struct dock_mr *mw;
};

static struct dock_sge sge;

static void second_queue(struct pairs *p)
{
    struct end_opts o = {0};
    struct dock_qp_attr qa = {
        .pd = p->far.pd, .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1};

    end_open(&p->other, p->dev, &o);
    dock_qp_destroy(p->other.qp);
    qa.send_cq = p->other.scq;
    qa.recv_cq = p->other.rcq;
    assert_int_equal(dock_qp_create(p->dev, &qa, &p->other.qp), 0);
}

static void open_pairs(struct pairs *p, enum dock_seg_kind kind)
{
    struct end_opts o = {0};

    assert_int_equal(dock_dev_open(NULL, &p->dev), 0);
    end_open(&p->near, p->dev, &o);
    end_open(&p->far, p->dev, &o);
    end_open(&p->other_near, p->dev, &o);
    second_queue(p);
    pair_connect(&p->near, &p->far);
    pair_connect(&p->other_near, &p->other);
    assert_int_equal(dock_mw_create(p->dev, p->far.pd, kind, &p->mw), 0);
}

static void close_pairs(struct pairs *p)
{
    if (p->mw)
        assert_int_equal(dock_mw_destroy(p->mw), 0);
    end_close(&p->other_near);
    end_close(&p->other); // it belongs to the domain of `far`
    end_close(&p->near);
    end_close(&p->far);
    assert_int_equal(dock_dev_close(p->dev), 0);
}

static uint32_t done(struct end *e)
{
    struct dock_wc wc = {.status = 0xfff};

    end_wait(e->scq, &wc, 10000 * slow_down());
    return wc.status;
}

static struct dock_wr bind_wr(struct pairs *p, uint8_t variant, uint64_t at, uint64_t len, uint32_t rights)
{
    return (struct dock_wr){.op = DOCK_OP_BIND,
                            .flags = DOCK_F_COMPLETE,
                            .rkey = p->mw->tid << 8,
                            .remote = p->far.mr->lkey,
                            .raddr = at,
                            .operand = len,
                            .compare = rights,
                            .imm = variant};
}

static uint32_t bind_it(struct pairs *p, uint8_t variant, uint32_t rights)
{
    struct dock_wr wr = bind_wr(p, variant, (uintptr_t)p->far.mem + AT, LEN, rights);

    assert_int_equal(end_post(&p->far, &wr), 0);
    return done(&p->far);
}

static uint32_t use(struct end *from, uint8_t op, uint32_t key, uint64_t at, uint32_t len)
{
    struct dock_mr named = {.rkey = key};
    struct dock_wr wr = wr_onesided(op, from, &sge, 0, len, &named, at);

    assert_int_equal(end_post(from, &wr), 0);
    return done(from);
}

static uint32_t write_it(struct pairs *p, struct end *from, uint32_t key)
{
    return use(from, DOCK_OP_WRITE, key, (uintptr_t)p->far.mem + AT, LEN);
}

static void an_unbound_window_is_refused(void **state)
{
    struct pairs p;

    (void)state;
    for (unsigned kind = DOCK_SEG_MW1; kind <= DOCK_SEG_MW2; kind++) {
        open_pairs(&p, (enum dock_seg_kind)kind);
        assert_int_equal(write_it(&p, &p.near, p.mw->rkey), DOCK_ST_REM_ACCESS);
        close_pairs(&p);
    }
}

static void bound_it_opens_its_range_and_nothing_beside(void **state)
{
    static const struct {
        int64_t off;
        uint32_t len, status;
    } t[] = {{0, LEN, DOCK_OK},
             {LEN - 1, 1, DOCK_OK},
             {-1, 1, DOCK_ST_REM_ACCESS},
             {0, LEN + 1, DOCK_ST_REM_ACCESS},
             {LEN, 1, DOCK_ST_REM_ACCESS}};
    struct pairs p;

    (void)state;
    for (unsigned kind = DOCK_SEG_MW1; kind <= DOCK_SEG_MW2; kind++)
        for (unsigned i = 0; i < sizeof t / sizeof *t; i++) {
            open_pairs(&p, (enum dock_seg_kind)kind);
            assert_int_equal(bind_it(&p, 0x55, RIGHTS), DOCK_OK);
            assert_int_equal(p.mw->rkey, p.mw->tid << 8 | 0x55);
            uint64_t at = (uintptr_t)p.far.mem + AT + (uint64_t)t[i].off;
            assert_int_equal(use(&p.near, DOCK_OP_WRITE, p.mw->rkey, at, t[i].len), t[i].status);
            close_pairs(&p);
        }
}

static void it_has_rights_of_its_own(void **state)
{
    static const struct {
        uint32_t rights;
        uint8_t op;
        uint32_t status;
    } t[] = {{DOCK_ACCESS_REMOTE_READ, DOCK_OP_READ, DOCK_OK},
             {DOCK_ACCESS_REMOTE_READ, DOCK_OP_WRITE, DOCK_ST_REM_ACCESS},
             {DOCK_ACCESS_REMOTE_WRITE, DOCK_OP_WRITE, DOCK_OK},
             {DOCK_ACCESS_REMOTE_WRITE, DOCK_OP_READ, DOCK_ST_REM_ACCESS}};
    struct pairs p;

    (void)state;
    for (unsigned i = 0; i < sizeof t / sizeof *t; i++) {
        open_pairs(&p, DOCK_SEG_MW2);
        assert_int_equal(bind_it(&p, 1, t[i].rights), DOCK_OK);
        assert_int_equal(use(&p.near, t[i].op, p.mw->rkey, (uintptr_t)p.far.mem + AT, 8), t[i].status);
        close_pairs(&p);
    }
}

static void type_two_is_for_its_queue_type_one_for_the_domain(void **state)
{
    struct pairs p;

    (void)state;
    for (unsigned kind = DOCK_SEG_MW1; kind <= DOCK_SEG_MW2; kind++) {
        open_pairs(&p, (enum dock_seg_kind)kind);
        assert_int_equal(bind_it(&p, 7, RIGHTS), DOCK_OK);
        assert_int_equal(write_it(&p, &p.near, p.mw->rkey), DOCK_OK);
        assert_int_equal(write_it(&p, &p.other_near, p.mw->rkey),
                         kind == DOCK_SEG_MW1 ? DOCK_OK : DOCK_ST_REM_ACCESS);
        close_pairs(&p);
    }
}

// Each way to be wrong: the bind fails at the binder, with the region as it was.
static void a_bind_that_may_not_be(void **state)
{
    static const char *const how[] = {"region's key",           "outside the region",
                                      "longer than the region", "no such window",
                                      "a region for a window",  "right that the region lacks"};

    (void)state;
    for (unsigned i = 0; i < sizeof how / sizeof *how; i++) {
        struct pairs p;
        struct dock_mr *read_only;
        open_pairs(&p, DOCK_SEG_MW2);
        struct dock_wr wr = bind_wr(&p, 1, (uintptr_t)p.far.mem + AT, LEN, RIGHTS);
        assert_int_equal(dock_mr_register(p.dev, p.far.pd, (uintptr_t)p.far.mem, 8192, (uintptr_t)p.far.mem,
                                          DOCK_ACCESS_MW_BIND | DOCK_ACCESS_REMOTE_READ, &read_only),
                         0);
        if (i == 0)
            wr.remote ^= 4;
        if (i == 1)
            wr.raddr = (uintptr_t)p.far.mem - 1;
        if (i == 2)
            wr.operand = p.far.mem_size;
        if (i == 3)
            wr.rkey = 0xfff000;
        if (i == 4)
            wr.rkey = p.far.mr->tid << 8;
        if (i == 5)
            wr.remote = read_only->lkey;
        assert_int_equal(end_post(&p.far, &wr), 0);
        assert_int_equal(done(&p.far), DOCK_ST_MW_BIND);
        assert_int_equal(dock_qp_state(p.far.qp), DOCK_ERR);
        assert_int_equal(dock_peek32(&p.far.mr->windows), 0);
        assert_int_equal(dock_mr_deregister(read_only), 0);
        close_pairs(&p);
    }
}

static void a_region_is_busy_while_a_window_is_bound_to_it(void **state)
{
    struct dock_mr *region;
    struct pairs p;

    (void)state;
    open_pairs(&p, DOCK_SEG_MW2);
    assert_int_equal(dock_mr_register(p.dev, p.far.pd, (uintptr_t)p.far.mem, 8192, (uintptr_t)p.far.mem,
                                      DOCK_ACCESS_LOCAL_WRITE | DOCK_ACCESS_MW_BIND, &region),
                     0);
    struct dock_wr wr = bind_wr(&p, 1, (uintptr_t)p.far.mem, 64, RIGHTS);
    wr.remote = region->lkey;
    assert_int_equal(end_post(&p.far, &wr), 0);
    assert_int_equal(done(&p.far), DOCK_OK);
    assert_int_equal(dock_mr_deregister(region), -EBUSY);
    assert_int_equal(use(&p.near, DOCK_OP_WRITE, p.mw->rkey, (uintptr_t)p.far.mem, 8),
                     DOCK_OK); // nothing happened
    assert_int_equal(dock_mw_destroy(p.mw), 0);
    p.mw = NULL;
    assert_int_equal(dock_mr_deregister(region), 0);
    close_pairs(&p);
}

static uint32_t invalidate(struct end *e, uint32_t key)
{
    struct dock_wr wr = {.op = DOCK_OP_INV, .flags = DOCK_F_COMPLETE, .rkey = key};

    assert_int_equal(end_post(e, &wr), 0);
    return done(e);
}

static void invalidated_at_home_its_key_is_dead_and_the_region_free(void **state)
{
    struct pairs p;

    (void)state;
    open_pairs(&p, DOCK_SEG_MW2);
    assert_int_equal(bind_it(&p, 3, RIGHTS), DOCK_OK);
    uint32_t key = p.mw->rkey;
    assert_int_equal(write_it(&p, &p.near, key), DOCK_OK);
    assert_int_equal(invalidate(&p.far, key), DOCK_OK);
    assert_int_equal(dock_peek32(&p.far.mr->windows), 0);
    assert_int_equal(bind_it(&p, 4, RIGHTS), DOCK_OK); // it can be bound anew, under a new key
    assert_int_equal(write_it(&p, &p.near, p.mw->rkey), DOCK_OK);
    assert_int_equal(write_it(&p, &p.near, key), DOCK_ST_REM_ACCESS);
    close_pairs(&p);
}

static void only_a_window_of_type_two_can_be_invalidated(void **state)
{
    struct pairs p;

    (void)state;
    open_pairs(&p, DOCK_SEG_MW1);
    assert_int_equal(bind_it(&p, 3, RIGHTS), DOCK_OK);
    assert_int_equal(invalidate(&p.far, p.mw->rkey), DOCK_ST_MW_BIND);
    close_pairs(&p);
    open_pairs(&p, DOCK_SEG_MW2);
    assert_int_equal(invalidate(&p.far, p.far.mr->rkey), DOCK_ST_MW_BIND);
    close_pairs(&p);
}

static uint32_t send_inv(struct pairs *p, uint32_t key)
{
    struct dock_wr wr = wr_onesided(DOCK_OP_SEND_INV, &p->near, &sge, 0, 16, p->far.mr, 0);

    wr.rkey = key;
    assert_int_equal(end_recv(&p->far, 12, p->far.mem, 64), 0);
    assert_int_equal(end_post(&p->near, &wr), 0);
    return done(&p->near);
}

static void invalidated_by_a_message_its_key_is_dead_and_the_region_free(void **state)
{
    struct pairs p;
    struct dock_wc wc;

    (void)state;
    open_pairs(&p, DOCK_SEG_MW2);
    assert_int_equal(bind_it(&p, 3, RIGHTS), DOCK_OK);
    uint32_t key = p.mw->rkey;
    memset(p.near.mem, 6, 16);
    assert_int_equal(send_inv(&p, key), DOCK_OK);
    assert_true(end_wait(p.far.rcq, &wc, 3000));
    assert_int_equal(wc.status, DOCK_OK);
    assert_int_equal(wc.op, DOCK_ROP_SEND_INV);
    assert_int_equal(wc.imm, key);
    assert_int_equal(wc.bytes, 16);
    assert_memory_equal(p.far.mem, p.near.mem, 16);

    struct dock_mr *region = p.far.mr; // not busy any more
    assert_int_equal(dock_mr_deregister(region), 0);
    assert_int_equal(dock_mr_register(p.dev, p.far.pd, (uintptr_t)p.far.mem, p.far.mem_size,
                                      (uintptr_t)p.far.mem,
                                      RIGHTS | DOCK_ACCESS_LOCAL_WRITE | DOCK_ACCESS_MW_BIND, &p.far.mr),
                     0);
    assert_int_equal(bind_it(&p, 9, RIGHTS), DOCK_OK); // and the window may be bound anew
    assert_int_equal(write_it(&p, &p.near, p.mw->rkey), DOCK_OK);
    assert_int_equal(write_it(&p, &p.near, key), DOCK_ST_REM_ACCESS);
    close_pairs(&p);
}

// A message may take back only what is bound to its queue, and a wrong key is an access error of the sender.
static void a_message_cannot_invalidate_what_is_not_its_own(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        struct pairs p;
        open_pairs(&p, i == 2 ? DOCK_SEG_MW1 : DOCK_SEG_MW2);
        if (i == 0) { // bound to the other queue
            struct dock_wr wr = bind_wr(&p, 3, (uintptr_t)p.far.mem, LEN, RIGHTS);
            assert_int_equal(end_post(&p.other, &wr), 0);
            assert_int_equal(done(&p.other), DOCK_OK);
        } else {
            assert_int_equal(bind_it(&p, 3, RIGHTS), DOCK_OK);
        }
        uint32_t key = i == 1 ? p.far.mr->rkey : p.mw->rkey;
        assert_int_equal(send_inv(&p, key), DOCK_ST_RETRY_EXC); // class J: nobody answers
        if (i == 0)
            assert_int_equal(use(&p.other_near, DOCK_OP_WRITE, key, (uintptr_t)p.far.mem, 8), DOCK_OK);
        close_pairs(&p);
    }
}

static void binding_over_nothing_unbinds_type_one(void **state)
{
    struct pairs p;

    (void)state;
    open_pairs(&p, DOCK_SEG_MW1);
    assert_int_equal(bind_it(&p, 3, RIGHTS), DOCK_OK);
    uint32_t key = p.mw->rkey;
    struct dock_wr wr = bind_wr(&p, 4, 0, 0, 0);
    assert_int_equal(end_post(&p.far, &wr), 0);
    assert_int_equal(done(&p.far), DOCK_OK);
    assert_int_equal(dock_peek32(&p.far.mr->windows), 0);
    assert_int_equal(write_it(&p, &p.near, key), DOCK_ST_REM_ACCESS);
    close_pairs(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unbound_window_is_refused),
        cmocka_unit_test(bound_it_opens_its_range_and_nothing_beside),
        cmocka_unit_test(it_has_rights_of_its_own),
        cmocka_unit_test(type_two_is_for_its_queue_type_one_for_the_domain),
        cmocka_unit_test(a_bind_that_may_not_be),
        cmocka_unit_test(a_region_is_busy_while_a_window_is_bound_to_it),
        cmocka_unit_test(invalidated_at_home_its_key_is_dead_and_the_region_free),
        cmocka_unit_test(only_a_window_of_type_two_can_be_invalidated),
        cmocka_unit_test(invalidated_by_a_message_its_key_is_dead_and_the_region_free),
        cmocka_unit_test(a_message_cannot_invalidate_what_is_not_its_own),
        cmocka_unit_test(binding_over_nothing_unbinds_type_one),
    };

    return cmocka_run_group_tests_name("memory windows", tests, NULL, NULL);
}
