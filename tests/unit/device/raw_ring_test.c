// SPDX-License-Identifier: MIT
// Direct drive: others write WQEs and the doorbell into the live rings. What is written comes from
// tests/lib/raw_producer.c, which knows only the public format; here the addresses are found and the bytes
// checked.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "device/internal.h"
#include "lib/duo.h"
#include "lib/raw_producer.h"
#include "lib/raw_view.h"

#define BLOCKS 16

static void open_raw(struct duo *d, struct raw_queue *q, enum place place, uint32_t start)
{
    struct duo_opts o = {.near = {.raw = true, .wr = BLOCKS, .cqe = 8}, .start_index = start};

    duo_open(d, place, &o);
    *q = raw_view_of(&d->near.e);
    assert_int_equal(q->blocks, BLOCKS);
}

static void expect_success(struct duo *d, struct raw_queue *q, uint32_t bytes)
{
    struct raw_cqe c = raw_wait(q);

    assert_int_equal(c.status << 8 | c.substatus, 0);
    assert_int_equal(c.receive, 0);
    assert_int_equal(c.entry, (q->pi - 1) & 0xffff);
    assert_int_equal(c.local, dock_qp_number(d->near.e.qp));
    assert_int_equal(c.bytes, bytes);
}

static struct raw_wr onesided(struct duo *d, unsigned opcode, uint32_t far_off)
{
    return (struct raw_wr){.opcode = opcode,
                           .complete = 1,
                           .id = d->mr.rkey >> 8,
                           .token = d->mr.rkey,
                           .addr = d->mem + far_off};
}

static uint64_t far_sum(struct duo *d, uint32_t off, uint32_t len)
{
    struct io_mem m = {.off = off, .len = len};

    duo_far(d, side_sum, &m, sizeof m);
    return m.sum;
}

// A WRITE of exactly `blocks` blocks: gathered from as many SGEs as that takes, or inline.
static uint32_t write_of(struct duo *d, struct raw_queue *q, unsigned blocks, bool inlined, uint32_t far_off)
{
    unsigned n = 1 + (blocks - 1) * 4, bytes = inlined ? 16 + (blocks - 1) * 64 : n * 7;
    struct raw_sge sge[13];
    struct raw_wr wr = onesided(d, 3, far_off);

    for (unsigned i = 0; i < n; i++)
        sge[i] = (struct raw_sge){7, (uintptr_t)d->near.e.mem + i * 7};
    wr.sge = sge;
    wr.nsge = n;
    wr.bytes = bytes;
    wr.data = inlined ? d->near.e.mem : NULL;
    assert_int_equal(raw_put(q, &wr), blocks);
    return bytes;
}

// A thousand WQEs of one to four blocks in a ring of sixteen: every size begins at every place of the ring,
// those of two to four blocks across its end too.
static void wqes_of_one_to_four_blocks_at_every_place_of_the_ring(void **state)
{
    static const uint32_t starts[] = {0, 65530, 0xfffffff5u};
    unsigned crossed[5] = {0};

    (void)state;
    for (unsigned s = 0; s < 3; s++) {
        struct duo d;
        struct raw_queue q;
        open_raw(&d, &q, SELF_ARENA, starts[s]);
        assert_int_equal(q.pi, starts[s]);
        for (unsigned i = 0; i < 320; i++) {
            unsigned blocks = 1 + (i * 7 + i / 16) % 4;
            uint32_t at = q.pi & (BLOCKS - 1), bytes;
            bytes_fill(d.near.e.mem, 256, i);
            bytes = write_of(&d, &q, blocks, i & 1, i % 50);
            crossed[blocks] += at + blocks > BLOCKS;
            raw_ring(&q);
            expect_success(&d, &q, bytes);
            assert_int_equal(far_sum(&d, i % 50, bytes), bytes_sum(d.near.e.mem, bytes));
        }
        duo_close(&d);
    }
    for (unsigned b = 2; b <= 4; b++)
        assert_true(crossed[b] > 3);
}

static void many_wqes_behind_one_doorbell_and_completions_only_where_asked(void **state)
{
    struct duo d;
    struct raw_queue q;
    struct raw_cqe c;

    (void)state;
    open_raw(&d, &q, HOST_ARENA, 0xfffffffau);
    for (unsigned round = 0; round < 50; round++) {
        bytes_fill(d.near.e.mem, 256, round);
        for (unsigned i = 0; i < 8; i++) {
            struct raw_sge sge = {.len = 16, .va = (uintptr_t)d.near.e.mem + i * 16};
            struct raw_wr wr = onesided(&d, 3, i * 16);
            wr.sge = &sge;
            wr.nsge = 1;
            wr.complete = i % 4 == 3;
            raw_put(&q, &wr);
        }
        raw_ring(&q);
        c = raw_wait(&q);
        assert_int_equal(c.status, 0);
        assert_int_equal(c.entry, (q.pi - 5) & 0xffff);
        expect_success(&d, &q, 16);
        assert_false(raw_poll(&q, &c));
        assert_int_equal(far_sum(&d, 0, 128), bytes_sum(d.near.e.mem, 128));
    }
    duo_close(&d);
}

static void far_word(struct side *s, void *io)
{
    struct io_mem *m = io;
    uint64_t *w = (uint64_t *)(void *)(s->e.mem + m->off);

    m->sum = *w;
    *w = m->seed;
}

// Swap a word of the far memory: what it was.
static uint64_t far_swap(struct duo *d, uint32_t off, uint64_t value)
{
    struct io_mem m = {.off = off, .seed = value};

    duo_far(d, far_word, &m, sizeof m);
    return m.sum;
}

static void one_two_sided(struct duo *d, struct raw_queue *q, unsigned opcode, uint64_t imm)
{
    struct io_recv r = {.id = 70 + opcode, .off = 4096, .len = 100};
    struct io_wc w = {.ms = 10000 * slow_down()};
    struct raw_sge sge = {.len = 100, .va = (uintptr_t)d->near.e.mem};
    struct raw_wr wr = onesided(d, opcode, 8192);

    bytes_fill(d->near.e.mem, 100, opcode);
    duo_far(d, side_recv, &r, sizeof r);
    if (opcode < 3)
        wr.id = d->qpn;
    wr.imm = imm;
    wr.sge = &sge;
    wr.nsge = 1;
    raw_put(q, &wr);
    raw_ring(q);
    expect_success(d, q, 100);
    duo_far(d, side_wait, &w, sizeof w);
    assert_true(w.got);
    assert_int_equal(w.wc.status, 0);
    assert_int_equal(w.wc.id, 70 + opcode);
    assert_int_equal(w.wc.op, opcode == 4 ? 3 : opcode);
    if (opcode)
        assert_int_equal(w.wc.imm, imm);
    assert_int_equal(far_sum(d, opcode == 4 ? 8192 : 4096, 100), bytes_sum(d->near.e.mem, 100));
}

static void read_back(struct duo *d, struct raw_queue *q)
{
    struct io_mem m = {.off = 512, .len = 300, .seed = 9};
    struct raw_sge sge[2] = {{100, (uintptr_t)d->near.e.mem + 1000}, {200, (uintptr_t)d->near.e.mem + 1100}};
    struct raw_wr wr = onesided(d, 6, 512);

    duo_far(d, side_fill, &m, sizeof m);
    wr.sge = sge;
    wr.nsge = 2;
    raw_put(q, &wr);
    raw_ring(q);
    expect_success(d, q, 300);
    assert_int_equal(far_sum(d, 512, 300), bytes_sum(d->near.e.mem + 1000, 300));
}

static void write_and_notify(struct duo *d, struct raw_queue *q)
{
    struct raw_wr wr = onesided(d, 5, 3);

    far_swap(d, 1024, 0);
    bytes_fill(d->near.e.mem, 176, 5);
    wr.data = d->near.e.mem;
    wr.bytes = 176; // with the notification four whole blocks
    wr.notify_id = d->mr.rkey >> 8;
    wr.notify_token = d->mr.rkey;
    wr.notify_addr = d->mem + 1024;
    wr.notify_value = 0x1122334455667788;
    assert_int_equal(raw_put(q, &wr), 4);
    raw_ring(q);
    expect_success(d, q, 176);
    assert_int_equal(far_sum(d, 3, 176), bytes_sum(d->near.e.mem, 176));
    assert_int_equal(far_swap(d, 1024, 0), 0x1122334455667788);
}

static void atomics(struct duo *d, struct raw_queue *q)
{
    struct raw_sge sge = {.len = 8, .va = (uintptr_t)d->near.e.mem + 2048};
    struct raw_wr wr = onesided(d, 0xb, 1024);
    uint64_t *old = (uint64_t *)(void *)(d->near.e.mem + 2048);

    far_swap(d, 1024, 40);
    wr.sge = &sge;
    wr.nsge = 1;
    wr.operand[0] = 2;
    assert_int_equal(raw_put(q, &wr), 2);
    raw_ring(q);
    expect_success(d, q, 8);
    assert_int_equal(*old, 40);

    wr.opcode = 7; // swap 7 in where 42 is
    wr.operand[0] = 7;
    wr.operand[1] = 42;
    raw_put(q, &wr);
    raw_ring(q);
    expect_success(d, q, 8);
    assert_int_equal(*old, 42);
    assert_int_equal(far_swap(d, 1024, 0), 7);
}

static void nothing(struct duo *d, struct raw_queue *q)
{
    struct raw_wr wr = {.opcode = 0x11, .complete = 1};

    assert_int_equal(raw_put(q, &wr), 1);
    raw_ring(q);
    expect_success(d, q, 0);
}

// What carries no data has no use for a count of SGEs, and must not believe one.
static void a_count_of_sges_where_none_belong_is_not_believed(void **state)
{
    static const unsigned ops[] = {0x11, 0x29, 0x28};

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        struct duo d;
        struct raw_queue q;
        struct raw_wr wr = {.opcode = 0x11, .complete = 1};
        open_raw(&d, &q, SELF_ARENA, 0);
        unsigned char *sqe = q.ring + (q.pi & (BLOCKS - 1)) * 64;
        raw_put(&q, &wr);
        sqe[5] = (unsigned char)ops[i];
        sqe[11] = 255;
        q.pi += ops[i] == 0x28; // a bind has a second block
        raw_ring(&q);
        struct raw_cqe c = raw_wait(&q);
        assert_int_equal(c.status, i ? 2 : 0); // no window has that key
        assert_int_equal(dock_qp_state(d.near.e.qp), i ? DOCK_ERR : DOCK_RTS);
        duo_close(&d);
    }
}

static void every_public_opcode_by_offset(void **state)
{
    (void)state;
    for (unsigned place = 0; place < PLACES; place++) {
        if (!place_possible(place))
            continue;
        struct duo d;
        struct raw_queue q;
        open_raw(&d, &q, (enum place)place, 0);
        for (unsigned pass = 0; pass < 5; pass++) { // the ring wraps between them
            one_two_sided(&d, &q, 0, 0);
            one_two_sided(&d, &q, 1, 0x1122334455667788);
            one_two_sided(&d, &q, 4, 42);
            read_back(&d, &q);
            write_and_notify(&d, &q);
            atomics(&d, &q);
            nothing(&d, &q);
        }
        duo_close(&d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wqes_of_one_to_four_blocks_at_every_place_of_the_ring),
        cmocka_unit_test(many_wqes_behind_one_doorbell_and_completions_only_where_asked),
        cmocka_unit_test(every_public_opcode_by_offset),
        cmocka_unit_test(a_count_of_sges_where_none_belong_is_not_believed),
    };

    return cmocka_run_group_tests_name("a producer of its own", tests, NULL, NULL);
}
