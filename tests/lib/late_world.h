// SPDX-License-Identifier: MIT
// Two ends of one device over the late fabric, stepped by hand. Included by few programs, so the functions
// stand here.
#ifndef TESTS_LIB_LATE_WORLD_H
#define TESTS_LIB_LATE_WORLD_H

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

struct world {
    struct dock_dev *dev;
    struct end a, b;
    uint64_t seed;
};

static inline uint64_t *near_word(struct world *w, unsigned i)
{
    return (uint64_t *)(void *)(w->a.mem + 64 * (size_t)i);
}

static inline uint64_t *far_word(struct world *w, unsigned i)
{
    return (uint64_t *)(void *)(w->b.mem + 64 * (size_t)i);
}

static inline void open_with(struct world *w, uint8_t rd_atomic, uint32_t wr, bool raw)
{
    struct dock_config cfg = {.fabric = &late_fabric, .no_engine_thread = true};
    struct end_opts o = {.wr = wr, .raw = raw};
    struct dock_qp_mod knobs = {.timeout = 14,
                                .retry = 7,
                                .rnr_retry = 7,
                                .rnr_timer = 1,
                                .rd_atomic = rd_atomic,
                                .dest_rd_atomic = 16,
                                .access = DOCK_ACCESS_REMOTE_READ | DOCK_ACCESS_REMOTE_WRITE |
                                          DOCK_ACCESS_REMOTE_ATOMIC};

    w->seed = dock_seed();
    late_open(w->seed, 0);
    assert_int_equal(dock_dev_open(&cfg, &w->dev), 0);
    end_open(&w->a, w->dev, &o);
    end_open(&w->b, w->dev, &o);
    end_connect(&w->b, dock_qp_number(w->a.qp), NULL);
    end_connect(&w->a, dock_qp_number(w->b.qp), &knobs);
}

static inline void open_world(struct world *w)
{
    open_with(w, 16, 64, false);
}

static inline void close_world(struct world *w)
{
    if (w->a.qp)
        late_drain();
    end_close(&w->a);
    end_close(&w->b);
    assert_int_equal(dock_dev_close(w->dev), 0);
    late_close();
}

// Words are numbered on both sides; the id of a WR is its place in the queue.
static inline int post(struct world *w, uint8_t op, unsigned id, uint32_t flags)
{
    struct dock_sge sge;
    struct dock_wr wr = wr_onesided(op, &w->a, &sge, 64 * (size_t)id, 8, w->b.mr, (uintptr_t)far_word(w, id));

    wr.id = id;
    wr.flags = flags;
    wr.operand = 1;
    if (op == DOCK_OP_NOP)
        wr.nsge = 0;
    return end_post(&w->a, &wr);
}

static inline void posted(struct world *w, uint8_t op, unsigned id, uint32_t flags)
{
    assert_int_equal(post(w, op, id, flags), 0);
}

static inline void expect(struct world *w, unsigned id, uint32_t status)
{
    struct dock_wc wc;

    if (!end_poll(w->a.scq, &wc)) {
        print_error("no completion of WR %u; seed %#llx: DRYDOCK_SEED repeats it\n", id,
                    (unsigned long long)w->seed);
        fail();
    }
    assert_int_equal(wc.id, id);
    assert_int_equal(wc.status, status);
}

static inline void expect_none(struct world *w)
{
    struct dock_wc wc;

    assert_false(end_poll(w->a.scq, &wc));
}

static inline void change(struct world *w, enum dock_state to)
{
    struct dock_qp_mod m = {.mask = DOCK_MOD_STATE, .state = to};

    assert_int_equal(dock_qp_modify(w->a.qp, &m), 0);
}

#endif
