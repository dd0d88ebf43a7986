// SPDX-License-Identifier: MIT
// What the short ways know of earlier requests: that a CQ is empty is seen without its lock, and a key that
// was used last is gone when it was taken away.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/internal.h"
#include "lib/duo.h"

#define CQE 4u // so that the ring goes round often

static struct duo d;

static void open_pair(void)
{
    struct duo_opts o = {.near = {.wr = 8, .sge = 1, .cqe = CQE}};

    duo_open(&d, SELF_ARENA, &o);
}

static uint32_t status_of(struct dock_sge sge, uint32_t far_key)
{
    struct dock_wr wr = {.op = DOCK_OP_WRITE,
                         .flags = DOCK_F_COMPLETE,
                         .nsge = 1,
                         .sge = &sge,
                         .rkey = far_key,
                         .raddr = d.mem};
    struct dock_wc wc;

    assert_int_equal(end_post(&d.near.e, &wr), 0);
    assert_false(dock_cq_idle(d.near.e.scq));
    assert_true(end_wait(d.near.e.scq, &wc, 5000));
    return wc.status;
}

static struct dock_sge local(uint32_t key)
{
    return (struct dock_sge){.addr = (uintptr_t)d.near.e.mem, .len = 8, .key = key};
}

static void a_cq_is_idle_when_nothing_is_in_it(void **state)
{
    (void)state;
    open_pair();
    for (unsigned i = 0; i < 5 * CQE; i++) {
        assert_true(dock_cq_idle(d.near.e.scq));
        assert_int_equal(status_of(local(d.near.e.mr->lkey), d.mr.rkey), DOCK_OK);
    }
    assert_true(dock_cq_idle(d.near.e.scq));
    duo_close(&d);
}

// Its ring moves under who looks.
static void a_cq_that_was_resized_is_looked_at_under_its_lock(void **state)
{
    (void)state;
    open_pair();
    assert_int_equal(status_of(local(d.near.e.mr->lkey), d.mr.rkey), DOCK_OK);
    assert_int_equal(dock_cq_resize(d.near.e.scq, 2 * CQE), 0);
    assert_false(dock_cq_idle(d.near.e.scq));
    for (unsigned i = 0; i < 5 * CQE; i++)
        assert_int_equal(status_of(local(d.near.e.mr->lkey), d.mr.rkey), DOCK_OK);
    duo_close(&d);
}

// More than a budget, on a device without an engine: who polls is who goes on with it.
static void a_cq_is_not_idle_while_work_waits_for_a_poller(void **state)
{
    struct dock_config cfg = {.no_engine_thread = true};
    struct dock_dev *dev;
    struct end e;
    struct dock_wc wc = {.status = DOCK_ST_FLUSH};

    (void)state;
    assert_int_equal(dock_dev_open(&cfg, &dev), 0);
    end_open(&e, dev, &(struct end_opts){.mem = 1 << 20});
    end_connect(&e, dock_qp_number(e.qp), NULL);
    struct dock_sge sge = {.addr = (uintptr_t)e.mem, .len = 1 << 19, .key = e.mr->lkey};
    struct dock_wr wr = {.op = DOCK_OP_WRITE,
                         .flags = DOCK_F_COMPLETE,
                         .nsge = 1,
                         .sge = &sge,
                         .rkey = e.mr->rkey,
                         .raddr = (uintptr_t)e.mem + (1 << 19)};
    assert_true(dock_cq_idle(e.scq));
    assert_int_equal(end_post(&e, &wr), 0);
    while (!dock_cq_idle(e.scq) && !end_poll(e.scq, &wc))
        ;
    assert_int_equal(wc.status, DOCK_OK);
    assert_int_equal(wc.bytes, 1 << 19);
    end_close(&e);
    dock_dev_close(dev);
}

static void a_local_key_is_gone_with_its_region(bool named)
{
    struct dock_mr *mr;

    open_pair();
    assert_int_equal(dock_mr_register(d.near.e.dev, d.near.e.pd, (uintptr_t)d.near.e.mem, 4096,
                                      (uintptr_t)d.near.e.mem, DOCK_ACCESS_LOCAL_WRITE, &mr),
                     0);
    assert_int_equal(status_of(local(mr->lkey), d.mr.rkey), DOCK_OK);
    assert_int_equal(status_of(local(mr->lkey), d.mr.rkey), DOCK_OK);
    uint32_t key = mr->lkey;
    assert_int_equal(dock_mr_deregister(mr), 0);
    assert_int_equal(status_of(local(named ? key : 0), d.mr.rkey), DOCK_ST_LOC_PROT);
    duo_close(&d);
}

static void the_local_key_used_last_is_gone_with_its_region(void **state)
{
    (void)state;
    a_local_key_is_gone_with_its_region(true);
}

static void no_key_names_what_the_key_used_last_named(void **state)
{
    (void)state;
    a_local_key_is_gone_with_its_region(false);
}

// The far end's region goes, and its key with it.
static void the_remote_key_used_last_is_gone_with_its_region(void **state)
{
    (void)state;
    open_pair();
    assert_int_equal(status_of(local(d.near.e.mr->lkey), d.mr.rkey), DOCK_OK);
    assert_int_equal(status_of(local(d.near.e.mr->lkey), d.mr.rkey), DOCK_OK);
    dock_segrec_clear(d.near.e.dev, d.mr.tid);
    assert_int_equal(status_of(local(d.near.e.mr->lkey), d.mr.rkey), DOCK_ST_REM_ACCESS);
    duo_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cq_is_idle_when_nothing_is_in_it),
        cmocka_unit_test(a_cq_that_was_resized_is_looked_at_under_its_lock),
        cmocka_unit_test(a_cq_is_not_idle_while_work_waits_for_a_poller),
        cmocka_unit_test(the_local_key_used_last_is_gone_with_its_region),
        cmocka_unit_test(no_key_names_what_the_key_used_last_named),
        cmocka_unit_test(the_remote_key_used_last_is_gone_with_its_region),
    };

    return cmocka_run_group_tests_name("what the short ways remember", tests, NULL, NULL);
}
