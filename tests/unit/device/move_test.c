// SPDX-License-Identifier: MIT
// Bytes move: every opcode between two devices of one process, and of a device with itself, on memory in the
// arena and on plain memory.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "arena/xcopy.h"
#include "lib/pair.h"

struct world {
    struct dock_dev *dev[2];
    struct end a, b;
};

static void open_world(struct world *w, bool self, bool plain)
{
    struct end_opts o = {.plain = plain, .mem = 3 << 20};

    assert_int_equal(dock_dev_open(NULL, &w->dev[0]), 0);
    w->dev[1] = w->dev[0];
    if (!self)
        assert_int_equal(dock_dev_open(NULL, &w->dev[1]), 0);
    end_open(&w->a, w->dev[0], &o);
    end_open(&w->b, w->dev[1], &o);
    pair_connect(&w->a, &w->b);
}

static void close_world(struct world *w)
{
    end_close(&w->a);
    end_close(&w->b);
    if (w->dev[1] != w->dev[0])
        assert_int_equal(dock_dev_close(w->dev[1]), 0);
    assert_int_equal(dock_dev_close(w->dev[0]), 0);
}

static struct dock_wc done(struct end *e)
{
    struct dock_wc wc;

    assert_true(end_wait(e->scq, &wc, 2000));
    return wc;
}

static void fill(char *p, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (char)(seed + i * 7 + (i >> 8));
}

static const uint32_t sizes[] = {0, 1, 8, 63, 64, 4096, 65535, 65536, 65537, 300000, 2500001};

static void write_and_read(struct world *w)
{
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct dock_sge sge;
        uint32_t n = sizes[i];
        fill(w->a.mem, n, i);
        memset(w->b.mem + 4096, 0, n + 1);
        struct dock_wr wr =
            wr_onesided(DOCK_OP_WRITE, &w->a, &sge, 0, n, w->b.mr, (uintptr_t)w->b.mem + 4096);
        wr.id = 100 + i;
        assert_int_equal(end_post(&w->a, &wr), 0);
        struct dock_wc wc = done(&w->a);
        assert_int_equal(wc.status, DOCK_OK);
        assert_int_equal(wc.id, 100 + i);
        assert_memory_equal(w->a.mem, w->b.mem + 4096, n);
        assert_int_equal(w->b.mem[4096 + n], 0);

        memset(w->a.mem, 0, n);
        wr = wr_onesided(DOCK_OP_READ, &w->a, &sge, 0, n, w->b.mr, (uintptr_t)w->b.mem + 4096);
        assert_int_equal(end_post(&w->a, &wr), 0);
        assert_int_equal(done(&w->a).status, DOCK_OK);
        assert_memory_equal(w->a.mem, w->b.mem + 4096, n);
    }
}

static void send_and_receive(struct world *w)
{
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct dock_sge sge;
        struct dock_wc wc;
        uint32_t n = sizes[i];
        fill(w->a.mem, n, i);
        memset(w->b.mem, 0, n);
        assert_int_equal(end_recv(&w->b, 500 + i, w->b.mem, n), 0);
        struct dock_wr wr = wr_onesided(DOCK_OP_SEND_IMM, &w->a, &sge, 0, n, w->b.mr, 0);
        wr.imm = 0x01020304;
        assert_int_equal(end_post(&w->a, &wr), 0);
        assert_int_equal(done(&w->a).status, DOCK_OK);
        assert_true(end_wait(w->b.rcq, &wc, 2000));
        assert_int_equal(wc.status, DOCK_OK);
        assert_int_equal(wc.id, 500 + i);
        assert_int_equal(wc.bytes, n);
        assert_int_equal(wc.imm, 0x01020304);
        assert_int_equal(wc.src_qp, dock_qp_number(w->a.qp));
        assert_memory_equal(w->a.mem, w->b.mem, n);
    }
}

static void atomics(struct world *w)
{
    static const struct {
        uint8_t op;
        uint64_t before, operand, compare, after;
    } t[] = {
        {DOCK_OP_CAS, 5, 9, 5, 9},   {DOCK_OP_CAS, 5, 9, 6, 5},      {DOCK_OP_FADD, 5, 9, 0, 14},
        {DOCK_OP_SWAP, 5, 9, 0, 9},  {DOCK_OP_FSUB, 5, 9, 0, -4ull}, {DOCK_OP_FAND, 5, 12, 0, 4},
        {DOCK_OP_FOR, 5, 10, 0, 15}, {DOCK_OP_FXOR, 5, 12, 0, 9},
    };

    for (unsigned i = 0; i < sizeof t / sizeof *t; i++) {
        uint64_t *target = (uint64_t *)(w->b.mem + 64), *old = (uint64_t *)(w->a.mem + 128);
        struct dock_sge sge;
        *target = t[i].before;
        *old = 0;
        struct dock_wr wr = wr_onesided(t[i].op, &w->a, &sge, 128, 8, w->b.mr, (uintptr_t)target);
        wr.operand = t[i].operand;
        wr.compare = t[i].compare;
        assert_int_equal(end_post(&w->a, &wr), 0);
        assert_int_equal(done(&w->a).status, DOCK_OK);
        assert_int_equal(*old, t[i].before);
        assert_int_equal(*target, t[i].after);
    }
}

static void notify_and_immediate(struct world *w)
{
    struct dock_sge sge;
    struct dock_wc wc;

    fill(w->a.mem, 100, 3);
    struct dock_wr wr = wr_onesided(DOCK_OP_WRITE_NOTIFY, &w->a, &sge, 0, 100, w->b.mr, (uintptr_t)w->b.mem);
    wr.notify_key = w->b.mr->rkey;
    wr.notify_addr = (uintptr_t)w->b.mem + 1024;
    wr.notify_value = 0x1122334455667788;
    assert_int_equal(end_post(&w->a, &wr), 0);
    assert_int_equal(done(&w->a).status, DOCK_OK);
    assert_memory_equal(w->a.mem, w->b.mem, 100);
    assert_int_equal(*(uint64_t *)(w->b.mem + 1024), 0x1122334455667788);

    assert_int_equal(end_recv(&w->b, 77, NULL, 0), 0);
    wr = wr_onesided(DOCK_OP_WRITE_IMM, &w->a, &sge, 0, 100, w->b.mr, (uintptr_t)w->b.mem + 2048);
    wr.imm = 42;
    assert_int_equal(end_post(&w->a, &wr), 0);
    assert_int_equal(done(&w->a).status, DOCK_OK);
    assert_true(end_wait(w->b.rcq, &wc, 2000));
    assert_int_equal(wc.op, DOCK_ROP_WRITE_IMM);
    assert_int_equal(wc.id, 77);
    assert_int_equal(wc.imm, 42);
    assert_int_equal(wc.bytes, 100);
    assert_memory_equal(w->a.mem, w->b.mem + 2048, 100);
}

static void inline_and_gather(struct world *w)
{
    struct dock_sge sge[3] = {{(uintptr_t)w->a.mem, 10, w->a.mr->lkey},
                              {(uintptr_t)w->a.mem + 100, 0, w->a.mr->lkey},
                              {(uintptr_t)w->a.mem + 200, 30, w->a.mr->lkey}};
    struct dock_wr wr = {.op = DOCK_OP_WRITE,
                         .nsge = 3,
                         .sge = sge,
                         .flags = DOCK_F_COMPLETE,
                         .rkey = w->b.mr->rkey,
                         .raddr = (uintptr_t)w->b.mem + 3};

    fill(w->a.mem, 300, 9);
    assert_int_equal(end_post(&w->a, &wr), 0);
    assert_int_equal(done(&w->a).status, DOCK_OK);
    assert_memory_equal(w->b.mem + 3, w->a.mem, 10);
    assert_memory_equal(w->b.mem + 13, w->a.mem + 200, 30);

    memset(w->b.mem, 0, 300);
    wr.flags |= DOCK_F_INLINE;
    wr.inline_len = 40;
    sge[0].key = sge[2].key = 0; // inline data needs no key
    assert_int_equal(end_post(&w->a, &wr), 0);
    memset(w->a.mem, 0, 10); // and its source is free at once
    assert_int_equal(done(&w->a).status, DOCK_OK);
    assert_int_equal(w->b.mem[3], 9);
    assert_memory_equal(w->b.mem + 13, w->a.mem + 200, 30);
}

static void everything(bool self, bool plain)
{
    struct world w;

    if (plain && !dock_xcopy_works()) // emulators and some sandboxes have no process_vm
        skip();
    open_world(&w, self, plain);
    write_and_read(&w);
    send_and_receive(&w);
    atomics(&w);
    notify_and_immediate(&w);
    inline_and_gather(&w);
    close_world(&w);
}

static void host_arena(void **state)
{
    (void)state;
    everything(false, false);
}

static void host_plain(void **state)
{
    (void)state;
    everything(false, true);
}

static void self_arena(void **state)
{
    (void)state;
    everything(true, false);
}

static void self_plain(void **state)
{
    (void)state;
    everything(true, true);
}

// A region may be named otherwise than it lies: it is the word itself that must be aligned.
static void an_atomic_on_a_word_that_is_aligned_by_name_only_is_refused(void **state)
{
    const uint32_t rights = DOCK_ACCESS_LOCAL_WRITE | DOCK_ACCESS_REMOTE_ATOMIC;

    (void)state;
    for (unsigned plain = 0; plain < (dock_xcopy_works() ? 2u : 1u); plain++) {
        struct world w;
        struct dock_mr *mr;
        struct dock_sge sge;
        open_world(&w, true, plain);
        uintptr_t lies = (uintptr_t)w.b.mem + 4;
        assert_int_equal(dock_mr_register(w.dev[1], w.b.pd, lies, 64, 0x10000, rights, &mr), 0);
        struct dock_wr wr = wr_onesided(DOCK_OP_FADD, &w.a, &sge, 0, 8, mr, 0x10000);
        assert_int_equal(end_post(&w.a, &wr), 0);
        assert_int_equal(done(&w.a).status, DOCK_ST_REM_INV_REQ);
        assert_int_equal(dock_mr_deregister(mr), 0);
        close_world(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_arena),
        cmocka_unit_test(host_plain),
        cmocka_unit_test(self_arena),
        cmocka_unit_test(self_plain),
        cmocka_unit_test(an_atomic_on_a_word_that_is_aligned_by_name_only_is_refused),
    };

    return cmocka_run_group_tests_name("every opcode moves its bytes", tests, NULL, NULL);
}
