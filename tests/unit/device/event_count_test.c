// SPDX-License-Identifier: MIT
// As many events as there were reasons, and a descriptor that is readable exactly as long as one waits.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>

#include "device/internal.h"
#include "lib/fork.h"
#include "lib/pair.h"

// A sender, and a receiver of another device whose engine runs only when it is told to.
struct world {
    struct dock_dev *near, *far;
    struct dock_chan *chan;
    struct end a, b;
};

static dock_a32 connected;

// To hand out its descriptors the far engine has to run.
static void *step(void *far)
{
    while (!dock_peek32(&connected))
        dock_engine_step(far);
    return NULL;
}

static void open_world(struct world *w, uint32_t cqe)
{
    struct dock_config cfg = {.no_engine_thread = true};
    struct end_opts o = {.cqe = cqe};
    pthread_t stepper;

    assert_int_equal(dock_dev_open(NULL, &w->near), 0);
    assert_int_equal(dock_dev_open(&cfg, &w->far), 0);
    assert_int_equal(dock_chan_create(w->far, &w->chan), 0);
    end_open(&w->a, w->near, &(struct end_opts){0});
    o.chan = w->chan;
    end_open(&w->b, w->far, &o);
    end_connect(&w->b, dock_qp_number(w->a.qp), NULL);
    dock_set32(&connected, 0);
    assert_int_equal(pthread_create(&stepper, NULL, step, w->far), 0);
    end_connect(&w->a, dock_qp_number(w->b.qp), NULL);
    dock_set32(&connected, 1);
    pthread_join(stepper, NULL);
}

static void close_world(struct world *w)
{
    end_close(&w->a);
    if (w->b.qp)
        end_close(&w->b);
    assert_int_equal(dock_chan_destroy(w->chan), 0);
    assert_int_equal(dock_dev_close(w->near), 0);
    assert_int_equal(dock_dev_close(w->far), 0);
}

static bool readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

static void dont_block(int fd)
{
    assert_int_equal(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
}

static void send_one(struct world *w, uint64_t id, uint32_t status)
{
    struct dock_sge sge;
    struct dock_wr wr = wr_onesided(DOCK_OP_SEND, &w->a, &sge, 0, 8, w->a.mr, 0);
    struct dock_wc wc;

    wr.id = id;
    assert_int_equal(end_recv(&w->b, id, w->b.mem, 8), 0);
    assert_int_equal(end_post(&w->a, &wr), 0);
    for (unsigned i = 0; !end_poll(w->a.scq, &wc); i++) {
        assert_true(i < 10000);
        test_nap_us(100);
    }
    assert_int_equal(wc.status, status);
}

static unsigned events_of(struct world *w)
{
    unsigned n = 0;
    void *user;

    dont_block(dock_chan_fd(w->chan));
    while (dock_chan_get(w->chan, &user) == 0)
        n++;
    assert_false(readable(dock_chan_fd(w->chan)));
    dock_cq_ack(w->b.rcq, n);
    return n;
}

static void two_that_fire_before_the_engine_looks_are_two(void **state)
{
    struct dock_wc wc;
    struct world w;

    (void)state;
    open_world(&w, 0);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(dock_cq_arm(w.b.rcq, false, false), 0);
        send_one(&w, i, DOCK_OK);
        assert_true(end_poll(w.b.rcq, &wc));
    }
    dock_engine_step(w.far);
    assert_int_equal(events_of(&w), 2);
    dock_set32(&w.b.rcq->rec->attention, 1u << 31); // a peer's word: no more than were armed for
    dock_publish32(&w.far->port->attention, 1);
    dock_engine_step(w.far);
    assert_int_equal(events_of(&w), 0);
    close_world(&w);
}

static void an_overrun_is_no_completion(void **state)
{
    struct dock_events *events;
    struct dock_event e;
    struct world w;

    (void)state;
    open_world(&w, 2);
    assert_int_equal(dock_events_open(w.far, &events), 0);
    dock_cq_set_events(w.b.rcq, events);
    for (unsigned i = 0; i < 3; i++)
        send_one(&w, i, i < 2 ? DOCK_OK : DOCK_ST_REM_OP);
    dock_engine_step(w.far);
    assert_int_equal(events_of(&w), 0);
    dont_block(dock_events_fd(events));
    assert_int_equal(dock_events_get(events, &e), 0);
    assert_int_equal(e.kind, DOCK_EVENT_CQ_ERR);
    dock_event_ack(&e);
    assert_int_equal(dock_events_get(events, &e), -EAGAIN);
    dock_cq_set_events(w.b.rcq, NULL);
    dock_events_close(events);
    close_world(&w);
}

static void events_of_a_destroyed_cq_leave_the_descriptor(void **state)
{
    struct dock_wc wc;
    struct world w;

    (void)state;
    open_world(&w, 0);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(dock_cq_arm(w.b.rcq, false, false), 0);
        send_one(&w, i, DOCK_OK);
        assert_true(end_poll(w.b.rcq, &wc));
        dock_engine_step(w.far);
    }
    assert_true(readable(dock_chan_fd(w.chan)));
    end_close(&w.b);
    w.b.qp = NULL;
    assert_false(readable(dock_chan_fd(w.chan)));
    close_world(&w);
}

struct reader {
    struct dock_events *events;
    uint32_t wanted;
    dock_a32 got, wrong;
    int live; // whose events are not dropped
};

static void *read_events(void *arg)
{
    struct reader *r = arg;
    struct dock_event e;

    while (dock_peek32(&r->got) < r->wanted) {
        if (dock_events_get(r->events, &e) || e.user == NULL)
            dock_set32(&r->wrong, 1);
        else if (e.user == &r->live)
            atomic_fetch_add(&r->got, 1);
    }
    return NULL;
}

// Events are added and dropped while somebody blocks on the descriptor: each one that is not dropped is got.
static void readers_swallow_what_is_dropped_under_them(void **state)
{
    struct dock_event dying = {.kind = DOCK_EVENT_PORT_ACTIVE, .object = &dying, .user = &dying};
    struct dock_event lasting = {.kind = DOCK_EVENT_PORT_ACTIVE};
    struct reader r = {.wanted = 2000};
    struct dock_dev *dev;
    pthread_t thread;
    dock_a32 got = 0;

    (void)state;
    lasting.user = &r.live;
    assert_int_equal(dock_dev_open(NULL, &dev), 0);
    assert_int_equal(dock_events_open(dev, &r.events), 0);
    assert_int_equal(pthread_create(&thread, NULL, read_events, &r), 0);
    for (unsigned i = 0; i < r.wanted; i++) {
        dock_event_raise(dev, r.events, &dying, NULL);
        if (i % 3 == 0)
            dock_event_raise(dev, r.events, &dying, NULL);
        dock_event_raise(dev, r.events, &lasting, NULL);
        dock_events_forget(r.events, &dying, &got);
    }
    pthread_join(thread, NULL);
    assert_int_equal(dock_peek32(&r.wrong), 0);
    assert_false(readable(dock_events_fd(r.events)));
    dont_block(dock_events_fd(r.events));
    struct dock_event e;
    assert_int_equal(dock_events_get(r.events, &e), -EAGAIN);
    dock_events_close(r.events);
    assert_int_equal(dock_dev_close(dev), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_that_fire_before_the_engine_looks_are_two),
        cmocka_unit_test(an_overrun_is_no_completion),
        cmocka_unit_test(events_of_a_destroyed_cq_leave_the_descriptor),
        cmocka_unit_test(readers_swallow_what_is_dropped_under_them),
    };

    return cmocka_run_group_tests_name("as many events as reasons", tests, NULL, NULL);
}
