// SPDX-License-Identifier: MIT
// A CQ that loses completions and keeps those of destroyed queues takes nothing for either that is damage:
// neither its record, nor an entry of it. And what stays is written while nobody appends.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "device/internal.h"
#include "lib/duo.h"

static struct duo d;

static int setup(void **state)
{
    (void)state;
    duo_open(&d, SELF_ARENA, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    duo_close(&d);
    return 0;
}

static void write_word(uint64_t id)
{
    struct dock_sge sge;
    struct dock_wr wr = wr_onesided(DOCK_OP_WRITE, &d.near.e, &sge, 0, 8, &d.mr, d.mem);

    wr.id = id;
    wr.flags = DOCK_F_COMPLETE;
    assert_int_equal(end_post(&d.near.e, &wr), 0);
}

// The entry of a small WRITE, which stands when its post returns.
static struct dock_cqe *entry(struct dock_cq *cq)
{
    uint32_t dw0;
    struct dock_cqe *e = dock_cq_look(&cq->view, cq->ci, &dw0);

    assert_non_null(e);
    return e;
}

static void a_damaged_record_loses_nothing_in_silence(void **state)
{
    struct dock_qp *qp = d.near.e.qp;
    struct dock_cqrec *rec = d.near.e.scq->rec;

    (void)state;
    dock_set32(&rec->epoch, dock_peek32(&rec->epoch) ^ 2); // so that it is read again
    dock_set32(&rec->sum, dock_peek32(&rec->sum) ^ 1);
    write_word(1);
    assert_int_equal(dock_peek32(&qp->rec->state), DOCK_ERR);
    dock_set32(&rec->epoch, dock_peek32(&rec->epoch) ^ 2);
    dock_set32(&rec->sum, dock_peek32(&rec->sum) ^ 1);
}

static void an_entry_without_its_queue_is_no_completion_that_stays(void **state)
{
    struct dock_wc wc;
    struct dock_cqe *e;

    (void)state;
    write_word(1);
    e = entry(d.near.e.scq);
    e->idx_local &= 0xffff;
    e->local_remote &= ~0xfu;
    assert_false(end_poll(d.near.e.scq, &wc));
}

static void *forget(void *arg)
{
    (void)arg;
    dock_cq_forget(d.near.e.scq, d.near.e.qp, true);
    return NULL;
}

static void what_stays_is_written_while_nobody_appends(void **state)
{
    struct dock_cq *cq = d.near.e.scq;
    const struct timespec moment = {.tv_nsec = 50000000};
    struct dock_wc wc;
    pthread_t thread;

    (void)state;
    cq->view.flags |= DOCK_CQ_OVERWRITE;
    write_word(77);
    uint32_t tail = dock_cq_hold(&cq->view, &d.dev->waiter);
    assert_int_equal(pthread_create(&thread, NULL, forget, NULL), 0);
    nanosleep(&moment, NULL); // too short on a slow machine: then nothing is seen, and nothing fails
    assert_int_equal(dock_cqe_local(entry(cq)), d.near.e.qp->number);
    dock_cq_let_go(&cq->view, &d.dev->waiter, tail);
    pthread_join(thread, NULL);
    assert_int_equal(dock_cqe_local(entry(cq)), 0);
    assert_true(end_poll(cq, &wc));
    assert_int_equal(wc.id, 77);
    assert_int_equal(wc.qp_num, d.near.e.qp->number);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_damaged_record_loses_nothing_in_silence, setup, teardown),
        cmocka_unit_test_setup_teardown(an_entry_without_its_queue_is_no_completion_that_stays, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_stays_is_written_while_nobody_appends, setup, teardown),
    };

    setenv("DRYDOCK_PROFILE", "strict,overrun_loses,completions_stay", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
