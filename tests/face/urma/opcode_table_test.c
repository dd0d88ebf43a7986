// SPDX-License-Identifier: MIT
// Every opcode, in every mode, on both kinds of queue, with every word of flags: what a post says, which CRs
// come, what the far memory holds, and whether a solicited event fires. What is expected follows from four
// rules below.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "face/urma/lib/uend.h"

enum { FENCE_ID = 99, RECV_ID = 7, WORD = 0, NOTIFIED = 64, RECEIVED = 1024, OLD = 2048, LENT = 4096 };

// The flag word of a WR.
enum {
    ORDER = 3,
    COMP_ORDER = 4,
    FENCE = 8,
    SOLICITED = 16,
    COMPLETE = 32,
    INLINE = 64,
    UDF = 256,
    DRV_EXT = 512
};

enum kind { WRITES, READS, ATOMIC, MESSAGE, NONE, UNKNOWN };

static const struct row {
    const char *name;
    urma_opcode_t op;
    enum kind kind;
    uint64_t after; // of an atomic on 5 with 6; CAS compares with 5, and stores 6
    bool receives;  // takes a receive of the target
    bool notifies;  // a second word
    bool um;        // executed in UM
} rows[] = {
    {"WRITE", URMA_OPC_WRITE, WRITES, 0, false, false, true},
    {"WRITE_IMM", URMA_OPC_WRITE_IMM, WRITES, 0, true, false, false},
    {"WRITE_NOTIFY", URMA_OPC_WRITE_NOTIFY, WRITES, 0, false, true, false},
    {"WRITE_ATOMIC", URMA_OPC_WRITE_ATOMIC, WRITES, 0, false, true, false},
    {"READ", URMA_OPC_READ, READS, 0, false, false, true},
    {"CAS", URMA_OPC_CAS, ATOMIC, 6, false, false, false},
    {"SWAP", URMA_OPC_SWAP, ATOMIC, 6, false, false, false},
    {"FADD", URMA_OPC_FADD, ATOMIC, 11, false, false, false},
    {"FSUB", URMA_OPC_FSUB, ATOMIC, UINT64_MAX, false, false, false},
    {"FAND", URMA_OPC_FAND, ATOMIC, 4, false, false, false},
    {"FOR", URMA_OPC_FOR, ATOMIC, 7, false, false, false},
    {"FXOR", URMA_OPC_FXOR, ATOMIC, 3, false, false, false},
    {"SEND", URMA_OPC_SEND, MESSAGE, 0, true, false, true},
    {"SEND_IMM", URMA_OPC_SEND_IMM, MESSAGE, 0, true, false, true},
    {"SEND_INVALIDATE", URMA_OPC_SEND_INVALIDATE, MESSAGE, 0, true, false, false},
    {"NOP", URMA_OPC_NOP, NONE, 0, false, false, true},
    {"FLUSH_DMA", URMA_OPC_FLUSH_DMA, UNKNOWN, 0, false, false, false},
    {"none (0x30)", (urma_opcode_t)0x30, UNKNOWN, 0, false, false, false},
};

static const struct place {
    const char *name;
    urma_transport_mode_t mode;
    bool halves;
    bool lock_free; // JFS or jetty, JFR, JFC
} places[] = {
    {"RM jetty", URMA_TM_RM, false, false},           {"RM JFS", URMA_TM_RM, true, false},
    {"RC jetty", URMA_TM_RC, false, false},           {"RC JFS", URMA_TM_RC, true, false},
    {"UM jetty", URMA_TM_UM, false, false},           {"UM JFS", URMA_TM_UM, true, false},
    {"RM jetty, lock_free", URMA_TM_RM, false, true},
};

static struct uend l, r;
static urma_target_seg_t *lent, *lent_there; // what a SEND with invalidate takes away

// ---- the rules

// A post refuses an unknown opcode, what is not announced, and orders where there are none.
static bool refused(const struct place *p, const struct row *o, uint32_t flags)
{
    return o->kind == UNKNOWN || flags & (UDF | DRV_EXT) ||
           (p->mode == URMA_TM_UM && flags & (ORDER | COMP_ORDER | FENCE));
}

// What UM does not know fails, told whatever the flags.
static urma_cr_status_t outcome(const struct place *p, const struct row *o)
{
    return p->mode == URMA_TM_UM && !o->um ? URMA_CR_UNSUPPORTED_OPCODE_ERR : URMA_CR_SUCCESS;
}

static bool makes_cr(const struct place *p, const struct row *o, uint32_t flags)
{
    return flags & COMPLETE || outcome(p, o) != URMA_CR_SUCCESS;
}

// Inline bytes are the device's from the post on. READ and atomics have none, and leave the flag alone.
static bool is_inline(const struct row *o, uint32_t flags)
{
    return flags & INLINE && (o->kind == WRITES || o->kind == MESSAGE);
}

// ---- one cell

static uint64_t *word(struct uend *e, size_t offset)
{
    return (uint64_t *)(void *)(e->buf + offset);
}

static void wrong(const struct place *p, const struct row *o, uint32_t flags, const char *what,
                  long long expected, long long got)
{
    check_failed(__FILE__, __LINE__, "%s, %s, flags %#x: %s: expected %lld, got %lld", p->name, o->name,
                 flags, what, expected, got);
}

#define EQUAL(what, got, expected)                                                                           \
    do {                                                                                                     \
        long long got_ = (long long)(got), expected_ = (long long)(expected);                                \
        if (got_ != expected_)                                                                               \
            wrong(p, o, flags, what, expected_, got_);                                                       \
    } while (0)

static void lend_again(void)
{
    urma_seg_cfg_t cfg = {.va = (uintptr_t)r.buf + LENT, .len = 64};
    urma_token_t none = {0};

    if (lent) {
        CHECK_INT(urma_unimport_seg(lent_there), 0);
        CHECK_INT(urma_unregister_seg(lent), 0);
    }
    cfg.flag.bs.access = ALL_ACCESS;
    lent = urma_register_seg(r.ctx, &cfg);
    CHECK(lent != NULL);
    lent_there = urma_import_seg(l.ctx, &lent->seg, &none, 0, (urma_import_seg_flag_t){0});
    CHECK(lent_there != NULL);
}

static void fill(const struct row *o, uint32_t flags, uint64_t value, struct uwr *w)
{
    uend_wr(&l, w, o->op, value, o->kind == ATOMIC ? OLD : WORD, 8);
    w->wr.flag.value = flags;
    w->remote[0].addr = l.raddr + WORD;
    w->remote[1].addr = l.raddr + NOTIFIED;
    if (o->kind == WRITES)
        w->wr.rw.notify_data = value + 2;
    if (o->op == URMA_OPC_CAS || o->op == URMA_OPC_SWAP) {
        w->wr.cas.cmp_data = 5;
        w->wr.cas.swap_data = 6;
    } else if (o->kind == ATOMIC) {
        w->wr.faa.operand = 6;
    }
    if (o->op == URMA_OPC_SEND_IMM)
        w->wr.send.imm_data = value + 2;
    if (o->op == URMA_OPC_SEND_INVALIDATE) {
        lend_again();
        w->wr.send.tseg = lent_there;
    }
    *word(&l, WORD) = o->kind == READS ? 0 : value;
    *word(&l, OLD) = 0;
    *word(&r, WORD) = o->kind == ATOMIC ? 5 : o->kind == READS ? value : 0;
    *word(&r, NOTIFIED) = 40;
    *word(&r, RECEIVED) = 0;
}

// The flags stand in the request as the device reads it: seven bits of its first word, in the public format.
// What the device makes of them over a fabric that reorders is shown by tests/litmus and tests/unit/fabric.
static const uint32_t *next_request(void)
{
    uint64_t base = 0;
    uint16_t pi = 0;

    if (l.jfs) {
        CHECK_INT(urma_get_jfs_opt(l.jfs, URMA_JFS_SQE_BASE_ADDR, &base, 8), 0);
        CHECK_INT(urma_get_jfs_opt(l.jfs, URMA_JFS_PI, &pi, 2), 0);
    } else {
        CHECK_INT(urma_get_jetty_opt(l.jetty, URMA_JFS_SQE_BASE_ADDR, &base, 8), 0);
        CHECK_INT(urma_get_jetty_opt(l.jetty, URMA_JFS_PI, &pi, 2), 0);
    }
    return (const uint32_t *)(uintptr_t)(base + pi * 64u);
}

static void look_at_request(const struct place *p, const struct row *o, uint32_t flags,
                            const uint32_t *request)
{
    uint32_t expected = is_inline(o, flags) ? flags : flags & ~(uint32_t)INLINE;

    EQUAL("the flags of the request", *(const volatile uint32_t *)request >> 16 & 127, expected);
}

// What the memory of both holds when it has succeeded.
static void look_at_memory(const struct place *p, const struct row *o, uint32_t flags, uint64_t value)
{
    if (o->kind == WRITES)
        EQUAL("the far word", *word(&r, WORD), value);
    if (o->kind == READS)
        EQUAL("what was read", *word(&l, WORD), value);
    if (o->kind == ATOMIC) {
        EQUAL("the far word", *word(&r, WORD), o->after);
        EQUAL("the old value", *word(&l, OLD), 5);
    }
    if (o->kind == MESSAGE)
        EQUAL("the message", *word(&r, RECEIVED), value);
    if (o->notifies)
        EQUAL("the second word", *word(&r, NOTIFIED),
              o->op == URMA_OPC_WRITE_ATOMIC ? 40 + value + 2 : value + 2);
}

static void look_at_receiver(const struct place *p, const struct row *o, uint32_t flags, uint64_t value)
{
    static const urma_cr_opcode_t opcode[] = {[URMA_OPC_SEND & 3] = URMA_CR_OPC_SEND,
                                              [URMA_OPC_SEND_IMM & 3] = URMA_CR_OPC_SEND_WITH_IMM,
                                              [URMA_OPC_SEND_INVALIDATE & 3] = URMA_CR_OPC_SEND_WITH_INV};
    bool imm = o->op == URMA_OPC_WRITE_IMM || o->op == URMA_OPC_SEND_IMM;
    urma_jfc_t *fired;
    uint32_t one = 1;
    urma_cr_t cr;

    if (!ucr_poll(r.rjfc, &cr, 5000))
        wrong(p, o, flags, "CRs at the receiver", 1, 0);
    EQUAL("the receive", cr.user_ctx, RECV_ID);
    EQUAL("its status", cr.status, URMA_CR_SUCCESS);
    EQUAL("its opcode", cr.opcode, o->kind == WRITES ? URMA_CR_OPC_WRITE_WITH_IMM : opcode[o->op & 3]);
    EQUAL("its length", cr.completion_len, 8);
    if (imm)
        EQUAL("the immediate", cr.imm_data, value + 2);
    if (o->op == URMA_OPC_SEND_INVALIDATE)
        EQUAL("what was taken away", cr.invalid_token.token_id, lent->seg.token_id);
    EQUAL("solicited events", urma_wait_jfc(r.jfce, 1, flags & SOLICITED ? 5000 : 0, &fired),
          !!(flags & SOLICITED));
    if (flags & SOLICITED)
        urma_ack_jfc(&fired, &one, 1);
}

// The CRs up to that of a NOP behind it. How many were the request's?
static unsigned completions(const struct place *p, const struct row *o, uint32_t flags, uint64_t value)
{
    unsigned n = 0;
    urma_cr_t cr;

    for (;; n++) {
        if (!ucr_poll(l.jfc, &cr, 5000))
            wrong(p, o, flags, "the CR of what came behind it", 1, 0);
        if (cr.user_ctx == FENCE_ID)
            break;
        EQUAL("user_ctx", cr.user_ctx, value);
        EQUAL("status", cr.status, outcome(p, o));
        EQUAL("s_r", cr.flag.bs.s_r, 0);
    }
    EQUAL("status of what came behind it", cr.status, URMA_CR_SUCCESS);
    return n;
}

static void try(const struct place *p, const struct row *o, uint32_t flags, uint64_t value)
{
    bool receives = o->receives && !refused(p, o, flags) && outcome(p, o) == URMA_CR_SUCCESS;
    const uint32_t *request = next_request();
    urma_jfs_wr_t *bad = NULL;
    struct uwr w, nop;

    fill(o, flags, value, &w);
    if (receives) {
        CHECK_INT(urma_rearm_jfc(r.rjfc, true), 0);
        CHECK_INT(uend_recv(&r, RECV_ID, RECEIVED, 8), 0);
    }
    EQUAL("the post", uend_post(&l, &w.wr, &bad), refused(p, o, flags) ? URMA_EINVAL : 0);
    EQUAL("bad_wr", bad == &w.wr, refused(p, o, flags));
    if (is_inline(o, flags) && !refused(p, o, flags))
        *word(&l, WORD) = ~value;
    if (!refused(p, o, flags))
        look_at_request(p, o, flags, request);
    uend_wr(&l, &nop, URMA_OPC_NOP, FENCE_ID, 0, 0);
    CHECK_INT(uend_post(&l, &nop.wr, NULL), 0);
    EQUAL("CRs", completions(p, o, flags, value), !refused(p, o, flags) && makes_cr(p, o, flags));
    if (refused(p, o, flags) || outcome(p, o) != URMA_CR_SUCCESS)
        return;
    if (receives)
        look_at_receiver(p, o, flags, value);
    look_at_memory(p, o, flags, value);
}

static void every_opcode_in_every_mode_with_every_flag(void **state)
{
    uint64_t value = 1000;

    (void)state;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct uend_options opt = {.mode = places[i].mode, .halves = places[i].halves, .events = true};
        opt.flag.bs.lock_free = opt.jfr_flag.bs.lock_free = opt.jfc_flag.bs.lock_free = places[i].lock_free;
        upair_open(&l, &r, &opt);
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
            for (uint32_t flags = 0; flags < 2 * INLINE; flags++)
                if ((flags & ORDER) != ORDER) // reserved
                    try(&places[i], &rows[k], flags, ++value);
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
            try(&places[i], &rows[k], UDF | COMPLETE, ++value);
            try(&places[i], &rows[k], DRV_EXT | COMPLETE, ++value);
        }
        if (lent) {
            CHECK_INT(urma_unimport_seg(lent_there), 0);
            CHECK_INT(urma_unregister_seg(lent), 0);
            lent = NULL;
        }
        upair_close(&l, &r);
    }
    printf("%llu cells\n", (unsigned long long)value - 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_opcode_in_every_mode_with_every_flag),
    };

    return cmocka_run_group_tests_name("urma opcodes, modes and flags", tests, uend_keep_device,
                                       uend_let_device_go);
}
