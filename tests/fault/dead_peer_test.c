// SPDX-License-Identifier: MIT
// A peer that is dead is not waited for: a queue whose timeout is 4.3 s and which may try seven times more
// says within moments of the peer's end that nobody answers; neither for ever waits who waits for its
// receiver.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "device/internal.h"
#include "lib/duo.h"
#include "lib/fork.h"

#define BOUND_MS 4000u // waiting once is longer, and the retries take 34 s

static const struct dock_qp_mod patient = {.timeout = 20,
                                           .retry = 7,
                                           .rnr_retry = 7,
                                           .rnr_timer = 12,
                                           .rd_atomic = 4,
                                           .dest_rd_atomic = 4,
                                           .access = DOCK_ACCESS_REMOTE_WRITE};
static const struct duo_opts opts = {.near_knobs = &patient, .far_knobs = &patient};

static void expect_nobody(struct duo *d, uint64_t since)
{
    uint64_t bound = BOUND_MS * (uint64_t)slow_down();
    struct dock_wc wc;

    assert_true(end_wait(d->near.e.scq, &wc, (unsigned)bound));
    assert_int_equal(wc.status, DOCK_ST_RETRY_EXC);
    assert_in_range((dock_now_ns() - since) / 1000000, 0, bound);
}

static void leave(struct duo *d)
{
    close(d->sock);
    end_close(&d->near.e);
    dock_events_close(d->near.events);
    assert_int_equal(dock_dev_close(d->dev), 0);
}

static void post(struct duo *d, uint8_t op)
{
    static struct dock_sge sge;
    struct dock_wr wr = wr_onesided(op, &d->near.e, &sge, 0, 64, &d->mr, d->mem);

    assert_int_equal(end_post(&d->near.e, &wr), 0);
}

static void what_is_posted_to_a_dead_peer_fails_at_once(void **state)
{
    struct duo d = {0};
    struct dock_wc wc;

    (void)state;
    duo_open(&d, HOST_ARENA, &opts);
    post(&d, DOCK_OP_WRITE);
    assert_true(end_wait(d.near.e.scq, &wc, BOUND_MS * slow_down()));
    assert_int_equal(wc.status, DOCK_OK);
    test_kill(d.pid);
    uint64_t since = dock_now_ns();
    while (dock_qp_state(d.near.e.qp) == DOCK_RTS && !dock_peek32(&d.near.e.qp->conn.peer->dead) &&
           dock_now_ns() - since < BOUND_MS * (uint64_t)slow_down() * 1000000)
        test_nap_us(500);
    post(&d, DOCK_OP_WRITE);
    expect_nobody(&d, since);
    leave(&d);
}

static void who_waits_for_a_receiver_that_dies_waits_no_longer(void **state)
{
    struct duo d = {0};

    (void)state;
    duo_open(&d, HOST_ARENA, &opts);
    post(&d, DOCK_OP_SEND); // there is no receive, and it may try for ever
    test_nap_us(20000);
    test_kill(d.pid);
    expect_nobody(&d, dock_now_ns());
    leave(&d);
}

static dock_a32 *go; // of both processes: who asked has the answer

static void *become_sleep(void *arg)
{
    (void)arg;
    while (!dock_peek32(go))
        test_nap_us(100);
    execl("/bin/sleep", "sleep", "600", (char *)NULL);
    _exit(1);
}

static void exec_soon(struct side *s, void *io)
{
    pthread_t t;

    (void)s;
    (void)io;
    pthread_create(&t, NULL, become_sleep, NULL);
}

static void exec_in_vain(struct side *s, void *io)
{
    (void)s;
    *(int *)io = execl("/nowhere/to/be/found", "nothing", (char *)NULL);
}

static void write_it(struct duo *d, uint32_t status)
{
    struct dock_wc wc;

    post(d, DOCK_OP_WRITE);
    assert_true(end_wait(d->near.e.scq, &wc, BOUND_MS * slow_down()));
    assert_int_equal(wc.status, status);
}

static bool runs_sleep(pid_t pid)
{
    char path[32], name[8] = "";

    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    FILE *f = fopen(path, "re");
    bool read = f && fgets(name, sizeof name, f);
    if (f)
        fclose(f);
    return read && !strncmp(name, "sleep", 5);
}

// Its number and its pidfd live on. The far end is only written to, and its memory is mapped here, or reached
// through the kernel.
static void exec_is_a_death(enum place place)
{
    struct duo d = {0};
    int failed;
    char none;

    if (!place_possible(place))
        skip();
    go = test_shared(sizeof *go);
    duo_open(&d, place, &opts);
    write_it(&d, DOCK_OK);
    duo_far(&d, exec_in_vain, &failed, sizeof failed);
    assert_int_equal(failed, -1);
    test_nap_us(1500000); // longer than an engine sleeps
    write_it(&d, DOCK_OK);
    duo_far(&d, exec_soon, NULL, 0);
    dock_set32(go, 1);
    assert_int_equal(recv(d.sock, &none, 1, 0), 0); // the other end of this went with the exec
    assert_true(runs_sleep(d.pid));
    uint64_t since = dock_now_ns();
    if (place == HOST_PLAIN)
        write_it(&d, DOCK_ST_RETRY_EXC); // not one byte more
    const struct dock_peer *peer = d.near.e.qp->conn.peer;
    while (!dock_peek32(&peer->dead) && dock_now_ns() - since < BOUND_MS * (uint64_t)slow_down() * 1000000)
        test_nap_us(500);
    assert_true(dock_peek32(&peer->dead));
    if (place == HOST_ARENA)
        write_it(&d, DOCK_ST_RETRY_EXC);
    test_kill(d.pid);
    leave(&d);
}

static void who_runs_another_program_is_dead_to_who_has_its_memory(void **state)
{
    (void)state;
    exec_is_a_death(HOST_ARENA);
}

static void who_runs_another_program_is_not_written_to(void **state)
{
    (void)state;
    exec_is_a_death(HOST_PLAIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_posted_to_a_dead_peer_fails_at_once),
        cmocka_unit_test(who_waits_for_a_receiver_that_dies_waits_no_longer),
        cmocka_unit_test(who_runs_another_program_is_dead_to_who_has_its_memory),
        cmocka_unit_test(who_runs_another_program_is_not_written_to),
    };

    return cmocka_run_group_tests_name("a dead peer is not waited for", tests, NULL, NULL);
}
