// SPDX-License-Identifier: MIT
// A receiver that sleeps is woken when the sender's own completion stands, and not before: what it answers
// comes behind that completion, as on adapters, whose acknowledgement goes ahead of any answer.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <unistd.h>

#include "device/internal.h"
#include "lib/pair.h"

static struct end a, b;
static unsigned completions, straight; // of a's own, and steps of the straight way, seen by the listener
static bool woken_early;

// Its engine is told that there is something to see, and rung if it sleeps.
static bool told(void)
{
    return dock_peek32(&b.dev->port->attention);
}

static bool rung(void)
{
    struct pollfd p = {.fd = b.dev->bell_fd, .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

static void listen_to(enum dock_moment at, uint32_t object, uint64_t sequence)
{
    straight += at == DOCK_AT_PLACE && sequence & DOCK_PROBE_STRAIGHT;
    if (at != DOCK_AT_COMPLETE || !a.qp || object != dock_qp_number(a.qp))
        return;
    completions++;
    woken_early |= told() || rung();
}

struct row {
    const char *what;
    enum dock_service service;
    uint8_t op;
    uint32_t len;
    bool straight;
};

static const struct row rows[] = {
    {"SEND, RC, straight", DOCK_RC, DOCK_OP_SEND, 64, true},
    {"SEND, RC, the long way", DOCK_RC, DOCK_OP_SEND, 64, false},
    {"SEND with immediate, UC, straight", DOCK_UC, DOCK_OP_SEND_IMM, 64, true},
    {"WRITE with immediate, RC", DOCK_RC, DOCK_OP_WRITE_IMM, 64, false},
    {"SEND, RM", DOCK_RM, DOCK_OP_SEND, 64, false},
};

static void post(const struct row *row)
{
    struct dock_sge sge;
    struct dock_wr wr = wr_onesided(row->op, &a, &sge, 0, row->len, b.mr, (uintptr_t)b.mem);

    wr.flags = DOCK_F_COMPLETE;
    if (dock_service_names(row->service))
        wr_aim(&wr, dock_qp_number(b.qp));
    completions = straight = 0;
    woken_early = false;
    assert_int_equal(end_recv(&b, 1, b.mem, 4096), 0);
    assert_int_equal(end_post(&a, &wr), 0);
    for (unsigned step = 0; step < 100 && !completions; step++)
        dock_engine_step(a.dev);
    assert_int_equal(completions, 1);
}

// Nobody sleeps yet: each hears of the other, and the straight way is open.
static void get_acquainted(const struct row *row)
{
    uint64_t count;

    post(row);
    for (unsigned step = 0; step < 8; step++) {
        dock_engine_step(a.dev);
        dock_engine_step(b.dev);
    }
    (void)!read(b.dev->bell_fd, &count, sizeof count);
    assert_false(told() || rung());
}

static void a_sleeping_receiver_is_woken_behind_the_senders_completion(void **state)
{
    struct dock_config cfg = {.no_engine_thread =
                                  true}; // nobody takes the bell's count, or sleeps in earnest
    struct dock_dev *one, *other;

    (void)state;
    assert_int_equal(dock_dev_open(&cfg, &one), 0);
    assert_int_equal(dock_dev_open(&cfg, &other), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct end_opts o = {.service = rows[i].service};
        print_message("%s\n", rows[i].what);
        end_open(&a, one, &o);
        end_open(&b, other, &o);
        pair_connect_stepped(&a, &b);
        dock_probe_straight = rows[i].straight;
        get_acquainted(&rows[i]);
        assert_int_equal(dock_cq_arm(b.rcq, false, false), 0);
        dock_set32(&other->port->asleep, DOCK_DEEP);
        post(&rows[i]);
        assert_int_equal(straight != 0, rows[i].straight);
        assert_false(woken_early);
        assert_true(told() && rung());
        dock_set32(&other->port->asleep, DOCK_AWAKE);
        end_close(&a);
        end_close(&b);
        a.qp = NULL;
    }
    assert_int_equal(dock_dev_close(one), 0);
    assert_int_equal(dock_dev_close(other), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sleeping_receiver_is_woken_behind_the_senders_completion),
    };

    dock_probe_hook = listen_to; // before the first device opens
    return cmocka_run_group_tests(tests, NULL, NULL);
}
