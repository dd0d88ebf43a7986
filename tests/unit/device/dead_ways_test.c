// SPDX-License-Identifier: MIT
// A queue without a connection that has reached many processes: the arenas of those that died are unmapped,
// though the queue goes on and is never reset.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "device/internal.h"
#include "lib/fork.h"
#include "lib/pair.h"

#define PEERS 3u
#define LEN 64u
#define QKEY 0x1234u // of end_connect

static struct board {
    enum dock_service service;
    dock_a32 number[PEERS];
    dock_a32 got[PEERS];
} * board;

static uint32_t await(dock_a32 *word)
{
    uint32_t value;

    while (!(value = dock_acquire32(word)))
        test_nap_us(200);
    return value;
}

static int target(void *arg)
{
    dock_a32 *number = arg, *got = board->got + (number - board->number);
    struct end_opts o = {.service = board->service};
    struct dock_dev *dev;
    struct dock_wc wc;
    struct end e;

    if (dock_dev_open(NULL, &dev))
        return 2;
    end_open(&e, dev, &o);
    end_connect(&e, 0, NULL);
    if (end_recv(&e, 0, e.mem, 4096))
        return 3;
    dock_publish32(number, dock_qp_number(e.qp));
    for (;;) {
        if (end_poll(e.rcq, &wc))
            dock_publish32(got, wc.status ? 2 : 1);
        test_nap_us(500);
    }
}

// How many arenas this process has mapped, its own included.
static unsigned arenas_mapped(void)
{
    unsigned long inode, seen[16];
    unsigned n = 0;
    char line[512];
    FILE *f = fopen("/proc/self/maps", "re");

    while (f && fgets(line, sizeof line, f)) {
        unsigned i = 0;
        if (!strstr(line, "drydock-arena") || sscanf(line, "%*s %*s %*s %*s %lu", &inode) != 1)
            continue;
        while (i < n && seen[i] != inode)
            i++;
        if (i == n && n < 16)
            seen[n++] = inode;
    }
    if (f)
        fclose(f);
    return n;
}

static uint32_t send_to(struct end *e, uint32_t number)
{
    struct dock_mr key = {.rkey = board->service == DOCK_UD ? QKEY : 0};
    struct dock_wc wc = {.status = 0xfff};
    struct dock_sge sge;
    struct dock_wr wr = wr_onesided(DOCK_OP_SEND, e, &sge, 0, LEN, &key, 0);

    wr_aim(&wr, number);
    assert_int_equal(end_post(e, &wr), 0);
    assert_true(end_wait(e->scq, &wc, 10000 * test_slow()));
    return wc.status;
}

static void expect_mapped(unsigned want)
{
    uint64_t until = dock_now_ns() + 10000000000ull * test_slow();

    while (arenas_mapped() != want && dock_now_ns() < until)
        test_nap_us(2000);
    assert_int_equal(arenas_mapped(), want);
}

static void check(enum dock_service service)
{
    struct end_opts o = {.service = service};
    struct dock_dev *dev;
    pid_t pid[PEERS];
    struct end e;

    if (getenv("DRYDOCK_EMULATED"))
        skip();
    board = test_shared(sizeof *board);
    board->service = service;
    for (unsigned i = 0; i < PEERS; i++)
        pid[i] = test_fork(target, &board->number[i]);
    assert_int_equal(dock_dev_open(NULL, &dev), 0);
    end_open(&e, dev, &o);
    end_connect(&e, 0, NULL);
    for (unsigned i = 0; i < PEERS; i++) {
        assert_int_equal(send_to(&e, await(&board->number[i])), DOCK_OK);
        assert_int_equal(await(&board->got[i]), 1);
    }
    expect_mapped(1 + PEERS);
    for (unsigned i = 0; i < PEERS; i++) {
        test_kill(pid[i]);
        expect_mapped(PEERS - i);
        assert_int_equal(dock_qp_state(e.qp), DOCK_RTS);
    }
    // Who is gone is sent to as before: RM is told, UD is not.
    assert_int_equal(send_to(&e, board->number[0]), service == DOCK_UD ? DOCK_OK : DOCK_ST_RETRY_EXC);
    end_close(&e);
    assert_int_equal(dock_dev_close(dev), 0);
}

static void arenas_of_dead_targets_of_datagrams_are_unmapped(void **state)
{
    (void)state;
    check(DOCK_UD);
}

static void arenas_of_dead_targets_of_reliable_messages_are_unmapped(void **state)
{
    (void)state;
    check(DOCK_RM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arenas_of_dead_targets_of_datagrams_are_unmapped),
        cmocka_unit_test(arenas_of_dead_targets_of_reliable_messages_are_unmapped),
    };

    return cmocka_run_group_tests_name("ways to the dead", tests, NULL, NULL);
}
