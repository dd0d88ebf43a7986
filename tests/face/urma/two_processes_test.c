// SPDX-License-Identifier: MIT
// The rules of requests between two processes, in every mode and for both kinds of queue.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "face/urma/lib/uend.h"

// ---- every opcode puts the bytes where it says. The far end looks, and answers what it saw.

struct table_row {
    const char *name;
    urma_opcode_t op;
    uint64_t a, b;          // operands: cmp and swap, or one
    uint64_t before, after; // of the far word
};

static const struct table_row atomics[] = {
    {"CAS that matches", URMA_OPC_CAS, 5, 9, 5, 9},
    {"CAS that does not", URMA_OPC_CAS, 6, 9, 5, 5},
    {"SWAP", URMA_OPC_SWAP, 0, 9, 5, 9},
    {"FADD", URMA_OPC_FADD, 3, 0, 5, 8},
    {"FSUB", URMA_OPC_FSUB, 3, 0, 5, 2},
    {"FAND", URMA_OPC_FAND, 6, 0, 5, 4},
    {"FOR", URMA_OPC_FOR, 6, 0, 5, 7},
    {"FXOR", URMA_OPC_FXOR, 6, 0, 5, 3},
};

static struct uend_options options;

static uint64_t *word(struct uend *e, size_t offset)
{
    return (uint64_t *)(void *)(e->buf + offset);
}

static void near_atomics(int sock)
{
    struct uend e;
    struct uwr w;

    uend_meet(&e, &options, sock);
    for (size_t i = 0; i < sizeof atomics / sizeof *atomics; i++) {
        const struct table_row *r = &atomics[i];
        meet(sock);
        uend_wr(&e, &w, r->op, i, 64, 8);
        if (r->op == URMA_OPC_CAS || r->op == URMA_OPC_SWAP) {
            w.wr.cas.cmp_data = r->a;
            w.wr.cas.swap_data = r->b;
        } else {
            w.wr.faa.operand = r->a;
        }
        CHECK_INT(uend_post(&e, &w.wr, NULL), 0);
        ucr_expect(e.jfc, i, URMA_CR_SUCCESS, NULL);
        if (*word(&e, 64) != r->before)
            check_failed(__FILE__, __LINE__, "%s: old value: expected %llu, got %llu", r->name,
                         (unsigned long long)r->before, (unsigned long long)*word(&e, 64));
        meet(sock);
    }
    uend_close(&e);
}

static void far_atomics(int sock)
{
    struct uend e;

    uend_meet(&e, &options, sock);
    for (size_t i = 0; i < sizeof atomics / sizeof *atomics; i++) {
        *word(&e, 64) = atomics[i].before;
        meet(sock);
        meet(sock);
        if (*word(&e, 64) != atomics[i].after)
            check_failed(__FILE__, __LINE__, "%s: new value: expected %llu, got %llu", atomics[i].name,
                         (unsigned long long)atomics[i].after, (unsigned long long)*word(&e, 64));
    }
    uend_close(&e);
}

// `n` bytes there, then as many from there, which are r.
static void write_and_read(struct uend *e, uint32_t n)
{
    struct uwr w;

    uend_wr(e, &w, URMA_OPC_WRITE, 1, 0, n);
    CHECK_INT(uend_post(e, &w.wr, NULL), 0);
    ucr_expect(e->jfc, 1, URMA_CR_SUCCESS, NULL);
    uend_wr(e, &w, URMA_OPC_READ, 2, 8192, n);
    CHECK_INT(uend_post(e, &w.wr, NULL), 0);
    ucr_expect(e->jfc, 2, URMA_CR_SUCCESS, NULL);
    CHECK(e->buf[8192] == 'r' && e->buf[8192 + n - 1] == 'r' && e->buf[8192 + n] == 0);
}

static void near_moves(int sock)
{
    struct uend e;
    struct uwr w;

    uend_meet(&e, &options, sock);
    memset(e.buf, 'w', 4096);
    write_and_read(&e, 1000);
    uend_wr(&e, &w, URMA_OPC_WRITE_NOTIFY, 3, 2048, 100);
    w.remote[1].addr = e.raddr + 4096;
    w.wr.rw.notify_data = 0x1122334455667788;
    CHECK_INT(uend_post(&e, &w.wr, NULL), 0);
    ucr_expect(e.jfc, 3, URMA_CR_SUCCESS, NULL);
    uend_wr(&e, &w, URMA_OPC_WRITE_IMM, 4, 3000, 8);
    w.wr.rw.notify_data = 0x8877665544332211;
    CHECK_INT(uend_post(&e, &w.wr, NULL), 0);
    ucr_expect(e.jfc, 4, URMA_CR_SUCCESS, NULL);
    meet(sock);
    uend_close(&e);
}

static void far_moves(int sock)
{
    struct uend e;
    urma_cr_t cr;

    uend_open(&e, &options);
    memset(e.buf + 8192, 'r', 1000);
    CHECK_INT(uend_recv(&e, 77, 16384, 0), 0);
    struct uend_address mine = uend_address(&e), peer;
    tell(sock, &mine, sizeof mine);
    hear(sock, &peer, sizeof peer);
    uend_connect(&e, &peer);
    meet(sock);
    meet(sock);
    CHECK(e.buf[0] == 'w' && e.buf[999] == 'w' && e.buf[1000] == 0);
    CHECK(e.buf[2048] == 'w' && *word(&e, 4096) == 0x1122334455667788);
    ucr_expect(e.rjfc, 77, URMA_CR_SUCCESS, &cr);
    CHECK_INT(cr.opcode, URMA_CR_OPC_WRITE_WITH_IMM);
    CHECK(cr.imm_data == 0x8877665544332211 && e.buf[3000] == 'w' && cr.flag.bs.s_r);
    uend_close(&e);
}

static void near_messages(int sock)
{
    struct uend e;
    urma_cr_t cr;
    struct uwr w;
    uint32_t id;

    uend_meet(&e, &options, sock);
    id = e.jetty ? e.jetty->jetty_id.id : e.jfs->jfs_id.id;
    tell(sock, &id, sizeof id);
    strcpy(e.buf, "hello");
    uend_wr(&e, &w, URMA_OPC_SEND, 11, 0, 6);
    CHECK_INT(uend_post(&e, &w.wr, NULL), 0);
    ucr_expect(e.jfc, 11, URMA_CR_SUCCESS, &cr);
    CHECK(!cr.flag.bs.s_r && cr.local_id == id && cr.opcode != URMA_CR_OPC_SEND);
    uend_wr(&e, &w, URMA_OPC_SEND_IMM, 12, 0, 6);
    w.wr.send.imm_data = 0xfeedface12345678;
    w.wr.flag.bs.inline_flag = 1;
    w.local[0].tseg = NULL;
    CHECK_INT(uend_post(&e, &w.wr, NULL), 0);
    memset(e.buf, 'x', 6); // inline data was taken by the post
    ucr_expect(e.jfc, 12, URMA_CR_SUCCESS, NULL);
    meet(sock);
    uend_close(&e);
}

static void far_messages(int sock)
{
    struct uend e;
    urma_cr_t cr;
    uint32_t sender, me;

    uend_open(&e, &options);
    CHECK_INT(uend_recv(&e, 1, 0, 100), 0);
    CHECK_INT(uend_recv(&e, 2, 200, 100), 0);
    struct uend_address mine = uend_address(&e), peer;
    tell(sock, &mine, sizeof mine);
    hear(sock, &peer, sizeof peer);
    uend_connect(&e, &peer);
    meet(sock);
    hear(sock, &sender, sizeof sender);
    me = e.jetty ? e.jetty->jetty_id.id : e.jfr->jfr_id.id;
    ucr_expect(e.rjfc, 1, URMA_CR_SUCCESS, &cr);
    CHECK_INT(cr.completion_len, 6);
    CHECK_INT(cr.opcode, URMA_CR_OPC_SEND);
    CHECK_INT(cr.remote_id.id, sender);
    CHECK_INT(cr.local_id, me);
    CHECK_INT(cr.flag.bs.jetty, e.jetty != NULL);
    CHECK(cr.user_data == (e.jetty ? (uintptr_t)e.jetty : (uintptr_t)e.jfr));
    CHECK(!memcmp(&cr.remote_id.eid, &e.ctx->eid, sizeof cr.remote_id.eid) && !strcmp(e.buf, "hello"));
    ucr_expect(e.rjfc, 2, URMA_CR_SUCCESS, &cr);
    CHECK_INT(cr.opcode, URMA_CR_OPC_SEND_WITH_IMM);
    CHECK(cr.imm_data == 0xfeedface12345678 && !strcmp(e.buf + 200, "hello"));
    meet(sock);
    uend_close(&e);
}

static void every_opcode(urma_transport_mode_t mode, bool halves)
{
    options = (struct uend_options){.mode = mode, .halves = halves};
    two_processes(near_moves, far_moves);
    two_processes(near_atomics, far_atomics);
    two_processes(near_messages, far_messages);
}

static void rc_jetty(void **state)
{
    (void)state;
    every_opcode(URMA_TM_RC, false);
}

static void rm_jetty(void **state)
{
    (void)state;
    every_opcode(URMA_TM_RM, false);
}

static void rm_halves(void **state)
{
    (void)state;
    every_opcode(URMA_TM_RM, true);
}

static void rc_halves(void **state)
{
    (void)state;
    every_opcode(URMA_TM_RC, true);
}

static void um_messages(void **state)
{
    (void)state;
    options = (struct uend_options){.mode = URMA_TM_UM};
    two_processes(near_messages, far_messages);
    options.halves = true;
    two_processes(near_messages, far_messages);
}

// The guide has messages alone in UM, UMDK's own sample a WRITE and a READ as well.
static void near_um_moves(int sock)
{
    struct uend e;
    struct uwr w;

    uend_meet(&e, &options, sock);
    memset(e.buf, 'w', 160);
    write_and_read(&e, 160);
    uend_wr(&e, &w, URMA_OPC_FADD, 3, 0, 8);
    CHECK_INT(uend_post(&e, &w.wr, NULL), 0);
    ucr_expect(e.jfc, 3, URMA_CR_UNSUPPORTED_OPCODE_ERR, NULL);
    uend_wr(&e, &w, URMA_OPC_WRITE, 4, 0, 4097);
    CHECK_INT(uend_post(&e, &w.wr, NULL), 0);
    ucr_expect(e.jfc, 4, URMA_CR_LOC_LEN_ERR, NULL);
    meet(sock);
    uend_close(&e);
}

static void far_um_moves(int sock)
{
    struct uend e;

    uend_open(&e, &options);
    memset(e.buf + 8192, 'r', 160);
    struct uend_address mine = uend_address(&e), peer;
    tell(sock, &mine, sizeof mine);
    hear(sock, &peer, sizeof peer);
    uend_connect(&e, &peer);
    meet(sock);
    meet(sock);
    CHECK(e.buf[0] == 'w' && e.buf[159] == 'w' && e.buf[160] == 0);
    uend_close(&e);
}

static void um_writes_and_reads(void **state)
{
    (void)state;
    options = (struct uend_options){.mode = URMA_TM_UM};
    two_processes(near_um_moves, far_um_moves);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rc_jetty),  cmocka_unit_test(rm_jetty),    cmocka_unit_test(rm_halves),
        cmocka_unit_test(rc_halves), cmocka_unit_test(um_messages), cmocka_unit_test(um_writes_and_reads),
    };

    return cmocka_run_group_tests_name("urma two processes", tests, NULL, NULL);
}
