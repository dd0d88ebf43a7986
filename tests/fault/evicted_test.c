// SPDX-License-Identifier: MIT
// A sender is stopped in the middle of its work at the target. The target, which waits for it, gives the
// sender up after its patience and goes on; the sender, when it continues, finds its device fatal: its
// program is told, its requests are flushed, and the target's memory is as the target left it. A second
// sender that only waits for the first is not given up with it.
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/probe.h"
#include "device/internal.h"
#include "lib/fork.h"
#include "lib/pair.h"

#define PATIENCE_MS 200
#define RECEIVES 4

static dock_a32 stop_at_next;
static enum dock_moment stop_at;
static int with = SIGSTOP;

static void stop_there(enum dock_moment at, uint32_t object, uint64_t sequence)
{
    (void)object;
    (void)sequence;
    if (at == stop_at && dock_swap32(&stop_at_next, 0))
        raise(with);
}

// A sender in a process of its own, and the two pipes to it.
struct child {
    pid_t pid;
    int in[2], out[2]; // as the child sees them
};

static void need(bool ok, int code)
{
    if (!ok)
        _exit(code);
}

static void open_sender(const struct child *c, const struct dock_config *cfg, struct dock_dev **dev,
                        struct end *e)
{
    struct end_opts o = {0};
    uint32_t number, peer;

    dock_probe_hook = stop_there;
    need(dock_dev_open(cfg, dev) == 0, 10);
    end_open(e, *dev, &o);
    number = dock_qp_number(e->qp);
    need(write(c->out[1], &number, 4) == 4 && read(c->in[0], &peer, 4) == 4, 12);
    end_connect(e, peer, NULL);
    need(write(c->out[1], &number, 4) == 4 && read(c->in[0], &peer, 4) == 4, 13);
}

// The sender that is stopped. Exit status 0, or which step went wrong.
static int stopped_sender(void *arg)
{
    const struct child *c = arg;
    struct dock_dev *dev;
    struct dock_events *events;
    struct dock_event event;
    struct end e;
    struct dock_sge sge;
    struct dock_wc wc;

    open_sender(c, NULL, &dev, &e);
    need(dock_events_open(dev, &events) == 0, 11);
    struct dock_wr wr = wr_onesided(DOCK_OP_SEND, &e, &sge, 0, 8, e.mr, 0);
    dock_swap32(&stop_at_next, 1);
    end_post(&e, &wr); // stops in here
    need(dock_events_get(events, &event) == 0 && event.kind == DOCK_EVENT_DEVICE_FATAL, 14);
    end_post(&e, &wr);
    do // whatever the first one came to, the second is flushed
        need(end_wait(e.scq, &wc, 5000), 15);
    while (wc.status != DOCK_ST_FLUSH);
    need(dock_qp_state(e.qp) == DOCK_ERR, 16);
    struct dock_qp_mod m = {.mask = DOCK_MOD_STATE, .state = DOCK_RESET};
    need(dock_qp_modify(e.qp, &m) == 0, 17);
    m.state = DOCK_INIT; // and nothing of a dead device comes to life again
    need(dock_qp_modify(e.qp, &m) == -EIO, 18);
    return 0;
}

// The target's receives, by status.
static unsigned poll_all(struct end *e, unsigned *flushed)
{
    struct dock_wc wc;
    unsigned n = 0;

    for (; end_poll(e->rcq, &wc); n++)
        *flushed += wc.status == DOCK_ST_FLUSH;
    return n;
}

// The sender that waits for the one that is stopped, and gives it up.
static int waiting_sender(void *arg)
{
    const struct child *c = arg;
    struct dock_config cfg = {.stopped_ms = 2 * PATIENCE_MS};
    struct dock_dev *dev;
    struct end e;
    struct dock_sge sge;
    struct dock_wc wc;

    open_sender(c, &cfg, &dev, &e);
    struct dock_wr wr = wr_onesided(DOCK_OP_SEND, &e, &sge, 0, 8, e.mr, 0);
    end_post(&e, &wr);
    need(end_wait(e.scq, &wc, 10000), 20);
    need(wc.status == DOCK_OK, 21);
    need(dock_dev_usable(dev) == 0, 22);
    return 0;
}

static void start(struct child *c, int (*body)(void *child))
{
    assert_int_equal(pipe(c->in), 0);
    assert_int_equal(pipe(c->out), 0);
    c->pid = test_fork(body, c);
}

// Both ends are connected; the sender waits for one word more.
static void meet(const struct child *c, struct end *e)
{
    uint32_t number = dock_qp_number(e->qp), peer;

    assert_int_equal(read(c->out[0], &peer, 4), 4);
    end_connect(e, peer, NULL);
    assert_int_equal(write(c->in[1], &number, 4), 4);
    assert_int_equal(read(c->out[0], &peer, 4), 4);
}

static void let_send(const struct child *c)
{
    uint32_t any = 0;

    assert_int_equal(write(c->in[1], &any, 4), 4);
}

static void await_stop(const struct child *c)
{
    int status;

    assert_int_equal(waitpid(c->pid, &status, WUNTRACED), c->pid);
    assert_true(WIFSTOPPED(status));
}

static void await_success(const struct child *c)
{
    int status;

    assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    for (unsigned i = 0; i < 2; i++) {
        close(c->in[i]);
        close(c->out[i]);
    }
}

static void open_target(struct dock_dev **dev)
{
    struct dock_config cfg = {.stopped_ms = PATIENCE_MS};

    assert_int_equal(dock_dev_open(&cfg, dev), 0);
}

static void the_target_goes_on_and_the_sender_is_told(void **state)
{
    struct dock_qp_mod err = {.mask = DOCK_MOD_STATE, .state = DOCK_ERR};
    struct end_opts o = {0};
    struct dock_dev *dev;
    struct child c;
    struct end e;
    unsigned flushed = 0;

    (void)state;
    stop_at = DOCK_AT_CQE_LOCK;
    start(&c, stopped_sender);
    open_target(&dev);
    end_open(&e, dev, &o);
    for (unsigned i = 0; i < RECEIVES; i++)
        assert_int_equal(end_recv(&e, i, e.mem, 64), 0);
    meet(&c, &e);
    let_send(&c);
    await_stop(&c);
    assert_int_equal(dock_qp_modify(e.qp, &err), 0); // flushing needs the tail that the stopped one holds
    assert_int_equal(poll_all(&e, &flushed), RECEIVES);
    assert_int_equal(flushed, RECEIVES);

    kill(c.pid, SIGCONT);
    await_success(&c);
    assert_int_equal(poll_all(&e, &flushed), 0); // what the continued one would have published is void
    end_close(&e);
    assert_int_equal(dock_dev_close(dev), 0);
}

#define PAGES 600 // more than the target gives back

static void memory_given_back_is_not_used_before_the_sender_has_left(void **state)
{
    struct end_opts o = {0};
    struct dock_dev *dev;
    struct child c;
    struct end e;
    char *page[PAGES];

    (void)state;
    stop_at = DOCK_AT_CQE_LOCK; // it will write its entry into a CQ that is no more
    start(&c, stopped_sender);
    open_target(&dev);
    end_open(&e, dev, &o);
    assert_int_equal(end_recv(&e, 0, e.mem, 64), 0);
    meet(&c, &e);
    let_send(&c);
    await_stop(&c);
    end_close(&e);
    for (unsigned i = 0; i < PAGES; i++)
        assert_int_equal(dock_mem_alloc(dev, 4096, (void **)&page[i]), 0);

    kill(c.pid, SIGCONT);
    await_success(&c);
    for (unsigned i = 0; i < PAGES; i++) {
        for (unsigned at = 0; at < 4096; at++)
            assert_int_equal(page[i][at], 0);
        dock_mem_free(dev, page[i], 4096);
    }
    for (unsigned i = 0; dock_peek32(&dev->arena.holding) && i < 5000; i++)
        test_nap_us(1000); // the engine looks every now and then
    assert_false(dock_peek32(&dev->arena.holding));
    assert_null(dev->arena.held);
    assert_int_equal(dock_dev_close(dev), 0);
}

static void who_waits_for_a_stopped_one_is_not_given_up_with_it(void **state)
{
    struct dock_srq_attr sa = {.max_wr = RECEIVES, .max_sge = 1};
    struct end_opts o = {0};
    struct dock_dev *dev;
    struct child stopped, waiting;
    struct end for_stopped, for_waiting;
    struct dock_mr *mr;

    (void)state;
    stop_at = DOCK_AT_CLAIM; // it holds the consumer index
    start(&waiting, waiting_sender);
    start(&stopped, stopped_sender);
    open_target(&dev);
    assert_int_equal(dock_pd_create(dev, &sa.pd), 0);
    assert_int_equal(dock_srq_create(dev, &sa, &o.srq), 0);
    end_open(&for_waiting, dev, &o);
    end_open(&for_stopped, dev, &o);
    assert_int_equal(dock_mr_register(dev, sa.pd, (uintptr_t)for_waiting.mem, 64, (uintptr_t)for_waiting.mem,
                                      DOCK_ACCESS_LOCAL_WRITE, &mr),
                     0);
    struct dock_sge sge = {.addr = (uintptr_t)for_waiting.mem, .len = 64, .key = mr->lkey};
    dock_recv_begin(o.srq);
    for (unsigned i = 0; i < RECEIVES; i++)
        assert_int_equal(dock_recv_put(o.srq, i, &sge, 1), 0);
    dock_recv_end(o.srq);
    meet(&waiting, &for_waiting); // the first hazard: it is waited for first
    meet(&stopped, &for_stopped);
    let_send(&stopped);
    await_stop(&stopped);
    let_send(&waiting);
    while (!(dock_acquire64(&dev->hazards[0].busy) & 1))
        test_nap_us(1000); // not yet at the stopped one's word
    dock_who innocent = (dock_who)(dock_peek64(&dev->hazards[0].owner) >> 32);
    end_close(&for_stopped); // waits for both
    assert_false(dock_idtable_evicted(&dev->ids_table, innocent));

    await_success(&waiting);
    kill(stopped.pid, SIGCONT);
    await_success(&stopped);
    assert_int_equal(dock_mr_deregister(mr), 0);
    end_close(&for_waiting);
    assert_int_equal(dock_srq_destroy(o.srq), 0);
    assert_int_equal(dock_pd_destroy(dev, sa.pd), 0);
    assert_int_equal(dock_dev_close(dev), 0);
}

static void a_limit_is_told_though_who_passed_it_died_before_saying_so(void **state)
{
    struct dock_srq_attr sa = {.max_wr = RECEIVES, .max_sge = 1, .limit = 2};
    struct dock_events *events;
    struct dock_event event;
    struct end_opts o = {0};
    struct dock_dev *dev;
    struct child c;
    struct end e;
    int status;

    (void)state;
    stop_at = DOCK_AT_TAKEN; // one receive of two is left
    with = SIGKILL;
    start(&c, stopped_sender);
    open_target(&dev);
    assert_int_equal(dock_events_open(dev, &events), 0);
    assert_int_equal(dock_pd_create(dev, &sa.pd), 0);
    assert_int_equal(dock_srq_create(dev, &sa, &o.srq), 0);
    dock_srq_set_events(o.srq, events);
    end_open(&e, dev, &o);
    struct dock_sge sge = {.addr = (uintptr_t)e.mem, .len = 64, .key = e.mr->lkey};
    dock_recv_begin(o.srq);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(dock_recv_put(o.srq, i, &sge, 1), 0);
    dock_recv_end(o.srq);
    meet(&c, &e);
    let_send(&c);
    assert_int_equal(waitpid(c.pid, &status, 0), c.pid);
    assert_true(WIFSIGNALED(status));
    struct pollfd p = {.fd = dock_events_fd(events), .events = POLLIN};
    assert_int_equal(poll(&p, 1, 10000), 1);
    assert_int_equal(dock_events_get(events, &event), 0);
    assert_int_equal(event.kind, DOCK_EVENT_SRQ_LIMIT);
    assert_int_equal(dock_srq_limit(o.srq), 0);
    dock_event_ack(&event);
    end_close(&e);
    assert_int_equal(dock_srq_destroy(o.srq), 0);
    assert_int_equal(dock_pd_destroy(dev, sa.pd), 0);
    dock_events_close(events);
    assert_int_equal(dock_dev_close(dev), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_target_goes_on_and_the_sender_is_told),
        cmocka_unit_test(memory_given_back_is_not_used_before_the_sender_has_left),
        cmocka_unit_test(who_waits_for_a_stopped_one_is_not_given_up_with_it),
        cmocka_unit_test(a_limit_is_told_though_who_passed_it_died_before_saying_so),
    };

    return cmocka_run_group_tests_name("a peer given up while it was stopped", tests, NULL, NULL);
}
