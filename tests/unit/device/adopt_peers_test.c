// SPDX-License-Identifier: MIT
// timeout: 120
// Memory moves, in and out, beside a peer that reaches the same pages through the kernel, by a region that
// holds no memory (on demand): no store of the peer is lost.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "device/internal.h"
#include "lib/duo.h"
#include "lib/fork.h"

#define PAGE 4096u
#define PAGES 64u
#define RIGHTS (DOCK_ACCESS_LOCAL_WRITE | DOCK_ACCESS_REMOTE_READ | DOCK_ACCESS_REMOTE_WRITE)

// The far process: its memory is registered and deregistered by a thread until it is told to end.
static struct {
    pthread_t thread;
    struct dock_dev *dev;
    char *mem;
    uint32_t pd, changes;
    struct dock_mr *loose;
    dock_a32 end;
    dock_a64 adopted;
} far;

struct io_far {
    uint64_t addr, adopted;
    uint32_t rkey, changes;
    int err;
};

static int move_once(void)
{
    struct dock_mr *mr;
    int err =
        dock_mr_register(far.dev, far.pd, (uintptr_t)far.mem, PAGES * PAGE, (uintptr_t)far.mem, RIGHTS, &mr);

    if (err)
        return err;
    atomic_fetch_add(&far.adopted, dock_peek64(&far.dev->port->adopt.bytes));
    test_nap_us(200);
    return dock_mr_deregister(mr);
}

static void *moves(void *arg)
{
    (void)arg;
    while (!dock_peek32(&far.end) && !move_once()) {
        far.changes++;
        test_nap_us(200);
    }
    return NULL;
}

static void begin(struct side *s, void *arg)
{
    struct io_far *io = arg;

    far.dev = s->e.dev;
    far.pd = s->e.pd;
    far.mem = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    io->err = far.mem == MAP_FAILED
                  ? -ENOMEM
                  : dock_mr_register(far.dev, far.pd, (uintptr_t)far.mem, PAGES * PAGE, (uintptr_t)far.mem,
                                     RIGHTS | DOCK_ACCESS_ON_DEMAND, &far.loose);
    if (io->err)
        return;
    io->addr = (uintptr_t)far.mem;
    io->rkey = far.loose->rkey;
    io->err = -pthread_create(&far.thread, NULL, moves, NULL);
}

static void finish(struct side *s, void *arg)
{
    struct io_far *io = arg;

    (void)s;
    dock_set32(&far.end, 1);
    pthread_join(far.thread, NULL);
    io->adopted = dock_peek64(&far.adopted);
    io->changes = far.changes;
    io->err = dock_mr_deregister(far.loose);
}

static void transfer(struct duo *d, uint8_t op, const struct io_far *far_io, uint32_t page)
{
    struct dock_mr mr = {.rkey = far_io->rkey};
    struct dock_sge sge;
    struct dock_wr wr = wr_onesided(op, &d->near.e, &sge, op == DOCK_OP_READ ? 64 : 0, 8, &mr,
                                    far_io->addr + (uint64_t)page * PAGE);
    struct dock_wc wc;

    wr.flags = DOCK_F_COMPLETE;
    assert_int_equal(end_post(&d->near.e, &wr), 0);
    assert_true(end_wait(d->near.e.scq, &wc, 20000 * slow_down()));
    assert_int_equal(wc.status, DOCK_OK);
}

static void no_store_of_a_peer_is_lost(void **state)
{
    struct duo_opts o = {.adopted = true};
    struct io_far io = {0};
    struct duo d;
    uint64_t shadow[PAGES] = {0}, lost = 0, n = 0, end;

    (void)state;
    if (!place_possible(HOST_PLAIN))
        skip();
    duo_open(&d, HOST_PLAIN, &o);
    duo_far(&d, begin, &io, sizeof io);
    assert_int_equal(io.err, 0);
    end = dock_now_ns() + (test_long() ? 20000000000ull : 1000000000ull);
    while (dock_now_ns() < end || n < PAGES) {
        uint32_t page = (uint32_t)(++n % PAGES);
        transfer(&d, DOCK_OP_READ, &io, page);
        lost += *(uint64_t *)(void *)(d.near.e.mem + 64) != shadow[page];
        *(uint64_t *)(void *)d.near.e.mem = shadow[page] = n;
        transfer(&d, DOCK_OP_WRITE, &io, page);
    }
    duo_far(&d, finish, &io, sizeof io);
    print_message("%llu stores beside %u moves there and back, %llu bytes adopted in all\n",
                  (unsigned long long)n, io.changes, (unsigned long long)io.adopted);
    assert_int_equal(io.err, 0);
    assert_int_equal(lost, 0);
    duo_close(&d);
    if (!io.adopted)
        skip();
}

#define WORDS 3u // of one page: adopted; of another: left alone

struct io_words {
    uint64_t addr, turns, value[2];
    uint32_t rkey, adopted;
    int err;
};

// One page is adopted by a region, the next one is not, and a region on demand names both.
static void register_both(struct side *s, void *arg)
{
    uint32_t rights = RIGHTS | DOCK_ACCESS_REMOTE_ATOMIC;
    struct io_words *io = arg;

    far.dev = s->e.dev;
    far.mem = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(far.mem, 0, 2 * PAGE);
    io->addr = (uintptr_t)far.mem;
    io->err = dock_mr_register(far.dev, s->e.pd, io->addr, PAGE, io->addr, rights, &s->extra);
    if (!io->err)
        io->err = dock_mr_register(far.dev, s->e.pd, io->addr, 2 * PAGE, io->addr,
                                   rights | DOCK_ACCESS_ON_DEMAND, &far.loose);
    io->adopted = io->err ? 0 : s->extra->hold.pieces;
    io->rkey = io->err ? 0 : far.loose->rkey;
}

// How often the word was taken that atomics on plain memory take there, and what they have left.
static void look_at_both(struct side *s, void *arg)
{
    struct io_words *io = arg;

    io->turns = dock_peek64(dock_idtable_turns(s->e.dev->waiter.ids, (uintptr_t)far.mem));
    memcpy(&io->value[0], far.mem, 8);
    memcpy(&io->value[1], far.mem + PAGE, 8);
}

static void deregister_both(struct side *s, void *arg)
{
    struct io_words *io = arg;

    io->err = dock_mr_deregister(far.loose);
    if (!io->err)
        io->err = dock_mr_deregister(s->extra);
    s->extra = NULL;
    look_at_both(s, arg);
}

static void add_one(struct duo *d, const struct io_words *io, uint32_t page)
{
    struct dock_mr mr = {.rkey = io->rkey};
    struct dock_sge sge;
    struct dock_wr wr =
        wr_onesided(DOCK_OP_FADD, &d->near.e, &sge, 0, 8, &mr, io->addr + (uint64_t)page * PAGE);
    struct dock_wc wc;

    wr.flags = DOCK_F_COMPLETE;
    wr.operand = 1;
    assert_int_equal(end_post(&d->near.e, &wr), 0);
    assert_true(end_wait(d->near.e.scq, &wc, 5000 * slow_down()));
    assert_int_equal(wc.status, DOCK_OK);
}

// One word is always reached the same way.
static void an_atomic_on_demand_is_made_where_the_word_is_adopted(void **state)
{
    struct duo_opts o = {.adopted = true};
    struct io_words io = {0};
    struct duo d = {0};
    uint64_t turns;

    (void)state;
    if (!place_possible(HOST_PLAIN))
        skip();
    duo_open(&d, HOST_PLAIN, &o);
    duo_far(&d, register_both, &io, sizeof io);
    assert_int_equal(io.err, 0);
    duo_far(&d, look_at_both, &io, sizeof io);
    turns = io.turns;
    if (io.adopted) {
        for (unsigned i = 0; i < WORDS; i++)
            add_one(&d, &io, 0);
        duo_far(&d, look_at_both, &io, sizeof io);
        assert_int_equal(io.value[0], WORDS);
        assert_int_equal(io.turns, turns); // as by the other region's key
    }
    add_one(&d, &io, 1);
    duo_far(&d, look_at_both, &io, sizeof io);
    assert_int_equal(io.value[1], 1);
    assert_int_not_equal(io.turns, turns);
    uint64_t before = io.value[0];
    duo_far(&d, deregister_both, &io, sizeof io);
    assert_int_equal(io.err, 0);
    assert_int_equal(io.value[0], before); // it came back with what was added
    duo_close(&d);
}

int main(void)
{
    if (getenv("DRYDOCK_EMULATED")) // an emulator has mappings and threads of its own, which do not stand
        return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_store_of_a_peer_is_lost),
        cmocka_unit_test(an_atomic_on_demand_is_made_where_the_word_is_adopted),
    };

    return cmocka_run_group_tests_name("adoption beside the kernel's way", tests, NULL, NULL);
}
