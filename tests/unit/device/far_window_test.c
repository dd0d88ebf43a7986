// SPDX-License-Identifier: MIT
// timeout: 120
// Windows of another process, and messages that take them back: what window_test.c shows within one device,
// between two, on memory of the arena and on plain memory.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "device/internal.h"
#include "lib/duo.h"

#define RIGHTS (DOCK_ACCESS_REMOTE_READ | DOCK_ACCESS_REMOTE_WRITE)
#define AT 4096u
#define LEN 256u
#define MESSAGE 16u

static const enum place places[] = {HOST_ARENA, HOST_PLAIN};
#define COUNT(a) (sizeof(a) / sizeof *(a))

static struct duo d;
static struct dock_sge sge;

// ---- at the far end

// A window that is taken back is seen by its region when it is asked to go.
static void far_settle(struct side *s, void *io)
{
    struct io_bind *b = io;

    pthread_mutex_lock(&s->e.dev->lock);
    dock_windows_settle(s->e.dev, s->e.mr);
    pthread_mutex_unlock(&s->e.dev->lock);
    b->windows = dock_peek32(&s->e.mr->windows);
}

// ---- at the near end

static void open_at(enum place place)
{
    // Nobody answers some of them: 16 ms, eight times.
    static const struct dock_qp_mod knobs = {.timeout = 12,
                                             .retry = 7,
                                             .rnr_retry = 7,
                                             .rnr_timer = 1,
                                             .rd_atomic = 16,
                                             .dest_rd_atomic = 16,
                                             .access = RIGHTS | DOCK_ACCESS_REMOTE_ATOMIC};
    struct duo_opts o = {.near_knobs = &knobs};

    duo_open(&d, place, &o);
}

static void close_it(void)
{
    struct io_bind b = {.status = 1};

    duo_far(&d, side_unbind, &b, sizeof b);
    assert_int_equal(b.status, 0);
    duo_close(&d);
}

static uint32_t bind_far(enum dock_seg_kind kind, uint8_t variant)
{
    struct io_bind b = {
        .kind = kind, .variant = variant, .off = AT, .len = LEN, .access = RIGHTS, .status = 0xfff};

    duo_far(&d, side_bind, &b, sizeof b);
    assert_int_equal(b.status, DOCK_OK);
    assert_int_equal(b.windows, 1);
    assert_int_equal(b.key & 0xff, variant);
    return b.key;
}

static uint32_t windows_of_region(void)
{
    struct io_bind b = {0};

    duo_far(&d, far_settle, &b, sizeof b);
    return b.windows;
}

static uint32_t done(void)
{
    struct dock_wc wc = {.status = 0xfff};

    end_wait(d.near.e.scq, &wc, 5000 * slow_down());
    return wc.status;
}

static uint32_t use(uint8_t op, uint32_t key, int64_t off, uint32_t len)
{
    struct dock_mr named = {.rkey = key};
    struct dock_wr wr = wr_onesided(op, &d.near.e, &sge, 0, len, &named, d.mem + AT + (uint64_t)off);

    assert_int_equal(end_post(&d.near.e, &wr), 0);
    return done();
}

static uint64_t far_digest(void)
{
    struct io_mem m = {.off = 0, .len = 3 * AT};

    duo_far(&d, side_sum, &m, sizeof m);
    return m.sum;
}

static void far_receive(void)
{
    struct io_recv r = {.id = 12, .off = 5 * AT, .len = 64};

    duo_far(&d, side_recv, &r, sizeof r);
    assert_int_equal(r.err, 0);
}

static uint32_t send_inv(uint32_t key)
{
    struct dock_wr wr = wr_onesided(DOCK_OP_SEND_INV, &d.near.e, &sge, 0, MESSAGE, &d.mr, 0);

    wr.rkey = key;
    far_receive();
    assert_int_equal(end_post(&d.near.e, &wr), 0);
    return done();
}

// ---- the rules

static void it_shows_its_range_and_nothing_beside(void **state)
{
    static const struct {
        uint8_t op;
        int64_t off;
        uint32_t len, status;
    } t[] = {{DOCK_OP_WRITE, 0, LEN, DOCK_OK},
             {DOCK_OP_READ, LEN - 1, 1, DOCK_OK},
             {DOCK_OP_WRITE, -1, 1, DOCK_ST_REM_ACCESS},
             {DOCK_OP_READ, 0, LEN + 1, DOCK_ST_REM_ACCESS},
             {DOCK_OP_FADD, 0, 8, DOCK_ST_REM_ACCESS}};

    (void)state;
    for (unsigned p = 0; p < COUNT(places); p++)
        for (unsigned i = 0; place_possible(places[p]) && i < 2 * COUNT(t); i++) {
            open_at(places[p]);
            uint32_t key = bind_far(i % 2 ? DOCK_SEG_MW1 : DOCK_SEG_MW2, 0x55);
            uint64_t before = far_digest();
            memset(d.near.e.mem, 7, AT);
            assert_int_equal(use(t[i / 2].op, key, t[i / 2].off, t[i / 2].len), t[i / 2].status);
            bool writes = t[i / 2].op == DOCK_OP_WRITE && t[i / 2].status == DOCK_OK;
            assert_int_equal(far_digest() != before, writes);
            close_it();
        }
}

static void a_message_takes_the_right_back_and_tells_which(void **state)
{
    (void)state;
    for (unsigned p = 0; p < COUNT(places); p++) {
        if (!place_possible(places[p]))
            continue;
        struct io_wc w = {.ms = 5000 * slow_down()};
        struct io_mem m = {.off = 5 * AT, .len = MESSAGE};
        open_at(places[p]);
        uint32_t key = bind_far(DOCK_SEG_MW2, 3);
        bytes_fill(d.near.e.mem, MESSAGE, 77);
        assert_int_equal(use(DOCK_OP_WRITE, key, 0, LEN), DOCK_OK);
        assert_int_equal(send_inv(key), DOCK_OK);
        duo_far(&d, side_wait, &w, sizeof w);
        assert_true(w.got);
        assert_int_equal(w.wc.status, DOCK_OK);
        assert_int_equal(w.wc.op, DOCK_ROP_SEND_INV);
        assert_int_equal(w.wc.imm, key);
        assert_int_equal(w.wc.bytes, MESSAGE);
        duo_far(&d, side_sum, &m, sizeof m);
        assert_int_equal(m.sum, bytes_sum(d.near.e.mem, MESSAGE));
        assert_int_equal(windows_of_region(), 0);
        uint32_t next = bind_far(DOCK_SEG_MW2, 4); // it may be bound anew, under a new key
        assert_int_equal(use(DOCK_OP_WRITE, next, 0, LEN), DOCK_OK);
        uint64_t before = far_digest();
        memset(d.near.e.mem, 9, LEN);
        assert_int_equal(use(DOCK_OP_WRITE, key, 0, LEN), DOCK_ST_REM_ACCESS);
        assert_int_equal(far_digest(), before);
        close_it();
    }
}

// IBTA vol 1, 9.9.6.3, class J: the receive fails at the target, whose queue ends; nobody answers the sender.
static void a_message_cannot_take_back_what_is_no_window_of_its_queue(void **state)
{
    (void)state;
    for (unsigned p = 0; p < COUNT(places); p++)
        for (unsigned i = 0; place_possible(places[p]) && i < 3; i++) {
            struct io_wc w = {.ms = 5000 * slow_down()};
            open_at(places[p]);
            uint32_t key = bind_far(i == 1 ? DOCK_SEG_MW1 : DOCK_SEG_MW2, 3);
            assert_int_equal(send_inv(i == 0 ? d.mr.rkey : i == 1 ? key : key ^ 1), DOCK_ST_RETRY_EXC);
            duo_far(&d, side_wait, &w, sizeof w);
            assert_true(w.got);
            assert_int_equal(w.wc.status, DOCK_ST_LOC_PROT);
            assert_true(duo_far_reaches(&d, DOCK_ERR, 5000 * slow_down()));
            assert_int_equal(windows_of_region(), 1); // bound as before
            close_it();
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_shows_its_range_and_nothing_beside),
        cmocka_unit_test(a_message_takes_the_right_back_and_tells_which),
        cmocka_unit_test(a_message_cannot_take_back_what_is_no_window_of_its_queue),
    };

    return cmocka_run_group_tests_name("memory windows of another process", tests, NULL, NULL);
}
