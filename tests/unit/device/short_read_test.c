// SPDX-License-Identifier: MIT
// A READ of one piece goes a straight way, any other one the long way. What becomes of it must not tell
// which: each row is run with the straight way open, and with a listener that closes it. Its keys and the way
// there are known, so that nothing but the straight way's own looks refuse it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>

#include "base/probe.h"
#include "device/internal.h"
#include "lib/pair.h"

#define LARGE (DOCK_PIECE + 1)
#define HALF (512u << 10)

enum wrong {
    NOTHING,
    LOCAL_READ_ONLY,
    LOCAL_KEY,
    LOCAL_END,
    FAR_WRITE_ONLY,
    FAR_NEW,
    FAR_TOKEN,
    FAR_OTHER,
    FAR_END,
    QUEUE_RIGHT,
    QUEUE_ANSWERS_NONE,
    QUEUE_SENDS_NONE,
    UNRELIABLE
};

static const struct row {
    const char *what;
    uint32_t len;
    bool straight; // where it may
    enum wrong wrong;
    uint32_t status;
} rows[] = {
    {"8 bytes", 8, true, NOTHING, DOCK_OK},
    {"a byte", 1, true, NOTHING, DOCK_OK},
    {"more than a page", 5001, true, NOTHING, DOCK_OK},
    {"a piece", DOCK_PIECE, true, NOTHING, DOCK_OK},
    {"a piece and a byte", LARGE, false, NOTHING, DOCK_OK},
    {"no byte", 0, false, NOTHING, DOCK_OK},
    {"into memory that may not be written", 64, false, LOCAL_READ_ONLY, DOCK_ST_LOC_PROT},
    {"under a local key of nothing", 64, false, LOCAL_KEY, DOCK_ST_LOC_PROT},
    {"beyond the end of local memory", 64, false, LOCAL_END, DOCK_ST_LOC_PROT},
    {"of memory that may only be written", 64, false, FAR_WRITE_ONLY, DOCK_ST_REM_ACCESS},
    {"under a key that was taken back", 64, false, FAR_NEW, DOCK_ST_REM_ACCESS},
    {"under another variant of a key that is known", 64, false, FAR_TOKEN, DOCK_ST_REM_ACCESS},
    {"under a key that stands where a known one does", 64, false, FAR_OTHER, DOCK_ST_REM_ACCESS},
    {"beyond the end of memory", 64, false, FAR_END, DOCK_ST_REM_ACCESS},
    {"of a queue without the right", 64, false, QUEUE_RIGHT, DOCK_ST_REM_INV_REQ},
    {"of a queue that answers none", 64, false, QUEUE_ANSWERS_NONE, DOCK_ST_REM_INV_REQ},
    {"by a queue that sends none", 64, false, QUEUE_SENDS_NONE, DOCK_ST_LOC_QP_OP},
    {"by an unreliable queue", 64, false, UNRELIABLE, DOCK_ST_LOC_QP_OP},
};

struct world {
    struct dock_dev *dev;
    struct end a, b;
    struct dock_mr *near, *far; // the second halves of both
    char *to, *from;
};

static unsigned straight_ones;

static void listener(enum dock_moment at, uint32_t object, uint64_t sequence)
{
    (void)object;
    if (at == DOCK_AT_PLACE && sequence & DOCK_PROBE_STRAIGHT) // the test's own thread
        straight_ones++;
}

static void register_half(const struct end *e, char *at, uint32_t access, struct dock_mr **out)
{
    assert_int_equal(dock_mr_register(e->dev, e->pd, (uintptr_t)at, HALF, (uintptr_t)at, access, out), 0);
}

static void open_world(struct world *w, enum wrong wrong)
{
    struct end_opts o = {.service = wrong == UNRELIABLE ? DOCK_UC : DOCK_RC};
    uint32_t far_rights = wrong == FAR_WRITE_ONLY ? 0 : DOCK_ACCESS_REMOTE_READ;
    struct dock_qp_mod knobs = {.timeout = 14,
                                .retry = 7,
                                .rnr_retry = 7,
                                .rnr_timer = 1,
                                .rd_atomic = wrong == QUEUE_SENDS_NONE ? 0 : 16,
                                .dest_rd_atomic = wrong == QUEUE_ANSWERS_NONE ? 0 : 16,
                                .access = DOCK_ACCESS_REMOTE_WRITE |
                                          (wrong == QUEUE_RIGHT ? 0 : DOCK_ACCESS_REMOTE_READ)};

    assert_int_equal(dock_dev_open(NULL, &w->dev), 0);
    end_open(&w->a, w->dev, &o);
    end_open(&w->b, w->dev, &o);
    end_connect(&w->a, dock_qp_number(w->b.qp), &knobs);
    end_connect(&w->b, dock_qp_number(w->a.qp), &knobs);
    w->to = w->a.mem + HALF;
    w->from = w->b.mem + HALF;
    for (uint32_t i = 0; i < HALF; i++)
        w->from[i] = (char)(i * 7 + i / 251 + 1);
    memset(w->a.mem, 0x33, w->a.mem_size);
    register_half(&w->a, w->to, wrong == LOCAL_READ_ONLY ? 0 : DOCK_ACCESS_LOCAL_WRITE, &w->near);
    register_half(&w->b, w->from, DOCK_ACCESS_LOCAL_WRITE | DOCK_ACCESS_REMOTE_WRITE | far_rights, &w->far);
}

static void close_world(struct world *w)
{
    assert_int_equal(dock_mr_deregister(w->near), 0);
    assert_int_equal(dock_mr_deregister(w->far), 0);
    end_close(&w->b);
    end_close(&w->a);
    assert_int_equal(dock_dev_close(w->dev), 0);
}

static uint32_t request(struct world *w, uint8_t op, uint32_t len, uint32_t key, char *near,
                        const struct dock_mr *far, const char *at)
{
    struct dock_sge sge;
    struct dock_wr wr = wr_onesided(op, &w->a, &sge, 0, len, far, (uintptr_t)at);
    struct dock_wc wc;

    sge.addr = (uintptr_t)near;
    sge.key = key;
    wr.id = 77;
    wr.flags = DOCK_F_COMPLETE;
    assert_int_equal(end_post(&w->a, &wr), 0);
    assert_true(end_wait(w->a.scq, &wc, 5000));
    assert_int_equal(wc.id, 77);
    return wc.status;
}

// A WRITE finds the far key, whatever may be read under it; it brings what is there.
static void make_known(struct world *w)
{
    char *copy = w->a.mem;

    memcpy(copy, w->from, 64);
    assert_int_equal(request(w, DOCK_OP_WRITE, 64, w->a.mr->lkey, copy, w->far, w->from), DOCK_OK);
}

static unsigned bytes_that_differ(const struct world *w, uint32_t len)
{
    unsigned n = 0;

    for (uint32_t i = 0; i < HALF; i++)
        n += w->to[i] != (i < len ? w->from[i] : 0x33);
    return n;
}

// ALONE: nobody listens, and the only request that is posted has a line of its own.
enum way { OPEN, CLOSED, ALONE };

static bool run(const struct row *r, enum way way)
{
    static const char *const words[] = {"the straight way open", "closed", "nobody listens"};
    unsigned differ, expected = way == OPEN && r->straight;
    struct dock_mr far;
    struct world w;
    uint32_t key, status;
    char *to, *from;

    dock_probe_straight = way == OPEN;
    dock_probe_hook = way == ALONE ? NULL : listener;
    open_world(&w, r->wrong);
    make_known(&w);
    far = *w.far;
    if (r->wrong == FAR_NEW) {
        assert_int_equal(dock_mr_deregister(w.far), 0);
        register_half(&w.b, w.from, DOCK_ACCESS_LOCAL_WRITE | DOCK_ACCESS_REMOTE_READ, &w.far);
    }
    far.rkey ^= r->wrong == FAR_TOKEN ? 2 : r->wrong == FAR_OTHER ? DOCK_RKEYS << 8 : 0;
    key = r->wrong == LOCAL_KEY ? 0x00123400 : w.near->lkey;
    to = r->wrong == LOCAL_END ? w.to + HALF - r->len + 1 : w.to;
    from = r->wrong == FAR_END ? w.from + HALF - r->len + 1 : w.from;
    straight_ones = 0;
    status = request(&w, DOCK_OP_READ, r->len, key, to, &far, from);
    differ = bytes_that_differ(&w, status ? 0 : r->len);
    bool right = status == r->status && !differ && straight_ones == expected;
    if (!right)
        fprintf(stderr, "a READ, %s, %s: status %#x, %u wrong bytes, %u straight; expected %#x, none, %u\n",
                r->what, words[way], status, differ, straight_ones, r->status, expected);
    close_world(&w);
    return right;
}

static void the_ways_do_not_differ(void **state)
{
    unsigned wrong = 0;

    (void)state;
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
        for (enum way way = OPEN; way <= ALONE; way++)
            wrong += !run(&rows[i], way);
    assert_int_equal(wrong, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_ways_do_not_differ),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("short reads", tests, NULL, NULL);
}
