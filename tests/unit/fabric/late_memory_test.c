// SPDX-License-Identifier: MIT
// Memory that is taken away while a fabric's own threads copy from it or into it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <time.h>

#include "base/seed.h"
#include "device/internal.h"
#include "lib/late.h"
#include "lib/pair.h"

enum { BIG = 4 << 20, ROUNDS = 24 };

struct world {
    struct dock_dev *dev;
    struct end a, b;
    char *mem; // BIG bytes, registered for one request at a time
    uint64_t seed;
};

static dock_a32 effects; // requests that had their effect; the result of a READ is written next

static void count_effects(const struct dock_xfer *x, uint32_t nth, enum late_phase phase)
{
    (void)x;
    (void)nth;
    if (phase == LATE_EFFECT)
        atomic_fetch_add_explicit(&effects, 1, memory_order_release); // pairs with one_round
}

static void open_world(struct world *w)
{
    struct dock_config cfg = {.fabric = &late_fabric, .no_engine_thread = true};
    struct end_opts o = {.mem = BIG};

    w->seed = dock_seed();
    late_open(w->seed, 0);
    late_watch(count_effects);
    assert_int_equal(dock_dev_open(&cfg, &w->dev), 0);
    end_open(&w->a, w->dev, &o);
    end_open(&w->b, w->dev, &o);
    assert_int_equal(dock_mem_alloc(w->dev, BIG, (void **)&w->mem), 0);
    end_connect(&w->b, dock_qp_number(w->a.qp), NULL);
    late_threads_start(2);
}

static void close_world(struct world *w)
{
    dock_mem_free(w->dev, w->mem, BIG);
    end_close(&w->a);
    end_close(&w->b);
    late_threads_stop();
    late_watch(NULL);
    assert_int_equal(dock_dev_close(w->dev), 0);
    late_close();
}

static void expect_untouched(const struct world *w, unsigned round)
{
    for (unsigned i = 0; i < BIG; i += 64)
        if (w->mem[i] != 3 || w->b.mem[i] == 3) {
            print_error("round %u: byte %u of the region is %d (3 was put there after deregistration), of "
                        "the target %d; "
                        "seed %#llx: DRYDOCK_SEED repeats it\n",
                        round, i, w->mem[i], w->b.mem[i], (unsigned long long)w->seed);
            fail();
        }
}

// The region goes at a random instant; what is in its memory from then on is the program's.
static void one_round(struct world *w, uint8_t op, unsigned round)
{
    struct timespec t = {.tv_nsec = (long)(dock_decide(w->seed, round, 0) & 0x3ffff)};
    struct dock_qp_mod reset = {.mask = DOCK_MOD_STATE, .state = DOCK_RESET};
    uint32_t before = dock_acquire32(&effects);
    struct dock_mr *mr;
    struct dock_wc wc;

    assert_int_equal(dock_mr_register(w->dev, w->a.pd, (uintptr_t)w->mem, BIG, (uintptr_t)w->mem,
                                      DOCK_ACCESS_LOCAL_WRITE, &mr),
                     0);
    memset(w->mem, 1, BIG);
    memset(w->b.mem, 2, BIG);
    struct dock_sge sge = {.addr = (uintptr_t)w->mem, .len = BIG, .key = mr->lkey};
    struct dock_wr wr = {.op = op,
                         .nsge = 1,
                         .sge = &sge,
                         .flags = DOCK_F_COMPLETE,
                         .rkey = w->b.mr->rkey,
                         .raddr = (uintptr_t)w->b.mem};
    end_connect(&w->a, dock_qp_number(w->b.qp), NULL);
    assert_int_equal(end_post(&w->a, &wr), 0);
    while (op == DOCK_OP_READ && dock_acquire32(&effects) == before)
        ;
    nanosleep(&t, NULL);
    assert_int_equal(dock_mr_deregister(mr), 0);
    for (unsigned at = BIG; at;
         at -= 4096) // from behind: a copy that is still under way comes from the front
        memset(w->mem + at - 4096, 3, 4096);
    assert_true(end_wait(w->a.scq, &wc, 10000));
    assert_true(wc.status == DOCK_OK || wc.status == DOCK_ST_LOC_PROT);
    expect_untouched(w, round);
    assert_int_equal(dock_qp_modify(w->a.qp, &reset), 0);
}

static void rounds_of(uint8_t op)
{
    struct world w;

    open_world(&w);
    for (unsigned round = 0; round < ROUNDS; round++)
        one_round(&w, op, round);
    close_world(&w);
}

static void no_source_is_read_after_deregistration(void **state)
{
    (void)state;
    rounds_of(DOCK_OP_WRITE);
}

static void no_result_is_written_after_deregistration(void **state)
{
    (void)state;
    rounds_of(DOCK_OP_READ);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_source_is_read_after_deregistration),
        cmocka_unit_test(no_result_is_written_after_deregistration),
    };

    return cmocka_run_group_tests_name("memory taken away under a late fabric", tests, NULL, NULL);
}
