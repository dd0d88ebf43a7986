// SPDX-License-Identifier: MIT
// What a WR may say: lists, limits, flags, tokens, and what comes of it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "face/urma/lib/uend.h"

static const struct uend_options rm = {.mode = URMA_TM_RM};

// ---- lists

static void a_list_stops_exactly_at_the_bad_wr(void **state)
{
    struct uend l, r;
    struct uwr w[5];
    urma_jfs_wr_t *bad;

    (void)state;
    upair_open(&l, &r, &rm);
    for (unsigned at = 0; at < 5; at++) {
        for (unsigned i = 0; i < 5; i++) {
            uend_wr(&l, &w[i], URMA_OPC_WRITE, i, i * 8, 8);
            w[i].wr.next = i < 4 ? &w[i + 1].wr : NULL;
        }
        w[at].wr.opcode = (urma_opcode_t)0x30; // in a gap of the table
        bad = NULL;
        CHECK_INT(uend_post(&l, &w[0].wr, &bad), URMA_EINVAL);
        CHECK(bad == &w[at].wr);
        for (unsigned i = 0; i < at; i++)
            ucr_expect(l.jfc, i, URMA_CR_SUCCESS, NULL);
        ucr_expect_empty(l.jfc, 1);
    }
    upair_close(&l, &r);
}

static void exactly_depth_wrs_fit_that_no_polled_cr_covers(void **state)
{
    struct uend_options o = {.mode = URMA_TM_RM, .depth = 7};
    struct uend l, r;
    urma_jfs_wr_t *bad = NULL;
    struct uwr w;

    (void)state;
    upair_open(&l, &r, &o);
    uend_wr(&l, &w, URMA_OPC_WRITE, 1, 0, 8);
    for (unsigned i = 0; i < 7; i++)
        CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
    CHECK_INT(uend_post(&l, &w.wr, &bad), URMA_ENOMEM);
    CHECK(bad == &w.wr);
    ucr_expect(l.jfc, 1, URMA_CR_SUCCESS, NULL);
    CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
    CHECK_INT(uend_post(&l, &w.wr, NULL), URMA_ENOMEM);
    upair_close(&l, &r);
}

static void only_wrs_with_complete_enable_make_a_cr(void **state)
{
    struct uend l, r;
    struct uwr w;

    (void)state;
    upair_open(&l, &r, &rm);
    for (unsigned i = 0; i < 8; i++) {
        uend_wr(&l, &w, URMA_OPC_WRITE, i, i * 8, 8);
        *(uint64_t *)(void *)(l.buf + i * 8) = i + 1;
        w.wr.flag.bs.complete_enable = i % 4 == 3;
        CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
    }
    ucr_expect(l.jfc, 3, URMA_CR_SUCCESS, NULL);
    ucr_expect(l.jfc, 7, URMA_CR_SUCCESS, NULL);
    ucr_expect_empty(l.jfc, 1);
    for (unsigned i = 0; i < 8; i++)
        CHECK_INT(*(uint64_t *)(void *)(r.buf + i * 8), i + 1);
    upair_close(&l, &r);
}

static void pieces_of_length_zero_are_left_out(void **state)
{
    struct uend l, r;
    struct uwr w;

    (void)state;
    upair_open(&l, &r, &rm);
    memcpy(l.buf + 100, "abcdef", 6);
    uend_wr(&l, &w, URMA_OPC_WRITE, 1, 100, 3);
    w.local[1] = (urma_sge_t){.addr = 1, .len = 0, .tseg = NULL};
    w.local[2] = (urma_sge_t){.addr = (uintptr_t)l.buf + 103, .len = 3, .tseg = l.seg};
    w.wr.rw.src.num_sge = 3;
    CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
    ucr_expect(l.jfc, 1, URMA_CR_SUCCESS, NULL);
    CHECK(!memcmp(r.buf + 100, "abcdef", 6));
    w.wr.rw.src.num_sge = 0; // a WRITE of nothing is legal
    CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
    ucr_expect(l.jfc, 1, URMA_CR_SUCCESS, NULL);
    upair_close(&l, &r);
}

// ---- limits, exactly as announced

static void p16_inline_data_up_to_the_limit_and_0_means_the_devices(void **state)
{
    struct uend_options o = {.mode = URMA_TM_RM, .inline_data = 64};
    urma_device_attr_t attr;
    uint32_t most;
    struct uend l, r;
    struct uwr w;

    (void)state;
    for (unsigned round = 0; round < 2; round++) {
        o.inline_data = round ? 0 : 64;
        upair_open(&l, &r, &o);
        CHECK_INT(urma_query_device(l.ctx->dev, &attr), 0);
        most = round ? attr.dev_cap.max_jfs_inline_len : 64;
        CHECK_INT(l.jetty->jetty_cfg.jfs_cfg.max_inline_data, most);
        for (uint32_t len = most - 1; len <= most + 1; len++) {
            uend_wr(&l, &w, URMA_OPC_WRITE, len, 0, len);
            w.wr.flag.bs.inline_flag = 1;
            CHECK_INT(uend_post(&l, &w.wr, NULL), len > most ? URMA_EINVAL : 0);
            if (len <= most)
                ucr_expect(l.jfc, len, URMA_CR_SUCCESS, NULL);
        }
        upair_close(&l, &r);
    }
}

static void as_many_sges_as_the_queue_was_made_for(void **state)
{
    urma_device_attr_t attr;
    struct uend_options o;
    struct uend l, r;
    struct uwr w;
    uint32_t most;

    (void)state;
    CHECK_INT(urma_query_device(the_device(), &attr), 0);
    most = attr.dev_cap.max_jfs_sge;
    for (uint32_t made = 1; made <= most; made += most - 1) {
        o = (struct uend_options){.mode = URMA_TM_RM, .sge = (uint8_t)made};
        upair_open(&l, &r, &o);
        for (uint32_t n = made; n <= made + 1; n++) {
            uend_wr(&l, &w, URMA_OPC_WRITE_NOTIFY, n, 0, 4);
            for (uint32_t i = 0; i < n; i++)
                w.local[i] = (urma_sge_t){.addr = (uintptr_t)l.buf + i * 16, .len = 4, .tseg = l.seg};
            w.remote[0].addr = r.seg->seg.ubva.va + 1024;
            w.wr.rw.src.num_sge = n;
            CHECK_INT(uend_post(&l, &w.wr, NULL), n > made ? URMA_EINVAL : 0);
            if (n <= made)
                ucr_expect(l.jfc, n, URMA_CR_SUCCESS, NULL);
        }
        upair_close(&l, &r);
    }
}

// ---- flags and shapes that a post refuses

struct refusal {
    const char *name;
    urma_opcode_t op;
    void (*spoil)(struct uwr *w);
    urma_transport_mode_t mode;
};

static void has_drv_ext(struct uwr *w)
{
    w->wr.flag.bs.has_drv_ext = 1;
}

static void udf(struct uwr *w)
{
    w->wr.flag.bs.udf = 1;
}

static void fence(struct uwr *w)
{
    w->wr.flag.bs.fence = 1;
}

static void strong(struct uwr *w)
{
    w->wr.flag.bs.place_order = URMA_STRONG_ORDER;
}

static void comp_order(struct uwr *w)
{
    w->wr.flag.bs.comp_order = 1;
}

static void no_target(struct uwr *w)
{
    w->wr.tjetty = NULL;
}

static void two_remotes(struct uwr *w)
{
    w->wr.rw.dst.num_sge = 2;
}

static void one_remote(struct uwr *w)
{
    w->wr.rw.dst.num_sge = 1;
}

static void two_sources(struct uwr *w)
{
    w->wr.rw.src.num_sge = 2;
}

static void no_remote_segment(struct uwr *w)
{
    w->remote[0].tseg = NULL;
}

static void no_operand(struct uwr *w)
{
    w->wr.cas.dst = NULL;
}

static void short_atomic(struct uwr *w)
{
    w->local[0].len = 5;
}

static void long_atomic(struct uwr *w)
{
    w->local[0].len = 16;
}

static void nothing(struct uwr *w)
{
    (void)w; // the opcode is enough
}

static void no_segment_to_drop(struct uwr *w)
{
    w->wr.send.tseg = NULL;
}

static const struct refusal refusals[] = {
    {"has_drv_ext", URMA_OPC_WRITE, has_drv_ext, URMA_TM_RM},
    {"udf", URMA_OPC_WRITE, udf, URMA_TM_RM},
    {"p11: no target in the WR", URMA_OPC_WRITE, no_target, URMA_TM_RM},
    {"WRITE to two remote pieces", URMA_OPC_WRITE, two_remotes, URMA_TM_RC},
    {"WRITE with notify to one", URMA_OPC_WRITE_NOTIFY, one_remote, URMA_TM_RM},
    {"READ of two remote pieces", URMA_OPC_READ, two_sources, URMA_TM_RM},
    {"no remote segment", URMA_OPC_WRITE, no_remote_segment, URMA_TM_RM},
    {"CAS of nothing", URMA_OPC_CAS, no_operand, URMA_TM_RM},
    {"FADD of five bytes", URMA_OPC_FADD, short_atomic, URMA_TM_RM},
    {"CAS of sixteen bytes", URMA_OPC_CAS, long_atomic, URMA_TM_RM},
    {"WRITE with atomic to one", URMA_OPC_WRITE_ATOMIC, one_remote, URMA_TM_RM},
    {"flush of DMA", URMA_OPC_FLUSH_DMA, nothing, URMA_TM_RM},
    {"SEND that drops nothing", URMA_OPC_SEND_INVALIDATE, no_segment_to_drop, URMA_TM_RM},
    {"fence in UM", URMA_OPC_SEND, fence, URMA_TM_UM},
    {"place_order in UM", URMA_OPC_SEND, strong, URMA_TM_UM},
    {"comp_order in UM", URMA_OPC_SEND, comp_order, URMA_TM_UM},
};

static void what_a_post_refuses_is_not_posted(void **state)
{
    urma_jfs_wr_t *bad;
    struct uend l, r;
    struct uwr w;

    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        struct uend_options o = {.mode = refusals[i].mode};
        upair_open(&l, &r, &o);
        uend_wr(&l, &w, refusals[i].op, i, 0, 8);
        refusals[i].spoil(&w);
        bad = NULL;
        urma_status_t got = uend_post(&l, &w.wr, &bad);
        if (got != URMA_EINVAL || bad != &w.wr)
            check_failed(__FILE__, __LINE__, "%s: expected EINVAL and this WR, got %d", refusals[i].name,
                         got);
        ucr_expect_empty(l.jfc, 1);
        upair_close(&l, &r);
    }
}

static void outorder_comp_takes_no_order_flags(void **state)
{
    struct uend_options o = {.mode = URMA_TM_RM, .flag = {.bs = {.outorder_comp = 1}}};
    struct uend l, r;
    struct uwr w;

    (void)state;
    upair_open(&l, &r, &o);
    uend_wr(&l, &w, URMA_OPC_WRITE, 1, 0, 8);
    CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
    w.wr.flag.bs.fence = 1;
    CHECK_INT(uend_post(&l, &w.wr, NULL), URMA_EINVAL);
    upair_close(&l, &r);
}

// Ordering flags and solicited change nothing about the bytes: in every mode that has them, each goes
// through.
static void the_flags_of_order_are_taken_where_they_mean_something(void **state)
{
    static const urma_transport_mode_t modes[] = {URMA_TM_RM, URMA_TM_RC};
    struct uend l, r;
    struct uwr w;

    (void)state;
    for (size_t m = 0; m < 2; m++) {
        struct uend_options o = {.mode = modes[m]};
        upair_open(&l, &r, &o);
        for (uint32_t flags = 0; flags < 32; flags++) { // place_order, comp_order, fence, solicited
            if ((flags & 3) == 3)
                continue; // reserved
            uend_wr(&l, &w, URMA_OPC_WRITE, flags, 0, 8);
            w.wr.flag.value |= flags;
            *(uint64_t *)(void *)l.buf = flags + 100;
            CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
            ucr_expect(l.jfc, flags, URMA_CR_SUCCESS, NULL);
            CHECK_INT(*(uint64_t *)(void *)r.buf, flags + 100);
        }
        upair_close(&l, &r);
    }
}

// ---- tokens and rights

struct attack {
    const char *name;
    uint32_t access; // of the segment; 0: all
    uint32_t token;  // shown at import
    urma_opcode_t op;
    int64_t shift; // of the remote address
    urma_cr_status_t status;
};

static const struct attack attacks[] = {
    {"right token", 0, UEND_TOKEN, URMA_OPC_WRITE, 0, URMA_CR_SUCCESS},
    {"p1: token 0 for a policy that asks", 0, 0, URMA_OPC_WRITE, 0, URMA_CR_REM_ACCESS_ABORT_ERR},
    {"p2: another token", 0, UEND_TOKEN + 1, URMA_OPC_WRITE, 0, URMA_CR_REM_ACCESS_ABORT_ERR},
    {"p2: another token, READ", 0, UEND_TOKEN + 1, URMA_OPC_READ, 0, URMA_CR_REM_ACCESS_ABORT_ERR},
    {"p2: another token, CAS", 0, UEND_TOKEN + 1, URMA_OPC_CAS, 0, URMA_CR_REM_ACCESS_ABORT_ERR},
    {"one byte before", 0, UEND_TOKEN, URMA_OPC_WRITE, -1, URMA_CR_REM_ACCESS_ABORT_ERR},
    {"one byte behind", 0, UEND_TOKEN, URMA_OPC_READ, 65536 - 7, URMA_CR_REM_ACCESS_ABORT_ERR},
    {"the last bytes", 0, UEND_TOKEN, URMA_OPC_READ, 65536 - 8, URMA_CR_SUCCESS},
    {"p3: WRITE to a segment for reading", URMA_ACCESS_READ, UEND_TOKEN, URMA_OPC_WRITE, 0,
     URMA_CR_REM_ACCESS_ABORT_ERR},
    {"p3: READ of a local segment", URMA_ACCESS_LOCAL_ONLY, UEND_TOKEN, URMA_OPC_READ, 0,
     URMA_CR_REM_ACCESS_ABORT_ERR},
    {"p3: atomic without the right", URMA_ACCESS_READ | URMA_ACCESS_WRITE, UEND_TOKEN, URMA_OPC_FADD, 0,
     URMA_CR_REM_ACCESS_ABORT_ERR},
};

static void try(const struct attack *a, urma_transport_mode_t mode, bool by_description)
{
    struct uend_options o = {.mode = mode, .access = a->access};
    urma_import_seg_flag_t flag = {.bs = {.access = ALL_ACCESS}};
    urma_token_t token = {a->token};
    urma_user_tseg_t described;
    struct uend l, r;
    urma_cr_t cr;
    struct uwr w;

    upair_open(&l, &r, &o);
    CHECK_INT(urma_unimport_seg(l.there), 0);
    l.there = urma_import_seg(l.ctx, &r.seg->seg, &token, 0, flag);
    CHECK(l.there != NULL);
    uend_wr(&l, &w, a->op, 1, 0, 8);
    w.remote[0].addr += (uint64_t)a->shift;
    described =
        (urma_user_tseg_t){.attr = r.seg->seg.attr, .token_id = r.seg->seg.token_id, .token_value = token};
    if (by_description) {
        w.remote[0].tseg = NULL;
        w.remote[0].user_tseg = &described;
    }
    CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
    CHECK(ucr_poll(l.jfc, &cr, 5000));
    if (cr.status != a->status || cr.user_ctx != 1)
        check_failed(__FILE__, __LINE__, "%s, mode %d%s: expected status %d, got %d", a->name, (int)mode,
                     by_description ? ", user_tseg" : "", (int)a->status, (int)cr.status);
    upair_close(&l, &r);
}

static void tokens_bounds_and_rights_are_checked_on_every_access(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof attacks / sizeof *attacks; i++) {
        try(&attacks[i], URMA_TM_RM, false);
        try(&attacks[i], URMA_TM_RM, true);
        try(&attacks[i], URMA_TM_RC, false);
    }
}

static void a_local_segment_that_does_not_cover_the_piece_is_an_error_cr(void **state)
{
    struct uend l, r;
    struct uwr w;

    (void)state;
    upair_open(&l, &r, &rm);
    uend_wr(&l, &w, URMA_OPC_WRITE, 1, l.opt.bytes - 4, 8);
    w.remote[0].addr = l.raddr;
    CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
    ucr_expect(l.jfc, 1, URMA_CR_LOC_ACCESS_ERR, NULL);
    upair_close(&l, &r);
}

// ---- messages

static void p10_an_immediate_goes_by_opcode_and_arrives_in_imm_data(void **state)
{
    struct uend l, r;
    urma_cr_t cr;
    struct uwr w;

    (void)state;
    upair_open(&l, &r, &rm);
    CHECK_INT(uend_recv(&r, 5, 0, 64), 0);
    CHECK_INT(uend_recv(&r, 6, 0, 64), 0);
    uend_wr(&l, &w, URMA_OPC_SEND_IMM, 1, 0, 8);
    w.wr.send.imm_data = 0x1111111122222222;
    CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
    uend_wr(&l, &w, URMA_OPC_WRITE_IMM, 2, 0, 8);
    w.wr.rw.notify_data = 0x3333333344444444;
    CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
    ucr_expect(r.rjfc, 5, URMA_CR_SUCCESS, &cr);
    CHECK(cr.imm_data == 0x1111111122222222);
    ucr_expect(r.rjfc, 6, URMA_CR_SUCCESS, &cr);
    CHECK(cr.imm_data == 0x3333333344444444);
    ucr_expect(l.jfc, 1, URMA_CR_SUCCESS, &cr);
    CHECK(cr.flag.bs.s_r == 0 && cr.opcode > URMA_CR_OPC_FLUSH_WRITE); // p17: valid for receives only
    ucr_expect(l.jfc, 2, URMA_CR_SUCCESS, NULL);
    upair_close(&l, &r);
}

static void a_message_longer_than_its_receive_fails_at_both_ends(void **state)
{
    struct uend l, r;
    struct uwr w;

    (void)state;
    upair_open(&l, &r, &rm);
    CHECK_INT(uend_recv(&r, 5, 0, 16), 0);
    uend_wr(&l, &w, URMA_OPC_SEND, 1, 0, 17);
    CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
    ucr_expect(r.rjfc, 5, URMA_CR_LOC_LEN_ERR, NULL);
    ucr_expect(l.jfc, 1, URMA_CR_REM_RESP_LEN_ERR, NULL);
    upair_close(&l, &r);
}

static void a_registered_handle_of_this_process_names_the_remote_side(void **state)
{
    struct uend l, r;
    struct uwr w;

    (void)state;
    upair_open(&l, &r, &rm);
    uend_wr(&l, &w, URMA_OPC_WRITE, 1, 0, 8);
    w.remote[0].tseg = r.seg;
    memcpy(l.buf, "loopback", 8);
    CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
    ucr_expect(l.jfc, 1, URMA_CR_SUCCESS, NULL);
    CHECK(!memcmp(r.buf, "loopback", 8));
    upair_close(&l, &r);
}

static void without_a_receive_the_sender_waits_for_one(void **state)
{
    struct uend l, r;
    struct uwr w;

    (void)state;
    upair_open(&l, &r, &rm);
    uend_wr(&l, &w, URMA_OPC_SEND, 1, 0, 8);
    CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
    ucr_expect_empty(l.jfc, 20);
    CHECK_INT(uend_recv(&r, 5, 0, 16), 0);
    ucr_expect(l.jfc, 1, URMA_CR_SUCCESS, NULL);
    ucr_expect(r.rjfc, 5, URMA_CR_SUCCESS, NULL);
    upair_close(&l, &r);
}

static void an_atomic_of_four_bytes_leaves_the_other_half_alone(void **state)
{
    static const struct {
        urma_opcode_t op;
        uint32_t after;
    } rows[] = {{URMA_OPC_CAS, 9},  {URMA_OPC_SWAP, 9}, {URMA_OPC_FADD, 12}, {URMA_OPC_FSUB, 0xfffffffe},
                {URMA_OPC_FAND, 5}, {URMA_OPC_FOR, 7},  {URMA_OPC_FXOR, 2}};
    struct uend l, r;
    struct uwr w;

    (void)state;
    upair_open(&l, &r, &rm);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t far[2] = {5, 0x77777777}, near[2] = {0, 0x33333333};
        memcpy(r.buf, far, sizeof far);
        memcpy(l.buf, near, sizeof near);
        uend_wr(&l, &w, rows[i].op, i, 0, 4);
        if (rows[i].op == URMA_OPC_CAS || rows[i].op == URMA_OPC_SWAP) {
            w.wr.cas.cmp_data = 5;
            w.wr.cas.swap_data = 9;
        } else {
            w.wr.faa.operand = 7;
        }
        CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
        ucr_expect(l.jfc, i, URMA_CR_SUCCESS, NULL);
        memcpy(far, r.buf, sizeof far);
        memcpy(near, l.buf, sizeof near);
        CHECK_INT(far[0], rows[i].after);
        CHECK_INT(far[1], 0x77777777);
        CHECK_INT(near[0], 5);
        CHECK_INT(near[1], 0x33333333);
    }
    upair_close(&l, &r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_atomic_of_four_bytes_leaves_the_other_half_alone),
        cmocka_unit_test(a_list_stops_exactly_at_the_bad_wr),
        cmocka_unit_test(exactly_depth_wrs_fit_that_no_polled_cr_covers),
        cmocka_unit_test(only_wrs_with_complete_enable_make_a_cr),
        cmocka_unit_test(pieces_of_length_zero_are_left_out),
        cmocka_unit_test(p16_inline_data_up_to_the_limit_and_0_means_the_devices),
        cmocka_unit_test(as_many_sges_as_the_queue_was_made_for),
        cmocka_unit_test(what_a_post_refuses_is_not_posted),
        cmocka_unit_test(outorder_comp_takes_no_order_flags),
        cmocka_unit_test(the_flags_of_order_are_taken_where_they_mean_something),
        cmocka_unit_test(tokens_bounds_and_rights_are_checked_on_every_access),
        cmocka_unit_test(a_local_segment_that_does_not_cover_the_piece_is_an_error_cr),
        cmocka_unit_test(p10_an_immediate_goes_by_opcode_and_arrives_in_imm_data),
        cmocka_unit_test(a_message_longer_than_its_receive_fails_at_both_ends),
        cmocka_unit_test(a_registered_handle_of_this_process_names_the_remote_side),
        cmocka_unit_test(without_a_receive_the_sender_waits_for_one),
    };

    return cmocka_run_group_tests_name("urma data", tests, uend_keep_device, uend_let_device_go);
}
