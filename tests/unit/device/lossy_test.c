// SPDX-License-Identifier: MIT
// Services that lose messages keep their books all the same; words that peers write are not believed.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/order.h"
#include "base/probe.h"
#include "device/internal.h"
#include "device/link.h"
#include "lib/duo.h"
#include "lib/own_dir.h"
#include "lib/port_down.h"

// Both of them, in the order of posting: the one that a broken message had begun is not lost.
static void the_receives_serve_the_next(struct end *a, struct end *b)
{
    struct dock_sge sge;

    for (unsigned i = 0; i < 2; i++) {
        struct dock_wr wr = wr_onesided(DOCK_OP_SEND, a, &sge, 0, 8, a->mr, 0);
        wr.id = i;
        assert_int_equal(end_post(a, &wr), 0);
        expect(a->scq, i, DOCK_OK);
        expect(b->rcq, i, DOCK_OK);
    }
}

// As on a wire: of two pieces the second never comes, and the next message begins in the same receive.
static void a_message_broken_off_leaves_its_receive_to_the_next(void **state)
{
    enum { LONG = 500000 };
    struct dock_dev *dev = open_device();
    struct end_opts o = {.service = DOCK_UC};
    struct dock_qp_mod rts = {.mask = DOCK_MOD_STATE, .state = DOCK_RTS};
    struct dock_mr *mr;
    struct dock_sge sge;
    struct end a, b;

    (void)state;
    end_open(&a, dev, &o);
    end_open(&b, dev, &o);
    pair_connect(&a, &b);
    assert_int_equal(dock_mr_register(dev, a.pd, (uintptr_t)a.mem, LONG, (uintptr_t)a.mem, 0, &mr), 0);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(end_recv(&b, i, b.mem, LONG), 0);
    struct dock_wr wr = wr_onesided(DOCK_OP_SEND, &a, &sge, 0, LONG, a.mr, 0);
    sge.key = mr->lkey;
    wr.id = 7;
    assert_int_equal(end_post(&a, &wr), 0); // a budget of it; the rest is left to who polls
    assert_int_equal(dock_mr_deregister(mr), 0);
    expect(a.scq, 7, DOCK_ST_LOC_PROT);
    assert_int_equal(dock_qp_state(a.qp), DOCK_SQE);
    assert_int_equal(dock_qp_modify(a.qp, &rts), 0);
    the_receives_serve_the_next(&a, &b);
    assert_int_equal(end_recv(&b, 2, b.mem, 8), 0); // none of them is held
    end_close(&a);
    end_close(&b);
    assert_int_equal(dock_dev_close(dev), 0);
}

static void a_file_that_is_gone_is_a_port_that_is_up(void **state)
{
    struct dock_dev *dev = open_device();

    (void)state;
    set_port(dev, true);
    assert_int_equal(unlinkat(dev->dir.fd, DOCK_LINK_FILE, 0), 0);
    dock_link_look(dev, false);
    assert_false(dock_link_down());
    assert_int_equal(dock_dev_close(dev), 0);
}

static void a_message_cut_by_the_port_leaves_its_receive_to_the_next(void **state)
{
    enum { LONG = 500000 };
    struct dock_dev *dev = open_device();
    struct end_opts o = {.service = DOCK_UC};
    struct dock_sge sge;
    struct end a, b;

    (void)state;
    end_open(&a, dev, &o);
    end_open(&b, dev, &o);
    pair_connect(&a, &b);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(end_recv(&b, i, b.mem, LONG), 0);
    struct dock_wr wr = wr_onesided(DOCK_OP_SEND, &a, &sge, 0, LONG, a.mr, 0);
    wr.id = 7;
    assert_int_equal(end_post(&a, &wr), 0); // a budget of it
    set_port(dev, true);
    expect(a.scq, 7, DOCK_OK); // the rest is lost
    set_port(dev, false);
    the_receives_serve_the_next(&a, &b);
    end_close(&a);
    end_close(&b);
    assert_int_equal(dock_dev_close(dev), 0);
}

// ---- datagrams of several senders at once

enum { SENDERS = 3, BYTES = 8, RECEIVES = 64, ROOM = 64 };

struct sender {
    struct end e;
    uint32_t to;
};

static unsigned each(void)
{
    return 20000 / slow_down();
}

static void *send_all(void *arg)
{
    struct sender *s = arg;
    struct dock_sge sge;
    struct dock_wr wr = wr_onesided(DOCK_OP_SEND, &s->e, &sge, 0, BYTES, s->e.mr, 0);
    struct dock_wc wc;

    wr.rkey = 0x1234;
    wr.remote = s->to;
    wr.eid = test_eid;
    for (unsigned i = 0, n = each(); i < n; i++)
        if (end_post(&s->e, &wr) || !end_wait(s->e.scq, &wc, 10000) || wc.status)
            return NULL;
    return s;
}

// Each receive has memory of its own: two senders fill two of them at once.
static void receive(struct end *to, uint64_t id)
{
    assert_int_equal(end_recv(to, id, to->mem + id * ROOM, ROOM), 0);
}

static unsigned repost(struct end *to)
{
    struct dock_wc wc;
    unsigned n = 0;

    while (end_poll(to->rcq, &wc)) {
        n++;
        receive(to, wc.id);
    }
    return n;
}

// As verbs posts it: of the fields, those are filled that such a queue knows. Seen with sanitizers.
static void a_foreign_opcode_is_found_without_a_look_at_what_nobody_filled(void **state)
{
    struct dock_dev *dev = open_device();
    struct end_opts o = {.service = DOCK_UD};
    struct dock_sge sge;
    struct dock_wr wr;
    struct dock_wc wc;
    struct end e;

    (void)state;
    end_open(&e, dev, &o);
    end_connect(&e, 0, NULL);
    sge = (struct dock_sge){.addr = (uintptr_t)e.mem, .len = 8, .key = e.mr->lkey};
    memset(&wr, 0x5a, sizeof wr);
    wr.op = DOCK_OP_WRITE;
    wr.id = 1;
    wr.flags = DOCK_F_COMPLETE;
    wr.sge = &sge;
    wr.nsge = 1;
    wr.inline_len = 0;
    wr.eid = NULL;
    wr.raddr = (uintptr_t)e.mem;
    wr.rkey = e.mr->rkey;
    wr.remote = 0;
    wr.imm = 0;
    assert_int_equal(end_post(&e, &wr), 0);
    assert_true(end_wait(e.scq, &wc, 5000 * slow_down()));
    assert_int_equal(wc.status, DOCK_ST_LOC_QP_OP);
    end_close(&e);
    assert_int_equal(dock_dev_close(dev), 0);
}

static void datagrams_of_many_senders_are_counted_exactly(void **state)
{
    struct dock_dev *dev = open_device();
    struct end_opts o = {.service = DOCK_UD};
    struct sender s[SENDERS];
    pthread_t thread[SENDERS];
    uint64_t got = 0;
    struct end to;
    void *all;

    (void)state;
    end_open(&to, dev, &o);
    end_connect(&to, 0, NULL);
    for (unsigned i = 0; i < RECEIVES; i++)
        receive(&to, i);
    for (unsigned i = 0; i < SENDERS; i++) {
        end_open(&s[i].e, dev, &o);
        end_connect(&s[i].e, 0, NULL);
        s[i].to = dock_qp_number(to.qp);
    }
    for (unsigned i = 0; i < SENDERS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, send_all, &s[i]), 0);
    while (dock_peek64(&to.qp->rec->messages_in) + dock_peek64(&dev->port->dropped) <
           SENDERS * (each() - 100))
        got += repost(&to);
    for (unsigned i = 0; i < SENDERS; i++) {
        pthread_join(thread[i], &all);
        assert_non_null(all);
    }
    got += repost(&to);
    assert_int_equal(dock_peek64(&to.qp->rec->messages_in), got);
    assert_int_equal(dock_peek64(&to.qp->rec->bytes_in), got * (BYTES + 40));
    assert_int_equal(dock_peek64(&dev->port->dropped), SENDERS * each() - got);
    for (unsigned i = 0; i < SENDERS; i++)
        end_close(&s[i].e);
    end_close(&to);
    assert_int_equal(dock_dev_close(dev), 0);
}

static void the_word_of_used_hazards_is_not_believed_when_it_goes_down(void **state)
{
    struct dock_dev *dev = open_device();
    struct end_opts o = {.service = DOCK_RC};
    struct end a, b;

    (void)state;
    end_open(&a, dev, &o);
    end_open(&b, dev, &o);
    pair_connect(&a, &b);
    uint32_t used = dock_hazards_used(dev);
    assert_true(used >= 2);
    dock_set32(&dev->port->hazard_high, 0);
    assert_int_equal(dock_hazards_used(dev), used);
    dock_set32(&dev->port->hazard_high, UINT32_MAX);
    assert_int_equal(dock_hazards_used(dev), DOCK_HAZARDS);
    end_close(&a);
    end_close(&b);
    assert_int_equal(dock_dev_close(dev), 0);
}

static bool writes(struct end *from, struct end *to)
{
    struct dock_sge sge;
    struct dock_wr wr = wr_onesided(DOCK_OP_WRITE, from, &sge, 0, 8, to->mr, to->mr->va);
    struct dock_wc wc = {.status = 0xfff};

    wr_aim(&wr, dock_qp_number(to->qp));
    return !end_post(from, &wr) && end_wait(from->scq, &wc, 10000 * slow_down()) && !wc.status;
}

static struct {
    struct end *from, *to;
    dock_a32 queue, stop, failed; // whose runs take so long
} busy;

static void nap(long us)
{
    nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

static void dawdle(enum dock_moment at, uint32_t object, uint64_t sequence)
{
    (void)sequence;
    if (at == DOCK_AT_EXECUTE && object == dock_peek32(&busy.queue))
        nap(3000);
}

static void *keep_busy(void *arg)
{
    (void)arg;
    while (!dock_peek32(&busy.stop) && !dock_peek32(&busy.failed)) {
        dock_set32(&busy.failed, !writes(busy.from, busy.to));
        nap(50);
    }
    return NULL;
}

static void flip_hazard(struct dock_dev *mine, const struct end *of)
{
    uint64_t owner = (uint64_t)dock_dev_who(of->dev) << 32 | dock_qp_number(of->qp) | DOCK_HAZARD_USED;
    uint32_t i = 0, used = dock_hazards_used(mine);

    while (i < used && dock_peek64(&mine->hazards[i].owner) != owner)
        i++;
    assert_true(i < used);
    atomic_fetch_xor(&mine->hazards[i].busy, 1);
}

// The word of a device at rest says by accident that it works in our memory: it is asked, and puts that
// right. Of a connection, of a queue that is busy all the time with other targets, and of one of our own.
static void a_hazard_that_flips_at_rest_is_put_right_by_whose_it_is(void **state)
{
    struct dock_config patient = {.stopped_ms = 6000 * slow_down()};
    struct end_opts rc = {0}, rm = {.service = DOCK_RM};
    struct end a[3], b[3], other;
    struct dock_dev *mine, *theirs;
    struct dock_mr *mr;
    pthread_t thread;

    (void)state;
    dock_probe_hook = dawdle;
    assert_int_equal(dock_dev_open(&patient, &mine), 0);
    assert_int_equal(dock_dev_open(NULL, &theirs), 0);
    for (unsigned i = 0; i < 3; i++) {
        end_open(&a[i], mine, i == 1 ? &rm : &rc);
        end_open(&b[i], i < 2 ? theirs : mine, i == 1 ? &rm : &rc);
        pair_connect(&a[i], &b[i]);
        assert_true(writes(&b[i], &a[i]));
    }
    end_open(&other, theirs, &rm);
    end_connect(&other, 0, NULL);
    busy.from = &b[1];
    busy.to = &other;
    dock_set32(&busy.queue, dock_qp_number(b[1].qp));
    assert_int_equal(pthread_create(&thread, NULL, keep_busy, NULL), 0);
    for (unsigned i = 0; i < 3; i++)
        flip_hazard(mine, &b[i]);
    assert_int_equal(dock_mr_register(mine, a[0].pd, (uintptr_t)a[0].mem, 64, (uintptr_t)a[0].mem,
                                      DOCK_ACCESS_REMOTE_READ, &mr),
                     0);
    assert_int_equal(dock_mr_deregister(mr), 0); // waits for who seems to be at work
    assert_false(dock_idtable_evicted(&mine->ids_table, dock_dev_who(theirs)));
    dock_set32(&busy.stop, 1);
    pthread_join(thread, NULL);
    assert_int_equal(dock_peek32(&busy.failed), 0);
    assert_int_equal(dock_dev_usable(theirs), 0);
    for (unsigned i = 0; i < 3; i++)
        assert_true(writes(&b[i], &a[i]));
    end_close(&other);
    for (unsigned i = 0; i < 3; i++) {
        end_close(&b[i]);
        end_close(&a[i]);
    }
    assert_int_equal(dock_dev_close(theirs), 0);
    assert_int_equal(dock_dev_close(mine), 0);
    dock_probe_hook = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_broken_off_leaves_its_receive_to_the_next),
        cmocka_unit_test(a_file_that_is_gone_is_a_port_that_is_up),
        cmocka_unit_test(a_message_cut_by_the_port_leaves_its_receive_to_the_next),
        cmocka_unit_test(a_foreign_opcode_is_found_without_a_look_at_what_nobody_filled),
        cmocka_unit_test(datagrams_of_many_senders_are_counted_exactly),
        cmocka_unit_test(the_word_of_used_hazards_is_not_believed_when_it_goes_down),
        cmocka_unit_test(a_hazard_that_flips_at_rest_is_put_right_by_whose_it_is),
    };

    return cmocka_run_group_tests_name("services that lose messages, words that peers write", tests,
                                       own_dir_make, own_dir_remove);
}
