// SPDX-License-Identifier: MIT
// A sender is stopped while it holds the tail of its target's CQ. The target, which needs it, gives the
// sender up after its patience and goes on; the sender, when it continues, finds its device fatal: its
// program is told, its requests are flushed, and the target's CQ is as the target left it.
#include <errno.h>
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
#include "lib/pair.h"

#define PATIENCE_MS 200
#define RECEIVES 4

static int to_child[2], to_parent[2];
static dock_a32 stop_at_next;

static void stop_in_the_cq(enum dock_moment at, uint32_t object, uint64_t sequence)
{
    (void)object;
    (void)sequence;
    if (at == DOCK_AT_CQE_LOCK && dock_swap32(&stop_at_next, 0))
        raise(SIGSTOP);
}

static void need(bool ok, int code)
{
    if (!ok)
        _exit(code);
}

// The sender. Exit status 0, or which step went wrong.
static void sender(void)
{
    struct dock_dev *dev;
    struct dock_events *events;
    struct dock_event event;
    struct end_opts o = {0};
    struct end e;
    struct dock_sge sge;
    struct dock_wc wc;
    uint32_t number, peer;

    dock_probe_hook = stop_in_the_cq;
    need(dock_dev_open(NULL, &dev) == 0, 10);
    need(dock_events_open(dev, &events) == 0, 11);
    end_open(&e, dev, &o);
    number = dock_qp_number(e.qp);
    need(write(to_parent[1], &number, 4) == 4 && read(to_child[0], &peer, 4) == 4, 12);
    end_connect(&e, peer, NULL);
    need(write(to_parent[1], &number, 4) == 4 && read(to_child[0], &peer, 4) == 4, 13);
    struct dock_wr wr = wr_onesided(DOCK_OP_SEND, &e, &sge, 0, 8, e.mr, 0);
    dock_swap32(&stop_at_next, 1);
    end_post(&e, &wr); // stops in here, at the target's CQ
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
    _exit(0);
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

static void the_target_goes_on_and_the_sender_is_told(void **state)
{
    struct dock_config cfg = {.stopped_ms = PATIENCE_MS};
    struct dock_qp_mod err = {.mask = DOCK_MOD_STATE, .state = DOCK_ERR};
    struct end_opts o = {0};
    struct dock_dev *dev;
    struct end e;
    uint32_t number, peer;
    unsigned flushed = 0;
    int status;
    pid_t child;

    (void)state;
    assert_int_equal(pipe(to_child), 0);
    assert_int_equal(pipe(to_parent), 0);
    child = fork();
    if (child == 0)
        sender();
    assert_int_equal(dock_dev_open(&cfg, &dev), 0);
    end_open(&e, dev, &o);
    for (unsigned i = 0; i < RECEIVES; i++)
        assert_int_equal(end_recv(&e, i, e.mem, 64), 0);
    number = dock_qp_number(e.qp);
    assert_int_equal(read(to_parent[0], &peer, 4), 4);
    end_connect(&e, peer, NULL);
    assert_int_equal(write(to_child[1], &number, 4), 4);
    assert_int_equal(read(to_parent[0], &peer, 4), 4);
    assert_int_equal(write(to_child[1], &number, 4), 4);

    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    assert_true(WIFSTOPPED(status));
    assert_int_equal(dock_qp_modify(e.qp, &err), 0); // flushing needs the tail that the stopped one holds
    assert_int_equal(poll_all(&e, &flushed), RECEIVES);
    assert_int_equal(flushed, RECEIVES);

    kill(child, SIGCONT);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(poll_all(&e, &flushed), 0); // what the continued one would have published is void
    end_close(&e);
    assert_int_equal(dock_dev_close(dev), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_target_goes_on_and_the_sender_is_told)};

    return cmocka_run_group_tests_name("a peer given up while it was stopped", tests, NULL, NULL);
}
