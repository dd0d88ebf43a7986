// SPDX-License-Identifier: MIT
// Direct drive by producers that write what cannot be: an error in words, and nothing of it is executed. The
// bytes come from tests/lib/raw_producer.c, which knows only the public format.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "device/internal.h"
#include "lib/raw_producer.h"
#include "lib/raw_view.h"

#define BLOCKS 16

// ---- what the device can see of a producer's mistake; no engine thread, so that the words are of this
// thread

// What the device said first of a WQE: it does so just before it reports to have fetched it.
static char seen[256];

static void remember_words(enum dock_moment at, uint32_t object, uint64_t sequence)
{
    (void)object;
    (void)sequence;
    if (at == DOCK_AT_FETCH && !seen[0] && strstr(dock_log_last(), "queue"))
        snprintf(seen, sizeof seen, "%s", dock_log_last());
}

struct lone {
    struct dock_dev *dev;
    struct end a, b;
    struct raw_queue q;
    struct dock_mr mr;
};

static void open_lone(struct lone *l)
{
    struct dock_config cfg = {.no_engine_thread = true};
    struct end_opts raw = {.raw = true, .wr = BLOCKS, .cqe = 32}, plain = {0};

    assert_int_equal(dock_dev_open(&cfg, &l->dev), 0);
    end_open(&l->a, l->dev, &raw);
    end_open(&l->b, l->dev, &plain);
    pair_connect(&l->a, &l->b);
    l->q = raw_view_of(&l->a);
    l->mr = *l->b.mr;
    dock_info("opened"); // nothing was said of a queue yet
    seen[0] = '\0';
}

static void close_lone(struct lone *l)
{
    end_close(&l->a);
    end_close(&l->b);
    assert_int_equal(dock_dev_close(l->dev), 0);
}

static void put_write(struct lone *l, bool bad_owner)
{
    struct raw_sge sge = {.len = 8, .va = (uintptr_t)l->a.mem};
    struct raw_wr wr = {.opcode = 3,
                        .complete = 1,
                        .id = l->mr.rkey >> 8,
                        .token = l->mr.rkey,
                        .addr = (uintptr_t)l->b.mem,
                        .sge = &sge,
                        .nsge = 1,
                        .bad_owner = bad_owner};

    raw_put(&l->q, &wr);
}

// Let the device see the doorbell. Nobody but this thread runs it.
static void look(struct lone *l)
{
    raw_ring(&l->q);
    for (unsigned i = 0; i < 4; i++)
        dock_engine_step(l->dev);
}

static void expect_error(struct lone *l, unsigned status, unsigned substatus)
{
    struct raw_cqe c;

    assert_true(raw_poll(&l->q, &c));
    assert_int_equal(c.status, status);
    assert_int_equal(c.substatus, substatus);
    assert_int_equal(dock_qp_state(l->a.qp), DOCK_ERR);
    assert_int_equal(dock_qp_state(l->b.qp), DOCK_RTS);
}

static void expect_words(const char *words)
{
    if (!strstr(seen, words))
        fprintf(stderr, "expected the device to say \"%s\", it said \"%s\"\n", words, seen);
    assert_non_null(strstr(seen, words));
}

static void the_owner_bit_of_another_pass_is_an_error_in_words(void **state)
{
    struct lone l;
    struct raw_cqe c;

    (void)state;
    open_lone(&l);
    put_write(&l, false);
    put_write(&l, true);
    put_write(&l, false);
    look(&l);
    assert_true(raw_poll(&l.q, &c));
    assert_int_equal(c.status, 0); // the one before was executed
    expect_error(&l, 2, 0xf0);
    expect_words("owner bit of another pass");
    assert_true(raw_poll(&l.q, &c)); // the one behind is flushed
    assert_int_equal(c.status, 6);
    close_lone(&l);
}

static void a_doorbell_beyond_the_ring_is_an_error_in_words(void **state)
{
    struct lone l;

    (void)state;
    open_lone(&l);
    put_write(&l, false);
    l.q.pi += BLOCKS;
    look(&l);
    expect_error(&l, 2, 0xf0);
    expect_words("jumped past the ring or went back");
    close_lone(&l);
}

static void a_doorbell_that_goes_back_is_an_error_in_words(void **state)
{
    struct lone l;
    struct raw_cqe c;

    (void)state;
    open_lone(&l);
    for (unsigned i = 0; i < 3; i++)
        put_write(&l, false);
    look(&l);
    for (unsigned i = 0; i < 3; i++)
        assert_true(raw_poll(&l.q, &c));
    l.q.pi--;
    look(&l);
    expect_error(&l, 2, 0xf0);
    expect_words("jumped past the ring or went back");
    close_lone(&l);
}

static void what_was_done_is_told_although_the_doorbell_went_back(void **state)
{
    struct dock_wc wc;
    struct lone l;

    (void)state;
    open_lone(&l);
    for (unsigned i = 0; i < 3; i++)
        put_write(&l, false);
    look(&l);
    l.q.pi -= 2;
    look(&l);
    for (unsigned i = 0; i < 4; i++) {
        assert_true(end_poll(l.a.scq, &wc));
        assert_int_equal(wc.status, i < 3 ? DOCK_OK : DOCK_ST_LOC_QP_OP);
    }
    assert_false(end_poll(l.a.scq, &wc));
    close_lone(&l);
}

// What a failed queue is rung for and holds no WQE completes once, however many blocks it is: a CQ that
// others share is not filled by it. Each WQE behind it has its completion.
static void blocks_without_a_wqe_are_flushed_by_one_completion(void **state)
{
    struct lone l;
    struct raw_cqe c;

    (void)state;
    open_lone(&l);
    put_write(&l, true);
    look(&l);
    expect_error(&l, 2, 0xf0);
    put_write(&l, false);
    l.q.pi += 9; // nothing was written there
    put_write(&l, false);
    put_write(&l, false);
    look(&l);
    static const unsigned last[] = {1, 10, 11, 12};
    for (unsigned i = 0; i < 4; i++) {
        assert_true(raw_poll(&l.q, &c));
        assert_int_equal(c.status, 6);
        assert_int_equal(c.entry, last[i]);
    }
    assert_false(raw_poll(&l.q, &c));
    close_lone(&l);
}

// In either pass: the owner bit of what was never written is right in the second.
static void blocks_that_were_never_written_are_flushed_by_one_completion_in_each_pass(void **state)
{
    struct raw_wr unknown = {.opcode = 0xff, .complete = 1, .id = 1};
    struct lone l;
    struct raw_cqe c;

    (void)state;
    open_lone(&l);
    raw_put(&l.q, &unknown);
    look(&l);
    expect_error(&l, 1, 0);
    static const unsigned ends[] = {BLOCKS,
                                    2 * BLOCKS - 1}; // behind the last block that was written, in this pass
    for (unsigned pass = 0; pass < 2; pass++) {
        l.q.pi = ends[pass];
        look(&l);
        assert_true(raw_poll(&l.q, &c));
        assert_int_equal(c.status, 6);
        assert_int_equal(c.entry, ends[pass] - 1);
        assert_false(raw_poll(&l.q, &c));
    }
    close_lone(&l);
}

// Four blocks by its first block, two of them published: the rest is not read before it is there.
static void a_wqe_longer_than_what_is_published_is_an_error_in_words(void **state)
{
    struct lone l;
    struct raw_wr wr = {.opcode = 3, .complete = 1, .id = 1, .bytes = 208};

    (void)state;
    open_lone(&l);
    wr.data = l.a.mem;
    wr.addr = (uintptr_t)l.b.mem;
    wr.token = l.mr.rkey;
    assert_int_equal(raw_put(&l.q, &wr), 4);
    l.q.pi -= 2;
    look(&l);
    expect_error(&l, 2, 0xf0);
    expect_words("needs 4 blocks, 2 are published");
    close_lone(&l);
}

static void an_unknown_opcode_is_unsupported(void **state)
{
    static const unsigned unknown[] = {0x08, 0x0a, 0x0c, 0x10, 0x12, 0x19, 0x1f, 0x25, 0x2b, 0xff};

    (void)state;
    for (unsigned i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        struct lone l;
        struct raw_wr wr = {.opcode = unknown[i], .complete = 1, .id = 1};
        open_lone(&l);
        raw_put(&l.q, &wr);
        look(&l);
        expect_error(&l, 1, 0);
        close_lone(&l);
    }
}

// The library's poll tells of it as well, whatever the opcode's bits.
static void an_unknown_opcode_completes_through_poll_too(void **state)
{
    (void)state;
    for (unsigned opcode = 0x2b; opcode <= 0xff; opcode += 0x15) {
        struct lone l;
        struct raw_wr wr = {.opcode = opcode, .complete = 1, .id = 1};
        struct dock_wc wc;
        open_lone(&l);
        raw_put(&l.q, &wr);
        look(&l);
        assert_true(end_poll(l.a.scq, &wc));
        assert_int_equal(wc.status, DOCK_ST_UNSUPPORTED);
        close_lone(&l);
    }
}

// A local address that no region of the domain covers.
static void an_address_that_is_not_registered_is_a_local_error(void **state)
{
    struct lone l;
    struct raw_sge sge = {.len = 8, .va = 4096};
    struct raw_wr wr = {.opcode = 3, .complete = 1, .sge = &sge, .nsge = 1};

    (void)state;
    open_lone(&l);
    wr.id = l.mr.rkey >> 8;
    wr.token = l.mr.rkey;
    wr.addr = (uintptr_t)l.b.mem;
    raw_put(&l.q, &wr);
    look(&l);
    expect_error(&l, 2, 2);
    close_lone(&l);
}

static void one_device_state(struct lone *l, enum dock_state to)
{
    struct dock_qp_mod m = {.mask = DOCK_MOD_STATE, .state = to};

    assert_int_equal(dock_qp_modify(l->a.qp, &m), 0);
}

// After RESET nothing that was rung before is executed; the producer goes on where the doorbell stands.
static void reset_forgets_what_a_raw_producer_had_rung(void **state)
{
    struct lone l;
    struct raw_cqe c;

    (void)state;
    open_lone(&l);
    for (unsigned i = 0; i < 5; i++)
        put_write(&l, false);
    look(&l);
    for (unsigned i = 0; i < 5; i++)
        assert_true(raw_poll(&l.q, &c));
    one_device_state(&l, DOCK_ERR);
    one_device_state(&l, DOCK_RESET);
    end_connect(&l.a, dock_qp_number(l.b.qp), NULL);
    dock_engine_step(l.dev);
    assert_false(raw_poll(&l.q, &c));
    assert_int_equal(dock_qp_state(l.a.qp), DOCK_RTS);
    put_write(&l, false);
    look(&l);
    assert_true(raw_poll(&l.q, &c));
    assert_int_equal(c.status, 0);
    close_lone(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_owner_bit_of_another_pass_is_an_error_in_words),
        cmocka_unit_test(a_doorbell_beyond_the_ring_is_an_error_in_words),
        cmocka_unit_test(a_doorbell_that_goes_back_is_an_error_in_words),
        cmocka_unit_test(what_was_done_is_told_although_the_doorbell_went_back),
        cmocka_unit_test(blocks_without_a_wqe_are_flushed_by_one_completion),
        cmocka_unit_test(blocks_that_were_never_written_are_flushed_by_one_completion_in_each_pass),
        cmocka_unit_test(a_wqe_longer_than_what_is_published_is_an_error_in_words),
        cmocka_unit_test(an_unknown_opcode_is_unsupported),
        cmocka_unit_test(an_unknown_opcode_completes_through_poll_too),
        cmocka_unit_test(an_address_that_is_not_registered_is_a_local_error),
        cmocka_unit_test(reset_forgets_what_a_raw_producer_had_rung),
    };

    dock_probe_hook = remember_words;
    return cmocka_run_group_tests_name("a producer that is wrong", tests, NULL, NULL);
}
