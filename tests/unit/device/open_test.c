// SPDX-License-Identifier: MIT
// An open target, the implicit local key, and atomics of 4 bytes: what a face of symmetric memory stands on.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/pair.h"

struct scene {
    struct dock_dev *dev;
    struct end a, b, target; // a and b are initiators, of one device with the target
    struct dock_mr *own;
};

static void expect_status(struct end *e, const struct dock_wr *wr, uint32_t status)
{
    struct dock_wc wc;

    assert_int_equal(end_post(e, wr), 0);
    assert_true(end_wait(e->scq, &wc, 2000));
    assert_int_equal(wc.status, status);
}

static int set_up(void **state)
{
    static struct scene s;

    memset(&s, 0, sizeof s);
    assert_int_equal(dock_dev_open(NULL, &s.dev), 0);
    end_open(&s.target, s.dev, &(struct end_opts){.open = true});
    end_open(&s.a, s.dev, &(struct end_opts){.signal_all = true, .short_atomics = true});
    end_open(&s.b, s.dev, &(struct end_opts){.signal_all = true});
    end_connect(&s.target, 0, NULL);
    end_connect(&s.a, dock_qp_number(s.target.qp), NULL);
    end_connect(&s.b, dock_qp_number(s.target.qp), NULL);
    assert_int_equal(dock_mr_implicit(s.dev, s.a.pd, &s.own), 0);
    *state = &s;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *s = *state;

    assert_int_equal(dock_mr_deregister(s->own), 0);
    end_close(&s->a);
    end_close(&s->b);
    end_close(&s->target);
    assert_int_equal(dock_dev_close(s->dev), 0);
    return 0;
}

static void an_open_target_answers_any_queue(void **state)
{
    struct scene *s = *state;
    struct dock_sge sge;

    for (struct end *e = &s->a; e <= &s->b; e++) {
        struct dock_wr wr = wr_onesided(DOCK_OP_WRITE, e, &sge, 0, 8, s->target.mr, (uintptr_t)s->target.mem);
        memset(e->mem, e == &s->a ? 0x11 : 0x22, 8);
        expect_status(e, &wr, DOCK_OK);
        assert_memory_equal(s->target.mem, e->mem, 8);
    }
}

static void a_wrong_request_fails_only_its_sender(void **state)
{
    struct scene *s = *state;
    struct dock_sge sge;
    struct dock_wr wr =
        wr_onesided(DOCK_OP_WRITE, &s->a, &sge, 0, 8, s->target.mr, (uintptr_t)s->target.mem + (1 << 20));

    expect_status(&s->a, &wr, DOCK_ST_REM_ACCESS);
    wr = wr_onesided(DOCK_OP_WRITE, &s->b, &sge, 0, 8, s->target.mr, (uintptr_t)s->target.mem);
    expect_status(&s->b, &wr, DOCK_OK);
    assert_int_equal(dock_qp_state(s->target.qp), DOCK_RTS);
}

static void the_implicit_key_covers_the_stack(void **state)
{
    struct scene *s = *state;
    uint64_t here = 0x1234567890abcdefull, back = 0;
    struct dock_sge sge = {.addr = (uintptr_t)&here, .len = 8, .key = s->own->lkey};
    struct dock_wr wr = {.op = DOCK_OP_WRITE,
                         .nsge = 1,
                         .sge = &sge,
                         .rkey = s->target.mr->rkey,
                         .raddr = (uintptr_t)s->target.mem};

    expect_status(&s->a, &wr, DOCK_OK);
    assert_memory_equal(s->target.mem, &here, 8);
    wr.op = DOCK_OP_READ;
    sge.addr = (uintptr_t)&back;
    expect_status(&s->a, &wr, DOCK_OK);
    assert_true(back == here);
}

static void the_implicit_key_opens_nothing_to_peers(void **state)
{
    struct scene *s = *state;
    uint64_t mine = 5;
    struct dock_sge sge = {.addr = (uintptr_t)s->a.mem, .len = 8, .key = s->a.mr->lkey};
    struct dock_wr wr = {
        .op = DOCK_OP_WRITE, .nsge = 1, .sge = &sge, .rkey = s->own->rkey, .raddr = (uintptr_t)&mine};

    expect_status(&s->a, &wr, DOCK_ST_REM_ACCESS);
    assert_true(mine == 5);
}

static void an_atomic_of_4_bytes_leaves_its_neighbour_alone(void **state)
{
    struct scene *s = *state;
    uint32_t *word = (uint32_t *)(void *)s->target.mem, old = 0;
    struct dock_sge sge = {.addr = (uintptr_t)&old, .len = 4, .key = s->own->lkey};
    struct dock_wr wr = {.op = DOCK_OP_FADD,
                         .nsge = 1,
                         .sge = &sge,
                         .rkey = s->target.mr->rkey,
                         .raddr = (uintptr_t)word,
                         .operand = 3};

    word[0] = 0xfffffffe;
    word[1] = 7;
    expect_status(&s->a, &wr, DOCK_OK);
    assert_int_equal(old, 0xfffffffe);
    assert_int_equal(word[0], 1); // the carry goes nowhere
    assert_int_equal(word[1], 7);
    wr.op = DOCK_OP_CAS;
    wr.compare = 1;
    wr.operand = 9;
    wr.raddr += 4;
    expect_status(&s->a, &wr, DOCK_OK);
    assert_int_equal(old, 7);
    assert_int_equal(word[1], 7);
}

static void without_asking_an_atomic_has_8_bytes(void **state)
{
    struct scene *s = *state;
    struct dock_sge sge;
    struct dock_wr wr = wr_onesided(DOCK_OP_FADD, &s->b, &sge, 0, 4, s->target.mr, (uintptr_t)s->target.mem);

    expect_status(&s->b, &wr, DOCK_ST_LOC_LEN);
}

static void a_queue_counts_what_it_executed(void **state)
{
    struct scene *s = *state;
    const struct dock_sq_post *sq = dock_qp_sq(s->b.qp);
    uint64_t before = dock_acquire64(sq->executed);
    struct dock_sge sge;
    struct dock_wr wr = wr_onesided(DOCK_OP_WRITE, &s->b, &sge, 0, 8, s->target.mr, (uintptr_t)s->target.mem);

    for (unsigned i = 1; i <= 3; i++) {
        expect_status(&s->b, &wr, DOCK_OK);
        assert_int_equal(dock_acquire64(sq->executed) - before, i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_open_target_answers_any_queue, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_wrong_request_fails_only_its_sender, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_implicit_key_covers_the_stack, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_implicit_key_opens_nothing_to_peers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_atomic_of_4_bytes_leaves_its_neighbour_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_asking_an_atomic_has_8_bytes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_queue_counts_what_it_executed, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
