// SPDX-License-Identifier: MIT
// The memory format as numbers: where each field stands, how many blocks each WR takes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "ring/format.h"

// Length of the control part: 48, WRITE with immediate 64, with notify 80. `fixed` blocks where data does
// not count.
static const struct {
    const char *name;
    unsigned op, number, control, fixed;
} ops[] = {
    {"SEND", DOCK_OP_SEND, 0x00, 48, 0},
    {"SEND_IMM", DOCK_OP_SEND_IMM, 0x01, 48, 0},
    {"SEND_INV", DOCK_OP_SEND_INV, 0x02, 48, 0},
    {"WRITE", DOCK_OP_WRITE, 0x03, 48, 0},
    {"WRITE_IMM", DOCK_OP_WRITE_IMM, 0x04, 64, 0},
    {"WRITE_NOTIFY", DOCK_OP_WRITE_NOTIFY, 0x05, 80, 0},
    {"READ", DOCK_OP_READ, 0x06, 48, 0},
    {"CAS", DOCK_OP_CAS, 0x07, 48, 2},
    {"FADD", DOCK_OP_FADD, 0x0b, 48, 2},
    {"NOP", DOCK_OP_NOP, 0x11, 48, 1},
    {"SWAP", DOCK_OP_SWAP, 0x20, 48, 2},
    {"FSUB", DOCK_OP_FSUB, 0x21, 48, 2},
    {"FAND", DOCK_OP_FAND, 0x22, 48, 2},
    {"FOR", DOCK_OP_FOR, 0x23, 48, 2},
    {"FXOR", DOCK_OP_FXOR, 0x24, 48, 2},
    {"BIND", DOCK_OP_BIND, 0x28, 48, 2},
    {"INV", DOCK_OP_INV, 0x29, 48, 1},
    {"WRITE_ADD", DOCK_OP_WRITE_ADD, 0x2a, 80, 0},
};

#define COUNT(a) (sizeof(a) / sizeof *(a))

static void opcodes_have_their_public_numbers(void **state)
{
    (void)state;
    for (unsigned i = 0; i < COUNT(ops); i++)
        assert_int_equal(ops[i].op, ops[i].number);
}

static void expect_blocks(unsigned i, unsigned inline_on, unsigned bytes, unsigned sges, unsigned want)
{
    unsigned got = dock_wqe_blocks_of(ops[i].op, inline_on, bytes, sges);

    if (got != want)
        fprintf(stderr, "%s with %u SGEs, inline %u of %u bytes: expected %u blocks, got %u\n", ops[i].name,
                sges, inline_on, bytes, want, got);
    assert_int_equal(got, want);
}

static void blocks_of_every_opcode_by_sges(void **state)
{
    (void)state;
    for (unsigned i = 0; i < COUNT(ops); i++)
        for (unsigned n = 1; n <= DOCK_SGE_MAX; n++)
            expect_blocks(i, 0, 0, n, ops[i].fixed ? ops[i].fixed : (ops[i].control + (n - 1) * 16) / 64 + 1);
}

static void blocks_of_every_opcode_by_inline_bytes(void **state)
{
    (void)state;
    for (unsigned i = 0; i < COUNT(ops); i++)
        for (unsigned n = 0; n <= 208; n++)
            expect_blocks(i, 1, n, 0, ops[i].fixed ? ops[i].fixed : (ops[i].control + n - 1) / 64 + 1);
}

// What a face may announce: the most that still fits four blocks.
static void four_blocks_hold_so_much_and_no_more(void **state)
{
    static const struct {
        unsigned op, sges, bytes;
    } most[] = {{DOCK_OP_WRITE, 13, 208}, {DOCK_OP_WRITE_IMM, 12, 192}, {DOCK_OP_WRITE_NOTIFY, 11, 176}};

    (void)state;
    for (unsigned i = 0; i < COUNT(most); i++) {
        assert_int_equal(dock_wqe_blocks_of(most[i].op, 0, 0, most[i].sges), 4);
        assert_int_equal(dock_wqe_blocks_of(most[i].op, 0, 0, most[i].sges + 1), 5);
        assert_int_equal(dock_wqe_blocks_of(most[i].op, 1, most[i].bytes, 0), 4);
        assert_int_equal(dock_wqe_blocks_of(most[i].op, 1, most[i].bytes + 1, 0), 5);
    }
}

static void without_data_a_wqe_is_its_control_part(void **state)
{
    (void)state;
    assert_int_equal(dock_wqe_blocks_of(DOCK_OP_WRITE, 0, 0, 0), 1);
    assert_int_equal(dock_wqe_blocks_of(DOCK_OP_WRITE_IMM, 0, 0, 0), 1);
    assert_int_equal(dock_wqe_blocks_of(DOCK_OP_WRITE_NOTIFY, 0, 0, 0), 2);
}

static void fields_of_the_first_block(void **state)
{
    struct dock_wqe w = {.flags = DOCK_F_OWNER, .op = 5u << 8 | 100u << 22, .tp_sge = 3u << 24};

    (void)state;
    assert_int_equal(dock_wqe_opcode(&w), 5);
    assert_int_equal(dock_wqe_inline_len(&w), 100);
    assert_int_equal(dock_wqe_sges(&w), 3);
    assert_int_equal(offsetof(struct dock_wqe, remote), 12);
    assert_int_equal(offsetof(struct dock_wqe, eid), 16);
    assert_int_equal(offsetof(struct dock_wqe, token), 32);
    assert_int_equal(offsetof(struct dock_wqe, address), 40);
    assert_int_equal(offsetof(struct dock_wqe, body), 48);
    assert_int_equal(DOCK_F_FENCE, 1 << 19);
    assert_int_equal(DOCK_F_SOLICITED, 1 << 20);
    assert_int_equal(DOCK_F_COMPLETE, 1 << 21);
    assert_int_equal(DOCK_F_INLINE, 1 << 22);
}

static void fields_of_a_cqe(void **state)
{
    static const struct {
        size_t at, dword;
    } t[] = {
        {offsetof(struct dock_cqe, dw0), 0},          {offsetof(struct dock_cqe, idx_local), 1},
        {offsetof(struct dock_cqe, local_remote), 2}, {offsetof(struct dock_cqe, tpn), 3},
        {offsetof(struct dock_cqe, bytes), 4},        {offsetof(struct dock_cqe, cookie), 5},
        {offsetof(struct dock_cqe, eid), 7},          {offsetof(struct dock_cqe, data), 11},
    };

    (void)state;
    for (unsigned i = 0; i < COUNT(t); i++)
        assert_int_equal(t[i].at, t[i].dword * 4);
}

static void an_atomic_is_one_of_seven(void **state)
{
    unsigned n = 0;

    (void)state;
    for (unsigned op = 0; op < 256; op++)
        n += dock_op_is_atomic(op) != 0;
    assert_int_equal(n, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opcodes_have_their_public_numbers),
        cmocka_unit_test(blocks_of_every_opcode_by_sges),
        cmocka_unit_test(blocks_of_every_opcode_by_inline_bytes),
        cmocka_unit_test(four_blocks_hold_so_much_and_no_more),
        cmocka_unit_test(without_data_a_wqe_is_its_control_part),
        cmocka_unit_test(fields_of_the_first_block),
        cmocka_unit_test(fields_of_a_cqe),
        cmocka_unit_test(an_atomic_is_one_of_seven),
    };

    return cmocka_run_group_tests_name("the memory format", tests, NULL, NULL);
}
