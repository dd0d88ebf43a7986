// SPDX-License-Identifier: MIT
// A small SEND that suits goes a straight way, any other one the long way. What becomes of it must not tell
// which: each row is run with the straight way open, and with a listener that closes it.
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
#define FIRST 4u // messages before the one that counts: keys are found, and a receive is read ahead

enum memory { WRITABLE, READ_ONLY, GONE, WRONG_KEY };

static const struct row {
    const char *what;
    uint8_t op;
    uint32_t flags, len;
    uint32_t first, second; // bytes of the receive's buffers
    enum memory memory;
    uint32_t sent, received; // statuses
} rows[] = {
    {"8 bytes", DOCK_OP_SEND, 0, 8, 64, 0, WRITABLE, DOCK_OK, DOCK_OK},
    {"1 byte inline", DOCK_OP_SEND, DOCK_F_INLINE, 1, 64, 0, WRITABLE, DOCK_OK, DOCK_OK},
    {"6 bytes inline", DOCK_OP_SEND, DOCK_F_INLINE, 6, 64, 0, WRITABLE, DOCK_OK, DOCK_OK},
    {"8 bytes inline", DOCK_OP_SEND, DOCK_F_INLINE, 8, 64, 0, WRITABLE, DOCK_OK, DOCK_OK},
    {"16 bytes inline", DOCK_OP_SEND, DOCK_F_INLINE, 16, 64, 0, WRITABLE, DOCK_OK, DOCK_OK},
    {"17 bytes inline", DOCK_OP_SEND, DOCK_F_INLINE, 17, 64, 0, WRITABLE, DOCK_OK, DOCK_OK},
    {"an immediate", DOCK_OP_SEND_IMM, 0, 8, 64, 0, WRITABLE, DOCK_OK, DOCK_OK},
    {"an immediate, inline", DOCK_OP_SEND_IMM, DOCK_F_INLINE, 3, 64, 0, WRITABLE, DOCK_OK, DOCK_OK},
    {"solicited", DOCK_OP_SEND, DOCK_F_SOLICITED, 8, 64, 0, WRITABLE, DOCK_OK, DOCK_OK},
    {"no byte", DOCK_OP_SEND, 0, 0, 64, 0, WRITABLE, DOCK_OK, DOCK_OK},
    {"a piece", DOCK_OP_SEND, 0, DOCK_PIECE, LARGE, 0, WRITABLE, DOCK_OK, DOCK_OK},
    {"a piece and a byte", DOCK_OP_SEND, 0, LARGE, LARGE, 0, WRITABLE, DOCK_OK, DOCK_OK},
    {"it just fits", DOCK_OP_SEND, 0, 13, 13, 0, WRITABLE, DOCK_OK, DOCK_OK},
    {"the first of two buffers", DOCK_OP_SEND, 0, 13, 13, 5, WRITABLE, DOCK_OK, DOCK_OK},
    {"two buffers", DOCK_OP_SEND, 0, 13, 8, 8, WRITABLE, DOCK_OK, DOCK_OK},
    {"a byte too long", DOCK_OP_SEND, 0, 14, 13, 0, WRITABLE, DOCK_ST_REM_INV_REQ, DOCK_ST_LOC_LEN},
    {"two buffers too short", DOCK_OP_SEND, 0, 17, 8, 8, WRITABLE, DOCK_ST_REM_INV_REQ, DOCK_ST_LOC_LEN},
    {"memory that may not be written", DOCK_OP_SEND, 0, 8, 64, 0, READ_ONLY, DOCK_ST_REM_OP,
     DOCK_ST_LOC_PROT},
    {"memory that is gone", DOCK_OP_SEND, 0, 8, 64, 0, GONE, DOCK_ST_REM_OP, DOCK_ST_LOC_PROT},
    {"a key of nothing", DOCK_OP_SEND, 0, 8, 64, 0, WRONG_KEY, DOCK_ST_REM_OP, DOCK_ST_LOC_PROT},
};

struct world {
    struct dock_dev *dev;
    struct end a, b;
    struct dock_mr *mr; // of b's receives
    char *at;
};

static void listener(enum dock_moment at, uint32_t object, uint64_t sequence)
{
    (void)at;
    (void)object;
    (void)sequence;
}

static int receive(struct world *w, uint64_t id, const struct dock_sge *sge, unsigned n)
{
    struct dock_rq *rq = dock_qp_rq(w->b.qp);
    int err;

    dock_recv_begin(rq);
    err = dock_recv_put(rq, id, sge, n);
    dock_recv_end(rq);
    return err;
}

static void open_world_at(struct world *w, enum memory memory, uint32_t start_index)
{
    struct dock_config cfg = {.start_index = start_index};
    struct end_opts o = {.sge = 4};
    uint32_t access = memory == READ_ONLY ? DOCK_ACCESS_REMOTE_READ : DOCK_ACCESS_LOCAL_WRITE;

    assert_int_equal(dock_dev_open(&cfg, &w->dev), 0);
    end_open(&w->a, w->dev, &o);
    end_open(&w->b, w->dev, &o);
    pair_connect(&w->a, &w->b);
    w->at = w->b.mem + w->b.mem_size / 2;
    assert_int_equal(dock_mr_register(w->dev, w->b.pd, (uintptr_t)w->at, w->b.mem_size / 2, (uintptr_t)w->at,
                                      access, &w->mr),
                     0);
    memset(w->at, 0, w->b.mem_size / 2);
    for (uint32_t i = 0; i < w->a.mem_size; i++)
        w->a.mem[i] = (char)(i * 7 + 1);
}

static void open_world(struct world *w, enum memory memory)
{
    open_world_at(w, memory, 0);
}

static void close_world(struct world *w)
{
    if (w->mr)
        assert_int_equal(dock_mr_deregister(w->mr), 0);
    end_close(&w->b);
    end_close(&w->a);
    assert_int_equal(dock_dev_close(w->dev), 0);
}

static void send(struct world *w, const struct row *r, struct dock_wc *sent, struct dock_wc *received)
{
    struct dock_sge sge = {.addr = (uintptr_t)w->a.mem, .len = r->len, .key = w->a.mr->lkey};
    struct dock_wr wr = {.id = 77,
                         .op = r->op,
                         .nsge = 1,
                         .sge = &sge,
                         .flags = r->flags | DOCK_F_COMPLETE,
                         .inline_len = r->len,
                         .imm = 0x12345678};

    assert_int_equal(end_post(&w->a, &wr), 0);
    assert_true(end_wait(w->a.scq, sent, 5000));
    assert_true(end_wait(w->b.rcq, received, 5000));
}

// Messages that change nothing but what the sender knows: the last receive but one is read ahead when it
// comes.
static void make_known(struct world *w)
{
    static const struct row first = {.op = DOCK_OP_SEND, .len = 8};
    struct dock_sge sge = {.addr = (uintptr_t)w->b.mem, .len = 64, .key = w->b.mr->lkey};
    struct dock_wc sent, received;

    for (unsigned i = 0; i < FIRST; i++)
        assert_int_equal(receive(w, i, &sge, 1), 0);
    for (unsigned i = 0; i < FIRST - 1; i++)
        send(w, &first, &sent, &received);
}

static unsigned differs(const struct world *w, const struct row *r, const struct dock_wc *s,
                        const struct dock_wc *d)
{
    bool good = r->received == DOCK_OK, imm = r->op == DOCK_OP_SEND_IMM;
    uint32_t head = r->len < r->first ? r->len : r->first;

    if (s->status != r->sent || d->status != r->received || s->id != 77 || d->id != FIRST || !d->recv ||
        s->recv)
        return 1;
    if (!good)
        return 0;
    if (s->op != r->op || s->bytes != r->len || d->bytes != r->len || d->src_qp != dock_qp_number(w->a.qp) ||
        d->op != (imm ? DOCK_ROP_SEND_IMM : DOCK_ROP_SEND) || (imm && d->imm != 0x12345678) ||
        d->solicited != ((r->flags & DOCK_F_SOLICITED) != 0))
        return 2;
    if (memcmp(w->at, w->a.mem, head) || memcmp(w->at + LARGE, w->a.mem + head, r->len - head))
        return 3;
    return w->at[head] || w->at[LARGE + r->len - head] ? 4 : 0; // not a byte more
}

static unsigned run(const struct row *r)
{
    static const struct row last_known = {.op = DOCK_OP_SEND, .len = 8};
    struct dock_wc sent, received;
    struct world w;

    open_world(&w, r->memory);
    struct dock_sge sge[2] = {
        {.addr = (uintptr_t)w.at, .len = r->first, .key = w.mr->lkey + (r->memory == WRONG_KEY)},
        {.addr = (uintptr_t)w.at + LARGE, .len = r->second, .key = w.mr->lkey}};

    make_known(&w);
    assert_int_equal(receive(&w, FIRST, sge, r->second ? 2 : 1), 0);
    send(&w, &last_known, &sent, &received); // the one that counts is read ahead
    if (r->memory == GONE) {
        assert_int_equal(dock_mr_deregister(w.mr), 0);
        w.mr = NULL;
    }
    uint64_t before = dock_peek64(&w.b.qp->rec->messages_in);
    send(&w, r, &sent, &received);
    unsigned wrong = differs(&w, r, &sent, &received);
    if (!wrong && r->received == DOCK_OK && dock_peek64(&w.b.qp->rec->messages_in) != before + 1)
        wrong = 5;
    if (wrong)
        fprintf(stderr,
                "%s, %s way: expected %#x at the sender and %#x at the receiver, got %#x and %#x (%u)\n",
                r->what, dock_probe_hook ? "long" : "straight", r->sent, r->received, sent.status,
                received.status, wrong);
    close_world(&w);
    return wrong != 0;
}

static void a_small_send_ends_as_on_the_long_way(void **state)
{
    unsigned wrong = 0;

    (void)state;
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        wrong += run(&rows[i]);
        dock_probe_hook = listener;
        wrong += run(&rows[i]);
        dock_probe_hook = NULL;
    }
    assert_int_equal(wrong, 0);
}

// What was read ahead of a queue is void once it was reset.
static void a_receive_of_before_a_reset_takes_no_message(void **state)
{
    static const struct row r = {.op = DOCK_OP_SEND, .len = 8};
    struct dock_wc sent, received;
    struct world w;

    (void)state;
    open_world(&w, WRITABLE);
    make_known(&w); // one is still posted, and read ahead
    assert_int_equal(
        dock_qp_modify(w.b.qp, &(struct dock_qp_mod){.mask = DOCK_MOD_STATE, .state = DOCK_RESET}), 0);
    end_connect(&w.b, dock_qp_number(w.a.qp), NULL);
    struct dock_sge sge = {.addr = (uintptr_t)w.at, .len = 64, .key = w.mr->lkey};
    memset(w.b.mem, 0, 64);
    assert_int_equal(receive(&w, 99, &sge, 1), 0);
    send(&w, &r, &sent, &received);
    assert_int_equal(sent.status, DOCK_OK);
    assert_int_equal(received.status, DOCK_OK);
    assert_int_equal(received.id, 99);
    assert_memory_equal(w.at, w.a.mem, 8);
    assert_int_equal(w.b.mem[0], 0);
    close_world(&w);
}

// Whatever the indices are: a buffer that was given back is nobody's until it is posted again.
static void a_receive_that_is_not_posted_takes_no_message(void **state)
{
    static const uint32_t starts[] = {0, 0xfffffff0u, 0xfffffffeu, 0xffffffffu, 0x7fffffffu};
    static const struct row r = {.op = DOCK_OP_SEND, .len = 8};

    (void)state;
    for (unsigned i = 0; i < sizeof starts / sizeof *starts; i++)
        for (unsigned before = 1; before < 3; before++) {
            struct dock_wc sent, received;
            struct world w;
            open_world_at(&w, WRITABLE, starts[i]);
            struct dock_sge to = {.addr = (uintptr_t)w.b.mem, .len = 64, .key = w.b.mr->lkey};
            for (unsigned n = 0; n < before; n++) {
                assert_int_equal(receive(&w, n, &to, 1), 0);
                send(&w, &r, &sent, &received);
                assert_int_equal(received.id, n);
            }
            memset(w.b.mem, 0, 64);
            struct dock_wr wr = wr_onesided(DOCK_OP_SEND, &w.a, &(struct dock_sge){0}, 0, 8, w.b.mr, 0);
            assert_int_equal(end_post(&w.a, &wr), 0);
            assert_false(end_wait(w.b.rcq, &received, 2)); // it waits for a receive, as often as it takes
            assert_int_equal(w.b.mem[1], 0);
            assert_int_equal(receive(&w, 99, &to, 1), 0);
            assert_true(end_wait(w.b.rcq, &received, 5000));
            assert_int_equal(received.status, DOCK_OK);
            assert_int_equal(received.id, 99);
            assert_true(end_wait(w.a.scq, &sent, 5000));
            close_world(&w);
        }
}

// WRITEs and SENDs of one list, to memory of one key: who sees a SEND's completion sees all before it.
static void writes_and_sends_of_a_list_come_in_order(void **state)
{
    struct world w;
    struct dock_sge from[4], to;
    struct dock_post p;
    struct dock_wc wc;

    (void)state;
    open_world(&w, WRITABLE);
    to = (struct dock_sge){.addr = (uintptr_t)w.b.mem, .len = 8, .key = w.b.mr->lkey};
    for (unsigned round = 0; round < 16; round++) {
        assert_int_equal(receive(&w, 2 * round, &to, 1), 0);
        assert_int_equal(receive(&w, 2 * round + 1, &to, 1), 0);
        dock_post_begin(w.a.qp, &p);
        for (unsigned i = 0; i < 4; i++) {
            struct dock_wr wr = wr_onesided(i & 1 ? DOCK_OP_SEND : DOCK_OP_WRITE, &w.a, &from[i], 0, 8,
                                            w.b.mr, (uintptr_t)w.b.mem + 64 + 8ul * i);
            w.a.mem[128 + 8 * i] = (char)(round + i + 1);
            from[i].addr = (uintptr_t)w.a.mem + 128 + 8ul * i;
            wr.flags = i == 3 ? DOCK_F_COMPLETE : 0;
            assert_int_equal(dock_post_put(&p, &wr), 0);
        }
        dock_post_end(&p);
        for (unsigned k = 0; k < 2; k++) {
            assert_true(end_wait(w.b.rcq, &wc, 5000));
            assert_int_equal(wc.status, DOCK_OK);
            assert_int_equal(wc.id, 2 * round + k);
            assert_int_equal(w.b.mem[64 + 16 * k], (char)(round + 2 * k + 1));
        }
        assert_true(end_wait(w.a.scq, &wc, 5000));
        assert_int_equal(wc.status, DOCK_OK);
    }
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_send_ends_as_on_the_long_way),
        cmocka_unit_test(a_receive_of_before_a_reset_takes_no_message),
        cmocka_unit_test(a_receive_that_is_not_posted_takes_no_message),
        cmocka_unit_test(writes_and_sends_of_a_list_come_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
