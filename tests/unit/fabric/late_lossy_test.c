// SPDX-License-Identifier: MIT
// Services that lose messages, over a fabric that finishes late: completions in order, each message once or
// not at all, and the sender learns of neither.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/seed.h"
#include "device/internal.h"
#include "lib/late.h"
#include "lib/pair.h"

enum { MESSAGES = 24, GRH = 40 };

struct world {
    struct dock_dev *dev;
    struct end from, to[2];
    uint64_t seed;
};

static void open_world(struct world *w, enum dock_service service)
{
    struct dock_config cfg = {.fabric = &late_fabric, .no_engine_thread = true};
    struct end_opts o = {.service = service};

    w->seed = dock_seed();
    late_open(w->seed, 0);
    assert_int_equal(dock_dev_open(&cfg, &w->dev), 0);
    end_open(&w->from, w->dev, &o);
    for (unsigned i = 0; i < 2; i++) {
        end_open(&w->to[i], w->dev, &o);
        end_connect(&w->to[i], dock_qp_number(w->from.qp), NULL);
    }
    end_connect(&w->from, dock_qp_number(w->to[0].qp), NULL);
}

static void close_world(struct world *w)
{
    late_drain();
    end_close(&w->from);
    for (unsigned i = 0; i < 2; i++)
        end_close(&w->to[i]);
    assert_int_equal(dock_dev_close(w->dev), 0);
    late_close();
}

static void post(struct world *w, uint8_t op, unsigned to, unsigned id, uint32_t len)
{
    struct end *t = &w->to[to];
    struct dock_sge sge;
    struct dock_wr wr = wr_onesided(op, &w->from, &sge, 64 * (size_t)id, len, t->mr, (uintptr_t)t->mem);

    memset(w->from.mem + 64 * (size_t)id, (int)id + 1, len);
    wr.id = id;
    wr.raddr += 64 * (uintptr_t)id;
    if (op == DOCK_OP_SEND_IMM) {
        wr.imm = id;
        wr.rkey = 0x1234;
        wr.remote = dock_qp_number(t->qp);
        wr.eid = test_eid;
    }
    assert_int_equal(end_post(&w->from, &wr), 0);
}

// Whatever became of them, in the order of posting.
static void expect_sent(struct world *w, unsigned first, unsigned n)
{
    struct dock_wc wc;

    for (unsigned i = first; i < first + n; i++) {
        if (!end_poll(w->from.scq, &wc) || wc.id != i || wc.status) {
            print_error("no success of WR %u; seed %#llx: DRYDOCK_SEED repeats it\n", i,
                        (unsigned long long)w->seed);
            fail();
        }
    }
    assert_false(end_poll(w->from.scq, &wc));
}

static void datagrams_keep_their_order_or_are_lost(void **state)
{
    struct dock_wc wc;
    struct world w;
    unsigned got = 0;

    (void)state;
    open_world(&w, DOCK_UD);
    for (unsigned i = 0; i < MESSAGES / 2; i++) // for one of the two; the other is not ready
        assert_int_equal(end_recv(&w.to[0], i, w.to[0].mem + 128 * i, 128), 0);
    for (unsigned i = 0; i < MESSAGES; i++)
        post(&w, DOCK_OP_SEND_IMM, i % 2, i, 64);
    assert_false(end_poll(w.from.scq, &wc)); // nothing is finished yet
    late_drain();
    expect_sent(&w, 0, MESSAGES);
    for (; end_poll(w.to[0].rcq, &wc); got++) {
        assert_int_equal(wc.id, got);
        assert_int_equal(wc.status, DOCK_OK);
        assert_int_equal(wc.imm, 2 * got);
        assert_int_equal(wc.bytes, 64 + GRH);
        assert_int_equal(w.to[0].mem[128 * got + GRH], (int)(2 * got) + 1);
    }
    assert_int_equal(got, MESSAGES / 2);
    assert_false(end_poll(w.to[1].rcq, &wc));
    assert_int_equal(dock_peek64(&w.dev->port->dropped), MESSAGES / 2);
    close_world(&w);
}

static void an_unreliable_connection_writes_and_sends_in_order(void **state)
{
    struct dock_wc wc;
    struct world w;

    (void)state;
    open_world(&w, DOCK_UC);
    for (unsigned i = 0; i < MESSAGES; i++)
        post(&w, i % 2 ? DOCK_OP_WRITE : DOCK_OP_SEND, 0, i, 64); // no receive is posted: SENDs are lost
    late_drain();
    expect_sent(&w, 0, MESSAGES);
    for (unsigned i = 1; i < MESSAGES; i += 2)
        assert_int_equal(w.to[0].mem[64 * i], (int)i + 1);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(end_recv(&w.to[0], i, w.to[0].mem + 64 * i, 64), 0);
    for (unsigned i = 0; i < 4; i++)
        post(&w, DOCK_OP_SEND, 0, i, 64);
    late_drain();
    expect_sent(&w, 0, 4);
    for (unsigned i = 0; i < 4; i++) {
        assert_true(end_poll(w.to[0].rcq, &wc));
        assert_int_equal(wc.id, i);
        assert_int_equal(w.to[0].mem[64 * i], (int)i + 1);
    }
    assert_int_equal(dock_qp_state(w.from.qp), DOCK_RTS);
    close_world(&w);
}

// Its own mistake ends neither: the queue stops in SQE, what was behind it is flushed.
static void the_senders_own_mistake_stops_it_behind_what_was_in_flight(void **state)
{
    static const enum dock_service services[] = {DOCK_UC, DOCK_UD};

    (void)state;
    for (unsigned s = 0; s < 2; s++) {
        struct dock_wc wc;
        struct world w;
        open_world(&w, services[s]);
        for (unsigned i = 0; i < 4; i++)
            assert_int_equal(end_recv(&w.to[0], i, w.to[0].mem, 128), 0);
        late_fail(2, DOCK_ST_LOC_PROT);
        for (unsigned i = 0; i < 4; i++)
            post(&w, DOCK_OP_SEND_IMM, 0, i, 64);
        late_drain();
        for (unsigned i = 0; i < 4; i++) {
            assert_true(end_poll(w.from.scq, &wc));
            assert_int_equal(wc.id, i);
            assert_int_equal(wc.status, i < 2 ? DOCK_OK : i == 2 ? DOCK_ST_LOC_PROT : DOCK_ST_FLUSH);
        }
        assert_int_equal(dock_qp_state(w.from.qp), DOCK_SQE);
        assert_int_equal(dock_qp_state(w.to[0].qp), DOCK_RTS);
        close_world(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(datagrams_keep_their_order_or_are_lost),
        cmocka_unit_test(an_unreliable_connection_writes_and_sends_in_order),
        cmocka_unit_test(the_senders_own_mistake_stops_it_behind_what_was_in_flight),
    };

    return cmocka_run_group_tests_name("lossy services over a late fabric", tests, NULL, NULL);
}
